/*
 * step_json.h - steps of workflows as workers write and read them. Pure.
 *
 * What is read points at the body and at q->a.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_STEP_JSON_H
#define API_STEP_JSON_H

#include "api/ask.h"
#include "base/buf.h"
#include "base/json.h"
#include "feature/workflow.h"
#include "model/fields.h"

extern const struct shape step_shape, wait_shape;

/* The members of a request that store steps. */
struct steps_in {
    const struct json *steps, *wait, *publish;
};
/* Read them into *out. `lazy`: with the end of the attempt, so that nothing may wait. INVALID,
 * TOO_LARGE. */
MUST_USE enum pawl_status steps_of_json(struct ask *q, const struct steps_in *in, bool lazy,
                                        struct workflow_steps *out, struct pawl_err *err);

/* Append a step as it is stored. */
void step_add(struct buf *b, const struct workflow_row *s);
/* Append `"steps":[...],"open_steps":[...],"steps_next":...`: those that have ended, those that
 * have not, and the cursor of the next page or null. */
void steps_page_add(struct buf *b, const struct workflow_row *v, size_t n, int64_t next);

#endif
