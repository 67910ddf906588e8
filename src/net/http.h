/*
 * http.h - an HTTP/1.1 server on one loop thread: bytes in, requests out.
 *
 * The loop owns sockets, parsing, limits and timers; it knows nothing of calls. It passes each
 * complete request to one handler, which answers at once or later with http_reply(), always on the
 * loop thread; other threads reach the loop by loop_post(). A request that waits for its answer
 * costs its arena and no thread. Requests of one connection are answered in order: the next is
 * parsed when the previous one is answered.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* ---- The loop -------------------------------------------------------------------------------- */

struct loop;

/* Work for the loop thread; embedded in the struct that it works on. */
struct loop_task {
    void (*run)(struct loop_task *t);
    struct loop_task *next;
};

/* Make a loop. BUSY when the system refuses it; NO_MEMORY. */
MUST_USE enum pawl_status loop_open(struct loop **out, struct pawl_err *err);
/* Free the loop, after loop_run() has returned and every server is closed; accepts NULL. Waits for
 * loop_work() that still runs. */
void loop_close(struct loop *l);
/* Serve until loop_stop(). The calling thread is the loop thread; SIGPIPE is blocked meanwhile. */
void loop_run(struct loop *l);
/* Make loop_run() return. Any thread, and signal handlers. */
void loop_stop(struct loop *l);
/* Run a task on the loop thread. Any thread. Tasks run in the order of their posts; a burst of
 * posts wakes the loop once. */
void loop_post(struct loop *l, struct loop_task *t);
/* Loop thread: run a task at the end of this iteration, after every request that it read has
 * reached its handler. From here the requests of one iteration go to the store together. */
void loop_later(struct loop *l, struct loop_task *t);
/* Runs once on the loop thread, at its time or soon after. It is embedded; setting it again moves
 * it. */
struct loop_timer {
    void (*run)(struct loop_timer *t);
    int64_t at_us;                          /* 0: not set */
    struct loop_timer *child, *next, *prev; /* owned by the loop */
};
/* Set or move a timer. Loop thread. Never fails: a timer needs no memory beyond itself. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t mono_us);
/* Stop a timer; one that is not set stays so. Loop thread. */
void loop_timer_cancel(struct loop *l, struct loop_timer *t);
/* `work` runs on one of a few other threads, then `done` on the loop thread. */
struct loop_work {
    void (*work)(struct loop_work *w);
    void (*done)(struct loop_work *w);
    void *inside; /* owned by the loop */
};
/* Start it. Loop thread. BUSY or NO_MEMORY when no thread takes it; neither function is called
 * then. */
MUST_USE enum pawl_status loop_work(struct loop *l, struct loop_work *w, struct pawl_err *err);

/* ---- Requests -------------------------------------------------------------------------------- */

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER
};
/* "GET" and so on; "OTHER" for HTTP_OTHER. */
const char *http_method_name(enum http_method m);

struct http_header {
    struct bytes name, value; /* name in lower case; value without white space around it */
};

struct http_conn;

/* One request. Everything in it, and its `arena`, lives until it is answered. */
struct http_request {
    struct arena arena;
    struct http_conn *conn; /* owned by the loop */
    enum http_method method;
    struct bytes path, query; /* as sent, undecoded; query without the `?`, absent when there is
                                 none */
    const struct http_header *headers;
    size_t n_headers;
    struct bytes body; /* whole; empty when there is none */
    bool too_large;    /* the body exceeded the limit; it was read to its end and dropped */
    bool loopback, unix_socket, tls;
    /* The client has closed its side; a reply is still required. The client may only have finished
     * sending, as nc does: the reply is still sent, unless `cut` says that the socket is closed
     * too. So a handler that would give work to this client must stop; one that waits for an answer
     * may keep waiting. */
    bool gone, cut;
    void (*on_gone)(struct http_request *r); /* set by the handler: called once when `gone` becomes
                                                true; may reply */
    void *user;                              /* for the handler */
    struct http_request *next_free;          /* owned by the loop */
};

/* The value of a header by its lower-case name, the first of several; absent when there is none. */
struct bytes http_header(const struct http_request *r, const char *name);
/* How many times a header occurs. */
size_t http_header_count(const struct http_request *r, const char *name);

struct http_reply {
    int status;
    const char *content_type;          /* NULL: application/json */
    const struct http_header *headers; /* further ones, e.g. Location, Retry-After, Allow */
    size_t n_headers;                  /* one with a control character is left out */
    struct bytes body;                 /* copied before http_reply returns; not sent for HEAD */
    bool close;                        /* close the connection after it */
};
/* Answer a request, exactly once each. Loop thread. The caller must not use the request
 * afterwards. */
void http_reply(struct http_request *r, const struct http_reply *reply);
/* Answer the client now but keep the request; at most once and before http_reply(), which then only
 * frees it. The handler sees the same as when the client leaves (gone, cut, on_gone). For a request
 * that another thread still works on while its client has waited long enough. Loop thread. */
void http_reply_early(struct http_request *r, const struct http_reply *reply);

/* ---- The server ------------------------------------------------------------------------------ */

struct http_limits {
    size_t header_len; /* request line and headers together: 16 KiB -> 431 */
    size_t body_len;   /* a longer body, up to body_read_len, is read to its end, dropped and marked
                          too_large */
    size_t body_read_len; /* a longer body gets 413, and the connection is closed */
    size_t held_len;      /* bodies of all requests together; past it 503 and close */
    size_t arena_len;     /* the maximum of a request's arena */
    int connections;      /* 10,000; a further one gets 503 and is closed */
    int64_t header_us;    /* from the first byte to the end of the headers: 10 s -> 408 */
    int64_t body_us;      /* from the headers to the end of the body: 60 s -> 408 */
    int64_t idle_us;      /* a kept-alive connection without a request: 75 s */
    int64_t write_us;     /* a client that does not read its answer: 30 s */
};
/* Set every limit to its default of base/limits.h. */
void http_limits_init(struct http_limits *l);

struct http_conf {
    const char *listen; /* "ADDR:PORT", "[::1]:0", "unix:PATH" */
    struct http_limits limits;
    const char *tls_cert, *tls_key;                     /* both or neither */
    void (*handler)(struct http_request *r, void *ctx); /* on the loop thread */
    void *ctx;
    /* The longest body of this request, asked when its headers are complete; at most body_read_len.
     * NULL: limits.body_len for all. */
    size_t (*body_max)(const struct http_request *r, void *ctx);
    /* The body of an answer that the server gives by itself (400, 408, 413, 417, 431, 501, 503,
     * 505) before it closes the connection: application/json, in `a`. NULL: plain text. */
    struct bytes (*error_body)(struct arena *a, int status, const char *text, void *ctx);
};

struct http_server;
/* Listen and serve, on the loop thread or before loop_run(). Copies what it needs of `conf`. BUSY
 * when the address is in use; INVALID names what is wrong with the address, certificate or key;
 * NO_MEMORY. */
MUST_USE enum pawl_status http_open(struct loop *l, const struct http_conf *conf,
                                    struct http_server **out, struct pawl_err *err);
/* The address with the port that was assigned, "http://127.0.0.1:7295", or "unix:PATH";
 * borrowed. */
const char *http_address(const struct http_server *s);
/* The same for other machines: with this machine's name in place of 0.0.0.0 or [::], which mean all
 * of its addresses. */
const char *http_reached_at(const struct http_server *s);
/* Accept no further connection, close idle ones, and send the answers that are due. `drained` runs
 * on the loop thread when no connection is left, or when deadline_us (monotonic) has passed and the
 * rest are closed. Loop thread. */
void http_drain(struct http_server *s, int64_t deadline_us, void (*drained)(void *ctx), void *ctx);
/* Close all connections and free the server; accepts NULL. Requests without an answer are told
 * (on_gone) and still need their http_reply(). Loop thread, or after loop_run() has returned. */
void http_close(struct http_server *s);

struct http_stats {
    int64_t connections, accepted, requests, bytes_in, bytes_out, refused, timeouts;
};
/* Read the counters. Loop thread. */
void http_stats(const struct http_server *s, struct http_stats *out);

#endif
