/*
 * pg_workflows.c - signals that are sent in SQL: with the transaction, through the inbox, and by
 * whom; and the views of runs and steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "engines.h"
#include "feature/all.h"
#include "feature/workflow.h"
#include "model/needs.h"
#include "pg_fixture.h"
#include "store/feature.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

/* Claim one call of the type, as a worker for steps; there must be one. */
static struct claim claim_of(const char *type)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct bytes types[] = { bytes_of(type) };
    struct op claim = { .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n1"),
                                   .boot = BYTES("b1"),
                                   .types = types,
                                   .n_types = 1,
                                   .has = has,
                                   .n_has = 1,
                                   .max = 1,
                                   .lease_us = 60 * SEC_US } };
    pgf_do(&r, &claim);
    OK(claim.status, &claim.err);
    EQ_UINT(claim.claim.n, 1);
    return claim.claim;
}

static void store_step(const struct claim *c, struct workflow_step s, bool undoing)
{
    static struct workflow_op q;
    static struct workflow_step kept;
    kept = s;
    q = (struct workflow_op){ .what = WORKFLOW_STEPS,
                              .steps = { .v = &kept, .n = 1, .undoing = undoing } };
    struct op op = {
        .kind = OP_FEATURE,
        .feature = { .of = &feature_workflow, .ctx = &q, .token = c->token, .seq = c->calls[0].seq }
    };
    pgf_do(&r, &op);
    OK(op.status, &op.err);
}

/* End the pass, or hand the call back. */
static void end_as(const struct claim *c, enum ending how)
{
    pgf_finish(&r, c->token, arena_text(&r.a, c->calls[0].spec.id), how);
}

/* Store a step of the run, which a new lease holds. */
static void step(int64_t no, const char *name, bool waits)
{
    struct bytes signal = bytes_of(name);
    struct claim c = claim_of("order");
    store_step(&c,
               (struct workflow_step){ .no = no,
                                       .name = signal,
                                       .kind = waits ? STEP_SIGNAL : STEP_RUN,
                                       .says = waits ? SAYS_WAIT : SAYS_RESULT,
                                       .result = { waits ? PAWL_NOTHING : PAWL_JSON,
                                                   waits ? BYTES_NONE : BYTES("{\"paid\": 7}") },
                                       .wait = { .signals = &signal, .n_signals = waits } },
               false);
    if (!waits)
        end_as(&c, END_RELEASE);
}

static int64_t signals(void)
{
    return sql_count(r.db, "SELECT count(*) FROM pawl.signal");
}

TEST(a_signal_exists_when_its_transaction_commits)
{
    pgf_open(&r, NULL);
    PGconn *app = pgf_connect(&r, NULL);
    sql_run(app, "SELECT pawl.submit('order', id => 'o1', input => '[1]')");
    pgf_sweep(&r);
    step(1, "charge", false);
    step(2, "shipped", true);
    EQ_STR(sql_ask(r.db,
                   "SELECT workflow_name || ' ' || status || ' ' || current_step || ' ' || "
                   "input || ' ' || step_results::text || ' ' || (completed_at IS NULL)::text "
                   "FROM pawl.workflow_runs WHERE id = 'o1'"),
           "order waiting shipped [1] { \"charge\" : {\"paid\": 7} } true");
    EQ_STR(sql_ask(r.db, "SELECT string_agg(step_name || ' ' || kind || ' ' || status || ' ' || "
                         "coalesce(result, '-'), ', ' ORDER BY no) FROM pawl.workflow_steps "
                         "WHERE workflow_run_id = 'o1'"),
           "charge run completed {\"paid\": 7}, shipped signal waiting -");
    sql_run(app, "BEGIN; SELECT pawl.signal('o1', 'shipped', '{\"p\": 9}')");
    pgf_sweep(&r);
    EQ_INT(signals(), 0);
    sql_run(app, "ROLLBACK; BEGIN; SELECT pawl.signal('o1', 'shipped', '{\"p\": 9}'); COMMIT");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls"), 1); /* it is no call */
    pgf_sweep(&r);
    EQ_INT(signals(), 1);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.inbox"), 0);
    step(2, "shipped", true);
    EQ_STR(sql_ask(r.db, "SELECT result FROM pawl.workflow_steps WHERE no = 2"), "{\"p\": 9}");
    PQfinish(app);
    pgf_close(&r);
}

TEST(wrong_signals)
{
    pgf_open(&r, NULL);
    EQ_STR(sql_fails(r.db, "SELECT pawl.signal(NULL, 'a')"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.signal('a', NULL)"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.signal('a', '')"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.signal('a', 'b', to_json(repeat('x', 2000000)))"), "54000");
    sql_run(r.db, "SELECT pawl.signal('none', 'a', '1')");
    pgf_sweep(&r);
    HAS_STR(sql_ask(r.db, "SELECT code || ' ' || reason FROM pawl.inbox_conflicts"),
            "call \"none\" does not exist");
    sql_run(r.db, "UPDATE pawl.migration SET finished = 0 WHERE number = 12");
    EQ_STR(sql_fails(r.db, "SELECT pawl.signal('a', 'b')"), "55000");
    pgf_close(&r);
}

TEST(a_role_signals_its_own_runs)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "CREATE ROLE wfapp LOGIN; GRANT USAGE ON SCHEMA pawl TO wfapp; "
                  "GRANT EXECUTE ON FUNCTION pawl.submit, pawl.signal TO wfapp");
    PGconn *app = pgf_connect(&r, "wfapp");
    sql_run(r.db, "SELECT pawl.submit('order', id => 'theirs')");
    sql_run(app, "SELECT pawl.submit('order', id => 'own'), pawl.signal('own', 'a', '1'), "
                 "pawl.signal('theirs', 'a', '1')");
    pgf_sweep(&r);
    EQ_INT(signals(), 1);
    HAS_STR(sql_ask(r.db, "SELECT id || ' ' || reason FROM pawl.inbox_conflicts"),
            "theirs call \"theirs\" does not exist");
    PQfinish(app);
    sql_run(r.db, "DROP OWNED BY wfapp; DROP ROLE wfapp");
    pgf_close(&r);
}

/* ---- Functions that remove calls ------------------------------------------------------------- */

static int64_t rows_of_runs(void)
{
    return sql_count(r.db, "SELECT (SELECT count(*) FROM pawl.workflow) + (SELECT count(*) FROM "
                           "pawl.step) + (SELECT count(*) FROM pawl.signal) + (SELECT count(*) "
                           "FROM pawl.published) + (SELECT count(*) FROM pawl.child)");
}

/* Mark all that has ended, past its retention or not, and let a node remove it. Returns how many
 * were removed. */
static int64_t cleans(bool archive)
{
    if (!archive)
        sql_run(r.db, "UPDATE pawl.outcome SET keep_until = 1");
    sql_run(r.db, archive ? "SELECT pawl.archive('0')" : "SELECT pawl.cleanup_expired()");
    return pgf_gc(&r).removed;
}

static void leave_open_runs(bool archive)
{
    struct call_spec part = pgf_plan("unused"), plan = pgf_plan("o1");
    part.type = BYTES("part");
    plan.type = BYTES("order");
    pgf_open(&r, NULL);
    pgf_accept(&r, &plan);
    struct claim c = claim_of("order");
    store_step(
        &c,
        (struct workflow_step){
            .no = 1, .name = BYTES("c"), .kind = STEP_CHILD, .says = SAYS_CHILD, .call = &part },
        false);
    store_step(&c,
               (struct workflow_step){
                   .no = 2, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT },
               false);
    struct claim child = claim_of("part");
    end_as(&child, END_RESULT);
    sql_run(r.db, "SELECT pawl.signal('o1', 'go', '1')");
    pgf_sweep(&r);
    EQ_INT(rows_of_runs(), 5); /* a run, two steps, a signal, a child */
    EQ_INT(cleans(archive), 0);
    EQ_INT(rows_of_runs(), 5);
    EQ_STR(sql_ask(r.db, "SELECT status FROM pawl.calls WHERE id = 'o1.c#1'"), "completed");
    end_as(&c, END_REFUSE);
    EQ_INT(cleans(archive), 0); /* it is to undo */
    c = claim_of("order");
    store_step(&c,
               (struct workflow_step){ .no = 3,
                                       .name = BYTES("a"),
                                       .kind = STEP_UNDO,
                                       .says = SAYS_ERROR,
                                       .error = BYTES("no") },
               true);
    EQ_STR(sql_ask(r.db, "SELECT status FROM pawl.calls WHERE id = 'o1'"), "dead_letter");
    EQ_INT(cleans(archive), 1); /* its child: the run has ended, and its undoing failed */
    EQ_STR(sql_ask(r.db, "SELECT compensation_status FROM pawl.workflow_runs WHERE id = 'o1'"),
           "failed");
    struct workflow_op drop = { .what = WORKFLOW_CANCEL, .id = BYTES("o1") };
    struct op op = { .kind = OP_FEATURE, .feature = { .of = &feature_workflow, .ctx = &drop } };
    pgf_do(&r, &op);
    EQ_INT(cleans(archive), 1);
    EQ_INT(rows_of_runs(), 0);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.call"), 0);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.archive"), archive ? 2 : 0);
    pgf_close(&r);
}

TEST(cleanup_expired_leaves_runs_that_go_on)
{
    leave_open_runs(false);
}

TEST(archive_leaves_runs_that_go_on)
{
    leave_open_runs(true);
}
