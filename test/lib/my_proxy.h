/*
 * my_proxy.h - a proxy between a test and its MariaDB server that can cut COMMITs, as proxy.h does
 * for PostgreSQL. One per process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MY_PROXY_H
#define MY_PROXY_H

#include "proxy.h"

/* Start the proxy in front of this server. Returns the URL through it, which is valid for the
 * process. */
const char *my_proxy_url(const char *url);
/* Cut the next packet whose text ends with COMMIT; `answers` is how many statements it has, none of
 * which has rows. 0: any number, also with rows. */
void my_proxy_cut_commit(enum proxy_cut how, int answers);
/* Has the cut happened? */
bool my_proxy_was_cut(void);
/* End a HOLD or STUCK. */
void my_proxy_let_go(void);

#endif
