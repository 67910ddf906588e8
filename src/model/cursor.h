/*
 * cursor.h - the position where a list continues: an opaque text for users, a seq inside. Pure.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_CURSOR_H
#define MODEL_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define CURSOR_TEXT_MAX 40

/* Write the cursor. It carries a checksum, so that a damaged cursor is refused instead of skipping
 * calls. */
void cursor_write(int64_t before_seq, char out[CURSOR_TEXT_MAX]);
/* Read a cursor. False when cursor_write() did not write it. */
bool cursor_read(struct bytes text, int64_t *out_before_seq);

#endif
