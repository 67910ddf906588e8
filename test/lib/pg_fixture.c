/*
 * pg_fixture.c - see pg_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pg_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "feature/all.h"

#define SQL_TEXT_MAX (64 << 10)

static char said[1000];

/* ---- Connections ----------------------------------------------------------------------------- */

static struct store *handle(const struct pg_fixture *r)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = r->url,
                               .schema = r->schema,
                               .retention_us = FIXTURE_RETENTION_US,
                               .remember_us = FIXTURE_REMEMBER_US,
                               .key_pending_max = 100 };
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    return s;
}

PGconn *pgf_connect(const struct pg_fixture *r, const char *user)
{
    const char *const names[] = { "dbname", "user", "options", NULL };
    const char *const values[] = { r->url, user ? user : "pawl", "-c client_min_messages=warning",
                                   NULL };
    PGconn *db = PQconnectdbParams(names, values, 1);
    if (PQstatus(db) != CONNECTION_OK)
        FAIL("no connection as %s: %s", user ? user : "the owner", PQerrorMessage(db));
    return db;
}

void pgf_beside(struct pg_fixture *r, const struct pg_fixture *other, const char *schema)
{
    *r = (struct pg_fixture){ .url = other->url, .schema = schema };
    r->s = handle(r);
    r->db = pgf_connect(r, NULL);
    arena_init(&r->a, 256 << 20);
}

void pgf_open(struct pg_fixture *r, const char *schema)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    pgf_beside(r, &(struct pg_fixture){ .url = db_database(&db_postgres) }, schema);
}

void pgf_open_alone(struct pg_fixture *r, const char *schema)
{
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    db_start_own(&db_postgres);
    pgf_open(r, schema);
}

void pgf_close(struct pg_fixture *r)
{
    store_close(r->s);
    PQfinish(r->db);
    arena_release(&r->a);
}

/* ---- SQL ------------------------------------------------------------------------------------- */

PRINTF_LIKE(2, 0)
static PGresult *execute(PGconn *db, const char *fmt, va_list args)
{
    static char text[SQL_TEXT_MAX];
    int n = vsnprintf(text, sizeof text, fmt, args);
    TRUE(n >= 0 && (size_t)n < sizeof text);
    return PQexec(db, text);
}

static bool fine(const PGresult *r)
{
    return PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK;
}

void sql_run(PGconn *db, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    PGresult *r = execute(db, fmt, args);
    va_end(args);
    if (!fine(r))
        FAIL("%s: %s", fmt, PQerrorMessage(db));
    PQclear(r);
}

PRINTF_LIKE(2, 0)
static const char *ask(PGconn *db, const char *fmt, va_list args)
{
    static char kept[16][4096];
    static unsigned at;
    char *to = kept[at++ % COUNT_OF(kept)];
    PGresult *r = execute(db, fmt, args);
    if (!fine(r))
        FAIL("%s: %s", fmt, PQerrorMessage(db));
    snprintf(to, sizeof kept[0], "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return to;
}

const char *sql_ask(PGconn *db, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *out = ask(db, fmt, args);
    va_end(args);
    return out;
}

int64_t sql_count(PGconn *db, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *out = ask(db, fmt, args);
    va_end(args);
    return strtoll(out, NULL, 10);
}

const char *sql_fails(PGconn *db, const char *fmt, ...)
{
    static char state[6];
    va_list args;
    va_start(args, fmt);
    PGresult *r = execute(db, fmt, args);
    va_end(args);
    if (fine(r))
        FAIL("%s: was done", fmt);
    snprintf(state, sizeof state, "%s", PQresultErrorField(r, PG_DIAG_SQLSTATE));
    snprintf(said, sizeof said, "%s", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY));
    PQclear(r);
    return state;
}

const char *sql_said(void)
{
    return said;
}

/* ---- Operations ------------------------------------------------------------------------------ */

void pgf_do(struct pg_fixture *r, struct op *op)
{
    struct op *v = op;
    op->a = &r->a;
    EQ_STATUS(store_commit(r->s, &v, 1), PAWL_OK, &op->err);
    EQ_STATUS(op->status, PAWL_OK, &op->err);
}

struct call_spec pgf_plan(const char *id)
{
    struct call_spec s;
    call_spec_init(&s);
    s.id = bytes_of(id);
    s.type = BYTES("t");
    return s;
}

struct accepted pgf_accept(struct pg_fixture *r, const struct call_spec *s)
{
    struct call_spec settled = *s;
    OK(call_spec_settle(&r->a, &world_real, &settled, &r->err), &r->err);
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = &settled, .n = 1 } };
    pgf_do(r, &op);
    return op.accept.out[0];
}

struct claim pgf_claim(struct pg_fixture *r, int max)
{
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("node-1"),
                                .boot = BYTES("boot-1"),
                                .max = max,
                                .run_max = 8,
                                .lease_us = 60 * SEC_US } };
    pgf_do(r, &op);
    return op.claim;
}

void pgf_finish(struct pg_fixture *r, struct token token, const char *id, enum ending how)
{
    struct finish_item item = { .id = bytes_of(id), .how = how, .retry_in_us = -1 };
    if (how == END_RESULT)
        item.result = (struct payload){ PAWL_JSON, BYTES("{\"ok\": true}") };
    else
        item.error = BYTES("it broke");
    struct op op = { .kind = OP_FINISH, .finish = { .token = token, .v = &item, .n = 1 } };
    pgf_do(r, &op);
}

struct sweep pgf_sweep(struct pg_fixture *r)
{
    struct op op = { .kind = OP_SWEEP, .sweep = { .max = 1000 } };
    pgf_do(r, &op);
    return op.sweep;
}

struct gc pgf_gc(struct pg_fixture *r)
{
    struct op op = { .kind = OP_GC, .gc.max = 10000 };
    pgf_do(r, &op);
    return op.gc;
}

enum pawl_status pgf_get(struct pg_fixture *r, const char *id, struct call *out)
{
    struct bytes ids[] = { bytes_of(id) };
    struct get g = { .ids = ids, .n = 1, .with = WITH_INPUT | WITH_RESULT };
    OK(store_get(r->s, &r->a, &g, &r->err), &r->err);
    *out = g.out[0];
    return g.found[0];
}
