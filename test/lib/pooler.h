/*
 * pooler.h - a private pgbouncer in front of the tests' own PostgreSQL, which hands out sessions
 * for one transaction each.
 *
 * It belongs to the process that asked for it and ends with it; it runs as an unprivileged user
 * also when the tests run as root, listens on a socket without a file, and takes its server
 * connections in turn, so that no two transactions in a row meet the same one if it can help it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef POOLER_H
#define POOLER_H

#include <stdbool.h>

/* Is there a pgbouncer to be started? */
bool pooler_there(void);
/* The way through a pooler to where `url` leads, for the process. Ends the case when there is none.
 */
const char *pooler_url(const char *url);

#endif
