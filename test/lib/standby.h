/*
 * standby.h - a database server whose commits wait for a standby that is not there.
 *
 * PostgreSQL: a name in synchronous_standby_names under which nobody connects. MariaDB:
 * semi-synchronous replication without a replica, and no time limit worth the name. Both servers
 * commit as ever before standby_away() and after standby_back(), and let whoever waits go on then.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STANDBY_H
#define STANDBY_H

#include <stdbool.h>

struct db_server;

/* The case's own server, able to wait. */
struct db_server *standby_server(const char *param);
/* MariaDB: commits wait before anybody sees them. Before standby_away(). PostgreSQL: skipped. */
void standby_after_sync(struct db_server *s);
void standby_away(struct db_server *s);
void standby_back(struct db_server *s);
/* How many sessions wait for it just now. */
int standby_waiting(struct db_server *s);

#endif
