/*
 * replay_child.c - the process of a replay: it leaves everything of its parent, loads the modules,
 * and replays one journal (replay.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/lib.h"
#include "lib/replay_inside.h"

/* The socket's number, the first behind stderr. */
#define WIRE_FD 3

/* ---- Calls of others ------------------------------------------------------------------------- */

static enum pawl_status far_get(struct store *s, struct arena *a, struct get *g,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    (void)s;
    g->found = arena_zalloc(a, g->n, sizeof *g->found);
    g->out = arena_zalloc(a, g->n, sizeof *g->out);
    if (!g->found || !g->out)
        return err_no_memory(err, "reading a call");
    for (size_t i = 0; i < g->n && st == PAWL_OK; i++)
        st = wire_get(WIRE_FD, a, g->ids[i], &g->found[i], &g->out[i], err);
    return st;
}

/* The whole database, as a handler sees it. */
static const struct store_ops far_ops = { .name = "replay", .get = far_get };
static struct store far = { .ops = &far_ops };

/* ---- The process ----------------------------------------------------------------------------- */

/* Leave the parent's files and its terminal; end when it does. What a handler prints is not the
 * command's answer. */
static bool leave(int fd, pid_t parent)
{
    const struct rlimit no_core = { 0, 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return false;
    if (fd != WIRE_FD && dup2(fd, WIRE_FD) < 0)
        return false;
    closefrom(WIRE_FD + 1);
    return fcntl(WIRE_FD, F_SETFD, FD_CLOEXEC) == 0 && getppid() == parent;
}

/* A name without a slash is a file in this folder, not in the linker's folders. */
static enum pawl_status load(struct pawl *p, const char *name, struct pawl_err *err)
{
    char here[PATH_MAX];
    snprintf(here, sizeof here, "%s%s", strchr(name, '/') ? "" : "./", name);
    return pawl_load(p, here, err);
}

static enum pawl_status load_all(const struct replay_conf *c, const struct replay *r,
                                 struct exec **out, struct pawl_err *err)
{
    static struct pawl p; /* never closed */
    enum pawl_status st = replay_open(r, &far, out, err);
    p.e = *out;
    p.program.p = &p;
    for (size_t i = 0; i < c->n_modules && st == PAWL_OK; i++)
        st = load(&p, c->modules[i], err);
    return st;
}

void replay_child(const struct replay_conf *c, const struct replay *r, struct replay_shared *shared,
                  int fd)
{
    struct exec *e = NULL;
    if (!leave(fd, shared->parent))
        _exit(1);
    if (load_all(c, r, &e, &shared->err) != PAWL_OK)
        _exit(0);
    shared->loaded = true;
    if (!r->call)
        _exit(0);
    replay_run(e);
}
