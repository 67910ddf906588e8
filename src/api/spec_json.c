/*
 * spec_json.c - a call as clients write it, read strictly into a call_spec (spec_json.h). Pure,
 * except that it makes ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/spec_json.h"

#include "api/ask.h"
#include "api/fields.h"
#include "api/internal.h"
#include "api/routes.h"
#include "api/words.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/needs.h"

struct spec_in {
    struct call_spec s;
    struct bytes input, bytes, on_dead, on_timeout;
    const struct json *backoff, *tags, *needs;
};

#define AT(field) offsetof(struct spec_in, field)
/* Names are checked when the call is settled. */
#define NAME_UNIT "1..255 bytes"

static const struct field backoff_fields[] = {
    { "base", FIELD_SECONDS, AT(s.backoff.base_us), .dflt = "1",
      .about = "how long to wait before the second attempt" },
    { "factor", FIELD_REAL, AT(s.backoff.factor), .dflt = "2", .unit = "1..1000",
      .about = "each further wait is this many times the one before" },
    { "max", FIELD_SECONDS, AT(s.backoff.max_us), .dflt = "300", .about = "the longest wait" },
    { "jitter", FIELD_REAL, AT(s.backoff.jitter), .dflt = "0.1", .unit = "0..1",
      .about = "give or take this share of the wait" },
};
static const struct shape backoff_shape = { "Backoff", backoff_fields, COUNT_OF(backoff_fields),
                                            "backoff." };

/* Names are checked by call_spec_settle(), for all ways to submit. The first field belongs only to
 * a session's request, the last only to other calls: each shape is a part of this table. */
enum {
    F_INPUT = 5,
    F_BYTES = 6,
    F_DELAY = 9,
    F_RUN_AT = 10,
    F_TIMEOUT = 14,
    F_EXPIRES_IN = 15,
    F_EXPIRES_AT = 16,
    F_KEEP = 17
};
static const struct field spec_fields[] = {
    { "on_timeout", FIELD_WORD, AT(on_timeout), .words = "wait|cancel", .dflt = "\"wait\"",
      .about = "when the wait is over: stay in line, or be cancelled if it has not begun" },
    { "id", FIELD_TEXT, AT(s.id), FIELD_NULL, .dflt = "a UUIDv7 is made", .unit = NAME_UNIT,
      .about = "what the call is known by; a repeat with the same id takes effect once" },
    { "type", FIELD_TEXT, AT(s.type), FIELD_MUST, .unit = NAME_UNIT,
      .about = "what kind of call it is: workers say which types they serve" },
    { "method", FIELD_TEXT, AT(s.method), .dflt = "\"run\"", .unit = NAME_UNIT,
      .about = "what of the type is called" },
    { "queue", FIELD_TEXT, AT(s.queue), .dflt = "\"default\"", .unit = NAME_UNIT,
      .about = "where it waits" },
    [F_INPUT] = { "input", FIELD_JSON, AT(input), .dflt = "null",
                  .about = "any JSON value, kept byte for byte" },
    [F_BYTES] = { "input_base64", FIELD_BASE64, AT(bytes), FIELD_NULL,
                  .about = "any bytes, instead of input" },
    { "priority", FIELD_INT, AT(s.priority), 0, PRIORITY_MIN, PRIORITY_MAX, .dflt = "0",
      .about = "higher first; inside one key order wins" },
    { "on_dead", FIELD_WORD, AT(on_dead), .words = "skip|block", .dflt = "\"skip\"",
      .about = "with a key, what its end as failed or dead_letter does: skip lets the next run, "
               "block holds the key until it is unblocked" },
    [F_DELAY] = { "delay", FIELD_SECONDS, AT(s.delay_us), .dflt = "0",
                  .about = "run it no earlier than this long from now" },
    [F_RUN_AT] = { "run_at", FIELD_TIME, AT(s.run_at_us), FIELD_NULL,
                   .about = "run it no earlier than this, instead of delay" },
    { "max_attempts", FIELD_INT, AT(s.max_attempts), 0, 1, ATTEMPTS_MAX, .dflt = "3",
      .about = "attempts that may end in an error or timeout" },
    { "max_lost", FIELD_INT, AT(s.max_lost), 0, 1, ATTEMPTS_MAX, .dflt = "5",
      .about = "attempts whose owner may die" },
    { "backoff", FIELD_OBJECT, AT(backoff), .shape = &backoff_shape, .dflt = "its members' own",
      .about = "how long to wait before the next attempt" },
    [F_TIMEOUT] = { "timeout", FIELD_SECONDS, AT(s.timeout_us), FIELD_ABOVE_0,
                    .dflt = "the setting call_timeout, 60",
                    .about = "how long an attempt may take" },
    [F_EXPIRES_IN] = { "expires_in", FIELD_SECONDS, AT(s.expires_in_us), FIELD_NULL,
                       .dflt = "never",
                       .about = "it ends expired when it has not begun this long from now" },
    [F_EXPIRES_AT] = { "expires_at", FIELD_TIME, AT(s.expires_at_us), FIELD_NULL,
                       .about = "the same as a time, instead of expires_in" },
    [F_KEEP] = { "keep", FIELD_SECONDS, AT(s.keep_us), FIELD_NULL,
                 .dflt = "the setting retention, 7 days",
                 .about = "how long it is kept after its end" },
    { "caller", FIELD_TEXT, AT(s.caller), FIELD_NULL, .unit = NAME_UNIT,
      .about = "who asked; stored, shown, filtered by" },
    { "parent", FIELD_TEXT, AT(s.parent), FIELD_NULL, .unit = NAME_UNIT,
      .about = "the id of the call that asked" },
    { "traceparent", FIELD_TEXT, AT(s.traceparent), FIELD_NULL, .unit = "W3C trace context",
      .about = "the trace it belongs to" },
    { "tags", FIELD_OBJECT, AT(tags), .dflt = "{}", .unit = "up to 16 pairs",
      .about = "short strings, stored, shown, filtered by" },
    { "needs", FIELD_ARRAY, AT(needs), FIELD_NULL, .dflt = "[]", .unit = "up to 16 names",
      .about = "capabilities: only a worker that has them all takes it" },
    { "key", FIELD_TEXT, AT(s.key), FIELD_NULL, .unit = NAME_UNIT,
      .about = "calls of one key run one at a time, in order" },
};
const struct shape spec_shape = { "CallSpec", spec_fields + 1, COUNT_OF(spec_fields) - 1, NULL };
const struct shape session_shape = { "SessionRequest", spec_fields, COUNT_OF(spec_fields) - 1,
                                     NULL };

static enum pawl_status read_tags(struct arena *a, const struct json *tags, struct call_spec *s,
                                  struct pawl_err *err)
{
    if (tags->count > TAG_MAX)
        return err_set(err, PAWL_INVALID, "field \"tags\": has %zu tags, limit %d", tags->count,
                       TAG_MAX);
    struct tag *v = arena_zalloc(a, tags->count ? tags->count : 1, sizeof *v);
    size_t n = 0;
    for (const struct json *t = tags->first; v && t; t = t->next) {
        if (t->kind != JSON_STRING)
            return err_set(err, PAWL_INVALID, "field \"tags\": \"%.*s\" is %.*s, not a string",
                           BYTES_ARG(text_shown(a, t->name)), (int)MIN(t->raw.len, 40),
                           t->raw.data);
        v[n++] = (struct tag){ json_name(a, t), json_string(a, t) };
    }
    s->tags = v;
    s->n_tags = n;
    return a->failed ? err_no_memory(err, "a call's tags") : PAWL_OK;
}

static bool both(uint64_t given, int x, int y)
{
    return given >> x & 1 && given >> y & 1;
}

static enum pawl_status twice(struct pawl_err *err, const char *field, const char *with)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": is given together with \"%s\"", field, with);
}

/* Refuse what was given twice, and replace given zeros: 0 means "not given" from here on. */
static enum pawl_status settle_given(struct spec_in *in, uint64_t given, struct pawl_err *err)
{
    struct call_spec *s = &in->s;
    if (both(given, F_INPUT, F_BYTES))
        return twice(err, "input_base64", "input");
    if (both(given, F_DELAY, F_RUN_AT) && s->delay_us)
        return twice(err, "run_at", "delay");
    if (both(given, F_EXPIRES_IN, F_EXPIRES_AT))
        return twice(err, "expires_at", "expires_in");
    if (given >> F_EXPIRES_IN & 1 && !s->expires_in_us)
        s->expires_in_us = 1;
    if (given >> F_KEEP & 1 && !s->keep_us)
        s->keep_us = 1;
    if (given >> F_INPUT & 1)
        s->input = (struct payload){ PAWL_JSON, in->input };
    if (given >> F_BYTES & 1)
        s->input = (struct payload){ PAWL_BYTES, in->bytes };
    return PAWL_OK;
}

static enum pawl_status read_as(struct arena *a, const struct json *object,
                                const struct shape *shape, struct spec_in *in, struct pawl_err *err)
{
    uint64_t given;
    int64_t call_timeout_us = in->s.timeout_us;
    call_spec_init(&in->s);
    if (call_timeout_us)
        in->s.timeout_us = call_timeout_us;
    if (object->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "a call must be a JSON object, it is %.*s",
                       (int)MIN(object->raw.len, 40), object->raw.data);
    enum pawl_status st = fields_read(a, object, shape, in, &given, err);
    if (st == PAWL_OK && in->backoff)
        st = fields_read(a, in->backoff, &backoff_shape, in, NULL, err);
    if (st == PAWL_OK && in->tags)
        st = read_tags(a, in->tags, &in->s, err);
    if (st == PAWL_OK)
        st = needs_of_json(a, in->needs, &(struct needs_field){ "needs", NEEDS_MAX }, &in->s.needs,
                           &in->s.n_needs, err);
    if (st == PAWL_OK)
        st = settle_given(in, given << (shape->v - spec_fields), err);
    if (bytes_eq(in->on_dead, BYTES("block")))
        in->s.on_dead = PAWL_ON_DEAD_BLOCK;
    return st;
}

enum pawl_status spec_read_json(struct arena *a, const struct json *object, int64_t call_timeout_us,
                                struct call_spec *out, struct pawl_err *err)
{
    struct spec_in in = { .s.timeout_us = call_timeout_us };
    enum pawl_status st = read_as(a, object, &spec_shape, &in, err);
    *out = in.s;
    return st;
}

enum pawl_status session_of_json(struct ask *q, const struct json *object, struct call_spec *out,
                                 bool *out_cancel, struct pawl_err *err)
{
    struct spec_in in = { .s.timeout_us = q->api->call_timeout_us };
    enum pawl_status st = read_as(q->a, object, &session_shape, &in, err);
    *out = in.s;
    *out_cancel = bytes_eq(in.on_timeout, BYTES("cancel"));
    return st;
}

enum pawl_status spec_complete(struct ask *q, struct bytes header_id, struct call_spec *out,
                               struct pawl_err *err)
{
    if (header_id.data && out->id.data && !bytes_eq(header_id, out->id))
        return err_set(
            err, PAWL_INVALID, "field \"id\": is \"%.*s\", and Idempotency-Key says \"%.*s\"",
            BYTES_ARG(text_shown(q->a, out->id)), BYTES_ARG(text_shown(q->a, header_id)));
    if (header_id.data)
        out->id = header_id;
    out->client = q->who.name;
    if (out->input.bytes.len > q->api->input_len_max)
        return err_set(err, PAWL_TOO_LARGE, "field \"input\": is %zu bytes, limit %zu",
                       out->input.bytes.len, q->api->input_len_max);
    return call_spec_settle(q->a, q->api->world, out, err);
}

enum pawl_status spec_of_json(struct ask *q, const struct json *object, struct bytes header_id,
                              struct call_spec *out, struct pawl_err *err)
{
    enum pawl_status st = spec_read_json(q->a, object, q->api->call_timeout_us, out, err);
    return st == PAWL_OK ? spec_complete(q, header_id, out, err) : st;
}

/* ---- Idempotency-Key ------------------------------------------------------------------------- */

/* The content of a structured string (RFC 8941), without quotes and backslashes. Absent: malformed.
 */
static struct bytes unquote(struct arena *a, struct bytes h)
{
    char *out = arena_alloc(a, h.len), *put = out;
    if (!out)
        return BYTES_NONE;
    for (size_t i = 1; i + 1 < h.len; i++) {
        if (h.data[i] == '"')
            return BYTES_NONE;
        if (h.data[i] == '\\' && (++i + 1 >= h.len || (h.data[i] != '"' && h.data[i] != '\\')))
            return BYTES_NONE;
        *put++ = h.data[i];
    }
    return (struct bytes){ out, (size_t)(put - out) };
}

enum pawl_status ask_idempotency_key(struct ask *q, struct bytes *out, struct pawl_err *err)
{
    struct bytes h = http_header(q->r, "idempotency-key");
    *out = h;
    if (!h.data)
        return PAWL_OK;
    if (http_header_count(q->r, "idempotency-key") > 1)
        return err_set(err, PAWL_INVALID, "field \"Idempotency-Key\": is given twice");
    if (h.len >= 1 && h.data[0] == '"') {
        *out = h.len >= 2 && h.data[h.len - 1] == '"' ? unquote(q->a, h) : BYTES_NONE;
        if (!out->data)
            return err_set(
                err, PAWL_INVALID,
                "field \"Idempotency-Key\": begins with a quote and is not a quoted string "
                "(RFC 8941)");
    }
    if (!out->len)
        return err_set(err, PAWL_INVALID, "field \"Idempotency-Key\": is empty");
    return PAWL_OK;
}
