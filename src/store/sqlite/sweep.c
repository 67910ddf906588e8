/*
 * sweep.c - what needs no traffic: expiry, leases past their end, retention. Each a bounded step.
 *
 * Rows of one kind are listed first and worked on after, because a statement that is being stepped
 * must not have its table changed under it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* What a list gives of each row. */
struct due {
    int64_t seq, finished_us, keep_until_us;
    enum pawl_state state;
    struct bytes id, token; /* in scratch */
};

typedef void due_read(struct lite *c, sqlite3_stmt *q, struct due *out);

/* Up to max rows whose time has come. */
static enum pawl_status due_list(struct lite *c, enum sql_name name, int max, due_read *read,
                                 struct due **out, size_t *out_n, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    struct due *v = arena_zalloc(&c->scratch, (size_t)max, sizeof *v);
    if (!v)
        return err_no_memory(err, "a sweep");
    *out = v;
    *out_n = 0;
    enum pawl_status st = lite_query(c, name, ARGS(INT(c->now_us), INT(max)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row)
        read(c, q, &v[(*out_n)++]);
    return st == PAWL_OK && c->scratch.failed ? err_no_memory(err, "a sweep") : st;
}

static enum pawl_status is_due(struct lite *c, enum sql_name name, bool *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    enum pawl_status st = lite_query(c, name, ARGS(INT(c->now_us), INT(1)), &q, err);
    return st == PAWL_OK ? lite_next(c, q, out, err) : st;
}

/* Is anything of these kinds left that is due now? */
static enum pawl_status any_due(struct lite *c, const enum sql_name *kinds, size_t n, bool *out,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out = false;
    for (size_t i = 0; i < n && st == PAWL_OK && !*out; i++)
        st = is_due(c, kinds[i], out, err);
    return st;
}

/* ---- Sweep ----------------------------------------------------------------------------------- */

static void read_expired(struct lite *c, sqlite3_stmt *q, struct due *out)
{
    (void)c;
    out->seq = lite_int(q, 0);
}

static void read_over(struct lite *c, sqlite3_stmt *q, struct due *out)
{
    out->token = arena_copy(&c->scratch, lite_column(q, 0));
}

static enum pawl_status expire_some(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct due *v;
    size_t n = 0;
    struct lite_shelf to = { .a = &c->scratch };
    enum pawl_status st = due_list(c, SQL_EXPIRY_DUE, op->sweep.max, read_expired, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct call call;
        st = lite_stands(c, &to, v[i].seq, 0, &call, err);
        if (st == PAWL_OK)
            st = lite_end_pending(c, &call, PAWL_EXPIRED, err);
        if (st == PAWL_OK)
            st = lite_told_ended(op, call.spec.id, err);
        op->sweep.expired++;
    }
    return st;
}

static enum pawl_status reclaim_some(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct sweep *s = &op->sweep;
    struct try_end end = { .how = END_LOST, .fail_lost = s->fail_lost };
    struct due *v;
    size_t n = 0;
    enum pawl_status st = due_list(c, SQL_LEASE_OVER, s->max, read_over, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct token token;
        if (v[i].token.len != sizeof token.b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", v[i].token.len);
        memcpy(token.b, v[i].token.data, sizeof token.b);
        st = lite_reclaim(c, op, &token, &end, &s->reclaimed, err);
    }
    return st;
}

static enum pawl_status next_event(struct lite *c, int64_t *out, struct pawl_err *err)
{
    static const enum sql_name kinds[] = { SQL_EXPIRY_NEXT, SQL_LEASE_NEXT, SQL_LINE_NEXT };
    enum pawl_status st = PAWL_OK;
    *out = 0;
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++) {
        int64_t at_us = 0;
        st = lite_number(c, kinds[i], ARGS(INT(c->now_us)), 0, &at_us, err);
        if (at_us && (!*out || at_us < *out))
            *out = at_us;
    }
    return st;
}

enum pawl_status lite_sweep(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct sweep *s = &op->sweep;
    /* A wish never meets a pending call here: whatever hands a call back looks at its wish first.
     */
    static const enum sql_name kinds[] = { SQL_EXPIRY_DUE, SQL_LEASE_OVER, SQL_LINE_DUE };
    s->expired = s->reclaimed = s->cancelled = s->joined = 0;
    enum pawl_status st = expire_some(c, op, err);
    if (st == PAWL_OK)
        st = reclaim_some(c, op, err);
    if (st == PAWL_OK)
        st = lite_keys_join_due(c, s->max, &s->joined, err);
    if (st == PAWL_OK)
        st = any_due(c, kinds, COUNT_OF(kinds), &s->more, err);
    return st == PAWL_OK ? next_event(c, &s->next_us, err) : st;
}

/* ---- Retention ------------------------------------------------------------------------------- */

static void read_kept(struct lite *c, sqlite3_stmt *q, struct due *out)
{
    out->seq = lite_int(q, 0);
    out->state = (enum pawl_state)lite_int(q, 1);
    out->finished_us = lite_int(q, 2);
    out->keep_until_us = lite_int(q, 3);
    out->token = arena_copy(&c->scratch, lite_column(q, 4));
}

static void read_gone(struct lite *c, sqlite3_stmt *q, struct due *out)
{
    out->seq = lite_int(q, 0);
    out->id = arena_copy(&c->scratch, lite_column(q, 1));
}

static enum pawl_status tags_remove(struct lite *c, const struct call *call, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < call->spec.n_tags && st == PAWL_OK; i++)
        st = lite_run(
            c, SQL_TAG_REMOVE,
            ARGS(TEXT(call->spec.tags[i].name), TEXT(call->spec.tags[i].value), INT(call->seq)),
            NULL, err);
    return st;
}

/* Only a tombstone stays. */
static enum pawl_status remove_one(struct lite *c, const struct due *d, struct pawl_err *err)
{
    static const enum sql_name rows[] = { SQL_OUTCOME_REMOVE, SQL_ATTEMPT_REMOVE, SQL_CALL_REMOVE };
    struct lite_shelf to = { .a = &c->scratch };
    struct call call;
    CHECK(pawl_state_ended(d->state) && d->keep_until_us <= c->now_us);
    enum pawl_status st = lite_asked(c, &to, d->seq, false, &call, err);
    if (st == PAWL_OK)
        st = lite_lease_leave(c, d->token, d->seq, err);
    if (st == PAWL_OK)
        st = tags_remove(c, &call, err);
    for (size_t i = 0; i < COUNT_OF(rows) && st == PAWL_OK; i++)
        st = lite_run(c, rows[i], ARGS(INT(d->seq)), NULL, err);
    if (st == PAWL_OK)
        st = lite_run(c, SQL_GONE_ADD,
                      ARGS(INT(d->seq), TEXT(call.spec.id), INT(d->state), INT(call.created_us),
                           INT(d->finished_us), INT(d->keep_until_us + c->remember_us)),
                      NULL, err);
    return st == PAWL_OK && call.spec.key.data ? lite_key_gone(c, call.spec.key, err) : st;
}

static enum pawl_status forget_one(struct lite *c, const struct due *d, struct pawl_err *err)
{
    enum pawl_status st = lite_run(c, SQL_GONE_REMOVE, ARGS(INT(d->seq)), NULL, err);
    return st == PAWL_OK ? lite_run(c, SQL_ID_REMOVE, ARGS(TEXT(d->id)), NULL, err) : st;
}

enum pawl_status lite_gc(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct gc *g = &op->gc;
    struct due *v;
    size_t n = 0;
    static const enum sql_name kinds[] = { SQL_OUTCOME_KEPT, SQL_GONE_OVER };
    g->removed = g->forgotten = 0;
    enum pawl_status st = due_list(c, SQL_OUTCOME_KEPT, g->max, read_kept, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++, g->removed++)
        st = remove_one(c, &v[i], err);
    n = 0;
    if (st == PAWL_OK)
        st = due_list(c, SQL_GONE_OVER, g->max, read_gone, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++, g->forgotten++)
        st = forget_one(c, &v[i], err);
    return st == PAWL_OK ? any_due(c, kinds, COUNT_OF(kinds), &g->more, err) : st;
}
