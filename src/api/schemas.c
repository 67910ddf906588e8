/*
 * schemas.c - what answers look like, for openapi.json and the test that holds every answer to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/inside.h"

/* clang-format off */
#define CALL                                                                                      \
    "id:s seq:i type:s method:s key:s? key_no:i? position:i? queue:s priority:i status:s "        \
    "waiting_for:s? cancel_requested:b input:a input_base64:s? result:a result_base64:s? "        \
    "error:s? attempts:i lost:i redrives:i max_attempts:i max_lost:i timeout:n node:s? "          \
    "caller:s? client:s? parent:s? trace_id:s? tags:o? created_at:t run_at:t claimed_at:t? "      \
    "started_at:t? finished_at:t? expires_at:t? keep_until:t? duplicate:b *truncated:b"
/* clang-format on */

const struct schema_text schemas[] = {
    { "Call", CALL },
    { "CallList", "calls:[@Call next:s?" },
    { "BatchAnswer", "calls:[o" },
    { "Changed", "changed:i next:s?" },
    { "Attempt", "try:i kind:s error:s? node:s? started_at:t? finished_at:t?" },
    { "Attempts", "attempts:[@Attempt" },
    { "Lease", "lease:s? until:t? calls:[@ClaimedCall" },
    { "ClaimedCall", CALL " attempt:i state:a state_base64:s? state_version:i?" },
    { "Finished", "results:[@FinishedCall until:t? *claim:@Lease" },
    { "FinishedCall", "id:s status:s" },
    { "Extended", "until:t? cancelled:[s" },
    { "Object", "type:s key:s state:a state_base64:s? version:i updated_at:t pending:i?" },
    { "ObjectDeleted", "type:s key:s cancelled:i" },
    { "Key", "key:s pending:i head:s? head_status:s? since:t? blocked:b waiting_for:s?" },
    { "Keys", "keys:[@Key next:s?" },
    { "Unblocked", "key:s action:s id:s?" },
    { "Queue", "queue:s paused:b pending:i due:i processing:i oldest_pending_seconds:n "
               "accepted_per_second:n ended_per_second:n" },
    { "Queues", "queues:[@Queue" },
    { "QueuePaused", "queue:s paused:b" },
    { "Node", "node:s boot:s host:s? address:s? roles:a queues:a status:s version:s? started_at:t? "
              "heartbeat_at:t? slots:i busy:i connections:i? cpu:n? memory:i?" },
    { "Nodes", "nodes:[@Node" },
    { "NodeDrained", "node:s status:s" },
    { "Leader", "role:s node:s? epoch:i acquired_at:t? lease_until:t?" },
    { "Leaders", "leaders:[@Leader" },
    { "Info", "version:s engine:s schema:s node:s boot:s now:t started_at:t limits:o" },
    { "Health", "alive:b" },
    { "Ready", "ready:b reason:s?" },
    { "ErrorBody", "code:s message:s id:s? field:s? status:s? retry:s *index:i *created_at:t? "
                   "*finished_at:t? *keep_until:t? *call:@Call" },
    { "Error", "error:@ErrorBody" },
};
const size_t n_schemas = COUNT_OF(schemas);
