/*
 * api.h - the contract over HTTP: one table of routes, each answering a request with JSON.
 *
 * Everything here runs on the loop thread. Writes are jobs posted to exec, and their answers come
 * back by loop_post(); reads run on a few threads by loop_work(); a caller that waits for a call is
 * an entry in exec's table of waiters and costs no thread.
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
    const char *const *origins; /* allowed origins besides the server's own */
    size_t n_origins;
    const char *const *hosts; /* names that the Host header may have when there are no tokens,
                                 besides localhost and addresses */
    size_t n_hosts;
    bool metrics_open;
    bool no_gateway;         /* this node is not a gateway: routes about calls are refused */
    int64_t lease_us;        /* default of lease_for: 30 s */
    int64_t call_timeout_us; /* default of timeout: 60 s */
    int64_t session_wait_us; /* how long a session's request waits: 120 s */
    size_t input_len_max, batch_len_max;
    /* Called once for every admin action: client, method, path, status; NULL: not logged. */
    void (*audit)(const struct log_record *r, void *ctx);
    void *audit_ctx;
    /* Why this server cannot take work now, NULL when it can; for /readyz. Any thread. */
    const char *(*not_ready)(void *ctx);
    void *ready_ctx;
};

/* Open the API over an open exec and a loop, which must outlive it. INVALID: a bad token line;
 * NO_MEMORY. */
MUST_USE enum pawl_status api_open(const struct api_conf *conf, struct api **out,
                                   struct pawl_err *err);
/* Set the HTTP server whose connections and address /metrics and /v1/nodes show; NULL: none. Loop
 * thread, or before it runs. The server must outlive its use. */
void api_serves(struct api *api, const struct http_server *server);
/* The http_conf.handler: answers the request, now or later. ctx is the struct api. Loop thread. */
void api_handle(struct http_request *r, void *api);
/* The http_conf.body_max: the largest body of this path. Batches and finishes may be large, all
 * others carry one input. */
size_t api_body_max(const struct http_request *r, void *api);
/* The http_conf.error_body: the JSON body for a refusal of the HTTP server itself, in `a`; "{}"
 * without memory. */
struct bytes api_error_body(struct arena *a, int status, const char *text, void *api);
/* Use new tokens, origins and hosts (SIGHUP), and refuse the requests that wait and may not be
 * asked any more. On an error the old ones stay. Loop thread. */
MUST_USE enum pawl_status api_reload(struct api *api, const struct api_conf *conf,
                                     struct pawl_err *err);
/* The server is stopping: answer every waiting caller with its call as it is now, and end claims
 * that wait. Loop thread. */
void api_stop(struct api *api);
/* How many requests are not over, also those whose client was answered UNKNOWN or has left. Loop
 * thread, or after it has run. */
int64_t api_busy(const struct api *api);
/* Free it; no request is left. Accepts NULL. */
void api_close(struct api *api);

/* Append the routes as openapi.json. Pure. */
void api_print_openapi(struct buf *b);
/* Append the routes as doc/http.md. Pure. */
void api_print_markdown(struct buf *b);

#endif
