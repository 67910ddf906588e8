/*
 * api_fields.c - objects checked against a table of fields, percent decoding, and the field's name
 * in messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/match.h"
#include "api/reply.h"
#include "base/buf.h"
#include "model/fields.h"
#include "check.h"

struct thing {
    struct bytes name, word, json, bytes;
    int n;
    double real;
    int64_t s_us, at_us;
    bool flag;
    const struct json *list;
};
#define AT(f) offsetof(struct thing, f)
static const struct field fields[] = {
    { "name", FIELD_NAME, AT(name), .flags = FIELD_MUST },
    { "word", FIELD_WORD, AT(word), .words = "skip|block" },
    { "json", FIELD_JSON, AT(json), .flags = 0 },
    { "bytes", FIELD_BASE64, AT(bytes), .flags = FIELD_NULL },
    { "n", FIELD_INT, AT(n), .min = -5, .max = 5 },
    { "real", FIELD_REAL, AT(real), .flags = 0 },
    { "s", FIELD_SECONDS, AT(s_us), .flags = FIELD_ABOVE_0, .max = 10 },
    { "at", FIELD_TIME, AT(at_us), .flags = FIELD_NULL },
    { "flag", FIELD_BOOL, AT(flag), .flags = 0 },
    { "list", FIELD_ARRAY, AT(list), .flags = 0 },
};
static const struct shape shape = SHAPE("Thing", fields);

static struct arena a;

static enum pawl_status read(const char *text, struct thing *out, uint64_t *given,
                             struct pawl_err *err)
{
    struct json *v;
    arena_release(&a);
    arena_init(&a, 1 << 20);
    OK(json_parse(&a, bytes_of(text), &v, err), err);
    return fields_read(&a, v, &shape, out, given, err);
}

TEST(reads_every_kind)
{
    struct thing t = { 0 };
    struct pawl_err err;
    uint64_t given;
    OK(read(
           "{\"n\\u0061me\":\"x\",\"word\":\"block\",\"json\": [1 , 2],\"bytes\":\"AQI=\",\"n\":-5,"
           "\"real\":1e2,\"s\":0.0000001,\"at\":\"1970-01-01T00:00:00Z\",\"flag\":true,"
           "\"list\":[]}",
           &t, &given, &err),
       &err);
    TRUE(bytes_eq(t.name, BYTES("x")));
    TRUE(bytes_eq(t.word, BYTES("block")));
    TRUE(bytes_eq(t.json, BYTES("[1 , 2]")));
    TRUE(bytes_eq(t.bytes, BYTES("\1\2")));
    EQ_INT(t.n, -5);
    TRUE(t.real == 100);
    EQ_INT(t.s_us, 1);
    EQ_INT(t.at_us, 1);
    TRUE(t.flag);
    EQ_INT(t.list->kind, JSON_ARRAY);
    EQ_UINT(given, 0x3ff);
    arena_release(&a);
}

TEST(nulls_read_as_missing_where_they_may)
{
    struct thing t = { .at_us = 7 };
    struct pawl_err err;
    uint64_t given;
    OK(read("{\"name\":\"x\",\"bytes\":null,\"at\":null}", &t, &given, &err), &err);
    EQ_UINT(given, 1);
    EQ_INT(t.at_us, 7);
    EQ_INT(read("{\"name\":\"x\",\"n\":null}", &t, NULL, &err), PAWL_INVALID);
    EQ_STR(err.text, "field \"n\": is null, not a number");
    arena_release(&a);
}

TEST(refusals_name_the_field)
{
    static const struct {
        const char *text, *field;
    } bad[] = {
        { "{}", "name" },
        { "{\"name\":\"\"}", "name" },
        { "{\"name\":\"x\",\"name\":\"x\"}", "name" },
        { "{\"name\":\"x\",\"nam\":1}", "nam" },
        { "{\"name\":\"x\",\"word\":\"ski\"}", "word" },
        { "{\"name\":\"x\",\"word\":\"skip|block\"}", "word" },
        { "{\"name\":\"x\",\"word\":\"\"}", "word" },
        { "{\"name\":\"x\",\"n\":6}", "n" },
        { "{\"name\":\"x\",\"n\":1.0}", "n" },
        { "{\"name\":\"x\",\"real\":\"1\"}", "real" },
        { "{\"name\":\"x\",\"real\":1e999}", "real" },
        { "{\"name\":\"x\",\"s\":0}", "s" },
        { "{\"name\":\"x\",\"s\":10.1}", "s" },
        { "{\"name\":\"x\",\"at\":0}", "at" },
        { "{\"name\":\"x\",\"flag\":\"true\"}", "flag" },
        { "{\"name\":\"x\",\"flag\":0}", "flag" },
        { "{\"name\":\"x\",\"list\":{}}", "list" },
        { "{\"name\":\"x\",\"bytes\":\"====\"}", "bytes" },
    };
    struct thing t;
    struct pawl_err err;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        EQ_INT(read(bad[i].text, &t, NULL, &err), PAWL_INVALID);
        struct bytes field = refusal_field(err.text);
        if (!bytes_eq(field, bytes_of(bad[i].field)))
            FAIL("%s: %s", bad[i].text, err.text);
    }
    EQ_INT(read("[]", &t, NULL, &err), PAWL_INVALID);
    arena_release(&a);
}

TEST(percent_signs)
{
    static const struct {
        const char *in, *out;
        bool plus;
    } cases[] = {
        { "abc", "abc", false }, { "a%20b", "a b", false },       { "a+b", "a+b", false },
        { "a+b", "a b", true },  { "%c3%A9", "\303\251", false }, { "%", NULL, false },
        { "%4", NULL, false },   { "%4g", NULL, false },          { "a%", NULL, false },
        { "%2", NULL, false },   { "%2F", "/", false },           { "", "", false },
    };
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes got = percent_decode(&a, bytes_of(cases[i].in), cases[i].plus);
        EQ_STR(got.data, cases[i].out);
    }
    struct buf b;
    buf_init(&b, 100);
    percent_add(&b, BYTES("a/b %\303\251~"));
    buf_add_char(&b, '\0');
    EQ_STR(b.data, "a%2Fb%20%25%C3%A9~");
    buf_release(&b);
    arena_release(&a);
}

TEST(the_field_in_a_sentence)
{
    TRUE(bytes_eq(refusal_field("field \"id\": is empty"), BYTES("id")));
    TRUE(bytes_eq(refusal_field("field \"\": is empty"), BYTES("")));
    TRUE(bytes_eq(refusal_field("status \"x\" is unknown; expected a or b"), BYTES("status")));
    EQ_PTR(refusal_field("call \"x\" is unknown").data, NULL);
    EQ_PTR(refusal_field("\"x\" is unknown; expected a").data, NULL);
    EQ_PTR(refusal_field("the status \"x\" is unknown; expected a").data, NULL);
    EQ_PTR(refusal_field("the field \"id\": is empty").data, NULL);
    EQ_PTR(refusal_field("field \"id").data, NULL);
    EQ_PTR(refusal_field("token \"a\": role \"x\" is unknown; expected app or admin").data, NULL);
    EQ_PTR(refusal_field("call \"a\" ended: status \"x\" is unknown; expected a").data, NULL);
    EQ_PTR(refusal_field("field \"a\" of call \"b\": is empty").data, NULL);
    EQ_PTR(refusal_field("").data, NULL);
    EQ_PTR(refusal_field(NULL).data, NULL);
}
