/*
 * standby.c - see standby.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "standby.h"

#include <pthread.h>
#include <stdio.h>

#include "check.h"
#include "db_driver.h"
#include "engines.h"
#include "fixture.h"

static bool is_pg(const struct db_server *s)
{
    return s == &db_postgres;
}

struct db_server *standby_server(const char *param)
{
    struct db_server *s = engine_of(param)->server;
    if (!is_pg(s)) {
        db_option(s, "--log-bin=binlog");
        db_option(s, "--server-id=1");
    }
    db_start_own(s);
    return s;
}

static void set_pg(struct db_server *s, const char *name)
{
    char sql[100];
    snprintf(sql, sizeof sql, "ALTER SYSTEM SET synchronous_standby_names = '%s';", name);
    db_ask(s, sql);
    db_ask(s, "SELECT pg_reload_conf();");
    /* A new session shows the value that the postmaster has read from the file. */
    UNTIL(strcmp(db_ask(s, "SHOW synchronous_standby_names;"), name) == 0);
}

/* A commit that leaves no data, to find out whether commits wait. */
struct probe {
    struct db_server *s;
    pthread_t thread;
    atomic_bool over;
};

#define PROBE "SELECT pg_logical_emit_message(true, 'probe', '')"

static void *commits(void *arg)
{
    struct probe *p = arg;
    char said[2000];
    p->s->say(p->s, p->s->database, PROBE, said, sizeof said);
    atomic_store(&p->over, true);
    return NULL;
}

static int64_t let_probe_go(struct db_server *s)
{
    return db_int(s, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event "
                     "= 'SyncRep' AND query LIKE '%emit_message(true, ''probe''%'");
}

/* Do commits wait? They do only after the checkpointer has read the setting, so it is tried out. */
static bool pg_commits_wait(struct db_server *s)
{
    struct probe p = { .s = s };
    bool waited = false;
    EQ_INT(pthread_create(&p.thread, NULL, commits, &p), 0);
    UNTIL((waited = let_probe_go(s) > 0 || waited, atomic_load(&p.over)));
    pthread_join(p.thread, NULL);
    return waited;
}

void standby_after_sync(struct db_server *s)
{
    if (is_pg(s))
        skip("PostgreSQL shows every session that waits");
    db_ask(s, "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'");
}

void standby_away(struct db_server *s)
{
    if (is_pg(s)) {
        set_pg(s, "nobody");
        UNTIL(pg_commits_wait(s));
    } else
        db_ask(s, "SET GLOBAL rpl_semi_sync_master_timeout = 1000000000;"
                  "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON;"
                  "SET GLOBAL rpl_semi_sync_master_enabled = ON;");
}

void standby_back(struct db_server *s)
{
    if (is_pg(s))
        set_pg(s, "");
    else
        db_ask(s, "SET GLOBAL rpl_semi_sync_master_enabled = OFF;");
}

int standby_waiting(struct db_server *s)
{
    return (int)db_int(s, is_pg(s)
                              ? "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                              : "SELECT COUNT(*) FROM information_schema.processlist "
                                "WHERE state LIKE '%semi-sync ACK%'");
}
