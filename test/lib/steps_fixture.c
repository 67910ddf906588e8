/*
 * steps_fixture.c - see steps_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "steps_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
char steps_log[4000];
atomic_int steps_told;

void steps_note(const char *before, const char *what)
{
    pthread_mutex_lock(&lock);
    size_t len = strlen(steps_log);
    snprintf(steps_log + len, sizeof steps_log - len, "%s%s%s", len ? " " : "", before, what);
    pthread_mutex_unlock(&lock);
}

struct pawl *steps_open(const void *param, pawl_handler *h)
{
    steps_log[0] = '\0';
    atomic_store(&steps_told, 0);
    struct pawl *p = fixture_open(param);
    fixture_on(p, "flow", h);
    return p;
}

void steps_start(struct pawl *p, const char *id, const char *input)
{
    fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                             .type = "flow",
                                             .input = pawl_text(input),
                                             .backoff_base_us = FIXTURE_MS });
}

void steps_complete(struct pawl *p, const char *id, const char *json)
{
    fixture_ends(p, id, PAWL_COMPLETED);
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_BYTES(v->result.data, v->result.len, json, strlen(json));
    pawl_shown_free(shown);
}

void steps_end(struct pawl *p, const char *id, enum pawl_state state, const char *error)
{
    fixture_ends(p, id, state);
    struct pawl_shown *shown = fixture_get(p, id);
    HAS_STR(pawl_shown_view(shown)->error, error);
    pawl_shown_free(shown);
}

bool steps_wait(struct pawl *p, const char *id, const char *what)
{
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(shown);
    bool yes = v->state == PAWL_PROCESSING && v->waiting_for && !strcmp(v->waiting_for, what);
    pawl_shown_free(shown);
    return yes;
}

void steps_signal(struct pawl *p, const char *id, const char *name, const char *json)
{
    struct pawl_err err;
    OK(pawl_signal(p, id, name, pawl_text(json), NULL, &err), &err);
}

/* ---- Steps of the handlers ------------------------------------------------------------------- */

int steps_run(struct pawl_call *c, void *arg)
{
    steps_note("", arg);
    return pawl_reply_text(c, arg);
}

int steps_undo(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    (void)c;
    if (known == PAWL_STEP_UNKNOWN)
        TRUE(result.form == PAWL_NOTHING);
    steps_note(known == PAWL_STEP_UNKNOWN ? "perhaps-un" : "un", arg);
    return 0;
}

int steps_do(struct pawl_call *c, const char *name)
{
    return pawl_step(
        c,
        &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = steps_run, .arg = (void *)name },
        NULL);
}

int steps_do_undoable(struct pawl_call *c, const char *name)
{
    return pawl_step(c,
                     &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = steps_run,
                                          .undo = steps_undo, .arg = (void *)name },
                     NULL);
}
