/*
 * buf.h - a growing run of bytes, born with a maximum, that remembers failure.
 *
 * Write ten adds in a row and ask buf_ok() once. Not thread-safe.
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

void buf_init(struct buf *b, size_t max);
/* Free the memory; as after buf_init. Accepts one that is all zero. */
void buf_release(struct buf *b);
/* Empty it, keep the memory, forget failure. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_bytes(struct buf *b, struct bytes s);
void buf_add_text(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
void buf_add_int(struct buf *b, int64_t n);
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
