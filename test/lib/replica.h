/*
 * replica.h - a second server that follows a case's own one, and takes its place.
 *
 * Asynchronous, as both servers are without further settings: what it has is what
 * replica_caught_up() waited for. MariaDB: by GTID, from an empty server. PostgreSQL: a streaming
 * standby, made by pg_basebackup.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef REPLICA_H
#define REPLICA_H

struct db_server;

/* Before the case's own server starts: what it needs to be followed. */
void replica_prepare(struct db_server *primary);
/* Start one, after the case's database was made on the primary. */
struct db_server *replica_start(struct db_server *primary);
/* Until it has everything that the primary has committed. */
void replica_caught_up(struct db_server *primary, struct db_server *replica);
/* It is the primary now; the former one must be down. */
void replica_promote(struct db_server *replica);
/* The case's database on it. */
const char *replica_url(struct db_server *replica);

#endif
