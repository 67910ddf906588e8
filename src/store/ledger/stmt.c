/*
 * stmt.c - parameters and rows of statements, the same for every engine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/cache.h"

#define COLUMN_FIRST 16

/* ---- In -------------------------------------------------------------------------------------- */

void led_column_init(struct led_column *k, struct arena *a, enum led_kind kind)
{
    *k = (struct led_column){ .a = a, .kind = kind };
}

/* Make room for one more value; false without memory, and then the arena's `failed` is set. */
static bool column_room(struct led_column *k)
{
    if (k->n < k->cap)
        return true;
    size_t cap = k->cap ? k->cap * 2 : COLUMN_FIRST;
    size_t size = k->kind == LED_INTS ? sizeof *k->ints : sizeof *k->bytes;
    void *v = arena_alloc(k->a, cap * size);
    if (!v)
        return false;
    if (k->n)
        memcpy(v, k->kind == LED_INTS ? (void *)k->ints : (void *)k->bytes, k->n * size);
    if (k->kind == LED_INTS)
        k->ints = v;
    else
        k->bytes = v;
    k->cap = cap;
    return true;
}

void led_add_int(struct led_column *k, int64_t v)
{
    if (column_room(k))
        k->ints[k->n++] = v;
}

void led_add_int_or_null(struct led_column *k, int64_t v)
{
    led_add_int(k, v ? v : LED_NULL);
}

void led_add_bytes(struct led_column *k, struct bytes v)
{
    if (column_room(k))
        k->bytes[k->n++] = v;
}

static struct led_param *param(struct led_params *p)
{
    CHECK(p->n < LED_PARAMS_MAX);
    return &p->v[p->n++];
}

void led_int(struct led_params *p, int64_t v)
{
    *param(p) = (struct led_param){ .kind = LED_INTS, .i = v };
}

void led_text(struct led_params *p, struct bytes v)
{
    *param(p) = (struct led_param){ .kind = LED_TEXTS, .b = v };
}

void led_blob(struct led_params *p, struct bytes v)
{
    *param(p) = (struct led_param){ .kind = LED_BLOBS, .b = v };
}

void led_column(struct led_params *p, const struct led_column *k)
{
    /* A statement runs once for each value, so all of its columns have the same number of them. */
    CHECK(!p->many || p->rows == k->n || k->a->failed);
    p->many = true;
    p->rows = k->n;
    *param(p) = (struct led_param){ .kind = k->kind, .many = true, .k = *k };
}

void led_ints(struct ledger *c, struct led_params *p, const int64_t *v, size_t n)
{
    struct led_column k;
    led_column_init(&k, &c->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        led_add_int(&k, v[i]);
    led_column(p, &k);
}

void led_texts(struct ledger *c, struct led_params *p, const struct bytes *v, size_t n)
{
    struct led_column k;
    led_column_init(&k, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++)
        led_add_bytes(&k, v[i]);
    led_column(p, &k);
}

/* ---- Running --------------------------------------------------------------------------------- */

static enum pawl_status run(struct ledger *c, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, int64_t *out_rows, struct pawl_err *err)
{
    if (c->scratch.failed)
        return err_no_memory(err, "a statement");
    return c->db->query(c, name, p, out, out_rows, err);
}

enum pawl_status led_query(struct ledger *c, enum sql_name name, const struct led_params *p,
                           struct led_rows **out, struct pawl_err *err)
{
    *out = NULL;
    enum pawl_status st = run(c, name, p, out, NULL, err);
    CHECK(st != PAWL_OK || *out);
    return st;
}

enum pawl_status led_run(struct ledger *c, enum sql_name name, const struct led_params *p,
                         int64_t *out_rows, struct pawl_err *err)
{
    return run(c, name, p, NULL, out_rows, err);
}

enum pawl_status led_number(struct ledger *c, enum sql_name name, const struct led_params *p,
                            int64_t otherwise, int64_t *out, struct pawl_err *err)
{
    struct led_rows *r;
    enum pawl_status st = led_query(c, name, p, &r, err);
    *out = otherwise;
    if (st == PAWL_OK)
        st = led_rows_check(r, name, 1, err);
    if (st == PAWL_OK && r->n > 0 && !led_null(r, 0, 0))
        *out = led_get_int(r, 0, 0);
    return st;
}

void led_batch_add(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   int64_t rows)
{
    CHECK(b->n < COUNT_OF(b->v));
    struct led_batched *to = &b->v[b->n++];
    to->name = name;
    to->rows = rows;
    to->out = NULL;
    to->p.n = p ? p->n : 0;
    if (p)
        memcpy(to->p.v, p->v, (size_t)p->n * sizeof *p->v);
}

void led_batch_ask(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   struct led_rows **out)
{
    led_batch_add(b, name, p, -1);
    b->v[b->n - 1].out = out;
}

enum pawl_status led_batch_run(struct ledger *c, const struct led_batch *b, struct pawl_err *err)
{
    if (c->scratch.failed)
        return err_no_memory(err, "what a group writes");
    enum pawl_status st = b->n ? c->db->batch(c, b, err) : PAWL_OK;
    for (size_t i = 0; i < b->n && st == PAWL_OK; i++)
        CHECK(!b->v[i].out || *b->v[i].out); /* every query of the batch is answered */
    return st;
}
