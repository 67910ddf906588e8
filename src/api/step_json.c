/*
 * step_json.c - steps of workflows as workers write and read them (step_json.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/step_json.h"

#include "api/call_json.h"
#include "api/internal.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/cursor.h"
#include "model/spec_json.h"
#include "model/words.h"

#define KINDS "run|sleep|signal|child|join|select|value|undo"
#define SIGNALS_WAITED_MAX 100
#define CHILDREN_WAITED_MAX 1000
#define PUBLISH_MAX 100

/* ---- What is asked --------------------------------------------------------------------------- */

struct wait_in {
    const struct json *signals, *children;
    int64_t until_us;
    struct bytes which;
};

static const struct field wait_fields[] = {
    { "signals", FIELD_ARRAY, offsetof(struct wait_in, signals), FIELD_NULL, .unit = "up to 100",
      .about = "names: the oldest signal of these that is not consumed" },
    { "until", FIELD_TIME, offsetof(struct wait_in, until_us), FIELD_NULL,
      .about = "no longer than this; what is stored first stays on later passes" },
    { "children", FIELD_ARRAY, offsetof(struct wait_in, children), FIELD_NULL, .unit = "up to 1000",
      .about = "ids of calls that steps of this run made" },
    { "for", FIELD_WORD, offsetof(struct wait_in, which), .words = "all|any", .dflt = "\"all\"",
      .about = "of children: all of them, or the first that ends" },
};
const struct shape wait_shape = SHAPE("StepWait", wait_fields);

struct step_in {
    int no;
    struct bytes name, kind, result, result_base64, error;
    bool retry;
    int64_t retry_in_us;
    const struct json *call, *wait;
};

/* In the order of the table, for the bits of `given`. */
enum { S_NO, S_NAME, S_KIND, S_RESULT, S_BASE64, S_ERROR, S_RETRY, S_RETRY_IN, S_CALL, S_WAIT };

#define AT(member) offsetof(struct step_in, member)
static const struct field step_fields[] = {
    [S_NO] = { "no", FIELD_INT, AT(no), FIELD_MUST, 1, 1000000,
               .about = "its place in the order of the program; undo steps count on" },
    [S_NAME] = { "name", FIELD_TEXT, AT(name), FIELD_MUST, .unit = "1..100 bytes without #",
                 .about = "as the code gives it; of an undo: undo:NAME, NAME as it is stored" },
    [S_KIND] = { "kind", FIELD_WORD, AT(kind), FIELD_MUST, .words = KINDS, .about = "what it is" },
    [S_RESULT] = { "result", FIELD_JSON, AT(result), .about = "it has ended, with this result" },
    [S_BASE64] = { "result_base64", FIELD_BASE64, AT(result_base64),
                   .about = "it has ended, with these bytes" },
    [S_ERROR] = { "error", FIELD_TEXT, AT(error), .unit = "cut at 4 KiB",
                  .about = "its last try has failed; it may have happened" },
    [S_RETRY] = { "retry", FIELD_BOOL, AT(retry), .dflt = "true",
                  .about = "with error; false: it was refused, and has not happened" },
    [S_RETRY_IN] = { "retry_in", FIELD_SECONDS, AT(retry_in_us), .max = DURATION_MAX_US / SEC_US,
                     .about = "with error: a try has failed, and the next one comes then" },
    [S_CALL] = { "call", FIELD_OBJECT, AT(call), .shape = &spec_shape,
                 .about = "of a child: what is called. Its id and parent are made" },
    [S_WAIT] = { "wait", FIELD_OBJECT, AT(wait), .shape = &wait_shape, .about = "what settles it" },
};
#undef AT
const struct shape step_shape = SHAPE("Step", step_fields);

#define HAS(bit) ((given >> (bit)&1) != 0)

/* Names or ids, each checked as a name. */
static enum pawl_status names_of(struct arena *a, const struct json *list, const char *field,
                                 size_t max, const struct bytes **out, size_t *out_n,
                                 struct pawl_err *err)
{
    size_t n = 0;
    if (list->count > max)
        return err_set(err, PAWL_INVALID, "field \"%s\": has %zu names, limit %zu", field,
                       list->count, max);
    struct bytes *v = arena_alloc(a, (list->count + 1) * sizeof *v);
    for (const struct json *one = list->first; v && one; one = one->next) {
        const char *fault = "is not a string";
        if (one->kind == JSON_STRING) {
            v[n] = json_string(a, one);
            fault = v[n].data ? name_fault(v[n]) : "is too long";
        }
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"%s\": name %zu, %.*s, %s", field, n + 1,
                           (int)MIN(one->raw.len, 40), one->raw.data, fault);
        n++;
    }
    *out = v;
    *out_n = n;
    return v ? PAWL_OK : err_no_memory(err, "reading steps");
}

static enum pawl_status wait_of(struct ask *q, const struct json *object, struct workflow_wait *out,
                                struct pawl_err *err)
{
    struct wait_in in = { 0 };
    uint64_t given;
    enum pawl_status st = fields_read(q->a, object, &wait_shape, &in, &given, err);
    if (st == PAWL_OK && in.signals)
        st = names_of(q->a, in.signals, "signals", SIGNALS_WAITED_MAX, &out->signals,
                      &out->n_signals, err);
    if (st == PAWL_OK && in.children)
        st = names_of(q->a, in.children, "children", CHILDREN_WAITED_MAX, &out->children,
                      &out->n_children, err);
    out->children_given = in.children != NULL;
    out->any = bytes_eq(in.which, BYTES("any"));
    out->has_until = in.until_us != 0;
    out->until_us = in.until_us;
    if (st == PAWL_OK && !out->n_signals && !out->children_given && !out->has_until)
        st = err_set(err, PAWL_INVALID,
                     "field \"wait\": name signals, children or until: it would wait for nothing");
    return st;
}

/* ---- One step -------------------------------------------------------------------------------- */

static enum pawl_status step_refuse(const struct step_in *in, const char *why, struct pawl_err *err)
{
    char name[TEXT_QUOTE_LEN];
    return err_set(err, PAWL_INVALID, "field \"steps\": step %d \"%s\": %s", in->no,
                   text_quote(in->name, name), why);
}

static enum pawl_status error_of(const struct step_in *in, uint64_t given,
                                 struct workflow_step *out, struct pawl_err *err)
{
    if ((HAS(S_RETRY) || HAS(S_RETRY_IN)) && !HAS(S_ERROR))
        return step_refuse(in, "retry and retry_in go with an error", err);
    if (HAS(S_RETRY) && !in->retry && HAS(S_RETRY_IN))
        return step_refuse(in, "retry_in is given together with \"retry\" false", err);
    if (!HAS(S_ERROR))
        return PAWL_OK;
    out->says = HAS(S_RETRY_IN)              ? SAYS_RETRY
                : HAS(S_RETRY) && !in->retry ? SAYS_REFUSED
                                             : SAYS_ERROR;
    out->retry_in_us = in->retry_in_us;
    out->error = in->error;
    return PAWL_OK;
}

static enum pawl_status call_of(struct ask *q, const struct step_in *in, struct workflow_step *out,
                                struct pawl_err *err)
{
    struct call_spec *s = arena_zalloc(q->a, 1, sizeof *s);
    if (!s)
        return err_no_memory(err, "reading steps");
    enum pawl_status st = spec_read_json(q->a, in->call, q->api->call_timeout_us, s, err);
    if (st != PAWL_OK)
        return st;
    if (s->id.data || s->parent.data)
        return step_refuse(in, "the id and the parent of its call are made, and cannot be given",
                           err);
    if (s->input.bytes.len > q->api->input_len_max)
        return err_set(err, PAWL_TOO_LARGE, "field \"input\": is %zu bytes, limit %zu",
                       s->input.bytes.len, q->api->input_len_max);
    s->client = q->who.name;
    out->says = SAYS_CHILD;
    out->call = s;
    return PAWL_OK;
}

static bool kind_waits(enum step_kind kind)
{
    return kind == STEP_SLEEP || kind == STEP_SIGNAL || kind == STEP_JOIN || kind == STEP_SELECT;
}

/* Why the wait does not fit the kind of the step; NULL: it does. */
static const char *wait_fault(const struct workflow_step *s)
{
    const struct workflow_wait *w = &s->wait;
    if (!kind_waits(s->kind))
        return "only sleep, signal, join and select wait";
    if (s->kind == STEP_SLEEP && (!w->has_until || w->n_signals || w->children_given))
        return "a sleep waits until a time, and for nothing else";
    if (s->kind == STEP_SIGNAL && (!w->n_signals || w->children_given))
        return "a signal waits for signals, and perhaps until a time";
    if (s->kind == STEP_JOIN && (!w->children_given || w->n_signals))
        return "a join waits for children, and perhaps until a time";
    return NULL;
}

static enum pawl_status step_says(struct ask *q, const struct step_in *in, uint64_t given,
                                  struct workflow_step *out, struct pawl_err *err)
{
    int n = HAS(S_RESULT) + HAS(S_BASE64) + HAS(S_ERROR) + HAS(S_CALL) + HAS(S_WAIT);
    if (n > 1)
        return step_refuse(in, "send one of result, result_base64, error, call, wait", err);
    out->says = SAYS_BEGUN;
    if (HAS(S_RESULT) || HAS(S_BASE64)) {
        out->says = SAYS_RESULT;
        out->result = HAS(S_RESULT) ? (struct payload){ PAWL_JSON, in->result }
                                    : (struct payload){ PAWL_BYTES, in->result_base64 };
    }
    enum pawl_status st = error_of(in, given, out, err);
    if (st == PAWL_OK && HAS(S_CALL))
        st = call_of(q, in, out, err);
    if (st == PAWL_OK && HAS(S_WAIT)) {
        out->says = SAYS_WAIT;
        st = wait_of(q, in->wait, &out->wait, err);
    }
    if (st != PAWL_OK)
        return st;
    if ((out->kind == STEP_CHILD) != (out->says == SAYS_CHILD))
        return step_refuse(in, "a child, and nothing else, has a call", err);
    if (kind_waits(out->kind) && out->says != SAYS_WAIT && out->says != SAYS_BEGUN)
        return step_refuse(in, "its result comes from what it waits for, and cannot be given", err);
    if (out->kind == STEP_VALUE && out->says != SAYS_RESULT)
        return step_refuse(in, "a value has a result", err);
    return PAWL_OK;
}

static enum pawl_status step_of(struct ask *q, const struct json *one, struct workflow_step *out,
                                struct pawl_err *err)
{
    static const struct bytes undo = BYTES("undo:");
    struct step_in in = { .retry = true };
    uint64_t given;
    if (one->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "field \"steps\": an item is %.*s, not an object",
                       (int)MIN(one->raw.len, 40), one->raw.data);
    enum pawl_status st = fields_read(q->a, one, &step_shape, &in, &given, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct workflow_step){ .no = in.no, .name = in.name, .kind = step_kind_of(in.kind) };
    if (out->kind == STEP_UNDO) {
        if (in.name.len <= undo.len || memcmp(in.name.data, undo.data, undo.len) != 0)
            return step_refuse(&in, "the name of an undo is undo:NAME", err);
        out->name = (struct bytes){ in.name.data + undo.len, in.name.len - undo.len };
    }
    const char *fault = out->kind == STEP_UNDO ? NULL : step_name_fault(in.name);
    if (fault)
        return step_refuse(&in, arena_printf(q->a, "its name %s", fault), err);
    return step_says(q, &in, given, out, err);
}
#undef HAS

/* ---- All of them ----------------------------------------------------------------------------- */

/* `wait` beside `steps` belongs to the one step that has no result, error or wait of its own. */
static enum pawl_status wait_give(struct ask *q, const struct json *wait, struct workflow_steps *s,
                                  struct pawl_err *err)
{
    struct workflow_step *of = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].says == SAYS_BEGUN) {
            of = &s->v[i];
            n++;
        }
    if (n != 1)
        return err_set(
            err, PAWL_INVALID,
            "field \"wait\": it settles the one step without result, error, call and "
            "wait of its own, and %zu steps are so; put a wait into each step that waits",
            n);
    of->says = SAYS_WAIT;
    return wait_of(q, wait, &of->wait, err);
}

static enum pawl_status waits_check(const struct workflow_steps *s, bool lazy, struct pawl_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct workflow_step *one = &s->v[i];
        const struct step_in in = { .no = (int)one->no, .name = one->name };
        const char *fault = one->says == SAYS_WAIT ? wait_fault(one) : NULL;
        if (!fault && one->says == SAYS_BEGUN && kind_waits(one->kind))
            fault = "\"wait\" is missing";
        if (!fault && lazy && one->says != SAYS_RESULT && one->says != SAYS_REFUSED &&
            one->says != SAYS_ERROR)
            fault = "with the end of the attempt a step has a result or an error";
        if (fault)
            return step_refuse(&in, fault, err);
    }
    return PAWL_OK;
}

static enum pawl_status publish_of(struct ask *q, const struct json *object,
                                   struct workflow_steps *out, struct pawl_err *err)
{
    size_t n = 0;
    if (object->count > PUBLISH_MAX)
        return err_set(err, PAWL_INVALID, "field \"publish\": has %zu values, limit %d",
                       object->count, PUBLISH_MAX);
    struct workflow_value *v = arena_alloc(q->a, (object->count + 1) * sizeof *v);
    for (const struct json *one = object->first; v && one; one = one->next) {
        v[n] = (struct workflow_value){ json_name(q->a, one), { PAWL_JSON, one->raw } };
        const char *fault = v[n].name.data ? name_fault(v[n].name) : "is too long";
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"publish\": name %zu, \"%.*s\", %s", n + 1,
                           (int)MIN(one->name.len, 40), one->name.data, fault);
        if (one->raw.len > RESULT_LEN_MAX)
            return err_set(err, PAWL_TOO_LARGE,
                           "field \"publish\": value \"%.*s\" is %zu bytes, limit %d",
                           BYTES_ARG(v[n].name), one->raw.len, RESULT_LEN_MAX);
        for (size_t i = 0; i < n; i++)
            if (bytes_eq(v[i].name, v[n].name))
                return err_set(err, PAWL_INVALID, "field \"publish\": \"%.*s\" is there twice",
                               BYTES_ARG(v[n].name));
        n++;
    }
    out->published = v;
    out->n_published = n;
    return v ? PAWL_OK : err_no_memory(err, "reading steps");
}

enum pawl_status steps_of_json(struct ask *q, const struct steps_in *in, bool lazy,
                               struct workflow_steps *out, struct pawl_err *err)
{
    size_t count = in->steps ? in->steps->count : 0;
    if (count > STEPS_AT_ONCE_MAX)
        return err_set(err, PAWL_INVALID, "field \"steps\": has %zu items, limit %d", count,
                       STEPS_AT_ONCE_MAX);
    out->v = arena_zalloc(q->a, count + 1, sizeof *out->v);
    enum pawl_status st = out->v ? PAWL_OK : err_no_memory(err, "reading steps");
    for (const struct json *one = in->steps ? in->steps->first : NULL; one && st == PAWL_OK;
         one = one->next)
        st = step_of(q, one, &out->v[out->n++], err);
    if (st == PAWL_OK && in->wait)
        st = wait_give(q, in->wait, out, err);
    if (st == PAWL_OK)
        st = waits_check(out, lazy, err);
    if (st == PAWL_OK && in->publish)
        st = publish_of(q, in->publish, out, err);
    return st;
}

/* ---- What is answered ------------------------------------------------------------------------ */

void step_add(struct buf *b, const struct workflow_row *s)
{
    buf_add_char(b, '{');
    add_int(b, "no", s->no);
    add_text(b, "name", s->name);
    add_text(b, "kind", bytes_of(step_kind_name((int64_t)s->kind)));
    add_text(b, "status", bytes_of(step_status_name((int64_t)s->status)));
    add_payload(b, "result", "result_base64", s->result, 0);
    add_text(b, "error", s->error);
    add_int(b, "attempts", s->attempts);
    add_time(b, "until", s->until_us);
    add_time(b, "completed_at", s->completed_us);
    if (s->final)
        add_bool(b, "final", true);
    buf_add_char(b, '}');
}

static void some_add(struct buf *b, const char *name, const struct workflow_row *v, size_t n,
                     bool ended)
{
    json_add_name(b, name);
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (step_ended(v[i].status) != ended)
            continue;
        json_add_comma(b);
        step_add(b, &v[i]);
    }
    buf_add_char(b, ']');
}

void steps_page_add(struct buf *b, const struct workflow_row *v, size_t n, int64_t next)
{
    char cursor[CURSOR_TEXT_MAX];
    if (next)
        cursor_write(next, cursor);
    some_add(b, "steps", v, n, true);
    some_add(b, "open_steps", v, n, false);
    add_text(b, "steps_next", next ? bytes_of(cursor) : BYTES_NONE);
}
