/*
 * get.h - reading one call from the database and answering with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_GET_H
#define API_GET_H

#include "api/ask_io.h"
#include "api/call_json.h"

/* Answer with this call. status 0: 200 when it has ended, else 202. Ends the ask. */
void reply_call(struct ask *q, const struct call *c, int status, unsigned show);
/* Read the call and answer with it as it is now. NOT_FOUND, also for another client's call; GONE.
 * Ends the ask. `id` must live as long as the ask. */
void show_call(struct ask *q, struct bytes id, int status, unsigned show);
/* Answer with the call when it has ended, or as it is after wait_us: 200 or 202. */
void show_call_wait(struct ask *q, struct bytes id, int64_t wait_us, unsigned show);
/* The same, but hands the call to `found`, which ends the ask then or later. The call's memory is
 * freed when `found` returns. */
void read_call(struct ask *q, struct bytes id, unsigned show,
               void (*found)(struct ask *q, const struct call *c, void *ctx), void *ctx);

/* One call as a read finds it. */
struct found {
    struct call call;    /* of one that is gone: id, state and times */
    int64_t archived_us; /* it is gone, and has been in the archive since then; 0: it is not */
};
/* Read a call inside an ask_read's `work`, into rd->arena. NOT_FOUND, also for another client's;
 * GONE; both name the call. `with`: WITH_INPUT, WITH_RESULT. */
MUST_USE enum pawl_status call_find(struct ask_read *rd, struct store *s, struct bytes id,
                                    unsigned with, struct found *out);
/* Answer with the error of call_find(); a call that is gone comes with its status and times. */
void refuse_found(struct ask *q, const struct pawl_err *err, struct bytes id,
                  const struct found *f);

#endif
