/*
 * events_lost.c - the answer to the COMMIT of new events never came: no gap, no duplicate, and the
 * client gets a true answer.
 *
 * SQLite has no connection that could be cut; there a commit is unknown only when the disk fails.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/macros.h"
#include "base/world.h"
#include "events_fixture.h"
#include "my_proxy.h"
#include "net_fixture.h"

RUNS_ON(ENGINE_SERVER)

/* UPDATE, INSERT, COMMIT. */
#define ANSWERS 3

static bool on_pg;

static const char *through(const void *param)
{
    const char *url = engine_url(param);
    on_pg = strcmp(engine_of(param)->name, "postgres") == 0;
    return on_pg ? proxy_url(url) : my_proxy_url(url);
}

static void cut(enum proxy_cut how)
{
    if (on_pg)
        proxy_cut_commit(how);
    else
        my_proxy_cut_commit(how, ANSWERS);
}

static bool was_cut(void)
{
    return on_pg ? proxy_was_cut() : my_proxy_was_cut();
}

static void let_go(void)
{
    if (on_pg)
        proxy_let_go();
    else
        my_proxy_let_go();
}

static void told_is_stored(int port, const struct events_answer *a)
{
    char path[40];
    snprintf(path, sizeof path, "/events/%lld", (long long)a->id);
    EQ_STR(events_ask(port, "GET", path, NULL).body, a->body);
}

TEST(a_post_lands_once_whatever_became_of_its_commit)
{
    static const enum proxy_cut cuts[] = { PROXY_AFTER, PROXY_NEVER, PROXY_AFTER };
    struct events_here h;
    events_here_open(&h, through(param), 0);
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        cut(cuts[i]);
        struct events_answer a = events_ask(h.port, "POST", "/events", NULL);
        TRUE(was_cut());
        EQ_INT(a.status, 201);
        EQ_INT(a.id, (int64_t)i + 1);
        told_is_stored(h.port, &a);
        EQ_INT(events_whole(param), (int64_t)i + 1);
    }
    events_here_close(&h);
}

/* The server still holds the counter's lock when we reconnect and ask. */
TEST(a_commit_that_is_late_is_waited_for)
{
    struct events_here h;
    events_here_open(&h, through(param), 0);
    cut(PROXY_HOLD);
    int fd = events_connect(h.port);
    events_send(fd, "POST", "/events", NULL);
    NET_UNTIL(was_cut());
    for (int i = 0; i < 100; i++) /* it asks, and has to wait */
        net_nap();
    EQ_INT(events_whole(param), 0);
    let_go();
    struct events_answer a = events_read(fd);
    EQ_INT(a.status, 201);
    EQ_INT(a.id, 1);
    told_is_stored(h.port, &a);
    close(fd);
    events_here_close(&h);
    EQ_INT(events_whole(param), 1);
}

/* Pending events look alike. PostgreSQL can report whether a transaction committed; MariaDB cannot,
 * and then the client is told so, and which id to look at. */
TEST(a_pending_event_is_stored_or_its_client_is_told_to_look)
{
    struct events_here h;
    events_here_open(&h, through(param), 0);
    cut(PROXY_NEVER);
    struct events_answer a = events_ask(h.port, "POST", "/events/async", NULL);
    EQ_INT(a.status, 202);
    EQ_INT(a.id, 1);
    cut(PROXY_AFTER);
    a = events_ask(h.port, "POST", "/events/async", NULL);
    TRUE(was_cut());
    if (on_pg) {
        EQ_INT(a.status, 202);
        EQ_INT(a.id, 2);
    } else {
        EQ_INT(a.status, 504);
        HAS_STR(a.body, "\"code\":\"UNKNOWN\"");
        HAS_STR(a.body, "\"id\":\"2\"");
        HAS_STR(a.body, "\"retry\":\"readback\"");
    }
    EQ_INT(events_ask(h.port, "POST", "/events", NULL).id, 3);
    events_here_close(&h);
    EQ_INT(events_whole(param), 3);
}

static const void *the_case;

static void somebody_else(const char *name, void *ctx)
{
    (void)ctx;
    if (strcmp(name, "events.lost") == 0)
        events_pending(the_case, 2);
}

/* Rolled back, and by the time we ask another server has used the ids. */
TEST(ids_that_somebody_else_took_meanwhile_are_not_ours)
{
    struct events_here h;
    events_here_open(&h, through(param), 0);
    the_case = param;
    hook_on_pause(somebody_else, NULL);
    cut(PROXY_NEVER);
    struct events_answer a = events_ask(h.port, "POST", "/events", NULL);
    EQ_INT(a.status, 201);
    EQ_INT(a.id, 3);
    told_is_stored(h.port, &a);
    EQ_INT(events_whole(param), 3);
    hook_on_pause(NULL, NULL);
    events_here_close(&h);
}
