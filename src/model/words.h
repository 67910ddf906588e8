/*
 * words.h - lists of words such as "skip|block", and text as it may stand in a sentence. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/* The words of call_state_of(): all, and those that a cancel or a retry can change. */
#define STATE_WORDS "pending|processing|completed|failed|dead_letter|cancelled|expired"
#define CANCEL_WORDS "pending|processing"
#define RETRY_WORDS "failed|dead_letter|cancelled|expired"

/* Take the next word off *at, which may be NULL. False: there is none. */
bool word_next(const char **at, struct bytes *out);
/* Which of the words it is, from 0; -1: none of them. */
int word_at(const char *words, struct bytes word);
/* Is it one of them? */
bool word_in(const char *words, struct bytes word);
#define WORDS_TEXT_MAX 256
/* The word at this place, from 0: the inverse of word_at(). */
struct bytes word_of(const char *words, int at);
/* Write them as "pending, processing or completed"; what does not fit is left out. */
void words_text(const char *words, char out[WORDS_TEXT_MAX]);
/* Fill *err: `status "zzz" is unknown; expected pending, processing or completed`. INVALID. */
enum pawl_status unknown_word(struct arena *a, const char *field, struct bytes word,
                              const char *words, struct pawl_err *err);
/* A copy in `a` that may stand between quotes in a sentence: short, and without quotes or control
 * characters. Absent without memory. */
struct bytes text_shown(struct arena *a, struct bytes text);

#endif
