/*
 * analyze.h - what analyzers cannot see across files: err_set() returns the status it is given. They would else follow
 * paths on which an error counts as success. tools/analyze.sh includes it before each file but err.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ANALYZE_H
#define ANALYZE_H

#include "base/err.h"

#define err_set(err, status, ...) ((void)err_set((err), (status), __VA_ARGS__), (status))
#define err_no_memory(err, what) ((void)err_no_memory((err), (what)), PAWL_NO_MEMORY)

#endif
