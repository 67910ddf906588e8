/*
 * sqlite_archive.c - the content of the archive in an SQLite file, for people who read it with SQL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "lite.h"

#define BEGIN_US INT64_C(1700000000000000)

static int64_t now_us = BEGIN_US;

static int64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}
static int64_t clock_mono(void *ctx)
{
    (void)ctx;
    return world_mono(&world_real);
}
static uint64_t clock_dice(void *ctx)
{
    (void)ctx;
    return world_dice(&world_real);
}
static const struct world by_hand = { clock_now, clock_mono, clock_dice, NULL };

static struct gc archive(struct lite_fixture *r, int64_t before_us, int64_t after_seq, int max)
{
    struct op op = {
        .kind = OP_GC,
        .gc = { .max = max, .ended_before_us = before_us, .after_seq = after_seq, .archive = true }
    };
    OK(lite_one(r, &op), &op.err);
    return op.gc;
}

static void accept_spec(struct lite_fixture *r, struct call_spec spec)
{
    OK(call_spec_settle(&r->a, &by_hand, &spec, &r->err), &r->err);
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = &spec, .n = 1 } };
    OK(lite_one(r, &op), &op.err);
    OK(op.accept.out[0].status, NULL);
}

static void finish_with(struct lite_fixture *r, struct token token, struct finish_item f)
{
    struct op op = { .kind = OP_FINISH, .finish = { .token = token, .v = &f, .n = 1 } };
    OK(lite_one(r, &op), &op.err);
}

#define HOLDS(r, sql) EQ_INT(lite_ask((r), "SELECT count(*) FROM pawl_archive WHERE " sql), 1)

TEST(an_archived_call_can_be_read)
{
    struct lite_fixture r;
    static const struct tag tag = { { "color", 5 }, { "red", 3 } };
    lite_fixture_open(&r, "sqlite:read.db", &by_hand);
    struct call_spec spec;
    call_spec_init(&spec);
    spec.id = BYTES("order-1");
    spec.type = BYTES("orders");
    spec.method = BYTES("ship");
    spec.queue = BYTES("mail");
    spec.key = BYTES("ann");
    spec.caller = BYTES("web");
    spec.input = (struct payload){ PAWL_JSON, BYTES("{\"n\":1}") };
    spec.tags = &tag;
    spec.n_tags = 1;
    accept_spec(&r, spec);
    now_us += SEC_US;
    struct op claim = lite_claim_of(&r, NULL, 1, 1);
    now_us += 5;
    finish_with(&r, claim.claim.token,
                (struct finish_item){ .id = BYTES("order-1"),
                                      .how = END_RESULT,
                                      .result = { PAWL_BYTES, { "\0\1", 2 } } });
    now_us += SEC_US;
    EQ_INT(archive(&r, now_us, 0, 10).removed, 1);
    HOLDS(&r, "id = 'order-1' AND seq = 1 AND status = 'completed' AND queue = 'mail'");
    HOLDS(&r, "type = 'orders' AND method = 'ship' AND key = 'ann' AND key_no = 1");
    HOLDS(&r, "input = '{\"n\":1}' AND typeof(input) = 'text'");
    HOLDS(&r, "result = x'0001' AND typeof(result) = 'blob' AND error IS NULL");
    HOLDS(&r, "caller = 'web' AND tags LIKE '%red%' AND attempts + lost + redrives = 0");
    HOLDS(&r, "created_at = '2023-11-14T22:13:20.000000Z'");
    HOLDS(&r, "started_at = '2023-11-14T22:13:21.000000Z'");
    HOLDS(&r, "finished_at = '2023-11-14T22:13:21.000005Z'");
    HOLDS(&r, "archived_at = '2023-11-14T22:13:22.000005Z'");
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_call"), 0);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_outcome"), 0);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_tag"), 0);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_gone"), 1);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_id"), 1);
    lite_fixture_close(&r);
}

TEST(retention_leaves_no_copy_unless_told)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:gc.db", &by_hand);
    for (int i = 0; i < 2; i++) {
        struct call_spec spec;
        call_spec_init(&spec);
        spec.id = i ? BYTES("b") : BYTES("a");
        spec.type = BYTES("t");
        spec.keep_us = 1;
        accept_spec(&r, spec);
        struct op claim = lite_claim_of(&r, NULL, 1, (unsigned char)(i + 1));
        OK(lite_finish_seq(&r, claim.claim.token, i + 1), NULL);
        now_us += SEC_US;
        struct op op = { .kind = OP_GC, .gc = { .max = 10, .archive = i == 1 } };
        OK(lite_one(&r, &op), &op.err);
        EQ_INT(op.gc.removed, 1);
    }
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_archive"), 1);
    HOLDS(&r, "id = 'b'");
    lite_fixture_close(&r);
}

/* A step that copies a lot ends early, so that other writers do not wait long for the lock. */
TEST(large_calls_end_a_step_early)
{
    struct lite_fixture r;
    lite_fixture_open(&r, "sqlite:large.db", &by_hand);
    lite_accept_n(&r, "t", 40, INPUT_LEN_MAX, 0);
    for (int64_t seq = 1; seq <= 40;) {
        struct op claim = lite_claim_of(&r, NULL, 10, (unsigned char)seq);
        for (size_t i = 0; i < claim.claim.n; i++, seq++)
            OK(lite_finish_seq(&r, claim.claim.token, seq), NULL);
    }
    now_us += SEC_US;
    struct gc g = archive(&r, now_us, 0, 100);
    EQ_INT(g.removed, CLAIM_LEN_MAX / INPUT_LEN_MAX);
    TRUE(g.more);
    EQ_INT(g.next_seq, g.removed);
    int64_t removed = g.removed;
    for (int i = 0; i < 10 && g.more; i++, removed += g.removed)
        g = archive(&r, now_us, g.next_seq, 100);
    EQ_INT(removed, 40);
    EQ_INT(lite_ask(&r, "SELECT count(*) FROM pawl_archive"), 40);
    lite_fixture_close(&r);
}

/* Many young calls come first: a step scans a limited number and reports where it stopped. */
TEST(a_step_looks_at_a_bounded_number_of_calls)
{
    struct lite_fixture r;
    int n = LIST_LOOK_MAX + 10;
    lite_fixture_open(&r, "sqlite:many.db", &by_hand);
    lite_accept_n(&r, "t", n, 1, 0);
    EQ_INT(sqlite3_exec(lite_of_fixture(&r)->db,
                        "INSERT INTO pawl_outcome SELECT seq, 3, 0, NULL, NULL, 0, 0, 0, 0, NULL, "
                        "NULL, NULL, NULL, 1700000000000000 + (seq < 10010) * 9000000000, "
                        "1800000000000000 FROM pawl_call; DELETE FROM pawl_ready",
                        NULL, NULL, NULL),
           SQLITE_OK);
    struct gc g = archive(&r, BEGIN_US + 60 * SEC_US, 0, 10);
    EQ_INT(g.removed, 0);
    TRUE(g.more);
    GE_INT(g.next_seq, LIST_LOOK_MAX);
    g = archive(&r, BEGIN_US + 60 * SEC_US, g.next_seq, 10);
    EQ_INT(g.removed, 1);
    FALSE(g.more);
    lite_fixture_close(&r);
}

RUNS_ON(ENGINE_FILE)
