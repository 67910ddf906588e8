/*
 * key.c - keys, their lines and whose turn it is (key.h).
 *
 * The one thing that must stay true: a key that is neither held nor blocked and has a line has its
 * first call on offer, in pawl_ready, and nowhere else. lite_key_turn() is the only function that
 * sees to it, and every move of a keyed call ends there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/key.h"

#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/read.h"

/* ---- Rows of pawl_key in memory -------------------------------------------------------------- */

static size_t bucket_of(struct bytes name)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a; a flood of one bucket costs the flooder
                                                  */
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.data[i]) * UINT64_C(1099511628211);
    return h % KEY_BUCKETS;
}

static enum pawl_status row_read(struct lite *c, struct lite_key *k, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_KEY_READ, ARGS(TEXT(k->name)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st != PAWL_OK || !row)
        return st;
    k->stored = true;
    k->turn = (enum lite_turn)lite_int(q, 0);
    k->head = lite_int(q, 1);
    k->head_pos = lite_int(q, 2);
    k->head_no = lite_int(q, 3);
    k->next_no = lite_int(q, 4);
    k->held = lite_int(q, 5);
    k->waiting = lite_int(q, 6);
    k->later = lite_int(q, 7);
    k->since_us = lite_int(q, 8);
    k->ended_us = lite_int(q, 9);
    return PAWL_OK;
}

enum pawl_status lite_key_get(struct lite *c, struct bytes name, struct lite_key **out,
                              struct pawl_err *err)
{
    struct lite_keys *keys = &c->keys;
    if (keys->tx != c->tx)
        *keys = (struct lite_keys){ .tx = c->tx };
    struct lite_key **at = &keys->buckets[bucket_of(name)];
    for (struct lite_key *k = *at; k; k = k->next)
        if (bytes_eq(k->name, name)) {
            *out = k;
            return PAWL_OK;
        }
    struct lite_key *k = arena_zalloc(&c->scratch, 1, sizeof *k);
    if (!k)
        return err_no_memory(err, "a key");
    k->name = arena_copy(&c->scratch, name);
    k->next_no = 1;
    if (!k->name.data)
        return err_no_memory(err, "a key");
    enum pawl_status st = row_read(c, k, err);
    if (st != PAWL_OK)
        return st;
    k->next = *at;
    *at = k;
    *out = k;
    return PAWL_OK;
}

static enum pawl_status row_write(struct lite *c, struct lite_key *k, struct pawl_err *err)
{
    enum pawl_status st =
        lite_run(c, k->stored ? SQL_KEY_WRITE : SQL_KEY_ADD,
                 ARGS(TEXT(k->name), INT(k->turn), INT(k->head), INT(k->head_pos), INT(k->head_no),
                      INT(k->next_no), INT(k->held), INT(k->waiting), INT(k->later),
                      INT(k->since_us), INT(k->ended_us)),
                 NULL, err);
    k->stored = true;
    k->dirty = false;
    return st;
}

enum pawl_status lite_keys_write(struct lite *c, struct pawl_err *err)
{
    struct lite_keys *keys = &c->keys;
    enum pawl_status st = PAWL_OK;
    if (keys->tx != c->tx)
        return PAWL_OK;
    CHECK(!keys->hold);
    for (size_t i = 0; i < KEY_BUCKETS; i++)
        for (struct lite_key *k = keys->buckets[i]; k && st == PAWL_OK; k = k->next)
            if (k->dirty)
                st = row_write(c, k, err);
    return st;
}

/* ---- The line -------------------------------------------------------------------------------- */

static enum pawl_status broken(const struct lite_key *k, const char *what, struct pawl_err *err)
{
    return err_set(err, PAWL_BROKEN, "key \"%.*s\": %s", BYTES_ARG(k->name), what);
}

static enum pawl_status line_add(struct lite *c, const struct lite_key *k,
                                 const struct lite_place *p, struct pawl_err *err)
{
    enum pawl_status st = lite_run(c, SQL_LINE_ADD,
                                   ARGS(TEXT(k->name), INT(p->pos), INT(p->seq), INT(p->lane),
                                        INT(p->priority), INT(p->run_at_us), INT(p->tries.attempts),
                                        INT(p->tries.lost), INT(p->tries.redrives), INT(p->key_no)),
                                   NULL, err);
    return st == PAWL_BROKEN ? broken(k, "a call is in the line already", err) : st;
}

static struct lite_place place_read(sqlite3_stmt *q)
{
    return (struct lite_place){ .pos = lite_int(q, 0),
                                .seq = lite_int(q, 1),
                                .lane = (int)lite_int(q, 2),
                                .priority = (int)lite_int(q, 3),
                                .run_at_us = lite_int(q, 4),
                                .tries = { .attempts = (int)lite_int(q, 5),
                                           .lost = (int)lite_int(q, 6),
                                           .redrives = (int)lite_int(q, 7) },
                                .key_no = lite_int(q, 8) };
}

enum pawl_status lite_key_line(struct lite *c, const struct lite_key *k, int max,
                               struct lite_place **out, size_t *out_n, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    size_t most = (size_t)MIN((int64_t)max, k->waiting);
    *out_n = 0;
    *out = most ? arena_alloc(&c->scratch, most * sizeof **out) : NULL;
    if (!most || !*out)
        return most ? err_no_memory(err, "a line") : PAWL_OK;
    enum pawl_status st =
        lite_query(c, SQL_LINE_RUN, ARGS(TEXT(k->name), INT((int64_t)most)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row)
        (*out)[(*out_n)++] = place_read(q);
    return st;
}

enum pawl_status lite_key_place(struct lite *c, int64_t seq, bool *out_found,
                                struct lite_place *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    enum pawl_status st = lite_query(c, SQL_LINE_FIND, ARGS(INT(seq)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, out_found, err);
    if (st == PAWL_OK && *out_found)
        *out = place_read(q);
    return st;
}

enum pawl_status lite_key_position(struct lite *c, const struct lite_key *k, int64_t pos,
                                   int64_t *out, struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    struct lite_holder by = { 0 };
    int64_t newer = 0;
    enum pawl_status st =
        lite_number(c, SQL_LINE_NEWER, ARGS(TEXT(k->name), INT(pos)), 0, &newer, err);
    if (st == PAWL_OK && k->held)
        st = lite_holder(c, &to, k->head, &by, err);
    *out = k->held - by.begun + k->waiting - newer;
    return st;
}

/* ---- Whose turn it is ------------------------------------------------------------------------ */

/* The first of the line stands among the calls that can be claimed. Mostly the same group claims
 * it, so it is written as late as a fresh call is. */
static enum pawl_status offer(struct lite *c, struct lite_key *k, const struct lite_place *p,
                              struct pawl_err *err)
{
    k->turn = KEY_OFFERED;
    k->head = p->seq;
    k->head_pos = p->pos;
    k->head_no = p->key_no;
    k->dirty = true;
    struct lite_fresh f = { .seq = p->seq,
                            .run_at_us = p->run_at_us,
                            .lane = p->lane,
                            .priority = p->priority,
                            .tries = p->tries };
    /* The walk keeps suspects apart by their index. */
    bool write = tries_suspect(p->tries) || !c->gathers;
    return write ? lite_ready_add(c, &f, err) : lite_fresh_add(c, &f, err);
}

static enum pawl_status turn_now(struct lite *c, struct lite_key *k, struct pawl_err *err)
{
    struct lite_place *first;
    size_t n;
    if (k->held || k->turn == KEY_BLOCKED || k->turn == KEY_OFFERED)
        return PAWL_OK;
    k->turn = KEY_IDLE;
    k->head = k->head_pos = k->head_no = 0;
    k->dirty = true;
    if (!k->waiting)
        return PAWL_OK;
    enum pawl_status st = lite_key_line(c, k, 1, &first, &n, err);
    if (st == PAWL_OK && n == 0)
        return broken(k, "calls wait and none is in the line", err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_LINE_REMOVE, ARGS(TEXT(k->name), INT(first->pos)), NULL, err);
    return st == PAWL_OK ? offer(c, k, first, err) : st;
}

enum pawl_status lite_key_turn(struct lite *c, struct lite_key *k, struct pawl_err *err)
{
    struct lite_keys *keys = &c->keys;
    if (!keys->hold)
        return turn_now(c, k, err);
    if (!k->is_due) {
        k->is_due = true;
        k->due = keys->due;
        keys->due = k;
    }
    return PAWL_OK;
}

void lite_keys_hold(struct lite *c)
{
    if (c->keys.tx != c->tx)
        c->keys = (struct lite_keys){ .tx = c->tx };
    c->keys.hold = true;
}

enum pawl_status lite_keys_release(struct lite *c, bool *out_any, struct pawl_err *err)
{
    struct lite_keys *keys = &c->keys;
    enum pawl_status st = PAWL_OK;
    keys->hold = false;
    *out_any = false;
    while (keys->due && st == PAWL_OK) {
        struct lite_key *k = keys->due;
        keys->due = k->due;
        k->is_due = false;
        st = turn_now(c, k, err);
        *out_any = *out_any || k->turn == KEY_OFFERED;
    }
    return st;
}

/* ---- Joining and leaving --------------------------------------------------------------------- */

enum pawl_status lite_key_join(struct lite *c, struct lite_key *k, const struct lite_place *p,
                               bool *out_offer, struct pawl_err *err)
{
    k->waiting++;
    k->dirty = true;
    *out_offer = k->turn == KEY_IDLE;
    if (!*out_offer)
        return line_add(c, k, p, err);
    k->turn = KEY_OFFERED;
    k->head = p->seq;
    k->head_pos = p->pos;
    k->head_no = p->key_no;
    return PAWL_OK;
}

enum pawl_status lite_key_later(struct lite *c, struct lite_key *k, const struct lite_place *p,
                                struct pawl_err *err)
{
    struct lite_place at = *p;
    at.pos = -p->seq;
    k->later++;
    k->dirty = true;
    return line_add(c, k, &at, err);
}

enum pawl_status lite_key_out(struct lite *c, struct lite_key *k, int64_t seq, struct pawl_err *err)
{
    struct lite_place at;
    bool found = false;
    int changed = 0;
    enum pawl_status st;
    k->dirty = true;
    if (k->turn == KEY_OFFERED && k->head == seq) {
        k->turn = KEY_IDLE; /* until its turn is decided */
        k->waiting--;
        st = lite_run(c, SQL_READY_REMOVE, ARGS(INT(seq)), &changed, err);
        return st == PAWL_OK && changed != 1 ? broken(k, "its call on offer is not ready", err)
                                             : st;
    }
    st = lite_key_place(c, seq, &found, &at, err);
    if (st == PAWL_OK && !found)
        st = broken(k, "a pending call is not in its line", err);
    if (st != PAWL_OK)
        return st;
    if (at.pos < 0)
        k->later--;
    else
        k->waiting--;
    return lite_run(c, SQL_LINE_REMOVE, ARGS(TEXT(k->name), INT(at.pos)), NULL, err);
}

enum pawl_status lite_key_into(struct lite *c, struct lite_key *k, const struct lite_move *m,
                               struct pawl_err *err)
{
    struct lite_place p = { .pos = m->pos,
                            .seq = m->seq,
                            .lane = m->lane,
                            .priority = m->priority,
                            .run_at_us = m->run_at_us,
                            .tries = m->tries,
                            .key_no = m->key_no };
    if (m->later)
        return lite_key_later(c, k, &p, err);
    if (!p.pos) {
        enum pawl_status st = lite_seq_load(c, err);
        if (st != PAWL_OK)
            return st;
        p.pos = ++c->seq;
    }
    k->waiting++;
    k->dirty = true;
    return line_add(c, k, &p, err);
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static int64_t number(struct lite_key *k, int64_t had)
{
    k->held++;
    k->waiting--;
    k->dirty = true;
    return had ? had : k->next_no++;
}

int64_t lite_key_take_head(struct lite_key *k, int64_t *out_pos)
{
    CHECK(k->turn == KEY_OFFERED && k->held == 0);
    k->turn = KEY_HELD;
    *out_pos = k->head_pos;
    k->head_no = number(k, k->head_no);
    return k->head_no;
}

int64_t lite_key_take_next(struct lite_key *k, const struct lite_place *p)
{
    CHECK(k->turn == KEY_HELD && k->held > 0);
    return number(k, p->key_no);
}

enum pawl_status lite_key_taken(struct lite *c, struct lite_key *k, int64_t pos, size_t n,
                                struct pawl_err *err)
{
    int changed = 0;
    enum pawl_status st = lite_run(c, SQL_LINE_CLAIM, ARGS(TEXT(k->name), INT(pos)), &changed, err);
    return st == PAWL_OK && (size_t)changed != n ? broken(k, "its run is not its line", err) : st;
}

/* ---- Time and retention ---------------------------------------------------------------------- */

/* A delayed call whose time has come. */
static enum pawl_status join_one(struct lite *c, int64_t seq, struct bytes name,
                                 struct pawl_err *err)
{
    struct lite_key *k;
    struct lite_place p;
    bool found = false;
    enum pawl_status st = lite_key_get(c, name, &k, err);
    if (st == PAWL_OK)
        st = lite_key_place(c, seq, &found, &p, err);
    if (st == PAWL_OK && (!found || p.pos > 0))
        st = broken(k, "a delayed call is not in its line", err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_LINE_REMOVE, ARGS(TEXT(k->name), INT(p.pos)), NULL, err);
    if (st == PAWL_OK)
        st = lite_seq_load(c, err);
    if (st != PAWL_OK)
        return st;
    p.pos = ++c->seq;
    k->later--;
    k->waiting++;
    k->dirty = true;
    st = line_add(c, k, &p, err);
    return st == PAWL_OK ? lite_key_turn(c, k, err) : st;
}

enum pawl_status lite_keys_join_due(struct lite *c, int max, int64_t *out_joined,
                                    struct pawl_err *err)
{
    struct {
        int64_t seq;
        struct bytes key;
    } *v = NULL;
    size_t n = 0, cap = 0;
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_LINE_DUE, ARGS(INT(c->now_us), INT(max)), &q, err);
    /* Listed first: a statement that is being stepped must not have its table changed under it. */
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        if (n == cap) {
            void *more = arena_alloc(&c->scratch, (cap = cap ? cap * 2 : 16) * sizeof *v);
            if (!more)
                return err_no_memory(err, "a line");
            v = n ? memcpy(more, v, n * sizeof *v) : more;
        }
        v[n].seq = lite_int(q, 0);
        v[n++].key = arena_copy(&c->scratch, lite_column(q, 1));
    }
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = v[i].key.data ? join_one(c, v[i].seq, v[i].key, err) : err_no_memory(err, "a line");
    *out_joined = (int64_t)n;
    return st;
}

enum pawl_status lite_key_gone(struct lite *c, struct bytes name, struct pawl_err *err)
{
    struct lite_key *k;
    int64_t left = 0;
    enum pawl_status st = lite_key_get(c, name, &k, err);
    if (st != PAWL_OK || k->turn != KEY_IDLE || lite_key_pending(k))
        return st;
    st = lite_number(c, SQL_CALL_LIST_KEY, ARGS(TEXT(name), INT(INT64_MAX)), 0, &left, err);
    if (st == PAWL_OK && !left)
        st = lite_number(c, SQL_OBJECT_ANY, ARGS(TEXT(name)), 0, &left, err);
    if (st != PAWL_OK || left)
        return st;
    k->next_no = 1;
    k->ended_us = 0;
    k->stored = k->dirty = false;
    return lite_run(c, SQL_KEY_REMOVE, ARGS(TEXT(name)), NULL, err);
}
