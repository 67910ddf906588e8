/*
 * wake.c - pending calls that are due later become due now (OP_WAKE).
 *
 * The operation does not wait for keys: a transaction that has locked one may be long, and the one
 * that wakes holds rows of a feature. Without the key's lock
 * - the head of the key is left as it is, with a key note that counts no call: the next transaction
 *   that locks the key, at the latest a claim or sweep that looks for key notes, makes it due;
 * - a delayed call gets another time where it is stored: it stays delayed, the key's numbers do not
 *   change, and it joins its line like every delayed call whose time has come.
 * All calls in a line are due, except the head.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/ledger/cache.h"

/* Is it pending, and due later? */
static bool is_later(const struct ledger *c, const struct led_call *it)
{
    return it && it->now.state == PAWL_PENDING && it->now.run_at_us > c->now_us;
}

/* Was it known before, as held by a lease or due, and is it as it was read? */
static bool is_old(const struct ledger *c, const struct led_call *it)
{
    return it && !it->partial && it->was.place != AT_NONE && it->was.place < AT_ENDED &&
           it->now.place == it->was.place && !is_later(c, it);
}

/* These calls were known before. The operation that wakes has since then locked what lets them
 * wait: the transaction that had locked it may have let one wait. Then nothing would be written
 * here, and nothing found changed, so it is asked for. */
static enum pawl_status old_still(struct ledger *c, const int64_t *seqs, size_t n,
                                  struct pawl_err *err)
{
    bool moved = false;
    enum pawl_status st = PAWL_OK;
    if (n && !c->db->one_writer)
        st = led_calls_moved(c, seqs, n, &moved, err);
    return st == PAWL_OK && moved ? led_again(c, "a call that waits now", err) : st;
}

/* Lock the keys of these calls, as far as no other transaction has locked them. */
static enum pawl_status keys_try(struct ledger *c, const struct wake *q, struct pawl_err *err)
{
    struct bytes *keys = arena_alloc(&c->scratch, (q->n + 1) * sizeof *keys);
    size_t n = 0;
    if (!keys)
        return err_no_memory(err, "a wake");
    for (size_t i = 0; i < q->n; i++) {
        const struct led_call *it = led_call_find(c, q->seqs[i]);
        if (is_later(c, it) && it->spec.key.data)
            keys[n++] = it->spec.key;
    }
    return n ? led_keys_load(c, keys, n, LOCK_TRY, err) : PAWL_OK;
}

static void wake_locked(struct ledger *c, struct led_call *it, struct led_key *k)
{
    if (it->now.place == AT_READY) {
        k->note_wake = c->tx->noted = true;
    } else if (it->now.place == AT_DELAYED) {
        it->now.run_at_us = c->now_us;
        c->tx->news = c->tx->delayed = true;
    }
}

static enum pawl_status wake_one(struct ledger *c, struct led_call *it, struct pawl_err *err)
{
    struct led_stand to = it->now;
    struct led_key *k = it->spec.key.data ? led_key_find(c, it->spec.key) : NULL;
    enum pawl_status st = PAWL_OK;
    if (k && !k->got) {
        wake_locked(c, it, k);
        return PAWL_OK;
    }
    to.run_at_us = c->now_us;
    if (to.place == AT_DELAYED) {
        to.place = AT_LINE;
        st = led_line_end(c, &to.pos, err);
    }
    return st == PAWL_OK ? led_put(c, it, to, 0, err) : st;
}

enum pawl_status led_wake(struct ledger *c, struct op *op, struct pawl_err *err)
{
    const struct wake *q = &op->wake;
    int64_t *old = arena_alloc(&c->scratch, (q->n + 1) * sizeof *old);
    size_t n_old = 0;
    if (!old)
        return err_no_memory(err, "a wake");
    for (size_t i = 0; i < q->n; i++)
        if (is_old(c, led_call_find(c, q->seqs[i])))
            old[n_old++] = q->seqs[i];
    enum pawl_status st = led_calls_load(c, q->seqs, q->n, err);
    if (st == PAWL_OK)
        st = old_still(c, old, n_old, err);
    if (st == PAWL_OK)
        st = keys_try(c, q, err);
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++) {
        struct led_call *it = led_call_find(c, q->seqs[i]);
        if (!is_later(c, it))
            continue;
        op->brings = true;
        st = wake_one(c, it, err);
    }
    CRASH_POINT("ledger.woken");
    return st;
}

enum pawl_status led_keys_wake(struct ledger *c, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    c->tx->wakes = false;
    for (struct led_key *k = c->tx->first_key; k && st == PAWL_OK; k = k->newer) {
        int64_t head = k->wake;
        struct led_call *it = NULL;
        k->wake = 0;
        if (!head || k->turn != KEY_OFFERED || k->head != head)
            continue;
        st = led_call_get(c, head, &it, err);
        if (st != PAWL_OK || !is_later(c, it) || it->now.place != AT_READY)
            continue;
        struct led_stand to = it->now;
        to.run_at_us = c->now_us;
        st = led_put(c, it, to, 0, err);
    }
    return st;
}
