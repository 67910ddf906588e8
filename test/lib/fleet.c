/*
 * fleet.c - see fleet.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixture.h"

#define LISTENING "listening on http://127.0.0.1:"
#define SAMPLES PAWL_BUILD_DIR "/samples/lab.so," PAWL_BUILD_DIR "/samples/wallet.so"
/* A node that ended by itself is restarted after this time. */
#define AGAIN_US (100 * FIXTURE_MS)
/* How long a node that stops lets its calls go on. */
#define STOP_GRACE "3s"

struct node {
    pid_t pid; /* 0: not running */
    int out;   /* its stdout, kept open while it runs */
    char line[300];
    size_t len;
    bool wanted, frozen, was_ready;
    int64_t again_us;
    atomic_int port;
};

static struct fleet_conf conf;
static struct node nodes[FLEET_NODES];
static int starts, failed_starts;

_Noreturn static void become(int index, int out)
{
    char name[20], log[20], beat[20], grace[20];
    snprintf(name, sizeof name, "n%d", index);
    snprintf(log, sizeof log, "n%d.log", index);
    snprintf(beat, sizeof beat, "%lldms", (long long)(conf.grace_us / FIXTURE_MS / 8));
    snprintf(grace, sizeof grace, "%lldms", (long long)(conf.grace_us / FIXTURE_MS));
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (conf.preload[index]) {
        setenv("LD_PRELOAD", conf.preload[index], 1);
        setenv("FAKETIME", conf.clock[index], 1);
        setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1); /* only its wall clock is wrong */
        /* It believes that glibc waits by the real clock, so that no wait would last. */
        setenv("FAKETIME_FORCE_MONOTONIC_FIX", "0", 1);
    }
    if (conf.dress)
        conf.dress(index);
    execl(PAWL_BUILD_DIR "/pawl", "pawl", "serve", "--listen", "127.0.0.1:0", "--db", conf.db,
          "--module", conf.module ? conf.module : SAMPLES, "--node", name, "--heartbeat-interval",
          conf.beat ? conf.beat : beat, "--heartbeat-grace", grace, "--reclaim-interval", "100ms",
          "--grace", conf.stop_grace ? conf.stop_grace : STOP_GRACE, "--config", "/dev/null",
          (char *)NULL);
    _exit(127);
}

void fleet_begin(const struct fleet_conf *c)
{
    conf = *c;
    for (int i = 0; i < FLEET_NODES; i++)
        nodes[i].out = -1;
}

void fleet_start(int index)
{
    struct node *v = &nodes[index];
    int ends[2];
    EQ_INT(v->pid, 0);
    EQ_INT(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    v->pid = fork();
    if (v->pid == 0)
        become(index, ends[1]);
    GT_INT(v->pid, 0);
    close(ends[1]);
    v->out = ends[0];
    v->len = 0;
    v->wanted = true;
    v->frozen = v->was_ready = false;
    v->again_us = 0;
    starts++;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void gone(struct node *v)
{
    atomic_store(&v->port, 0);
    if (v->out >= 0)
        close(v->out);
    v->out = -1;
    v->pid = 0;
    v->frozen = false;
}

_Noreturn static void bad_end(const struct node *v, int status, const char *when)
{
    int index = (int)(v - nodes);
    if (WIFSIGNALED(status))
        FAIL("node n%d died of signal %d %s; see n%d.log", index, WTERMSIG(status), when, index);
    FAIL("node n%d ended with status %d %s; see n%d.log", index, WEXITSTATUS(status), when, index);
}

/* A node ended by itself: allowed after a poison call, and when there was no database at its start.
 */
static void own_end(struct node *v, int status)
{
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && conf.died;
    bool no_start = WIFEXITED(status) && WEXITSTATUS(status) != 0 && !v->was_ready;
    if (!aborted && !no_start)
        bad_end(v, status, "by itself");
    gone(v);
    v->again_us = fixture_mono() + AGAIN_US;
    failed_starts += no_start;
    if (aborted)
        conf.died((int)(v - nodes));
}

/* ---- Watching the processes ------------------------------------------------------------------ */

static void hear(struct node *v)
{
    struct pollfd p = { .fd = v->out, .events = POLLIN };
    if (v->was_ready || poll(&p, 1, 0) <= 0)
        return;
    ssize_t n = read(v->out, v->line + v->len, sizeof v->line - 1 - v->len);
    if (n <= 0)
        return; /* waitpid() reports its end */
    v->len += (size_t)n;
    v->line[v->len] = '\0';
    if (!strchr(v->line, '\n'))
        return;
    HAS_STR(v->line, LISTENING);
    atomic_store(&v->port,
                 (int)strtol(strstr(v->line, LISTENING) + sizeof LISTENING - 1, NULL, 10));
    v->was_ready = true;
}

void fleet_tend(void)
{
    for (int i = 0; i < FLEET_NODES; i++) {
        struct node *v = &nodes[i];
        int status = 0;
        if (v->pid)
            hear(v);
        if (v->pid && waitpid(v->pid, &status, WNOHANG) == v->pid)
            own_end(v, status);
        if (!v->pid && v->wanted && v->again_us && fixture_mono() >= v->again_us)
            fleet_start(i);
    }
}

static bool all_ready(void)
{
    bool all = true;
    fleet_tend();
    for (int i = 0; i < FLEET_NODES; i++)
        all = all && (!nodes[i].wanted || atomic_load(&nodes[i].port));
    return all;
}

void fleet_ready(void)
{
    UNTIL(all_ready());
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* Send the signal and wait for the end. Returns the status from waitpid(). */
static int end_by(struct node *v, int sig)
{
    int status = 0;
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    kill(v->pid, sig);
    if (v->frozen)
        kill(v->pid, SIGCONT);
    atomic_store(&v->port, 0);
    while (waitpid(v->pid, &status, WNOHANG) == 0) {
        if (fixture_mono() > until)
            FAIL("node n%d does not end after signal %d", (int)(v - nodes), sig);
        usleep(1000);
    }
    return status;
}

/* A poison call may have killed the node first. */
static bool aborted(struct node *v, int status)
{
    bool is = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && conf.died;
    if (is)
        conf.died((int)(v - nodes));
    return is;
}

void fleet_kill(int index)
{
    struct node *v = &nodes[index];
    v->wanted = false;
    v->again_us = 0;
    if (!v->pid)
        return;
    int status = end_by(v, SIGKILL);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool no_start = WIFEXITED(status) && WEXITSTATUS(status) != 0 && !v->was_ready;
    if (!killed && !no_start && !aborted(v, status))
        bad_end(v, status, "before it was killed");
    gone(v);
}

/* A node that was not ready yet may end with any status. */
static void stop(struct node *v)
{
    v->wanted = false;
    v->again_us = 0;
    if (!v->pid)
        return;
    int status = end_by(v, SIGTERM);
    bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!well && v->was_ready && !aborted(v, status))
        bad_end(v, status, "when it was asked to stop");
    gone(v);
}

void fleet_restart(int index)
{
    stop(&nodes[index]);
    fleet_start(index);
}

void fleet_freeze(int index)
{
    struct node *v = &nodes[index];
    if (!v->pid)
        return;
    kill(v->pid, SIGSTOP);
    v->frozen = true;
}

void fleet_thaw(int index)
{
    struct node *v = &nodes[index];
    if (v->pid && v->frozen)
        kill(v->pid, SIGCONT);
    v->frozen = false;
}

void fleet_end(void)
{
    for (int i = 0; i < FLEET_NODES; i++)
        stop(&nodes[i]);
}

void fleet_ask_to_stop(int index)
{
    nodes[index].wanted = false;
    kill(nodes[index].pid, SIGTERM);
}

bool fleet_has_stopped(int index)
{
    struct node *v = &nodes[index];
    int status = 0;
    if (!v->pid)
        return true;
    if (waitpid(v->pid, &status, WNOHANG) == 0)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bad_end(v, status, "when it was asked to stop");
    gone(v);
    return true;
}

int fleet_port(int index)
{
    return atomic_load(&nodes[index].port);
}

bool fleet_up(int index)
{
    return nodes[index].pid != 0;
}

int fleet_starts(void)
{
    return starts;
}

int fleet_failed_starts(void)
{
    return failed_starts;
}
