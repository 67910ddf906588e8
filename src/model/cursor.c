/*
 * cursor.c - a seq as 16 hex digits and a checksum of two (cursor.h). Pure, any thread.
 *
 * The checksum is an 8-bit CRC: it detects every mistyped digit and every swap of two neighbours.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "model/cursor.h"

#define DIGITS 16
#define TEXT_LEN (DIGITS + 2)

static unsigned check_of(uint64_t n)
{
    unsigned crc = 0x5a;
    for (int shift = 56; shift >= 0; shift -= 8) {
        crc ^= (unsigned)(n >> shift & 0xff);
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x80 ? (crc << 1 ^ 0x07) & 0xff : crc << 1;
    }
    return crc;
}

void cursor_write(int64_t before_seq, char out[CURSOR_TEXT_MAX])
{
    uint64_t n = (uint64_t)before_seq;
    snprintf(out, CURSOR_TEXT_MAX, "%016" PRIx64 "%02x", n, check_of(n));
}

bool cursor_read(struct bytes text, int64_t *out_before_seq)
{
    uint64_t n = 0;
    unsigned check = 0;
    if (!text.data || text.len != TEXT_LEN)
        return false;
    for (size_t i = 0; i < TEXT_LEN; i++) {
        const char *digit = text.data[i] ? strchr("0123456789abcdef", text.data[i]) : NULL;
        if (!digit)
            return false;
        unsigned four = *digit <= '9' ? (unsigned)(*digit - '0') : (unsigned)(*digit - 'a') + 10;
        if (i < DIGITS)
            n = n << 4 | four;
        else
            check = check << 4 | four;
    }
    if (check != check_of(n) || n > INT64_MAX)
        return false;
    *out_before_seq = (int64_t)n;
    return true;
}
