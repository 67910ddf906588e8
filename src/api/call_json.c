/*
 * call_json.c - a call as clients see it: every field of the contract in its order, payloads byte
 * for byte (call_json.h).
 *
 * It is written for every answer, so names are literals and nothing goes through printf.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/call_json.h"

#include "api/ask.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

/* How much of an input or result a list shows. */
#define CUT_LEN 4096

#define LIT(b, literal) buf_add(b, literal, sizeof(literal) - 1)

/* ---- Members --------------------------------------------------------------------------------- */

/* Fast path for text that needs no escape, which is nearly all of it. */
static void put_string(struct buf *b, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            json_add_string(b, text);
            return;
        }
    }
    buf_add_char(b, '"');
    buf_add_bytes(b, text);
    buf_add_char(b, '"');
}

static void put_text(struct buf *b, struct bytes text)
{
    if (text.data)
        put_string(b, text);
    else
        LIT(b, "null");
}

static void put_time(struct buf *b, int64_t us)
{
    char text[TIME_TEXT_LEN + 3];
    if (!us) {
        LIT(b, "null");
        return;
    }
    text[0] = '"';
    time_text(us, text + 1);
    text[TIME_TEXT_LEN + 1] = '"';
    buf_add(b, text, TIME_TEXT_LEN + 2);
}

static void put_int_or_null(struct buf *b, int64_t n, bool there)
{
    if (there)
        buf_add_int(b, n);
    else
        LIT(b, "null");
}

static void put_bool(struct buf *b, bool v)
{
    if (v)
        LIT(b, "true");
    else
        LIT(b, "false");
}

/* `,"name":` */
static void put_name(struct buf *b, const char *name)
{
    json_add_comma(b);
    buf_add_char(b, '"');
    buf_add_text(b, name);
    buf_add(b, "\":", 2);
}

void add_text(struct buf *b, const char *name, struct bytes text)
{
    put_name(b, name);
    put_text(b, text);
}

void add_int(struct buf *b, const char *name, int64_t n)
{
    put_name(b, name);
    buf_add_int(b, n);
}

void add_bool(struct buf *b, const char *name, bool v)
{
    put_name(b, name);
    put_bool(b, v);
}

void add_time(struct buf *b, const char *name, int64_t us)
{
    put_name(b, name);
    put_time(b, us);
}

void add_seconds(struct buf *b, const char *name, int64_t us)
{
    put_name(b, name);
    json_add_seconds(b, us);
}

void add_raw(struct buf *b, const char *name, struct bytes json)
{
    put_name(b, name);
    buf_add_bytes(b, json.data ? json : BYTES("null"));
}

/* ---- Payloads -------------------------------------------------------------------------------- */

bool add_payload(struct buf *b, const char *name, const char *name_base64, struct payload p,
                 size_t max)
{
    bool cut = max && p.form != PAWL_NOTHING && p.bytes.len > max;
    put_name(b, name);
    if (p.form == PAWL_JSON && cut)
        json_add_string(b, utf8_cut(p.bytes, max)); /* Half a JSON value is no JSON, so its text is
                                                       shown as a string. */
    else if (p.form == PAWL_JSON)
        buf_add_bytes(b, p.bytes);
    else
        LIT(b, "null");
    put_name(b, name_base64);
    if (p.form == PAWL_BYTES)
        json_add_base64(b, (struct bytes){ p.bytes.data, cut ? max : p.bytes.len });
    else
        LIT(b, "null");
    return cut;
}

/* ---- A call ---------------------------------------------------------------------------------- */

static void put_names(struct buf *b, const struct call *c)
{
    const struct call_spec *s = &c->spec;
    LIT(b, "{\"id\":");
    put_text(b, s->id);
    LIT(b, ",\"seq\":");
    buf_add_int(b, c->seq);
    LIT(b, ",\"type\":");
    put_text(b, s->type);
    LIT(b, ",\"method\":");
    put_text(b, s->method);
    LIT(b, ",\"key\":");
    put_text(b, s->key);
    LIT(b, ",\"key_no\":");
    put_int_or_null(b, c->key_no, c->key_no != 0);
    LIT(b, ",\"position\":");
    put_int_or_null(b, c->position, c->in_line && !pawl_state_ended(c->state));
    LIT(b, ",\"queue\":");
    put_text(b, s->queue);
    LIT(b, ",\"priority\":");
    buf_add_int(b, s->priority);
    LIT(b, ",\"status\":\"");
    buf_add_text(b, pawl_state_name(c->state));
    LIT(b, "\",\"waiting_for\":");
    put_text(b, bytes_of(call_wait_name(c->waiting_for)));
    LIT(b, ",\"cancel_requested\":");
    put_bool(b, c->cancel_requested);
}

static bool put_payloads(struct buf *b, const struct call *c, unsigned show)
{
    const struct payload none = { 0 };
    size_t max = show & SHOW_CUT ? CUT_LEN : 0;
    bool cut = false;
    if (!(show & SHOW_NO_INPUT))
        cut |=
            add_payload(b, "input", "input_base64", show & SHOW_INPUT ? c->spec.input : none, max);
    if (!(show & SHOW_NO_RESULT))
        cut |=
            add_payload(b, "result", "result_base64", show & SHOW_RESULT ? c->result : none, max);
    LIT(b, ",\"error\":");
    put_text(b, show & SHOW_SECRETS && c->state != PAWL_COMPLETED ? c->error : BYTES_NONE);
    return cut;
}

static void put_counts(struct buf *b, const struct call *c)
{
    LIT(b, ",\"attempts\":");
    buf_add_int(b, c->counts.attempts);
    LIT(b, ",\"lost\":");
    buf_add_int(b, c->counts.lost);
    LIT(b, ",\"redrives\":");
    buf_add_int(b, c->counts.redrives);
    LIT(b, ",\"max_attempts\":");
    buf_add_int(b, c->spec.max_attempts);
    LIT(b, ",\"max_lost\":");
    buf_add_int(b, c->spec.max_lost);
    LIT(b, ",\"timeout\":");
    json_add_seconds(b, c->spec.timeout_us);
}

static void put_tags(struct buf *b, const struct call_spec *s)
{
    buf_add_char(b, '{');
    for (size_t i = 0; i < s->n_tags; i++) {
        json_add_comma(b);
        put_string(b, s->tags[i].name);
        buf_add_char(b, ':');
        put_string(b, s->tags[i].value);
    }
    buf_add_char(b, '}');
}

static void put_needs(struct buf *b, const struct call_spec *s)
{
    LIT(b, ",\"needs\":[");
    for (size_t i = 0; i < s->n_needs; i++) {
        json_add_comma(b);
        put_string(b, s->needs[i]);
    }
    buf_add_char(b, ']');
}

static void put_origin(struct buf *b, const struct call *c, unsigned show)
{
    const struct call_spec *s = &c->spec;
    bool traced = s->traceparent.len >= 35;
    LIT(b, ",\"node\":");
    put_text(b, c->node);
    LIT(b, ",\"caller\":");
    put_text(b, s->caller);
    LIT(b, ",\"client\":");
    put_text(b, s->client);
    LIT(b, ",\"parent\":");
    put_text(b, s->parent);
    LIT(b, ",\"trace_id\":");
    put_text(b, traced ? (struct bytes){ s->traceparent.data + 3, 32 } : BYTES_NONE);
    LIT(b, ",\"tags\":");
    if (show & SHOW_SECRETS)
        put_tags(b, s);
    else
        LIT(b, "null");
    put_needs(b, s);
}

static void put_times(struct buf *b, const struct call *c)
{
    LIT(b, ",\"created_at\":");
    put_time(b, c->created_us);
    LIT(b, ",\"run_at\":");
    put_time(b, c->run_at_us);
    LIT(b, ",\"claimed_at\":");
    put_time(b, c->claimed_us);
    LIT(b, ",\"started_at\":");
    put_time(b, c->started_us);
    LIT(b, ",\"finished_at\":");
    put_time(b, c->finished_us);
    LIT(b, ",\"expires_at\":");
    put_time(b, c->expires_us);
    LIT(b, ",\"keep_until\":");
    put_time(b, c->keep_until_us);
    LIT(b, ",\"schedule\":");
    put_text(b, c->spec.schedule);
    LIT(b, ",\"scheduled_at\":");
    put_time(b, c->spec.scheduled_us);
}

void call_add(struct buf *b, const struct call *c, unsigned show)
{
    put_names(b, c);
    bool cut = put_payloads(b, c, show);
    put_counts(b, c);
    put_origin(b, c, show);
    put_times(b, c);
    LIT(b, ",\"duplicate\":");
    put_bool(b, show & SHOW_DUPLICATE);
    if (cut)
        LIT(b, ",\"truncated\":true");
    if (!(show & SHOW_OPEN))
        buf_add_char(b, '}');
}

unsigned ask_show(const struct ask *q, unsigned show)
{
    return q->who.role == ROLE_MONITOR ? show & ~(unsigned)SHOW_ALL : show;
}
