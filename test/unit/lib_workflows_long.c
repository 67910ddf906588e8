/*
 * lib_workflows_long.c - runs that go on for long: many steps of one name, many sleeps, many
 * restarts, many children; and what that reads from the database.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/workflow.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* How often the handler goes round; of the short form less where each round is a pass. */
static int rounds;

static int many(int in_short, int in_long)
{
    return rounds = check_long() ? in_long : in_short;
}

static int64_t number(struct pawl_data d)
{
    char text[24];
    snprintf(text, sizeof text, "%.*s", (int)d.len, (const char *)d.data);
    return strtoll(text, NULL, 10);
}

/* The run completes with this number; it has longer than other calls. */
static void completes_with(struct pawl *p, int64_t n)
{
    char text[24];
    int64_t until_us = fixture_mono() + 350 * FIXTURE_SEC * check_scale();
    while (!pawl_state_ended(fixture_state(p, "x"))) {
        LT_INT(fixture_mono(), until_us);
        usleep(20000);
    }
    snprintf(text, sizeof text, "%lld", (long long)n);
    steps_complete(p, "x", text);
}

/* Steps that were read from journals, in this process. */
static int64_t steps_read(void)
{
    struct workflow_counts n;
    workflow_counts(&n);
    return n.steps_read;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static atomic_int runs;

static int adds(struct pawl_call *c, void *arg)
{
    runs++;
    return pawl_reply_int(c, *(const int *)arg);
}

/* After half of them it is handed to another pass. */
static int loops(struct pawl_call *c)
{
    int64_t sum = 0;
    for (int i = 1; i <= rounds; i++) {
        struct pawl_data n;
        if (pawl_step(c,
                      &(struct pawl_step){ PAWL_STEP_INIT, .name = "add", .run = adds, .arg = &i,
                                           .arg_size = sizeof i },
                      &n))
            return 0;
        sum += number(n);
        if (i == rounds / 2 && pawl_step_sleep(c, "nap", 1))
            return 0;
    }
    return pawl_reply_int(c, sum);
}

TEST(a_loop_of_a_thousand_steps_of_one_name, .deadline_s = 420)
{
    struct pawl *p = steps_open(param, loops);
    int n = many(1000, 1000);
    int64_t before = steps_read();
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    completes_with(p, n * (n + 1) / 2);
    EQ_INT(runs, n);
    LE_INT(steps_read() - before, 1 + n / 2 + 1); /* at most once each, by the second pass */
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_step WHERE name = 'add'"), n);
    EQ_INT(engine_int(param, "SELECT MAX(nth) FROM pawl_step WHERE name = 'add'"), n);
    pawl_close(p);
}

/* ---- Sleeps ---------------------------------------------------------------------------------- */

static atomic_int passes;

static int sleeps(struct pawl_call *c)
{
    passes++;
    for (int i = 0; i < rounds; i++)
        if (pawl_step_sleep(c, "nap", 1))
            return 0;
    return pawl_reply_int(c, rounds);
}

/* Each pass takes what its node knows from the last one, and reads what is new. With a second slot
 * a run that is due at once may be claimed before the first one has put its journal back. */
TEST(a_loop_of_sleeps_reads_each_of_them_once, .deadline_s = 420)
{
    struct pawl *p = steps_open(param, sleeps);
    int64_t n = many(150, 1000), before = steps_read();
    fixture_start(p, 1);
    steps_start(p, "x", "1");
    completes_with(p, n);
    printf("%d passes read %lld steps\n", passes, (long long)(steps_read() - before));
    GE_INT(passes, n);
    LE_INT(steps_read() - before, 2 * n);
    pawl_close(p);
}

/* With several nodes each of them reads each step: what the others stored meanwhile. */
TEST(nodes_that_take_turns_read_what_is_new, .deadline_s = 420)
{
    enum { NODES = 3 };
    struct pawl *p[NODES];
    int64_t n = many(100, 1000), before = steps_read();
    for (int i = 0; i < NODES; i++) {
        char node[8];
        snprintf(node, sizeof node, "n%d", i);
        p[i] = fixture_open_as(param, (struct pawl_options){ .node = node });
        fixture_on(p[i], "flow", sleeps);
        fixture_start(p[i], 1);
    }
    steps_start(p[0], "x", "1");
    completes_with(p[0], n);
    printf("%d passes read %lld steps\n", passes, (long long)(steps_read() - before));
    LE_INT(steps_read() - before, (NODES + 2) * n);
    for (int i = 0; i < NODES; i++)
        pawl_close(p[i]);
}

/* ---- Restarts -------------------------------------------------------------------------------- */

static int one_child(struct pawl_call *c)
{
    const char *id;
    const struct pawl_view *v;
    struct pawl_err err;
    int64_t round = 0, sum = 0;
    char want[40], next[60];
    struct pawl_data in = pawl_input(c);
    EQ_INT(sscanf((const char *)in.data, "[%" SCNd64 ",%" SCNd64 "]", &round, &sum), 2);
    snprintf(next, sizeof next, "%lld", (long long)round);
    if (pawl_step_child(
            c, "part",
            &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child", .input = pawl_text(next) },
            &id) ||
        pawl_step_join(c, PAWL_ALL, &id, 1, 0))
        return 0;
    snprintf(want, sizeof want, round == 1 ? "x.part#1" : "x~%lld.part#1", (long long)round);
    EQ_STR(id, want);
    OK(pawl_step_result(c, id, &v, &err), &err);
    sum += number(v->result);
    if (round == rounds)
        return pawl_reply_int(c, sum);
    snprintf(next, sizeof next, "[%lld,%lld]", (long long)round + 1, (long long)sum);
    return pawl_restart(c, pawl_text(next));
}

TEST(a_hundred_generations_have_a_child_each, .deadline_s = 420)
{
    struct pawl *p = steps_open(param, one_child);
    int64_t n = many(30, 100);
    fixture_on(p, "child", fixture_echo);
    fixture_start(p, 4);
    steps_start(p, "x", "[1,0]");
    completes_with(p, n * (n + 1) / 2);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), n + 1);
    pawl_close(p);
}

/* ---- Children -------------------------------------------------------------------------------- */

static int joins(struct pawl_call *c)
{
    const char **ids = calloc((size_t)rounds, sizeof *ids);
    const struct pawl_view *v;
    struct pawl_err err;
    int64_t sum = 0;
    int i = 0;
    for (; i < rounds; i++) {
        char in[12];
        snprintf(in, sizeof in, "%d", i + 1);
        if (pawl_step_child(
                c, "part",
                &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "child", .input = pawl_text(in) },
                &ids[i]))
            break;
    }
    bool over = i < rounds || pawl_step_join(c, PAWL_ALL, ids, (size_t)rounds, 0);
    for (i = 0; !over && i < rounds; i++) {
        OK(pawl_step_result(c, ids[i], &v, &err), &err);
        EQ_INT(v->state, PAWL_COMPLETED);
        sum += number(v->result);
    }
    free(ids);
    return over ? 0 : pawl_reply_int(c, sum);
}

/* The long form has 10,000 steps in all: 9,999 children and the join. */
TEST(a_run_joins_all_its_children_on_four_nodes, .deadline_s = 420)
{
    enum { NODES = 4 };
    struct pawl *p[NODES];
    int64_t n = many(500, 9999);
    for (int i = 0; i < NODES; i++) {
        char node[8];
        snprintf(node, sizeof node, "n%d", i);
        p[i] = fixture_open_as(param, (struct pawl_options){ .node = node });
        fixture_on(p[i], "flow", joins);
        fixture_on(p[i], "child", fixture_echo);
        fixture_start(p[i], 2);
    }
    steps_log[0] = '\0';
    steps_start(p[0], "x", "1");
    completes_with(p[0], n * (n + 1) / 2);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_child WHERE ended = 3"), n);
    for (int i = 0; i < NODES; i++)
        pawl_close(p[i]);
}
