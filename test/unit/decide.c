/*
 * decide.c - every kind of end, with and without a cancel request, at every limit of its counters;
 * the backoff.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "base/limits.h"
#include "base/macros.h"
#include "model/call.h"
#include "check.h"

static uint64_t word;

static uint64_t own_dice(void *ctx)
{
    (void)ctx;
    return word;
}

/* The middle of the random range: no jitter. */
static const struct world own = { .dice = own_dice };
#define MIDDLE (UINT64_C(1) << 63)

#define NOW INT64_C(1000000000)
#define PLACE INT64_C(7000) /* its previous run_at */

/* P: pending now or later, C completed, F failed, D dead_letter, X cancelled. */
struct row {
    enum ending how;
    int attempts, lost; /* the counters before; 3 errors and 5 losses are allowed unless the row
                           says otherwise */
    int max_attempts;   /* 0: 3 */
    int64_t retry_in;
    bool alone, fail_lost;
    char next, requested; /* without and with a cancel request */
    int64_t run_at;       /* with P */
    int more_attempts, more_lost;
    bool count;
};

static const struct row rows[] = {
    { END_RESULT, 0, 0, 0, -1, 0, 0, 'C', 'C', 0, 0, 0, false },
    { END_RESULT, 2, 4, 0, -1, 0, 0, 'C', 'C', 0, 0, 0, false },
    /* Errors: the backoff of 1 s and 2 s, then the end. */
    { END_ERROR, 0, 0, 0, -1, 0, 0, 'P', 'X', NOW + SEC_US, 1, 0, true },
    { END_ERROR, 1, 0, 0, -1, 0, 0, 'P', 'X', NOW + 2 * SEC_US, 1, 0, true },
    { END_ERROR, 2, 0, 0, -1, 0, 0, 'D', 'D', 0, 1, 0, true },
    { END_ERROR, 7, 0, 0, -1, 0, 0, 'D', 'D', 0, 1, 0, true },
    { END_ERROR, 0, 0, 1, -1, 0, 0, 'F', 'F', 0, 1, 0, true },
    { END_ERROR, 0, 0, 2, -1, 0, 0, 'P', 'X', NOW + SEC_US, 1, 0, true },
    { END_ERROR, 1, 0, 2, -1, 0, 0, 'D', 'D', 0, 1, 0, true },
    { END_ERROR, 998, 0, 1000, 5, 0, 0, 'P', 'X', NOW + 5, 1, 0, true },
    { END_ERROR, 999, 0, 1000, 5, 0, 0, 'D', 'D', 0, 1, 0, true },
    { END_ERROR, 0, 0, 0, 0, 0, 0, 'P', 'X', NOW, 1, 0, true },
    { END_ERROR, 0, 0, 0, 77, 0, 0, 'P', 'X', NOW + 77, 1, 0, true },
    { END_ERROR, 0, 0, 0, INT64_MAX, 0, 0, 'P', 'X', NOW + DURATION_MAX_US, 1, 0, true },
    { END_ERROR, 2, 0, 0, 77, 0, 0, 'D', 'D', 0, 1, 0, true },
    /* Losses do not count as errors. */
    { END_ERROR, 1, 4, 0, -1, 0, 0, 'P', 'X', NOW + 2 * SEC_US, 1, 0, true },
    /* A timeout is an error whose delay is always the backoff. */
    { END_TIMEOUT, 0, 0, 0, 0, 0, 0, 'P', 'X', NOW + SEC_US, 1, 0, true },
    { END_TIMEOUT, 2, 0, 0, 0, 0, 0, 'D', 'D', 0, 1, 0, true },
    { END_TIMEOUT, 0, 0, 1, 0, 0, 0, 'F', 'F', 0, 1, 0, true },
    { END_REFUSE, 0, 0, 0, -1, 0, 0, 'F', 'F', 0, 1, 0, true },
    { END_REFUSE, 2, 0, 0, -1, 0, 0, 'F', 'F', 0, 1, 0, true },
    { END_LATER, 0, 0, 0, 500, 0, 0, 'P', 'X', NOW + 500, 0, 0, false },
    { END_LATER, 2, 4, 0, 0, 0, 0, 'P', 'X', NOW, 0, 0, false },
    { END_LATER, 0, 0, 0, -9, 0, 0, 'P', 'X', NOW, 0, 0, false },
    { END_LATER, 0, 0, 0, INT64_MAX, 0, 0, 'P', 'X', NOW + DURATION_MAX_US, 0, 0, false },
    { END_RELEASE, 2, 4, 1, 500, 0, 0, 'P', 'X', PLACE, 0, 0, false },
    { END_CANCELLED, 2, 4, 1, 500, 0, 0, 'P', 'X', PLACE, 0, 0, false },
    /* Losses keep the call's place; only a call that was claimed by itself is charged to the limit.
     */
    { END_LOST, 0, 0, 0, 500, 0, 0, 'P', 'X', PLACE, 0, 1, true },
    { END_LOST, 2, 0, 1, 500, 1, 0, 'P', 'X', PLACE, 0, 1, true },
    { END_LOST, 0, 3, 0, 0, 1, 0, 'P', 'X', PLACE, 0, 1, true },
    { END_LOST, 0, 4, 0, 0, 1, 0, 'D', 'X', 0, 0, 1, true },
    { END_LOST, 0, 4, 0, 0, 0, 0, 'P', 'X', PLACE, 0, 1, true },
    { END_LOST, 0, 9, 0, 0, 1, 0, 'D', 'X', 0, 0, 1, true },
    { END_LOST, 0, 0, 0, 0, 0, 1, 'F', 'X', 0, 0, 1, true },
    { END_LOST, 0, 4, 0, 0, 1, 1, 'F', 'X', 0, 0, 1, true },
};

static char letter(enum pawl_state state)
{
    return "?P?CFDX?"[state];
}

static void check_row(const struct row *r, bool request)
{
    struct call_spec spec;
    struct attempt_of c = { &spec, { r->attempts, r->lost, 9 }, PLACE };
    call_spec_init(&spec);
    if (r->max_attempts)
        spec.max_attempts = r->max_attempts;
    struct attempt_end e = { .how = r->how,
                             .retry_in_us = r->retry_in,
                             .alone = r->alone,
                             .fail_lost = r->fail_lost,
                             .cancel_requested = request };
    word = MIDDLE;
    struct verdict v = call_after(&c, &e, NOW, &own);
    if (letter(v.next) != (request ? r->requested : r->next))
        FAIL("row %d, request %d: %s", (int)(r - rows), request, pawl_state_name(v.next));
    EQ_INT(v.counts.attempts, r->attempts + r->more_attempts);
    EQ_INT(v.counts.lost, r->lost + r->more_lost);
    EQ_INT(v.counts.redrives, 9);
    EQ_INT(v.count_attempt, r->count);
    if (v.next == PAWL_PENDING)
        EQ_INT(v.run_at_us, r->run_at);
    else
        EQ_INT(v.run_at_us, 0);
}

TEST(every_ending)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i], false);
        check_row(&rows[i], true);
    }
}

TEST(an_attempt_taken_back_is_late_from_its_deadline_on)
{
    struct call_spec spec;
    struct arena a;
    arena_init(&a, 4096);
    call_spec_init(&spec);
    spec.timeout_us = 1500 * MS_US;
    for (int late = 0; late < 2; late++)
        for (int timed = 0; timed < 2; timed++) {
            struct attempt_end e = { .how = END_LOST, .timed = timed };
            struct bytes error = BYTES("was lost");
            TRUE(attempt_timed_out(&a, &spec, NOW, NOW + spec.timeout_us - !late, &e, &error));
            EQ_INT(e.how, late && timed ? END_TIMEOUT : END_LOST);
            EQ_STR(error.data,
                   late && timed ? "took longer than its timeout of 1.5 s" : "was lost");
        }
    arena_release(&a);
}

/* ---- Backoff --------------------------------------------------------------------------------- */

TEST(backoff_grows_to_its_maximum)
{
    struct backoff b = { SEC_US, 300 * SEC_US, 2, 0 };
    static const int want_s[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300 };
    for (size_t i = 0; i < COUNT_OF(want_s); i++)
        EQ_INT(backoff_us(&b, (int)i + 1, &own), want_s[i] * SEC_US);
    EQ_INT(backoff_us(&b, 1000, &own), 300 * SEC_US);
}

TEST(backoff_at_its_edges)
{
    struct backoff flat = { 5, 300, 1, 0 }, zero = { 0, 300, 1000, 0 }, none = { 5, 0, 2, 0 };
    struct backoff huge = { DURATION_MAX_US, DURATION_MAX_US, 1000, 1 };
    struct backoff over = { 500, 300, 2, 0 }, slow = { 1000, 1000000, 1.5, 0 };
    EQ_INT(backoff_us(&flat, 1, &own), 5);
    EQ_INT(backoff_us(&flat, 1000, &own), 5);
    EQ_INT(backoff_us(&zero, 1, &own), 0);
    EQ_INT(backoff_us(&zero, 1000, &own), 0); /* 0 * infinity must not become a delay */
    EQ_INT(backoff_us(&none, 3, &own), 0);
    EQ_INT(backoff_us(&over, 1, &own), 300);
    EQ_INT(backoff_us(&slow, 3, &own), 2250);
    word = UINT64_MAX;
    LE_INT(backoff_us(&huge, 1000, &own), 2 * DURATION_MAX_US);
    GT_INT(backoff_us(&huge, 1000, &own), DURATION_MAX_US);
    word = 0;
    EQ_INT(backoff_us(&huge, 1000, &own), 0);
}

TEST(jitter_stays_in_its_share)
{
    struct backoff b = { SEC_US, 300 * SEC_US, 2, 0.1 };
    word = 0;
    EQ_INT(backoff_us(&b, 1, &own), 900000);
    word = MIDDLE;
    EQ_INT(backoff_us(&b, 1, &own), 1000000);
    word = UINT64_MAX;
    GE_INT(backoff_us(&b, 1, &own), 1099999);
    LE_INT(backoff_us(&b, 1, &own), 1100000);
    int64_t low = INT64_MAX, high = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t us = backoff_us(&b, 12, &world_real);
        low = MIN(low, us);
        high = MAX(high, us);
    }
    GE_INT(low, 270 * SEC_US);
    LE_INT(high, 330 * SEC_US);
    LT_INT(low, 280 * SEC_US);
    GT_INT(high, 320 * SEC_US);
}
