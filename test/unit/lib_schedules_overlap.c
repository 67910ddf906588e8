/*
 * lib_schedules_overlap.c - ticks that overlap, with handlers that run and ignore their cancel, in
 * all four forms of `overlap`.
 *
 * The schedules tick each second by a real clock, so a case waits for what must come and then looks
 * at all that came: whatever a tick met, it has one run, and no tick is left out.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "feature/cron.h"
#include "fixture.h"
#include "lib/lib.h"
#include "store/store.h"

RUNS_ON(ENGINES_DURABLE)

#define CALLS_MAX 100

static atomic_int numbers, begun, inside, most_inside, cancels_seen, may_end;
static char ids[CALLS_MAX][64]; /* of the calls, in the order in which they began */

/* It ends when the case says so, and not when it is cancelled. */
static int deaf(struct pawl_call *c)
{
    int no = atomic_fetch_add(&numbers, 1), now = atomic_fetch_add(&inside, 1) + 1;
    bool told = false;
    if (no < CALLS_MAX)
        snprintf(ids[no], sizeof ids[0], "%s", pawl_call_id(c));
    if (now > atomic_load(&most_inside))
        atomic_store(&most_inside, now);
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&may_end) <= no) {
        if (!told && pawl_cancelled(c))
            told = atomic_fetch_add(&cancels_seen, 1) >= 0;
        usleep(1000);
    }
    atomic_fetch_sub(&inside, 1);
    return pawl_reply_int(c, no);
}

static struct pawl *begin(const void *param, enum pawl_overlap overlap, int64_t timeout_us)
{
    struct pawl *p = fixture_open(param);
    struct pawl_schedule s = { PAWL_SCHEDULE_INIT, .name = "a", .every_us = FIXTURE_SEC,
                               .overlap = overlap,
                               .call = &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "deaf",
                                                            .max_attempts = 1,
                                                            .timeout_us = timeout_us } };
    fixture_on(p, "deaf", deaf);
    OK(pawl_schedule(pawl_program(p), &s), &pawl_program(p)->err);
    fixture_start(p, 4);
    UNTIL(atomic_load(&begun) >= 1);
    return p;
}

static void end(struct pawl *p)
{
    atomic_store(&may_end, INT32_MAX);
    pawl_close(p);
}

/* ---- What came ------------------------------------------------------------------------------- */

struct came {
    int submitted, skipped, missed;
    char reason[16]; /* of those that were skipped; all have the same */
    int64_t waiting_us;
};

/* The ticks so far. Each second from the first one on must have exactly one of them. */
static struct came came(struct pawl *p)
{
    struct came out = { 0 };
    struct cron_run_query q = { .name = BYTES("a"), .limit = LIST_MAX };
    struct cron_run_rows r;
    struct cron_row row;
    struct pawl_err err;
    struct store *s;
    struct arena a;
    arena_init(&a, 4 << 20);
    OK(exec_reader(p->e, &s, &err), &err);
    OK(cron_runs(s, &a, &q, &r, &err), &err);
    OK(cron_get(s, &a, q.name, &row, &err), &err);
    exec_reader_back(p->e, s);
    out.waiting_us = row.waiting_us;
    for (size_t i = 0; i < r.n; i++) {
        const struct cron_run *t = &r.v[i];
        if (i + 1 < r.n)
            EQ_INT(t->at_us - r.v[i + 1].at_us, t->count * FIXTURE_SEC);
        out.submitted += t->kind == CRON_SUBMITTED;
        out.missed += t->kind == CRON_MISSED;
        if (t->kind != CRON_SKIPPED)
            continue;
        if (out.skipped++)
            TRUE(bytes_eq(t->reason, bytes_of(out.reason)));
        snprintf(out.reason, sizeof out.reason, "%.*s", BYTES_ARG(t->reason));
    }
    arena_release(&a);
    return out;
}

/* ---- The four forms -------------------------------------------------------------------------- */

TEST(allowed_ticks_run_side_by_side)
{
    struct pawl *p = begin(param, PAWL_OVERLAP_ALLOW, 0);
    UNTIL(atomic_load(&inside) >= 3);
    struct came c = came(p);
    GE_INT(c.submitted, 3);
    EQ_INT(c.skipped, 0);
    EQ_INT(c.waiting_us, 0);
    EQ_INT(atomic_load(&cancels_seen), 0);
    end(p);
}

TEST(ticks_are_skipped_until_the_handler_ends)
{
    struct pawl *p = begin(param, PAWL_OVERLAP_SKIP, 0);
    UNTIL(came(p).skipped >= 2);
    struct came c = came(p);
    EQ_STR(c.reason, "overlap");
    EQ_INT(c.submitted, 1);
    EQ_INT(c.waiting_us, 0);
    /* Its cancel by a client changes nothing as long as the handler goes on. */
    enum pawl_state state;
    struct pawl_err err;
    OK(pawl_cancel(p, ids[0], &state, &err), &err);
    EQ_INT(state, PAWL_PROCESSING);
    UNTIL(atomic_load(&cancels_seen) == 1);
    int skipped = came(p).skipped;
    UNTIL(came(p).skipped >= skipped + 2);
    EQ_INT(atomic_load(&begun), 1);
    atomic_store(&may_end, 1);
    UNTIL(atomic_load(&begun) == 2);
    EQ_INT(atomic_load(&most_inside), 1);
    EQ_INT(came(p).submitted, 2);
    end(p);
}

/* The newest tick waits for the end of the first, and then runs; the others were replaced. */
static void waits(struct pawl *p)
{
    UNTIL(came(p).skipped >= 2);
    struct came c = came(p);
    EQ_STR(c.reason, "replaced");
    EQ_INT(c.submitted, 1);
    TRUE(c.waiting_us);
    EQ_INT(atomic_load(&begun), 1);
    atomic_store(&may_end, 1);
    UNTIL(atomic_load(&begun) == 2);
    EQ_INT(atomic_load(&most_inside), 1);
    c = came(p);
    EQ_INT(c.submitted, 2);
    fixture_ends(p, ids[0], PAWL_COMPLETED); /* its result counts, cancelled or not */
}

TEST(the_newest_tick_waits_for_the_handler)
{
    struct pawl *p = begin(param, PAWL_OVERLAP_WAIT, 0);
    waits(p);
    EQ_INT(atomic_load(&cancels_seen), 0);
    end(p);
}

TEST(a_handler_that_ignores_its_cancel_holds_its_replacement_back)
{
    struct pawl *p = begin(param, PAWL_OVERLAP_REPLACE, 0);
    UNTIL(atomic_load(&cancels_seen) == 1);
    EQ_INT(atomic_load(&begun), 1);
    waits(p);
    UNTIL(atomic_load(&cancels_seen) == 2); /* the next one is asked to stop in its turn */
    end(p);
}

/* The way out of the case before: the timeout of the call, though its handler cannot be stopped. */
TEST(a_timeout_ends_a_handler_that_ignores_its_cancel)
{
    struct pawl *p = begin(param, PAWL_OVERLAP_REPLACE, 3 * FIXTURE_SEC);
    UNTIL(atomic_load(&cancels_seen) >= 1);
    UNTIL(atomic_load(&begun) >= 2);
    GE_INT(atomic_load(&inside), 2); /* the first one still runs, and nobody waits for it */
    TRUE(pawl_state_ended(fixture_state(p, ids[0])));
    GE_INT(came(p).submitted, 2);
    end(p);
}
