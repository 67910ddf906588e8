/*
 * steps_fixture.h - for tests of handlers that take steps: a program whose handler writes down what
 * runs.
 *
 * The handler serves flow.run. Runs end within FIXTURE_WAIT_US, or the case fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STEPS_FIXTURE_H
#define STEPS_FIXTURE_H

#include "fixture.h"

/* What ran, in order, as words with spaces between them. */
extern char steps_log[4000];
/* A case tells its handlers something. */
extern atomic_int steps_told;
/* Add a word: two texts without a space between them. Any thread. */
void steps_note(const char *before, const char *what);

/* A program with the handler, and nothing written down. */
struct pawl *steps_open(const void *param, pawl_handler *h);
/* Begin a run. */
void steps_start(struct pawl *p, const char *id, const char *input);
/* Assert that the run completes with this JSON. */
void steps_complete(struct pawl *p, const char *id, const char *json);
/* Assert that it ends like this, with an error that contains these words. */
void steps_end(struct pawl *p, const char *id, enum pawl_state state, const char *words);
/* Does the run wait for this now? */
bool steps_wait(struct pawl *p, const char *id, const char *what);
/* Send it a signal. */
void steps_signal(struct pawl *p, const char *id, const char *name, const char *json);

/* For handlers: a step that writes down its name and replies with it, and one whose undo writes
 * down `un` and the name, or `perhaps-un` when it is in doubt. */
int steps_do(struct pawl_call *c, const char *name);
int steps_do_undoable(struct pawl_call *c, const char *name);
/* What they run: the argument is the name. */
int steps_run(struct pawl_call *c, void *name);
int steps_undo(struct pawl_call *c, int known, struct pawl_data result, void *name);

#endif
