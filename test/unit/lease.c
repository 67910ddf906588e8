/*
 * lease.c - any lease packs and unpacks to the same value, in few bytes; anything else is BROKEN,
 * never a crash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/world.h"
#include "model/lease.h"
#include "check.h"

static struct arena arena;
static struct pawl_err err;

static uint64_t roll(uint64_t n)
{
    return world_dice(&world_real) % n;
}

static struct bytes packed_of(const struct held *v, size_t n, struct bytes version)
{
    struct bytes out;
    if (!arena.max)
        arena_init(&arena, 16 << 20);
    OK(lease_pack(&arena, v, n, version, &out, &err), &err);
    return out;
}

static struct bytes packed(const struct held *v, size_t n)
{
    return packed_of(v, n, BYTES_NONE);
}

static void eq_held(const struct held *a, const struct held *b)
{
    EQ_INT(a->seq, b->seq);
    EQ_INT(a->run_at_us, b->run_at_us);
    EQ_INT(a->lane, b->lane);
    EQ_INT(a->priority, b->priority);
    EQ_INT(a->counts.attempts, b->counts.attempts);
    EQ_INT(a->counts.lost, b->counts.lost);
    EQ_INT(a->counts.redrives, b->counts.redrives);
    EQ_INT(a->key, b->key);
    EQ_INT(a->pos, b->pos);
    EQ_INT(a->key_no, b->key_no);
    EQ_UINT(a->marks, b->marks);
    EQ_INT(a->since_us, b->since_us);
}

static void round_trip_of(const struct held *v, size_t n, struct bytes version)
{
    struct held *back;
    struct bytes back_version;
    size_t back_n;
    struct bytes p = packed_of(v, n, version);
    OK(lease_unpack(&arena, p, &back, &back_n, &back_version, &err), &err);
    EQ_UINT(back_n, n);
    for (size_t i = 0; i < n; i++)
        eq_held(&back[i], &v[i]);
    EQ_INT(back_version.data != NULL, version.data != NULL);
    TRUE(bytes_eq(back_version, version));
}

static void round_trip(const struct held *v, size_t n)
{
    round_trip_of(v, n, BYTES_NONE);
}

TEST(an_ordinary_lease_is_small)
{
    static struct held v[CLAIM_MAX];
    for (int i = 0; i < CLAIM_MAX; i++)
        v[i] = (struct held){ .seq = 123456789 + i,
                              .lane = 7,
                              .run_at_us = INT64_C(1794729600123456) + i * 900 };
    struct bytes p = packed(v, CLAIM_MAX);
    LT_INT((int64_t)p.len, 4 * CLAIM_MAX);
    round_trip(v, CLAIM_MAX);
    /* Calls that were accepted together need one byte each. */
    for (int i = 0; i < CLAIM_MAX; i++)
        v[i].run_at_us = INT64_C(1794729600123456);
    LT_INT((int64_t)packed(v, CLAIM_MAX).len, CLAIM_MAX + 32);
    round_trip(v, CLAIM_MAX);
    arena_release(&arena);
}

TEST(the_edges_of_every_field)
{
    static const struct held v[] = {
        { 1, INT64_MIN, INT_MIN, INT_MIN, { INT_MAX, 0, 0 }, 0, 0, 0, 0, 0 },
        { 2, INT64_MAX, INT_MAX, INT_MAX, { 0, INT_MAX, 0 }, INT_MAX, INT64_MAX, INT64_MAX, 1, 1 },
        { 4, INT64_MIN, 0, 0, { 0, 0, INT_MAX }, 1, 1, 1, INT_MAX, INT64_MAX },
        { INT64_MAX - 1, 0, -1, 1, { 0, 0, 0 }, 0, 0, 0, WATCH_ALL, 0 },
        { INT64_MAX, -1, INT_MIN, INT_MAX, { 1, 1, 1 }, 7, INT64_MAX, 3, 0, INT64_MAX },
    };
    round_trip(v, 0);
    for (size_t n = 1; n <= COUNT_OF(v); n++)
        round_trip(v, n);
    round_trip(v + 4, 1);
    round_trip_of(v, 0, BYTES("2"));
    round_trip_of(v, COUNT_OF(v), BYTES("v1.2:rc-3_a"));
    round_trip_of(v, 1, BYTES("12345678901234567890123456789012345678901234567890"));
    arena_release(&arena);
}

static size_t any_lease(struct held *v)
{
    size_t n = roll(4) ? roll(20) : roll(CLAIM_MAX + 1);
    struct held h = { .seq = (int64_t)roll(1000000),
                      .run_at_us = (int64_t)roll(UINT64_C(1) << 52) };
    for (size_t i = 0; i < n; i++) {
        h.seq += 1 + (roll(3) ? 0 : (int64_t)roll(1 << 20));
        if (roll(2))
            h.run_at_us += (int64_t)roll(1 << 20) - (1 << 19);
        if (roll(8) == 0)
            h.lane = (int)roll(10000);
        if (roll(8) == 0)
            h.priority = (int)roll(2001) - 1000;
        h.counts = (struct attempt_counts){ 0 };
        if (roll(5) == 0)
            h.counts = (struct attempt_counts){ (int)roll(1000), (int)roll(1000), (int)roll(100) };
        bool keyed = roll(2);
        h.key = keyed ? 1 + (int)roll(5) : 0;
        h.key_no = keyed ? 1 + (int64_t)roll(1000) : 0;
        h.pos = !keyed ? 0 : roll(4) ? h.seq : 1 + (int64_t)roll(1 << 20);
        h.marks = roll(8) ? 0 : 1 + (unsigned)roll(WATCH_ALL);
        h.since_us = roll(8) ? 0 : 1 + (int64_t)roll(UINT64_C(1) << 52);
        v[i] = h;
    }
    return n;
}

TEST(any_lease_unpacks_to_itself)
{
    static struct held v[CLAIM_MAX];
    for (int round = 0; round < 3000; round++) {
        round_trip_of(v, any_lease(v), roll(2) ? BYTES_NONE : BYTES("2.0"));
        if (arena.max)
            arena_reset(&arena);
    }
    arena_release(&arena);
}

/* Unpacks from memory that ends where the bytes end. BROKEN, or something that could be a lease. */
static enum pawl_status unpack_exact(const char *data, size_t len)
{
    char *copy = malloc(len ? len : 1);
    struct held *v;
    struct bytes version;
    size_t n;
    memcpy(copy, data, len);
    arena_reset(&arena);
    enum pawl_status st = lease_unpack(&arena, (struct bytes){ copy, len }, &v, &n, &version, &err);
    if (st == PAWL_OK)
        for (size_t i = 0; i < n; i++)
            TRUE(v[i].seq > (i ? v[i - 1].seq : 0) && v[i].counts.lost >= 0);
    else
        EQ_STATUS(st, PAWL_BROKEN, &err);
    free(copy);
    return st;
}

TEST(random_bytes_are_broken)
{
    arena_init(&arena, 16 << 20);
    for (int round = 0; round < 300000; round++) {
        char data[64];
        size_t len = roll(sizeof data);
        for (size_t i = 0; i < len; i++)
            data[i] = (char)(roll(2) ? roll(256) : roll(32));
        if (len > 0)
            data[0] = 1;
        if (len > 1)
            data[1] = (char)roll(12);
        (void)unpack_exact(data, len);
    }
    arena_release(&arena);
}

/* What unpacks packs to the same bytes: a lease has only one encoding. */
TEST(mangled_leases)
{
    static struct held v[CLAIM_MAX];
    arena_init(&arena, 16 << 20);
    for (int round = 0; round < 20000; round++) {
        char data[4096];
        struct held *back;
        size_t n = any_lease(v) % 50, len;
        arena_reset(&arena);
        struct bytes version = roll(2) ? BYTES_NONE : BYTES("2.0");
        struct bytes p = packed_of(v, n, version);
        memcpy(data, p.data, len = MIN(p.len, sizeof data));
        if (roll(3) == 0)
            len -= 1 + roll(len);
        else
            data[roll(len)] ^= (char)(1 << roll(8));
        if (unpack_exact(data, len) == PAWL_OK) {
            struct bytes mangled = { data, len };
            OK(lease_unpack(&arena, mangled, &back, &n, &version, &err), &err);
            p = packed_of(back, n, version);
            EQ_BYTES(p.data, p.len, data, len);
        }
    }
    arena_release(&arena);
}

TEST(known_breakage)
{
    static const struct bytes bad[] = {
        BYTES(""), BYTES("\1"), BYTES("\2\0"), /* another version */
        BYTES("\1\0\0"),                       /* bytes after the end */
        BYTES("\1\1"),                         /* an item missing */
        BYTES("\1\1\x20"),                     /* a key that is missing */
        BYTES("\1\1\x80\1"),                   /* marks that are missing */
        BYTES("\1\1\x80\0"),                   /* marks of 0, which are not written */
        BYTES("\1\1\x80\2"),                   /* a time of a step that is missing */
        BYTES("\1\1\x80\2\0"),                 /* such a time of 0, which is not written */
        BYTES("\1\1\x80\2\1"),                 /* below 0 */
        BYTES("\1\1\x80\4\1"),                 /* a flag of a later version */
        /* A number with a longer encoding than necessary. */
        BYTES("\1\1\1\x80\x00"), BYTES("\1\1\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* a seq
                                                                                             beyond
                                                                                             63 bits
                                                                                           */
        BYTES("\1\1\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* beyond 64 bits */
        BYTES("\1\1\x10\xff\xff\xff\xff\x0f\0\0"),               /* attempts beyond an int */
        BYTES("\1\xe9\x07"),                                     /* 1001 calls */
        BYTES("\1\xff\xff\xff\xff\x0f"),
        BYTES("\1\0\2"
              "1"), /* a version that is cut off */
        BYTES("\1\0\1"
              "12"),      /* bytes behind it */
        BYTES("\1\0\1@"), /* a character that it cannot have */
        BYTES("\1\0\x33"
              "123456789012345678901234567890123456789012345678901"), /* too long */
    };
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        EQ_STATUS(unpack_exact(bad[i].data, bad[i].len), PAWL_BROKEN, &err);
    struct held *v;
    struct bytes version;
    size_t n;
    EQ_STATUS(lease_unpack(&arena, BYTES_NONE, &v, &n, &version, &err), PAWL_BROKEN, &err);
    OK(lease_unpack(&arena, BYTES("\1\0"), &v, &n, &version, &err), &err);
    EQ_UINT(n, 0);
    arena_release(&arena);
}

TEST(finds_by_seq)
{
    struct held v[100];
    for (int i = 0; i < 100; i++)
        v[i] = (struct held){ .seq = 10 + 3 * i };
    for (size_t n = 0; n <= 100; n++)
        for (int64_t seq = 8; seq < 312; seq++) {
            struct held *h = lease_find(v, n, seq);
            bool there = seq >= 10 && (seq - 10) % 3 == 0 && (size_t)(seq - 10) / 3 < n;
            EQ_PTR(h, there ? &v[(seq - 10) / 3] : NULL);
        }
    EQ_PTR(lease_find(NULL, 0, 1), NULL);
}

TEST(survives_without_memory)
{
    static const struct held v[] = { { .seq = 1 }, { .seq = 2 } };
    int64_t before = mem_live();
    struct bytes out, version;
    struct held *back;
    size_t n;
    struct arena a;
    arena_init(&a, 1 << 20);
    mem_torture(1, 1);
    EQ_STATUS(lease_pack(&a, v, 2, BYTES_NONE, &out, &err), PAWL_NO_MEMORY, &err);
    EQ_STATUS(lease_unpack(&a, BYTES("\1\1\0"), &back, &n, &version, &err), PAWL_NO_MEMORY, &err);
    mem_torture(0, 0);
    arena_release(&a);
    EQ_INT(mem_live(), before);
}

/* ---- Which calls have begun ------------------------------------------------------------------ */

/* Of calls 1, 2, ... with these priorities and times: which of them start, "2 4". */
static const char *begun(const int (*v)[2], size_t n, int width, const char *first)
{
    static char text[256];
    struct held held[8] = { 0 };
    bool out[8] = { 0 };
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        held[i] = (struct held){ .seq = (int64_t)i + 1, .priority = v[i][0], .run_at_us = v[i][1] };
        out[i] = first[i] == 'f';
    }
    lease_begun(held, n, width, out);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i])
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%zu", len ? " " : "", i + 1);
    return text;
}

TEST(calls_begin_in_the_order_of_the_lease)
{
    static const int v[][2] = { { 0, 5 }, { 3, 9 }, { 0, 4 }, { 3, 9 }, { -1, 1 }, { 0, 4 } };
    EQ_STR(begun(v, 6, 1, "ffffff"), "2");
    EQ_STR(begun(v, 6, 2, "ffffff"), "2 4");
    EQ_STR(begun(v, 6, 3, "ffffff"), "2 3 4");
    EQ_STR(begun(v, 6, 4, "ffffff"), "2 3 4 6");
    EQ_STR(begun(v, 6, 5, "ffffff"), "1 2 3 4 6");
    EQ_STR(begun(v, 6, 6, "ffffff"), "1 2 3 4 5 6");
    EQ_STR(begun(v, 6, 1000, "ffffff"), "1 2 3 4 5 6");
}

TEST(without_a_width_every_first_call_has_begun)
{
    static const int v[][2] = { { 0, 5 }, { 3, 9 }, { 0, 4 } };
    EQ_STR(begun(v, 3, 0, "fff"), "1 2 3");
    EQ_STR(begun(v, 3, 0, "f-f"), "1 3");
    EQ_STR(begun(v, 0, 0, ""), "");
}

TEST(only_first_calls_fill_the_width)
{
    static const int v[][2] = { { 9, 1 }, { 0, 2 }, { 9, 1 }, { 0, 3 }, { 0, 4 } };
    EQ_STR(begun(v, 5, 2, "-f-ff"), "2 4"); /* the others ended, or are behind in their run */
    EQ_STR(begun(v, 5, 3, "-f-ff"), "2 4 5");
    EQ_STR(begun(v, 5, 1, "-----"), "");
}

/* The same as counting, for each call, how many come before it. */
TEST(any_lease_begins_as_many_as_its_width)
{
    static struct held v[CLAIM_MAX];
    static bool first[CLAIM_MAX], out[CLAIM_MAX];
    for (int round = 0; round < 50; round++) {
        size_t n = round == 0 ? CLAIM_MAX : 1 + roll(60);
        int width = (int)roll(n + 2);
        for (size_t i = 0; i < n; i++) {
            v[i] = (struct held){ .seq = (int64_t)i + 1,
                                  .priority = (int)roll(3) - 1,
                                  .run_at_us = (int64_t)roll(5) };
            out[i] = first[i] = roll(4) > 0;
        }
        lease_begun(v, n, width, out);
        for (size_t i = 0; i < n; i++) {
            int before = 0;
            for (size_t k = 0; k < n; k++)
                before += first[k] &&
                          (v[k].priority != v[i].priority     ? v[k].priority > v[i].priority
                           : v[k].run_at_us != v[i].run_at_us ? v[k].run_at_us < v[i].run_at_us
                                                              : k < i);
            EQ_INT(out[i], first[i] && (width == 0 || before < width));
        }
    }
}
