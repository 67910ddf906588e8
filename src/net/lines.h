/*
 * lines.h - find the empty line that ends a head or the trailers, wherever the bytes are split.
 *
 * Stricter than llhttp where its leniency has been used for request smuggling: each line ends in
 * CRLF, and none begins with white space (obs-fold).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_LINES_H
#define NET_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct lines {
    size_t len;      /* bytes read */
    size_t count;    /* complete lines, including the empty one */
    size_t line_len; /* bytes of the current line */
    char last;
    const char *fault;
};

enum lines_end { LINES_MORE, LINES_END, LINES_BAD, LINES_LONG };

/* Take bytes up to the end, at most `max` in all; *out_used is how many. BAD: `fault` says why.
 * LONG: `max` bytes were read without an end. */
enum lines_end lines_feed(struct lines *l, struct bytes in, size_t max, size_t *out_used);

#endif
