/*
 * err.c - the table of statuses (name, HTTP status, exit code, retry rule), and the sentence that
 * goes with a status.
 *
 * Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"

struct ending_row {
    const char *name;
    int http, exit;
    enum err_retry retry;
    const char *meaning;
};

#define ROW(name, http, exit, retry, text) { #name, http, exit, ERR_##retry, text },
static const struct ending_row rows[] = { PAWL_STATUS_MAP(ROW) };
#undef ROW
static_assert(COUNT_OF(rows) == PAWL_STATUS_COUNT, "every status has its row");

/* For a number that is no status. */
static const struct ending_row none = { "?", 500, 9, ERR_NEVER, "no such status" };

static const struct ending_row *row(enum pawl_status status)
{
    return (unsigned)status < PAWL_STATUS_COUNT ? &rows[status] : &none;
}

PAWL_API const char *pawl_status_name(enum pawl_status status)
{
    return row(status)->name;
}

int err_http(enum pawl_status status)
{
    return row(status)->http;
}

int err_exit(enum pawl_status status)
{
    return row(status)->exit;
}

const char *err_retry_text(enum pawl_status status)
{
    switch (row(status)->retry) {
    case ERR_NEVER:
        return "never";
    case ERR_LATER:
        return "later";
    case ERR_SOON:
        return "soon";
    case ERR_READBACK:
        return "readback";
    }
    return "never";
}

const char *err_meaning(enum pawl_status status)
{
    return row(status)->meaning;
}

enum pawl_status err_set(struct pawl_err *err, enum pawl_status status, const char *fmt, ...)
{
    if (!err)
        return status;
    err_clear(err);
    err->status = status;

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);

    if (n >= (int)sizeof err->text) {
        /* The cut may have split a character, and half of one is not UTF-8. */
        struct bytes kept = { err->text, sizeof err->text - 1 };
        err->text[utf8_cut(kept, kept.len - 1).len] = 0;
    }
    return status;
}

enum pawl_status err_no_memory(struct pawl_err *err, const char *what)
{
    return err_set(err, PAWL_NO_MEMORY, "no memory for %s", what);
}

void err_clear(struct pawl_err *err)
{
    if (!err)
        return;
    err->status = PAWL_OK;
    err->native = 0;
    err->sqlstate[0] = 0;
    err->text[0] = 0;
}
