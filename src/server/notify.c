/*
 * notify.c - sd_notify in a few lines: one datagram to the socket that systemd named, if there is
 * one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "server/server.h"

void notify(const char *message)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = 0; /* the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    /* A failure is ignored: nothing depends on it. */
    ssize_t ignored = sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT,
                             (struct sockaddr *)&to, size);
    (void)ignored;
    close(fd);
}

int64_t notify_watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us = 0, whom = 0;
    if (!getenv("NOTIFY_SOCKET") || !text || !int_parse(bytes_of(text), &us) || us <= 0)
        return 0;
    if (pid && int_parse(bytes_of(pid), &whom) && whom != getpid())
        return 0; /* for another process */
    return us;
}
