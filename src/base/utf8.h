/*
 * utf8.h - one character of UTF-8, for text.c and the JSON scanner.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The length of the character at p, 1 to 4; 0 when the bytes before `end` do not begin with a valid
 * one. */
static inline size_t utf8_step(const unsigned char *p, const unsigned char *end)
{
    size_t left = (size_t)(end - p);
    if (left == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || left < 2 || (p[1] & 0xc0) != 0x80)
        return 0;
    if (p[0] < 0xe0)
        return 2;
    if (left < 3 || (p[2] & 0xc0) != 0x80)
        return 0;
    if (p[0] < 0xf0) {
        /* E0 80..9F is overlong, ED A0..BF a surrogate. */
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0))
            return 0;
        return 3;
    }
    /* F0 80..8F is overlong, F4 90 and above is beyond U+10FFFF. */
    if (p[0] > 0xf4 || left < 4 || (p[3] & 0xc0) != 0x80)
        return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
        return 0;
    return 4;
}

#define UTF8_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t utf8_eight(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
