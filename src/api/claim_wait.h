/*
 * claim_wait.h - claims that wait for work, in lines.
 *
 * Claims that ask for the same queues and types stand in one line. When work may have come, the
 * first of a line looks; each that finds something lets two more look while there is more. So five
 * thousand waiting workers cost one claim when a call arrives, and a burst still wakes all of them
 * within a few commits. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_CLAIM_WAIT_H
#define API_CLAIM_WAIT_H

#include "api/api.h"

struct claiming;
struct claim_wait;

/* Make api->claim_wait and watch for work. NO_MEMORY. */
MUST_USE enum pawl_status claim_wait_open(struct api *api, struct pawl_err *err);
/* No line looks any more; claims that wait are ended by their timed wait. */
void claim_wait_stop(struct api *api);
/* Free it; no claim waits. */
void claim_wait_close(struct api *api);
/* How many claims wait. */
size_t claim_wait_waiting(const struct api *api);

/* Stand in the line for what c wants; it looks at once. False without memory. */
bool line_enter(struct claiming *c);
/* It looked and found nothing: back to its place in the line. next_due_us: when something will be
 * due, by the database's clock; 0: not known. */
void line_back(struct claiming *c, int64_t next_due_us);
/* Leave the line, if it stands in one. `more`: there is more to find, so two others look. */
void line_leave(struct claiming *c, bool more);

#endif
