/*
 * pg_wake.c - several nodes on one PostgreSQL server: they notify each other, and cost little when
 * idle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "db_server.h"
#include "exec/node.h"
#include "fixture.h"
#include "lib/lib.h"
#include "store/store.h"
#include "proxy.h"

RUNS_ON_ENGINE("postgres")

/* Polls so rarely that polling cannot be how anything here is found. */
static struct pawl *node(const char *url, const char *name)
{
    struct pawl_options o = { .db = url,
                              .node = name,
                              .poll_min_us = 600 * FIXTURE_SEC,
                              .poll_max_us = 600 * FIXTURE_SEC,
                              .reclaim_interval_us = 600 * FIXTURE_SEC };
    return fixture_open_as(NULL, o);
}

/* Until each of them knows that the other listens, some notifications are not sent. */
static void hear_each_other(struct pawl *a, struct pawl *b, const char *type)
{
    for (int i = 0; i < 100; i++) {
        char id[32];
        struct pawl_err err;
        struct pawl_shown *shown = NULL;
        snprintf(id, sizeof id, "hello-%s-%d", type, i);
        struct pawl_spec s = { PAWL_SPEC_INIT, .id = id, .type = type };
        if (pawl_submit_wait(a, &s, FIXTURE_SEC / 2, &shown, &err) == PAWL_OK &&
            pawl_state_ended(pawl_shown_view(shown)->state)) {
            pawl_shown_free(shown);
            return;
        }
        pawl_shown_free(shown);
    }
    (void)b;
    FAIL("%s is not heard", type);
}

/* Work goes to the other node and its result comes back, many times, without any polling. */
TEST(a_call_runs_on_the_other_node_and_its_end_is_told)
{
    const char *url = engine_url(param);
    struct pawl *a = node(url, "a"), *b = node(url, "b");
    fixture_on(a, "on-a", fixture_echo);
    fixture_on(b, "on-b", fixture_echo);
    fixture_start(a, 2);
    fixture_start(b, 2);
    hear_each_other(a, b, "on-b");
    hear_each_other(b, a, "on-a");
    for (int i = 0; i < 50; i++) {
        char id[32];
        snprintf(id, sizeof id, "c%d", i);
        fixture_submit(i % 2 ? a : b, id, i % 2 ? "on-b" : "on-a");
        fixture_ends(i % 2 ? a : b, id, PAWL_COMPLETED);
    }
    pawl_close(a);
    pawl_close(b);
}

struct extending {
    struct pawl *p;
    struct pawl_lease *l;
    int64_t past_us; /* the timeout of its call */
};

static void *extend_late(void *arg)
{
    struct extending *x = arg;
    struct pawl_err err;
    int64_t until;
    UNTIL(fixture_mono() > x->past_us);
    EQ_STATUS(pawl_extend(x->p, x->l->token, 0, &until, &err), PAWL_LOST_LEASE, &err);
    return NULL;
}

/* A lease that is extended after the timeout of the last call that it has left is lost, and the
 * call ends with that. */
TEST(an_extension_that_is_refused_tells_what_it_ended)
{
    const char *url = engine_url(param);
    struct pawl *a = node(url, "a"), *b = node(url, "b");
    struct pawl_err err;
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "hand", .timeout_us = FIXTURE_SEC,
                           .max_attempts = 1 };
    struct pawl_receipt receipt;
    pthread_t thread;
    fixture_on(a, "on-a", fixture_echo);
    fixture_on(b, "on-b", fixture_echo);
    fixture_start(a, 2);
    fixture_start(b, 2);
    hear_each_other(a, b, "on-b");
    hear_each_other(b, a, "on-a");
    fixture_submit(a, "long", "hand"); /* the lease lasts as long as its timeout allows */
    OK(pawl_submit(a, &s, 1, 0, &receipt, &err), &err);
    struct extending x = { .p = a, .l = fixture_claim(a, "hand", 2) };
    EQ_UINT(x.l->n, 2);
    enum pawl_state state;
    OK(fixture_finish(a, x.l->token, "long", PAWL_END_RESULT, &state, &err), &err);
    x.past_us = fixture_mono() + FIXTURE_SEC + 200 * FIXTURE_MS;
    EQ_INT(pthread_create(&thread, NULL, extend_late, &x), 0);
    fixture_ends(b, "x", PAWL_FAILED); /* nobody polls, and no sweep is due */
    pthread_join(thread, NULL);
    pawl_lease_free(x.l);
    pawl_close(a);
    pawl_close(b);
}

/* Any session's NOTIFY on the channel makes a node look. */
TEST(a_notify_by_hand_is_a_hint)
{
    const char *url = engine_url(param);
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url };
    struct hint h = { .wake_fd = -1 };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_hint(s, &h, &err), &err);
    EQ_INT(h.heard, HINT_ALL); /* notifications from before it listened */
    h = (struct hint){ .wake_fd = -1 };
    OK(store_hint(s, &h, &err), &err);
    EQ_INT(h.heard, 0);
    for (int i = 0; i < 2; i++) {
        db_ask(&db_postgres, i ? "NOTIFY pawl_pawl, 'sweet';" : "NOTIFY pawl_pawl;");
        h = (struct hint){ .wake_fd = -1, .until_us = fixture_mono() + FIXTURE_WAIT_US };
        OK(store_hint(s, &h, &err), &err);
        EQ_INT(h.heard, HINT_WORK);
    }
    db_ask(&db_postgres, "NOTIFY pawl_other; NOTIFY pawl_pawl, 'e';");
    h = (struct hint){ .wake_fd = -1, .until_us = fixture_mono() + FIXTURE_WAIT_US };
    OK(store_hint(s, &h, &err), &err);
    EQ_INT(h.heard, HINT_ENDED);
    store_close(s);
}

/* A node's notifications reach the other node and not itself; a single node sends none. */
TEST(hints_go_to_others)
{
    const char *url = engine_url(param);
    struct store *s[2] = { NULL };
    struct pawl_err err;
    struct store_conf conf = { .url = url };
    for (int i = 0; i < 2; i++) {
        struct hint h = { .wake_fd = -1, .tell = HINT_WORK };
        OK(store_open(&conf, &s[i], &err), &err);
        OK(store_hint(s[i], &h, &err), &err);
    }
    struct hint h = { .wake_fd = -1, .until_us = fixture_mono() + FIXTURE_WAIT_US };
    OK(store_hint(s[0], &h, &err), &err);
    EQ_INT(h.heard, HINT_WORK);
    h = (struct hint){ .wake_fd = -1, .tell = HINT_ENDED };
    OK(store_hint(s[1], &h, &err), &err);
    EQ_INT(h.heard, 0);
    store_close(s[0]);
    store_close(s[1]);
}

/* ---- Idle ------------------------------------------------------------------------------------ */

static struct pawl *idle_node(const char *url, const char *name)
{
    struct pawl_options o = { .db = url,
                              .node = name,
                              .heartbeat_interval_us = 2 * FIXTURE_SEC,
                              .heartbeat_grace_us = 10 * FIXTURE_SEC,
                              .reclaim_interval_us = 1 * FIXTURE_SEC,
                              .gc_interval_us = 60 * FIXTURE_SEC };
    struct pawl *p = fixture_open_as(NULL, o);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    return p;
}

/* When the machine stalls, connections end, and new ones run more statements: a count that is too
 * high then is measured again. A node that really runs too many does so each time. */
static double statements_a_second(int seconds, double max)
{
    double each = max;
    for (int i = 0; i < 4 && each >= max; i++) {
        int64_t before = proxy_statements(), began_us = fixture_mono();
        usleep((unsigned)seconds * 1000000);
        each = (double)(proxy_statements() - before) * FIXTURE_SEC /
               (double)(fixture_mono() - began_us);
        printf("%.2f statements a second\n", each);
    }
    return each;
}

/* With the settings of `pawl serve` and another node: fewer than 5 statements a second. Time itself
 * is measured here, so time has to pass. */
TEST(an_idle_node_says_little, .deadline_s = 120)
{
    char straight[300];
    int seconds = check_long() ? 10 : 5;
    snprintf(straight, sizeof straight, "%s", engine_url(param));
    struct pawl *other = idle_node(straight, "other");
    struct pawl *p = idle_node(proxy_url(straight), "counted");
    fixture_submit(p, "a", "t");
    fixture_ends(p, "a", PAWL_COMPLETED);
    usleep(2000000); /* polling has slowed down again */
    double each = statements_a_second(seconds, 5);
    TRUE(each < 5);
    TRUE(each > 0.2); /* it is alive, and the proxy is in between */
    fixture_submit(other, "b", "t");
    fixture_ends(p, "b", PAWL_COMPLETED);
    pawl_close(p);
    pawl_close(other);
}

/* The same with 100,000 schedules, none of them due, on the node that ticks them. */
TEST(an_idle_node_with_many_schedules_says_little, .deadline_s = 180)
{
    char straight[300];
    snprintf(straight, sizeof straight, "%s", engine_url(param));
    struct pawl *p = idle_node(proxy_url(straight), "counted");
    struct pawl_schedule s = { PAWL_SCHEDULE_INIT, .name = "s", .every_us = 3600 * FIXTURE_SEC,
                               .starts_at_us = INT64_C(4000000000) * FIXTURE_SEC,
                               .call = &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" } };
    struct pawl *other = fixture_open_as(NULL, (struct pawl_options){ .db = straight });
    struct pawl_err err;
    OK(pawl_schedule(pawl_program(other), &s), NULL);
    fixture_on(other, "t", fixture_echo);
    OK(pawl_start(other, NULL, &err), &err);
    db_ask(&db_postgres,
           "INSERT INTO pawl.schedule SELECT 's' || i, spec, version, paused, zone_data, due_at, "
           "next_at, next_local, last_at, last_local, last_id, last_seq, waiting_at, created_at, "
           "updated_at FROM pawl.schedule, generate_series(1, 100000) i; ANALYZE pawl.schedule;");
    pawl_close(other);
    fixture_submit(p, "a", "t");
    fixture_ends(p, "a", PAWL_COMPLETED);
    UNTIL(exec_leads(p->e, LEAD_SCHEDULER));
    usleep(2000000); /* polling has slowed down again */
    TRUE(statements_a_second(check_long() ? 10 : 5, 5) < 5);
    pawl_close(p);
}

/* A whole idle cluster: fewer than 100 statements a second. */
TEST(twenty_idle_nodes_say_little, .deadline_s = 180)
{
    enum { NODES = 20 };
    struct pawl *p[NODES];
    char name[20];
    int seconds = check_long() ? 10 : 5;
    const char *url = proxy_url(engine_url(param));
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "idle%d", i);
        p[i] = idle_node(url, name);
    }
    fixture_submit(p[0], "a", "t");
    fixture_ends(p[NODES - 1], "a", PAWL_COMPLETED);
    usleep(4000000); /* polling has slowed down again, and the leader is known */
    double all = statements_a_second(seconds, 100);
    TRUE(all < 100);
    TRUE(all > NODES * 0.2); /* they send heartbeats */
    for (int i = 0; i < NODES; i++)
        pawl_close(p[i]);
}

/* A connection that has reached its lifetime is replaced between two uses, and not before. */
TEST(connections_grow_old)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = proxy_url(engine_url(param)),
                               .lifetime_us = 3600 * FIXTURE_SEC };
    int64_t now;
    OK(store_open(&conf, &s, &err), &err);
    for (int i = 0; i < 5; i++)
        OK(store_now(s, &now, &err), &err);
    EQ_INT(proxy_connections(), 1);
    store_close(s);
    conf.lifetime_us = 1;
    OK(store_open(&conf, &s, &err), &err);
    usleep(10);
    OK(store_now(s, &now, &err), &err);
    EQ_INT(proxy_connections(), 3);
    store_close(s);
}
