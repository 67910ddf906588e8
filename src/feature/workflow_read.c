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
        .pinned = r->flags & RUN_PINNED,
        .undoing = r->undoing_us,
        .undoing_us = r->undoing_us,
        .deadline_us = r->deadline_us,
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

/* ---- Passes that have to stop ---------------------------------------------------------------- */

struct stops_look {
    const struct workflow_pass *v;
    size_t n;
    bool *stop;
};

/* Columns of workflow_stop. */
enum { STOP_SEQ, STOP_FLAGS, STOP_UNDOING_AT, STOP_DEADLINE };

static bool stops(struct ledger *d, const struct led_rows *rows, int i, int64_t claimed_us)
{
    int64_t undoing_us = led_get_int(rows, i, STOP_UNDOING_AT);
    int64_t deadline_us = led_get_int(rows, i, STOP_DEADLINE);
    return led_get_int(rows, i, STOP_FLAGS) & RUN_ENDED ||
           (undoing_us && claimed_us < undoing_us) ||
           (deadline_us && deadline_us <= feature_now(d));
}

static enum pawl_status stops_look(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct stops_look *q = ctx;
    struct led_params p = { 0 };
    struct led_rows *rows;
    int64_t *seqs = arena_alloc(feature_arena(d), (q->n + 1) * sizeof *seqs);
    if (!seqs)
        return err_no_memory(err, "workflows");
    for (size_t k = 0; k < q->n; k++)
        seqs[k] = q->v[k].seq;
    led_ints(d, &p, seqs, q->n);
    enum pawl_status st = feature_query(d, SQL_WORKFLOW_STOP, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++)
        for (size_t k = 0; k < q->n; k++)
            if (seqs[k] == led_get_int(rows, i, STOP_SEQ) && stops(d, rows, i, q->v[k].claimed_us))
                q->stop[k] = true;
    return st;
}

enum pawl_status workflow_stops(struct store *s, const struct workflow_pass *v, size_t n,
                                bool *stop, struct pawl_err *err)
{
    struct stops_look q = { v, n, stop };
    return n ? store_look(s, LOOK_ALONE, stops_look, &q, err) : PAWL_OK;
}

enum pawl_status flows_stop(struct ledger *d, const int64_t *seqs, size_t n, int64_t claimed_us,
                            bool *stop, struct pawl_err *err)
{
    struct workflow_pass *v = arena_alloc(feature_arena(d), (n + 1) * sizeof *v);
    if (!v)
        return err_no_memory(err, "workflows");
    for (size_t i = 0; i < n; i++)
        v[i] = (struct workflow_pass){ seqs[i], claimed_us };
    return stops_look(d, &(struct stops_look){ v, n, stop }, err);
}
