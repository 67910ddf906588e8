/*
 * duration.c - how long handlers take (duration.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/duration.h"

#include "base/err.h"
#include "base/mem.h"

/* The mean forgets what is older than about this many calls. */
#define SAMPLES_REMEMBERED 64

#ifdef PAWL_TEST
int64_t durations_assumed_us;

static void assume(struct durations *d)
{
    for (int i = 0; durations_assumed_us && i < (int)d->registry->n; i++)
        for (int k = 0; k < DURATION_SAMPLES_MIN; k++)
            durations_note(d, i, durations_assumed_us);
}
#else
static void assume(struct durations *d)
{
    (void)d;
}
#endif

enum pawl_status durations_init(struct durations *d, const struct registry *r, struct pawl_err *err)
{
    durations_release(d);
    d->registry = r;
    d->v = mem_zalloc((r->n + 1) * sizeof *d->v);
    d->quick_type = mem_zalloc((r->n_types + 1) * sizeof *d->quick_type);
    d->quick = mem_zalloc((r->n_types + 1) * sizeof *d->quick);
    if (!d->v || !d->quick_type || !d->quick) {
        durations_release(d);
        return err_no_memory(err, "starting the workers");
    }
    for (size_t i = 1; i < r->n; i++) /* handlers and types are sorted by type */
        d->v[i].type = d->v[i - 1].type + !bytes_eq(r->v[i].type_b, r->v[i - 1].type_b);
    assume(d);
    return PAWL_OK;
}

void durations_release(struct durations *d)
{
    mem_free(d->v);
    mem_free(d->quick_type);
    mem_free(d->quick);
    *d = (struct durations){ 0 };
}

static bool measured(const struct duration *one)
{
    return one->n >= DURATION_SAMPLES_MIN;
}

/* The mean of a handler of this type moved: decide again whether the type is quick, and update the
 * list. */
static void judge(struct durations *d, size_t type)
{
    bool any = false, slow = false;
    for (size_t i = 0; i < d->registry->n; i++) {
        const struct duration *one = &d->v[i];
        if (one->type != type || (!one->n && !one->steps))
            continue;
        any = any || measured(one);
        slow = slow || one->mean_us > QUICK_US || one->steps;
    }
    if (d->quick_type[type] == (any && !slow))
        return;
    d->quick_type[type] = any && !slow;
    d->n_quick = 0;
    for (size_t i = 0; i < d->registry->n_types; i++)
        if (d->quick_type[i])
            d->quick[d->n_quick++] = d->registry->types[i];
}

/* Decide again only when something changed that the decision depends on. */
static void moved(struct durations *d, const struct duration *one, bool was_slow, bool was_measured)
{
    if ((one->mean_us > QUICK_US) != was_slow || measured(one) != was_measured)
        judge(d, one->type);
}

void durations_note(struct durations *d, int handler, int64_t took_us)
{
    if (handler < 0)
        return;
    struct duration *one = &d->v[handler];
    bool was_slow = one->n && one->mean_us > QUICK_US, was_measured = measured(one);
    one->n += one->n < SAMPLES_REMEMBERED;
    one->mean_us += ((double)took_us - one->mean_us) / one->n;
    moved(d, one, was_slow, was_measured);
    if (d->quick_type[one->type])
        d->mean_us +=
            d->mean_us > 0 ? ((double)took_us - d->mean_us) / SAMPLES_REMEMBERED : one->mean_us;
}

void durations_note_running(struct durations *d, int handler, int64_t for_us)
{
    if (handler < 0)
        return;
    struct duration *one = &d->v[handler];
    bool was_slow = one->n && one->mean_us > QUICK_US, was_measured = measured(one);
    one->n += !one->n;
    one->mean_us = MAX(one->mean_us, (double)for_us);
    moved(d, one, was_slow, was_measured);
}

void durations_note_steps(struct durations *d, int handler)
{
    if (handler < 0 || d->v[handler].steps)
        return;
    d->v[handler].steps = true;
    judge(d, d->v[handler].type);
}

bool durations_quick(const struct durations *d, int handler)
{
    return handler < 0 || d->quick_type[d->v[handler].type];
}

bool durations_all_quick(const struct durations *d)
{
    return d->n_quick == d->registry->n_types;
}
