/*
 * fields.c - JSON objects read strictly against a table: unknown, repeated and wrong members are
 * errors that name the field. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <math.h>

#include "api/inside.h"
#include "base/text.h"

/* One object being read. */
struct reading {
    struct arena *a;
    const struct shape *shape;
    struct pawl_err *err;
};

static enum pawl_status fault(const struct reading *rd, const struct field *f, const char *what)
{
    return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": %s",
                   rd->shape->prefix ? rd->shape->prefix : "", f->name, what);
}

/* ---- One value ------------------------------------------------------------------------------- */

/* "skip|block": is it one of them? */
static bool word_in(const char *words, struct bytes word)
{
    for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        size_t len = strcspn(at, "|");
        if (bytes_eq(word, (struct bytes){ at, len }))
            return true;
    }
    return false;
}

static enum pawl_status read_text(const struct reading *rd, const struct field *f,
                                  const struct json *v, struct bytes *out)
{
    if (v->kind != JSON_STRING)
        return fault(rd, f, "is not a string");
    struct bytes text = json_string(rd->a, v);
    if (!text.data)
        return err_no_memory(rd->err, "a request's fields");
    const char *bad = f->kind == FIELD_NAME ? name_fault(text) : NULL;
    if (bad)
        return fault(rd, f, bad);
    if (f->kind == FIELD_WORD && !word_in(f->words, text))
        return err_set(rd->err, PAWL_INVALID, "field \"%s\": is none of %s", f->name, f->words);
    *out = text;
    return PAWL_OK;
}

static enum pawl_status read_int(const struct reading *rd, const struct field *f,
                                 const struct json *v, int *out)
{
    int64_t n;
    if (v->kind != JSON_NUMBER)
        return fault(rd, f, "is not a number");
    if (!json_int(v, &n))
        return fault(rd, f, "is not a whole number, or too large");
    if (n < f->min || n > f->max)
        return err_set(rd->err, PAWL_INVALID, "field \"%s\": is %lld, not in %lld..%lld", f->name,
                       (long long)n, (long long)f->min, (long long)f->max);
    static_assert(sizeof(int) == 4, "min and max of an INT fit");
    *out = (int)n;
    return PAWL_OK;
}

static enum pawl_status read_seconds(const struct reading *rd, const struct field *f,
                                     const struct json *v, int64_t *out)
{
    double s, max = f->max ? (double)f->max : (double)(DURATION_MAX_US / SEC_US);
    if (v->kind != JSON_NUMBER)
        return fault(rd, f, "is not a number of seconds");
    if (!json_real(v, &s) || !(s >= (double)f->min && s <= max))
        return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": is not in %lld..%.0f seconds",
                       rd->shape->prefix ? rd->shape->prefix : "", f->name, (long long)f->min, max);
    if (f->flags & FIELD_ABOVE_0 && !(s > 0))
        return fault(rd, f, "is not above 0");
    *out = llround(s * SEC_US);
    if (s > 0 && !*out)
        *out = 1; /* Less than we can tell apart is still not nothing. */
    return PAWL_OK;
}

static enum pawl_status read_time(const struct reading *rd, const struct field *f,
                                  const struct json *v, int64_t *out)
{
    if (v->kind != JSON_STRING)
        return fault(rd, f, "is not a string with a time");
    struct bytes text = json_string(rd->a, v);
    if (!text.data)
        return err_no_memory(rd->err, "a request's fields");
    if (!time_parse(text, out))
        return fault(rd, f, "is not a time such as 2026-11-15T08:00:00Z");
    if (!*out)
        *out = 1; /* 0 is "none" everywhere behind this; both are long past. */
    return PAWL_OK;
}

static enum pawl_status read_base64(const struct reading *rd, const struct field *f,
                                    const struct json *v, struct bytes *out)
{
    if (v->kind != JSON_STRING)
        return fault(rd, f, "is not a string");
    struct bytes text = json_string(rd->a, v);
    char *to = text.data ? arena_alloc(rd->a, text.len / 4 * 3 + 1) : NULL;
    size_t len;
    if (!to)
        return err_no_memory(rd->err, "a request's fields");
    if (!base64_read(text, to, &len))
        return fault(rd, f, "is not base64");
    *out = (struct bytes){ to, len };
    return PAWL_OK;
}

static enum pawl_status read_node(const struct reading *rd, const struct field *f,
                                  const struct json *v, const struct json **out)
{
    bool object = f->kind == FIELD_OBJECT;
    if (v->kind != (object ? JSON_OBJECT : JSON_ARRAY))
        return fault(rd, f, object ? "is not an object" : "is not an array");
    *out = v;
    return PAWL_OK;
}

static enum pawl_status read_value(const struct reading *rd, const struct field *f,
                                   const struct json *v, void *out)
{
    switch (f->kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
    case FIELD_WORD:
        return read_text(rd, f, v, out);
    case FIELD_INT:
        return read_int(rd, f, v, out);
    case FIELD_REAL:
        return json_real(v, out) ? PAWL_OK : fault(rd, f, "is not a number");
    case FIELD_SECONDS:
        return read_seconds(rd, f, v, out);
    case FIELD_TIME:
        return read_time(rd, f, v, out);
    case FIELD_BOOL:
        if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
            return fault(rd, f, "is neither true nor false");
        *(bool *)out = v->kind == JSON_TRUE;
        return PAWL_OK;
    case FIELD_JSON:
        *(struct bytes *)out = v->raw;
        return PAWL_OK;
    case FIELD_BASE64:
        return read_base64(rd, f, v, out);
    case FIELD_OBJECT:
    case FIELD_ARRAY:
        return read_node(rd, f, v, out);
    }
    return PAWL_OK;
}

/* ---- An object ------------------------------------------------------------------------------- */

static const struct field *find(const struct shape *s, struct bytes name)
{
    for (size_t i = 0; i < s->n; i++)
        if (bytes_eq(name, bytes_of(s->v[i].name)))
            return &s->v[i];
    return NULL;
}

static enum pawl_status unknown(const struct reading *rd, struct bytes name)
{
    struct bytes shown = arena_copy(rd->a, utf8_cut(name, 64));
    for (size_t i = 0; i < shown.len; i++)
        if ((unsigned char)shown.data[i] < 0x20 || shown.data[i] == '"' || shown.data[i] == 0x7f)
            ((char *)shown.data)[i] = '?'; /* or it could end the quotes */
    return err_set(rd->err, PAWL_INVALID, "field \"%s%.*s\": is not known here",
                   rd->shape->prefix ? rd->shape->prefix : "", BYTES_ARG(shown));
}

static enum pawl_status missing(const struct reading *rd, uint64_t seen)
{
    for (size_t i = 0; i < rd->shape->n; i++)
        if (rd->shape->v[i].flags & FIELD_MUST && !(seen >> i & 1))
            return fault(rd, &rd->shape->v[i], "is missing");
    return PAWL_OK;
}

enum pawl_status fields_read(struct arena *a, const struct json *object, const struct shape *shape,
                             void *out, uint64_t *given, struct pawl_err *err)
{
    struct reading rd = { a, shape, err };
    uint64_t seen = 0, there = 0;
    CHECK(shape->n <= 64);
    if (object->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "the body is not a JSON object");
    for (const struct json *v = object->first; v; v = v->next) {
        bool escaped = memchr(v->name.data, '\\', v->name.len);
        struct bytes name = escaped ? json_name(a, v) : v->name;
        const struct field *f = find(shape, name);
        if (!f)
            return a->failed ? err_no_memory(err, "a request's fields") : unknown(&rd, name);
        uint64_t bit = UINT64_C(1) << (f - shape->v);
        if (seen & bit)
            return fault(&rd, f, "is there twice");
        seen |= bit;
        if (v->kind == JSON_NULL && f->flags & FIELD_NULL)
            continue;
        there |= bit;
        enum pawl_status st = read_value(&rd, f, v, (char *)out + f->at);
        if (st != PAWL_OK)
            return st;
    }
    if (given)
        *given = there;
    return missing(&rd, there);
}
