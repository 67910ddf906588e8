/*
 * api.h - the contract over HTTP: one table of routes, each answering a request with JSON.
 *
 * Everything here runs on the loop thread. Writes are jobs posted to exec and come back by
 * loop_post(); reads run on a few threads by loop_work(); a caller that waits is a waiter in exec's
 * table and costs no thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_API_H
#define API_API_H

#include "base/err.h"
#include "exec/exec.h"
#include "net/http.h"

struct log_record;

struct api;
struct buf;

enum api_role { ROLE_NONE, ROLE_MONITOR, ROLE_APP, ROLE_ADMIN };

/* Borrowed for api_open(); what is kept is copied. */
struct api_conf {
    struct exec *exec;
    struct loop *loop;
    const char *const *tokens; /* "name:role:sha256[:queue,queue]"; n_tokens 0: no tokens,
                                  everything allowed */
    size_t n_tokens;
    const char *const *origins; /* more origins than the server's own */
    size_t n_origins;
    const char *const *hosts; /* more names the Host header may have without tokens */
    size_t n_hosts;
    bool metrics_open;
    bool no_gateway;         /* only what is about this node and the others is answered */
    int64_t lease_us;        /* default of lease_for: 30 s */
    int64_t call_timeout_us; /* default of timeout: 60 s */
    int64_t session_wait_us; /* how long a session's request waits: 120 s */
    size_t input_len_max, batch_len_max;
    /* One record for every admin action: client, method, path, status; NULL: none. */
    void (*audit)(const struct log_record *r, void *ctx);
    void *audit_ctx;
    /* Why it could not take work now, NULL when it can; any thread. */
    const char *(*not_ready)(void *ctx);
    void *ready_ctx;
};

MUST_USE enum pawl_status api_open(const struct api_conf *conf, struct api **out,
                                   struct pawl_err *err);
/* Whose connections and address /metrics and /v1/nodes show; NULL: none. Loop thread, or before it
 * runs; the server must outlive its use. */
void api_serves(struct api *api, const struct http_server *server);
/* http_conf.handler; ctx is the struct api. */
void api_handle(struct http_request *r, void *api);
/* http_conf.body_max: batches and finishes may be large, everything else is one input. */
size_t api_body_max(const struct http_request *r, void *api);
/* http_conf.error_body: the server's own refusals as our JSON. */
struct bytes api_error_body(struct arena *a, int status, const char *text, void *api);
/* New tokens, origins and hosts (SIGHUP); on an error the old ones stay. */
MUST_USE enum pawl_status api_reload(struct api *api, const struct api_conf *conf,
                                     struct pawl_err *err);
/* Stopping: every parked caller is answered with the call as it is, claims that wait get nothing.
 */
void api_stop(struct api *api);
/* Requests that are not over, also those whose client has heard UNKNOWN or has left. Loop thread,
 * or after it has run. */
int64_t api_busy(const struct api *api);
/* When no request is left. */
void api_close(struct api *api);

/* The routes as documents: openapi.json, and doc/http.md. */
void api_print_openapi(struct buf *b);
void api_print_markdown(struct buf *b);

#endif
