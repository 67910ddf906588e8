/*
 * proxy.c - see proxy.h.
 *
 * One thread accepts connections, and each connection has a thread that forwards its traffic. Only
 * the client's side is parsed into messages: a byte for the kind (except in the first message),
 * four bytes for the length, the payload.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

#define PORT "5432"
#define TICK_MS 2

static struct {
    char to[120]; /* the server's socket */
    char url[400];
    int listener;
    atomic_llong statements, connections, bytes;
    atomic_int cut, state, open;
    int turn[2];                 /* a pipe; its read end is readable while the state is not UP */
    _Atomic(const char *) words; /* the beginning of the statement to cut */
    atomic_bool was_cut, let_go;
} proxy;

struct line {
    int client, server;
    char *in;        /* bytes from the client that are not forwarded yet */
    size_t len, cap; /* of `in` */
    bool greeted;    /* the first message, which has no kind, is forwarded */
    bool deaf;       /* the server's answers are not forwarded any more */
    bool behind;     /* BEHIND: answers are forwarded until ReadyForQuery */
    bool last;       /* close the connection at the next ReadyForQuery */
};

static bool send_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* The length of the first message; 0: it is not complete yet. */
static size_t message_len(const struct line *l)
{
    uint32_t len;
    size_t head = l->greeted ? 1 : 0;
    if (l->len < head + 4)
        return 0;
    memcpy(&len, l->in + head, 4);
    size_t all = head + ntohl(len);
    return l->len >= all ? all : 0;
}

/* Is this the statement to cut? In a Parse message an empty statement name comes before the text.
 */
static bool is_it(const struct line *l, size_t len)
{
    const char *words = atomic_load(&proxy.words);
    size_t n = strlen(words), at = l->in[0] == 'P' ? 6 : 5;
    return (l->in[0] == 'Q' || l->in[0] == 'P') && len >= at + n &&
           memcmp(l->in + at, words, n) == 0;
}

/* HOLD: close the client's side, wait for proxy_let_go(), then forward the rest and wait until the
 * server has closed. */
static void hold(struct line *l)
{
    char block[4096];
    struct pollfd v = { .fd = l->client, .events = POLLIN };
    while (poll(&v, 1, 20) > 0 && l->len + sizeof block < l->cap) { /* bytes in transit */
        ssize_t n = recv(l->client, l->in + l->len, l->cap - l->len, MSG_DONTWAIT);
        if (n <= 0)
            break;
        l->len += (size_t)n;
    }
    shutdown(l->client, SHUT_RDWR);
    atomic_store(&proxy.was_cut, true);
    while (!atomic_load(&proxy.let_go))
        usleep(1000);
    if (send_all(l->server, l->in, l->len))
        shutdown(l->server, SHUT_WR);
    while (recv(l->server, block, sizeof block, 0) > 0)
        ;
}

/* Forward one message from the client, in l->in. False: the connection is finished. */
static bool carry(struct line *l, size_t len)
{
    char kind = l->greeted ? l->in[0] : 0;
    int cut = kind && atomic_load(&proxy.cut) && is_it(l, len) ? atomic_exchange(&proxy.cut, 0) : 0;
    if (kind == 'Q' || kind == 'E')
        atomic_fetch_add(&proxy.statements, 1);
    if (cut == PROXY_HOLD)
        hold(l);
    if (cut == PROXY_HOLD || cut == PROXY_NEVER) {
        atomic_store(&proxy.was_cut, true);
        return false;
    }
    l->behind |= cut == PROXY_BEHIND;
    l->deaf |= cut == PROXY_AFTER || cut == PROXY_BEHIND;
    l->last |= l->deaf && (kind == 'Q' || kind == 'S');
    l->greeted = true;
    atomic_fetch_add(&proxy.bytes, (long long)len);
    bool ok = send_all(l->server, l->in, len);
    l->len -= len;
    memmove(l->in, l->in + len, l->len);
    return ok;
}

static bool from_client(struct line *l)
{
    if (l->cap - l->len < 65536)
        l->in = realloc(l->in, l->cap = l->cap * 2 + 131072);
    if (!l->in)
        abort();
    ssize_t n = recv(l->client, l->in + l->len, l->cap - l->len, 0);
    if (n <= 0)
        return false;
    l->len += (size_t)n;
    for (size_t len; (len = message_len(l));)
        if (!carry(l, len))
            return false;
    return true;
}

static bool from_server(struct line *l)
{
    static const char ready[] = { 'Z', 0, 0, 0, 5 };
    char block[65536];
    ssize_t n = recv(l->server, block, sizeof block, 0);
    if (n <= 0)
        return false;
    atomic_fetch_add(&proxy.bytes, n);
    if (!l->deaf)
        return send_all(l->client, block, (size_t)n);
    /* The answer to COMMIT is short and comes in one piece, with ReadyForQuery at its end. */
    bool done = l->last && n >= 6 && memcmp(block + n - 6, ready, sizeof ready) == 0;
    if (l->behind && !send_all(l->client, block, (size_t)(done ? n - 6 : n)))
        return false;
    if (done)
        atomic_store(&proxy.was_cut, true);
    return !done;
}

static void *line_main(void *arg)
{
    struct line l = *(struct line *)arg;
    free(arg);
    bool on = true;
    while (on && atomic_load(&proxy.state) != PROXY_CUT) {
        struct pollfd v[] = { { .fd = l.client, .events = POLLIN },
                              { .fd = l.server, .events = POLLIN },
                              { .fd = proxy.turn[0], .events = POLLIN } };
        if (atomic_load(&proxy.state) == PROXY_FROZEN) {
            usleep(TICK_MS * 1000);
            continue;
        }
        /* No timeout: regular wake-ups of many idle connections would keep a busy machine busier.
         */
        if (poll(v, 3, -1) <= 0 || v[2].revents)
            continue;
        if (v[0].revents)
            on = from_client(&l);
        if (on && v[1].revents)
            on = from_server(&l);
    }
    close(l.client);
    close(l.server);
    free(l.in);
    atomic_fetch_sub(&proxy.open, 1);
    return NULL;
}

/* A busy server gets two seconds to accept; one that is not running is reported at once. */
static int reach(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    snprintf(at.sun_path, sizeof at.sun_path, "%.100s", proxy.to);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), error = errno;
    for (int i = 0; fd >= 0 && i < 1000; i++) {
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        error = errno;
        if (error != EINTR && error != EAGAIN)
            break;
        usleep(TICK_MS * 1000);
    }
    printf("proxy: the server is not reached: %s\n", strerror(error));
    if (fd >= 0)
        close(fd);
    return -1;
}

static void *take_main(void *arg)
{
    (void)arg;
    for (;;) {
        int client = accept(proxy.listener, NULL, NULL);
        if (client < 0) {
            printf("proxy: accept: %s\n", strerror(errno));
            usleep(TICK_MS * 1000);
            continue;
        }
        int server = atomic_load(&proxy.state) != PROXY_CUT ? reach() : -1;
        struct line *l = server >= 0 ? calloc(1, sizeof *l) : NULL;
        pthread_t thread;
        if (!l) {
            close(client);
            continue;
        }
        *l = (struct line){ .client = client, .server = server };
        atomic_fetch_add(&proxy.open, 1);
        if (pthread_create(&thread, NULL, line_main, l))
            abort();
        pthread_detach(thread);
        atomic_fetch_add(&proxy.connections, 1);
    }
    return NULL;
}

const char *proxy_url(const char *url)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char here[200];
    pthread_t thread;
    const char *host = strstr(url, "host=");
    TRUE(host != NULL && !proxy.url[0]);
    TRUE(getcwd(here, sizeof here) != NULL);
    int n = (int)(host - url);
    snprintf(proxy.to, sizeof proxy.to, "%.*s/.s.PGSQL." PORT, (int)strcspn(host + 5, "&"),
             host + 5);
    snprintf(at.sun_path, sizeof at.sun_path, "%.80s/.s.PGSQL." PORT, here);
    proxy.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EQ_INT(bind(proxy.listener, (struct sockaddr *)&at, sizeof at), 0);
    EQ_INT(listen(proxy.listener, 64), 0);
    EQ_INT(pipe2(proxy.turn, O_CLOEXEC | O_NONBLOCK), 0);
    snprintf(proxy.url, sizeof proxy.url, "%.*shost=%s&port=" PORT, n, url, here);
    EQ_INT(pthread_create(&thread, NULL, take_main, NULL), 0);
    pthread_detach(thread);
    return proxy.url;
}

int64_t proxy_connections(void)
{
    return atomic_load(&proxy.connections);
}

int proxy_open_now(void)
{
    return atomic_load(&proxy.open);
}

int64_t proxy_statements(void)
{
    return atomic_load(&proxy.statements);
}

int64_t proxy_bytes(void)
{
    return atomic_load(&proxy.bytes);
}

void proxy_cut_at(const char *words, enum proxy_cut how)
{
    atomic_store(&proxy.words, words);
    atomic_store(&proxy.was_cut, false);
    atomic_store(&proxy.let_go, false);
    atomic_store(&proxy.cut, how);
}

void proxy_cut_commit(enum proxy_cut how)
{
    proxy_cut_at("COMMIT", how);
}

bool proxy_was_cut(void)
{
    return atomic_load(&proxy.was_cut);
}

void proxy_let_go(void)
{
    atomic_store(&proxy.let_go, true);
}

void proxy_set(enum proxy_state state)
{
    char byte = 0;
    while (state == PROXY_UP && read(proxy.turn[0], &byte, 1) > 0)
        ;
    atomic_store(&proxy.state, state);
    if (state != PROXY_UP && write(proxy.turn[1], &byte, 1) != 1)
        FAIL("no word for the lines");
}
