/*
 * workflow_read.c - reading runs and their journals, on a connection for reading.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include "base/limits.h"

/* A journal that one statement may read as a whole: each row repeats what the run itself has. */
#define SMALL_STEPS 100
#define SMALL_LEN (64 << 10)

static struct payload payload_copy(struct arena *a, struct payload p)
{
    return (struct payload){ p.form, arena_copy(a, p.bytes) };
}

static struct workflow_row row_copy(struct arena *a, const struct step_row *s)
{
    return (struct workflow_row){ .no = s->no,
                                  .name = step_name(a, s->name, s->nth),
                                  .kind = s->kind,
                                  .status = s->status,
                                  .result = payload_copy(a, s->result),
                                  .error = arena_copy(a, s->error),
                                  .node = arena_copy(a, s->node),
                                  .attempts = (int)s->attempts,
                                  .undo = s->undos & UNDO_CAN,
                                  .undone = s->undos & UNDO_WAS,
                                  .final = s->undos & UNDO_FINAL,
                                  .until_us = s->until_us,
                                  .started_us = s->started_us,
                                  .completed_us = s->completed_us };
}

/* How many of the next steps fit; *out_more: there are others behind them. */
static enum pawl_status page_fits(struct ledger *d, const struct journal_look *q, int64_t from_no,
                                  size_t left, int *out_n, bool *out_more, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t len = 0;
    led_int(&p, q->seq);
    led_int(&p, from_no);
    led_int(&p, STEPS_PAGE);
    enum pawl_status st = feature_query(d, SQL_STEP_LENGTHS, &p, &rows, err);
    *out_n = 0;
    *out_more = st == PAWL_OK && rows->n == STEPS_PAGE;
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        len += (size_t)led_get_int(rows, i, 1);
        if (len > left && (i || left < q->len_max)) {
            *out_more = true;
            return PAWL_OK;
        }
        ++*out_n;
    }
    return st;
}

static enum pawl_status page_read(struct ledger *d, const struct journal_look *q, int64_t from_no,
                                  int n, size_t *out_len, struct pawl_err *err)
{
    struct workflow_journal *j = q->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, q->seq);
    led_int(&p, from_no);
    led_int(&p, n);
    enum pawl_status st = feature_query(d, SQL_STEP_LIST, &p, &rows, err);
    *out_len = 0;
    if (st == PAWL_OK)
        workflow_count_read(rows->n);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct step_row s = step_read(rows, i, 0);
        CHECK(s.no >= from_no);
        j->v[j->n++] = row_copy(q->a, &s);
        *out_len += s.result.bytes.len;
        j->next = s.no + 1;
    }
    return st;
}

static enum pawl_status steps_read(struct ledger *d, const struct journal_look *q, int64_t next_no,
                                   struct pawl_err *err)
{
    struct workflow_journal *j = q->out;
    size_t left = q->len_max;
    bool more = true;
    enum pawl_status st = PAWL_OK;
    j->next = q->from_no;
    j->v = arena_alloc(q->a, (size_t)MAX(next_no - q->from_no + 1, 1) * sizeof *j->v);
    if (!j->v)
        return err_no_memory(err, "a journal");
    while (st == PAWL_OK && more) {
        int n;
        size_t len = 0;
        st = page_fits(d, q, j->next, left, &n, &more, err);
        if (st != PAWL_OK || !n)
            break;
        st = page_read(d, q, j->next, n, &len, err);
        left -= MIN(left, len);
    }
    j->next = more ? j->next : 0;
    return st;
}

/* What is known of the run itself. */
static void head_copy(const struct journal_look *q, const struct run *r)
{
    *q->out = (struct workflow_journal){
        .seq = r->seq,
        .rev = r->rev,
        .generation = r->generation,
        .next_no = r->next_no,
        .version = arena_copy(q->a, r->version),
        .undoing = r->undoing_us,
        .undoing_us = r->undoing_us,
        .cancelled = r->reason == REASON_CANCELLED || r->reason == REASON_TIMEOUT,
        .doubt = r->flags & RUN_CUT,
        .error = arena_copy(q->a, r->error),
        .has_input = r->flags & RUN_HAS_INPUT,
    };
}

enum pawl_status workflow_journal_look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct journal_look *q = ctx;
    struct workflow_journal *j = q->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_ints(d, &p, &q->seq, 1);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_READ, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    struct run r = run_read(rows, 0);
    head_copy(q, &r);
    if (j->has_input)
        j->input =
            payload_copy(q->a, (struct payload){ (enum pawl_form)led_get_int(rows, 0, RUN_COLUMNS),
                                                 led_get(rows, 0, RUN_COLUMNS + 1) });
    if (r.rev != q->have_rev)
        st = steps_read(d, q, r.next_no, err);
    return st == PAWL_OK && q->a->failed ? err_no_memory(err, "a journal") : st;
}

/* Read it with one statement, if it is small. */
static enum pawl_status look_small(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct journal_look *q = ctx;
    struct workflow_journal *j = q->out;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, q->seq);
    led_int(&p, q->from_no);
    led_int(&p, SMALL_LEN);
    led_int(&p, SMALL_STEPS);
    led_int(&p, q->have_rev);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_JOURNAL, &p, &rows, err);
    if (st != PAWL_OK || rows->n == 0)
        return st;
    workflow_count_read(led_get_int(rows, 0, RUN_COLUMNS) ? rows->n : 0); /* it may have none */
    struct run r = run_read(rows, 0);
    bool small = r.bytes <= SMALL_LEN && r.next_no <= q->from_no + SMALL_STEPS;
    head_copy(q, &r);
    q->more = j->has_input || (r.rev != q->have_rev && !small);
    if (q->more)
        return PAWL_OK;
    j->v = arena_alloc(q->a, (size_t)rows->n * sizeof *j->v);
    for (int i = 0; j->v && i < rows->n; i++) {
        if (!led_get_int(rows, i, RUN_COLUMNS))
            continue; /* it has none */
        struct step_row s = step_read(rows, i, RUN_COLUMNS - 1);
        j->v[j->n++] = row_copy(q->a, &s);
    }
    return q->a->failed ? err_no_memory(err, "a journal") : PAWL_OK;
}

enum pawl_status workflow_journal_read(struct store *s, struct arena *a, int64_t seq,
                                       int64_t from_no, size_t len_max, int64_t have_rev,
                                       struct workflow_journal *out, struct pawl_err *err)
{
    struct journal_look q = { a, seq, MAX(from_no, 1), have_rev, len_max, out, false };
    *out = (struct workflow_journal){ 0 };
    enum pawl_status st =
        len_max < SMALL_LEN ? PAWL_OK : store_look(s, LOOK_ALONE, look_small, &q, err);
    if (st != PAWL_OK || (len_max >= SMALL_LEN && !q.more))
        return st;
    *out = (struct workflow_journal){ 0 };
    return store_look(s, LOOK_SNAPSHOT, workflow_journal_look, &q, err);
}

/* ---- Runs that undo -------------------------------------------------------------------------- */

struct undoing_look {
    struct arena *a;
    int64_t *v;
    size_t n;
};

static enum pawl_status look_undoing(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct undoing_look *q = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    led_int(&p, COUNT_MAX);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_UNDOING, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    q->v = arena_alloc(q->a, ((size_t)rows->n + 1) * sizeof *q->v);
    for (q->n = 0; q->v && q->n < (size_t)rows->n; q->n++)
        q->v[q->n] = led_get_int(rows, (int)q->n, 0);
    return q->v ? PAWL_OK : err_no_memory(err, "workflows");
}

enum pawl_status workflow_undoing_read(struct store *s, struct arena *a, int64_t **out,
                                       size_t *out_n, struct pawl_err *err)
{
    struct undoing_look q = { .a = a };
    enum pawl_status st = store_look(s, LOOK_ALONE, look_undoing, &q, err);
    *out = q.v;
    *out_n = q.n;
    return st;
}
