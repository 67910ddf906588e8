/*
 * sweep.c - what needs no traffic: expiry, leases past their end, retention. Each a bounded step.
 *
 * Rows of one kind are listed first and worked on after, because a statement that is being stepped
 * must not have its table changed under it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
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

/* Up to max rows whose time has come by then. */
static enum pawl_status due_list(struct lite *c, enum sql_name name, int64_t by_us, int max,
                                 due_read *read, struct due **out, size_t *out_n,
                                 struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    struct due *v = arena_zalloc(&c->scratch, (size_t)max, sizeof *v);
    if (!v)
        return err_no_memory(err, "a sweep");
    *out = v;
    *out_n = 0;
    enum pawl_status st = lite_query(c, name, ARGS(INT(by_us), INT(max)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row)
        read(c, q, &v[(*out_n)++]);
    return st == PAWL_OK && c->scratch.failed ? err_no_memory(err, "a sweep") : st;
}

static enum pawl_status is_due(struct lite *c, enum sql_name name, int64_t by_us, bool *out,
                               struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    enum pawl_status st = lite_query(c, name, ARGS(INT(by_us), INT(1)), &q, err);
    return st == PAWL_OK ? lite_next(c, q, out, err) : st;
}

/* Is anything of these kinds left that is due now? */
static enum pawl_status any_due(struct lite *c, const enum sql_name *kinds, size_t n, bool *out,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out = false;
    for (size_t i = 0; i < n && st == PAWL_OK && !*out; i++)
        st = is_due(c, kinds[i], c->now_us, out, err);
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
    enum pawl_status st =
        due_list(c, SQL_EXPIRY_DUE, c->now_us, op->sweep.max, read_expired, &v, &n, err);
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

static enum pawl_status reclaim_listed(struct lite *c, struct op *op, const struct due *v, size_t n,
                                       struct try_end end, int64_t *count, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct token token;
        if (v[i].token.len != sizeof token.b)
            return err_set(err, PAWL_BROKEN, "a lease has a token of %zu bytes", v[i].token.len);
        memcpy(token.b, v[i].token.data, sizeof token.b);
        st = lite_reclaim(c, op, &token, &end, count, err);
    }
    return st;
}

static enum pawl_status reclaim_some(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct sweep *s = &op->sweep;
    struct try_end end = { .how = END_LOST, .fail_lost = s->fail_lost, .timed = true };
    struct due *v;
    size_t n = 0;
    enum pawl_status st = due_list(c, SQL_LEASE_OVER, c->now_us, s->max, read_over, &v, &n, err);
    return st == PAWL_OK ? reclaim_listed(c, op, v, n, end, &s->reclaimed, err) : st;
}

enum pawl_status lite_requeue(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct requeue *r = &op->requeue;
    struct due *v;
    size_t n = 0;
    r->leases = r->reclaimed = 0;
    enum pawl_status st =
        due_list(c, SQL_LEASE_OLD, r->claimed_before_us, r->max, read_over, &v, &n, err);
    if (st == PAWL_OK)
        st = reclaim_listed(c, op, v, n,
                            (struct try_end){ .how = END_LOST, .fail_lost = r->fail_lost },
                            &r->reclaimed, err);
    r->leases = (int64_t)n;
    return st == PAWL_OK ? is_due(c, SQL_LEASE_OLD, r->claimed_before_us, &r->more, err) : st;
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
    CHECK(pawl_state_ended(d->state) && d->keep_until_us != INT64_MAX); /* that one blocks */
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

/* Up to max calls that ended before a moment, by seq. *out_last: how far we looked; 0: to the end.
 */
static enum pawl_status ended_list(struct lite *c, const struct gc *g, struct due **out,
                                   size_t *out_n, int64_t *out_last, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    struct due *v = arena_zalloc(&c->scratch, (size_t)g->max, sizeof *v);
    if (!v)
        return err_no_memory(err, "an archive");
    *out = v;
    *out_n = 0;
    enum pawl_status st = lite_query(c, SQL_OUTCOME_WALK, ARGS(INT(g->after_seq)), &q, err);
    for (int looked = 0; st == PAWL_OK; looked++) {
        st = lite_next(c, q, &row, err);
        if (st != PAWL_OK || !row)
            break;
        *out_last = lite_int(q, 0);
        if (lite_int(q, 2) < g->ended_before_us && lite_int(q, 3) != INT64_MAX)
            read_kept(c, q, &v[(*out_n)++]);
        if (*out_n == (size_t)g->max || looked == LIST_LOOK_MAX)
            break;
    }
    *out_last = row ? *out_last : 0;
    return st == PAWL_OK && c->scratch.failed ? err_no_memory(err, "an archive") : st;
}

/* One that is removed by somebody's wish: copied first when that is the wish. */
static enum pawl_status take_one(struct lite *c, const struct gc *g, const struct due *d,
                                 int64_t *out_len, struct pawl_err *err)
{
    int64_t len = 0;
    enum pawl_status st = PAWL_OK;
    if (g->archive)
        st = lite_number(c, SQL_ARCHIVE_LEN, ARGS(INT(d->seq)), 0, &len, err);
    if (st == PAWL_OK && g->archive)
        st = lite_run(c, SQL_ARCHIVE_ADD,
                      ARGS(INT(d->seq), TEXT(bytes_of(pawl_state_name(d->state))), INT(c->now_us)),
                      NULL, err);
    *out_len += len;
    return st == PAWL_OK ? remove_one(c, d, err) : st;
}

/* Calls that ended before a moment. Copies of large calls end the step early, so that nobody waits
 * long for the writer's lock. */
static enum pawl_status gc_ended(struct lite *c, struct gc *g, struct pawl_err *err)
{
    struct due *v;
    size_t n = 0, i = 0;
    int64_t last = 0, len = 0;
    enum pawl_status st = ended_list(c, g, &v, &n, &last, err);
    for (; i < n && st == PAWL_OK && len < CLAIM_LEN_MAX; i++)
        st = take_one(c, g, &v[i], &len, err);
    if (i < n)
        last = i ? v[i - 1].seq : last;
    g->removed = (int64_t)i;
    g->next_seq = last;
    g->more = last != 0;
    return st;
}

enum pawl_status lite_gc(struct lite *c, struct op *op, struct pawl_err *err)
{
    struct gc *g = &op->gc;
    struct due *v;
    size_t n = 0;
    int64_t len = 0;
    static const enum sql_name kinds[] = { SQL_OUTCOME_KEPT, SQL_GONE_OVER };
    g->removed = g->forgotten = g->next_seq = 0;
    if (g->ended_before_us)
        return gc_ended(c, g, err);
    enum pawl_status st = due_list(c, SQL_OUTCOME_KEPT, c->now_us, g->max, read_kept, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++, g->removed++)
        st = take_one(c, g, &v[i], &len, err);
    n = 0;
    if (st == PAWL_OK)
        st = due_list(c, SQL_GONE_OVER, c->now_us, g->max, read_gone, &v, &n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++, g->forgotten++)
        st = forget_one(c, &v[i], err);
    return st == PAWL_OK ? any_due(c, kinds, COUNT_OF(kinds), &g->more, err) : st;
}
