/*
 * duration.c - which types count as quick, from measured run times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/duration.h"

#include "check.h"

static int handler(struct pawl_call *c)
{
    (void)c;
    return 0;
}

/* a.run, b.fast, b.slow, c.run: handlers 0 to 3. */
static void make(struct registry *r, struct durations *d)
{
    struct pawl_err err;
    OK(registry_add(r, "b", "slow", handler, &err), &err);
    OK(registry_add(r, "a", "run", handler, &err), &err);
    OK(registry_add(r, "c", "run", handler, &err), &err);
    OK(registry_add(r, "b", "fast", handler, &err), &err);
    OK(registry_seal(r, &err), &err);
    OK(durations_init(d, r, &err), &err);
}

static void note(struct durations *d, int of, int64_t took_us, int n)
{
    for (int i = 0; i < n; i++)
        durations_note(d, of, took_us);
}

TEST(a_type_that_never_ran_is_slow)
{
    struct registry r = { 0 };
    struct durations d = { 0 };
    make(&r, &d);
    for (int i = 0; i < 4; i++)
        FALSE(durations_quick(&d, i));
    EQ_INT((int64_t)d.n_quick, 0);
    TRUE(durations_quick(&d, -1)); /* a call without a handler fails at once */
    note(&d, 0, 100, DURATION_SAMPLES_MIN - 1);
    FALSE(durations_quick(&d, 0));
    note(&d, 0, 100, 1);
    TRUE(durations_quick(&d, 0));
    EQ_INT((int64_t)d.n_quick, 1);
    TRUE(bytes_eq(d.quick[0], BYTES("a")));
    FALSE(durations_all_quick(&d));
    durations_release(&d);
    registry_release(&r);
}

TEST(a_slow_handler_makes_its_type_slow)
{
    struct registry r = { 0 };
    struct durations d = { 0 };
    make(&r, &d);
    note(&d, 1, 100, 64);
    TRUE(durations_quick(&d, 2)); /* the type's other handler, which never ran */
    note(&d, 2, 1000000, 1);
    FALSE(durations_quick(&d, 1));
    note(&d, 0, 100, 64);
    TRUE(durations_quick(&d, 0)); /* another type */
    durations_release(&d);
    registry_release(&r);
}

TEST(the_mean_follows_what_calls_take)
{
    struct registry r = { 0 };
    struct durations d = { 0 };
    make(&r, &d);
    note(&d, 0, 100, 64);
    note(&d, 0, 2 * QUICK_US, 200);
    FALSE(durations_quick(&d, 0));
    note(&d, 0, 100, 200);
    TRUE(durations_quick(&d, 0));
    /* One long call is enough, before it has ended. */
    durations_note_running(&d, 0, 1000000);
    FALSE(durations_quick(&d, 0));
    durations_release(&d);
    registry_release(&r);
}

TEST(all_types_quick)
{
    struct registry r = { 0 };
    struct durations d = { 0 };
    make(&r, &d);
    for (int i = 0; i < 4; i++)
        note(&d, i, 200, DURATION_SAMPLES_MIN);
    TRUE(durations_all_quick(&d));
    EQ_INT((int64_t)d.n_quick, 3);
    TRUE(d.mean_us > 100 && d.mean_us < 300);
    durations_release(&d);
    registry_release(&r);
}
