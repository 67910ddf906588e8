/*
 * arena.h - memory for one request, tick or batch, with a maximum set at the start and freed as a
 * whole.
 *
 * Not thread-safe: an arena belongs to one thread at a time and moves with the message that it
 * serves. Nothing in it is freed alone. After an allocation has failed, `failed` stays set until
 * the arena is reset.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/macros.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *head;  /* owned */
    struct arena_chunk *spare; /* owned; empty chunks (arena_keep) */
    size_t used, max;          /* bytes allocated so far, and their maximum */
    size_t keep;               /* bytes of chunks that a reset keeps besides the newest one */
    bool failed;
};

/* Prepare an empty arena of at most `max` bytes. It takes no memory until the first allocation. */
void arena_init(struct arena *a, size_t max);
/* Free all memory; the arena is then as after arena_init. Accepts an arena that is all zero. */
void arena_release(struct arena *a);
/* Drop every allocation, but keep the newest chunk for the next use, and more after arena_keep().
 */
void arena_reset(struct arena *a);
/* From now on a reset keeps chunks of up to `len` bytes in all. For an arena that is filled again
 * and again: chunks that are freed go back to the kernel, and new ones cost a page fault for each
 * page. */
void arena_keep(struct arena *a, size_t len);

/* Move all memory of `from` to `a`, even beyond the maximum of `a`; `from` is empty afterwards. */
void arena_adopt(struct arena *a, struct arena *from);

/* `size` uninitialised bytes, aligned to 16. NULL when the maximum is reached or memory is
 * short. */
MUST_USE void *arena_alloc(struct arena *a, size_t size);
/* `n` items of `size` bytes, zeroed. NULL as arena_alloc, and when n * size overflows. */
MUST_USE void *arena_zalloc(struct arena *a, size_t n, size_t size);
/* A copy that ends with NUL (not counted in len); absent for absent. On failure absent, and
 * a->failed is set. */
struct bytes arena_copy(struct arena *a, struct bytes b);
/* The copy as a C string; NULL for absent and on failure. */
char *arena_text(struct arena *a, struct bytes b);
/* Formatted text on the arena; NULL on failure. */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* arena_release for AUTO; accepts a pointer to NULL. */
void arena_end(struct arena **a);

#endif
