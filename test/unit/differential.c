/*
 * differential.c - the same random operations on mem and on another engine give the same answers
 * and the same state.
 *
 * mem is the simplest implementation of the contract, so a difference is a bug in one of them or a
 * gap in the contract. A sequence is a few dozen groups of operations on a small set of ids, so
 * that duplicates, conflicts, stale tokens and reclaims are frequent. Everything follows from the
 * sequence's seed:
 *
 *     PAWL_SEED=n       runs that sequence alone, and prints what it does
 *     PAWL_SEEDS=n      how many sequences to run for each pair of engines
 *     PAWL_SEED_FIRST=n from this one on (0)
 *     PAWL_OTHER=url    what to compare with instead of SQLite; mem:x only looks for crashes
 *
 * A server's database is migrated once a case and emptied before every sequence.
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
#include "store/mysql/mydb.h"
#include "store/store.h"
#include "wiped_db.h"

/* As many as take some seconds. A server needs a round trip for each statement; `make nightly` runs
 * 1,000 for every pair. */
#define SEEDS_FILE 200
#define SEEDS_FILE_LONG 2800
#define SEEDS_SERVER 30
#define SEEDS_SERVER_LONG 1000
#define GROUPS 24
#define GROUP_OPS 8
#define HANDLES 2
#define RETENTION_US (60 * SEC_US)
#define REMEMBER_US (200 * SEC_US)
/* Soon reached; in every third sequence so far away that numbers are given before it is known
 * whether a call is refused. */
#define KEY_PENDING_MAX 5
#define KEY_PENDING_FAR 100000
#define ARENA_MAX (64u << 20)

/* One of the two engines. */
struct side {
    const char *name;
    struct own_world world;
    struct store *s[HANDLES]; /* an engine may cache things per handle */
    struct arena a;           /* answers of the current group */
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

/* ---- Answers --------------------------------------------------------------------------------- */

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
        /* Items hold their answers. */
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

/* ---- Sequences ------------------------------------------------------------------------------- */

static struct store_conf side_conf(struct side *s, const char *url, uint64_t seed)
{
    return (struct store_conf){ .url = url,
                                .world = &s->world.world,
                                .retention_us = RETENTION_US,
                                .remember_us = REMEMBER_US,
                                .key_pending_max =
                                    seed % 3 == 1 ? KEY_PENDING_FAR : KEY_PENDING_MAX };
}

static void side_open(struct side *s, const char *name, const char *url, uint64_t seed)
{
    mydb_reserve_first = 0; /* mem skips no number either */
    struct pawl_err err;
    s->name = name;
    own_world_init(&s->world, seed);
    s->world.steady = true; /* engines may use random numbers in another order */
    struct store_conf conf = side_conf(s, url, seed);
    for (int i = 0; i < HANDLES; i++)
        OK(store_open(&conf, &s->s[i], &err), &err);
    if (!strstr(url, "://")) /* a server's database is migrated already */
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

/* The seeds of one case. */
struct seeds {
    int64_t at, end, step;
    bool loud;
};

/* The seeds of the first, second, ... of `share` cases; `otherwise`: how many for a pair by
 * default. */
static struct seeds seeds_of(int64_t otherwise, int first, int share)
{
    int64_t only = setting("PAWL_SEED", -1);
    if (only >= 0 && only % share != first)
        skip("PAWL_SEED=%" PRId64 " is another case's", only);
    if (only >= 0)
        return (struct seeds){ .at = only, .end = only + 1, .step = 1, .loud = true };
    int64_t from = setting("PAWL_SEED_FIRST", 0);
    struct seeds out = { .at = from + first,
                         .end = from + setting("PAWL_SEEDS", otherwise / check_scale()),
                         .step = share };
    printf("# seeds %" PRId64 " to %" PRId64 " in steps of %d\n", out.at, out.end - 1, share);
    return out;
}

static void run_share(int first)
{
    struct fresh_db p;
    const char *other = getenv("PAWL_OTHER");
    struct seeds v = seeds_of(check_long() ? SEEDS_FILE_LONG : SEEDS_FILE, first, 4);
    fresh_db_make(&p);
    for (; v.at < v.end; v.at += v.step) {
        fresh_db_reset(&p);
        run_sequence((uint64_t)v.at, other ? other : p.url, v.loud);
    }
    fresh_db_end(&p);
}

/* A server's migrated database, to be emptied before every sequence. */
static const char *server_begin(struct wiped_db *p, const char *param)
{
    struct store *s;
    struct pawl_err err;
    const char *url = engine_url(param);
    OK(store_open(&(struct store_conf){ .url = url }, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    store_close(s);
    wiped_db_make(p, param);
    return url;
}

TEST(mem_and_the_server_agree, .deadline_s = 1200)
{
    struct wiped_db p;
    struct seeds v = seeds_of(check_long() ? SEEDS_SERVER_LONG : SEEDS_SERVER, 0, 1);
    const char *url = server_begin(&p, param);
    for (; v.at < v.end; v.at += v.step) {
        wiped_db_reset(&p);
        run_sequence((uint64_t)v.at, url, v.loud);
    }
    wiped_db_end(&p);
}

/* Each of these seeds found a bug, which also has a case in conform. */
TEST(what_once_differed, .deadline_s = 120)
{
    static const uint64_t seeds[] = {
        651, /* a token claimed twice in one group: remembered/a_token_used_twice_* */
        848, /* numbers of a key after gc: remembered/a_key_of_which_nothing_is_left_begins_anew */
    };
    struct wiped_db p;
    const char *url = server_begin(&p, param);
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        wiped_db_reset(&p);
        run_sequence(seeds[i], url, false);
    }
    wiped_db_end(&p);
}

RUNS_ON(ENGINE_SERVER)

/* A quarter of the seeds in each case, so that they run in parallel. */
#define AGREE(name, first)                                                                         \
    TEST(name, .deadline_s = 600, .plain = true)                                                   \
    {                                                                                              \
        run_share(first);                                                                          \
    }
AGREE(mem_and_sqlite_agree_1_of_4, 0)
AGREE(mem_and_sqlite_agree_2_of_4, 1)
AGREE(mem_and_sqlite_agree_3_of_4, 2)
AGREE(mem_and_sqlite_agree_4_of_4, 3)
