/*
 * refused.c - a database that refuses every write: /readyz and the log name the reason, and the
 * node becomes ready again by itself when a write succeeds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "db_server.h"
#include "heard.h"
#include "sql_names.h"
#include "web.h"

RUNS_ON(ENGINES_DURABLE)

#define REFUSES "the database refuses writes: "
#define AGAIN "the database stores writes again"
#define CUT "stopping the workers"

/* ---- Making each engine refuse writes -------------------------------------------------------- */

static const struct engine *engine;
static struct db_server *server; /* NULL: it is a file */
static sqlite3 *stranger;

static void stranger_says(const char *sql)
{
    if (sqlite3_exec(stranger, sql, NULL, NULL, NULL) != SQLITE_OK)
        FAIL("%s: %s", sql, sqlite3_errmsg(stranger));
}

/* The URL of the case's database. On MariaDB an account with all rights can write to a read-only
 * server, so there it is an account for this database only. */
static const char *begin(const void *param)
{
    static char url[200];
    setenv("PAWL_CHECK_SCALE", "2", 1); /* REFUSED_WAIT_US is 4 s: no longer than necessary */
    engine = engine_of(param);
    server = engine->kind == ENGINE_SERVER ? engine_own(param) : NULL;
    snprintf(url, sizeof url, "%s", engine_url(param));
    if (!server) {
        EQ_INT(sqlite3_open(strchr(url, ':') + 1, &stranger), SQLITE_OK);
        sqlite3_busy_timeout(stranger, 10000);
    } else if (server == &db_mariadb) {
        char sql[300], rest[150];
        snprintf(rest, sizeof rest, "%s", strchr(url, '@'));
        snprintf(sql, sizeof sql,
                 "CREATE USER app@'127.0.0.1' IDENTIFIED BY 'app'; GRANT ALL ON `%s`.* TO "
                 "app@'127.0.0.1'",
                 strrchr(url, '/') + 1);
        db_ask(server, sql);
        snprintf(url, sizeof url, "mysql://app:app%s", rest);
    }
    heard_begin();
    return url;
}

static void end(void)
{
    heard_end();
    sqlite3_close(stranger);
}

static void refuse(void)
{
    if (!server) {
        stranger_says("BEGIN IMMEDIATE");
    } else if (server == &db_mariadb) {
        db_ask(server, "SET GLOBAL read_only = 1");
    } else {
        db_ask(server, "ALTER SYSTEM SET default_transaction_read_only = on");
        db_ask(server, "SELECT pg_reload_conf()");
    }
}

static void take(void)
{
    if (!server) {
        stranger_says("ROLLBACK");
    } else if (server == &db_mariadb) {
        db_ask(server, "SET GLOBAL read_only = 0");
    } else {
        db_ask(server, "ALTER SYSTEM RESET default_transaction_read_only");
        db_ask(server, "SELECT pg_reload_conf()");
    }
}

/* The database's own message. */
static const char *cause(void)
{
    return !server ? "locked" : server == &db_mariadb ? "read-only" : "read-only transaction";
}

/* Users read what the database says. Names of our statements are not for them. */
static void names_no_statement(const char *text)
{
    for (int i = 0; i < SQL_COUNT; i++)
        if (strchr(sql_name_text[i], '_') && strstr(text, sql_name_text[i]))
            FAIL("\"%s\" names statement %s", text, sql_name_text[i]);
}

/* ---- Writes ---------------------------------------------------------------------------------- */

/* No client submits anything: the node's own writes are enough to notice both changes. */
TEST(readyz_and_the_log_say_that_writes_are_refused, .deadline_s = 120)
{
    struct web w;
    struct pawl *p = fixture_open_as(NULL, (struct pawl_options){ .db = begin(param) });
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    EQ_INT(GET(&w, "/readyz").status, 200);
    refuse();
    UNTIL(GET(&w, "/readyz").status == 503);
    struct web_answer a = GET(&w, "/readyz");
    HAS_STR(AT(a, "reason"), REFUSES);
    HAS_STR(AT(a, "reason"), cause());
    names_no_statement(AT(a, "reason"));
    EQ_INT(GET(&w, "/healthz").status, 200);
    for (int i = 0; i < 3; i++) {
        a = POST(&w, "/v1/calls", "{\"type\":\"echo\"}");
        EQ_INT(a.status, 503);
        HAS_STR(AT(a, "error.message"), cause());
        names_no_statement(AT(a, "error.message"));
    }
    EQ_INT(heard_count(REFUSES), 1);
    HAS_STR(heard_line(REFUSES), cause());
    names_no_statement(heard_line(REFUSES));
    EQ_INT(heard_count(AGAIN), 0);
    take();
    UNTIL(GET(&w, "/readyz").status == 200);
    UNTIL(heard_count(AGAIN) == 1);
    EQ_INT(heard_count(REFUSES), 1);
    EQ_INT(POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    web_end(&w);
    end();
}

/* ---- The heartbeat --------------------------------------------------------------------------- */

static void node_table(const char *from, const char *to)
{
    char sql[200];
    snprintf(sql, sizeof sql, "ALTER TABLE %s%s RENAME TO %s%s", engine->tables, from,
             server == &db_postgres ? "" : engine->tables, to);
    if (server)
        db_ask(server, sql);
    else
        stranger_says(sql);
}

/* Only heartbeats fail, for a reason other than BUSY: the workers stop, and the node is not ready.
 */
TEST(readyz_and_the_log_say_why_no_beat_is_stored, .deadline_s = 120)
{
    struct web w;
    struct pawl *p = fixture_open_as(
        NULL, (struct pawl_options){ .db = begin(param),
                                     .reclaim_interval_us = 1000 * FIXTURE_SEC,
                                     .heartbeat_grace_us = 3 * FIXTURE_SEC * check_scale() });
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    EQ_INT(GET(&w, "/readyz").status, 200);
    node_table("node", "node_away");
    UNTIL(GET(&w, "/readyz").status == 503);
    struct web_answer a = GET(&w, "/readyz");
    HAS_STR(AT(a, "reason"), "heartbeat");
    HAS_STR(AT(a, "reason"), "node"); /* no such table */
    UNTIL(heard_count(CUT) == 1);
    HAS_STR(heard_line(CUT), CUT ": ");
    HAS_STR(heard_line(CUT), " [node_beat]"); /* for a bug report */
    node_table("node_away", "node");
    UNTIL(GET(&w, "/readyz").status == 200);
    EQ_INT(POST(&w, "/v1/calls?wait=30", "{\"type\":\"echo\"}").status, 200);
    web_end(&w);
    end();
}
