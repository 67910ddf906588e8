/*
 * routes.h - the functions behind the table of routes, and the shapes of their bodies.
 *
 * Each is called once, on the loop thread, with a request whose path, token and query string are
 * checked, and ends it exactly once: now or later, with ask_reply*(), ask_refuse*() or ask_fail*().
 * The contract of each is its row in routes.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

struct ask;
struct shape;

/* ---- submit.c, batch.c, get.c, list.c -------------------------------------------------------- */

/* POST /v1/calls. */
void route_submit(struct ask *q);
/* POST /v1/calls/batch. */
void route_batch(struct ask *q);
/* GET /v1/calls/{id}. */
void route_get(struct ask *q);
/* GET /v1/calls. */
void route_list(struct ask *q);
/* GET /v1/calls/{id}/attempts. */
void route_attempts(struct ask *q);
/* GET /v1/calls/{id}/result. */
void route_result(struct ask *q);

/* ---- control.c, bulk.c ----------------------------------------------------------------------- */

/* POST /v1/calls/{id}/cancel. */
void route_cancel(struct ask *q);
/* POST /v1/calls/{id}/retry. */
void route_retry(struct ask *q);
/* POST /v1/calls/cancel. */
void route_cancel_many(struct ask *q);
/* POST /v1/calls/retry. */
void route_retry_many(struct ask *q);
/* PATCH /v1/calls/{id}. */
void route_patch(struct ask *q);

/* ---- objects.c, sessions.c, keys.c ----------------------------------------------------------- */

/* POST /v1/objects/{type}/{key}/{method}. */
void route_object_call(struct ask *q);
/* GET /v1/objects/{type}/{key}. */
void route_object_get(struct ask *q);
/* PUT /v1/objects/{type}/{key}. */
void route_object_put(struct ask *q);
/* DELETE /v1/objects/{type}/{key}. */
void route_object_delete(struct ask *q);
/* POST /v1/sessions/{session}/requests. */
void route_session(struct ask *q);
/* GET /v1/keys. */
void route_keys(struct ask *q);
/* POST /v1/keys/{key}/unblock. */
void route_unblock(struct ask *q);

/* ---- work.c, finish.c ------------------------------------------------------------------------ */

/* POST /v1/work/claim. */
void route_claim(struct ask *q);
/* POST /v1/work/finish. */
void route_finish(struct ask *q);
/* POST /v1/work/extend. */
void route_extend(struct ask *q);

/* ---- steps.c, workflows.c, workflow_change.c ------------------------------------------------- */

/* POST /v1/work/steps. */
void route_steps(struct ask *q);
/* GET /v1/work/steps. */
void route_steps_page(struct ask *q);
/* GET /v1/workflows. */
void route_workflows(struct ask *q);
/* GET /v1/workflows/{id}. */
void route_workflow(struct ask *q);
/* GET /v1/workflows/{id}/published/{name}. */
void route_published(struct ask *q);
/* POST /v1/workflows/{id}/signals/{name}. */
void route_signal(struct ask *q);
/* POST /v1/workflows/{id}/cancel. */
void route_workflow_cancel(struct ask *q);
/* POST /v1/workflows/{id}/retry. */
void route_workflow_retry(struct ask *q);
/* POST /v1/workflows/{id}/fork. */
void route_workflow_fork(struct ask *q);

/* ---- limits.c -------------------------------------------------------------------------------- */

/* GET /v1/limits. */
void route_limits(struct ask *q);
/* GET /v1/limits/{name}. */
void route_limit_get(struct ask *q);
/* PUT /v1/limits/{name}. */
void route_limit_put(struct ask *q);
/* DELETE /v1/limits/{name}. */
void route_limit_delete(struct ask *q);

/* ---- schedules.c, schedule_preview.c --------------------------------------------------------- */

/* GET /v1/schedules. */
void route_schedules(struct ask *q);
/* GET /v1/schedules/{name}. */
void route_schedule_get(struct ask *q);
/* PUT /v1/schedules/{name}. */
void route_schedule_put(struct ask *q);
/* DELETE /v1/schedules/{name}. */
void route_schedule_delete(struct ask *q);
/* POST /v1/schedules/{name}/pause. */
void route_schedule_pause(struct ask *q);
/* POST /v1/schedules/{name}/resume. */
void route_schedule_resume(struct ask *q);
/* POST /v1/schedules/{name}/run. */
void route_schedule_run(struct ask *q);
/* GET /v1/schedules/{name}/runs. */
void route_schedule_runs(struct ask *q);
/* POST /v1/schedules/preview. */
void route_schedule_preview(struct ask *q);

/* ---- queues.c, nodes.c ----------------------------------------------------------------------- */

/* GET /v1/queues. */
void route_queues(struct ask *q);
/* POST /v1/queues/{queue}/pause. */
void route_pause(struct ask *q);
/* POST /v1/queues/{queue}/resume. */
void route_resume(struct ask *q);
/* GET /v1/nodes. */
void route_nodes(struct ask *q);
/* GET /v1/leaders. */
void route_leaders(struct ask *q);
/* POST /v1/nodes/{node}/drain. */
void route_drain(struct ask *q);
/* POST /v1/nodes/{node}/undrain. */
void route_undrain(struct ask *q);

/* ---- info.c, metrics.c, openapi.c ------------------------------------------------------------ */

/* GET /v1/info. */
void route_info(struct ask *q);
/* GET /metrics: Prometheus text. */
void route_metrics(struct ask *q);
/* GET /healthz: the process is alive. */
void route_healthz(struct ask *q);
/* GET /readyz: can it take work? */
void route_readyz(struct ask *q);
/* GET /openapi.json. */
void route_openapi(struct ask *q);
/* GET /: a page for people. */
void route_home(struct ask *q);
/* GET /favicon.ico: nothing, so that browsers report no error. */
void route_favicon(struct ask *q);

extern const struct shape batch_shape, bulk_shape, patch_shape, unblock_shape;
extern const struct shape preview_shape; /* schedule_preview.c */
extern const struct shape claim_shape, finish_shape, extend_shape, steps_shape;
extern const struct shape workflow_cancel_shape, workflow_retry_shape, workflow_fork_shape;
extern const struct shape any_shape; /* any JSON value; objects.c */

#endif
