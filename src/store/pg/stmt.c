/*
 * stmt.c - named statements with binary parameters and results, one by one or many in a row.
 *
 * What the operations of a group write is sent by columns: one statement for each table, one array
 * for each column. User text is only sent as parameters; the schema's name is put into our texts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/pg/pg.h"

/* ndim, flags, element type, length, lower bound. */
#define ARRAY_HEAD 20
/* So many bytes are written at once, also by a server with a slow disk. */
#define MUCH_LEN (256 << 10)
/* When cached plans are discarded: plans_old(). */
#define PLAN_ROWS 500
#define PLAN_GROWTH 8
#define PLAN_USES 100
#define PLAN_AGE_US (1 * SEC_US)
#define PLAN_AGE_MAX_US (60 * SEC_US)
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };

/* ---- Values ---------------------------------------------------------------------------------- */

static char *put32(char *at, uint32_t v)
{
    v = htonl(v);
    memcpy(at, &v, sizeof v);
    return at + 4;
}

static char *put64(char *at, int64_t v)
{
    uint64_t raw = htobe64((uint64_t)v);
    memcpy(at, &raw, sizeof raw);
    return at + 8;
}

static size_t column_len(const struct led_column *k)
{
    size_t len = ARRAY_HEAD;
    for (size_t i = 0; i < k->n; i++)
        len += k->kind == LED_INTS ? 12 : 4 + k->bytes[i].len;
    return len;
}

static char *put_bytes(char *at, struct bytes b, bool *nulls)
{
    if (!b.data) {
        *nulls = true;
        return put32(at, UINT32_MAX);
    }
    at = put32(at, (uint32_t)b.len);
    if (b.len)
        memcpy(at, b.data, b.len);
    return at + b.len;
}

/* An array in its binary form. */
static struct bytes column_write(struct arena *a, const struct led_column *k)
{
    static const uint32_t types[] = {
        [LED_INTS] = OID_INT8, [LED_TEXTS] = OID_TEXT, [LED_BLOBS] = OID_BYTEA
    };
    char *data = arena_alloc(a, column_len(k));
    bool nulls = false;
    if (!data)
        return BYTES_NONE;
    char *at = data + ARRAY_HEAD;
    for (size_t i = 0; i < k->n; i++) {
        if (k->kind != LED_INTS) {
            at = put_bytes(at, k->bytes[i], &nulls);
        } else if (k->ints[i] == LED_NULL) {
            nulls = true;
            at = put32(at, UINT32_MAX);
        } else {
            at = put64(put32(at, 8), k->ints[i]);
        }
    }
    put32(data, k->n ? 1 : 0);
    put32(data + 4, nulls);
    put32(data + 8, types[k->kind]);
    put32(data + 12, (uint32_t)k->n);
    put32(data + 16, 1);
    return (struct bytes){ data, k->n ? (size_t)(at - data) : 12 };
}

static int64_t number_read(const PGresult *r, int row, int column)
{
    const char *at = PQgetvalue(r, row, column);
    uint64_t wide;
    uint32_t narrow;
    switch (PQgetlength(r, row, column)) {
    case 8:
        memcpy(&wide, at, 8);
        return (int64_t)be64toh(wide);
    case 4:
        memcpy(&narrow, at, 4);
        return (int32_t)ntohl(narrow);
    default:
        CHECK(PQgetlength(r, row, column) == 1); /* a number of another width is not read */
        return *at;
    }
}

static bool is_number(const PGresult *r, int column)
{
    return PQftype(r, column) == OID_INT8 || PQftype(r, column) == OID_INT4;
}

/* The answer as rows of the ledger, in scratch. */
static struct led_rows *rows_read(struct arena *a, const PGresult *r)
{
    struct led_rows *out = arena_zalloc(a, 1, sizeof *out);
    int n = PQntuples(r), columns = PQnfields(r);
    struct led_cell *v = arena_alloc(a, ((size_t)n * (size_t)columns + 1) * sizeof *v), *to = v;
    bool *number = arena_alloc(a, (size_t)columns + 1);
    if (!out || !v || !number)
        return NULL;
    *out = (struct led_rows){ .n = n, .columns = columns, .v = v };
    for (int k = 0; k < columns; k++)
        number[k] = is_number(r, k);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < columns; k++, to++) {
            if (PQgetisnull(r, i, k))
                *to = (struct led_cell){ 0 };
            else if (number[k])
                *to = (struct led_cell){ BYTES(""), number_read(r, i, k) };
            else
                *to = (struct led_cell){ arena_copy(a,
                                                    (struct bytes){ PQgetvalue(r, i, k),
                                                                    (size_t)PQgetlength(r, i, k) }),
                                         0 };
        }
    return a->failed ? NULL : out;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool in_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '"' || ch == '.';
}

const char *pg_own_names(const char *schema, struct arena *a, const char *text)
{
    static const char word[] = "pawl";
    char quoted[SCHEMA_LEN_MAX + 3];
    snprintf(quoted, sizeof quoted, strcmp(schema, word) ? "\"%s\"" : "%s", schema);
    size_t len = strlen(text), own = strlen(quoted), n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    char *out = arena_alloc(a, len + n * own + 1), *to = out;
    if (!out)
        return NULL;
    for (const char *at = text; *at;) {
        bool whole = strncmp(at, word, 4) == 0 && (at == text || !in_name(at[-1])) &&
                     (at[4] == '.' || at[4] == 0 || at[4] == ';');
        if (whole) {
            memcpy(to, quoted, own);
            to += own;
            at += 4;
        } else {
            *to++ = *at++;
        }
    }
    *to = 0;
    return out;
}

/* The statement with the schema's name, kept until the handle is closed. */
static const char *text_of(struct pg *c, enum sql_name name)
{
    CHECK(sql_pg[name]);
    if (c->texts[name])
        return c->texts[name];
    const char *text = pg_own_names(c->ledger.schema, &c->ledger.scratch, sql_pg[name]);
    size_t size = text ? strlen(text) + 1 : 0;
    c->texts[name] = text ? mem_alloc(size) : NULL;
    if (c->texts[name])
        memcpy(c->texts[name], text, size);
    return c->texts[name];
}

/* A statement to send: its name among the prepared ones, its text, its parameters. */
struct raw_params {
    const char *label, *text;
    const char *v[LED_PARAMS_MAX];
    int n, len[LED_PARAMS_MAX], binary[LED_PARAMS_MAX];
};

/* Prepare it once for the connection. Behind a pooler the next transaction may have another
 * backend, so the text is sent each time. */
static enum pawl_status prepare(struct pg *c, enum sql_name name, const struct raw_params *q,
                                bool *prepared, struct pawl_err *err)
{
    AUTO(pg_clear) PGresult *r = NULL;
    if (*prepared || c->pooled)
        return PAWL_OK;
    r = PQsendPrepare(c->db, q->label, q->text, 0, NULL) ? pg_answer(c) : NULL;
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        return pg_fail(c, r, LED_STATEMENT(name), err);
    *prepared = true;
    return PAWL_OK;
}

static struct bytes value(struct arena *a, enum led_kind kind, int64_t i, struct bytes b)
{
    if (kind != LED_INTS)
        return b;
    char *at = i == LED_NULL ? NULL : arena_alloc(a, 8);
    if (at)
        put64(at, i);
    return (struct bytes){ at, at ? 8 : 0 };
}

static void raw(struct arena *a, const struct led_params *p, uint32_t same, struct raw_params *out)
{
    out->n = p ? p->n : 0;
    for (int i = 0; i < out->n; i++) {
        const struct led_param *q = &p->v[i];
        struct bytes b;
        if (!q->many)
            b = value(a, q->kind, q->i, q->b);
        else if (!(same >> i & 1))
            b = column_write(a, &q->k);
        else if (q->kind == LED_INTS)
            b = value(a, q->kind, q->k.ints[0], BYTES_NONE);
        else
            b = q->k.bytes[0];
        out->v[i] = b.data;
        out->len[i] = (int)b.len;
        out->binary[i] = 1;
    }
}

/* Everything to send; the statement is prepared. */
static enum pawl_status statement(struct pg *c, enum sql_name name, const struct led_params *p,
                                  struct raw_params *out, struct pawl_err *err)
{
    struct arena *a = &c->ledger.scratch;
    const char *text = text_of(c, name);
    if (!text)
        return err_no_memory(err, "a statement");
    struct pg_shape *s = pg_shape(c, name, text, p);
    raw(a, p, s ? s->mask : 0, out);
    if (a->failed)
        return err_no_memory(err, "a statement");
    out->label = s ? s->label : sql_name_text[name];
    out->text = s ? s->text : text;
    return prepare(c, name, out, s ? &s->prepared : &c->prepared[name], err);
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool send_one(struct pg *c, const struct raw_params *q)
{
    return c->pooled ? PQsendQueryParams(c->db, q->text, q->n, NULL, q->v, q->len, q->binary, 1)
                     : PQsendQueryPrepared(c->db, q->label, q->n, q->v, q->len, q->binary, 1);
}

void pg_clear(PGresult **r)
{
    PQclear(*r);
}

static bool fine(const PGresult *r)
{
    ExecStatusType st = PQresultStatus(r);
    return st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK;
}

static int64_t rows_of(PGresult *r)
{
    const char *n = PQcmdTuples(r);
    return *n ? strtoll(n, NULL, 10) : 0;
}

enum pawl_status pg_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    struct pg *c = pg_of(l);
    AUTO(pg_clear) PGresult *r = NULL;
    struct raw_params q;
    enum pawl_status st = statement(c, name, p, &q, err);
    if (st != PAWL_OK)
        return st;
    r = send_one(c, &q) ? pg_answer(c) : NULL;
    if (!fine(r))
        return pg_fail(c, r, LED_STATEMENT(name), err);
    if (out_rows)
        *out_rows = rows_of(r);
    c->wrote = c->wrote || (out_rows && *out_rows > 0);
    if (out && !(*out = rows_read(&l->scratch, r)))
        return err_no_memory(err, "what the database answers");
    return PAWL_OK;
}

enum pawl_status pg_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r;
    led_int(&p, (int64_t)n);
    enum pawl_status st = led_query(l, SQL_SEQ_NEXT, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    CHECK((size_t)r->n == n && r->columns == 1);
    for (size_t i = 0; i < n; i++) {
        out[i] = led_get_int(r, (int)i, 0);
        if (out[i] <= (i ? out[i - 1] : 0)) /* an operator has changed the sequence */
            return err_set(err, PAWL_BROKEN,
                           "database: the sequence \"seq\" gives numbers below %lld",
                           (long long)(i ? out[i - 1] : 1));
    }
    return PAWL_OK;
}

/* ---- Many at once ---------------------------------------------------------------------------- */

/* One statement's answer. *st keeps the first error. */
static void batch_answer(struct pg *c, const struct led_batched *b, enum pawl_status *st,
                         struct pawl_err *err)
{
    PGresult *r;
    while ((r = pg_next(c))) {
        if (*st == PAWL_OK && !fine(r) && PQresultStatus(r) != PGRES_PIPELINE_ABORTED)
            *st = pg_fail(c, r, LED_STATEMENT(b->name), err);
        else if (*st == PAWL_OK && b->rows >= 0 && rows_of(r) != b->rows)
            *st = led_row_changed(&c->ledger, b->name, err);
        else if (*st == PAWL_OK && b->out && !(*b->out = rows_read(&c->ledger.scratch, r)))
            *st = err_no_memory(err, "what the database answers");
        c->wrote = c->wrote || (*st == PAWL_OK && b->rows > 0);
        c->plans.rows += MAX(b->rows, 0);
        PQclear(r);
    }
}

/* The answer to BEGIN, the clock, or COMMIT. */
static void frame_answer(struct pg *c, struct pg_frame *f, enum pawl_status *st,
                         struct pawl_err *err)
{
    PGresult *r;
    while ((r = pg_next(c))) {
        bool done = fine(r);
        if (*st == PAWL_OK && !done && PQresultStatus(r) != PGRES_PIPELINE_ABORTED)
            *st = pg_fail(c, r, LED_PLAIN, err);
        if (f && done)
            f->committed = strcmp(PQcmdStatus(r), "COMMIT") == 0 ? PG_COMMITTED : PG_UNDONE;
        else if (f && PQresultErrorField(r, PG_DIAG_SQLSTATE))
            f->committed = PG_UNDONE;
        else if (f && PQresultStatus(r) == PGRES_PIPELINE_ABORTED)
            f->committed = PG_NOT_SENT;
        if (done && PQntuples(r) == 1)
            c->ledger.now_us = number_read(r, 0, 0);
        PQclear(r);
    }
}

static bool plain_send(struct pg *c, const char *text)
{
    return PQsendQueryParams(c->db, text, 0, NULL, NULL, NULL, NULL, 1);
}

/* The first statement of a transaction: it reads the clock, unless that is a test's; behind a
 * pooler it sets our settings, too. False: none is needed. */
static bool opens_with(const struct pg *c, enum sql_name *out)
{
    *out = c->pooled ? SQL_SETTINGS : SQL_CLOCK;
    return c->pooled || !c->ledger.own_clock;
}

/* A cached plan that was made for an empty table is bad for a full one. Plans are discarded when we
 * have written many times the rows of that moment, and from time to time, because other processes
 * write as well. */
static bool plans_old(struct pg *c)
{
    struct pg_plans *p = &c->plans;
    int64_t now = world_mono(&world_real), age = now - p->made_us;
    p->used++;
    bool old = p->rows > PLAN_ROWS + PLAN_GROWTH * p->made_rows ||
               (age > PLAN_AGE_US && p->used > PLAN_USES) || age > PLAN_AGE_MAX_US;
    if (old)
        *p = (struct pg_plans){ .made_us = now, .rows = p->rows, .made_rows = p->rows };
    return old && !c->pooled;
}

/* The server sends the answers of a pipeline when it has done everything. With much to write before
 * COMMIT we ask for them earlier, so that only the COMMIT itself is timed. */
static bool is_much(const struct raw_params *q, size_t n)
{
    int64_t len = 0;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < q[i].n; k++)
            len += q[i].len[k];
    return len > MUCH_LEN;
}

/* `opening` may be NULL. */
static bool framed_send(struct pg *c, const struct raw_params *opening, const struct raw_params *q,
                        size_t n, struct pg_frame *f)
{
    bool ok = PQenterPipelineMode(c->db);
    if (ok && f->begin)
        ok = plain_send(c, f->begin);
    if (ok && f->discard)
        ok = plain_send(c, "DISCARD PLANS");
    if (ok && opening)
        ok = send_one(c, opening);
    for (size_t i = 0; i < n && ok; i++)
        ok = send_one(c, &q[i]);
    f->much = f->commit && is_much(q, n);
    if (ok && f->much)
        ok = PQsendFlushRequest(c->db);
    if (ok && f->commit) {
        f->committed = PG_SENT;
        ok = plain_send(c, "COMMIT");
    }
    return ok && PQpipelineSync(c->db);
}

static enum pawl_status batch_ready(struct pg *c, const struct led_batch *b, size_t n,
                                    struct raw_params **out, struct pawl_err *err)
{
    struct raw_params *q = arena_alloc(&c->ledger.scratch, (n + 1) * sizeof *q);
    enum pawl_status st = q ? PAWL_OK : err_no_memory(err, "what a group asks and writes");
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = statement(c, b->v[i].name, &b->v[i].p, &q[i], err);
    *out = q;
    return st;
}

enum pawl_status pg_batch_framed(struct pg *c, const struct led_batch *b, struct pg_frame *f,
                                 struct pawl_err *err)
{
    struct raw_params *q, opening;
    struct led_params local = pg_settings(c, true);
    enum sql_name first;
    size_t n = b ? b->n : 0;
    bool opens = f->begin && opens_with(c, &first);
    enum pawl_status st = PAWL_OK;
    if (opens)
        st = statement(c, first, first == SQL_SETTINGS ? &local : NULL, &opening, err);
    if (st == PAWL_OK)
        st = batch_ready(c, b, n, &q, err);
    if (st != PAWL_OK)
        return st;
    f->discard = f->begin && plans_old(c);
    if (!framed_send(c, opens ? &opening : NULL, q, n, f))
        return pg_fail(c, NULL, LED_PLAIN, err);
    if (f->commit && !f->much)
        store_commits(&c->ledger.base, true);
    if (f->begin)
        frame_answer(c, NULL, &st, err);
    if (f->discard)
        frame_answer(c, NULL, &st, err);
    if (opens)
        frame_answer(c, NULL, &st, err);
    for (size_t i = 0; i < n; i++)
        batch_answer(c, &b->v[i], &st, err);
    if (f->much)
        store_commits(&c->ledger.base, true);
    if (f->commit)
        frame_answer(c, f, &st, err);
    PGresult *sync = pg_next(c);
    /* A server that closes the connection after its answer to COMMIT has committed. */
    if (PQresultStatus(sync) != PGRES_PIPELINE_SYNC && st == PAWL_OK &&
        f->committed != PG_COMMITTED)
        st = pg_fail(c, sync, LED_PLAIN, err);
    PQclear(sync);
    PQexitPipelineMode(c->db); /* on failure pg_connect() opens a new connection */
    return st;
}

enum pawl_status pg_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err)
{
    return pg_batch_framed(pg_of(l), b, &(struct pg_frame){ 0 }, err);
}
