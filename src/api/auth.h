/*
 * auth.h - who may come in: tokens with roles, and the Origin and Host checks against web pages.
 *
 * The API and the event service share it. Loop thread, unless a function says otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "api/api.h"

/* The client of a request. */
struct principal {
    struct bytes name;          /* stored as `client`; absent without tokens */
    enum api_role role;         /* ADMIN without tokens */
    const struct bytes *queues; /* those it may work; n_queues 0: all. In the request's arena */
    size_t n_queues;
};

/* Bits of route.may. ROLE_ADMIN may do everything and is never named. */
enum {
    MAY_OPEN = 1 << ROLE_NONE, /* needs no token */
    MAY_MONITOR = 1 << ROLE_MONITOR,
    MAY_APP = 1 << ROLE_APP,
};

/* The tokens, origins and hosts of one configuration; immutable. */
struct auth;
/* Read them from conf, and copy what is kept. INVALID names the token line; NO_MEMORY. */
MUST_USE enum pawl_status auth_open(const struct api_conf *conf, struct auth **out,
                                    struct pawl_err *err);
/* Free them; no request uses them after auth_check(). Accepts NULL. */
void auth_close(struct auth *d);
/* INVALID: what is wrong with this line `name:role:sha256[:queues]`. Any thread. */
MUST_USE enum pawl_status auth_check_token(const char *line, struct pawl_err *err);
/* The request's Origin header when the setting `origins` has it: its page may read the answer. Else
 * absent. */
struct bytes auth_origin(const struct auth *d, const struct http_request *r);
/* May this request use a route that has these MAY_ bits? Fills *out with copies on the request's
 * arena. UNAUTHORIZED: no known token; FORBIDDEN: its role, its Origin or its Host; NO_MEMORY. */
MUST_USE enum pawl_status auth_check(const struct auth *d, struct http_request *r, unsigned may,
                                     struct principal *out, struct pawl_err *err);

/* May this principal see calls of this client? Only ROLE_APP is held to its own. */
bool principal_sees(const struct principal *who, struct bytes client);
/* May it claim from this queue? */
bool principal_works(const struct principal *who, struct bytes queue);

#endif
