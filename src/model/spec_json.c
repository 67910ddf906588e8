/*
 * spec_json.c - a call as clients write it, read strictly into a call_spec (spec_json.h). Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/spec_json.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/needs.h"
#include "base/text.h"
#include "base/world.h"
#include "model/words.h"

struct spec_in {
    struct call_spec s;
    struct bytes input, bytes, on_dead, on_timeout;
    const struct json *backoff, *tags, *needs, *signal;
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
static const struct shape backoff_shape = { .name = "Backoff",
                                            .v = backoff_fields,
                                            .n = COUNT_OF(backoff_fields),
                                            .prefix = "backoff." };

static const struct field signal_fields[] = {
    { "name", FIELD_NAME, offsetof(struct signal_spec, name), FIELD_MUST,
      .about = "for which the run waits, now or later" },
    { "value", FIELD_JSON, offsetof(struct signal_spec, value), .dflt = "null",
      .about = "any JSON value" },
    { "key", FIELD_NAME, offsetof(struct signal_spec, key), FIELD_NULL,
      .about = "the same key is one signal" },
};
static const struct shape signal_shape = { .name = "StartSignal",
                                           .v = signal_fields,
                                           .n = COUNT_OF(signal_fields),
                                           .prefix = "signal." };

/* Names are checked by call_spec_settle(), for all ways to submit. The first field belongs only to
 * a session's request, the last two only to other calls: each shape is a part of this table. */
enum {
    F_ID = 1,
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
    [F_ID] = { "id", FIELD_TEXT, AT(s.id), FIELD_NULL, .dflt = "a UUIDv7 is made",
               .unit = NAME_UNIT,
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
    { "needs", FIELD_ARRAY, AT(needs), FIELD_NULL, .max = NEEDS_MAX, .dflt = "[]",
      .unit = "up to 16 names", .about = "capabilities: only a worker that has them all takes it" },
    { "run_timeout", FIELD_SECONDS, AT(s.run_timeout_us), FIELD_NULL | FIELD_ABOVE_0,
      .dflt = "never",
      .about = "it is cancelled this long after it was first due, whether it runs, waits or has "
               "not begun; a workflow undoes what it did" },
    { "key", FIELD_TEXT, AT(s.key), FIELD_NULL, .unit = NAME_UNIT,
      .about = "calls of one key run one at a time, in order" },
    { "signal", FIELD_OBJECT, AT(signal), FIELD_NULL, .shape = &signal_shape,
      .about = "for a workflow: start it, or signal the one that exists, in one commit" },
};
const struct shape spec_shape = { .name = "CallSpec",
                                  .v = spec_fields + 1,
                                  .n = COUNT_OF(spec_fields) - 2 };
const struct shape submit_shape = { .name = "Submit",
                                    .v = spec_fields + 1,
                                    .n = COUNT_OF(spec_fields) - 1 };
const struct shape session_shape = { .name = "SessionRequest",
                                     .v = spec_fields,
                                     .n = COUNT_OF(spec_fields) - 2 };

/* The call of a schedule's ticks: they bring the id and the time. */
#define BIT(i) (UINT64_C(1) << ((i)-1))
const struct shape tick_spec_shape = { .name = "TickSpec",
                                       .v = spec_fields + 1,
                                       .n = COUNT_OF(spec_fields) - 2,
                                       .without = BIT(F_ID) | BIT(F_RUN_AT) | BIT(F_EXPIRES_AT) };

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

enum pawl_status submit_read_json(struct arena *a, const struct json *object,
                                  int64_t call_timeout_us, struct call_spec *out,
                                  struct signal_spec *out_signal, struct pawl_err *err)
{
    struct spec_in in = { .s.timeout_us = call_timeout_us };
    *out_signal = (struct signal_spec){ .value = BYTES("null") };
    enum pawl_status st = read_as(a, object, &submit_shape, &in, err);
    if (st == PAWL_OK && in.signal)
        st = fields_read(a, in.signal, &signal_shape, out_signal, NULL, err);
    *out = in.s;
    return st;
}

enum pawl_status session_read_json(struct arena *a, const struct json *object,
                                   int64_t call_timeout_us, struct call_spec *out, bool *out_cancel,
                                   struct pawl_err *err)
{
    struct spec_in in = { .s.timeout_us = call_timeout_us };
    enum pawl_status st = read_as(a, object, &session_shape, &in, err);
    *out = in.s;
    *out_cancel = bytes_eq(in.on_timeout, BYTES("cancel"));
    return st;
}

enum pawl_status tick_read_json(struct arena *a, const struct json *object, int64_t call_timeout_us,
                                struct call_spec *out, struct pawl_err *err)
{
    struct spec_in in = { .s.timeout_us = call_timeout_us };
    enum pawl_status st = read_as(a, object, &tick_spec_shape, &in, err);
    *out = in.s;
    return st;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Write the member if its value is not the default, which `plain` has. */
static void field_write(struct buf *b, const struct field *f, const void *value, const void *plain)
{
    const struct bytes *text = value;
    char real[32], time[TIME_TEXT_LEN + 1];
    switch (f->kind) {
    case FIELD_TEXT:
        if (!text->data)
            return;
        json_add_name(b, f->name);
        json_add_string(b, *text);
        return;
    case FIELD_INT:
        if (*(const int *)value == *(const int *)plain)
            return;
        json_add_name(b, f->name);
        buf_add_int(b, *(const int *)value);
        return;
    case FIELD_REAL:
        if (*(const double *)value == *(const double *)plain)
            return;
        real_text(*(const double *)value, real);
        json_add_name(b, f->name);
        buf_add_text(b, real);
        return;
    case FIELD_SECONDS:
        if (*(const int64_t *)value == *(const int64_t *)plain)
            return;
        json_add_name(b, f->name);
        json_add_seconds(b, *(const int64_t *)value);
        return;
    case FIELD_TIME:
        if (*(const int64_t *)value == *(const int64_t *)plain)
            return;
        time_text(*(const int64_t *)value, time);
        json_add_name(b, f->name);
        json_add_string(b, bytes_of(time));
        return;
    default:
        return; /* Members that need more are written by others. */
    }
}

static void fields_write(struct buf *b, const struct shape *shape, const struct call_spec *s)
{
    struct spec_in in = { .s = *s }, plain = { 0 };
    call_spec_init(&plain.s);
    for (size_t i = 0; i < shape->n; i++)
        if (shape_has(shape, i))
            field_write(b, &shape->v[i], (const char *)&in + shape->v[i].at,
                        (const char *)&plain + shape->v[i].at);
}

static void input_write(struct buf *b, const struct payload *input)
{
    if (input->form == PAWL_JSON) {
        json_add_name(b, "input");
        buf_add_bytes(b, input->bytes);
    } else if (input->form == PAWL_BYTES) {
        json_add_name(b, "input_base64");
        json_add_base64(b, input->bytes);
    }
}

static void backoff_write(struct buf *b, const struct call_spec *s)
{
    size_t from = b->len;
    json_add_name(b, "backoff");
    buf_add_char(b, '{');
    size_t empty = b->len;
    fields_write(b, &backoff_shape, s);
    if (b->len == empty && buf_ok(b))
        b->len = from;
    else
        buf_add_char(b, '}');
}

static void tags_write(struct buf *b, const struct call_spec *s)
{
    if (!s->n_tags)
        return;
    json_add_name(b, "tags");
    buf_add_char(b, '{');
    for (size_t i = 0; i < s->n_tags; i++) {
        json_add_comma(b);
        json_add_string(b, s->tags[i].name);
        buf_add_char(b, ':');
        json_add_string(b, s->tags[i].value);
    }
    buf_add_char(b, '}');
}

static void needs_write(struct buf *b, const struct call_spec *s)
{
    if (!s->n_needs)
        return;
    json_add_name(b, "needs");
    buf_add_char(b, '[');
    for (size_t i = 0; i < s->n_needs; i++) {
        json_add_comma(b);
        json_add_string(b, s->needs[i]);
    }
    buf_add_char(b, ']');
}

void tick_write_json(struct buf *b, const struct call_spec *s, unsigned leave_out)
{
    buf_add_char(b, '{');
    fields_write(b, &tick_spec_shape, s);
    if (s->on_dead == PAWL_ON_DEAD_BLOCK) {
        json_add_name(b, "on_dead");
        buf_add_text(b, "\"block\"");
    }
    if (!(leave_out & TICK_NO_INPUT))
        input_write(b, &s->input);
    backoff_write(b, s);
    if (!(leave_out & TICK_NO_TAGS))
        tags_write(b, s);
    needs_write(b, s);
    buf_add_char(b, '}');
}
