/*
 * net_http.c - raw bytes in, exact bytes out: valid requests, and every kind of invalid one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"
#include "net_fixture.h"

#define HEAD(type, len)                                                                            \
    "HTTP/1.1 200 OK\r\nDate: -\r\nContent-Type: " type "\r\nContent-Length: " len                 \
    "\r\nX-Content-Type-Options: nosniff\r\n"

static void begin(struct net_fixture *fixture)
{
    net_init(fixture);
    fixture->conf.limits.header_len = 1024;
    fixture->conf.limits.body_len = 100;
    fixture->conf.limits.body_read_len = 1000;
    net_begin(fixture);
}

TEST(answers_exactly)
{
    struct net_fixture fixture;
    begin(&fixture);
    EQ_STR(net_ask(&fixture,
                   "GET /dump?a=1%2&b HTTP/1.1\r\nHost: x\r\nX-Two:  b c \t\r\nEmpty:\r\n\r\n"),
           HEAD("text/plain", "43") "\r\nGET /dump ?a=1%2&b\nhost=x\nx-two=b c\nempty=\n");
    EQ_STR(net_ask(&fixture, "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
           HEAD("text/plain", "40") "\r\nPOST /dump\nhost=x\ncontent-length=5\nhello");
    EQ_STR(net_ask(&fixture, "GET /204 HTTP/1.1\r\nHost: x\r\n\r\n"),
           "HTTP/1.1 204 No Content\r\nDate: -\r\nX-Content-Type-Options: nosniff\r\n\r\n");
    EQ_STR(net_ask(&fixture, "GET /big/3 HTTP/1.1\r\nHost: x\r\n\r\n"),
           HEAD("application/json", "3") "\r\nxxx");
    EQ_STR(net_ask(&fixture, "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"),
           "HTTP/1.1 202 Accepted\r\nDate: -\r\nContent-Type: application/json\r\n"
           "Content-Length: 0\r\n"
           "X-Content-Type-Options: nosniff\r\nRetry-After: 1\r\n\r\n");
    net_end(&fixture);
}

TEST(knows_the_methods)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };
    struct net_fixture fixture;
    char text[200];
    begin(&fixture);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\nHost: x\r\n\r\n", methods[i]);
        const char *answer = net_ask(&fixture, text);
        snprintf(text, sizeof text, "\r\n\r\n%s /\n", methods[i]);
        HAS_STR(answer, text);
    }
    HAS_STR(net_ask(&fixture, "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\nOTHER /\n");
    EQ_INT(net_status(&fixture, "BREW / HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
    EQ_INT(net_status(&fixture, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"), 501);
    EQ_INT(net_status(&fixture, "\x16\x03\x01 / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    net_end(&fixture);
}

TEST(head_has_length_and_no_body)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "HEAD /big/7 HTTP/1.1\r\nHost: x\r\n\r\nGET /big/1 HTTP/1.1\r\nHost: x\r\n\r\n");
    EQ_STR(net_answer_head(fd), HEAD("application/json", "7") "\r\n");
    EQ_STR(net_answer(fd), HEAD("application/json", "1") "\r\nx");
    close(fd);
    net_end(&fixture);
}

TEST(reads_targets)
{
    struct net_fixture fixture;
    begin(&fixture);
    HAS_STR(net_ask(&fixture, "GET http://a.b:80/p?q HTTP/1.1\r\nHost: other\r\n\r\n"),
            "\r\n\r\nGET /p ?q\nhost=a.b:80\n");
    HAS_STR(net_ask(&fixture, "GET HTTPS://a HTTP/1.1\r\nHost: other\r\n\r\n"),
            "\r\n\r\nGET /\nhost=a\n");
    HAS_STR(net_ask(&fixture, "GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n"), "\r\n\r\nGET / ?q\n");
    HAS_STR(net_ask(&fixture, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "\r\n\r\nOPTIONS *\n");
    HAS_STR(net_ask(&fixture, "GET /a%zz%?? HTTP/1.1\r\nHost: a\r\n\r\n"),
            "\r\n\r\nGET /a%zz% ??\n");
    HAS_STR(net_ask(&fixture, "GET //x? HTTP/1.1\r\nHost: a\r\n\r\n"), "\r\n\r\nGET //x ?\n");
    static const char *const wrong[] = { "*",       "ftp://a/b", "http:///x", "http://u@a/",
                                         "a/b",     "/a#b",      "/a b",      "/a\tb",
                                         "http://", "*x",        "/\x80",     "/a\x7f" };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[200];
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", wrong[i]);
        if (net_status(&fixture, text) != 400)
            FAIL("target %s was accepted", wrong[i]);
    }
    net_end(&fixture);
}

/* Each of these is refused and the connection is closed: what follows may not be a request of this
 * client. */
TEST(refuses_what_is_wrong)
{
    static const struct {
        int status;
        const char *text;
    } wrong[] = {
        { 400, "GET / HTTP/1.1\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x y\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n" },
        { 400, "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nab" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\na" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\na" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\na" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\na" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\na" },
        { 400,
          "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
          "0\r\n\r\n" },
        { 400,
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
          "0\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\nabc" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
               "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
        { 501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" },
        { 400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA:\r\n\tc\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\n Host: x\r\n\r\n" },
        { 400, "GET / HTTP/1.1\nHost: x\n\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\n\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\x7f\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\n: c\r\n\r\n" },
        { 400, "GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n" },
        { 400, "GET  / HTTP/1.1\r\nHost: x\r\n\r\n" },
        { 400, "GET /  HTTP/1.1\r\nHost: x\r\n\r\n" },
        { 400, "GET / HTTP/1.1 \r\nHost: x\r\n\r\n" },
        { 400, " GET / HTTP/1.1\r\nHost: x\r\n\r\n" },
        { 400, "GET / RTSP/1.0\r\nHost: x\r\n\r\n" },
        { 400, "SOURCE / ICE/1.0\r\nHost: x\r\n\r\n" },
        { 505, "GET /\r\n\r\n" },
        { 400, "get / HTTP/1.1\r\nHost: x\r\n\r\n" },
        { 505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n" },
        { 505, "GET / HTTP/1.2\r\nHost: x\r\n\r\n" },
        { 505, "GET / HTTP/0.9\r\nHost: x\r\n\r\n" },
        { 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
        { 417, "POST / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 1\r\n\r\na" },
    };
    struct net_fixture fixture;
    begin(&fixture);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int fd = net_connect(&fixture);
        net_say(fd, wrong[i].text);
        const char *answer = net_answer(fd);
        if (strtol(answer + 9, NULL, 10) != wrong[i].status)
            FAIL("%s\n=> %s", wrong[i].text, answer);
        HAS_STR(answer, "\r\nConnection: close\r\n");
        TRUE(net_ended(fd));
        close(fd);
    }
    EQ_INT(fixture.n_requests, 0);
    net_end(&fixture);
}

TEST(refuses_nul_anywhere_in_the_head)
{
    static const char text[] = "GET /dump HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n";
    struct net_fixture fixture;
    begin(&fixture);
    for (size_t at = 0; at + 4 < sizeof text; at++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        copy[at] = 0;
        int fd = net_connect(&fixture);
        net_send(fd, copy, sizeof text - 1);
        const char *answer = net_answer(fd);
        TRUE(strstr(answer, "HTTP/1.1 400 ") || strstr(answer, "HTTP/1.1 505 "));
        close(fd);
    }
    EQ_INT(fixture.n_requests, 0);
    net_end(&fixture);
}

TEST(speaks_http_1_0)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "GET /big/1 HTTP/1.0\r\n\r\n");
    EQ_STR(net_answer(fd), HEAD("application/json", "1") "Connection: close\r\n\r\nx");
    TRUE(net_ended(fd));
    close(fd);
    fd = net_connect(&fixture);
    for (int i = 0; i < 2; i++) {
        net_say(fd, "GET /big/1 HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
        EQ_STR(net_answer(fd), HEAD("application/json", "1") "Connection: keep-alive\r\n\r\nx");
    }
    net_say(fd, "GET /big/1 HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n");
    HAS_STR(net_answer(fd), "Connection: close\r\n");
    TRUE(net_ended(fd));
    close(fd);
    net_end(&fixture);
}

TEST(closes_when_asked)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "GET /big/1 HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n");
    EQ_STR(net_answer(fd), HEAD("application/json", "1") "Connection: close\r\n\r\nx");
    TRUE(net_ended(fd));
    close(fd);
    fd = net_connect(&fixture);
    net_say(fd, "GET /close HTTP/1.1\r\nHost: x\r\n\r\nGET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
    HAS_STR(net_answer(fd), "Connection: close\r\n");
    TRUE(net_ended(fd));
    EQ_INT(fixture.n_requests, 2); /* what follows is not a request */
    close(fd);
    net_end(&fixture);
}

TEST(upgrade_is_an_ordinary_request)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, "GET /dump HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
                "POST /dump HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
                "Content-Length: 2\r\n\r\nabGET /dump HTTP/1.1\r\nHost: x\r\n\r\n");
    HAS_STR(net_answer(fd), "GET /dump\nhost=x\nconnection=upgrade\nupgrade=websocket\n");
    HAS_STR(net_answer(fd), "content-length=2\nab");
    HAS_STR(net_answer(fd), "GET /dump\nhost=x\n");
    close(fd);
    net_end(&fixture);
}
