/*
 * pooler.c - see pooler.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pooler.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

#define PORT "6432"
#define START_MS 10000

static const char *const programs[] = { "/usr/sbin/pgbouncer", "/usr/bin/pgbouncer",
                                        "/usr/local/bin/pgbouncer" };

static const char *find(void)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (access(programs[i], X_OK) == 0)
            return programs[i];
    return NULL;
}

bool pooler_there(void)
{
    return find() != NULL;
}

/* Its settings are in a memfd: there is no folder that both accounts may use. */
static int settings(const char *host)
{
    int fd = memfd_create("pgbouncer.ini", 0);
    TRUE(fd >= 0);
    dprintf(fd,
            "[databases]\n* = host=%s port=5432 user=pawl\n"
            "[pgbouncer]\nlisten_port=" PORT "\nunix_socket_dir=@pawl-pooler-%ld\n"
            "auth_type=any\npool_mode=transaction\ndefault_pool_size=4\nmax_client_conn=500\n"
            "server_round_robin=1\nserver_login_retry=1\nlog_connections=0\n"
            "log_disconnections=0\n",
            host, (long)getpid());
    return fd;
}

static void become_nobody(void)
{
    const struct passwd *who = getuid() == 0 ? getpwnam("nobody") : NULL;
    if (who && (setgroups(0, NULL) || setgid(who->pw_gid) || setuid(who->pw_uid)))
        _exit(126);
}

static void start(const char *host)
{
    char path[40];
    int fd = settings(host);
    int log = open("pgbouncer.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid(), pid = fork();
    TRUE(pid >= 0);
    if (pid == 0) {
        become_nobody();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        dup2(log, 1);
        dup2(log, 2);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        execl(find(), "pgbouncer", "-q", path, (char *)NULL);
        _exit(127);
    }
    close(fd);
    close(log);
}

static bool answers(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "pawl-pooler-%ld/.s.PGSQL." PORT,
                     (long)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = connect(fd, (struct sockaddr *)&at,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0;
    close(fd);
    return ok;
}

/* The value of host= in a URL of our servers. */
static void host_of(const char *url, char *out, size_t size)
{
    const char *at = strstr(url, "host=");
    TRUE(at != NULL);
    snprintf(out, size, "%.*s", (int)strcspn(at + 5, "&"), at + 5);
}

const char *pooler_url(const char *url)
{
    static char host[100], out[300];
    char was[100];
    snprintf(was, sizeof was, "%s", host);
    host_of(url, host, sizeof host);
    if (strcmp(was, host) != 0) {
        EQ_STR(was, ""); /* one server per process */
        start(host);
        for (int ms = 0; !answers(); ms += 5) {
            if (ms > START_MS)
                FAIL("pgbouncer does not answer; see pgbouncer.log");
            usleep(5000);
        }
    }
    const char *name = strstr(url, "@/");
    TRUE(name != NULL);
    snprintf(out, sizeof out, "postgres://pawl@/%.*s?host=%%40pawl-pooler-%ld&port=" PORT,
             (int)strcspn(name + 2, "?"), name + 2, (long)getpid());
    return out;
}
