/*
 * store_commit.c - how store_commit() handles the statuses of an engine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"
#include "store/store.h"

/* An engine that returns what it is told to, and counts calls. */
static enum pawl_status answers[16];
static int asked;

static enum pawl_status scripted(struct store *s, struct op *const *v, size_t n,
                                 struct pawl_err *err)
{
    enum pawl_status st = answers[asked++];
    (void)s;
    (void)v;
    (void)n;
    return st == PAWL_OK ? st : err_set(err, st, "answer %d", asked);
}

static enum pawl_status commit(const enum pawl_status *said, size_t n_said, size_t n,
                               struct op *out)
{
    static const struct store_ops ops = { .name = "scripted", .commit = scripted };
    struct store s = { .ops = &ops };
    struct arena a;
    struct op *v[4];
    asked = 0;
    memcpy(answers, said, n_said * sizeof *said);
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct op){ .kind = OP_PAUSE, .a = &a };
        v[i] = &out[i];
    }
    enum pawl_status st = store_commit(&s, v, n);
    EQ_INT(asked, n_said);
    arena_release(&a);
    return st;
}
#define COMMIT(n, out, ...)                                                                        \
    commit((enum pawl_status[]){ __VA_ARGS__ }, COUNT_OF(((enum pawl_status[]){ __VA_ARGS__ })),   \
           n, out)

TEST(busy_is_asked_again_and_then_said)
{
    struct op op;
    OK(COMMIT(1, &op, PAWL_BUSY, PAWL_BUSY, PAWL_OK), &op.err);
    EQ_STATUS(COMMIT(1, &op, PAWL_BUSY, PAWL_BUSY, PAWL_BUSY), PAWL_BUSY, &op.err);
}

/* After a lost answer, BUSY does not mean that nothing was stored. */
TEST(unknown_stays_unknown)
{
    struct op op;
    OK(COMMIT(1, &op, PAWL_UNKNOWN, PAWL_BUSY, PAWL_OK), &op.err);
    EQ_STATUS(COMMIT(1, &op, PAWL_UNKNOWN, PAWL_BUSY, PAWL_BUSY), PAWL_UNKNOWN, &op.err);
    HAS_STR(op.err.text, "answer 3");
    EQ_STATUS(op.status, PAWL_UNKNOWN, &op.err);
    EQ_STATUS(COMMIT(1, &op, PAWL_UNKNOWN, PAWL_NO_MEMORY), PAWL_UNKNOWN, &op.err);
    EQ_STATUS(COMMIT(1, &op, PAWL_BUSY, PAWL_UNKNOWN, PAWL_BUSY), PAWL_UNKNOWN, &op.err);
}

/* Also when the group is split after that. */
TEST(halves_do_not_forget)
{
    struct op v[2];
    COMMIT(2, v, PAWL_UNKNOWN, PAWL_BROKEN, PAWL_OK, PAWL_BUSY, PAWL_BUSY, PAWL_BUSY);
    EQ_STATUS(v[0].status, PAWL_OK, &v[0].err);
    EQ_STATUS(v[1].status, PAWL_UNKNOWN, &v[1].err);
    COMMIT(2, v, PAWL_BROKEN, PAWL_OK, PAWL_BUSY, PAWL_BUSY, PAWL_BUSY);
    EQ_STATUS(v[1].status, PAWL_BUSY, &v[1].err);
}
