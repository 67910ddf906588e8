/*
 * limit.c - limits: put and removed (limit.h).
 *
 * Store thread, inside a transaction. A change has a lock that every claim shares, so no claim runs
 * beside it: what is claimed later obeys it, and what runs already is counted by the leases. Every
 * operation may run twice; then it finds what it stored, and its first answer stands.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "base/limits.h"
#include "feature/limit_inside.h"

/* A change, with the rules as they are stored. */
struct change {
    struct ledger *d;
    struct op *op;
    struct limit_op *q;
    struct rule *rules;
    size_t n_rules;
    struct rule *former; /* of this name; NULL: none */
    int64_t rev;         /* raised by this change */
};

static enum pawl_status refuse(struct change *g, enum pawl_status status, const char *text)
{
    g->op->status = err_set(&g->op->err, status, "limit \"%.*s\"%s", BYTES_ARG(g->q->name), text);
    return PAWL_OK;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static enum pawl_status run_number(struct change *g, enum sql_name name, int64_t number,
                                   struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_int(&p, number);
    return feature_run(g->d, name, &p, NULL, err);
}

/* Every handle reads the rules again. */
static enum pawl_status raise(struct change *g, struct pawl_err *err)
{
    struct led_rows *r;
    int64_t rows = 0;
    enum pawl_status st = feature_run(g->d, SQL_LIMIT_RAISE, NULL, &rows, err);
    CHECK(st != PAWL_OK || rows == 1);
    if (st == PAWL_OK)
        st = feature_query(g->d, SQL_LIMIT_REV, NULL, &r, err);
    if (st != PAWL_OK)
        return st;
    CHECK(r->n == 1 && led_get_int(r, 0, 0) > 0);
    g->rev = led_get_int(r, 0, 0);
    return PAWL_OK;
}

#define I(x) ((union feature_value){ .i = (x) })

/* ---- Slots ----------------------------------------------------------------------------------- */

/* Rows of one limit: those that are not surplus are as many as its max. */
struct slots {
    int64_t number, last_no;
    struct led_rows *rows; /* no, seq, surplus */
    int64_t kept;          /* rows that are not surplus */
};

static enum pawl_status slots_lock(struct change *g, int64_t number, struct slots *out,
                                   struct pawl_err *err)
{
    struct led_params p = { 0 };
    *out = (struct slots){ .number = number };
    led_int(&p, number);
    enum pawl_status st = feature_query(g->d, SQL_SLOT_LOCK, &p, &out->rows, err);
    for (int i = 0; st == PAWL_OK && i < out->rows->n; i++) {
        out->last_no = led_get_int(out->rows, i, 0);
        out->kept += !led_get_int(out->rows, i, 2);
        CHECK(led_get_int(out->rows, i, 1) || !led_get_int(out->rows, i, 2));
    }
    return st;
}

static enum pawl_status slot_do(struct change *g, enum sql_name name, const struct slots *s, int i,
                                struct pawl_err *err)
{
    const union feature_value v[] = { I(s->number), I(led_get_int(s->rows, i, 0)) };
    return feature_row(g->d, name, "ii", v, FEATURE_EXACT, err);
}

static enum pawl_status slots_add(struct change *g, struct slots *s, int64_t n,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (; n > 0 && st == PAWL_OK; n--) {
        const union feature_value v[] = { I(s->number), I(++s->last_no), I(0), I(0) };
        st = feature_row(g->d, SQL_SLOT_ADD, "iizi", v, FEATURE_EXACT, err);
    }
    return st;
}

/* More rows: those of calls that were too many are none any more, then new ones. */
static enum pawl_status slots_grow(struct change *g, struct slots *s, int64_t to,
                                   struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < s->rows->n && s->kept < to && st == PAWL_OK; i++)
        if (led_get_int(s->rows, i, 2)) {
            st = slot_do(g, SQL_SLOT_KEEP, s, i, err);
            s->kept++;
        }
    return st == PAWL_OK ? slots_add(g, s, to - s->kept, err) : st;
}

/* Fewer rows: free ones go, then rows with a call are surplus. */
static enum pawl_status slots_shrink(struct change *g, struct slots *s, int64_t to,
                                     struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < s->rows->n && s->kept > to && st == PAWL_OK; i++)
        if (led_null(s->rows, i, 1)) {
            st = slot_do(g, SQL_SLOT_REMOVE, s, i, err);
            s->kept--;
        }
    for (int i = 0; i < s->rows->n && s->kept > to && st == PAWL_OK; i++)
        if (!led_null(s->rows, i, 1) && !led_get_int(s->rows, i, 2)) {
            st = slot_do(g, SQL_SLOT_MARK, s, i, err);
            s->kept--;
        }
    return st;
}

static bool matches(const struct gated_lane *lane, struct bytes key, void *ctx)
{
    const struct limit *l = ctx;
    return (!l->queue.data || bytes_eq(l->queue, lane->queue)) &&
           (!l->type.data || bytes_eq(l->type, lane->type)) &&
           (!l->key_prefix.data || limit_has_key(l, key));
}

/* The slots of a new limit: the first ones have the calls that run already. */
static enum pawl_status slots_new(struct change *g, int64_t number, struct pawl_err *err)
{
    int64_t *seqs, max = g->q->limit->max;
    size_t n = 0;
    enum pawl_status st =
        feature_held_watch(g->d, WATCH_LIMIT, matches, (void *)g->q->limit, &seqs, &n, err);
    for (int64_t no = 1; st == PAWL_OK && no <= MAX(max, (int64_t)n); no++) {
        int64_t seq = no <= (int64_t)n ? seqs[no - 1] : 0;
        const union feature_value v[] = { I(number), I(no), I(seq), I(no > max) };
        st = feature_row(g->d, SQL_SLOT_ADD, "iizi", v, FEATURE_EXACT, err);
    }
    return st;
}

/* ---- Put ------------------------------------------------------------------------------------- */

static enum pawl_status rule_remove(struct change *g, const struct rule *r, struct pawl_err *err)
{
    struct slots s;
    enum pawl_status st = slots_lock(g, r->number, &s, err);
    if (st == PAWL_OK)
        st = slots_shrink(g, &s, 0, err);
    if (st == PAWL_OK)
        st = run_number(g, SQL_BUCKET_REMOVE, r->number, err);
    return st == PAWL_OK ? run_number(g, SQL_LIMIT_REMOVE, r->number, err) : st;
}

/* A rate that is new may be used up to its burst at once. */
static enum pawl_status bucket_make(struct change *g, int64_t number, struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_int(&p, number);
    led_int(&p, 0);
    return feature_run(g->d, SQL_BUCKET_ADD, &p, NULL, err);
}

static enum pawl_status rule_add(struct change *g, int64_t created_us, struct pawl_err *err)
{
    const struct limit *l = g->q->limit;
    int64_t number = g->rev;
    struct led_params p = { 0 };
    led_int(&p, number);
    led_text(&p, g->q->name);
    led_text(&p, l->queue);
    led_text(&p, l->type);
    led_text(&p, l->key_prefix);
    led_int(&p, l->max);
    led_int(&p, l->rate);
    led_int(&p, l->per_us);
    led_int(&p, l->burst);
    led_int(&p, created_us);
    led_int(&p, feature_now(g->d));
    enum pawl_status st = feature_run(g->d, SQL_LIMIT_ADD, &p, NULL, err);
    if (st == PAWL_OK && l->rate)
        st = bucket_make(g, number, err);
    return st == PAWL_OK && l->max ? slots_new(g, number, err) : st;
}

/* The same calls: slots stay with the calls that have them. */
static enum pawl_status rule_change(struct change *g, struct pawl_err *err)
{
    const struct limit *l = g->q->limit;
    int64_t number = g->former->number;
    struct led_params p = { 0 };
    struct slots s;
    led_int(&p, number);
    led_int(&p, l->max);
    led_int(&p, l->rate);
    led_int(&p, l->per_us);
    led_int(&p, l->burst);
    led_int(&p, feature_now(g->d));
    enum pawl_status st = feature_run(g->d, SQL_LIMIT_PUT, &p, NULL, err);
    if (st == PAWL_OK && l->rate)
        st = bucket_make(g, number, err);
    if (st == PAWL_OK && !l->rate)
        st = run_number(g, SQL_BUCKET_REMOVE, number, err);
    if (st == PAWL_OK)
        st = slots_lock(g, number, &s, err);
    if (st != PAWL_OK)
        return st;
    return s.kept < l->max ? slots_grow(g, &s, l->max, err) : slots_shrink(g, &s, l->max, err);
}

/* How many prefixes, with that of the change, does this one begin with? */
static int chain(const struct change *g, struct bytes prefix)
{
    int n = limit_has_key(g->q->limit, prefix);
    for (size_t i = 0; i < g->n_rules; i++)
        n += &g->rules[i] != g->former && g->rules[i].limit.key_prefix.data &&
             limit_has_key(&g->rules[i].limit, prefix);
    return n;
}

/* Would a key have more rules than the name of a lane has room for? */
static bool too_many_prefixes(const struct change *g)
{
    const struct limit *l = g->q->limit;
    if (!l->key_prefix.data)
        return false;
    bool many = chain(g, l->key_prefix) > LIMIT_PREFIXES_MAX;
    for (size_t i = 0; i < g->n_rules && !many; i++)
        many = g->rules[i].limit.key_prefix.data &&
               limit_has_key(l, g->rules[i].limit.key_prefix) &&
               chain(g, g->rules[i].limit.key_prefix) > LIMIT_PREFIXES_MAX;
    return many;
}

static enum pawl_status put(struct change *g, struct pawl_err *err)
{
    const struct limit *l = g->q->limit;
    bool finished = false;
    enum pawl_status st = feature_finished(g->d, LIMIT_STEP, &finished, err);
    if (st != PAWL_OK)
        return st;
    if (!finished)
        return refuse(g, PAWL_STATE,
                      ": limits need every node to run this version: run pawl migrate finish");
    if (g->former && limit_same(&g->former->limit, l))
        return PAWL_OK; /* or it is a repeat, whose first answer stands */
    g->q->created = g->q->changed = false;
    if (!g->former && g->n_rules >= LIMITS_MAX)
        return refuse(g, PAWL_FULL, ": there are as many limits as there may be");
    if (too_many_prefixes(g))
        return refuse(g, PAWL_FULL, ": a key would have more limits by prefix than it may have");
    st = raise(g, err);
    g->q->created = !g->former;
    g->q->changed = true;
    g->op->feature.brings = true;
    if (st == PAWL_OK && g->former && limit_same_calls(&g->former->limit, l))
        return rule_change(g, err);
    int64_t created_us = g->former ? g->former->created_us : feature_now(g->d);
    if (st == PAWL_OK && g->former)
        st = rule_remove(g, g->former, err);
    return st == PAWL_OK ? rule_add(g, created_us, err) : st;
}

/* ---- Remove ---------------------------------------------------------------------------------- */

static enum pawl_status remove_limit(struct change *g, struct pawl_err *err)
{
    if (!g->former)
        return g->q->removes ? PAWL_OK : refuse(g, PAWL_NOT_FOUND, " does not exist");
    enum pawl_status st = raise(g, err);
    g->q->removes = g->q->changed = true;
    g->op->feature.brings = true;
    return st == PAWL_OK ? rule_remove(g, g->former, err) : st;
}

/* ---- The feature ----------------------------------------------------------------------------- */

static enum pawl_status load(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err)
{
    (void)ops;
    (void)n;
    enum pawl_status st = feature_gates_lock(d, err);
    PAUSE_POINT("limits.locked");
    return st;
}

static enum pawl_status apply(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct change g = { .d = d, .op = op, .q = op->feature.ctx };
    enum pawl_status st = rules_query(d, &g.rules, &g.n_rules, err);
    for (size_t i = 0; st == PAWL_OK && i < g.n_rules; i++)
        if (bytes_eq(g.rules[i].limit.name, g.q->name))
            g.former = &g.rules[i];
    if (st == PAWL_OK)
        st = g.q->what == LIMIT_PUT ? put(&g, err) : remove_limit(&g, err);
    CRASH_POINT("limits.changed");
    return st;
}

static void *copy(struct arena *a, const void *ctx)
{
    const struct limit_op *from = ctx;
    struct limit_op *to = arena_alloc(a, sizeof *to);
    struct limit *l = arena_alloc(a, sizeof *l);
    if (!to || !l)
        return NULL;
    *to = *from;
    to->name = arena_copy(a, from->name);
    if (from->limit) {
        *l = *from->limit;
        l->name = arena_copy(a, l->name);
        l->queue = arena_copy(a, l->queue);
        l->type = arena_copy(a, l->type);
        l->key_prefix = arena_copy(a, l->key_prefix);
        to->limit = l;
    }
    return a->failed ? NULL : to;
}

const struct feature feature_limit = {
    .name = "limit",
    .watch = WATCH_LIMIT,
    .load = load,
    .apply = apply,
    .moved = limit_moved,
    .copy = copy,
    .gates_read = limit_gates_read,
    .gates_free = limit_gates_free,
    .gated = limit_gated,
    .gate_of = limit_gate_of,
    .gate_shut = limit_shut,
    .gate_ask = limit_ask,
    .gate_took = limit_took,
};
