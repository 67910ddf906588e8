/*
 * conn.c - the states of a connection: bytes in, requests to the handler, answers in order.
 *
 * One request at a time: the next is parsed when the previous one is answered and its answer is on
 * its way. Bytes that arrive meanwhile are kept, up to AHEAD_MAX, and reading continues, so that a
 * client that leaves is noticed. Only libuv's callback frees a connection, so a handler may do
 * anything to it. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/world.h"
#include "net/server.h"

/* Answers collected before they are written; a client that sends without reading must not fill the
 * memory. */
#define OUT_SOFT (256 << 10)
/* The time that a client has to close after its last answer. */
#define LINGER_US (INT64_C(2) * 1000000)
#define NEVER INT64_MAX

/* ---- State ----------------------------------------------------------------------------------- */

static int64_t deadline_of(const struct http_conn *c)
{
    const struct http_limits *limits = &c->server->conf.limits;
    int64_t now_us = loop_now(c->server->loop);
    if (c->writing)
        return now_us + limits->write_us;
    switch (c->state) {
    case CONN_IDLE:
        return now_us + limits->idle_us;
    case CONN_HEAD:
        return now_us + limits->header_us;
    case CONN_BODY:
        return now_us + limits->body_us;
    case CONN_LINGER:
        return now_us + LINGER_US;
    case CONN_BUSY:
    case CONN_LAST:
    case CONN_CLOSED:
        break;
    }
    return NEVER;
}

/* The only place where state and deadline change. The timer is only moved to an earlier time here;
 * when it fires too early it is set again, so a busy connection does not touch it. */
void conn_move(struct http_conn *c, enum conn_state state)
{
    assert(c->state != CONN_CLOSED);
    c->state = state;
    c->deadline_us = deadline_of(c);
    if (state == CONN_CLOSED)
        loop_timer_cancel(c->server->loop, &c->timer);
    else if (c->deadline_us != NEVER && (!c->timer.at_us || c->timer.at_us > c->deadline_us))
        loop_timer_set(c->server->loop, &c->timer, c->deadline_us);
}

static void write_is_late(struct http_conn *c)
{
    size_t left = conn_queued(c);
    if (left >= c->queued_len) {
        c->server->stats.timeouts++;
        conn_close(c);
        return;
    }
    c->queued_len = left; /* slow, but the client reads */
    conn_move(c, c->state);
}

static void on_timer(struct loop_timer *t)
{
    struct http_conn *c = (struct http_conn *)((char *)t - offsetof(struct http_conn, timer));
    if (c->deadline_us == NEVER)
        return;
    if (world_mono(&world_real) < c->deadline_us) {
        loop_timer_set(c->server->loop, t, c->deadline_us);
        return;
    }
    if (c->writing) {
        write_is_late(c);
        return;
    }
    c->server->stats.timeouts += c->state != CONN_LINGER; /* when lingering, the answer was sent */
    if (c->state == CONN_HEAD || c->state == CONN_BODY)
        conn_refuse(c, 408, "the request did not arrive in time");
    else
        conn_close(c);
}

/* ---- Begin and end --------------------------------------------------------------------------- */

/* Give the descriptor to libuv. On failure it is closed. */
static bool handle_open(struct http_conn *c, int fd)
{
    struct http_server *s = c->server;
    int failed = s->listener.is_unix ? uv_pipe_init(&s->loop->uv, &c->u.pipe, 0)
                                     : uv_tcp_init(&s->loop->uv, &c->u.tcp);
    if (failed) {
        close(fd);
        return false;
    }
    failed = s->listener.is_unix ? uv_pipe_open(&c->u.pipe, fd) : uv_tcp_open(&c->u.tcp, fd);
    if (failed)
        close(fd);
    else if (!s->listener.is_unix)
        uv_tcp_nodelay(&c->u.tcp, 1);
    return true;
}

static void conn_link(struct http_conn *c)
{
    struct http_server *s = c->server;
    c->next = s->conns;
    c->link = &s->conns;
    if (c->next)
        c->next->link = &c->next;
    s->conns = c;
    s->refs++;
    if (c->refused)
        s->n_refusing++;
    else
        s->stats.connections++;
}

void conn_open(struct http_server *s, int fd, bool loopback)
{
    bool refused = s->stats.connections >= s->conf.limits.connections;
    struct http_conn *c = NULL;
    s->stats.accepted++;
    s->stats.refused += refused;
    if (!refused || (s->n_refusing < HTTP_REFUSING_MAX && !s->tls))
        c = mem_zalloc(sizeof *c);
    struct tls *tls = c && s->tls ? tls_open(s->tls) : NULL;
    if (!c || (s->tls && !tls)) {
        s->stats.refused += !refused;
        mem_free(c);
        close(fd);
        return;
    }
    c->server = s;
    c->loopback = loopback;
    c->refused = refused;
    c->tls = tls;
    c->timer.run = on_timer;
    buf_init(&c->ahead, 2 * READ_LEN);
    buf_init(&c->out, HTTP_ANSWER_LEN_MAX);
    buf_init(&c->wire, HTTP_ANSWER_LEN_MAX);
    if (!handle_open(c, fd)) {
        tls_close(tls);
        mem_free(c);
        return;
    }
    c->u.handle.data = c;
    conn_link(c);
    conn_move(c, CONN_IDLE);
    conn_read_start(c);
    if (refused && c->state == CONN_IDLE)
        conn_refuse(c, 503, "too many connections");
}

void conn_free(struct http_conn *c)
{
    struct http_server *s = c->server;
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    if (c->refused)
        s->n_refusing--;
    else
        s->stats.connections--;
    server_buf_put(s, &c->wire); /* libuv may have written from it until now */
    mem_free(c);
    server_conn_gone(s);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_conn *c = handle->data;
    c->freed = true;
    if (!c->dirty) /* otherwise the flush that has it in its list frees it */
        conn_free(c);
}

static void tell_gone(struct http_conn *c)
{
    struct http_request *r = &c->intake->request;
    if (r->gone)
        return;
    r->gone = true;
    if (r->on_gone)
        r->on_gone(r); /* may reply, which frees r */
}

void conn_close(struct http_conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    bool busy = c->state == CONN_BUSY;
    struct http_server *s = c->server;
    conn_move(c, CONN_CLOSED);
    uv_close(&c->u.handle, on_closed);
    tls_close(TAKE(c->tls));
    buf_release(&c->ahead);
    server_buf_put(s, &c->out);
    if (!c->intake)
        return;
    if (busy) {
        struct http_request *r = &c->intake->request;
        r->conn = NULL;
        r->cut = true;
        tell_gone(c);
    } else {
        server_intake_put(s, c->intake);
    }
    c->intake = NULL;
}

void conn_eof(struct http_conn *c)
{
    if (c->eof || c->state == CONN_CLOSED)
        return;
    c->eof = true;
    if (c->state == CONN_BUSY)
        tell_gone(c);
    conn_touch(c);
}

/* ---- Requests -------------------------------------------------------------------------------- */

bool conn_may_parse(const struct http_conn *c)
{
    bool open = c->state == CONN_IDLE ? !c->server->draining
                                      : c->state == CONN_HEAD || c->state == CONN_BODY;
    return open && !c->writing && c->out.len < OUT_SOFT;
}

static void hand_over(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_request *r = &c->intake->request;
    r->conn = c;
    r->loopback = c->loopback;
    r->unix_socket = s->listener.is_unix;
    r->tls = s->tls != NULL;
    s->stats.requests++;
    conn_move(c, CONN_BUSY);
    s->conf.handler(r, s->conf.ctx);
    if (c->eof && c->state == CONN_BUSY)
        tell_gone(c);
}

static void say_continue(struct http_conn *c)
{
    server_buf(c->server, &c->out);
    buf_add_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    if (buf_ok(&c->out))
        conn_touch(c);
    else
        conn_close(c);
}

/* Act on the last step of the intake; `more`: bytes are left. */
static void intake_moved(struct http_conn *c, bool more)
{
    struct intake *i = c->intake;
    bool say;
    switch (i->state) {
    case INTAKE_HEAD:
        if (c->state == CONN_IDLE && intake_begun(i))
            conn_move(c, CONN_HEAD);
        break;
    case INTAKE_BODY:
    case INTAKE_TRAILER:
        if (c->state != CONN_BODY && !more)
            conn_move(c, CONN_BODY);
        say = i->expects && !more;
        i->expects = false; /* also when the client did not wait */
        if (say)
            say_continue(c);
        break;
    case INTAKE_DONE:
        hand_over(c);
        break;
    case INTAKE_BAD:
        conn_refuse(c, i->bad, i->bad_text);
        break;
    }
}

static size_t conn_parse(struct http_conn *c, struct bytes in)
{
    size_t used = 0;
    while (used < in.len && conn_may_parse(c)) {
        if (!c->intake)
            c->intake = server_intake(c->server);
        if (!c->intake) {
            conn_refuse(c, 503, "out of memory");
            break;
        }
        used += intake_feed(c->intake, (struct bytes){ in.data + used, in.len - used });
        intake_moved(c, used < in.len);
    }
    return used;
}

void conn_advance(struct http_conn *c)
{
    if (conn_ahead(c) > 0 && conn_may_parse(c))
        c->ahead_at += conn_parse(c, (struct bytes){ c->ahead.data + c->ahead_at, conn_ahead(c) });
    if (conn_ahead(c) == 0) {
        buf_release(&c->ahead);
        c->ahead_at = 0;
    }
}

/* Keep bytes that cannot be parsed yet. */
static void keep_ahead(struct http_conn *c, struct bytes in)
{
    if (c->ahead_at > 0) {
        memmove(c->ahead.data, c->ahead.data + c->ahead_at, conn_ahead(c));
        c->ahead.len -= c->ahead_at;
        c->ahead_at = 0;
    }
    buf_add_bytes(&c->ahead, in);
    if (!buf_ok(&c->ahead))
        conn_close(c);
}

void conn_input(struct http_conn *c, struct bytes in)
{
    if (c->state >= CONN_LAST)
        return; /* no further request is read */
    size_t used = conn_ahead(c) > 0 ? 0 : conn_parse(c, in);
    if (used < in.len && c->state < CONN_LAST)
        keep_ahead(c, (struct bytes){ in.data + used, in.len - used });
    else if (used < in.len)
        c->linger = true;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Append an answer; when it does not fit in memory, the connection is closed. */
static void answer(struct http_conn *c, const struct answer *a)
{
    server_buf(c->server, &c->out);
    answer_write(&c->out, a);
    if (!buf_ok(&c->out)) {
        conn_close(c);
        return;
    }
    conn_move(c, a->close ? CONN_LAST : CONN_IDLE);
    conn_touch(c);
}

void conn_refuse(struct http_conn *c, int status, const char *text)
{
    struct http_server *s = c->server;
    struct arena scratch;
    arena_init(&scratch, 1 << 20);
    struct arena *a = c->intake ? &c->intake->request.arena : &scratch;
    struct http_reply reply = { .status = status, .content_type = "text/plain" };
    if (s->conf.error_body) {
        reply.content_type = NULL;
        reply.body = s->conf.error_body(a, status, text, s->conf.ctx);
    } else {
        const char *line = arena_printf(a, "%s\n", text);
        reply.body = bytes_of(line ? line : "");
    }
    bool head = c->intake && c->intake->request.method == HTTP_HEAD;
    c->linger = true;
    answer(c, &(struct answer){ &reply, server_date(s), .head = head, .close = true });
    arena_release(&scratch);
    if (c->intake)
        server_intake_put(s, TAKE(c->intake));
}

/* Send the reply if there still is a connection; the request has none afterwards. */
static void send_reply(struct http_request *r, const struct http_reply *reply)
{
    struct intake *i = intake_of(r);
    struct http_server *s = i->server;
    struct http_conn *c = TAKE(r->conn);
    if (!c)
        return;
    assert(c->state == CONN_BUSY && c->intake == i);
    bool last = c->eof && conn_ahead(c) == 0;
    c->intake = NULL;
    c->linger |= conn_ahead(c) > 0;
    answer(c, &(struct answer){ reply, server_date(s), r->method == HTTP_HEAD,
                                reply->close || !i->keep_alive || s->draining || last, i->http10 });
}

void http_reply(struct http_request *r, const struct http_reply *reply)
{
    struct intake *i = intake_of(r);
    send_reply(r, reply);
    server_intake_put(i->server, i);
}

void http_reply_early(struct http_request *r, const struct http_reply *reply)
{
    send_reply(r, reply);
    bool told = r->gone;
    r->gone = r->cut = true;
    if (!told && r->on_gone)
        r->on_gone(r); /* may reply, which frees r */
}
