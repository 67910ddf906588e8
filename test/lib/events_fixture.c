/*
 * events_fixture.c - see events_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "events_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events/table.h"
#include "net_fixture.h"

#define LISTENING "listening on http://127.0.0.1:"
#define WAIT_MS 20000

/* ---- Processes ------------------------------------------------------------------------------- */

_Noreturn static void become(const char *url, const char *what, const char *crash,
                             const char *const *options, int out)
{
    const char *v[40] = { "pawl", "events", what, "--db", url, "--config", "/dev/null" };
    size_t n = 7;
    int log = open("events.log", O_WRONLY | O_CREAT | O_APPEND, 0666);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (strcmp(what, "serve") == 0) {
        v[n++] = "--listen";
        v[n++] = "127.0.0.1:0";
    }
    for (; options && *options; options++)
        v[n++] = *options;
    if (crash)
        setenv("PAWL_CRASH", crash, 1);
    execv(PAWL_BUILD_DIR "/pawl", (char *const *)v);
    _exit(127);
}

struct events_proc events_start(const char *url, const char *what, const char *crash,
                                const char *const *options)
{
    int ends[2];
    struct events_proc p = { 0 };
    EQ_INT(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    p.pid = fork();
    if (p.pid == 0)
        become(url, what, crash, options, ends[1]);
    GT_INT(p.pid, 0);
    close(ends[1]);
    p.out = ends[0];
    return p;
}

void events_ready(struct events_proc *p)
{
    char line[512];
    size_t n = 0;
    line[0] = 0;
    while (!strchr(line, '\n')) {
        struct pollfd v = { .fd = p->out, .events = POLLIN };
        if (poll(&v, 1, WAIT_MS * check_scale()) <= 0)
            FAIL("pawl events has not said that it is ready; see events.log");
        ssize_t got = read(p->out, line + n, sizeof line - 1 - n);
        if (got <= 0)
            FAIL("pawl events ended before it was ready; see events.log");
        n += (size_t)got;
        line[n] = 0;
    }
    const char *at = strstr(line, LISTENING);
    p->port = at ? (int)strtol(at + sizeof LISTENING - 1, NULL, 10) : 0;
}

int events_end(struct events_proc *p, int sig)
{
    int status = 0;
    if (sig)
        kill(p->pid, sig);
    EQ_INT(waitpid(p->pid, &status, 0), p->pid);
    close(p->out);
    p->pid = 0;
    return status;
}

/* ---- A server in this process ---------------------------------------------------------------- */

static void *serve(void *arg)
{
    struct events_here *h = arg;
    events_server_run(h->s);
    return NULL;
}

void events_here_open(struct events_here *h, const char *url, size_t queue_max)
{
    struct pawl_err err;
    struct events_server_conf conf = { .db = url, .listen = "127.0.0.1:0", .queue_max = queue_max };
    OK(events_server_open(&conf, &h->s, &err), &err);
    h->port = (int)strtol(strrchr(events_server_address(h->s), ':') + 1, NULL, 10);
    EQ_INT(pthread_create(&h->thread, NULL, serve, h), 0);
}

void events_here_close(struct events_here *h)
{
    events_server_stop(h->s);
    pthread_join(h->thread, NULL);
    events_server_close(h->s);
}

/* ---- Clients --------------------------------------------------------------------------------- */

int events_connect(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

void events_send(int fd, const char *method, const char *path, const char *body)
{
    char text[8192];
    int n = snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", method,
                     path, body ? strlen(body) : 0, body ? body : "");
    LT_INT(n, (int)sizeof text);
    ssize_t sent = send(fd, text, (size_t)n, MSG_NOSIGNAL);
    (void)sent; /* a server that was killed is noticed when no answer comes */
}

static bool fill(int fd, char *to, size_t *n, size_t max)
{
    struct pollfd v = { .fd = fd, .events = POLLIN };
    if (*n >= max || poll(&v, 1, WAIT_MS * check_scale()) <= 0)
        return false;
    ssize_t got = recv(fd, to + *n, max - *n, 0);
    if (got <= 0)
        return false;
    *n += (size_t)got;
    to[*n] = 0;
    return true;
}

static void take_apart(struct events_answer *a)
{
    const char *id = strstr(a->body, "{\"id\":"), *value = strstr(a->body, "\"value\":\"");
    if (id)
        a->id = strtoll(id + 6, NULL, 10);
    if (value)
        snprintf(a->value, sizeof a->value, "%.*s", (int)strcspn(value + 9, "\""), value + 9);
}

struct events_answer events_read(int fd)
{
    struct events_answer a = { 0 };
    char text[4096] = "";
    size_t n = 0, len = 0;
    char *end = NULL;
    while (!(end = strstr(text, "\r\n\r\n")))
        if (!fill(fd, text, &n, sizeof text - 1))
            return a;
    const char *length = strcasestr(text, "content-length:");
    len = length && length < end ? (size_t)strtoul(length + 15, NULL, 10) : 0;
    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || len >= sizeof a.body)
        FAIL("no answer: %.200s", text);
    while (n < (size_t)(end + 4 - text) + len)
        if (!fill(fd, text, &n, sizeof text - 1))
            return a;
    a.status = (int)strtol(text + 9, NULL, 10);
    snprintf(a.head, sizeof a.head, "%.*s", (int)(end + 2 - text), text);
    memcpy(a.body, end + 4, len);
    take_apart(&a);
    return a;
}

struct events_answer events_ask(int port, const char *method, const char *path, const char *body)
{
    int fd = events_connect(port);
    GE_INT(fd, 0);
    events_send(fd, method, path, body);
    struct events_answer a = events_read(fd);
    close(fd);
    return a;
}

/* ---- The tables ------------------------------------------------------------------------------ */

int64_t events_whole(const char *param)
{
    int64_t n = engine_int(param, "SELECT count(*) FROM events;");
    EQ_INT(engine_int(param, "SELECT count(DISTINCT id) FROM events;"), n);
    EQ_INT(engine_int(param, "SELECT coalesce(max(id), 0) FROM events;"), n);
    EQ_INT(engine_int(param, "SELECT coalesce(min(id), 0) FROM events;"), n ? 1 : 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM status;"), 1);
    EQ_INT(engine_int(param, "SELECT id FROM status;"), n);
    return n;
}

void events_pending(const char *param, int n)
{
    struct pawl_err err;
    struct events_db *db;
    struct event *v = calloc((size_t)n, sizeof *v);
    struct event_add add = { .v = v, .n = (size_t)n };
    TRUE(v != NULL);
    OK(events_db_open(engine_url(param), 0, &db, &err), &err);
    OK(events_db_make(db, &err), &err);
    OK(events_db_add(db, &add, &err), &err);
    EQ_INT((int64_t)add.n, n);
    events_db_close(db);
    free(v);
}

int64_t events_left(const char *param)
{
    return engine_int(param, "SELECT count(*) FROM events WHERE value IS NULL;");
}

void events_until_done(const char *param)
{
    for (int i = 0; events_left(param) > 0; i++) {
        if (i > 2000 * check_scale())
            FAIL("%lld events are still pending", (long long)events_left(param));
        net_nap();
    }
}
