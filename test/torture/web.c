/*
 * web.c - the server while allocations fail: every request is answered or its connection closed,
 * and afterwards everything works and nothing is lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "web.h"

CHECK_PARAMS
{
    check_param("sqlite", "sqlite:fixture.db");
    check_param("mem", "mem:fixture");
}

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

static const struct {
    const char *method, *path, *body;
} requests[] = {
    { "POST", "/v1/calls?wait=10", "{\"id\":\"n%lld\",\"type\":\"echo\",\"tags\":{\"a\":\"b\"}}" },
    { "POST", "/v1/calls?wait=10", "{\"id\":\"same\",\"type\":\"echo\",\"input\":[1,{}]}" },
    { "POST", "/v1/calls", "{\"id\":\"m%lld\",\"type\":\"echo\"}" },
    { "POST", "/v1/calls/batch", "{\"calls\":[{\"type\":\"echo\"},{\"type\":5}]}" },
    { "GET", "/v1/calls/same?wait=1", NULL },
    { "GET", "/v1/calls/same/result", NULL },
    { "GET", "/v1/calls/none", NULL },
    { "GET", "/v1/calls/same/attempts", NULL },
    { "GET", "/v1/calls?limit=5&include=input&tag=a:b", NULL },
    { "POST", "/v1/calls/same/cancel", "{}" },
    { "POST", "/v1/calls/retry", "{\"limit\":3}" },
    { "PATCH", "/v1/calls/same", "{\"priority\":1}" },
    { "POST", "/v1/work/claim", "{\"worker\":\"w\",\"types\":[\"none\"]}" },
    { "GET", "/v1/queues", NULL },
    { "PUT", "/v1/objects/T/k?wait=0", "{\"n\":%lld}" },
    { "GET", "/v1/objects/T/k", NULL },
    { "DELETE", "/v1/objects/T/none?cancel=true", NULL },
    { "POST", "/v1/objects/echo/k/run?wait=10", "%lld" },
    { "POST", "/v1/sessions/s/requests?wait=10", "{\"id\":\"s%lld\",\"type\":\"echo\"}" },
    { "POST", "/v1/sessions/t/requests?wait=0",
      "{\"id\":\"t%lld\",\"type\":\"none\",\"on_timeout\":\"cancel\"}" },
    { "GET", "/v1/keys", NULL },
    { "POST", "/v1/keys/none/unblock", "{\"action\":\"skip\"}" },
    { "GET", "/openapi.json", NULL },
};

/* The status of the answer; 0: the connection was closed without one. */
static int answer(int fd)
{
    char data[65536];
    size_t n = 0;
    ssize_t got;
    while (n < 12 && (got = recv(fd, data + n, sizeof data - n, 0)) > 0)
        n += (size_t)got;
    return n >= 12 ? (int)strtol(data + 9, NULL, 10) : 0;
}

/* The body, with %lld replaced if it has one. */
static void body_of(char *out, size_t size, const char *text, long long n)
{
    const char *mark = strstr(text, "%lld");
    if (mark)
        snprintf(out, size, "%.*s%lld%s", (int)(mark - text), text, n, mark + 4);
    else
        snprintf(out, size, "%s", text);
}

static int one(struct web *w, size_t i, long long n)
{
    char body[256] = "";
    if (requests[i].body)
        body_of(body, sizeof body, requests[i].body, n);
    int fd = web_connect(w);
    /* On the stack: the client's own allocations must not fail. */
    char text[1024];
    int len = snprintf(text, sizeof text,
                       "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       requests[i].method, requests[i].path, strlen(body), body);
    send(fd, text, (size_t)len, MSG_NOSIGNAL);
    int status = answer(fd);
    close(fd);
    return status;
}

TEST(every_allocation_fails_once, .deadline_s = 300)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    long long serial = 0;
    fixture_on(p, "echo", echo);
    fixture_start(p, 2);
    web_begin_as(&w, p, NULL);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        mem_torture(0, 0);
        int want = one(&w, i, serial++);
        GT_INT(want, 0);
        int64_t count = mem_count() + 4;
        for (int64_t n = 1; n <= count; n++) {
            mem_torture(n, 0);
            int got = one(&w, i, serial++);
            mem_torture(0, 0);
            /* 504: it was stored, but could not be shown. */
            if (got && got != 503 && got != want && got != 202 && got != 200 && got != 409 &&
                got != 504)
                FAIL("%s %s: %d at allocation %lld", requests[i].method, requests[i].path, got,
                     (long long)n);
        }
        EQ_INT(one(&w, i, serial++), want);
    }
    web_end(&w);
}
