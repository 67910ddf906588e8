/*
 * name.c - the node's name.
 *
 * A process that enters the registry under a name takes over everything its predecessor of that
 * name held, at once. That makes a restart quick, and would stop a second server that lives.
 * Whether the process behind a row of the registry lives can be found out on the same machine: each
 * process holds an abstract Unix socket named after its boot id, which the kernel removes when the
 * process ends, however it ends. The socket belongs to a network namespace, so containers that
 * share only the database do not see each other's: there, as on another machine, the newcomer
 * replaces the other. Called by the thread that enters, before it has entered.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/name.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "exec/internal.h"

/* How many servers of one machine, database and folder get a default name. */
#define DEFAULT_NAMES_MAX 100
/* How long to wait for another process that is entering: a join and a heartbeat, on a slow disk. */
#define TURN_MS 10000
#define TURN_STEP_MS 20

/* ---- The default ----------------------------------------------------------------------------- */

/* Read the first line of a file; "" when there is none. Containers often have no such file. */
static void read_line(const char *path, char *out, size_t size)
{
    out[0] = 0;
    FILE *f = fopen(path, "re");
    if (f && fgets(out, (int)size, f))
        out[strcspn(out, "\n")] = 0;
    if (f)
        fclose(f);
}

/* The URL without user and password, which may change while the database stays the same. */
static void url_place(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t len = strcspn(host, "/?");
    for (const char *at = host; host != url && (at = memchr(at, '@', len - (size_t)(at - host)));) {
        len -= (size_t)(at + 1 - host);
        host = ++at;
    }
    snprintf(out, size, "%s", host);
    char *password = strstr(out, "password=");
    if (password) {
        char *end = password + strcspn(password, "&");
        memmove(password, end, strlen(end) + 1);
    }
}

static bool default_name(const char *url, const char *schema, char *out, size_t size)
{
    char host[256] = "localhost", machine[80], folder[PATH_MAX] = "", place[PATH_MAX];
    unsigned char sum[32];
    gethostname(host, sizeof(host) - 1);
    read_line("/etc/machine-id", machine, sizeof(machine));
    if (!getcwd(folder, sizeof(folder)))
        folder[0] = 0;
    url_place(url, place, sizeof(place));
    struct bytes parts[] = { bytes_of(machine), bytes_of(place), bytes_of(schema),
                             bytes_of(folder) };
    if (!digest_parts(parts, COUNT_OF(parts), sum))
        return false;
    snprintf(out, size, "%.64s-%02x%02x%02x%02x", host, sum[0], sum[1], sum[2], sum[3]);
    return true;
}

/* Append a name and use it. The first in the list is the one it was opened with, the last the one
 * it has. */
static bool name_keep(struct exec *e, const char *text)
{
    size_t len = strlen(text) + 1;
    struct exec_name **at = &e->names, *n = mem_alloc(sizeof(*n) + len);
    if (!n)
        return false;
    n->next = NULL;
    memcpy(n->text, text, len);
    while (*at)
        at = &(*at)->next;
    *at = n;
    e->conf.node = n->text;
    return true;
}

enum pawl_status name_open(struct exec *e, const char *given, struct pawl_err *err)
{
    char name[100];
    e->presence = -1;
    e->named = given != NULL;
    bool ok = given || default_name(e->conf.url, e->conf.schema, name, sizeof(name));
    return ok && name_keep(e, given ? given : name) ? PAWL_OK
                                                    : err_no_memory(err, "opening the database");
}

/* ---- Which processes of this machine live ---------------------------------------------------- */

/* An abstract address: it begins with a NUL, belongs to no file, and disappears with the last
 * socket that has it. */
static socklen_t address(struct sockaddr_un *out, const char *kind, struct bytes what)
{
    const char *machine = "";
#ifdef PAWL_TEST
    /* A test that simulates another machine gives it a name. */
    machine = getenv("PAWL_TEST_MACHINE");
    machine = machine ? machine : "";
#endif
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "pawl/%s/%.16s/%.*s", kind,
                     machine, (int)MIN(what.len, (size_t)64), what.data);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Bind the address. Below 0: another process has it, or there are no more sockets (errno). */
static int hold(const char *kind, struct bytes what)
{
    struct sockaddr_un to;
    socklen_t len = address(&to, kind, what);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&to, len) != 0 || listen(fd, SOMAXCONN) != 0)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* Does the process of this boot live? A forked child keeps its parent's socket, so ask which
 * process bound it. Where that process cannot be seen, the socket alone decides. */
static bool lives(struct bytes boot)
{
    struct sockaddr_un to;
    struct ucred who = { 0 };
    socklen_t len = address(&to, "boot", boot), size = sizeof(who);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool there = connect(fd, (struct sockaddr *)&to, len) == 0;
    bool busy = !there && errno == EAGAIN; /* its backlog is full: it is bound, and was asked often
                                            */
    if (there && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid > 0)
        there = kill(who.pid, 0) == 0 || errno != ESRCH;
    close(fd);
    return there || busy;
}

/* ---- Entering -------------------------------------------------------------------------------- */

int name_turn(const char *node)
{
    unsigned char sum[32];
    char hex[33];
    if (!digest_plain(bytes_of(node), sum))
        return -1;
    for (size_t i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    int fd = hold("turn", bytes_of(hex));
    for (int ms = 0; fd < 0 && errno == EADDRINUSE && ms < TURN_MS; ms += TURN_STEP_MS) {
        nanosleep(&(struct timespec){ .tv_nsec = TURN_STEP_MS * 1000000L }, NULL);
        fd = hold("turn", bytes_of(hex));
    }
    return fd;
}

void name_turn_end(int turn)
{
    if (turn >= 0)
        close(turn);
}

/* Does another living process of this machine have this name? */
static bool taken(const struct exec *e, const struct node_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->n; i++)
        if (bytes_eq(rows->v[i].node, bytes_of(name)) &&
            !bytes_eq(rows->v[i].boot, bytes_of(e->boot)) && lives(rows->v[i].boot))
            return true;
    return false;
}

/* Append a number to the default name. The old name stays in memory: other threads may be reading
 * it. */
static enum pawl_status next_name(struct exec *e, const struct node_rows *rows,
                                  struct pawl_err *err)
{
    const char *first = e->names->text;
    for (int i = 2; i <= DEFAULT_NAMES_MAX; i++) {
        char name[300];
        snprintf(name, sizeof(name), "%s-%d", first, i);
        if (taken(e, rows, name))
            continue;
        if (!name_keep(e, name))
            return err_no_memory(err, "a name for the node");
        log_line(LOG_INFO, "node \"%s\" runs on this machine already; this one is \"%s\"", first,
                 name);
        return PAWL_OK;
    }
    return err_set(err, PAWL_STATE,
                   "node \"%s\": %d processes on this machine have such a name; give this one "
                   "another (--node)",
                   first, DEFAULT_NAMES_MAX);
}

static enum pawl_status settle(struct exec *e, const struct node_rows *rows, struct pawl_err *err)
{
    if (!taken(e, rows, e->conf.node))
        return PAWL_OK;
    if (e->named)
        return err_set(err, PAWL_STATE,
                       "node \"%s\": another process on this machine has this name; give this one "
                       "another (--node)",
                       e->conf.node);
    return next_name(e, rows, err);
}

enum pawl_status name_settle(struct exec *e, struct pawl_err *err)
{
    struct store *s = NULL;
    struct node_rows rows;
    struct arena a;
    if (e->presence < 0)
        e->presence = hold("boot", bytes_of(e->boot));
    enum pawl_status st = exec_reader(e, &s, err);
    if (st != PAWL_OK)
        return st;
    arena_init(&a, 16 << 20);
    st = store_nodes(s, &a, &rows, err);
    exec_reader_back(e, s);
    if (st == PAWL_OK)
        st = settle(e, &rows, err);
    arena_release(&a);
    return st;
}

void name_leave(struct exec *e)
{
    if (e->presence >= 0)
        close(e->presence);
    e->presence = -1;
}

void name_release(struct exec *e)
{
    name_leave(e);
    for (struct exec_name *n = e->names, *next; n; n = next) {
        next = n->next;
        mem_free(n);
    }
}
