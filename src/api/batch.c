/*
 * batch.c - POST /v1/calls/batch: up to 10,000 calls in one commit, as JSON or NDJSON.
 *
 * Reading and checking so many takes tens of milliseconds, so one of the loop's threads for work
 * does it; meanwhile only that thread touches the ask.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/ask_spec.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/submit.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/fields.h"
#include "model/spec_json.h"

/* One call of the batch: refused while it was read, or specs[at]. */
struct item {
    enum pawl_status status;
    const char *text;
    struct bytes id; /* absent when it is not a valid name */
    size_t at;
};

struct batch {
    struct ask_write write; /* first */
    struct loop_work work;
    struct ask *ask;
    bool atomic;
    struct item *items;
    size_t n_items;
    struct call_spec *specs;
    size_t n_specs;
    size_t *place; /* specs[k] is items[place[k]] */
    enum pawl_status status;
    struct pawl_err err;
};

struct batch_in {
    const struct json *calls;
    bool atomic;
};
static const struct field batch_fields[] = {
    { "calls", FIELD_ARRAY, offsetof(struct batch_in, calls), FIELD_MUST, .shape = &spec_shape,
      .unit = "1..10000", .about = "the calls, in order" },
    { "atomic", FIELD_BOOL, offsetof(struct batch_in, atomic), .dflt = "false",
      .about = "true: all are stored, or none" },
};
const struct shape batch_shape = SHAPE("Batch", batch_fields);

/* ---- Reading, on a thread for work ----------------------------------------------------------- */

static enum pawl_status make_room(struct batch *b, size_t n)
{
    struct arena *a = b->ask->a;
    if (n < 1 || n > BATCH_MAX)
        return err_set(&b->err, PAWL_INVALID, "field \"calls\": has %zu calls, not in 1..%d", n,
                       BATCH_MAX);
    b->items = arena_zalloc(a, n, sizeof *b->items);
    b->specs = arena_alloc(a, n * sizeof *b->specs);
    b->place = arena_alloc(a, n * sizeof *b->place);
    return a->failed ? err_no_memory(&b->err, "a batch") : PAWL_OK;
}

/* Add one call, or the reason why it is refused. `why` is set when the line could not be parsed. */
static enum pawl_status add_item(struct batch *b, const struct json *call, const char *why)
{
    struct pawl_err err = { .status = PAWL_INVALID };
    struct item *it = &b->items[b->n_items++];
    struct call_spec *s = &b->specs[b->n_specs];
    *s = (struct call_spec){ 0 };
    if (call)
        err.status = spec_of_json(b->ask, call, BYTES_NONE, s, &err);
    if (!name_fault(s->id))
        it->id = s->id;
    it->status = err.status;
    if (err.status == PAWL_OK) {
        b->write.job.len += s->input.bytes.len;
        b->place[b->n_specs] = b->n_items - 1;
        it->at = b->n_specs++;
        return PAWL_OK;
    }
    it->text = arena_text(b->ask->a, bytes_of(why ? why : err.text));
    return b->ask->a->failed ? err_no_memory(&b->err, "a batch") : PAWL_OK;
}

static enum pawl_status read_array(struct batch *b)
{
    struct batch_in in = { .atomic = b->atomic };
    struct json *body;
    enum pawl_status st = body_json(b->ask, false, &body, &b->err);
    if (st == PAWL_OK)
        st = fields_read(b->ask->a, body, &batch_shape, &in, NULL, &b->err);
    if (st == PAWL_OK)
        st = make_room(b, in.calls->count);
    b->atomic = in.atomic;
    for (const struct json *c = st == PAWL_OK ? in.calls->first : NULL; c && st == PAWL_OK;
         c = c->next)
        st = add_item(b, c, NULL);
    return st;
}

/* Take the next line that is not blank; false at the end. */
static bool next_line(struct bytes *rest, struct bytes *out)
{
    while (rest->len) {
        const char *end = memchr(rest->data, '\n', rest->len);
        size_t len = end ? (size_t)(end - rest->data) : rest->len, used = len + (end != NULL);
        *out = (struct bytes){ rest->data, len };
        *rest = (struct bytes){ rest->data + used, rest->len - used };
        if (out->len && out->data[out->len - 1] == '\r')
            out->len--;
        for (size_t i = 0; i < out->len; i++)
            if (out->data[i] != ' ' && out->data[i] != '\t')
                return true;
    }
    return false;
}

static enum pawl_status read_lines(struct batch *b)
{
    const struct http_request *r = b->ask->r;
    struct bytes rest = r->body, line;
    size_t n = 0;
    if (r->too_large)
        return err_set(&b->err, PAWL_TOO_LARGE, "the body is larger than %zu bytes",
                       b->ask->api->batch_len_max);
    while (next_line(&rest, &line))
        n++;
    enum pawl_status st = body_plain(r, &b->err);
    if (st == PAWL_OK)
        st = make_room(b, n);
    rest = r->body;
    while (st == PAWL_OK && next_line(&rest, &line)) {
        struct pawl_err why;
        struct json *call = NULL;
        st = json_parse(b->ask->a, line, &call, &why);
        if (st == PAWL_OK || st == PAWL_INVALID)
            st = add_item(b, st == PAWL_OK ? call : NULL, st == PAWL_OK ? NULL : why.text);
        else
            b->err = why;
    }
    return st;
}

static void batch_work(struct loop_work *w)
{
    struct batch *b = (struct batch *)((char *)w - offsetof(struct batch, work));
    b->status = body_is_ndjson(b->ask->r) ? read_lines(b) : read_array(b);
    b->err.status = b->status;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void item_refused(struct buf *out, const struct refusal *why)
{
    buf_add_char(out, '{');
    add_text(out, "id", why->id);
    buf_add_text(out, ",\"error\":");
    refusal_add(out, why);
    buf_add_char(out, '}');
}

static void item_add(struct buf *out, struct batch *b, const struct item *it)
{
    json_add_comma(out);
    if (it->status != PAWL_OK) {
        item_refused(out,
                     &(struct refusal){ .status = it->status, .text = it->text, .id = it->id });
        return;
    }
    struct accepted *r = &b->write.job.op.accept.out[it->at];
    accepted_hide(b->ask, r);
    if (r->status == PAWL_OK) {
        call_add(out, &r->call,
                 ask_show(b->ask, SHOW_LISTED | (r->duplicate ? SHOW_DUPLICATE : 0)));
        return;
    }
    char text[512];
    accepted_text(&b->specs[it->at], r, text, sizeof text);
    item_refused(out,
                 &(struct refusal){
                     .status = r->status, .text = text, .id = it->id, .state = r->call.state });
}

static void batch_reply(struct batch *b)
{
    struct ask *q = b->ask;
    struct buf *out = ask_buf(q);
    buf_add_text(out, "{\"calls\":[");
    for (size_t i = 0; i < b->n_items; i++)
        item_add(out, b, &b->items[i]);
    buf_add_text(out, "]}");
    ask_write_end(&b->write);
    ask_reply(q, 200, out);
}

/* The store refused the whole batch; with the index, if one call was the reason. */
static void batch_refuse(struct batch *b)
{
    struct ask *q = b->ask;
    const struct op *op = &b->write.job.op;
    struct pawl_err err = op->err;
    struct refusal why = { .status = op->status, .text = err.text };
    bool one = op->status == PAWL_CONFLICT || op->status == PAWL_GONE || op->status == PAWL_FULL;
    if (b->atomic && one) {
        size_t k = op->accept.refused;
        why.indexed = true;
        why.index = b->place[k];
        why.id = b->specs[k].id;
    }
    ask_write_end(&b->write);
    ask_refuse(q, &why);
}

static void batch_written(struct ask_write *w)
{
    struct batch *b = (struct batch *)w;
    if (w->job.op.status != PAWL_OK)
        batch_refuse(b);
    else
        batch_reply(b);
}

/* ---- The request ----------------------------------------------------------------------------- */

static bool refuse_first(struct batch *b)
{
    for (size_t i = 0; i < b->n_items; i++) {
        const struct item *it = &b->items[i];
        if (it->status == PAWL_OK)
            continue;
        ask_refuse(b->ask, &(struct refusal){ .status = it->status,
                                              .text = it->text,
                                              .id = it->id,
                                              .indexed = true,
                                              .index = i });
        return true;
    }
    return false;
}

static void batch_read(struct loop_work *w)
{
    struct batch *b = (struct batch *)((char *)w - offsetof(struct batch, work));
    if (b->status != PAWL_OK) {
        ask_fail(b->ask, &b->err);
        return;
    }
    if (b->atomic && refuse_first(b))
        return;
    if (!b->n_specs) {
        batch_reply(b);
        return;
    }
    b->write.job.op =
        (struct op){ .kind = OP_ACCEPT,
                     .accept = { .v = b->specs, .n = b->n_specs, .atomic = b->atomic } };
    b->write.job.weight = b->n_specs;
    b->write.done = batch_written;
    ask_write(b->ask, &b->write);
}

void route_batch(struct ask *q)
{
    struct pawl_err err;
    struct batch *b = arena_zalloc(q->a, 1, sizeof *b);
    if (!b) {
        ask_no_memory(q);
        return;
    }
    b->ask = q;
    b->atomic = ask_query(q, "atomic").n;
    b->work = (struct loop_work){ .work = batch_work, .done = batch_read };
    err.status = loop_work(q->api->loop, &b->work, &err);
    if (err.status != PAWL_OK)
        ask_fail(q, &err);
}
