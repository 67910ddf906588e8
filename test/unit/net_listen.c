/*
 * net_listen.c - addresses, socket files, draining, shutdown, and the answers that the server
 * generates itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

static int64_t bytes_in(struct net_fixture *fixture)
{
    struct http_stats s;
    net_stats(fixture, &s);
    return s.bytes_in;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static void refused_as(const char *listen, enum pawl_status want, const char *text)
{
    struct net_fixture fixture;
    struct pawl_err err;
    net_init(&fixture);
    fixture.conf.listen = listen;
    OK(loop_open(&fixture.loop, &err), &err);
    EQ_STATUS(http_open(fixture.loop, &fixture.conf, &fixture.server, &err), want, &err);
    HAS_STR(err.text, text);
    loop_close(fixture.loop);
}

/* 0.0.0.0 means all addresses to the one who listens, and the caller itself to one who connects. */
TEST(is_reached_by_the_name_of_the_machine)
{
    static const struct {
        const char *listen, *address;
        bool named;
    } cases[] = { { "0.0.0.0:0", "http://0.0.0.0:", true },
                  { "127.0.0.1:0", "http://127.0.0.1:", false },
                  { "unix:here.sock", "unix:here.sock", false } };
    char host[300] = "";
    EQ_INT(gethostname(host, sizeof(host) - 1), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct net_fixture fixture;
        char want[400];
        net_init(&fixture);
        fixture.conf.listen = cases[i].listen;
        net_begin(&fixture);
        const char *address = http_address(fixture.server);
        HAS_STR(address, cases[i].address);
        snprintf(want, sizeof(want), "http://%s%s", host, strrchr(address, ':'));
        EQ_STR(http_reached_at(fixture.server), cases[i].named ? want : address);
        net_end(&fixture);
    }
}

TEST(refuses_addresses)
{
    static const char *const wrong[] = {
        "",      "x",       ":80",        "127.0.0.1",       "::1:80",
        "[::1]", "[::1:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:8x",
        "[]:80", "unix:"
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        refused_as(wrong[i], PAWL_INVALID, "listen on ");
    refused_as("192.0.2.1:0", PAWL_INVALID, "listen on 192.0.2.1:0: ");
    struct net_fixture fixture;
    char taken[40];
    begin(&fixture);
    snprintf(taken, sizeof taken, "127.0.0.1:%d", net_port(&fixture));
    refused_as(taken, PAWL_BUSY, "in use");
    net_end(&fixture);
}

TEST(listens_on_ipv6)
{
    struct net_fixture fixture;
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) != 0)
        skip("no IPv6 here");
    net_init(&fixture);
    fixture.conf.listen = "[::1]:0";
    net_begin(&fixture);
    EQ_MEM(http_address(fixture.server), "http://[::1]:", 13);
    close(fd);
    fd = socket(AF_INET6, SOCK_STREAM, 0);
    to.sin6_port = htons((uint16_t)net_port(&fixture));
    EQ_INT(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    net_say(fd, GET("/dump"));
    HAS_STR(net_answer(fd), "GET /dump\n");
    close(fd);
    net_end(&fixture);
}

static int unix_connect(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

TEST(listens_on_a_unix_socket)
{
    struct net_fixture fixture;
    struct stat st;
    net_init(&fixture);
    fixture.conf.listen = "unix:sock";
    net_begin(&fixture);
    EQ_STR(http_address(fixture.server), "unix:sock");
    EQ_INT(stat("sock", &st), 0);
    EQ_INT(st.st_mode & 0777, 0600);
    int fd = unix_connect("sock");
    net_say(fd, GET("/dump"));
    HAS_STR(net_answer(fd), "GET /dump\n");
    net_say(fd, GET("/park"));
    NET_UNTIL(fixture.n_parked == 1);
    close(fd);
    NET_UNTIL(fixture.n_gone == 1);
    refused_as("unix:sock", PAWL_BUSY, "in use"); /* and it is still there: */
    EQ_INT(stat("sock", &st), 0);
    net_end(&fixture);
    EQ_INT(stat("sock", &st), -1);
}

TEST(removes_a_stale_socket_and_nothing_else)
{
    struct net_fixture fixture;
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "sock" };
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    EQ_INT(bind(dead, (struct sockaddr *)&at, sizeof at), 0);
    close(dead);
    net_init(&fixture);
    fixture.conf.listen = "unix:sock";
    net_begin(&fixture);
    int fd = unix_connect("sock");
    net_say(fd, GET("/dump"));
    HAS_STR(net_answer(fd), "GET /dump\n");
    close(fd);
    /* A file of another program in its place is not removed. */
    EQ_INT(unlink("sock"), 0);
    close(open("sock", O_CREAT | O_WRONLY, 0600));
    net_end(&fixture);
    EQ_INT(access("sock", F_OK), 0);
    refused_as("unix:sock", PAWL_BUSY, "in use");
    EQ_INT(access("sock", F_OK), 0);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void drained(void *ctx)
{
    atomic_fetch_add(&((struct net_fixture *)ctx)->n_drained, 1);
}

static void drain(struct net_fixture *fixture, void *us)
{
    http_drain(fixture->server, world_mono(&world_real) + *(int64_t *)us, drained, fixture);
}

TEST(drains)
{
    struct net_fixture fixture;
    begin(&fixture);
    int64_t us = 20 * SEC_US;
    int idle = net_connect(&fixture), parked = net_connect(&fixture), half = net_connect(&fixture);
    static const char one[] = GET("/dump"), two[] = GET("/park") GET("/dump"),
                      half_of_one[] = "GET /dump HTTP/1.1\r\n";
    net_say(idle, one);
    net_answer(idle);
    net_say(parked, two);
    NET_UNTIL(fixture.n_parked == 1);
    net_say(half, half_of_one);
    NET_UNTIL(connections(&fixture) == 3);
    NET_UNTIL(bytes_in(&fixture) ==
              (int64_t)(strlen(one) + strlen(two) + strlen(half_of_one))); /* everything was read */
    net_on_loop(&fixture, drain, &us);
    TRUE(net_ended(idle));
    net_say(half, "Host: x\r\n\r\n");
    const char *answer = net_answer(half);
    HAS_STR(answer, "Connection: close\r\n");
    HAS_STR(answer, "GET /dump\n");
    TRUE(net_ended(half));
    EQ_INT(fixture.n_drained, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)net_port(&fixture)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int late = socket(AF_INET, SOCK_STREAM, 0);
    EQ_INT(connect(late, (struct sockaddr *)&to, sizeof to), -1);
    close(late);
    net_release(&fixture);
    answer = net_answer(parked);
    HAS_STR(answer, "late");
    HAS_STR(answer, "Connection: close\r\n");
    close(parked);
    NET_UNTIL(fixture.n_drained == 1);
    EQ_INT(connections(&fixture), 0);
    close(idle);
    close(half);
    net_end(&fixture);
}

TEST(drains_by_force_at_the_deadline)
{
    struct net_fixture fixture;
    begin(&fixture);
    int64_t us = 50 * MS_US;
    int parked = net_connect(&fixture);
    net_say(parked, GET("/park"));
    NET_UNTIL(fixture.n_parked == 1);
    net_on_loop(&fixture, drain, &us);
    NET_UNTIL(fixture.n_drained == 1);
    EQ_INT(fixture.n_gone, 1);
    TRUE(net_ended(parked));
    close(parked);
    net_end(&fixture);
}

TEST(drains_when_there_is_nobody)
{
    struct net_fixture fixture;
    begin(&fixture);
    int64_t us = SEC_US;
    net_on_loop(&fixture, drain, &us);
    NET_UNTIL(fixture.n_drained == 1);
    net_end(&fixture);
}

static void close_now(struct net_fixture *fixture, void *arg)
{
    (void)arg;
    http_close(fixture->server);
}

TEST(a_reply_after_close_is_harmless)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, GET("/park"));
    NET_UNTIL(fixture.n_parked == 1);
    net_on_loop(&fixture, close_now, NULL);
    EQ_INT(fixture.n_gone, 1);
    TRUE(net_ended(fd));
    close(fd);
    net_release(&fixture);
    loop_stop(fixture.loop);
    pthread_join(fixture.thread, NULL);
    loop_close(fixture.loop);
    EQ_INT(mem_live(), fixture.live);
}

/* ---- Answers of our own ---------------------------------------------------------------------- */

static struct bytes error_json(struct arena *a, int status, const char *text, void *ctx)
{
    (void)ctx;
    return bytes_of(arena_printf(a, "{\"%d\":\"%s\"}", status, text));
}

TEST(asks_for_the_text_of_its_own_answers)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.error_body = error_json;
    net_begin(&fixture);
    EQ_STR(net_ask(&fixture, "GET / HTTP/1.1\r\n\r\n"),
           "HTTP/1.1 400 Bad Request\r\nDate: -\r\nContent-Type: application/json\r\n"
           "Content-Length: 36\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
           "{\"400\":\"the Host header is missing\"}");
    net_end(&fixture);
}

/* The client is still sending when it is refused: it must be able to read why. */
TEST(a_refusal_can_be_read)
{
    struct net_fixture fixture;
    begin(&fixture);
    for (int i = 0; i < 20; i++) {
        int fd = net_connect(&fixture);
        net_say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
        char chunk[8192] = "";
        for (int k = 0; k < 20; k++)
            net_send(fd, chunk, sizeof chunk);
        HAS_STR(net_answer(fd), "HTTP/1.1 413 ");
        TRUE(net_ended(fd));
        close(fd);
    }
    net_end(&fixture);
}
