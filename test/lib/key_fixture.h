/*
 * key_fixture.h - for tests of calls with a key: a handler that counts in the key's state, the
 * order in which handlers ran, and the numbers of calls.
 *
 * One case per process, so the order and the counters are global.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KEY_FIXTURE_H
#define KEY_FIXTURE_H

#include "fixture.h"

/* The ids in the order their handlers ran, each with a space behind it. */
extern char keyf_order[4096];
/* How often keyf_counts() started while another one was running. */
extern atomic_int keyf_overlaps;

/* Append an id to keyf_order; to be called by handlers. */
void keyf_note(const char *id);
/* Does keyf_order contain this text? */
bool keyf_noted(const char *id);
/* A handler that adds 1 to the state and replies the sum. */
int keyf_counts(struct pawl_call *c);

/* Submit "c0" ... "c(n-1)" of this type on the key "k" in one commit. They are claimed in runs. */
void keyf_submit(struct pawl *p, const char *type, int n);
/* The result of an ended call as a number; INT64_MIN without one. */
int64_t keyf_result(struct pawl *p, const char *id);
/* The call's number within its key. */
int64_t keyf_number(struct pawl *p, const char *id);
/* The state of the object (type, "k") as a number; -1 without one. */
int64_t keyf_state(struct pawl *p, const char *type);
/* Assert that the call ends as failed, with an error that contains `words`. */
void keyf_fails(struct pawl *p, const char *id, const char *words);

#endif
