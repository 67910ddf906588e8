/*
 * claim_run.c - a candidate of a claim, and the calls of its key that go with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/claim.h"

struct run {
    struct led_key *key;
    int lane, left;
    int64_t position;
    bool stopped;
};

static enum pawl_status run_one(struct claiming *g, struct run *r, struct led_call *it,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bool fit = false;
    r->stopped = it->now.lane != r->lane || counts_retry_alone(it->now.counts) ||
                 it->now.run_at_us > g->c->now_us;
    if (r->stopped)
        return PAWL_OK;
    bool expired = led_claim_over(g, it);
    if (expired)
        st = led_claim_expire(g, it, err);
    else
        st = led_claim_fits(g, it, &fit, err);
    g->complete = g->complete || (!expired && !fit);
    if (st == PAWL_OK && fit) {
        st = led_claim_take(g, it, r->key, ++r->position, err);
        r->left--;
    }
    r->stopped = !led_claim_goes_on(g);
    return st;
}

/* The next call of the key's line: one that was read ahead; otherwise a stored one, which is read
 * now; otherwise a new one. *out NULL: there is none. */
static enum pawl_status run_next(struct claiming *g, struct led_key *k, int left,
                                 struct led_call **out, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out = k->joined;
    if (!k->n_ahead && led_line_stored(k) > 0) { /* none were read ahead, or some have expired */
        *out = NULL;
        st = led_flush(g->c, err);
        if (st == PAWL_OK)
            st = led_lines_take(g->c, &k, &(int64_t){ left }, 1, CLAIM_LEN_MAX - (int64_t)g->len,
                                err);
    }
    if (st != PAWL_OK || !k->n_ahead)
        return st;
    *out = *k->ahead++;
    k->n_ahead--;
    CHECK((*out)->now.place == AT_LINE);
    return PAWL_OK;
}

/* Take the next calls of the key that may go with the first one. */
static enum pawl_status take_run(struct claiming *g, struct led_key *k,
                                 const struct led_call *first, struct pawl_err *err)
{
    struct run r = { .key = k, .lane = first->now.lane, .left = g->q->run_max - 1 };
    enum pawl_status st = PAWL_OK;
    r.left = (int)MIN((int64_t)r.left, (int64_t)g->q->max - (int64_t)g->q->n);
    while (st == PAWL_OK && r.left > 0 && k->waiting > 0 && !r.stopped && led_claim_goes_on(g)) {
        struct led_call *it = NULL;
        st = run_next(g, k, r.left, &it, err);
        if (st == PAWL_OK && !it)
            break;
        if (st == PAWL_OK)
            st = run_one(g, &r, it, err);
    }
    k->n_ahead = 0;
    return st;
}

static enum pawl_status call_quick(struct claiming *g, const struct led_call *it, bool *out,
                                   struct pawl_err *err)
{
    const struct led_lane *lane;
    *out = true;
    if (!g->q->max_any && !g->c->tx->gates_read)
        return PAWL_OK;
    enum pawl_status st = led_lane(g->c, it->now.lane, &lane, err);
    *out = st == PAWL_OK && !led_gated(g->c, lane) && led_claim_quick(g->q, lane->names.type);
    return st;
}

enum pawl_status led_claim_lines(struct claiming *g, struct led_call *const *v, size_t n,
                                 struct pawl_err *err)
{
    struct ledger *c = g->c;
    struct bytes *names = arena_alloc(&c->scratch, (n + 1) * sizeof *names);
    struct led_key **keys = arena_alloc(&c->scratch, (n + 1) * sizeof(struct led_key *));
    int64_t *max = arena_alloc(&c->scratch, (n + 1) * sizeof *max);
    int64_t room = (int64_t)g->q->max - (int64_t)g->q->n;
    size_t n_names = 0, n_keys = 0;
    if (!names || !keys || !max)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < n; i++)
        if (v[i]->spec.key.data)
            names[n_names++] = v[i]->spec.key;
    enum pawl_status st = n_names ? led_keys_load(c, names, n_names, LOCK_TRY, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n && room > 1; i++, room--) {
        struct led_key *k;
        bool quick = false;
        if (!v[i]->spec.key.data || counts_retry_alone(v[i]->now.counts))
            continue;
        st = call_quick(g, v[i], &quick, err);
        if (st != PAWL_OK || !quick)
            continue;
        st = led_key_get(c, v[i]->spec.key, LOCK_TRY, &k, err);
        if (st != PAWL_OK || !k->got)
            continue;
        max[n_keys] = MIN(MIN((int64_t)g->q->run_max - 1, led_line_stored(k)), room - 1);
        if (max[n_keys] <= 0)
            continue;
        room -= max[n_keys];
        keys[n_keys++] = k;
    }
    if (st == PAWL_OK && n_keys)
        st = led_lines_take(c, keys, max, n_keys, CLAIM_LEN_MAX - (int64_t)g->len, err);
    return st;
}

/* Only the head of a key stands in `ready`: two calls of a key would run at once. */
static enum pawl_status head_check(const struct led_key *k, const struct led_call *it,
                                   struct pawl_err *err)
{
    if (k->turn == KEY_OFFERED && k->head == it->seq)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "key \"%.*s\": call %lld is ready and is not its first call",
                   BYTES_ARG(k->name), (long long)it->seq);
}

enum pawl_status led_claim_candidate(struct claiming *g, struct led_call *it, bool *progress,
                                     struct pawl_err *err)
{
    struct led_key *k = NULL;
    bool retry_alone = counts_retry_alone(it->now.counts), quick = true, fit = false;
    if (it->skipped || (retry_alone && g->q->n))
        return PAWL_OK;
    enum pawl_status st = call_quick(g, it, &quick, err);
    if (st != PAWL_OK || (!quick && led_claim_only_quick(g)))
        return st; /* a run before it has filled the claim */
    if (it->spec.key.data)
        st = led_key_get(g->c, it->spec.key, LOCK_TRY, &k, err);
    if (st != PAWL_OK)
        return st;
    if (k && !k->got) {
        it->skipped = g->passed = true;
        return PAWL_OK;
    }
    bool regated = false;
    if (k)
        st = head_check(k, it, err);
    if (st == PAWL_OK)
        st = led_claim_regate(g, it, &regated, err);
    if (st != PAWL_OK || regated) {
        *progress = *progress || (regated && !it->skipped);
        return st;
    }
    *progress = true;
    if (!g->passed) /* else the next claim has to find again what this one passed over */
        led_cursor_raise(g->c, it->now.lane * 2 + retry_alone, -it->now.priority, it->now.run_at_us,
                         it->seq);
    if (led_claim_over(g, it)) {
        st = led_claim_expire(g, it, err);
        g->q->more |= k && k->waiting > 0; /* the next claim takes the rest of its line */
        return st;
    }
    st = led_claim_fits(g, it, &fit, err);
    if (st != PAWL_OK || !fit) {
        g->complete = true;
        return st;
    }
    st = led_claim_take(g, it, k, 0, err);
    if (st == PAWL_OK && k && !retry_alone && quick)
        st = take_run(g, k, it, err);
    g->complete = g->complete || retry_alone;
    return st;
}
