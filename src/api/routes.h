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

/* submit.c, batch.c, get.c, list.c */
void route_submit(struct ask *q);
void route_batch(struct ask *q);
void route_get(struct ask *q);
void route_list(struct ask *q);
void route_attempts(struct ask *q);
void route_result(struct ask *q);

/* decide.c, bulk.c */
void route_cancel(struct ask *q);
void route_retry(struct ask *q);
void route_cancel_many(struct ask *q);
void route_retry_many(struct ask *q);
void route_patch(struct ask *q);

/* objects.c, sessions.c, keys.c */
void route_object_call(struct ask *q);
void route_object_get(struct ask *q);
void route_object_put(struct ask *q);
void route_object_delete(struct ask *q);
void route_session(struct ask *q);
void route_keys(struct ask *q);
void route_unblock(struct ask *q);

/* work.c, finish.c */
void route_claim(struct ask *q);
void route_finish(struct ask *q);
void route_extend(struct ask *q);

/* queues.c, nodes.c */
void route_queues(struct ask *q);
void route_pause(struct ask *q);
void route_resume(struct ask *q);
void route_nodes(struct ask *q);
void route_leaders(struct ask *q);
void route_drain(struct ask *q);
void route_undrain(struct ask *q);

/* info.c, metrics.c, openapi.c */
void route_info(struct ask *q);
void route_metrics(struct ask *q);
void route_healthz(struct ask *q);
void route_readyz(struct ask *q);
void route_openapi(struct ask *q);
void route_home(struct ask *q);
void route_favicon(struct ask *q);

extern const struct shape spec_shape, session_shape; /* spec_json.c */
extern const struct shape batch_shape, bulk_shape, patch_shape, unblock_shape;
extern const struct shape claim_shape, finish_shape, extend_shape;
extern const struct shape any_shape; /* any JSON value; objects.c */

#endif
