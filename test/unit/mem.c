/*
 * mem.c - allocations are counted, the n-th can be made to fail, and none is lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "check.h"

TEST(counts_what_lives)
{
    int64_t before = mem_live();
    char *p = mem_alloc(10), *q = mem_zalloc(0);
    EQ_INT(q[0], 0);
    EQ_INT(mem_live(), before + 2);
    p = mem_resize(p, 100);
    EQ_INT(mem_live(), before + 2);
    char *r = mem_resize(NULL, 5);
    EQ_INT(mem_live(), before + 3);
    mem_free(p);
    mem_free(q);
    mem_free(r);
    mem_free(NULL);
    EQ_INT(mem_live(), before);
}

TEST(fails_only_the_nth)
{
    mem_torture(2, 0);
    char *a = mem_alloc(1), *b = mem_alloc(1), *c = mem_alloc(1);
    EQ_INT(mem_count(), 3);
    mem_torture(0, 0);
    EQ_INT(mem_count(), 0);
    TRUE(a && !b && c);
    mem_free(a);
    mem_free(c);
}

TEST(fails_from_the_nth_on)
{
    mem_torture(2, 1);
    char *a = mem_alloc(1), *b = mem_zalloc(1), *c = mem_resize(NULL, 1);
    char *grown = mem_resize(a, 100);
    mem_torture(0, 0);
    TRUE(a && !b && !c && !grown);
    a[0] = 'x'; /* still ours */
    mem_free(a);
}
