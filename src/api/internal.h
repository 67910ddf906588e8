/*
 * internal.h - struct api: the room's own state, one for each HTTP server. Loop thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "api/api.h"
#include "base/buf.h"

struct ask_write;
struct claim_wait;
struct auth;
struct timed_wait;

struct api {
    struct exec *exec; /* borrowed */
    struct loop *loop; /* borrowed */
    const struct world *world;
    bool metrics_open, stopping;
    bool no_gateway;
    unsigned reloads; /* how often api_reload() has changed the tokens */
    int64_t lease_us, call_timeout_us, session_wait_us;
    size_t input_len_max, batch_len_max;
    void (*audit)(const struct log_record *r, void *ctx);
    void *audit_ctx;
    const char *(*not_ready)(void *ctx);
    void *ready_ctx;
    struct claim_wait *claim_wait;      /* owned: the claims that wait (claim_wait.h) */
    const struct http_server *server;   /* borrowed; NULL: not set (api_serves) */
    struct auth *auth;                  /* owned: tokens, origins, hosts (auth.h) */
    struct timed_wait *waits;           /* all requests that wait, linked */
    struct ask_write *turn, **turn_end; /* writes of this turn of the loop, posted at its end */
    struct loop_task turn_task;
    struct buf scratch; /* answers are written here; empty between requests */
    int64_t n_asks;     /* requests not answered yet */
    int64_t started_us; /* world_now at api_open */
};

#endif
