/*
 * events.c - workers of the event service at the same time as each other, as servers, and with
 * events whose value cannot be generated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/log.h"
#include "base/world.h"
#include "events_fixture.h"
#include "net_fixture.h"

RUNS_ON(ENGINES_DURABLE)

enum { EVENTS = 1000, WORKERS = 8, AGAIN_MAX = 50 };

static atomic_int made[EVENTS + 1];
static atomic_bool healed;

static size_t count_made(void *ctx, int64_t id, char out[EVENT_VALUE_MAX + 1])
{
    (void)ctx;
    if (id <= EVENTS)
        atomic_fetch_add(&made[id], 1);
    return (size_t)snprintf(out, EVENT_VALUE_MAX + 1, "value-%lld", (long long)id);
}

/* Every seventh value fails, the first included, until it is healed. */
static size_t some_fail(void *ctx, int64_t id, char out[EVENT_VALUE_MAX + 1])
{
    if (id % 7 == 1 && !atomic_load(&healed))
        return 0;
    return count_made(ctx, id, out);
}

static struct events_workers *workers(const void *param, int threads, int batch, event_maker *make)
{
    struct pawl_err err;
    struct events_workers *w;
    struct events_workers_conf conf = { .db = engine_url(param),
                                        .threads = threads,
                                        .batch = batch,
                                        .poll_us = 20 * MS_US,
                                        .jitter_us = 10 * MS_US,
                                        .skip_us = 20 * MS_US,
                                        .make = make };
    OK(events_workers_open(&conf, &w, &err), &err);
    return w;
}

static struct events_figures figures(const struct events_workers *w)
{
    struct events_figures f;
    events_workers_figures(w, &f);
    return f;
}

/* Assert that each of n values was made and stored once. A batch that was rolled back and repeated
 * had made its values for nothing; no other value is made twice. Ends the workers. */
static void made_once(const void *param, struct events_workers *w, int n, int batch)
{
    NET_UNTIL(figures(w).done == n); /* counted shortly after the commit */
    struct events_figures f = figures(w);
    int64_t sum = 0;
    events_workers_close(w);
    printf("# %lld polls, %lld empty, %lld done again\n", (long long)f.polls, (long long)f.empty,
           (long long)f.again);
    /* On a file a batch is repeated when the worker did not get the write lock in time, before it
     * has made a value: any number of repeats is fine. On a server a repeat is a deadlock between
     * two scans, which InnoDB may report now and then; if scans locked every row they passed, there
     * would be hundreds. */
    bool file = engine_of(param)->kind == ENGINE_FILE;
    if (!file)
        LE_INT(f.again, AGAIN_MAX);
    EQ_INT(f.done, n);
    for (int i = 1; i <= n; i++) {
        GE_INT(atomic_load(&made[i]), 1);
        sum += atomic_load(&made[i]);
    }
    LE_INT(sum, n + (file ? 0 : f.again * batch));
}

/* ---- Many workers ---------------------------------------------------------------------------- */

static void many(const void *param, int batch)
{
    log_level_set(LOG_DEBUG); /* logs what was repeated, and why */
    events_pending(param, EVENTS);
    struct events_workers *w = workers(param, WORKERS, batch, count_made);
    events_until_done(param);
    EQ_INT(figures(w).failed, 0);
    made_once(param, w, EVENTS, batch);
    EQ_INT(events_whole(param), EVENTS);
    EQ_INT(engine_int(param, "SELECT count(DISTINCT value) FROM events;"), EVENTS);
}

TEST(eight_workers_do_a_thousand_once_each)
{
    many(param, 20);
}

TEST(eight_workers_one_event_at_a_time)
{
    many(param, 1);
}

/* ---- While a worker holds rows --------------------------------------------------------------- */

static atomic_bool held, let_go;

/* The first worker that gets here waits until it is released. */
static void hold_first(const char *name, void *ctx)
{
    if (strcmp(name, ctx) != 0 || atomic_exchange(&held, true))
        return;
    NET_UNTIL(atomic_load(&let_go));
}

TEST(a_worker_that_holds_some_stops_nobody)
{
    if (engine_of(param)->kind == ENGINE_FILE)
        skip("one transaction writes at a time on this engine");
    events_pending(param, 100);
    hook_on_pause(hold_first, "events.held");
    struct events_workers *w = workers(param, 4, 10, count_made);
    NET_UNTIL(atomic_load(&held));
    NET_UNTIL(events_left(param) == 10);
    atomic_store(&let_go, true);
    events_until_done(param);
    made_once(param, w, 100, 10);
    hook_on_pause(NULL, NULL);
}

/* ---- Idle pollers ---------------------------------------------------------------------------- */

TEST(an_idle_poll_that_has_not_ended_delays_no_insert)
{
    struct events_here h;
    events_pending(param, 200);
    struct events_workers *w = workers(param, 1, 100, count_made);
    hook_on_pause(hold_first, "events.empty");
    events_until_done(param);
    NET_UNTIL(atomic_load(&held)); /* it has scanned everything and not rolled back yet */
    events_here_open(&h, engine_url(param), 0);
    for (int i = 1; i <= 20; i++) {
        struct events_answer a =
            events_ask(h.port, "POST", i % 2 ? "/events" : "/events/async", NULL);
        EQ_INT(a.status, i % 2 ? 201 : 202);
        EQ_INT(a.id, 200 + i);
    }
    TRUE(!atomic_load(&let_go));
    atomic_store(&let_go, true);
    events_until_done(param);
    events_workers_close(w);
    hook_on_pause(NULL, NULL);
    events_here_close(&h);
    EQ_INT(events_whole(param), 220);
}

TEST(pollers_beside_inserts_leave_nothing)
{
    struct events_here h;
    struct pawl_err err;
    struct events_workers *w;
    struct events_workers_conf conf = { .db = engine_url(param),
                                        .threads = WORKERS,
                                        .batch = 10,
                                        .poll_us = MS_US,
                                        .make = count_made };
    events_here_open(&h, engine_url(param), 0);
    OK(events_workers_open(&conf, &w, &err), &err);
    int fd = events_connect(h.port);
    for (int i = 1; i <= 200; i++) {
        events_send(fd, "POST", "/events/async", NULL);
        EQ_INT(events_read(fd).id, i);
    }
    events_until_done(param);
    made_once(param, w, 200, 10);
    close(fd);
    events_here_close(&h);
}

TEST(waiting_lasts_as_long_as_it_was_told)
{
    struct pawl_err err;
    struct events_workers *w;
    struct events_workers_conf conf = {
        .db = engine_url(param), .threads = 1, .batch = 10, .poll_us = 3600 * SEC_US
    };
    OK(events_workers_open(&conf, &w, &err), &err);
    NET_UNTIL(figures(w).empty == 1);
    events_pending(param, 1);
    for (int i = 0; i < 100; i++)
        net_nap();
    EQ_INT(figures(w).polls, 1);
    EQ_INT(events_left(param), 1);
    events_workers_close(w); /* at once, although its poll interval is an hour */
}

/* ---- Events that cannot be made -------------------------------------------------------------- */

TEST(an_event_that_cannot_be_made_stops_no_other)
{
    events_pending(param, 700);
    struct events_workers *w = workers(param, 4, 5, some_fail);
    NET_UNTIL(events_left(param) == 100);
    GE_INT(figures(w).failed, 100);
    EQ_INT(engine_int(param, "SELECT count(*) FROM events WHERE value IS NULL AND id % 7 <> 1;"),
           0);
    atomic_store(&healed, true);
    events_until_done(param);
    made_once(param, w, 700, 5);
}

/* The database itself rejects one value. */
TEST(an_event_that_cannot_be_stored_stops_no_other)
{
    struct pawl_err err;
    struct events_workers *w;
    if (engine_of(param)->kind == ENGINE_FILE) {
        events_pending(param, 1);
        engine_rows(param, "DROP TABLE events;");
        engine_rows(param, "CREATE TABLE events (id int, value varchar(255) CHECK (id <> 3 OR "
                           "value IS NULL));");
        engine_rows(param, "UPDATE status SET id = 0;");
        events_pending(param, 50);
    } else {
        events_pending(param, 50);
        engine_rows(param, "ALTER TABLE events ADD CONSTRAINT never CHECK (id <> 3 OR value IS "
                           "NULL);");
    }
    struct events_workers_conf conf = { .db = engine_url(param),
                                        .threads = 2,
                                        .batch = 20,
                                        .poll_us = 20 * MS_US,
                                        .make = count_made };
    OK(events_workers_open(&conf, &w, &err), &err);
    NET_UNTIL(events_left(param) == 1);
    GE_INT(figures(w).failed, 1);
    events_workers_close(w);
    EQ_INT(engine_int(param, "SELECT id FROM events WHERE value IS NULL;"), 3);
}

/* Foreign rows: without an id, or with an id that no event has. */
TEST(rows_without_an_id_are_passed_by)
{
    events_pending(param, 10);
    engine_rows(param,
                "INSERT INTO events (id, value) VALUES (NULL, NULL), (0, NULL), (-5, NULL);");
    struct events_workers *w = workers(param, 2, 4, count_made);
    NET_UNTIL(events_left(param) == 3);
    NET_UNTIL(figures(w).empty >= 2);
    EQ_INT(figures(w).failed, 0);
    events_workers_close(w);
}
