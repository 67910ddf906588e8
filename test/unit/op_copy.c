/*
 * op_copy.c - a copied operation has no pointer into the caller's memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "check.h"
#include "counter.h"

/* Nothing of the copy is in the memory of the original operation. */
static void outside(const void *p, const void *from, size_t len)
{
    const char *at = p, *begin = from;
    TRUE(at < begin || at >= begin + len);
}

TEST(a_claim_is_copied_with_its_quick_types)
{
    struct arena a;
    struct op copy;
    char text[] = "quick";
    struct bytes quick[] = { { text, 5 } };
    struct op op = { .kind = OP_CLAIM, .claim = { .max_any = 1, .quick = quick, .n_quick = 1 } };
    arena_init(&a, 1 << 16);
    TRUE(op_copy(&a, &op, &copy));
    memset(text, 'x', sizeof text);
    outside(copy.claim.quick, quick, sizeof quick);
    quick[0] = BYTES_NONE;
    EQ_INT((int64_t)copy.claim.n_quick, 1);
    EQ_BYTES(copy.claim.quick[0].data, copy.claim.quick[0].len, "quick", 5);
    arena_release(&a);
}

TEST(a_change_of_an_object_is_copied_with_its_versions)
{
    struct arena a;
    struct op copy;
    int64_t versions[] = { 3, 5 };
    struct op op = { .kind = OP_OBJECT, .object = { .or_versions = versions, .n_or_versions = 2 } };
    arena_init(&a, 1 << 16);
    TRUE(op_copy(&a, &op, &copy));
    memset(versions, 0, sizeof versions);
    EQ_INT((int64_t)copy.object.n_or_versions, 2);
    EQ_INT(copy.object.or_versions[0], 3);
    EQ_INT(copy.object.or_versions[1], 5);
    arena_release(&a);
}

TEST(a_wake_and_operations_of_features_are_copied)
{
    struct arena a;
    struct op copy;
    char text[] = "name";
    int64_t seqs[] = { 7, 9 };
    struct counter_op q = { .name = { text, 4 }, .by = 3 };
    struct feature_op with = { .of = &counter_feature, .ctx = &q };
    struct finish_item item = { .seq = 1, .how = END_RESULT, .with = &with };
    struct op wake = { .kind = OP_WAKE, .wake = { seqs, 2 } };
    struct op count = { .kind = OP_FEATURE, .feature = with };
    struct op end = { .kind = OP_FINISH, .finish = { .v = &item, .n = 1 } };
    arena_init(&a, 1 << 16);
    TRUE(op_copy(&a, &wake, &copy));
    outside(copy.wake.seqs, seqs, sizeof seqs);
    EQ_INT(copy.wake.seqs[1], 9);
    TRUE(op_copy(&a, &count, &copy));
    const struct counter_op *to = copy.feature.ctx;
    outside(to, &q, sizeof q);
    outside(to->name.data, text, sizeof text);
    EQ_INT(to->by, 3);
    TRUE(op_copy(&a, &end, &copy));
    outside(copy.finish.v[0].with, &with, sizeof with);
    to = copy.finish.v[0].with->ctx;
    outside(to->name.data, text, sizeof text);
    EQ_BYTES(to->name.data, to->name.len, "name", 4);
    arena_release(&a);
}
