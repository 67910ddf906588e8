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

/* As malloc. NULL without memory, or when mem_torture says so. Size 0 counts as 1. */
MUST_USE void *mem_alloc(size_t size);
/* As mem_alloc, zeroed. */
MUST_USE void *mem_zalloc(size_t size);
/* As realloc: after NULL the caller still owns the old block. */
MUST_USE void *mem_resize(void *p, size_t size);
/* Free a block of the functions above; NULL does nothing. */
void mem_free(void *p);

/* Test builds (PAWL_TEST): make the n-th allocation from now fail, counted from 1 over all threads;
 * 0 for none. With `on` those after it fail too, until it is switched off. Does nothing without
 * PAWL_TEST. */
void mem_torture(int64_t n, int on);
/* Test builds: allocations requested since the last mem_torture(). */
int64_t mem_count(void);
/* Test builds: blocks that are allocated and not freed. */
int64_t mem_live(void);

#endif
