/*
 * sqlite_release.c - this program works on a file that the SQLite engine of release 0.1.0 made,
 * which had its own implementation of every operation.
 *
 * before() plays a sequence of operations that uses everything a file can hold. sqlite_0.1.0.sql is
 * what that engine had in its file at the end: a_file_of_this_release was run there with
 * PAWL_STORY=file, and `sqlite3 file .dump` printed it. The same sequence on mem shows what must be
 * in the file, and after() continues with both, answer by answer, until nothing is left to do.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "check.h"
#include "dump.h"
#include "own_world.h"
#include "store/store.h"

#include <sqlite3.h>

#define OLD_FILE PAWL_SOURCE_DIR "/test/unit/sqlite_0.1.0.sql"
#define ENDED_MAX 100

/* One of the two stores that run the same sequence. */
struct teller {
    struct store *s;
    struct own_world world;
    struct arena a;
    struct buf heard; /* every answer */
    struct bytes ended[ENDED_MAX];
    size_t n_ended; /* completed by after(), in order */
};

static void open_teller(struct teller *t, const char *url)
{
    struct pawl_err err;
    memset(t, 0, sizeof *t);
    own_world_init(&t->world, 1);
    t->world.steady = true;
    arena_init(&t->a, 64u << 20);
    buf_init(&t->heard, 16u << 20);
    struct store_conf conf = { .url = url,
                               .world = &t->world.world,
                               .retention_us = 1000 * SEC_US,
                               .remember_us = 5000 * SEC_US };
    OK(store_open(&conf, &t->s, &err), &err);
    OK(store_migrate(t->s, true, &err), &err);
}

static void close_teller(struct teller *t)
{
    store_end(&t->s);
    arena_release(&t->a);
    buf_release(&t->heard);
}

/* ---- Sentences ------------------------------------------------------------------------------- */

static struct op *tell(struct teller *t, struct op op)
{
    struct op *kept = arena_alloc(&t->a, sizeof *kept);
    TRUE(kept != NULL);
    *kept = op;
    kept->a = &t->a;
    OK(store_commit(t->s, &kept, 1), &kept->err);
    dump_answer(&t->heard, kept);
    return kept;
}

struct ask {
    const char *id, *key, *queue;
    int priority, max_attempts;
    int64_t delay_us, expires_us, keep_us;
    bool block, tagged;
};

static struct call_spec spec_of(struct teller *t, struct ask q)
{
    static const struct tag tags[] = { { { "color", 5 }, { "red", 3 } },
                                       { { "size", 4 }, { "xl", 2 } } };
    struct call_spec s;
    struct pawl_err err;
    call_spec_init(&s);
    s.id = bytes_of(q.id);
    s.type = BYTES("t");
    s.key = q.key ? bytes_of(q.key) : BYTES_NONE;
    s.queue = bytes_of(q.queue ? q.queue : "q");
    s.input = (struct payload){ PAWL_JSON, BYTES("{\"n\": 1}") };
    s.priority = q.priority;
    s.max_attempts = q.max_attempts ? q.max_attempts : 3;
    s.delay_us = q.delay_us;
    s.expires_in_us = q.expires_us;
    s.keep_us = q.keep_us;
    s.on_dead = q.block ? PAWL_ON_DEAD_BLOCK : PAWL_ON_DEAD_SKIP;
    s.tags = q.tagged ? tags : NULL;
    s.n_tags = q.tagged ? COUNT_OF(tags) : 0;
    OK(call_spec_settle(&t->a, &t->world.world, &s, &err), &err);
    return s;
}

static struct op *accept_call(struct teller *t, struct ask q)
{
    struct call_spec *s = arena_alloc(&t->a, sizeof *s);
    TRUE(s != NULL);
    *s = spec_of(t, q);
    return tell(t, (struct op){ .kind = OP_ACCEPT, .accept = { .v = s, .n = 1 } });
}
#define ACCEPT(t, ...) accept_call(t, (struct ask){ __VA_ARGS__ })

static struct token token_of(int n)
{
    return (struct token){ { (unsigned char)n, (unsigned char)(n >> 8), 7 } };
}

struct grab {
    const char *node, *boot, *worker, *queue;
    int token, max, run_max, width;
    int64_t lease_us;
};

/* A claim of one queue, so that it is clear which calls it takes. */
static struct op *grab(struct teller *t, struct grab q)
{
    struct bytes *queue = arena_alloc(&t->a, sizeof *queue);
    TRUE(queue != NULL);
    *queue = bytes_of(q.queue ? q.queue : "q");
    return tell(t, (struct op){ .kind = OP_CLAIM,
                                .claim = { .token = token_of(q.token),
                                           .node = bytes_of(q.node),
                                           .boot = bytes_of(q.boot ? q.boot : "b1"),
                                           .worker = q.worker ? bytes_of(q.worker) : BYTES_NONE,
                                           .queues = queue,
                                           .n_queues = q.queue ? 1 : 0,
                                           .max = q.max,
                                           .run_max = q.run_max,
                                           .width = q.width,
                                           .lease_us = q.lease_us } });
}
#define CLAIM(t, ...) grab(t, (struct grab){ __VA_ARGS__ })

static struct op *end_with(struct teller *t, int token, struct finish_item item)
{
    struct finish_item *f = arena_alloc(&t->a, sizeof *f);
    TRUE(f != NULL);
    *f = item;
    return tell(t, (struct op){ .kind = OP_FINISH,
                                .finish = { .token = token_of(token), .v = f, .n = 1 } });
}
#define FINISH(t, token, name, ...)                                                                \
    end_with(t, token, (struct finish_item){ .id = bytes_of(name), __VA_ARGS__ })
#define RESULT .how = END_RESULT, .result = { PAWL_JSON, BYTES("[true]") }
#define BOOM .how = END_ERROR, .error = BYTES("boom")

static struct op *by_id(struct teller *t, enum op_kind kind, const char *id)
{
    return tell(t, (struct op){ .kind = kind, .by_id = { .id = bytes_of(id) } });
}

static struct op *node(struct teller *t, enum op_kind kind, const char *name, const char *boot)
{
    return tell(t, (struct op){ .kind = kind,
                                .node = { .node = bytes_of(name),
                                          .boot = bytes_of(boot),
                                          .host = BYTES("h"),
                                          .version = BYTES("0.1.0"),
                                          .slots = 4 } });
}

static void sweep(struct teller *t)
{
    tell(t, (struct op){ .kind = OP_SWEEP, .sweep.max = 100 });
}

static void queue_is(struct teller *t, const char *queue, bool paused)
{
    tell(t,
         (struct op){ .kind = OP_PAUSE, .pause = { .queue = bytes_of(queue), .paused = paused } });
}

/* ---- The steps ------------------------------------------------------------------------------- */

/* Every way to end; one call is a tombstone, one is in the archive. */
static void ended_calls(struct teller *t)
{
    ACCEPT(t, .id = "gone", .queue = "e", .keep_us = 1);
    ACCEPT(t, .id = "done", .queue = "e", .tagged = true);
    ACCEPT(t, .id = "dead", .queue = "e", .max_attempts = 1);
    ACCEPT(t, .id = "archived", .queue = "e");
    ACCEPT(t, .id = "called off", .queue = "e");
    ACCEPT(t, .id = "too late", .queue = "e", .expires_us = SEC_US);
    by_id(t, OP_CANCEL, "called off");
    CLAIM(t, .node = "n1", .token = 1, .queue = "e", .max = 4);
    FINISH(t, 1, "archived", RESULT);
    own_world_advance(&t->world, SEC_US);
    tell(t, (struct op){ .kind = OP_GC,
                         .gc = { .max = 10,
                                 .ended_before_us = OWN_WORLD_BEGIN + SEC_US / 2,
                                 .archive = true } });
    FINISH(t, 1, "gone", RESULT);
    FINISH(t, 1, "done", RESULT, .started_us = OWN_WORLD_BEGIN + 3);
    FINISH(t, 1, "dead", BOOM);
    own_world_advance(&t->world, SEC_US);
    sweep(t);
    tell(t, (struct op){ .kind = OP_GC, .gc.max = 10 });
}

/* Calls without keys: ready, delayed, waiting for a retry, lost with their node, in a paused queue.
 */
static void plain_calls(struct teller *t)
{
    ACCEPT(t, .id = "p0", .tagged = true);
    ACCEPT(t, .id = "p1", .priority = 5);
    ACCEPT(t, .id = "p2", .expires_us = 500 * SEC_US);
    ACCEPT(t, .id = "delayed", .delay_us = 50 * SEC_US);
    ACCEPT(t, .id = "tried", .queue = "e");
    CLAIM(t, .node = "n1", .token = 2, .queue = "e", .max = 1);
    FINISH(t, 2, "tried", BOOM, .retry_in_us = 40 * SEC_US);
    ACCEPT(t, .id = "lost", .queue = "e");
    node(t, OP_JOIN, "n3", "b1");
    CLAIM(t, .node = "n3", .token = 3, .queue = "e", .max = 1);
    node(t, OP_JOIN, "n3", "b2");
    queue_is(t, "paused", true);
    ACCEPT(t, .id = "s0", .queue = "paused");
    ACCEPT(t, .id = "s1", .queue = "paused", .key = "still");
}

/* A key with several calls; a key whose head waits for a retry; a blocked key; a key with only
 * delayed calls. */
static void waiting_keys(struct teller *t)
{
    for (int i = 0; i < 4; i++)
        ACCEPT(t, .id = arena_printf(&t->a, "l%d", i), .key = "line");
    for (int i = 0; i < 3; i++)
        ACCEPT(t, .id = arena_printf(&t->a, "r%d", i), .key = "retry", .queue = "k");
    CLAIM(t, .node = "n1", .token = 4, .queue = "k", .max = 2, .run_max = 2);
    FINISH(t, 4, "r0", BOOM, .retry_in_us = 30 * SEC_US);
    ACCEPT(t, .id = "b0", .key = "block", .queue = "k", .max_attempts = 1, .block = true);
    ACCEPT(t, .id = "b1", .key = "block", .queue = "k");
    CLAIM(t, .node = "n1", .token = 5, .queue = "k", .max = 1);
    FINISH(t, 5, "b0", BOOM);
    ACCEPT(t, .id = "y0", .key = "later", .delay_us = 60 * SEC_US);
    ACCEPT(t, .id = "y1", .key = "later", .delay_us = 20 * SEC_US);
}

/* A failed call was retried by an operator, behind calls that have higher numbers. */
static void retried_key(struct teller *t)
{
    ACCEPT(t, .id = "z0", .key = "again", .queue = "z", .max_attempts = 1);
    CLAIM(t, .node = "n1", .token = 6, .queue = "z", .max = 1);
    FINISH(t, 6, "z0", BOOM);
    ACCEPT(t, .id = "z1", .key = "again", .queue = "z");
    ACCEPT(t, .id = "z2", .key = "again", .queue = "z");
    by_id(t, OP_RETRY, "z0");
}

/* Runs that leases hold: of a node, with a cancel request for one of its calls; and of a worker, in
 * which a call with a lower number joined behind the others. */
static void held_keys(struct teller *t)
{
    ACCEPT(t, .id = "x0", .key = "held", .queue = "x", .delay_us = 5 * SEC_US);
    ACCEPT(t, .id = "x1", .key = "held", .queue = "x");
    own_world_advance(&t->world, 6 * SEC_US);
    sweep(t);
    ACCEPT(t, .id = "x2", .key = "held", .queue = "x");
    CLAIM(t, .node = "n2", .worker = "w1", .token = 7, .queue = "x", .max = 3, .run_max = 3,
          .lease_us = 100 * SEC_US);
    ACCEPT(t, .id = "x3", .key = "held", .queue = "x");
    for (int i = 0; i < 4; i++)
        ACCEPT(t, .id = arena_printf(&t->a, "u%d", i), .key = "run", .queue = "u");
    ACCEPT(t, .id = "u9", .queue = "u");
    CLAIM(t, .node = "n1", .token = 8, .queue = "u", .max = 4, .run_max = 3, .width = 1);
    by_id(t, OP_CANCEL, "u1");
}

static void objects(struct teller *t)
{
    ACCEPT(t, .id = "o0", .key = "kept", .queue = "o");
    CLAIM(t, .node = "n1", .token = 9, .queue = "o", .max = 1);
    FINISH(t, 9, "o0", RESULT, .state_do = STATE_SET, .object = { PAWL_JSON, BYTES("{\"a\":1}") });
    tell(t, (struct op){ .kind = OP_OBJECT,
                         .object = { .type = BYTES("t"),
                                     .key = BYTES("other"),
                                     .how = STATE_SET,
                                     .state = { PAWL_BYTES, BYTES("\x01\xff") } } });
}

static void before(struct teller *t)
{
    node(t, OP_JOIN, "n1", "b1");
    node(t, OP_JOIN, "n2", "b1");
    node(t, OP_BEAT, "n2", "b1");
    ended_calls(t);
    plain_calls(t);
    waiting_keys(t);
    retried_key(t);
    held_keys(t);
    objects(t);
    tell(t, (struct op){ .kind = OP_LEAD,
                         .lead = { .role = BYTES("maintenance"),
                                   .node = BYTES("n2"),
                                   .boot = BYTES("b1"),
                                   .lease_us = 10 * SEC_US } });
}

/* ---- The content ----------------------------------------------------------------------------- */

static const char *const ids[] = {
    "gone",  "done", "dead", "archived", "called off", "too late", "p0", "p1", "p2",     "delayed",
    "tried", "lost", "s0",   "s1",       "l0",         "l1",       "l2", "l3", "r0",     "r1",
    "r2",    "b0",   "b1",   "y0",       "y1",         "z0",       "z1", "z2", "x0",     "x1",
    "x2",    "x3",   "u0",   "u1",       "u2",         "u3",       "u9", "o0", "no such"
};

static void look(struct teller *t, struct buf *b)
{
    struct bytes v[COUNT_OF(ids)];
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        v[i] = bytes_of(ids[i]);
    buf_init(b, 16u << 20);
    dump_store(b, t->s, 7);
    dump_ids(b, t->s, v, COUNT_OF(v));
    dump_object(b, t->s, BYTES("t"), BYTES("kept"));
    dump_object(b, t->s, BYTES("t"), BYTES("other"));
}

static void same_text(const char *what, const struct buf *want, const struct buf *got)
{
    if (!bytes_eq(buf_bytes(want), buf_bytes(got)))
        FAIL("%s differs\nmem:\n%.*s\nthe file:\n%.*s\n", what, BYTES_ARG(buf_bytes(want)),
             BYTES_ARG(buf_bytes(got)));
}

static void same(struct teller *mem, struct teller *file)
{
    struct buf want, got;
    look(mem, &want);
    look(file, &got);
    same_text("what is there", &want, &got);
    buf_release(&want);
    buf_release(&got);
}

/* ---- The result ------------------------------------------------------------------------------ */

/* An id stays known: the same call again, and another call with the id. */
static void duplicates(struct teller *t)
{
    for (size_t i = 0; i < COUNT_OF(ids) - 1; i++) {
        struct op *op = ACCEPT(t, .id = ids[i], .key = "another");
        EQ_STATUS(op->accept.out[0].status, PAWL_CONFLICT, NULL);
    }
    TRUE(ACCEPT(t, .id = "done", .queue = "e", .tagged = true)->accept.out[0].duplicate);
    TRUE(ACCEPT(t, .id = "l2", .key = "line")->accept.out[0].duplicate);
    EQ_STATUS(ACCEPT(t, .id = "gone", .queue = "e", .keep_us = 1)->accept.out[0].status, PAWL_GONE,
              NULL);
}

/* Leases of the former program go on: a repeat, a result, an error that takes the rest along; and
 * the node that is gone is declared dead. */
static void leases(struct teller *t)
{
    CLAIM(t, .node = "n2", .worker = "w1", .token = 7, .queue = "x", .max = 3, .run_max = 3,
          .lease_us = 100 * SEC_US);
    OK(FINISH(t, 7, "x1", RESULT)->status, NULL);
    OK(FINISH(t, 7, "x1", RESULT)->status, NULL);
    OK(FINISH(t, 7, "x0", BOOM, .retry_in_us = 5 * SEC_US)->status, NULL);
    GT_INT(node(t, OP_JOIN, "n1", "b2")->node.reclaimed, 0);
    EQ_STATUS(FINISH(t, 8, "u0", RESULT)->status, PAWL_LOST_LEASE, NULL);
}

static void decisions(struct teller *t)
{
    OK(tell(t,
            (struct op){ .kind = OP_UNBLOCK, .unblock = { .key = BYTES("block"), .retry = true } })
           ->status,
       NULL);
    queue_is(t, "paused", false);
    OK(by_id(t, OP_CANCEL, "l2")->status, NULL);
    OK(by_id(t, OP_RETRY, "dead")->status, NULL);
    ACCEPT(t, .id = "l4", .key = "line");
    ACCEPT(t, .id = "x4", .key = "held", .queue = "x");
}

/* Run everything that is due until nothing is left; records completed calls in the order of their
 * ends. */
static void drain(struct teller *t)
{
    for (int token = 100; token < 300; token++) {
        struct op *op = CLAIM(t, .node = "n2", .token = token, .max = 5, .run_max = 3, .width = 2);
        for (size_t i = 0; i < op->claim.n; i++) {
            struct bytes id = op->claim.calls[i].spec.id;
            OK(end_with(t, token, (struct finish_item){ .id = id, RESULT })->status, NULL);
            LT_INT((int64_t)t->n_ended, ENDED_MAX);
            t->ended[t->n_ended++] = id;
        }
        if (op->claim.n)
            continue;
        sweep(t);
        if (!op->claim.more && !op->claim.next_due_us)
            return;
        own_world_advance(&t->world, 10 * SEC_US);
    }
    FAIL("there is no end to it");
}

static void after(struct teller *t)
{
    duplicates(t);
    leases(t);
    decisions(t);
    drain(t);
}

/* ---- Invariants ------------------------------------------------------------------------------ */

/* The calls of a key, in the order in which they complete. */
static void in_order(const struct teller *t, const char *const *want, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < t->n_ended && at < n; i++)
        at += bytes_eq(t->ended[i], bytes_of(want[at]));
    EQ_UINT(at, n);
}
#define IN_ORDER(t, ...)                                                                           \
    in_order(t, (const char *const[]){ __VA_ARGS__ },                                              \
             sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void once_each(const struct teller *t)
{
    for (size_t i = 0; i < t->n_ended; i++)
        for (size_t k = 0; k < i; k++)
            FALSE(bytes_eq(t->ended[i], t->ended[k]));
}

static int64_t number_in_key(struct teller *t, const char *id)
{
    struct pawl_err err;
    struct bytes name = bytes_of(id);
    struct get g = { .ids = &name, .n = 1 };
    OK(store_get(t->s, &t->a, &g, &err), &err);
    OK(g.found[0], NULL);
    return g.out[0].key_no;
}

/* Numbers that were assigned stay, and the next one follows them. */
static void numbers(struct teller *t)
{
    static const char *const held[] = { "x1", "x0", "x2", "x3", "x4" };
    static const char *const run[] = { "u0", "u1", "u2", "u3" };
    static const char *const line[] = { "l0", "l1", "l3", "l4" };
    for (size_t i = 0; i < COUNT_OF(held); i++)
        EQ_INT(number_in_key(t, held[i]), (int64_t)i + 1);
    for (size_t i = 0; i < COUNT_OF(run); i++)
        EQ_INT(number_in_key(t, run[i]), (int64_t)i + 1);
    for (size_t i = 0; i < COUNT_OF(line); i++)
        EQ_INT(number_in_key(t, line[i]), (int64_t)i + 1);
    EQ_INT(number_in_key(t, "z1"), 2);
    EQ_INT(number_in_key(t, "z0"), 4);
}

static void holds(struct teller *t)
{
    once_each(t);
    IN_ORDER(t, "l0", "l1", "l3", "l4");
    IN_ORDER(t, "r0", "r1", "r2");
    IN_ORDER(t, "b0", "b1");
    IN_ORDER(t, "y1", "y0");
    IN_ORDER(t, "z1", "z2", "z0");
    IN_ORDER(t, "x0", "x2", "x3", "x4");
    IN_ORDER(t, "u0", "u2", "u3");
    numbers(t);
}

/* ---- The cases ------------------------------------------------------------------------------- */

static void load_file(const char *path)
{
    static char text[1 << 20];
    char *said = NULL;
    sqlite3 *db;
    FILE *f = fopen(OLD_FILE, "r");
    TRUE(f != NULL);
    size_t len = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    LT_INT((int64_t)len, (int64_t)sizeof text - 1);
    text[len] = 0;
    EQ_INT(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &said) != SQLITE_OK)
        FAIL("%s: %s", OLD_FILE, said);
    EQ_INT(sqlite3_close(db), SQLITE_OK);
}

static void copy_file(struct teller *t, const char *path)
{
    struct pawl_err err;
    OK(store_backup(t->s, &(struct backup){ .path = path }, &err), &err);
}

static void go_on(struct teller *mem, struct teller *file)
{
    after(mem);
    after(file);
    same_text("an answer", &mem->heard, &file->heard);
    same(mem, file);
    holds(file);
    close_teller(file);
    close_teller(mem);
}

TEST(a_file_of_this_release)
{
    struct teller mem, file;
    open_teller(&mem, "mem:story");
    open_teller(&file, "sqlite:now.db");
    before(&mem);
    before(&file);
    same(&mem, &file);
    if (getenv("PAWL_STORY"))
        copy_file(&file, getenv("PAWL_STORY"));
    go_on(&mem, &file);
}

TEST(a_file_of_0_1_0)
{
    struct teller mem, file;
    open_teller(&mem, "mem:story");
    before(&mem);
    load_file("old.db");
    open_teller(&file, "sqlite:old.db");
    own_world_advance(&file.world, world_now(&mem.world.world) - world_now(&file.world.world));
    buf_reset(&mem.heard);
    same(&mem, &file);
    go_on(&mem, &file);
}
