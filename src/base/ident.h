/*
 * ident.h - things that name: UUIDv7 ids, lease tokens, SHA-256.
 *
 * Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_IDENT_H
#define BASE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/world.h"

#define UUID_TEXT_LEN 36

/* 36 characters and NUL, in time order within a process. */
void uuid7_make(const struct world *w, char out[UUID_TEXT_LEN + 1]);

/* 128 bits that only their maker knows. All zero is no token. */
struct token {
    unsigned char b[16];
};
struct token token_make(const struct world *w);
bool token_eq(struct token a, struct token b);
bool token_none(struct token t);
/* 32 hex digits and NUL. */
void token_text(struct token t, char out[33]);
/* False unless it is exactly 32 lower-case hex digits. */
bool token_parse(struct bytes text, struct token *out);

/* SHA-256 over several runs, each preceded by its length and whether it is there, so that no two
 * lists of runs give the same input. False without memory. */
bool digest_parts(const struct bytes *parts, size_t n, unsigned char out[32]);
/* Plain SHA-256 of one run. */
bool digest_plain(struct bytes b, unsigned char out[32]);

#endif
