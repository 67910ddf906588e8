/*
 * autocommit.c - operations that need no transaction: a heartbeat, and the sweeps and claims of an
 * idle process.
 *
 * Each is one statement that commits by itself. For sweeps and claims the statement looks whether
 * there may be anything to do; if so, the group runs as a transaction. So an idle process costs one
 * statement for each look, and its answer is the one that the operations would give on the same
 * rows.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/ledger/cache.h"

/* What a look found. Times: the first of its kind, due or not yet; 0: there is none. */
struct look {
    int64_t now_us, expires_us, until_us, joins_us, ready_us, version;
    bool lease, replaced, key_note;
};

enum { SWEEPS = 1, CLAIMS = 2, BEATS = 4 };

enum pawl_status led_begin_autocommit(struct ledger *c, struct pawl_err *err)
{
    if (!c->db->autocommit)
        return led_begin(c, LED_READ, NULL, err);
    arena_reset(&c->scratch);
    c->tx = NULL;
    c->redo = c->reading = false;
    c->now_us = c->own_clock ? world_now(c->world) : 0;
    enum pawl_status st = led_forget(c, err);
    return st == PAWL_OK ? c->db->autocommit(c, err) : st;
}

/* The kinds of operations in a group; 0: it has others too. */
static unsigned kinds(struct op *const *v, size_t n)
{
    unsigned all = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i]->kind != OP_SWEEP && v[i]->kind != OP_CLAIM && v[i]->kind != OP_BEAT)
            return 0;
        all |= v[i]->kind == OP_SWEEP ? SWEEPS : v[i]->kind == OP_CLAIM ? CLAIMS : BEATS;
    }
    return all;
}

/* Run the look; `q` is the group's claim, or NULL. */
static enum pawl_status look(struct ledger *c, const struct claim *q, struct look *out,
                             struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    bool of_node = q && !q->lease_us;
    led_int(&p, c->now_us);
    led_text(&p, q ? (struct bytes){ (const char *)q->token.b, sizeof q->token.b } : BYTES_NONE);
    led_text(&p, of_node ? q->node : BYTES_NONE);
    led_text(&p, of_node ? q->boot : BYTES_NONE);
    enum pawl_status st = led_query(c, SQL_LOOK, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    if (r->n != 1)
        return err_set(err, PAWL_BROKEN, "database: the look has %d rows instead of 1", r->n);
    *out = (struct look){ .now_us = led_get_int(r, 0, 0),
                          .lease = led_get_int(r, 0, 1) != 0,
                          .replaced = led_get_int(r, 0, 2) != 0,
                          .key_note = led_get_int(r, 0, 3) != 0,
                          .expires_us = led_get_int(r, 0, 4),
                          .until_us = led_get_int(r, 0, 5),
                          .joins_us = led_get_int(r, 0, 6),
                          .ready_us = led_get_int(r, 0, 7),
                          .version = led_get_int(r, 0, 8) };
    if (out->now_us <= 0) /* then nothing is ever due */
        return err_set(err, PAWL_BROKEN, "database: its clock says %lld", (long long)out->now_us);
    return PAWL_OK;
}

static bool due(const struct look *k, int64_t at_us)
{
    return at_us && at_us <= k->now_us;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

/* Is there nothing to sweep? Then fill in the answer. */
static bool sweep_idle(const struct look *k, struct sweep *s)
{
    if (k->key_note || due(k, k->expires_us) || due(k, k->until_us) || due(k, k->joins_us))
        return false;
    s->expired = s->reclaimed = s->cancelled = s->joined = 0;
    s->more = false;
    s->version = k->version;
    s->next_us = earlier(earlier(k->expires_us, k->until_us), k->joins_us);
    return true;
}

/* Is there nothing to claim, now or later, except delayed calls that join a line later? Then fill
 * in the answer. */
static bool claim_idle(const struct look *k, struct claim *q)
{
    if (k->lease || k->replaced || k->key_note || k->ready_us || due(k, k->joins_us))
        return false;
    q->calls = NULL;
    q->states = NULL;
    q->n = 0;
    q->more = false;
    q->until_us = 0;
    q->next_due_us = k->joins_us;
    return true;
}

static enum pawl_status looks(struct ledger *c, struct op *const *v, size_t n, bool *done,
                              struct pawl_err *err)
{
    const struct claim *q = NULL;
    struct look k = { 0 };
    for (size_t i = 0; i < n; i++)
        if (v[i]->kind == OP_CLAIM)
            q = &v[i]->claim;
    PAUSE_POINT("ledger.begin");
    enum pawl_status st = look(c, q, &k, err);
    bool idle = st == PAWL_OK;
    for (size_t i = 0; i < n && idle; i++) {
        v[i]->status = PAWL_OK;
        idle = v[i]->kind == OP_SWEEP ? sweep_idle(&k, &v[i]->sweep) : claim_idle(&k, &v[i]->claim);
    }
    *done = idle;
    return st;
}

enum pawl_status led_autocommit(struct ledger *c, struct op *const *v, size_t n, bool *done,
                                struct pawl_err *err)
{
    *done = false;
    unsigned of = c->db->autocommit && n <= 2 ? kinds(v, n) : 0;
    if (of & CLAIMS && c->busy)
        return PAWL_OK; /* the last claim found calls, so this one probably does too */
    bool one_claim = n == 1 || v[0]->kind != v[1]->kind;
    if (!of || (of & BEATS && n > 1) || !one_claim)
        return PAWL_OK;
    enum pawl_status st = led_begin_autocommit(c, err);
    if (st != PAWL_OK)
        return st;
    if (of != BEATS)
        return looks(c, v, n, done, err);
    store_commits(&c->base, true);
    st = led_beat(c, v[0], err);
    store_commits(&c->base, false);
    *done = st == PAWL_OK;
    return st;
}
