/*
 * cursor.h - where a list goes on: an opaque text for users, a seq for us. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_CURSOR_H
#define MODEL_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define CURSOR_TEXT_MAX 40

/* The text carries a check digit pair, so that a mangled cursor is refused instead of skipping
 * calls. */
void cursor_write(int64_t before_seq, char out[CURSOR_TEXT_MAX]);
bool cursor_read(struct bytes text, int64_t *out_before_seq);

#endif
