/*
 * lib_workflows.c - handlers that take steps: each step once, whatever happens to the passes;
 * waits, children, undoing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* What ran, in order, as words with spaces between them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[4000];
static atomic_int told; /* a case tells its handlers something */

static void note(const char *before, const char *what)
{
    pthread_mutex_lock(&lock);
    size_t len = strlen(log_text);
    snprintf(log_text + len, sizeof log_text - len, "%s%s%s", len ? " " : "", before, what);
    pthread_mutex_unlock(&lock);
}

static struct pawl *open_with(const void *param, pawl_handler *h)
{
    log_text[0] = '\0';
    atomic_store(&told, 0);
    struct pawl *p = fixture_open(param);
    fixture_on(p, "flow", h);
    return p;
}

static void start(struct pawl *p, const char *id, const char *input)
{
    fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                             .type = "flow",
                                             .input = pawl_text(input),
                                             .backoff_base_us = FIXTURE_MS });
}

/* Assert that the run completes with this JSON. */
static void completes(struct pawl *p, const char *id, const char *json)
{
    fixture_ends(p, id, PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_BYTES(v->result.data, v->result.len, json, strlen(json));
    pawl_shown_free(shown);
}

static void ends_with(struct pawl *p, const char *id, enum pawl_state state, const char *error)
{
    fixture_ends(p, id, state);
    struct pawl_shown *shown = fixture_get(p, id);
    HAS_STR(pawl_shown_view(shown)->error, error);
    pawl_shown_free(shown);
}

/* Wait until the run waits for this. */
static bool waits_for(struct pawl *p, const char *id, const char *what)
{
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(shown);
    bool yes = v->state == PAWL_PROCESSING && v->waiting_for && !strcmp(v->waiting_for, what);
    pawl_shown_free(shown);
    return yes;
}

static void signal_to(struct pawl *p, const char *id, const char *name, const char *json)
{
    struct pawl_err err;
    OK(pawl_signal(p, id, name, pawl_text(json), NULL, &err), &err);
}

/* ---- Steps of the handlers ------------------------------------------------------------------- */

/* Notes its name, and replies with it. */
static int notes(struct pawl_call *c, void *arg)
{
    note("", arg);
    return pawl_reply_text(c, arg);
}

static int unnotes(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    (void)c;
    if (known == PAWL_STEP_UNKNOWN)
        TRUE(result.form == PAWL_NOTHING);
    note(known == PAWL_STEP_UNKNOWN ? "perhaps-un" : "un", arg);
    return 0;
}

static int step(struct pawl_call *c, const char *name)
{
    return pawl_step(
        c, &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = notes, .arg = (void *)name },
        NULL);
}

static int undoable(struct pawl_call *c, const char *name)
{
    return pawl_step(c,
                     &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = notes,
                                          .undo = unnotes, .arg = (void *)name },
                     NULL);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static int saga(struct pawl_call *c)
{
    struct pawl_data paid, shipped;
    note("", "(");
    if (undoable(c, "reserve") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "charge", .run = notes,
                                       .undo = unnotes, .arg = "charge" },
                  &paid))
        return 0;
    switch (pawl_step_signal(c, "shipped", 600 * FIXTURE_SEC, &shipped)) {
    case 0:
        break;
    case PAWL_STEP_TIMEOUT:
        return pawl_refuse(c, "not shipped in time");
    default:
        return 0;
    }
    if (shipped.len == 4 && !memcmp(shipped.data, "null", 4))
        return pawl_refuse(c, "it was lost");
    if (pawl_step_sleep(c, "cool-off", FIXTURE_MS) || step(c, "mail"))
        return 0;
    return pawl_reply(c, paid);
}

TEST(a_saga_completes_and_each_of_its_steps_runs_once)
{
    struct pawl *p = open_with(param, saga);
    fixture_start(p, 2);
    start(p, "x", "1");
    UNTIL(waits_for(p, "x", "signal"));
    signal_to(p, "x", "shipped", "{\"by\":\"post\"}");
    completes(p, "x", "\"charge\"");
    EQ_STR(log_text, "( reserve charge ( ( mail");
    pawl_close(p);
}

TEST(a_refusal_undoes_the_steps_the_last_one_first)
{
    struct pawl *p = open_with(param, saga);
    fixture_start(p, 2);
    start(p, "x", "1");
    signal_to(p, "x", "shipped", "null");
    ends_with(p, "x", PAWL_FAILED, "it was lost");
    EQ_STR(log_text, "( reserve charge ( uncharge unreserve");
    pawl_close(p);
}

TEST(a_cancel_undoes_the_steps)
{
    struct pawl *p = open_with(param, saga);
    struct pawl_err err;
    enum pawl_state state;
    fixture_start(p, 2);
    start(p, "x", "1");
    UNTIL(waits_for(p, "x", "signal"));
    OK(pawl_cancel(p, "x", &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_STR(log_text, "( reserve charge ( uncharge unreserve");
    EQ_STATUS(pawl_signal(p, "x", "shipped", pawl_text("1"), NULL, &err), PAWL_STATE, &err);
    pawl_close(p);
}

static int waits_a_moment(struct pawl_call *c)
{
    switch (pawl_step_signal(c, "go", FIXTURE_MS, NULL)) {
    case 0:
        return pawl_reply_text(c, "signal");
    case PAWL_STEP_TIMEOUT:
        return pawl_reply_text(c, "timeout");
    default:
        return 0;
    }
}

TEST(a_timeout_is_an_answer)
{
    struct pawl *p = open_with(param, waits_a_moment);
    fixture_start(p, 2);
    start(p, "x", "1");
    completes(p, "x", "\"timeout\"");
    pawl_close(p);
}

/* ---- Tries ----------------------------------------------------------------------------------- */

static int fails_twice(struct pawl_call *c, void *arg)
{
    (void)arg;
    note("", "try");
    return atomic_fetch_add(&told, 1) < 2 ? pawl_fail(c, "not yet") : pawl_reply_int(c, 7);
}

static int tries(struct pawl_call *c)
{
    struct pawl_data seven;
    if (undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = fails_twice,
                                       .backoff_base_us = FIXTURE_MS },
                  &seven))
        return 0;
    return pawl_reply(c, seven);
}

TEST(a_step_has_tries_of_its_own)
{
    struct pawl *p = open_with(param, tries);
    fixture_start(p, 2);
    start(p, "x", "1");
    completes(p, "x", "7");
    EQ_STR(log_text, "a try try try");
    atomic_store(&told, -1);
    log_text[0] = '\0';
    start(p, "y", "1");
    ends_with(p, "y", PAWL_FAILED, "not yet");
    EQ_STR(log_text, "a try try try una");
    pawl_close(p);
}

/* ---- Lost passes ----------------------------------------------------------------------------- */

/* Dies in the step whose number is told. */
static int dies(struct pawl_call *c, void *arg)
{
    if (*(const int *)arg == atomic_load(&told))
        kill(getpid(), SIGKILL);
    return pawl_reply_int(c, *(const int *)arg);
}

static int five_steps(struct pawl_call *c)
{
    int64_t sum = 0;
    for (int i = 1; i <= 5; i++) {
        struct pawl_data n;
        if (pawl_step(c,
                      &(struct pawl_step){ PAWL_STEP_INIT, .name = "add", .run = dies, .arg = &i,
                                           .arg_size = sizeof i },
                      &n))
            return 0;
        sum += ((const char *)n.data)[0] - '0';
    }
    return pawl_reply_int(c, sum);
}

TEST(five_passes_may_be_lost_in_five_steps)
{
    const char *url = engine_url(param);
    for (int i = 0; i <= 5; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
            atomic_store(&told, i ? i : -1);
            fixture_on(p, "flow", five_steps);
            if (i == 0)
                fixture_submit_as(
                    p, (struct pawl_spec){
                           .id = "x", .type = "flow", .max_attempts = 1, .max_lost = 2 });
            else
                fixture_start(p, 2);
            if (i)
                fixture_ended(p, "x");
            pawl_close(p);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        EQ_INT(WIFSIGNALED(status), i > 0);
    }
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
    atomic_store(&told, -1);
    fixture_on(p, "flow", five_steps);
    fixture_start(p, 2);
    completes(p, "x", "15");
    pawl_close(p);
}
