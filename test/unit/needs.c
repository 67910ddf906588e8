/*
 * needs.c - lists of capabilities: settled, compared, as a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/macros.h"
#include "check.h"
#include "model/call.h"
#include "model/needs.h"

static struct arena arena;
static struct pawl_err err;

static struct bytes settled(const struct bytes *v, size_t n)
{
    if (!arena.max)
        arena_init(&arena, 1 << 20);
    OK(needs_settle(&arena, &(struct needs_field){ "needs", NEEDS_MAX }, &v, &n, &err), &err);
    struct bytes text = needs_text(&arena, v, n);
    return text.data ? text : BYTES("-");
}

#define SETTLES(want, ...)                                                                         \
    do {                                                                                           \
        const struct bytes v_[] = { __VA_ARGS__ };                                                 \
        struct bytes got_ = settled(v_, COUNT_OF(v_));                                             \
        EQ_BYTES(got_.data, got_.len, want, strlen(want));                                         \
    } while (0)

TEST(a_list_is_sorted_and_has_each_name_once)
{
    SETTLES("gpu", BYTES("gpu"));
    SETTLES("big\ngpu\nv:2", BYTES("gpu"), BYTES("v:2"), BYTES("big"));
    SETTLES("a\nab\nb", BYTES("b"), BYTES("ab"), BYTES("a"), BYTES("ab"), BYTES("b"));
    SETTLES("A-Z_a.z:0", BYTES("A-Z_a.z:0"));
    struct bytes none = settled(NULL, 0);
    EQ_BYTES(none.data, none.len, "-", 1);
    arena_release(&arena);
}

TEST(names_and_lists_have_an_edge)
{
    static const struct bytes bad[] = { { "", 0 },         { "a b", 3 }, { "a\n", 2 }, { "a,b", 3 },
                                        { "\xc3\xa9", 2 }, { "a\0", 2 }, { "a/b", 3 } };
    static const char *const shown[] = { "", "a b", "a?", "a,b", "\xc3\xa9", "a?", "a/b" };
    char longest[NEED_LEN_MAX + 1];
    struct bytes many[NEEDS_MAX + 1];
    memset(longest, 'x', sizeof longest);
    settled(&(struct bytes){ longest, NEED_LEN_MAX }, 1);
    for (size_t i = 0; i <= COUNT_OF(bad); i++) {
        const struct bytes beyond = { longest, NEED_LEN_MAX + 1 };
        const struct bytes pair[] = { BYTES("ok"), i < COUNT_OF(bad) ? bad[i] : beyond }, *v = pair;
        size_t n = 2;
        EQ_STATUS(needs_settle(&arena, &(struct needs_field){ "has", HAS_MAX }, &v, &n, &err),
                  PAWL_INVALID, &err);
        char text[200];
        snprintf(
            text, sizeof text,
            "field \"has\": name 2, \"%.64s\", is not 1..64 letters, digits, \"_\", \"-\", \".\" "
            "and \":\"",
            i < COUNT_OF(bad) ? shown[i] : longest);
        EQ_STR(err.text, text);
    }
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = BYTES("x");
    SETTLES("x", many[0]);
    settled(many, NEEDS_MAX);
    const struct bytes *v = many;
    size_t n = NEEDS_MAX + 1;
    EQ_STATUS(needs_settle(&arena, &(struct needs_field){ "needs", NEEDS_MAX }, &v, &n, &err),
              PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"needs\": has 17 names, limit 16");
    arena_release(&arena);
}

TEST(all_that_is_needed_must_be_there)
{
    static const struct bytes all[] = { { "a", 1 }, { "b", 1 }, { "c", 1 }, { "d", 1 } };
    /* Every subset against every other, as bits. */
    for (unsigned needs = 0; needs < 16; needs++)
        for (unsigned has = 0; has < 16; has++) {
            struct bytes x[4], y[4];
            size_t n = 0, m = 0;
            for (unsigned i = 0; i < 4; i++) {
                if (needs >> i & 1)
                    x[n++] = all[i];
                if (has >> i & 1)
                    y[m++] = all[i];
            }
            EQ_INT(needs_served(x, n, y, m), (needs & ~has) == 0);
            EQ_INT(needs_same(x, n, y, m), needs == has);
        }
}

TEST(a_text_is_read_back)
{
    static const struct bytes v[] = { { "big", 3 }, { "gpu", 3 }, { "v:2", 3 } };
    arena_init(&arena, 1 << 20);
    for (size_t n = 0; n <= COUNT_OF(v); n++) {
        const struct bytes *back;
        size_t m;
        TRUE(needs_of_text(&arena, needs_text(&arena, v, n), &back, &m));
        TRUE(needs_same(v, n, back, m));
    }
    arena_release(&arena);
}

TEST(an_array_is_read)
{
    const struct needs_field field = { "needs", NEEDS_MAX };
    const struct bytes *v;
    struct json *list;
    size_t n;
    arena_init(&arena, 1 << 20);
    OK(json_parse(&arena, BYTES("[\"gpu\",\"b\\u0069g\"]"), &list, &err), &err);
    OK(needs_of_json(&arena, list, &field, &v, &n, &err), &err);
    EQ_UINT(n, 2);
    EQ_BYTES(v[1].data, v[1].len, "big", 3);
    OK(json_parse(&arena, BYTES("[\"gpu\",1]"), &list, &err), &err);
    EQ_STATUS(needs_of_json(&arena, list, &field, &v, &n, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"needs\": name 2, 1, is not a string");
    OK(needs_of_json(&arena, NULL, &field, &v, &n, &err), &err);
    EQ_UINT(n, 0);
    arena_release(&arena);
}

/* An inbox has them among the options; a stored call does not write them there. */
TEST(options_are_read_with_needs_and_written_without)
{
    struct call_spec s;
    struct bytes text;
    arena_init(&arena, 1 << 20);
    call_spec_init(&s);
    OK(call_options_read(&arena, BYTES("{\"max_lost\":1,\"needs\":[\"big\",\"gpu\"]}"), &s, &err),
       &err);
    EQ_UINT(s.n_needs, 2);
    OK(call_options_write(&arena, &s, &text, &err), &err);
    EQ_BYTES(text.data, text.len, "{\"max_lost\":1}", 14);
    EQ_STATUS(call_options_read(&arena, BYTES("{\"needs\":\"gpu\"}"), &s, &err), PAWL_BROKEN, &err);
    EQ_STATUS(call_options_read(&arena, BYTES("{\"needs\":[1]}"), &s, &err), PAWL_BROKEN, &err);
    arena_release(&arena);
}
