/*
 * ask.h - one HTTP request being answered.
 *
 *     api_handle -> match (match.h) -> auth_check (auth.h) -> query_read -> route.run
 *     route.run  -> body.h, fields.h -> ask_write, ask_read (ask_io.h) or wait_enter (wait.h)
 *                -> ask_reply, ask_refuse (reply.h)
 *
 * Everything runs on the loop thread, unless a function says otherwise. A struct ask and all that
 * is made on `q->a` live until the one call of reply.h that ends it, and must not be touched after
 * it. Every route ends its ask exactly once, also when the client has gone.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_ASK_H
#define API_ASK_H

#include "api/auth.h"

struct timed_wait;
struct route;

#define ASK_PARAMS_MAX 4 /* `{...}` in one pattern */
#define ASK_QUERY_MAX 16 /* query parameters of one route */

struct value {
    bool given;
    struct bytes text; /* decoded */
    int64_t n;         /* INT, SECONDS (us), TIME (us), BOOL; WORDS: 1 << i for each of `words` */
};

struct ask {
    struct api *api;
    struct http_request *r;
    struct arena *a; /* the request's; loop thread only */
    const struct route *route;
    struct principal who;
    struct bytes path[ASK_PARAMS_MAX]; /* the `{...}` of the pattern, decoded; each a valid name */
    struct value query[ASK_QUERY_MAX]; /* in the order of route->params */
    struct timed_wait *timed;          /* set while it waits (wait.h) */
    unsigned reloads;                  /* api->reloads when its token was checked */
    enum pawl_status revoked;          /* not PAWL_OK: why the token may not ask any more */
    bool only_asks;                    /* it changes nothing, whatever its method: not audited */
};

/* The value of a query parameter of this route, by name; .given false when it was not there. The
 * route's table must have it. */
struct value ask_query(const struct ask *q, const char *name);
/* How long to wait: the parameter `wait`, else the header `Prefer: wait=S`, else dflt_us. */
MUST_USE enum pawl_status ask_wait_us(struct ask *q, int64_t dflt_us, int64_t *out,
                                      struct pawl_err *err);

#endif
