/*
 * client.c - the load generator of the HTTP figures (client.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/table.h"

#define EVENTS 128
/* A server that is this late with an answer is an error, so that the benchmark does not wait for
 * ever. */
#define SILENCE_MS 5000
#define WAIT_S 10
/* How long it may take until thousands of callers wait. */
#define PARK_S 15
/* Files besides the connections: epoll, a database, the terminal. */
#define FILES_BESIDE 64

struct conn {
    int fd;
    size_t len;
    double asked;
    char answer[4096];
};

struct load {
    const struct bench_hits *hits;
    struct conn *conns; /* owned */
    int ep;
    char question[512];
    size_t question_len;
    char *digits; /* where the key stands in the request; NULL: it has none */
    size_t next_key;
    double *us; /* owned; the latencies */
    size_t n, max;
    bool counts; /* true after warming up */
};

size_t bench_client_files(size_t connections)
{
    struct rlimit limit;
    rlim_t want = connections + FILES_BESIDE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < want) {
        rlim_t hard = limit.rlim_max, was = limit.rlim_cur;
        limit.rlim_max = MAX(hard, want); /* only root may raise the hard limit; the second call
                                             takes what is allowed */
        limit.rlim_cur = want;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            limit = (struct rlimit){ MIN(want, hard), hard };
            if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
                limit.rlim_cur = was;
        }
    }
    return limit.rlim_cur > FILES_BESIDE ? (size_t)limit.rlim_cur - FILES_BESIDE : 0;
}

static int wait_of(const struct bench_hits *h)
{
    return h->wait_s ? h->wait_s : WAIT_S;
}

/* ---- Connections ----------------------------------------------------------------------------- */

static int dial(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

#define KEY_DIGITS 5

static size_t question_make(char *out, size_t size, const struct bench_hits *h, int wait_s)
{
    char body[200], wait[32] = "";
    int len = h->keys ? snprintf(body, sizeof body,
                                 "{\"type\":\"Wallet\",\"method\":\"add\",\"input\":1,"
                                 "\"key\":\"wallet-%0*d\"}",
                                 KEY_DIGITS, 0)
                      : snprintf(body, sizeof body,
                                 "{\"type\":\"%s\",\"queue\":\"%s\",\"priority\":%d,"
                                 "\"input\":{\"order\":1234567}}",
                                 h->type, h->queue ? h->queue : "default", h->priority);
    if (!h->no_wait)
        snprintf(wait, sizeof wait, "?wait=%d", wait_s);
    int n = snprintf(out, size,
                     "POST /v1/calls%s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                     wait, len, body);
    return (size_t)n;
}

/* Write the next key over the digits of the last one. */
static void key_next(struct load *l)
{
    size_t n = l->next_key++ % l->hits->keys;
    for (int i = KEY_DIGITS - 1; i >= 0; i--, n /= 10)
        l->digits[i] = (char)('0' + n % 10);
}

static bool ask(struct load *l, struct conn *c)
{
    c->len = 0;
    if (l->digits)
        key_next(l);
    c->asked = bench_clock();
    return send(c->fd, l->question, l->question_len, MSG_NOSIGNAL) == (ssize_t)l->question_len;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Parse the answer at the front of the buffer. Returns its length, 0 while it is incomplete, -1
 * when it is not as expected. */
static long answer_len(const char *text, size_t len)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    const char *length = memmem(text, (size_t)(end - text), "ontent-", 7);
    while (length && strncasecmp(length, "ontent-length: ", 15) != 0)
        length = memmem(length + 1, (size_t)(end - length - 1), "ontent-", 7);
    if (!length)
        return -1;
    long body = strtol(length + 15, NULL, 10), all = (long)(end + 4 - text) + body;
    return body < 0 ? -1 : (size_t)all > len ? 0 : all;
}

static bool is_right(const struct load *l, const char *text, long len)
{
    static const char word[] = "\"status\":\"completed\"";
    if (l->hits->no_wait)
        return strncmp(text, "HTTP/1.1 202", 12) == 0;
    return strncmp(text, "HTTP/1.1 200", 12) == 0 &&
           memmem(text, (size_t)len, word, sizeof word - 1);
}

/* Read what has come. False: the server answered something unexpected. */
static bool take(struct load *l, struct conn *c)
{
    ssize_t got = recv(c->fd, c->answer + c->len, sizeof c->answer - 1 - c->len, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    c->len += (size_t)got;
    c->answer[c->len] = 0;
    long all = answer_len(c->answer, c->len);
    if (all == 0)
        return c->len < sizeof c->answer - 1;
    if (all < 0 || (size_t)all != c->len || !is_right(l, c->answer, all))
        return false;
    if (l->counts) {
        if (l->n < l->max)
            l->us[l->n] = (bench_clock() - c->asked) * 1e6;
        l->n++;
    }
    return ask(l, c);
}

static enum pawl_status wrong(const struct conn *c, struct pawl_err *err)
{
    return err_set(err, PAWL_BROKEN, "the server answered \"%.*s\"", (int)MIN(c->len, 120),
                   c->answer);
}

/* ---- The load -------------------------------------------------------------------------------- */

static enum pawl_status turn(struct load *l, struct pawl_err *err)
{
    struct epoll_event events[EVENTS];
    int silence_ms = wait_of(l->hits) * 1000 + SILENCE_MS;
    int n = epoll_wait(l->ep, events, EVENTS, silence_ms);
    if (n == 0)
        return err_set(err, PAWL_BUSY, "the server has not answered for %d s", silence_ms / 1000);
    for (int i = 0; i < n; i++)
        if (!take(l, events[i].data.ptr))
            return wrong(events[i].data.ptr, err);
    return PAWL_OK;
}

static enum pawl_status run(struct load *l, double seconds, double *out_s, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    double began = bench_clock(), now = began;
    size_t most = l->hits->calls ? l->hits->calls : SIZE_MAX;
    for (; st == PAWL_OK && now - began < seconds && l->n < most; now = bench_clock())
        st = turn(l, err);
    *out_s = now - began;
    return st;
}

static enum pawl_status connect_all(struct load *l, struct pawl_err *err)
{
    for (size_t i = 0; i < l->hits->conns; i++) {
        struct conn *c = &l->conns[i];
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
        c->fd = dial(l->hits->port);
        if (c->fd < 0 || epoll_ctl(l->ep, EPOLL_CTL_ADD, c->fd, &e) != 0 || !ask(l, c))
            return err_set(err, PAWL_BUSY, "connection %zu of %zu: errno %d", i + 1, l->hits->conns,
                           errno);
    }
    return PAWL_OK;
}

static enum pawl_status measure(struct load *l, struct bench_hit *out, struct pawl_err *err)
{
    double took = 0;
    enum pawl_status st = connect_all(l, err);
    l->counts = l->hits->at_once;
    if (st == PAWL_OK && !l->counts)
        st = run(l, l->hits->seconds / 5, &took, err);
    l->counts = true;
    if (st == PAWL_OK)
        st = run(l, l->hits->seconds, &took, err);
    if (st == PAWL_OK)
        *out = (struct bench_hit){ .per_s = (double)l->n / took,
                                   .p50_us = bench_quantile(l->us, MIN(l->n, l->max), 0.5),
                                   .p99_us = bench_quantile(l->us, MIN(l->n, l->max), 0.99) };
    return st;
}

enum pawl_status bench_client_hit(const struct bench_hits *h, struct bench_hit *out,
                                  struct pawl_err *err)
{
    struct load l = { .hits = h, .max = 1 << 20, .ep = epoll_create1(EPOLL_CLOEXEC) };
    enum pawl_status st = PAWL_OK;
    l.question_len = question_make(l.question, sizeof l.question, h, wait_of(h));
    l.digits = h->keys ? strstr(l.question, "wallet-") + sizeof "wallet-" - 1 : NULL;
    l.conns = calloc(h->conns, sizeof *l.conns);
    l.us = calloc(l.max, sizeof *l.us);
    if (!l.conns || !l.us)
        st = err_no_memory(err, "the load");
    for (size_t i = 0; l.conns && i < h->conns; i++)
        l.conns[i].fd = -1;
    if (st == PAWL_OK)
        st = measure(&l, out, err);
    for (size_t i = 0; l.conns && i < h->conns; i++)
        if (l.conns[i].fd >= 0)
            close(l.conns[i].fd);
    close(l.ep);
    free(l.conns);
    free(l.us);
    return st;
}

/* ---- Waiting callers ------------------------------------------------------------------------- */

struct bench_parked {
    size_t n;
    int fds[];
};

/* The value of one gauge of /metrics; -1: it could not be read. */
static long gauge(int port, const char *name)
{
    static const char head[] =
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    enum { ROOM = 1 << 18 };
    char *text = malloc(ROOM);
    size_t len = 0;
    long value = -1;
    int fd = dial(port);
    if (text && fd >= 0 && send(fd, head, sizeof head - 1, MSG_NOSIGNAL) > 0) {
        for (ssize_t got; len < ROOM - 1 && (got = recv(fd, text + len, ROOM - 1 - len, 0)) > 0;)
            len += (size_t)got;
        text[len] = 0;
        const char *at = strstr(text, name);
        value = at ? strtol(at + strlen(name), NULL, 10) : -1;
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return value;
}

static enum pawl_status all_wait(const struct bench_hits *h, struct pawl_err *err)
{
    double until = bench_clock() + PARK_S;
    long n = 0;
    while (bench_clock() < until) {
        n = gauge(h->port, "\npawl_callers_waiting ");
        if (n >= (long)h->conns)
            return PAWL_OK;
        usleep(10000);
    }
    return err_set(err, PAWL_BUSY, "%ld of %zu callers wait after %d s", n, h->conns, PARK_S);
}

enum pawl_status bench_client_park(const struct bench_hits *h, struct bench_parked **out,
                                   struct pawl_err *err)
{
    struct bench_parked *p = calloc(1, sizeof *p + h->conns * sizeof p->fds[0]);
    if (!p)
        return err_no_memory(err, "the callers");
    enum pawl_status st = PAWL_OK;
    char question[512];
    ssize_t len = (ssize_t)question_make(question, sizeof question, h, 60);
    while (st == PAWL_OK && p->n < h->conns) {
        int fd = dial(h->port);
        if (fd < 0 || send(fd, question, (size_t)len, MSG_NOSIGNAL) != len)
            st = err_set(err, PAWL_BUSY, "connection %zu of %zu: errno %d", p->n + 1, h->conns,
                         errno);
        if (fd >= 0)
            p->fds[p->n++] = fd;
    }
    if (st == PAWL_OK)
        st = all_wait(h, err);
    if (st == PAWL_OK)
        *out = p;
    else
        bench_client_leave(p);
    return st;
}

void bench_client_leave(struct bench_parked *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        close(p->fds[i]);
    free(p);
}
