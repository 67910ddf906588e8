/*
 * net_fixture.c - see net_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net_fixture.h"

/* ---- The handler ----------------------------------------------------------------------------- */

static void dump(struct http_request *r)
{
    struct buf b;
    buf_init(&b, 64 << 20);
    buf_addf(&b, "%s %.*s", http_method_name(r->method), BYTES_ARG(r->path));
    if (r->query.data)
        buf_addf(&b, " ?%.*s", BYTES_ARG(r->query));
    buf_addf(&b, "%s\n", r->too_large ? " too large" : "");
    for (size_t i = 0; i < r->n_headers; i++)
        buf_addf(&b, "%.*s=%.*s\n", BYTES_ARG(r->headers[i].name), BYTES_ARG(r->headers[i].value));
    buf_add_bytes(&b, r->body);
    http_reply(r, &(struct http_reply){
                      .status = 200, .content_type = "text/plain", .body = buf_bytes(&b) });
    buf_release(&b);
}

static void reply_text(struct http_request *r, const char *text)
{
    http_reply(r, &(struct http_reply){
                      .status = 200, .content_type = "text/plain", .body = bytes_of(text) });
}

static struct net_fixture *the_fixture; /* one per process: each case has its own */

static void on_gone(struct http_request *r)
{
    (void)r;
    atomic_fetch_add(&the_fixture->n_gone, 1);
}

static void on_leave(struct http_request *r)
{
    atomic_fetch_add(&the_fixture->n_gone, 1);
    atomic_fetch_sub(&the_fixture->n_parked, 1);
    reply_text(r, "left");
}

static void park(struct net_fixture *fixture, struct http_request *r)
{
    r->on_gone = on_gone;
    r->user = fixture->parked;
    fixture->parked = r;
    atomic_fetch_add(&fixture->n_parked, 1);
}

static void big(struct http_request *r, size_t n)
{
    char *data = malloc(n + 1);
    memset(data, 'x', n);
    http_reply(r, &(struct http_reply){ .status = 200, .body = { data, n } });
    free(data);
}

static void handler(struct http_request *r, void *ctx)
{
    struct net_fixture *fixture = ctx;
    atomic_fetch_add(&fixture->n_requests, 1);
    if (bytes_eq(r->path, BYTES("/park"))) {
        park(fixture, r);
    } else if (bytes_eq(r->path, BYTES("/leave"))) {
        r->on_gone = on_leave;
        atomic_fetch_add(&fixture->n_parked, 1);
    } else if (bytes_eq(r->path, BYTES("/close"))) {
        http_reply(r, &(struct http_reply){ .status = 200, .close = true });
    } else if (bytes_eq(r->path, BYTES("/204"))) {
        http_reply(r, &(struct http_reply){ .status = 204 });
    } else if (r->path.len > 5 && memcmp(r->path.data, "/big/", 5) == 0) {
        big(r, strtoul(r->path.data + 5, NULL, 10));
    } else if (bytes_eq(r->path, BYTES("/evil"))) {
        struct http_header h[] = { { BYTES("Location"), BYTES("/a\r\nX: y") },
                                   { BYTES("Retry-After"), BYTES("1") } };
        http_reply(r, &(struct http_reply){ .status = 202, .headers = h, .n_headers = 2 });
    } else {
        dump(r);
    }
}

/* ---- The server ------------------------------------------------------------------------------ */

void net_init(struct net_fixture *fixture)
{
    *fixture = (struct net_fixture){ .conf = { .listen = "127.0.0.1:0", .handler = handler } };
    fixture->conf.ctx = fixture;
    http_limits_init(&fixture->conf.limits);
}

static void *run(void *arg)
{
    loop_run(((struct net_fixture *)arg)->loop);
    return NULL;
}

void net_begin(struct net_fixture *fixture)
{
    struct pawl_err err;
    the_fixture = fixture;
    fixture->live = mem_live();
    OK(loop_open(&fixture->loop, &err), &err);
    OK(http_open(fixture->loop, &fixture->conf, &fixture->server, &err), &err);
    EQ_INT(pthread_create(&fixture->thread, NULL, run, fixture), 0);
}

struct errand {
    struct loop_task task;
    struct net_fixture *fixture;
    void (*fn)(struct net_fixture *fixture, void *arg);
    void *arg;
    atomic_bool done;
};

static void errand_run(struct loop_task *t)
{
    struct errand *e = (struct errand *)t;
    e->fn(e->fixture, e->arg);
    atomic_store(&e->done, true);
}

void net_on_loop(struct net_fixture *fixture, void (*fn)(struct net_fixture *fixture, void *arg),
                 void *arg)
{
    struct errand e = { .task.run = errand_run, .fixture = fixture, .fn = fn, .arg = arg };
    loop_post(fixture->loop, &e.task);
    NET_UNTIL(atomic_load(&e.done));
}

static void release(struct net_fixture *fixture, void *arg)
{
    (void)arg;
    while (fixture->parked) {
        struct http_request *r = fixture->parked;
        fixture->parked = r->user;
        atomic_fetch_sub(&fixture->n_parked, 1);
        reply_text(r, "late");
    }
}

void net_release(struct net_fixture *fixture)
{
    net_on_loop(fixture, release, NULL);
}

static void take_stats(struct net_fixture *fixture, void *out)
{
    http_stats(fixture->server, out);
}

void net_stats(struct net_fixture *fixture, struct http_stats *out)
{
    net_on_loop(fixture, take_stats, out);
}

static void close_it(struct net_fixture *fixture, void *arg)
{
    (void)arg;
    http_close(fixture->server);
}

void net_end(struct net_fixture *fixture)
{
    net_release(fixture);
    net_on_loop(fixture, close_it, NULL);
    loop_stop(fixture->loop);
    pthread_join(fixture->thread, NULL);
    loop_close(fixture->loop);
    EQ_INT(mem_live(), fixture->live);
}

/* ---- The client ------------------------------------------------------------------------------ */

void net_nap(void)
{
    nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

int net_port(struct net_fixture *fixture)
{
    return (int)strtol(strrchr(http_address(fixture->server), ':') + 1, NULL, 10);
}

int net_connect(struct net_fixture *fixture)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)net_port(fixture)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval tv = { 10L * check_scale(), 0 };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GE_INT(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    EQ_INT(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void net_send(int fd, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, bytes + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            FAIL("send failed after %zu of %zu bytes", at, len);
        at += (size_t)n;
    }
}

void net_say(int fd, const char *text)
{
    net_send(fd, text, strlen(text));
}

static _Thread_local char *answer_data;
static _Thread_local size_t answer_len, answer_cap;

static bool read_more(int fd, size_t n)
{
    if (answer_len + n + 1 > answer_cap) {
        answer_cap = 2 * (answer_len + n + 1);
        answer_data = realloc(answer_data, answer_cap);
    }
    ssize_t got = recv(fd, answer_data + answer_len, n, 0);
    if (got < 0)
        FAIL("no answer in time, or a reset; so far: %.*s", (int)answer_len,
             answer_data ? answer_data : "");
    answer_len += (size_t)got;
    answer_data[answer_len] = 0;
    return got > 0;
}

static void hide_date(void)
{
    char *date = strstr(answer_data, "\r\nDate: ");
    char *end = date ? strstr(date + 2, "\r\n") : NULL;
    if (!end)
        return;
    EQ_INT(end - date, 2 + 6 + 29);
    date[8] = '-';
    memmove(date + 9, end, strlen(end) + 1);
}

/* Byte by byte, so that the next answer stays in the socket. */
static size_t read_head(int fd)
{
    answer_len = 0;
    while (answer_len < 4 || memcmp(answer_data + answer_len - 4, "\r\n\r\n", 4) != 0)
        if (!read_more(fd, 1)) {
            EQ_UINT(answer_len, 0);
            return 0;
        }
    const char *length = strstr(answer_data, "Content-Length: ");
    return length ? strtoul(length + 16, NULL, 10) : 0;
}

const char *net_answer(int fd)
{
    size_t left = read_head(fd);
    while (left > 0) {
        size_t before = answer_len;
        if (!read_more(fd, left))
            FAIL("the body ends early: %s", answer_data);
        left -= answer_len - before;
    }
    hide_date();
    return answer_data;
}

const char *net_answer_head(int fd)
{
    read_head(fd);
    hide_date();
    return answer_data;
}

bool net_ended(int fd)
{
    char c;
    return recv(fd, &c, 1, 0) == 0;
}

const char *net_ask(struct net_fixture *fixture, const char *text)
{
    int fd = net_connect(fixture);
    net_say(fd, text);
    const char *answer = net_answer(fd);
    close(fd);
    return answer;
}

int net_status(struct net_fixture *fixture, const char *text)
{
    const char *answer = net_ask(fixture, text);
    EQ_MEM(answer, "HTTP/1.1 ", 9);
    return (int)strtol(answer + 9, NULL, 10);
}
