/*
 * options.c - the options of a call that are neither columns nor defaults, and its tags, as the
 * small JSON texts that every engine stores. Pure, any thread.
 *
 * Most calls have neither and cost nothing here. Only texts written here are read: anything else is
 * BROKEN.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/call.h"
#include "model/needs.h"

/* Room for 16 tags of 64 + 255 bytes when every byte becomes an escape of 6; options are far
 * shorter. */
#define TEXT_LEN_MAX (64 << 10)

enum kind { KIND_INT, KIND_US, KIND_TIME, KIND_REAL };

/* One table for writing and reading, so that everything written is read. */
static const struct option {
    const char *name;
    size_t at; /* offset in struct call_spec */
    enum kind kind;
} options[] = {
    { "max_attempts", offsetof(struct call_spec, max_attempts), KIND_INT },
    { "max_lost", offsetof(struct call_spec, max_lost), KIND_INT },
    { "timeout_us", offsetof(struct call_spec, timeout_us), KIND_US },
    { "keep_us", offsetof(struct call_spec, keep_us), KIND_US },
    { "run_timeout_us", offsetof(struct call_spec, run_timeout_us), KIND_US },
    { "run_until_us", offsetof(struct call_spec, run_until_us), KIND_TIME },
    { "backoff_base_us", offsetof(struct call_spec, backoff.base_us), KIND_US },
    { "backoff_max_us", offsetof(struct call_spec, backoff.max_us), KIND_US },
    { "backoff_factor", offsetof(struct call_spec, backoff.factor), KIND_REAL },
    { "backoff_jitter", offsetof(struct call_spec, backoff.jitter), KIND_REAL },
};

static const void *field_const(const struct call_spec *s, const struct option *o)
{
    return (const char *)s + o->at;
}

static bool field_same(const struct call_spec *x, const struct call_spec *y, const struct option *o)
{
    const void *a = field_const(x, o), *b = field_const(y, o);
    switch (o->kind) {
    case KIND_INT:
        return *(const int *)a == *(const int *)b;
    case KIND_US:
    case KIND_TIME:
        return *(const int64_t *)a == *(const int64_t *)b;
    case KIND_REAL:
        return *(const double *)a == *(const double *)b;
    }
    return false;
}

static void field_write(struct buf *b, const struct call_spec *s, const struct option *o)
{
    const void *value = field_const(s, o);
    char real[32];
    json_add_name(b, o->name);
    switch (o->kind) {
    case KIND_INT:
        buf_add_int(b, *(const int *)value);
        break;
    case KIND_US:
    case KIND_TIME:
        buf_add_int(b, *(const int64_t *)value);
        break;
    case KIND_REAL:
        real_text(*(const double *)value, real);
        buf_add_text(b, real);
        break;
    }
}

/* Move the buffer's text to `a`. Releases the buffer in any case. */
static enum pawl_status settle_text(struct arena *a, struct buf *b, struct bytes *out,
                                    struct pawl_err *err)
{
    struct bytes copy = buf_ok(b) ? arena_copy(a, buf_bytes(b)) : BYTES_NONE;
    buf_release(b);
    if (!copy.data)
        return err_no_memory(err, "a call's options");
    *out = copy;
    return PAWL_OK;
}

/* Whose tick the call is, and of when. */
static void schedule_write(struct buf *b, const struct call_spec *s)
{
    if (!s->schedule.data)
        return;
    if (b->len == 0)
        buf_add_char(b, '{');
    json_add_name(b, "schedule");
    json_add_string(b, s->schedule);
    if (!s->scheduled_us)
        return;
    json_add_name(b, "scheduled_us");
    buf_add_int(b, s->scheduled_us);
}

enum pawl_status call_options_write(struct arena *a, const struct call_spec *s, struct bytes *out,
                                    struct pawl_err *err)
{
    struct call_spec plain;
    struct buf b;
    call_spec_init(&plain);
    buf_init(&b, TEXT_LEN_MAX);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (field_same(s, &plain, &options[i]))
            continue;
        if (b.len == 0)
            buf_add_char(&b, '{');
        field_write(&b, s, &options[i]);
    }
    if (s->on_dead != plain.on_dead) {
        if (b.len == 0)
            buf_add_char(&b, '{');
        json_add_name(&b, "on_dead");
        buf_add_text(&b, "\"block\"");
    }
    if (s->watch) {
        if (b.len == 0)
            buf_add_char(&b, '{');
        json_add_name(&b, "watch");
        buf_add_int(&b, s->watch);
    }
    schedule_write(&b, s);
    if (b.len == 0 && buf_ok(&b)) {
        *out = BYTES_NONE;
        return PAWL_OK;
    }
    buf_add_char(&b, '}');
    return settle_text(a, &b, out, err);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool field_read(const struct json *v, struct call_spec *s, const struct option *o)
{
    void *field = (char *)s + o->at;
    int64_t n;
    double real;
    switch (o->kind) {
    case KIND_INT:
        if (!json_int(v, &n) || n < 1 || n > ATTEMPTS_MAX)
            return false;
        *(int *)field = (int)n;
        return true;
    case KIND_US:
        if (!json_int(v, &n) || n < 0 || n > DURATION_MAX_US)
            return false;
        *(int64_t *)field = n;
        return true;
    case KIND_TIME:
        if (!json_int(v, &n) || n < TIME_FIRST_US || n > TIME_LAST_US)
            return false;
        *(int64_t *)field = n;
        return true;
    case KIND_REAL:
        if (!json_real(v, &real) || real < 0)
            return false;
        *(double *)field = real;
        return true;
    }
    return false;
}

/* Names are checked when the call is settled. Without memory `a` has failed. */
static bool option_needs(struct arena *a, const struct json *v, struct call_spec *s)
{
    const struct needs_field field = { "needs", NEEDS_MAX };
    return v->kind == JSON_ARRAY &&
           needs_of_json(a, v, &field, &s->needs, &s->n_needs, NULL) != PAWL_INVALID;
}

static bool option_read(struct arena *a, const struct json *v, struct call_spec *s)
{
    int64_t n;
    if (bytes_eq(v->name, BYTES("needs")))
        return option_needs(a, v, s);
    if (bytes_eq(v->name, BYTES("schedule"))) {
        s->schedule = v->kind == JSON_STRING ? json_string(a, v) : BYTES_NONE;
        return s->schedule.data && !name_fault(s->schedule);
    }
    if (bytes_eq(v->name, BYTES("scheduled_us")))
        return json_int(v, &s->scheduled_us) && s->scheduled_us >= TIME_FIRST_US &&
               s->scheduled_us <= TIME_LAST_US;
    if (bytes_eq(v->name, BYTES("watch"))) {
        bool fits = json_int(v, &n) && n >= 1 && n <= WATCH_ALL;
        s->watch = fits ? (unsigned)n : 0;
        return fits;
    }
    if (bytes_eq(v->name, BYTES("on_dead"))) {
        s->on_dead = PAWL_ON_DEAD_BLOCK;
        return bytes_eq(v->raw, BYTES("\"block\""));
    }
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (bytes_eq(v->name, bytes_of(options[i].name)))
            return field_read(v, s, &options[i]);
    return false;
}

/* Parse a stored text as an object; BROKEN when it is not one. */
static enum pawl_status object_read(struct arena *a, struct bytes text, struct json **out,
                                    struct pawl_err *err)
{
    struct pawl_err why;
    enum pawl_status st = json_parse(a, text, out, &why);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a stored call");
    if (st != PAWL_OK)
        return err_set(err, PAWL_BROKEN,
                       "a stored call is damaged: its options or tags are not JSON: %s", why.text);
    if ((*out)->kind != JSON_OBJECT)
        return err_set(err, PAWL_BROKEN,
                       "a stored call is damaged: its options or tags are not an object");
    return PAWL_OK;
}

enum pawl_status call_options_read(struct arena *a, struct bytes text, struct call_spec *s,
                                   struct pawl_err *err)
{
    struct json *object;
    if (!text.data)
        return PAWL_OK;
    enum pawl_status st = object_read(a, text, &object, err);
    if (st != PAWL_OK)
        return st;
    for (const struct json *v = object->first; v; v = v->next)
        if (!option_read(a, v, s) && !a->failed)
            return err_set(err, PAWL_BROKEN,
                           "a stored call is damaged: option \"%.*s\" is unknown or out of range",
                           BYTES_ARG(v->name));
    return a->failed ? err_no_memory(err, "a stored call") : PAWL_OK;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

enum pawl_status call_tags_write(struct arena *a, const struct call_spec *s, struct bytes *out,
                                 struct pawl_err *err)
{
    struct buf b;
    CHECK(s->n_tags <= TAG_MAX); /* call_tags_read() refuses more */
    if (s->n_tags == 0) {
        *out = BYTES_NONE;
        return PAWL_OK;
    }
    buf_init(&b, TEXT_LEN_MAX);
    buf_add_char(&b, '{');
    for (size_t i = 0; i < s->n_tags; i++) {
        json_add_comma(&b);
        json_add_string(&b, s->tags[i].name);
        buf_add_char(&b, ':');
        json_add_string(&b, s->tags[i].value);
    }
    buf_add_char(&b, '}');
    return settle_text(a, &b, out, err);
}

enum pawl_status call_tags_read(struct arena *a, struct bytes text, struct call_spec *s,
                                struct pawl_err *err)
{
    struct json *object;
    s->tags = NULL;
    s->n_tags = 0;
    if (!text.data)
        return PAWL_OK;
    enum pawl_status st = object_read(a, text, &object, err);
    if (st != PAWL_OK)
        return st;
    if (object->count > TAG_MAX)
        return err_set(err, PAWL_BROKEN, "a stored call is damaged: it has %zu tags",
                       object->count);

    struct tag *tags = arena_zalloc(a, object->count, sizeof *tags);
    size_t n = 0;
    for (const struct json *v = object->first; v; v = v->next) {
        if (v->kind != JSON_STRING)
            return err_set(err, PAWL_BROKEN, "a stored call is damaged: a tag is not a string");
        if (tags)
            tags[n++] = (struct tag){ json_name(a, v), json_string(a, v) };
    }
    if (a->failed)
        return err_no_memory(err, "a call's tags");
    s->tags = tags;
    s->n_tags = n;
    return PAWL_OK;
}
