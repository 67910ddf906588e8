/*
 * bulk.c - POST /v1/calls/retry and /v1/calls/cancel: find a page of calls, then change each of
 * them.
 *
 * Each call is an operation of its own, so a call that has moved on meanwhile is left alone and not
 * counted; all of them usually share one commit. Repeating the request continues where this one
 * ended: changed calls no longer match the filter, and `next` says whether there may be more.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/list.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/cursor.h"
#include "model/fields.h"
#include "model/words.h"

struct bulk_in {
    struct bytes status, queue, type, key, before;
    int limit;
};
static const struct field bulk_fields[] = {
    { "status", FIELD_TEXT, offsetof(struct bulk_in, status),
      .dflt = "every one that can be changed",
      .about = "only calls of this status: cancel takes pending, processing; retry takes failed, "
               "dead_letter, cancelled, expired" },
    { "queue", FIELD_NAME, offsetof(struct bulk_in, queue), .about = "only calls of this queue" },
    { "type", FIELD_NAME, offsetof(struct bulk_in, type), .about = "only calls of this type" },
    { "key", FIELD_NAME, offsetof(struct bulk_in, key), .about = "only calls of this key" },
    { "before", FIELD_TEXT, offsetof(struct bulk_in, before), FIELD_NULL,
      .unit = "RFC 3339, or a cursor",
      .about = "only calls accepted before this time; or the `next` of the last answer" },
    { "limit", FIELD_INT, offsetof(struct bulk_in, limit), 0, 1, LIST_MAX, .dflt = "100",
      .about = "how many calls to look at" },
};
const struct shape bulk_shape = SHAPE("Bulk", bulk_fields);

struct bulk_one {
    struct ask_write write; /* first */
    struct bulk *bulk;
};

struct bulk {
    struct ask_read read; /* first */
    struct ask *ask;
    enum op_kind kind;
    struct query query;
    struct page page;
    size_t n_out, changed;
    struct pawl_err err; /* the first failure that was not because of the state of a call */
};

/* Can a call of this state be changed this way? */
static bool bulk_fits(const struct bulk *k, enum pawl_state state)
{
    if (k->kind == OP_CANCEL)
        return state == PAWL_PENDING || state == PAWL_PROCESSING;
    return pawl_state_ended(state) && state != PAWL_COMPLETED;
}

static void bulk_reply(struct bulk *k)
{
    struct ask *q = k->ask;
    ask_read_end(&k->read);
    if (k->err.status != PAWL_OK && !k->changed) {
        ask_fail(q, &k->err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_int(b, "changed", (int64_t)k->changed);
    list_next(b, k->page.next_before);
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

static void bulk_written(struct ask_write *w)
{
    struct bulk *k = ((struct bulk_one *)w)->bulk;
    const struct op *op = &w->job.op;
    bool own = op->status == PAWL_STATE || op->status == PAWL_NOT_FOUND || op->status == PAWL_GONE;
    if (op->status == PAWL_OK)
        k->changed++;
    else if (!own && k->err.status == PAWL_OK)
        k->err = op->err;
    decided(w->ask->api, op);
    ask_write_end(w);
    if (!--k->n_out)
        bulk_reply(k);
}

static enum pawl_status bulk_work(struct ask_read *rd, struct store *s)
{
    struct bulk *k = (struct bulk *)rd;
    return store_list(s, &rd->arena, &k->query, &k->page, &rd->err);
}

static void bulk_found(struct ask_read *rd)
{
    struct bulk *k = (struct bulk *)rd;
    struct ask *q = rd->ask;
    struct bulk_one *v = arena_zalloc(q->a, k->page.n ? k->page.n : 1, sizeof *v);
    if (rd->status == PAWL_OK && !v)
        rd->status = err_no_memory(&rd->err, "changing calls");
    if (ask_read_failed(rd))
        return;
    k->n_out = 1; /* Counts this function, so that the answer waits until all writes are posted. */
    for (size_t i = 0; i < k->page.n; i++) {
        if (!bulk_fits(k, k->page.v[i].state))
            continue;
        k->n_out++;
        v[i].bulk = k;
        v[i].write.job.op = (struct op){ .kind = k->kind, .by_id = { .id = k->page.v[i].spec.id } };
        v[i].write.done = bulk_written;
        ask_write(q, &v[i].write);
    }
    if (!--k->n_out)
        bulk_reply(k);
}

static enum pawl_status bulk_read(struct ask *q, struct bulk *k, struct pawl_err *err)
{
    struct bulk_in in = { .limit = LIST_DEFAULT };
    enum pawl_status st = body_object(q, &in, NULL, err);
    if (st != PAWL_OK)
        return st;
    k->query =
        (struct query){ .queue = in.queue, .type = in.type, .key = in.key, .limit = in.limit };
    if (in.before.data && !cursor_read(in.before, &k->query.before_seq) &&
        !time_parse(in.before, &k->query.until_us))
        return err_set(err, PAWL_INVALID,
                       "field \"before\": is \"%.*s\", not a time nor the `next` of an earlier "
                       "answer",
                       BYTES_ARG(text_shown(q->a, in.before)));
    const char *words = k->kind == OP_CANCEL ? CANCEL_WORDS : RETRY_WORDS;
    if (call_state_of(in.status) && !word_in(words, in.status)) {
        char expected[WORDS_TEXT_MAX];
        words_text(words, expected);
        return err_set(
            err, PAWL_INVALID, "field \"status\": calls that are %.*s cannot be %s; expected %s",
            BYTES_ARG(in.status), k->kind == OP_CANCEL ? "cancelled" : "retried", expected);
    }
    struct list_words w = { .status = in.status, .words = words };
    return list_filters(q, &w, &k->query, err);
}

static void bulk_begin(struct ask *q, enum op_kind kind)
{
    struct pawl_err err;
    struct bulk *k = arena_zalloc(q->a, 1, sizeof *k);
    if (!k) {
        ask_no_memory(q);
        return;
    }
    k->ask = q;
    k->kind = kind;
    k->read.work = bulk_work;
    k->read.done = bulk_found;
    err.status = bulk_read(q, k, &err);
    if (err.status == PAWL_OK)
        ask_read(q, &k->read);
    else
        ask_fail(q, &err);
}

void route_cancel_many(struct ask *q)
{
    bulk_begin(q, OP_CANCEL);
}

void route_retry_many(struct ask *q)
{
    bulk_begin(q, OP_RETRY);
}
