/*
 * text.h - UTF-8, names, times and numbers as text.
 *
 * Pure functions, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Is this valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF? */
bool utf8_valid(struct bytes b);
/* The longest prefix of at most `max` bytes that does not end inside a character. */
struct bytes utf8_cut(struct bytes b, size_t max);

/* What is wrong with a name, as the end of the sentence `field "id" ...`; NULL when it is valid: 1
 * to NAME_LEN_MAX bytes of UTF-8 without control characters (C0, DEL, C1), not "." or "..". */
const char *name_fault(struct bytes name);

#define TEXT_QUOTE_LEN 48
/* A text as an error shows it, in `out`: its first 40 bytes, with `...` when there are more,
 * without half a character, and with `?` for control characters and for all that is not UTF-8. */
const char *text_quote(struct bytes b, char out[TEXT_QUOTE_LEN]);

#define TIME_TEXT_LEN 27
/* 0001-01-01T00:00:00 and the last microsecond of 9999: the range of the text below. */
#define TIME_FIRST_US (INT64_C(-719162) * 86400 * 1000000)
#define TIME_LAST_US (INT64_C(2932897) * 86400 * 1000000 - 1)
/* Write RFC 3339 UTC, always 27 characters: 2026-11-15T08:00:00.123456Z. A time outside the years
 * 0001 to 9999 is written as the nearest one inside. */
void time_text(int64_t us, char out[TIME_TEXT_LEN + 1]);
/* Read RFC 3339 with Z or an offset and 0 to 9 fraction digits (cut to microseconds). False when it
 * is not such a time. */
bool time_parse(struct bytes text, int64_t *out_us);

/* Read `500ms`, `5s`, `2m`, `3h` or `7d`, with fractions; a number without a unit is seconds. False
 * for anything else and outside 0..DURATION_MAX_US. */
bool duration_parse(struct bytes text, int64_t *out_us);
/* Write a duration in the largest unit that divides it, otherwise as seconds with a fraction. */
void duration_text(int64_t us, char out[32]);

/* Read the whole text as a decimal integer. False for anything else and when it does not fit. */
bool int_parse(struct bytes text, int64_t *out);
/* Read the whole text as a decimal number such as -12.5e-3, in every locale. False for anything
 * else, when it is not finite, and without memory for a very long one. */
bool real_parse(struct bytes text, double *out);
/* Write the shorter of %.15g and %.17g that reads back as the same number, with a point in every
 * locale. */
void real_text(double n, char out[32]);

/* Write Base64 (RFC 4648, padded) and return its length. `out` has room for 4 * ((len + 2) / 3). */
size_t base64_write(struct bytes b, char *out);
/* Read Base64 strictly: no white space, exact padding. `out` has room for 3 * (len / 4). False when
 * it is not Base64. */
bool base64_read(struct bytes text, char *out, size_t *out_len);

/* "" for 1, else "s": `"%d call%s", n, plural(n)`. */
const char *plural(int64_t n);

#endif
