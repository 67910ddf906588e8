/*
 * made_zone.h - the file of a time zone that is only a rule, for fuzzers that have no files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MADE_ZONE_H
#define MADE_ZONE_H

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define MADE_ZONE_MAX 4096

/* Write a file of version 2 without transitions, with one type of offset 0, and the rule as its
 * last line. The rule has at most 2048 bytes. */
static inline struct bytes made_zone(struct bytes rule, char out[MADE_ZONE_MAX])
{
    static const unsigned char block[] = { 'T', 'Z', 'i', 'f', '2', 0, 0, 0, 0,   0,   0,   0, 0, 0,
                                           0,   0,   0,   0,   0,   0, 0, 0, 0,   0,   0,   0, 0, 0,
                                           0,   0,   0,   0,   0,   0, 0, 0, 0,   0,   0,   1, 0, 0,
                                           0,   4,   0,   0,   0,   0, 0, 0, 'U', 'T', 'C', 0 };
    char *at = out;
    for (int i = 0; i < 2; i++, at += sizeof block)
        memcpy(at, block, sizeof block);
    *at++ = '\n';
    if (rule.len > 0)
        memcpy(at, rule.data, rule.len);
    at += rule.len;
    *at++ = '\n';
    return (struct bytes){ out, (size_t)(at - out) };
}

#endif
