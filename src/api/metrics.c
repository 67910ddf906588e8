/*
 * metrics.c - GET /metrics: Prometheus text, every line from a table or a loop.
 *
 * Counters are those of this process since its start. Figures of queues come from the database, so
 * every node of a cluster shows the same ones.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/claim_wait.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/node.h"
#include "exec/stats.h"
#include "feature/cron.h"
#include "feature/workflow.h"

/* How many queues are shown one by one. A series for every queue that a client ever named could
 * fill the disk of Prometheus. */
#define QUEUES_SHOWN_MAX 200

/* ---- Lines ----------------------------------------------------------------------------------- */

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct buf *b, const char *name, const char *type, const char *help, int64_t n)
{
    head(b, name, type, help);
    buf_addf(b, "%s %" PRId64 "\n", name, n);
}

/* Append a label's value, with backslash, quote and line end escaped as the format requires. */
static void label_add(struct buf *b, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\\' || c == '"')
            buf_add_char(b, '\\');
        if (c == '\n')
            buf_add_text(b, "\\n");
        else
            buf_add_char(b, c);
    }
}

/* ---- Of the machine -------------------------------------------------------------------------- */

static const struct total {
    const char *name, *help;
    size_t at;
} totals[] = {
#define TOTAL(name, help)                                                                          \
    {                                                                                              \
        "pawl_" #name "_total", help, offsetof(struct exec_stats, name)                            \
    }
    TOTAL(accepted, "Calls accepted and stored."),
    TOTAL(duplicates, "Submits of a known id, answered without a write."),
    TOTAL(claimed, "Calls leased to a worker."),
    TOTAL(completed, "Calls that ended with a result."),
    TOTAL(failed_tries, "Attempts that ended in an error or timeout."),
    TOTAL(ended, "Calls that ended, whatever their status."),
    TOTAL(lost, "Results that came after their lease was over."),
    TOTAL(commits, "Transactions of the threads that write, also those that failed."),
    TOTAL(repeats, "Finishes sent again because the database had not stored them."),
#undef TOTAL
};

/* Append a histogram. Bounds and sum are divided by `unit`, so that microseconds are shown as
 * seconds. */
static void histogram_add(struct buf *b, const char *name, const char *help,
                          const struct histogram *h, double unit)
{
    char text[32];
    int64_t below = 0;
    head(b, name, "histogram", help);
    for (size_t i = 0; i < h->n; i++) {
        below += atomic_load_explicit(&h->at[i], memory_order_relaxed);
        real_text(h->bounds[i] / unit, text);
        buf_addf(b, "%s_bucket{le=\"%s\"} %" PRId64 "\n", name, text, below);
    }
    below += atomic_load_explicit(&h->at[h->n], memory_order_relaxed);
    real_text((double)atomic_load_explicit(&h->sum, memory_order_relaxed) / unit, text);
    buf_addf(b, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n", name, below);
    buf_addf(b, "%s_sum %s\n%s_count %" PRId64 "\n", name, text, name, below);
}

static void tick_add(struct buf *b, const char *reason, int64_t n)
{
    buf_addf(b, "pawl_ticks_total{reason=\"%s\"} %" PRId64 "\n", reason, n);
}

static void ticks_add(struct buf *b, const struct exec_stats *s)
{
    struct cron_unasked unasked;
    cron_unasked(&unasked);
    head(b, "pawl_ticks_total", "counter",
         "Ticks of schedules that were decided here: submitted at their time, by hand (manual), or "
         "after the call that they waited for; the others were skipped for this reason.");
    tick_add(b, "submitted", atomic_load(&s->ticks));
    tick_add(b, "manual", atomic_load(&s->ticks_manual));
    tick_add(b, "waited", unasked.waited);
    for (int i = CRON_NO_REASON + 1; i < CRON_REASONS; i++)
        tick_add(b, cron_reason_name((enum cron_reason)i),
                 atomic_load(&s->ticks_skipped[i]) + unasked.skipped[i]);
    one(b, "pawl_ticks_missed_total", "counter",
        "Ticks that were due while no node ticked, or while their schedule was paused.",
        atomic_load(&s->ticks_missed) + unasked.missed);
    one(b, "pawl_schedules_unread_total", "counter",
        "Looks at schedules that were due and could not be read: they do not tick. One look a "
        "minute and schedule; the log has the name and the reason.",
        atomic_load(&s->unread));
}

static void steps_add(struct buf *b)
{
    struct workflow_counts n;
    workflow_counts(&n);
    one(b, "pawl_workflow_steps_total", "counter", "Steps of workflows that ended here.", n.steps);
    one(b, "pawl_workflow_signals_total", "counter", "Signals that were stored here.", n.signals);
    one(b, "pawl_workflow_compensations_total", "counter",
        "Runs that began here to undo what they had done.", n.compensations);
    one(b, "pawl_workflow_divergences_total", "counter",
        "Runs that were stopped here because their code asked for another step than the stored "
        "one.",
        n.divergences);
    one(b, "pawl_workflow_children_taken_total", "counter",
        "Children of workflows that were not made here, because another call had their id.",
        n.taken);
}

static void exec_add(struct buf *b, struct exec *e)
{
    struct exec_figures f;
    const struct exec_stats *s = exec_stats_of(e);
    struct cron_unasked unasked;
    cron_unasked(&unasked);
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        const atomic_int_least64_t *at = (const void *)((const char *)s + totals[i].at);
        bool takes = totals[i].at == offsetof(struct exec_stats, accepted);
        one(b, totals[i].name, "counter", totals[i].help,
            atomic_load(at) + (takes ? unasked.accepted : 0));
    }
    ticks_add(b, s);
    steps_add(b);
    histogram_add(b, "pawl_group_operations", "Operations of one commit.", &s->group_ops, 1);
    histogram_add(b, "pawl_commit_seconds", "How long a commit took.", &s->commit_us, SEC_US);
    exec_figures(e, &f);
    one(b, "pawl_writes_waiting", "gauge", "Writes the store thread has not taken yet.",
        (int64_t)f.writes_waiting);
    one(b, "pawl_writes_waiting_limit", "gauge", "How many may wait before BUSY.", STORE_QUEUE_MAX);
    one(b, "pawl_slots", "gauge", "Handlers that may run at once here.", f.slots);
    one(b, "pawl_running", "gauge", "Handlers that run here.", f.busy);
    one(b, "pawl_claimed_ahead", "gauge", "Calls leased here that have not begun.", f.queued);
    one(b, "pawl_hung", "gauge", "Handlers that did not return from their timeout.", f.hung);
    one(b, "pawl_callers_waiting", "gauge", "Callers that wait for the end of a call.",
        (int64_t)f.waiting);
    one(b, "pawl_drained", "gauge", "1 while this node is drained: it takes no new work.",
        f.drained);
}

/* ---- Of the server --------------------------------------------------------------------------- */

static void http_add(struct buf *b, const struct api *api)
{
    struct http_stats s = { 0 };
    if (!api->server)
        return;
    http_stats(api->server, &s);
    one(b, "pawl_http_connections", "gauge", "Open connections.", s.connections);
    one(b, "pawl_http_connections_accepted_total", "counter", "Connections taken.", s.accepted);
    one(b, "pawl_http_requests_total", "counter", "Requests answered by a route.", s.requests);
    one(b, "pawl_http_received_bytes_total", "counter", "Bytes read.", s.bytes_in);
    one(b, "pawl_http_sent_bytes_total", "counter", "Bytes written.", s.bytes_out);
    one(b, "pawl_http_refused_total", "counter",
        "Connections beyond the limit, and malformed requests.", s.refused);
    one(b, "pawl_http_timeouts_total", "counter", "Clients that were too slow.", s.timeouts);
}

static void process_add(struct buf *b, const struct api *api)
{
    head(b, "pawl_info", "gauge", "What runs here; always 1.");
    buf_addf(b, "pawl_info{version=\"%s\",node=\"", PAWL_VERSION);
    label_add(b, bytes_of(exec_node(api->exec)));
    buf_add_text(b, "\"} 1\n");
    one(b, "pawl_requests_open", "gauge", "Requests that have no answer yet.", api->n_asks);
    one(b, "pawl_claims_waiting", "gauge", "Claims that wait for something to do.",
        (int64_t)claim_wait_waiting(api));
    one(b, "pawl_memory_bytes", "gauge", "Resident memory of the process.", process_memory());
    head(b, "pawl_start_time_seconds", "gauge", "When it started, since 1970.");
    buf_addf(b, "pawl_start_time_seconds %" PRId64 "\n", api->started_us / SEC_US);
}

/* ---- Of the queues --------------------------------------------------------------------------- */

struct metrics_read {
    struct ask_read rd; /* first */
    struct queue_rows rows;
    struct key_rows blocked;
    struct cron_due due;
    struct workflow_figures runs;
};

/* Engines find blocked keys without reading the others, and there are few. */
static enum pawl_status metrics_work(struct ask_read *rd, struct store *s)
{
    struct metrics_read *mr = (struct metrics_read *)rd;
    struct key_query blocked = { .blocked = true, .limit = LIST_MAX };
    enum pawl_status st = store_queues(s, &rd->arena, &mr->rows, &rd->err);
    if (st == PAWL_OK)
        st = store_keys(s, &rd->arena, &blocked, &mr->blocked, &rd->err);
    if (st == PAWL_OK && store_traits(s) & STORE_DRIVEN)
        st = cron_due(s, &mr->due, &rd->err);
    if (st == PAWL_OK && store_traits(s) & STORE_DRIVEN)
        st = workflow_figures(s, &rd->arena, &mr->runs, &rd->err);
    return st;
}

/* Of the schedule that is due and waits longest to be decided; one that cannot be read is due again
 * only in a minute, so its tick is known from the last look. */
static void lag_add(struct buf *b, const struct cron_due *due, int64_t unread_us)
{
    char text[32];
    int64_t lag_us = due->next_us ? MAX(due->now_us - due->next_us, 0) : 0;
    if (unread_us)
        lag_us = MAX(lag_us, due->now_us - unread_us);
    real_text((double)lag_us / SEC_US, text);
    head(b, "pawl_schedule_lag_seconds", "gauge",
         "How late the next tick of all schedules is; more than a few seconds: no node ticks, or "
         "this node cannot read a schedule (pawl_schedules_unread_total).");
    buf_addf(b, "pawl_schedule_lag_seconds %s\n", text);
}

static void runs_add(struct buf *b, const struct workflow_figures *f)
{
    one(b, "pawl_workflows", "gauge",
        "Runs of workflows that have begun and not ended, counted up to 100000.", f->open);
    head(b, "pawl_waiting", "gauge",
         "Of them those that wait, by queue and for what, counted up to 100000.");
    for (size_t i = 0; i < f->n; i++) {
        buf_add_text(b, "pawl_waiting{queue=\"");
        label_add(b, f->v[i].queue);
        buf_addf(b, "\",for=\"%s\"} %" PRId64 "\n", call_wait_name(f->v[i].what), f->v[i].n);
    }
}

enum figure { PENDING, DUE, PROCESSING, PAUSED };

static int64_t figure_of(const struct queue_row *r, enum figure what)
{
    switch (what) {
    case PENDING:
        return r->pending;
    case DUE:
        return r->due;
    case PROCESSING:
        return r->processing;
    case PAUSED:
        return r->paused;
    }
    return 0;
}

static void queues_add(struct buf *b, const struct queue_rows *rows, size_t n)
{
    static const char *const names[][2] = {
        [PENDING] = { "pawl_queue_pending", "Calls that wait, counted up to 100000." },
        [DUE] = { "pawl_queue_due", "Of these, calls that could run now." },
        [PROCESSING] = { "pawl_queue_processing", "Calls held by a lease." },
        [PAUSED] = { "pawl_queue_paused", "1 while the queue is paused." },
    };
    for (size_t k = 0; k < COUNT_OF(names); k++) {
        head(b, names[k][0], "gauge", names[k][1]);
        for (size_t i = 0; i < n; i++) {
            buf_addf(b, "%s{queue=\"", names[k][0]);
            label_add(b, rows->v[i].queue);
            buf_addf(b, "\"} %" PRId64 "\n", figure_of(&rows->v[i], (enum figure)k));
        }
    }
    one(b, "pawl_queues", "gauge", "Queues that are known; the first ones are shown one by one.",
        (int64_t)rows->n);
}

/* Without the database the other figures are still useful; pawl_database_up says so. */
static void metrics_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    const struct queue_rows *rows = &((struct metrics_read *)rd)->rows;
    bool ok = rd->status == PAWL_OK;
    struct buf *b = ask_buf(q);
    process_add(b, q->api);
    exec_add(b, q->api->exec);
    http_add(b, q->api);
    one(b, "pawl_database_up", "gauge", "1 when the database answered for this request.", ok);
    if (ok) {
        one(b, "pawl_keys_blocked", "gauge", "Keys that an ended call blocks, counted up to 1000.",
            (int64_t)((struct metrics_read *)rd)->blocked.n);
        lag_add(b, &((struct metrics_read *)rd)->due,
                exec_unread_since(exec_stats_of(q->api->exec)));
        runs_add(b, &((struct metrics_read *)rd)->runs);
        queues_add(b, rows, MIN(rows->n, QUEUES_SHOWN_MAX));
    }
    ask_read_end(rd);
    if (!buf_ok(b)) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this answer");
        return;
    }
    ask_reply_raw(q,
                  &(struct http_reply){ .status = 200,
                                        .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                        .body = buf_bytes(b) });
}

void route_metrics(struct ask *q)
{
    struct metrics_read *r = arena_zalloc(q->a, 1, sizeof(*r));
    if (!r) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    r->rd.work = metrics_work;
    r->rd.done = metrics_done;
    ask_read(q, &r->rd);
}
