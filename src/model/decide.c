/*
 * decide.c - what follows when an attempt ends. Pure; all engines use these functions, so that they
 * decide alike.
 *
 * What must stay true: every decision is a legal transition from processing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "base/limits.h"
#include "model/call.h"

int64_t backoff_us(const struct backoff *b, int n, const struct world *w)
{
    assert(n >= 1);
    if (b->base_us <= 0 || b->max_us <= 0)
        return 0;
    /* factor^999 may be infinite; the comparison handles that. */
    double max = (double)b->max_us;
    double wait = (double)b->base_us * pow(b->factor, n - 1);
    if (!(wait < max))
        wait = max;
    if (b->jitter > 0)
        wait *= 1 + b->jitter * (2 * world_unit(w) - 1);
    return (int64_t)wait;
}

static struct verdict again_at(struct verdict v, int64_t run_at_us)
{
    v.next = PAWL_PENDING;
    v.run_at_us = run_at_us;
    return v;
}

/* An error or a timeout counts as an attempt. The last one that is allowed ends the call. */
static struct verdict after_error(const struct attempt_of *c, const struct attempt_end *e,
                                  int64_t now_us, const struct world *w, struct verdict v)
{
    int max = c->spec->max_attempts;
    v.counts.attempts++;
    v.count_attempt = true;
    if (v.counts.attempts >= max) {
        v.next = max == 1 ? PAWL_FAILED : PAWL_DEAD_LETTER;
        return v;
    }
    int64_t wait = e->how == END_ERROR && e->retry_in_us >= 0
                       ? MIN(e->retry_in_us, DURATION_MAX_US)
                       : backoff_us(&c->spec->backoff, v.counts.attempts, w);
    return again_at(v, now_us + wait);
}

/* Its owner died. The loss is counted, but only a call that was alone in its lease can be blamed:
 * among several, the next claims show which call it was. The call keeps its place. */
static struct verdict after_loss(const struct attempt_of *c, const struct attempt_end *e,
                                 struct verdict v)
{
    v.counts.lost++;
    v.count_attempt = true;
    if (e->cancel_requested)
        v.next = PAWL_CANCELLED; /* a reclaim never undoes an accepted cancel */
    else if (e->fail_lost)
        v.next = PAWL_FAILED;
    else if (v.counts.lost >= c->spec->max_lost && e->alone)
        v.next = PAWL_DEAD_LETTER;
    else
        return again_at(v, c->run_at_us);
    return v;
}

static struct verdict after(const struct attempt_of *c, const struct attempt_end *e, int64_t now_us,
                            const struct world *w)
{
    struct verdict v = { .counts = c->counts };
    switch (e->how) {
    case END_RESULT:
        v.next = PAWL_COMPLETED;
        return v;
    case END_ERROR:
    case END_TIMEOUT:
        return after_error(c, e, now_us, w, v);
    case END_REFUSE:
        v.next = PAWL_FAILED;
        v.counts.attempts++;
        v.count_attempt = true;
        return v;
    case END_LATER:
        return again_at(v, now_us + MIN(MAX(e->retry_in_us, 0), DURATION_MAX_US));
    case END_RELEASE:
    case END_CANCELLED: /* without a cancel request: the call is released */
        return again_at(v, c->run_at_us);
    case END_LOST:
        return after_loss(c, e, v);
    }
    return v;
}

bool attempt_timed_out(struct arena *a, const struct call_spec *s, int64_t begun_us,
                       int64_t held_us, struct attempt_end *end, struct bytes *error)
{
    if (!end->timed || call_deadline(s, begun_us) > held_us)
        return true;
    end->how = END_TIMEOUT;
    *error = bytes_of(
        arena_printf(a, "took longer than its timeout of %g s", (double)s->timeout_us / SEC_US));
    return error->data != NULL;
}

struct verdict call_after(const struct attempt_of *c, const struct attempt_end *e, int64_t now_us,
                          const struct world *w)
{
    struct verdict v = after(c, e, now_us, w);
    if (e->cancel_requested && v.next == PAWL_PENDING) {
        v.next = PAWL_CANCELLED;
        v.run_at_us = 0;
    }
    CHECK(call_may(PAWL_PROCESSING, v.next));
    return v;
}
