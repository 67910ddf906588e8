/*
 * net_body.c - bodies by length and by chunks, their limits, 100 Continue, split input and
 * pipelining.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "net_fixture.h"

static void begin(struct net_fixture *fixture)
{
    net_init(fixture);
    fixture->conf.limits.header_len = 1024;
    fixture->conf.limits.body_len = 100;
    fixture->conf.limits.body_read_len = 1000;
    net_begin(fixture);
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

#define CHUNKED "POST /dump HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"

TEST(reads_chunks)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, CHUNKED "5\r\nhello\r\n00A;x=\"q \"\r\n, 12345678\r\n0\r\n\r\n" CHUNKED
                        "1\r\na\r\n0;last\r\nTrailer: dropped\r\nX: y\r\n\r\n"
                        "GET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
    HAS_STR(net_answer(fd),
            "\r\n\r\nPOST /dump\nhost=x\ntransfer-encoding=Chunked\nhello, 12345678");
    HAS_STR(net_answer(fd), "transfer-encoding=Chunked\na");
    HAS_STR(net_answer(fd), "\r\n\r\nGET /dump\nhost=x\n");
    close(fd);
    static const char *const wrong[] = {
        CHUNKED "x\r\n",
        CHUNKED "\r\n",
        CHUNKED "1\nx\r\n0\r\n\r\n",
        CHUNKED "1 \r\nx\r\n0\r\n\r\n",
        CHUNKED "0x1\r\nx\r\n0\r\n\r\n",
        CHUNKED "-1\r\nx\r\n0\r\n\r\n",
        CHUNKED "1\r\nxy\r\n0\r\n\r\n",
        CHUNKED "1\r\nx\n0\r\n\r\n",
        CHUNKED "11111111111111111\r\nx",
        CHUNKED "0\r\n\n",
        CHUNKED "0\r\nA: b\n\r\n",
        CHUNKED "0\r\n A: b\r\n\r\n",
        CHUNKED "0\r\nA: \x01\r\n\r\n",
        CHUNKED "1;\r\nx\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (net_status(&fixture, wrong[i]) != 400)
            FAIL("accepted: %s", wrong[i]);
    net_end(&fixture);
}

/* A Content-Length body of n bytes, then a second request on the same connection. */
static void body_of(struct net_fixture *fixture, size_t n, bool chunked, const char *want,
                    bool goes_on)
{
    int fd = net_connect(fixture);
    char text[4096], body[2048];
    memset(body, 'b', n);
    int len = chunked
                  ? snprintf(text, sizeof text, CHUNKED "%zx\r\n%.*s\r\n0\r\n\r\n", n, (int)n, body)
                  : snprintf(text, sizeof text,
                             "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%.*s", n,
                             (int)n, body);
    net_send(fd, text, (size_t)len);
    HAS_STR(net_answer(fd), want);
    if (goes_on) {
        net_say(fd, "GET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
        HAS_STR(net_answer(fd), "GET /dump\nhost=x\n");
    } else {
        TRUE(net_ended(fd));
    }
    close(fd);
}

TEST(bounds_bodies)
{
    struct net_fixture fixture;
    begin(&fixture);
    for (int chunked = 0; chunked < 2; chunked++) {
        body_of(&fixture, 100, chunked, "\r\n\r\nPOST /dump\n", true);
        body_of(&fixture, 101, chunked, "\r\n\r\nPOST /dump too large\n", true);
        body_of(&fixture, 1000, chunked, "\r\n\r\nPOST /dump too large\n", true);
        body_of(&fixture, 1001, chunked, "HTTP/1.1 413 Content Too Large\r\n", false);
    }
    net_end(&fixture);
}

static size_t ten(const struct http_request *r, void *ctx)
{
    (void)ctx;
    return bytes_eq(r->path, BYTES("/dump")) ? 10 : 100;
}

TEST(asks_how_long_a_body_may_be)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.body_max = ten;
    net_begin(&fixture);
    HAS_STR(net_ask(&fixture,
                    "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world"),
            "too large");
    HAS_STR(
        net_ask(&fixture, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world"),
        "hello world");
    net_end(&fixture);
}

TEST(bounds_what_all_bodies_hold)
{
    struct net_fixture fixture;
    net_init(&fixture);
    fixture.conf.limits.held_len = 150;
    net_begin(&fixture);
    char text[400];
    snprintf(text, sizeof text,
             "POST /park HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n%0100d", 0);
    int fd = net_connect(&fixture);
    net_say(fd, text);
    NET_UNTIL(fixture.n_parked == 1);
    EQ_INT(net_status(&fixture, text), 503);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    net_say(fd, text);
    NET_UNTIL(fixture.n_parked == 1);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    close(fd);
    net_end(&fixture);
}

TEST(bounds_heads)
{
    struct net_fixture fixture;
    char text[3000];
    begin(&fixture);
    for (int over = 0; over < 2; over++) {
        int len = snprintf(text, sizeof text, "GET /dump HTTP/1.1\r\nHost: x\r\nA: ");
        memset(text + len, 'a', 1024 - 4 - (size_t)len + (size_t)over);
        len = 1024 - 4 + over;
        snprintf(text + len, sizeof text - (size_t)len, "\r\n\r\n");
        EQ_INT(net_status(&fixture, text), over ? 431 : 200);
    }
    memset(text, 'G', 2000); /* not even a complete line */
    text[2000] = 0;
    EQ_INT(net_status(&fixture, text), 431);
    net_end(&fixture);
}

TEST(bounds_the_number_of_headers)
{
    struct net_fixture fixture;
    net_init(&fixture);
    net_begin(&fixture);
    for (int over = 0; over < 2; over++) {
        char text[2000];
        int len = snprintf(text, sizeof text, "GET /dump HTTP/1.1\r\nHost: x\r\n");
        for (int i = 0; i < 99 + over; i++)
            len += snprintf(text + len, sizeof text - (size_t)len, "A: %d\r\n", i);
        snprintf(text + len, sizeof text - (size_t)len, "\r\n");
        EQ_INT(net_status(&fixture, text), over ? 431 : 200);
    }
    net_end(&fixture);
}

TEST(bounds_trailers_and_extensions)
{
    struct net_fixture fixture;
    char text[3000], long_one[1101];
    begin(&fixture);
    memset(long_one, 'a', 1100);
    long_one[1100] = 0;
    snprintf(text, sizeof text, CHUNKED "0\r\nA: %s\r\n\r\n", long_one);
    EQ_INT(net_status(&fixture, text), 431);
    snprintf(text, sizeof text, CHUNKED "1;%s\r\na\r\n0\r\n\r\n", long_one);
    EQ_INT(net_status(&fixture, text), 400);
    net_end(&fixture);
}

TEST(says_100_when_waited_for)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd,
            "POST /dump HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n");
    EQ_STR(net_answer(fd), "HTTP/1.1 100 Continue\r\n\r\n");
    net_say(fd, "he");
    net_nap();
    net_say(fd, "llo");
    HAS_STR(net_answer(fd), "content-length=5\nhello");
    /* Not when the body is already there, when there is none, or when it will not be read. */
    net_say(fd,
            "POST /dump HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\na");
    net_nap();
    net_say(fd, "bGET /dump HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n");
    HAS_STR(net_answer(fd), "content-length=2\nab");
    HAS_STR(net_answer(fd), "GET /dump\n");
    net_say(
        fd,
        "POST /dump HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9999\r\n\r\n");
    HAS_STR(net_answer(fd), "HTTP/1.1 413 ");
    TRUE(net_ended(fd));
    close(fd);
    net_end(&fixture);
}

/* ---- Split input and pipelining -------------------------------------------------------------- */

TEST(reads_byte_by_byte)
{
    static const char text[] =
        "\r\n\r\nPOST /dump?q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\nGET /dump HTTP/1.1\r\nHost: y\r\n\r\n";
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        net_send(fd, text + i, 1);
        if (i % 8 == 0)
            net_nap();
    }
    HAS_STR(net_answer(fd), "POST /dump ?q\nhost=x\ntransfer-encoding=chunked\nabc0123456789");
    HAS_STR(net_answer(fd), "GET /dump\nhost=y\n");
    close(fd);
    net_end(&fixture);
}

TEST(answers_a_pipeline_in_order)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    for (int i = 0; i < 500; i++) {
        char text[100];
        snprintf(text, sizeof text, "GET /%s/%d HTTP/1.1\r\nHost: x\r\n\r\n", "dump", i);
        net_say(fd, text);
    }
    for (int i = 0; i < 500; i++) {
        char want[100];
        snprintf(want, sizeof want, "\r\n\r\nGET /dump/%d\n", i);
        HAS_STR(net_answer(fd), want);
    }
    close(fd);
    net_end(&fixture);
}

TEST(parks_hold_the_pipeline_back)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "GET /park HTTP/1.1\r\nHost: x\r\n\r\nGET /park HTTP/1.1\r\nHost: x\r\n\r\n"
                "GET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
    NET_UNTIL(fixture.n_parked == 1);
    net_nap();
    EQ_INT(fixture.n_requests, 1);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    NET_UNTIL(fixture.n_parked == 1);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    HAS_STR(net_answer(fd), "GET /dump\n");
    EQ_INT(fixture.n_requests, 3);
    close(fd);
    net_end(&fixture);
}

TEST(reads_ahead_no_more_than_it_must)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "GET /park HTTP/1.1\r\nHost: x\r\n\r\n");
    NET_UNTIL(fixture.n_parked == 1);
    size_t sent = 0;
    char chunk[4096];
    memset(chunk, '\n', sizeof chunk); /* any amount of white space between requests */
    for (;;) {
        ssize_t n = send(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n <= 0) {
            struct http_stats before, after;
            net_stats(&fixture, &before);
            for (int i = 0; i < 20; i++)
                net_nap();
            net_stats(&fixture, &after);
            if (before.bytes_in == after.bytes_in)
                break;
            continue;
        }
        sent += (size_t)n;
        LT_INT(sent, 64 << 20);
    }
    struct http_stats s;
    net_stats(&fixture, &s);
    LT_INT(s.bytes_in, 70000);
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    net_say(fd, "GET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
    HAS_STR(net_answer(fd), "GET /dump\n");
    close(fd);
    net_end(&fixture);
}
