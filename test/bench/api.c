/*
 * api.c - the cost of POST /v1/calls?wait=10 from end to end on SQLite: calls a second with 64 and
 * with 1 keep-alive connection, CPU time of the loop thread for each call, and the memory of a
 * waiting caller.
 *
 * The client is a thread on the same machine, so the CPU time of the loop thread is the figure that
 * can be compared between machines.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "lib/lib.h"

enum { CONNS_MAX = 64, PARKED = 5000 };

static const char question[] = "POST /v1/calls?wait=10 HTTP/1.1\r\nHost: 127.0.0.1:7295\r\n"
                               "User-Agent: bench\r\nAccept: */*\r\n"
                               "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n"
                               "{\"type\":\"echo\",\"method\":\"run\",\"input\":{\"a\":1}}";
static const char waiting[] = "POST /v1/calls?wait=300 HTTP/1.1\r\nHost: 127.0.0.1:7295\r\n"
                              "User-Agent: bench\r\nAccept: */*\r\n"
                              "Content-Type: application/json\r\nContent-Length: 48\r\n\r\n"
                              "{\"type\":\"nobody\",\"method\":\"run\",\"input\":{\"a\":1}}";

struct bench {
    struct pawl *p;
    struct loop *loop;
    struct api *api;
    struct http_server *server;
    pthread_t thread;
    int port;
};

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

static void *serve(void *arg)
{
    loop_run(((struct bench *)arg)->loop);
    return NULL;
}

static void must(enum pawl_status st, const struct pawl_err *err)
{
    if (st == PAWL_OK)
        return;
    fprintf(stderr, "bench api: %s\n", err->text);
    exit(1);
}

static void begin(struct bench *b)
{
    struct pawl_err err;
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = "sqlite:bench-api.db", .node = "bench" };
    must(pawl_open(&o, &b->p, &err), &err);
    must(pawl_on(pawl_program(b->p), "echo", "run", echo), &err);
    must(pawl_start(b->p, NULL, &err), &err);
    must(loop_open(&b->loop, &err), &err);
    struct api_conf conf = { .exec = b->p->e, .loop = b->loop };
    must(api_open(&conf, &b->api, &err), &err);
    struct http_conf http = { .listen = "127.0.0.1:0", .handler = api_handle, .ctx = b->api };
    http_limits_init(&http.limits);
    must(http_open(b->loop, &http, &b->server, &err), &err);
    b->port = (int)strtol(strrchr(http_address(b->server), ':') + 1, NULL, 10);
    pthread_create(&b->thread, NULL, serve, b);
}

static void drained(void *ctx)
{
    loop_stop(((struct bench *)ctx)->loop);
}

struct errand {
    struct loop_task task;
    struct bench *b;
};

static void stop(struct loop_task *t)
{
    struct bench *b = ((struct errand *)t)->b;
    api_stop(b->api);
    http_drain(b->server, INT64_MAX, drained, b);
}

static void end(struct bench *b)
{
    struct errand e = { .task.run = stop, .b = b };
    loop_post(b->loop, &e.task);
    pthread_join(b->thread, NULL);
    http_close(b->server);
    api_close(b->api);
    loop_close(b->loop);
    pawl_close(b->p);
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

static void ask(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        abort();
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* An answer is small enough to come in one piece on loopback. */
static size_t load(struct bench *b, int conns, double for_s, double *took, size_t max)
{
    struct epoll_event ready[CONNS_MAX];
    int fds[CONNS_MAX], ep = epoll_create1(0);
    double asked[CONNS_MAX];
    char data[4096];
    size_t done = 0;
    for (int i = 0; i < conns; i++) {
        fds[i] = dial(b->port);
        epoll_ctl(ep, EPOLL_CTL_ADD, fds[i],
                  &(struct epoll_event){ .events = EPOLLIN, .data.fd = i });
        asked[i] = seconds(CLOCK_MONOTONIC);
        ask(fds[i], question);
    }
    double until = seconds(CLOCK_MONOTONIC) + for_s, now = 0;
    while (now < until) {
        int n = epoll_wait(ep, ready, conns, 100);
        now = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < n; i++) {
            int at = ready[i].data.fd;
            ssize_t len = recv(fds[at], data, sizeof data - 1, 0);
            if (len <= 0 || memcmp(data, "HTTP/1.1 200", 12))
                abort();
            if (done < max)
                took[done] = now - asked[at];
            done++;
            asked[at] = now;
            ask(fds[at], question);
        }
    }
    for (int i = 0; i < conns; i++)
        close(fds[i]);
    close(ep);
    return done;
}

static void measure(struct bench *b, int conns, double for_s)
{
    enum { SAMPLES = 1 << 20 };
    double *took = calloc(SAMPLES, sizeof *took);
    clockid_t cpu;
    pthread_getcpuclockid(b->thread, &cpu);
    double begun = seconds(CLOCK_MONOTONIC), cpu_begun = seconds(cpu);
    size_t n = load(b, conns, for_s, took, SAMPLES), kept = n < SAMPLES ? n : SAMPLES;
    double wall = seconds(CLOCK_MONOTONIC) - begun, cpu_s = seconds(cpu) - cpu_begun;
    qsort(took, kept, sizeof *took, compare);
    printf("%3d connections %10.0f calls/s %8.2f us loop cpu each   p50 %6.3f ms   p99 %6.3f ms\n",
           conns, (double)n / wall, cpu_s / (double)n * 1e6, took[kept / 2] * 1e3,
           took[kept * 99 / 100] * 1e3);
    free(took);
}

static double resident_mib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, pages = 0;
    if (!f || fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void park(struct bench *b)
{
    static int fds[PARKED];
    struct pawl_stats s = { PAWL_STATS_INIT };
    double before = resident_mib();
    for (int i = 0; i < PARKED; i++) {
        fds[i] = dial(b->port);
        ask(fds[i], waiting);
    }
    do {
        usleep(1000);
        pawl_stats(b->p, &s);
    } while (s.waiting < PARKED);
    usleep(200000);
    double after = resident_mib();
    printf("%d parked waits: %.1f MiB more, %.2f KiB each (%.1f MiB in all)\n", PARKED,
           after - before, (after - before) * 1024 / PARKED, after);
    for (int i = 0; i < PARKED; i++)
        close(fds[i]);
}

int main(void)
{
    const char *quick = getenv("PAWL_BENCH_QUICK");
    double for_s = quick && *quick ? 1 : 4;
    struct bench b = { 0 };
    struct rlimit files = { 3 * PARKED, 3 * PARKED };
    setrlimit(RLIMIT_NOFILE, &files);
    begin(&b);
    printf("api: POST /v1/calls?wait=10 on echo, SQLite\n");
    measure(&b, CONNS_MAX, for_s);
    measure(&b, 1, for_s);
    park(&b);
    end(&b);
    remove("bench-api.db");
    remove("bench-api.db-wal");
    remove("bench-api.db-shm");
    return 0;
}
