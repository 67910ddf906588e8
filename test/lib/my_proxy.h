/*
 * my_proxy.h - a proxy between a test and its MariaDB whose COMMITs can be cut, as proxy.h has it
 * for PostgreSQL. One a process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MY_PROXY_H
#define MY_PROXY_H

#include "proxy.h"

/* The URL through the proxy, for the process. */
const char *my_proxy_url(const char *url);
/* The next packet whose text ends with COMMIT; `answers` is how many statements it has. */
void my_proxy_cut_commit(enum proxy_cut how, int answers);
bool my_proxy_was_cut(void);
void my_proxy_let_go(void);

#endif
