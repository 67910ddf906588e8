/*
 * bytes.h - a borrowed run of bytes: pointer and length, never owned, not ended with NUL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* data NULL means absent, and len is 0 then. An empty run that is present has data != NULL. */
struct bytes {
    const char *data;
    size_t len;
};

#define BYTES(literal) ((struct bytes){ (literal), sizeof(literal) - 1 })
#define BYTES_NONE ((struct bytes){ NULL, 0 })

/* The two arguments of printf("%.*s"). */
#define BYTES_ARG(b) (int)(b).len, ((b).data ? (b).data : "")

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){ text, text ? strlen(text) : 0 };
}

/* Equal byte for byte; absent equals only absent. */
static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    if (!a.data || !b.data)
        return a.data == b.data;
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* memcmp order; a prefix sorts first, and absent before everything. */
static inline int bytes_cmp(struct bytes a, struct bytes b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c)
        return c;
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return (a.data != NULL) - (b.data != NULL);
}

#endif
