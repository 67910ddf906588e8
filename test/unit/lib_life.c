/*
 * lib_life.c - opening, starting, stopping, closing, starting again: which process holds what at
 * each time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"
#include "store/store.h"

RUNS_ON(ENGINES_ALL)

static void never_tried(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(pawl_state_name(v->state), "pending");
    EQ_INT(v->attempts, 0);
    EQ_INT(v->lost, 0);
    pawl_shown_free(shown);
}

/* ---- Stop ---- */

static void *opens_gate(void *arg)
{
    usleep(20000); /* so that the stop has begun; either order must work */
    fixture_open_gate();
    return arg;
}

TEST(a_stop_with_grace_lets_what_runs_end)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_blocks);
    fixture_assume_quick(); /* so that it holds more than it runs */
    fixture_submit_many(p, "t", 6);
    fixture_start(p, 2);
    UNTIL(atomic_load(&fixture_inside) == 2);
    pthread_t opener;
    EQ_INT(pthread_create(&opener, NULL, opens_gate, NULL), 0);
    OK(pawl_stop(p, 60 * FIXTURE_SEC, NULL), NULL);
    pthread_join(opener, NULL);
    /* The two that ran have ended, the four that waited are handed back, and no attempt was
     * counted. */
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 0);
    EQ_INT(fixture_count(p, PAWL_COMPLETED) + fixture_count(p, PAWL_PENDING), 6);
    GE_INT(fixture_count(p, PAWL_COMPLETED), 2);
    for (int i = 0; i < 6; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        if (fixture_state(p, id) == PAWL_PENDING)
            never_tried(p, id);
    }
    pawl_close(p);
}

static int sleeps_then_fails(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_inside, 1);
    EQ_INT(pawl_sleep(c, 600 * FIXTURE_SEC), 1);
    TRUE(pawl_cancelled(c));
    return pawl_fail(c, "told to stop");
}

TEST(handlers_that_see_the_stop_hand_back_unburnt)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", sleeps_then_fails);
    fixture_start(p, 2);
    fixture_submit_many(p, "t", 2);
    UNTIL(atomic_load(&fixture_inside) == 2);
    UNTIL(pawl_stop(p, 0, NULL) == PAWL_OK); /* at once, unless the machine stalls */
    never_tried(p, "c0");
    never_tried(p, "c1");
    pawl_close(p);
}

TEST(a_handler_that_does_not_stop_is_told_of_and_its_answer_void)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_stop(p, 10 * FIXTURE_MS, &err), PAWL_BUSY, &err);
    HAS_STR(err.text, "1 handlers did not return");
    never_tried(p, "x");
    EQ_STATUS(pawl_stop(p, 0, &err), PAWL_BUSY, &err); /* it is still running */
    fixture_open_gate();
    UNTIL((pawl_stats(p, &st), st.running == 0));
    OK(pawl_stop(p, FIXTURE_WAIT_US, &err), &err);
    never_tried(p, "x");
    pawl_close(p);
}

TEST(nothing_is_claimed_after_a_stop)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    OK(pawl_stop(p, FIXTURE_WAIT_US, NULL), NULL);
    fixture_submit(p, "y", "t");
    struct pawl_shown *shown;
    OK(pawl_get(p, "y", 200 * FIXTURE_MS, &shown, NULL), NULL);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    pawl_shown_free(shown);
    struct pawl_err err;
    EQ_STATUS(pawl_start(p, NULL, &err), PAWL_STATE, &err);
    pawl_close(p);
}

TEST(a_stop_before_the_start_stops_nothing)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    OK(pawl_stop(p, 0, NULL), NULL);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
}

TEST(starting_twice_or_with_nothing_to_run_is_told)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    EQ_STATUS(pawl_start(p, NULL, &err), PAWL_INVALID, &err);
    fixture_on(p, "t", fixture_echo);
    EQ_STATUS(pawl_on(pawl_program(p), "t", "run", fixture_echo), PAWL_CONFLICT, NULL);
    EQ_STATUS(pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = 1025 }, &err),
              PAWL_INVALID, &err);
    EQ_STATUS(pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = -1 }, &err),
              PAWL_INVALID, &err);
    fixture_start(p, 1);
    EQ_STATUS(pawl_start(p, NULL, &err), PAWL_STATE, &err);
    EQ_STATUS(pawl_on(pawl_program(p), "u", "run", fixture_echo), PAWL_STATE, NULL);
    pawl_close(p);
}

TEST(a_paused_process_starts_no_work)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .paused = true });
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    struct pawl_shown *shown;
    OK(pawl_get(p, "x", 200 * FIXTURE_MS, &shown, NULL), NULL);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    pawl_shown_free(shown);
    pawl_close(p);
}

/* ---- Close ---- */

TEST(closing_with_a_handler_that_does_not_return)
{
    struct pawl *other = fixture_open_as(param, (struct pawl_options){ .node = "other" });
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 2);
    fixture_submit_many(p, "t", 3);
    UNTIL(atomic_load(&fixture_inside) == 2);
    int64_t begun = fixture_mono();
    pawl_close(p);
    LT_INT(fixture_mono() - begun, 20 * FIXTURE_SEC * check_scale());
    for (int i = 0; i < 3; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        never_tried(other, id);
    }
    fixture_open_gate(); /* They return to a handle that is closed, and its memory is not freed. */
    UNTIL(atomic_load(&fixture_inside) == 0);
    pawl_close(other);
}

TEST(closing_twice_over_and_closing_nothing)
{
    pawl_close(NULL);
    for (int i = 0; i < 20; i++) {
        struct pawl *p = fixture_open(param);
        if (i % 2) {
            fixture_on(p, "t", fixture_echo);
            fixture_start(p, 4);
        }
        pawl_close(p);
    }
}

/* ---- Start again ---- */

TEST(a_restart_under_the_same_name_takes_back_at_once)
{
    /* A grace so long that only the name can be the reason. */
    struct pawl_options o = { .node = "n", .heartbeat_grace_us = 600 * FIXTURE_SEC };
    struct pawl *a = fixture_open_as(param, o), *b;
    struct pawl_err err;
    fixture_on(a, "t", fixture_blocks);
    fixture_start(a, 1);
    fixture_submit(a, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    b = fixture_open_as(param, o);
    fixture_on(b, "t", fixture_echo);
    /* Where it cannot be known that the first one is alive. */
    setenv("PAWL_TEST_MACHINE", "another", 1);
    fixture_start(b, 1);
    fixture_ends(b, "x", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(b, "x");
    EQ_INT(pawl_shown_view(shown)->lost, 1);
    EQ_INT(pawl_shown_view(shown)->result.form, PAWL_NOTHING); /* b's answer */
    int64_t finished = pawl_shown_view(shown)->finished_at_us;
    pawl_shown_free(shown);
    fixture_open_gate(); /* a's result is void */
    EQ_STATUS(pawl_stop(a, FIXTURE_WAIT_US, &err), PAWL_OK, &err);
    pawl_close(a);
    shown = fixture_get(b, "x");
    EQ_INT(pawl_shown_view(shown)->finished_at_us, finished);
    EQ_INT(pawl_shown_view(shown)->result.form, PAWL_NOTHING);
    pawl_shown_free(shown);
    fixture_submit(b, "y", "t");
    fixture_ends(b, "y", PAWL_COMPLETED);
    pawl_close(b);
}

/* On one machine a name belongs to one living process: the second is refused, the first goes on. */
TEST(a_living_process_of_a_name_is_not_replaced_from_its_own_machine)
{
    struct pawl_options o = { .node = "n" };
    struct pawl *a = fixture_open_as(param, o), *b = fixture_open_as(param, o);
    struct pawl_err err;
    fixture_on(a, "t", fixture_echo);
    fixture_on(b, "t", fixture_echo);
    fixture_start(a, 1);
    EQ_STATUS(pawl_start(b, NULL, &err), PAWL_STATE, &err);
    EQ_STR(err.text, "node \"n\": another process on this machine has this name; give this one "
                     "another (--node)");
    pawl_close(b);
    fixture_submit(a, "x", "t");
    fixture_ends(a, "x", PAWL_COMPLETED);
    pawl_close(a);
    /* It has left, and the name is free. */
    b = fixture_open_as(param, o);
    if (!fixture_is_mem(param)) {
        fixture_on(b, "t", fixture_echo);
        fixture_start(b, 1);
    }
    pawl_close(b);
}

/* Default names depend on the machine, the database and the folder, and get numbers. */
TEST(default_names_are_stable_and_apart)
{
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = engine_url(param) };
    struct pawl *v[3];
    struct pawl_err err;
    char host[65] = "", first[100], wanted[120];
    gethostname(host, sizeof(host) - 1);
    for (int i = 0; i < 3; i++) {
        OK(pawl_open(&o, &v[i], &err), &err);
        EQ_STR(v[i]->e->conf.node, v[0]->e->conf.node);
        fixture_on(v[i], "t", fixture_echo);
    }
    snprintf(first, sizeof(first), "%s", v[0]->e->conf.node);
    TRUE(strncmp(first, host, strlen(host)) == 0 && strlen(first) == strlen(host) + 9);
    for (int i = 0; i < 3; i++) {
        OK(pawl_start(v[i], NULL, &err), &err);
        snprintf(wanted, sizeof(wanted), i ? "%s-%d" : "%s", first, i + 1);
        EQ_STR(v[i]->e->conf.node, wanted);
    }
    fixture_submit(v[0], "x", "t");
    fixture_ends(v[0], "x", PAWL_COMPLETED);
    pawl_close(v[1]); /* the next one has its number */
    OK(pawl_open(&o, &v[1], &err), &err);
    fixture_on(v[1], "t", fixture_echo);
    OK(pawl_start(v[1], NULL, &err), &err);
    snprintf(wanted, sizeof(wanted), "%s-2", first);
    EQ_STR(v[1]->e->conf.node, wanted);
    o.schema = "other";
    struct pawl *other;
    OK(pawl_open(&o, &other, &err), &err);
    TRUE(strcmp(other->e->conf.node, first) != 0);
    pawl_close(other);
    for (int i = 0; i < 3; i++)
        pawl_close(v[i]);
}

/* A forked child that lives on does not keep its parent's name. */
TEST(a_name_is_free_when_its_process_is_dead)
{
    if (fixture_is_mem(param))
        skip("mem: is one process's");
    int up[2], stay[2]; /* it is open; how long the child lives */
    char word;
    struct pawl_options o = { .node = "n", .heartbeat_grace_us = 600 * FIXTURE_SEC };
    TRUE(pipe(up) == 0 && pipe(stay) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(stay[1]);
        struct pawl *a = fixture_open_as(param, o);
        fixture_on(a, "t", fixture_echo);
        fixture_start(a, 1);
        if (fork() == 0) { /* has the socket that shows that its parent is alive */
            TRUE(write(up[1], "x", 1) == 1);
            _exit((int)read(stay[0], &word, 1));
        }
        pause();
    }
    EQ_INT(read(up[0], &word, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    struct pawl *b = fixture_open_as(param, o);
    fixture_on(b, "t", fixture_echo);
    fixture_start(b, 1);
    pawl_close(b);
    close(stay[1]);
}

static bool was_replaced(struct pawl *p)
{
    pthread_mutex_lock(&p->e->pool.lock);
    bool yes = p->e->pool.replaced;
    pthread_mutex_unlock(&p->e->pool.lock);
    return yes;
}

TEST(the_former_process_of_a_name_claims_no_more)
{
    struct pawl_options o = { .node = "n" };
    struct pawl *a = fixture_open_as(param, o), *b = fixture_open_as(param, o);
    struct pawl_stats st = { PAWL_STATS_INIT };
    fixture_on(a, "t", fixture_echo);
    fixture_on(b, "u", fixture_echo);
    fixture_start(a, 1);
    setenv("PAWL_TEST_MACHINE", "another", 1);
    fixture_start(b, 1);
    /* It learns of the drain with its next heartbeat; from then on its calls stay pending. */
    UNTIL(was_replaced(a));
    fixture_submit(a, "x", "t");
    struct pawl_shown *shown;
    OK(pawl_get(a, "x", 300 * FIXTURE_MS, &shown, NULL), NULL);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    pawl_shown_free(shown);
    pawl_stats(a, &st);
    EQ_INT(st.claimed, 0);
    pawl_close(a);
    pawl_close(b);
}

TEST(a_database_is_found_as_it_was_left)
{
    if (fixture_is_mem(param))
        skip("mem: is gone with its last handle");
    struct pawl *p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_submit(p, "x", "t");
    pawl_close(p);
    p = fixture_open(param);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 1);
    fixture_ends(p, "x", PAWL_COMPLETED);
    pawl_close(p);
    p = fixture_open_as(param, (struct pawl_options){ .no_migrate = true });
    EQ_INT(fixture_state(p, "x"), PAWL_COMPLETED);
    pawl_close(p);
}

/* ---- Two processes ---- */

/* A separate process that works until it is killed. */
static pid_t worker_process_as(const void *param, struct pawl_options o, pawl_handler *h)
{
    engine_url(param); /* created here, so that both have the same */
    pid_t pid = fork();
    if (pid == 0) {
        struct pawl *p = fixture_open_as(param, o);
        fixture_on(p, "t", h);
        fixture_start(p, 2);
        for (;;)
            pause();
    }
    GT_INT(pid, 0);
    return pid;
}

static pid_t worker_process(const void *param, const char *node, pawl_handler *h)
{
    return worker_process_as(param, (struct pawl_options){ .node = node }, h);
}

TEST(another_process_works_and_this_one_is_answered)
{
    if (fixture_is_mem(param))
        skip("mem: is one process's");
    pid_t pid = worker_process(param, "worker", fixture_echo); /* before this process has threads */
    struct pawl *p = fixture_open(param);
    struct pawl_shown *shown;
    struct pawl_err err;
    for (int i = 0; i < 20; i++) {
        struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t", .input = PAWL_TEXT("5") };
        OK(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), &err);
        EQ_STR(pawl_state_name(pawl_shown_view(shown)->state), "completed");
        EQ_STR(pawl_shown_view(shown)->node, "worker");
        EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "5", 1);
        pawl_shown_free(shown);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    pawl_close(p);
}

TEST(what_a_dead_process_held_is_taken_back_without_traffic)
{
    if (fixture_is_mem(param))
        skip("mem: is one process's");
    pid_t pid = worker_process(param, "worker", fixture_blocks);
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .heartbeat_grace_us = FIXTURE_SEC });
    fixture_on(p, "t", fixture_echo);
    fixture_submit(p, "x", "t");
    UNTIL(fixture_state(p, "x") == PAWL_PROCESSING);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int64_t begun = fixture_mono();
    fixture_start(p, 1);
    fixture_ends(p, "x", PAWL_COMPLETED);
    /* A grace of 1 s, and 2 more. */
    LT_INT(fixture_mono() - begun, 15 * FIXTURE_SEC * check_scale());
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT(pawl_shown_view(shown)->lost, 1);
    EQ_STR(pawl_shown_view(shown)->node, "fixture");
    pawl_shown_free(shown);
    struct pawl_attempts *a;
    OK(pawl_attempts(p, "x", &a, NULL), NULL);
    EQ_INT((int)a->n, 1);
    EQ_STR(a->v[0].kind, "lost");
    EQ_STR(a->v[0].error, "node \"worker\" was lost");
    pawl_attempts_free(a);
    pawl_close(p);
}

TEST(processes_that_start_together_all_open)
{
    if (fixture_is_mem(param))
        skip("mem: is one process's");
    enum { N = 6 };
    pid_t pids[N];
    engine_url(param); /* one for all of them */
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char node[32], id[32];
            snprintf(node, sizeof node, "n%d", i);
            snprintf(id, sizeof id, "x%d", i);
            struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = node });
            fixture_submit(p, id, "t");
            pawl_close(p);
            _exit(0);
        }
    }
    for (int i = 0; i < N; i++) {
        int status = 0;
        EQ_INT(waitpid(pids[i], &status, 0), pids[i]);
        EQ_INT(status, 0);
    }
    struct pawl *p = fixture_open(param);
    EQ_INT(fixture_count(p, PAWL_PENDING), N);
    pawl_close(p);
}

/* Its leave was refused, and a hanging handler keeps one of its threads: the name is free
 * nevertheless. */
TEST(a_closed_handle_leaves_its_name, .plain = true)
{
    const struct pawl_options as = { .node = "s" };
    struct pawl *p = fixture_open_as("fault+sqlite:fixture.db", as);
    fixture_on(p, "t", fixture_blocks);
    fixture_start(p, 1);
    fixture_submit(p, "x", "t");
    UNTIL(atomic_load(&fixture_inside) == 1);
    store_fault(FAULT_EVERY, FAULT_BEFORE, PAWL_BROKEN);
    pawl_close(p);
    store_fault(0, FAULT_BEFORE, PAWL_OK);
    p = fixture_open_as("sqlite:fixture.db", as);
    EQ_INT(engine_int("sqlite:fixture.db", "SELECT count(*) FROM pawl_node WHERE node = 's'"), 1);
    fixture_on(p, "u", fixture_echo);
    fixture_start(p, 1);
    fixture_open_gate();
    pawl_close(p);
}

/* ---- False suspicion ---- */

/* Stop the process between two writes: in the middle of one it would keep the file's only write
 * lock. */
static void stop_between_writes(const void *param, pid_t pid)
{
    int status;
    for (;;) {
        kill(pid, SIGSTOP);
        EQ_INT(waitpid(pid, &status, WUNTRACED), pid);
        TRUE(WIFSTOPPED(status));
        if (engine_writable(param))
            return;
        kill(pid, SIGCONT);
    }
}

/* A process that was stopped for longer than the grace is declared dead. No other process has its
 * name: when it continues, its calls belong to others, and it works again. */
TEST(a_process_that_was_buried_by_mistake_works_again)
{
    if (fixture_is_mem(param))
        skip("mem: is one process's");
    pid_t pid = worker_process(param, "sleeper", fixture_echo);
    struct pawl *p = fixture_open_as(
        param, (struct pawl_options){ .node = "watcher",
                                      .heartbeat_interval_us = 50 * FIXTURE_MS,
                                      .heartbeat_grace_us = 400 * FIXTURE_MS * check_scale() });
    fixture_on(p, "other", fixture_echo);
    fixture_start(p, 1);
    fixture_submit(p, "before", "t");
    fixture_ends(p, "before", PAWL_COMPLETED);
    const char *dead = "SELECT dead FROM pawl_node WHERE node = 'sleeper'";
    UNTIL(engine_int(param, "SELECT count(*) FROM pawl_lease") == 0);
    /* On a busy machine it may have been declared dead before. */
    UNTIL(engine_int(param, dead) == 0);
    stop_between_writes(param, pid);
    UNTIL(engine_int(param, dead) == 1);
    kill(pid, SIGCONT);
    fixture_submit(p, "after", "t");
    struct pawl_shown *shown;
    OK(pawl_get(p, "after", 15 * FIXTURE_SEC * check_scale(), &shown, NULL), NULL);
    EQ_STR(pawl_state_name(pawl_shown_view(shown)->state), "completed");
    pawl_shown_free(shown);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    pawl_close(p);
}
