/*
 * web.c - see web.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "web.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/text.h"
#include "base/world.h"
#include "exec/write_job.h"
#include "feature/cron.h"
#include "lib/lib.h"

/* ---- The server ------------------------------------------------------------------------------ */

/* For each thread that sends requests. */
static struct arena *memory(void)
{
    static _Thread_local struct arena a;
    if (!a.max)
        arena_init(&a, (size_t)1 << 30);
    return &a;
}

void web_forget(void)
{
    arena_release(memory());
}

static void *run(void *arg)
{
    loop_run(((struct web *)arg)->loop);
    return NULL;
}

void web_begin_as(struct web *w, struct pawl *p, const struct api_conf *given)
{
    struct pawl_err err;
    struct api_conf conf = given ? *given : (struct api_conf){ 0 };
    struct http_conf http = { .listen = "127.0.0.1:0", .handler = api_handle };
    *w = (struct web){ .p = p };
    OK(loop_open(&w->loop, &err), &err);
    conf.exec = p->e;
    conf.loop = w->loop;
    OK(api_open(&conf, &w->api, &err), &err);
    http_limits_init(&http.limits);
    http.ctx = w->api;
    http.error_body = api_error_body;
    http.body_max = api_body_max;
    http.body_max = api_body_max;
    OK(http_open(w->loop, &http, &w->server, &err), &err);
    api_serves(w->api, w->server);
    EQ_INT(pthread_create(&w->thread, NULL, run, w), 0);
}

void web_begin(struct web *w, const void *param)
{
    web_begin_as(w, fixture_open(param), NULL);
}

struct errand {
    struct loop_task task;
    struct web *w;
};

static void drained(void *ctx)
{
    loop_stop(((struct web *)ctx)->loop);
}

static void stop(struct loop_task *t)
{
    struct web *w = ((struct errand *)t)->w;
    api_stop(w->api);
    http_drain(w->server, fixture_mono() + 5 * FIXTURE_SEC * check_scale(), drained, w);
}

void web_stop(struct web *w)
{
    struct errand e = { .task.run = stop, .w = w };
    loop_post(w->loop, &e.task);
    pthread_join(w->thread, NULL);
    w->stopped = true;
}

void web_end(struct web *w)
{
    if (!w->stopped)
        web_stop(w);
    http_close(w->server);
    api_close(w->api);
    loop_close(w->loop);
    pawl_close(w->p);
    web_forget();
}

/* ---- The client ------------------------------------------------------------------------------ */

char *web_text(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    GE_INT(n, 0);
    char *copy = arena_text(memory(), bytes_of(text));
    free(text);
    TRUE(copy);
    return copy;
}

int web_connect(struct web *w)
{
    int port = (int)strtol(strrchr(http_address(w->server), ':') + 1, NULL, 10);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval tv = { 30L * check_scale(), 0 };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GE_INT(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    EQ_INT(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void web_send(struct web *w, int fd, const char *method, const char *path, const char *body)
{
    char *token = w->token ? web_text("Authorization: Bearer %s\r\n", w->token) : "";
    const char *more = w->more ? w->more : "";
    /* A test of the Host header sets its own. */
    const char *host = strncasecmp(more, "host:", 5) ? "Host: localhost\r\n" : "";
    char *text = web_text("%s %s HTTP/1.1\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
                          host, token, more, body ? strlen(body) : 0, body ? body : "");
    for (size_t at = 0, len = strlen(text); at < len;) {
        ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);
        GT_INT(n, 0);
        at += (size_t)n;
    }
}

/* Read as many bytes as the head announces. */
static void read_answer(int fd, struct buf *b, size_t *out_head)
{
    char piece[65536];
    size_t head = 0, want = SIZE_MAX;
    while (b->len < want) {
        ssize_t n = recv(fd, piece, head ? MIN(sizeof piece, want - b->len) : 1, 0);
        if (n <= 0)
            FAIL("no answer in time; so far: %.*s", (int)b->len, b->data ? b->data : "");
        buf_add(b, piece, (size_t)n);
        if (head || b->len < 4 || memcmp(b->data + b->len - 4, "\r\n\r\n", 4) != 0)
            continue;
        head = b->len;
        buf_add_char(b, '\0');
        b->len--;
        const char *length = strcasestr(b->data, "\r\ncontent-length: ");
        want = head + (length ? strtoul(length + 18, NULL, 10) : 0);
    }
    *out_head = head;
}

struct web_answer web_take(int fd)
{
    struct buf b;
    size_t head;
    struct pawl_err err;
    buf_init(&b, (size_t)256 << 20);
    read_answer(fd, &b, &head);
    struct bytes all = arena_copy(memory(), buf_bytes(&b));
    buf_release(&b);
    struct web_answer a = { .head = { all.data, head },
                            .body = { all.data + head, all.len - head },
                            .status = (int)strtol(all.data + 9, NULL, 10) };
    if (a.body.len && (a.body.data[0] == '{' || a.body.data[0] == '['))
        OK(json_parse(memory(), a.body, &a.json, &err), &err);
    return a;
}

struct web_answer web_ask(struct web *w, const char *method, const char *path, const char *body)
{
    int fd = web_connect(w);
    web_send(w, fd, method, path, body);
    struct web_answer a = web_take(fd);
    close(fd);
    return a;
}

/* ---- Reading answers ------------------------------------------------------------------------- */

static const struct json *step(const struct json *v, const char *name)
{
    int64_t i;
    if (v->kind == JSON_OBJECT)
        return json_member(v, name);
    if (v->kind != JSON_ARRAY || !int_parse(bytes_of(name), &i))
        return NULL;
    const struct json *one = v->first;
    while (one && i-- > 0)
        one = one->next;
    return one;
}

const char *web_at(struct web_answer a, const char *path)
{
    const struct json *v = a.json;
    while (v && *path) {
        size_t len = strcspn(path, ".");
        v = step(v, arena_text(memory(), (struct bytes){ path, len }));
        path += len + (path[len] == '.');
    }
    if (!v)
        return NULL;
    return arena_text(memory(), v->kind == JSON_STRING ? json_string(memory(), v) : v->raw);
}

int64_t web_int(struct web_answer a, const char *path)
{
    int64_t n;
    const char *text = web_at(a, path);
    if (!text || !int_parse(bytes_of(text), &n))
        FAIL("%s is %s, not a whole number", path, text ? text : "not there");
    return n;
}

int web_open_requests(struct web *w)
{
    struct web_answer a = GET(w, "/metrics");
    const char *at = strstr(a.body.data, "\npawl_requests_open ");
    TRUE(at);
    return (int)strtol(at + sizeof "\npawl_requests_open " - 1, NULL, 10) - 1;
}

/* ---- Schedules ------------------------------------------------------------------------------- */

void web_tick(struct web *w)
{
    struct cron_op cron = { .what = CRON_TICK, .node = BYTES("test"), .max = 100 };
    struct arena a;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_FEATURE,
                     .a = &a,
                     .feature = { .of = &feature_cron, .ctx = &cron } };
    OK(exec_do(w->p->e, &op), &op.err);
    arena_release(&a);
}

const char *web_time(int64_t us)
{
    char text[TIME_TEXT_LEN + 1];
    time_text(us, text);
    return web_text("%s", text);
}

/* The time between the choice and the answer may be long on a busy machine: then once more. */
int64_t web_put_times(struct web *w, const char *name, int n, const char *members)
{
    for (int64_t margin_us = 300 * FIXTURE_MS;; margin_us *= 2) {
        int64_t first_us = (world_now(&world_real) + margin_us) | 1; /* no whole second */
        const char *times = "";
        for (int i = 0; i < n; i++)
            times =
                web_text("%s%s\"%s\"", times, i ? "," : "", web_time(first_us + i * FIXTURE_MS));
        struct web_answer a = web_ask(w, "PUT", web_text("/v1/schedules/%s", name),
                                      web_text("{\"at\":[%s]%s}", times, members));
        if (a.status / 100 == 2 && !strcmp(AT(a, "next_at"), web_time(first_us)))
            return first_us;
        if (margin_us > FIXTURE_WAIT_US)
            FAIL("%d: %.*s", a.status, BYTES_ARG(a.body));
    }
}

void web_wait_past(int64_t us)
{
    UNTIL(world_now(&world_real) > us + 10 * FIXTURE_MS);
}
