/*
 * routes.c - the table of routes (route.h): matched by match.c, printed by openapi.c and http_md.c.
 *
 * The first match is taken, so a literal segment stands before a `{}` in the same place; the
 * busiest routes come first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/routes.h"

#include "api/ask.h"
#include "api/auth.h"
#include "api/list.h"
#include "api/route.h"
#include "base/limits.h"
#include "model/limit.h"
#include "model/schedule.h"
#include "model/spec_json.h"
#include "model/workflow.h"
#include "model/words.h"

#define ANSWER(code, schema_name, text)                                                            \
    {                                                                                              \
        .status = (code), .about = (text), .schema = (schema_name)                                 \
    }
#define ANSWER_WITH(code, schema_name, header_names, text)                                         \
    {                                                                                              \
        .status = (code), .about = (text), .schema = (schema_name), .headers = (header_names)      \
    }
#define ANSWER_AS(code, media_type, text)                                                          \
    {                                                                                              \
        .status = (code), .about = (text), .type = (media_type)                                    \
    }
#define ANSWERS(...)                                                                               \
    .answers = (const struct answer[]){ __VA_ARGS__ },                                             \
    .n_answers = COUNT_OF(((const struct answer[]){ __VA_ARGS__ }))
#define PARAMS(v) .params = (v), .n_params = COUNT_OF(v)

#define WAIT_S_MAX (WAIT_MAX_US / SEC_US)
#define SECONDS_PARAM(title, fallback, text)                                                       \
    {                                                                                              \
        .name = (title), .kind = PARAM_SECONDS, .max = WAIT_S_MAX, .dflt = (fallback),             \
        .about = (text)                                                                            \
    }
#define BOOL_PARAM(title, text)                                                                    \
    {                                                                                              \
        .name = (title), .kind = PARAM_BOOL, .dflt = "false", .about = (text)                      \
    }
#define FILTER(title, text)                                                                        \
    {                                                                                              \
        .name = (title), .kind = PARAM_NAME, .about = (text)                                       \
    }
#define LIMIT_PARAM(text)                                                                          \
    {                                                                                              \
        .name = "limit", .kind = PARAM_INT, .min = 1, .max = LIST_MAX, .dflt = "100",              \
        .about = (text)                                                                            \
    }
#define CURSOR_PARAM                                                                               \
    {                                                                                              \
        .name = "cursor", .kind = PARAM_TEXT, .about = "the `next` of the page before"             \
    }

static const struct param wait_params[] = {
    SECONDS_PARAM("wait", "0", "how long to wait for the call's end"),
};
static const struct param get_params[] = {
    SECONDS_PARAM("wait", "0", "how long to wait for the call's end"),
    BOOL_PARAM("archived", "true: the call as the archive has it, with `archived_at`"),
};
static const struct param batch_params[] = {
    BOOL_PARAM("atomic", "all or none; the same as the member of that name"),
};
static const struct param turn_params[] = {
    SECONDS_PARAM("wait", "5", "how long to wait for the key's turn"),
};
static const struct param delete_params[] = {
    SECONDS_PARAM("wait", "5", "how long to wait for the key's turn"),
    BOOL_PARAM("cancel", "cancel the object's pending calls in the same transaction"),
};
static const struct param method_params[] = {
    SECONDS_PARAM("wait", "30", "how long to wait for the call's end"),
};
static const struct param session_params[] = {
    SECONDS_PARAM("wait", "the setting session_wait, 120", "how long to wait for the call's end"),
};
static const struct param keys_params[] = {
    BOOL_PARAM("blocked", "only keys that an ended call blocks"),
    LIMIT_PARAM("keys in one page"),
    CURSOR_PARAM,
};
static const struct param limits_params[] = {
    LIMIT_PARAM("limits in one page"),
    CURSOR_PARAM,
};
static const struct param schedules_params[] = {
    LIMIT_PARAM("schedules in one page, which ends earlier when their inputs are long"),
    CURSOR_PARAM,
};
static const struct param put_schedule_params[] = {
    BOOL_PARAM("dry_run", "check the body and answer what would change; store nothing"),
};
static const struct param runs_params[] = {
    LIMIT_PARAM("runs in one page"),
    CURSOR_PARAM,
};
static const struct param steps_params[] = {
    { .name = "lease", .kind = PARAM_TEXT, .about = "as the claim gave it; needed" },
    FILTER("id", "which call of the lease; needed"),
    { .name = "cursor", .kind = PARAM_TEXT, .about = "the `steps_next` of the page before" },
};
static const struct param workflows_params[] = {
    { .name = "status",
      .kind = PARAM_WORD,
      .words = WORKFLOW_STATUS_WORDS,
      .about = "only runs of this status" },
    FILTER("name", "only runs of this workflow: the type of their calls"),
    LIMIT_PARAM("runs in one page"),
    CURSOR_PARAM,
};
static const struct param published_params[] = {
    SECONDS_PARAM("wait", "0", "how long to wait until it is published"),
};
static const struct param list_params[] = {
    { .name = "status",
      .kind = PARAM_WORD,
      .words = STATE_WORDS,
      .about = "only calls of this status" },
    FILTER("queue", "only calls of this queue"),
    FILTER("type", "only calls of this type"),
    FILTER("method", "only calls of this method"),
    FILTER("key", "only calls of this key"),
    FILTER("parent", "only calls that this call sent"),
    FILTER("caller", "only calls of this caller"),
    { .name = "tag", .kind = PARAM_TEXT, .about = "only calls with this tag, as NAME:VALUE" },
    { .name = "since", .kind = PARAM_TIME, .about = "only calls accepted at this time or later" },
    { .name = "until", .kind = PARAM_TIME, .about = "only calls accepted before this time" },
    LIMIT_PARAM("calls in one page"),
    CURSOR_PARAM,
    { .name = "include",
      .kind = PARAM_WORDS,
      .words = INCLUDE_WORDS,
      .about = "show these as well, each cut at 4 KiB (then `truncated` is true)" },
};
static_assert(COUNT_OF(list_params) <= ASK_QUERY_MAX, "they fit into an ask");

#define LEASE_EXAMPLE "6f1d3c0a9b8e47f2a5c4d3e2f1a0b9c8"

/* clang-format off */
const struct route routes[] = {
    { HTTP_POST, "/v1/calls", route_submit, MAY_APP, .raw_body = true, .body = &submit_shape,
      PARAMS(wait_params), .headers = "Idempotency-Key Prefer", .op = "submitCall", .tag = "calls",
      .summary = "Accept one call; with wait, answer when it has ended",
      .about = "The answer is sent after the call is stored durably. A call with a known id and "
               "the same type, method, key and input is answered with the first one's answer and "
               "`duplicate` true; with another content it is 409 `CONFLICT`. A client that "
               "leaves while it waits changes nothing. With `signal` it starts a workflow, or "
               "signals the one that exists; the same `key` is one signal, with other content it "
               "is 409 `CONFLICT`. A run that has ended is 409 `STATE` unless the key is known.",
      .example = "/v1/calls?wait=10",
      .body_example = "{\"id\":\"order-17-mail\",\"type\":\"mail\",\"method\":\"send\","
                      "\"input\":{\"to\":\"ann@example.org\"},\"max_attempts\":5,\"timeout\":30}",
      ANSWERS(ANSWER_WITH(200, "Call", "Location", "it has ended, whatever its status"),
              ANSWER_WITH(202, "Call", "Location", "accepted and not ended")) },
    { HTTP_GET, "/v1/calls", route_list, MAY_APP | MAY_MONITOR, PARAMS(list_params),
      .op = "listCalls", .tag = "calls", .summary = "Calls, newest first",
      .about = "Every filter that is given must hold. A page looks at a bounded number of rows "
               "and may be short, even empty, while `next` is not null; following `next` until "
               "it is null shows every match once. Inputs and results are there only when "
               "`include` asks for them.",
      .example = "/v1/calls?status=dead_letter&queue=mail&include=input&limit=20",
      ANSWERS(ANSWER(200, "CallList", "one page")) },
    { HTTP_POST, "/v1/calls/batch", route_batch, MAY_APP, .raw_body = true, .ndjson = true,
      .body = &batch_shape, PARAMS(batch_params), .op = "submitBatch", .tag = "calls",
      .summary = "Accept up to 10,000 calls in one commit",
      .about = "Also takes NDJSON, one call a line, with `Content-Type: application/x-ndjson`. "
               "Each call is accepted or refused for itself, and answered in its place; with "
               "`atomic` all are stored or none, and the first refusal is the answer, with its "
               "`index`.",
      .example = "/v1/calls/batch",
      .body_example = "{\"calls\":[{\"type\":\"mail\",\"id\":\"m1\"},{\"type\":\"mail\","
                      "\"id\":\"m2\"}],\"atomic\":true}",
      ANSWERS(ANSWER(200, "BatchAnswer", "in order, each the call without input and result, or why "
                                         "it was refused")) },
    { HTTP_POST, "/v1/calls/retry", route_retry_many, 0, .audited = true, .body = &bulk_shape,
      .op = "retryCalls", .tag = "calls", .summary = "Retry calls that ended without completing",
      .about = "Looks at one page of calls, newest first, and retries each that fits. What has "
               "moved on meanwhile is left alone and not counted. Send `next` as `before` to go "
               "on.",
      .example = "/v1/calls/retry",
      .body_example = "{\"status\":\"dead_letter\",\"queue\":\"mail\"}",
      ANSWERS(ANSWER(200, "Changed", "how many were retried")) },
    { HTTP_POST, "/v1/calls/cancel", route_cancel_many, MAY_APP, .audited = true,
      .body = &bulk_shape, .op = "cancelCalls", .tag = "calls",
      .summary = "Cancel calls that have not ended",
      .about = "Looks at one page of calls, newest first, and cancels each that fits, or asks "
               "its worker to stop. What has ended meanwhile is left alone and not counted. Send "
               "`next` as `before` to go on. An app cancels its own calls only.",
      .example = "/v1/calls/cancel", .body_example = "{\"status\":\"pending\",\"type\":\"mail\"}",
      ANSWERS(ANSWER(200, "Changed", "how many were cancelled or asked to stop")) },
    { HTTP_GET, "/v1/calls/{id}", route_get, MAY_APP | MAY_MONITOR, PARAMS(get_params),
      .headers = "Prefer", .op = "getCall", .tag = "calls",
      .summary = "One call as it is; with wait, when it has ended",
      .about = "404 for an id that is not known, 410 `GONE` for a call that has ended and is no "
               "longer kept: its retention has passed, or it was archived, which the message "
               "says. `archived=true` reads it from the archive, and takes no wait.",
      .example = "/v1/calls/order-17-mail?wait=30",
      ANSWERS(ANSWER(200, "AnyCall", "the call, ended or not")) },
    { HTTP_PATCH, "/v1/calls/{id}", route_patch, 0, .audited = true, .body = &patch_shape,
      .op = "changeCall", .tag = "calls",
      .summary = "Change when, how urgently or where a pending call runs",
      .about = "409 `STATE` when the call is not pending. A call that a node has claimed and not "
               "begun is pending: the answer waits up to 1 s for the node to hand it back, which "
               "a node does after 100 ms; 503 `BUSY` when it does not. With a `run_at` that is "
               "still to come a call with a key leaves the line of its key and joins it again "
               "when it is due: calls behind it do not wait for it.",
      .example = "/v1/calls/order-17-mail",
      .body_example = "{\"priority\":100,\"run_at\":\"2026-11-15T08:00:00Z\"}",
      ANSWERS(ANSWER(200, "Call", "the call")) },
    { HTTP_GET, "/v1/calls/{id}/attempts", route_attempts, MAY_APP | MAY_MONITOR,
      .op = "listAttempts", .tag = "calls",
      .summary = "The attempts that did not succeed, the last 100",
      .about = "Errors, timeouts and attempts whose owner was lost, each with its text and its "
               "times.",
      .example = "/v1/calls/order-17-mail/attempts",
      ANSWERS(ANSWER(200, "Attempts", "oldest first")) },
    { HTTP_GET, "/v1/calls/{id}/result", route_result, MAY_APP, .op = "getResult", .tag = "calls",
      .summary = "The raw result",
      .about = "The bytes the handler returned: JSON, or application/octet-stream. 409 `STATE` "
               "with the error when the call ended without completing.",
      .example = "/v1/calls/order-17-mail/result",
      ANSWERS({ .status = 200, .schema = "Json", .type = "application/octet-stream",
                .about = "the result as the handler gave it" },
              ANSWER(202, "Call", "not ended")) },
    { HTTP_POST, "/v1/calls/{id}/cancel", route_cancel, MAY_APP, .audited = true,
      .op = "cancelCall", .tag = "calls", .summary = "Cancel a call, or ask its worker to stop",
      .about = "A worker that finishes before it notices wins; one that dies makes the call "
               "cancelled. 409 `STATE` when the call has ended otherwise.",
      .example = "/v1/calls/order-17-mail/cancel",
      ANSWERS(ANSWER(200, "Call", "cancelled; it will never run"),
              ANSWER(202, "Call", "its worker was asked to stop")) },
    { HTTP_POST, "/v1/calls/{id}/retry", route_retry, 0, .audited = true, .op = "retryCall",
      .tag = "calls", .summary = "Run a call that ended without completing once more",
      .about = "Failed, dead_letter, cancelled and expired calls are pending again with no "
               "attempts used; the old outcome moves to the history of attempts. 409 `STATE` "
               "otherwise.",
      .example = "/v1/calls/order-17-mail/retry",
      ANSWERS(ANSWER(202, "Call", "pending again, with fresh attempts")) },

    { HTTP_POST, "/v1/work/claim", route_claim, MAY_APP, .body = &claim_shape, .op = "claimWork",
      .tag = "work", .summary = "Take calls to work on, under a lease",
      .about = "At most one call of a key. The lease ends at `until`, and never later than the "
               "timeouts of its calls allow: extend it while the work goes on, finish its calls "
               "before it ends. A client that has gone takes nothing.",
      .example = "/v1/work/claim",
      .body_example = "{\"worker\":\"w1\",\"queues\":[\"mail\"],\"types\":[\"mail\"],\"max\":10,"
                      "\"wait\":20,\"lease_for\":30}",
      ANSWERS(ANSWER(200, "Lease", "best first; nothing in time: `lease` is null")) },
    { HTTP_POST, "/v1/work/finish", route_finish, MAY_APP, .body = &finish_shape,
      .op = "finishWork", .tag = "work", .summary = "End attempts of a lease, all in one commit",
      .about = "All results are stored together or none. Calls of the lease that are not named "
               "may be finished later. The same finish sent again gets the same answer. The first "
               "finish of a call counts: another one under the same lease stores nothing and is "
               "answered with the status that is stored. A lease that is malformed, unknown or "
               "taken back is 409 `LOST_LEASE`, and nothing is stored. With `claim` more work is "
               "taken in the same commit.",
      .example = "/v1/work/finish",
      .body_example = "{\"lease\":\"" LEASE_EXAMPLE "\",\"results\":[{\"id\":\"m1\",\"result\":1},"
                      "{\"id\":\"m2\",\"error\":\"mailbox full\",\"retry_in\":60}],"
                      "\"claim\":{\"worker\":\"w1\",\"queues\":[\"mail\"]}}",
      ANSWERS(ANSWER(200, "Finished", "each call's status now")) },
    { HTTP_POST, "/v1/work/extend", route_extend, MAY_APP, .body = &extend_shape,
      .op = "extendLease", .tag = "work", .summary = "Move a lease's end",
      .about = "Calls that are past their `timeout` end as a timeout and are named in "
               "`timed_out`; the lease goes on with the others. `cancelled` names calls that are "
               "to stop. A lease that is malformed, unknown or over, or of which no call is "
               "left, is 409 `LOST_LEASE`.",
      .example = "/v1/work/extend",
      .body_example = "{\"lease\":\"" LEASE_EXAMPLE "\",\"lease_for\":30}",
      ANSWERS(ANSWER(200, "Extended", "its new end")) },

    { HTTP_POST, "/v1/work/steps", route_steps, MAY_APP, .body = &steps_shape, .op = "storeSteps",
      .tag = "work", .summary = "Store steps of a workflow, and wait",
      .about = "All is stored in one commit, each step once: a step that is stored is answered as "
               "it is stored. A step with `call` makes a child; with `wait` it is settled by the "
               "first to come, and the answer has its result, or `suspended` is true and the lease "
               "has let go of the call. A step that says nothing is recorded as begun. Another "
               "step than the stored one at `no` ends the run as `dead_letter`: 409 `STATE`, which "
               "names both. A lease that does not hold the call is 409 `LOST_LEASE`.",
      .example = "/v1/work/steps",
      .body_example = "{\"lease\":\"" LEASE_EXAMPLE "\",\"id\":\"order-17\",\"steps\":[{\"no\":1,"
                      "\"name\":\"charge\",\"kind\":\"run\",\"result\":{\"paid\":7}},{\"no\":2,"
                      "\"name\":\"shipped\",\"kind\":\"signal\",\"wait\":{\"signals\":"
                      "[\"shipped\"]}}]}",
      ANSWERS(ANSWER(200, "StepsAnswer", "each step as it is stored, or suspended")) },
    { HTTP_GET, "/v1/work/steps", route_steps_page, MAY_APP, PARAMS(steps_params),
      .op = "listSteps", .tag = "work", .summary = "Further steps of a call that was claimed",
      .about = "A claim brings at most 8 MiB of results a call; its `steps_next` is the cursor of "
               "the rest.",
      .example = "/v1/work/steps?lease=" LEASE_EXAMPLE "&id=order-17",
      ANSWERS(ANSWER(200, "StepsPage", "one page")) },

    { HTTP_GET, "/v1/workflows", route_workflows, MAY_APP | MAY_MONITOR, PARAMS(workflows_params),
      .op = "listWorkflows", .tag = "workflows", .summary = "Runs of workflows, newest first",
      .about = "Calls that have taken a step. A page may be short, even empty, while `next` is not "
               "null. A monitor sees no errors.",
      .example = "/v1/workflows?status=waiting&name=order&limit=20",
      ANSWERS(ANSWER(200, "Workflows", "one page")) },
    { HTTP_GET, "/v1/workflows/{id}", route_workflow, MAY_APP | MAY_MONITOR, .op = "getWorkflow",
      .tag = "workflows", .summary = "One run: its steps, signals, children, published values",
      .about = "404 before its first step or signal. `truncated` is true when it has more than is "
               "shown: 8 MiB of results, 8 MiB or 1000 values, 1000 signals, 10000 children. A "
               "monitor sees no input, results, errors and values.",
      .example = "/v1/workflows/order-17",
      ANSWERS(ANSWER(200, "Workflow", "the run")) },
    { HTTP_POST, "/v1/workflows/{id}/signals/{name}", route_signal, MAY_APP, .raw_body = true,
      .body = &any_shape, .headers = "Idempotency-Key", .op = "signalWorkflow", .tag = "workflows",
      .summary = "Send a run a signal",
      .about = "The body is its value; an empty one is null. It is kept until a step consumes it. "
               "The same Idempotency-Key is one signal; keys of consumed ones are known for 24 h, "
               "and at least the last 1000. 409 `STATE` when the run has ended, 429 `FULL` with "
               "10000 signals that no step has consumed.",
      .example = "/v1/workflows/order-17/signals/shipped", .body_example = "{\"parcel\":\"p9\"}",
      ANSWERS(ANSWER(202, "SignalAnswer", "stored; `duplicate`: it was")) },
    { HTTP_GET, "/v1/workflows/{id}/published/{name}", route_published, MAY_APP,
      PARAMS(published_params), .headers = "Prefer", .op = "getPublished", .tag = "workflows",
      .summary = "A value that a run has published",
      .about = "404 when there is none, with wait when it does not come in time.",
      .example = "/v1/workflows/order-17/published/progress?wait=10",
      ANSWERS({ .status = 200, .schema = "Json", .type = "application/octet-stream",
                .about = "the value as the run gave it" }) },
    { HTTP_POST, "/v1/workflows/{id}/cancel", route_workflow_cancel, MAY_APP, .audited = true,
      .body = &workflow_cancel_shape, .op = "cancelWorkflow", .tag = "workflows",
      .summary = "Undo what a run did, and end it",
      .about = "Its steps are undone in reverse, by its own code. Harmless while it undoes. A run "
               "that ended as `failed` or `dead_letter` with steps that are not undone begins to "
               "undo them. With `compensate` false it ends at once, and a pass that runs is "
               "fenced; of a run whose undoing has failed that is the admin's drop.",
      .example = "/v1/workflows/order-17/cancel", .body_example = "{\"compensate\":true}",
      ANSWERS(ANSWER(200, "Call", "it has ended"), ANSWER(202, "Call", "it undoes")) },
    { HTTP_POST, "/v1/workflows/{id}/retry", route_workflow_retry, 0, .audited = true,
      .body = &workflow_retry_shape, .op = "retryWorkflow", .tag = "workflows",
      .summary = "Let a run that has ended go on",
      .about = "With `from` the results of that step and the later ones are forgotten, and signals "
               "that they consumed are unread again. A step that was undone is no longer done: "
               "everything from the first such step on is forgotten, and a later `from` is 409 "
               "`STATE`. A run whose undoing has failed goes on with it.",
      .example = "/v1/workflows/order-17/retry", .body_example = "{\"from\":\"charge\"}",
      ANSWERS(ANSWER(202, "Call", "it goes on")) },
    { HTTP_POST, "/v1/workflows/{id}/fork", route_workflow_fork, 0, .audited = true,
      .body = &workflow_fork_shape, .op = "forkWorkflow", .tag = "workflows",
      .summary = "Begin a new run with the results of another one's first steps",
      .about = "They are final there: the new run never undoes them. It joins the same children.",
      .example = "/v1/workflows/order-17/fork",
      .body_example = "{\"id\":\"order-17b\",\"from\":\"charge\"}",
      ANSWERS(ANSWER_WITH(200, "Call", "Location", "a repeat, and the new run has ended"),
              ANSWER_WITH(202, "Call", "Location", "the new run")) },

    { HTTP_POST, "/v1/objects/{type}/{key}/{method}", route_object_call, MAY_APP, .raw_body = true,
      .body = &any_shape, PARAMS(method_params), .headers = "Idempotency-Key Prefer",
      .op = "callObject", .tag = "objects",
      .summary = "Call a method of an object and wait for its end",
      .about = "A call with this key, attempted once; the body is its input, and an empty body "
               "is null.",
      .example = "/v1/objects/Wallet/alice/add", .body_example = "5",
      ANSWERS(ANSWER_WITH(200, "Call", "Location", "it has ended, whatever its status"),
              ANSWER_WITH(202, "Call", "Location", "accepted and not ended")) },
    { HTTP_GET, "/v1/objects/{type}/{key}", route_object_get, MAY_APP | MAY_MONITOR,
      .op = "getObject", .tag = "objects", .summary = "An object's state; its version is the ETag",
      .about = "A monitor sees no state. 404 when the object has none.",
      .example = "/v1/objects/Wallet/alice",
      ANSWERS(ANSWER_WITH(200, "Object", "ETag", "the object")) },
    { HTTP_PUT, "/v1/objects/{type}/{key}", route_object_put, MAY_APP, .audited = true,
      .raw_body = true, .body = &any_shape, PARAMS(turn_params), .headers = "If-Match Prefer",
      .op = "putObject", .tag = "objects",
      .summary = "Write an object's state between two calls of its key",
      .about = "Waits for the key's turn; 503 `BUSY` when it did not come in time, and nothing "
               "was written. With `If-Match` the version must be one of those named (`*`: any), "
               "else 412 `STALE`.",
      .example = "/v1/objects/Wallet/alice", .body_example = "120",
      ANSWERS(ANSWER_WITH(200, "Object", "ETag", "the object as it was written")) },
    { HTTP_DELETE, "/v1/objects/{type}/{key}", route_object_delete, MAY_APP, .audited = true,
      PARAMS(delete_params), .headers = "If-Match Prefer", .op = "deleteObject", .tag = "objects",
      .summary = "Delete an object's state",
      .about = "409 `STATE` while calls of it are pending, unless `cancel` is true. Waits for "
               "the key's turn and takes `If-Match` as PUT does.",
      .example = "/v1/objects/Wallet/alice?cancel=true",
      ANSWERS(ANSWER(200, "ObjectDeleted", "deleted, and how many calls were cancelled")) },
    { HTTP_POST, "/v1/sessions/{session}/requests", route_session, MAY_APP, .raw_body = true,
      .body = &session_shape, PARAMS(session_params), .headers = "Idempotency-Key Prefer",
      .op = "submitSessionRequest", .tag = "sessions",
      .summary = "Accept a call whose key is the session, and wait for its end",
      .about = "Requests of one session run one at a time, in order. 503 means that it will not "
               "run.",
      .example = "/v1/sessions/s-42/requests?wait=60",
      .body_example = "{\"type\":\"chat\",\"input\":\"hello\",\"on_timeout\":\"cancel\"}",
      ANSWERS(ANSWER_WITH(200, "Call", "Location", "it has ended, whatever its status"),
              ANSWER_WITH(202, "Call", "Location Retry-After",
                          "not ended in time; it stays in line, and `position` says where"),
              ANSWER_WITH(503, "Error", "Retry-After",
                          "it will not run: not stored, or with on_timeout cancelled before it "
                          "began")) },
    { HTTP_GET, "/v1/keys", route_keys, MAY_MONITOR, PARAMS(keys_params), .op = "listKeys",
      .tag = "keys", .summary = "Keys on which something waits, runs or is blocked, by name",
      .about = "A page looks at a bounded number of keys and may be short while `next` is not "
               "null.",
      .example = "/v1/keys?blocked=true",
      ANSWERS(ANSWER(200, "Keys", "one page")) },
    { HTTP_POST, "/v1/keys/{key}/unblock", route_unblock, 0, .audited = true,
      .body = &unblock_shape, .op = "unblockKey", .tag = "keys",
      .summary = "Unblock a key that an ended call blocks",
      .about = "409 `STATE` when the key is not blocked, 404 when the key is unknown.",
      .example = "/v1/keys/alice/unblock", .body_example = "{\"action\":\"retry\"}",
      ANSWERS(ANSWER(200, "Unblocked", "its calls go on")) },

    { HTTP_GET, "/v1/queues", route_queues, MAY_APP | MAY_MONITOR, .op = "listQueues",
      .tag = "queues", .summary = "Queues and what waits in them",
      .about = "Every queue that ever had a call, and every one that is paused. Counting stops "
               "at 100,000 calls a queue; the rates are those of this node.",
      .example = "/v1/queues",
      ANSWERS(ANSWER(200, "Queues", "by name")) },
    { HTTP_POST, "/v1/queues/{queue}/pause", route_pause, 0, .audited = true, .op = "pauseQueue",
      .tag = "queues", .summary = "Stop claiming from a queue; accepting goes on",
      .about = "What runs already is not stopped. A queue need not be known to be paused.",
      .example = "/v1/queues/mail/pause",
      ANSWERS(ANSWER(200, "QueuePaused", "paused")) },
    { HTTP_POST, "/v1/queues/{queue}/resume", route_resume, 0, .audited = true,
      .op = "resumeQueue", .tag = "queues", .summary = "Claim from a queue again",
      .about = "Harmless when it is not paused.",
      .example = "/v1/queues/mail/resume",
      ANSWERS(ANSWER(200, "QueuePaused", "not paused")) },

    { HTTP_GET, "/v1/limits", route_limits, MAY_MONITOR, PARAMS(limits_params),
      .op = "listLimits", .tag = "queues", .summary = "Limits, by name",
      .about = "`running` of each is counted now.",
      .example = "/v1/limits?limit=20", ANSWERS(ANSWER(200, "Limits", "one page")) },
    { HTTP_GET, "/v1/limits/{name}", route_limit_get, MAY_MONITOR, .op = "getLimit",
      .tag = "queues", .summary = "One limit, and how many calls it has running",
      .about = "While it was lowered a moment ago, `running` may be above `max`.",
      .example = "/v1/limits/mailer",
      ANSWERS(ANSWER(200, "Limit", "the limit")) },
    { HTTP_PUT, "/v1/limits/{name}", route_limit_put, 0, .audited = true, .body = &limit_shape,
      .op = "putLimit", .tag = "queues", .summary = "Limit how many calls run or begin",
      .about = "`max` is how many calls may run at once, `rate` how many may begin in the time "
               "`per`; they hold over all nodes, for calls of this queue, of this type, whose key "
               "begins with `key_prefix`. When several limits hold for a call, all must allow it. "
               "A limit binds what begins after the answer, also calls that wait already; calls "
               "that run already count, and are let end. A call that waits shows `waiting_for` "
               "`limit`. When nothing would change, nothing is written.",
      .example = "/v1/limits/mailer", .body_example = "{\"type\":\"mail\",\"max\":3}",
      ANSWERS(ANSWER(200, "Limit", "the limit as it is now"),
              ANSWER(201, "Limit", "there was none of this name")) },
    { HTTP_DELETE, "/v1/limits/{name}", route_limit_delete, 0, .audited = true,
      .op = "deleteLimit", .tag = "queues", .summary = "Delete a limit",
      .about = "Calls that wait for it may begin at once.",
      .example = "/v1/limits/mailer",
      ANSWERS(ANSWER(200, "LimitDeleted", "deleted")) },

    { HTTP_GET, "/v1/schedules", route_schedules, MAY_MONITOR, PARAMS(schedules_params),
      .op = "listSchedules", .tag = "schedules", .summary = "Schedules, by name",
      .about = "A monitor sees no inputs, tags and errors.",
      .example = "/v1/schedules?limit=20", ANSWERS(ANSWER(200, "Schedules", "one page")) },
    { HTTP_POST, "/v1/schedules/preview", route_schedule_preview, MAY_MONITOR,
      .body = &preview_shape, .op = "previewSchedule", .tag = "schedules",
      .summary = "The times of an expression; stores nothing",
      .about = "The first times at `from` or later. `local` is the time in the zone; `dst` says "
               "that this local time does not exist (`gap`: the first instant after the gap "
               "stands for it) or exists twice (`fold`). A schedule of this name is read with GET, "
               "and cannot be previewed.",
      .example = "/v1/schedules/preview",
      .body_example = "{\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\","
                      "\"from\":\"2027-03-27T00:00:00Z\",\"count\":3}",
      ANSWERS(ANSWER(200, "Preview", "in order; fewer than `count` when it ends")) },
    { HTTP_GET, "/v1/schedules/{name}", route_schedule_get, MAY_MONITOR, .op = "getSchedule",
      .tag = "schedules", .summary = "One schedule, with its next ten times and its last run",
      .about = "Its version is the ETag. `lag_seconds` is how late the next tick is; `note` says "
               "what of the expression may surprise. While it is paused `next_at` is null and "
               "`next` is empty. A monitor sees no input, tags and error.",
      .example = "/v1/schedules/nightly-report",
      ANSWERS(ANSWER_WITH(200, "Schedule", "ETag", "the schedule")) },
    { HTTP_PUT, "/v1/schedules/{name}", route_schedule_put, 0, .audited = true, .raw_body = true,
      .body = &schedule_shape, PARAMS(put_schedule_params), .headers = "If-Match If-None-Match",
      .op = "putSchedule",
      .tag = "schedules", .summary = "Store a schedule",
      .about = "The call is submitted at each time of the schedule, as `cron:NAME@TIME`, in the "
               "transaction that moves the schedule on: exactly once, or not at all and recorded. "
               "A new or changed schedule never looks back. When nothing would change, nothing is "
               "written and the version stays. Without `paused` a stored schedule stays paused or "
               "not; the body `{\"paused\":true}` alone is pause, `{\"paused\":false}` resume. "
               "An expression that can never fire is 400, as is `at` without a time to come; an "
               "error of an expression quotes the text and says its column. With `If-Match` the "
               "version must be one of those named (`*`: any), with `If-None-Match: *` there must "
               "be none, else 412 `STALE`.",
      .example = "/v1/schedules/nightly-report",
      .body_example = "{\"cron\":\"0 3 * * 1-5\",\"zone\":\"Europe/Berlin\","
                      "\"call\":{\"type\":\"report\",\"input\":{\"kind\":\"daily\"}}}",
      ANSWERS(ANSWER_WITH(200, "PutSchedule", "ETag",
                          "stored, or as it was; with dry_run what would change"),
              ANSWER_WITH(201, "Schedule", "ETag Location", "stored; there was none")) },
    { HTTP_DELETE, "/v1/schedules/{name}", route_schedule_delete, 0, .audited = true,
      .headers = "If-Match", .op = "deleteSchedule", .tag = "schedules",
      .summary = "Delete a schedule",
      .about = "Calls that it has submitted stay, and its runs as long as they are kept. After the "
               "answer none of its ticks is submitted.",
      .example = "/v1/schedules/nightly-report",
      ANSWERS(ANSWER(200, "ScheduleDeleted", "deleted")) },
    { HTTP_POST, "/v1/schedules/{name}/pause", route_schedule_pause, 0, .audited = true,
      .headers = "If-Match", .op = "pauseSchedule", .tag = "schedules",
      .summary = "Stop the ticks of a schedule", .about = "Harmless when it is paused.",
      .example = "/v1/schedules/nightly-report/pause",
      ANSWERS(ANSWER_WITH(200, "Schedule", "ETag", "paused")) },
    { HTTP_POST, "/v1/schedules/{name}/resume", route_schedule_resume, 0, .audited = true,
      .headers = "If-Match", .op = "resumeSchedule", .tag = "schedules",
      .summary = "Go on with a schedule",
      .about = "Ticks that were missed meanwhile are treated as after a downtime, by `catch_up`. "
               "Harmless when it is not paused.",
      .example = "/v1/schedules/nightly-report/resume",
      ANSWERS(ANSWER_WITH(200, "Schedule", "ETag", "not paused")) },
    { HTTP_POST, "/v1/schedules/{name}/run", route_schedule_run, 0, .audited = true,
      .headers = "Idempotency-Key", .op = "runSchedule", .tag = "schedules",
      .summary = "Submit the call of a schedule now",
      .about = "Whatever `overlap` says, also while it is paused; the times of the schedule stay. "
               "The id is `cron:NAME@NOW!manual`, or `cron:NAME!KEY` with an Idempotency-Key: a "
               "repeat is the same run.",
      .example = "/v1/schedules/nightly-report/run",
      ANSWERS(ANSWER_WITH(200, "Call", "Location", "a repeat, and the call has ended"),
              ANSWER_WITH(202, "Call", "Location", "submitted and not ended")) },
    { HTTP_GET, "/v1/schedules/{name}/runs", route_schedule_runs, MAY_MONITOR,
      PARAMS(runs_params), .op = "listRuns", .tag = "schedules",
      .summary = "What came of the ticks of a schedule, newest first",
      .about = "`status` is the call's, or `skipped` (`reason` says why), or `missed` (`count` "
               "ticks, of which this is the newest); null when the call is no longer kept. "
               "`late_seconds` is from the scheduled time to the decision. Runs of a deleted "
               "schedule are shown as long as they are kept. A monitor sees no errors.",
      .example = "/v1/schedules/nightly-report/runs?limit=20",
      ANSWERS(ANSWER(200, "Runs", "one page")) },

    { HTTP_GET, "/v1/nodes", route_nodes, MAY_MONITOR, .op = "listNodes", .tag = "cluster",
      .summary = "Processes on this database",
      .about = "Of other nodes what their last heartbeat said, of this one how it is now.",
      .example = "/v1/nodes", ANSWERS(ANSWER(200, "Nodes", "alive and dead, by name")) },
    { HTTP_GET, "/v1/leaders", route_leaders, MAY_MONITOR, .op = "listLeaders", .tag = "cluster",
      .summary = "Which node has which role that only one may have",
      .about = "`node` is null while no node has the role.",
      .example = "/v1/leaders", ANSWERS(ANSWER(200, "Leaders", "one for each role")) },
    { HTTP_POST, "/v1/nodes/{node}/drain", route_drain, 0, .audited = true, .op = "drainNode",
      .tag = "cluster", .summary = "Stop a node from taking new work",
      .about = "The node reads the request with its next heartbeat. What runs there goes on.",
      .example = "/v1/nodes/node-1/drain", ANSWERS(ANSWER(200, "NodeDrained", "the node")) },
    { HTTP_POST, "/v1/nodes/{node}/undrain", route_undrain, 0, .audited = true,
      .op = "undrainNode", .tag = "cluster", .summary = "Let a drained node take work again",
      .about = "The node reads it with its next heartbeat.",
      .example = "/v1/nodes/node-1/undrain", ANSWERS(ANSWER(200, "NodeDrained", "the node")) },

    { HTTP_GET, "/v1/info", route_info, MAY_APP | MAY_MONITOR, .op = "getInfo", .tag = "server",
      .summary = "Version, engine, limits, time",
      .about = "`now` is the database's clock. Limits are bytes, numbers of calls, or seconds.",
      .example = "/v1/info", ANSWERS(ANSWER(200, "Info", "about this server")) },
    { HTTP_GET, "/metrics", route_metrics, MAY_MONITOR, .op = "getMetrics", .tag = "server",
      .summary = "Figures for Prometheus",
      .about = "Needs the role monitor unless the setting metrics_open is on.",
      .example = "/metrics", ANSWERS(ANSWER_AS(200, "text/plain", "Prometheus text")) },
    { HTTP_GET, "/healthz", route_healthz, MAY_OPEN, .op = "getHealth", .tag = "server",
      .summary = "Is the process alive?", .about = "Asks nothing of the database.",
      .example = "/healthz", ANSWERS(ANSWER(200, "Health", "yes")) },
    { HTTP_GET, "/readyz", route_readyz, MAY_OPEN, .op = "getReadiness", .tag = "server",
      .summary = "Can it take work?",
      .about = "Not while the server stops, the node is drained, replaced or not a gateway, too "
               "many handlers hang, or the database does not answer, does not confirm commits, "
               "refuses writes (with what it says: a full disk, a read-only server), does not "
               "store the node's heartbeat or does not keep up. `reason` says which.",
      .example = "/readyz",
      ANSWERS(ANSWER(200, "Ready", "yes"), ANSWER(503, "Ready", "no, and why")) },
    { HTTP_GET, "/openapi.json", route_openapi, MAY_OPEN, .op = "getOpenapi", .tag = "server",
      .summary = "This contract", .about = "OpenAPI 3.1, printed from the table of routes.",
      .example = "/openapi.json", ANSWERS(ANSWER(200, "Json", "OpenAPI 3.1")) },
    { HTTP_GET, "/", route_home, MAY_OPEN, .op = "getHomePage", .tag = "server",
      .summary = "What is here, for people", .about = "A page with links and one line to try.",
      .example = "/", ANSWERS(ANSWER_AS(200, "text/html", "HTML")) },
    { HTTP_GET, "/favicon.ico", route_favicon, MAY_OPEN, .op = "getFavicon", .tag = "server",
      .summary = "Nothing, for browsers that ask for an icon",
      .about = "There is no icon; 204 keeps browsers from reporting an error.",
      .example = "/favicon.ico", ANSWERS(ANSWER(204, NULL, "nothing")) },
};
/* clang-format on */
const size_t n_routes = COUNT_OF(routes);
