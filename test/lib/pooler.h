/*
 * pooler.h - a private pgbouncer in front of the tests' PostgreSQL server, in transaction pooling
 * mode.
 *
 * It belongs to the process that started it and ends with it. It runs as an unprivileged user even
 * when the tests run as root, listens on an abstract socket, and uses its server connections in
 * turn, so that consecutive transactions get different connections whenever possible.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef POOLER_H
#define POOLER_H

#include <stdbool.h>

/* Is pgbouncer installed? */
bool pooler_there(void);
/* The URL through a pooler to the server of `url`, valid for the process. Ends the case when there
 * is no pgbouncer. */
const char *pooler_url(const char *url);

#endif
