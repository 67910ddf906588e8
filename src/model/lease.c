/*
 * lease.c - the calls of a lease in a few bytes each (lease.h). Pure, any thread.
 *
 *     version 1 | count | item ... | code      item: flags | the fields of the flags, in their
 * order
 *
 * `code` is the version of the worker's code, its length and its characters; nothing without one.
 * Flags and numbers are varints: seven bits a byte, the lowest first, the high bit set on all bytes
 * but the last. Signed numbers are zigzag-encoded (0, -1, 1, -2 ...). An ordinary call, whose seq
 * follows that of the previous item, takes its flags and the difference of its run_at: two to four
 * bytes; one with a key takes two more.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdlib.h>

#include "base/limits.h"
#include "model/lease.h"
#include "model/needs.h"

enum {
    HAS_SEQ = 1,    /* how far the seq is past the previous seq + 1; without: not at all */
    HAS_RUN_AT = 2, /* the difference to the previous item; likewise lane and priority */
    HAS_LANE = 4,
    HAS_PRIORITY = 8,
    HAS_COUNTS = 16, /* the counts of struct attempt_counts; without: all 0 */
    HAS_KEY = 32,    /* key, and key_no as a difference to the previous item; without: no key */
    HAS_POS = 64,    /* the difference to the seq; without: it equals the seq, or there is no key */
    HAS_MARKS = 128, /* without: none */
    HAS_SINCE = 256, /* the difference to the run_at; without: 0 */
    HAS_ALL = 511,
};

#define VERSION 1
#define VARINT_LEN_MAX 10
/* Flags and twelve numbers. */
#define ITEM_LEN_MAX (13 * VARINT_LEN_MAX)

/* ---- Writing --------------------------------------------------------------------------------- */

static unsigned char *put(unsigned char *at, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        *at++ = (unsigned char)(n | 0x80);
    *at++ = (unsigned char)n;
    return at;
}

/* Differences wrap around, so that any two numbers have one. */
static unsigned char *put_diff(unsigned char *at, int64_t to, int64_t from)
{
    uint64_t d = (uint64_t)to - (uint64_t)from;
    return put(at, d << 1 ^ (0 - (d >> 63)));
}

/* The fields in which an item differs from the previous one. */
static int flags_of(const struct held *h, const struct held *before)
{
    bool counts = h->counts.attempts || h->counts.lost || h->counts.redrives;
    return (h->seq - 1 != before->seq ? HAS_SEQ : 0) |
           (h->run_at_us != before->run_at_us ? HAS_RUN_AT : 0) |
           (h->lane != before->lane ? HAS_LANE : 0) |
           (h->priority != before->priority ? HAS_PRIORITY : 0) | (counts ? HAS_COUNTS : 0) |
           (h->key ? HAS_KEY : 0) | (h->key && h->pos != h->seq ? HAS_POS : 0) |
           (h->marks ? HAS_MARKS : 0) | (h->since_us ? HAS_SINCE : 0);
}

static unsigned char *put_item(unsigned char *at, const struct held *h, const struct held *before)
{
    int flags = flags_of(h, before);
    at = put(at, (uint64_t)flags);
    if (flags & HAS_SEQ)
        at = put(at, (uint64_t)(h->seq - before->seq - 1));
    if (flags & HAS_RUN_AT)
        at = put_diff(at, h->run_at_us, before->run_at_us);
    if (flags & HAS_LANE)
        at = put_diff(at, h->lane, before->lane);
    if (flags & HAS_PRIORITY)
        at = put_diff(at, h->priority, before->priority);
    if (flags & HAS_COUNTS) {
        at = put(at, (uint64_t)h->counts.attempts);
        at = put(at, (uint64_t)h->counts.lost);
        at = put(at, (uint64_t)h->counts.redrives);
    }
    if (flags & HAS_KEY) {
        at = put(at, (uint64_t)h->key);
        at = put_diff(at, h->key_no, before->key_no);
    }
    if (flags & HAS_POS)
        at = put_diff(at, h->pos, h->seq);
    if (flags & HAS_MARKS)
        at = put(at, h->marks);
    if (flags & HAS_SINCE)
        at = put_diff(at, h->since_us, h->run_at_us);
    return at;
}

/* Write all items at `at`, and return their length; with NULL only the length. */
static size_t put_all(unsigned char *at, const struct held *v, size_t n)
{
    unsigned char item[ITEM_LEN_MAX];
    struct held before = { 0 };
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char *to = at ? at + len : item;
        len += (size_t)(put_item(to, &v[i], &before) - to);
        before = v[i];
    }
    return len;
}

enum pawl_status lease_pack(struct arena *a, const struct held *v, size_t n, struct bytes version,
                            struct bytes *out, struct pawl_err *err)
{
    CHECK(n <= CLAIM_MAX && (!version.data || !version_fault(version)));
    for (size_t i = 0; i < n; i++) {
        CHECK(v[i].seq > (i ? v[i - 1].seq : 0));
        CHECK(v[i].counts.attempts >= 0 && v[i].counts.lost >= 0 && v[i].counts.redrives >= 0);
        CHECK(v[i].key ? v[i].key > 0 && v[i].pos > 0 && v[i].key_no > 0
                       : !v[i].pos && !v[i].key_no);
    }
    unsigned char head[1 + VARINT_LEN_MAX] = { VERSION };
    size_t head_len = (size_t)(put(head + 1, n) - head), end = head_len + put_all(NULL, v, n);
    size_t len = end + (version.data ? 1 + version.len : 0);
    unsigned char *packed = arena_alloc(a, len);
    if (!packed)
        return err_no_memory(err, "a lease");
    memcpy(packed, head, head_len);
    put_all(packed + head_len, v, n);
    if (version.data) {
        packed[end] = (unsigned char)version.len;
        memcpy(packed + end + 1, version.data, version.len);
    }
    *out = (struct bytes){ (char *)packed, len };
    return PAWL_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* After a failure every number reads as 0. */
struct reader {
    const unsigned char *at, *end;
    bool failed;
};

static uint64_t get(struct reader *r)
{
    uint64_t n = 0;
    for (int shift = 0; !r->failed && r->at < r->end && shift < 64; shift += 7) {
        unsigned char c = *r->at++;
        n |= (uint64_t)(c & 0x7f) << shift;
        if (c >= 0x80)
            continue;
        /* A number written longer than needed, or with more than 64 bits, is not from
         * lease_pack(). */
        if ((c == 0 && shift > 0) || (shift == 63 && c > 1))
            break;
        return n;
    }
    r->failed = true;
    return 0;
}

static int64_t get_diff(struct reader *r, int64_t from)
{
    uint64_t n = get(r);
    return (int64_t)((uint64_t)from + (n >> 1 ^ (0 - (n & 1))));
}

static int get_int(struct reader *r, int64_t n, int64_t low)
{
    if (n >= low && n <= INT_MAX)
        return (int)n;
    r->failed = true;
    return 0;
}

static void get_key(struct reader *r, int flags, const struct held *before, struct held *h)
{
    h->key = 0;
    h->key_no = h->pos = 0;
    if (flags & HAS_KEY) {
        h->key = get_int(r, (int64_t)get(r), 1);
        h->key_no = get_diff(r, before->key_no);
        h->pos = flags & HAS_POS ? get_diff(r, h->seq) : h->seq;
        r->failed |= h->key_no < 1 || h->pos < 1;
    }
}

/* A field that its flag did not need is a failure too: a lease has only one encoding. */
static struct held get_item(struct reader *r, const struct held *before)
{
    struct held h = *before;
    uint64_t all = get(r);
    int flags = all <= HAS_ALL ? (int)all : 0;
    r->failed |= all > HAS_ALL;
    uint64_t far = flags & HAS_SEQ ? get(r) : 0;
    r->failed |= far >= (uint64_t)(INT64_MAX - before->seq) || ((flags & HAS_SEQ) && far == 0);
    h.seq = r->failed ? before->seq : before->seq + 1 + (int64_t)far;
    if (flags & HAS_RUN_AT)
        h.run_at_us = get_diff(r, before->run_at_us);
    if (flags & HAS_LANE)
        h.lane = get_int(r, get_diff(r, before->lane), INT_MIN);
    if (flags & HAS_PRIORITY)
        h.priority = get_int(r, get_diff(r, before->priority), INT_MIN);
    h.counts = (struct attempt_counts){ 0 };
    if (flags & HAS_COUNTS) {
        h.counts.attempts = get_int(r, (int64_t)get(r), 0);
        h.counts.lost = get_int(r, (int64_t)get(r), 0);
        h.counts.redrives = get_int(r, (int64_t)get(r), 0);
    }
    get_key(r, flags, before, &h);
    h.marks = flags & HAS_MARKS ? (unsigned)get_int(r, (int64_t)get(r), 1) : 0;
    h.since_us = flags & HAS_SINCE ? get_diff(r, h.run_at_us) : 0;
    r->failed |= h.since_us < 0 || flags_of(&h, before) != flags;
    return h;
}

/* What follows the items. */
static struct bytes get_version(struct reader *r)
{
    if (r->failed || r->at == r->end)
        return BYTES_NONE;
    size_t len = *r->at++;
    struct bytes version = { (const char *)r->at, MIN(len, (size_t)(r->end - r->at)) };
    r->failed = version.len != len || version_fault(version);
    r->at += version.len;
    return version;
}

enum pawl_status lease_unpack(struct arena *a, struct bytes packed, struct held **out,
                              size_t *out_n, struct bytes *out_version, struct pawl_err *err)
{
    struct reader r = { (const unsigned char *)packed.data, NULL, packed.len < 2 };
    if (r.failed || *r.at++ != VERSION)
        return err_set(err, PAWL_BROKEN, "a stored lease is damaged");
    r.end = r.at + packed.len - 1;
    uint64_t n = get(&r);
    /* An item has at least one byte; a larger count must not size an allocation. */
    if (r.failed || n > CLAIM_MAX || n > (uint64_t)(r.end - r.at))
        return err_set(err, PAWL_BROKEN,
                       "a stored lease is damaged: it claims to hold too many calls");

    struct held *v = arena_alloc(a, n * sizeof *v), before = { 0 };
    if (!v)
        return err_no_memory(err, "a lease");
    for (size_t i = 0; i < n && !r.failed; i++)
        before = v[i] = get_item(&r, &before);
    struct bytes version = get_version(&r);
    if (r.failed || r.at != r.end)
        return err_set(err, PAWL_BROKEN, "a stored lease is damaged");
    *out = v;
    *out_version = version;
    *out_n = n;
    return PAWL_OK;
}

struct held *lease_find(struct held *v, size_t n, int64_t seq)
{
    size_t low = 0, high = n;
    /* Calls that were accepted together have consecutive numbers. */
    uint64_t guess = n ? (uint64_t)seq - (uint64_t)v[0].seq : 0;
    if (guess < n && v[guess].seq == seq)
        return &v[guess];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && v[low].seq == seq ? &v[low] : NULL;
}

/* ---- Which calls have begun ------------------------------------------------------------------ */

static int compare_order(const void *a, const void *b, void *held)
{
    const struct held *x = (const struct held *)held + *(const int *)a;
    const struct held *y = (const struct held *)held + *(const int *)b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->run_at_us != y->run_at_us)
        return x->run_at_us < y->run_at_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

void lease_begun(const struct held *v, size_t n, int width, bool *begun)
{
    int order[CLAIM_MAX];
    size_t first = 0;
    CHECK(n <= CLAIM_MAX && width >= 0);
    if (width == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (begun[i])
            order[first++] = (int)i;
    if (first <= (size_t)width)
        return;
    qsort_r(order, first, sizeof *order, compare_order, (void *)v);
    for (size_t i = (size_t)width; i < first; i++)
        begun[order[i]] = false;
}

const char *lease_lost_text(struct arena *a, bool by_worker, struct bytes owner)
{
    return arena_printf(a, "%s \"%.*s\" was lost", by_worker ? "worker" : "node", BYTES_ARG(owner));
}
