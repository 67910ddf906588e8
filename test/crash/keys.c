/*
 * keys.c - the order of a key when processes die, share a database, or commit late.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/hook.h"
#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

enum { GOOD = 60, MAX_LOST = 4, CALLS = 1000 };

/* Increments the state and replies the count. */
static int counts(struct pawl_call *c)
{
    int64_t n = pawl_state_int(c, 0) + 1;
    pawl_set_state_int(c, n);
    return pawl_reply_int(c, n);
}

static int poison(struct pawl_call *c)
{
    (void)c;
    abort();
}

static void submit(struct pawl *p, const char *id, const char *method)
{
    fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = id, .type = "t",
                                             .method = method, .key = "k", .max_lost = MAX_LOST });
}

static struct pawl *open_serving(void *param, const char *node)
{
    struct pawl_err err;
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = node });
    OK(pawl_on(pawl_program(p), "t", "count", counts), &err);
    OK(pawl_on(pawl_program(p), "t", "poison", poison), &err);
    fixture_start(p, 8);
    return p;
}

static int64_t number(struct pawl_data d)
{
    char text[32] = "";
    EQ_INT(d.form, PAWL_JSON);
    LT_INT((int64_t)d.len, (int64_t)sizeof text);
    memcpy(text, d.data, d.len);
    return strtoll(text, NULL, 10);
}

/* ---- A call that kills its process ----------------------------------------------------------- */

static void serve_until_empty(void *param)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    alarm((unsigned)(100 * check_scale()));
    struct pawl *p = open_serving(param, "n");
    fixture_drain(p);
    pawl_close(p);
    _exit(0);
}

static int run_until_done(void *param)
{
    for (int deaths = 0;; deaths++) {
        pid_t pid = fork();
        if (pid == 0)
            serve_until_empty(param);
        int status = 0;
        EQ_INT(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return deaths;
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            FAIL("a worker ended with status %x", status);
        LE_INT(deaths, GOOD);
    }
}

TEST(a_poison_call_is_given_up_and_its_key_goes_on, .deadline_s = 240)
{
    char id[16];
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    for (int i = 0; i < GOOD; i++) {
        if (i == GOOD / 2)
            submit(p, "poison", "poison");
        snprintf(id, sizeof id, "g%d", i);
        submit(p, id, "count");
    }
    pawl_close(p);
    printf("%d deaths\n", run_until_done(param));
    p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    struct pawl_shown *shown = fixture_get(p, "poison");
    EQ_INT(pawl_shown_view(shown)->state, PAWL_DEAD_LETTER);
    EQ_INT(pawl_shown_view(shown)->lost, MAX_LOST);
    EQ_INT(pawl_shown_view(shown)->key_no, GOOD / 2 + 1);
    pawl_shown_free(shown);
    for (int i = 0; i < GOOD; i++) {
        snprintf(id, sizeof id, "g%d", i);
        shown = fixture_get(p, id);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->state, PAWL_COMPLETED);
        EQ_INT(v->key_no, i + 1 + (i >= GOOD / 2));
        EQ_INT(number(v->result), i + 1); /* each took effect once, in order */
        LE_INT(v->lost, 1);
        pawl_shown_free(shown);
    }
    pawl_close(p);
}

/* ---- Two processes on one database ----------------------------------------------------------- */

struct answer {
    int64_t result;
    bool here; /* it ran in that process */
};

/* A process that submits the calls it is told to, waits for their end and reports it; it also
 * serves. */
static void relay(void *param, int fd, const char *node)
{
    alarm((unsigned)(200 * check_scale()));
    struct pawl *p = open_serving(param, node);
    int n;
    while (read(fd, &n, sizeof n) == sizeof n) {
        char id[16];
        struct pawl_shown *shown;
        struct pawl_err err;
        snprintf(id, sizeof id, "c%d", n);
        OK(pawl_submit_wait(p,
                            &(struct pawl_spec){ PAWL_SPEC_INIT, .id = id, .type = "t",
                                                 .method = "count", .key = "k" },
                            FIXTURE_WAIT_US, &shown, &err),
           &err);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->state, PAWL_COMPLETED);
        struct answer a = { number(v->result), strcmp(v->node, node) == 0 };
        pawl_shown_free(shown);
        EQ_INT(write(fd, &a, sizeof a), sizeof a);
    }
    pawl_close(p);
    _exit(0);
}

TEST(one_after_another_over_two_processes, .deadline_s = 400)
{
    int fds[2][2], n = check_long() ? CALLS : CALLS / 5, elsewhere = 0;
    pid_t pids[2];
    pawl_close(fixture_open_as(param, (struct pawl_options){ .node = "x" }));
    for (int i = 0; i < 2; i++) {
        EQ_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
        pids[i] = fork();
        if (pids[i] == 0) {
            close(fds[i][0]);
            if (i)
                close(fds[0][0]);
            relay(param, fds[i][1], i ? "b" : "a");
        }
        close(fds[i][1]);
    }
    for (int i = 0; i < n; i++) {
        struct answer a;
        int fd = fds[i % 2][0];
        EQ_INT(write(fd, &i, sizeof i), sizeof i);
        EQ_INT(read(fd, &a, sizeof a), sizeof a);
        EQ_INT(a.result, i + 1);
        elsewhere += !a.here;
    }
    printf("%d of %d ran in the other process\n", elsewhere, n);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        close(fds[i][0]);
        EQ_INT(waitpid(pids[i], &status, 0), pids[i]);
        EQ_INT(status, 0);
    }
}

/* ---- A late commit --------------------------------------------------------------------------- */

static int held[2]; /* the child reports that its transaction is open; we tell it to commit */

static void hold_commit(const char *name, void *ctx)
{
    bool *once = ctx;
    char go = 0;
    if (!engine_point(name, "before_commit") || *once)
        return;
    *once = true;
    EQ_INT(write(held[1], "h", 1), 1);
    EQ_INT(read(held[1], &go, 1), 1);
}

static void *submit_second(void *arg)
{
    submit(arg, "second", "count");
    return NULL;
}

/* On this engine an open write transaction blocks every other writer: the later accept waits and
 * comes after. Neither call is lost, and both run. */
TEST(an_accept_that_commits_late_still_runs)
{
    pthread_t thread;
    char said = 0;
    pawl_close(fixture_open_as(param, (struct pawl_options){ .node = "x" }));
    EQ_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, held), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool once = false;
        close(held[0]);
        struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "late" });
        hook_on_pause(hold_commit, &once);
        submit(p, "first", "count");
        hook_on_pause(NULL, NULL);
        pawl_close(p);
        _exit(0);
    }
    close(held[1]);
    EQ_INT(read(held[0], &said, 1), 1);
    /* Readers are not blocked, and see nothing of it yet. */
    struct pawl *p =
        fixture_open_as(param, (struct pawl_options){ .node = "n", .no_migrate = true });
    EQ_INT(fixture_count(p, 0), 0);
    EQ_INT(pthread_create(&thread, NULL, submit_second, p), 0);
    EQ_INT(write(held[0], "g", 1), 1);
    EQ_INT(pthread_join(thread, NULL), 0);
    int status = 0;
    EQ_INT(waitpid(pid, &status, 0), pid);
    EQ_INT(status, 0);
    pawl_close(p);
    p = open_serving(param, "n");
    fixture_ends(p, "first", PAWL_COMPLETED);
    fixture_ends(p, "second", PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, "second");
    EQ_INT(number(pawl_shown_view(shown)->result), 2);
    pawl_shown_free(shown);
    pawl_close(p);
    close(held[0]);
}
