/*
 * workflow_show.c - runs as people see them: lists, one run with all that is known of it, published
 * values, figures; and whether a lease holds a run (workflow.h).
 *
 * On a connection for reading. A call and its run are read one after the other, so that a run may
 * be further than its call says; then the row decides.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <string.h>

#include "base/limits.h"
#include "model/lease.h"

/* ---- What is shown of a run ------------------------------------------------------------------ */

enum call_wait workflow_wait_of(int64_t waits)
{
    return waits & AWAIT_SIGNAL     ? WAIT_SIGNAL
           : waits & AWAIT_CHILDREN ? WAIT_CHILDREN
           : waits & AWAIT_TIME     ? WAIT_TIMER
           : waits & AWAIT_RETRY    ? WAIT_RETRY
                                    : WAIT_NONE;
}

static bool waits(const struct call *c)
{
    switch (c->waiting_for) {
    case WAIT_SIGNAL:
    case WAIT_CHILDREN:
    case WAIT_TIMER:
    case WAIT_RETRY:
        return c->state == PAWL_PROCESSING;
    default:
        return false;
    }
}

static enum workflow_status status_of(const struct run *r, const struct call *c)
{
    enum run_shown shown = pawl_state_ended(c->state) ? run_shown(r, c->state) : r->shown;
    switch (shown) {
    case SHOWN_COMPLETED:
        return WORKFLOW_COMPLETED;
    case SHOWN_FAILED:
        return WORKFLOW_FAILED;
    case SHOWN_CANCELLED:
        return WORKFLOW_CANCELLED;
    case SHOWN_UNDONE:
        return WORKFLOW_COMPENSATED;
    case SHOWN_UNDOES:
        return WORKFLOW_COMPENSATING;
    case SHOWN_NOT:
    case SHOWN_OPEN:
        break;
    }
    return waits(c) ? WORKFLOW_WAITING : WORKFLOW_RUNNING;
}

static void names_read(struct arena *a, struct bytes text, struct bytes **out, size_t *out_n)
{
    size_t n = 1;
    *out_n = 0;
    if (!text.len)
        return;
    for (size_t i = 0; i < text.len; i++)
        n += text.data[i] == '\n';
    *out = arena_alloc(a, n * sizeof **out);
    const char *at = text.data, *end = at + text.len;
    while (*out && at <= end) {
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        size_t len = (size_t)((stop ? stop : end) - at);
        (*out)[(*out_n)++] = arena_copy(a, (struct bytes){ at, len });
        at += len + 1;
    }
}

/* What the row says; call, status and what needs other tables come later. */
static void row_show(struct arena *a, const struct run *r, struct workflow_run *out)
{
    *out = (struct workflow_run){ .begun = r->flags & RUN_BEGUN,
                                  .version = arena_copy(a, r->version),
                                  .error = r->undoing_us ? arena_copy(a, r->error) : BYTES_NONE,
                                  .compensation = r->compensation,
                                  .has_input = r->flags & RUN_HAS_INPUT,
                                  .started_us = r->created_us,
                                  .rev = r->rev,
                                  .wait_until_us = r->wait_us };
    names_read(a, r->waits & AWAIT_SIGNAL ? r->wait_signals : BYTES_NONE, &out->wait_signals,
               &out->n_wait_signals);
}

/* What needs the run's call, which has been read. */
static void run_settle(const struct run *r, struct workflow_run *v)
{
    v->status = status_of(r, &v->call);
    if (!v->error.data || pawl_state_ended(v->call.state))
        v->error = v->call.error;
    if (v->status == WORKFLOW_WAITING)
        return;
    v->n_wait_signals = v->n_wait_children = 0;
    v->wait_until_us = 0;
}

/* ---- Several runs ---------------------------------------------------------------------------- */

/* Runs whose rows were read. */
struct several {
    struct arena *a;
    const struct workflow_query *q;
    struct run *rows;
    struct workflow_run *v;
    struct bytes *ids;
    size_t n;
    int64_t next_before;
};

static struct workflow_run *of_seq(struct several *l, int64_t seq)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->rows[i].seq == seq)
            return &l->v[i];
    return NULL;
}

static enum pawl_status seqs_query(struct ledger *d, const struct several *l, enum sql_name name,
                                   struct led_rows **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t *seqs = arena_alloc(feature_arena(d), (l->n + 1) * sizeof *seqs);
    if (!seqs)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < l->n; i++)
        seqs[i] = l->rows[i].seq;
    led_ints(d, &p, seqs, l->n);
    return feature_query(d, name, &p, out, err);
}

/* Their last steps, and the children for which they wait. */
static enum pawl_status others_read(struct ledger *d, struct several *l, struct pawl_err *err)
{
    struct led_rows *rows;
    if (!l->n)
        return PAWL_OK;
    enum pawl_status st = seqs_query(d, l, SQL_STEP_LAST, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct workflow_run *v = of_seq(l, led_get_int(rows, i, 0));
        if (v)
            v->current_step = step_name(l->a, led_get(rows, i, 1), led_get_int(rows, i, 2));
    }
    if (st == PAWL_OK)
        st = seqs_query(d, l, SQL_CHILD_AWAITED, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct workflow_run *v = of_seq(l, led_get_int(rows, i, 0));
        if (!v)
            continue;
        if (!v->wait_children)
            v->wait_children = arena_alloc(l->a, (size_t)rows->n * sizeof *v->wait_children);
        if (v->wait_children)
            v->wait_children[v->n_wait_children++] = arena_copy(l->a, led_get(rows, i, 1));
    }
    return st == PAWL_OK && l->a->failed ? err_no_memory(err, "workflows") : st;
}

/* What is stored in `shown` of the runs that may have this status. */
static enum run_shown coarse(enum workflow_status status)
{
    switch (status) {
    case WORKFLOW_RUNNING:
    case WORKFLOW_WAITING:
        return SHOWN_OPEN;
    case WORKFLOW_COMPLETED:
        return SHOWN_COMPLETED;
    case WORKFLOW_FAILED:
        return SHOWN_FAILED;
    case WORKFLOW_COMPENSATING:
        return SHOWN_UNDOES;
    case WORKFLOW_COMPENSATED:
        return SHOWN_UNDONE;
    case WORKFLOW_CANCELLED:
        return SHOWN_CANCELLED;
    case WORKFLOW_ANY:
        break;
    }
    return SHOWN_NOT;
}

static enum pawl_status page_query(struct ledger *d, const struct workflow_query *q,
                                   struct led_rows **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_int(&p, q->before_seq ? q->before_seq : INT64_MAX);
    if (q->name.data && !q->live)
        led_text(&p, q->name);
    else if (q->status)
        led_int(&p, (int64_t)coarse(q->status));
    led_int(&p, q->limit + 1);
    return feature_query(d,
                         q->live        ? SQL_WORKFLOW_LIST_LIVE
                         : q->name.data ? SQL_WORKFLOW_LIST_NAME
                         : q->status    ? SQL_WORKFLOW_LIST_SHOWN
                                        : SQL_WORKFLOW_LIST,
                         &p, out, err);
}

static enum pawl_status look_list(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct several *l = ctx;
    struct led_rows *rows;
    enum pawl_status st = page_query(d, l->q, &rows, err);
    if (st != PAWL_OK)
        return st;
    l->n = (size_t)MIN(rows->n, l->q->limit);
    l->rows = arena_zalloc(l->a, l->n + 1, sizeof *l->rows);
    l->v = arena_zalloc(l->a, l->n + 1, sizeof *l->v);
    l->ids = arena_zalloc(l->a, l->n + 1, sizeof *l->ids);
    if (!l->rows || !l->v || !l->ids)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < l->n; i++) {
        l->rows[i] = run_read(rows, (int)i); /* its texts end with the look */
        row_show(l->a, &l->rows[i], &l->v[i]);
        l->ids[i] = arena_copy(l->a, led_get(rows, (int)i, RUN_COLUMNS));
    }
    l->next_before = rows->n > l->q->limit ? l->rows[l->n - 1].seq : 0;
    return others_read(d, l, err);
}

static bool fits(const struct workflow_query *q, const struct workflow_run *v)
{
    return (!q->status || v->status == q->status) &&
           (!q->live || (!pawl_state_ended(v->call.state) &&
                         (!q->name.data || bytes_eq(q->name, v->call.spec.type)))) &&
           (!q->client.data || bytes_eq(q->client, v->call.spec.client));
}

enum pawl_status workflow_list(struct store *s, struct arena *a, const struct workflow_query *q,
                               struct workflow_page *out, struct pawl_err *err)
{
    struct several l = { .a = a, .q = q };
    struct get g = { 0 };
    assert(q->limit >= 1 && q->limit <= LIST_MAX && (!q->live || !q->status));
    *out = (struct workflow_page){ 0 };
    enum pawl_status st = store_look(s, LOOK_SNAPSHOT, look_list, &l, err);
    g.ids = l.ids;
    g.n = l.n;
    if (st == PAWL_OK && l.n)
        st = store_get(s, a, &g, err);
    out->v = l.v;
    out->next_before = l.next_before;
    for (size_t i = 0; i < l.n && st == PAWL_OK; i++) {
        if (g.found[i] != PAWL_OK)
            continue; /* gc removed it since */
        l.v[i].call = g.out[i];
        run_settle(&l.rows[i], &l.v[i]);
        if (fits(q, &l.v[i]))
            out->v[out->n++] = l.v[i];
    }
    return st;
}

/* ---- One run --------------------------------------------------------------------------------- */

struct one {
    struct several l; /* first; of one */
    struct workflow_detail *out;
    size_t len_max;
    bool contents, found;
    struct bytes name; /* of a published value */
    struct payload *value;
};

static struct payload payload_copy(struct arena *a, struct payload p)
{
    return (struct payload){ p.form, arena_copy(a, p.bytes) };
}

static enum pawl_status signals_read(struct ledger *d, struct one *o, struct pawl_err *err)
{
    struct workflow_detail *out = o->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, o->l.rows[0].seq);
    led_int(&p, SIGNALS_SHOWN_MAX + 1);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_LIST, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    out->n_signals = (size_t)MIN(rows->n, SIGNALS_SHOWN_MAX);
    out->truncated |= rows->n > SIGNALS_SHOWN_MAX;
    out->signals = arena_zalloc(o->l.a, out->n_signals + 1, sizeof *out->signals);
    for (size_t i = 0; out->signals && i < out->n_signals; i++) {
        int from = (int)(out->n_signals - 1 - i);
        out->signals[i] =
            (struct workflow_signal_row){ arena_copy(o->l.a, led_get(rows, from, 0)),
                                          led_get_int(rows, from, 1), led_get_int(rows, from, 2) };
    }
    return PAWL_OK;
}

static enum pawl_status children_read(struct ledger *d, struct one *o, struct pawl_err *err)
{
    struct workflow_detail *out = o->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, o->l.rows[0].seq);
    led_int(&p, 0);
    led_int(&p, CHILDREN_SHOWN_MAX + 1);
    enum pawl_status st = feature_query(d, SQL_CHILD_LIST, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    out->n_children = (size_t)MIN(rows->n, CHILDREN_SHOWN_MAX);
    out->truncated |= rows->n > CHILDREN_SHOWN_MAX;
    out->children = arena_zalloc(o->l.a, out->n_children + 1, sizeof *out->children);
    for (size_t i = 0; out->children && i < out->n_children; i++)
        out->children[i] = arena_copy(o->l.a, led_get(rows, (int)i, 2));
    return PAWL_OK;
}

/* How many published values fit. */
static enum pawl_status published_fit(struct ledger *d, struct one *o, int *out_n,
                                      struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t len = 0;
    led_int(&p, o->l.rows[0].seq);
    led_int(&p, LIST_MAX + 1);
    enum pawl_status st = feature_query(d, SQL_PUBLISHED_LENGTHS, &p, &rows, err);
    *out_n = 0;
    for (int i = 0; st == PAWL_OK && i < MIN(rows->n, LIST_MAX); i++) {
        len += (size_t)led_get_int(rows, i, 0);
        if (i && len > o->len_max)
            break;
        ++*out_n;
    }
    o->out->truncated |= st == PAWL_OK && *out_n < rows->n;
    return st;
}

static enum pawl_status published_read(struct ledger *d, struct one *o, struct pawl_err *err)
{
    struct workflow_detail *out = o->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    int n;
    enum pawl_status st = published_fit(d, o, &n, err);
    led_int(&p, o->l.rows[0].seq);
    led_int(&p, n);
    if (st == PAWL_OK)
        st = feature_query(d, SQL_PUBLISHED_LIST, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    out->n_published = (size_t)rows->n;
    out->published = arena_zalloc(o->l.a, out->n_published + 1, sizeof *out->published);
    for (size_t i = 0; out->published && i < out->n_published; i++)
        out->published[i] = (struct workflow_value){
            arena_copy(o->l.a, led_get(rows, (int)i, 0)),
            { (enum pawl_form)led_get_int(rows, (int)i, 1),
              arena_copy(o->l.a, led_get(rows, (int)i, 2)) },
        };
    return PAWL_OK;
}

static enum pawl_status steps_look(struct ledger *d, struct one *o, struct pawl_err *err)
{
    struct workflow_journal j = { 0 };
    struct journal_look look = { o->l.a, o->l.rows[0].seq, 1, 0, o->len_max, &j, false };
    enum pawl_status st = workflow_journal_look(d, &look, err);
    o->out->steps = j.v;
    o->out->n_steps = j.n;
    o->out->truncated |= j.next != 0;
    if (st == PAWL_OK && o->contents && j.has_input)
        o->out->run.call.spec.input = j.input;
    return st;
}

/* The run's own row. *out false: there is none. */
static enum pawl_status row_look(struct ledger *d, struct one *o, struct pawl_err *err)
{
    struct led_rows *rows;
    o->l.n = 1;
    enum pawl_status st = seqs_query(d, &o->l, SQL_WORKFLOW_READ, &rows, err);
    o->found = st == PAWL_OK && rows->n;
    if (!o->found)
        return st;
    o->l.rows[0] = run_read(rows, 0);
    row_show(o->l.a, &o->l.rows[0], &o->l.v[0]);
    return others_read(d, &o->l, err);
}

static enum pawl_status look_one(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct one *o = ctx;
    enum pawl_status st = row_look(d, o, err);
    if (st != PAWL_OK || !o->found)
        return st;
    st = steps_look(d, o, err);
    if (st == PAWL_OK)
        st = signals_read(d, o, err);
    if (st == PAWL_OK)
        st = children_read(d, o, err);
    if (st == PAWL_OK && o->contents)
        st = published_read(d, o, err);
    return st == PAWL_OK && o->l.a->failed ? err_no_memory(err, "a workflow") : st;
}

/* The call of a run, for this client. */
static enum pawl_status call_look(struct store *s, struct arena *a, struct bytes id,
                                  struct bytes client, unsigned with, struct call *out,
                                  struct pawl_err *err)
{
    struct get g = { .ids = &id, .n = 1, .with = with };
    enum pawl_status st = store_get(s, a, &g, err);
    if (st != PAWL_OK)
        return st;
    *out = g.out[0];
    if (g.found[0] == PAWL_GONE && !client.data)
        return err_set(err, PAWL_GONE, "workflow \"%.*s\" ended %s and is no longer kept",
                       BYTES_ARG(id), pawl_state_name(out->state));
    if (g.found[0] != PAWL_OK || (client.data && !bytes_eq(client, out->spec.client)))
        return err_set(err, PAWL_NOT_FOUND, "no workflow \"%.*s\"", BYTES_ARG(id));
    return PAWL_OK;
}

enum pawl_status workflow_get(struct store *s, struct arena *a, struct bytes id,
                              struct bytes client, size_t len_max, bool contents,
                              struct workflow_detail *out, struct pawl_err *err)
{
    struct run row = { 0 };
    struct workflow_run shown = { 0 };
    struct call call;
    struct one o = {
        .l = { .a = a, .rows = &row, .v = &shown },
        .out = out,
        .len_max = len_max,
        .contents = contents,
    };
    unsigned with = contents ? WITH_INPUT | WITH_RESULT : 0;
    *out = (struct workflow_detail){ 0 };
    enum pawl_status st = call_look(s, a, id, client, with, &call, err);
    row.seq = call.seq;
    if (st == PAWL_OK)
        st = store_look(s, LOOK_SNAPSHOT, look_one, &o, err);
    if (st == PAWL_OK && !o.found)
        st = err_set(err, PAWL_NOT_FOUND, "call \"%.*s\" has taken no step", BYTES_ARG(id));
    if (st != PAWL_OK)
        return st;
    if (out->run.call.spec.input.bytes.data || (shown.has_input && contents))
        call.spec.input = out->run.call.spec.input;
    shown.call = call;
    out->run = shown;
    run_settle(&row, &out->run);
    return PAWL_OK;
}

/* ---- A published value ----------------------------------------------------------------------- */

static enum pawl_status look_published(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct one *o = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, o->l.rows[0].seq);
    led_text(&p, o->name);
    enum pawl_status st = feature_query(d, SQL_PUBLISHED_READ, &p, &rows, err);
    o->found = st == PAWL_OK && rows->n;
    if (o->found)
        *o->value = payload_copy(o->l.a, (struct payload){ (enum pawl_form)led_get_int(rows, 0, 0),
                                                           led_get(rows, 0, 1) });
    return st == PAWL_OK && o->l.a->failed ? err_no_memory(err, "a value") : st;
}

enum pawl_status workflow_published(struct store *s, struct arena *a, struct bytes id,
                                    struct bytes client, struct bytes name, struct payload *out,
                                    bool *out_found, bool *out_ended, struct pawl_err *err)
{
    struct run row = { 0 };
    struct call call;
    struct one o = { .l = { .a = a, .rows = &row }, .name = name, .value = out };
    enum pawl_status st = call_look(s, a, id, client, 0, &call, err);
    row.seq = call.seq;
    if (st == PAWL_OK)
        st = store_look(s, LOOK_SNAPSHOT, look_published, &o, err);
    *out_found = st == PAWL_OK && o.found;
    *out_ended = st == PAWL_OK && pawl_state_ended(call.state);
    return st;
}

/* ---- Leases ---------------------------------------------------------------------------------- */

struct held_look {
    struct token token;
    int64_t seq, claimed_us;
    bool holds;
};

static enum pawl_status look_held(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct held_look *o = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    struct held *v;
    struct bytes version;
    size_t n;
    led_blob(&p, (struct bytes){ (const char *)o->token.b, sizeof o->token.b });
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_LEASE, &p, &rows, err);
    if (st != PAWL_OK || !rows->n)
        return st;
    int64_t until_us = led_get_int(rows, 0, 1);
    o->claimed_us = led_get_int(rows, 0, 0);
    st = lease_unpack(feature_arena(d), led_get(rows, 0, 2), &v, &n, &version, err);
    o->holds =
        st == PAWL_OK && lease_find(v, n, o->seq) && (!until_us || until_us > feature_now(d));
    return st;
}

enum pawl_status workflow_held(struct store *s, struct arena *a, struct token token,
                               struct bytes id, int64_t *out_seq, int64_t *out_claimed_us,
                               struct pawl_err *err)
{
    struct get g = { .ids = &id, .n = 1 };
    struct held_look o = { .token = token };
    char text[33];
    enum pawl_status st = store_get(s, a, &g, err);
    if (st != PAWL_OK)
        return st;
    if (g.found[0] == PAWL_OK && !pawl_state_ended(g.out[0].state)) {
        o.seq = g.out[0].seq;
        st = store_look(s, LOOK_SNAPSHOT, look_held, &o, err);
    }
    *out_seq = o.seq;
    *out_claimed_us = o.claimed_us;
    if (st != PAWL_OK || o.holds)
        return st;
    token_text(token, text);
    return err_set(err, PAWL_LOST_LEASE, "lease \"%s\" does not hold call \"%.*s\"", text,
                   BYTES_ARG(id));
}

/* ---- Figures --------------------------------------------------------------------------------- */

struct figures_look {
    struct arena *a;
    struct workflow_figures *out;
};

static void figure_add(struct figures_look *o, struct bytes queue, int64_t waits, int64_t n)
{
    struct workflow_figures *f = o->out;
    enum call_wait what = workflow_wait_of(waits);
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].what == what && bytes_eq(f->v[i].queue, queue)) {
            f->v[i].n += n;
            return;
        }
    if (what)
        f->v[f->n++] = (struct workflow_waiting){ arena_copy(o->a, queue), what, n };
}

static enum pawl_status look_figures(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct figures_look *o = ctx;
    struct led_params p = { 0 }, q = { 0 };
    struct led_rows *rows;
    led_int(&p, COUNT_MAX);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_OPEN, &p, &rows, err);
    o->out->open = st == PAWL_OK && rows->n ? led_get_int(rows, 0, 0) : 0;
    led_int(&q, COUNT_MAX);
    if (st == PAWL_OK && o->out->open)
        st = feature_query(d, SQL_WORKFLOW_WAITING, &q, &rows, err);
    if (st != PAWL_OK || !o->out->open)
        return st;
    o->out->v = arena_zalloc(o->a, (size_t)rows->n + 1, sizeof *o->out->v);
    for (int i = 0; o->out->v && i < rows->n; i++)
        figure_add(o, led_get(rows, i, 0), led_get_int(rows, i, 1), led_get_int(rows, i, 2));
    return o->a->failed ? err_no_memory(err, "figures") : PAWL_OK;
}

enum pawl_status workflow_figures(struct store *s, struct arena *a, struct workflow_figures *out,
                                  struct pawl_err *err)
{
    struct figures_look o = { a, out };
    *out = (struct workflow_figures){ 0 };
    return store_look(s, LOOK_SNAPSHOT, look_figures, &o, err);
}
