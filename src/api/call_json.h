/*
 * call_json.h - a call as clients see it, and the members that all answers are made of. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_CALL_JSON_H
#define API_CALL_JSON_H

#include "api/ask.h"
#include "base/buf.h"
#include "model/call.h"

/* What is shown of a call, and how. */
enum {
    SHOW_INPUT = 1,
    SHOW_RESULT = 2,
    SHOW_CUT = 4, /* inputs and results at most 4 KiB, then "truncated":true */
    SHOW_DUPLICATE = 8,
    SHOW_SECRETS = 16, /* errors and tags: all but monitors see them */
    SHOW_ALL = SHOW_INPUT | SHOW_RESULT | SHOW_SECRETS,
    SHOW_OPEN = 32,      /* leave the object open: the route adds members and the closing brace */
    SHOW_LOCATION = 64,  /* reply_call: with a Location header */
    SHOW_RETRY = 128,    /* reply_call: with Retry-After when it has not ended */
    SHOW_STORED = 256,   /* reply_call, show_call, read_call: it was stored a moment ago. If it
                            cannot be read, answer UNKNOWN: BUSY would say that nothing was stored
                          */
    SHOW_NO_INPUT = 512, /* lists: leave out input and input_base64 when they were not asked for */
    SHOW_NO_RESULT = 1024, /* likewise result and result_base64 */
    SHOW_LISTED = SHOW_CUT | SHOW_SECRETS | SHOW_NO_INPUT | SHOW_NO_RESULT,
};
/* `show` without what this principal may not see. */
unsigned ask_show(const struct ask *q, unsigned show);
/* Append `{"id":...}`: every field of the contract, except those that SHOW_NO_... leaves out. */
void call_add(struct buf *b, const struct call *c, unsigned show);

/* Append a member that is a string: a comma if needed, the name, the value. Absent: null. */
void add_text(struct buf *b, const char *name, struct bytes text);
/* Append a member that is an integer. */
void add_int(struct buf *b, const char *name, int64_t n);
/* Append a member that is true or false. */
void add_bool(struct buf *b, const char *name, bool v);
/* Append a member that is a time, in RFC 3339; 0: null. */
void add_time(struct buf *b, const char *name, int64_t us);
/* Append a member that is a number of seconds, with its fraction. */
void add_seconds(struct buf *b, const char *name, int64_t us);
/* Append a member with this JSON as it is; absent: null. */
void add_raw(struct buf *b, const char *name, struct bytes json);
/* Append the two members `name` (JSON) and `name_base64` (bytes), cut at max; 0: all of it. True:
 * it was cut. */
bool add_payload(struct buf *b, const char *name, const char *name_base64, struct payload p,
                 size_t max);

#endif
