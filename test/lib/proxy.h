/*
 * proxy.h - a proxy between a test and its PostgreSQL that can be listened to, cut and frozen.
 *
 * A socket in the case's own folder that leads to the server of `url`; threads of the case carry
 * what is said, message by message. One a process.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PROXY_H
#define PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* The URL through the proxy, for the process. */
const char *proxy_url(const char *url);

/* Connections that were made. */
int64_t proxy_connections(void);
/* Those of them that have not ended. */
int proxy_open_now(void);
/* Statements that were sent for running, over all connections, from the beginning. */
int64_t proxy_statements(void);
/* Bytes that were carried, both ways. They are counted before they are passed on, so the count is
 * complete when an answer has arrived. */
int64_t proxy_bytes(void);

/* What happens to the next COMMIT that comes by, once:
 * NEVER  it does not reach the server, both ends are cut;
 * AFTER  it is carried out, and its answer never arrives;
 * HOLD   the client is cut, and the server hears the COMMIT only when proxy_let_go() says so;
 * BEHIND its answer arrives, and the connection ends before the server says that it is ready;
 * STUCK  (MariaDB) all answers before its own arrive, and then nothing: nothing is closed until
 *        proxy_let_go() says so. New connections are as ever. */
enum proxy_cut { PROXY_NEVER = 1, PROXY_AFTER, PROXY_HOLD, PROXY_BEHIND, PROXY_STUCK };
void proxy_cut_commit(enum proxy_cut how);
/* The same for the next statement that begins like this, which is kept. */
void proxy_cut_at(const char *words, enum proxy_cut how);
/* Has it happened? */
bool proxy_was_cut(void);
void proxy_let_go(void);

/* Cut: every connection ends and no new one is made. Frozen: nothing moves, nothing ends; new ones
 * are accepted and hear nothing. */
enum proxy_state { PROXY_UP, PROXY_CUT, PROXY_FROZEN };
void proxy_set(enum proxy_state state);

#endif
