/*
 * server.c - a server: accepting, pooled memory, draining, closing.
 *
 * It lives after http_close() until its last connection is freed and its last request is answered.
 * Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/world.h"
#include "net/server.h"

/* Connections accepted in one iteration, so that the open ones are served meanwhile. */
#define ACCEPT_MAX 64
/* Out of descriptors: clients wait for this long in the kernel's queue. */
#define ACCEPT_PAUSE_US (INT64_C(100) * MS_US)
/* Larger buffers are freed instead of pooled. */
#define SPARE_LEN 16384
/* The Date may be this old. */
#define DATE_MS 250

/* ---- Pooled memory --------------------------------------------------------------------------- */

struct intake *server_intake(struct http_server *s)
{
    struct intake *i = s->spare_intakes;
    if (i) {
        s->spare_intakes = (struct intake *)i->request.next_free;
        i->request.next_free = NULL;
        s->n_spare_intakes--;
    } else {
        i = mem_alloc(sizeof *i);
        if (!i)
            return NULL;
        intake_init(i, &s->rules);
        i->server = s;
    }
    s->refs++;
    return i;
}

void server_intake_put(struct http_server *s, struct intake *i)
{
    if (s->n_spare_intakes < SPARE_MAX && !s->closed) {
        intake_reset(i);
        i->request.next_free = (struct http_request *)s->spare_intakes;
        s->spare_intakes = i;
        s->n_spare_intakes++;
    } else {
        intake_release(i);
        mem_free(i);
    }
    server_unref(s);
}

void server_buf(struct http_server *s, struct buf *b)
{
    if (b->data || s->n_spare_bufs == 0)
        return;
    struct buf *spare = &s->spare_bufs[--s->n_spare_bufs];
    b->data = spare->data;
    b->cap = spare->cap;
}

void server_buf_put(struct http_server *s, struct buf *b)
{
    if (b->data && b->cap <= SPARE_LEN && s->n_spare_bufs < SPARE_MAX && !s->closed) {
        s->spare_bufs[s->n_spare_bufs++] = *b;
        b->data = NULL;
    }
    buf_release(b);
}

const char *server_date(struct http_server *s)
{
    uint64_t now_ms = uv_now(&s->loop->uv);
    if (now_ms - s->date.made_ms >= DATE_MS || !s->date.line[0])
        date_refresh(&s->date, now_ms, world_now(&world_real));
    return s->date.line;
}

/* ---- The end of an iteration ----------------------------------------------------------------- */

#define OF(type, member, p) ((type *)((char *)(p)-offsetof(type, member)))

static void on_flush(struct loop_task *t)
{
    struct http_server *s = OF(struct http_server, flush, t);
    struct http_conn *c = s->dirty;
    s->dirty = NULL;
    s->flushing = false;
    s->refs++; /* freeing the last connection below must not free the server */
    while (c) {
        struct http_conn *next = c->next_dirty;
        c->dirty = false;
        if (c->state != CONN_CLOSED)
            conn_flush(c);
        else if (c->freed)
            conn_free(c);
        c = next;
    }
    server_unref(s);
}

void conn_touch(struct http_conn *c)
{
    struct http_server *s = c->server;
    if (c->dirty || c->state == CONN_CLOSED)
        return;
    c->dirty = true;
    c->next_dirty = s->dirty;
    s->dirty = c;
    if (!s->flushing)
        loop_later(s->loop, &s->flush);
    s->flushing = true;
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void accept_pause(struct http_server *s)
{
    uv_poll_stop(&s->poll);
    loop_timer_set(s->loop, &s->accept_again, loop_now(s->loop) + ACCEPT_PAUSE_US);
}

static void on_accept_again(struct loop_timer *t)
{
    struct http_server *s = OF(struct http_server, accept_again, t);
    if (uv_poll_start(&s->poll, UV_READABLE, on_poll) != 0)
        accept_pause(s);
}

/* These errors pass by themselves: they concern only that client. */
static bool accept_failed_briefly(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ECONNABORTED ||
           error == EPROTO;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_server *s = poll->data;
    (void)events;
    for (int n = 0; n < ACCEPT_MAX && status == 0 && s->listener.fd >= 0; n++) {
        bool loopback;
        int fd = listener_accept(&s->listener, &loopback);
        if (fd >= 0) {
            conn_open(s, fd, loopback);
            continue;
        }
        /* No descriptors or no memory: trying again at once would spin. */
        if (!accept_failed_briefly(errno))
            accept_pause(s);
        break;
    }
}

static void on_poll_closed(uv_handle_t *poll)
{
    struct http_server *s = poll->data;
    listener_close(&s->listener);
    server_unref(s);
}

static void stop_accepting(struct http_server *s)
{
    loop_timer_cancel(s->loop, &s->accept_again);
    if (!uv_is_closing((uv_handle_t *)&s->poll))
        uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

/* ---- Begin and end --------------------------------------------------------------------------- */

void server_unref(struct http_server *s)
{
    if (--s->refs > 0)
        return;
    assert(s->closed && !s->conns);
    while (s->spare_intakes) {
        struct intake *i = s->spare_intakes;
        s->spare_intakes = (struct intake *)i->request.next_free;
        intake_release(i);
        mem_free(i);
    }
    while (s->n_spare_bufs > 0)
        mem_free(s->spare_bufs[--s->n_spare_bufs].data);
    tls_server_close(s->tls);
    mem_free(s->read_buf);
    mem_free(s->plain_buf);
    mem_free(s);
}

static enum pawl_status server_fill(struct http_server *s, const struct http_conf *conf,
                                    struct pawl_err *err)
{
    if (!conf->tls_cert != !conf->tls_key)
        return err_set(err, PAWL_INVALID, "TLS needs both a certificate and a key");
    s->read_buf = mem_alloc(READ_LEN);
    s->plain_buf = conf->tls_cert ? mem_alloc(READ_LEN) : NULL;
    if (!s->read_buf || (conf->tls_cert && !s->plain_buf))
        return err_no_memory(err, "HTTP server");
    enum pawl_status st = PAWL_OK;
    if (conf->tls_cert)
        st = tls_server_open(conf->tls_cert, conf->tls_key, &s->tls, err);
    if (st == PAWL_OK)
        st = listener_open(&s->listener, conf->listen, s->tls != NULL, err);
    return st;
}

/* After this step http_close() frees it. */
static enum pawl_status server_start(struct http_server *s, struct pawl_err *err)
{
    int failed = uv_poll_init(&s->loop->uv, &s->poll, s->listener.fd);
    if (failed)
        return err_set(err, PAWL_BUSY, "listen on %s: %s", s->listener.address,
                       uv_strerror(failed));
    s->poll.data = s;
    s->refs++;
    failed = uv_poll_start(&s->poll, UV_READABLE, on_poll);
    if (failed)
        accept_pause(s);
    return PAWL_OK;
}

enum pawl_status http_open(struct loop *l, const struct http_conf *conf, struct http_server **out,
                           struct pawl_err *err)
{
    assert(conf->handler && conf->listen);
    struct http_server *s = mem_zalloc(sizeof *s);
    if (!s)
        return err_no_memory(err, "HTTP server");
    s->loop = l;
    s->conf = *conf;
    s->conf.listen = s->conf.tls_cert = s->conf.tls_key = NULL;
    s->rules = (struct intake_rules){ conf->limits, conf->body_max, conf->ctx, 0 };
    s->listener.fd = -1;
    s->accept_again.run = on_accept_again;
    s->flush.run = on_flush;
    s->refs = 1;
    enum pawl_status st = server_fill(s, conf, err);
    if (st == PAWL_OK)
        st = server_start(s, err);
    if (st == PAWL_OK) {
        *out = s;
        return PAWL_OK;
    }
    listener_close(&s->listener);
    s->closed = true;
    server_unref(s);
    return st;
}

const char *http_address(const struct http_server *s)
{
    return s->listener.address;
}

const char *http_reached_at(const struct http_server *s)
{
    return s->listener.reached;
}

void http_close(struct http_server *s)
{
    if (!s)
        return;
    s->drained = NULL;
    s->closed = true;
    loop_timer_cancel(s->loop, &s->drain_timer);
    stop_accepting(s);
    for (struct http_conn *c = s->conns; c; c = c->next)
        conn_close(c);
    server_unref(s);
}

/* ---- Draining -------------------------------------------------------------------------------- */

static void on_drain_task(struct loop_task *t)
{
    struct http_server *s = OF(struct http_server, drain_task, t);
    void (*drained)(void *ctx) = s->drained;
    s->drained = NULL;
    if (drained)
        drained(s->drained_ctx);
    server_unref(s);
}

/* Runs at the end of the iteration, so that the owner is not called from inside its own call. */
static void drain_look(struct http_server *s)
{
    if (!s->draining || !s->drained || s->conns || s->drain_task.run)
        return;
    loop_timer_cancel(s->loop, &s->drain_timer);
    s->drain_task.run = on_drain_task;
    s->refs++;
    loop_later(s->loop, &s->drain_task);
}

void server_conn_gone(struct http_server *s)
{
    drain_look(s);
    server_unref(s);
}

static void on_drain_timer(struct loop_timer *t)
{
    struct http_server *s = OF(struct http_server, drain_timer, t);
    for (struct http_conn *c = s->conns; c; c = c->next)
        conn_close(c);
}

void http_drain(struct http_server *s, int64_t deadline_us, void (*drained)(void *ctx), void *ctx)
{
    s->draining = true;
    s->drained = drained;
    s->drained_ctx = ctx;
    s->drain_timer.run = on_drain_timer;
    stop_accepting(s);
    for (struct http_conn *c = s->conns; c; c = c->next)
        conn_touch(c);
    loop_timer_set(s->loop, &s->drain_timer, deadline_us);
    drain_look(s);
}

void http_stats(const struct http_server *s, struct http_stats *out)
{
    *out = s->stats;
}
