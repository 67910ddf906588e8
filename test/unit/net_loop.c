/*
 * net_loop.c - tasks from many threads, timers in order, work on other threads, deferred tasks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/world.h"
#include "check.h"
#include "net/http.h"

/* One loop at a time, run by the test's own thread. */
static struct loop *loop;

static void begin(void)
{
    struct pawl_err err;
    OK(loop_open(&loop, &err), &err);
}

static void end(void)
{
    loop_close(loop);
    EQ_INT(mem_live(), 0);
}

/* ---- Tasks from other threads ---------------------------------------------------------------- */

enum { POSTERS = 8, POSTS = 5000 };

struct note {
    struct loop_task task;
    int poster, number;
};
static int next_number[POSTERS], n_notes;

static void on_note(struct loop_task *t)
{
    struct note *n = (struct note *)t;
    EQ_INT(n->number, next_number[n->poster]);
    next_number[n->poster]++;
    free(n);
    if (++n_notes == POSTERS * POSTS)
        loop_stop(loop);
}

static void *poster(void *arg)
{
    for (int i = 0; i < POSTS; i++) {
        struct note *n = malloc(sizeof *n);
        *n = (struct note){ { .run = on_note }, (int)(intptr_t)arg, i };
        loop_post(loop, &n->task);
    }
    return NULL;
}

TEST(posts_of_each_thread_run_in_order)
{
    pthread_t threads[POSTERS];
    begin();
    for (int i = 0; i < POSTERS; i++)
        pthread_create(&threads[i], NULL, poster, (void *)(intptr_t)i);
    loop_run(loop);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    EQ_INT(n_notes, POSTERS * POSTS);
    end();
}

static int n_again;
static void on_again(struct loop_task *t)
{
    if (++n_again == 1000)
        loop_stop(loop);
    else
        loop_post(loop, t);
}

TEST(a_task_may_post_itself)
{
    begin();
    struct loop_task t = { .run = on_again };
    loop_post(loop, &t);
    loop_run(loop);
    EQ_INT(n_again, 1000);
    end();
}

TEST(stop_before_run_is_not_lost)
{
    begin();
    loop_stop(loop);
    loop_run(loop);
    end();
    loop_close(NULL);
}

/* ---- Deferred tasks -------------------------------------------------------------------------- */

static char order[64];
static struct loop_task later_a, later_b, post_a, post_b, stop_task;

static void say(const char *text)
{
    size_t n = strlen(order);
    memcpy(order + n, text, strlen(text) + 1);
}
static void on_stop(struct loop_task *t)
{
    (void)t;
    say("stop ");
    loop_stop(loop);
}
static void on_later(struct loop_task *t)
{
    say(t == &later_a ? "A " : "B ");
    if (t == &later_a)
        loop_later(loop, &later_b); /* runs too, although nothing else wakes the loop */
    else
        loop_later(loop, &stop_task);
}
static void on_post(struct loop_task *t)
{
    say(t == &post_a ? "a " : "b ");
    if (t == &post_a)
        loop_later(loop, &later_a);
}

TEST(what_is_put_off_runs_after_the_turn)
{
    begin();
    later_a.run = later_b.run = on_later;
    post_a.run = post_b.run = on_post;
    stop_task.run = on_stop;
    loop_post(loop, &post_a);
    loop_post(loop, &post_b);
    loop_run(loop);
    EQ_STR(order, "a b A B stop ");
    end();
}

/* ---- Timers ---------------------------------------------------------------------------------- */

enum { TIMERS = 10000 };
static struct loop_timer timers[TIMERS], last;
static int64_t due[TIMERS], previous_us;
static int n_ran;

static void on_timer(struct loop_timer *t)
{
    int64_t now_us = world_mono(&world_real);
    GE_INT(now_us, due[t - timers]);
    GE_INT(due[t - timers], previous_us);
    EQ_INT(t->at_us, 0);
    previous_us = due[t - timers];
    n_ran++;
}

static void on_last(struct loop_timer *t)
{
    (void)t;
    loop_stop(loop);
}

static uint32_t roll(void)
{
    static uint32_t x = 12345;
    x = x * 1664525 + 1013904223;
    return x >> 8;
}

static void set(int i, int64_t at_us)
{
    timers[i].run = on_timer;
    due[i] = at_us;
    loop_timer_set(loop, &timers[i], at_us);
}

TEST(timers_run_in_order)
{
    begin();
    int64_t now_us = world_mono(&world_real);
    int wanted = 0;
    for (int i = 0; i < TIMERS; i++)
        set(i, now_us + roll() % 50000);
    for (int i = 0; i < 3 * TIMERS; i++) {
        int which = (int)(roll() % TIMERS);
        if (roll() % 3)
            set(which, now_us + roll() % 100000);
        else
            loop_timer_cancel(loop, &timers[which]);
    }
    for (int i = 0; i < TIMERS; i++)
        wanted += timers[i].at_us != 0;
    last.run = on_last;
    loop_timer_set(loop, &last, now_us + 150000);
    loop_run(loop);
    EQ_INT(n_ran, wanted);
    end();
}

static int n_self;
static struct loop_timer self, other;

static void on_self(struct loop_timer *t)
{
    loop_timer_cancel(loop, &other); /* due as well, but cancelled */
    if (++n_self == 50)
        loop_stop(loop);
    else
        loop_timer_set(loop, t, 1); /* long ago: the next iteration */
}
static void on_other(struct loop_timer *t)
{
    (void)t;
    FAIL("it was cancelled");
}

TEST(timers_may_set_and_cancel)
{
    begin();
    self.run = on_self;
    other.run = on_other;
    loop_timer_set(loop, &self, 1);
    loop_timer_set(loop, &other, 2);
    loop_timer_cancel(loop, &last); /* never set */
    loop_run(loop);
    EQ_INT(n_self, 50);
    end();
}

/* The CPU time of this process. */
static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * SEC_US + t.tv_nsec / 1000;
}

TEST(ten_thousand_timers_are_cheap)
{
    begin();
    int64_t now_us = world_mono(&world_real);
    for (int i = 0; i < TIMERS; i++)
        set(i, now_us + 75 * SEC_US + i);
    int64_t begun = cpu_us();
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < TIMERS; i++)
            set(i, now_us + 75 * SEC_US + (int64_t)(round + 1) * TIMERS + i);
    LT_INT(cpu_us() - begun, 2 * SEC_US * check_scale()); /* a million changes */
    for (int i = 0; i < TIMERS; i++)
        loop_timer_cancel(loop, &timers[i]);
    end();
}

/* ---- Work ------------------------------------------------------------------------------------ */

struct errand {
    struct loop_work work;
    pthread_t worker;
    int result;
};
static struct errand errands[20];
static pthread_t loop_thread;
static int n_done;

static void work(struct loop_work *w)
{
    struct errand *e = (struct errand *)w;
    e->worker = pthread_self();
    e->result = 42;
}
static void done(struct loop_work *w)
{
    struct errand *e = (struct errand *)w;
    TRUE(pthread_equal(pthread_self(), loop_thread));
    FALSE(pthread_equal(e->worker, loop_thread));
    EQ_INT(e->result, 42);
    if (++n_done == 20)
        loop_stop(loop);
}

TEST(work_is_done_elsewhere)
{
    struct pawl_err err;
    begin();
    loop_thread = pthread_self();
    for (int i = 0; i < 20; i++) {
        errands[i].work = (struct loop_work){ .work = work, .done = done };
        OK(loop_work(loop, &errands[i].work, &err), &err);
    }
    loop_run(loop);
    EQ_INT(n_done, 20);
    end();
}

TEST(close_waits_for_work)
{
    struct pawl_err err;
    begin();
    loop_thread = pthread_self();
    n_done = -100;
    errands[0].work = (struct loop_work){ .work = work, .done = done };
    OK(loop_work(loop, &errands[0].work, &err), &err);
    end();
    EQ_INT(n_done, -99);
}

TEST(no_memory_is_an_answer)
{
    struct pawl_err err;
    struct loop_work w = { .work = work, .done = done };
    mem_torture(1, 0);
    EQ_STATUS(loop_open(&loop, &err), PAWL_NO_MEMORY, NULL);
    begin();
    mem_torture(1, 0);
    EQ_STATUS(loop_work(loop, &w, &err), PAWL_NO_MEMORY, NULL);
    mem_torture(0, 0);
    end();
}
