/*
 * dump.c - a store and its answers as text (dump.h).
 *
 * Only what the contract defines is printed. The order of side effects is not defined, so they are
 * sorted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "check.h"

#define DUMP_ARENA_MAX (256u << 20)

void dump_bytes(struct buf *b, struct bytes v)
{
    if (!v.data) {
        buf_add_char(b, '-');
        return;
    }
    buf_add_char(b, '\'');
    for (size_t i = 0; i < v.len && i < 80; i++) {
        unsigned char c = (unsigned char)v.data[i];
        if (c > 31 && c < 127 && c != '\'' && c != '\\')
            buf_add_char(b, (char)c);
        else
            buf_addf(b, "\\%02x", c);
    }
    if (v.len > 80)
        buf_addf(b, "...%zu", v.len);
    buf_add_char(b, '\'');
}

static void field(struct buf *b, const char *name, struct bytes v)
{
    buf_addf(b, " %s=", name);
    dump_bytes(b, v);
}

static void number(struct buf *b, const char *name, int64_t n)
{
    buf_addf(b, " %s=%" PRId64, name, n);
}

static void counts(struct buf *b, struct attempt_counts t)
{
    buf_addf(b, " counts=%d/%d/%d", t.attempts, t.lost, t.redrives);
}

static void dump_spec(struct buf *b, const struct call_spec *s)
{
    field(b, "id", s->id);
    field(b, "type", s->type);
    field(b, "method", s->method);
    field(b, "key", s->key);
    field(b, "queue", s->queue);
    number(b, "priority", s->priority);
    number(b, "max_attempts", s->max_attempts);
    number(b, "max_lost", s->max_lost);
    number(b, "timeout", s->timeout_us);
    number(b, "keep", s->keep_us);
    buf_addf(b, " backoff=%" PRId64 "/%" PRId64 "/%g/%g", s->backoff.base_us, s->backoff.max_us,
             s->backoff.factor, s->backoff.jitter);
    number(b, "on_dead", s->on_dead);
    field(b, "caller", s->caller);
    field(b, "client", s->client);
    field(b, "parent", s->parent);
    field(b, "trace", s->traceparent);
    for (size_t i = 0; i < s->n_tags; i++) {
        field(b, "tag", s->tags[i].name);
        field(b, "value", s->tags[i].value);
    }
}

void dump_call(struct buf *b, const struct call *c)
{
    buf_addf(b, "call %" PRId64 " %s", c->seq, pawl_state_name(c->state));
    dump_spec(b, &c->spec);
    buf_addf(b, " input=%d:", c->spec.input.form);
    dump_bytes(b, c->spec.input.bytes);
    buf_addf(b, " result=%d:", c->result.form);
    dump_bytes(b, c->result.bytes);
    number(b, "waiting", c->waiting_for);
    buf_addf(b, " line=%d/%" PRId64 "/%" PRId64, c->in_line, c->position, c->key_no);
    number(b, "cancel_requested", c->cancel_requested);
    counts(b, c->counts);
    field(b, "error", c->error);
    field(b, "node", c->node);
    number(b, "created", c->created_us);
    number(b, "run_at", c->run_at_us);
    number(b, "claimed", c->claimed_us);
    number(b, "started", c->started_us);
    number(b, "finished", c->finished_us);
    number(b, "expires", c->expires_us);
    number(b, "keep_until", c->keep_until_us);
    buf_add_char(b, '\n');
}

static void dump_attempts(struct buf *b, struct store *s, struct arena *a, struct bytes id)
{
    struct attempts t;
    struct pawl_err err;
    OK(store_attempts(s, a, id, &t, &err), &err);
    for (size_t i = 0; i < t.n; i++) {
        buf_addf(b, "  attempt %d how %d", t.v[i].attempt_no, (int)t.v[i].how);
        field(b, "error", t.v[i].error);
        field(b, "node", t.v[i].node);
        number(b, "started", t.v[i].started_us);
        number(b, "finished", t.v[i].finished_us);
        buf_add_char(b, '\n');
    }
}

static void dump_calls(struct buf *b, struct store *s, struct arena *a, int limit)
{
    struct query q = { .limit = limit, .with = WITH_INPUT | WITH_RESULT };
    do {
        struct page page;
        struct pawl_err err;
        OK(store_list(s, a, &q, &page, &err), &err);
        for (size_t i = 0; i < page.n; i++) {
            dump_call(b, &page.v[i]);
            dump_attempts(b, s, a, page.v[i].spec.id);
        }
        q.before_seq = page.next_before;
    } while (q.before_seq);
}

static void dump_queues(struct buf *b, struct store *s, struct arena *a)
{
    struct queue_rows rows;
    struct pawl_err err;
    OK(store_queues(s, a, &rows, &err), &err);
    for (size_t i = 0; i < rows.n; i++) {
        field(b, "queue", rows.v[i].queue);
        number(b, "paused", rows.v[i].paused);
        number(b, "pending", rows.v[i].pending);
        number(b, "due", rows.v[i].due);
        number(b, "processing", rows.v[i].processing);
        number(b, "oldest", rows.v[i].oldest_due_us);
        buf_add_char(b, '\n');
    }
}

static void dump_nodes(struct buf *b, struct store *s, struct arena *a)
{
    struct node_rows rows;
    struct pawl_err err;
    OK(store_nodes(s, a, &rows, &err), &err);
    for (size_t i = 0; i < rows.n; i++) {
        const struct node_row *n = &rows.v[i];
        field(b, "node", n->node);
        field(b, "boot", n->boot);
        field(b, "host", n->host);
        field(b, "version", n->version);
        buf_addf(b, " dead=%d slots=%d busy=%d", n->dead, n->slots, n->busy);
        number(b, "beats", n->beats);
        number(b, "started", n->started_us);
        number(b, "beat", n->beat_us);
        field(b, "address", n->address);
        field(b, "roles", n->roles);
        field(b, "queues", n->queues);
        buf_addf(b, " state=%d drain=%d", (int)n->state, n->drain);
        number(b, "connections", n->connections);
        number(b, "cpu", n->cpu_milli);
        number(b, "memory", n->memory);
        buf_add_char(b, '\n');
    }
}

static void dump_leaders(struct buf *b, struct store *s, struct arena *a)
{
    struct leader_rows rows;
    struct pawl_err err;
    OK(store_leaders(s, a, &rows, &err), &err);
    for (size_t i = 0; i < rows.n; i++) {
        const struct leader_row *l = &rows.v[i];
        field(b, "role", l->role);
        field(b, "node", l->node);
        field(b, "boot", l->boot);
        number(b, "epoch", l->epoch);
        number(b, "acquired", l->acquired_us);
        number(b, "until", l->until_us);
        buf_add_char(b, '\n');
    }
}

static void dump_keys(struct buf *b, struct store *s, struct arena *a, int limit, bool blocked)
{
    struct key_query q = { .limit = limit, .blocked = blocked };
    do {
        struct key_rows rows;
        struct pawl_err err;
        OK(store_keys(s, a, &q, &rows, &err), &err);
        for (size_t i = 0; i < rows.n; i++) {
            const struct key_row *k = &rows.v[i];
            field(b, blocked ? "blocked" : "key", k->key);
            field(b, "head", k->head);
            buf_addf(b, " %s waiting=%d blocked=%d", pawl_state_name(k->head_state),
                     (int)k->waiting_for, k->blocked);
            number(b, "pending", k->pending);
            number(b, "since", k->since_us);
            buf_add_char(b, '\n');
        }
        q.after = rows.next;
    } while (q.after.data);
}

void dump_object(struct buf *b, struct store *s, struct bytes type, struct bytes key)
{
    struct arena a;
    struct object o;
    struct pawl_err err;
    arena_init(&a, DUMP_ARENA_MAX);
    enum pawl_status st = store_object(s, &a, type, key, &o, &err);
    if (st != PAWL_NOT_FOUND)
        OK(st, &err);
    buf_addf(b, "object %s", pawl_status_name(st));
    field(b, "type", type);
    field(b, "key", key);
    if (st == PAWL_OK) {
        buf_addf(b, " state=%d:", o.state.form);
        dump_bytes(b, o.state.bytes);
        number(b, "version", o.version);
        number(b, "updated", o.updated_us);
        number(b, "pending", o.pending);
    }
    buf_add_char(b, '\n');
    arena_release(&a);
}

static void dump_cancel_requests(struct buf *b, struct store *s, struct arena *a)
{
    struct cancel_requests w;
    struct pawl_err err;
    OK(store_cancel_requests(s, a, &w, &err), &err);
    buf_add_text(b, "cancel_requests");
    for (size_t i = 0; i < w.n; i++)
        buf_addf(b, " %" PRId64, w.seqs[i]);
    buf_add_char(b, '\n');
}

void dump_store(struct buf *b, struct store *s, int limit)
{
    struct arena a;
    arena_init(&a, DUMP_ARENA_MAX);
    dump_calls(b, s, &a, limit);
    dump_keys(b, s, &a, limit, false);
    dump_keys(b, s, &a, limit, true);
    dump_queues(b, s, &a);
    dump_nodes(b, s, &a);
    dump_leaders(b, s, &a);
    dump_cancel_requests(b, s, &a);
    arena_release(&a);
}

void dump_ids(struct buf *b, struct store *s, const struct bytes *ids, size_t n)
{
    struct arena a;
    struct pawl_err err;
    struct get g = { .ids = ids, .n = n, .with = WITH_INPUT | WITH_RESULT };
    arena_init(&a, DUMP_ARENA_MAX);
    OK(store_get(s, &a, &g, &err), &err);
    for (size_t i = 0; i < n; i++) {
        buf_addf(b, "get %s ", pawl_status_name(g.found[i]));
        if (g.found[i] == PAWL_OK)
            dump_call(b, &g.out[i]);
        else if (g.found[i] == PAWL_GONE)
            buf_addf(b, "%s created=%" PRId64 " finished=%" PRId64 "\n",
                     pawl_state_name(g.out[i].state), g.out[i].created_us, g.out[i].finished_us);
        else
            buf_add_char(b, '\n');
    }
    arena_release(&a);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int bytes_order(const void *x, const void *y)
{
    return bytes_cmp(*(const struct bytes *)x, *(const struct bytes *)y);
}

static void sorted(struct buf *b, const char *name, struct bytes *v, size_t n)
{
    if (n)
        qsort(v, n, sizeof *v, bytes_order);
    for (size_t i = 0; i < n; i++)
        field(b, name, v[i]);
}

static void answer_accept(struct buf *b, const struct accept *q)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct accepted *r = &q->out[i];
        buf_addf(b, "\n    %s duplicate=%d ", pawl_status_name(r->status), r->duplicate);
        struct call c = r->call;
        if (!r->duplicate || !q->want_result)
            c.spec.input = c.result = (struct payload){ 0 };
        if (r->status == PAWL_FULL)
            continue;
        if (r->status == PAWL_GONE)
            c = (struct call){ .spec.id = c.spec.id,
                               .state = c.state,
                               .created_us = c.created_us,
                               .finished_us = c.finished_us };
        dump_call(b, &c);
    }
}

static void answer_claim(struct buf *b, const struct claim *q)
{
    number(b, "until", q->until_us);
    number(b, "more", q->more);
    number(b, "next_due", q->next_due_us);
    for (size_t i = 0; i < q->n; i++) {
        buf_add_text(b, "\n    ");
        if (q->states && q->states[i].version) {
            buf_addf(b, "state=%d:", q->states[i].payload.form);
            dump_bytes(b, q->states[i].payload.bytes);
            buf_addf(b, " version=%" PRId64 " ", q->states[i].version);
        }
        dump_call(b, &q->calls[i]);
    }
}

static void answer_finish(struct buf *b, const struct finish *q)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct finish_item *f = &q->v[i];
        buf_addf(b, "\n    seq=%" PRId64 " %s", f->seq_found, pawl_state_name(f->state));
        number(b, "run_at", f->run_at_us);
        number(b, "finished", f->finished_us);
        counts(b, f->counts);
        number(b, "version", f->version);
        field(b, "error", f->error_out);
    }
}

static void answer_ok(struct buf *b, const struct op *op)
{
    switch (op->kind) {
    case OP_ACCEPT:
        answer_accept(b, &op->accept);
        break;
    case OP_CLAIM:
        answer_claim(b, &op->claim);
        break;
    case OP_FINISH:
        answer_finish(b, &op->finish);
        break;
    case OP_EXTEND:
        number(b, "until", op->extend.until_us);
        sorted(b, "cancelled", op->extend.cancelled, op->extend.n_cancelled);
        sorted(b, "timed_out", op->extend.timed_out, op->extend.n_timed_out);
        break;
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
        buf_addf(b, " seq=%" PRId64 " %s", op->by_id.seq, pawl_state_name(op->by_id.state));
        break;
    case OP_JOIN:
    case OP_LEAVE:
    case OP_BURY:
        number(b, "reclaimed", op->node.reclaimed);
        break;
    case OP_LEAD:
        number(b, "ours", op->lead.ours);
        number(b, "epoch", op->lead.epoch);
        number(b, "until", op->lead.until_us);
        break;
    case OP_SWEEP:
        number(b, "expired", op->sweep.expired);
        number(b, "reclaimed", op->sweep.reclaimed);
        number(b, "cancelled", op->sweep.cancelled);
        number(b, "joined", op->sweep.joined);
        number(b, "next", op->sweep.next_us);
        number(b, "more", op->sweep.more);
        break;
    case OP_OBJECT:
        number(b, "version", op->object.version);
        number(b, "updated", op->object.updated_us);
        number(b, "cancelled", op->object.cancelled);
        break;
    case OP_UNBLOCK:
        field(b, "id", op->unblock.id);
        break;
    case OP_GC:
        number(b, "removed", op->gc.removed);
        number(b, "forgotten", op->gc.forgotten);
        number(b, "next", op->gc.next_seq);
        number(b, "more", op->gc.more);
        break;
    case OP_REQUEUE:
        number(b, "leases", op->requeue.leases);
        number(b, "reclaimed", op->requeue.reclaimed);
        number(b, "more", op->requeue.more);
        break;
    case OP_PAUSE:
    case OP_BEAT:
    case OP_DRAIN:
    case OP_HANDLER:
    case OP_SCRIPT:
    case OP_FEATURE:
    case OP_WAKE:
    case OP_COUNT:
        break;
    }
}

/* The reason of a refusal, as far as the contract defines its wording. */
static void answer_refused(struct buf *b, const struct op *op)
{
    if (op->kind == OP_ACCEPT && op->accept.atomic) {
        buf_addf(b, " refused=%zu", op->accept.refused);
        if (op->status == PAWL_FULL)
            buf_addf(b, " %s", op->err.text);
    } else if (op->kind == OP_OBJECT) {
        number(b, "version", op->object.version);
        buf_addf(b, " %s", op->err.text);
    } else if (op->status == PAWL_STATE &&
               (op->kind == OP_CANCEL || op->kind == OP_RETRY || op->kind == OP_MOVE)) {
        buf_addf(b, " seq=%" PRId64 " %s", op->by_id.seq, pawl_state_name(op->by_id.state));
    } else if (op->kind == OP_FINISH && op->status == PAWL_INVALID &&
               !strstr(op->err.text, "named twice")) {
        buf_addf(b, " %s", op->err.text);
    }
}

void dump_answer(struct buf *b, const struct op *op)
{
    buf_addf(b, "%s %s", op_name(op->kind), pawl_status_name(op->status));
    if (op->status == PAWL_OK)
        answer_ok(b, op);
    else
        answer_refused(b, op);
    sorted(b, "ended", op->ended, op->n_ended);
    buf_add_char(b, '\n');
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void token_field(struct buf *b, struct token t)
{
    char text[33];
    token_text(t, text);
    buf_addf(b, " token=%.8s", text);
}

void dump_question(struct buf *b, const struct op *op)
{
    buf_addf(b, "%s", op_name(op->kind));
    switch (op->kind) {
    case OP_ACCEPT:
        buf_addf(b, "%s", op->accept.atomic ? " atomic" : "");
        for (size_t i = 0; i < op->accept.n; i++) {
            field(b, "id", op->accept.v[i].id);
            if (op->accept.v[i].key.data)
                field(b, "key", op->accept.v[i].key);
        }
        break;
    case OP_CLAIM:
        token_field(b, op->claim.token);
        number(b, "max", op->claim.max);
        number(b, "run_max", op->claim.run_max);
        number(b, "max_any", op->claim.max_any);
        for (size_t i = 0; i < op->claim.n_quick; i++)
            field(b, "quick", op->claim.quick[i]);
        number(b, "width", op->claim.width);
        number(b, "lease", op->claim.lease_us);
        number(b, "no_retry_alone", op->claim.no_retry_alone);
        break;
    case OP_FINISH:
        token_field(b, op->finish.token);
        for (size_t i = 0; i < op->finish.n; i++) {
            const struct finish_item *f = &op->finish.v[i];
            buf_addf(b, " [seq=%" PRId64, f->seq);
            field(b, "id", f->id);
            buf_addf(b, " how=%d send=%zu state=%d]", (int)f->how, f->n_send, (int)f->state_do);
        }
        break;
    case OP_EXTEND:
        token_field(b, op->extend.token);
        break;
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
        field(b, "id", op->by_id.id);
        if (op->kind == OP_MOVE) {
            number(b, "run_at", op->by_id.run_at_us);
            field(b, "queue", op->by_id.queue);
        }
        break;
    case OP_PAUSE:
        field(b, "queue", op->pause.queue);
        number(b, "paused", op->pause.paused);
        break;
    case OP_OBJECT:
        field(b, "type", op->object.type);
        field(b, "key", op->object.key);
        buf_addf(b, " how=%d cancel=%d", (int)op->object.how, op->object.cancel);
        number(b, "if_version", op->object.if_version);
        break;
    case OP_UNBLOCK:
        field(b, "key", op->unblock.key);
        number(b, "retry", op->unblock.retry);
        break;
    case OP_JOIN:
    case OP_BEAT:
    case OP_LEAVE:
    case OP_BURY:
    case OP_DRAIN:
        field(b, "node", op->node.node);
        field(b, "boot", op->node.boot);
        number(b, "beats", op->node.beats);
        break;
    case OP_LEAD:
        field(b, "role", op->lead.role);
        field(b, "node", op->lead.node);
        field(b, "boot", op->lead.boot);
        number(b, "resign", op->lead.resign);
        break;
    case OP_SWEEP:
        number(b, "max", op->sweep.max);
        break;
    case OP_GC:
        number(b, "max", op->gc.max);
        number(b, "ended_before", op->gc.ended_before_us);
        number(b, "after", op->gc.after_seq);
        number(b, "archive", op->gc.archive);
        break;
    case OP_REQUEUE:
        number(b, "max", op->requeue.max);
        number(b, "claimed_before", op->requeue.claimed_before_us);
        break;
    case OP_HANDLER:
    case OP_SCRIPT:
    case OP_FEATURE:
    case OP_WAKE:
    case OP_COUNT:
        break;
    }
    buf_add_char(b, '\n');
}
