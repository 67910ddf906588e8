/*
 * http.h - bytes in, requests out: an HTTP/1.1 server on one loop thread.
 *
 * The loop owns sockets, parsing, limits and timers; it knows nothing of calls. A complete request
 * is handed to one handler, which answers it then or later with http_reply(), always on the loop
 * thread; other threads reach the loop by loop_post(). A parked request costs its arena and no
 * thread. Requests of one connection are answered in order; the next is parsed when the one before
 * is answered.
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

/* Something to do on the loop thread; embedded in whatever it is about. */
struct loop_task {
    void (*run)(struct loop_task *t);
    struct loop_task *next;
};

MUST_USE enum pawl_status loop_open(struct loop **out, struct pawl_err *err);
/* After loop_run returned and every server was closed; accepts NULL. Waits for loop_work under way.
 */
void loop_close(struct loop *l);
/* Serve until loop_stop(); the calling thread is the loop thread. SIGPIPE is blocked meanwhile. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l); /* any thread, and signal handlers */
/* Any thread. Tasks run in the order posted; many posts are one wake-up. */
void loop_post(struct loop *l, struct loop_task *t);
/* Loop thread: run at the end of this turn, after every request that came in with it was handed to
 * its handler. What a turn's requests ask of the store is sent as one from here. */
void loop_later(struct loop *l, struct loop_task *t);
/* Loop thread: run once, at mono_us or soon after. A timer is embedded; starting it again moves it.
 */
struct loop_timer {
    void (*run)(struct loop_timer *t);
    int64_t at_us;                          /* 0: not set */
    struct loop_timer *child, *next, *prev; /* the loop's own */
};
/* Never fails: timers need no memory beyond themselves. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t mono_us);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);
/* Run `work` on one of a few threads, then `done` on the loop thread. Loop thread. */
struct loop_work {
    void (*work)(struct loop_work *w);
    void (*done)(struct loop_work *w);
    void *inside; /* the loop's own */
};
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
const char *http_method_name(enum http_method m);

struct http_header {
    struct bytes name, value; /* name in lower case; value without white space around it */
};

struct http_conn;

/* One request. Everything in it lives until it is answered, and `arena` with it. */
struct http_request {
    struct arena arena;
    struct http_conn *conn; /* the loop's own */
    enum http_method method;
    struct bytes path, query; /* as sent, undecoded; query without the `?`, absent when there is
                                 none */
    const struct http_header *headers;
    size_t n_headers;
    struct bytes body; /* whole; empty when there is none */
    bool too_large;    /* the body was over the limit, was read to its end and dropped */
    bool loopback, unix_socket, tls;
    /* The client has closed its side; a reply is still due. It may only have ended its sending, as
     * nc does: what is replied is still sent, unless `cut` says that the socket is gone as well. So
     * a handler that would hand out work stops, and one that waits for an answer may go on waiting.
     */
    bool gone, cut;
    void (*on_gone)(struct http_request *r); /* set by the handler: called once when `gone` becomes
                                                true; may reply */
    void *user;                              /* the handler's own */
    struct http_request *next_free;          /* the loop's own */
};

/* The value of a header by its lower-case name; absent when it is not there. Of several the first.
 */
struct bytes http_header(const struct http_request *r, const char *name);
/* How often a header is there. */
size_t http_header_count(const struct http_request *r, const char *name);

struct http_reply {
    int status;
    const char *content_type;          /* NULL: application/json */
    const struct http_header *headers; /* more of them, e.g. Location, Retry-After, Allow */
    size_t n_headers;                  /* one with a control character in it is left out */
    struct bytes body;                 /* copied before http_reply returns; not sent for HEAD */
    bool close;                        /* end the connection after it */
};
/* Answer; exactly once for each request. The request is no longer yours. */
void http_reply(struct http_request *r, const struct http_reply *reply);
/* Answer the client now and keep the request, at most once and before http_reply(), which frees it
 * and sends nothing any more. To the handler it is as if the client had gone (gone, cut, on_gone).
 * For a request that somebody else still works on and that its client has waited for long enough.
 */
void http_reply_early(struct http_request *r, const struct http_reply *reply);

/* ---- The server ------------------------------------------------------------------------------ */

struct http_limits {
    size_t header_len; /* request line and headers together: 16 KiB -> 431 */
    size_t body_len; /* bodies over it are read to the end up to body_read_len and marked too_large
                      */
    size_t body_read_len; /* past this the connection is closed after 413 */
    size_t held_len;      /* bodies of all requests together; past it 503 and close */
    size_t arena_len;     /* the most a request's arena gives */
    int connections;      /* 10,000; past it 503 and close */
    int64_t header_us;    /* from the first byte to the end of the headers: 10 s -> 408 */
    int64_t body_us;      /* from the headers to the end of the body: 60 s -> 408 */
    int64_t idle_us;      /* keep-alive without a request: 75 s */
    int64_t write_us;     /* a client that does not read its answer: 30 s */
};
void http_limits_init(struct http_limits *l);

struct http_conf {
    const char *listen; /* "ADDR:PORT", "[::1]:0", "unix:PATH" */
    struct http_limits limits;
    const char *tls_cert, *tls_key;                     /* both or neither */
    void (*handler)(struct http_request *r, void *ctx); /* on the loop thread */
    void *ctx;
    /* How long this request's body may be, asked when its headers are there; at most body_read_len.
     * NULL: limits.body_len for all. */
    size_t (*body_max)(const struct http_request *r, void *ctx);
    /* An answer of the server's own (400, 408, 413, 417, 431, 501, 503, 505), after which it
     * closes: the body for it, in `a`, as application/json. NULL: plain text. */
    struct bytes (*error_body)(struct arena *a, int status, const char *text, void *ctx);
};

struct http_server;
MUST_USE enum pawl_status http_open(struct loop *l, const struct http_conf *conf,
                                    struct http_server **out, struct pawl_err *err);
/* "http://127.0.0.1:7295", with the port that was taken, or "unix:PATH"; borrowed. */
const char *http_address(const struct http_server *s);
/* Loop thread. Accept nobody new, close idle connections, let answers under way go out; `drained`
 * runs on the loop thread when none is left, or when deadline_us (monotonic) has passed and the
 * rest were cut. */
void http_drain(struct http_server *s, int64_t deadline_us, void (*drained)(void *ctx), void *ctx);
/* Loop thread, or after loop_run returned; accepts NULL. Connections are cut; requests that are not
 * yet answered are told (on_gone) and still want their http_reply(). */
void http_close(struct http_server *s);

struct http_stats {
    int64_t connections, accepted, requests, bytes_in, bytes_out, refused, timeouts;
};
/* Loop thread. */
void http_stats(const struct http_server *s, struct http_stats *out);

#endif
