/*
 * db_server.h - private temporary database servers for tests, and a new database for each case.
 *
 * A server lives in its own folder under /tmp, listens there (MariaDB: also on a free port of
 * 127.0.0.1), runs as an unprivileged user even when the tests run as root, and ends when the
 * process that started it ends for any reason. The next run removes what a killed test left behind.
 * Other servers on the machine are not used.
 *
 * There are two kinds. db_start(): the server that all programs of one test run share (db_share.c);
 * cases may only create databases there, and db_database() starts it if necessary. db_start_own(),
 * in a case: the case's own server, which it may stop, kill and start again. Functions without a
 * result end the case when they cannot do their work.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DB_SERVER_H
#define DB_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct db_server;
extern struct db_server db_postgres, db_mariadb;

/* Is this kind of server installed? */
bool db_there(struct db_server *s);
/* The kind's name: "postgres" or "mariadb". */
const char *db_name(const struct db_server *s);
/* Start the shared server. False: it did not start, and the reason was printed. It does not sync to
 * disk: tests that share it do not simulate a power failure. */
bool db_start(struct db_server *s);
/* Start a server of the case's own with its default durability: commits call fsync. Its files are
 * on disk in the long form, in memory otherwise. To be called from the case's first thread, which
 * must outlive the server. */
void db_start_own(struct db_server *s);

/* Add one argument to the command line of the case's own server, before it starts. `option` must
 * live as long as the server. */
void db_option(struct db_server *s, const char *option);

/* Create an empty database. Returns its URL, valid for the process. On the shared server, unless
 * the case has its own. */
const char *db_database(struct db_server *s);
/* The same with Pawl's tables in it if the server can copy a database; else empty. */
const char *db_migrated(struct db_server *s);
/* Remove the database this process created last. */
void db_drop(struct db_server *s);
/* Run statements as superuser in the database this process created last. Returns the rows as lines,
 * columns separated by tabs, without the last newline. Valid until the next call. */
const char *db_ask(struct db_server *s, const char *sql);
/* The same for a single number. */
int64_t db_int(struct db_server *s, const char *sql);
/* The same, but -1 when the query fails: the server may be down. */
int64_t db_try_int(struct db_server *s, const char *sql);

/* Is a connection to that database waiting for a lock now? */
bool db_waits(struct db_server *s);

/* ---- Faults, for a server of the case's own -------------------------------------------------- */

/* CLEAN: a normal shutdown that closes connections. KILL: SIGKILL; the server recovers committed
 * data from its log. */
enum db_stop { DB_CLEAN, DB_KILL };
/* Stop the server and wait until it has ended. */
void db_stop(struct db_server *s, enum db_stop how);
/* Start the server again on the same socket and port, and wait until it answers. */
void db_up(struct db_server *s);
/* Stop and start the server. */
void db_restart(struct db_server *s, enum db_stop how);
/* Close every client's connection. Returns how many there were. */
int db_kill_connections(struct db_server *s);

/* ---- A session that can hold a transaction open ---------------------------------------------- */

struct db_session;
/* Open a session in the database this process created last. */
struct db_session *db_session_open(struct db_server *s);
/* Run one line of statements; returns when they are done. */
void db_session_say(struct db_session *v, const char *sql);
/* Close the session; an open transaction is rolled back. */
void db_session_close(struct db_session *v);

#endif
