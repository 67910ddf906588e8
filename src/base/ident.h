/*
 * ident.h - UUIDv7 ids, lease tokens and SHA-256.
 *
 * Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_IDENT_H
#define BASE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/world.h"

#define UUID_TEXT_LEN 36

/* A new id: 36 characters and NUL. Ids ascend in the order in which the process makes them. */
void uuid7_make(const struct world *w, char out[UUID_TEXT_LEN + 1]);

/* 128 random bits: a secret of the process that makes them. All zero means no token. */
struct token {
    unsigned char b[16];
};
/* A new token; never the one that means none. */
struct token token_make(const struct world *w);
/* Equal? Takes the same time wherever they differ, because a token is a secret. */
bool token_eq(struct token a, struct token b);
/* Is this the value that means no token? */
bool token_none(struct token t);
/* The token as 32 hex digits and NUL. */
void token_text(struct token t, char out[33]);
/* Read 32 lower-case hex digits. False for anything else; *out is then unchanged. */
bool token_parse(struct bytes text, struct token *out);

/* An id that was put together from others: `id` itself, or, where it is longer than a name may be,
 * its first 180 bytes (fewer where a character would be cut), `~` and its SHA-256 in base64url.
 * Lives in `a`, or is `id`; absent without memory. */
struct bytes ident_derived(struct arena *a, struct bytes id);

/* SHA-256 over several runs, each preceded by a flag for absent and by its length, so that two
 * different lists never give the same input. False without memory. */
bool digest_parts(const struct bytes *parts, size_t n, unsigned char out[32]);
/* Plain SHA-256 of one run. False without memory. */
bool digest_plain(struct bytes b, unsigned char out[32]);

#endif
