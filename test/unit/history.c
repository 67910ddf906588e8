/*
 * history.c - histories in which one promise is broken, and the checker must find it.
 *
 * Every case starts with the same small correct history, and changes one thing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "history.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

#define MS INT64_C(1000)
#define SEC INT64_C(1000000)

/* Indexes in the lists, before they are sorted. */
enum { PAY, MOVE, REFUSED, COUNT1, COUNT2, POISON, CALLS };
enum { ROW_PAY, ROW_MOVE, ROW_REFUSED, ROW_COUNT1, ROW_COUNT2, ROW_POISON, ROW_SENT };

static struct history h;

/* A request sent at `ms` and answered 10 ms later. */
static void asked(size_t call, int node, int64_t ms, int status, int state, int64_t result)
{
    history_add_ask(&h, &(struct history_ask){ .call = call,
                                               .node = node,
                                               .sent_us = h.began_us + ms * MS,
                                               .answered_us = h.began_us + (ms + 10) * MS,
                                               .status = status,
                                               .state = state,
                                               .result = result });
}

static void call(const char *id, enum history_kind kind, const char *key, const char *to,
                 int64_t amount)
{
    struct history_call c = { .kind = kind, .amount = amount };
    snprintf(c.id, sizeof c.id, "%s", id);
    snprintf(c.key, sizeof c.key, "%s", key);
    snprintf(c.to, sizeof c.to, "%s", to);
    history_add_call(&h, &c);
}

struct ends {
    const char *id, *method, *key;
    int64_t key_no;
    int state;
    int64_t result;
    int64_t ms; /* began then, and took 2 ms */
};

static void row(struct ends e)
{
    struct history_row r = { .seq = (int64_t)h.n_rows + 1,
                             .state = e.state,
                             .key_no = e.key_no,
                             .result = e.result,
                             .claimed_us = h.began_us + e.ms * MS,
                             .started_us = h.began_us + e.ms * MS,
                             .finished_us = h.began_us + (e.ms + 2) * MS };
    snprintf(r.id, sizeof r.id, "%s", e.id);
    snprintf(r.method, sizeof r.method, "%s", e.method);
    snprintf(r.key, sizeof r.key, "%s", e.key);
    snprintf(r.node, sizeof r.node, "n0");
    history_add_row(&h, &r);
}

static void lost(int64_t seq, int no, const char *node, int64_t ms)
{
    struct history_attempt t = { .seq = seq, .no = no, .finished_us = h.began_us + ms * MS };
    snprintf(t.node, sizeof t.node, "%s", node);
    history_add_attempt(&h, &t);
}

static void fault(enum history_fault_kind kind, int node, int64_t ms, int64_t until_ms)
{
    history_add_fault(&h, &(struct history_fault){ .kind = kind,
                                                   .node = node,
                                                   .at_us = h.began_us + ms * MS,
                                                   .until_us = h.began_us + until_ms * MS });
}

static void make_calls(void)
{
    call("pay", HISTORY_ADD, "w1", "", 10);
    call("move", HISTORY_TRANSFER, "w1", "w2", 4);
    call("refused", HISTORY_ADD, "w1", "", -9);
    call("count1", HISTORY_COUNT, "", "c", 0);
    call("count2", HISTORY_COUNT, "", "c", 0);
    call("poison", HISTORY_POISON, "", "", 2);
    asked(PAY, 0, 100, 200, PAWL_COMPLETED, 10);
    asked(PAY, 1, 200, 200, PAWL_COMPLETED, 10);
    h.asks[1].duplicate = true;
    asked(MOVE, 1, 300, 200, PAWL_COMPLETED, 6);
    asked(REFUSED, 0, 400, 200, PAWL_FAILED, HISTORY_NONE);
    snprintf(h.asks[3].error, HISTORY_TEXT, "balance 6 is not enough for -9");
    asked(COUNT1, 0, 500, 202, PAWL_PENDING, HISTORY_NONE);
    asked(COUNT2, 0, 520, 200, PAWL_COMPLETED, 1);
    asked(POISON, 0, 540, 202, PAWL_PENDING, HISTORY_NONE);
}

static void make_rows(void)
{
    row((struct ends){ "pay", "add", "w1", 1, PAWL_COMPLETED, 10, 102 });
    row((struct ends){ "move", "transfer", "w1", 2, PAWL_COMPLETED, 6, 302 });
    row((struct ends){ "refused", "add", "w1", 3, PAWL_FAILED, HISTORY_NONE, 402 });
    row((struct ends){ "count1", "count", "", 0, PAWL_COMPLETED, 2, 5500 });
    row((struct ends){ "count2", "count", "", 0, PAWL_COMPLETED, 1, 522 });
    row((struct ends){ "poison", "crash", "", 0, PAWL_DEAD_LETTER, HISTORY_NONE, 4000 });
    row((struct ends){ "move.1", "add", "w2", 1, PAWL_COMPLETED, 4, 306 });
    snprintf(h.rows[ROW_REFUSED].error, HISTORY_TEXT, "balance 6 is not enough for -9");
    snprintf(h.rows[ROW_SENT].parent, HISTORY_ID, "move");
    history_add_wallet(&h, &(struct history_sum){ "w1", 6 });
    history_add_wallet(&h, &(struct history_sum){ "w2", 4 });
    history_add_counter(&h, &(struct history_sum){ "c", 2 });
}

/* n0 is frozen while it holds count1, and dies of a poison call twice. */
static void make_faults(void)
{
    fault(HISTORY_FREEZE, 0, 510, 2500);
    fault(HISTORY_DEATH, 1, 3000, 3000);
    fault(HISTORY_DEATH, 2, 3500, 3500);
    lost(4, 1, "n0", 1600);
    lost(6, 1, "n1", 3100);
    lost(6, 2, "n2", 4000);
    h.rows[ROW_COUNT1].lost = 1;
    h.rows[ROW_POISON].lost = 2;
}

static void begin(void)
{
    history_init(&h);
    h.grace_us = SEC;
    h.slack_us = SEC / 2;
    make_calls();
    make_rows();
    make_faults();
}

/* Assert that only this promise is broken, and that the finding names the cause. */
static void finds(int promise, const char *about)
{
    int n = history_check(&h);
    for (int i = 0; i < h.n_found; i++)
        printf("%s\n", h.found[i]);
    GT_INT(n, 0);
    GT_INT(h.broken[promise], 0);
    EQ_INT(n, h.broken[promise]);
    HAS_STR(h.found[0], about);
    history_release(&h);
}

TEST(all_is_well)
{
    begin();
    int n = history_check(&h);
    for (int i = 0; i < h.n_found; i++)
        printf("%s\n", h.found[i]);
    EQ_INT(n, 0);
    history_release(&h);
}

TEST(nothing_at_all_is_well)
{
    history_init(&h);
    EQ_INT(history_check(&h), 0);
    history_release(&h);
}

/* ---- 1 --------------------------------------------------------------------------------------- */

TEST(promise_1_accepted_and_gone)
{
    begin();
    call("gone", HISTORY_COUNT, "", "c", 0);
    asked(CALLS, 2, 600, 202, PAWL_PENDING, HISTORY_NONE);
    finds(1, "gone was accepted at 0.610 s");
}

TEST(promise_1_what_was_not_accepted_may_be_missing)
{
    begin();
    call("lost", HISTORY_COUNT, "", "c", 0);
    call("busy", HISTORY_COUNT, "", "c", 0);
    call("unknown", HISTORY_COUNT, "", "c", 0);
    asked(CALLS, 2, 600, 0, 0, HISTORY_NONE);
    asked(CALLS + 1, 2, 600, 503, 0, HISTORY_NONE);
    asked(CALLS + 2, 2, 600, 504, 0, HISTORY_NONE);
    EQ_INT(history_check(&h), 0);
    history_release(&h);
}

TEST(promise_1_stored_as_something_else)
{
    begin();
    snprintf(h.rows[ROW_COUNT2].method, HISTORY_NAME, "crash");
    finds(1, "count2 is count of \"\" and is stored as crash");
}

/* ---- 2 --------------------------------------------------------------------------------------- */

TEST(promise_2_a_call_that_nobody_asked_for)
{
    begin();
    row((struct ends){ "ghost", "count", "", 0, PAWL_COMPLETED, 3, 700 });
    finds(2, "ghost");
}

TEST(promise_2_an_id_that_is_there_twice)
{
    begin();
    call("twice", HISTORY_ADD, "w3", "", 0);
    row((struct ends){ "twice", "add", "w3", 1, PAWL_COMPLETED, 0, 700 });
    row((struct ends){ "twice", "add", "w3", 2, PAWL_COMPLETED, 0, 710 });
    EQ_INT(history_check(&h) > 0, 1);
    GT_INT(h.broken[2], 0);
    HAS_STR(h.found[0], "twice is there twice");
    history_release(&h);
}

TEST(promise_2_a_transfer_that_sent_nothing)
{
    begin();
    h.n_rows--;
    h.n_wallets--;
    EQ_INT(history_check(&h) > 0, 1);
    HAS_STR(h.found[0], "move (transfer, completed) sent 0 calls");
    EQ_INT(h.broken[2], 2); /* and the total of money is wrong */
    history_release(&h);
}

TEST(promise_2_a_transfer_that_sent_twice)
{
    begin();
    row((struct ends){ "move.2", "add", "w2", 2, PAWL_COMPLETED, 8, 320 });
    snprintf(h.rows[ROW_SENT + 1].parent, HISTORY_ID, "move");
    h.wallets[1].n = 8;
    finds(2, "move (transfer, completed) sent 2 calls");
}

TEST(promise_2_a_transfer_to_somebody_else)
{
    begin();
    snprintf(h.rows[ROW_SENT].key, HISTORY_NAME, "w3");
    snprintf(h.wallets[1].name, HISTORY_NAME, "w3");
    finds(2, "move sent add to \"w3\"");
}

TEST(promise_2_an_effect_that_landed_twice)
{
    begin();
    h.asks[0].result = h.asks[1].result = h.rows[ROW_PAY].result = 20;
    h.asks[2].result = h.rows[ROW_MOVE].result = 16;
    h.rows[ROW_REFUSED].state = h.asks[3].state = PAWL_COMPLETED;
    h.rows[ROW_REFUSED].result = h.asks[3].result = 7;
    h.rows[ROW_REFUSED].error[0] = h.asks[3].error[0] = '\0';
    h.wallets[0].n = 7;
    finds(2, "wallet w1: call pay (number 1) left 20, and 0 with 10 is 10");
}

TEST(promise_2_a_balance_that_is_not_what_its_calls_left)
{
    begin();
    h.wallets[0].n = 5;
    h.wallets[1].n = 5;
    finds(2, "wallet w1 holds 5, and its calls left 6");
}

TEST(promise_2_refused_with_money_enough)
{
    begin();
    h.calls[REFUSED].amount = -6;
    finds(2, "call refused was refused with 6 at -6");
}

TEST(promise_2_money_out_of_nowhere)
{
    begin();
    history_add_wallet(&h, &(struct history_sum){ "w9", 3 });
    finds(2, "10 was paid in, and the wallets hold 13");
}

TEST(promise_2_a_counter_that_counted_once_too_often)
{
    begin();
    h.counters[0].n = 3;
    finds(2, "counter c is at 3, and 2 of its calls completed");
}

TEST(promise_2_two_calls_that_counted_the_same)
{
    begin();
    h.rows[ROW_COUNT1].result = 1;
    finds(2, "counter c: call count");
}

TEST(promise_2_a_counter_of_calls_that_did_not_complete)
{
    begin();
    history_add_counter(&h, &(struct history_sum){ "d", 1 });
    finds(2, "counter d is at 1");
}

/* ---- 3 --------------------------------------------------------------------------------------- */

TEST(promise_3_a_duplicate_with_another_result)
{
    begin();
    h.asks[1].result = 11;
    finds(3, "call pay: n1 answered completed 11");
}

TEST(promise_3_a_duplicate_with_another_end)
{
    begin();
    h.asks[1].state = PAWL_FAILED;
    finds(3, "call pay: n1 answered failed");
}

TEST(promise_3_a_refusal_in_other_words)
{
    begin();
    snprintf(h.asks[3].error, HISTORY_TEXT, "balance 5 is not enough for -9");
    finds(3, "call refused");
}

TEST(promise_3_an_end_that_was_taken_back)
{
    begin();
    h.asks[1].state = PAWL_PROCESSING;
    h.asks[1].status = 202;
    finds(3, "call pay had ended at 0.110 s and was processing on n1");
}

TEST(promise_3_an_id_that_was_new_twice)
{
    begin();
    h.asks[1].duplicate = false;
    finds(3, "call pay was new to n0 at 0.110 s and to n1 at 0.210 s");
}

TEST(promise_3_two_that_crossed_and_both_were_new)
{
    begin();
    h.asks[1].duplicate = false;
    h.asks[1].sent_us = h.asks[0].sent_us;
    finds(3, "call pay was new to");
}

TEST(promise_3_an_id_with_another_meaning)
{
    begin();
    asked(PAY, 2, 600, 409, 0, HISTORY_NONE);
    asked(PAY, 2, 620, 503, 0, HISTORY_NONE);
    asked(PAY, 2, 640, 202, PAWL_PENDING, HISTORY_NONE);
    h.asks[7].other = h.asks[8].other = h.asks[9].other = true;
    finds(3, "call pay with another meaning was answered 202 by n2 at 0.650 s");
}

TEST(promise_3_a_conflict_with_itself)
{
    begin();
    asked(PAY, 2, 600, 409, 0, HISTORY_NONE);
    finds(3, "call pay was answered 409");
}

/* ---- 4 --------------------------------------------------------------------------------------- */

TEST(promise_4_a_number_left_out)
{
    begin();
    h.rows[ROW_REFUSED].key_no = 4;
    finds(4, "key w1: call refused has the number 4 at place 3");
}

TEST(promise_4_two_at_a_time)
{
    begin();
    h.rows[ROW_MOVE].started_us = h.rows[ROW_PAY].finished_us - 1;
    finds(4, "key w1: call move began at");
}

/* Another add of 10 that was requested when `pay` was already accepted, and ran before it. */
TEST(promise_4_overtaken)
{
    begin();
    h.calls[PAY].amount = 4;
    h.rows[ROW_PAY].key_no = 2;
    h.rows[ROW_MOVE].key_no = 3;
    h.rows[ROW_REFUSED].key_no = 4;
    call("late", HISTORY_ADD, "w1", "", 6);
    asked(CALLS, 2, 120, 200, PAWL_COMPLETED, 6);
    row((struct ends){ "late", "add", "w1", 1, PAWL_COMPLETED, 6, 90 });
    finds(4, "key w1: call pay was accepted at 0.110 s, before call late was asked for at 0.120 s");
}

TEST(promise_4_who_came_at_the_same_time_may_be_first)
{
    begin();
    h.calls[PAY].amount = 4;
    h.rows[ROW_PAY].key_no = 2;
    h.rows[ROW_MOVE].key_no = 3;
    h.rows[ROW_REFUSED].key_no = 4;
    call("late", HISTORY_ADD, "w1", "", 6);
    asked(CALLS, 2, 105, 200, PAWL_COMPLETED, 6);
    row((struct ends){ "late", "add", "w1", 1, PAWL_COMPLETED, 6, 90 });
    EQ_INT(history_check(&h), 0);
    history_release(&h);
}

/* A call that a transfer sent is stored when the transfer has been answered. */
TEST(promise_4_overtaking_what_was_sent)
{
    begin();
    call("late", HISTORY_ADD, "w2", "", 0);
    asked(CALLS, 2, 320, 200, PAWL_COMPLETED, 0);
    row((struct ends){ "late", "add", "w2", 1, PAWL_COMPLETED, 0, 90 });
    h.rows[ROW_SENT].key_no = 2;
    finds(4, "key w2: call move.1 was accepted at 0.310 s, before call late");
}

/* ---- 5 --------------------------------------------------------------------------------------- */

TEST(promise_5_the_outcome_of_an_owner_who_had_lost_it)
{
    begin();
    h.rows[ROW_COUNT1].claimed_us = h.began_us + 505 * MS;
    finds(5, "call count1 was taken from n0 at 1.600 s, and its outcome of 5.502 s");
}

/* ---- 6 --------------------------------------------------------------------------------------- */

TEST(promise_6_a_call_that_has_not_ended)
{
    begin();
    h.rows[ROW_COUNT1].state = 0;
    h.counters[0].n = 1;
    finds(6, "call count1");
}

TEST(promise_6_something_is_left)
{
    begin();
    h.left = 2;
    finds(6, "2 rows");
}

TEST(promise_6_a_node_that_lived_was_taken_for_dead)
{
    begin();
    lost(5, 1, "n2", 520);
    h.rows[ROW_COUNT2].lost = 1;
    finds(6, "call count2 was taken from n2 at 0.520 s");
}

TEST(promise_6_a_database_that_was_away_is_no_reason)
{
    begin();
    fault(HISTORY_AWAY, -1, 300, 500);
    lost(5, 1, "n2", 520);
    h.rows[ROW_COUNT2].lost = 1;
    finds(6, "call count2 was taken from n2 at 0.520 s");
}

/* The last fault is n2's at 3.5 s; the grace and 2 s later is 6.5 s, and other faults and a slow
 * machine add a few seconds. */
TEST(promise_6_taken_back_much_too_late)
{
    begin();
    h.attempts[2].finished_us = h.began_us + 20 * SEC;
    finds(6, "call poison was taken from n2 at 20.000 s, whose last fault was over at 3.500 s");
}

/* ---- 7 --------------------------------------------------------------------------------------- */

TEST(promise_7_poison_that_killed_once_too_often)
{
    begin();
    h.calls[POISON].amount = 1;
    finds(7, "poison poison ended dead_letter after 2 deaths instead of dead_letter after 1");
}

TEST(promise_7_poison_that_ended_well)
{
    begin();
    h.rows[ROW_POISON].state = PAWL_COMPLETED;
    finds(7, "poison poison ended completed");
}

TEST(promise_7_a_good_call_that_went_with_it)
{
    begin();
    h.rows[ROW_COUNT1].state = PAWL_DEAD_LETTER;
    h.counters[0].n = 1;
    finds(7, "call count1 ended dead_letter");
}

TEST(promise_7_a_good_call_that_failed_of_something_else)
{
    begin();
    h.asks[3].error[0] = h.rows[ROW_REFUSED].error[0] = '\0';
    finds(7, "call refused ended failed");
}

TEST(promise_7_charged_without_an_attempt)
{
    begin();
    h.rows[ROW_PAY].lost = 1;
    finds(7, "call pay was charged 1 lost attempts, and 0 are recorded");
}

TEST(promise_7_charged_twice_for_one_death)
{
    begin();
    lost(4, 2, "n0", 1600);
    h.rows[ROW_COUNT1].lost = 2;
    finds(7, "call count1 was charged twice at 1.600 s");
}

TEST(promise_7_a_node_that_aborted_of_something_else)
{
    begin();
    fault(HISTORY_DEATH, 2, 7000, 7000);
    finds(7, "3 nodes aborted, and poison was lost 2 times");
}

/* ---- The list of findings -------------------------------------------------------------------- */

TEST(more_findings_than_are_shown_are_counted)
{
    begin();
    for (int i = 0; i < HISTORY_SHOWN + 5; i++) {
        char id[20];
        snprintf(id, sizeof id, "gone%d", i);
        call(id, HISTORY_COUNT, "", "c", 0);
        asked((size_t)(CALLS + i), 0, 600, 202, PAWL_PENDING, HISTORY_NONE);
    }
    EQ_INT(history_check(&h), HISTORY_SHOWN + 5);
    EQ_INT(h.n_found, HISTORY_SHOWN);
    EQ_INT(h.broken[1], HISTORY_SHOWN + 5);
    history_release(&h);
}

TEST(clients_are_put_together)
{
    struct history all;
    begin();
    history_init(&all);
    all.began_us = h.began_us;
    history_add_all(&all, &h);
    history_add_all(&all, &h);
    EQ_INT((int64_t)all.n_calls, 2 * CALLS);
    EQ_INT((int64_t)all.asks[7].call, CALLS);
    EQ_INT((int64_t)all.n_faults, 6);
    history_release(&all);
    history_release(&h);
}
