/*
 * lines.h - finds the empty line that ends a head or the trailers, however the bytes are cut.
 *
 * Stricter than llhttp where leniency has been used to smuggle requests: each line ends in CRLF,
 * and none begins with white space (obs-fold).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct lines {
    size_t len;      /* bytes seen */
    size_t count;    /* lines seen to their end, the empty one included */
    size_t line_len; /* bytes of the line under way */
    char last;
    const char *fault;
};

enum lines_end { LINES_MORE, LINES_END, LINES_BAD, LINES_LONG };

/* Take bytes up to the end, at most max in all; *out_used says how many. BAD: `fault` says why.
 * LONG: there is more than max and no end in it. */
enum lines_end lines_feed(struct lines *l, struct bytes in, size_t max, size_t *out_used);

#endif
