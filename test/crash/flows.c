/*
 * flows.c - a process that takes flows from step to step is killed at every crash point of its
 * commits, and started again: each step, wait, cancel and end is stored once.
 *
 * The feature is that of the tests (test/lib/flow.h). Every call takes two steps, waits for ever,
 * is woken, and takes two more; one of each group is cancelled while it waits, one is ended from
 * outside. The process begins from the front after every start.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "check.h"
#include "flow.h"
#include "model/needs.h"

RUNS_ON(ENGINES_DURABLE)

enum { CALLS = 4, STEPS = 4, POINTS_MAX = 40 };

static const char *url;

static struct store *handle(void)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url,
                               .retention_us = 3600 * SEC_US,
                               .features = flow_features,
                               .n_features = COUNT_OF(flow_features) };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

static void commit(struct store *s, struct op *op)
{
    while (store_commit(s, &op, 1) != PAWL_OK) /* a killed process may still hold a row */
        EQ_STATUS(op->status, PAWL_BUSY, &op->err);
    OK(op->status, &op->err);
}

/* ---- The process ----------------------------------------------------------------------------- */

/* The first call is cancelled, the second one is ended from outside. */
static const char *const ids[CALLS] = { "cancel", "end", "saga", "plain" };

static void accept_all(struct store *s, struct arena *a, int64_t *seqs)
{
    for (int i = 0; i < CALLS; i++) {
        struct call_spec spec;
        struct pawl_err err;
        call_spec_init(&spec);
        spec.id = bytes_of(ids[i]);
        spec.type = BYTES("t");
        spec.key = i % 2 ? bytes_of(ids[i]) : BYTES_NONE;
        spec.expires_in_us = 3600 * SEC_US;
        OK(call_spec_settle(a, &world_real, &spec, &err), &err);
        struct op op = { .kind = OP_ACCEPT, .a = a, .accept = { .v = &spec, .n = 1 } };
        commit(s, &op);
        seqs[i] = op.accept.out[0].call.seq;
    }
}

/* Always the same token: what a killed process held is got back with it. */
static struct claim claim(struct store *s, struct arena *a)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = { { 7 } },
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .has = has,
                                .n_has = COUNT_OF(has),
                                .max = 2,
                                .lease_us = 3600 * SEC_US } };
    commit(s, &op);
    return op.claim;
}

/* Store the next step; the second one waits. Returns whether the lease still holds the call. */
static bool step(struct store *s, struct arena *a, struct token token, int64_t seq)
{
    struct flow_op q = { .step = 1 };
    for (;; q.step = q.steps + 1) {
        q.until_us = q.step == 2 ? FLOW_NEVER_US : 0;
        struct op op = flow_fenced(&q, token, seq);
        op.a = a;
        commit(s, &op);
        if (!op.feature.repeated && q.until_us)
            return false;
        if (q.steps >= STEPS)
            return true;
    }
}

/* A saga is refused once, and then undone. */
static void finish(struct store *s, struct arena *a, struct token token, const struct call *c)
{
    bool saga = bytes_eq(c->spec.id, BYTES("saga"));
    bool undone =
        engine_int(url, "SELECT COUNT(*) FROM flow WHERE undoing = 1 AND seq = (SELECT seq "
                        "FROM pawl_id WHERE id = 'saga')") > 0;
    struct finish_item item = { .seq = c->seq, .how = saga && !undone ? END_REFUSE : END_RESULT };
    struct op op = { .kind = OP_FINISH, .a = a, .finish = { .token = token, .v = &item, .n = 1 } };
    commit(s, &op);
}

static void stop(struct store *s, struct arena *a, int64_t seq)
{
    struct op cancel = { .kind = OP_CANCEL, .a = a, .by_id.id = BYTES("cancel") };
    struct flow_op q = { .seq = seq, .end = { .state = PAWL_FAILED, .error = BYTES("ended") } };
    struct op end = flow_open(&q), *v = &cancel;
    end.a = a;
    while (store_commit(s, &v, 1) != PAWL_OK)
        EQ_STATUS(v->status, PAWL_BUSY, &v->err);
    TRUE(cancel.status == PAWL_OK || cancel.status == PAWL_STATE); /* it has ended */
    commit(s, &end);
}

static void work(void)
{
    AUTO(store_end) struct store *s = handle();
    struct arena a;
    int64_t seqs[CALLS];
    arena_init(&a, 64 << 20);
    accept_all(s, &a, seqs);
    /* Rows that a killed process has locked are passed over for a while. */
    while (engine_int(url, "SELECT COUNT(*) FROM pawl_outcome") < CALLS) {
        struct claim q = claim(s, &a);
        for (size_t i = 0; i < q.n; i++)
            if (step(s, &a, q.token, q.calls[i].seq))
                finish(s, &a, q.token, &q.calls[i]);
        if (q.n)
            continue;
        stop(s, &a, seqs[1]);
        struct op wake = { .kind = OP_WAKE, .a = &a, .wake = { seqs, CALLS } };
        commit(s, &wake);
    }
    arena_release(&a);
}

static void make(void)
{
    AUTO(store_end) struct store *s = handle();
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    flow_tables(s, engine_of(url));
}

/* Run it in a process, with this crash or this log. Returns true when it was killed. */
static bool run(void (*what)(void), const char *crash, const char *log)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (crash)
            setenv("PAWL_CRASH", crash, 1);
        if (log)
            setenv("PAWL_CRASH_LOG", log, 1);
        what();
        _exit(0);
    }
    EQ_INT(waitpid(pid, &status, 0), pid);
    TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
         (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    return WIFSIGNALED(status);
}

/* ---- Counting afterwards --------------------------------------------------------------------- */

static void count(void)
{
    EQ_STR(engine_rows(url, "SELECT status FROM pawl_outcome o ORDER BY o.seq"), "3\n4\n4\n3");
    EQ_STR(engine_rows(url, "SELECT steps FROM flow ORDER BY seq"), "4\n2\n4\n4");
    EQ_STR(engine_rows(url, "SELECT undoing FROM flow ORDER BY seq"), "1\n0\n1\n0");
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_lease"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_ready"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_cancel"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_expiry"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM pawl_key WHERE state <> 0"), 0);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM flow_moved WHERE state > 2"), CALLS);
    EQ_INT(engine_int(url, "SELECT COUNT(*) FROM flow_moved WHERE state = 1"), CALLS + 1);
}

static void fresh(void *param)
{
    engine_fresh(param);
    url = engine_url(param);
    FALSE(run(make, NULL, NULL));
}

static char points[POINTS_MAX][128];
static int n_points;

static void learn(void *param)
{
    fresh(param);
    FALSE(run(work, NULL, "points.log"));
    count();
    FILE *f = fopen("points.log", "r");
    TRUE(f != NULL);
    while (n_points < POINTS_MAX && fgets(points[n_points], sizeof points[0], f)) {
        points[n_points][strcspn(points[n_points], "\n")] = '\0';
        n_points++;
    }
    fclose(f);
}

static bool knows(const char *point)
{
    for (int i = 0; i < n_points; i++)
        if (strcmp(points[i], point) == 0)
            return true;
    return false;
}

/* Passes are counted from the start, from the first step, from the first wait, and from the first
 * cancel. */
TEST(every_point_of_a_commit_with_flows, .deadline_s = 300)
{
    static const char *const behind[] = { "", "ledger.flow_begun>", "ledger.flow_suspended>",
                                          "ledger.flow_cancel>" };
    static const int passes[] = { 1, 3, 2, 6 };
    int met = 0, ran = 0;
    learn(param);
    TRUE(knows("ledger.flow_begun") && knows("ledger.flow_suspended") &&
         knows("ledger.flow_cancel") && knows("ledger.before_commit") &&
         knows("ledger.after_commit"));
    for (int i = 0; i < n_points; i++)
        for (size_t b = 0; b < COUNT_OF(behind); b++)
            for (size_t k = 0; k < (check_long() ? COUNT_OF(passes) : 1); k++) {
                char crash[200];
                snprintf(crash, sizeof crash, "%s%.127s:%d", behind[b], points[i], passes[k]);
                fresh(param);
                ran++;
                met += run(work, crash, NULL);
                FALSE(run(work, NULL, NULL));
                count();
            }
    printf("%d of %d crashes met\n", met, ran);
    GT_INT(met, ran / 3);
}
