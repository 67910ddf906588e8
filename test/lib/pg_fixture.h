/*
 * pg_fixture.h - for tests of the SQL on PostgreSQL: a database of their own, plain connections
 * beside the store's, and statements as one-liners that end the case unless they do what is
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
    PGconn *db;      /* owned: a connection of the schema's owner */
    struct arena a;
    struct pawl_err err;
    unsigned tokens;
};

/* Create a database with this schema in it; NULL: "pawl". Skips the case without PostgreSQL. */
void pgf_open(struct pg_fixture *r, const char *schema);
/* The same on a server of the case's own, for what a whole server shares: roles. */
void pgf_open_alone(struct pg_fixture *r, const char *schema);
/* Another schema in the database of `other`. */
void pgf_beside(struct pg_fixture *r, const struct pg_fixture *other, const char *schema);
/* Close the store and the connection. */
void pgf_close(struct pg_fixture *r);
/* One more connection; user NULL: the owner. The caller finishes it. */
PGconn *pgf_connect(const struct pg_fixture *r, const char *user);

/* Run statements, built like printf; the text may be a few pages long. */
void sql_run(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first column of the first row; "" when it is null or there is no row. Valid until the 16th
 * call after it. */
const char *sql_ask(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as a number. */
int64_t sql_count(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Assert that the statement fails. Returns its SQLSTATE; the message is sql_said(). */
const char *sql_fails(PGconn *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The server's message from the last sql_fails(). */
const char *sql_said(void);

/* Commit one operation; ends the case unless it succeeds. */
void pgf_do(struct pg_fixture *r, struct op *op);
/* Accept one call. Returns the store's answer. */
struct accepted pgf_accept(struct pg_fixture *r, const struct call_spec *s);
/* A call of type "t" with this id and defaults otherwise. To be passed to call_spec_settle() when
 * it is complete. */
struct call_spec pgf_plan(const char *id);
/* Claim up to max calls with a lease of one minute. */
struct claim pgf_claim(struct pg_fixture *r, int max);
/* End one call of the lease this way. */
void pgf_finish(struct pg_fixture *r, struct token token, const char *id, enum ending how);
/* Run one sweep: expired calls, timeouts and lost leases. */
struct sweep pgf_sweep(struct pg_fixture *r);
/* Run one gc of up to 10,000 calls. */
struct gc pgf_gc(struct pg_fixture *r);
/* Read one call; `out` lives in the fixture's arena. */
enum pawl_status pgf_get(struct pg_fixture *r, const char *id, struct call *out);

#endif
