/*
 * body.h - a request's body as JSON.
 *
 * The loop thread, or the thread that holds the ask (batch.c).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_BODY_H
#define API_BODY_H

#include "api/ask.h"
#include "base/json.h"
#include "model/call.h"

/* Parse the body. An empty one is INVALID unless empty_ok, then *out is NULL. MEDIA: its content
 * type is no JSON; TOO_LARGE; INVALID. */
MUST_USE enum pawl_status body_json(struct ask *q, bool empty_ok, struct json **out,
                                    struct pawl_err *err);
/* Read the body as an object of q->route->body into *out, as fields_read() does. An empty body
 * reads as {}. */
MUST_USE enum pawl_status body_object(struct ask *q, void *out, uint64_t *given,
                                      struct pawl_err *err);
/* The body as one JSON value, byte for byte. An empty body gives no value, or INVALID unless
 * empty_ok. */
MUST_USE enum pawl_status body_value(struct ask *q, bool empty_ok, struct payload *out,
                                     struct pawl_err *err);
/* MEDIA when the body is compressed: nothing here unpacks it. */
MUST_USE enum pawl_status body_plain(const struct http_request *r, struct pawl_err *err);
/* Is the content type one of NDJSON's? */
bool body_is_ndjson(const struct http_request *r);

#endif
