/*
 * replica.h - a second database server that replicates the case's own server, and can be promoted.
 *
 * Replication is asynchronous, the default of both servers: after replica_caught_up() the replica
 * has everything. MariaDB replicates by GTID into an empty server. PostgreSQL: a streaming standby,
 * made by pg_basebackup.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef REPLICA_H
#define REPLICA_H

struct db_server;

/* To be called before the case's own server starts: sets the options that replication needs. */
void replica_prepare(struct db_server *primary);
/* Start a replica, after the case's database was created on the primary. */
struct db_server *replica_start(struct db_server *primary);
/* Wait until the replica has everything that the primary has committed. */
void replica_caught_up(struct db_server *primary, struct db_server *replica);
/* Make the replica the primary; the former one must be down. */
void replica_promote(struct db_server *replica);
/* The URL of the case's database on the replica. */
const char *replica_url(struct db_server *replica);

#endif
