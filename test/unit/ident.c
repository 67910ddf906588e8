/*
 * ident.c - ids increase and differ, tokens are parsed strictly, digests separate lists of runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/ident.h"
#include "base/text.h"
#include "check.h"

static int64_t fake_now(void *ctx)
{
    return *(int64_t *)ctx;
}

static uint64_t fake_dice(void *ctx)
{
    (void)ctx;
    return 0;
}

/* ---- UUIDv7 ---------------------------------------------------------------------------------- */

TEST(uuid_has_its_shape)
{
    int64_t now = INT64_C(0x018bcfe56800) * 1000;
    struct world w = { .now_us = fake_now, .dice = fake_dice, .ctx = &now };
    char id[UUID_TEXT_LEN + 1];
    uuid7_make(&w, id);
    EQ_STR(id, "018bcfe5-6800-7000-8000-000000000000");
    EQ_PTR((void *)name_fault(bytes_of(id)), NULL);
    now += 500;
    uuid7_make(&w, id);
    EQ_STR(id, "018bcfe5-6800-7800-8000-000000000000");
}

TEST(uuid_rises_when_the_clock_does_not)
{
    int64_t now = 5000000;
    struct world w = { .now_us = fake_now, .dice = fake_dice, .ctx = &now };
    char last[UUID_TEXT_LEN + 1] = "", id[UUID_TEXT_LEN + 1];
    for (int i = 0; i < 10000; i++) {
        if (i == 5000)
            now -= 3000000;
        uuid7_make(&w, id);
        LT_INT(strcmp(last, id), 0);
        EQ_INT(id[14], '7');
        memcpy(last, id, sizeof last);
    }
    now = -1;
    uuid7_make(&w, id);
    LT_INT(strcmp(last, id), 0);
}

#define IDS 20000
static char ids[4][IDS][UUID_TEXT_LEN + 1];

static void *make_ids(void *out)
{
    char(*v)[UUID_TEXT_LEN + 1] = out;
    for (size_t i = 0; i < IDS; i++)
        uuid7_make(&world_real, v[i]);
    return NULL;
}

static int cmp(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(uuids_of_threads_rise_and_differ)
{
    pthread_t t[4];
    for (size_t i = 0; i < 4; i++)
        EQ_INT(pthread_create(&t[i], NULL, make_ids, ids[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 1; j < IDS; j++)
            TRUE(strcmp(ids[i][j - 1], ids[i][j]) < 0);
    qsort(ids, 4 * IDS, sizeof ids[0][0], cmp);
    char(*all)[UUID_TEXT_LEN + 1] = ids[0];
    for (size_t i = 1; i < 4 * IDS; i++)
        TRUE(strcmp(all[i - 1], all[i]) < 0);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

TEST(token_goes_to_text_and_back)
{
    for (int i = 0; i < 100; i++) {
        struct token t = token_make(&world_real), back;
        char text[33];
        token_text(t, text);
        EQ_UINT(strlen(text), 32);
        TRUE(token_parse(bytes_of(text), &back));
        TRUE(token_eq(t, back));
        FALSE(token_none(t));
        back.b[i % 16] ^= 1;
        FALSE(token_eq(t, back));
    }
}

TEST(token_is_parsed_strictly)
{
    struct token t = { { 9 } };
    TRUE(token_parse(BYTES("00112233445566778899aabbccddeeff"), &t));
    EQ_INT(t.b[15], 0xff);
    FALSE(token_parse(BYTES("00112233445566778899AABBCCDDEEFF"), &t));
    FALSE(token_parse(BYTES("00112233445566778899aabbccddeef"), &t));
    FALSE(token_parse(BYTES("00112233445566778899aabbccddeeff0"), &t));
    FALSE(token_parse(BYTES("00112233445566778899aabbccddeefg"), &t));
    FALSE(token_parse(BYTES(" 0112233445566778899aabbccddeeff"), &t));
    FALSE(token_parse(BYTES("0011223344556677\0"
                            "8899aabbccddeef"),
                      &t));
    FALSE(token_parse(BYTES(""), &t));
    FALSE(token_parse(BYTES_NONE, &t));
    EQ_INT(t.b[15], 0xff); /* not changed by a refusal */
}

TEST(no_token_is_never_made)
{
    int64_t now = 0;
    struct world w = { .now_us = fake_now, .dice = fake_dice, .ctx = &now };
    FALSE(token_none(token_make(&w)));
    TRUE(token_none((struct token){ { 0 } }));
}

/* ---- Digests --------------------------------------------------------------------------------- */

static void hex(const unsigned char d[32], char out[65])
{
    for (int i = 0; i < 32; i++) {
        out[2 * i] = "0123456789abcdef"[d[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[d[i] & 15];
    }
    out[64] = 0;
}

TEST(digest_is_sha256)
{
    unsigned char d[32];
    char text[65];
    TRUE(digest_plain(BYTES("abc"), d));
    hex(d, text);
    EQ_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    TRUE(digest_plain(BYTES_NONE, d));
    hex(d, text);
    EQ_STR(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void parts_digest(const struct bytes *v, size_t n, unsigned char out[32])
{
    TRUE(digest_parts(v, n, out));
}

TEST(lists_of_runs_are_kept_apart)
{
    static char big[3000];
    memset(big, 'x', sizeof big);
    const struct bytes lists[][3] = {
        { BYTES("ab"), BYTES("c"), BYTES("") },    { BYTES("a"), BYTES("bc"), BYTES("") },
        { BYTES("abc"), BYTES(""), BYTES("") },    { BYTES("abc"), BYTES_NONE, BYTES("") },
        { BYTES("abc"), BYTES(""), BYTES_NONE },   { { big, 3000 }, BYTES(""), BYTES("") },
        { { big, 2999 }, BYTES("x"), BYTES("") },  { { big, 500 }, BYTES("x"), BYTES("") },
        { BYTES("x"), { big, 503 }, BYTES("x") },  { BYTES("x"), { big, 494 }, BYTES("") },
        { { big, 1 }, { big, 1000 }, { big, 1 } },
    };
    enum { N = sizeof lists / sizeof lists[0] };
    unsigned char d[N + 1][32];
    for (size_t i = 0; i < N; i++)
        parts_digest(lists[i], 3, d[i]);
    parts_digest(lists[2], 2, d[N]);
    for (size_t i = 0; i <= N; i++)
        for (size_t j = 0; j < i; j++)
            TRUE(memcmp(d[i], d[j], 32) != 0);
}

/* The digest of joined parts is that of the parts one after another. */
TEST(digest_does_not_depend_on_how_it_is_fed)
{
    static char run[2000], flat[8100];
    for (size_t i = 0; i < sizeof run; i++)
        run[i] = (char)(i * 7);
    for (size_t len = 0; len <= 2000; len += len < 520 ? 1 : 97) {
        struct bytes parts[] = { { run, len }, { run + 1, len / 2 }, BYTES_NONE, { run, 9 } };
        unsigned char got[32], want[32];
        size_t at = 0;
        for (size_t i = 0; i < 4; i++) {
            flat[at++] = parts[i].data != NULL;
            for (int shift = 56; shift >= 0; shift -= 8)
                flat[at++] = (char)(parts[i].len >> shift);
            if (parts[i].len)
                memcpy(flat + at, parts[i].data, parts[i].len);
            at += parts[i].len;
        }
        parts_digest(parts, 4, got);
        TRUE(digest_plain((struct bytes){ flat, at }, want));
        EQ_MEM(got, want, 32);
    }
}

static void *digest_once(void *out)
{
    parts_digest(&BYTES("abc"), 1, out);
    return NULL;
}

TEST(threads_agree)
{
    unsigned char d[8][32];
    pthread_t t[8];
    for (size_t i = 0; i < 8; i++)
        EQ_INT(pthread_create(&t[i], NULL, digest_once, d[i]), 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    for (size_t i = 1; i < 8; i++)
        EQ_MEM(d[i], d[0], 32);
}

TEST(derived_id_is_a_name)
{
    char text[300];
    struct arena a;
    arena_init(&a, 1 << 16);
    memset(text, 'x', sizeof text);
    struct bytes id = ident_derived(&a, (struct bytes){ text, 255 });
    EQ_PTR(id.data, text); /* as it is, up to the limit */
    EQ_UINT(id.len, 255);
    id = ident_derived(&a, (struct bytes){ text, 256 });
    EQ_UINT(id.len, 180 + 1 + 43);
    EQ_MEM(id.data, text, 180);
    EQ_INT(id.data[180], '~');
    struct bytes other = ident_derived(&a, (struct bytes){ text, 257 });
    FALSE(bytes_eq(id, other));
    for (size_t i = 181; i < id.len; i++)
        TRUE(id.data[i] == '-' || id.data[i] == '_' || isalnum((unsigned char)id.data[i]));
    memcpy(text + 179, "\xc3\xa9", 2); /* a character across the cut is left out */
    id = ident_derived(&a, (struct bytes){ text, 256 });
    EQ_UINT(id.len, 179 + 1 + 43);
    TRUE(utf8_valid(id));
    arena_release(&a);
}
