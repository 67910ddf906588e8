/*
 * net_conn.c - connections: clients that are slow, disconnect, or come in thousands; limits, drain,
 * shutdown.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/world.h"
#include "net_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void begin(struct net_fixture *fixture)
{
    net_init(fixture);
    net_begin(fixture);
}

static int64_t connections(struct net_fixture *fixture)
{
    struct http_stats s;
    net_stats(fixture, &s);
    return s.connections;
}

static void reset(int fd)
{
    struct linger now = { 1, 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* ---- Clients that leave ---------------------------------------------------------------------- */

TEST(notices_who_leaves_while_parked)
{
    struct net_fixture fixture;
    begin(&fixture);
    for (int i = 0; i < 2; i++) {
        int fd = net_connect(&fixture);
        net_say(fd, GET("/park"));
        NET_UNTIL(fixture.n_parked == i + 1);
        if (i == 0)
            close(fd);
        else
            reset(fd);
        NET_UNTIL(fixture.n_gone == i + 1);
    }
    net_release(&fixture); /* it goes nowhere, and does no harm */
    NET_UNTIL(connections(&fixture) == 0);
    EQ_INT(fixture.n_gone, 2);
    HAS_STR(net_ask(&fixture, GET("/dump")), "GET /dump\n");
    net_end(&fixture);
}

TEST(half_closed_clients_get_their_answers)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, GET("/dump") GET("/dump"));
    shutdown(fd, SHUT_WR);
    HAS_STR(net_answer(fd), "GET /dump\n");
    HAS_STR(net_answer(fd), "GET /dump\n");
    TRUE(net_ended(fd));
    close(fd);

    fd = net_connect(&fixture);
    net_say(fd, GET("/park") GET("/dump"));
    shutdown(fd, SHUT_WR);
    NET_UNTIL(fixture.n_gone == 1);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    HAS_STR(net_answer(fd), "GET /dump\n");
    TRUE(net_ended(fd));
    close(fd);

    fd = net_connect(&fixture);
    net_say(fd, GET("/leave"));
    NET_UNTIL(fixture.n_parked == 1);
    shutdown(fd, SHUT_WR);
    const char *answer = net_answer(fd);
    HAS_STR(answer, "left");
    HAS_STR(answer, "Connection: close\r\n");
    TRUE(net_ended(fd));
    close(fd);
    net_end(&fixture);
}

TEST(a_request_cut_short_is_nobodys)
{
    static const char *const parts[] = {
        "G", "GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    };
    struct net_fixture fixture;
    begin(&fixture);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        for (int way = 0; way < 2; way++) {
            int fd = net_connect(&fixture);
            net_say(fd, parts[i]);
            net_nap();
            if (way) {
                shutdown(fd, SHUT_WR);
                TRUE(net_ended(fd));
                close(fd);
            } else {
                reset(fd);
            }
        }
    NET_UNTIL(connections(&fixture) == 0);
    EQ_INT(fixture.n_requests, 0);
    net_end(&fixture);
}

/* ---- Time ------------------------------------------------------------------------------------ */

TEST(has_patience_only_for_so_long)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.limits.header_us = 60 * MS_US;
    fixture.conf.limits.body_us = 60 * MS_US;
    fixture.conf.limits.idle_us = 1 * SEC_US;
    net_begin(&fixture);
    int64_t begun = world_mono(&world_real); /* idle timeouts begin later */
    int head = net_connect(&fixture), body = net_connect(&fixture), idle = net_connect(&fixture),
        parked = net_connect(&fixture), fresh = net_connect(&fixture);
    net_say(head, "GET / HTTP/1.1\r\n");
    net_say(body, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc");
    net_say(idle, GET("/dump"));
    net_say(parked, GET("/park"));
    HAS_STR(net_answer(idle), "GET /dump\n");
    HAS_STR(net_answer(head), "HTTP/1.1 408 Request Timeout\r\n");
    TRUE(net_ended(head));
    HAS_STR(net_answer(body), "HTTP/1.1 408 Request Timeout\r\n");
    TRUE(net_ended(body));
    TRUE(net_ended(idle));
    GE_INT(world_mono(&world_real) - begun, fixture.conf.limits.idle_us);
    TRUE(net_ended(fresh));
    net_release(&fixture);
    HAS_STR(net_answer(parked), "late");
    TRUE(net_ended(parked));
    /* Each counts once, also when the wait for the client's close has timed out too. */
    struct http_stats s;
    NET_UNTIL(connections(&fixture) == 0);
    net_stats(&fixture, &s);
    EQ_INT(s.timeouts, 5);
    close(head);
    close(body);
    close(idle);
    close(parked);
    close(fresh);
    net_end(&fixture);
}

TEST(a_byte_now_and_then_does_not_help)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.limits.header_us = 100 * MS_US;
    net_begin(&fixture);
    int fd = net_connect(&fixture);
    int64_t begun = world_mono(&world_real);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    while (poll(&p, 1, 10) == 0 && world_mono(&world_real) - begun < 30 * SEC_US)
        net_say(fd, "G");
    HAS_STR(net_answer(fd), "HTTP/1.1 408 ");
    LT_INT(world_mono(&world_real) - begun, 15 * SEC_US * check_scale());
    close(fd);
    net_end(&fixture);
}

TEST(cuts_who_does_not_read, .deadline_s = 60)
{
    struct net_fixture fixture;
    net_init(&fixture);
    /* Longer than a busy machine delays the slow client. */
    fixture.conf.limits.write_us = 6 * SEC_US;
    net_begin(&fixture);
    int fd = net_connect(&fixture), slow = net_connect(&fixture);
    net_say(fd, GET("/big/30000000") GET("/dump"));
    net_say(slow, GET("/big/30000000"));
    /* One client reads nothing and is disconnected; the other reads a little all the time and gets
     * everything. */
    size_t got = 0;
    char *chunk = malloc(200000);
    while (got < 30000000) {
        ssize_t n = recv(slow, chunk, 200000, 0);
        GT_INT(n, 0);
        got += (size_t)n;
        net_nap();
    }
    free(chunk);
    NET_UNTIL(connections(&fixture) == 1);
    EQ_INT(fixture.n_requests, 2);
    struct http_stats s;
    net_stats(&fixture, &s);
    EQ_INT(s.timeouts, 1);
    close(fd);
    close(slow);
    net_end(&fixture);
}

TEST(answers_do_not_pile_up)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    for (int i = 0; i < 40; i++)
        net_say(fd, GET("/big/1000000"));
    for (int i = 0; i < 50; i++)
        net_nap();
    LT_INT(fixture.n_requests, 20); /* the rest is sent when the client reads */
    for (int i = 0; i < 40; i++)
        HAS_STR(net_answer(fd), "Content-Length: 1000000\r\n");
    close(fd);
    net_end(&fixture);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void more_files(void)
{
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur < 5000)
        skip("only %d descriptors", (int)r.rlim_cur);
}

TEST(serves_two_thousand, .deadline_s = 60)
{
    enum { N = 2000 };
    static int fds[N];
    struct net_fixture fixture;
    more_files();
    begin(&fixture);
    for (int i = 0; i < N; i++)
        fds[i] = net_connect(&fixture);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            net_say(fds[i], i % 2 ? GET("/dump") : GET("/park"));
        for (int i = 1; i < N; i += 2)
            HAS_STR(net_answer(fds[i]), "GET /dump\n");
        NET_UNTIL(fixture.n_parked == N / 2);
        net_release(&fixture);
        for (int i = 0; i < N; i += 2)
            HAS_STR(net_answer(fds[i]), "late");
    }
    EQ_INT(connections(&fixture), N);
    for (int i = 0; i < N; i += 2)
        net_say(fds[i], GET("/park"));
    NET_UNTIL(fixture.n_parked == N / 2);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    NET_UNTIL(fixture.n_gone == N / 2);
    net_release(&fixture);
    NET_UNTIL(connections(&fixture) == 0);
    net_end(&fixture);
}

/* Our memory for each idle connection: our allocations are counted, libuv's are not. */
TEST(an_idle_connection_is_small)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fds[20];
    for (int i = 0; i < 20; i++) {
        fds[i] = net_connect(&fixture);
        net_say(fds[i], GET("/big/5000"));
        net_answer(fds[i]);
    }
    int64_t before = mem_live();
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    NET_UNTIL(connections(&fixture) == 0);
    EQ_INT(before - mem_live(), 20); /* one block each */
    net_end(&fixture);
}

TEST(tells_who_is_one_too_many)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.limits.connections = 2;
    net_begin(&fixture);
    int a = net_connect(&fixture), b = net_connect(&fixture);
    net_say(a, GET("/park"));
    net_say(b, GET("/dump"));
    HAS_STR(net_answer(b), "GET /dump\n");
    for (int i = 0; i < 200; i++) {
        int c = net_connect(&fixture);
        HAS_STR(net_answer(c), "HTTP/1.1 503 Service Unavailable\r\n");
        TRUE(net_ended(c));
        close(c);
    }
    struct http_stats s;
    net_stats(&fixture, &s);
    EQ_INT(s.refused, 200);
    EQ_INT(s.connections, 2);
    close(b);
    NET_UNTIL(connections(&fixture) == 1);
    HAS_STR(net_ask(&fixture, GET("/dump")), "GET /dump\n");
    net_release(&fixture);
    HAS_STR(net_answer(a), "late");
    close(a);
    net_end(&fixture);
}

TEST(out_of_descriptors_it_waits)
{
    enum { N = 40 };
    struct net_fixture fixture;
    begin(&fixture);
    int fds[N], first = net_connect(&fixture);
    net_say(first, GET("/dump"));
    net_answer(first);
    for (int i = 0; i < N; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rlimit r = { (rlim_t)fds[N - 1] + 3, 4096 };
    EQ_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)net_port(&fixture)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < N; i++)
        EQ_INT(connect(fds[i], (struct sockaddr *)&to, sizeof to), 0);
    struct timespec cpu, later;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    for (int i = 0; i < 150; i++)
        net_nap();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &later);
    int64_t used_us = (later.tv_sec - cpu.tv_sec) * SEC_US + (later.tv_nsec - cpu.tv_nsec) / 1000;
    LT_INT(used_us, 150 * MS_US); /* of 300 ms: the loop does not spin */
    net_say(first, GET("/dump"));
    HAS_STR(net_answer(first), "GET /dump\n");
    r.rlim_cur = 1024;
    EQ_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
    for (int i = 0; i < N; i++) {
        net_say(fds[i], GET("/dump"));
        HAS_STR(net_answer(fds[i]), "GET /dump\n");
        close(fds[i]);
    }
    close(first);
    net_end(&fixture);
}

/* ---- One loop iteration ---------------------------------------------------------------------- */

static struct loop_task put_off;
static struct http_request *waiting;
static int n_waiting, n_at_once;

static void on_put_off(struct loop_task *t)
{
    (void)t;
    n_at_once = n_waiting;
    while (waiting) {
        struct http_request *r = waiting;
        waiting = r->user;
        http_reply(r, &(struct http_reply){ .status = 200 });
    }
}

static void putting_off(struct http_request *r, void *ctx)
{
    struct net_fixture *fixture = ctx;
    if (!waiting)
        loop_later(fixture->loop, &put_off);
    r->user = waiting;
    waiting = r;
    n_waiting++;
}

/* Has the other side acknowledged everything that was sent, so that it can read it? */
static bool all_arrived(int fd)
{
    int left = 0;
    EQ_INT(ioctl(fd, SIOCOUTQ, &left), 0);
    return left == 0;
}

/* The loop is blocked while `arg` clients send, so that one iteration finds all of them. */
static void send_all(struct net_fixture *fixture, void *arg)
{
    int *fds = arg;
    (void)fixture;
    for (int i = 0; i < 50; i++)
        net_say(fds[i], GET("/dump"));
    for (int i = 0; i < 50; i++)
        NET_UNTIL(all_arrived(fds[i]));
}

TEST(a_turns_requests_are_all_handed_over_before_anything_put_off)
{
    struct net_fixture fixture;
    int fds[50];
    net_init(&fixture);
    put_off.run = on_put_off;
    fixture.conf.handler = putting_off;
    net_begin(&fixture);
    for (int i = 0; i < 50; i++)
        fds[i] = net_connect(&fixture);
    NET_UNTIL(connections(&fixture) == 50);
    net_on_loop(&fixture, send_all, fds);
    for (int i = 0; i < 50; i++) {
        HAS_STR(net_answer(fds[i]), "HTTP/1.1 200 OK\r\n");
        close(fds[i]);
    }
    EQ_INT(n_at_once, 50);
    net_end(&fixture);
}

TEST(answers_of_a_turn_are_one_write)
{
    struct net_fixture fixture;
    char data[4096];
    begin(&fixture);
    int fd = net_connect(&fixture);
    for (int round = 0; round < 50; round++) {
        net_say(fd, GET("/204") GET("/204") GET("/204"));
        ssize_t n = recv(fd, data, sizeof data, 0);
        EQ_INT(n, 3 * 97);
    }
    close(fd);
    net_end(&fixture);
}
