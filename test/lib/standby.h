/*
 * standby.h - a database server whose commits wait for a standby that does not exist.
 *
 * PostgreSQL: synchronous_standby_names has a name that never connects. MariaDB: semi-synchronous
 * replication without a replica and with a very long timeout. Before standby_away() and after
 * standby_back() commits are not delayed; standby_back() also releases waiting commits.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STANDBY_H
#define STANDBY_H

#include <stdbool.h>

struct db_server;

/* Start the case's own server, configured for standby_away(). */
struct db_server *standby_server(const char *param);
/* MariaDB: commits wait before they become visible (AFTER_SYNC). To be called before
 * standby_away(). PostgreSQL: skips the case. */
void standby_after_sync(struct db_server *s);
/* From now on commits wait. Returns when they do. */
void standby_away(struct db_server *s);
/* From now on commits do not wait; waiting ones go on. */
void standby_back(struct db_server *s);
/* How many sessions are waiting for the standby now. */
int standby_waiting(struct db_server *s);

#endif
