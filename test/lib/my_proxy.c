/*
 * my_proxy.c - see my_proxy.h.
 *
 * A packet is three bytes of length (little-endian), a sequence number, and the payload. Only
 * packets from the client are parsed; of the server's, only the suppressed answers to a COMMIT are
 * counted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "my_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

#define HEAD 4
#define IN_MAX (8 << 20)

static struct {
    char url[300];
    int port, listener;
    atomic_int cut, answers;
    atomic_bool was_cut, let_go;
} proxy;

struct line {
    int client, server;
    unsigned char *in; /* bytes from the client that are not forwarded yet */
    size_t len;
};

static bool send_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static size_t packet_len(const unsigned char *p, size_t len)
{
    size_t all = len < HEAD ? 0 : HEAD + (p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16);
    return len >= all ? all : 0;
}

static bool is_commit(const unsigned char *p, size_t len)
{
    static const char word[] = "COMMIT;";
    size_t n = sizeof word - 1;
    return len > HEAD + 1 + n && p[HEAD] == 3 && memcmp(p + len - n, word, n) == 0;
}

/* The server executes the statements; its answers are discarded. */
static void swallow(int server, int answers)
{
    unsigned char block[65536];
    size_t n = 0;
    while (answers > 0 && n < sizeof block) {
        ssize_t got = recv(server, block + n, sizeof block - n, 0);
        if (got <= 0)
            return;
        n += (size_t)got;
        for (size_t len; answers > 0 && (len = packet_len(block, n)); answers--) {
            n -= len;
            memmove(block, block + len, n);
        }
    }
}

/* Is this an OK packet without SERVER_MORE_RESULTS? It has two length-encoded integers, then flags.
 */
static bool is_last_ok(const unsigned char *p, size_t len)
{
    static const size_t count_len[] = { [0xfc] = 3, [0xfd] = 4, [0xfe] = 9, [0xff] = 1 };
    size_t at = HEAD + 1;
    for (int i = 0; i < 2 && at < len; i++)
        at += p[at] < 0xfb ? 1 : count_len[p[at]];
    return len > HEAD && p[HEAD] == 0 && at < len && !(p[at] & 8);
}

/* Forward all answers except the last; `none`: not these either. */
static void pass_but_last(const struct line *l, bool none)
{
    unsigned char block[65536];
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(l->server, block + n, sizeof block - n, 0);
        if (got <= 0)
            return;
        n += (size_t)got;
        for (size_t len; (len = packet_len(block, n));) {
            bool error = len > HEAD && block[HEAD] == 0xff; /* nothing follows it */
            if (is_last_ok(block, len) || (none && error) ||
                !(none || send_all(l->client, block, len)))
                return;
            n -= len;
            memmove(block, block + len, n);
        }
    }
}

/* Forward one packet from the client. False: the connection is finished. */
static bool carry(struct line *l, size_t len)
{
    int cut = is_commit(l->in, len) ? atomic_exchange(&proxy.cut, 0) : 0;
    if (cut == PROXY_HOLD) {
        shutdown(l->client, SHUT_RDWR);
        atomic_store(&proxy.was_cut, true);
        while (!atomic_load(&proxy.let_go))
            usleep(1000);
    }
    if (cut == PROXY_NEVER) {
        atomic_store(&proxy.was_cut, true);
        return false;
    }
    bool ok = send_all(l->server, l->in, len);
    l->len -= len;
    memmove(l->in, l->in + len, l->len);
    if (!cut)
        return ok;
    if (cut == PROXY_STUCK) {
        pass_but_last(l, false);
        atomic_store(&proxy.was_cut, true);
        while (!atomic_load(&proxy.let_go))
            usleep(1000);
    } else {
        int answers = atomic_load(&proxy.answers);
        if (answers)
            swallow(l->server, answers);
        else
            pass_but_last(l, true);
        atomic_store(&proxy.was_cut, true);
    }
    return false;
}

static bool from_client(struct line *l)
{
    ssize_t n = recv(l->client, l->in + l->len, IN_MAX - l->len, 0);
    if (n <= 0)
        return false;
    l->len += (size_t)n;
    for (size_t len; (len = packet_len(l->in, l->len));)
        if (!carry(l, len))
            return false;
    return true;
}

static bool from_server(struct line *l)
{
    char block[65536];
    ssize_t n = recv(l->server, block, sizeof block, 0);
    return n > 0 && send_all(l->client, block, (size_t)n);
}

static void *line_main(void *arg)
{
    struct line l = *(struct line *)arg;
    free(arg);
    bool on = (l.in = malloc(IN_MAX)) != NULL;
    while (on) {
        struct pollfd v[] = { { .fd = l.client, .events = POLLIN },
                              { .fd = l.server, .events = POLLIN } };
        if (poll(v, 2, -1) <= 0)
            continue;
        if (v[0].revents)
            on = from_client(&l);
        if (on && v[1].revents)
            on = from_server(&l);
    }
    close(l.client);
    close(l.server);
    free(l.in);
    return NULL;
}

static int tcp(int port, bool listens)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = listens ? bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 64)
                         : connect(fd, (struct sockaddr *)&at, sizeof at);
    if (!failed)
        return fd;
    close(fd);
    return -1;
}

static void *take_main(void *arg)
{
    (void)arg;
    for (;;) {
        int client = accept(proxy.listener, NULL, NULL), server = tcp(proxy.port, false);
        struct line *l = client >= 0 && server >= 0 ? calloc(1, sizeof *l) : NULL;
        pthread_t thread;
        if (!l)
            abort();
        *l = (struct line){ .client = client, .server = server };
        if (pthread_create(&thread, NULL, line_main, l))
            abort();
        pthread_detach(thread);
    }
    return NULL;
}

const char *my_proxy_url(const char *url)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    pthread_t thread;
    const char *port = strrchr(url, ':'), *database = strrchr(url, '/');
    TRUE(port != NULL && database > port && !proxy.url[0]);
    proxy.port = (int)strtol(port + 1, NULL, 10);
    proxy.listener = tcp(0, true);
    GE_INT(proxy.listener, 0);
    EQ_INT(getsockname(proxy.listener, (struct sockaddr *)&at, &len), 0);
    snprintf(proxy.url, sizeof proxy.url, "%.*s:%d%s", (int)(port - url), url, ntohs(at.sin_port),
             database);
    EQ_INT(pthread_create(&thread, NULL, take_main, NULL), 0);
    pthread_detach(thread);
    return proxy.url;
}

void my_proxy_cut_commit(enum proxy_cut how, int answers)
{
    atomic_store(&proxy.was_cut, false);
    atomic_store(&proxy.let_go, false);
    atomic_store(&proxy.answers, answers);
    atomic_store(&proxy.cut, how);
}

bool my_proxy_was_cut(void)
{
    return atomic_load(&proxy.was_cut);
}

void my_proxy_let_go(void)
{
    atomic_store(&proxy.let_go, true);
}
