/*
 * stop.c - signals, and the shutdown: stop claiming, finish, release, answer, close.
 *
 * One thread waits for signals and posts to the loop; another waits for the workers, so that HTTP
 * is served meanwhile. What must stay true: nothing is interrupted before the workers are done or
 * their grace is over, and a second signal never waits.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/world.h"
#include "server/server.h"

/* After the workers are done, answers have this long to reach their clients. */
#define DRAIN_US (5 * SEC_US)
/* A signal this soon after the first is the same one. */
#define SIGNAL_AGAIN_US (100 * MS_US)

/* ---- Shutdown, on the loop thread ------------------------------------------------------------ */

static void drained(void *ctx)
{
    struct server *s = ctx;
    loop_stop(s->loop);
}

static struct server *server_of(struct loop_task *t, size_t offset)
{
    return (struct server *)((char *)t - offset);
}

/* The workers are done: clients that still wait get the call as it is. */
static void on_stopped(struct loop_task *t)
{
    struct server *s = server_of(t, offsetof(struct server, on_stopped));
    api_stop(s->api);
    http_drain(s->http, world_mono(&world_real) + DRAIN_US, drained, s);
}

/* A separate thread, because pawl_stop() takes as long as the handlers do. */
static void *stop_main(void *arg)
{
    struct server *s = arg;
    struct pawl_err err = { 0 };
    if (pawl_stop(s->pawl, s->grace_us, &err) != PAWL_OK)
        log_line(LOG_WARN, "%s", err.text);
    loop_post(s->loop, &s->on_stopped);
    return NULL;
}

/* The watchdog continues, as the loop does. */
static void stop_begin(struct server *s)
{
    s->stop_runs = pthread_create(&s->stop_thread, NULL, stop_main, s) == 0;
    if (!s->stop_runs)
        stop_main(s);
}

static void on_stop(struct loop_task *t)
{
    struct server *s = server_of(t, offsetof(struct server, on_stop));
    struct pawl_stats stats = { PAWL_STATS_INIT };
    char grace[32];
    notify("STOPPING=1");
    pawl_stats(s->pawl, &stats);
    s->grace_us = s->settings.v[SET_GRACE].number;
    duration_text(s->grace_us, grace);
    log_line(LOG_INFO, "stopping: waiting up to %s for %" PRId64 " running call%s", grace,
             stats.running, plural(stats.running));
    stop_begin(s);
}

/* This node's calls belong to another process now: there is nothing to wait for. */
static void on_replaced(struct loop_task *t)
{
    struct server *s = server_of(t, offsetof(struct server, on_replaced));
    s->replaced = true;
    if (atomic_exchange(&s->stopping, true))
        return;
    notify("STOPPING=1");
    s->grace_us = 0;
    stop_begin(s);
}

static void on_reload(struct loop_task *t)
{
    struct server *s = server_of(t, offsetof(struct server, on_reload));
    /* Before it runs: a file that changes while it is read is read once more. */
    atomic_store(&s->reloading, false);
    if (!atomic_load(&s->stopping))
        server_reload(s);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static sigset_t waited_for(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2); /* sent by this process to end the waiting thread */
    return set;
}

void signals_block(void)
{
    sigset_t set = waited_for();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    /* A shell starts background programs with SIGINT ignored; this server must receive it. */
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

bool signal_second(int64_t first_us)
{
    return world_mono(&world_real) - first_us >= SIGNAL_AGAIN_US;
}

static void *signals_main(void *arg)
{
    struct server *s = arg;
    sigset_t set = waited_for();
    int64_t first_us = 0;
    for (int sig = 0; sigwait(&set, &sig) == 0 && sig != SIGUSR2;) {
        if (sig == SIGHUP) {
            if (!atomic_exchange(&s->reloading, true))
                loop_post(s->loop, &s->on_reload);
        } else if (!atomic_exchange(&s->stopping, true)) {
            first_us = world_mono(&world_real);
            loop_post(s->loop, &s->on_stop);
        } else if (signal_second(first_us)) {
            log_line(LOG_WARN, "%s again: leaving at once", sig == SIGINT ? "SIGINT" : "SIGTERM");
            _exit(128 + sig);
        }
    }
    return NULL;
}

void signals_init(struct server *s)
{
    s->on_stop.run = on_stop;
    s->on_reload.run = on_reload;
    s->on_stopped.run = on_stopped;
    s->on_replaced.run = on_replaced;
}

enum pawl_status signals_open(struct server *s, struct pawl_err *err)
{
    if (pthread_create(&s->signal_thread, NULL, signals_main, s) != 0)
        return err_no_memory(err, "starting the thread for signals");
    s->signals_run = true;
    return PAWL_OK;
}

void signals_close(struct server *s)
{
    if (s->stop_runs)
        pthread_join(s->stop_thread, NULL);
    if (!s->signals_run)
        return;
    pthread_kill(s->signal_thread, SIGUSR2);
    pthread_join(s->signal_thread, NULL);
    s->signals_run = false;
}
