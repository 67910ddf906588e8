/*
 * match.h - the first steps of api_handle(): from a path to its route, and the query string.
 *
 * Pure except for the request's arena.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_MATCH_H
#define API_MATCH_H

#include "api/ask.h"

enum matched { MATCH_FOUND, MATCH_NONE, MATCH_METHOD };
/* Find the route and set q->route and q->path. MATCH_METHOD: the path exists, and out_allow lists
 * the methods it takes ("GET, PUT"). A path segment that is not a valid name leaves INVALID in err,
 * with MATCH_FOUND. */
enum matched match(struct ask *q, char out_allow[64], struct pawl_err *err);
/* Read the query string against q->route->params, into q->query. INVALID names the parameter. */
MUST_USE enum pawl_status query_read(struct ask *q, struct pawl_err *err);

/* Decode one path segment or query value into `a`; absent when malformed or without memory. `plus`:
 * a + is a space. */
struct bytes percent_decode(struct arena *a, struct bytes text, bool plus);
/* Append one path segment, encoded. */
void percent_add(struct buf *b, struct bytes text);

#endif
