/*
 * workflow_rows.c - the rows of runs and steps in a transaction (workflow_inside.h). Store thread.
 *
 * What must stay true: a row that is changed belongs to a run that this transaction has locked; and
 * no two changes of one row are in the buffer together, because a statement changes all its rows at
 * once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Columns of workflow_lock. */
enum {
    C_SEQ,
    C_REV,
    C_GENERATION,
    C_VERSION,
    C_NEXT_NO,
    C_STEPS,
    C_BYTES,
    C_WAITS,
    C_WAIT_SIGNALS,
    C_DEADLINE,
    C_NEXT_SIGNAL,
    C_UNREAD,
    C_FLAGS,
    C_UNDOING_AT,
    C_REASON,
    C_ERROR,
    C_COMPENSATION,
    C_UNDONE,
    C_LAST_DONE_AT,
    C_CREATED_AT,
    C_NAME,
    C_SHOWN,
    C_PASS,
    C_WAIT_AT,
};

static struct run **bucket(struct runs *m, int64_t seq)
{
    return &m->v[(uint64_t)seq % RUN_BUCKETS];
}

static struct run *find(struct runs *m, int64_t seq)
{
    struct run *r = *bucket(m, seq);
    while (r && r->seq != seq)
        r = r->same;
    return r;
}

static struct runs *memory(struct ledger *d)
{
    return feature_memory(d, &feature_workflow, sizeof(struct runs));
}

struct run *run_find(struct ledger *d, int64_t seq)
{
    struct runs *m = memory(d);
    return m ? find(m, seq) : NULL;
}

static void run_check(const struct run *r)
{
    CHECK(r->seq > 0 && r->rev > 0 && r->generation > 0);
    CHECK(r->next_no > 0 && r->steps >= 0 && r->bytes >= 0 && r->undone >= 0);
    CHECK(r->next_signal > 0 && r->unread >= 0 && r->unread < r->next_signal);
    CHECK(r->waits >= 0 && r->flags >= 0);
    CHECK(!r->undoing_us == (r->reason == REASON_NONE));
    CHECK(r->reason <= REASON_TIMEOUT && r->compensation <= UNDO_FAILED &&
          r->shown <= SHOWN_UNDONE);
    CHECK(r->name.len > 0 && r->created_us > 0 && r->deadline_us >= 0 && r->wait_us >= 0);
}

struct run run_read(const struct led_rows *rows, int i)
{
    struct run r = {
        .seq = led_get_int(rows, i, C_SEQ),
        .stored = true,
        .rev = led_get_int(rows, i, C_REV),
        .generation = led_get_int(rows, i, C_GENERATION),
        .version = led_get(rows, i, C_VERSION),
        .next_no = led_get_int(rows, i, C_NEXT_NO),
        .steps = led_get_int(rows, i, C_STEPS),
        .bytes = led_get_int(rows, i, C_BYTES),
        .waits = led_get_int(rows, i, C_WAITS),
        .wait_signals = led_get(rows, i, C_WAIT_SIGNALS),
        .deadline_us = led_get_int(rows, i, C_DEADLINE),
        .next_signal = led_get_int(rows, i, C_NEXT_SIGNAL),
        .unread = led_get_int(rows, i, C_UNREAD),
        .flags = led_get_int(rows, i, C_FLAGS),
        .undoing_us = led_get_int(rows, i, C_UNDOING_AT),
        .reason = (enum run_reason)led_get_int(rows, i, C_REASON),
        .error = led_get(rows, i, C_ERROR),
        .compensation = (enum run_compensation)led_get_int(rows, i, C_COMPENSATION),
        .undone = led_get_int(rows, i, C_UNDONE),
        .last_done_us = led_get_int(rows, i, C_LAST_DONE_AT),
        .created_us = led_get_int(rows, i, C_CREATED_AT),
        .name = led_get(rows, i, C_NAME),
        .shown = (enum run_shown)led_get_int(rows, i, C_SHOWN),
        .pass = led_get(rows, i, C_PASS),
        .wait_us = led_get_int(rows, i, C_WAIT_AT),
    };
    run_check(&r);
    return r;
}

static struct run *enter(struct ledger *d, struct runs *m, const struct run *from)
{
    struct run *r = arena_alloc(feature_arena(d), sizeof *r);
    if (!r)
        return NULL;
    *r = *from;
    r->same = *bucket(m, r->seq);
    *bucket(m, r->seq) = r;
    return r;
}

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Those of `seqs` that the transaction has not read, sorted, each once. NULL without memory. */
static int64_t *missing(struct ledger *d, struct runs *m, const int64_t *seqs, size_t n,
                        size_t *out_n)
{
    int64_t *out = arena_alloc(feature_arena(d), (n + 1) * sizeof *out);
    size_t some = 0, once = 0;
    for (size_t i = 0; out && i < n; i++)
        if (!find(m, seqs[i]))
            out[some++] = seqs[i];
    if (some)
        qsort(out, some, sizeof *out, compare_seqs);
    for (size_t i = 0; i < some; i++)
        if (once == 0 || out[once - 1] != out[i])
            out[once++] = out[i];
    *out_n = once;
    return out;
}

enum pawl_status runs_lock(struct ledger *d, const int64_t *seqs, size_t n, struct pawl_err *err)
{
    struct runs *m = memory(d);
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t some = 0;
    int64_t *ask = m ? missing(d, m, seqs, n, &some) : NULL;
    if (!ask)
        return err_no_memory(err, "workflows");
    if (some == 0)
        return PAWL_OK;
    led_ints(d, &p, ask, some);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_LOCK, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct run r = run_read(rows, i);
        if (!enter(d, m, &r))
            st = err_no_memory(err, "workflows");
    }
    for (size_t i = 0; i < some && st == PAWL_OK; i++)
        if (!find(m, ask[i]) && !enter(d, m, &(struct run){ .seq = ask[i] }))
            st = err_no_memory(err, "workflows");
    return st;
}

enum pawl_status run_get(struct ledger *d, int64_t seq, struct run **out, struct pawl_err *err)
{
    enum pawl_status st = runs_lock(d, &seq, 1, err);
    *out = st == PAWL_OK ? run_find(d, seq) : NULL;
    return st == PAWL_OK && !*out ? err_no_memory(err, "workflows") : st;
}

enum pawl_status run_new(struct ledger *d, struct run *r, struct bytes name, struct pawl_err *err)
{
    struct feature_call c = { .type = name };
    CHECK(!r->stored);
    enum pawl_status st = name.data ? PAWL_OK : feature_call_at(d, r->seq, &c, err);
    CHECK(st != PAWL_OK || c.type.len);
    r->generation = r->next_no = r->next_signal = 1;
    r->created_us = feature_now(d);
    r->name = c.type;
    return st;
}

enum run_shown run_shown(const struct run *r, enum pawl_state state)
{
    switch (state) {
    case PAWL_COMPLETED:
        return SHOWN_COMPLETED;
    case PAWL_CANCELLED:
        return r->compensation == UNDO_DONE ? SHOWN_UNDONE : SHOWN_CANCELLED;
    case PAWL_FAILED:
    case PAWL_DEAD_LETTER:
    case PAWL_EXPIRED:
        return r->compensation == UNDO_DONE ? SHOWN_UNDONE : SHOWN_FAILED;
    case PAWL_PENDING:
    case PAWL_PROCESSING:
        break;
    }
    if (!(r->flags & RUN_BEGUN))
        return SHOWN_NOT;
    return r->undoing_us ? SHOWN_UNDOES : SHOWN_OPEN;
}

enum pawl_status row_once(struct ledger *d, bool again, struct pawl_err *err)
{
    return again ? feature_rows_write(d, err) : PAWL_OK;
}

enum pawl_status run_put(struct ledger *d, struct run *r, struct pawl_err *err)
{
    r->rev++;
    if (!(r->flags & RUN_ENDED))
        r->shown = run_shown(r, PAWL_PROCESSING);
    const union feature_value v[] = {
        I(r->seq),
        I(r->rev),
        I(r->generation),
        B(r->version),
        I(r->next_no),
        I(r->steps),
        I(r->bytes),
        I(r->waits),
        B(r->wait_signals),
        I(r->deadline_us),
        I(r->next_signal),
        I(r->unread),
        I(r->flags),
        I(r->undoing_us),
        I((int64_t)r->reason),
        B(r->error),
        I((int64_t)r->compensation),
        I(r->undone),
        I(r->last_done_us),
        r->stored ? I((int64_t)r->shown) : I(r->created_us),
        r->stored ? B(r->pass) : B(r->name),
        r->stored ? I(r->wait_us) : I((int64_t)r->shown),
        B(r->pass),
        I(r->wait_us),
    };
    run_check(r);
    enum pawl_status st = row_once(d, r->written, err);
    if (st == PAWL_OK && r->stored)
        st = feature_row(d, SQL_WORKFLOW_PUT, "iiitiiiitziiizitiizitz", v, FEATURE_EXACT, err);
    else if (st == PAWL_OK)
        st = feature_row(d, SQL_WORKFLOW_ADD, "iiitiiiitziiizitiizititz", v, FEATURE_NEW, err);
    r->stored = r->written = true;
    return st;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Columns of step_find. */
enum {
    S_SEQ,
    S_NO,
    S_NAME,
    S_NTH,
    S_KIND,
    S_STATUS,
    S_FORM,
    S_RESULT,
    S_ERROR,
    S_ATTEMPTS,
    S_UNDOS,
    S_UNTIL,
    S_AWAITS,
    S_NODE,
    S_STARTED_AT,
    S_COMPLETED_AT,
};

static void step_check(const struct step_row *s)
{
    CHECK(s->no > 0 && s->nth > 0 && s->name.len > 0 && s->started_us > 0);
    CHECK(step_kind_name((int64_t)s->kind) && step_status_name((int64_t)s->status));
    CHECK(step_ended(s->status) == (s->completed_us > 0));
    CHECK(s->awaits >= 0 && s->attempts >= 0 && s->until_us >= 0);
    CHECK(s->result.form <= PAWL_BYTES && s->undos >= 0 && s->undos <= UNDO_BITS);
}

struct step_row step_read(const struct led_rows *rows, int i, int first)
{
    struct step_row s = {
        .no = led_get_int(rows, i, first + S_NO),
        .name = led_get(rows, i, first + S_NAME),
        .nth = led_get_int(rows, i, first + S_NTH),
        .kind = (enum step_kind)led_get_int(rows, i, first + S_KIND),
        .status = (enum step_status)led_get_int(rows, i, first + S_STATUS),
        .result = { (enum pawl_form)led_get_int(rows, i, first + S_FORM),
                    led_get(rows, i, first + S_RESULT) },
        .error = led_get(rows, i, first + S_ERROR),
        .attempts = led_get_int(rows, i, first + S_ATTEMPTS),
        .undos = led_get_int(rows, i, first + S_UNDOS),
        .until_us = led_get_int(rows, i, first + S_UNTIL),
        .awaits = led_get_int(rows, i, first + S_AWAITS),
        .node = led_get(rows, i, first + S_NODE),
        .started_us = led_get_int(rows, i, first + S_STARTED_AT),
        .completed_us = led_get_int(rows, i, first + S_COMPLETED_AT),
        .stored = true,
    };
    step_check(&s);
    return s;
}

struct step_row *step_at(struct run *r, int64_t no)
{
    struct step_row *s = r->steps_read;
    while (s && s->no != no)
        s = s->next;
    return s;
}

static struct step_row *step_enter(struct ledger *d, struct run *r, const struct step_row *from)
{
    struct step_row *s = arena_alloc(feature_arena(d), sizeof *s);
    if (!s)
        return NULL;
    *s = *from;
    s->next = r->steps_read;
    r->steps_read = s;
    return s;
}

static enum pawl_status steps_take(struct ledger *d, const struct led_rows *rows,
                                   struct pawl_err *err)
{
    for (int i = 0; i < rows->n; i++) {
        struct run *r = run_find(d, led_get_int(rows, i, S_SEQ));
        struct step_row s = step_read(rows, i, 0);
        CHECK(r);
        if (!step_at(r, s.no) && !step_enter(d, r, &s))
            return err_no_memory(err, "steps");
    }
    return PAWL_OK;
}

enum pawl_status steps_load(struct ledger *d, const struct step_ref *v, size_t n,
                            struct pawl_err *err)
{
    struct led_column seqs, nos;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&nos, feature_arena(d), LED_INTS);
    for (size_t i = 0; i < n; i++) {
        /* No step is stored with a number from next_no on. */
        if (step_at(v[i].run, v[i].no) || !v[i].run->stored || v[i].no >= v[i].run->next_no)
            continue;
        led_add_int(&seqs, v[i].run->seq);
        led_add_int(&nos, v[i].no);
    }
    enum pawl_status st = PAWL_OK;
    if (seqs.n) {
        led_column(&p, &seqs);
        led_column(&p, &nos);
        st = feature_query(d, SQL_STEP_FIND, &p, &rows, err);
    }
    if (st == PAWL_OK && seqs.n)
        st = steps_take(d, rows, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        if (!step_at(v[i].run, v[i].no) &&
            !step_enter(d, v[i].run, &(struct step_row){ .no = v[i].no }))
            st = err_no_memory(err, "steps");
    return st;
}

enum pawl_status step_by_name(struct ledger *d, struct run *r, struct bytes name,
                              struct step_row **out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column seqs, names, nths;
    struct led_rows *rows;
    int64_t nth;
    struct bytes plain = step_name_plain(name, &nth);
    *out = NULL;
    for (struct step_row *s = r->steps_read; s; s = s->next)
        if (s->stored && s->nth == nth && bytes_eq(s->name, plain))
            *out = s;
    if (*out || !r->stored)
        return PAWL_OK;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&names, feature_arena(d), LED_TEXTS);
    led_column_init(&nths, feature_arena(d), LED_INTS);
    led_add_int(&seqs, r->seq);
    led_add_bytes(&names, plain);
    led_add_int(&nths, nth);
    led_column(&p, &seqs);
    led_column(&p, &names);
    led_column(&p, &nths);
    enum pawl_status st = feature_query(d, SQL_STEP_NAMED, &p, &rows, err);
    if (st == PAWL_OK)
        st = steps_take(d, rows, err);
    if (st == PAWL_OK && rows->n)
        *out = step_at(r, led_get_int(rows, 0, S_NO));
    return st;
}

static struct step_use *use_find(struct run *r, struct bytes name)
{
    struct step_use *u = r->uses;
    while (u && !bytes_eq(u->name, name))
        u = u->next;
    return u;
}

static bool use_enter(struct ledger *d, struct run *r, struct bytes name)
{
    struct step_use *u = arena_alloc(feature_arena(d), sizeof *u);
    if (!u)
        return false;
    *u = (struct step_use){ .next = r->uses, .name = name };
    r->uses = u;
    return true;
}

enum pawl_status uses_load(struct ledger *d, const struct name_ref *v, size_t n,
                           struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column seqs, names;
    struct led_rows *rows;
    led_column_init(&seqs, feature_arena(d), LED_INTS);
    led_column_init(&names, feature_arena(d), LED_TEXTS);
    for (size_t i = 0; i < n; i++) {
        struct run *r = v[i].run;
        if (!r->stored || r->next_no == 1 || use_find(r, v[i].name))
            continue;
        if (!use_enter(d, r, v[i].name))
            return err_no_memory(err, "steps");
        led_add_int(&seqs, r->seq);
        led_add_bytes(&names, v[i].name);
    }
    if (!seqs.n)
        return PAWL_OK;
    led_column(&p, &seqs);
    led_column(&p, &names);
    enum pawl_status st = feature_query(d, SQL_STEP_USES, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct run *r = run_find(d, led_get_int(rows, i, 0));
        struct step_use *u = r ? use_find(r, led_get(rows, i, 1)) : NULL;
        CHECK(u);
        u->nth = led_get_int(rows, i, 2);
    }
    return st;
}

enum pawl_status step_uses(struct ledger *d, struct run *r, struct bytes name, int64_t *out,
                           struct pawl_err *err)
{
    const struct name_ref asked = { r, name };
    enum pawl_status st = uses_load(d, &asked, 1, err);
    const struct step_use *u = use_find(r, name);
    *out = u ? u->nth : 0;
    for (const struct step_row *s = r->steps_read; s; s = s->next)
        if (s->nth > *out && bytes_eq(s->name, name))
            *out = s->nth;
    return st;
}

enum pawl_status steps_len(struct ledger *d, int64_t seq, int64_t *out, struct pawl_err *err)
{
    enum { PAGE = 1000 };
    enum pawl_status st = PAWL_OK;
    int64_t from_no = 1;
    *out = 0;
    for (int n = PAGE; n == PAGE && st == PAWL_OK;) {
        struct led_params p = { 0 };
        struct led_rows *rows;
        led_int(&p, seq);
        led_int(&p, from_no);
        led_int(&p, PAGE);
        st = feature_query(d, SQL_STEP_LENGTHS, &p, &rows, err);
        n = st == PAWL_OK ? rows->n : 0;
        for (int i = 0; i < n; i++)
            *out += led_get_int(rows, i, 1);
        from_no = n ? led_get_int(rows, n - 1, 0) + 1 : from_no;
    }
    return st;
}

enum pawl_status step_put(struct ledger *d, struct run *r, struct step_row *s, struct pawl_err *err)
{
    const union feature_value add[] = {
        I(r->seq),
        I(s->no),
        B(s->name),
        I(s->nth),
        I((int64_t)s->kind),
        I((int64_t)s->status),
        I((int64_t)s->result.form),
        B(s->result.bytes),
        B(s->error),
        I(s->attempts),
        I(s->undos),
        I(s->until_us),
        I(s->awaits),
        B(s->node),
        I(s->started_us),
        I(s->completed_us),
    };
    const union feature_value put[] = {
        I(r->seq),
        I(s->no),
        I(s->nth),
        I((int64_t)s->status),
        I((int64_t)s->result.form),
        B(s->result.bytes),
        B(s->error),
        I(s->attempts),
        I(s->undos),
        I(s->until_us),
        I(s->awaits),
        B(s->node),
        I(s->completed_us),
    };
    step_check(s);
    enum pawl_status st = row_once(d, s->written, err);
    if (st == PAWL_OK && s->stored)
        st = feature_row(d, SQL_STEP_PUT, "iiiiibtiizitz", put, FEATURE_EXACT, err);
    else if (st == PAWL_OK)
        st = feature_row(d, SQL_STEP_ADD, "iitiiiibtiizitiz", add, FEATURE_EXACT, err);
    s->stored = s->written = true;
    return st;
}
