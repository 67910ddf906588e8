/*
 * workflow_signal.c - signals, which wake a run that waits for them, and values that a run shows.
 *
 * Store thread. A signal that comes before the first step makes the run's row, so that it is there
 * for the first wait. That does not begin the run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <string.h>

#include "base/hook.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Is it the same value? JSON counts as its canonical text, as with the input of a call. */
static enum pawl_status payload_same(struct arena *a, struct payload x, struct payload y, bool *out,
                                     struct pawl_err *err)
{
    struct bytes one = x.bytes, other = y.bytes;
    enum pawl_status st = PAWL_OK;
    *out = x.form == y.form && bytes_eq(one, other);
    if (*out || x.form != y.form || x.form != PAWL_JSON)
        return PAWL_OK;
    st = json_canonical(a, x.bytes, &one, err);
    if (st == PAWL_OK)
        st = json_canonical(a, y.bytes, &other, err);
    *out = st == PAWL_OK && bytes_eq(one, other);
    return st;
}

/* The key of the signal; one that has none gets one of its own, by which a repeat is known. */
static struct bytes key_of(const struct workflow_op *q)
{
    return q->key.data ? q->key : q->made_id;
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
    struct bytes key = key_of(q);
    if (!key.data || !r->stored)
        return PAWL_OK;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&keys, feature_arena(d), LED_TEXTS);
    led_add_int(&seqs, r->seq);
    led_add_bytes(&keys, key);
    led_column(&p, &seqs);
    led_column(&p, &keys);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_KNOWN, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    struct payload stored = { (enum pawl_form)led_get_int(rows, 0, 3), led_get(rows, 0, 4) };
    char quoted[TEXT_QUOTE_LEN];
    *out = true;
    q->duplicate = q->key.data != NULL;
    bool same = bytes_eq(led_get(rows, 0, 2), q->name);
    if (same)
        st = payload_same(feature_arena(d), stored, q->value, &same, err);
    if (st == PAWL_OK && !same)
        op->status = err_set(&op->err, PAWL_CONFLICT,
                             "signal key \"%s\" was used for another signal of this run",
                             text_quote(key, quoted));
    return st;
}

/* ---- Keys that nobody has to know any more --------------------------------------------------- */

/* Is it one of the last signals, whose keys are known whatever their age? */
static bool is_last(const struct run *r, int64_t no)
{
    return no >= r->next_signal - SIGNAL_KEYS_MIN;
}

int64_t signal_old_at(const struct ledger *d, const struct run *r, int64_t no)
{
    return is_last(r, no) ? 0 : feature_now(d) + SIGNAL_KEYS_US;
}

/* A signal came, and one before it leaves the last ones. If that was consumed, its key may be
 * forgotten in its time; else that is said when it is consumed. */
static enum pawl_status passed(struct ledger *d, const struct run *r, struct pawl_err *err)
{
    int64_t no = r->next_signal - SIGNAL_KEYS_MIN - 1;
    const union feature_value v[] = { I(r->seq), I(no), I(SIGNAL_KEYS_US) };
    return no > 0 ? feature_row(d, SQL_SIGNAL_PASSED, "iii", v, FEATURE_ANY, err) : PAWL_OK;
}

enum pawl_status workflow_gc(struct ledger *d, int max, bool *more, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, feature_now(d));
    led_int(&p, max);
    enum pawl_status st = feature_query(d, SQL_SIGNAL_OLD, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        const union feature_value v[] = { I(led_get_int(rows, i, 0)), I(led_get_int(rows, i, 1)) };
        CHECK(v[0].i > 0 && v[1].i > 0);
        st = feature_row(d, SQL_SIGNAL_REMOVE, "ii", v, FEATURE_ANY, err);
    }
    *more = *more || (st == PAWL_OK && rows->n == max);
    return st;
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
                                      B(key_of(q)),
                                      I(feature_now(d)),
                                      I(0),
                                      I(0) };
    r->next_signal++;
    r->unread++;
    workflow_count_signal();
    enum pawl_status st = feature_row(d, SQL_SIGNAL_ADD, "iitibtizz", v, FEATURE_EXACT, err);
    if (st == PAWL_OK)
        st = passed(d, r, err);
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
    if (nested.status != PAWL_OK) {
        op->status = nested.status;
        op->err = nested.err;
    } else if (!*out) {
        workflow_say_refused(op, q->start->id, q->call->status);
    } else if (q->own && !bytes_eq(q->call->call.spec.client, q->start->client)) {
        *out = false; /* to this client it does not exist */
        workflow_say_refused(op, q->start->id, PAWL_CONFLICT);
    }
    return PAWL_OK;
}

void workflow_say_refused(struct op *op, struct bytes id, enum pawl_status status)
{
    char name[TEXT_QUOTE_LEN];
    const char *why = status == PAWL_NOT_FOUND ? "does not exist"
                      : status == PAWL_GONE    ? "has ended and is no longer kept"
                      : status == PAWL_FULL    ? "finds no room: its key's line, or the number of "
                                                 "queues and types, is full"
                                               : "exists with other content";
    op->status = err_set(&op->err, status, "call \"%s\" %s", text_quote(id, name), why);
}

void workflow_say_ended(struct op *op, const struct feature_call *c, const char *end)
{
    struct workflow_op *q = op->feature.ctx;
    char name[TEXT_QUOTE_LEN];
    q->state = c->state;
    op->status = err_set(&op->err, PAWL_STATE, "run \"%s\" is %s%s", text_quote(c->id, name),
                         pawl_state_name(c->state), end);
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
    if (st == PAWL_OK && go && q->started) {
        c = (struct feature_call){
            .seq = q->call->call.seq, .id = q->id, .type = q->start->type, .state = PAWL_PENDING
        };
        st = run_get(d, c.seq, &r, err);
    } else if (st == PAWL_OK && go) {
        st = workflow_named(d, op, q->id, &c, &r, err);
    }
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    if (!q->key.data && !q->made_id.data) {
        char id[UUID_TEXT_LEN + 1];
        uuid7_make(feature_world(d), id);
        q->made_id = arena_copy(op->a, bytes_of(id));
        if (!q->made_id.data)
            return err_no_memory(err, "a signal");
    }
    st = known(d, op, r, &done, err);
    if (st != PAWL_OK || done)
        return st;
    q->state = c.state;
    if (run_ended(r, &c)) {
        workflow_say_ended(op, &c, ": a signal would never be read");
        return PAWL_OK;
    }
    if (r->unread >= SIGNALS_MAX) {
        char id[TEXT_QUOTE_LEN];
        op->status =
            err_set(&op->err, PAWL_FULL, "run \"%s\": %d signals are not consumed yet, limit %d",
                    text_quote(q->id, id), SIGNALS_MAX, SIGNALS_MAX);
        return PAWL_OK;
    }
    if (!r->stored)
        st = run_new(d, r, c.type, err);
    return st == PAWL_OK ? append(d, op, r, err) : st;
}

/* ---- From SQL -------------------------------------------------------------------------------- */

/* May the writer of the row signal this run? Absent: a role that may do everything. */
static enum pawl_status may_signal(struct ledger *d, const struct inbox_row *row, bool *out,
                                   struct pawl_err *err)
{
    struct feature_call c;
    struct call_spec s;
    *out = true;
    if (!row->client.data)
        return PAWL_OK;
    enum pawl_status st = feature_call_named(d, row->name, &c, err);
    if (st != PAWL_OK || !c.seq || c.gone)
        return st; /* the operation says so */
    st = feature_call_spec(d, c.seq, &s, err);
    *out = st == PAWL_OK && bytes_eq(s.client, row->client);
    return st;
}

/* {"name":...,"value":...} */
static enum pawl_status signal_text(struct ledger *d, struct bytes text, struct workflow_op *q,
                                    struct pawl_err *why)
{
    struct json *v;
    enum pawl_status st = json_parse(feature_arena(d), text, &v, why);
    if (st != PAWL_OK)
        return st;
    const struct json *name = v->kind == JSON_OBJECT ? json_member(v, "name") : NULL;
    const struct json *value = name ? json_member(v, "value") : NULL;
    if (!value || name->kind != JSON_STRING)
        return err_set(why, PAWL_INVALID, "a signal has a name and a value");
    q->name = json_string(feature_arena(d), name);
    q->value = (struct payload){ PAWL_JSON, value->raw };
    if (!q->name.data)
        return err_no_memory(why, "a signal");
    const char *fault = name_fault(q->name);
    return fault ? err_set(why, PAWL_INVALID, "field \"name\": %s", fault) : PAWL_OK;
}

enum pawl_status workflow_inbox(struct ledger *d, const struct inbox_row *row, struct pawl_err *why,
                                struct pawl_err *err)
{
    struct workflow_op q = { .what = WORKFLOW_SIGNAL, .id = row->name };
    struct op op = { .kind = OP_FEATURE,
                     .a = feature_arena(d),
                     .feature = { .of = &feature_workflow, .ctx = &q } };
    bool may = false;
    enum pawl_status st = signal_text(d, row->text, &q, why);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a signal");
    if (st != PAWL_OK)
        return PAWL_OK; /* *why says what is wrong */
    st = may_signal(d, row, &may, err);
    if (st == PAWL_OK && !may) {
        workflow_say_refused(&op, row->name, PAWL_NOT_FOUND);
        *why = op.err;
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = feature_nested(d, &op, err);
    if (st == PAWL_OK && op.status != PAWL_OK)
        *why = op.err;
    return st;
}

/* ---- Published values ------------------------------------------------------------------------ */

/* Refuse them because of this one. */
static enum pawl_status values_refuse(struct op *op, const struct workflow_value *v,
                                      enum pawl_status status, const char *text)
{
    struct workflow_op *q = op->feature.ctx;
    char name[TEXT_QUOTE_LEN];
    op->status =
        err_set(&op->err, status, "published value \"%s\": %s", text_quote(v->name, name), text);
    q->steps.unpublished = true;
    return PAWL_OK;
}

/* Is the same name there again behind the i-th? Then that value counts. */
static bool comes_again(const struct workflow_value *v, size_t n, size_t i)
{
    for (size_t k = i + 1; k < n; k++)
        if (bytes_eq(v[k].name, v[i].name))
            return true;
    return false;
}

/* The row of `rows` with this name; -1: the run shows no such value. */
static int shown_at(const struct led_rows *rows, struct bytes name)
{
    for (int i = 0; i < rows->n; i++)
        if (bytes_eq(led_get(rows, i, 0), name))
            return i;
    return -1;
}

enum pawl_status values_check(struct ledger *d, struct op *op, struct run *r, bool *known,
                              struct pawl_err *err)
{
    const struct workflow_steps *q = &((struct workflow_op *)op->feature.ctx)->steps;
    struct led_params p = { 0 };
    struct led_rows *rows;
    int64_t len = 0, names = 0;
    led_int(&p, r->seq);
    enum pawl_status st = feature_query(d, SQL_PUBLISHED_SIZES, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    names = rows->n;
    for (int i = 0; i < rows->n; i++)
        len += led_get_int(rows, i, 1);
    for (size_t i = 0; i < q->n_published; i++) {
        const struct workflow_value *v = &q->published[i];
        int at = shown_at(rows, v->name);
        known[i] = at >= 0;
        if (comes_again(q->published, q->n_published, i))
            continue;
        names += at < 0;
        len += (int64_t)v->value.bytes.len - (at < 0 ? 0 : led_get_int(rows, at, 1));
        if (v->value.bytes.len > RESULT_LEN_MAX)
            return values_refuse(op, v, PAWL_TOO_LARGE, "it is longer than 1 MiB");
        if (at < 0 && names > PUBLISHED_MAX)
            return values_refuse(op, v, PAWL_FULL, "the run shows 1000 values already");
        if (len > PUBLISHED_LEN_MAX)
            return values_refuse(op, v, PAWL_FULL, "the values of the run would exceed 64 MiB");
    }
    return PAWL_OK;
}

enum pawl_status values_write(struct ledger *d, const struct run *r, const struct workflow_steps *q,
                              const bool *known, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < q->n_published && st == PAWL_OK; i++) {
        const struct workflow_value *v = &q->published[i];
        const union feature_value row[] = { I(r->seq), B(v->name), I((int64_t)v->value.form),
                                            B(v->value.bytes), I(feature_now(d)) };
        if (!comes_again(q->published, q->n_published, i))
            st = feature_row(d, known[i] ? SQL_PUBLISHED_PUT : SQL_PUBLISHED_ADD, "itibi", row,
                             FEATURE_EXACT, err);
    }
    return st;
}
