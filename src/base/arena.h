/*
 * arena.h - memory for one request, tick or batch: capped at birth, dropped as a whole.
 *
 * Not thread-safe: an arena belongs to one thread at a time and travels with its message. Nothing
 * in it is freed on its own. Once an allocation has failed the arena says so until it is reset.
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
    struct arena_chunk *head; /* owned */
    size_t used, max;         /* bytes handed out, and the most there may be */
    bool failed;
};

/* No memory is taken until the first allocation. */
void arena_init(struct arena *a, size_t max);
/* Give everything back; the arena is as after arena_init. Accepts one that is all zero. */
void arena_release(struct arena *a);
/* Forget everything but keep the newest chunk for the next use. */
void arena_reset(struct arena *a);

/* Everything `from` holds is `a`'s from now on, whatever its cap; `from` is empty. */
void arena_adopt(struct arena *a, struct arena *from);

/* 16-byte aligned, uninitialised. NULL at the cap or without memory. */
MUST_USE void *arena_alloc(struct arena *a, size_t size);
/* n items of size, zeroed; NULL also when n * size overflows. */
MUST_USE void *arena_zalloc(struct arena *a, size_t n, size_t size);
/* A copy ended with NUL (not counted in len). Absent in, absent out. On failure absent and
 * a->failed. */
struct bytes arena_copy(struct arena *a, struct bytes b);
/* The copy as a C string; NULL for absent or on failure. */
char *arena_text(struct arena *a, struct bytes b);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* For AUTO. */
void arena_end(struct arena **a);

#endif
