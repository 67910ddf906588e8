/*
 * db_server.c - the tests' own database servers: what suites that break them rely on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "db_driver.h"
#include "engines.h"
#include "fixture.h"

CHECK_PARAMS
{
    engines_add_servers();
}

static struct db_server *begin(void *param)
{
    db_start_own(param);
    return param;
}

/* Committed data survives both kinds of stop, and the server has the same address afterwards. */
TEST(a_server_comes_back_with_what_it_had)
{
    struct db_server *s = begin(param);
    char url[200];
    snprintf(url, sizeof url, "%s", db_database(s));
    int port = s->port;
    db_ask(s, "CREATE TABLE t (n INT); INSERT INTO t VALUES (1);");
    for (int i = 0; i < 2; i++) {
        db_stop(s, i ? DB_KILL : DB_CLEAN);
        EQ_INT(db_try_int(s, "SELECT 1;"), -1);
        db_up(s);
        EQ_INT(db_int(s, "SELECT count(*) FROM t;"), i + 1);
        db_ask(s, "INSERT INTO t VALUES (2);");
    }
    db_restart(s, DB_KILL);
    EQ_INT(db_int(s, "SELECT count(*) FROM t;"), 3);
    EQ_INT(s->port, port);
    TRUE(strcmp(url, db_database(s)) != 0); /* another database */
    EQ_INT(db_try_int(s, "SELECT count(*) FROM t;"), -1);
}

/* A session is killed in its transaction, and the transaction is rolled back. */
TEST(connections_are_cut)
{
    struct db_server *s = begin(param);
    db_database(s);
    db_ask(s, "CREATE TABLE t (n INT);");
    struct db_session *v = db_session_open(s);
    db_session_say(v, "BEGIN; INSERT INTO t VALUES (1);");
    EQ_INT(db_int(s, "SELECT count(*) FROM t;"), 0);
    GE_INT(db_kill_connections(s), 1);  /* the session, and perhaps one that is just ending */
    UNTIL(db_kill_connections(s) == 0); /* it is gone, and its transaction is rolled back */
    EQ_INT(db_int(s, "SELECT count(*) FROM t;"), 0);
    db_session_close(v);
    v = db_session_open(s);
    db_session_say(v, "BEGIN; INSERT INTO t VALUES (1);");
    db_session_say(v, "COMMIT;");
    db_session_close(v);
    EQ_INT(db_int(s, "SELECT count(*) FROM t;"), 1);
}

/* Commits wait for the disk, and the server runs as an unprivileged account. */
TEST(it_is_durable_and_unprivileged)
{
    struct db_server *s = begin(param);
    char path[100], line[300];
    db_database(s);
    if (s == &db_postgres) {
        EQ_STR(db_ask(s, "SHOW fsync;"), "on");
        EQ_STR(db_ask(s, "SHOW synchronous_commit;"), "on");
    } else {
        EQ_INT(db_int(s, "SELECT @@innodb_flush_log_at_trx_commit;"), 1);
        EQ_INT(db_int(s, "SELECT count(*) FROM mysql.user WHERE user = '';"), 0);
    }
    snprintf(path, sizeof path, "/proc/%d/status", s->pid);
    FILE *f = fopen(path, "r");
    int uid = -1;
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "Uid: %d", &uid);
    TRUE(f != NULL);
    fclose(f);
    GT_INT(uid, 0);
}

/* The process has ended, or is a zombie. */
static bool over(pid_t pid)
{
    char path[100], line[300], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "State: %c", &state);
    if (f)
        fclose(f);
    return state == 'Z';
}

/* When its owner is killed the server ends too, and the next server that starts removes the folder.
 */
TEST(a_killed_owner_leaves_nothing_for_long)
{
    struct db_server *s = param;
    int ends[2];
    pid_t server = 0;
    char dir[sizeof s->dir] = "";
    EQ_INT(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        db_start_own(s);
        EQ_INT(write(ends[1], &s->pid, sizeof s->pid), sizeof s->pid);
        EQ_INT(write(ends[1], s->dir, sizeof s->dir), sizeof s->dir);
        pause();
    }
    EQ_INT(read(ends[0], &server, sizeof server), sizeof server);
    EQ_INT(read(ends[0], dir, sizeof dir), sizeof dir);
    EQ_INT(access(dir, F_OK), 0);
    EQ_INT(kill(server, 0), 0);
    kill(pid, SIGKILL);
    EQ_INT(waitpid(pid, NULL, 0), pid);
    UNTIL(over(server));
    db_start_own(s);
    NE_INT(access(dir, F_OK), 0);
    db_stop(s, DB_KILL);
}
