/*
 * http.c - the cost of src/net: small answers a second and CPU time for each, with a handler that
 * answers at once and one that answers at the end of the loop iteration; compared with plain libuv,
 * which reads and writes the same bytes without parsing.
 *
 * The client is a thread with CONNS keep-alive connections, one request at a time on each. It
 * shares the machine, so the CPU time of the loop thread is the figure that can be compared between
 * machines.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "net/http.h"

#include <uv.h>

enum { CONNS = 64 };

static const char question[] = "POST /v1/calls?wait=10 HTTP/1.1\r\nHost: 127.0.0.1:7295\r\n"
                               "User-Agent: bench\r\nAccept: */*\r\n"
                               "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n"
                               "{\"type\":\"echo\",\"method\":\"run\",\"input\":{\"a\":1}}";
static const char body[] =
    "{\"id\":\"0193a1b2-7c1e-7000-8000-000000000000\",\"status\":\"completed\"}";

struct bench {
    struct loop *loop;
    struct http_server *server;
    struct loop_task later;
    struct http_request *waiting; /* linked by user: answered at the end of the loop iteration */
    bool put_off;
    double loop_cpu_s;
    atomic_llong done;
    atomic_bool stop;
};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void answer(struct http_request *r)
{
    http_reply(r, &(struct http_reply){ .status = 200, .body = { body, sizeof body - 1 } });
}

static void on_later(struct loop_task *t)
{
    struct bench *b = (struct bench *)((char *)t - offsetof(struct bench, later));
    while (b->waiting) {
        struct http_request *r = b->waiting;
        b->waiting = r->user;
        answer(r);
    }
}

static void handler(struct http_request *r, void *ctx)
{
    struct bench *b = ctx;
    if (!b->put_off) {
        answer(r);
        return;
    }
    if (!b->waiting)
        loop_later(b->loop, &b->later);
    r->user = b->waiting;
    b->waiting = r;
}

static void *serve(void *arg)
{
    struct bench *b = arg;
    loop_run(b->loop);
    b->loop_cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static int dial(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        abort();
    return fd;
}

static void ask(int fd)
{
    if (send(fd, question, sizeof question - 1, MSG_NOSIGNAL) != sizeof question - 1)
        abort();
}

/* An answer is small enough to come in one piece on loopback. */
static void load(struct bench *b, int port, double for_s)
{
    struct epoll_event ready[CONNS];
    int fds[CONNS], ep = epoll_create1(0);
    char data[4096];
    for (int i = 0; i < CONNS; i++) {
        fds[i] = dial(port);
        epoll_ctl(ep, EPOLL_CTL_ADD, fds[i],
                  &(struct epoll_event){ .events = EPOLLIN, .data.fd = fds[i] });
        ask(fds[i]);
    }
    double until = seconds(CLOCK_MONOTONIC) + for_s;
    while (seconds(CLOCK_MONOTONIC) < until) {
        int n = epoll_wait(ep, ready, CONNS, 100);
        for (int i = 0; i < n; i++) {
            if (recv(ready[i].data.fd, data, sizeof data, 0) <= 0)
                abort();
            ask(ready[i].data.fd);
        }
        atomic_fetch_add(&b->done, MAX(n, 0));
    }
    for (int i = 0; i < CONNS; i++)
        close(fds[i]);
    close(ep);
}

static void row(const char *name, double n, double took, double cpu_s)
{
    printf("%-44s %10.0f /s %8.2f us cpu each\n", name, n / took, cpu_s / n * 1e6);
}

static void measure(const char *name, bool put_off, double for_s)
{
    struct bench b = { .put_off = put_off, .later.run = on_later };
    struct http_conf conf = { .listen = "127.0.0.1:0", .handler = handler, .ctx = &b };
    struct pawl_err err;
    pthread_t thread;
    http_limits_init(&conf.limits);
    if (loop_open(&b.loop, &err) != PAWL_OK ||
        http_open(b.loop, &conf, &b.server, &err) != PAWL_OK) {
        fprintf(stderr, "bench http: %s\n", err.text);
        exit(1);
    }
    pthread_create(&thread, NULL, serve, &b);
    double begun = seconds(CLOCK_MONOTONIC);
    load(&b, (int)strtol(strrchr(http_address(b.server), ':') + 1, NULL, 10), for_s);
    double took = seconds(CLOCK_MONOTONIC) - begun;
    loop_stop(b.loop);
    pthread_join(thread, NULL);
    http_close(b.server);
    loop_close(b.loop);
    double n = (double)atomic_load(&b.done);
    row(name, n, took, b.loop_cpu_s);
}

/* ---- Plain libuv ----------------------------------------------------------------------------- */

struct floor_server {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_async_t stop;
    uv_tcp_t conns[CONNS];
    int n_conns;
    double cpu_s;
    char data[65536];
};

static const char fixed[] = "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 08:00:00 GMT\r\n"
                            "Content-Type: application/json\r\nContent-Length: 67\r\n"
                            "X-Content-Type-Options: nosniff\r\n\r\n"
                            "{\"id\":\"0193a1b2-7c1e-7000-8000-000000000000\","
                            "\"status\":\"completed\"}";

static void floor_alloc(uv_handle_t *h, size_t n, uv_buf_t *out)
{
    struct floor_server *f = h->loop->data;
    (void)n;
    *out = uv_buf_init(f->data, sizeof f->data);
}

static void floor_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    uv_buf_t all = uv_buf_init((char *)fixed, sizeof fixed - 1);
    (void)buf;
    if (n > 0)
        uv_try_write(stream, &all, 1);
}

static void floor_accept(uv_stream_t *listener, int status)
{
    struct floor_server *f = listener->loop->data;
    uv_tcp_t *c = &f->conns[f->n_conns++];
    (void)status;
    uv_tcp_init(&f->loop, c);
    uv_accept(listener, (uv_stream_t *)c);
    uv_read_start((uv_stream_t *)c, floor_alloc, floor_read);
}

static void floor_stop(uv_async_t *stop)
{
    uv_stop(stop->loop);
}

static void *floor_serve(void *arg)
{
    struct floor_server *f = arg;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    f->cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Its handles are freed when the process ends. */
static void measure_floor(double for_s)
{
    static struct floor_server f;
    struct bench b = { 0 };
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int len = sizeof at;
    pthread_t thread;
    uv_loop_init(&f.loop);
    f.loop.data = &f;
    uv_tcp_init(&f.loop, &f.listener);
    uv_async_init(&f.loop, &f.stop, floor_stop);
    uv_tcp_bind(&f.listener, (struct sockaddr *)&at, 0);
    uv_listen((uv_stream_t *)&f.listener, 128, floor_accept);
    uv_tcp_getsockname(&f.listener, (struct sockaddr *)&at, &len);
    pthread_create(&thread, NULL, floor_serve, &f);
    double begun = seconds(CLOCK_MONOTONIC);
    load(&b, ntohs(at.sin_port), for_s);
    double took = seconds(CLOCK_MONOTONIC) - begun;
    uv_async_send(&f.stop);
    pthread_join(thread, NULL);
    row("libuv alone", (double)atomic_load(&b.done), took, f.cpu_s);
}

int main(void)
{
    const char *quick = getenv("PAWL_BENCH_QUICK");
    double for_s = quick && *quick ? 1 : 4;
    printf("http: %d keep-alive connections, small answers\n", CONNS);
    measure("answered at once", false, for_s);
    measure("answered at the end of the turn", true, for_s);
    measure_floor(for_s);
    return 0;
}
