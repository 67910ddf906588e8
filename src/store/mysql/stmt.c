/*
 * stmt.c - named statements, one by one or many in one packet, and what comes back.
 *
 * Everything a group writes is sent as one text of many statements, in several packets when it is
 * long. Answers come in the same order and end with the first error.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/mem.h"
#include "store/mysql/mydb.h"

#define MARKS_FIRST 64
#define ROWS_FIRST 16

/* ---- What comes back ------------------------------------------------------------------------- */

static bool is_number(enum enum_field_types type)
{
    switch (type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
        return true;
    default:
        return false;
    }
}

/* Room for n more rows. */
static bool rows_room(struct arena *a, struct mydb_answer *to, size_t n, unsigned columns)
{
    struct led_rows *r = to->rows;
    if (!r) {
        r = to->rows = arena_zalloc(a, 1, sizeof *r);
        if (!r)
            return false;
        r->columns = (int)columns;
    }
    CHECK(r->columns == (int)columns);
    if ((size_t)r->n + n <= to->cap && r->v)
        return true;
    size_t cap = MAX((size_t)r->n + n, to->cap * 2);
    struct led_cell *v = arena_alloc(a, MAX(cap, 1) * columns * sizeof *v);
    if (!v)
        return false;
    if (r->v)
        memcpy(v, r->v, (size_t)r->n * columns * sizeof *v);
    r->v = v;
    to->cap = cap;
    return true;
}

static void cell_read(struct arena *a, struct led_cell *to, const char *data, unsigned long len,
                      bool number)
{
    *to = (struct led_cell){ 0 };
    if (!data)
        return;
    if (number) {
        to->i = strtoll(data, NULL, 10);
        to->b = BYTES("");
    } else {
        to->b = arena_copy(a, (struct bytes){ data, len });
    }
}

/* Append the rows of one statement. */
static bool rows_read(struct arena *a, MYSQL_RES *res, struct mydb_answer *to)
{
    unsigned columns = mysql_num_fields(res);
    const MYSQL_FIELD *fields = mysql_fetch_fields(res);
    if (!rows_room(a, to, (size_t)mysql_num_rows(res), columns))
        return false;
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(res))) {
        const unsigned long *len = mysql_fetch_lengths(res);
        CHECK((size_t)to->rows->n < to->cap); /* no more rows than were announced */
        struct led_cell *cell = &to->rows->v[to->rows->n++ * (int)columns];
        for (unsigned i = 0; i < columns; i++)
            cell_read(a, &cell[i], row[i], len[i], is_number(fields[i].type));
    }
    return !a->failed;
}

/* One statement's answer, which has arrived. `to` NULL: it is not needed. */
static enum pawl_status answer_read(struct mydb *c, struct mydb_answer *to, int counts,
                                    struct led_doing doing, struct pawl_err *err)
{
    if (mysql_field_count(c->db) == 0) {
        int64_t n = (int64_t)mysql_affected_rows(c->db);
        c->wrote = c->wrote || n > 0;
        if (to && counts) {
            to->counted = true;
            to->changed += n % counts ? -1 : n / counts;
        }
        return PAWL_OK;
    }
    MYSQL_RES *res = mysql_store_result(c->db);
    if (!res)
        return mydb_failed(c, doing, err);
    bool ok = !to || rows_read(&c->ledger.scratch, res, to);
    mysql_free_result(res);
    return ok ? PAWL_OK : err_no_memory(err, "what the database answers");
}

/* Read and drop the remaining answers: the connection cannot be used before that. */
static void answers_drop(struct mydb *c)
{
    while (!c->lost && mysql_more_results(c->db) && mysql_next_result(c->db) == 0) {
        MYSQL_RES *res = mysql_store_result(c->db);
        mysql_free_result(res);
    }
}

/* ---- Sending --------------------------------------------------------------------------------- */

struct sending {
    struct mydb *c;
    const struct led_batch *b; /* whose items they are; NULL: there is one, `name` */
    enum sql_name name;
    struct mydb_answer *answers; /* by item */
    size_t at;                   /* the item whose answer was waited for last */
};
/* Not an item of the batch. */
enum { ITEM_BEGIN = COUNT_OF(((struct led_batch *)0)->v), ITEM_COMMIT, ITEMS };

static struct led_doing doing_of(const struct sending *s, size_t item)
{
    if (item == ITEM_BEGIN || item == ITEM_COMMIT)
        return LED_PLAIN;
    return LED_STATEMENT(s->b ? s->b->v[item].name : s->name);
}

static enum pawl_status answers_read(struct sending *s, struct pawl_err *err)
{
    struct mydb *c = s->c;
    bool first = true;
    for (size_t i = 0; i < c->n_marks; i++) {
        const struct mydb_mark *m = &c->marks[i];
        struct led_doing doing = doing_of(s, m->item);
        s->at = m->item;
        if (m->item == ITEM_COMMIT && !first)
            store_commits(&c->ledger.base, true);
        for (size_t k = 0; k < m->n; k++) {
            if (!first && mysql_next_result(c->db) != 0)
                return mydb_failed(c, doing, err);
            first = false;
            enum pawl_status st = answer_read(c, &s->answers[m->item], m->counts, doing, err);
            if (st != PAWL_OK)
                return st;
        }
    }
    return PAWL_OK;
}

/* The time of COMMIT begins when every statement before it is answered. */
static enum pawl_status exchange(struct sending *s, struct pawl_err *err)
{
    struct mydb *c = s->c;
    s->at = c->marks[0].item;
    if (s->at == ITEM_COMMIT)
        store_commits(&c->ledger.base, true);
    return mydb_exec(c, c->out.data, c->out.len) ? answers_read(s, err)
                                                 : mydb_failed(c, doing_of(s, s->at), err);
}

/* Send `out`, and read the answers. */
static enum pawl_status send_now(struct sending *s, struct pawl_err *err)
{
    struct mydb *c = s->c;
    enum pawl_status st = PAWL_OK;
    if (!buf_ok(&c->out))
        st = err_no_memory(err, "what a group writes");
    else if (c->n_marks == 0)
        return PAWL_OK;
    else
        st = exchange(s, err);
    if (st != PAWL_OK)
        answers_drop(c);
    mydb_answered();
    buf_reset(&c->out);
    c->n_marks = 0;
    return st;
}

static bool mark(struct mydb *c, struct mydb_mark m)
{
    if (c->n_marks == c->cap_marks) {
        size_t cap = c->cap_marks ? c->cap_marks * 2 : MARKS_FIRST;
        struct mydb_mark *v = mem_resize(c->marks, cap * sizeof *v);
        if (!v)
            return false;
        c->marks = v;
        c->cap_marks = cap;
    }
    c->marks[c->n_marks++] = m;
    return true;
}

/* One statement of a name's text, in as many pieces as its values need. */
static enum pawl_status put_part(struct sending *s, size_t item, struct mydb_part *part,
                                 const struct led_params *p, struct pawl_err *err)
{
    struct mydb *c = s->c;
    size_t rows = mydb_rows(p);
    enum pawl_status st = PAWL_OK;
    for (part->row = 0; part->row < rows && st == PAWL_OK; part->row = part->end) {
        part->end = part->row + mydb_rows_within(p, part->row, c->send_max);
        size_t n = mydb_expand(&c->out, part, p);
        if (n && !mark(c, (struct mydb_mark){ item, n, part->counts }))
            return err_no_memory(err, "what a group writes");
        if (c->out.len >= c->send_max)
            st = send_now(s, err);
    }
    return st;
}

const char *mydb_text(struct mydb *c, enum sql_name name)
{
    CHECK(sql_mysql[name]);
    if (c->texts[name])
        return c->texts[name];
    const char *text = mydb_own_names(c->ledger.schema, &c->ledger.scratch, sql_mysql[name]);
    size_t size = text ? strlen(text) + 1 : 0;
    c->texts[name] = text ? mem_alloc(size) : NULL;
    if (c->texts[name])
        memcpy(c->texts[name], text, size);
    return c->texts[name];
}

static enum pawl_status put(struct sending *s, size_t item, enum sql_name name,
                            const struct led_params *p, struct pawl_err *err)
{
    const char *at = mydb_text(s->c, name);
    struct mydb_part part;
    enum pawl_status st = at ? PAWL_OK : err_no_memory(err, "a statement");
    while (st == PAWL_OK && mydb_part_next(&at, &part))
        st = put_part(s, item, &part, p, err);
    return st;
}

/* ---- The driver's ---------------------------------------------------------------------------- */

static enum pawl_status sending_begin(struct sending *s, struct pawl_err *err)
{
    buf_reset(&s->c->out);
    s->c->n_marks = 0;
    if (!s->c->db || s->c->lost)
        return err_set(err, PAWL_BUSY, "database: the connection is gone");
    return PAWL_OK;
}

/* The rows for the caller; none when the statement was not sent because it had no values. */
static bool rows_give(struct ledger *l, struct mydb_answer *from, struct led_rows **out)
{
    if (!rows_room(&l->scratch, from, 0, from->rows ? (unsigned)from->rows->columns : 1))
        return false;
    *out = from->rows;
    return true;
}

enum pawl_status mydb_ask(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    struct mydb_answer answer = { 0 };
    struct sending s = { .c = mydb_of(l), .name = name, .answers = &answer };
    enum pawl_status st = sending_begin(&s, err);
    if (st == PAWL_OK)
        st = put(&s, 0, name, p, err);
    bool wrote = s.c->wrote;
    if (st == PAWL_OK)
        st = send_now(&s, err);
    if (st != PAWL_OK)
        return st;
    if (name == SQL_NODE_BEAT)
        s.c->wrote = wrote; /* a heartbeat is not work: it must not wake waiting processes */
    if (out_rows)
        *out_rows = answer.changed;
    if (out && !rows_give(l, &answer, out))
        return err_no_memory(err, "what the database answers");
    return PAWL_OK;
}

/* Add a text of ours; it has n statements. */
static bool put_plain(struct mydb *c, size_t item, const char *text, size_t n)
{
    buf_add_text(&c->out, text);
    buf_add_char(&c->out, ';');
    return mark(c, (struct mydb_mark){ item, n, false });
}

static enum pawl_status put_begin(struct sending *s, const struct mydb_frame *f,
                                  struct pawl_err *err)
{
    struct mydb *c = s->c;
    bool ok = put_plain(c, ITEM_BEGIN, f->begin, f->n_begin);
    if (ok && !c->ledger.own_clock) {
        const char *clock = mydb_text(c, SQL_CLOCK);
        ok = clock && put_plain(c, ITEM_BEGIN, clock, 1);
    }
    return ok ? PAWL_OK : err_no_memory(err, "a transaction");
}

static enum pawl_status put_commit(struct sending *s, struct mydb_frame *f, struct pawl_err *err)
{
    struct mydb *c = s->c;
    struct led_params p = { 0 };
    enum pawl_status st = PAWL_OK;
    led_int(&p, world_now(&world_real));
    if (!c->driver_only && (c->wrote || (s->b && s->b->n)))
        st = put(s, ITEM_BEGIN, SQL_CHANGE_ADD, &p, err);
    /* The statement timeout must not end the wait for a replica: the transaction would then be
     * committed and visible although no replica has it. */
    const char *text = c->maria ? "SET STATEMENT max_statement_time = 0 FOR COMMIT" : "COMMIT";
    if (st == PAWL_OK && !put_plain(c, ITEM_COMMIT, text, 1))
        st = err_no_memory(err, "a commit");
    f->sent = st == PAWL_OK;
    return st;
}

/* The answers of a batch's statements. */
static enum pawl_status batch_answers(struct ledger *l, const struct led_batch *b,
                                      struct mydb_answer *answers, struct pawl_err *err)
{
    for (size_t i = 0; b && i < b->n; i++) {
        const struct led_batched *it = &b->v[i];
        if (it->rows >= 0 && answers[i].counted && answers[i].changed != it->rows)
            return led_row_changed(l, it->name, err);
        if (it->out && !rows_give(l, &answers[i], it->out))
            return err_no_memory(err, "what the database answers");
    }
    return PAWL_OK;
}

enum pawl_status mydb_batch_framed(struct mydb *c, const struct led_batch *b, struct mydb_frame *f,
                                   struct pawl_err *err)
{
    struct mydb_answer answers[ITEMS] = { 0 };
    struct sending s = { .c = c, .b = b, .answers = answers };
    enum pawl_status st = sending_begin(&s, err);
    if (st == PAWL_OK && f->begin)
        st = put_begin(&s, f, err);
    for (size_t i = 0; b && i < b->n && st == PAWL_OK; i++)
        st = put(&s, i, b->v[i].name, &b->v[i].p, err);
    if (st == PAWL_OK && f->commit)
        st = put_commit(&s, f, err);
    if (st == PAWL_OK)
        st = send_now(&s, err);
    f->undone = st != PAWL_OK && s.at != ITEM_COMMIT && !c->lost;
    f->committed = st == PAWL_OK && f->commit;
    const struct led_rows *clock = answers[ITEM_BEGIN].rows;
    if (clock && clock->n)
        c->ledger.now_us = clock->v[0].i;
    return st == PAWL_OK ? batch_answers(&c->ledger, b, answers, err) : st;
}

enum pawl_status mydb_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err)
{
    return mydb_batch_framed(mydb_of(l), b, &(struct mydb_frame){ 0 }, err);
}

enum pawl_status mydb_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    return name == SQL_VERSION_NEXT ? mydb_versions(l, p, out, err)
                                    : mydb_ask(l, name, p, out, out_rows, err);
}

enum pawl_status mydb_say(struct mydb *c, const char *text, int64_t *out, struct pawl_err *err)
{
    struct mydb_answer answer = { 0 };
    enum pawl_status st = PAWL_OK;
    if (!c->db || c->lost)
        return err_set(err, PAWL_BUSY, "database: the connection is gone");
    if (!mydb_exec(c, text, strlen(text)))
        st = mydb_failed(c, LED_PLAIN, err);
    for (int more = 0; more == 0 && st == PAWL_OK;) {
        st = answer_read(c, out ? &answer : NULL, false, LED_PLAIN, err);
        more = st == PAWL_OK ? mysql_next_result(c->db) : -1;
        if (more > 0)
            st = mydb_failed(c, LED_PLAIN, err);
    }
    if (st != PAWL_OK)
        answers_drop(c);
    mydb_answered();
    if (st == PAWL_OK && out)
        *out = answer.rows && answer.rows->n ? answer.rows->v[0].i : 0;
    return st;
}

enum pawl_status mydb_plain(struct ledger *l, const char *text, struct pawl_err *err)
{
    return mydb_say(mydb_of(l), text, NULL, err);
}
