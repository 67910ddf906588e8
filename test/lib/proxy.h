/*
 * proxy.h - a proxy between a test and its PostgreSQL server that can count, cut and freeze
 * traffic.
 *
 * It listens on a socket in the case's own folder; threads of the case forward the traffic message
 * by message. One per process.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PROXY_H
#define PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* Start the proxy in front of this server. Returns the URL through it, which is valid for the
 * process. */
const char *proxy_url(const char *url);

/* Connections made so far. */
int64_t proxy_connections(void);
/* Connections that are open now. */
int proxy_open_now(void);
/* Statements sent for execution so far, over all connections. */
int64_t proxy_statements(void);
/* Bytes forwarded so far in both directions. They are counted before they are forwarded, so the
 * count is complete when an answer has arrived. */
int64_t proxy_bytes(void);

/* What happens to the next COMMIT, once:
 * NEVER  it does not reach the server; both sides are closed;
 * AFTER  the server executes it, but its answer does not arrive;
 * HOLD   the client's side is closed, and the server gets the COMMIT only after proxy_let_go();
 * BEHIND its answer arrives, but the connection ends before the server's ReadyForQuery;
 * STUCK  (MariaDB) the answers before its own arrive, then nothing; nothing is closed until
 *        proxy_let_go(). New connections work normally. */
enum proxy_cut { PROXY_NEVER = 1, PROXY_AFTER, PROXY_HOLD, PROXY_BEHIND, PROXY_STUCK };
/* Cut the next COMMIT this way. */
void proxy_cut_commit(enum proxy_cut how);
/* The same for the next statement that begins with `words`; they must stay valid. */
void proxy_cut_at(const char *words, enum proxy_cut how);
/* Has the cut happened? */
bool proxy_was_cut(void);
/* End a HOLD or STUCK. */
void proxy_let_go(void);

/* CUT: every connection is closed and new ones are refused. FROZEN: nothing is forwarded and
 * nothing is closed; new connections are accepted and get no answer. */
enum proxy_state { PROXY_UP, PROXY_CUT, PROXY_FROZEN };
/* Change the state, for all connections. */
void proxy_set(enum proxy_state state);

#endif
