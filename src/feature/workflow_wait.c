/*
 * workflow_wait.c - waits of a run: settled by a signal, by children, by their time, or begun; and
 * the ends of children, which settle them later.
 *
 * Store thread, under the lock of the run's row. The operation that stores something for which a
 * run may wait holds the same lock, so nothing comes between the look and the suspension. The model
 * of this is test/spin/waiting.pml.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/hook.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* The text of a buffer as a JSON payload in scratch, and the buffer released; without bytes when
 * there is no memory. */
static struct payload json_of(struct ledger *d, struct buf *b)
{
    struct payload out = { PAWL_JSON,
                           buf_ok(b) ? arena_copy(feature_arena(d), buf_bytes(b)) : BYTES_NONE };
    buf_release(b);
    return out;
}

/* ---- Signals --------------------------------------------------------------------------------- */

struct signal {
    int64_t no; /* 0: there is none */
    struct bytes name;
    struct payload value;
};

/* The oldest unread signal of these names. */
static enum pawl_status signal_next(struct ledger *d, const struct run *r,
                                    const struct workflow_wait *w, struct signal *out,
                                    struct pawl_err *err)
{
    struct led_column seqs, names;
    struct led_params p = { 0 };
    struct led_rows *rows;
    *out = (struct signal){ 0 };
    if (!w->n_signals || !r->unread)
        return PAWL_OK;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&names, feature_arena(d), LED_TEXTS);
    for (size_t i = 0; i < w->n_signals; i++) {
        led_add_int(&seqs, r->seq);
        led_add_bytes(&names, w->signals[i]);
    }
    led_column(&p, &seqs);
    led_column(&p, &names);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_NEXT, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        int64_t no = led_get_int(rows, i, 1);
        CHECK(led_get_int(rows, i, 0) == r->seq && no > 0 && no < r->next_signal);
        if (out->no && out->no <= no)
            continue;
        *out = (struct signal){ no,
                                led_get(rows, i, 2),
                                { (enum pawl_form)led_get_int(rows, i, 3), led_get(rows, i, 4) } };
    }
    return st;
}

static enum pawl_status signal_use(struct ledger *d, struct run *r, const struct signal *s,
                                   const struct step_row *by, struct pawl_err *err)
{
    const union feature_value v[] = { I(r->seq), I(s->no), I(signal_used_by(r, by->no)),
                                      I(feature_now(d)), I(signal_old_at(d, r, s->no)) };
    CHECK(r->unread > 0);
    r->unread--;
    return feature_row(d, SQL_SIGNAL_USE, "iiiiz", v, FEATURE_EXACT, err);
}

/* ---- Children -------------------------------------------------------------------------------- */

struct child {
    int64_t seq, awaited, ended;
    struct bytes id;
};

/* A name, and where the wait has it. */
struct named {
    struct bytes id;
    size_t at;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = bytes_cmp(x->id, y->id);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Which of the names stand before in the list: a child that is named twice is one. NULL without
 * memory. */
static const bool *named_before(struct ledger *d, const struct workflow_wait *w)
{
    struct named *v = arena_alloc(feature_arena(d), w->n_children * sizeof *v);
    bool *before = arena_zalloc(feature_arena(d), w->n_children, sizeof *before);
    if (!v || !before)
        return NULL;
    for (size_t i = 0; i < w->n_children; i++)
        v[i] = (struct named){ w->children[i], i };
    qsort(v, w->n_children, sizeof *v, compare_named);
    for (size_t i = 1; i < w->n_children; i++)
        before[v[i].at] = bytes_eq(v[i].id, v[i - 1].id);
    return before;
}

/* The children that a wait names, of which the run is a parent, each once. */
static enum pawl_status children_read(struct ledger *d, const struct run *r,
                                      const struct workflow_wait *w, struct child **out,
                                      size_t *out_n, struct pawl_err *err)
{
    struct led_column parents, ids;
    struct led_params p = { 0 };
    struct led_rows *rows;
    *out = arena_alloc(feature_arena(d), (w->n_children + 1) * sizeof **out);
    *out_n = 0;
    if (!*out)
        return err_no_memory(err, "children");
    if (!w->n_children)
        return PAWL_OK;
    const bool *before = named_before(d, w);
    if (!before)
        return err_no_memory(err, "children");
    led_column_init(&parents, feature_arena(d), LED_INTS);
    led_column_init(&ids, feature_arena(d), LED_TEXTS);
    for (size_t i = 0; i < w->n_children; i++) {
        if (before[i])
            continue;
        led_add_int(&parents, r->seq);
        led_add_bytes(&ids, w->children[i]);
    }
    led_column(&p, &parents);
    led_column(&p, &ids);
    enum pawl_status st = feature_query(d, SQL_CHILD_NAMED, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        CHECK(led_get_int(rows, i, 0) == r->seq && *out_n < w->n_children);
        (*out)[(*out_n)++] = (struct child){ led_get_int(rows, i, 1), led_get_int(rows, i, 3),
                                             led_get_int(rows, i, 4), led_get(rows, i, 2) };
    }
    return st;
}

/* Does the operation make a child with this id? */
static bool makes(const struct call_spec *made, size_t n, struct bytes id)
{
    bool yes = false;
    for (size_t i = 0; i < n && !yes; i++)
        yes = made[i].id.data && bytes_eq(made[i].id, id);
    return yes;
}

enum pawl_status wait_unknown(struct ledger *d, const struct run *r, const struct workflow_wait *w,
                              const struct call_spec *made, size_t n_made, struct bytes *out,
                              struct pawl_err *err)
{
    struct child *v;
    size_t n = 0;
    *out = BYTES_NONE;
    enum pawl_status st = w->n_children ? children_read(d, r, w, &v, &n, err) : PAWL_OK;
    if (n == w->n_children) /* nearly always */
        return st;
    for (size_t i = 0; i < w->n_children && st == PAWL_OK && !out->data; i++) {
        bool known = makes(made, n_made, w->children[i]);
        for (size_t k = 0; k < n && !known; k++)
            known = bytes_eq(v[k].id, w->children[i]);
        if (!known)
            *out = w->children[i];
    }
    return st;
}

static enum pawl_status child_put(struct ledger *d, int64_t parent, const struct child *c,
                                  struct pawl_err *err)
{
    const union feature_value v[] = { I(parent), I(c->seq), I(c->awaited), I(c->ended) };
    CHECK(!c->ended || !c->awaited);
    return feature_row(d, SQL_CHILD_PUT, "iiii", v, FEATURE_EXACT, err);
}

/* From now on the ends of these children count for the step. Every pass that waits says so again:
 * meanwhile another branch may have taken a child over, and one that an earlier generation awaited
 * may have been counted. */
static enum pawl_status children_await(struct ledger *d, struct run *r, struct step_row *s,
                                       const struct workflow_wait *w, struct child *v, size_t n,
                                       struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    s->awaits = 0;
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        if (v[i].ended)
            continue;
        s->awaits++;
        if (v[i].awaited == s->no)
            continue;
        if (v[i].awaited)
            r->waits |= AWAIT_EACH;
        v[i].awaited = s->no;
        st = child_put(d, r->seq, &v[i], err);
    }
    if (w->any)
        s->awaits = MIN(s->awaits, 1);
    return st;
}

/* The ids of the children that have ended, as a JSON array. */
static void add_ended(struct buf *b, const struct child *v, size_t n)
{
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (!v[i].ended)
            continue;
        json_add_comma(b);
        json_add_string(b, v[i].id);
    }
    buf_add_char(b, ']');
}

/* ---- Settling -------------------------------------------------------------------------------- */

static struct payload by_signal(struct ledger *d, const struct step_row *s, const struct signal *g)
{
    struct buf b;
    if (s->kind != STEP_SELECT)
        return g->value;
    buf_init(&b, 2 * RESULT_LEN_MAX + 4 * NAME_LEN_MAX);
    buf_add_text(&b, "{\"signal\":");
    json_add_string(&b, g->name);
    if (g->value.form == PAWL_BYTES) {
        buf_add_text(&b, ",\"value_base64\":");
        json_add_base64(&b, g->value.bytes);
    } else {
        buf_add_text(&b, ",\"value\":");
        buf_add_bytes(&b, g->value.form == PAWL_JSON ? g->value.bytes : BYTES("null"));
    }
    buf_add_char(&b, '}');
    return json_of(d, &b);
}

static struct payload by_children(struct ledger *d, const struct step_row *s, const struct child *v,
                                  size_t n)
{
    struct buf b;
    buf_init(&b, (size_t)STEPS_LEN_MAX);
    if (s->kind == STEP_SELECT)
        buf_add_text(&b, "{\"children\":");
    add_ended(&b, v, n);
    if (s->kind == STEP_SELECT)
        buf_add_char(&b, '}');
    return json_of(d, &b);
}

static struct payload by_time(struct ledger *d, const struct step_row *s)
{
    char time[TIME_TEXT_LEN + 1];
    if (s->kind != STEP_SELECT)
        return (struct payload){ 0 };
    time_text(s->until_us, time);
    return (struct payload){ PAWL_JSON,
                             bytes_of(arena_printf(feature_arena(d), "{\"until\":\"%s\"}", time)) };
}

enum pawl_status wait_step(struct ledger *d, struct run *r, struct step_row *s,
                           const struct workflow_wait *w, bool *out_settled, struct pawl_err *err)
{
    bool first = s->status != STEP_WAITING;
    struct signal signal;
    struct child *v;
    size_t n;
    *out_settled = true;
    if (first && w->has_until) /* later passes do not move it */
        s->until_us = w->until_us ? w->until_us : feature_now(d) + w->in_us;
    enum pawl_status st = signal_next(d, r, w, &signal, err);
    if (st == PAWL_OK)
        st = children_read(d, r, w, &v, &n, err);
    if (st != PAWL_OK)
        return st;
    PAUSE_POINT("workflow.wait_looked");
    struct wait_seen seen = {
        .signal = signal.no, .children = (int64_t)n, .any = w->any, .until_us = s->until_us
    };
    for (size_t i = 0; i < n; i++)
        seen.left += !v[i].ended;
    s->status = STEP_COMPLETED;
    switch (w->children_given && !n ? WAIT_BY_CHILDREN : wait_settled(&seen, feature_now(d))) {
    case WAIT_BY_SIGNAL:
        s->result = by_signal(d, s, &signal);
        return signal_use(d, r, &signal, s, err);
    case WAIT_BY_CHILDREN:
        s->result = by_children(d, s, v, n);
        return PAWL_OK;
    case WAIT_BY_TIME:
        s->status = s->kind == STEP_SLEEP || s->kind == STEP_SELECT ? STEP_COMPLETED : STEP_TIMEOUT;
        s->result = by_time(d, s);
        return PAWL_OK;
    case WAIT_BY_NOTHING:
        break;
    }
    *out_settled = false;
    s->status = STEP_WAITING;
    return n ? children_await(d, r, s, w, v, n, err) : PAWL_OK;
}

enum pawl_status runs_wake(struct ledger *d, const int64_t *seqs, size_t n, struct pawl_err *err)
{
    struct op nested = { .kind = OP_WAKE, .wake = { .seqs = seqs, .n = n } };
    return n ? feature_nested(d, &nested, err) : PAWL_OK;
}

/* ---- Children end ---------------------------------------------------------------------------- */

static enum pawl_status parents_query(struct ledger *d, const int64_t *seqs, size_t n,
                                      struct led_rows **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    led_ints(d, &p, seqs, n);
    return feature_query(d, SQL_CHILD_PARENTS, &p, out, err);
}

/* Lock the parents of these children, and read their rows again under that lock. */
static enum pawl_status parents_lock(struct ledger *d, const int64_t *seqs, size_t n,
                                     struct led_rows **out, struct pawl_err *err)
{
    int64_t *parents;
    enum pawl_status st = parents_query(d, seqs, n, out, err);
    if (st != PAWL_OK || (*out)->n == 0)
        return st;
    parents = arena_alloc(feature_arena(d), (size_t)(*out)->n * sizeof *parents);
    if (!parents)
        return err_no_memory(err, "parents");
    for (int i = 0; i < (*out)->n; i++)
        parents[i] = led_get_int(*out, i, 0);
    st = runs_lock(d, parents, (size_t)(*out)->n, err);
    return st == PAWL_OK ? parents_query(d, seqs, n, out, err) : st;
}

static enum pawl_state state_in(const struct moved *v, size_t n, int64_t seq)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].seq == seq && pawl_state_ended(v[i].to))
            return v[i].to;
    return 0;
}

/* One child of one parent has ended. *out_wake: that settles a wait of the parent. */
static enum pawl_status child_end(struct ledger *d, struct run *r, struct child *c, bool *out_wake,
                                  struct pawl_err *err)
{
    int64_t no = c->awaited;
    *out_wake = false;
    c->awaited = 0;
    enum pawl_status st = child_put(d, r->seq, c, err);
    if (st != PAWL_OK || !no)
        return st;
    st = steps_load(d, &(struct step_ref){ r, no }, 1, err);
    struct step_row *s = st == PAWL_OK ? step_at(r, no) : NULL;
    if (!s || !s->stored || s->status != STEP_WAITING || !s->awaits)
        return st;
    s->awaits--;
    *out_wake = s->awaits == 0 || r->waits & AWAIT_EACH;
    return step_put(d, r, s, err);
}

enum pawl_status children_ended(struct ledger *d, const struct moved *v, size_t n,
                                struct pawl_err *err)
{
    struct arena *a = feature_arena(d);
    int64_t *seqs = arena_alloc(a, (n + 1) * sizeof *seqs), *wake;
    struct led_rows *rows;
    size_t some = 0, n_wake = 0;
    if (!seqs)
        return err_no_memory(err, "children");
    for (size_t i = 0; i < n; i++)
        if (v[i].watch & WATCH_CHILD && pawl_state_ended(v[i].to))
            seqs[some++] = v[i].seq;
    if (!some)
        return PAWL_OK;
    enum pawl_status st = parents_lock(d, seqs, some, &rows, err);
    wake = st == PAWL_OK ? arena_alloc(a, ((size_t)rows->n + 1) * sizeof *wake) : NULL;
    if (!wake)
        return st == PAWL_OK ? err_no_memory(err, "parents") : st;
    CRASH_POINT("workflow.children_ended");
    for (int i = 0; i < rows->n && st == PAWL_OK; i++) {
        struct run *r = run_find(d, led_get_int(rows, i, 0));
        struct child c = { led_get_int(rows, i, 1), led_get_int(rows, i, 3), 0, BYTES_NONE };
        bool wakes = false;
        CHECK(r);
        c.ended = (int64_t)state_in(v, n, c.seq);
        if (led_get_int(rows, i, 4))
            continue;
        st = child_end(d, r, &c, &wakes, err);
        if (wakes)
            wake[n_wake++] = r->seq;
    }
    return st == PAWL_OK ? runs_wake(d, wake, n_wake, err) : st;
}
