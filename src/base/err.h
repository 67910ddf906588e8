/*
 * err.h - filling struct pawl_err, and what the table of statuses says.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <pawl.h>

#include "base/macros.h"

/* Fill *err (which may be NULL) with one sentence that names the thing, cut where it is too long.
 * Returns `status`, for `return err_set(err, PAWL_INVALID, "...")`. */
enum pawl_status err_set(struct pawl_err *err, enum pawl_status status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* err_set with NO_MEMORY; `what` is what the memory was for. */
enum pawl_status err_no_memory(struct pawl_err *err, const char *what);
/* Set *err (which may be NULL) to OK without text. */
void err_clear(struct pawl_err *err);

enum err_retry { ERR_NEVER, ERR_LATER, ERR_SOON, ERR_READBACK };

/* The HTTP status that the table gives for a status; 500 for a number that is no status. */
int err_http(enum pawl_status status);
/* The exit code that the table gives for a status; 9 for a number that is no status. */
int err_exit(enum pawl_status status);
/* When to retry: "never", "later", "soon" or "readback". */
const char *err_retry_text(enum pawl_status status);
/* One sentence on what a status means. */
const char *err_meaning(enum pawl_status status);

#endif
