/*
 * workflow.c - names and kinds of steps, and by what a wait is settled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/macros.h"
#include "check.h"
#include "model/workflow.h"

static struct arena arena;

#define STORED(want, name, nth)                                                                    \
    do {                                                                                           \
        struct bytes got_ = step_name(&arena, BYTES(name), nth);                                   \
        int64_t back_;                                                                             \
        EQ_BYTES(got_.data, got_.len, want, strlen(want));                                         \
        struct bytes plain_ = step_name_plain(got_, &back_);                                       \
        EQ_BYTES(plain_.data, plain_.len, name, strlen(name));                                     \
        EQ_INT(back_, nth);                                                                        \
    } while (0)

TEST(a_name_is_stored_with_the_number_of_its_use)
{
    arena_init(&arena, 1 << 20);
    STORED("charge", "charge", 1);
    STORED("charge#2", "charge", 2);
    STORED("a b/c#10000", "a b/c", 10000);
    STORED("undo:charge#3", "undo:charge", 3);
    arena_release(&arena);
}

TEST(what_is_no_number_of_a_use_is_no_stored_name)
{
    static const char *const bad[] = { "a#",    "a#0",  "a#x",  "a#!",   "a#2x",
                                       "a# 2",  "a#-1", "#",    "a#02",  "a#10001",
                                       "a#1e3", "a#2#", "a#+2", "a#\n2", "a#99999999999999999999" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t nth = -1;
        step_name_plain(bytes_of(bad[i]), &nth);
        if (nth != 0)
            FAIL("%s: use %lld, not 0", bad[i], (long long)nth);
    }
}

#define CHILD(want, generation, nth)                                                               \
    do {                                                                                           \
        struct bytes got_ =                                                                        \
            step_child_id(&arena, BYTES("order-7"), generation, BYTES("ship"), nth);               \
        EQ_BYTES(got_.data, got_.len, want, strlen(want));                                         \
    } while (0)

TEST(the_id_of_a_child_always_has_its_number)
{
    arena_init(&arena, 1 << 20);
    CHILD("order-7.ship#1", 1, 1);
    CHILD("order-7.ship#12", 1, 12);
    CHILD("order-7~2.ship#1", 2, 1);
    CHILD("order-7~100.ship#3", 100, 3);
    arena_release(&arena);
}

TEST(names_have_an_edge)
{
    char longest[STEP_NAME_LEN_MAX + 1];
    memset(longest, 'x', sizeof longest);
    EQ_PTR(step_name_fault((struct bytes){ longest, STEP_NAME_LEN_MAX }), NULL);
    EQ_STR(step_name_fault((struct bytes){ longest, STEP_NAME_LEN_MAX + 1 }),
           "is longer than 100 bytes");
    EQ_STR(step_name_fault(BYTES("charge#2")), "has \"#\", which separates the number of its use");
    EQ_PTR(step_name_fault(BYTES("caf\xc3\xa9")), NULL);
    TRUE(step_name_fault(BYTES("")));
    TRUE(step_name_fault(BYTES("a\nb")));
    TRUE(step_name_fault(BYTES("\xff")));
    TRUE(step_name_fault(BYTES_NONE));
}

TEST(kinds_and_what_came_of_a_step_have_names)
{
    static const char *const kinds[] = { "run",  "sleep",  "signal", "child",
                                         "join", "select", "value",  "undo" };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        EQ_STR(step_kind_name((int64_t)i + 1), kinds[i]);
        EQ_INT(step_kind_of(bytes_of(kinds[i])), i + 1);
    }
    EQ_PTR(step_kind_name(0), NULL);
    EQ_PTR(step_kind_name(9), NULL);
    EQ_INT(step_kind_of(BYTES("runs")), 0);
    EQ_STR(step_status_name(STEP_BEGUN), "running");
    EQ_STR(step_status_name(STEP_REFUSED), "failed");
    EQ_STR(step_status_name(STEP_TIMEOUT), "timeout");
    EQ_PTR(step_status_name(8), NULL);
    FALSE(step_ended(STEP_RETRYING));
    TRUE(step_ended(STEP_COMPLETED) && step_ended(STEP_FAILED) && step_ended(STEP_TIMEOUT));
}

TEST(the_first_to_come_settles_a_wait)
{
    const struct wait_seen signal = { .signal = true, .until_us = 10 };
    const struct wait_seen time = { .until_us = 10 };
    const struct wait_seen for_ever = { 0 };
    const struct wait_seen one_left = { .children = 3, .left = 1 };
    const struct wait_seen none_left = { .children = 3 };
    const struct wait_seen any_ended = { .children = 3, .left = 2, .any = true };
    const struct wait_seen none_ended = { .children = 3, .left = 3, .any = true };
    EQ_INT(wait_settled(&signal, 9), WAIT_BY_SIGNAL);
    EQ_INT(wait_settled(&signal, 10), WAIT_BY_SIGNAL); /* it came at the instant of the timeout */
    EQ_INT(wait_settled(&time, 9), WAIT_BY_NOTHING);
    EQ_INT(wait_settled(&time, 10), WAIT_BY_TIME);
    EQ_INT(wait_settled(&for_ever, INT64_MAX), WAIT_BY_NOTHING);
    EQ_INT(wait_settled(&one_left, 1), WAIT_BY_NOTHING);
    EQ_INT(wait_settled(&none_left, 1), WAIT_BY_CHILDREN);
    EQ_INT(wait_settled(&any_ended, 1), WAIT_BY_CHILDREN);
    EQ_INT(wait_settled(&none_ended, 1), WAIT_BY_NOTHING);
}
