/*
 * leave.c - how `pawl serve` stops while a database request is unanswered: with the exit code of
 * what happened, and never by a failed CHECK.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "fleet.h"
#include "server_process.h"
#include "standby.h"

RUNS_ON(ENGINE_SERVER)

/* One node whose next heartbeat is later than the end of the case. */
static void begin(void *param)
{
    fleet_begin(&(struct fleet_conf){
        .db = engine_url(param), .grace_us = 4000 * FIXTURE_SEC, .beat = "1000s" });
    fleet_start(0);
    fleet_ready();
}

static void log_has(const char *path, const char *text)
{
    static char all[64 << 10];
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    HAS_STR(all, text);
}

/* fleet_tend() ends the case when a node ends with status 0 before it was ready. */
TEST(a_start_that_a_stalled_commit_stops_fails_and_says_so, .deadline_s = 200)
{
    struct db_server *server = standby_server(param);
    begin(param);
    standby_away(server);
    fleet_start(1);
    UNTIL((fleet_tend(), fleet_failed_starts() > 0));
    log_has("n1.log", "pawl serve: ");
    log_has("n1.log", "not confirmed");
    standby_back(server);
    fleet_ready();
    fleet_end();
}

/* Reading the archive blocks for longer than a stop takes. */
static void slow_archive(struct db_server *s)
{
    if (s == &db_postgres)
        db_ask(s, "ALTER TABLE pawl.archive RENAME TO stored;"
                  "CREATE FUNCTION pawl.slow() RETURNS SETOF pawl.stored LANGUAGE plpgsql AS "
                  "'BEGIN PERFORM pg_sleep(50); END';"
                  "CREATE VIEW pawl.archive AS SELECT * FROM pawl.slow();"
                  "GRANT ALL ON pawl.archive TO PUBLIC;");
    else
        db_ask(s, "RENAME TABLE pawl_archive TO stored; SET sql_mode = '';"
                  "INSERT IGNORE INTO stored (seq, id) VALUES (1, 'x');"
                  "CREATE VIEW pawl_archive AS SELECT * FROM stored WHERE SLEEP(50) = 0;");
}

static int64_t sleeping(struct db_server *s)
{
    return db_int(s, s == &db_postgres
                         ? "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                           " AND datname = current_database()"
                         : "SELECT COUNT(*) FROM information_schema.processlist"
                           " WHERE state = 'User sleep' AND db = DATABASE()");
}

/* No commit waits, but requests are still running when the stop gives up on them: each times out
 * after seconds, and there are more of them than reader threads. */
TEST(requests_that_the_database_does_not_answer_are_left_behind, .deadline_s = 200)
{
    struct server_client client;
    struct db_server *server = engine_of(param)->server;
    begin(param);
    slow_archive(server);
    server_client_init(&client, 1);
    for (int i = 0; i < 16; i++)
        server_client_abandon_at(&client, fleet_port(0), "/v1/calls/x?archived=true", NULL);
    UNTIL(sleeping(server) >= 4);
    fleet_ask_to_stop(0);
    UNTIL(fleet_has_stopped(0)); /* with status 0 */
    log_has("n0.log", "leaving while the database has not answered");
    server_client_release(&client);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node"), 0); /* it has stopped */
}
