/*
 * sqlite_guard.c - what an application's SQL may not do inside a call's transaction, and what
 * happens to a transaction that it rolls back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lite.h"

struct
try {
    struct lite_fixture *r;
    const char *sql;
    int64_t within_us; /* 0: no limit */
    bool apply;
    enum pawl_status st;
    struct pawl_rows rows;
    struct pawl_err err;
};

static bool run(void *ctx, struct sql_tx *tx)
{
    struct try *t = ctx;
    int64_t until = t->within_us ? world_mono(&world_real) + t->within_us : 0;
    t->st = store_sql(tx, &t->r->a, &(struct sql_query){ .sql = t->sql, .deadline_us = until },
                      &t->rows, &t->err);
    return t->apply;
}

/* One call whose handler runs this statement; the finish is stored either way. */
static struct op handle(struct lite_fixture *r, struct try *t, unsigned char token)
{
    static struct op end;
    static struct finish_item item;
    lite_accept_n(r, "t", 1, 1, 0);
    struct op claim = lite_claim_of(r, "t", 1, token);
    item = (struct finish_item){ .seq = claim.claim.calls[0].seq,
                                 .how = t->apply ? END_RESULT : END_REFUSE,
                                 .error = BYTES("no") };
    end = (struct op){ .kind = OP_FINISH,
                       .finish = { .token = claim.claim.token, .v = &item, .n = 1 } };
    struct op op = { .kind = OP_HANDLER, .handler = { .run = run, .ctx = t, .end = &end } };
    t->r = r;
    OK(lite_one(r, &op), &op.err);
    return op;
}

static void app(struct lite_fixture *r)
{
    struct op op = { .kind = OP_SCRIPT,
                     .script.sql = BYTES("CREATE TABLE app (id INTEGER PRIMARY KEY, n);"
                                         "INSERT INTO app VALUES (1, 0)") };
    lite_fixture_open(r, "sqlite:guard.db", NULL);
    OK(lite_one(r, &op), &op.err);
}

TEST(what_is_not_theirs_is_refused)
{
    static const char *const refused[] = {
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SAVEPOINT x",
        "RELEASE handler",
        "PRAGMA synchronous = OFF",
        "ATTACH 'x.db' AS x",
        "DETACH main",
        "SELECT * FROM pawl_call",
        "SELECT * FROM PAWL_CALL",
        "SELECT * FROM app WHERE id IN (SELECT seq FROM pawl_ready)",
        "UPDATE pawl_meta SET value = 0",
        "DELETE FROM pawl_outcome",
        "INSERT INTO pawl_id VALUES ('a', 1, x'00')",
        "CREATE TABLE pawl_mine (x)",
        "CREATE INDEX mine ON pawl_call (id)",
        "CREATE TRIGGER mine AFTER INSERT ON pawl_call BEGIN SELECT 1; END",
        "DROP TABLE pawl_call",
        "ALTER TABLE pawl_call RENAME TO mine",
        "INSERT INTO app VALUES (2, 2); INSERT INTO app VALUES (3, 3)",
        "",
        "-- nothing",
        "SELECT ?",
        "SELEC 1",
        "SELECT * FROM nowhere",
    };
    struct lite_fixture r;
    app(&r);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct try t = { .sql = refused[i] };
        handle(&r, &t, (unsigned char)(i + 1));
        if (t.st != PAWL_INVALID)
            FAIL("%s: %s %s", refused[i], pawl_status_name(t.st), t.err.text);
    }
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM app"), 1);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), COUNT_OF(refused));
    lite_fixture_close(&r);
}

TEST(our_own_statements_need_no_leave)
{
    struct lite_fixture r;
    struct try t = { .sql = "UPDATE app SET n = n + 1 RETURNING n", .apply = true };
    app(&r);
    struct op op = handle(&r, &t, 1);
    OK(t.st, &t.err);
    TRUE(op.handler.committed_sql);
    EQ_INT(t.rows.n, 1);
    EQ_INT(t.rows.changed, 1);
    EQ_INT(t.rows.v[0].i, 1);
    EQ_INT(lite_ask(&r, "SELECT n FROM app"), 1);
    lite_fixture_close(&r);
}

TEST(a_trigger_of_theirs_does_not_reach_ours)
{
    struct lite_fixture r;
    struct op trigger = { .kind = OP_SCRIPT,
                          .script.sql = BYTES("CREATE TRIGGER t AFTER UPDATE ON app BEGIN "
                                              "DELETE FROM pawl_call; END") };
    struct try t = { .sql = "UPDATE app SET n = 9" };
    app(&r);
    OK(lite_one(&r, &trigger), &trigger.err); /* checked when it would fire */
    handle(&r, &t, 1);
    EQ_STATUS(t.st, PAWL_INVALID, &t.err);
    HAS_STR(t.err.text, "pawl_call");
    EQ_INT(lite_ask(&r, "SELECT n FROM app"), 0);
    lite_fixture_close(&r);
}

TEST(a_rolled_back_transaction_still_stores_the_end)
{
    struct lite_fixture r;
    struct try t = { .sql = "INSERT OR ROLLBACK INTO app VALUES (1, 1)", .apply = true };
    app(&r);
    struct op op = handle(&r, &t, 1);
    EQ_STATUS(t.st, PAWL_INVALID, &t.err);
    EQ_STR(t.err.sqlstate, "23000");
    FALSE(op.handler.committed_sql);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 1);
    lite_fixture_close(&r);
}

TEST(a_statement_that_takes_too_long_is_stopped)
{
    struct lite_fixture r;
    struct try t = { .sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                            "SELECT count(*) FROM n",
                     .within_us = 50 * MS_US };
    app(&r);
    handle(&r, &t, 1);
    EQ_STATUS(t.st, PAWL_BUSY, &t.err);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 1);
    lite_fixture_close(&r);
}

TEST(a_script_that_fails_is_undone_alone)
{
    struct lite_fixture r;
    app(&r);
    struct op bad = { .kind = OP_SCRIPT,
                      .a = &r.a,
                      .script.sql = BYTES("INSERT INTO app VALUES (7, 7); DROP TABLE nowhere") };
    struct op good = { .kind = OP_PAUSE, .a = &r.a, .pause = { BYTES("q"), true } };
    struct op *v[] = { &bad, &good };
    OK(store_commit(r.s, v, 2), NULL);
    EQ_STATUS(bad.status, PAWL_INVALID, NULL);
    OK(good.status, NULL);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM app"), 1);
    EQ_INT(lite_ask(&r, "SELECT paused FROM pawl_queue"), 1);
    lite_fixture_close(&r);
}

RUNS_ON(ENGINE_FILE)
