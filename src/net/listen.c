/*
 * listen.c - turn an address into a listening socket: IPv4, IPv6, unix. Any thread.
 *
 * Only its owner may use a unix socket (0600). A socket file that a dead server left is removed
 * only when no process answers at it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/server.h"

/* The kernel reduces it to net.core.somaxconn. */
#define BACKLOG 4096

static enum pawl_status listen_err(struct pawl_err *err, const char *where)
{
    int e = errno;
    return err_set(err, e == EADDRINUSE ? PAWL_BUSY : PAWL_INVALID, "listen on %s: %s", where,
                   strerror(e));
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- Unix ------------------------------------------------------------------------------------ */

/* Is the file a socket at which no process listens? */
static bool is_stale(const struct sockaddr_un *at)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool refused =
        connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static bool bind_unix(int fd, const struct sockaddr_un *at)
{
    const struct sockaddr *address = (const struct sockaddr *)at;
    if (bind(fd, address, sizeof *at) == 0)
        return true;
    if (errno != EADDRINUSE)
        return false;
    bool stale = is_stale(at);
    errno = EADDRINUSE;
    if (!stale)
        return false;
    unlink(at->sun_path);
    return bind(fd, address, sizeof *at) == 0;
}

static enum pawl_status open_unix(struct listener *l, const char *where, struct pawl_err *err)
{
    const char *path = where + strlen("unix:");
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct stat st;
    if (!*path || strlen(path) >= sizeof at.sun_path)
        return err_set(err, PAWL_INVALID, "listen on %s: the path must have 1 to %zu bytes", where,
                       sizeof at.sun_path - 1);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    l->is_unix = true;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The mode is set before the file exists, so that other users can never connect. */
    if (l->fd < 0 || fchmod(l->fd, 0600) != 0 || !bind_unix(l->fd, &at))
        return listen_err(err, where);
    snprintf(l->path, sizeof l->path, "%s", path);
    if (listen(l->fd, BACKLOG) != 0 || lstat(path, &st) != 0)
        return listen_err(err, where);
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    snprintf(l->address, sizeof l->address, "unix:%s", path);
    snprintf(l->reached, sizeof l->reached, "%s", l->address);
    return PAWL_OK;
}

/* ---- TCP ------------------------------------------------------------------------------------- */

/* Split "HOST:PORT" or "[HOST]:PORT" into two texts. */
static bool split(const char *where, char *host, size_t host_len, const char **out_port)
{
    const char *colon = strrchr(where, ':'), *begin = where, *end = colon;
    if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strlen(colon + 1) > 5 || strtol(colon + 1, NULL, 10) > 65535)
        return false;
    if (*begin == '[') {
        if (end[-1] != ']')
            return false;
        begin++;
        end--;
    } else if (memchr(begin, ':', (size_t)(end - begin))) {
        return false; /* an IPv6 address without brackets: the port is ambiguous */
    }
    if (begin == end || (size_t)(end - begin) >= host_len)
        return false;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = 0;
    *out_port = colon + 1;
    return true;
}

static bool bind_first(struct listener *l, const struct addrinfo *all)
{
    int on = 1;
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        fd_close(&l->fd);
        l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (l->fd >= 0 && setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            bind(l->fd, a->ai_addr, a->ai_addrlen) == 0 && listen(l->fd, BACKLOG) == 0)
            return true;
    }
    return false;
}

/* Does it listen at all addresses of the machine? */
static bool is_any(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET
               ? ((const struct sockaddr_in *)at)->sin_addr.s_addr == htonl(INADDR_ANY)
               : at->ss_family == AF_INET6 &&
                     IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

static void address_text(struct listener *l, bool tls)
{
    struct sockaddr_storage at = { 0 };
    char name[HOST_NAME_MAX + 1] = "";
    socklen_t len = sizeof at;
    char host[INET6_ADDRSTRLEN + 24] = "?", port[8] = "?";
    if (getsockname(l->fd, (struct sockaddr *)&at, &len) == 0)
        getnameinfo((struct sockaddr *)&at, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = strchr(host, ':');
    snprintf(l->address, sizeof l->address, "http%s://%s%s%s:%s", tls ? "s" : "", v6 ? "[" : "",
             host, v6 ? "]" : "", port);
    if (is_any(&at) && gethostname(name, sizeof name - 1) == 0 && *name)
        snprintf(l->reached, sizeof l->reached, "http%s://%s:%s", tls ? "s" : "", name, port);
    else
        snprintf(l->reached, sizeof l->reached, "%s", l->address);
}

static enum pawl_status open_tcp(struct listener *l, const char *where, bool tls,
                                 struct pawl_err *err)
{
    char host[256];
    const char *port;
    if (!split(where, host, sizeof host, &port))
        return err_set(err, PAWL_INVALID,
                       "listen on %s: expected ADDR:PORT, [ADDR]:PORT or unix:PATH", where);
    struct addrinfo want = { .ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, port, &want, &found);
    if (failed)
        return err_set(err, PAWL_INVALID, "listen on %s: %s", where, gai_strerror(failed));
    bool bound = bind_first(l, found);
    int e = errno;
    freeaddrinfo(found);
    errno = e;
    if (!bound)
        return listen_err(err, where);
    address_text(l, tls);
    return PAWL_OK;
}

/* ---- Both ------------------------------------------------------------------------------------ */

enum pawl_status listener_open(struct listener *l, const char *where, bool tls,
                               struct pawl_err *err)
{
    *l = (struct listener){ .fd = -1 };
    enum pawl_status st =
        strncmp(where, "unix:", 5) == 0 ? open_unix(l, where, err) : open_tcp(l, where, tls, err);
    if (st != PAWL_OK)
        listener_close(l);
    return st;
}

void listener_close(struct listener *l)
{
    struct stat st;
    fd_close(&l->fd);
    if (l->path[0] && l->ino && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
        st.st_ino == l->ino)
        unlink(l->path);
    l->path[0] = 0;
}

static bool is_loopback(const struct sockaddr_storage *from)
{
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    }
    if (from->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)from)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    }
    return false;
}

int listener_accept(const struct listener *l, bool *out_loopback)
{
    struct sockaddr_storage from = { 0 };
    socklen_t len = sizeof from;
    int fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    *out_loopback = fd >= 0 && is_loopback(&from);
    return fd;
}
