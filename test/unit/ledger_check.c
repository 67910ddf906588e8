/*
 * ledger_check.c - every rule of store/ledger/check.c, broken one at a time: BROKEN when the row
 * was read, an abort when it is about to be written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "check.h"
#include "store/ledger/cache.h"

#define CALLS 4

/* A lease with a run of two calls of a key, a call without a key, and a call that waits for the
 * same key; all of them correct. */
struct sample {
    struct ledger ledger;
    struct led_cache cache;
    struct led_call call[CALLS]; /* the last one waits */
    struct held held[3];
    unsigned char state[3];
    struct led_link run[3];
    struct led_lease lease;
    struct led_key key;
    struct led_outcome outcome;
};

static void call_fill(struct sample *s, size_t i)
{
    struct led_call *it = &s->call[i];
    *it = (struct led_call){ .seq = (int64_t)i + 1,
                             .spec.id = BYTES("id"),
                             .spec.key = i == 1 ? BYTES_NONE : BYTES("k"),
                             .created_us = 1,
                             .own_lane = 1,
                             .lease = i < 3 ? &s->lease : NULL };
    it->now = (struct led_stand){ .place = i < 3 ? AT_HELD : AT_LINE,
                                  .state = i < 3 ? PAWL_PROCESSING : PAWL_PENDING,
                                  .lane = 1,
                                  .run_at_us = 1,
                                  .pos = i == 1  ? 0
                                         : i < 3 ? ((int64_t)i + 1) * LINE_STEP
                                                 : LINE_FRESH + 4,
                                  .key_no = i == 1 || i == 3 ? 0 : (int64_t)i + 1 };
    it->was = it->now;
    s->cache.calls[(uint64_t)it->seq % LED_BUCKETS] = it;
}

static void sample_fill(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->ledger.tx = &s->cache;
    for (size_t i = 0; i < CALLS; i++)
        call_fill(s, i);
    for (size_t i = 0; i < 3; i++) {
        s->held[i] = (struct held){ .seq = (int64_t)i + 1, .run_at_us = 1, .lane = 1 };
        s->run[i] = (struct led_link){ -1, -1 };
        if (i == 1)
            continue;
        s->held[i].key = 1;
        s->held[i].key_no = (int64_t)i + 1;
        s->held[i].pos = s->held[i].key_no * LINE_STEP;
    }
    s->run[0].behind = 2;
    s->run[2].before = 0;
    s->lease = (struct led_lease){ .node = BYTES("n"),
                                   .owner = BYTES("n"),
                                   .token = { { 1 } },
                                   .claimed_us = 1,
                                   .rev = 1,
                                   .n = 3,
                                   .named = 3,
                                   .left = 3,
                                   .held = s->held,
                                   .state = s->state,
                                   .run = s->run,
                                   .fresh = true,
                                   .dirty = true,
                                   .locked = true };
    s->key = (struct led_key){ .name = BYTES("k"),
                               .got = true,
                               .turn = KEY_HELD,
                               .head = 1,
                               .next_no = 4,
                               .held = 2,
                               .waiting = 1 };
    s->outcome = (struct led_outcome){ .finished_us = 1, .keep_until_us = 2 };
    s->cache.first_lease = &s->lease;
    s->cache.first_key = &s->key;
}

/* Checks all of it, as loaded or as written. */
static enum pawl_status look(struct sample *s, enum led_when when, struct pawl_err *err)
{
    enum pawl_status st = led_lease_check(&s->ledger, &s->lease, when, err);
    for (size_t i = 0; i < CALLS && st == PAWL_OK; i++)
        st = led_call_check(&s->call[i], when, err);
    if (st == PAWL_OK)
        st = led_key_check(&s->key, when, err);
    if (st == PAWL_OK && when == LED_DECIDED)
        led_check_all(&s->ledger);
    return st;
}

/* ---- Violations ------------------------------------------------------------------------------ */

enum { BOTH, WRITTEN_ONLY };
struct mistake {
    const char *says; /* part of the message */
    void (*make)(struct sample *s);
    int seen;
};
#define MISTAKE(name, change)                                                                      \
    static void name(struct sample *s)                                                             \
    {                                                                                              \
        change;                                                                                    \
    }

MISTAKE(no_number, s->call[3].seq = 0)
MISTAKE(counts_below_none, s->call[3].now.counts.lost = -1)
MISTAKE(no_lane, s->call[3].now.lane = 0)
MISTAKE(line_without_key, s->call[3].spec.key = BYTES_NONE)
MISTAKE(line_without_place, s->call[3].now.pos = 0)
MISTAKE(later_with_place, s->call[3].now.place = AT_DELAYED)
MISTAKE(ready_with_place, (s->call[3].now.place = AT_READY, s->call[3].spec.key = BYTES_NONE))
MISTAKE(waits_and_processes, s->call[3].now.state = PAWL_PROCESSING)
MISTAKE(waits_and_ended, s->call[3].now.outcome = &s->outcome)
MISTAKE(stands_nowhere, s->call[3].now.place = AT_NONE)
MISTAKE(expires_retried, (s->call[3].now.expires_us = 9, s->call[3].now.counts.redrives = 1))
MISTAKE(too_important, s->call[3].now.priority = 1001)
MISTAKE(held_and_pending, s->call[0].now.state = PAWL_PENDING)
MISTAKE(held_without_number, s->call[0].now.key_no = 0)
MISTAKE(number_without_key, s->call[1].now.key_no = 1)
MISTAKE(ended_without_outcome,
        (s->call[3].now.place = AT_ENDED, s->call[3].now.state = PAWL_COMPLETED))
MISTAKE(ended_and_pending, (s->call[3].now.place = AT_ENDED, s->call[3].now.outcome = &s->outcome))
MISTAKE(held_otherwise, s->call[0].now.counts.attempts = 1)
MISTAKE(held_by_another, (s->call[0].seq = 9))
MISTAKE(left_and_held, (s->call[3].left = &s->lease, s->call[3].seq = 1))
MISTAKE(requested_and_waiting, s->call[3].now.cancel_requested = true)
MISTAKE(new_without_id, (s->call[3].fresh = true, s->call[3].spec.id = BYTES_NONE))

MISTAKE(names_none, s->lease.n = 0)
MISTAKE(no_rev, s->lease.rev = 0)
MISTAKE(no_owner, s->lease.owner = BYTES_NONE)
MISTAKE(no_token, s->lease.token = (struct token){ { 0 } })
MISTAKE(out_of_order, s->held[1].seq = 1)
MISTAKE(listed_without_lane, s->held[1].lane = 0)
MISTAKE(listed_number_without_key, s->held[1].key_no = 1)
MISTAKE(linked_one_way, s->run[2].before = -1)
MISTAKE(run_backwards, s->held[0].pos = s->held[2].pos)
MISTAKE(miscounted, s->lease.left = 2)
MISTAKE(behind_ended_first, (s->state[2] = HELD_ENDED, s->lease.left = 2,
                             s->call[2].now.outcome = &s->outcome, s->call[2].now.place = AT_ENDED,
                             s->call[2].now.state = PAWL_COMPLETED, s->call[2].lease = NULL))
MISTAKE(none_left, (memset(s->state, HELD_ENDED, 3), s->lease.left = 0))
MISTAKE(lists_what_waits, (s->call[0].now = s->call[3].now, s->call[0].lease = NULL))

MISTAKE(waiting_below_none, s->key.waiting = -1)
MISTAKE(later_below_none, s->key.later = -1)
MISTAKE(held_by_nobody, s->key.held = 0)
MISTAKE(idle_and_held, s->key.turn = KEY_IDLE)
MISTAKE(no_next_number, s->key.next_no = 0)
MISTAKE(offered_nothing, (s->key.turn = KEY_OFFERED, s->key.held = s->key.head = 0))
MISTAKE(blocked_by_nothing, (s->key.turn = KEY_BLOCKED, s->key.held = 0))
MISTAKE(turn_unknown, (s->key.turn = (enum led_turn)7, s->key.held = 0))
MISTAKE(waits_and_none_offered, (s->key.turn = KEY_IDLE, s->key.held = 0, s->key.written = true))

static const struct mistake mistakes[] = {
    { "not above 0", no_number, BOTH },
    { "attempt counts are below 0", counts_below_none, BOTH },
    { "in no lane", no_lane, BOTH },
    { "has a place and no key", line_without_key, BOTH },
    { "is not in the line", line_without_place, BOTH },
    { "is not in the line", later_with_place, BOTH },
    { "has a place and no key", ready_with_place, BOTH },
    { "is not pending", waits_and_processes, BOTH },
    { "waits and has an outcome", waits_and_ended, BOTH },
    { "its place is unknown", stands_nowhere, BOTH },
    { "expiry", expires_retried, BOTH },
    { "priority", too_important, BOTH },
    { "is not processing", held_and_pending, BOTH },
    { "a call that was claimed", held_without_number, BOTH },
    { "a call that was claimed", number_without_key, BOTH },
    { "ended at no time", ended_without_outcome, BOTH },
    { "has not ended", ended_and_pending, BOTH },
    { "with other values", held_otherwise, WRITTEN_ONLY },
    { "does not hold it", held_by_another, WRITTEN_ONLY },
    { "still holds it", left_and_held, WRITTEN_ONLY },
    { "a cancel is requested", requested_and_waiting, WRITTEN_ONLY },
    { "has no id", new_without_id, WRITTEN_ONLY },
    { "names no call", names_none, BOTH },
    { "rev", no_rev, BOTH },
    { "no owner", no_owner, BOTH },
    { "its token is empty", no_token, BOTH },
    { "order of their numbers", out_of_order, BOTH },
    { "no lane", listed_without_lane, BOTH },
    { "a number and no key", listed_number_without_key, BOTH },
    { "linked wrongly", linked_one_way, BOTH },
    { "not in its order", run_backwards, BOTH },
    { "its counts", miscounted, WRITTEN_ONLY },
    { "before the one before it", behind_ended_first, WRITTEN_ONLY },
    { "all of its calls", none_left, WRITTEN_ONLY },
    { "names a call it", lists_what_waits, WRITTEN_ONLY },
    { "is below 0", waiting_below_none, BOTH },
    { "is below 0", later_below_none, BOTH },
    { "not their turn", held_by_nobody, BOTH },
    { "not their turn", idle_and_held, BOTH },
    { "next number", no_next_number, BOTH },
    { "offers a call and has none", offered_nothing, BOTH },
    { "no call blocks it", blocked_by_nothing, BOTH },
    { "its turn is unknown", turn_unknown, BOTH },
    { "waiting == 0", waits_and_none_offered, WRITTEN_ONLY },
};

/* ---- Cases ----------------------------------------------------------------------------------- */

TEST(nothing_is_wrong)
{
    struct sample *s = mem_alloc(sizeof *s);
    struct pawl_err err;
    sample_fill(s);
    OK(look(s, LED_LOADED, &err), &err);
    OK(look(s, LED_DECIDED, &err), &err);
    mem_free(s);
}

TEST(what_is_read_wrong_is_broken)
{
    struct sample *s = mem_alloc(sizeof *s);
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        struct pawl_err err = { 0 };
        const struct mistake *m = &mistakes[i];
        sample_fill(s);
        m->make(s);
        enum pawl_status st = look(s, LED_LOADED, &err);
        if (m->seen == WRITTEN_ONLY)
            OK(st, &err);
        else
            EQ_STATUS(st, PAWL_BROKEN, &err);
        if (m->seen == BOTH)
            HAS_STR(err.text, m->says);
    }
    mem_free(s);
}

static int told_fd;

static void told(const char *line)
{
    ssize_t ignored = write(told_fd, line, strlen(line));
    (void)ignored;
}

static void ends_the_process(const struct mistake *m)
{
    int fd[2], status;
    char line[600] = "";
    EQ_INT(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sample *s = mem_alloc(sizeof *s);
        signal(SIGABRT, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), 2);
        told_fd = fd[1];
        pawl_on_panic(told);
        sample_fill(s);
        m->make(s);
        enum pawl_status st = look(s, LED_DECIDED, NULL);
        _exit(st == PAWL_OK ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        FAIL("\"%s\" does not end the process: status %d", m->says, status);
    TRUE(read(fd[0], line, sizeof line - 1) > 0);
    HAS_STR(line, m->says);
    close(fd[0]);
    close(fd[1]);
}

TEST(what_is_decided_wrong_ends_the_process)
{
    for (size_t i = 0; i < COUNT_OF(mistakes); i++)
        ends_the_process(&mistakes[i]);
}

/* ---- Answers of single statements ------------------------------------------------------------ */

static enum pawl_status ready_row(int64_t track, int64_t rank, int64_t run_at_us)
{
    return led_ready_check(track, rank, run_at_us, NULL);
}

TEST(rows_of_ready_are_possible)
{
    OK(ready_row(2, -PRIORITY_MAX, 0), NULL);
    OK(ready_row(2 * (int64_t)LANE_NUMBER_MAX + 1, -PRIORITY_MIN, 1), NULL);
    EQ_STATUS(ready_row(1, 0, 1), PAWL_BROKEN, NULL);
    EQ_STATUS(ready_row(2 * (int64_t)LANE_NUMBER_MAX + 2, 0, 1), PAWL_BROKEN, NULL);
    /* As an int, its lane would be 1. */
    EQ_STATUS(ready_row(2 + (INT64_C(1) << 33), 0, 1), PAWL_BROKEN, NULL);
    EQ_STATUS(ready_row(2, -PRIORITY_MAX - 1, 1), PAWL_BROKEN, NULL);
    EQ_STATUS(ready_row(2, -PRIORITY_MIN + 1, 1), PAWL_BROKEN, NULL);
    EQ_STATUS(ready_row(2, 0, -1), PAWL_BROKEN, NULL);
}

TEST(an_answer_has_the_rows_that_were_asked_for)
{
    struct pawl_err err = { 0 };
    struct led_cell cells[] = { { .b = BYTES("boot") },  { .b = BYTES("") }, { .b = BYTES("") },
                                { .b = BYTES("other") }, { .b = BYTES("") }, { .b = BYTES("") } };
    struct led_rows r = { .n = 2, .columns = 3, .v = cells };
    OK(led_rows_check(&r, SQL_NODE_READ, 2, &err), &err);
    EQ_STATUS(led_rows_check(&r, SQL_NODE_READ, 1, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "node_read gives 2 rows, and at most 1 were asked for");
    EQ_STATUS(led_node_rows_check(BYTES("n"), &r, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "node \"n\" has 2 rows");
    r.n = 1;
    OK(led_node_rows_check(BYTES("n"), &r, &err), &err);
    cells[1].i = -1;
    EQ_STATUS(led_node_rows_check(BYTES("n"), &r, &err), PAWL_BROKEN, &err);
    r.n = 0;
    OK(led_node_rows_check(BYTES("n"), &r, &err), &err);
}

TEST(an_id_names_the_call_that_has_it)
{
    struct pawl_err err = { 0 };
    struct led_call it = { .seq = 7, .spec.id = BYTES("a") };
    OK(led_id_check(BYTES("a"), &it, &err), &err);
    EQ_STATUS(led_id_check(BYTES("b"), &it, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "id \"b\": its row names call 7, which has id \"a\"");
}

/* Run `wrong` in a process of its own, which it ends. */
static void aborts(void (*wrong)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), 2);
        wrong();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void columns_differ(void)
{
    struct arena a;
    struct led_column one, two;
    struct led_params p = { 0 };
    arena_init(&a, 1 << 20);
    led_column_init(&one, &a, LED_INTS);
    led_column_init(&two, &a, LED_TEXTS);
    led_add_int(&one, 1);
    led_column(&p, &one);
    led_int(&p, 5);
    led_column(&p, &two);
}

static void column_is_missing(void)
{
    struct led_cell cells[2] = { { .i = 1 }, { .i = 2 } };
    struct led_rows r = { .n = 1, .columns = 2, .v = cells };
    led_get_int(&r, 0, 2);
}

TEST(columns_of_one_statement_have_one_length)
{
    aborts(columns_differ);
}

TEST(a_value_that_was_not_answered_is_not_read)
{
    aborts(column_is_missing);
}
