/*
 * server.c - parts of the daemon: which addresses it may listen on, and the messages to systemd.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/server.h"

#include "check.h"

TEST(loopback_and_sockets_are_near)
{
    static const char *const near[] = { "127.0.0.1:7295", "127.8.8.8:0",      "[::1]:80",
                                        "localhost:1",    "unix:/run/x.sock", "unix:x" };
    static const char *const far[] = { "0.0.0.0:7295",         "[::]:80", "192.168.1.2:80",
                                       "example.org:80",       "7295",    "",
                                       "[::ffff:127.0.0.1]:80" };
    for (size_t i = 0; i < COUNT_OF(near); i++)
        TRUE(guard_loopback(near[i]));
    for (size_t i = 0; i < COUNT_OF(far); i++)
        FALSE(guard_loopback(far[i]));
}

TEST(far_addresses_want_tokens)
{
    struct settings s = { 0 };
    struct pawl_err err;
    s.v[SET_LISTEN].text = "0.0.0.0:7295";
    EQ_STATUS(guard_listen(&s, &err), PAWL_FORBIDDEN, &err);
    HAS_STR(err.text, "pawl token new NAME admin");
    s.v[SET_TOKENS].n_items = 1;
    OK(guard_listen(&s, &err), &err);
}

TEST(what_is_no_address_is_said_to_be_none)
{
    static const char *const wrong[] = { "",      "7295",        "localhost", "127.0.0.1:",
                                         ":7295", "127.0.0.1:x", "unix:" };
    struct settings s = { 0 };
    struct pawl_err err;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        s.v[SET_LISTEN].text = wrong[i];
        EQ_STATUS(guard_listen(&s, &err), PAWL_INVALID, &err);
        HAS_STR(err.text, "is not ADDR:PORT, [ADDR]:PORT or unix:PATH");
    }
    s.v[SET_LISTEN].text = "127.0.0.1:65535";
    OK(guard_listen(&s, &err), &err);
    s.v[SET_LISTEN].text = "127.0.0.1:65536";
    EQ_STATUS(guard_listen(&s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "setting \"listen\": \"127.0.0.1:65536\": port must be 0 to 65535");
}

/* A socket as systemd makes it. Returns the message that came. */
static void heard(const char *name, const char *want)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char got[100] = "";
    size_t len = strlen(name);
    memcpy(at.sun_path, name, len);
    if (*name == '@')
        at.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    EQ_INT(bind(fd, (struct sockaddr *)&at, size), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    notify(want);
    TRUE(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) > 0);
    EQ_STR(got, want);
    close(fd);
}

TEST(systemd_is_told)
{
    char abstract[64];
    snprintf(abstract, sizeof(abstract), "@pawl-test-%d", (int)getpid());
    heard("notify.sock", "READY=1");
    heard(abstract, "STOPPING=1");
    setenv("NOTIFY_SOCKET", "nobody.sock", 1);
    notify("READY=1");
    unsetenv("NOTIFY_SOCKET");
    notify("READY=1");
}

TEST(the_watchdog_is_ours_or_not)
{
    char pid[32];
    EQ_INT(notify_watchdog_us(), 0);
    setenv("NOTIFY_SOCKET", "x.sock", 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    EQ_INT(notify_watchdog_us(), 30000000);
    setenv("WATCHDOG_PID", "1", 1);
    EQ_INT(notify_watchdog_us(), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    EQ_INT(notify_watchdog_us(), 30000000);
    setenv("WATCHDOG_USEC", "soon", 1);
    EQ_INT(notify_watchdog_us(), 0);
}
