/*
 * keys.c - GET /v1/keys and POST /v1/keys/{key}/unblock: keys on which calls wait or run, and
 * unblocking one that an ended call blocks.
 *
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
#include "model/fields.h"

struct keys_read {
    struct ask_read read; /* first */
    struct key_query query;
    struct key_rows rows;
};

/* ---- The list -------------------------------------------------------------------------------- */

static enum pawl_status keys_work(struct ask_read *rd, struct store *s)
{
    struct keys_read *kr = (struct keys_read *)rd;
    return store_keys(s, &rd->arena, &kr->query, &kr->rows, &rd->err);
}

static void key_add(struct buf *b, const struct key_row *r)
{
    json_add_comma(b);
    buf_add_char(b, '{');
    add_text(b, "key", r->key);
    add_int(b, "pending", r->pending);
    add_text(b, "head", r->head);
    add_text(b, "head_status",
             r->head_state ? bytes_of(pawl_state_name(r->head_state)) : BYTES_NONE);
    add_time(b, "since", r->since_us);
    add_bool(b, "blocked", r->blocked);
    add_text(b, "waiting_for", bytes_of(call_wait_name(r->waiting_for)));
    buf_add_char(b, '}');
}

static void keys_done(struct ask_read *rd)
{
    const struct key_rows *rows = &((struct keys_read *)rd)->rows;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"keys\":[");
    for (size_t i = 0; i < rows->n; i++)
        key_add(b, &rows->v[i]);
    buf_add_char(b, ']');
    list_next_name(b, rows->next);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_keys(struct ask *q)
{
    struct value limit = ask_query(q, "limit"), cursor = ask_query(q, "cursor");
    struct keys_read *kr = arena_zalloc(q->a, 1, sizeof *kr);
    if (!kr) {
        ask_no_memory(q);
        return;
    }
    kr->query = (struct key_query){ .blocked = ask_query(q, "blocked").n,
                                    .limit = limit.given ? (int)limit.n : LIST_DEFAULT };
    if (!list_cursor_name(q, cursor, &kr->query.after))
        return;
    kr->read.work = keys_work;
    kr->read.done = keys_done;
    ask_read(q, &kr->read);
}

/* ---- Unblock --------------------------------------------------------------------------------- */

struct unblock_in {
    struct bytes action;
};
static const struct field unblock_fields[] = {
    { "action", FIELD_WORD, offsetof(struct unblock_in, action), FIELD_MUST, .words = "skip|retry",
      .about = "skip: let the next run; retry: run the call that blocks once more, first" },
};
const struct shape unblock_shape = SHAPE("Unblock", unblock_fields);

static void unblocked(struct ask_write *w)
{
    struct ask *q = w->ask;
    const struct op *op = &w->job.op;
    if (op->status != PAWL_OK) {
        struct pawl_err err = op->err;
        err.status = op->status;
        ask_write_end(w);
        ask_fail(q, &err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "key", q->path[0]);
    add_text(b, "action", op->unblock.retry ? BYTES("retry") : BYTES("skip"));
    add_text(b, "id", op->unblock.id);
    buf_add_char(b, '}');
    ask_write_end(w);
    ask_reply(q, 200, b);
}

void route_unblock(struct ask *q)
{
    struct unblock_in in = { 0 };
    struct pawl_err err;
    struct ask_write *w = arena_zalloc(q->a, 1, sizeof *w);
    if (!w) {
        ask_no_memory(q);
        return;
    }
    err.status = body_object(q, &in, NULL, &err);
    if (err.status != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    w->job.op = (struct op){ .kind = OP_UNBLOCK,
                             .unblock = { .key = q->path[0],
                                          .retry = bytes_eq(in.action, BYTES("retry")) } };
    w->done = unblocked;
    ask_write(q, w);
}
