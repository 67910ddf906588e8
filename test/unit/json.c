/*
 * json.c - what is JSON and what is not, the tree, reading values, and writing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/world.h"
#include "check.h"

/* A copy of exactly these bytes, so that the sanitizer sees a read beyond them. */
static enum pawl_status check_exact(struct bytes text, struct pawl_err *err)
{
    char *copy = malloc(text.len ? text.len : 1);
    if (text.len)
        memcpy(copy, text.data, text.len);
    enum pawl_status st = json_check((struct bytes){ copy, text.len }, err);
    free(copy);
    return st;
}

/* ---- The grammar ----------------------------------------------------------------------------- */

TEST(accepts)
{
    static const char *const good[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "0.5",
        "-0.0",
        "1e1",
        "1E+1",
        "1e-1",
        "123456789012345678901234567890",
        "1.0e0000001",
        "9.99",
        "1e999",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0000\"",
        "\"\\u00e9\\uABCD\"",
        "\"\\ud83d\\ude00\"",
        "\"\\uDBFF\\uDFFF\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"\x7f\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"\":[]}",
        "[1,2,3]",
        "[1,[2,[3]]]",
        "{\"a\":1}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":{\"b\":{}},\"c\":[null]}",
        " \t\r\n1 \t\r\n",
        " [ 1 , 2 ] ",
        " { \"a\" : 1 , \"b\" : [ ] } ",
        "\"a string that is longer than eight bytes\"",
        "\"12345678\\n12345678\"",
        "\"/\"",
        "\"\xef\xbf\xbf\"",
        "\"\xef\xbb\xbf\"",
    };
    struct pawl_err err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        OK(check_exact(bytes_of(good[i]), &err), &err);
}

TEST(refuses)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "nulL",
        "Null",
        "truefalse",
        "tru",
        "fals",
        "NaN",
        "Infinity",
        "-Infinity",
        "undefined",
        "'a'",
        "a",
        "+1",
        "-",
        "--1",
        "01",
        "-01",
        "00",
        "1.",
        ".5",
        "1.e1",
        "1e",
        "1e+",
        "1E-",
        "0x10",
        "1_000",
        "1 2",
        "1,",
        ",1",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u 123\"",
        "\"\\U0041\"",
        "\"\\a\"",
        "\"\\0\"",
        "\"\\'\"",
        "\"\n\"",
        "\"\t\"",
        "\"\x1f\"",
        "\"12345678\x01\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "[1}",
        "[1]]",
        "[\"a\":1]",
        "{",
        "}",
        "{]",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{,\"a\":1}",
        "{\"a\"}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{1:1}",
        "{null:1}",
        "{\"a\":}",
        "{\"a\":1:2}",
        "{\"a\",1}",
        "{\"a\"::1}",
        "{}{}",
        "[][]",
        "null null",
        "1 \x0b",
        "\xc2\xa0"
        "1",
        "\xef\xbb\xbf"
        "1",
        "// c\n1",
        "/* c */1",
        "1 # c",
        "[1]x",
        "\"a\"b",
        /* lone and swapped surrogates */
        "\"\\ud800\"",
        "\"\\udbff\"",
        "\"\\udc00\"",
        "\"\\udfff\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\n\"",
        "\"\\ud800x\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud83d\\ude0\"",
        "\"\\ud83d\\\"",
        "{\"\\ud800\":1}",
        /* not UTF-8 */
        "\"\xff\"",
        "\"\xc3\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "{\"\xff\":1}",
        "\"1234567\xe2\x82\"",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pawl_err err = { 0 };
        if (check_exact(bytes_of(bad[i]), &err) != PAWL_INVALID)
            FAIL("taken for JSON: %s", bad[i]);
        TRUE(strncmp(err.text, "byte ", 5) == 0);
        HAS_STR(err.text, ": expected ");
    }
    EQ_STATUS(check_exact(BYTES("\"\0\""), NULL), PAWL_INVALID, NULL);
    EQ_STATUS(check_exact(BYTES("1\0"), NULL), PAWL_INVALID, NULL);
    EQ_STATUS(check_exact(BYTES("\0"), NULL), PAWL_INVALID, NULL);
    EQ_STATUS(json_check(BYTES_NONE, NULL), PAWL_INVALID, NULL);
}

TEST(names_the_place)
{
    static const char *const pairs[][2] = {
        { "", "byte 0: expected a value" },
        { "[1,]", "byte 3: expected a value" },
        { "[1 2]", "byte 3: expected \",\" or \"]\"" },
        { "{\"a\" 1}", "byte 5: expected \":\"" },
        { "{\"a\":1,}", "byte 7: expected a name" },
        { "{1}", "byte 1: expected a name or \"}\"" },
        { "{\"a\":1]", "byte 6: expected \",\" or \"}\"" },
        { "01", "byte 1: expected no digit after a leading 0" },
        { "1.", "byte 2: expected a digit" },
        { "\"\\ud800\"", "byte 1: expected a complete escape" },
        { "\"a\xff\"", "byte 2: expected UTF-8" },
        { "\"a", "byte 2: expected the end of the string" },
        { "1 2", "byte 2: expected the end of the text" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct pawl_err err;
        EQ_STATUS(json_check(bytes_of(pairs[i][0]), &err), PAWL_INVALID, &err);
        EQ_STR(err.text, pairs[i][1]);
    }
}

static char deep[8 * JSON_DEPTH_MAX];

/* `levels` times `open`, a 1 inside, and as many times `close`. */
static struct bytes nested(int levels, const char *open, char close)
{
    size_t n = 0, len = strlen(open);
    for (int i = 0; i < levels; i++, n += len)
        memcpy(deep + n, open, len);
    deep[n++] = '1';
    for (int i = 0; i < levels; i++)
        deep[n++] = close;
    return (struct bytes){ deep, n };
}

TEST(nests_to_the_limit_and_no_further)
{
    struct pawl_err err;
    struct arena a;
    struct json *v;
    OK(json_check(nested(JSON_DEPTH_MAX, "[", ']'), &err), &err);
    OK(json_check(nested(JSON_DEPTH_MAX, "{\"\":", '}'), &err), &err);
    EQ_STATUS(json_check(nested(JSON_DEPTH_MAX + 1, "[", ']'), &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "byte 512: expected nesting of at most 512 levels");
    EQ_STATUS(json_check(nested(JSON_DEPTH_MAX + 1, "{\"\":", '}'), &err), PAWL_INVALID, &err);
    arena_init(&a, 1 << 20);
    OK(json_parse(&a, nested(JSON_DEPTH_MAX, "[", ']'), &v, &err), &err);
    EQ_INT(v->levels, JSON_DEPTH_MAX);
    /* A document around a value of that depth. */
    OK(json_parse(&a, nested(JSON_DEPTH_MAX + JSON_AROUND_MAX, "[", ']'), &v, &err), &err);
    EQ_INT(v->first->levels, JSON_DEPTH_MAX + JSON_AROUND_MAX - 1);
    EQ_STATUS(json_parse(&a, nested(JSON_DEPTH_MAX + JSON_AROUND_MAX + 1, "[", ']'), &v, &err),
              PAWL_INVALID, &err);
    OK(json_parse(&a, BYTES("[[],[[{}]],[1]]"), &v, &err), &err);
    EQ_INT(v->levels, 4);
    EQ_INT(v->first->levels, 1);
    EQ_INT(v->first->next->levels, 3);
    EQ_INT(v->first->next->next->first->levels, 0);
    arena_release(&a);
}

/* Every text that differs from a valid one in one byte is parsed or refused, and never read beyond
 * its end. */
TEST(one_byte_away)
{
    static const char seed[] =
        "{\"a\":[1,-2.5e+3,true,null],\"\\u00e9\\ud83d\\ude00\":{\"\xc3\xa9\":\"\\n\"}}";
    enum { LEN = sizeof seed - 1 };
    struct arena a;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < LEN; i++)
        for (int c = 0; c < 256; c++) {
            char text[LEN];
            struct json *v;
            memcpy(text, seed, LEN);
            text[i] = (char)c;
            arena_reset(&a);
            enum pawl_status st = check_exact((struct bytes){ text, LEN }, NULL);
            EQ_STATUS(json_parse(&a, (struct bytes){ text, LEN }, &v, NULL), st, NULL);
        }
    for (size_t i = 0; i < LEN; i++)
        EQ_STATUS(check_exact((struct bytes){ seed, i }, NULL), PAWL_INVALID, NULL);
    arena_release(&a);
}

TEST(random_bytes)
{
    static const char alphabet[] = "{}[]\",:\\u0d8cf19-+.eE truefalsn\n\x01\xc3\xa9";
    for (int round = 0; round < 300000; round++) {
        char text[24];
        size_t n = world_dice(&world_real) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = alphabet[world_dice(&world_real) % (sizeof alphabet - 1)];
        (void)!check_exact((struct bytes){ text, n }, NULL);
    }
}

/* ---- The tree -------------------------------------------------------------------------------- */

static struct arena arena;

static struct json *parse(const char *text)
{
    struct pawl_err err;
    struct json *v;
    if (!arena.max)
        arena_init(&arena, 1 << 20);
    OK(json_parse(&arena, bytes_of(text), &v, &err), &err);
    return v;
}

#define EQ_RUN(b, want) EQ_BYTES((b).data, (b).len, want, strlen(want))

TEST(nodes_are_the_bytes_they_were)
{
    struct json *v =
        parse(" { \"n\" : 9.990 , \"a\":[ 1, {} ,\"x\" ], \"big\":18446744073709551616 } ");
    EQ_INT(v->kind, JSON_OBJECT);
    EQ_UINT(v->count, 3);
    EQ_INT(v->raw.data[0], '{');
    EQ_INT(v->raw.data[v->raw.len - 1], '}');
    EQ_PTR(v->name.data, NULL);
    EQ_PTR(v->next, NULL);
    struct json *n = json_member(v, "n"), *a = json_member(v, "a"), *big = json_member(v, "big");
    EQ_RUN(n->raw, "9.990");
    EQ_RUN(n->name, "n");
    EQ_RUN(a->raw, "[ 1, {} ,\"x\" ]");
    EQ_UINT(a->count, 3);
    EQ_RUN(a->first->raw, "1");
    EQ_PTR(a->first->name.data, NULL);
    EQ_INT(a->first->next->kind, JSON_OBJECT);
    EQ_UINT(a->first->next->count, 0);
    EQ_PTR(a->first->next->first, NULL);
    EQ_RUN(a->first->next->next->raw, "\"x\"");
    EQ_PTR(a->first->next->next->next, NULL);
    EQ_RUN(big->raw, "18446744073709551616");
    EQ_PTR(big->next, NULL);
    arena_release(&arena);
}

TEST(members_by_unescaped_name)
{
    struct json *v = parse("{\"a\":1,\"\\u0061b\":2,\"a\":3,\"\\ud83d\\ude00\":4,\"\\\"\":5,\"\":6,"
                           "\"a\\u0000\":7}");
    EQ_RUN(json_member(v, "a")->raw, "1");
    EQ_RUN(json_member(v, "ab")->raw, "2");
    EQ_RUN(json_member(v, "\xf0\x9f\x98\x80")->raw, "4");
    EQ_RUN(json_member(v, "\"")->raw, "5");
    EQ_RUN(json_member(v, "")->raw, "6");
    EQ_PTR(json_member(v, "\\u0061b"), NULL);
    EQ_PTR(json_member(v, "abc"), NULL);
    EQ_PTR(json_member(v, "b"), NULL);
    EQ_PTR(json_member(parse("[1]"), "a"), NULL);
    EQ_PTR(json_member(NULL, "a"), NULL);
    arena_release(&arena);
}

TEST(integers)
{
    int64_t n;
    TRUE(json_int(parse("-7"), &n) && n == -7);
    TRUE(json_int(parse("9223372036854775807"), &n) && n == INT64_MAX);
    TRUE(json_int(parse("-9223372036854775808"), &n) && n == INT64_MIN);
    TRUE(json_int(parse("-0"), &n) && n == 0);
    FALSE(json_int(parse("9223372036854775808"), &n));
    FALSE(json_int(parse("1.0"), &n));
    FALSE(json_int(parse("1e2"), &n));
    FALSE(json_int(parse("\"1\""), &n));
    FALSE(json_int(parse("null"), &n));
    FALSE(json_int(NULL, &n));
    arena_release(&arena);
}

TEST(reals)
{
    double n;
    TRUE(json_real(parse("2.5e-1"), &n) && n == 0.25);
    TRUE(json_real(parse("3"), &n) && n == 3);
    FALSE(json_real(parse("1e999"), &n));
    FALSE(json_real(parse("-1e999"), &n));
    FALSE(json_real(parse("\"1\""), &n));
    FALSE(json_real(NULL, &n));
    arena_release(&arena);
}

TEST(strings)
{
    struct bytes s = json_string(&arena, parse("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\""));
    EQ_RUN(s, "a\"\\/\b\f\n\r\t");
    EQ_INT(s.data[s.len], 0);
    s = json_string(&arena, parse("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\""));
    EQ_RUN(s, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    s = json_string(&arena, parse("\"a\\u0000b\""));
    EQ_BYTES(s.data, s.len, "a\0b", 3);
    s = json_string(&arena, parse("\"\""));
    TRUE(s.data && s.len == 0);
    s = json_string(&arena, parse("\"\\uffff\\ud800\\udc00\""));
    EQ_RUN(s, "\xef\xbf\xbf\xf0\x90\x80\x80");
    EQ_PTR(json_string(&arena, parse("1")).data, NULL);
    EQ_PTR(json_string(&arena, NULL).data, NULL);
    struct json *v = parse("{\"\\u0061\\n\":1}");
    EQ_RUN(json_name(&arena, v->first), "a\n");
    EQ_PTR(json_name(&arena, v).data, NULL);
    arena_release(&arena);
}

TEST(parses_without_memory)
{
    static const char text[] = "{\"a\":[1,2,3,{\"b\":\"c\"}]}";
    int64_t before = mem_live();
    struct pawl_err err;
    struct json *v;
    struct arena a;
    arena_init(&a, 1 << 20);
    mem_torture(1, 1);
    EQ_STATUS(json_parse(&a, BYTES(text), &v, &err), PAWL_NO_MEMORY, &err);
    mem_torture(0, 0);
    arena_release(&a);
    EQ_INT(mem_live(), before);

    /* Memory for exactly its seven nodes, and for one byte less. */
    arena_init(&a, 7 * sizeof *v);
    OK(json_parse(&a, BYTES(text), &v, &err), &err);
    arena_release(&a);
    arena_init(&a, 7 * sizeof *v - 1);
    EQ_STATUS(json_parse(&a, BYTES(text), &v, &err), PAWL_NO_MEMORY, &err);
    arena_release(&a);
}

/* ---- Writing --------------------------------------------------------------------------------- */

TEST(writes)
{
    struct buf b;
    buf_init(&b, 1000);
    json_add_name(&b, "whole"); /* the first thing in the buffer: no comma */
    buf_reset(&b);
    buf_add_char(&b, '{');
    json_add_name(&b, "a");
    json_add_string(&b, BYTES("x\"\\\n\t\x01\x1f/\x7f\xc3\xa9"));
    json_add_name(&b, "v");
    buf_add_char(&b, '[');
    for (int i = 0; i < 3; i++) {
        json_add_comma(&b);
        buf_add_int(&b, i);
    }
    buf_add_text(&b, "]");
    json_add_name(&b, "e");
    json_add_string(&b, BYTES_NONE);
    buf_add_char(&b, '}');
    EQ_RUN(buf_bytes(&b),
           "{\"a\":\"x\\\"\\\\\\n\\t\\u0001\\u001f/\x7f\xc3\xa9\",\"v\":[0,1,2],\"e\":\"\"}");
    OK(json_check(buf_bytes(&b), NULL), NULL);
    buf_release(&b);
}

TEST(writes_every_byte_as_json)
{
    char all[256];
    struct buf b;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    buf_init(&b, 4096);
    json_add_string(&b, (struct bytes){ all, 256 });
    TRUE(buf_ok(&b));
    OK(json_check(buf_bytes(&b), NULL), NULL);
    buf_release(&b);
}

TEST(a_written_string_reads_back)
{
    struct buf b;
    buf_init(&b, 4096);
    for (int round = 0; round < 2000; round++) {
        char text[40];
        size_t n = world_dice(&world_real) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(world_dice(&world_real) % 128);
        buf_reset(&b);
        json_add_string(&b, (struct bytes){ text, n });
        buf_add_char(&b, 0);
        struct bytes back = json_string(&arena, parse(b.data));
        EQ_BYTES(back.data, back.len, text, n);
        arena_reset(&arena);
    }
    buf_release(&b);
    arena_release(&arena);
}
