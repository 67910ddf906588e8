/*
 * buf.h - a growing run of bytes with a maximum, which remembers that an add failed.
 *
 * Make ten adds in a row and ask buf_ok() once. Not thread-safe.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/macros.h"

struct buf {
    char *data; /* owned; may be NULL while len is 0 */
    size_t len, cap, max;
    bool failed; /* an add did not fit or found no memory; later adds do nothing */
};

/* Prepare an empty buffer of at most `max` bytes. It takes no memory until the first add. */
void buf_init(struct buf *b, size_t max);
/* Free the memory; the buffer is then as after buf_init. Accepts a buffer that is all zero. */
void buf_release(struct buf *b);
/* Empty it and clear `failed`, but keep the memory. */
void buf_reset(struct buf *b);

/* Append bytes. When they do not fit, or memory is short, `failed` is set and nothing is
 * appended. */
void buf_add(struct buf *b, const void *data, size_t len);
/* buf_add for a run; an absent run adds nothing. */
void buf_add_bytes(struct buf *b, struct bytes s);
/* buf_add for a C string, without its NUL. */
void buf_add_text(struct buf *b, const char *text);
/* buf_add for one byte. */
void buf_add_char(struct buf *b, char c);
/* buf_add for a number in decimal. */
void buf_add_int(struct buf *b, int64_t n);
/* buf_add for formatted text. */
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

static inline struct bytes buf_bytes(const struct buf *b)
{
    return (struct bytes){ b->data ? b->data : "", b->len };
}

#endif
