/*
 * err.h - filling struct pawl_err, and what the one table of endings says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <pawl.h>

#include "base/macros.h"

/* Fill *err (which may be NULL) with one sentence naming the thing; returns status, so that
 * `return err_set(err, PAWL_INVALID, "...")` reads as it should. The text is cut at its end. */
enum pawl_status err_set(struct pawl_err *err, enum pawl_status status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* NO_MEMORY while doing `what`. */
enum pawl_status err_no_memory(struct pawl_err *err, const char *what);
void err_clear(struct pawl_err *err);

enum err_retry { ERR_NEVER, ERR_LATER, ERR_SOON, ERR_READBACK };

int err_http(enum pawl_status status);
int err_exit(enum pawl_status status);
const char *err_retry_text(enum pawl_status status); /* "never", "later", "soon", "readback" */
const char *err_meaning(enum pawl_status status);

#endif
