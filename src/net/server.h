/*
 * server.h - internals of the room: the server, its connections, and which file calls which.
 *
 *     listen.c -> server.c -> conn.c -> intake.c        bytes in
 *     handler -> reply.c -> conn.c -> conn_io.c         bytes out
 *
 * An idle connection holds the handle of its socket and no buffer: bytes are read into the one
 * buffer of the server, and answers are collected in pooled buffers that return when they are
 * written. Everything on the loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include <sys/types.h>

#include "base/buf.h" /* before uv.h, which defines MIN too */
#include "net/http.h"

#include <uv.h>

#include "net/intake.h"
#include "net/loop.h"

struct tls;
struct tls_server;

/* ---- Listening ------------------------------------------------------------------------------- */

#define ADDRESS_LEN 160

struct listener {
    int fd; /* owned; -1 for none */
    bool is_unix;
    char path[108]; /* of the socket file; removed at the end if it is still this inode */
    dev_t dev;
    ino_t ino;
    char address[ADDRESS_LEN]; /* the result of http_address() */
    char reached[ADDRESS_LEN]; /* the result of http_reached_at() */
};

/* Bind and listen at "ADDR:PORT", "[ADDR]:PORT" or "unix:PATH". BUSY when it is in use; INVALID
 * says what is wrong. Any thread. */
MUST_USE enum pawl_status listener_open(struct listener *l, const char *where, bool tls,
                                        struct pawl_err *err);
/* Close the socket and remove the socket file, if it is still this one. Accepts a closed one. */
void listener_close(struct listener *l);
/* Accept the next client: its descriptor, which the caller owns, or -1 with errno. */
int listener_accept(const struct listener *l, bool *out_loopback);

/* ---- Answers --------------------------------------------------------------------------------- */

/* The Date header, renewed every 250 ms. */
struct date {
    uint64_t made_ms;
    char line[48]; /* "Date: ...\r\n" */
};

struct answer {
    const struct http_reply *reply;
    const char *date;
    bool head, close, http10;
};
/* Append an answer as bytes. A failure shows in buf_ok(out). */
void answer_write(struct buf *out, const struct answer *a);
/* Write the Date line of the time now_us (UTC), and remember now_ms. */
void date_refresh(struct date *d, uint64_t now_ms, int64_t now_us);

/* ---- Connections ----------------------------------------------------------------------------- */

enum conn_state {
    CONN_IDLE,   /* between requests */
    CONN_HEAD,   /* while a head is read */
    CONN_BODY,   /* while a body is read */
    CONN_BUSY,   /* the handler has the request */
    CONN_LAST,   /* the last answer is being sent */
    CONN_LINGER, /* it is sent; wait until the client closes, or a reset could destroy it */
    CONN_CLOSED,
};

struct http_conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_write_t write;
    struct http_server *server;
    struct http_conn *next, **link; /* in the list of the server's connections */
    struct http_conn *next_dirty;
    struct intake *intake; /* pooled; NULL while idle */
    struct tls *tls;       /* owned; NULL without */
    struct buf ahead;      /* read, not yet parsed */
    size_t ahead_at;       /* how much of it is parsed */
    struct buf out, wire;  /* answers; the bytes being written */
    size_t queued_len;     /* length of the write queue when last measured */
    struct loop_timer timer;
    int64_t deadline_us; /* may be later than the timer, which is then set again */
    enum conn_state state;
    bool loopback, refused; /* refused: over the limit, gets only a 503 */
    bool reading, eof, writing, dirty, linger;
    bool freed; /* libuv has released the handle */
};

/* Start a connection; takes over fd. Beyond the limit it gets 503 and is counted separately. */
void conn_open(struct http_server *s, int fd, bool loopback);
/* Close at once; a handler that has its request is notified. Accepts a closed one. */
void conn_close(struct http_conn *c);
/* Free it, when libuv has released the handle and no list holds it. */
void conn_free(struct http_conn *c);
/* Change the state, and with it the deadline. The only place that does either. */
void conn_move(struct http_conn *c, enum conn_state state);
/* Plain bytes from the client: parse them, or keep them for later. */
void conn_input(struct http_conn *c, struct bytes in);
/* The client sends no more. */
void conn_eof(struct http_conn *c);
/* At the end of this iteration, parse what was read ahead and write what is answered. */
void conn_touch(struct http_conn *c);
/* Parse what was read ahead, as far as conn_may_parse() allows. */
void conn_advance(struct http_conn *c);
/* May the next request be parsed: none is being handled, and not too many answers are unsent? */
bool conn_may_parse(const struct http_conn *c);
/* Send an answer of the server itself, the last one of this connection. */
void conn_refuse(struct http_conn *c, int status, const char *text);
static inline size_t conn_ahead(const struct http_conn *c)
{
    return c->ahead.len - c->ahead_at;
}

/* conn_io.c: start reading; does nothing when it reads already. Closes the connection on
 * failure. */
void conn_read_start(struct http_conn *c);
/* Stop reading; the client's bytes then wait in the kernel. */
void conn_read_stop(struct http_conn *c);
/* At the end of an iteration: parse, write, and close when nothing is left to do. */
void conn_flush(struct http_conn *c);
/* Bytes that are written and that the client has not taken yet. */
size_t conn_queued(const struct http_conn *c);

/* ---- TLS in memory --------------------------------------------------------------------------- */

/* Load a certificate and its key, both PEM files. INVALID names the file; NO_MEMORY. */
MUST_USE enum pawl_status tls_server_open(const char *cert, const char *key,
                                          struct tls_server **out, struct pawl_err *err);
/* Free it; accepts NULL. */
void tls_server_close(struct tls_server *t);
/* TLS for one connection; NULL without memory. */
struct tls *tls_open(struct tls_server *t);
/* Free it; accepts NULL. */
void tls_close(struct tls *t);
/* Decrypt bytes from the network and pass them to conn_input() and conn_eof(). False when the TLS
 * session is broken. */
bool tls_input(struct tls *t, struct http_conn *c, struct bytes in);
/* Encrypt all of `plain` into `wire`, with the protocol's own messages. False when the session is
 * broken or memory is short. */
bool tls_seal(struct tls *t, struct buf *plain, struct buf *wire);
/* Does the protocol have bytes to send? */
bool tls_pending(const struct tls *t);
/* Make the close notification; the next tls_seal() delivers its bytes. */
void tls_end(struct tls *t);

/* ---- The server ------------------------------------------------------------------------------ */

#define READ_LEN 65536
#define SPARE_MAX 128

struct http_server {
    struct loop *loop;
    struct http_conf conf; /* without its strings */
    struct intake_rules rules;
    struct listener listener;
    uv_poll_t poll;                 /* polls the listener */
    struct loop_timer accept_again; /* after running out of descriptors */
    struct tls_server *tls;         /* owned */

    struct http_conn *conns;
    int n_refusing;
    struct http_conn *dirty; /* passed to conn_touch() in this iteration */
    struct loop_task flush;
    bool flushing; /* `flush` is queued */

    struct intake *spare_intakes;
    int n_spare_intakes, n_spare_bufs;
    struct buf spare_bufs[SPARE_MAX];
    char *read_buf, *plain_buf; /* owned, READ_LEN each; plain_buf for TLS */
    struct date date;
    struct http_stats stats;

    size_t refs; /* one each for its owner, the poll, each connection and each request in use */
    bool closed, draining;
    void (*drained)(void *ctx);
    void *drained_ctx;
    struct loop_timer drain_timer;
    struct loop_task drain_task;
};

/* Drop a reference; the last one frees the server. */
void server_unref(struct http_server *s);
/* A connection was freed: drop its reference, and finish draining if it was the last. */
void server_conn_gone(struct http_server *s);
/* A pooled or new intake; holds a reference to the server. NULL without memory. */
struct intake *server_intake(struct http_server *s);
/* Return an intake to the pool, or free it. */
void server_intake_put(struct http_server *s, struct intake *i);
/* Give the empty buffer `b` pooled memory, if there is some. */
void server_buf(struct http_server *s, struct buf *b);
/* Return the memory of `b` to the pool, or free it; `b` is empty afterwards. */
void server_buf_put(struct http_server *s, struct buf *b);
/* The current Date line; borrowed. */
const char *server_date(struct http_server *s);

#endif
