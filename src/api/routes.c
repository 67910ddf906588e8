/*
 * routes.c - the one table of what there is: matched by match.c, printed by openapi.c.
 *
 * A literal segment stands before a `{}` in the same place, for the first that fits is taken; the
 * busiest come first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/inside.h"

#define ANSWERS(...)                                                                               \
    .answers = (const struct answer[]){ __VA_ARGS__ },                                             \
    .n_answers = COUNT_OF(((const struct answer[]){ __VA_ARGS__ }))
#define PARAMS(v) .params = (v), .n_params = COUNT_OF(v)

#define WAIT_S_MAX (WAIT_MAX_US / SEC_US)

static const struct param wait_params[] = {
    { "wait", PARAM_SECONDS, 0, WAIT_S_MAX, "seconds to wait for the call's end" },
};
static const struct param batch_params[] = {
    { "atomic", PARAM_BOOL, 0, 0, "all or none; the same as the member of that name" },
};
static const struct param turn_params[] = {
    { "wait", PARAM_SECONDS, 0, WAIT_S_MAX, "seconds to wait for the key's turn, 5 when missing" },
};
static const struct param delete_params[] = {
    { "wait", PARAM_SECONDS, 0, WAIT_S_MAX, "seconds to wait for the key's turn, 5 when missing" },
    { "cancel", PARAM_BOOL, 0, 0, "cancel the object's pending calls in the same transaction" },
};
static const struct param method_params[] = {
    { "wait", PARAM_SECONDS, 0, WAIT_S_MAX, "seconds to wait for the call's end, 30 when missing" },
};
static const struct param session_params[] = {
    { "wait", PARAM_SECONDS, 0, WAIT_S_MAX,
      "seconds to wait for the call's end, the setting session_wait when missing" },
};
static const struct param keys_params[] = {
    { "blocked", PARAM_BOOL, 0, 0, "only keys that an ended call blocks" },
    { "limit", PARAM_INT, 1, LIST_MAX, "keys in one page, 100 when missing" },
    { "cursor", PARAM_TEXT, 0, 0, "the `next` of the page before" },
};
static const struct param list_params[] = {
    { "status", PARAM_TEXT, 0, 0, "only calls of this status" },
    { "queue", PARAM_NAME, 0, 0, "only calls of this queue" },
    { "type", PARAM_NAME, 0, 0, "only calls of this type" },
    { "method", PARAM_NAME, 0, 0, "only calls of this method" },
    { "key", PARAM_NAME, 0, 0, "only calls of this key" },
    { "parent", PARAM_NAME, 0, 0, "only calls of this parent" },
    { "caller", PARAM_NAME, 0, 0, "only calls of this caller" },
    { "tag", PARAM_TEXT, 0, 0, "only calls with this tag, as name:value" },
    { "since", PARAM_TIME, 0, 0, "only calls made at this time or later" },
    { "until", PARAM_TIME, 0, 0, "only calls made before this time" },
    { "limit", PARAM_INT, 1, LIST_MAX, "calls in one page, 100 when missing" },
    { "cursor", PARAM_TEXT, 0, 0, "the `next` of the page before" },
    { "include", PARAM_TEXT, 0, 0, "input, result or both, separated by a comma" },
};
static_assert(COUNT_OF(list_params) <= ASK_QUERY_MAX, "they fit into an ask");

/* clang-format off */
const struct route routes[] = {
    { HTTP_POST, "/v1/calls", route_submit, MAY_APP, .raw_body = true, .body = &spec_shape,
      PARAMS(wait_params), .summary = "Accept one call; with wait, answer when it has ended",
      ANSWERS({ 200, "it has ended, whatever its status", "Call" },
              { 202, "accepted and not ended", "Call" }) },
    { HTTP_GET, "/v1/calls", route_list, MAY_APP | MAY_MONITOR, PARAMS(list_params),
      .summary = "Calls, newest first",
      ANSWERS({ 200, "one page; it may be short while next is not null", "CallList" }) },
    { HTTP_POST, "/v1/calls/batch", route_batch, MAY_APP, .raw_body = true, .body = &batch_shape,
      PARAMS(batch_params), .summary = "Accept up to 10,000 calls in one commit; also as NDJSON",
      ANSWERS({ 200, "in order, each the call without its payloads, or why not", "BatchAnswer" }) },
    { HTTP_POST, "/v1/calls/retry", route_retry_many, 0, .audited = true, .body = &bulk_shape,
      .summary = "Redrive calls that ended without completing",
      ANSWERS({ 200, "how many were redriven", "Changed" }) },
    { HTTP_POST, "/v1/calls/cancel", route_cancel_many, MAY_APP, .audited = true,
      .body = &bulk_shape,
      .summary = "Cancel calls that have not ended",
      ANSWERS({ 200, "how many were cancelled or asked to stop", "Changed" }) },
    { HTTP_GET, "/v1/calls/{id}", route_get, MAY_APP | MAY_MONITOR, PARAMS(wait_params),
      .summary = "One call as it is; with wait, when it has ended",
      ANSWERS({ 200, "the call", "Call" }) },
    { HTTP_PATCH, "/v1/calls/{id}", route_patch, 0, .audited = true, .body = &patch_shape,
      .summary = "Change when, how urgently or where a pending call runs",
      ANSWERS({ 200, "the call", "Call" }) },
    { HTTP_GET, "/v1/calls/{id}/attempts", route_attempts, MAY_APP | MAY_MONITOR,
      .summary = "The tries that did not succeed, the last 100",
      ANSWERS({ 200, "oldest first", "Attempts" }) },
    { HTTP_GET, "/v1/calls/{id}/result", route_result, MAY_APP,
      .summary = "The raw result",
      ANSWERS({ 200, "the result as the handler gave it", NULL }, { 202, "not ended", "Call" }) },
    { HTTP_POST, "/v1/calls/{id}/cancel", route_cancel, MAY_APP, .audited = true,
      .summary = "Cancel a call, or ask its worker to stop",
      ANSWERS({ 200, "cancelled; it will never run", "Call" },
              { 202, "its worker was asked to stop", "Call" }) },
    { HTTP_POST, "/v1/calls/{id}/retry", route_retry, 0, .audited = true,
      .summary = "Run a call that ended without completing once more",
      ANSWERS({ 202, "pending again, with fresh tries", "Call" }) },

    { HTTP_POST, "/v1/work/claim", route_claim, MAY_APP, .body = &claim_shape,
      .summary = "Take calls to work on, under a lease",
      ANSWERS({ 200, "best first; none in time: no lease", "Lease" }) },
    { HTTP_POST, "/v1/work/finish", route_finish, MAY_APP, .body = &finish_shape,
      .summary = "End tries of a lease, all in one commit",
      ANSWERS({ 200, "each call's status now", "Finished" }) },
    { HTTP_POST, "/v1/work/extend", route_extend, MAY_APP, .body = &extend_shape,
      .summary = "Move a lease's end", ANSWERS({ 200, "its new end", "Extended" }) },

    { HTTP_POST, "/v1/objects/{type}/{key}/{method}", route_object_call, MAY_APP, .raw_body = true,
      .body = &any_shape, PARAMS(method_params),
      .summary = "Call a method of an object and wait for its end; the body is the input, it is "
                 "tried once",
      ANSWERS({ 200, "it has ended, whatever its status", "Call" },
              { 202, "accepted and not ended", "Call" }) },
    { HTTP_GET, "/v1/objects/{type}/{key}", route_object_get, MAY_APP | MAY_MONITOR,
      .summary = "An object's state; its version is the ETag",
      ANSWERS({ 200, "the object; a monitor sees no state", "Object" }) },
    { HTTP_PUT, "/v1/objects/{type}/{key}", route_object_put, MAY_APP, .audited = true,
      .raw_body = true, .body = &any_shape, PARAMS(turn_params),
      .summary = "Write an object's state between two calls of its key; If-Match names the version "
                 "it must have",
      ANSWERS({ 200, "the object as it was written", "Object" }) },
    { HTTP_DELETE, "/v1/objects/{type}/{key}", route_object_delete, MAY_APP, .audited = true,
      PARAMS(delete_params),
      .summary = "Delete an object's state; refused while calls of it are pending, unless they are "
                 "cancelled with it",
      ANSWERS({ 200, "deleted, and how many calls were cancelled", "ObjectDeleted" }) },
    { HTTP_POST, "/v1/sessions/{session}/requests", route_session, MAY_APP, .raw_body = true,
      .body = &session_shape, PARAMS(session_params),
      .summary = "Accept a call whose key is the session, and wait for its end",
      ANSWERS({ 200, "it has ended, whatever its status", "Call" },
              { 202, "not ended in time; it stays in line, and position says where", "Call" },
              { 503, "it will not run: not stored, or with on_timeout cancelled before it began",
                "Error" }) },
    { HTTP_GET, "/v1/keys", route_keys, MAY_MONITOR, PARAMS(keys_params),
      .summary = "Keys on which something waits, runs or is blocked, by name",
      ANSWERS({ 200, "one page; it may be short while next is not null", "Keys" }) },
    { HTTP_POST, "/v1/keys/{key}/unblock", route_unblock, 0, .audited = true,
      .body = &unblock_shape, .summary = "Decide about a key that an ended call blocks",
      ANSWERS({ 200, "its line goes on", "Unblocked" }) },

    { HTTP_GET, "/v1/queues", route_queues, MAY_APP | MAY_MONITOR,
      .summary = "Queues and what waits in them", ANSWERS({ 200, "by name", "Queues" }) },
    { HTTP_POST, "/v1/queues/{queue}/pause", route_pause, 0, .audited = true,
      .summary = "Stop claiming from a queue; accepting goes on",
      ANSWERS({ 200, "paused", "QueuePaused" }) },
    { HTTP_POST, "/v1/queues/{queue}/resume", route_resume, 0, .audited = true,
      .summary = "Claim from it again", ANSWERS({ 200, "not paused", "QueuePaused" }) },

    { HTTP_GET, "/v1/nodes", route_nodes, MAY_MONITOR, .summary = "Processes on this database",
      ANSWERS({ 200, "alive and dead", "Nodes" }) },
    { HTTP_GET, "/v1/leaders", route_leaders, MAY_MONITOR, .summary = "Who leads what",
      ANSWERS({ 200, "one for each role", "Leaders" }) },
    { HTTP_POST, "/v1/nodes/{node}/drain", route_drain, 0, .audited = true,
      .summary = "Have a node begin nothing more", ANSWERS({ 200, "the node", "NodeDrained" }) },
    { HTTP_POST, "/v1/nodes/{node}/undrain", route_undrain, 0, .audited = true,
      .summary = "Have it work again", ANSWERS({ 200, "the node", "NodeDrained" }) },

    { HTTP_GET, "/v1/info", route_info, MAY_APP | MAY_MONITOR,
      .summary = "Version, engine, limits, time",
      ANSWERS({ 200, "about this server", "Info" }) },
    { HTTP_GET, "/metrics", route_metrics, MAY_MONITOR, .summary = "Prometheus text",
      ANSWERS({ 200, "text, not JSON", NULL }) },
    { HTTP_GET, "/healthz", route_healthz, MAY_OPEN, .summary = "Is the process alive?",
      ANSWERS({ 200, "yes", "Health" }) },
    { HTTP_GET, "/readyz", route_readyz, MAY_OPEN, .summary = "Can it take work?",
      ANSWERS({ 200, "yes", "Ready" }, { 503, "no, and why", "Ready" }) },
    { HTTP_GET, "/openapi.json", route_openapi, MAY_OPEN, .summary = "This contract",
      ANSWERS({ 200, "OpenAPI 3.1", NULL }) },
    { HTTP_GET, "/", route_home, MAY_OPEN, .summary = "What is here, for people",
      ANSWERS({ 200, "HTML", NULL }) },
    { HTTP_GET, "/favicon.ico", route_favicon, MAY_OPEN, .summary = "Browsers ask for it",
      ANSWERS({ 204, "nothing", NULL }) },
};
/* clang-format on */
const size_t n_routes = COUNT_OF(routes);
