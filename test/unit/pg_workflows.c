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

/* Store a step of the run, which a new lease holds. */
static void step(int64_t no, const char *name, bool waits)
{
    static struct workflow_op q;
    static struct workflow_step s;
    static struct bytes signal;
    static const struct bytes has[] = { NEED_STEPS };
    struct op claim = { .kind = OP_CLAIM,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("n1"),
                                   .boot = BYTES("b1"),
                                   .has = has,
                                   .n_has = 1,
                                   .max = 1,
                                   .lease_us = 60 * SEC_US } };
    pgf_do(&r, &claim);
    OK(claim.status, &claim.err);
    EQ_UINT(claim.claim.n, 1);
    signal = bytes_of(name);
    s = (struct workflow_step){ .no = no,
                                .name = signal,
                                .kind = waits ? STEP_SIGNAL : STEP_RUN,
                                .says = waits ? SAYS_WAIT : SAYS_RESULT,
                                .result = { waits ? PAWL_NOTHING : PAWL_JSON,
                                            waits ? BYTES_NONE : BYTES("{\"paid\": 7}") },
                                .wait = { .signals = &signal, .n_signals = waits } };
    q = (struct workflow_op){ .what = WORKFLOW_STEPS, .steps = { .v = &s, .n = 1 } };
    struct op op = { .kind = OP_FEATURE,
                     .feature = { .of = &feature_workflow,
                                  .ctx = &q,
                                  .token = claim.claim.token,
                                  .seq = claim.claim.calls[0].seq } };
    pgf_do(&r, &op);
    OK(op.status, &op.err);
    if (waits)
        return;
    struct finish_item back = { .seq = op.feature.seq, .how = END_RELEASE };
    struct op end = { .kind = OP_FINISH,
                      .finish = { .token = op.feature.token, .v = &back, .n = 1 } };
    pgf_do(&r, &end);
    OK(end.status, &end.err);
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
