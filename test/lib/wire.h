/*
 * wire.h - a wire between a test and its PostgreSQL that can be listened to, cut and frozen.
 *
 * A socket in the case's own folder that leads to the server of `url`; threads of the case carry
 * what is said, message by message. One a process.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stdint.h>

/* The URL through the wire, for the process. */
const char *wire_url(const char *url);

/* Connections that were made. */
int64_t wire_connections(void);
/* Those of them that have not ended. */
int wire_open_now(void);
/* Statements that were sent for running, over all connections, from the beginning. */
int64_t wire_statements(void);
/* Bytes that were carried, both ways. They are counted before they are passed on, so the count is
 * complete when an answer has arrived. */
int64_t wire_bytes(void);

/* What happens to the next COMMIT that comes by, once:
 * NEVER  it does not reach the server, both ends are cut;
 * AFTER  it is carried out, and its answer never arrives;
 * HOLD   the client is cut, and the server hears the COMMIT only when wire_let_go() says so;
 * BEHIND its answer arrives, and the connection ends before the server says that it is ready;
 * STUCK  (MariaDB) all answers before its own arrive, and then nothing: nothing is closed until
 *        wire_let_go() says so. New connections are as ever. */
enum wire_cut { WIRE_NEVER = 1, WIRE_AFTER, WIRE_HOLD, WIRE_BEHIND, WIRE_STUCK };
void wire_cut_commit(enum wire_cut how);
/* The same for the next statement that begins like this, which is kept. */
void wire_cut_at(const char *words, enum wire_cut how);
/* Has it happened? */
bool wire_was_cut(void);
void wire_let_go(void);

/* Cut: every connection ends and no new one is made. Frozen: nothing moves, nothing ends; new ones
 * are accepted and hear nothing. */
enum wire_state { WIRE_UP, WIRE_CUT, WIRE_FROZEN };
void wire_set(enum wire_state state);

#endif
