/*
 * wake.c - pending calls that are due later become due now (OP_WAKE).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/cache.h"

enum pawl_status led_wake(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct wake *q = &op->wake;
    enum pawl_status st = led_calls_load(c, q->seqs, q->n, err);
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, q->seqs[i]);
        if (!it || it->now.state != PAWL_PENDING || it->now.run_at_us <= c->now_us ||
            it->spec.key.data)
            continue;
        struct led_stand to = it->now;
        to.run_at_us = c->now_us;
        st = led_put(c, it, to, 0, err);
        op->brings = true;
    }
    return st;
}
