/*
 * net_memory.c - each allocation fails in turn: the client gets an answer or is disconnected, the
 * server goes on, nothing is lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

/* Everything a client may do, whatever the answers are. */
static void do_all(struct net_fixture *fixture)
{
    static const char *const texts[] = {
        GET("/dump") GET("/dump"),
        "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" GET("/big/100000"),
        "POST /204 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n0\r\n\r\n",
        "POST /204 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        GET("/leave") GET("/dump"),
    };
    char data[4096];
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int fd = net_connect(fixture);
        send(fd, texts[i], strlen(texts[i]), MSG_NOSIGNAL);
        net_nap();
        shutdown(fd, SHUT_WR);
        while (recv(fd, data, sizeof data, 0) > 0)
            ;
        close(fd);
    }
}

TEST(each_allocation_may_fail, .deadline_s = 120)
{
    struct net_fixture fixture;
    net_init(&fixture);
    net_begin(&fixture);
    for (int n = 1; n < 60; n++) {
        mem_torture(n, 0);
        do_all(&fixture);
        mem_torture(0, 0);
    }
    HAS_STR(net_ask(&fixture, GET("/dump")), "GET /dump\n");
    net_end(&fixture);
}

TEST(all_of_them_may_fail)
{
    struct net_fixture fixture;
    net_init(&fixture);
    net_begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, GET("/park"));
    NET_UNTIL(fixture.n_parked == 1);
    for (int n = 1; n < 10; n++) {
        mem_torture(n, 1);
        do_all(&fixture);
        mem_torture(0, 0);
    }
    net_release(&fixture);
    HAS_STR(net_answer(fd), "late");
    close(fd);
    net_end(&fixture);
}

TEST(opening_may_fail)
{
    struct net_fixture fixture;
    struct pawl_err err;
    net_init(&fixture);
    OK(loop_open(&fixture.loop, &err), &err);
    int64_t live = mem_live();
    for (int n = 1;; n++) {
        mem_torture(n, 0);
        enum pawl_status st = http_open(fixture.loop, &fixture.conf, &fixture.server, &err);
        mem_torture(0, 0);
        if (st == PAWL_OK)
            break;
        EQ_STATUS(st, PAWL_NO_MEMORY, &err);
        EQ_INT(mem_live(), live);
    }
    http_close(fixture.server);
    loop_close(fixture.loop);
}
