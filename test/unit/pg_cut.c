/*
 * pg_cut.c - a node whose heartbeats do not reach the database stops its own workers before another
 * node may take their calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"
#include "proxy.h"

/* The proxy understands only PostgreSQL's protocol. */
RUNS_ON_ENGINE("postgres")

/* A quarter of it is tolerance for a busy machine; a pause is measured. */
#define GRACE_US (4 * FIXTURE_SEC)

static atomic_int begun;
static _Atomic int64_t told_us;

/* The first attempt works until it is told to stop; the next ends at once. */
static int works(struct pawl_call *c)
{
    if (atomic_fetch_add(&begun, 1) > 0)
        return pawl_reply_int(c, 1);
    int stopped = pawl_sleep(c, 100 * FIXTURE_SEC);
    atomic_store(&told_us, fixture_mono());
    return stopped ? pawl_fail(c, "told to stop") : 0;
}

/* It never checks whether it should stop, and sleeps through it. */
static int sleeps(struct pawl_call *c)
{
    if (atomic_fetch_add(&begun, 1) > 0)
        return pawl_reply_int(c, 2);
    UNTIL(atomic_load(&told_us) != 0);
    return pawl_reply_int(c, 1);
}

static struct pawl *begin(const void *param, pawl_handler *h)
{
    struct pawl *p =
        fixture_open_as(NULL, (struct pawl_options){ .db = proxy_url(engine_url(param)),
                                                     .heartbeat_interval_us = GRACE_US / 4,
                                                     .heartbeat_grace_us = GRACE_US });
    fixture_on(p, "t", h);
    fixture_start(p, 2);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "a", .type = "t", .timeout_us = 200 * FIXTURE_SEC });
    UNTIL(atomic_load(&begun) == 1);
    return p;
}

static void no_attempt_was_counted(struct pawl *p)
{
    struct pawl_shown *s = fixture_get(p, "a");
    EQ_INT(pawl_shown_view(s)->attempts, 0);
    EQ_INT(pawl_shown_view(s)->lost, 0);
    pawl_shown_free(s);
}

/* Wait until handlers were told to stop. Returns how long this process was stalled meanwhile. */
static int64_t until_told(void)
{
    int64_t paused_us = 0, looked_us = fixture_mono(), until_us = looked_us + FIXTURE_WAIT_US;
    while (atomic_load(&told_us) == 0) {
        usleep(1000);
        int64_t now_us = fixture_mono();
        if (now_us - looked_us > 100 * FIXTURE_MS)
            paused_us += now_us - looked_us;
        looked_us = now_us;
        LT_INT(now_us, until_us);
    }
    return paused_us;
}

TEST(its_handlers_are_told_before_the_grace_is_over, .deadline_s = 120)
{
    struct pawl *p = begin(param, works);
    int64_t frozen_us = fixture_mono();
    proxy_set(PROXY_FROZEN);
    int64_t paused_us = until_told();
    LT_INT(atomic_load(&told_us) - frozen_us, GRACE_US + paused_us);
    TRUE(member_cut(p->e));
    EQ_INT(atomic_load(&begun), 1);
    proxy_set(PROXY_UP);
    fixture_ends(p, "a", PAWL_COMPLETED);
    EQ_INT(atomic_load(&begun), 2);
    FALSE(member_cut(p->e));
    no_attempt_was_counted(p);
    pawl_close(p);
}

static int hung(struct pawl *p)
{
    pthread_mutex_lock(&p->e->pool.lock);
    int n = p->e->pool.hung;
    pthread_mutex_unlock(&p->e->pool.lock);
    return n;
}

/* Its call is taken back and runs again; its later result is void. */
TEST(a_handler_that_does_not_look_has_nothing_to_say, .deadline_s = 120)
{
    struct pawl *p = begin(param, sleeps);
    proxy_set(PROXY_CUT);
    UNTIL(member_cut(p->e));
    UNTIL(hung(p) == 1);
    proxy_set(PROXY_UP);
    fixture_ends(p, "a", PAWL_COMPLETED);
    EQ_INT(atomic_load(&begun), 2);
    atomic_store(&told_us, 1);
    UNTIL(hung(p) == 0);
    struct pawl_shown *s = fixture_get(p, "a");
    EQ_INT(pawl_shown_view(s)->result.len, 1);
    EQ_INT(*(const char *)pawl_shown_view(s)->result.data, '2');
    pawl_shown_free(s);
    no_attempt_was_counted(p);
    pawl_close(p);
}
