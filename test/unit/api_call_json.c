/*
 * api_call_json.c - a call as JSON: what is hidden, what is cut, and copies of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/call_json.h"
#include "base/json.h"
#include "check.h"

static const char *shown(const struct call *c, unsigned show)
{
    static struct buf b;
    buf_release(&b);
    buf_init(&b, 1 << 20);
    call_add(&b, c, show);
    buf_add_char(&b, '\0');
    TRUE(buf_ok(&b));
    return b.data;
}

static struct call example(void)
{
    static const struct tag tags[] = { { BYTES("k\""), BYTES("\303\251") } };
    struct call c = { 0 };
    call_spec_init(&c.spec);
    c.spec.id = BYTES("a\"b");
    c.spec.type = BYTES("t");
    c.spec.method = BYTES("run");
    c.spec.queue = BYTES("default");
    c.spec.input = (struct payload){ PAWL_JSON, BYTES("{ \"n\":9.990}") };
    c.spec.timeout_us = 1500001;
    c.spec.tags = tags;
    c.spec.n_tags = 1;
    c.seq = 7;
    c.state = PAWL_COMPLETED;
    c.result = (struct payload){ PAWL_BYTES, BYTES("\0\1") };
    c.error = BYTES("old");
    c.created_us = 1;
    c.run_at_us = INT64_C(1700000000123456);
    return c;
}

TEST(every_field_in_its_order)
{
    struct call c = example();
    EQ_STR(shown(&c, SHOW_ALL),
           "{\"id\":\"a\\\"b\",\"seq\":7,\"type\":\"t\",\"method\":\"run\",\"key\":null,"
           "\"key_no\":null,\"position\":null,\"queue\":\"default\",\"priority\":0,"
           "\"status\":\"completed\",\"waiting_for\":null,\"cancel_requested\":false,"
           "\"input\":{ \"n\":9.990},\"input_base64\":null,\"result\":null,"
           "\"result_base64\":\"AAE=\",\"error\":null,\"attempts\":0,\"lost\":0,\"redrives\":0,"
           "\"max_attempts\":3,\"max_lost\":5,\"timeout\":1.500001,\"node\":null,\"caller\":null,"
           "\"client\":null,\"parent\":null,\"trace_id\":null,\"tags\":{\"k\\\"\":\"\303\251\"},"
           "\"needs\":[],\"created_at\":\"1970-01-01T00:00:00.000001Z\","
           "\"run_at\":\"2023-11-14T22:13:20.123456Z\",\"claimed_at\":null,\"started_at\":null,"
           "\"finished_at\":null,\"expires_at\":null,\"keep_until\":null,"
           "\"schedule\":null,\"scheduled_at\":null,\"duplicate\":false}");
}

TEST(places_are_of_calls_that_stand_in_line)
{
    struct call c = example();
    c.spec.key = BYTES("k");
    c.state = PAWL_PENDING;
    HAS_STR(shown(&c, 0), "\"key\":\"k\",\"key_no\":null,\"position\":null,");
    c.in_line = true;
    c.position = 3;
    HAS_STR(shown(&c, 0), "\"key_no\":null,\"position\":3,");
    c.state = PAWL_PROCESSING;
    c.position = 0;
    c.key_no = 12;
    HAS_STR(shown(&c, 0), "\"key_no\":12,\"position\":0,");
    c.state = PAWL_COMPLETED;
    HAS_STR(shown(&c, 0), "\"key_no\":12,\"position\":null,");
}

TEST(what_is_not_to_be_seen_is_null)
{
    struct call c = example();
    c.state = PAWL_FAILED;
    const char *text = shown(&c, SHOW_DUPLICATE);
    HAS_STR(text, "\"input\":null,\"input_base64\":null,\"result\":null,\"result_base64\":null,"
                  "\"error\":null");
    HAS_STR(text, "\"tags\":null");
    HAS_STR(text, "\"duplicate\":true}");
    HAS_STR(shown(&c, SHOW_SECRETS), "\"error\":\"old\"");
}

TEST(long_payloads_are_cut_at_a_character)
{
    static char text[5000], bytes[5000];
    struct call c = example();
    memset(text, 'x', sizeof text);
    text[0] = '"';
    text[4095] = '\303'; /* a character would be cut in half at the limit */
    text[4096] = '\251';
    text[4999] = '"';
    c.spec.input.bytes = (struct bytes){ text, sizeof text };
    c.result.bytes = (struct bytes){ bytes, sizeof bytes };
    const char *got = shown(&c, SHOW_ALL | SHOW_CUT);
    HAS_STR(got, "\"truncated\":true}");
    HAS_STR(got, "xxx\",\"input_base64\":null");
    struct pawl_err err;
    OK(json_check(bytes_of(got), &err), &err);
    EQ_PTR(strstr(shown(&c, SHOW_ALL), "truncated"), NULL);
}

TEST(a_copy_stands_on_its_own)
{
    struct call c = example(), copy;
    struct arena a;
    char id[] = "moves";
    arena_init(&a, 1 << 20);
    c.spec.id = (struct bytes){ id, 5 };
    TRUE(call_copy(&a, &c, &copy));
    memset(id, '!', 5);
    TRUE(bytes_eq(copy.spec.id, BYTES("moves")));
    TRUE(copy.spec.tags != c.spec.tags);
    TRUE(bytes_eq(copy.result.bytes, BYTES("\0\1")));
    EQ_PTR(copy.spec.key.data, NULL);
    arena_release(&a);
    arena_init(&a, 32);
    FALSE(call_copy(&a, &c, &copy));
    arena_release(&a);
}
