/*
 * inbox.c - calls that applications submitted in SQL become calls of the ledger, and what they
 * asked of features is handed to these.
 *
 * A row of the inbox was committed by a transaction of the application. It is checked and accepted
 * by the same code as every other call, in the transaction of the claim or sweep that found it; a
 * row of another kind is the feature's of that name. One bad row must not stop the others: it stays
 * where it is, with the reason, and is not read again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/ledger/cache.h"

/* Columns of inbox_take. */
enum {
    IN_N,
    IN_ID,
    IN_TYPE,
    IN_METHOD,
    IN_KEY,
    IN_QUEUE,
    IN_FORM,
    IN_INPUT,
    IN_PRIORITY,
    IN_RUN_AT,
    IN_EXPIRES_AT,
    IN_OPTIONS,
    IN_CALLER,
    IN_CLIENT,
    IN_PARENT,
    IN_TRACE,
    IN_TAGS,
    IN_KIND,
};

struct moving {
    struct ledger *c;
    struct call_spec *v; /* calls to accept */
    int64_t *ns;         /* the numbers of their rows */
    size_t n;
    struct led_column gone, refused, codes, reasons;
};

/* ---- Rows ------------------------------------------------------------------------------------ */

static enum pawl_status spec_read(struct ledger *c, const struct led_rows *r, int i,
                                  struct call_spec *s, struct pawl_err *err)
{
    call_spec_init(s);
    s->id = led_get(r, i, IN_ID);
    s->type = led_get(r, i, IN_TYPE);
    s->method = led_get(r, i, IN_METHOD);
    s->key = led_get(r, i, IN_KEY);
    s->queue = led_get(r, i, IN_QUEUE);
    s->input =
        (struct payload){ (enum pawl_form)led_get_int(r, i, IN_FORM), led_get(r, i, IN_INPUT) };
    s->priority = (int)led_get_int(r, i, IN_PRIORITY);
    s->run_at_us = led_get_int(r, i, IN_RUN_AT);
    s->expires_at_us = led_get_int(r, i, IN_EXPIRES_AT);
    s->caller = led_get(r, i, IN_CALLER);
    s->client = led_get(r, i, IN_CLIENT);
    s->parent = led_get(r, i, IN_PARENT);
    s->traceparent = led_get(r, i, IN_TRACE);
    enum pawl_status st = call_options_read(&c->scratch, led_get(r, i, IN_OPTIONS), s, err);
    if (st == PAWL_OK)
        st = call_tags_read(&c->scratch, led_get(r, i, IN_TAGS), s, err);
    return st == PAWL_OK ? call_spec_settle(&c->scratch, c->world, s, err) : st;
}

static void refuse(struct moving *m, int64_t n, const struct pawl_err *why)
{
    led_add_int(&m->refused, n);
    led_add_bytes(&m->codes, bytes_of(pawl_status_name(why->status)));
    led_add_bytes(&m->reasons, arena_copy(&m->c->scratch, bytes_of(why->text)));
}

/* Hand a row to its feature. */
static enum pawl_status hand_over(struct moving *m, const struct led_rows *r, int i,
                                  struct pawl_err *err)
{
    struct ledger *c = m->c;
    struct bytes kind = led_get(r, i, IN_KIND);
    const struct inbox_row row = { .what = led_get(r, i, IN_METHOD),
                                   .name = led_get(r, i, IN_ID),
                                   .text = led_get(r, i, IN_INPUT),
                                   .client = led_get(r, i, IN_CLIENT) };
    struct pawl_err why = { 0 };
    const struct feature *of = NULL;
    for (size_t k = 0; k < c->n_features; k++)
        if (c->features[k]->inbox && bytes_eq(kind, bytes_of(c->features[k]->name)))
            of = c->features[k];
    enum pawl_status st = PAWL_OK;
    if (of)
        st = of->inbox(c, &row, &why, err);
    else
        err_set(&why, PAWL_INVALID, "a row of the inbox: kind \"%.*s\" is unknown",
                BYTES_ARG(kind));
    if (st == PAWL_OK && why.status != PAWL_OK)
        refuse(m, led_get_int(r, i, IN_N), &why);
    else if (st == PAWL_OK)
        led_add_int(&m->gone, led_get_int(r, i, IN_N));
    return st;
}

/* Refuse rows that break the contract of a call; the others are to be accepted. */
static enum pawl_status rows_read(struct moving *m, const struct led_rows *r, struct pawl_err *err)
{
    struct arena *a = &m->c->scratch;
    m->v = arena_alloc(a, (size_t)r->n * sizeof *m->v);
    m->ns = arena_alloc(a, (size_t)r->n * sizeof *m->ns);
    if (!m->v || !m->ns)
        return err_no_memory(err, "the inbox");
    for (int i = 0; i < r->n; i++) {
        struct pawl_err why = { 0 };
        enum pawl_status st = led_number_check(led_get_int(r, i, IN_N), "a row of the inbox", err);
        if (st != PAWL_OK)
            return st;
        if (led_get(r, i, IN_KIND).data)
            continue; /* features_take() */
        st = spec_read(m->c, r, i, &m->v[m->n], &why);
        if (st == PAWL_NO_MEMORY)
            return err_no_memory(err, "the inbox");
        if (st == PAWL_OK)
            m->ns[m->n++] = led_get_int(r, i, IN_N);
        else
            refuse(m, led_get_int(r, i, IN_N), &why);
    }
    return PAWL_OK;
}

/* Hand the rows of features over, after the calls: a feature may speak of a call of the same
 * transaction. */
static enum pawl_status features_take(struct moving *m, const struct led_rows *r,
                                      struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < r->n && st == PAWL_OK; i++)
        if (led_get(r, i, IN_KIND).data)
            st = hand_over(m, r, i, err);
    return st;
}

/* ---- Accepting ------------------------------------------------------------------------------- */

static enum pawl_status accept(struct moving *m, struct pawl_err *err)
{
    struct ledger *c = m->c;
    struct op op = { .kind = OP_ACCEPT, .a = &c->scratch, .accept = { .v = m->v, .n = m->n } };
    struct bytes *ids = arena_alloc(&c->scratch, (m->n + 1) * sizeof *ids);
    if (!ids)
        return err_no_memory(err, "the inbox");
    for (size_t i = 0; i < m->n; i++)
        ids[i] = m->v[i].id;
    enum pawl_status st = m->n ? led_ids_load(c, ids, m->n, err) : PAWL_OK;
    if (st == PAWL_OK && m->n)
        st = led_accept(c, &op, err);
    for (size_t i = 0; st == PAWL_OK && i < m->n; i++) {
        const struct accepted *a = &op.accept.out[i];
        if (a->status == PAWL_OK) { /* new, or a duplicate of a stored call */
            led_add_int(&m->gone, m->ns[i]);
            continue;
        }
        led_say_refused(c, &op, &m->v[i], a);
        refuse(m, m->ns[i], &op.err);
    }
    return st;
}

static enum pawl_status rows_write(struct moving *m, struct pawl_err *err)
{
    struct ledger *c = m->c;
    struct led_params gone = { 0 }, refused = { 0 };
    enum pawl_status st = PAWL_OK;
    led_column(&gone, &m->gone);
    led_int(&refused, c->now_us);
    led_column(&refused, &m->refused);
    led_column(&refused, &m->codes);
    led_column(&refused, &m->reasons);
    int64_t n_gone = 0, n_refused = 0;
    if (m->gone.n)
        st = led_run(c, SQL_INBOX_REMOVE, &gone, &n_gone, err);
    if (st == PAWL_OK && m->refused.n)
        st = led_run(c, SQL_INBOX_REFUSE, &refused, &n_refused, err);
    /* The rows are locked. A row that stays would be accepted again. */
    if (st == PAWL_OK && ((size_t)n_gone != m->gone.n || (size_t)n_refused != m->refused.n))
        st = led_again(c, "a row of the inbox", err);
    return st;
}

enum pawl_status led_inbox_any(struct ledger *c, bool *out, struct pawl_err *err)
{
    int64_t any = 0;
    *out = false;
    if (!c->db->inbox)
        return PAWL_OK;
    enum pawl_status st = led_number(c, SQL_INBOX_ANY, NULL, 0, &any, err);
    *out = any != 0;
    return st;
}

enum pawl_status led_inbox_move(struct ledger *c, int max, struct pawl_err *err)
{
    struct moving m = { .c = c };
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    bool any;
    enum pawl_status st = led_inbox_any(c, &any, err);
    if (st != PAWL_OK || !any)
        return st;
    led_column_init(&m.gone, &c->scratch, LED_INTS);
    led_column_init(&m.refused, &c->scratch, LED_INTS);
    led_column_init(&m.codes, &c->scratch, LED_TEXTS);
    led_column_init(&m.reasons, &c->scratch, LED_TEXTS);
    led_int(&p, MIN(max, CLAIM_MAX));
    led_int(&p, CLAIM_LEN_MAX);
    st = led_query(c, SQL_INBOX_TAKE, &p, &r, err);
    if (st != PAWL_OK || r->n == 0) /* another transaction has locked the rows */
        return st;
    st = rows_read(&m, r, err);
    if (st == PAWL_OK)
        st = accept(&m, err);
    if (st == PAWL_OK)
        st = features_take(&m, r, err);
    /* Every row that was taken is removed or refused: else it would be accepted again. */
    CHECK(st != PAWL_OK || c->scratch.failed || m.gone.n + m.refused.n == (size_t)r->n);
    return st == PAWL_OK ? rows_write(&m, err) : st;
}

enum pawl_status led_inbox_forget(struct ledger *c, int max, struct pawl_err *err)
{
    struct led_params p = { 0 };
    if (!c->db->inbox)
        return PAWL_OK;
    led_int(&p, c->now_us - c->retention_us);
    led_int(&p, max);
    int64_t gone = 0;
    enum pawl_status st = led_run(c, SQL_INBOX_FORGET, &p, &gone, err);
    CHECK(st != PAWL_OK || gone <= max);
    return st;
}
