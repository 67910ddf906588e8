/*
 * json_scan.h - read JSON one step at a time. The grammar is in one place, json_scan.c; checking,
 * building nodes and canonicalising all use it.
 *
 * No recursion: one byte for each level says whether it is an object. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include "base/json.h"
#include "base/limits.h"

struct json_scan {
    const unsigned char *start, *at, *end;
    const char *expected; /* after JSON_FAULT: what would have been right at `at` */
    struct bytes name;    /* of the value just read, without quotes; absent outside objects */
    struct bytes raw;     /* JSON_SCALAR: the whole value; JSON_OPEN, JSON_CLOSE: its bracket */
    enum json_kind kind;  /* of the value just read */
    unsigned depth;       /* open brackets, including the one just opened */
    unsigned depth_max;   /* JSON_DEPTH_MAX; the caller may raise it to the room in `open` */
    bool fresh;           /* nothing has been read since the last bracket opened */
    bool done;            /* the outermost value is complete */
    bool spaced;          /* white space was found somewhere */
    char open[JSON_DEPTH_MAX + JSON_AROUND_MAX];
};

enum json_step { JSON_SCALAR, JSON_OPEN, JSON_CLOSE, JSON_END, JSON_FAULT };

/* Begin at the start of `text`, which is borrowed. */
void json_scan_init(struct json_scan *s, struct bytes text);
/* Read the next step. After JSON_END and JSON_FAULT there are no more. */
enum json_step json_scan_next(struct json_scan *s);
/* After JSON_FAULT: fill err with the byte offset and what was expected. Returns INVALID. */
enum pawl_status json_scan_fault(const struct json_scan *s, struct pawl_err *err);

#endif
