/*
 * replay.c - starting the process of a replay, answering what it asks, and what became of it
 * (replay.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "lib/replay_inside.h"

/* How often to look whether a child has ended whose socket does not say so. */
#define LOOK_MS 20

struct child {
    pid_t pid;
    int fd; /* of the socket; -1: the child has closed its end */
    struct replay_shared *shared;
    bool hung;
    int status; /* of waitpid() */
};

/* ---- Starting and ending --------------------------------------------------------------------- */

static enum pawl_status refuse(struct pawl_err *err)
{
    return err_set(err, PAWL_BUSY, "cannot create a process: %s", strerror(errno));
}

/* A child that stops in the middle of a request must not stop the parent. */
static void bound(int fd, int64_t timeout_us)
{
    const struct timeval t = { .tv_sec = timeout_us / SEC_US, .tv_usec = timeout_us % SEC_US };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static enum pawl_status child_start(struct child *c, const struct replay_conf *conf,
                                    const struct replay *r, struct pawl_err *err)
{
    int ends[2];
    struct replay own = *r;
    own.out = &c->shared->outcome;
    c->shared->parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return refuse(err);
    fflush(NULL); /* what is not written yet would be written by a child that calls exit(), too */
    c->pid = fork();
    if (c->pid == 0)
        replay_child(conf, &own, c->shared, ends[1]);
    enum pawl_status st = c->pid < 0 ? refuse(err) : PAWL_OK;
    close(ends[1]);
    c->fd = ends[0];
    bound(c->fd, conf->timeout_us);
    return st;
}

static void child_hang_up(struct child *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

/* ---- While it runs --------------------------------------------------------------------------- */

/* It stays a zombie, so that its process group is still its own. */
static bool child_ended(const struct child *c)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* It has closed its socket, and said what there is to say: it is about to end. */
static bool child_said(const struct child *c, const struct replay *r)
{
    return c->fd < 0 && (r->call ? c->shared->outcome.end != REPLAY_NONE : c->shared->loaded);
}

/* Answer what it asks for until it has ended, or its time is up. */
static enum pawl_status child_serve(struct child *c, const struct replay_conf *conf,
                                    const struct replay *r, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    int64_t until_us = world_mono(&world_real) + conf->timeout_us;
    while (st == PAWL_OK && !child_said(c, r) && !child_ended(c)) {
        int64_t now_us = world_mono(&world_real);
        c->hung = now_us >= until_us;
        if (c->hung)
            break;
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        int wait_ms = (int)MIN((until_us - now_us) / MS_US + 1, c->fd < 0 ? 1 : LOOK_MS);
        if (poll(&p, 1, wait_ms) <= 0)
            continue;
        if (!wire_serve(c->fd, conf->store, &st, err))
            child_hang_up(c);
    }
    return st;
}

/* Nothing is left behind: neither the child, nor what it started. */
static void child_end(struct child *c)
{
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
        ;
}

static enum pawl_status child_run(struct child *c, const struct replay_conf *conf,
                                  const struct replay *r, struct pawl_err *err)
{
    enum pawl_status st = child_start(c, conf, r, err);
    if (st == PAWL_OK) {
        st = child_serve(c, conf, r, err);
        child_end(c);
    }
    child_hang_up(c);
    return st;
}

/* ---- What became of it ----------------------------------------------------------------------- */

static enum replay_fate fate_of(const struct child *c)
{
    if (c->shared->outcome.end != REPLAY_NONE)
        return REPLAY_ENDED;
    if (c->hung)
        return REPLAY_HUNG;
    return WIFSIGNALED(c->status) ? REPLAY_CRASHED : REPLAY_EXITED;
}

/* It did not come as far as a handler. */
static enum pawl_status load_error(const struct child *c, const struct replay_conf *conf,
                                   struct pawl_err *err)
{
    char took[32];
    duration_text(conf->timeout_us, took);
    if (c->shared->err.status != PAWL_OK)
        *err = c->shared->err;
    else if (c->hung)
        err_set(err, PAWL_INVALID, "loading the modules did not end within %s", took);
    else if (WIFSIGNALED(c->status))
        err_set(err, PAWL_INVALID, "loading the modules crashed with signal %d (%s)",
                WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else
        err_set(err, PAWL_INVALID, "loading the modules ended the process with exit code %d",
                WEXITSTATUS(c->status));
    return err->status;
}

static enum pawl_status replay(const struct replay_conf *conf, const struct replay *r,
                               struct replay_result *out, struct pawl_err *err)
{
    struct child c = { .fd = -1 };
    c.shared =
        mmap(NULL, sizeof *c.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c.shared == MAP_FAILED)
        return err_no_memory(err, "a replay");
    enum pawl_status st = child_run(&c, conf, r, err);
    if (st == PAWL_OK && !c.shared->loaded)
        st = load_error(&c, conf, err);
    *out = (struct replay_result){ .fate = fate_of(&c),
                                   .signal = WIFSIGNALED(c.status) ? WTERMSIG(c.status) : 0,
                                   .code = WIFEXITED(c.status) ? WEXITSTATUS(c.status) : 0,
                                   .outcome = c.shared->outcome };
    munmap(c.shared, sizeof *c.shared);
    return st;
}

enum pawl_status replay_modules(const struct replay_conf *c, struct pawl_err *err)
{
    struct replay_result result;
    return replay(c, &(struct replay){ 0 }, &result, err);
}

enum pawl_status replay_journal(const struct replay_conf *c, const struct replay *r,
                                struct replay_result *out, struct pawl_err *err)
{
    return replay(c, r, out, err);
}
