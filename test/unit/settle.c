/*
 * settle.c - call_spec_settle(): every field at its limit and one beyond, fingerprints that agree
 * and differ, and no leak when memory runs out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/call.h"
#include "check.h"

static struct arena arena;
static struct pawl_err err;

static struct call_spec fresh(void)
{
    struct call_spec s;
    call_spec_init(&s);
    s.type = BYTES("mail");
    return s;
}

static enum pawl_status settle(struct call_spec *s)
{
    if (!arena.max)
        arena_init(&arena, 64 << 20);
    err_clear(&err);
    return call_spec_settle(&arena, &world_real, s, &err);
}

/* One field set to this value, everything else valid. */
#define TAKES(field, value)                                                                        \
    do {                                                                                           \
        struct call_spec s_ = fresh();                                                             \
        s_.field = (value);                                                                        \
        OK(settle(&s_), &err);                                                                     \
    } while (0)
#define REFUSES(field, value, sentence)                                                            \
    do {                                                                                           \
        struct call_spec s_ = fresh();                                                             \
        s_.field = (value);                                                                        \
        EQ_STATUS(settle(&s_), PAWL_INVALID, &err);                                                \
        EQ_STR(err.text, sentence);                                                                \
    } while (0)

static struct bytes of_len(size_t len)
{
    static char text[2 << 20];
    memset(text, 'n', len);
    return (struct bytes){ text, len };
}

/* ---- Fields ---------------------------------------------------------------------------------- */

TEST(completes_what_is_missing)
{
    struct call_spec s = fresh();
    OK(settle(&s), &err);
    EQ_BYTES(s.method.data, s.method.len, "run", 3);
    EQ_BYTES(s.queue.data, s.queue.len, "default", 7);
    EQ_UINT(s.id.len, 36);
    EQ_INT(s.id.data[14], '7');
    TRUE(!s.key.data && !s.caller.data && !s.parent.data);
    EQ_INT(s.input.form, PAWL_NOTHING);

    s = fresh();
    s.id = BYTES("order-17-pay");
    s.method = BYTES("add");
    s.queue = BYTES("q");
    OK(settle(&s), &err);
    EQ_BYTES(s.id.data, s.id.len, "order-17-pay", 12);
    EQ_BYTES(s.method.data, s.method.len, "add", 3);
    EQ_BYTES(s.queue.data, s.queue.len, "q", 1);
    arena_release(&arena);
}

TEST(names_at_their_edges)
{
    REFUSES(type, BYTES_NONE, "field \"type\": is missing");
    REFUSES(type, BYTES(""), "field \"type\": is empty");
    TAKES(type, of_len(255));
    REFUSES(type, of_len(256), "field \"type\": is longer than 255 bytes");
    TAKES(id, of_len(255));
    REFUSES(id, of_len(256), "field \"id\": is longer than 255 bytes");
    REFUSES(id, BYTES(".."), "field \"id\": must not be \".\" or \"..\"");
    REFUSES(id, BYTES(""), "field \"id\": is empty");
    REFUSES(method, BYTES("a\n"), "field \"method\": has a control character");
    REFUSES(queue, BYTES("\xff"), "field \"queue\": is not UTF-8");
    REFUSES(caller, BYTES(""), "field \"caller\": is empty");
    REFUSES(parent, of_len(256), "field \"parent\": is longer than 255 bytes");
    REFUSES(client, BYTES("\x7f"), "field \"client\": has a control character");
    TAKES(caller, of_len(255));
    TAKES(parent, of_len(255));
    TAKES(method, of_len(255));
    TAKES(queue, of_len(255));
    arena_release(&arena);
}

TEST(a_key_is_a_name)
{
    TAKES(key, BYTES("k"));
    TAKES(key, of_len(255));
    REFUSES(key, BYTES(""), "field \"key\": is empty");
    REFUSES(key, of_len(256), "field \"key\": is longer than 255 bytes");
    arena_release(&arena);
}

TEST(numbers_at_their_edges)
{
    TAKES(priority, -1000);
    TAKES(priority, 1000);
    REFUSES(priority, -1001, "field \"priority\": is -1001, not in -1000..1000");
    REFUSES(priority, 1001, "field \"priority\": is 1001, not in -1000..1000");
    TAKES(max_attempts, 1);
    TAKES(max_attempts, 1000);
    REFUSES(max_attempts, 0, "field \"max_attempts\": is 0, not in 1..1000");
    REFUSES(max_attempts, 1001, "field \"max_attempts\": is 1001, not in 1..1000");
    TAKES(max_lost, 1);
    TAKES(max_lost, 1000);
    REFUSES(max_lost, 0, "field \"max_lost\": is 0, not in 1..1000");
    REFUSES(max_lost, -1, "field \"max_lost\": is -1, not in 1..1000");
    arena_release(&arena);
}

TEST(durations_at_their_edges)
{
    TAKES(delay_us, DURATION_MAX_US);
    REFUSES(delay_us, DURATION_MAX_US + 1,
            "field \"delay\": is not at least 0 and at most 3162240000 s");
    REFUSES(delay_us, -1, "field \"delay\": is not at least 0 and at most 3162240000 s");
    TAKES(expires_in_us, 1);
    REFUSES(expires_in_us, -1, "field \"expires_in\": is not at least 0 and at most 3162240000 s");
    TAKES(timeout_us, 1);
    TAKES(timeout_us, DURATION_MAX_US);
    REFUSES(timeout_us, 0, "field \"timeout\": is not above 0 and at most 3162240000 s");
    REFUSES(timeout_us, INT64_MAX, "field \"timeout\": is not above 0 and at most 3162240000 s");
    TAKES(keep_us, 0);
    TAKES(keep_us, DURATION_MAX_US);
    REFUSES(keep_us, INT64_MIN, "field \"keep\": is not at least 0 and at most 3162240000 s");
    TAKES(backoff.base_us, 0);
    REFUSES(backoff.base_us, -1,
            "field \"backoff.base\": is not at least 0 and at most 3162240000 s");
    TAKES(backoff.max_us, 0);
    REFUSES(backoff.max_us, DURATION_MAX_US + 1,
            "field \"backoff.max\": is not at least 0 and at most 3162240000 s");
    arena_release(&arena);
}

TEST(moments_at_their_edges)
{
    TAKES(run_at_us, TIME_LAST_US);
    TAKES(run_at_us, 1);
    TAKES(run_at_us, -1);
    TAKES(expires_at_us, TIME_FIRST_US);
    REFUSES(run_at_us, TIME_LAST_US + 1, "field \"run_at\": is not in the years 0001 to 9999");
    REFUSES(expires_at_us, TIME_FIRST_US - 1,
            "field \"expires_at\": is not in the years 0001 to 9999");
    struct call_spec s = fresh();
    s.delay_us = s.run_at_us = 1;
    EQ_STATUS(settle(&s), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"run_at\": is given together with \"delay\"");
    s = fresh();
    s.expires_in_us = s.expires_at_us = 1;
    EQ_STATUS(settle(&s), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"expires_at\": is given together with \"expires_in\"");
    arena_release(&arena);
}

TEST(backoff_and_choices)
{
    TAKES(backoff.factor, 1);
    TAKES(backoff.factor, 1000);
    REFUSES(backoff.factor, 0.5, "field \"backoff.factor\": is 0.5, not in 1..1000");
    REFUSES(backoff.factor, 1001, "field \"backoff.factor\": is 1001, not in 1..1000");
    REFUSES(backoff.factor, HUGE_VAL, "field \"backoff.factor\": is inf, not in 1..1000");
    REFUSES(backoff.factor, (double)NAN, "field \"backoff.factor\": is nan, not in 1..1000");
    TAKES(backoff.jitter, 0);
    TAKES(backoff.jitter, 1);
    REFUSES(backoff.jitter, 1.5, "field \"backoff.jitter\": is 1.5, not in 0..1");
    REFUSES(backoff.jitter, -0.5, "field \"backoff.jitter\": is -0.5, not in 0..1");
    TAKES(on_dead, PAWL_ON_DEAD_BLOCK);
    REFUSES(on_dead, (enum pawl_on_dead)2, "field \"on_dead\": is neither \"skip\" nor \"block\"");
    arena_release(&arena);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

TEST(traceparent_is_the_w3c_one)
{
    static const char *const bad[] = {
        "",
        "x",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        TRACE "0",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
    };
    TAKES(traceparent, BYTES(TRACE));
    TAKES(traceparent, BYTES("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        REFUSES(traceparent, bytes_of(bad[i]),
                "field \"traceparent\": is not 00-(32 hex)-(16 hex)-(2 hex)");
    arena_release(&arena);
}

static enum pawl_status settle_tags(const struct tag *tags, size_t n)
{
    struct call_spec s = fresh();
    s.tags = tags;
    s.n_tags = n;
    return settle(&s);
}

TEST(tags_at_their_edges)
{
    static char names[17][2];
    struct tag v[17];
    for (int i = 0; i < 17; i++) {
        names[i][0] = (char)('a' + i);
        v[i] = (struct tag){ { names[i], 1 }, BYTES("") };
    }
    OK(settle_tags(v, 16), &err);
    EQ_STATUS(settle_tags(v, 17), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"tags\": has 17 tags, limit 16");
    v[3].name = v[1].name;
    EQ_STATUS(settle_tags(v, 16), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"tags\": \"b\" is given twice");
    arena_release(&arena);
}

TEST(tag_texts_at_their_edges)
{
    const struct {
        struct tag tag;
        const char *fault;
    } rows[] = {
        { { of_len(64), of_len(255) }, NULL },
        { { BYTES("."), BYTES("..") }, NULL },
        { { BYTES("k"), BYTES_NONE }, NULL },
        { { BYTES(""), BYTES("v") }, "field \"tags\": tag 1: its name is empty" },
        { { BYTES_NONE, BYTES("v") }, "field \"tags\": tag 1: its name is empty" },
        { { of_len(65), BYTES("v") }, "field \"tags\": tag 1: its name is longer than 64 bytes" },
        { { BYTES("k"), of_len(256) },
          "field \"tags\": tag 1: its value is longer than 255 bytes" },
        { { BYTES(".\n"), BYTES("v") },
          "field \"tags\": tag 1: its name is not UTF-8 without control characters" },
        { { BYTES("k"), BYTES("\xff") },
          "field \"tags\": tag 1: its value is not UTF-8 without control characters" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EQ_INT(settle_tags(&rows[i].tag, 1), rows[i].fault ? PAWL_INVALID : PAWL_OK);
        EQ_STR(err.text, rows[i].fault ? rows[i].fault : "");
    }
    arena_release(&arena);
}

static enum pawl_status settle_input(enum pawl_form form, struct bytes bytes)
{
    struct call_spec s = fresh();
    s.input = (struct payload){ form, bytes };
    return settle(&s);
}

TEST(input_at_its_edges)
{
    struct bytes text = of_len(INPUT_LEN_MAX + 1);
    char *quoted = (char *)text.data;
    OK(settle_input(PAWL_BYTES, (struct bytes){ text.data, INPUT_LEN_MAX }), &err);
    EQ_STATUS(settle_input(PAWL_BYTES, text), PAWL_TOO_LARGE, &err);
    EQ_STR(err.text, "field \"input\": is 1048577 bytes, limit 1048576");
    quoted[0] = quoted[INPUT_LEN_MAX - 1] = '"';
    OK(settle_input(PAWL_JSON, (struct bytes){ text.data, INPUT_LEN_MAX }), &err);
    quoted[INPUT_LEN_MAX - 1] = 'n';
    quoted[INPUT_LEN_MAX] = '"';
    EQ_STATUS(settle_input(PAWL_JSON, text), PAWL_TOO_LARGE, &err);
    EQ_STATUS(settle_input(PAWL_JSON, BYTES("{\"a\":}")), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"input\": is not JSON: byte 5: expected a value");
    EQ_STATUS(settle_input(PAWL_JSON, BYTES_NONE), PAWL_INVALID, &err);
    OK(settle_input(PAWL_BYTES, BYTES_NONE), &err);
    EQ_STATUS(settle_input((enum pawl_form)3, BYTES("1")), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"input\": is neither JSON nor bytes");
    arena_release(&arena);
}

/* ---- Fingerprints ---------------------------------------------------------------------------- */

struct content {
    const char *type, *method;
    enum pawl_form form;
    const char *input;
};

static void print_of(const struct content *c, unsigned char out[FINGERPRINT_LEN])
{
    struct call_spec s = fresh();
    s.type = bytes_of(c->type);
    s.method = bytes_of(c->method);
    s.input = (struct payload){ c->form, bytes_of(c->input) };
    OK(settle(&s), &err);
    memcpy(out, s.fingerprint, FINGERPRINT_LEN);
}

TEST(the_same_call)
{
    static const struct content pairs[][2] = {
        { { "W", NULL, PAWL_JSON, "5" }, { "W", "run", PAWL_JSON, " 5\n" } },
        { { "W", "add", PAWL_NOTHING, NULL }, { "W", "add", PAWL_JSON, "null" } },
        { { "W", "add", PAWL_JSON, "{\"a\":1,\"b\":[1,{\"d\":2,\"c\":3}]}" },
          { "W", "add", PAWL_JSON, "{ \"b\" : [1, {\"c\":3,\"d\":2}], \"a\":1 }" } },
        { { "W", "add", PAWL_BYTES, "x" }, { "W", "add", PAWL_BYTES, "x" } },
        { { "W", "add", PAWL_BYTES, NULL }, { "W", "add", PAWL_BYTES, "" } },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        unsigned char a[FINGERPRINT_LEN], b[FINGERPRINT_LEN];
        print_of(&pairs[i][0], a);
        print_of(&pairs[i][1], b);
        EQ_MEM(a, b, FINGERPRINT_LEN);
    }
    arena_release(&arena);
}

TEST(another_call)
{
    static const struct content v[] = {
        { "W", "add", PAWL_JSON, "5" },           { "w", "add", PAWL_JSON, "5" },
        { "W", "Add", PAWL_JSON, "5" },           { "Wa", "dd", PAWL_JSON, "5" },
        { "W", "add ", PAWL_JSON, "5" },          { "W", "add", PAWL_JSON, "5.0" },
        { "W", "add", PAWL_JSON, "\"5\"" },       { "W", "add", PAWL_JSON, "[5]" },
        { "W", "add", PAWL_NOTHING, NULL },       { "W", "add", PAWL_BYTES, "5" },
        { "W", "add", PAWL_BYTES, "null" },       { "W", "add", PAWL_BYTES, "" },
        { "W", "add", PAWL_JSON, "\"\\u0061\"" }, { "W", "add", PAWL_JSON, "\"a\"" },
        { "W", "add", PAWL_JSON, "[1,2]" },       { "W", "add", PAWL_JSON, "[2,1]" },
        { "W", "add", PAWL_JSON, "{}" },          { "W", "add", PAWL_JSON, "[]" },
    };
    enum { N = sizeof v / sizeof v[0] };
    unsigned char print[N][FINGERPRINT_LEN];
    for (size_t i = 0; i < N; i++)
        print_of(&v[i], print[i]);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i; j++)
            if (memcmp(print[i], print[j], FINGERPRINT_LEN) == 0)
                FAIL("%zu and %zu have the same fingerprint", i, j);
    arena_release(&arena);
}

/* A keyed call is refused here; its key is in the fingerprint already. */
TEST(key_and_no_key_differ)
{
    static const struct bytes keys[] = { { NULL, 0 }, { "", 0 }, { "k", 1 }, { "K", 1 } };
    unsigned char print[4][FINGERPRINT_LEN];
    arena_init(&arena, 1 << 20);
    for (int i = 0; i < 4; i++) {
        struct call_spec s = fresh();
        s.method = BYTES("run");
        s.key = keys[i];
        OK(call_fingerprint(&arena, &s, &err), &err);
        memcpy(print[i], s.fingerprint, FINGERPRINT_LEN);
        for (int j = 0; j < i; j++)
            TRUE(memcmp(print[i], print[j], FINGERPRINT_LEN) != 0);
    }
    arena_release(&arena);
}

/* The other fields are not part of the content. */
TEST(options_are_not_content)
{
    struct call_spec a = fresh(), b = fresh();
    b.id = BYTES("other");
    b.queue = BYTES("q");
    b.priority = 7;
    b.delay_us = 9;
    b.max_attempts = 1;
    b.caller = BYTES("c");
    OK(settle(&a), &err);
    OK(settle(&b), &err);
    EQ_MEM(a.fingerprint, b.fingerprint, FINGERPRINT_LEN);
    arena_release(&arena);
}

/* Stored fingerprints must match those of later versions, so this one is written down. */
TEST(the_fingerprint_does_not_change)
{
    static const struct content c = { "Wallet", "add", PAWL_JSON, "{\"b\":2, \"a\":1}" };
    static const unsigned char want[FINGERPRINT_LEN] = { 0xa2, 0xe9, 0x0e, 0xfe, 0x9e, 0x32,
                                                         0x9a, 0x98, 0x50, 0xf3, 0xe0, 0x4a,
                                                         0xa5, 0xc1, 0xa7, 0x82 };
    unsigned char got[FINGERPRINT_LEN];
    print_of(&c, got);
    EQ_MEM(got, want, FINGERPRINT_LEN);
    arena_release(&arena);
}

/* ---- Without memory -------------------------------------------------------------------------- */

TEST(each_allocation_fails_in_turn)
{
    struct call_spec first = fresh();
    OK(settle(&first), &err); /* what a thread allocates once is allocated */
    arena_release(&arena);
    struct bytes text = of_len(40000);
    memcpy((char *)text.data, "{\"b\":1,\"a\":\"", 12);
    memcpy((char *)text.data + text.len - 2, "\"}", 2);
    int64_t before = mem_live(), n = 1;
    for (;; n++) {
        struct call_spec s = fresh();
        struct arena a;
        s.input = (struct payload){ PAWL_JSON, text };
        arena_init(&a, 64 << 20);
        mem_torture(n, 0);
        enum pawl_status st = call_spec_settle(&a, &world_real, &s, &err);
        int64_t asked = mem_count();
        mem_torture(0, 0);
        arena_release(&a);
        EQ_INT(mem_live(), before);
        if (asked < n) {
            OK(st, &err);
            break;
        }
        EQ_STATUS(st, PAWL_NO_MEMORY, &err);
        HAS_STR(err.text, "no memory for ");
    }
    GT_INT(n, 3);
}

TEST(an_arena_too_small_is_no_memory)
{
    for (size_t max = 0; max < 600; max += 8) {
        struct call_spec s = fresh();
        struct arena a;
        s.input = (struct payload){ PAWL_JSON, BYTES("{\"b\":1, \"a\":2}") };
        arena_init(&a, max);
        enum pawl_status st = call_spec_settle(&a, &world_real, &s, &err);
        if (st != PAWL_OK)
            EQ_STATUS(st, PAWL_NO_MEMORY, &err);
        else
            GT_INT((int64_t)max, 48);
        arena_release(&a);
    }
}
