/*
 * workflow_signal.c - signals, which wake a run that waits for them, and values that a run shows.
 *
 * Store thread. A signal that comes before the first step makes the run's row, so that it is there
 * for the first wait; the call has not begun by that.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <string.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/text.h"

/* ---- Keys ------------------------------------------------------------------------------------ */

static bool payload_same(struct payload a, struct payload b)
{
    return a.form == b.form && bytes_eq(a.bytes, b.bytes);
}

/* Was a signal with this key stored before? Then the operation is answered. */
static enum pawl_status known(struct ledger *d, struct op *op, const struct run *r, bool *out,
                              struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct led_column seqs, keys;
    struct led_params p = { 0 };
    struct led_rows *rows;
    *out = false;
    if (!q->key.data || !r->stored)
        return PAWL_OK;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&keys, feature_arena(d), LED_TEXTS);
    led_add_int(&seqs, r->seq);
    led_add_bytes(&keys, q->key);
    led_column(&p, &seqs);
    led_column(&p, &keys);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_KNOWN, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    struct payload stored = { (enum pawl_form)led_get_int(rows, 0, 3), led_get(rows, 0, 4) };
    char key[TEXT_QUOTE_LEN];
    *out = true;
    q->duplicate = true;
    if (!bytes_eq(led_get(rows, 0, 2), q->name) || !payload_same(stored, q->value))
        op->status = err_set(&op->err, PAWL_CONFLICT,
                             "signal key \"%s\" was used for another signal of this run",
                             text_quote(q->key, key));
    return PAWL_OK;
}

/* ---- The operation --------------------------------------------------------------------------- */

static bool waits_for(const struct run *r, struct bytes name)
{
    const char *at = r->wait_signals.data, *end = at ? at + r->wait_signals.len : NULL;
    if (!(r->waits & AWAIT_SIGNAL))
        return false;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        if (bytes_eq((struct bytes){ at, len }, name))
            return true;
        at += len + 1;
    }
    return false;
}

static enum pawl_status append(struct ledger *d, struct op *op, struct run *r, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    const union feature_value v[] = { I(r->seq),
                                      I(r->next_signal),
                                      B(q->name),
                                      I((int64_t)q->value.form),
                                      B(q->value.bytes),
                                      B(q->key),
                                      I(feature_now(d)),
                                      I(0),
                                      I(0) };
    r->next_signal++;
    r->unread++;
    workflow_count_signal();
    enum pawl_status st = feature_row(d, SQL_SIGNAL_ADD, "iitibtizz", v, FEATURE_EXACT, err);
    if (st == PAWL_OK)
        st = run_put(d, r, err);
    CRASH_POINT("workflow.signal_stored");
    if (st == PAWL_OK && waits_for(r, q->name))
        st = runs_wake(d, &r->seq, 1, err);
    op->feature.brings = true;
    return st;
}

/* Accept the call that the signal starts, unless it exists. *out false: that was refused. */
static enum pawl_status start(struct ledger *d, struct op *op, bool *out, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct op nested = { .kind = OP_ACCEPT, .a = op->a, .accept = { .v = q->start, .n = 1 } };
    *out = true;
    if (!q->start)
        return PAWL_OK;
    enum pawl_status st = feature_nested(d, &nested, err);
    if (st != PAWL_OK)
        return st;
    q->call = &nested.accept.out[0];
    q->started = q->call->status == PAWL_OK && !q->call->duplicate;
    *out = nested.status == PAWL_OK && q->call->status == PAWL_OK;
    if (nested.status == PAWL_OK && !*out)
        workflow_say_refused(op, q->start->id, q->call->status);
    else if (nested.status != PAWL_OK) {
        op->status = nested.status;
        op->err = nested.err;
    }
    return PAWL_OK;
}

void workflow_say_refused(struct op *op, struct bytes id, enum pawl_status status)
{
    char name[TEXT_QUOTE_LEN];
    const char *why = status == PAWL_NOT_FOUND ? "does not exist"
                      : status == PAWL_GONE    ? "has ended and is no longer kept"
                      : status == PAWL_STATE   ? "has ended"
                      : status == PAWL_FULL    ? "finds no room: its key's line, or the number of "
                                                 "queues and types, is full"
                                               : "exists with other content";
    op->status = err_set(&op->err, status, "call \"%s\" %s", text_quote(id, name), why);
}

enum pawl_status workflow_named(struct ledger *d, struct op *op, struct bytes id,
                                struct feature_call *out, struct run **out_run,
                                struct pawl_err *err)
{
    enum pawl_status st = feature_call_named(d, id, out, err);
    *out_run = NULL;
    if (st != PAWL_OK)
        return st;
    if (!out->seq || out->gone) {
        workflow_say_refused(op, id, out->seq ? PAWL_GONE : PAWL_NOT_FOUND);
        return PAWL_OK;
    }
    return run_get(d, out->seq, out_run, err);
}

bool run_ended(const struct run *r, const struct feature_call *c)
{
    return r->flags & RUN_BEGUN ? r->flags & RUN_ENDED : pawl_state_ended(c->state);
}

enum pawl_status workflow_signal(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct feature_call c;
    struct run *r;
    bool go, done;
    enum pawl_status st = start(d, op, &go, err);
    if (st == PAWL_OK && go)
        st = workflow_named(d, op, q->id, &c, &r, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    st = known(d, op, r, &done, err);
    if (st != PAWL_OK || done)
        return st;
    q->state = c.state;
    if (run_ended(r, &c)) {
        workflow_say_refused(op, q->id, PAWL_STATE);
        return PAWL_OK;
    }
    if (r->unread >= SIGNALS_MAX) {
        op->status = err_set(&op->err, PAWL_FULL,
                             "%d signals of this run are not read yet, and no more are allowed",
                             SIGNALS_MAX);
        return PAWL_OK;
    }
    if (!r->stored)
        run_new(d, r);
    return append(d, op, r, err);
}

/* ---- Keys that nobody has to know any more --------------------------------------------------- */

enum pawl_status workflow_forget_keys(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *q = op->feature.ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, feature_now(d) - SIGNAL_KEYS_US);
    led_int(&p, SIGNAL_KEYS_MIN);
    led_int(&p, q->max);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_OLD, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        const union feature_value v[] = { I(led_get_int(rows, i, 0)), I(led_get_int(rows, i, 1)) };
        CHECK(v[0].i > 0 && v[1].i > 0);
        st = feature_row(d, SQL_SIGNAL_REMOVE, "ii", v, FEATURE_ANY, err);
    }
    q->more = st == PAWL_OK && rows->n == q->max;
    return st;
}

/* ---- Published values ------------------------------------------------------------------------ */

enum pawl_status value_publish(struct ledger *d, struct run *r, const struct workflow_value *v,
                               struct pawl_err *err)
{
    const union feature_value row[] = { I(r->seq), B(v->name), I((int64_t)v->value.form),
                                        B(v->value.bytes), I(feature_now(d)) };
    struct led_params p = { 0 };
    struct led_column c[5];
    static const enum led_kind kinds[] = { LED_INTS, LED_TEXTS, LED_INTS, LED_BLOBS, LED_INTS };
    int64_t changed = 0;
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        led_column_init(&c[i], feature_arena(d), kinds[i]);
        if (kinds[i] == LED_INTS)
            led_add_int(&c[i], row[i].i);
        else
            led_add_bytes(&c[i], row[i].b);
        led_column(&p, &c[i]);
    }
    enum pawl_status st = feature_run(d, SQL_PUBLISHED_PUT, &p, &changed, err);
    if (st == PAWL_OK && !changed)
        st = feature_row(d, SQL_PUBLISHED_ADD, "itibi", row, FEATURE_ANY, err);
    return st;
}
