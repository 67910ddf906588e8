/*
 * arena.c - chunks in a list, the newest first; an allocation takes the next bytes of the newest.
 *
 * Chunks double from 2 KiB to 64 KiB. An allocation of more than a quarter of the largest chunk
 * gets a chunk of its own, placed behind the newest, so that one large input does not end the chunk
 * that small allocations share. Under AddressSanitizer unused bytes are poisoned, and some follow
 * every allocation.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

#if ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define GAP 16
#else
#define POISON(p, n) ((void)0)
#define UNPOISON(p, n) ((void)0)
#define GAP 0
#endif

#define ALIGN 16
#define CHUNK_MIN 2048
#define CHUNK_MAX 65536
#define OWN_CHUNK (CHUNK_MAX / 4)

struct arena_chunk {
    struct arena_chunk *next; /* older */
    size_t size, used;        /* of data */
    _Alignas(ALIGN) char data[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){ .max = max };
}

static void chunks_free(struct arena_chunk *c)
{
    while (c) {
        struct arena_chunk *next = c->next;
        UNPOISON(c->data, c->size);
        mem_free(c);
        c = next;
    }
}

void arena_release(struct arena *a)
{
    chunks_free(a->head);
    chunks_free(a->spare);
    arena_init(a, a->max);
}

void arena_keep(struct arena *a, size_t len)
{
    a->keep = len;
}

static void chunk_empty(struct arena_chunk *c, struct arena_chunk *next)
{
    c->next = next;
    c->used = 0;
    POISON(c->data, c->size);
}

/* Keep these chunks for the next use, as far as they fit into a->keep; free the others. */
static void chunks_spare(struct arena *a, struct arena_chunk *c)
{
    size_t left = a->keep;
    for (const struct arena_chunk *s = a->spare; s; s = s->next)
        left -= MIN(s->size, left);
    while (c) {
        struct arena_chunk *next = c->next;
        if (c->size <= left) {
            left -= c->size;
            chunk_empty(c, a->spare);
            a->spare = c;
        } else {
            c->next = NULL;
            chunks_free(c);
        }
        c = next;
    }
}

void arena_reset(struct arena *a)
{
    struct arena_chunk *kept = a->head;
    if (kept && kept->size > CHUNK_MAX)
        kept = NULL; /* one large request must not keep its memory for the small ones after it */
    chunks_spare(a, kept ? kept->next : a->head);
    if (kept)
        chunk_empty(kept, NULL);
    *a = (struct arena){ .head = kept, .spare = a->spare, .max = a->max, .keep = a->keep };
}

void arena_adopt(struct arena *a, struct arena *from)
{
    struct arena_chunk **last = a->head ? &a->head->next : &a->head;
    while (*last)
        last = &(*last)->next;
    *last = from->head;
    a->used += from->used;
    a->max = MAX(a->max, a->used);
    a->failed |= from->failed;
    *from = (struct arena){ .spare = from->spare, .max = from->max, .keep = from->keep };
}

/* A spare chunk of at least this size, but not of more than twice as much. */
static struct arena_chunk *chunk_take(struct arena *a, size_t size)
{
    for (struct arena_chunk **at = &a->spare, *c; (c = *at); at = &c->next)
        if (c->size >= size && c->size / 2 <= size) {
            *at = c->next;
            c->next = NULL;
            return c;
        }
    return NULL;
}

static struct arena_chunk *chunk_make(struct arena *a, size_t size)
{
    struct arena_chunk *c = chunk_take(a, size);
    if (c)
        return c;
    c = mem_alloc(sizeof *c + size);
    if (!c)
        return NULL;
    c->next = NULL;
    c->size = size;
    c->used = 0;
    POISON(c->data, size);
    return c;
}

/* Add a chunk with room for `need` to the list. */
static struct arena_chunk *chunk_add(struct arena *a, size_t need)
{
    bool own = need > OWN_CHUNK;
    size_t size = need;
    if (!own) {
        size = a->head ? a->head->size * 2 : CHUNK_MIN;
        size = MIN(size, CHUNK_MAX);
        while (size < need)
            size *= 2;
    }
    struct arena_chunk *c = chunk_make(a, size);
    if (!c)
        return NULL;
    if (own && a->head) {
        c->next = a->head->next;
        a->head->next = c;
    } else {
        c->next = a->head;
        a->head = c;
    }
    return c;
}

static void *arena_fail(struct arena *a)
{
    a->failed = true;
    return NULL;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return arena_fail(a);
    size_t whole = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (a->failed || whole > a->max - a->used)
        return arena_fail(a);

    struct arena_chunk *c = a->head;
    if (!c || c->size - c->used < whole + GAP) {
        c = chunk_add(a, whole + GAP);
        if (!c)
            return arena_fail(a);
    }
    char *p = c->data + c->used;
    c->used += whole + GAP;
    a->used += whole;
    assert(c->used <= c->size && a->used <= a->max);
    UNPOISON(p, size);
    return p;
}

void *arena_zalloc(struct arena *a, size_t n, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(n, size, &whole))
        return arena_fail(a);
    void *p = arena_alloc(a, whole);
    if (p)
        memset(p, 0, whole);
    return p;
}

struct bytes arena_copy(struct arena *a, struct bytes b)
{
    if (!b.data)
        return BYTES_NONE;
    char *p = b.len < SIZE_MAX ? arena_alloc(a, b.len + 1) : arena_fail(a);
    if (!p)
        return BYTES_NONE;
    memcpy(p, b.data, b.len);
    p[b.len] = 0;
    return (struct bytes){ p, b.len };
}

char *arena_text(struct arena *a, struct bytes b)
{
    return (char *)arena_copy(a, b).data;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);

    char *p = n < 0 ? arena_fail(a) : arena_alloc(a, (size_t)n + 1);
    if (p && (size_t)n < sizeof small)
        memcpy(p, small, (size_t)n + 1);
    else if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void arena_end(struct arena **a)
{
    if (*a)
        arena_release(*a);
}
