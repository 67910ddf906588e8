/*
 * ask_spec.h - the call that a request asks for, with the headers Idempotency-Key and If-Match.
 *
 * The loop thread, or the thread that holds the ask. What is made lives on q->a; errors name the
 * field.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_ASK_SPEC_H
#define API_ASK_SPEC_H

#include "api/ask.h"
#include "base/json.h"
#include "model/call.h"

/* Read a call and complete it. header_id is what Idempotency-Key says; absent: none. */
MUST_USE enum pawl_status spec_of_json(struct ask *q, const struct json *object,
                                       struct bytes header_id, struct call_spec *out,
                                       struct pawl_err *err);
/* Complete what was read: id, client, limits, defaults, fingerprint. */
MUST_USE enum pawl_status spec_complete(struct ask *q, struct bytes header_id,
                                        struct call_spec *out, struct pawl_err *err);
/* The header Idempotency-Key; absent when there is none. INVALID: malformed or repeated. */
MUST_USE enum pawl_status ask_idempotency_key(struct ask *q, struct bytes *out,
                                              struct pawl_err *err);

/* The condition of a write, from the headers If-Match and If-None-Match; all zero: none. */
struct if_match {
    bool any;                   /* it must exist, in any version */
    bool none;                  /* it must not exist */
    int64_t version;            /* 0: any; when no tag can match a version, one that none has */
    const int64_t *or_versions; /* versions that are allowed besides */
    size_t n_or_versions;
};
/* Read the condition; with `may_none` also `If-None-Match: *`. INVALID: a header is malformed, or
 * is not taken here. if_match.c. */
MUST_USE enum pawl_status if_match_read(struct ask *q, bool may_none, struct if_match *out,
                                        struct pawl_err *err);

#endif
