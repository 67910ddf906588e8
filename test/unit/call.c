/*
 * call.c - names of states, all transitions between them, and times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/macros.h"
#include "model/call.h"
#include "check.h"

TEST(words)
{
    static const char *const names[] = { "pending",     "processing", "completed", "failed",
                                         "dead_letter", "cancelled",  "expired" };
    for (int i = 0; i < 7; i++) {
        EQ_STR(pawl_state_name((enum pawl_state)(i + 1)), names[i]);
        EQ_INT(call_state_of(bytes_of(names[i])), i + 1);
        EQ_INT(pawl_state_ended((enum pawl_state)(i + 1)), i >= 2);
    }
    EQ_STR(pawl_state_name((enum pawl_state)0), "?");
    EQ_STR(pawl_state_name((enum pawl_state)8), "?");
    FALSE(pawl_state_ended((enum pawl_state)0));
    FALSE(pawl_state_ended((enum pawl_state)8));
    EQ_INT(call_state_of(BYTES("Pending")), 0);
    EQ_INT(call_state_of(BYTES("")), 0);
    EQ_INT(call_state_of(BYTES_NONE), 0);
}

TEST(words_for_waiting)
{
    static const char *const names[] = { NULL,    "time",   "retry",  "key",      "paused",
                                         "limit", "worker", "signal", "children", "timer" };
    for (int i = 0; i < 10; i++)
        EQ_STR(call_wait_name((enum call_wait)i), names[i]);
    EQ_STR(call_wait_name((enum call_wait)10), NULL);
}

/* From each row to each column: nothing, pending, processing, completed, failed, dead_letter,
 * cancelled, expired, and a number that is not a state. */
TEST(every_move)
{
    static const char *const may[] = {
        "010000000", /* does not exist yet */
        "011000110", /* pending */
        "010111100", /* processing */
        "000000000", /* completed */
        "010000000", /* failed */
        "010000000", /* dead_letter */
        "010000000", /* cancelled */
        "010000000", /* expired */
        "000000000", /* not a state */
    };
    for (int from = 0; from < 9; from++)
        for (int to = 0; to < 9; to++)
            if (call_may((enum pawl_state)from, (enum pawl_state)to) != (may[from][to] == '1'))
                FAIL("from %d to %d", from, to);
}

TEST(defaults)
{
    struct call_spec s;
    call_spec_init(&s);
    EQ_INT(s.max_attempts, 3);
    EQ_INT(s.max_lost, 5);
    EQ_INT(s.timeout_us, 60 * SEC_US);
    EQ_INT(s.keep_us, 0);
    EQ_INT(s.backoff.base_us, SEC_US);
    EQ_INT(s.backoff.max_us, 300 * SEC_US);
    TRUE(s.backoff.factor == 2 && s.backoff.jitter == 0.1);
    EQ_INT(s.priority, 0);
    EQ_INT(s.on_dead, PAWL_ON_DEAD_SKIP);
    TRUE(!s.id.data && !s.type.data && !s.method.data && !s.queue.data && !s.tags);
}

TEST(when_it_is_due_and_when_it_expires)
{
    static const struct {
        int64_t delay, run_at, in, at; /* requested */
        int64_t due, expires;          /* at 1000 */
    } rows[] = {
        { 0, 0, 0, 0, 1000, 0 },       { 5, 0, 0, 0, 1005, 0 },      { 0, 1007, 0, 0, 1007, 0 },
        { 0, 999, 0, 0, 1000, 0 },     { 0, -5, 0, 0, 1000, 0 },     { 0, 0, 5, 0, 1000, 1005 },
        { 0, 0, 0, 1007, 1000, 1007 }, { 0, 0, 0, 999, 1000, 1000 }, { 0, 0, 0, -5, 1000, 1000 },
        { 10, 0, 5, 0, 1010, 1005 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct call_spec s;
        int64_t due, expires;
        call_spec_init(&s);
        s.delay_us = rows[i].delay;
        s.run_at_us = rows[i].run_at;
        s.expires_in_us = rows[i].in;
        s.expires_at_us = rows[i].at;
        call_times(&s, 1000, &due, &expires);
        EQ_INT(due, rows[i].due);
        EQ_INT(expires, rows[i].expires);
    }
}

TEST(when_its_time_is_over)
{
    struct call_spec s;
    int64_t expires_us = 0;
    call_spec_init(&s);
    s.run_until_us = 7; /* of a call that has no run_timeout any more */
    call_run_until(&s, 100, &expires_us);
    EQ_INT(s.run_until_us, 0);
    EQ_INT(expires_us, 0);
    s.run_timeout_us = 50;
    call_run_until(&s, 100, &expires_us);
    EQ_INT(s.run_until_us, 150);
    EQ_INT(expires_us, 150);
    EQ_INT(call_expired_as(&s, 150), PAWL_CANCELLED);
    EQ_INT(call_expired_as(&s, 149), PAWL_EXPIRED);
    expires_us = 120;
    s.run_until_us = 130; /* it was submitted before it is accepted */
    call_run_until(&s, 100, &expires_us);
    EQ_INT(s.run_until_us, 130);
    EQ_INT(expires_us, 120);
    s.run_until_us = 90; /* never before it is due */
    call_run_until(&s, 100, &expires_us);
    EQ_INT(s.run_until_us, 100);
    EQ_INT(expires_us, 100);
}

TEST(why_it_waits)
{
    struct call c = { .state = PAWL_PENDING, .run_at_us = 1001 };
    EQ_INT(call_waiting_for(&c, 1000, (struct call_where){ 0 }), WAIT_TIME);
    EQ_INT(call_waiting_for(&c, 1000, (struct call_where){ .queue_paused = true }), WAIT_TIME);
    c.counts.lost = 1;
    EQ_INT(call_waiting_for(&c, 1000, (struct call_where){ 0 }), WAIT_TIME);
    c.counts.attempts = 1;
    EQ_INT(call_waiting_for(&c, 1000, (struct call_where){ 0 }), WAIT_RETRY);
    EQ_INT(call_waiting_for(&c, 1001, (struct call_where){ 0 }), WAIT_WORKER);
    EQ_INT(call_waiting_for(&c, 1001, (struct call_where){ .queue_paused = true }), WAIT_PAUSED);
    for (int state = PAWL_PROCESSING; state <= PAWL_EXPIRED; state++) {
        c.state = (enum pawl_state)state;
        EQ_INT(call_waiting_for(&c, 1000, (struct call_where){ .queue_paused = true }), WAIT_NONE);
    }
}

TEST(a_lost_call_is_retried_alone)
{
    FALSE(counts_retry_alone((struct attempt_counts){ .attempts = 5, .redrives = 5 }));
    TRUE(counts_retry_alone((struct attempt_counts){ .lost = 1 }));
}
