/*
 * differential.c - the same random operations on mem and on another engine give the same answers
 * and the same state.
 *
 * mem is the contract read plainly, so a difference is a bug in one of them or a hole in the
 * contract. A sequence is a few dozen groups of operations over a small set of ids, so that
 * duplicates, conflicts, stale tokens and reclaims are the normal case. Everything follows from the
 * sequence's seed:
 *
 *     PAWL_SEED=n       runs that sequence alone, and says what it does
 *     PAWL_SEQUENCES=n  how many to run (of each case)
 *     PAWL_OTHER=url    what to compare with instead; mem:x only looks for crashes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "check.h"
#include "dump.h"
#include "engines.h"
#include "fresh_db.h"
#include "random_ops.h"
#include "store/store.h"

#define SEQUENCES_DEFAULT 700
/* A round trip a statement: so many take as long as the others. */
#define SEQUENCES_SERVER 60
#define GROUPS 24
#define GROUP_OPS 8
#define HANDLES 2
#define RETENTION_US (60 * SEC_US)
#define REMEMBER_US (200 * SEC_US)
#define KEY_PENDING_MAX 5
#define ARENA_MAX (64u << 20)

/* One of the two engines. */
struct side {
    const char *name;
    struct own_world world;
    struct store *s[HANDLES]; /* an engine may remember things per handle */
    struct arena a;           /* answers of the present group */
    struct op ops[GROUP_OPS];
    struct buf text;
};

struct sequence {
    uint64_t seed;
    int step, handle;
    bool loud;
    struct side side[2];
    struct random_ops ops;
    struct op asked[GROUP_OPS];
    size_t n;
};

/* ---- Answers ----------------------------------------------------------------------------------
 */

static void answer(struct sequence *q, struct side *s)
{
    struct op *v[GROUP_OPS];
    arena_reset(&s->a);
    for (size_t i = 0; i < q->n; i++) {
        s->ops[i] = q->asked[i];
        s->ops[i].a = &s->a;
        v[i] = &s->ops[i];
        if (v[i]->kind != OP_FINISH)
            continue;
        /* Items carry their answers. */
        size_t size = v[i]->finish.n * sizeof *v[i]->finish.v;
        v[i]->finish.v = arena_alloc(&s->a, size);
        TRUE(v[i]->finish.v != NULL);
        memcpy(v[i]->finish.v, q->asked[i].finish.v, size);
    }
    enum pawl_status st = store_commit(s->s[q->handle], v, q->n);
    for (size_t i = 0; st != PAWL_OK && i < q->n; i++)
        if (v[i]->status == st)
            FAIL("PAWL_SEED=%" PRIu64 " step %d, handle %d: %s of %s: %s", q->seed, q->step,
                 q->handle, s->name, op_name(v[i]->kind), v[i]->err.text);
}

_Noreturn static void differ(struct sequence *q, const char *what)
{
    struct buf asked;
    buf_init(&asked, 1 << 20);
    for (size_t i = 0; i < q->n; i++)
        dump_question(&asked, &q->asked[i]);
    FAIL("PAWL_SEED=%" PRIu64
         " step %d, handle %d: %s differs\nasked:\n%.*s\n%s:\n%.*s\n%s:\n%.*s\n",
         q->seed, q->step, q->handle, what, BYTES_ARG(buf_bytes(&asked)), q->side[0].name,
         BYTES_ARG(buf_bytes(&q->side[0].text)), q->side[1].name,
         BYTES_ARG(buf_bytes(&q->side[1].text)));
}

static void compare(struct sequence *q, const char *what)
{
    if (!bytes_eq(buf_bytes(&q->side[0].text), buf_bytes(&q->side[1].text)))
        differ(q, what);
    for (int i = 0; i < 2; i++)
        buf_reset(&q->side[i].text);
}

static void compare_answers(struct sequence *q)
{
    for (size_t i = 0; i < q->n; i++) {
        for (int k = 0; k < 2; k++) {
            buf_addf(&q->side[k].text, "%zu: ", i);
            dump_answer(&q->side[k].text, &q->side[k].ops[i]);
        }
    }
    if (q->loud)
        printf("# step %d\n%.*s", q->step, BYTES_ARG(buf_bytes(&q->side[0].text)));
    compare(q, "an answer");
}

static void dump_objects(struct side *s, struct store *handle)
{
    char key[] = "k1";
    for (int k = 0; k < RANDOM_KEYS; k++, key[1]++) {
        dump_object(&s->text, handle, BYTES("t"), bytes_of(key));
        dump_object(&s->text, handle, BYTES("u"), bytes_of(key));
    }
}

static void compare_state(struct sequence *q)
{
    struct bytes ids[RANDOM_IDS];
    for (int i = 0; i < RANDOM_IDS; i++)
        ids[i] = bytes_of(arena_printf(&q->ops.a, "i%d", i));
    for (int k = 0; k < 2; k++) {
        dump_store(&q->side[k].text, q->side[k].s[q->handle], 1 + (int)(q->seed % 7));
        dump_ids(&q->side[k].text, q->side[k].s[q->handle], ids, RANDOM_IDS);
        dump_objects(&q->side[k], q->side[k].s[q->handle]);
    }
    compare(q, "the state");
}

static void list_all(struct side *s, struct query f)
{
    do {
        struct page page;
        struct pawl_err err;
        OK(store_list(s->s[0], &s->a, &f, &page, &err), &err);
        for (size_t i = 0; i < page.n; i++)
            dump_call(&s->text, &page.v[i]);
        f.before_seq = page.next_before;
    } while (f.before_seq);
}

static void compare_lists(struct sequence *q)
{
    for (int i = 0; i < 4; i++) {
        struct query f = random_query(&q->ops);
        for (int k = 0; k < 2; k++)
            list_all(&q->side[k], f);
        compare(q, "a list");
    }
}

static void pass_time(struct sequence *q)
{
    static const int64_t jumps[] = { 0, 0, 1, SEC_US, SEC_US, 2 * SEC_US, 5 * SEC_US, 31 * SEC_US };
    int64_t us = jumps[below(&q->ops, (int)COUNT_OF(jumps))];
    if (one_in(&q->ops, 30))
        us = REMEMBER_US;
    for (int k = 0; k < 2; k++)
        own_world_advance(&q->side[k].world, us);
}

/* ---- Sequences --------------------------------------------------------------------------------
 */

static void side_open(struct side *s, const char *name, const char *url, uint64_t seed)
{
    struct pawl_err err;
    char schema[32];
    s->name = name;
    own_world_init(&s->world, seed);
    s->world.steady = true; /* engines may throw the dice in another order */
    snprintf(schema, sizeof schema, "s%" PRIu64, seed); /* a database is empty under a new name */
    struct store_conf conf = { .url = url,
                               .schema = strstr(url, "://") ? schema : NULL,
                               .world = &s->world.world,
                               .retention_us = RETENTION_US,
                               .remember_us = REMEMBER_US,
                               .key_pending_max = KEY_PENDING_MAX };
    for (int i = 0; i < HANDLES; i++)
        OK(store_open(&conf, &s->s[i], &err), &err);
    OK(store_migrate(s->s[0], true, &err), &err);
    arena_init(&s->a, ARENA_MAX);
    buf_init(&s->text, 16 << 20);
}

static void side_close(struct side *s)
{
    for (int i = 0; i < HANDLES; i++)
        store_close(s->s[i]);
    arena_release(&s->a);
    buf_release(&s->text);
}

static void run_sequence(uint64_t seed, const char *url, bool loud)
{
    struct sequence *q = calloc(1, sizeof *q);
    TRUE(q != NULL);
    q->seed = seed;
    q->ops.dice = mix64(seed);
    q->ops.world = &q->side[0].world.world;
    q->loud = loud;
    arena_init(&q->ops.a, ARENA_MAX);
    side_open(&q->side[0], "mem", "mem:differential", seed);
    side_open(&q->side[1], "other", url, seed);
    for (q->step = 0; q->step < GROUPS; q->step++) {
        q->n = (size_t)(one_in(&q->ops, 2) ? 1 : 1 + below(&q->ops, GROUP_OPS));
        for (size_t i = 0; i < q->n; i++)
            random_op(&q->ops, &q->asked[i]);
        q->handle = one_in(&q->ops, 3);
        for (int k = 0; k < 2; k++)
            answer(q, &q->side[k]);
        compare_answers(q);
        for (size_t i = 0; i < q->n; i++)
            random_learn(&q->ops, &q->side[0].ops[i]);
        pass_time(q);
        if (q->step % 8 == 7)
            compare_state(q);
    }
    compare_lists(q);
    for (int k = 0; k < 2; k++)
        side_close(&q->side[k]);
    arena_release(&q->ops.a);
    free(q);
}

static int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    int64_t n;
    return text && int_parse(bytes_of(text), &n) ? n : otherwise;
}

/* Seeds are first, first + 4, first + 8, ... */
static void run_share(int first)
{
    struct fresh_db p;
    const char *other = getenv("PAWL_OTHER");
    int64_t only = setting("PAWL_SEED", -1);
    int64_t n = setting("PAWL_SEQUENCES", check_fast() ? 50 : SEQUENCES_DEFAULT / check_scale());
    if (only >= 0 && only % 4 != first)
        skip("PAWL_SEED=%" PRId64 " is another case's", only);
    fresh_db_make(&p);
    printf("# seeds %d to %" PRId64 " in steps of 4\n", first, first + 4 * (n - 1));
    for (int64_t i = 0; i < n; i++) {
        fresh_db_reset(&p);
        run_sequence(only >= 0 ? (uint64_t)only : (uint64_t)(first + 4 * i), other ? other : p.url,
                     only >= 0);
        if (only >= 0)
            break;
    }
    fresh_db_end(&p);
}

TEST(mem_and_the_server_agree, .deadline_s = 600)
{
    int64_t only = setting("PAWL_SEED", -1);
    int64_t n = setting("PAWL_SEQUENCES", check_fast() ? 10 : SEQUENCES_SERVER / check_scale());
    const char *url = engine_url(param);
    for (int64_t i = 0; i < n; i++) {
        run_sequence((uint64_t)(only >= 0 ? only : i), url, only >= 0);
        if (only >= 0)
            break;
    }
}

ENGINES_MAIN(ENGINE_SERVER)

TEST(mem_and_sqlite_agree_1_of_4, .deadline_s = 600, .plain = true)
{
    run_share(0);
}

TEST(mem_and_sqlite_agree_2_of_4, .deadline_s = 600, .plain = true)
{
    run_share(1);
}

TEST(mem_and_sqlite_agree_3_of_4, .deadline_s = 600, .plain = true)
{
    run_share(2);
}

TEST(mem_and_sqlite_agree_4_of_4, .deadline_s = 600, .plain = true)
{
    run_share(3);
}
