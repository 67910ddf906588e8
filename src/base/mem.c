/*
 * mem.c - malloc and its relatives; in a test build also the counter that makes the n-th one fail.
 *
 * Any thread. The counters are atomics: which thread gets the failing allocation is not defined.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/mem.h"

#ifdef PAWL_TEST
#include <stdatomic.h>
#include <stdbool.h>

static atomic_llong asked, live, fail_at;
static atomic_bool fail_on;

static bool torture_says_no(void)
{
    long long now = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
    long long at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0 || now < at)
        return false;
    return now == at || atomic_load_explicit(&fail_on, memory_order_relaxed);
}

static void live_add(long long n)
{
    atomic_fetch_add_explicit(&live, n, memory_order_relaxed);
}

void mem_torture(int64_t n, int on)
{
    atomic_store(&fail_at, 0);
    atomic_store(&fail_on, on != 0);
    atomic_store(&asked, 0);
    atomic_store(&fail_at, n);
}

int64_t mem_count(void)
{
    return atomic_load(&asked);
}

int64_t mem_live(void)
{
    return atomic_load(&live);
}
#else
#define torture_says_no() 0
#define live_add(n) ((void)0)

void mem_torture(int64_t n, int on)
{
    (void)n;
    (void)on;
}

int64_t mem_count(void)
{
    return 0;
}

int64_t mem_live(void)
{
    return 0;
}
#endif

void *mem_alloc(size_t size)
{
    if (torture_says_no())
        return NULL;
    void *p = malloc(size ? size : 1);
    if (p)
        live_add(1);
    return p;
}

void *mem_zalloc(size_t size)
{
    if (torture_says_no())
        return NULL;
    void *p = calloc(1, size ? size : 1);
    if (p)
        live_add(1);
    return p;
}

void *mem_resize(void *p, size_t size)
{
    if (torture_says_no())
        return NULL;
    void *q = realloc(p, size ? size : 1);
    if (q && !p)
        live_add(1);
    return q;
}

void mem_free(void *p)
{
    if (!p)
        return;
    live_add(-1);
    free(p);
}
