/*
 * read.h - rows become calls. Private to store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_READ_H
#define STORE_SQLITE_READ_H

#include "store/sqlite/engine.h"

/* Where calls are read to. Lane names are copied once and shared by the calls of one answer. */
struct lite_shelf {
    struct arena *a;
    int lane;
    struct bytes queue, type;
};
/* spec, created, run_at and expires from the first 16 columns of call_claim and call_read. */
MUST_USE enum pawl_status lite_asked_read(struct lite *c, struct lite_shelf *to, sqlite3_stmt *q,
                                          struct call *out, struct pawl_err *err);
/* The same by seq. BROKEN when there is no such call. */
MUST_USE enum pawl_status lite_asked(struct lite *c, struct lite_shelf *to, int64_t seq,
                                     bool with_input, struct call *out, struct pawl_err *err);
/* As lite_asked with the input, for many in a row: `along` is NULL at first, the statement that
 * walks along the table after; its user ends it by lite_reset(). */
MUST_USE enum pawl_status lite_asked_along(struct lite *c, struct lite_shelf *to, int64_t seq,
                                           sqlite3_stmt **along, struct call *out,
                                           struct pawl_err *err);
/* The call as it stands. OK, GONE (id, state, times), BROKEN. */
MUST_USE enum pawl_status lite_stands(struct lite *c, struct lite_shelf *to, int64_t seq,
                                      unsigned with, struct call *out, struct pawl_err *err);
/* As lite_stands, for a row of call_read that is already there. */
MUST_USE enum pawl_status lite_stands_row(struct lite *c, struct lite_shelf *to, int64_t seq,
                                          unsigned with, sqlite3_stmt *q, struct call *out,
                                          struct pawl_err *err);
/* The tries of a call that can be claimed. BROKEN: it cannot. */
MUST_USE enum pawl_status lite_tries(struct lite *c, int64_t seq, struct tries *out,
                                     struct pawl_err *err);
/* seq 0: unknown. fingerprint may be NULL. */
MUST_USE enum pawl_status lite_id_find(struct lite *c, struct bytes id, int64_t *out_seq,
                                       unsigned char fingerprint[FINGERPRINT_LEN],
                                       struct pawl_err *err);
/* Columns of call_read. */
enum {
    ASKED_LANE = 1,
    ASKED_METHOD = 2,
    ASKED_KEY = 3,
    ASKED_CREATED = 7,
    ASKED_CALLER = 11,
    ASKED_CLIENT = 12,
    ASKED_PARENT = 13,
    ASKED_TAGS = 15,
    FROM_SEQ = 16, /* of call_from */
    READ_TRACK = 16,
    READ_STATUS = 22,
    READ_TOKEN = 34,
    READ_KEY_NO = 35,
    READ_POS = 36
};

#endif
