/*
 * read.c - reads: calls by id, pages of calls, attempts, queues, nodes, roles, cancel requests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/mem/mem.h"

static struct mem_db *lock(struct store *s)
{
    struct mem_db *db = ((struct mem *)s)->db;
    pthread_mutex_lock(&db->lock);
    return db;
}

static enum pawl_status unlock(struct mem_db *db, const struct arena *a, struct pawl_err *err)
{
    pthread_mutex_unlock(&db->lock);
    return a->failed ? err_no_memory(err, "reading from mem") : PAWL_OK;
}

static int64_t now_of(const struct store *s)
{
    return world_now(((const struct mem *)s)->world);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

enum pawl_status mem_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err)
{
    int64_t now_us = now_of(s);
    g->found = arena_zalloc(a, g->n, sizeof *g->found);
    g->out = arena_zalloc(a, g->n, sizeof *g->out);
    if (!g->found || !g->out)
        return err_no_memory(err, "reading from mem");
    struct mem_db *db = lock(s);
    for (size_t i = 0; i < g->n && !a->failed; i++) {
        const struct mem_call *c = call_by_id(db, g->ids[i]);
        CHECK(!c || bytes_eq(c->id, g->ids[i]));
        g->found[i] = !c ? PAWL_NOT_FOUND : c->now.place == PLACE_GONE ? PAWL_GONE : PAWL_OK;
        if (c && !call_show(a, c, now_us, g->with, &g->out[i]))
            break;
    }
    return unlock(db, a, err);
}

static bool given_and_other(struct bytes filter, struct bytes value)
{
    return filter.data && !bytes_eq(filter, value);
}

static bool tagged(const struct call_spec *s, const struct query *q)
{
    if (!q->tag_name.data)
        return true;
    for (size_t i = 0; i < s->n_tags; i++)
        if (bytes_eq(s->tags[i].name, q->tag_name) &&
            !given_and_other(q->tag_value, s->tags[i].value))
            return true;
    return false;
}

static bool matches(const struct mem_call *m, const struct query *q)
{
    if (m->now.place == PLACE_GONE)
        return false;
    struct call c = call_model(m, 0);
    return (!q->state || c.state == q->state) && (!q->since_us || c.created_us >= q->since_us) &&
           (!q->until_us || c.created_us < q->until_us) &&
           !given_and_other(q->queue, c.spec.queue) && !given_and_other(q->type, c.spec.type) &&
           !given_and_other(q->method, c.spec.method) && !given_and_other(q->key, c.spec.key) &&
           !given_and_other(q->parent, c.spec.parent) &&
           !given_and_other(q->caller, c.spec.caller) &&
           !given_and_other(q->client, c.spec.client) && tagged(&c.spec, q);
}

enum pawl_status mem_list(struct store *s, struct arena *a, const struct query *q, struct page *out,
                          struct pawl_err *err)
{
    int64_t now_us = now_of(s);
    out->v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v);
    if (!out->v)
        return err_no_memory(err, "reading from mem");
    struct mem_db *db = lock(s);
    int64_t seq = q->before_seq && q->before_seq <= db->last_seq ? q->before_seq - 1 : db->last_seq;
    for (int looked = 0; seq > 0 && out->n < (size_t)q->limit && looked < LIST_LOOK_MAX; seq--) {
        const struct mem_call *c = db->calls[seq - 1];
        CHECK(!c || c->seq == seq);
        looked++;
        if (c && matches(c, q) && !call_show(a, c, now_us, q->with, &out->v[out->n++]))
            break;
    }
    out->next_before = seq > 0 ? seq + 1 : 0;
    return unlock(db, a, err);
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static void attempts_copy(struct arena *a, const struct mem_call *c, struct attempts *out)
{
    size_t n = 0;
    for (const struct attempt_row *t = c->now.newest_attempt; t && n < ATTEMPTS_SHOWN_MAX;
         t = t->older)
        n += attempt_shown(t);
    out->v = arena_zalloc(a, n + 1, sizeof *out->v);
    if (!out->v)
        return;
    out->n = n;
    for (const struct attempt_row *t = c->now.newest_attempt; t && n > 0; t = t->older) {
        if (!attempt_shown(t))
            continue;
        CHECK(t->attempt_no > 0 && t->finished_us > 0);
        out->v[--n] = (struct attempt){ .attempt_no = t->attempt_no,
                                        .how = (enum ending)t->how,
                                        .error = arena_copy(a, t->error),
                                        .node = arena_copy(a, t->node),
                                        .started_us = t->started_us,
                                        .finished_us = t->finished_us };
    }
}

enum pawl_status mem_attempts(struct store *s, struct arena *a, struct bytes id,
                              struct attempts *out, struct pawl_err *err)
{
    struct mem_db *db = lock(s);
    const struct mem_call *c = call_by_id(db, id);
    bool gone = c && c->now.place == PLACE_GONE;
    if (c && !gone)
        attempts_copy(a, c, out);
    enum pawl_status st = unlock(db, a, err);
    if (!c)
        return err_set(err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(id));
    if (gone)
        return err_set(err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                       BYTES_ARG(id));
    return st;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static int queue_cmp(const void *a, const void *b)
{
    return bytes_cmp(((const struct queue_row *)a)->queue, ((const struct queue_row *)b)->queue);
}

static struct queue_row *row_of(struct queue_rows *rows, const struct mem_call *c)
{
    struct queue_row key = { .queue = c->now.lane->queue->by_name.name };
    struct queue_row *row = bsearch(&key, rows->v, rows->n, sizeof key, queue_cmp);
    CHECK(row); /* a queue with a lane is always listed */
    return row;
}

static void count_up(int64_t *n)
{
    if (*n < COUNT_MAX)
        ++*n;
}

static void count_pending(struct queue_row *row, const struct mem_call *c, int64_t now_us)
{
    count_up(&row->pending);
    if (c->now.run_at_us > now_us)
        return;
    count_up(&row->due);
    if (!row->oldest_due_us || c->now.run_at_us < row->oldest_due_us)
        row->oldest_due_us = c->now.run_at_us;
}

/* A held call that has not begun counts as pending, as it is shown. */
static void count_calls(const struct mem_db *db, int64_t now_us, struct queue_rows *out)
{
    const struct tree *all[] = { &db->ready, &db->delayed, &db->held };
    struct tree_key first = KEY(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        for (struct tree_node *n = tree_from(all[i], first); n; n = tree_after(all[i], n)) {
            const struct mem_call *c = call_at(n);
            CHECK(!pawl_state_ended(c->now.state));
            if (c->now.place == PLACE_HELD && call_begun(c))
                count_up(&row_of(out, c)->processing);
            else
                count_pending(row_of(out, c), c, now_us);
        }
    }
    for (struct table_node *t = table_next(&db->keys, NULL); t; t = table_next(&db->keys, t)) {
        const struct mem_key *k = THING_OF(t, struct mem_key, by_name);
        for (struct mem_call *c = line_first(k); c; c = line_next(k, c))
            if (c->now.place == PLACE_LINE)
                count_pending(row_of(out, c), c, now_us);
    }
}

static bool has_lane(const struct mem_db *db, const struct queue *q)
{
    for (struct table_node *t = table_next(&db->lanes, NULL); t; t = table_next(&db->lanes, t))
        if (THING_OF(t, struct lane, by_name)->queue == q)
            return true;
    return false;
}

/* A queue is listed once a call was accepted for it, and while it is paused. */
enum pawl_status mem_queues(struct store *s, struct arena *a, struct queue_rows *out,
                            struct pawl_err *err)
{
    int64_t now_us = now_of(s);
    struct mem_db *db = lock(s);
    out->v = arena_zalloc(a, db->queues.count + 1, sizeof *out->v);
    if (!out->v)
        return unlock(db, a, err);
    for (struct table_node *t = table_next(&db->queues, NULL); t; t = table_next(&db->queues, t)) {
        const struct queue *q = THING_OF(t, struct queue, by_name);
        if (q->paused || has_lane(db, q))
            out->v[out->n++] =
                (struct queue_row){ .queue = arena_copy(a, t->name), .paused = q->paused };
    }
    qsort(out->v, out->n, sizeof *out->v, queue_cmp);
    if (!a->failed)
        count_calls(db, now_us, out);
    return unlock(db, a, err);
}

/* ---- Nodes and cancel requests --------------------------------------------------------------- */

static int node_cmp(const void *a, const void *b)
{
    return bytes_cmp(((const struct node_row *)a)->node, ((const struct node_row *)b)->node);
}

enum pawl_status mem_nodes(struct store *s, struct arena *a, struct node_rows *out,
                           struct pawl_err *err)
{
    struct mem_db *db = lock(s);
    out->v = arena_zalloc(a, db->nodes.count + 1, sizeof *out->v);
    if (!out->v)
        return unlock(db, a, err);
    for (struct table_node *t = table_next(&db->nodes, NULL); t; t = table_next(&db->nodes, t)) {
        const struct mem_node *n = THING_OF(t, struct mem_node, by_name);
        out->v[out->n++] = (struct node_row){ .node = arena_copy(a, n->name),
                                              .boot = arena_copy(a, n->boot),
                                              .host = arena_copy(a, n->host),
                                              .version = arena_copy(a, n->version),
                                              .address = arena_copy(a, n->address),
                                              .roles = arena_copy(a, n->roles),
                                              .queues = arena_copy(a, n->queues),
                                              .has = arena_copy(a, n->has),
                                              .dead = n->now.dead,
                                              .drain = n->now.drain,
                                              .state = n->now.state,
                                              .connections = n->now.connections,
                                              .cpu_milli = n->now.cpu_milli,
                                              .memory = n->now.memory,
                                              .slots = n->now.slots,
                                              .busy = n->now.busy,
                                              .beats = n->now.beats,
                                              .started_us = n->started_us,
                                              .beat_us = n->now.beat_us };
    }
    qsort(out->v, out->n, sizeof *out->v, node_cmp);
    return unlock(db, a, err);
}

enum pawl_status mem_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                             struct pawl_err *err)
{
    struct mem_db *db = lock(s);
    out->v = arena_zalloc(a, COUNT_OF(db->leaders), sizeof *out->v);
    for (size_t i = 0; out->v && i < COUNT_OF(db->leaders); i++) {
        const struct leader_stand *l = &db->leaders[i].now;
        struct leader_row *r = &out->v[out->n++];
        *r = (struct leader_row){ .role = bytes_of(db->leaders[i].role), .epoch = l->epoch };
        if (!l->until_us)
            continue;
        r->node = arena_copy(a, bytes_of(l->node));
        r->boot = arena_copy(a, bytes_of(l->boot));
        r->acquired_us = l->acquired_us;
        r->until_us = l->until_us;
    }
    return unlock(db, a, err);
}

static int seq_cmp(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum pawl_status mem_cancel_requests(struct store *s, struct arena *a, struct cancel_requests *out,
                                     struct pawl_err *err)
{
    struct tree_key first = KEY(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN);
    struct mem_db *db = lock(s);
    size_t n = 0;
    for (struct tree_node *t = tree_from(&db->held, first); t; t = tree_after(&db->held, t))
        n += call_at(t)->now.cancel_requested;
    out->seqs = arena_zalloc(a, n + 1, sizeof *out->seqs);
    for (struct tree_node *t = tree_from(&db->held, first); out->seqs && t;
         t = tree_after(&db->held, t))
        if (call_at(t)->now.cancel_requested)
            out->seqs[out->n++] = call_at(t)->seq;
    if (out->seqs)
        qsort(out->seqs, out->n, sizeof *out->seqs, seq_cmp);
    return unlock(db, a, err);
}
