/*
 * json_scan.h - reading JSON one step at a time: the grammar is in one place, json_scan.c, and
 * checking, building nodes and canonicalising walk over it.
 *
 * No recursion: one byte a level says whether it is an object. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include "base/json.h"
#include "base/limits.h"

struct json_scan {
    const unsigned char *start, *at, *end;
    const char *expected; /* after JSON_FAULT: what would have been right at `at` */
    struct bytes name;    /* of the value just met, without quotes; absent outside objects */
    struct bytes raw;     /* JSON_SCALAR: the whole value; JSON_OPEN, JSON_CLOSE: its bracket */
    enum json_kind kind;  /* of the value just met */
    unsigned depth;       /* brackets open, the one just opened included */
    bool fresh;           /* nothing has been read since the last bracket opened */
    bool done;            /* the outermost value is complete */
    bool spaced;          /* there was white space somewhere */
    char open[JSON_DEPTH_MAX];
};

enum json_step { JSON_SCALAR, JSON_OPEN, JSON_CLOSE, JSON_END, JSON_FAULT };

void json_scan_init(struct json_scan *s, struct bytes text);
/* The next step; END and FAULT are the last. */
enum json_step json_scan_next(struct json_scan *s);
/* The sentence after JSON_FAULT. */
enum pawl_status json_scan_fault(const struct json_scan *s, struct pawl_err *err);

#endif
