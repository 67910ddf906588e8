/*
 * front.h - what another service in this program shares with the API: who may come in, what counts
 * as JSON, and errors in the one shape of the contract.
 *
 * Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_FRONT_H
#define API_FRONT_H

#include "api/api.h"

/* ---- Who asks -------------------------------------------------------------------------------- */

struct principal {
    struct bytes name;          /* stored as `client`; absent without tokens */
    enum api_role role;         /* ADMIN without tokens */
    const struct bytes *queues; /* those it may work; n_queues 0: all. Borrowed from the tokens */
    size_t n_queues;
};

/* Bits of route.may. ROLE_ADMIN may everything and is never named. */
enum {
    MAY_OPEN = 1 << ROLE_NONE, /* needs no token */
    MAY_MONITOR = 1 << ROLE_MONITOR,
    MAY_APP = 1 << ROLE_APP,
};

/* Tokens, origins, hosts. */
struct doors;
MUST_USE enum pawl_status doors_open(const struct api_conf *conf, struct doors **out,
                                     struct pawl_err *err);
void doors_close(struct doors *d);
/* INVALID: what is wrong with this line `name:role:sha256[:queues]`. Any thread. */
MUST_USE enum pawl_status doors_check_token(const char *line, struct pawl_err *err);
/* The request's Origin when it is one of `origins`: its page may read the answer. Else absent. */
struct bytes doors_origin(const struct doors *d, const struct http_request *r);
/* Fill *out with copies on the request's arena, or UNAUTHORIZED or FORBIDDEN. `may` is the route's.
 */
MUST_USE enum pawl_status doors_check(const struct doors *d, struct http_request *r, unsigned may,
                                      struct principal *out, struct pawl_err *err);

/* ---- Bodies and errors ----------------------------------------------------------------------- */

/* Is the body's type JSON, missing, or what curl says by itself? */
bool body_is_json(const struct http_request *r);
/* {"error":{...}}; id may be absent. */
void front_add(struct buf *b, const struct pawl_err *err, struct bytes id);
/* Answer with this error. The request is no longer yours. */
void front_refuse(struct http_request *r, const struct pawl_err *err, struct bytes id);

#endif
