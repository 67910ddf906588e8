/*
 * counter.c - see counter.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "counter.h"

#include <stdlib.h>

#include "base/world.h"
#include "check.h"

#ifdef PAWL_TEST /* its statements are in no other build; programs of test/bench have none */

struct counter_seen counter_seen;

/* ---- What it remembers in a transaction ------------------------------------------------------ */

struct counter {
    struct counter *next;
    struct bytes name;
    int64_t value;
    bool written; /* a row of this transaction has it: one statement changes a row once */
};
struct counted {
    struct counted *next;
    struct bytes id;
    int64_t value;
};
struct memory {
    struct counter *counters;
    struct counted *ops;
};

static struct memory *memory(struct ledger *d)
{
    return feature_memory(d, &counter_feature, sizeof(struct memory));
}

static struct counter *counter_of(const struct memory *m, struct bytes name)
{
    struct counter *k = m->counters;
    while (k && !bytes_eq(k->name, name))
        k = k->next;
    return k;
}

static struct counted *counted_of(const struct memory *m, struct bytes id)
{
    struct counted *k = m->ops;
    while (k && !bytes_eq(k->id, id))
        k = k->next;
    return k;
}

/* ---- Loading --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Names or ids of the operations, sorted, each once; those that are known are left out. */
static size_t wanted(struct ledger *d, struct op *const *ops, size_t n, bool ids,
                     struct bytes **out)
{
    struct memory *m = memory(d);
    size_t all = 0, kept = 0;
    struct bytes *v = *out = arena_alloc(feature_arena(d), (n + 1) * sizeof *v);
    for (size_t i = 0; v && i < n; i++) {
        const struct counter_op *q = ops[i]->feature.ctx;
        struct bytes b = ids ? q->id : q->name;
        if (b.data && !(ids ? (void *)counted_of(m, b) : (void *)counter_of(m, b)))
            v[all++] = b;
    }
    qsort(v, all, sizeof *v, compare);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || !bytes_eq(v[kept - 1], v[i]))
            v[kept++] = v[i];
    return kept;
}

static enum pawl_status counters_read(struct ledger *d, const struct bytes *v, size_t n,
                                      struct pawl_err *err)
{
    struct memory *m = memory(d);
    struct led_params p = { 0 };
    struct led_rows *r;
    led_texts(d, &p, v, n);
    enum pawl_status st = feature_query(d, SQL_COUNTER_LOCK, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct counter *k = arena_zalloc(feature_arena(d), 1, sizeof *k);
        if (!k)
            return err_no_memory(err, "counters");
        *k = (struct counter){ m->counters, led_get(r, i, 0), led_get_int(r, i, 1), false };
        m->counters = k;
    }
    return st;
}

/* Those that are new get a row, insert-once, and are locked by the next statement. */
static enum pawl_status counters_make(struct ledger *d, const struct bytes *v, size_t n,
                                      struct pawl_err *err)
{
    struct memory *m = memory(d);
    struct bytes *missing = arena_alloc(feature_arena(d), (n + 1) * sizeof *missing);
    size_t left = 0;
    if (!missing)
        return err_no_memory(err, "counters");
    for (size_t i = 0; i < n; i++)
        if (!counter_of(m, v[i]))
            missing[left++] = v[i];
    if (left == 0)
        return PAWL_OK;
    for (size_t i = 0; i < left; i++) {
        enum pawl_status st = feature_row(
            d, SQL_COUNTER_ADD, "ti", (union feature_value[]){ { .b = missing[i] }, { .i = 0 } },
            FEATURE_ANY, err);
        if (st != PAWL_OK)
            return st;
    }
    return counters_read(d, missing, left, err);
}

static enum pawl_status ops_read(struct ledger *d, struct op *const *ops, size_t n,
                                 struct pawl_err *err)
{
    struct memory *m = memory(d);
    struct led_params p = { 0 };
    struct led_rows *r;
    struct bytes *ids;
    size_t n_ids = wanted(d, ops, n, true, &ids);
    if (n_ids == 0)
        return ids ? PAWL_OK : err_no_memory(err, "counters");
    led_texts(d, &p, ids, n_ids);
    enum pawl_status st = feature_query(d, SQL_COUNTER_OP_FIND, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct counted *k = arena_zalloc(feature_arena(d), 1, sizeof *k);
        if (!k)
            return err_no_memory(err, "counters");
        *k = (struct counted){ m->ops, led_get(r, i, 0), led_get_int(r, i, 1) };
        m->ops = k;
    }
    return st;
}

static enum pawl_status load(struct ledger *d, struct op *const *ops, size_t n,
                             struct pawl_err *err)
{
    struct bytes *names;
    counter_seen.loads++;
    counter_seen.loaded += (int)n;
    if (!memory(d))
        return err_no_memory(err, "counters");
    size_t n_names = wanted(d, ops, n, false, &names);
    enum pawl_status st = names ? PAWL_OK : err_no_memory(err, "counters");
    if (st == PAWL_OK && n_names)
        st = counters_read(d, names, n_names, err);
    if (st == PAWL_OK && n_names)
        st = counters_make(d, names, n_names, err);
    return st == PAWL_OK ? ops_read(d, ops, n, err) : st; /* behind the locks */
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static enum pawl_status add(struct ledger *d, struct counter *k, int64_t by, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t changed = 0;
    k->value += by;
    if (!k->written) {
        k->written = true;
        return feature_row(d, SQL_COUNTER_WRITE, "ti",
                           (union feature_value[]){ { .b = k->name }, { .i = k->value } },
                           FEATURE_EXACT, err);
    }
    led_texts(d, &p, &k->name, 1);
    led_ints(d, &p, &k->value, 1);
    enum pawl_status st = feature_run(d, SQL_COUNTER_WRITE, &p, &changed, err);
    CHECK(st != PAWL_OK || changed == 1);
    return st;
}

static enum pawl_status apply(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct counter_op *q = op->feature.ctx;
    struct memory *m = memory(d);
    struct counted *before = q->id.data ? counted_of(m, q->id) : NULL;
    enum pawl_status st = PAWL_OK;
    counter_seen.applied++;
    if (before) {
        q->value = before->value;
        op->feature.repeated = true;
        return PAWL_OK;
    }
    if (q->refuse) {
        op->status =
            err_set(&op->err, PAWL_INVALID, "counter \"%.*s\": refused", BYTES_ARG(q->name));
        return PAWL_OK;
    }
    for (size_t i = 0; i < q->n_nested && st == PAWL_OK; i++)
        st = feature_nested(d, &q->nested[i], err);
    if (st == PAWL_OK && q->name.data) {
        st = add(d, counter_of(m, q->name), q->by, err);
        q->value = counter_of(m, q->name)->value;
    }
    if (st != PAWL_OK || !q->id.data)
        return st;
    struct counted *now = arena_zalloc(feature_arena(d), 1, sizeof *now);
    if (!now)
        return err_no_memory(err, "counters");
    *now = (struct counted){ m->ops, q->id, q->value };
    m->ops = now;
    return feature_row(d, SQL_COUNTER_OP_ADD, "ti",
                       (union feature_value[]){ { .b = q->id }, { .i = q->value } }, FEATURE_ANY,
                       err);
}

/* ---- What it is told ------------------------------------------------------------------------- */

static enum pawl_status cancel(struct ledger *d, struct bytes id, struct pawl_err *err)
{
    struct op op = { .kind = OP_CANCEL, .by_id = { .id = id } };
    return feature_nested(d, &op, err);
}

static enum pawl_status accept(struct ledger *d, struct bytes id, struct pawl_err *err)
{
    struct call_spec s;
    call_spec_init(&s);
    s.id = bytes_of(arena_printf(feature_arena(d), "after:%.*s", BYTES_ARG(id)));
    s.type = BYTES("t");
    s.input = (struct payload){ PAWL_JSON, BYTES("1") };
    enum pawl_status st = call_spec_settle(feature_arena(d), feature_world(d), &s, err);
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = &s, .n = 1 } };
    return st == PAWL_OK ? feature_nested(d, &op, err) : st;
}

static enum pawl_status act(struct ledger *d, const struct moved *v, struct pawl_err *err)
{
    static const struct bytes next = { "next:", 5 };
    const char *more = memchr(v->id.data, '>', v->id.len);
    if (!pawl_state_ended(v->to))
        return PAWL_OK;
    if (more) {
        size_t at = (size_t)(more + 1 - v->id.data);
        return cancel(d, (struct bytes){ more + 1, v->id.len - at }, err);
    }
    if (v->id.len > next.len && memcmp(v->id.data, next.data, next.len) == 0)
        return accept(d, (struct bytes){ v->id.data + next.len, v->id.len - next.len }, err);
    return PAWL_OK;
}

static enum pawl_status moved(struct ledger *d, const struct moved *v, size_t n,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    counter_seen.told++;
    counter_seen.moved += (int)n;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        st = feature_row(d, SQL_COUNTER_MOVED_ADD, "itiii",
                         (union feature_value[]){ { .i = v[i].seq },
                                                  { .b = v[i].id },
                                                  { .i = v[i].from },
                                                  { .i = v[i].to },
                                                  { .i = v[i].watch } },
                         FEATURE_EXACT, err);
        if (st == PAWL_OK)
            st = act(d, &v[i], err);
    }
    return st;
}

static enum pawl_status forget(struct ledger *d, const int64_t *seqs, size_t n,
                               struct pawl_err *err)
{
    struct led_params p = { 0 };
    counter_seen.forgotten += (int)n;
    led_ints(d, &p, seqs, n);
    return feature_run(d, SQL_COUNTER_FORGET, &p, NULL, err);
}

static void *copy(struct arena *a, const void *ctx)
{
    const struct counter_op *q = ctx;
    struct counter_op *to = arena_alloc(a, sizeof *to);
    if (!to)
        return NULL;
    *to = *q;
    to->id = arena_copy(a, q->id);
    to->name = arena_copy(a, q->name);
    return to;
}

const struct feature counter_feature = {
    .name = "counter",
    .watch = WATCH_END,
    .load = load,
    .apply = apply,
    .moved = moved,
    .forget = forget,
    .copy = copy,
};
const struct feature *const counter_features[1] = { &counter_feature };

/* ---- For tests ------------------------------------------------------------------------------- */

static void script(struct store *s, struct arena *a, const char *sql)
{
    struct op op = { .kind = OP_SCRIPT, .a = a, .script.sql = bytes_of(sql) }, *v = &op;
    OK(store_commit(s, &v, 1), &op.err);
    OK(op.status, &op.err);
}

void counter_tables(struct store *s, const struct engine *engine)
{
    const char *name = engine->name[0] == 'm' ? "VARBINARY(255)" : "TEXT";
    struct arena a;
    arena_init(&a, 1 << 20);
    script(s, &a,
           arena_printf(&a, "CREATE TABLE counter (name %s PRIMARY KEY, value BIGINT)", name));
    script(s, &a,
           arena_printf(&a, "CREATE TABLE counter_op (id %s PRIMARY KEY, value BIGINT)", name));
    script(s, &a,
           arena_printf(&a,
                        "CREATE TABLE counter_moved (seq BIGINT, id %s, was BIGINT, state BIGINT, "
                        "watch BIGINT)",
                        name));
    arena_release(&a);
}

struct op counter_count(struct counter_op *q)
{
    return (struct op){ .kind = OP_FEATURE, .feature = { .of = &counter_feature, .ctx = q } };
}

struct op counter_fenced(struct counter_op *q, struct token token, int64_t seq)
{
    struct op op = counter_count(q);
    op.feature.token = token;
    op.feature.seq = seq;
    return op;
}

enum pawl_status counter_look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct counter_sums *out = ctx;
    struct led_rows *r;
    enum pawl_status st = feature_query(d, SQL_COUNTER_READ, NULL, &r, err);
    if (st == PAWL_OK)
        *out = (struct counter_sums){ led_get_int(r, 0, 0), led_get_int(r, 0, 1),
                                      led_get_int(r, 0, 2) };
    return st;
}

#endif
