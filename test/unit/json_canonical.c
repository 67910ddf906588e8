/*
 * json_canonical.c - equal values give equal texts, different values different ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/world.h"
#include "check.h"

static struct arena arena;

static struct bytes canonical(struct bytes text)
{
    struct pawl_err err;
    struct bytes out;
    if (!arena.max)
        arena_init(&arena, 256 << 20);
    OK(json_canonical(&arena, text, &out, &err), &err);
    return out;
}

TEST(known_texts)
{
    static const char *const pairs[][2] = {
        { " 1 ", "1" },
        { "1.0", "1.0" },
        { "1e2", "1e2" },
        { " \"a b\" ", "\"a b\"" },
        { "\"\\u0061\"", "\"\\u0061\"" },
        { "[ ]", "[]" },
        { "{ }", "{}" },
        { "[ 1 , 2 ]", "[1,2]" },
        { "[2,1]", "[2,1]" },
        { "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}" },
        { "{\"b\":2,\"a\":1}", "{\"a\":1,\"b\":2}" },
        { "{ \"b\" : 2 , \"a\" : 1 }", "{\"a\":1,\"b\":2}" },
        { "{\"b\":1,\"\":2}", "{\"\":2,\"b\":1}" },
        { "{\"ab\":1,\"a\":2}", "{\"a\":2,\"ab\":1}" },
        { "{\"a\":2,\"a\":1}", "{\"a\":2,\"a\":1}" },
        { "{\"b\":0,\"a\":2,\"a\":1}", "{\"a\":2,\"a\":1,\"b\":0}" },
        { "{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"f\":1,\"e\":2}]}",
          "{\"a\":[{\"e\":2,\"f\":1}],\"b\":{\"c\":2,\"d\":1}}" },
        { "[{\"b\":1,\"a\":2},3,{\"d\":1,\"c\":{\"y\":1,\"x\":[]}},[]]",
          "[{\"a\":2,\"b\":1},3,{\"c\":{\"x\":[],\"y\":1},\"d\":1},[]]" },
        { "{\"z\":[{},{},{\"b\":{},\"a\":{}}],\"y\":{},\"x\":\"{\\\"b\\\":1,\\\"a\\\":2}\"}",
          "{\"x\":\"{\\\"b\\\":1,\\\"a\\\":2}\",\"y\":{},\"z\":[{},{},{\"a\":{},\"b\":{}}]}" },
        { "{\"a\":{\"c\":1,\"b\":2}}", "{\"a\":{\"b\":2,\"c\":1}}" },
        { "{\"a,b\":\"[ {\",\"A\":\" : \"}", "{\"A\":\" : \",\"a,b\":\"[ {\"}" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct bytes got = canonical(bytes_of(pairs[i][0]));
        EQ_BYTES(got.data, got.len, pairs[i][1], strlen(pairs[i][1]));
    }
    arena_release(&arena);
}

TEST(different_values_stay_different)
{
    static const char *const pairs[][2] = {
        { "1", "1.0" },
        { "1e2", "100" },
        { "\"a\"", "\"\\u0061\"" },
        { "[1,2]", "[2,1]" },
        { "null", "{}" },
        { "{\"a\":1}", "{\"A\":1}" },
        { "{\"a\":2,\"a\":1}", "{\"a\":1,\"a\":2}" },
        { "\"1\"", "1" },
        { "\" \"", "\"\"" },
        { "[[],[]]", "[[[]]]" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        FALSE(bytes_eq(canonical(bytes_of(pairs[i][0])), canonical(bytes_of(pairs[i][1]))));
    arena_release(&arena);
}

TEST(refuses_what_is_not_json)
{
    struct pawl_err err;
    struct bytes out;
    arena_init(&arena, 1 << 20);
    EQ_STATUS(json_canonical(&arena, BYTES("{\"b\":1,\"a\":}"), &out, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "byte 11: expected a value");
    EQ_STATUS(json_canonical(&arena, BYTES_NONE, &out, &err), PAWL_INVALID, &err);
    arena_release(&arena);
}

/* ---- A value written in random order and spacing --------------------------------------------- */

static unsigned roll(unsigned n)
{
    return (unsigned)(world_dice(&world_real) % n);
}

static void space(struct buf *b, bool wild)
{
    for (unsigned n = wild && roll(4) == 0 ? roll(3) : 0; n > 0; n--)
        buf_add_char(b, " \t\n\r"[roll(4)]);
}

/* The value of `seed`. Wild: members in any order, spaces anywhere. */
static void write_value(struct buf *b, unsigned seed, int depth, bool wild)
{
    unsigned n = seed % 5, kind = depth > 5 ? 0 : seed / 5 % 4, order[5];
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    for (unsigned i = n; wild && kind >= 2 && i > 1; i--) {
        unsigned other = roll(i), swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
    space(b, wild);
    if (kind == 0)
        buf_addf(b, "%u", seed);
    else
        buf_add_char(b, kind == 1 ? '[' : '{');
    for (unsigned i = 0; kind > 0 && i < n; i++) {
        if (i > 0)
            buf_add_char(b, ',');
        space(b, wild);
        if (kind >= 2) {
            buf_addf(b, "\"m%u\"", order[i]);
            space(b, wild);
            buf_add_char(b, ':');
        }
        write_value(b, seed * 31 + order[i] * 7 + 1, depth + 1, wild);
    }
    if (kind > 0) {
        space(b, wild);
        buf_add_char(b, kind == 1 ? ']' : '}');
    }
    space(b, wild);
}

TEST(any_order_gives_the_same_text)
{
    struct buf tame, wild;
    buf_init(&tame, 1 << 20);
    buf_init(&wild, 1 << 20);
    for (unsigned round = 0; round < 5000; round++) {
        unsigned seed = (unsigned)world_dice(&world_real);
        buf_reset(&tame);
        buf_reset(&wild);
        write_value(&tame, seed, 0, false);
        write_value(&wild, seed, 0, true);
        struct bytes a = canonical(buf_bytes(&tame)), b = canonical(buf_bytes(&wild));
        EQ_BYTES(a.data, a.len, tame.data, tame.len);
        EQ_BYTES(b.data, b.len, a.data, a.len);
        arena_reset(&arena);
    }
    buf_release(&tame);
    buf_release(&wild);
    arena_release(&arena);
}

/* ---- Expensive shapes ------------------------------------------------------------------------ */

static double seconds(void)
{
    return (double)world_mono(&world_real) / SEC_US;
}

TEST(a_large_object_in_reverse, .deadline_s = 20)
{
    struct buf b;
    enum { N = 70000 };
    buf_init(&b, 2 << 20);
    buf_add_char(&b, '{');
    for (int i = N; i > 0; i--) {
        json_add_comma(&b);
        buf_addf(&b, "\"%06d\":%d", i, i % 10);
    }
    buf_add_char(&b, '}');
    TRUE(buf_ok(&b));
    double began = seconds();
    struct bytes out = canonical(buf_bytes(&b));
    TRUE(seconds() - began < 2 * check_scale());
    EQ_UINT(out.len, b.len);
    EQ_MEM(out.data, "{\"000001\":1,\"000002\":2,", 23);
    buf_release(&b);
    arena_release(&arena);
}

/* Nested objects up to the limit, each out of order, around one large text: it is copied once, not
 * once for each level. */
TEST(a_deep_object_in_reverse, .deadline_s = 20)
{
    struct buf b;
    buf_init(&b, 4 << 20);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_text(&b, "{\"b\":0,\"a\":");
    buf_add_char(&b, '"');
    for (int i = 0; i < 1000000; i++)
        buf_add_char(&b, 'x');
    buf_add_char(&b, '"');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_add_char(&b, '}');
    double began = seconds();
    struct bytes out = canonical(buf_bytes(&b));
    TRUE(seconds() - began < 0.5 * check_scale());
    EQ_UINT(out.len, b.len);
    EQ_MEM(out.data, "{\"a\":{\"a\":", 10);
    EQ_MEM(out.data + out.len - 14, ",\"b\":0},\"b\":0}", 14);
    buf_release(&b);
    arena_release(&arena);
}

TEST(array_items_cost_no_memory)
{
    struct buf b;
    struct bytes out;
    buf_init(&b, 2 << 20);
    buf_add_text(&b, "[0");
    while (b.len < (1 << 20) - 2)
        buf_add_text(&b, ", 0");
    buf_add_char(&b, ']');
    struct arena a;
    arena_init(&a, b.len + 4096);
    OK(json_canonical(&a, buf_bytes(&b), &out, NULL), NULL);
    LT_INT((int64_t)out.len, (int64_t)b.len);
    arena_release(&a);
    buf_release(&b);
}

TEST(a_canonical_text_is_its_own)
{
    struct arena a;
    struct bytes text = BYTES("{\"a\":[1,{\"b\":2}]}"), out;
    arena_init(&a, 0);
    OK(json_canonical(&a, text, &out, NULL), NULL);
    EQ_PTR(out.data, text.data);
    arena_release(&a);
}

TEST(survives_without_memory)
{
    int64_t before = mem_live();
    struct arena a;
    struct bytes out;
    struct pawl_err err;
    arena_init(&a, 1 << 20);
    mem_torture(1, 1);
    EQ_STATUS(json_canonical(&a, BYTES("{\"b\":1,\"a\":2}"), &out, &err), PAWL_NO_MEMORY, &err);
    mem_torture(0, 0);
    arena_release(&a);
    EQ_INT(mem_live(), before);
}
