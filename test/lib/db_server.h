/*
 * db_server.h - private throw-away database servers for tests, and a fresh database for each case.
 *
 * A server is made in a folder of its own under /tmp, listens there (MariaDB: also on a free port
 * of 127.0.0.1), runs as an unprivileged user also when the tests run as root, and ends with
 * whoever started it, however that ends. What a killed test left behind is removed by the next. No
 * other server on the machine is looked at.
 *
 * There are two ways to one. db_start(): the server that all programs of one test run share
 * (db_share.c); cases may make databases there and nothing else, and db_database() starts it when
 * nobody has. db_start_own(), in a case: its own, to be stopped, killed and started again.
 * Functions without a result end the case when they cannot do what they say.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DB_SERVER_H
#define DB_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct db_server;
extern struct db_server db_postgres, db_mariadb;

/* Is there one to be started? */
bool db_there(struct db_server *s);
/* "postgres", "mariadb" */
const char *db_name(const struct db_server *s);
/* False: it did not start, and why was printed. Its disk is not waited for: the tests of one
 * process do not cut the power. */
bool db_start(struct db_server *s);
/* As a server is shipped: commits wait for the disk. From the case's first thread, which must
 * outlive it. */
void db_start_own(struct db_server *s);

/* One more word of the command line of a server of the case's own; before it starts, and lives as
 * long as it. */
void db_option(struct db_server *s, const char *option);

/* A new database with nothing in it; its URL, for the process. Without db_start() or
 * db_start_own() before it, on the shared server. */
const char *db_database(struct db_server *s);
/* The same with Pawl's tables in it, where the server can copy a database; else empty. */
const char *db_migrated(struct db_server *s);
/* Remove the one this process made last. */
void db_drop(struct db_server *s);
/* Statements as superuser in the database this process made last; rows as lines, columns apart by
 * tabs, without the last newline. Lives until the next question. */
const char *db_ask(struct db_server *s, const char *sql);
/* The one number that comes back. */
int64_t db_int(struct db_server *s, const char *sql);
/* The same without an opinion, -1 when it could not be asked: the server may be away. */
int64_t db_try_int(struct db_server *s, const char *sql);

/* Does a connection to that database wait for a lock just now? */
bool db_waits(struct db_server *s);

/* ---- Faults, for a server of the case's own ---------------------------------------------------
 */

/* CLEAN: as an administrator stops it, connections cut. KILL: at once, nothing written on the way
 * out; what was committed is found again by recovery. */
enum db_stop { DB_CLEAN, DB_KILL };
void db_stop(struct db_server *s, enum db_stop how);
/* Start it again, on the same socket and port, and wait until it answers. */
void db_up(struct db_server *s);
void db_restart(struct db_server *s, enum db_stop how);
/* End every client's connection; how many there were. */
int db_kill_connections(struct db_server *s);

/* ---- A connection of a person's own, which can hold a transaction open -------------------------
 */

struct db_session;
/* Into the database this process made last. */
struct db_session *db_session_open(struct db_server *s);
/* One line of statements; returns when they are done. */
void db_session_say(struct db_session *v, const char *sql);
/* Hangs up: what is open is rolled back. */
void db_session_close(struct db_session *v);

#endif
