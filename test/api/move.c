/*
 * move.c - PATCH of a call that a node has claimed and not begun: it is pending, and is moved.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/internal.h"
#include "lib/lib.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

/* Two slots that are full, and calls that were claimed ahead. */
static void begin(struct web *w, const void *param, const char *key)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    const char *queue = "default";
    struct pawl_workers workers = { PAWL_WORKERS_INIT, .slots = 2, .queues = &queue,
                                    .n_queues = 1 };
    fixture_assume_quick();
    fixture_on(p, "t", fixture_blocks);
    for (int i = 0; i < 8; i++)
        fixture_submit_as(p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = web_text("c%d", i),
                                                 .type = "t", .key = key });
    web_begin_as(w, p, NULL);
    OK(pawl_start(p, &workers, &err), &err);
    UNTIL(atomic_load(&fixture_inside) == (key ? 1 : 2));
}

static struct web_answer patch(struct web *w, const char *id, const char *body)
{
    return web_ask(w, "PATCH", web_text("/v1/calls/%s", id), body);
}

/* Every call left in the queue runs. The calls that were moved run when a worker claims from their
 * new queue. */
static void runs_there(struct web *w, const char *id, int others)
{
    fixture_open_gate();
    UNTIL(atomic_load(&fixture_runs) == others);
    struct web_answer a = POST(w, "/v1/work/claim", "{\"queues\":[\"other\"],\"wait\":10}");
    EQ_STR(AT(a, "calls.0.id"), id);
    EQ_STR(AT(a, "calls.0.attempt"), "1");
    a = POST(w, "/v1/work/finish",
             web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"%s\",\"result\":1}]}",
                      AT(a, "lease"), id));
    EQ_INT(a.status, 200);
    EQ_STR(AT(GET(w, web_text("/v1/calls/%s", id)), "status"), "completed");
}

TEST(a_call_claimed_ahead_is_moved)
{
    struct web w;
    begin(&w, param, NULL);
    struct web_answer a = patch(&w, "c7", "{\"queue\":\"other\",\"priority\":7}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "pending");
    EQ_STR(AT(a, "queue"), "other");
    EQ_STR(AT(a, "priority"), "7");
    a = patch(&w, "c6", "{\"run_at\":\"2099-01-01T00:00:00Z\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "waiting_for"), "time");
    EQ_INT(patch(&w, "c0", "{\"queue\":\"other\"}").status, 409); /* it runs */
    runs_there(&w, "c7", 6);
    web_end(&w);
}

TEST(a_call_behind_in_a_run_is_moved)
{
    struct web w;
    begin(&w, param, "k");
    struct web_answer a = patch(&w, "c7", "{\"queue\":\"other\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "position"), "7");
    EQ_STR(AT(a, "queue"), "other");
    runs_there(&w, "c7", 7);
    web_end(&w);
}

/* Its owner hangs: 503, to be tried again, after 1000000; and others are answered meanwhile. */
TEST(a_move_waits_apart)
{
    struct web w;
    struct arena arena;
    web_begin(&w, param);
    fixture_submit_many(w.p, "t", 2);
    arena_init(&arena, 1 << 20);
    struct op op = { .kind = OP_CLAIM,
                     .a = &arena,
                     .claim = { .token = token_make(w.p->e->conf.world),
                                .node = BYTES("by-hand"),
                                .boot = BYTES("b1"),
                                .max = 2,
                                .width = 1,
                                .lease_us = 600 * SEC_US } };
    OK(exec_do(w.p->e, &op), &op.err);
    int64_t began_us = fixture_mono();
    int fd = web_connect(&w);
    web_send(&w, fd, "PATCH", "/v1/calls/c1", "{\"priority\":7}");
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"t\",\"id\":\"x\"}").status, 202);
    EQ_INT(patch(&w, "x", "{\"priority\":7}").status, 200);
    struct web_answer a = web_take(fd);
    GE_INT(fixture_mono() - began_us, MOVE_WAIT_US);
    EQ_INT(a.status, 503);
    EQ_STR(AT(a, "error.code"), "BUSY");
    HAS_STR(AT(a, "error.message"), "has claimed it and has not begun it");
    close(fd);
    arena_release(&arena);
    web_end(&w);
}
