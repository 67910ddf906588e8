/*
 * ident.c - UUIDv7 ids and lease tokens.
 *
 * Any thread. Ids ascend within a process because their leading 60 bits come from one atomic that
 * only grows; the other 62 bits are random.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <string.h>

#include "base/ident.h"
#include "base/limits.h"
#include "base/text.h"

static const char hex[] = "0123456789abcdef";

static char *put_hex(char *at, const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *at++ = hex[b[i] >> 4];
        *at++ = hex[b[i] & 15];
    }
    return at;
}

static void big_endian(uint64_t v, unsigned char *out)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        out[i] = (unsigned char)v;
}

/* 48 bits of milliseconds, then 12 bits of their fraction. When the clock stands still or goes
 * back, and when a millisecond has more than 4096 ids, stamps run ahead of the clock. */
static uint64_t uuid7_stamp(const struct world *w)
{
    static _Atomic uint64_t last;
    int64_t us = world_now(w);
    if (us < 0)
        us = 0;
    uint64_t now = (uint64_t)(us / MS_US) << 12 | (uint64_t)(us % MS_US) * 4096 / MS_US;
    uint64_t before = atomic_load_explicit(&last, memory_order_relaxed);
    uint64_t mine;
    do
        mine = now > before ? now : before + 1;
    while (!atomic_compare_exchange_weak_explicit(&last, &before, mine, memory_order_relaxed,
                                                  memory_order_relaxed));
    return mine & ((UINT64_C(1) << 60) - 1);
}

void uuid7_make(const struct world *w, char out[UUID_TEXT_LEN + 1])
{
    uint64_t stamp = uuid7_stamp(w);
    unsigned char b[16];
    big_endian(stamp >> 12 << 16 | 0x7000 | (stamp & 0xfff), b);
    big_endian(UINT64_C(1) << 63 | world_dice(w) >> 2, b + 8);

    static const unsigned char group[] = { 4, 2, 2, 2, 6 };
    const unsigned char *from = b;
    char *at = out;
    for (size_t i = 0; i < sizeof group; i++) {
        if (i > 0)
            *at++ = '-';
        at = put_hex(at, from, group[i]);
        from += group[i];
    }
    *at = 0;
}

struct token token_make(const struct world *w)
{
    struct token t;
    uint64_t word[2] = { world_dice(w), world_dice(w) };
    memcpy(t.b, word, sizeof t.b);
    if (token_none(t))
        t.b[15] = 1; /* only with the dice of a test: the value that means none stays unused */
    return t;
}

bool token_eq(struct token a, struct token b)
{
    unsigned char differ = 0;
    for (size_t i = 0; i < sizeof a.b; i++)
        differ |= a.b[i] ^ b.b[i];
    return differ == 0;
}

bool token_none(struct token t)
{
    return token_eq(t, (struct token){ { 0 } });
}

void token_text(struct token t, char out[33])
{
    *put_hex(out, t.b, sizeof t.b) = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool token_parse(struct bytes text, struct token *out)
{
    if (!text.data || text.len != 2 * sizeof out->b)
        return false;
    struct token t;
    for (size_t i = 0; i < sizeof t.b; i++) {
        int high = hex_value(text.data[2 * i]), low = hex_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        t.b[i] = (unsigned char)(high << 4 | low);
    }
    *out = t;
    return true;
}

/* ---- Derived ids ----------------------------------------------------------------------------- */

#define DERIVED_KEPT_LEN 180
#define DERIVED_HASH_LEN 43 /* of 32 bytes in base64, without padding */

struct bytes ident_derived(struct arena *a, struct bytes id)
{
    unsigned char digest[32];
    char hash[44];
    if (id.len <= NAME_LEN_MAX)
        return id;
    struct bytes kept = utf8_cut(id, DERIVED_KEPT_LEN);
    char *to = digest_plain(id, digest) ? arena_alloc(a, kept.len + 1 + DERIVED_HASH_LEN) : NULL;
    if (!to)
        return BYTES_NONE;
    base64_write((struct bytes){ (const char *)digest, sizeof digest }, hash);
    memcpy(to, kept.data, kept.len);
    to[kept.len] = '~';
    for (size_t i = 0; i < DERIVED_HASH_LEN; i++)
        to[kept.len + 1 + i] = hash[i] == '+' ? '-' : hash[i] == '/' ? '_' : hash[i];
    return (struct bytes){ to, kept.len + 1 + DERIVED_HASH_LEN };
}
