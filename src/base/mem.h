/*
 * mem.h - every allocation of the library goes through here, so that a test can make each one fail.
 *
 * Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/* NULL when there is no memory, or when torture says so. size 0 is treated as 1. */
MUST_USE void *mem_alloc(size_t size);
MUST_USE void *mem_zalloc(size_t size);
/* As realloc: on NULL the old block is still yours. */
MUST_USE void *mem_resize(void *p, size_t size);
void mem_free(void *p);

/* Test builds (PAWL_TEST): fail the n-th allocation from now, counted from 1 over all threads; 0:
 * none. With `on` the ones after it fail as well until switched off. Without PAWL_TEST these do
 * nothing. */
void mem_torture(int64_t n, int on);
/* Test builds: allocations asked for since the last mem_torture(). */
int64_t mem_count(void);
/* Test builds: blocks handed out and not freed. */
int64_t mem_live(void);

#endif
