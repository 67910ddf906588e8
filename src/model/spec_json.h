/*
 * spec_json.h - a call as clients write it, read strictly into a call_spec.
 *
 * Pure, any thread. What is made lives in the arena; errors name the field.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_SPEC_JSON_H
#define MODEL_SPEC_JSON_H

#include "base/buf.h"
#include "base/json.h"
#include "model/call.h"
#include "model/fields.h"

extern const struct shape spec_shape, submit_shape, session_shape, tick_spec_shape;

/* Read a call, without completing it (call_spec_settle). call_timeout_us 0: the model's default. */
MUST_USE enum pawl_status spec_read_json(struct arena *a, const struct json *object,
                                         int64_t call_timeout_us, struct call_spec *out,
                                         struct pawl_err *err);
/* A signal that starts a run. */
struct signal_spec {
    struct bytes name;  /* absent: there is none */
    struct bytes value; /* JSON */
    struct bytes key;   /* absent: none */
};
/* The same with the member `signal`. */
MUST_USE enum pawl_status submit_read_json(struct arena *a, const struct json *object,
                                           int64_t call_timeout_us, struct call_spec *out,
                                           struct signal_spec *out_signal, struct pawl_err *err);
/* Read a session's request: a call without a key, and whether it is cancelled when its wait is
 * over. Not completed. */
MUST_USE enum pawl_status session_read_json(struct arena *a, const struct json *object,
                                            int64_t call_timeout_us, struct call_spec *out,
                                            bool *out_cancel, struct pawl_err *err);
/* Read the call of a schedule's ticks: a call without id, run_at and expires_at. Not completed. */
MUST_USE enum pawl_status tick_read_json(struct arena *a, const struct json *object,
                                         int64_t call_timeout_us, struct call_spec *out,
                                         struct pawl_err *err);

enum { TICK_NO_INPUT = 1, TICK_NO_TAGS = 2 };
/* Append such a call as an object that tick_read_json() reads as the same call: its members that
 * are not the default, in the order of the table. leave_out: TICK_... */
void tick_write_json(struct buf *b, const struct call_spec *s, unsigned leave_out);

#endif
