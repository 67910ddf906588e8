/*
 * work.c - `pawl work --exec`: a worker that runs a program for each call, over HTTP.
 *
 * The main thread waits for signals and for the slots to end. The first SIGTERM or SIGINT drains:
 * the slots claim no more, and running programs get `grace` to end. The second signal, or the end
 * of the grace, terminates the programs; their calls are handed back without counting an attempt.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/remote.h"
#include "cli/work.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"

/* How often to check whether the slots have ended. */
#define LOOK_NS 100000000

static sigset_t signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

static int alive(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    int n = w->n_alive;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* Stop claiming; end claims that are waiting for work. */
static void drain(struct worker *w, struct slot *slots, int n)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stop, true);
    for (int i = 0; i < n; i++)
        if (slots[i].claiming)
            client_leave(slots[i].client);
    pthread_mutex_unlock(&w->lock);
}

static void watch(struct worker *w, struct slot *slots, int n)
{
    sigset_t set = signals();
    int64_t until_us = INT64_MAX;
    while (alive(w)) {
        struct timespec look = { .tv_nsec = LOOK_NS };
        int sig = sigtimedwait(&set, NULL, &look);
        if (until_us == INT64_MAX && (sig > 0 || atomic_load(&w->stop))) {
            drain(w, slots, n);
            until_us = world_mono(&world_real) + w->cli->settings.v[SET_GRACE].number;
            if (sig > 0 && atomic_load(&w->running))
                fprintf(w->cli->err, "pawl work: stopping when %d call%s ended\n",
                        atomic_load(&w->running),
                        atomic_load(&w->running) == 1 ? " has" : "s have");
        } else if (sig > 0 || world_mono(&world_real) >= until_us) {
            atomic_store(&w->hard, true);
        }
    }
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* The values of a repeated option as a JSON array, ["a","b"]; NULL when it was not given. */
static const char *array_of(struct arena *a, const struct cli *cli, const char *option)
{
    struct buf b;
    int n = cli_count(cli, option);
    buf_init(&b, 64 << 10);
    buf_add_char(&b, '[');
    for (int i = 0; i < n; i++) {
        if (i)
            buf_add_char(&b, ',');
        json_add_string(&b, bytes_of(cli_nth(cli, option, i)));
    }
    buf_add_char(&b, ']');
    const char *text = n && buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return text;
}

/* The same, where each value is a list itself: A,B. */
static const char *list_of(struct arena *a, const struct cli *cli, const char *option)
{
    struct buf b;
    int n = cli_count(cli, option);
    buf_init(&b, 64 << 10);
    buf_add_char(&b, '[');
    for (int i = 0; i < n; i++)
        list_add(&b, cli_nth(cli, option, i));
    buf_add_char(&b, ']');
    const char *text = n && buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return text;
}

static enum pawl_status conf_read_options(struct worker *w, struct arena *a, int64_t *out_slots,
                                          struct pawl_err *err)
{
    struct cli *cli = w->cli;
    char host[200] = "worker";
    w->command = cli_option(cli, "exec");
    w->types = array_of(a, cli, "type");
    w->queues = array_of(a, cli, "queue");
    w->has = list_of(a, cli, "has");
    if (!w->command || !*w->command)
        return err_set(err, PAWL_INVALID,
                       "option --exec is missing: the program to run for each call");
    if (!w->types)
        return err_set(err, PAWL_INVALID,
                       "option --type is missing: the type of the calls to run it for");
    gethostname(host, sizeof(host) - 1);
    w->name = cli_option(cli, "worker");
    if (!w->name)
        w->name = arena_printf(a, "%s-%d", host, (int)getpid());
    w->lease_us = cli->settings.v[SET_LEASE_FOR].number;
    enum pawl_status st = cli_int(cli, "slots", 1, SLOTS_MAX, out_slots, err);
    if (st == PAWL_OK)
        st = cli_duration(cli, "retry-in", &w->later_us, err);
    if (st == PAWL_OK && cli_flag(cli, "idle"))
        st = cli_duration(cli, "idle", &w->idle_us, err);
    return st;
}

static enum pawl_status slots_open(struct worker *w, struct slot *slots, int n,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; st == PAWL_OK && i < n; i++) {
        slots[i].w = w;
        st = client_of(w->cli, &slots[i].client, err);
    }
    for (int i = 0; st == PAWL_OK && i < n; i++) {
        pthread_mutex_lock(&w->lock);
        w->n_alive++;
        pthread_mutex_unlock(&w->lock);
        slots[i].runs = pthread_create(&slots[i].thread, NULL, slot_main, &slots[i]) == 0;
        if (!slots[i].runs) {
            pthread_mutex_lock(&w->lock);
            w->n_alive--;
            pthread_mutex_unlock(&w->lock);
            st = err_set(err, PAWL_NO_MEMORY, "cannot create a thread for slot %d", i + 1);
            atomic_store(&w->stop, true);
        }
    }
    return st;
}

static enum pawl_status work(struct worker *w, int n, struct pawl_err *err)
{
    struct slot *slots = calloc((size_t)n, sizeof(*slots));
    if (!slots)
        return err_no_memory(err, "starting the slots");
    enum pawl_status st = slots_open(w, slots, n, err);
    watch(w, slots, n);
    for (int i = 0; i < n; i++) {
        if (slots[i].runs)
            pthread_join(slots[i].thread, NULL);
        client_close(slots[i].client);
    }
    free(slots);
    if (st == PAWL_OK && w->err.status != PAWL_OK)
        *err = w->err;
    return st == PAWL_OK ? w->err.status : st;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct worker w = { .cli = cli };
    struct pawl_err err = { 0 };
    struct arena a;
    int64_t slots = 0;
    sigset_t set = signals();
    (void)argc, (void)argv;
    arena_init(&a, 1 << 20);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    /* Blocked before any thread starts: watch() waits for these signals on the main thread. */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    atomic_store(&w.busy_us, world_mono(&world_real));
    enum pawl_status st = conf_read_options(&w, &a, &slots, &err);
    if (st == PAWL_OK)
        st = work(&w, (int)slots, &err);
    arena_release(&a);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    if (cli->json)
        fprintf(cli->out, "{\"calls\":%" PRId64 "}\n", w.n_done);
    else
        fprintf(cli->out, "%" PRId64 " call%s\n", w.n_done, plural(w.n_done));
    return cli_done(cli);
}

static const struct option_row options[] = {
    { "exec", "CMD", NULL, "the program to run for each call, by /bin/sh -c" },
    { "type", "T", NULL, "run it for calls of this type; may be repeated" },
    { "queue", "Q", NULL, "take calls from this queue only; may be repeated; default all" },
    { "has", "A,B", NULL, "capabilities: take also calls that need these" },
    { "slots", "N", "1", "programs that run at the same time" },
    { "worker", "NAME", NULL, "shown as the node of its calls; default HOST-PID" },
    { "retry-in", "D", "30s", "how long to wait before the next attempt after exit code 75" },
    { "idle", "D", NULL, "exit when no call came for this long; default never" },
    { 0 },
};

const struct command cmd_work = {
    .name = "work",
    .summary = "run a program for each call of a type",
    .usage = "--exec CMD --type T",
    .about =
        "Claims calls from the server and runs CMD with /bin/sh -c for each of them. The program\n"
        "reads the input on stdin. Its environment has PAWL_CALL_ID, PAWL_CALL_TYPE, _METHOD,\n"
        "_KEY, _ATTEMPT, _DEADLINE and TRACEPARENT, but no token and no database URL. Its stdout\n"
        "is the result: JSON if it is valid JSON, else a string if it is UTF-8, else bytes. Exit\n"
        "code 0: completed. 65: failed for good. 75: run it again after --retry-in, which does\n"
        "not count as an attempt. Any other: an error that is retried, with the end of stderr as\n"
        "its message. The program and its process group are killed when the call is cancelled,\n"
        "at the end of the worker's `grace`, or at _DEADLINE: a tenth before the call's timeout,\n"
        "half a second at most. On SIGTERM the worker takes no more calls, and exits when the\n"
        "running ones have ended.",
    .example = "pawl submit shout '\"hello\"' --id shout-1\n"
               "pawl work --exec 'tr a-z A-Z' --type shout --idle 1s\n"
               "pawl get shout-1 --result",
    .options = options,
    .reach = REACH_SERVER,
    .run = run,
};
