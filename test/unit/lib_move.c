/*
 * lib_move.c - a call that a node has claimed and not begun is pending, and can be moved like any
 * other pending call: to another queue, priority or time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char ran[64][48]; /* "id node", in the order they began */
static int n_ran;
static atomic_int inside, passes;
static atomic_bool open_all;

static void note(struct pawl_call *c)
{
    pthread_mutex_lock(&lock);
    if (n_ran < 64)
        snprintf(ran[n_ran++], sizeof ran[0], "%s %s", pawl_call_id(c), c->e->conf.node);
    pthread_mutex_unlock(&lock);
}

/* How often it began, and whether that was on this node each time. */
static int began(const char *id, const char *node)
{
    char want[48];
    size_t len = strlen(id);
    int n = 0;
    snprintf(want, sizeof want, "%s %s", id, node);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_ran; i++) {
        if (strncmp(ran[i], id, len) || ran[i][len] != ' ')
            continue;
        n = strcmp(ran[i], want) == 0 && n >= 0 ? n + 1 : -1;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static const char *ran_at(int i)
{
    pthread_mutex_lock(&lock);
    const char *text = i < n_ran ? ran[i] : "";
    pthread_mutex_unlock(&lock);
    return text;
}

/* Ends when it gets a pass, or with all others. */
static int waits(struct pawl_call *c)
{
    note(c);
    atomic_fetch_add(&inside, 1);
    for (int n = 0; !atomic_load(&open_all) && !pawl_sleep(c, FIXTURE_MS);) {
        n = atomic_load(&passes);
        if (n > 0 && atomic_compare_exchange_strong(&passes, &n, n - 1))
            break;
    }
    atomic_fetch_sub(&inside, 1);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

static struct pawl *node(const void *param, const char *name)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = name });
    fixture_on(p, "slow", waits);
    return p;
}

/* Works on one queue. */
static void start(struct pawl *p, const char *queue, int slots)
{
    struct pawl_err err;
    struct pawl_workers w = { PAWL_WORKERS_INIT, .slots = slots, .queues = &queue, .n_queues = 1 };
    OK(pawl_start(p, &w, &err), &err);
}

/* A node whose two slots are full, and which has claimed eight more calls ahead. */
static struct pawl *busy_node(const void *param)
{
    struct pawl *p = node(param, "n0");
    fixture_assume_quick();
    fixture_submit_many(p, "slow", 10);
    start(p, "default", 2);
    UNTIL(atomic_load(&inside) == 2);
    return p;
}

static void move(struct pawl *p, const char *id, int64_t run_at_us, int priority, const char *queue)
{
    struct pawl_err err;
    OK(pawl_move(p, id, run_at_us, priority, queue, &err), &err);
}

/* Everything has run, the calls once each and without a failed or lost attempt. */
static void all_ran_once(struct pawl *p, int n)
{
    atomic_store(&open_all, true);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), n);
    EQ_INT(n_ran, n);
    for (int i = 0; i < n; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        struct pawl_shown *s = fixture_get(p, id);
        EQ_INT(pawl_shown_view(s)->attempts + pawl_shown_view(s)->lost, 0);
        pawl_shown_free(s);
    }
}

TEST(a_call_claimed_ahead_moves_to_another_queue)
{
    struct pawl *p = busy_node(param), *q = node(param, "n1");
    move(p, "c9", 0, PAWL_SAME, "other");
    start(q, "other", 1);
    UNTIL(began("c9", "n1") == 1);
    all_ran_once(p, 10);
    EQ_INT(began("c9", "n1"), 1);
    pawl_close(q);
    pawl_close(p);
}

/* Asked of a process that does not hold it. */
TEST(another_process_moves_it)
{
    struct pawl *p = busy_node(param), *q = node(param, "n1");
    move(q, "c9", 0, PAWL_SAME, "other");
    start(q, "other", 1);
    UNTIL(began("c9", "n1") == 1);
    all_ran_once(p, 10);
    pawl_close(q);
    pawl_close(p);
}

TEST(a_call_claimed_ahead_gets_another_priority)
{
    struct pawl *p = busy_node(param);
    move(p, "c9", 0, 100, NULL);
    atomic_store(&passes, 1);
    UNTIL(*ran_at(2));
    EQ_STR(ran_at(2), "c9 n0");
    all_ran_once(p, 10);
    pawl_close(p);
}

TEST(a_call_claimed_ahead_gets_another_time)
{
    struct pawl *p = busy_node(param);
    int64_t due_us = exec_now(p->e) + 500 * FIXTURE_MS;
    move(p, "c9", due_us, PAWL_SAME, NULL);
    all_ran_once(p, 10);
    struct pawl_shown *s = fixture_get(p, "c9");
    GE_INT(pawl_shown_view(s)->started_at_us, due_us);
    EQ_INT(pawl_shown_view(s)->run_at_us, due_us);
    pawl_shown_free(s);
    pawl_close(p);
}

/* ---- Behind the call of its key that runs ---------------------------------------------------- */

TEST(a_call_behind_in_a_run_moves_to_another_queue)
{
    struct pawl *p = node(param, "n0"), *q = node(param, "n1");
    fixture_assume_quick(); /* so that calls of a key come in one run */
    for (int i = 0; i < 4; i++)
        fixture_submit_as(p,
                          (struct pawl_spec){ PAWL_SPEC_INIT,
                                              .id = (const char *[]){ "c0", "c1", "c2", "c3" }[i],
                                              .type = "slow", .key = "k" });
    start(p, "default", 2);
    start(q, "other", 1);
    UNTIL(atomic_load(&inside) == 1);
    move(q, "c2", 0, PAWL_SAME, "other");
    EQ_INT(fixture_state(p, "c0"), PAWL_PROCESSING);
    atomic_store(&passes, 2);
    UNTIL(began("c2", "n1") == 1);
    EQ_STR(ran_at(2), "c2 n1"); /* in the order of the line, wherever it runs */
    EQ_INT(began("c3", "n0"), 0);
    all_ran_once(p, 4);
    EQ_INT(began("c3", "n0"), 1);
    pawl_close(q);
    pawl_close(p);
}

TEST(a_call_behind_in_a_run_gets_another_time)
{
    struct pawl *p = node(param, "n0");
    fixture_assume_quick();
    for (int i = 0; i < 3; i++)
        fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT,
                                                 .id = (const char *[]){ "c0", "c1", "c2" }[i],
                                                 .type = "slow", .key = "k" });
    start(p, "default", 1);
    UNTIL(atomic_load(&inside) == 1);
    int64_t due_us = exec_now(p->e) + 500 * FIXTURE_MS;
    move(p, "c1", due_us, PAWL_SAME, NULL);
    all_ran_once(p, 3);
    EQ_STR(ran_at(1), "c2 n0");
    EQ_STR(ran_at(2), "c1 n0");
    pawl_close(p);
}

/* ---- How long a move waits ------------------------------------------------------------------- */

/* Three calls in a lease of which one has begun; nobody hands back the others by itself. */
static struct op held_by_hand(struct pawl *p, struct arena *a)
{
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = token_make(p->e->conf.world),
                                .node = BYTES("by-hand"),
                                .boot = BYTES("b1"),
                                .max = 3,
                                .width = 1,
                                .lease_us = 600 * SEC_US } };
    fixture_submit_many(p, "slow", 3);
    arena_init(a, 1 << 20);
    OK(exec_do(p->e, &op), &op.err);
    EQ_INT(op.claim.n, 3);
    return op;
}

struct mover {
    struct pawl *p;
    pthread_t thread;
    enum pawl_status st;
    struct pawl_err err;
};

static void *mover_main(void *arg)
{
    struct mover *m = arg;
    m->st = pawl_move(m->p, "c2", 0, PAWL_SAME, "other", &m->err);
    return NULL;
}

static void end(struct pawl *p, struct op *claim, const char *id, enum ending how)
{
    struct finish_item v = { .id = bytes_of(id), .how = how };
    struct op op = { .kind = OP_FINISH,
                     .a = claim->a,
                     .finish = { .token = claim->claim.token, .v = &v, .n = 1 } };
    OK(exec_do(p->e, &op), &op.err);
}

TEST(a_move_waits_until_its_call_is_handed_back)
{
    struct pawl *p = fixture_open(param);
    struct mover m = { .p = p };
    struct arena a;
    struct op claim = held_by_hand(p, &a);
    TRUE(!pthread_create(&m.thread, NULL, mover_main, &m));
    fixture_submit(p, "meanwhile", "fast"); /* nothing waits for it */
    end(p, &claim, "c2", END_RELEASE);
    pthread_join(m.thread, NULL);
    OK(m.st, &m.err);
    struct pawl_shown *s = fixture_get(p, "c2");
    EQ_STR(pawl_shown_view(s)->queue, "other");
    pawl_shown_free(s);
    arena_release(&a);
    pawl_close(p);
}

TEST(a_call_that_begins_meanwhile_is_not_moved)
{
    struct pawl *p = fixture_open(param);
    struct mover m = { .p = p };
    struct arena a;
    struct op claim = held_by_hand(p, &a);
    TRUE(!pthread_create(&m.thread, NULL, mover_main, &m));
    end(p, &claim, "c0", END_RESULT);
    end(p, &claim, "c1", END_RESULT);
    pthread_join(m.thread, NULL);
    EQ_STATUS(m.st, PAWL_STATE, &m.err);
    EQ_STR(m.err.text, "call \"c2\" is processing");
    arena_release(&a);
    pawl_close(p);
}

/* Its owner hangs, or is dead and nobody knows yet. */
TEST(a_move_does_not_wait_for_ever)
{
    struct pawl *p = fixture_open(param);
    struct mover m = { .p = p };
    struct arena a;
    held_by_hand(p, &a);
    int64_t began_us = fixture_mono();
    TRUE(!pthread_create(&m.thread, NULL, mover_main, &m));
    pthread_join(m.thread, NULL);
    GE_INT(fixture_mono() - began_us, MOVE_WAIT_US);
    EQ_STATUS(m.st, PAWL_BUSY, &m.err);
    HAS_STR(m.err.text, "\"by-hand\" has claimed it and has not begun it");
    arena_release(&a);
    pawl_close(p);
}
