/*
 * workflows.c - keys of consumed signals that need not be known any more (workflows.h).
 *
 * It rides on the rounds of the housekeeping thread, which it does not wake.
 * What a run that timed out needs is done by the pass that is due at its deadline.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/workflows.h"

#include "base/limits.h"
#include "exec/housekeeping.h"
#include "exec/internal.h"
#include "store/feature.h"

void workflows_round(struct exec *e, int64_t now_us)
{
    struct housekeeping *k = e->housekeeping;
    struct workflows *w = &k->workflows;
    struct periodic *c = &k->periodics[PERIODIC_KEYS];
    struct workflow_counts counts;
    if (!(e->traits & STORE_DRIVEN) || !e->conf.gc_interval_us || atomic_load(&c->under_way))
        return;
    workflow_counts(&counts);
    if (counts.signals != w->signals)
        w->until_us = now_us + SIGNAL_KEYS_US + 2 * e->conf.gc_interval_us;
    w->signals = counts.signals;
    if (w->forgot && c->job.op.status == PAWL_OK && w->forget.more)
        w->forget_us = now_us;
    w->forgot = false;
    if (now_us < w->forget_us || now_us > w->until_us || !exec_entered(e))
        return;
    w->forget_us = now_us + e->conf.gc_interval_us;
    w->forget = (struct workflow_op){ .what = WORKFLOW_FORGET, .max = GC_STEP_MAX };
    w->forgot =
        periodic_post(c, (struct op){ .kind = OP_FEATURE,
                                      .feature = { .of = &feature_workflow, .ctx = &w->forget } });
}
