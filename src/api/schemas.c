/*
 * schemas.c - what answers look like (schema.h), for openapi.json and the test that compares every
 * answer with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/schema.h"
#include "model/schedule.h"
#include "model/words.h"
#include "model/workflow.h"

/* clang-format off */
#define CALL_HEAD                                                                                 \
    "id:s seq:i type:s method:s key:s? key_no:i? position:i? queue:s priority:i "                 \
    "status:@CallStatus waiting_for:@WaitingFor? cancel_requested:b "
#define CALL_TAIL                                                                                 \
    "error:s? attempts:i lost:i redrives:i max_attempts:i max_lost:i timeout:n node:s? "          \
    "caller:s? client:s? parent:s? trace_id:s? tags:{s? needs:[s created_at:t run_at:t? "         \
    "claimed_at:t? started_at:t? finished_at:t? expires_at:t? keep_until:t? "                     \
    "schedule:s? scheduled_at:t? duplicate:b"
#define CALL                                                                                      \
    CALL_HEAD "input:@Json input_base64:s? result:@Json result_base64:s? " CALL_TAIL
#define LISTED_CALL                                                                               \
    CALL_HEAD "*input:@Json *input_base64:s? *result:@Json *result_base64:s? " CALL_TAIL          \
    " *truncated:b"
#define WORKFLOW_HEAD                                                                             \
    "id:s workflow_name:s status:@WorkflowStatus current_step:s? waiting_for:@WorkflowWait? "
#define WORKFLOW_TAIL                                                                             \
    "error:s? compensation_status:@CompensationStatus? version:s? trace_id:s? started_at:t? "     \
    "completed_at:t?"
/* clang-format on */

const struct schema_text schemas[] = {
    { .name = "CallStatus", .words = STATE_WORDS },
    { .name = "WaitingFor", .words = "time|retry|key|paused|limit|worker|signal|children|timer" },
    { .name = "AttemptKind", .words = "error|timeout|lost" },
    { .name = "NodeStatus", .words = "joining|active|draining|dead" },
    { .name = "LeaderRole", .words = "maintenance|scheduler" },
    { .name = "UnblockAction", .words = "skip|retry" },
    { .name = "ErrorCode",
      .words = "INVALID|UNAUTHORIZED|FORBIDDEN|NOT_FOUND|METHOD|TIMEOUT|CONFLICT|STATE|LOST_LEASE|"
               "GONE|STALE|TOO_LARGE|MEDIA|FULL|BROKEN|BUSY|UNKNOWN" },
    { .name = "ErrorRetry", .words = "never|later|soon|readback" },
    { .name = "Call",
      .members = CALL,
      .about = "a call, every field there; `started_at` is known once the attempt has ended: "
               "until then `claimed_at` says since when the call is held" },
    { .name = "ArchivedCall",
      .members = CALL " archived_at:t",
      .about = "a call as the archive has it" },
    { .name = "AnyCall", .any = "Call|ArchivedCall" },
    { .name = "ListedCall",
      .members = LISTED_CALL,
      .about = "a call in a list: without what was not asked for" },
    { .name = "CallList", .members = "calls:[@ListedCall next:s?" },
    { .name = "RefusedCall", .members = "id:s? error:@ErrorBody" },
    { .name = "BatchItem", .any = "ListedCall|RefusedCall" },
    { .name = "BatchAnswer", .members = "calls:[@BatchItem" },
    { .name = "Changed", .members = "changed:i next:s?" },
    { .name = "Attempt",
      .members = "try:i kind:@AttemptKind error:s? node:s? started_at:t? finished_at:t?" },
    { .name = "Attempts", .members = "attempts:[@Attempt" },
    { .name = "Lease", .members = "lease:s? until:t? calls:[@ClaimedCall" },
    { .name = "ClaimedCall",
      .members = CALL " attempt:i state:@Json state_base64:s? state_version:i? "
                      "*steps:[@StoredStep *open_steps:[@StoredStep *steps_next:s? *undoing:b "
                      "*doubt:b",
      .about = "a call to work on: `attempt` is its number, `state` what its object keeps. For a "
               "claim with `steps`: `steps` are those that have ended, `open_steps` those that "
               "have not, `steps_next` the cursor of the rest; `undoing` says that this pass "
               "undoes, because of `error`, and `doubt` that the pass before it was cut off" },
    { .name = "StepKind", .words = "run|sleep|signal|child|join|select|value|undo" },
    { .name = "StepStatus", .words = "running|waiting|retrying|completed|failed|timeout" },
    { .name = "StoredStep",
      .members = "no:i name:s kind:@StepKind status:@StepStatus result:@Json result_base64:s? "
                 "error:s? attempts:i until:t? completed_at:t? *final:b",
      .about =
          "a step as it is stored: the n-th use of a name is `name#n`; `final`: a fork took it "
          "over, and never undoes it" },
    { .name = "StoredSteps", .members = "steps:[@StoredStep" },
    { .name = "Suspended", .members = "suspended:b" },
    { .name = "StepsAnswer", .any = "StoredSteps|Suspended" },
    { .name = "StepsPage", .members = "steps:[@StoredStep open_steps:[@StoredStep steps_next:s?" },
    { .name = "WorkflowStatus", .words = WORKFLOW_STATUS_WORDS },
    { .name = "CompensationStatus", .words = "compensating|compensated|failed" },
    { .name = "WorkflowWait",
      .members = "*signal:s *signals:[s *children:[s *until:t",
      .about = "the first of these to come; `signal` is the first of `signals`" },
    { .name = "ListedWorkflow", .members = WORKFLOW_HEAD WORKFLOW_TAIL },
    { .name = "Workflows", .members = "workflows:[@ListedWorkflow next:s?" },
    { .name = "WorkflowStep",
      .members = "step_name:s no:i kind:@StepKind status:@StepStatus result:@Json "
                 "result_base64:s? error:s? attempts:i undone:b node:s? until:t? started_at:t? "
                 "completed_at:t?" },
    { .name = "WorkflowSignal", .members = "name:s at:t consumed_at:t?" },
    { .name = "Workflow",
      .members =
          WORKFLOW_HEAD "input:@Json input_base64:s? output:@Json output_base64:s? " WORKFLOW_TAIL
                        " published:{@Json steps:[@WorkflowStep "
                        "signals:[@WorkflowSignal children:[s truncated:b",
      .about = "a run with all that is known of it; a published value that is no JSON is "
               "`{\"base64\":...}`" },
    { .name = "SignalAnswer", .members = "id:s name:s duplicate:b" },
    { .name = "Finished", .members = "results:[@FinishedCall until:t? *claim:@Lease" },
    { .name = "FinishedCall", .members = "id:s status:@CallStatus" },
    { .name = "Extended", .members = "until:t? cancelled:[s timed_out:[s" },
    { .name = "Object",
      .members = "type:s key:s state:@Json state_base64:s? version:i updated_at:t pending:i?" },
    { .name = "ObjectDeleted", .members = "type:s key:s cancelled:i" },
    { .name = "Key",
      .members = "key:s pending:i head:s? head_status:@CallStatus? since:t? blocked:b "
                 "waiting_for:@WaitingFor?" },
    { .name = "Keys", .members = "keys:[@Key next:s?" },
    { .name = "Unblocked", .members = "key:s action:@UnblockAction id:s?" },
    { .name = "Queue",
      .members = "queue:s paused:b pending:i due:i processing:i oldest_pending_seconds:n "
                 "accepted_per_second:n ended_per_second:n" },
    { .name = "Queues", .members = "queues:[@Queue" },
    { .name = "QueuePaused", .members = "queue:s paused:b" },
    { .name = "Node",
      .members = "node:s boot:s host:s? address:s? roles:[s? queues:[s? has:[s status:@NodeStatus "
                 "version:s? started_at:t? heartbeat_at:t? slots:i busy:i connections:i? cpu:n? "
                 "memory:i?" },
    { .name = "Nodes", .members = "nodes:[@Node" },
    { .name = "NodeDrained", .members = "node:s status:@NodeStatus" },
    { .name = "Leader",
      .members = "role:@LeaderRole node:s? epoch:i acquired_at:t? lease_until:t?" },
    { .name = "Leaders", .members = "leaders:[@Leader" },
    { .name = "Info",
      .members = "version:s engine:s schema:s node:s boot:s now:t started_at:t limits:{i" },
    { .name = "Health", .members = "alive:b" },
    { .name = "Ready", .members = "ready:b reason:s?" },
    { .name = "CatchUp", .words = CATCH_UP_WORDS },
    { .name = "Overlap", .words = OVERLAP_WORDS },
    { .name = "RunStatus", .words = STATE_WORDS "|skipped|missed" },
    { .name = "Schedule",
      .members = "name:s cron:s? every:n? at:[t? zone:s? call:@TickSpec? catch_up:@CatchUp? "
                 "catch_up_for:n? overlap:@Overlap? jitter:n? starts_at:t? ends_at:t? paused:b "
                 "version:i next_at:t? next:[t last:@Run? waiting_at:t? lag_seconds:n note:s? "
                 "error:s? zone_data:s? created_at:t updated_at:t",
      .about = "a schedule; one of `cron`, `every` and `at` is not null. `waiting_at` is the tick "
               "that waits for the end of the last one's call, `zone_data` the version of the time "
               "zone data with which `next_at` was computed. `error` says why a schedule does "
               "not tick: its stored text, or its zone, cannot be read on this node; what an "
               "unreadable text would say is null" },
    { .name = "Schedules", .members = "schedules:[@Schedule next:s?" },
    { .name = "ScheduleChange", .words = "create|update|none" },
    { .name = "SchedulePlan", .members = "name:s change:@ScheduleChange" },
    { .name = "PutSchedule", .any = "Schedule|SchedulePlan" },
    { .name = "ScheduleDeleted", .members = "name:s deleted:b" },
    { .name = "Limit",
      .members = "name:s queue:s? type:s? key_prefix:s? max:i? rate:i? per:n? burst:i? running:i "
                 "created_at:t updated_at:t",
      .about = "a limit; null among `queue`, `type` and `key_prefix` is any. `running` counts the "
               "calls that have a place of `max`" },
    { .name = "Limits", .members = "limits:[@Limit next:s?" },
    { .name = "LimitDeleted", .members = "name:s deleted:b" },
    { .name = "Run",
      .members = "cron_name:s scheduled_time:t timezone:s? status:@RunStatus? reason:s? count:i "
                 "call:s? node_id:s? started_at:t? completed_at:t? error:s? late_seconds:n" },
    { .name = "Runs", .members = "runs:[@Run next:s?" },
    { .name = "PreviewDst", .words = "gap|fold" },
    { .name = "PreviewTime", .members = "utc:t local:s dst:@PreviewDst?" },
    { .name = "Preview", .members = "times:[@PreviewTime note:s?" },
    { .name = "ErrorBody",
      .members = "code:@ErrorCode message:s id:s? field:s? status:@CallStatus? retry:@ErrorRetry "
                 "*index:i *created_at:t? *finished_at:t? *keep_until:t? *call:@Call",
      .about = "`id` the call, `field` what was wrong in the request, `status` the call's" },
    { .name = "Error", .members = "error:@ErrorBody" },
};
const size_t n_schemas = COUNT_OF(schemas);
