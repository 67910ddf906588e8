/*
 * server.c - `pawl serve` as a child process (server.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/table.h"

#define READY_S 10
#define LISTENING "listening on http://127.0.0.1:"

/* The child: it drops the user's settings, or the figures would be about something else than they
 * say. */
_Noreturn static void become(const struct bench_server_conf *conf, int out)
{
    extern char **environ;
    for (char **e = environ; *e;)
        if (strncmp(*e, "PAWL_", 5) == 0) {
            char name[128];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
            unsetenv(name);
            e = environ;
        } else {
            e++;
        }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    setenv("PAWL_DB", conf->db, 1); /* a URL may hold a password, and every user can read the
                                       arguments of a process */
    execl(conf->program, "pawl", "serve", "--listen", "127.0.0.1:0", "--module", conf->echo,
          "--module", conf->wallet, "--node", "bench", "--log-level", "error", "--config",
          "/dev/null", "--schema", conf->schema ? conf->schema : "pawl", (char *)NULL);
    _exit(127);
}

/* Read its one line of stdout; false: it ended, or did not print it in time. */
static bool read_ready(struct bench_server *s)
{
    char line[512];
    size_t n = 0;
    double until = bench_clock() + READY_S;
    while (n < sizeof line - 1) {
        struct pollfd p = { .fd = s->out, .events = POLLIN };
        int left_ms = (int)((until - bench_clock()) * 1000);
        if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0)
            return false;
        ssize_t got = read(s->out, line + n, sizeof line - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        line[n] = 0;
        if (!strchr(line, '\n'))
            continue;
        const char *at = strstr(line, LISTENING);
        s->port = at ? (int)strtol(at + sizeof LISTENING - 1, NULL, 10) : 0;
        return s->port > 0;
    }
    return false;
}

enum pawl_status bench_server_open(struct bench_server *s, const struct bench_server_conf *conf,
                                   struct pawl_err *err)
{
    int ends[2];
    *s = (struct bench_server){ .out = -1 };
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, PAWL_BUSY, "no pipe for the server");
    s->pid = fork();
    if (s->pid == 0)
        become(conf, ends[1]);
    close(ends[1]);
    s->out = ends[0];
    if (s->pid > 0 && read_ready(s))
        return PAWL_OK;
    bench_server_close(s);
    return err_set(err, PAWL_BUSY, "%s serve did not say that it is ready", conf->program);
}

void bench_server_close(struct bench_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
        close(s->out);
    }
    *s = (struct bench_server){ .out = -1 };
}

double bench_server_mib(const struct bench_server *s)
{
    char path[64];
    long size = 0, pages = -1;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)s->pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    if (fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = -1;
    fclose(f);
    return pages < 0 ? -1 : (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}
