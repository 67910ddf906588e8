/*
 * server.h - the inside of the room: a server, its connections, and who calls whom.
 *
 *     listen.c -> server.c -> conn.c -> intake.c        bytes in
 *     handler -> reply.c -> conn.c -> conn_io.c         bytes out
 *
 * A connection with nothing to do holds its socket's handle and no buffer: bytes are read into the
 * server's one buffer, and answers are gathered in spare ones that go back when they are written.
 * Everything on the loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_SERVER_H
#define NET_SERVER_H

#include <sys/types.h>

#include "base/buf.h" /* before uv.h, which brings a MIN of its own */
#include "net/http.h"

#include <uv.h>

#include "net/intake.h"
#include "net/loop.h"

struct tls;
struct tls_server;

/* ---- Listening ------------------------------------------------------------------------------- */

#define ADDRESS_LEN 160

struct listener {
    int fd; /* owned; -1 when there is none */
    bool is_unix;
    char path[108]; /* of the socket file, removed at the end if it is still this one: */
    dev_t dev;
    ino_t ino;
    char address[ADDRESS_LEN]; /* what http_address() says */
};

MUST_USE enum pawl_status listener_open(struct listener *l, const char *where, bool tls,
                                        struct pawl_err *err);
void listener_close(struct listener *l);
/* The next client, or -1 with errno. */
int listener_accept(const struct listener *l, bool *out_loopback);

/* ---- Answers --------------------------------------------------------------------------------- */

/* The Date header, made once a second. */
struct date {
    uint64_t made_ms;
    char line[48]; /* "Date: ...\r\n" */
};

struct answer {
    const struct http_reply *reply;
    const char *date;
    bool head, close, http10;
};
void answer_write(struct buf *out, const struct answer *a);
void date_refresh(struct date *d, uint64_t now_ms, int64_t now_us);

/* ---- Connections ----------------------------------------------------------------------------- */

enum conn_state {
    CONN_IDLE,   /* between requests */
    CONN_HEAD,   /* in the middle of one's head */
    CONN_BODY,   /* or body */
    CONN_BUSY,   /* the handler has it */
    CONN_LAST,   /* the last answer is going out */
    CONN_LINGER, /* it is out; wait for the client to close, or it could lose it */
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
    struct http_conn *next, **link; /* all of the server's */
    struct http_conn *next_dirty;
    struct intake *intake; /* pooled; NULL while idle */
    struct tls *tls;       /* owned; NULL without */
    struct buf ahead;      /* read, not yet parsed */
    size_t ahead_at;       /* of it already parsed */
    struct buf out, wire;  /* answers; what of them is being written */
    size_t queued_len;     /* what the last look at the write queue saw */
    struct loop_timer timer;
    int64_t deadline_us; /* may be later than the timer, which then is set again */
    enum conn_state state;
    bool loopback, refused; /* refused: over the limit, only told so */
    bool reading, eof, writing, dirty, linger;
    bool freed; /* libuv has let go of it */
};

/* Takes fd. Over the limit it is told 503 and counted apart. */
void conn_open(struct http_server *s, int fd, bool loopback);
/* At once; a handler that has its request is told. Accepts one that is closed. */
void conn_close(struct http_conn *c);
/* Once libuv has let go of it and no list has it. */
void conn_free(struct http_conn *c);
void conn_move(struct http_conn *c, enum conn_state state);
/* Plain bytes from the client. */
void conn_input(struct http_conn *c, struct bytes in);
/* The client sends no more. */
void conn_eof(struct http_conn *c);
/* Parse what was read ahead, write what is answered, at the end of this turn. */
void conn_touch(struct http_conn *c);
/* Parse what was read ahead. */
void conn_advance(struct http_conn *c);
bool conn_may_parse(const struct http_conn *c);
/* An answer of our own, the last on this connection. */
void conn_refuse(struct http_conn *c, int status, const char *text);
static inline size_t conn_ahead(const struct http_conn *c)
{
    return c->ahead.len - c->ahead_at;
}

/* conn_io.c */
void conn_read_start(struct http_conn *c);
void conn_read_stop(struct http_conn *c);
void conn_flush(struct http_conn *c);
/* Bytes written that the client has not taken yet. */
size_t conn_queued(const struct http_conn *c);

/* ---- TLS: bytes through memory --------------------------------------------------------------- */

MUST_USE enum pawl_status tls_server_open(const char *cert, const char *key,
                                          struct tls_server **out, struct pawl_err *err);
void tls_server_close(struct tls_server *t);
struct tls *tls_open(struct tls_server *t); /* NULL: no memory */
void tls_close(struct tls *t);
/* Bytes off the wire, into conn_input() and conn_eof(). False: it is broken. */
bool tls_input(struct tls *t, struct http_conn *c, struct bytes in);
/* Everything in plain, sealed, and whatever the protocol itself has to say, onto wire. */
bool tls_seal(struct tls *t, struct buf *plain, struct buf *wire);
bool tls_pending(const struct tls *t);
/* Say goodbye; the bytes come with the next tls_seal(). */
void tls_end(struct tls *t);

/* ---- The server ------------------------------------------------------------------------------ */

#define READ_LEN 65536
#define SPARE_MAX 128

struct http_server {
    struct loop *loop;
    struct http_conf conf; /* without its strings */
    struct intake_rules rules;
    struct listener listener;
    uv_poll_t poll;                 /* the listener's */
    struct loop_timer accept_again; /* after running out of descriptors */
    struct tls_server *tls;         /* owned */

    struct http_conn *conns;
    int n_refusing;
    struct http_conn *dirty; /* conn_touch()ed in this turn */
    struct loop_task flush;
    bool flushing; /* `flush` is queued */

    struct intake *spare_intakes;
    int n_spare_intakes, n_spare_bufs;
    struct buf spare_bufs[SPARE_MAX];
    char *read_buf, *plain_buf; /* owned, READ_LEN each; plain_buf for TLS */
    struct date date;
    struct http_stats stats;

    size_t refs; /* one for its owner, the poll, each connection and each request in use */
    bool closed, draining;
    void (*drained)(void *ctx);
    void *drained_ctx;
    struct loop_timer drain_timer;
    struct loop_task drain_task;
};

void server_unref(struct http_server *s);
/* A connection has been freed. */
void server_conn_gone(struct http_server *s);
struct intake *server_intake(struct http_server *s); /* NULL: no memory */
void server_intake_put(struct http_server *s, struct intake *i);
/* Give b, which is empty, some memory that is at hand; and take it back. */
void server_buf(struct http_server *s, struct buf *b);
void server_buf_put(struct http_server *s, struct buf *b);
const char *server_date(struct http_server *s);

#endif
