/*
 * bench_db.c - `pawl bench` on a server that is in use: it measures, changes nothing else and
 * leaves nothing behind, also when it is interrupted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "db_server.h"
#include "engines.h"

RUNS_ON(ENGINE_SERVER)

#define LIST_LEN 65536
#define WAIT_S 60

/* ---- The database in use --------------------------------------------------------------------- */

static bool is_pg(const char *param)
{
    return engine_of(param)->server == &db_postgres;
}

/* The names of all schemas and tables. */
static const char *everything(const char *param)
{
    return engine_rows(
        param, is_pg(param)
                   ? "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg@_%' ESCAPE '@' "
                     "UNION ALL SELECT table_schema || '.' || table_name FROM "
                     "information_schema.tables WHERE table_schema <> 'pg_catalog' ORDER BY 1"
                   : "SELECT TABLE_NAME FROM information_schema.TABLES "
                     "WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1");
}

/* One of the bench's tables, of its first part; "" while there is none. */
static const char *bench_table(const char *param)
{
    return engine_rows(
        param, is_pg(param)
                   ? "SELECT min(table_schema || '.call') FROM information_schema.tables "
                     "WHERE table_schema LIKE 'pawlbench%e' AND table_name = 'call'"
                   : "SELECT COALESCE(MIN(TABLE_NAME), '') FROM information_schema.TABLES "
                     "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'pawlbench%call'");
}

/* Pawl's tables with a call in them, which the bench must not touch. */
static const char *their_pawl(const char *param)
{
    const char *url = engine_url(param);
    struct pawl *p = NULL;
    struct pawl_err err;
    struct pawl_receipt receipt;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = "noop", .id = "theirs" };
    OK(pawl_open(&(struct pawl_options){ PAWL_OPTIONS_INIT, .db = url, .node = "theirs" }, &p,
                 &err),
       &err);
    OK(pawl_submit(p, &spec, 1, 0, &receipt, &err), &err);
    pawl_close(p);
    return url;
}

static void untouched(const char *param, const char *before)
{
    EQ_STR(everything(param), before);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_call"), 1);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_ready"), 1);
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Starts the bench in its own process group, as a shell does; its output goes to the files out and
 * err. */
static pid_t begin(const char *url)
{
    pid_t pid = fork();
    if (pid != 0) {
        setpgid(pid, pid);
        return pid;
    }
    setpgid(0, 0);
    int out = open("out", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    int err = open("err", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (out >= 0 && err >= 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2)
        execl(PAWL_BUILD_DIR "/pawl", "pawl", "bench", "--quick", "--db", url, (char *)NULL);
    _exit(127);
}

static int ended(pid_t pid)
{
    int status = 0;
    EQ_INT(waitpid(pid, &status, 0), pid);
    TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const char *said(const char *path)
{
    static char text[LIST_LEN];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return text;
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Wait until its tables exist and have this many calls. */
static void await_calls(const char *param, int64_t n)
{
    time_t until = time(NULL) + WAIT_S * check_scale();
    for (; time(NULL) < until; nap()) {
        char sql[200];
        const char *table = bench_table(param);
        if (!*table)
            continue;
        snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM %s", table);
        if (db_try_int(engine_of(param)->server, sql) >= n)
            return;
    }
    FAIL("no call of the bench's was seen: %s", said("err"));
}

/* ---- The cases ------------------------------------------------------------------------------- */

TEST(measures_and_leaves_nothing_behind, .deadline_s = 120)
{
    static char before[LIST_LEN];
    const char *url = their_pawl(param);
    snprintf(before, sizeof before, "%s", everything(param));
    int code = ended(begin(url));
    EQ_STR(said("err"), "");
    EQ_INT(code, 0);
    HAS_STR(said("out"), "enqueue, batches of 1,000");
    HAS_STR(said("out"), "drain by workers");
    HAS_STR(said("out"), "latency until the handler ran, p50");
    HAS_STR(said("out"), "HTTP, 64 connections, submit one and wait");
    untouched(param, before);
}

static void interrupted(void *param, int sig, bool group, int64_t calls)
{
    static char before[LIST_LEN];
    const char *url = their_pawl(param);
    snprintf(before, sizeof before, "%s", everything(param));
    pid_t pid = begin(url);
    await_calls(param, calls);
    EQ_INT(kill(group ? -pid : pid, sig), 0);
    int code = ended(pid);
    EQ_STR(said("err"), "");
    EQ_INT(code, 128 + sig);
    EQ_STR(said("out"), "");
    untouched(param, before);
}

/* As a terminal does: SIGINT to the whole process group, in the middle of the work. */
TEST(an_interrupt_in_the_middle_leaves_nothing_behind, .deadline_s = 120)
{
    interrupted(param, SIGINT, true, 3000);
}

TEST(an_end_while_tables_are_made_leaves_nothing_behind, .deadline_s = 120)
{
    interrupted(param, SIGTERM, false, 0);
}

/* A session reads its tables in a transaction that stays open. */
TEST(what_could_not_be_removed_is_said, .deadline_s = 120)
{
    char sql[200], name[100];
    pid_t pid = begin(their_pawl(param));
    await_calls(param, 1);
    snprintf(name, sizeof name, "%s", bench_table(param));
    snprintf(sql, sizeof sql, "BEGIN; SELECT COUNT(*) FROM %s;", name);
    struct db_session *other = db_session_open(engine_of(param)->server);
    db_session_say(other, sql);
    EQ_INT(kill(pid, SIGINT), 0);
    EQ_INT(ended(pid), 128 + SIGINT);
    if (is_pg(param))
        name[strcspn(name, ".")] = 0; /* the name of the schema */
    else
        name[strlen(name) - strlen("_call")] = 0; /* the prefix of the tables */
    HAS_STR(said("err"), name);
    HAS_STR(said("err"), "could not be removed and has to be dropped by hand: ");
    TRUE(*bench_table(param));
    db_session_close(other);
}

TEST(a_user_who_may_not_make_schemas_is_told, .deadline_s = 60)
{
    static char before[LIST_LEN];
    const char *url = their_pawl(param);
    char own[400];
    if (!is_pg(param))
        skip("the others have no schemas to be refused");
    snprintf(before, sizeof before, "%s", everything(param));
    db_ask(&db_postgres, "DROP ROLE IF EXISTS nobody_much; CREATE ROLE nobody_much LOGIN");
    const char *host = strchr(url, '?');
    const char *at = strstr(url, "://"), *name = at ? strchr(at + 3, '/') : NULL;
    TRUE(host && name);
    snprintf(own, sizeof own, "postgres://nobody_much@%.*s%s", (int)(host - name), name, host);
    int code = ended(begin(own));
    db_ask(&db_postgres, "DROP ROLE nobody_much");
    NE_INT(code, 0);
    HAS_STR(said("err"), "permission denied");
    untouched(param, before);
}
