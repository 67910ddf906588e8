/*
 * list.h - what lists of calls and changes of calls share.
 *
 * Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_LIST_H
#define API_LIST_H

#include "api/ask.h"

/* `include` of GET /v1/calls, and the bit of each of its words in struct value. */
#define INCLUDE_WORDS "input|result"
enum { INCLUDE_INPUT = 1, INCLUDE_RESULT = 2 };

/* The filters that need more than copying, as they were written; absent: not given. */
struct list_words {
    struct bytes status, cursor;
    const char *words; /* that status may be; NULL: STATE_WORDS */
};
/* Set state, before_seq and client of *out; an app sees its own calls only. INVALID names the
 * field. */
MUST_USE enum pawl_status list_filters(struct ask *q, const struct list_words *w, struct query *out,
                                       struct pawl_err *err);
/* Append the member `next`: a cursor, or null for 0. */
void list_next(struct buf *b, int64_t next_before);
/* The same for a list by name, that goes on behind `name`; absent: null. */
void list_next_name(struct buf *b, struct bytes name);
/* The name in the query parameter `cursor`; absent when it was not given. False: it is not one of
 * list_next_name(), and the ask has ended with INVALID. */
bool list_cursor_name(struct ask *q, struct value cursor, struct bytes *out);
/* End the ask with INVALID: this cursor is not the `next` of an earlier answer. */
void refuse_cursor(struct ask *q, struct bytes cursor);

/* A cancel, retry or move of one call was settled: tell its handler, its waiters, or those that
 * claim. Does nothing when it failed. control.c. */
void decided(struct api *api, const struct op *op);

#endif
