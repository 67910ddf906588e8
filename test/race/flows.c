/*
 * flows.c - several connections take flows from step to step, let them wait, wake, cancel and end
 * them, all at once. Each ends once, and nothing is left of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/limits.h"
#include "check.h"
#include "engines.h"
#include "flow.h"
#include "model/needs.h"

RUNS_ON(ENGINES_DURABLE)

enum { WORKERS = 3, CALLS = 48, KEYS = 5, STEPS = 4 };

static const char *url;
static int64_t seqs[CALLS];
static char ids[CALLS][8];
static atomic_bool is_ended[CALLS];
static atomic_int ended, steps, waits;

struct worker {
    struct store *s;
    struct arena a;
    pthread_t thread;
};

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .retention_us = SEC_US * 3600,
                               .key_pending_max = 100000,
                               .features = flow_features,
                               .n_features = COUNT_OF(flow_features) };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static unsigned roll(unsigned n)
{
    return (unsigned)(world_dice(&world_real) % n);
}

static void told_ended(struct bytes id)
{
    int i = 0;
    while (!bytes_eq(id, bytes_of(ids[i])))
        i++;
    if (!atomic_exchange(&is_ended[i], true))
        ended++;
}

/* Returns the operation's status; a group that others disturbed for too long is repeated. */
static enum pawl_status commit(struct worker *w, struct op *op)
{
    op->a = &w->a;
    while (store_commit(w->s, &op, 1) != PAWL_OK)
        EQ_STATUS(op->status, PAWL_BUSY, &op->err);
    for (size_t i = 0; i < op->n_ended; i++)
        told_ended(op->ended[i]);
    return op->status;
}

/* ---- What each does -------------------------------------------------------------------------- */

/* Take the call some steps further. False: the lease has let go of it. */
static bool goes_on(struct worker *w, struct token token, const struct call *call)
{
    struct flow_op q = { .step = 1 };
    for (;;) {
        struct op op = flow_fenced(&q, token, call->seq);
        bool wait = roll(3) == 0;
        q.until_us = !wait ? 0 : roll(2) ? FLOW_NEVER_US : world_now(&world_real) + roll(3000);
        if (commit(w, &op) != PAWL_OK) {
            EQ_STATUS(op.status, PAWL_LOST_LEASE, &op.err);
            return false;
        }
        steps += !op.feature.repeated;
        waits += wait && !op.feature.repeated;
        if (wait && !op.feature.repeated)
            return false;
        if (q.steps >= STEPS)
            return true;
        q.step = q.steps + 1;
    }
}

static void finishes(struct worker *w, struct token token, const struct call *call)
{
    static const enum ending how[] = { END_RESULT, END_RESULT, END_LATER, END_RELEASE };
    struct finish_item item = { .seq = call->seq, .how = how[roll(COUNT_OF(how))] };
    struct op op = { .kind = OP_FINISH, .finish = { .token = token, .v = &item, .n = 1 } };
    if (commit(w, &op) != PAWL_OK)
        EQ_STATUS(op.status, PAWL_LOST_LEASE, &op.err);
    else if (pawl_state_ended(item.state))
        told_ended(call->spec.id);
}

static void work(struct worker *w)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .max = 1 + (int)roll(4),
                                .run_max = 1 + (int)roll(3),
                                .has = has,
                                .n_has = COUNT_OF(has),
                                .lease_us = 600 * SEC_US } };
    OK(commit(w, &op), &op.err);
    for (size_t i = 0; i < op.claim.n; i++)
        if (goes_on(w, op.claim.token, &op.claim.calls[i]))
            finishes(w, op.claim.token, &op.claim.calls[i]);
}

static void disturb(struct worker *w)
{
    int i = (int)roll(CALLS);
    struct flow_op q = { .seq = seqs[i], .end.state = PAWL_CANCELLED };
    struct op wake = { .kind = OP_WAKE, .wake = { seqs, CALLS } }, end = flow_open(&q),
              cancel = { .kind = OP_CANCEL, .by_id.id = bytes_of(ids[i]) };
    OK(commit(w, &wake), &wake.err);
    if (roll(20) == 0 && commit(w, &cancel) == PAWL_OK && cancel.by_id.state == PAWL_CANCELLED)
        told_ended(cancel.by_id.id);
    else if (roll(20) == 0)
        (void)commit(w, &end);
}

static void *run(void *ctx)
{
    struct worker *w = ctx;
    while (ended < CALLS) {
        work(w);
        disturb(w);
        arena_reset(&w->a);
    }
    return NULL;
}

/* ---- The case -------------------------------------------------------------------------------- */

static void accept_all(struct worker *w)
{
    for (int i = 0; i < CALLS; i++) {
        struct call_spec spec;
        struct pawl_err err;
        snprintf(ids[i], sizeof ids[i], "x%d", i);
        call_spec_init(&spec);
        spec.id = bytes_of(ids[i]);
        spec.type = BYTES("t");
        spec.key = i % 2 ? bytes_of(arena_printf(&w->a, "k%d", i % KEYS)) : BYTES_NONE;
        OK(call_spec_settle(&w->a, &world_real, &spec, &err), &err);
        struct op op = { .kind = OP_ACCEPT, .accept = { .v = &spec, .n = 1 } };
        OK(commit(w, &op), &op.err);
        seqs[i] = op.accept.out[0].call.seq;
    }
}

TEST(many_hands_on_the_same_flows, .deadline_s = 120)
{
    struct worker w[WORKERS] = { 0 };
    struct pawl_err err;
    url = engine_url(param);
    for (int i = 0; i < WORKERS; i++) {
        w[i].s = handle();
        arena_init(&w[i].a, 64 << 20);
        if (i == 0)
            OK(store_migrate(w[0].s, true, &err), &err);
    }
    flow_tables(w[0].s, engine_of(param));
    accept_all(&w[0]);
    for (int i = 0; i < WORKERS; i++)
        EQ_INT(pthread_create(&w[i].thread, NULL, run, &w[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        EQ_INT(pthread_join(w[i].thread, NULL), 0);
    printf("%d steps, %d waits\n", steps, waits);
    EQ_INT(ended, CALLS);
    GT_INT(waits, 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome"), CALLS);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_lease"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_ready"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_line"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_cancel"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_key WHERE held > 0 OR waiting > 0"), 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM flow_moved WHERE state > 2 AND seq IN (SELECT "
                             "seq FROM flow_moved WHERE state > 2 GROUP BY seq HAVING "
                             "COUNT(*) > 1)"),
           0);
    for (int i = 0; i < WORKERS; i++) {
        store_close(w[i].s);
        arena_release(&w[i].a);
    }
}
