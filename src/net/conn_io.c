/*
 * conn_io.c - a connection and its socket: reads into the server's buffer, one write for all
 * answers of an iteration. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "net/server.h"

/* Bytes read ahead while a request is not answered; beyond this, reading stops. */
#define AHEAD_MAX 16384

/* ---- Reading --------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct http_conn *c = handle->data;
    (void)suggested;
    size_t len = READ_LEN;
    if (c->state < CONN_LAST && !conn_may_parse(c))
        len = AHEAD_MAX - MIN(conn_ahead(c), AHEAD_MAX - 1);
    *out = uv_buf_init(c->server->read_buf, (unsigned)len);
}

static void got_bytes(struct http_conn *c, struct bytes in)
{
    c->server->stats.bytes_in += (int64_t)in.len;
    if (!c->tls) {
        conn_input(c, in);
    } else {
        if (!tls_input(c->tls, c, in))
            conn_eof(c); /* broken: its last messages are sent, nothing more is read */
        if (c->tls && tls_pending(c->tls))
            conn_touch(c);
    }
    if (c->state < CONN_LAST && conn_ahead(c) >= AHEAD_MAX)
        conn_read_stop(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct http_conn *c = stream->data;
    if (n > 0) {
        got_bytes(c, (struct bytes){ buf->base, (size_t)n });
    } else if (n == UV_EOF) {
        conn_read_stop(c);
        conn_eof(c);
    } else if (n < 0) {
        conn_close(c); /* reset: nothing can be sent either */
    }
}

void conn_read_start(struct http_conn *c)
{
    if (c->reading || c->eof || c->state == CONN_CLOSED)
        return;
    c->reading = true;
    if (uv_read_start(&c->u.stream, on_alloc, on_read) != 0)
        conn_close(c);
}

void conn_read_stop(struct http_conn *c)
{
    if (c->reading && c->state != CONN_CLOSED)
        uv_read_stop(&c->u.stream);
    c->reading = false;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The queues of libuv and of the kernel: a slow client empties the kernel's long before libuv's
 * becomes shorter. */
size_t conn_queued(const struct http_conn *c)
{
    uv_os_fd_t fd;
    int sent = 0;
    if (uv_fileno(&c->u.handle, &fd) != 0 || ioctl(fd, SIOCOUTQ, &sent) != 0)
        sent = 0;
    return uv_stream_get_write_queue_size(&c->u.stream) + (size_t)sent;
}

static void wrote(struct http_conn *c)
{
    c->server->stats.bytes_out += (int64_t)c->wire.len;
    server_buf_put(c->server, &c->wire);
}

static void on_written(uv_write_t *write, int status)
{
    struct http_conn *c = write->handle->data;
    c->writing = false;
    if (c->state == CONN_CLOSED)
        return;
    if (status != 0) {
        conn_close(c);
        return;
    }
    wrote(c);
    conn_move(c, c->state); /* the deadline of the write no longer applies */
    conn_touch(c);
}

/* Move the answers to the buffer that is being written. */
static bool wire_fill(struct http_conn *c)
{
    assert(c->wire.len == 0);
    if (c->tls) {
        if (c->out.len > 0 || tls_pending(c->tls))
            server_buf(c->server, &c->wire);
        bool sealed = tls_seal(c->tls, &c->out, &c->wire);
        server_buf_put(c->server, &c->out);
        return sealed;
    }
    struct buf empty = c->wire;
    c->wire = c->out;
    c->out = empty;
    return true;
}

static void conn_write(struct http_conn *c)
{
    if (c->writing)
        return;
    if (!wire_fill(c)) {
        conn_close(c);
        return;
    }
    if (c->wire.len == 0)
        return;
    uv_buf_t all = uv_buf_init(c->wire.data, (unsigned)c->wire.len);
    int n = uv_try_write(&c->u.stream, &all, 1);
    if (n == (int)c->wire.len) {
        wrote(c);
        return;
    }
    size_t at = n > 0 ? (size_t)n : 0;
    uv_buf_t rest = uv_buf_init(c->wire.data + at, (unsigned)(c->wire.len - at));
    if ((n < 0 && n != UV_EAGAIN) || uv_write(&c->write, &c->u.stream, &rest, 1, on_written) != 0) {
        conn_close(c);
        return;
    }
    c->writing = true;
    c->queued_len = conn_queued(c);
    conn_move(c, c->state);
}

/* ---- The end of an iteration ----------------------------------------------------------------- */

static void conn_end(struct http_conn *c)
{
    uv_os_fd_t fd;
    if (c->tls) {
        tls_end(c->tls);
        conn_write(c);
    }
    if (!c->linger || c->eof || c->writing || c->state == CONN_CLOSED ||
        uv_fileno(&c->u.handle, &fd) != 0) {
        if (!c->writing)
            conn_close(c);
        return;
    }
    shutdown(fd, SHUT_WR);
    conn_move(c, CONN_LINGER);
    conn_read_start(c);
}

/* Nothing is left to parse or to write: close, or wait for more. */
static void conn_settle(struct http_conn *c)
{
    switch (c->state) {
    case CONN_IDLE:
        if (c->eof || c->server->draining)
            conn_close(c);
        break;
    case CONN_HEAD:
    case CONN_BODY:
        if (c->eof)
            conn_close(c); /* the rest of the request will not come */
        break;
    case CONN_LAST:
        conn_end(c);
        break;
    case CONN_LINGER:
        if (c->eof)
            conn_close(c);
        break;
    case CONN_BUSY:
    case CONN_CLOSED:
        break;
    }
}

void conn_flush(struct http_conn *c)
{
    do {
        conn_advance(c);
        if (c->state != CONN_CLOSED)
            conn_write(c);
    } while (conn_ahead(c) > 0 && conn_may_parse(c));
    if (c->state == CONN_CLOSED)
        return;
    if (c->state < CONN_LAST && conn_ahead(c) < AHEAD_MAX)
        conn_read_start(c);
    if (!c->writing && c->out.len == 0)
        conn_settle(c);
}
