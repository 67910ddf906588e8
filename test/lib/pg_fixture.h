/*
 * pg_fixture.h - what the tests of PostgreSQL's SQL share: a database of their own, plain
 * connections beside the store's, statements as one-liners that end the case unless they do as
 * expected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PG_FIXTURE_H
#define PG_FIXTURE_H

#include <libpq-fe.h>

#include "base/limits.h"
#include "check.h"
#include "db_server.h"
#include "store/store.h"

#define FIXTURE_RETENTION_US (3600 * SEC_US)
#define FIXTURE_REMEMBER_US (7200 * SEC_US)

struct pg_fixture {
    const char *url, *schema;
    struct store *s; /* owned */
    PGconn *db;      /* owned: the schema's owner, in psql */
    struct arena a;
    struct pawl_err err;
    unsigned tokens;
};

/* A new database with this schema in it; NULL: "pawl". Skips without PostgreSQL. */
void pgf_open(struct pg_fixture *r, const char *schema);
/* The same on a server of the case's own, for what a whole server shares: roles. */
void pgf_open_alone(struct pg_fixture *r, const char *schema);
/* Another schema in the database of one that is open. */
void pgf_beside(struct pg_fixture *r, const struct pg_fixture *other, const char *schema);
void pgf_close(struct pg_fixture *r);
/* One more connection; user NULL: the owner. */
PGconn *pgf_connect(const struct pg_fixture *r, const char *user);

/* Statements, "%s" and the like filled in; the text must not be longer than a few pages. */
void sql_run(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first column of the first row; "" when it is null or there is no row. Lives until the 16th
 * call after it. */
const char *sql_ask(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int64_t sql_count(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* It must fail: its SQLSTATE, and its sentence in sql_said(). */
const char *sql_fails(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *sql_said(void);

/* Commit one operation, which must be done. */
void pgf_do(struct pg_fixture *r, struct op *op);
struct accepted pgf_accept(struct pg_fixture *r, const struct call_spec *s);
/* type "t", this id; the rest is default. Settle it when it is complete. */
struct call_spec pgf_plan(const char *id);
/* With a lease of a minute. */
struct claim pgf_claim(struct pg_fixture *r, int max);
void pgf_finish(struct pg_fixture *r, struct token token, const char *id, enum ending how);
struct sweep pgf_sweep(struct pg_fixture *r);
enum pawl_status pgf_get(struct pg_fixture *r, const char *id, struct call *out);

#endif
