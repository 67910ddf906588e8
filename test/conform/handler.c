/*
 * handler.c - a handler's SQL and its finish in one transaction; engines without SQL report that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

struct run {
    struct conform_fixture *b;
    const char *sql; /* NULL: none */
    bool apply;
    enum pawl_status status; /* the status of the SQL */
    struct pawl_err err;
    int calls;
    int64_t seen; /* the first value of the first row */
};

static bool run_sql(void *ctx, struct sql_tx *tx)
{
    struct run *r = ctx;
    struct pawl_rows rows;
    struct sql_query q = { .sql = r->sql, .deadline_us = INT64_MAX };
    r->calls++;
    if (r->sql)
        r->status = store_sql(tx, &r->b->a, &q, &rows, &r->err);
    if (r->sql && r->status == PAWL_OK && rows.n)
        r->seen = rows.v[0].i;
    return r->apply;
}

/* Claim one call and finish it with a handler that runs this statement. */
static struct op handle(struct conform_fixture *b, struct run *r, struct token t,
                        struct finish_item *f)
{
    struct op *end = arena_zalloc(&b->a, 1, sizeof *end);
    *end = (struct op){ .kind = OP_FINISH, .finish = { .token = t, .v = f, .n = 1 } };
    r->b = b;
    struct op op = { .kind = OP_HANDLER, .handler = { .run = run_sql, .ctx = r, .end = end } };
    one(b, &op);
    EQ_INT(r->calls, 1); /* never repeated */
    return op;
}

static void script(struct conform_fixture *b, const char *sql)
{
    struct op op = { .kind = OP_SCRIPT, .script = { .sql = bytes_of(sql) } };
    OK(one(b, &op), &op.err);
}

static int64_t rows_in_app(struct conform_fixture *b)
{
    char *id = arena_printf(&b->a, "count%u", b->tokens);
    struct call_spec s = plan(id);
    s.priority = PRIORITY_MAX;
    accept_spec(b, s);
    struct run r = { .sql = "SELECT count(*) FROM app", .apply = true };
    struct finish_item f = item(id, END_RESULT);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    OK(op.status, &op.err);
    OK(r.status, &r.err);
    return r.seen;
}

static void app(struct conform_fixture *b)
{
    if (!b->engine->sql)
        skip("%s has no SQL", b->engine->name);
    script(b, "CREATE TABLE IF NOT EXISTS app (n INTEGER)");
    script(b, "CREATE TABLE IF NOT EXISTS app (n INTEGER)");
    EQ_INT(rows_in_app(b), 0);
}

CASE(a_handler_without_sql_finishes)
{
    accept_one(b, "a");
    struct run r = { .apply = true };
    struct finish_item f = item("a", END_RESULT);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    OK(op.status, &op.err);
    EQ_INT(f.state, PAWL_COMPLETED);
    STATE_IS(b, "a", PAWL_COMPLETED);
}

CASE(an_engine_without_sql_says_so)
{
    if (b->engine->sql)
        skip("%s has SQL", b->engine->name);
    script(b, "CREATE TABLE whatever (n INTEGER)");
    accept_one(b, "a");
    struct run r = { .sql = "SELECT 1", .apply = false };
    struct finish_item f = item("a", END_ERROR);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    EQ_STATUS(r.status, PAWL_INVALID, &r.err);
    EQ_STR(r.err.text, "mem: has no SQL");
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    EQ_INT(f.state, PAWL_PENDING);
}

CASE(sql_commits_with_the_result)
{
    app(b);
    accept_one(b, "a");
    struct run r = { .sql = "INSERT INTO app VALUES (1)", .apply = true };
    struct finish_item f = item("a", END_RESULT);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    OK(op.status, &op.err);
    OK(r.status, &r.err);
    TRUE(op.handler.committed_sql);
    STATE_IS(b, "a", PAWL_COMPLETED);
    EQ_INT(rows_in_app(b), 1);
}

CASE(sql_is_undone_when_the_handler_says_so)
{
    app(b);
    accept_one(b, "a");
    struct run r = { .sql = "INSERT INTO app VALUES (1)", .apply = false };
    struct finish_item f = item("a", END_REFUSE);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    STATE_IS(b, "a", PAWL_FAILED); /* the finish alone is stored */
    EQ_INT(rows_in_app(b), 0);
}

CASE(sql_is_undone_when_the_lease_is_lost)
{
    app(b);
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    advance(b, 30 * SEC_US);
    sweep(b);
    struct run r = { .sql = "INSERT INTO app VALUES (1)", .apply = true };
    struct finish_item f = item("a", END_RESULT);
    struct op op = handle(b, &r, t, &f);
    EQ_STATUS(op.status, PAWL_LOST_LEASE, &op.err);
    FALSE(op.handler.committed_sql);
    STATE_IS(b, "a", PAWL_PENDING);
    EQ_INT(rows_in_app(b), 0);
}

CASE(sql_is_undone_when_a_send_conflicts)
{
    app(b);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    accept_one(b, "taken");
    struct call_spec other = plan("taken");
    other.input.bytes = BYTES("2");
    struct call_spec send[] = { settled(b, other) };
    struct finish_item f = item("a", END_RESULT);
    f.send = send;
    f.n_send = 1;
    struct run r = { .sql = "INSERT INTO app VALUES (1)", .apply = true };
    struct op op = handle(b, &r, t, &f);
    OK(op.status, &op.err);
    FALSE(op.handler.committed_sql);
    EQ_INT(f.state, PAWL_FAILED);
    STATE_IS(b, "a", PAWL_FAILED);
    EQ_INT(rows_in_app(b), 0); /* a failed call has no effect */
}

/* The finish was stored but its answer was lost; the handler ran again under the same lease. */
CASE(sql_is_undone_when_the_finish_is_a_repeat)
{
    app(b);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    for (int i = 0; i < 2; i++) {
        struct run r = { .sql = "INSERT INTO app VALUES (1)", .apply = true };
        struct finish_item f = item("a", END_RESULT);
        struct op op = handle(b, &r, t, &f);
        OK(op.status, &op.err);
        EQ_INT(f.state, PAWL_COMPLETED);
    }
    EQ_INT(rows_in_app(b), 1);
}

CASE(a_failing_statement_is_the_handlers_to_answer)
{
    app(b);
    accept_one(b, "a");
    struct run r = { .sql = "INSERT INTO nowhere VALUES (1)", .apply = false };
    struct finish_item f = item("a", END_ERROR);
    struct op op = handle(b, &r, claim_n(b, 1), &f);
    NE_INT(r.status, PAWL_OK);
    NE_INT(strlen(r.err.text), 0);
    OK(op.status, &op.err);
    EQ_INT(f.state, PAWL_PENDING);
    EQ_INT(rows_in_app(b), 0);
}

CASE(handler_sql_cannot_end_the_transaction)
{
    app(b);
    const char *ends[] = { "COMMIT", "ROLLBACK", "BEGIN" };
    for (int i = 0; i < 3; i++) {
        char *id = arena_printf(&b->a, "a%d", i);
        accept_one(b, id);
        struct run r = { .sql = ends[i], .apply = false };
        struct finish_item f = item(id, END_REFUSE);
        struct op op = handle(b, &r, claim_n(b, 1), &f);
        NE_INT(r.status, PAWL_OK);
        OK(op.status, &op.err);
        EQ_INT(state_of(b, id), PAWL_FAILED);
    }
}

/* The engines that cannot tell our tables from theirs by rights name all of them. */
CASE(handler_sql_leaves_our_tables_alone)
{
    app(b);
    if (!strstr(b->url, "mysql:") && !strstr(b->url, "sqlite:"))
        skip("the server checks rights, and a node's account has them");
    const char *list =
        strstr(b->url, "mysql:")
            ? "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() "
              "AND table_type = 'BASE TABLE' AND table_name LIKE 'pawl\\_%' ORDER BY 1"
            : "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'pawl_%' "
              "ORDER BY 1";
    char *names = strdup(engine_rows(b->url, list)), *at = names;
    int n = 0;
    for (char *name; (name = strsep(&at, " ,\n"));) {
        if (!*name)
            continue;
        char *id = arena_printf(&b->a, "t%d", n++);
        accept_one(b, id);
        struct run r = { .sql = arena_printf(&b->a, "DELETE FROM %s", name), .apply = false };
        struct finish_item f = item(id, END_REFUSE);
        handle(b, &r, claim_n(b, 1), &f);
        if (r.status == PAWL_OK)
            FAIL("a handler may delete from %s", name);
        EQ_STATUS(r.status, PAWL_INVALID, &r.err);
    }
    TRUE(n > 20);
    free(names);
}
