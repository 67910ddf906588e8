/*
 * line.c - the lines of keys: which call is the head, the part of a line that is stored, and the
 * new calls at its end that are not.
 *
 * A key that is free (no lease holds a call of it, and it is not blocked) and has a line must have
 * a head: its first call, which stands in `ready` and can be claimed. Who makes a key free, or lets
 * a call join, puts the key on tx->due; the head is chosen before the transaction's last write, or
 * by a claim of the same group, which then takes it from memory.
 *
 * A line has two parts. Calls that this group accepted are at its end and only in memory
 * (k->joined). All others are stored. Whether there are stored ones is known from the key's
 * numbers, read under its lock; which ones is always asked in a statement of its own after the
 * lock. So a line whose stored part is empty is known completely without a question. A call that
 * another transaction adds meanwhile could not get the lock: its key note remains, and it was
 * accepted at the same time as ours, so it may stand behind them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

/* Columns of line_take: where the call's begin. */
#define TAKEN_LINE 10

/* ---- New calls ------------------------------------------------------------------------------- */

void led_line_join(struct led_key *k, struct led_call *it)
{
    CHECK(k->got && it->fresh && it->now.place == AT_LINE && !it->joined);
    it->joined = true;
    it->joined_next = NULL;
    if (k->n_joined++)
        k->joined_last->joined_next = it;
    else
        k->joined = it;
    k->joined_last = it;
}

void led_line_left(struct led_key *k, struct led_call *it)
{
    CHECK(it->joined && k->n_joined > 0);
    it->joined = false;
    k->n_joined--;
    while (k->joined && !k->joined->joined)
        k->joined = k->joined->joined_next;
    CHECK(!k->joined == !k->n_joined);
}

void led_line_written(struct led_key *k)
{
    for (struct led_call *it = k->joined; it; it = it->joined_next)
        it->joined = false;
    k->joined = k->joined_last = NULL;
    k->n_joined = 0;
    k->moving = false;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const struct led_place_row *x = a, *y = b;
    int order = bytes_cmp(x->key, y->key);
    if (order)
        return order;
    return (x->call->now.pos > y->call->now.pos) - (x->call->now.pos < y->call->now.pos);
}

/* Did this group do something to it that is not written yet? */
static bool changed(const struct led_call *it)
{
    return it->was.place != it->now.place || it->was.pos != it->now.pos || it->moved;
}

/* A row of a line as a call, of which nothing else need be known. The key is locked, so the row is
 * the truth; where the call stood when it was read before the lock may be long past. */
static struct led_call *row_call(struct ledger *c, const struct led_rows *r, int row,
                                 struct led_key *k)
{
    struct led_call *it = led_call_new(c, led_get_int(r, row, 2));
    CHECK(k->got);
    if (!it || (it->was.place != AT_NONE && changed(it)))
        return it;
    struct attempt_counts counts = { (int)led_get_int(r, row, 6), (int)led_get_int(r, row, 7),
                                     (int)led_get_int(r, row, 8) };
    it->partial = it->was.place == AT_NONE || it->partial || it->lean;
    it->spec.key = k->name;
    it->lease = NULL;
    it->now = (struct led_stand){ .place = AT_LINE,
                                  .state = PAWL_PENDING,
                                  .pos = led_get_int(r, row, 1),
                                  .lane = (int)led_get_int(r, row, 3),
                                  .priority = (int)led_get_int(r, row, 4),
                                  .run_at_us = led_get_int(r, row, 5),
                                  .expires_us = counts.redrives > 0 ? 0 : it->now.expires_us,
                                  .counts = counts,
                                  .key_no = led_get_int(r, row, 9) };
    it->was = it->now;
    return it;
}

enum pawl_status led_lines_load(struct ledger *c, struct led_key *const *v, size_t n, int max,
                                struct led_place_row **out, size_t *out_n, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    *out_n = 0;
    led_column_init(&col, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++)
        led_add_bytes(&col, v[i]->name);
    led_column(&p, &col);
    led_int(&p, max);
    enum pawl_status st = led_query(c, SQL_LINE_RUN, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    *out = arena_alloc(&c->scratch, (r->n + 1) * sizeof **out);
    for (int i = 0; *out && i < r->n; i++) {
        struct led_key *k;
        st = led_key_of_row(c, led_get(r, i, 0), &k, err);
        if (st != PAWL_OK)
            return st;
        struct led_call *it = row_call(c, r, i, k);
        if (!it)
            return err_no_memory(err, "a line");
        st = led_call_check(it, LED_LOADED, err);
        if (st != PAWL_OK)
            return st;
        if (it->now.place == AT_LINE)
            (*out)[(*out_n)++] = (struct led_place_row){ k->name, it };
    }
    if (!*out)
        return err_no_memory(err, "a line");
    qsort(*out, *out_n, sizeof **out, compare_rows);
    return PAWL_OK;
}

/* Inputs up to this long come along with their calls; all of them together fit into len. */
static int64_t len_each(const int64_t *max, size_t n, int64_t len)
{
    int64_t calls = 1;
    for (size_t i = 0; i < n; i++)
        calls += max[i];
    return MAX(len, 0) / calls;
}

/* One row of line_take, behind the others of its key that were read. */
static enum pawl_status ahead_row(struct ledger *c, const struct led_rows *r, int row,
                                  struct led_call ***calls, struct pawl_err *err)
{
    struct led_key *k;
    enum pawl_status st = led_key_of_row(c, led_get(r, row, 0), &k, err);
    if (st != PAWL_OK)
        return st;
    struct led_call *it = row_call(c, r, row, k);
    if (!it)
        return err_no_memory(err, "a line");
    if (it->now.place != AT_LINE)
        return PAWL_OK;
    st = it->partial ? led_call_taken(c, r, row, TAKEN_LINE, it, err)
                     : led_call_check(it, LED_LOADED, err);
    /* The calls of a key are neighbours in `calls`, in the order of their places. */
    if (st == PAWL_OK && k->n_ahead &&
        (k->ahead + k->n_ahead != *calls || (*calls)[-1]->now.pos >= it->now.pos))
        st = err_set(err, PAWL_BROKEN, "database: key \"%.*s\": its line was read in no order",
                     BYTES_ARG(k->name));
    if (!k->n_ahead)
        k->ahead = *calls;
    k->n_ahead++;
    *(*calls)++ = it;
    return st;
}

/* The rows are by key, in the order asked, then by place. */
enum pawl_status led_lines_take(struct ledger *c, struct led_key *const *v, const int64_t *max,
                                size_t n, int64_t len, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column keys;
    size_t all = 0;
    led_column_init(&keys, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++) {
        CHECK(max[i] > 0 && v[i]->got);
        all += (size_t)max[i];
        led_add_bytes(&keys, v[i]->name);
        v[i]->n_ahead = 0; /* of a claim before this one */
    }
    led_column(&p, &keys);
    led_ints(c, &p, max, n);
    led_int(&p, c->db->one_writer ? len_each(max, n, len) : len);
    enum pawl_status st = led_query(c, SQL_LINE_TAKE, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_LINE_TAKE, all, err);
    struct led_call **calls =
        st == PAWL_OK ? arena_alloc(&c->scratch, ((size_t)r->n + 1) * sizeof *calls) : NULL;
    if (st == PAWL_OK && !calls)
        st = err_no_memory(err, "a line");
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        st = ahead_row(c, r, i, &calls, err);
    return st;
}

/* ---- The head -------------------------------------------------------------------------------- */

void led_key_turn(struct ledger *c, struct led_key *k)
{
    k->drop = false;
    if (k->due)
        return;
    k->due = true;
    k->next_due = c->tx->due;
    c->tx->due = k;
}

void led_key_offer(struct led_key *k, int64_t seq, const struct led_stand *as)
{
    k->turn = KEY_OFFERED;
    k->head = seq;
    k->head_pos = as->pos;
    k->head_no = as->key_no;
}

void led_line_offer(struct ledger *c, struct led_key *k, struct led_call *it)
{
    CHECK(k->got && it->now.place == AT_LINE);
    if (it->joined)
        led_line_left(k, it);
    else
        k->moving = true;
    it->now.place = AT_READY;
    led_key_offer(k, it->seq, &it->now);
    k->dirty = true;
    *(it->partial || it->lean ? &c->tx->news : &c->tx->fresh) = true;
}

static bool is_free(const struct led_key *k)
{
    return k->got && !k->held && k->turn != KEY_BLOCKED && k->turn != KEY_OFFERED;
}

bool led_keys_unsettled(struct ledger *c)
{
    struct led_key *k = c->tx->due, *next;
    c->tx->due = NULL;
    for (; k; k = next) {
        next = k->next_due;
        k->due = false;
        if (!is_free(k))
            continue;
        if (k->turn != KEY_IDLE) {
            k->turn = KEY_IDLE;
            k->head = 0;
            k->dirty = true;
        }
        if (k->waiting > 0)
            led_key_turn(c, k);
    }
    return c->tx->due != NULL;
}

enum pawl_status led_keys_headless(struct ledger *c, bool written, struct led_key ***out,
                                   size_t *out_n, struct pawl_err *err)
{
    struct led_key *next;
    size_t n = 0;
    *out_n = 0;
    if (!led_keys_unsettled(c))
        return PAWL_OK;
    for (const struct led_key *k = c->tx->due; k; k = k->next_due)
        n++;
    *out = arena_alloc(&c->scratch, n * sizeof(struct led_key *));
    if (!*out)
        return err_no_memory(err, "keys");
    struct led_key *k = c->tx->due;
    c->tx->due = NULL;
    for (; k; k = next) {
        next = k->next_due;
        k->due = false;
        if (led_line_stored(k) == 0)
            led_line_offer(c, k, k->joined);
        else if (k->moving && !written)
            led_key_turn(c, k);
        else
            (*out)[(*out_n)++] = k;
    }
    return PAWL_OK;
}

enum pawl_status led_line_missing(const struct led_key *k, struct pawl_err *err)
{
    return err_set(err, PAWL_BROKEN, "key \"%.*s\": calls wait and none is in the line",
                   BYTES_ARG(k->name));
}

enum pawl_status led_keys_settle(struct ledger *c, bool written, struct pawl_err *err)
{
    struct led_key **v = NULL;
    struct led_place_row *rows = NULL;
    size_t n = 0, n_rows = 0;
    if (c->tx->hold)
        return PAWL_OK;
    enum pawl_status st = led_keys_headless(c, written, &v, &n, err);
    if (st == PAWL_OK && n)
        st = led_lines_load(c, v, n, 1, &rows, &n_rows, err);
    for (size_t i = 0; st == PAWL_OK && i < n_rows; i++)
        led_line_offer(c, led_key_find(c, rows[i].key), rows[i].call);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        if (v[i]->turn != KEY_OFFERED)
            st = led_line_missing(v[i], err);
    return st;
}

/* ---- Delayed calls --------------------------------------------------------------------------- */

enum pawl_status led_keys_join_due(struct ledger *c, int max, int64_t *out_joined,
                                   struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out_joined = 0;
    enum pawl_status st = led_flush(c, err);
    led_int(&p, c->now_us);
    led_int(&p, max);
    if (st == PAWL_OK)
        st = led_query(c, SQL_LINE_DUE, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_LINE_DUE, (size_t)max, err);
    if (st != PAWL_OK || r->n == 0)
        return st;
    size_t n = r->n;
    int64_t *seqs = arena_alloc(&c->scratch, n * sizeof *seqs);
    struct bytes *keys = arena_alloc(&c->scratch, n * sizeof *keys);
    if (!seqs || !keys)
        return err_no_memory(err, "a line");
    for (size_t i = 0; i < n; i++) {
        seqs[i] = led_get_int(r, (int)i, 0);
        keys[i] = arena_copy(&c->scratch, led_get(r, (int)i, 1));
    }
    st = led_keys_load(c, keys, n, LOCK_TRY, err);
    if (st == PAWL_OK)
        st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        struct led_key *k = led_key_find(c, keys[i]);
        if (!k->got || !it || it->now.place != AT_DELAYED)
            continue; /* the key is locked: the next claim looks again */
        if (it->now.run_at_us > c->now_us)
            return led_again(c, "a delayed call", err);
        struct led_stand to = it->now;
        to.place = AT_LINE;
        st = led_line_end(c, &to.pos, err);
        if (st == PAWL_OK)
            st = led_put(c, it, to, 0, err);
        ++*out_joined;
    }
    return st;
}
