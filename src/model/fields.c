/*
 * fields.c - JSON objects read strictly against a table, and lists of words (fields.h, words.h).
 * Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/fields.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "model/words.h"

/* One object being read. */
struct reading {
    struct arena *a;
    const struct shape *shape;
    struct pawl_err *err;
};

static const char *prefix_of(const struct reading *rd)
{
    return rd->shape->prefix ? rd->shape->prefix : "";
}

static enum pawl_status fault(const struct reading *rd, const struct field *f, const char *what)
{
    return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": %s", prefix_of(rd), f->name, what);
}

/* `field "max": is "7", not a number`: shows the beginning of the value as it was written. */
static enum pawl_status wrong(const struct reading *rd, const struct field *f, const struct json *v,
                              const char *what)
{
    struct bytes raw = utf8_cut(v->raw, 60);
    return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": is %.*s%s, not %s", prefix_of(rd),
                   f->name, BYTES_ARG(raw), raw.len < v->raw.len ? "..." : "", what);
}

/* How much is kept of a lease that is no string: less than a lease, so that no number is taken for
 * one. */
#define LEASE_RAW_MAX 24

/* ---- Words ----------------------------------------------------------------------------------- */

bool word_next(const char **at, struct bytes *out)
{
    if (!*at || !**at)
        return false;
    *out = (struct bytes){ *at, strcspn(*at, "|") };
    *at = out->data + out->len + (out->data[out->len] == '|');
    return true;
}

struct bytes word_of(const char *words, int at)
{
    struct bytes word = BYTES_NONE;
    for (int i = 0; i <= at; i++)
        word_next(&words, &word);
    return word;
}

int word_at(const char *words, struct bytes word)
{
    struct bytes one;
    for (int i = 0; word_next(&words, &one); i++)
        if (bytes_eq(word, one))
            return i;
    return -1;
}

bool word_in(const char *words, struct bytes word)
{
    return word_at(words, word) >= 0;
}

void words_text(const char *words, char out[WORDS_TEXT_MAX])
{
    size_t len = 0;
    struct bytes one;
    out[0] = 0;
    for (const char *at = words; word_next(&at, &one) && len + one.len + 8 < WORDS_TEXT_MAX;) {
        const char *join = !len ? "" : *at ? ", " : " or ";
        len += (size_t)snprintf(out + len, WORDS_TEXT_MAX - len, "%s%.*s", join, BYTES_ARG(one));
    }
}

struct bytes text_shown(struct arena *a, struct bytes text)
{
    struct bytes shown = arena_copy(a, utf8_cut(text, 64));
    bool utf8 = utf8_valid(shown);
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.data[i];
        if (c < 0x20 || c == '"' || c == 0x7f || (c >= 0x80 && !utf8))
            ((char *)shown.data)[i] = '?';
    }
    return shown;
}

/* `status "zzz" is unknown; expected pending, processing or completed` */
enum pawl_status unknown_word(struct arena *a, const char *field, struct bytes word,
                              const char *words, struct pawl_err *err)
{
    char expected[WORDS_TEXT_MAX];
    words_text(words, expected);
    return err_set(err, PAWL_INVALID, "%s \"%.*s\" is unknown; expected %s", field,
                   BYTES_ARG(text_shown(a, word)), expected);
}

/* ---- One value ------------------------------------------------------------------------------- */

static enum pawl_status read_text(const struct reading *rd, const struct field *f,
                                  const struct json *v, struct bytes *out)
{
    if (v->kind != JSON_STRING)
        return wrong(rd, f, v, "a string");
    struct bytes text = json_string(rd->a, v);
    if (!text.data)
        return err_no_memory(rd->err, "a request's fields");
    const char *bad = f->kind == FIELD_NAME ? name_fault(text) : NULL;
    if (bad)
        return fault(rd, f, bad);
    if (f->kind == FIELD_WORD && !word_in(f->words, text))
        return unknown_word(rd->a, f->name, text, f->words, rd->err);
    *out = text;
    return PAWL_OK;
}

static enum pawl_status read_int(const struct reading *rd, const struct field *f,
                                 const struct json *v, int *out)
{
    int64_t n;
    if (v->kind != JSON_NUMBER)
        return wrong(rd, f, v, "a number");
    if (!json_int(v, &n))
        return wrong(rd, f, v, "a whole number of 64 bits");
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
        return wrong(rd, f, v, "a number of seconds");
    if (!json_real(v, &s) || !(s >= (double)f->min && s <= max))
        return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": is %.*s, not in %lld..%.0f seconds",
                       prefix_of(rd), f->name, (int)MIN(v->raw.len, 40), v->raw.data,
                       (long long)f->min, max);
    if (f->flags & FIELD_ABOVE_0 && !(s > 0))
        return wrong(rd, f, v, "above 0");
    *out = llround(s * SEC_US);
    if (s > 0 && !*out)
        *out = 1; /* Shorter than a microsecond, but not 0. */
    return PAWL_OK;
}

static enum pawl_status read_time(const struct reading *rd, const struct field *f,
                                  const struct json *v, int64_t *out)
{
    if (v->kind != JSON_STRING)
        return wrong(rd, f, v, "a string with a time such as 2026-11-15T08:00:00Z");
    struct bytes text = json_string(rd->a, v);
    if (!text.data)
        return err_no_memory(rd->err, "a request's fields");
    if (!time_parse(text, out))
        return wrong(rd, f, v, "a time such as 2026-11-15T08:00:00Z");
    if (!*out && !(f->flags & FIELD_EPOCH))
        *out = 1; /* 0 means "not given" from here on; both times are long past. */
    return PAWL_OK;
}

static enum pawl_status read_times(const struct reading *rd, const struct field *f,
                                   const struct json *v, struct times *out)
{
    size_t n = 0;
    if (v->kind != JSON_ARRAY)
        return wrong(rd, f, v, "an array of times");
    if (!v->count)
        return fault(rd, f, "is empty");
    if (v->count > (size_t)f->max)
        return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": has %zu times, limit %lld",
                       prefix_of(rd), f->name, v->count, (long long)f->max);
    int64_t *at = arena_zalloc(rd->a, v->count, sizeof *at);
    if (!at)
        return err_no_memory(rd->err, "a request's fields");
    for (const struct json *one = v->first; one; one = one->next, n++) {
        struct bytes raw = utf8_cut(one->raw, 60);
        if (one->kind != JSON_STRING || !time_parse(json_string(rd->a, one), &at[n]))
            return err_set(rd->err, PAWL_INVALID,
                           "field \"%s%s\": item %zu is %.*s%s, not a time such as "
                           "2026-11-15T08:00:00Z",
                           prefix_of(rd), f->name, n + 1, BYTES_ARG(raw),
                           raw.len < one->raw.len ? "..." : "");
        if (!at[n])
            at[n] = 1; /* As read_time(). */
    }
    *out = (struct times){ at, n };
    return PAWL_OK;
}

static enum pawl_status read_base64(const struct reading *rd, const struct field *f,
                                    const struct json *v, struct bytes *out)
{
    if (v->kind != JSON_STRING)
        return wrong(rd, f, v, "a string of base64");
    struct bytes text = json_string(rd->a, v);
    char *to = text.data ? arena_alloc(rd->a, text.len / 4 * 3 + 1) : NULL;
    size_t len;
    if (!to)
        return err_no_memory(rd->err, "a request's fields");
    if (!base64_read(text, to, &len))
        return wrong(rd, f, v, "base64 with its padding");
    *out = (struct bytes){ to, len };
    return PAWL_OK;
}

static enum pawl_status read_node(const struct reading *rd, const struct field *f,
                                  const struct json *v, const struct json **out)
{
    bool object = f->kind == FIELD_OBJECT;
    if (v->kind != (object ? JSON_OBJECT : JSON_ARRAY))
        return wrong(rd, f, v, object ? "an object" : "an array");
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
        return json_real(v, out) ? PAWL_OK : wrong(rd, f, v, "a number");
    case FIELD_SECONDS:
        return read_seconds(rd, f, v, out);
    case FIELD_TIME:
        return read_time(rd, f, v, out);
    case FIELD_BOOL:
        if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
            return wrong(rd, f, v, "true or false");
        *(bool *)out = v->kind == JSON_TRUE;
        return PAWL_OK;
    case FIELD_JSON:
        if (v->levels > JSON_DEPTH_MAX)
            return err_set(rd->err, PAWL_INVALID, "field \"%s%s\": is nested deeper than %d levels",
                           prefix_of(rd), f->name, JSON_DEPTH_MAX);
        *(struct bytes *)out = v->raw;
        return PAWL_OK;
    case FIELD_BASE64:
        return read_base64(rd, f, v, out);
    case FIELD_LEASE:
        if (v->kind == JSON_STRING)
            return read_text(rd, f, v, out);
        *(struct bytes *)out = text_shown(rd->a, utf8_cut(v->raw, LEASE_RAW_MAX));
        return PAWL_OK;
    case FIELD_OBJECT:
    case FIELD_ARRAY:
        return read_node(rd, f, v, out);
    case FIELD_TIMES:
        return read_times(rd, f, v, out);
    }
    return PAWL_OK;
}

/* ---- An object ------------------------------------------------------------------------------- */

static const struct field *find(const struct shape *s, struct bytes name)
{
    for (size_t i = 0; i < s->n; i++)
        if (shape_has(s, i) && bytes_eq(name, bytes_of(s->v[i].name)))
            return &s->v[i];
    return NULL;
}

/* The names that the shape has, as many as fit into a sentence. */
static void names_of(const struct shape *s, char *out, size_t size)
{
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!shape_has(s, i))
            continue;
        if (len + strlen(s->v[i].name) + 8 > size) {
            snprintf(out + len, size - len, ", ...");
            return;
        }
        len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "", s->v[i].name);
    }
}

static enum pawl_status unknown(const struct reading *rd, struct bytes name)
{
    char names[320];
    names_of(rd->shape, names, sizeof names);
    return err_set(rd->err, PAWL_INVALID, "field \"%s%.*s\": is unknown; %s%s", prefix_of(rd),
                   BYTES_ARG(text_shown(rd->a, name)), rd->shape->n ? "expected " : "none is taken",
                   names);
}

static enum pawl_status missing(const struct reading *rd, uint64_t seen)
{
    for (size_t i = 0; i < rd->shape->n; i++)
        if (rd->shape->v[i].flags & FIELD_MUST && shape_has(rd->shape, i) && !(seen >> i & 1))
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
        return err_set(err, PAWL_INVALID, "the body is %.*s, not a JSON object",
                       (int)MIN(object->raw.len, 40), object->raw.data);
    for (const struct json *v = object->first; v; v = v->next) {
        bool escaped = memchr(v->name.data, '\\', v->name.len);
        struct bytes name = escaped ? json_name(a, v) : v->name;
        const struct field *f = find(shape, name);
        if (!f)
            return a->failed ? err_no_memory(err, "a request's fields") : unknown(&rd, name);
        uint64_t bit = UINT64_C(1) << (f - shape->v);
        if (seen & bit)
            return fault(&rd, f, "is given twice");
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
