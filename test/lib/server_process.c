/*
 * server_process.c - see server_process.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "server_process.h"

#include <errno.h>
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

#include "base/err.h"
#include "own_world.h"

/* The largest answer is a page of 1,000 calls. */
#define ANSWER_MAX (4 << 20)
#define LISTENING "listening on http://127.0.0.1:"

/* ---- The server ------------------------------------------------------------------------------ */

static const char *db;
static pid_t server;
static int server_out = -1;
static atomic_int server_port; /* 0: clients must not connect */

_Noreturn static void become(int out)
{
    char grace[32];
    /* Longer than a machine stalls; a sanitizer needs more. Every start after a kill waits for it.
     */
    snprintf(grace, sizeof grace, "%ds", MAX(4, check_scale()));
    int log = open("server.log", O_WRONLY | O_CREAT | O_APPEND, 0666);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(PAWL_BUILD_DIR "/pawl", "pawl", "serve", "--listen", "127.0.0.1:0", "--db", db,
          "--module", PAWL_BUILD_DIR "/samples/lab.so", "--module",
          PAWL_BUILD_DIR "/samples/wallet.so", "--node", "killed", "--heartbeat-interval", "100ms",
          "--heartbeat-grace", grace, "--reclaim-interval", "100ms", "--config", "/dev/null",
          (char *)NULL);
    _exit(127);
}

void server_process_on(const void *param)
{
    db = engine_url(param);
}

void server_process_start(void)
{
    int ends[2];
    EQ_INT(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    server = fork();
    if (server == 0)
        become(ends[1]);
    GT_INT(server, 0);
    close(ends[1]);
    server_out = ends[0];
}

/* End the case with a message about how the server ended. */
static void gone(int status, const char *when)
{
    if (WIFSIGNALED(status))
        FAIL("the server died of signal %d %s; see server.log", WTERMSIG(status), when);
    FAIL("the server ended with status %d %s; see server.log", WEXITSTATUS(status), when);
}

/* A server whose database is down, is cut off by the case, or does not confirm its first commit
 * ends with BUSY or UNKNOWN. A supervisor would start it again, and so does the test. */
static void start_again(int64_t until)
{
    int status = 0;
    waitpid(server, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    bool away = code == err_exit(PAWL_BUSY) || code == err_exit(PAWL_UNKNOWN);
    if (!away || fixture_mono() > until)
        gone(status, "before it was ready");
    close(server_out);
    server_process_start();
}

void server_process_ready(void)
{
    char line[512];
    size_t n = 0;
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    for (;;) {
        struct pollfd p = { .fd = server_out, .events = POLLIN };
        int left_ms = (int)((until - fixture_mono()) / 1000);
        if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0)
            FAIL("the server has not said that it is ready");
        ssize_t got = read(server_out, line + n, sizeof line - 1 - n);
        if (got <= 0) {
            start_again(until);
            n = 0;
            continue;
        }
        n += (size_t)got;
        line[n] = '\0';
        if (strchr(line, '\n'))
            break;
    }
    HAS_STR(line, LISTENING);
    atomic_store(&server_port,
                 (int)strtol(strstr(line, LISTENING) + sizeof LISTENING - 1, NULL, 10));
}

static int ends(int sig)
{
    int status = 0;
    atomic_store(&server_port, 0);
    if (waitpid(server, &status, WNOHANG) != 0)
        gone(status, "by itself");
    kill(server, sig);
    EQ_INT(waitpid(server, &status, 0), server);
    close(server_out);
    server = 0;
    return status;
}

void server_process_kill(void)
{
    int status = ends(SIGKILL);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        gone(status, "before it was killed");
}

void server_process_stop(void)
{
    int status = ends(SIGTERM);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        gone(status, "when it was asked to stop");
}

/* ---- A client -------------------------------------------------------------------------------- */

void server_client_init(struct server_client *c, uint64_t seed)
{
    *c = (struct server_client){ .fd = -1, .seed = seed, .buf = malloc(ANSWER_MAX + 1) };
    TRUE(c->buf != NULL);
    arena_init(&c->a, 32 << 20);
}

void server_client_release(struct server_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    arena_release(&c->a);
    free(c->buf);
}

int64_t server_client_dice(struct server_client *c, int64_t below)
{
    return (int64_t)(mix64(c->seed++) % (uint64_t)below);
}

static bool connected(struct server_client *c)
{
    int port = c->port ? c->port : atomic_load(&server_port), on = 1;
    struct timeval patience = { .tv_sec = 40 * check_scale() };
    if (c->patience_ms)
        patience = (struct timeval){ c->patience_ms / 1000, c->patience_ms % 1000 * 1000 };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (c->fd >= 0)
        return true;
    if (!port)
        return false;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GE_INT(c->fd, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) == 0)
        return true;
    close(c->fd);
    c->fd = -1;
    return false;
}

static bool say(struct server_client *c, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = send(c->fd, text + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* Read one answer: its body, and its status as the result; 0: it was lost. */
static int hear(struct server_client *c, struct bytes *out)
{
    size_t len = 0, want = 0;
    char *end = NULL;
    while (!end || len < want) {
        ssize_t n = recv(c->fd, c->buf + len, ANSWER_MAX - len, 0);
        if (n < 0 && !c->patience_ms && (errno == EAGAIN || errno == EWOULDBLOCK))
            FAIL("no answer for %d s from a server that lives", 40 * check_scale());
        if (n <= 0)
            return 0;
        len += (size_t)n;
        c->buf[len] = '\0';
        if (!end && (end = strstr(c->buf, "\r\n\r\n"))) {
            const char *length = strcasestr(c->buf, "\r\ncontent-length:");
            TRUE(length && length < end);
            end += 4;
            *out = (struct bytes){ end, strtoul(length + 17, NULL, 10) };
            want = (size_t)(end - c->buf) + out->len;
            LE_INT((int64_t)want, ANSWER_MAX);
        }
    }
    EQ_INT((int64_t)len, (int64_t)want);
    return (int)strtol(c->buf + 9, NULL, 10);
}

static void leave(struct server_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

/* Send a request; false: it did not reach the server. */
static bool question(struct server_client *c, const char *path, const char *body)
{
    char head[700];
    if (!connected(c))
        return false;
    int n = snprintf(head, sizeof head,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     body ? "POST" : "GET", path, body ? strlen(body) : 0);
    LT_INT(n, (int)sizeof head);
    return say(c, head, (size_t)n) && (!body || say(c, body, strlen(body)));
}

static int once(struct server_client *c, const char *path, const char *body, struct bytes *out)
{
    if (!connected(c)) {
        usleep(1000);
        return 0;
    }
    int status = question(c, path, body) ? hear(c, out) : 0;
    if (status)
        return status;
    c->lost++;
    leave(c);
    return 0;
}

void server_client_abandon(struct server_client *c, const char *path, const char *body)
{
    question(c, path, body);
    leave(c);
}

static struct json *parsed(struct server_client *c, struct bytes text)
{
    struct json *json = NULL;
    struct pawl_err err;
    arena_reset(&c->a);
    OK(json_parse(&c->a, text, &json, &err), &err);
    return json;
}

/* Connect to another server; the present connection is closed. */
static void turn_to(struct server_client *c, int port)
{
    if (c->port != port)
        leave(c);
    c->port = port;
}

void server_client_abandon_at(struct server_client *c, int port, const char *path, const char *body)
{
    turn_to(c, port);
    server_client_abandon(c, path, body);
}

struct server_answer server_client_try(struct server_client *c, int port, const char *path,
                                       const char *body)
{
    struct bytes text = { 0 };
    struct server_answer a = { 0 };
    turn_to(c, port);
    if (port)
        a.status = once(c, path, body, &text);
    if (a.status)
        a.json = parsed(c, text);
    return a;
}

struct server_answer server_client_ask(struct server_client *c, const char *path, const char *body)
{
    int64_t until = fixture_mono() + 2 * FIXTURE_WAIT_US;
    struct server_answer a = { 0 };
    struct bytes text = { 0 };
    while (a.status == 0 || a.status == 503 || a.status == 504) {
        if (fixture_mono() > until)
            FAIL("%s: no answer but %d in %d s", path, a.status, 60 * check_scale());
        if (a.status)
            usleep(5000);
        a.status = once(c, path, body, &text);
    }
    a.json = parsed(c, text);
    return a;
}

struct server_answer server_client_once(struct server_client *c, const char *path, const char *body)
{
    struct server_answer a = { 0 };
    struct bytes text = { 0 };
    a.status = once(c, path, body, &text);
    if (!a.status) /* the connection was closed by an earlier server */
        a.status = once(c, path, body, &text);
    if (!a.status)
        FAIL("%s: no answer from a server that lives", path);
    a.json = parsed(c, text);
    return a;
}

const char *server_client_text(struct server_client *c, const struct json *object,
                               const char *member)
{
    const struct json *v = json_member(object, member);
    struct bytes text = v ? json_string(&c->a, v) : BYTES_NONE;
    return text.data ? text.data : "";
}

int64_t server_client_int(const struct json *object, const char *member)
{
    const struct json *v = json_member(object, member);
    int64_t n = -1;
    return v && json_int(v, &n) ? n : -1;
}
