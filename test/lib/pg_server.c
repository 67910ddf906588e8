/*
 * pg_server.c - PostgreSQL as a temporary server: its programs and command lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "db_driver.h"

#define COPY " TEMPLATE " MADE_DATABASE

/* The newest version under /usr/lib/postgresql (Debian), or the programs in PATH. From 15 on a copy
 * by default writes every page into the log; copying the files takes half the time. */
static bool find(struct db_server *s)
{
    for (int version = 30; version >= 14; version--) {
        char initdb[240];
        s->copy = version >= 15 ? COPY " STRATEGY file_copy" : COPY;
        snprintf(s->bin, sizeof s->bin, "/usr/lib/postgresql/%d/bin", version);
        snprintf(initdb, sizeof initdb, "%s/initdb", s->bin);
        if (access(initdb, X_OK) == 0)
            return true;
    }
    snprintf(s->bin, sizeof s->bin, "/usr/bin");
    return access("/usr/bin/initdb", X_OK) == 0;
}

static void make(const struct db_server *s, struct words *w)
{
    word(w, "%s/initdb", s->bin);
    word(w, "--pgdata=%s", s->data);
    word(w, "--username=pawl");
    word(w, "--auth=trust");
    word(w, "--encoding=UTF8");
    word(w, "--locale=C");
    word(w, "--no-sync");
    word(w, "--no-instructions");
    word(w, "--wal-segsize=2"); /* MB: a case's own server copies and fills whole segments */
}

static void serve(const struct db_server *s, struct words *w)
{
    word(w, "%s/postgres", s->bin);
    word(w, "-D");
    word(w, "%s", s->data);
    word(w, "--port=5432"); /* only the name of the socket; it does not listen on the network */
    word(w, "--listen_addresses=");
    word(w, "--unix_socket_directories=%s", s->dir);
    word(w, "--unix_socket_permissions=0777");
    word(w, "--fsync=%s", s->fast ? "off" : "on");
    word(w, "--autovacuum=%s", s->fast ? "off" : "on");
    word(w, "--max_connections=300");
    word(w, "--shared_buffers=%s", s->fast ? "64MB" : "128MB");
    word(w, "--max_wal_size=%s", s->fast ? "256MB" : "1GB");
}

static void client(const struct db_server *s, struct words *w, const char *database)
{
    word(w, "%s/psql", s->bin);
    word(w, "--no-psqlrc");
    word(w, "--quiet");
    word(w, "--no-align");
    word(w, "--tuples-only");
    word(w, "--field-separator=\t");
    word(w, "--set=ON_ERROR_STOP=1");
    word(w, "--host=%s", s->dir);
    word(w, "--port=5432");
    word(w, "--username=pawl");
    word(w, "--dbname=%s", database);
}

static int say(const struct db_server *s, const char *database, const char *sql, char *out,
               size_t size)
{
    char to[300];
    struct rows rows;
    rows_begin(&rows, out, size);
    snprintf(to, sizeof to, "host=%s port=5432 user=pawl dbname=%s connect_timeout=60", s->dir,
             database);
    PGconn *db = PQconnectdb(to);
    bool ok = PQstatus(db) == CONNECTION_OK && PQsendQuery(db, sql);
    for (PGresult *r; ok && (r = PQgetResult(db)); PQclear(r)) {
        ExecStatusType st = PQresultStatus(r);
        ok = st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK || st == PGRES_EMPTY_QUERY;
        for (int i = 0; ok && i < PQntuples(r); i++)
            for (int j = 0; j < PQnfields(r); j++)
                rows_cell(&rows, j == 0, PQgetvalue(r, i, j), (size_t)PQgetlength(r, i, j));
    }
    if (!ok)
        snprintf(out, size, "%s", PQerrorMessage(db));
    PQfinish(db);
    return ok ? 0 : 1;
}

static void url(const struct db_server *s, char *out, size_t size, const char *database)
{
    snprintf(out, size, "postgres://pawl@/%s?host=%s&port=5432", database, s->dir);
}

static bool waits(struct db_server *s)
{
    return db_int(s, "SELECT count(*) FROM pg_stat_activity"
                     " WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0;
}

struct db_server db_postgres = {
    .name = "postgres",
    .users = { "postgres", "nobody" },
    .clean = SIGINT,
    .kill = SIGQUIT,
    .admin = "postgres",
    .cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
           " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    .waits = waits,
    .list = "SELECT datname FROM pg_database;",
    .drop = " WITH (FORCE)",
    .copy = COPY,
    .say = say,
    .find = find,
    .make = make,
    .serve = serve,
    .client = client,
    .url = url,
};
