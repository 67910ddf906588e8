/*
 * replica.c - see replica.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "replica.h"

#include <stdio.h>

#include "check.h"
#include "db_driver.h"
#include "fixture.h"

static bool is_pg(const struct db_server *s)
{
    return s->admin == db_postgres.admin;
}

void replica_prepare(struct db_server *primary)
{
    if (is_pg(primary))
        return;
    db_option(primary, "--log-bin=binlog");
    db_option(primary, "--server-id=1");
}

static void copy_pg(const struct db_server *s, struct words *w)
{
    word(w, "%s/pg_basebackup", s->bin);
    word(w, "--host=%s", s->of->dir);
    word(w, "--port=5432");
    word(w, "--username=pawl");
    word(w, "--pgdata=%s", s->data);
    word(w, "--write-recovery-conf");
    word(w, "--checkpoint=fast");
    word(w, "--no-sync");
}

static void follow_maria(struct db_server *primary, struct db_server *replica)
{
    char sql[400];
    db_ask(primary, "CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'repl';"
                    "GRANT REPLICATION SLAVE ON *.* TO repl@'127.0.0.1';");
    snprintf(sql, sizeof sql,
             "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'repl',"
             " MASTER_PASSWORD = 'repl', MASTER_USE_GTID = slave_pos; START SLAVE;",
             primary->port);
    snprintf(replica->database, sizeof replica->database, "%s", replica->admin);
    db_ask(replica, sql);
}

struct db_server *replica_start(struct db_server *primary)
{
    static struct db_server replica;
    replica = *primary;
    replica.of = primary;
    replica.pid = replica.owner = 0;
    replica.n_options = 0;
    replica.first = NULL; /* it is replicated from the primary */
    if (is_pg(primary)) {
        replica.make = copy_pg;
    } else {
        db_option(&replica, "--log-bin=binlog");
        db_option(&replica, "--server-id=2");
        db_option(&replica, "--log-slave-updates");
    }
    db_start_own(&replica);
    if (!is_pg(primary))
        follow_maria(primary, &replica);
    replica_caught_up(primary, &replica);
    snprintf(replica.database, sizeof replica.database, "%s", primary->database);
    return &replica;
}

void replica_caught_up(struct db_server *primary, struct db_server *replica)
{
    char sql[300];
    if (is_pg(primary))
        snprintf(sql, sizeof sql, "SELECT coalesce((pg_last_wal_replay_lsn() >= '%s')::int, 0);",
                 db_ask(primary, "SELECT pg_current_wal_flush_lsn();"));
    else
        snprintf(sql, sizeof sql, "SELECT @@gtid_slave_pos = '%s';",
                 db_ask(primary, "SELECT @@gtid_binlog_pos;"));
    UNTIL(db_try_int(replica, sql) == 1);
}

void replica_promote(struct db_server *replica)
{
    if (is_pg(replica))
        db_ask(replica, "SELECT pg_promote();");
    else
        db_ask(replica, "STOP SLAVE; RESET SLAVE ALL;");
}

const char *replica_url(struct db_server *replica)
{
    static char url[200];
    replica->url(replica, url, sizeof url, replica->database);
    return url;
}
