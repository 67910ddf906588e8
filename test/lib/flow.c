/*
 * flow.c - see flow.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "check.h"

#ifdef PAWL_TEST /* its statements are in no other build; programs of test/bench have none */

struct flow_seen flow_seen;

/* ---- Rows ------------------------------------------------------------------------------------ */

struct row {
    struct row *next;
    int64_t seq, steps, undoing, waits, kept;
    int64_t pass; /* of the lease that let go of it */
    bool changed; /* to be written by moved() */
};
struct memory {
    struct row *rows;
};

static struct row *row_of(struct ledger *d, int64_t seq)
{
    const struct memory *m = feature_memory(d, &flow_feature, sizeof *m);
    struct row *r = m ? m->rows : NULL;
    while (r && r->seq != seq)
        r = r->next;
    return r;
}

static enum pawl_status rows_read(struct ledger *d, enum sql_name name, const int64_t *seqs,
                                  size_t n, struct pawl_err *err)
{
    struct memory *m = feature_memory(d, &flow_feature, sizeof *m);
    struct led_params p = { 0 };
    struct led_rows *r;
    led_ints(d, &p, seqs, n);
    enum pawl_status st = m ? feature_query(d, name, &p, &r, err) : err_no_memory(err, "flows");
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct row *k = row_of(d, led_get_int(r, i, 0));
        if (k)
            continue;
        k = arena_zalloc(feature_arena(d), 1, sizeof *k);
        if (!k)
            return err_no_memory(err, "flows");
        *k = (struct row){ m->rows,
                           led_get_int(r, i, 0),
                           led_get_int(r, i, 1),
                           led_get_int(r, i, 2),
                           led_get_int(r, i, 3),
                           led_get_int(r, i, 4),
                           led_get_int(r, i, 5),
                           false };
        m->rows = k;
    }
    return st;
}

static enum pawl_status row_write(struct ledger *d, struct row *r, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t changed = 0;
    const int64_t *const v[] = { &r->seq, &r->steps, &r->undoing, &r->waits, &r->kept, &r->pass };
    for (size_t i = 0; i < COUNT_OF(v); i++)
        led_ints(d, &p, v[i], 1);
    r->changed = false;
    enum pawl_status st = feature_run(d, SQL_FLOW_WRITE, &p, &changed, err);
    CHECK(st != PAWL_OK || changed == 1);
    return st;
}

/* ---- The operation --------------------------------------------------------------------------- */

static int64_t seq_of(const struct op *op)
{
    const struct flow_op *q = op->feature.ctx;
    return q->seq ? q->seq : op->feature.seq;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum pawl_status load(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(feature_arena(d), (n + 1) * sizeof *seqs);
    size_t m = 0, kept = 0;
    enum pawl_status st = seqs ? PAWL_OK : err_no_memory(err, "flows");
    for (size_t i = 0; i < n && seqs; i++)
        if (seq_of(ops[i]))
            seqs[m++] = seq_of(ops[i]);
    if (seqs)
        qsort(seqs, m, sizeof *seqs, compare);
    for (size_t i = 0; i < m; i++)
        if (!kept || seqs[kept - 1] != seqs[i])
            seqs[kept++] = seqs[i];
    for (size_t i = 0; i < kept && st == PAWL_OK; i++)
        st = feature_row(d, SQL_FLOW_ADD, "i", &(union feature_value){ .i = seqs[i] }, FEATURE_ANY,
                         err);
    return st == PAWL_OK && kept ? rows_read(d, SQL_FLOW_LOCK, seqs, kept, err) : st;
}

static int64_t pass_of(struct token token)
{
    int64_t n;
    memcpy(&n, token.b, sizeof n);
    return n;
}

static enum pawl_status end(struct ledger *d, struct op *op, struct row *r, struct pawl_err *err)
{
    const struct flow_op *q = op->feature.ctx;
    struct feature_call call;
    enum pawl_status st = feature_call_at(d, r->seq, &call, err);
    if (st == PAWL_OK && !call.flow)
        op->status = err_set(&op->err, PAWL_STATE, "call \"%.*s\" is no flow", BYTES_ARG(call.id));
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    r->kept = q->keep ? q->keep > 0 : r->kept;
    st = row_write(d, r, err);
    return st == PAWL_OK && q->end.state ? feature_flow_end(d, r->seq, q->end, err) : st;
}

static enum pawl_status apply(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct flow_op *q = op->feature.ctx;
    struct row *r = row_of(d, seq_of(op));
    enum pawl_status st = PAWL_OK;
    CHECK(r);
    q->cancel = false;
    q->steps = r->steps;
    if (q->seq)
        return end(d, op, r, err);
    if (q->step && r->steps >= q->step) {
        op->feature.repeated = true;
        return PAWL_OK;
    }
    if (q->step || q->until_us || q->begin_only)
        st = feature_flow_begin(d, op, BYTES_NONE, &q->cancel, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    r->steps = q->steps = q->step ? q->step : r->steps;
    r->undoing |= q->cancel;
    r->waits = q->until_us ? (int64_t)q->waits : 0;
    r->pass = q->until_us ? pass_of(op->feature.token) : 0;
    st = row_write(d, r, err);
    if (st == PAWL_OK && q->step)
        st = feature_flow_step(d, op, err);
    if (st == PAWL_OK && q->end.state)
        return feature_flow_end(d, r->seq, q->end, err);
    return st == PAWL_OK && q->until_us ? feature_flow_suspend(d, op, q->until_us, err) : st;
}

static enum pawl_status former(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct flow_op *q = op->feature.ctx;
    const struct row *r = row_of(d, seq_of(op));
    (void)err;
    CHECK(r);
    q->steps = r->steps;
    op->feature.repeated =
        q->until_us && r->steps >= q->step && r->pass == pass_of(op->feature.token);
    return PAWL_OK;
}

/* ---- Hooks ----------------------------------------------------------------------------------- */

static enum pawl_status flows_ending(struct ledger *d, const int64_t *seqs, size_t n,
                                     struct pawl_err *err)
{
    flow_seen.ending++;
    flow_seen.ended += (int)n;
    for (size_t i = 1; i < n; i++)
        CHECK(seqs[i - 1] < seqs[i]);
    return rows_read(d, SQL_FLOW_LOCK, seqs, n, err);
}

static bool begins_with(struct bytes id, const char *word)
{
    return id.len >= strlen(word) && memcmp(id.data, word, strlen(word)) == 0;
}

static void become(struct flow_end *q, enum pawl_state state, const char *error)
{
    q->next = FLOW_ENDS;
    q->state = state;
    q->error = bytes_of(error);
}

static enum pawl_status flow_end(struct ledger *d, struct flow_end *q, struct pawl_err *err)
{
    struct row *r = row_of(d, q->seq);
    (void)err;
    CHECK(r); /* flows_ending() has read it */
    flow_seen.asked++;
    flow_seen.how = q->how;
    flow_seen.state = q->state;
    if (!begins_with(q->id, "saga") || q->state == PAWL_PENDING)
        return PAWL_OK;
    if (r->undoing && q->how == END_RESULT)
        become(q, PAWL_FAILED, "undone");
    else if (r->undoing && q->how == END_REFUSE)
        become(q, PAWL_DEAD_LETTER, "undo refused");
    else if (!r->undoing && q->state != PAWL_COMPLETED) {
        q->next = FLOW_AGAIN;
        r->undoing = r->changed = true;
    }
    return PAWL_OK;
}

static enum pawl_status flow_cancel(struct ledger *d, int64_t seq, struct pawl_err *err)
{
    struct row *r = row_of(d, seq);
    CHECK(r);
    flow_seen.cancelled++;
    r->undoing = 1;
    struct op wake = { .kind = OP_WAKE, .wake = { &seq, 1 } };
    enum pawl_status st = row_write(d, r, err);
    return st == PAWL_OK ? feature_nested(d, &wake, err) : st;
}

static enum pawl_status flow_retry(struct ledger *d, int64_t seq, struct op *op,
                                   struct pawl_err *err)
{
    struct feature_call call;
    enum pawl_status st = feature_call_at(d, seq, &call, err);
    CHECK(st != PAWL_OK || (row_of(d, seq) && call.flow));
    flow_seen.retried++;
    if (st == PAWL_OK && begins_with(call.id, "final"))
        op->status = err_set(&op->err, PAWL_STATE, "flow \"%.*s\" is final", BYTES_ARG(call.id));
    return st;
}

static enum pawl_status flows_shown(struct ledger *d, const int64_t *seqs, size_t n,
                                    enum call_wait *out, struct pawl_err *err)
{
    enum pawl_status st = rows_read(d, SQL_FLOW_LOOK, seqs, n, err);
    flow_seen.shown++;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct row *r = row_of(d, seqs[i]);
        out[i] = r ? (enum call_wait)r->waits : WAIT_NONE;
    }
    return st;
}

static enum pawl_status keep(struct ledger *d, const int64_t *seqs, size_t n, bool *out,
                             struct pawl_err *err)
{
    enum pawl_status st = rows_read(d, SQL_FLOW_LOCK, seqs, n, err);
    flow_seen.kept++;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        const struct row *r = row_of(d, seqs[i]);
        out[i] = r && r->kept;
    }
    return st;
}

static enum pawl_status moved(struct ledger *d, const struct moved *v, size_t n,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    flow_seen.moved += (int)n;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct row *r = row_of(d, v[i].seq);
        st = feature_row(
            d, SQL_FLOW_TOLD, "iii",
            (union feature_value[]){ { .i = v[i].seq }, { .i = v[i].from }, { .i = v[i].to } },
            FEATURE_EXACT, err);
        if (st == PAWL_OK && r && r->changed)
            st = row_write(d, r, err);
    }
    return st;
}

static enum pawl_status forget(struct ledger *d, const int64_t *seqs, size_t n,
                               struct pawl_err *err)
{
    struct led_params p = { 0 };
    flow_seen.forgotten += (int)n;
    led_ints(d, &p, seqs, n);
    return feature_run(d, SQL_FLOW_FORGET, &p, NULL, err);
}

const struct feature flow_feature = {
    .name = "flow",
    .watch = WATCH_FLOW,
    .load = load,
    .apply = apply,
    .former = former,
    .moved = moved,
    .forget = forget,
    .flows_ending = flows_ending,
    .flow_end = flow_end,
    .flow_cancel = flow_cancel,
    .flow_retry = flow_retry,
    .flows_shown = flows_shown,
    .keep = keep,
};
const struct feature *const flow_features[1] = { &flow_feature };

/* ---- For tests ------------------------------------------------------------------------------- */

static void script(struct store *s, const char *sql)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_SCRIPT, .a = &a, .script.sql = bytes_of(sql) }, *v = &op;
    OK(store_commit(s, &v, 1), &op.err);
    OK(op.status, &op.err);
    arena_release(&a);
}

void flow_tables(struct store *s, const struct engine *engine)
{
    (void)engine;
    script(s, "CREATE TABLE flow (seq BIGINT PRIMARY KEY, steps BIGINT, undoing BIGINT, "
              "waits BIGINT, kept BIGINT, pass BIGINT)");
    script(s, "CREATE TABLE flow_moved (seq BIGINT, was BIGINT, state BIGINT)");
}

struct op flow_fenced(struct flow_op *q, struct token token, int64_t seq)
{
    return (struct op){
        .kind = OP_FEATURE,
        .feature = { .of = &flow_feature, .ctx = q, .token = token, .seq = seq },
    };
}

struct op flow_open(struct flow_op *q)
{
    return (struct op){ .kind = OP_FEATURE, .feature = { .of = &flow_feature, .ctx = q } };
}

#endif
