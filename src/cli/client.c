/*
 * client.c - requests and answers over one keep-alive connection (client.h).
 *
 * The server may close an idle connection just when a request is sent on it. When no byte of an
 * answer came, the request is sent once more on a new connection. Every request that writes names
 * an id or a lease, so sending it twice is harmless; requests that do not are marked `once`. The
 * first attempt may have arrived: if the second connection fails, a write returns UNKNOWN and not
 * BUSY.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/client.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/world.h"

#define CONNECT_US (10 * SEC_US)
/* The longest time for an answer to a request that does not wait for a call: a busy disk, a long
 * list, a slow network. */
#define ANSWER_US (60 * SEC_US)
/* The longest time to find out whether a server uses TLS. */
#define PROBE_US (3 * SEC_US)
#define BODY_LEN_MAX ((size_t)256 << 20)
#define READ_LEN (64 << 10)

struct client {
    struct client_url url;
    char *token;    /* owned; "" for none */
    char from[80];  /* where the token was set, for errors: "environment" */
    struct wire *w; /* owned; NULL: not connected. Changed under `lock` */
    bool used;      /* this connection has carried an answer before */
    pthread_mutex_t lock;
};

enum pawl_status client_open(const char *url, const char *token, struct client **out,
                             struct pawl_err *err)
{
    struct client *c = mem_zalloc(sizeof(*c));
    size_t len = strlen(token) + 1;
    *out = NULL;
    if (c)
        c->token = mem_alloc(len);
    if (!c || !c->token) {
        mem_free(c);
        return err_no_memory(err, "opening the client");
    }
    memcpy(c->token, token, len);
    pthread_mutex_init(&c->lock, NULL);
    enum pawl_status st = client_url_parse(url, &c->url, err);
    if (st == PAWL_OK && strpbrk(token, "\r\n"))
        st = err_set(err, PAWL_INVALID, "setting \"token\": a token must be a single line");
    if (st != PAWL_OK) {
        client_close(c);
        return st;
    }
    *out = c;
    return PAWL_OK;
}

enum pawl_status client_of(const struct cli *cli, struct client **out, struct pawl_err *err)
{
    const struct settings *s = &cli->settings;
    enum pawl_status st = client_open(s->v[SET_URL].text, s->v[SET_TOKEN].text, out, err);
    if (st == PAWL_OK)
        setting_from_text(s, SET_TOKEN, (*out)->from, sizeof((*out)->from));
    return st;
}

static void hang_up(struct client *c)
{
    pthread_mutex_lock(&c->lock);
    wire_close(TAKE(c->w));
    pthread_mutex_unlock(&c->lock);
}

void client_close(struct client *c)
{
    if (!c)
        return;
    hang_up(c);
    pthread_mutex_destroy(&c->lock);
    mem_free(c->token);
    mem_free(c);
}

void client_end(struct client **c)
{
    client_close(*c);
}

void client_leave(struct client *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->w)
        wire_half_close(c->w);
    pthread_mutex_unlock(&c->lock);
}

/* ---- One exchange ---------------------------------------------------------------------------- */

static enum pawl_status dial(struct client *c, struct pawl_err *err)
{
    struct wire *w = NULL;
    if (c->w)
        return PAWL_OK;
    enum pawl_status st = wire_open(&c->url, world_mono(&world_real) + CONNECT_US, &w, err);
    pthread_mutex_lock(&c->lock);
    c->w = w;
    pthread_mutex_unlock(&c->lock);
    c->used = false;
    return st;
}

static void write_head(struct client *c, const struct client_ask *ask, struct buf *b)
{
    const char *method = ask->method ? ask->method : "GET";
    bool six = strchr(c->url.host, ':') != NULL;
    buf_addf(b, "%s %s%s HTTP/1.1\r\nHost: %s%s%s", method, c->url.prefix, ask->path,
             six ? "[" : "", c->url.host, six ? "]" : "");
    if (*c->url.port)
        buf_addf(b, ":%s", c->url.port);
    buf_add_text(b, "\r\nUser-Agent: pawl/" PAWL_VERSION "\r\nAccept: application/json\r\n");
    if (*c->token)
        buf_addf(b, "Authorization: Bearer %s\r\n", c->token);
    if (ask->header)
        buf_addf(b, "%s\r\n", ask->header);
    if (ask->body.data || strcmp(method, "GET") != 0)
        buf_addf(b, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                 ask->type ? ask->type : "application/json", ask->body.len);
    buf_add_text(b, "\r\n");
}

/* Read more bytes into `in`. False at the end of the stream, on an error or when the time is up. */
static bool more(struct client *c, struct buf *in, int64_t until_us)
{
    char block[READ_LEN];
    long n = wire_read(c->w, block, sizeof(block), until_us);
    if (n <= 0)
        return false;
    buf_add(in, block, (size_t)n);
    return buf_ok(in);
}

static void drop(struct buf *in, size_t n)
{
    memmove(in->data, in->data + n, in->len - n);
    in->len -= n;
}

static bool read_body(struct client *c, const struct client_head *head, struct buf *in,
                      struct buf *out, int64_t until_us)
{
    if (head->status == 204 || head->status == 304)
        return true;
    if (head->chunked) {
        for (bool over = false;;) {
            long n = chunks_read(buf_bytes(in), out, &over);
            if (n < 0 || !buf_ok(out))
                return false;
            if (n > 0)
                drop(in, (size_t)n);
            if (over)
                return true;
            if (!more(c, in, until_us))
                return false;
        }
    }
    /* Without a length the answer ends when the connection ends. */
    while (head->length < 0 || in->len < (size_t)head->length)
        if (!more(c, in, until_us)) {
            if (head->length >= 0)
                return false;
            break;
        }
    buf_add(out, in->data, head->length < 0 ? in->len : (size_t)head->length);
    return buf_ok(out);
}

/* What was read when no complete answer came. */
enum came { CAME_NOTHING, CAME_PART, CAME_OTHER }; /* OTHER: bytes that are not HTTP */

static bool read_answer(struct client *c, struct client_head *head, struct buf *out,
                        int64_t until_us, enum came *out_came)
{
    struct buf in;
    long n = 0;
    buf_init(&in, BODY_LEN_MAX);
    while ((n = head_read(buf_bytes(&in), head)) == 0 || (n > 0 && head->status < 200)) {
        if (n > 0)
            drop(&in, (size_t)n); /* 100 Continue */
        else if (!more(c, &in, until_us))
            break;
    }
    *out_came = n < 0 ? CAME_OTHER : in.len > 0 ? CAME_PART : CAME_NOTHING;
    bool ok = n > 0;
    if (ok) {
        drop(&in, (size_t)n);
        ok = read_body(c, head, &in, out, until_us);
    }
    buf_release(&in);
    return ok;
}

static enum pawl_status lost(struct client *c, const char *how, struct pawl_err *err)
{
    char url[CLIENT_URL_TEXT_MAX];
    client_url_text(&c->url, url, sizeof(url));
    return err_set(err, PAWL_UNKNOWN, "the request was sent to %s, but %s", url, how);
}

/* The error for a request that was sent and not answered. `kept`: on a connection that had carried
 * an answer before. */
static enum pawl_status no_answer(struct client *c, enum came came, bool kept, bool late,
                                  struct pawl_err *err)
{
    char url[CLIENT_URL_TEXT_MAX];
    int64_t until_us = world_mono(&world_real) + PROBE_US;
    client_url_text(&c->url, url, sizeof(url));
    if (kept && came == CAME_NOTHING && !late)
        return err_set(err, PAWL_BUSY, "%s closed the connection", url);
    /* A TLS server closes the connection, or sends an alert, when it gets a request in plain text.
     */
    if (!kept && came != CAME_PART && !late && !c->url.tls && wire_speaks_tls(&c->url, until_us))
        return client_url_advice(&c->url, "speaks TLS", err);
    if (came == CAME_OTHER)
        return err_set(err, PAWL_INVALID, "the server at %s does not speak HTTP; is --url right?",
                       url);
    return lost(c, late ? "no answer came in time" : "its answer was lost", err);
}

/* One attempt. OK; UNKNOWN: the request may have arrived; BUSY: there was no connection, or
 * (*out_sent) a kept connection ended before any byte of an answer. */
static enum pawl_status exchange(struct client *c, const struct client_ask *ask,
                                 struct client_head *head, struct buf *body, bool *out_sent,
                                 struct pawl_err *err)
{
    struct buf b;
    if (c->w && wire_ended(c->w))
        hang_up(c);
    bool kept = c->w && c->used;
    enum came came = CAME_NOTHING;
    *out_sent = false;
    enum pawl_status st = dial(c, err);
    if (st != PAWL_OK)
        return st;
    int64_t until_us = world_mono(&world_real) + ANSWER_US + ask->wait_us;
    *out_sent = true;
    buf_init(&b, 64 << 10);
    write_head(c, ask, &b);
    bool sent = buf_ok(&b) && wire_write(c->w, buf_bytes(&b), until_us) &&
                (!ask->body.len || wire_write(c->w, ask->body, until_us));
    buf_release(&b);
    if (read_answer(c, head, body, sent ? until_us : world_mono(&world_real) + SEC_US, &came)) {
        c->used = true;
        if (head->close || (head->length < 0 && !head->chunked && head->status != 204))
            hang_up(c);
        return PAWL_OK;
    }
    bool late = world_mono(&world_real) >= until_us;
    hang_up(c);
    return no_answer(c, came, kept, late, err);
}

enum pawl_status client_send(struct client *c, struct arena *a, const struct client_ask *ask,
                             struct client_answer *out, struct pawl_err *err)
{
    struct client_head head;
    struct buf body;
    bool sent, again;
    buf_init(&body, BODY_LEN_MAX);
    enum pawl_status st = exchange(c, ask, &head, &body, &sent, err);
    if (st == PAWL_BUSY && sent && !ask->once) {
        buf_reset(&body);
        st = exchange(c, ask, &head, &body, &again, err);
        if (st == PAWL_BUSY && ask->method && strcmp(ask->method, "GET") != 0)
            st = lost(c, "its answer was lost", err);
    }
    if (st == PAWL_OK) {
        *out = (struct client_answer){ head.status, arena_copy(a, buf_bytes(&body)) };
        if (!out->body.data)
            st = err_no_memory(err, "reading the answer");
    }
    buf_release(&body);
    return st;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static enum pawl_status status_of(struct bytes code)
{
    for (int i = 1; i < PAWL_STATUS_COUNT; i++)
        if (bytes_eq(code, bytes_of(pawl_status_name((enum pawl_status)i))))
            return (enum pawl_status)i;
    return PAWL_BROKEN;
}

/* The server asks for a token, or rejects this one: say which setting the token came from. */
static enum pawl_status unauthorized(const struct client *c, struct pawl_err *err)
{
    char url[CLIENT_URL_TEXT_MAX];
    client_url_text(&c->url, url, sizeof(url));
    if (!*c->token)
        return err_set(err, PAWL_UNAUTHORIZED,
                       "%s requires a token, and none is set: set PAWL_TOKEN (`pawl token "
                       "new NAME ROLE` makes one)",
                       url);
    return err_set(err, PAWL_UNAUTHORIZED,
                   "%s does not accept this token (setting \"token\", from: %s); set PAWL_TOKEN to "
                   "one of its tokens",
                   url, *c->from ? c->from : "the program");
}

/* The error in the answer's body; an answer without Pawl's error object is reported by its HTTP
 * status. */
static enum pawl_status refused(const struct client *c, struct arena *a, int http,
                                const struct json *v, struct pawl_err *err)
{
    struct json *e = v ? json_member(v, "error") : NULL;
    struct bytes code = e ? json_string(a, json_member(e, "code")) : BYTES_NONE;
    struct bytes message = e ? json_string(a, json_member(e, "message")) : BYTES_NONE;
    if (!code.data || !message.data) {
        char url[CLIENT_URL_TEXT_MAX];
        client_url_text(&c->url, url, sizeof(url));
        return err_set(err, PAWL_BROKEN,
                       "%s answered HTTP %d, and the body is not an error of Pawl; is --url right?",
                       url, http);
    }
    if (status_of(code) == PAWL_UNAUTHORIZED)
        return unauthorized(c, err);
    return err_set(err, status_of(code), "%s", message.data);
}

/* Did a gateway answer because the server did not, or not in time? The server may have received the
 * request. */
static bool from_gateway(const struct client_answer *answer, const struct json *v)
{
    return (answer->status == 502 || answer->status == 504) && !(v && json_member(v, "error"));
}

static bool reads(const struct client_ask *ask)
{
    return !ask->method || strcmp(ask->method, "GET") == 0;
}

/* A 2xx or 3xx whose body is not what Pawl answers: another program, or a page of a proxy. */
static enum pawl_status not_pawl(const struct client *c, int http, const char *why,
                                 struct pawl_err *err)
{
    char url[CLIENT_URL_TEXT_MAX];
    client_url_text(&c->url, url, sizeof(url));
    return err_set(err, PAWL_BROKEN,
                   "%.300s answered HTTP %d, and the body is not an answer of Pawl: %s; is --url "
                   "right?",
                   url, http, why);
}

enum pawl_status client_json(struct client *c, struct arena *a, const struct client_ask *ask,
                             struct json **out, struct pawl_err *err)
{
    struct client_answer answer;
    struct json *v = NULL;
    char why[100] = "it is not JSON";
    assert(ask->list || ask->has || ask->any);
    enum pawl_status st = client_send(c, a, ask, &answer, err);
    if (st != PAWL_OK)
        return st;
    if (ask->out_http)
        *ask->out_http = answer.status;
    st = json_parse(a, answer.body, &v, NULL);
    if (from_gateway(&answer, st == PAWL_OK ? v : NULL) && !reads(ask))
        return lost(c, "a gateway answered in its place", err);
    if (answer.status >= 400)
        return refused(c, a, answer.status, st == PAWL_OK ? v : NULL, err);
    if (st != PAWL_OK || !answer_fits(v, ask, why, sizeof(why)))
        return not_pawl(c, answer.status, why, err);
    *out = v;
    return PAWL_OK;
}

void url_add(struct buf *b, struct bytes name)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (size_t i = 0; i < name.len; i++) {
        if (memchr(plain, name.data[i], sizeof(plain) - 1))
            buf_add_char(b, name.data[i]);
        else
            buf_addf(b, "%%%02X", (unsigned char)name.data[i]);
    }
}
