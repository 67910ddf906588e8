/*
 * arena.c - arenas: limits, alignment, reset, and failed allocations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/arena.h"
#include "base/mem.h"
#include "check.h"

TEST(takes_nothing_until_asked)
{
    struct arena a;
    int64_t before = mem_live();
    arena_init(&a, 1000);
    EQ_INT(mem_live(), before);
    arena_release(&a);
    struct arena zero = { 0 };
    arena_release(&zero);
    arena_reset(&zero);
    EQ_PTR(arena_alloc(&zero, 1), NULL);
}

TEST(aligns_and_does_not_overlap)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    unsigned char *v[200];
    for (size_t i = 0; i < 200; i++) {
        v[i] = arena_alloc(&a, i);
        TRUE(v[i] != NULL);
        EQ_UINT((uintptr_t)v[i] % 16, 0);
        memset(v[i], (int)i, i);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t j = 0; j < i; j++)
            EQ_INT(v[i][j], (unsigned char)i);
    arena_release(&a);
}

TEST(stops_at_its_cap_and_says_so)
{
    struct arena a;
    arena_init(&a, 1024);
    for (int i = 0; i < 64; i++)
        TRUE(arena_alloc(&a, 16) != NULL);
    FALSE(a.failed);
    EQ_UINT(a.used, 1024);
    EQ_PTR(arena_alloc(&a, 1), NULL);
    TRUE(a.failed);
    arena_reset(&a);
    FALSE(a.failed);
    TRUE(arena_alloc(&a, 1024) != NULL);
    EQ_PTR(arena_alloc(&a, 0), NULL);
    arena_reset(&a);
    EQ_PTR(arena_alloc(&a, 1025), NULL);
    /* A failure stays until the reset, even for sizes that would fit. */
    EQ_PTR(arena_alloc(&a, 1), NULL);
    arena_release(&a);
}

TEST(refuses_sizes_that_overflow)
{
    struct arena a;
    arena_init(&a, SIZE_MAX);
    EQ_PTR(arena_alloc(&a, SIZE_MAX), NULL);
    arena_reset(&a);
    EQ_PTR(arena_zalloc(&a, SIZE_MAX / 2, 4), NULL);
    TRUE(a.failed);
    arena_release(&a);
}

TEST(zeroes_when_asked)
{
    struct arena a;
    arena_init(&a, 1 << 16);
    memset(arena_alloc(&a, 4000), 0xff, 4000);
    arena_reset(&a);
    unsigned char *p = arena_zalloc(&a, 10, 100);
    for (int i = 0; i < 1000; i++)
        EQ_INT(p[i], 0);
    arena_release(&a);
}

TEST(reset_keeps_one_chunk)
{
    struct arena a;
    int64_t before = mem_live();
    arena_init(&a, 64 << 20);
    for (int i = 0; i < 1000; i++)
        TRUE(arena_alloc(&a, 1000) != NULL);
    GT_INT(mem_live(), before + 1);
    arena_reset(&a);
    EQ_INT(mem_live(), before + 1);
    EQ_UINT(a.used, 0);
    mem_torture(0, 0);
    TRUE(arena_alloc(&a, 16000) != NULL);
    EQ_INT(mem_count(), 0);
    arena_release(&a);
    EQ_INT(mem_live(), before);
}

TEST(reset_gives_a_large_chunk_back)
{
    struct arena a;
    int64_t before = mem_live();
    arena_init(&a, 64 << 20);
    TRUE(arena_alloc(&a, 1 << 20) != NULL);
    arena_reset(&a);
    EQ_INT(mem_live(), before);
    arena_release(&a);
}

TEST(a_large_one_leaves_the_shared_chunk_in_use)
{
    struct arena a;
    arena_init(&a, 64 << 20);
    char *small = arena_alloc(&a, 16);
    char *large = arena_alloc(&a, 1 << 20);
    memset(large, 1, 1 << 20);
    mem_torture(0, 0);
    char *next = arena_alloc(&a, 16);
    EQ_INT(mem_count(), 0);
    TRUE(next > small && next - small < 64);
    arena_release(&a);
}

TEST(few_chunks_for_many_pieces)
{
    struct arena a;
    arena_init(&a, 64 << 20);
    mem_torture(0, 0);
    for (int i = 0; i < 100000; i++)
        TRUE(arena_alloc(&a, 16) != NULL);
    LT_INT(mem_count(), 1600000 / 65536 * 2 + 12);
    arena_release(&a);
}

TEST(copies)
{
    struct arena a;
    arena_init(&a, 1 << 16);
    struct bytes b = arena_copy(&a, BYTES("a\0b"));
    EQ_BYTES(b.data, b.len, "a\0b", 3);
    EQ_INT(b.data[3], 0);
    EQ_PTR(arena_copy(&a, BYTES_NONE).data, NULL);
    b = arena_copy(&a, BYTES(""));
    TRUE(b.data != NULL && b.len == 0);
    EQ_STR(arena_text(&a, BYTES("mail")), "mail");
    EQ_PTR(arena_text(&a, BYTES_NONE), NULL);
    FALSE(a.failed);
    EQ_STR(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    char *wide = arena_printf(&a, "%1000d", 5);
    EQ_UINT(strlen(wide), 1000);
    EQ_INT(wide[999], '5');
    arena_release(&a);
}

TEST(ends_by_scope)
{
    struct arena a;
    int64_t before = mem_live();
    {
        AUTO(arena_end) struct arena *ending = &a;
        arena_init(ending, 1000);
        TRUE(arena_alloc(ending, 10) != NULL);
    }
    EQ_INT(mem_live(), before);
    struct arena *none = NULL;
    arena_end(&none);
}

TEST(survives_without_memory)
{
    int64_t before = mem_live();
    for (int n = 1; n <= 6; n++) {
        struct arena a;
        arena_init(&a, 64 << 20);
        mem_torture(n, 1);
        for (int i = 0; i < 100; i++)
            if (!arena_alloc(&a, 3000))
                TRUE(a.failed);
        mem_torture(0, 0);
        TRUE(a.failed);
        arena_release(&a);
        EQ_INT(mem_live(), before);
    }
}

TEST(reset_keeps_what_it_was_told_to_keep)
{
    struct arena a;
    int64_t before = mem_live();
    arena_init(&a, 64 << 20);
    arena_keep(&a, 300 << 10);
    for (int round = 0; round < 3; round++) {
        mem_torture(0, 0);
        for (int i = 0; i < 200; i++)
            TRUE(arena_alloc(&a, 1000) != NULL);
        memset(arena_alloc(&a, 50000), 0xff, 50000); /* a chunk of its own */
        EQ_INT(mem_count() == 0, round > 1);         /* the same again takes no new memory */
        arena_reset(&a);
        EQ_UINT(a.used, 0);
    }
    for (int i = 0; i < 1000; i++)
        TRUE(arena_alloc(&a, 1000) != NULL);
    int64_t whole = mem_live();
    arena_reset(&a); /* 1 MB: more than it keeps */
    LT_INT(mem_live(), whole - 8);
    GT_INT(mem_live(), before + 1);
    arena_release(&a);
    EQ_INT(mem_live(), before);
}
