/*
 * buf.c - a growing run of bytes with a maximum. After the first add that does not fit, later adds
 * do nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"

#define BUF_FIRST 128

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

void buf_release(struct buf *b)
{
    mem_free(b->data);
    buf_init(b, b->max);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

/* Make room for `more` bytes after len, and one for printf's NUL. */
static bool buf_room(struct buf *b, size_t more)
{
    if (b->failed || more > b->max - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return true;

    size_t cap = MAX(MAX(need, b->cap * 2), BUF_FIRST);
    if (cap - 1 > b->max)
        cap = b->max + 1;
    char *data = mem_resize(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (!buf_room(b, len) || len == 0)
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
    assert(b->len <= b->max && b->len < b->cap);
}

void buf_add_bytes(struct buf *b, struct bytes s)
{
    buf_add(b, s.data, s.len);
}

void buf_add_text(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_add_char(struct buf *b, char c)
{
    if (buf_room(b, 1))
        b->data[b->len++] = c;
}

void buf_add_int(struct buf *b, int64_t n)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--at = '-';
    buf_add(b, at, (size_t)(digits + sizeof digits - at));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    size_t space = b->failed ? 0 : b->cap - b->len;
    int n = vsnprintf(space ? b->data + b->len : NULL, space, fmt, args);
    va_end(args);

    if (n < 0)
        b->failed = true;
    else if (buf_room(b, (size_t)n)) {
        if ((size_t)n >= space)
            vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}
