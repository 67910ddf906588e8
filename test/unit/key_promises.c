/*
 * key_promises.c - what must hold for keys after every operation, seen from outside.
 *
 * The same random sequences as in the differential test, on mem alone: that test compares engines
 * with each other, this one compares with the contract.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/text.h"
#include "check.h"
#include "dump.h"
#include "random_ops.h"
#include "store/store.h"

#define SEQUENCES 700
#define STEPS 60
#define RETENTION_US (60 * SEC_US)
#define ARENA_MAX (64u << 20)

struct world_of_keys {
    uint64_t seed;
    int step;
    struct own_world world;
    struct store *s;
    struct arena a;
    struct random_ops ops;
    struct op op;
    int64_t version;              /* the last version of an object */
    int64_t numbers[RANDOM_KEYS]; /* the last number of a call of the key */
};

_Noreturn static void broken(struct world_of_keys *w, const char *what)
{
    struct buf text;
    buf_init(&text, 16 << 20);
    dump_question(&text, &w->op);
    dump_answer(&text, &w->op);
    dump_store(&text, w->s, LIST_MAX);
    FAIL("seed %" PRIu64 " step %d: %s\n%.*s", w->seed, w->step, what, BYTES_ARG(buf_bytes(&text)));
}

static void holds_that(struct world_of_keys *w, bool true_, const char *what)
{
    if (!true_)
        broken(w, what);
}

static struct page calls_of(struct world_of_keys *w, const char *key)
{
    struct query q = { .key = bytes_of(key), .limit = LIST_MAX };
    struct page page;
    struct pawl_err err;
    OK(store_list(w->s, &w->a, &q, &page, &err), &err);
    return page;
}

/* The row of the key; NULL when it is idle. */
static const struct key_row *row_of(struct world_of_keys *w, const char *key)
{
    struct key_query q = { .limit = LIST_MAX };
    struct key_rows *rows = arena_zalloc(&w->a, 1, sizeof *rows);
    struct pawl_err err;
    OK(store_keys(w->s, &w->a, &q, rows, &err), &err);
    for (size_t i = 0; i < rows->n; i++)
        if (bytes_eq(rows->v[i].key, bytes_of(key)))
            return &rows->v[i];
    return NULL;
}

/* One call, compared with its key's row. */
static void check_call(struct world_of_keys *w, const struct call *c, const struct key_row *row)
{
    bool ended = pawl_state_ended(c->state), running = c->state == PAWL_PROCESSING;
    holds_that(w, !c->in_line || !ended, "an ended call is in line");
    holds_that(w, c->in_line || c->position == 0, "a place without a line");
    holds_that(w, !running || (c->in_line && c->position == 0), "what runs is not at 0");
    holds_that(w, !running || c->key_no > 0, "what runs has no number");
    holds_that(w, !c->in_line || row, "a key with a line is not shown");
    if (c->state != PAWL_PENDING || !c->in_line)
        return;
    bool next = c->position == 1 && !row->blocked && row->head_state == PAWL_PENDING;
    holds_that(w, (c->waiting_for == WAIT_KEY) == !next, "the wrong call waits for its key");
    holds_that(w, !next || bytes_eq(row->head, c->spec.id), "the head is another one");
}

static void check_places(struct world_of_keys *w, const struct page *page,
                         const struct key_row *row)
{
    int64_t n = 0, sum = 0, running = 0, last_held = -1, first_free = INT64_MAX;
    for (size_t i = 0; i < page->n; i++) {
        const struct call *c = &page->v[i];
        check_call(w, c, row);
        n += c->in_line;
        sum += c->position;
        running += c->state == PAWL_PROCESSING;
        if (c->in_line && c->node.data)
            last_held = MAX(last_held, c->position);
        else if (c->in_line)
            first_free = MIN(first_free, c->position);
        for (size_t k = 0; k < i; k++)
            holds_that(w, !c->key_no || c->key_no != page->v[k].key_no, "a number given twice");
    }
    holds_that(w, running <= 1, "two calls of a key run");
    holds_that(w, last_held < first_free, "a held call stands behind one that no lease holds");
    holds_that(w, !running || !row->blocked, "a blocked key runs");
    holds_that(w, sum == (running ? n * (n - 1) / 2 : n * (n + 1) / 2), "a gap in the line");
}

static void check_key(struct world_of_keys *w, const char *key)
{
    struct page page = calls_of(w, key);
    const struct key_row *row = row_of(w, key);
    int64_t waiting = 0;
    bool found = false;
    for (size_t i = 0; i < page.n; i++) {
        const struct call *c = &page.v[i];
        waiting += c->state == PAWL_PENDING && !c->node.data;
        if (row && bytes_eq(c->spec.id, row->head)) {
            found = true;
            holds_that(w, c->state == row->head_state, "the head's state is another one");
            holds_that(w, row->blocked == pawl_state_ended(c->state), "an ended head, or not");
            holds_that(w, !row->blocked || call_blocks(&c->spec, c->state), "it may not block");
            holds_that(w, !row->blocked || !c->keep_until_us, "what blocks will be removed");
        }
    }
    holds_that(w, !row || found, "the head is not there");
    holds_that(w, !row || row->pending == waiting, "pending is miscounted");
    check_places(w, &page, row);
}

/* Numbers are consecutive; they start again only for a key that was forgotten. */
static void check_claim(struct world_of_keys *w)
{
    for (size_t i = 0; i < w->op.claim.n; i++) {
        const struct call *c = &w->op.claim.calls[i];
        if (!c->spec.key.data)
            continue;
        int64_t *last = &w->numbers[c->spec.key.data[1] - '1'];
        holds_that(w, c->key_no <= *last + 1, "a number is left out");
        *last = MAX(*last, c->key_no);
    }
}

static void check_version(struct world_of_keys *w, int64_t version)
{
    if (!version)
        return;
    holds_that(w, version == w->version + 1, "versions do not follow each other");
    w->version = version;
}

static void check_answer(struct world_of_keys *w)
{
    struct op *op = &w->op;
    if (op->status != PAWL_OK)
        return;
    if (op->kind == OP_CLAIM)
        check_claim(w);
    if (op->kind == OP_OBJECT)
        check_version(w, op->object.version);
    for (size_t i = 0; op->kind == OP_FINISH && i < op->finish.n; i++)
        check_version(w, op->finish.v[i].version);
}

static void pass_time(struct world_of_keys *w)
{
    static const int64_t jumps[] = { 0, 0, 0, 1, SEC_US, 2 * SEC_US, 5 * SEC_US, 31 * SEC_US };
    own_world_advance(&w->world, jumps[below(&w->ops, (int)COUNT_OF(jumps))]);
}

static void run_sequence(uint64_t seed)
{
    struct world_of_keys *w = calloc(1, sizeof *w);
    struct pawl_err err;
    struct op *v = &w->op;
    TRUE(w != NULL);
    w->seed = seed;
    w->ops.dice = mix64(seed);
    w->ops.world = &w->world.world;
    own_world_init(&w->world, seed);
    struct store_conf conf = { .url = "mem:promises",
                               .world = &w->world.world,
                               .retention_us = RETENTION_US,
                               .remember_us = RETENTION_US };
    OK(store_open(&conf, &w->s, &err), &err);
    arena_init(&w->a, ARENA_MAX);
    arena_init(&w->ops.a, ARENA_MAX);
    for (w->step = 0; w->step < STEPS; w->step++) {
        arena_reset(&w->a);
        random_op(&w->ops, &w->op);
        w->op.a = &w->a;
        OK(store_commit(w->s, &v, 1), &w->op.err);
        check_answer(w);
        random_learn(&w->ops, &w->op);
        check_key(w, "k1");
        check_key(w, "k2");
        check_key(w, "k3");
        pass_time(w);
    }
    store_close(w->s);
    arena_release(&w->a);
    arena_release(&w->ops.a);
    free(w);
}

TEST(keys_keep_their_promises, .deadline_s = 300)
{
    int n = check_long() ? SEQUENCES / check_scale() : 100;
    for (int i = 0; i < n; i++)
        run_sequence((uint64_t)i);
}
