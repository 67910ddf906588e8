/*
 * options.c - stored options and tags are read back unchanged, and nothing else is accepted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/json.h"
#include "model/call.h"
#include "check.h"

static struct arena arena;
static struct pawl_err err;

#define EQ_RUN(b, want) EQ_BYTES((b).data, (b).len, want, strlen(want))

static struct bytes written(const struct call_spec *s)
{
    struct bytes text;
    if (!arena.max)
        arena_init(&arena, 1 << 20);
    OK(call_options_write(&arena, s, &text, &err), &err);
    return text;
}

TEST(defaults_are_not_stored)
{
    struct call_spec s;
    call_spec_init(&s);
    EQ_PTR(written(&s).data, NULL);
    s.priority = 7; /* a column */
    EQ_PTR(written(&s).data, NULL);
    OK(call_options_read(&arena, BYTES_NONE, &s, &err), &err);
    EQ_INT(s.max_attempts, 3);
    arena_release(&arena);
}

TEST(only_what_differs_is_stored)
{
    struct call_spec s;
    call_spec_init(&s);
    s.max_attempts = 5;
    s.timeout_us = SEC_US;
    EQ_RUN(written(&s), "{\"max_attempts\":5,\"timeout_us\":1000000}");
    call_spec_init(&s);
    s.on_dead = PAWL_ON_DEAD_BLOCK;
    EQ_RUN(written(&s), "{\"on_dead\":\"block\"}");
    s.watch = WATCH_CRON;
    EQ_RUN(written(&s), "{\"on_dead\":\"block\",\"watch\":1}");
    s.watch = 0;
    s.backoff.jitter = 0;
    s.max_lost = 1;
    s.keep_us = 9;
    s.backoff.factor = 1.5;
    EQ_RUN(written(&s), "{\"max_lost\":1,\"keep_us\":9,\"backoff_factor\":1.5,\"backoff_jitter\":0,"
                        "\"on_dead\":\"block\"}");
    arena_release(&arena);
}

static void eq_options(const struct call_spec *a, const struct call_spec *b)
{
    EQ_BYTES(a->schedule.data, a->schedule.len, b->schedule.data, b->schedule.len);
    EQ_INT(a->scheduled_us, b->scheduled_us);
    EQ_INT(a->max_attempts, b->max_attempts);
    EQ_INT(a->max_lost, b->max_lost);
    EQ_INT(a->timeout_us, b->timeout_us);
    EQ_INT(a->keep_us, b->keep_us);
    EQ_INT(a->backoff.base_us, b->backoff.base_us);
    EQ_INT(a->backoff.max_us, b->backoff.max_us);
    EQ_MEM(&a->backoff.factor, &b->backoff.factor, sizeof(double));
    EQ_MEM(&a->backoff.jitter, &b->backoff.jitter, sizeof(double));
    EQ_INT(a->on_dead, b->on_dead);
    EQ_UINT(a->watch, b->watch);
}

static uint64_t roll(uint64_t n)
{
    return world_dice(&world_real) % n;
}

static int64_t any_us(int64_t plain)
{
    if (roll(3) == 0)
        return plain;
    return roll(8) ? (int64_t)roll((uint64_t)DURATION_MAX_US + 1) : DURATION_MAX_US;
}

TEST(any_options_read_back)
{
    for (int round = 0; round < 30000; round++) {
        struct call_spec s, back;
        call_spec_init(&s);
        call_spec_init(&back);
        if (roll(2))
            s.max_attempts = 1 + (int)roll(1000);
        if (roll(2))
            s.max_lost = 1 + (int)roll(1000);
        s.timeout_us = any_us(s.timeout_us);
        s.keep_us = any_us(s.keep_us);
        s.backoff.base_us = any_us(s.backoff.base_us);
        s.backoff.max_us = any_us(s.backoff.max_us);
        if (roll(2))
            s.backoff.factor = 1 + 999 * world_unit(&world_real);
        if (roll(2))
            s.backoff.jitter = world_unit(&world_real);
        s.on_dead = (enum pawl_on_dead)roll(2);
        if (roll(2)) {
            s.schedule = BYTES("n\"ight \xc3\xa9");
            s.scheduled_us = roll(2) ? 1 + (int64_t)roll((uint64_t)DURATION_MAX_US) : 0;
        }
        s.watch = (unsigned)roll(WATCH_ALL + 1);
        OK(call_options_read(&arena, written(&s), &back, &err), &err);
        eq_options(&s, &back);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

TEST(what_we_did_not_write_is_broken)
{
    static const char *const bad[] = {
        "",
        "1",
        "[]",
        "null",
        "{",
        "{\"max_attempts\":0}",
        "{\"watch\":0}",
        "{\"watch\":32}",
        "{\"watch\":-1}",
        "{\"watch\":\"1\"}",
        "{\"max_attempts\":1001}",
        "{\"max_attempts\":\"5\"}",
        "{\"max_attempts\":5.0}",
        "{\"max_lost\":null}",
        "{\"timeout_us\":-1}",
        "{\"timeout_us\":3162240000000001}",
        "{\"backoff_factor\":1e999}",
        "{\"backoff_factor\":-1}",
        "{\"backoff_jitter\":\"0\"}",
        "{\"on_dead\":\"skip\"}",
        "{\"on_dead\":1}",
        "{\"schedule\":1}",
        "{\"schedule\":\"\"}",
        "{\"schedule\":\"a\",\"scheduled_us\":\"1\"}",
        "{\"scheduled_us\":253402300800000000}",
        "{\"unknown\":1}",
        "{\"max_attempts\":5}x",
    };
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct call_spec s;
        call_spec_init(&s);
        if (call_options_read(&arena, bytes_of(bad[i]), &s, &err) != PAWL_BROKEN)
            FAIL("taken for options: %s", bad[i]);
    }
    arena_release(&arena);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

TEST(tags)
{
    static const struct tag v[] = { { BYTES("shop"), BYTES("a \"b\" \\ \xc3\xa9") },
                                    { BYTES("."), BYTES("") } };
    struct call_spec s = { .tags = v, .n_tags = 2 }, back = { .n_tags = 9 };
    struct bytes text;
    arena_init(&arena, 1 << 20);
    OK(call_tags_write(&arena, &s, &text, &err), &err);
    EQ_RUN(text, "{\"shop\":\"a \\\"b\\\" \\\\ \xc3\xa9\",\".\":\"\"}");
    OK(call_tags_read(&arena, text, &back, &err), &err);
    EQ_UINT(back.n_tags, 2);
    for (size_t i = 0; i < 2; i++) {
        EQ_BYTES(back.tags[i].name.data, back.tags[i].name.len, v[i].name.data, v[i].name.len);
        EQ_BYTES(back.tags[i].value.data, back.tags[i].value.len, v[i].value.data, v[i].value.len);
    }
    s.n_tags = 0;
    OK(call_tags_write(&arena, &s, &text, &err), &err);
    EQ_PTR(text.data, NULL);
    OK(call_tags_read(&arena, text, &back, &err), &err);
    EQ_UINT(back.n_tags, 0);
    EQ_PTR(back.tags, NULL);
    arena_release(&arena);
}

TEST(the_largest_tags_fit)
{
    static char names[TAG_MAX][TAG_NAME_LEN_MAX], value[TAG_VALUE_LEN_MAX];
    struct tag v[TAG_MAX];
    struct call_spec s = { .tags = v, .n_tags = TAG_MAX }, back;
    struct bytes text;
    memset(names, '"', sizeof names);
    memset(value, '\\', sizeof value);
    for (int i = 0; i < TAG_MAX; i++) {
        names[i][0] = (char)('a' + i);
        v[i] = (struct tag){ { names[i], TAG_NAME_LEN_MAX }, { value, TAG_VALUE_LEN_MAX } };
    }
    arena_init(&arena, 1 << 20);
    OK(call_tags_write(&arena, &s, &text, &err), &err);
    OK(call_tags_read(&arena, text, &back, &err), &err);
    EQ_UINT(back.n_tags, TAG_MAX);
    EQ_BYTES(back.tags[15].value.data, back.tags[15].value.len, value, TAG_VALUE_LEN_MAX);
    arena_release(&arena);
}

TEST(broken_tags)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"a\":\"b\"",
        "{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\",\"e\":\"\",\"f\":\"\",\"g\":\"\",\"h\":\"\","
        "\"i\":\"\",\"j\":\"\",\"k\":\"\",\"l\":\"\","
        "\"m\":\"\",\"n\":\"\",\"o\":\"\",\"p\":\"\",\"q\":\"\"}",
    };
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct call_spec s;
        if (call_tags_read(&arena, bytes_of(bad[i]), &s, &err) != PAWL_BROKEN)
            FAIL("taken for tags: %s", bad[i]);
    }
    arena_release(&arena);
}

TEST(survives_without_memory)
{
    static const struct tag tag = { BYTES("shop"), BYTES("x") };
    int64_t before = mem_live();
    struct call_spec s, back;
    struct bytes text;
    call_spec_init(&s);
    s.max_attempts = 9;
    s.tags = &tag;
    s.n_tags = 1;
    for (int n = 1; n <= 2; n++) {
        struct arena a;
        arena_init(&a, 1 << 20);
        mem_torture(n, 1);
        EQ_STATUS(call_options_write(&a, &s, &text, &err), PAWL_NO_MEMORY, &err);
        mem_torture(n, 1);
        EQ_STATUS(call_tags_write(&a, &s, &text, &err), PAWL_NO_MEMORY, &err);
        mem_torture(0, 0);
        arena_release(&a);
        mem_torture(1, 1);
        EQ_STATUS(call_options_read(&a, BYTES("{\"max_lost\":1}"), &back, &err), PAWL_NO_MEMORY,
                  &err);
        EQ_STATUS(call_tags_read(&a, BYTES("{\"a\":\"b\"}"), &back, &err), PAWL_NO_MEMORY, &err);
        mem_torture(0, 0);
        arena_release(&a);
        EQ_INT(mem_live(), before);
    }
    for (size_t max = 0; max < 400; max += 16) {
        struct arena a;
        arena_init(&a, max);
        enum pawl_status st = call_tags_read(&a, BYTES("{\"a\":\"b\",\"c\":\"d\"}"), &back, &err);
        if (st != PAWL_OK)
            EQ_STATUS(st, PAWL_NO_MEMORY, &err);
        arena_release(&a);
    }
}
