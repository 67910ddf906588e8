/*
 * http_md.c - prints doc/http.md from the table of routes, for people.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "api/auth.h"
#include "api/document.h"
#include "api/route.h"
#include "api/routes.h"
#include "api/schema.h"
#include "base/buf.h"
#include "base/limits.h"
#include "model/fields.h"
#include "model/spec_json.h"
#include "model/words.h"

/* Append a cell of a table: `|` would end it, so it is escaped. */
static void cell_add(struct buf *b, const char *text)
{
    for (; text && *text; text++) {
        if (*text == '|')
            buf_add_char(b, '\\');
        buf_add_char(b, *text);
    }
}

/* Append "skip|block" as `skip`, `block` */
static void words_add(struct buf *b, const char *words)
{
    struct bytes one;
    bool first = true;
    while (word_next(&words, &one)) {
        buf_addf(b, "%s`%.*s`", first ? "" : ", ", BYTES_ARG(one));
        first = false;
    }
}

/* A default: JSON as code, words as they are. */
static void default_add(struct buf *b, const char *dflt, bool must)
{
    if (must)
        buf_add_text(b, "required");
    else if (default_is_json(dflt))
        buf_addf(b, "`%s`", dflt);
    else if (dflt)
        cell_add(b, dflt);
    else
        buf_add_text(b, "none");
}

static void who_add(struct buf *b, const struct route *r)
{
    if (r->may & MAY_OPEN) {
        buf_add_text(b, "everybody");
        return;
    }
    buf_add_text(b, "admin");
    if (r->may & MAY_APP)
        buf_add_text(b, ", app");
    if (r->may & MAY_MONITOR)
        buf_add_text(b, ", monitor");
}

/* ---- What is sent ---------------------------------------------------------------------------- */

static void param_add(struct buf *b, const struct param *p)
{
    buf_addf(b, "| `%s` | %s%s | ", p->name, param_type(p->kind),
             p->kind == PARAM_WORDS ? "s" : "");
    default_add(b, p->dflt, false);
    buf_add_text(b, " | ");
    if (p->kind == PARAM_SECONDS)
        buf_addf(b, "seconds, %lld..%lld", (long long)p->min, (long long)p->max);
    else if (p->kind == PARAM_INT)
        buf_addf(b, "%lld..%lld", (long long)p->min, (long long)p->max);
    else if (p->kind == PARAM_TIME)
        buf_add_text(b, "RFC 3339");
    else if (p->kind == PARAM_NAME)
        buf_addf(b, "1..%d bytes", NAME_LEN_MAX);
    else
        words_add(b, p->words);
    buf_add_text(b, " | ");
    cell_add(b, p->about);
    buf_add_text(b, " |\n");
}

static void type_add(struct buf *b, const struct field *f)
{
    buf_add_text(b, f->kind == FIELD_JSON ? "any JSON" : field_type(f->kind));
    if (f->kind == FIELD_ARRAY)
        buf_add_text(b, f->shape ? " of objects" : " of strings");
    if (f->kind == FIELD_TIMES)
        buf_add_text(b, " of times");
    if (f->kind == FIELD_OBJECT && !f->shape)
        buf_add_text(b, " of strings");
    if (f->flags & FIELD_NULL)
        buf_add_text(b, " or null");
}

static void unit_add(struct buf *b, const struct field *f)
{
    if (f->unit)
        cell_add(b, f->unit);
    else if (f->kind == FIELD_SECONDS && f->flags & FIELD_ABOVE_0)
        buf_add_text(b, "seconds, above 0");
    else if (f->kind == FIELD_SECONDS && f->max && f->max < DURATION_MAX_US / SEC_US)
        buf_addf(b, "seconds, %lld..%lld", (long long)f->min, (long long)f->max);
    else if (f->kind == FIELD_SECONDS)
        buf_add_text(b, "seconds");
    else if (f->kind == FIELD_INT)
        buf_addf(b, "%lld..%lld", (long long)f->min, (long long)f->max);
    else if (f->kind == FIELD_TIME)
        buf_add_text(b, "RFC 3339");
    else if (f->kind == FIELD_TIMES)
        buf_addf(b, "RFC 3339, 1..%lld", (long long)f->max);
    else if (f->kind == FIELD_BASE64)
        buf_add_text(b, "base64");
    else if (f->kind == FIELD_LEASE)
        buf_add_text(b, "32 hex digits");
    else if (f->kind == FIELD_NAME)
        buf_addf(b, "1..%d bytes", NAME_LEN_MAX);
    else
        words_add(b, f->words);
}

/* Append every field of a body, also those inside others, as results[].id. A call inside a body is
 * described once, at POST /v1/calls. */
static void shape_add(struct buf *b, const struct shape *s, const char *inside)
{
    char deeper[128];
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->v[i];
        bool call = f->shape == &spec_shape || f->shape == &tick_spec_shape;
        if (!shape_has(s, i))
            continue;
        buf_addf(b, "| `%s%s` | ", inside, f->name);
        type_add(b, f);
        buf_add_text(b, " | ");
        default_add(b, f->dflt, f->flags & FIELD_MUST);
        buf_add_text(b, " | ");
        unit_add(b, f);
        buf_add_text(b, " | ");
        cell_add(b, f->about);
        if (call)
            buf_addf(b, "; %sas in [POST /v1/calls](#post-v1calls)",
                     f->kind == FIELD_ARRAY ? "each " : "");
        buf_add_text(b, " |\n");
        if (!f->shape || call)
            continue;
        snprintf(deeper, sizeof deeper, "%s%s%s.", inside, f->name,
                 f->kind == FIELD_ARRAY ? "[]" : "");
        shape_add(b, f->shape, deeper);
    }
}

static const char *header_about(struct bytes name)
{
    for (size_t i = 0; i < n_request_headers; i++)
        if (bytes_eq(name, bytes_of(request_headers[i].name)))
            return request_headers[i].about;
    CHECK(!"a header that is documented");
    return NULL;
}

static void headers_add(struct buf *b, const char *names)
{
    struct bytes name;
    buf_add_text(b, "| header | meaning |\n|---|---|\n");
    while (header_next(&names, &name)) {
        buf_addf(b, "| `%.*s` | ", BYTES_ARG(name));
        cell_add(b, header_about(name));
        buf_add_text(b, " |\n");
    }
    buf_add_char(b, '\n');
}

static void sent_add(struct buf *b, const struct route *r)
{
    if (r->n_params) {
        buf_add_text(b, "| query | type | default | unit | meaning |\n|---|---|---|---|---|\n");
        for (size_t i = 0; i < r->n_params; i++)
            param_add(b, &r->params[i]);
        buf_add_char(b, '\n');
    }
    if (r->headers)
        headers_add(b, r->headers);
    if (r->body && !r->body->v)
        buf_add_text(b, "The body is any JSON value.\n\n");
    if (r->body && r->body->v) {
        buf_add_text(b, "| body | type | default | unit | meaning |\n|---|---|---|---|---|\n");
        shape_add(b, r->body, "");
        buf_add_char(b, '\n');
    }
}

static void example_add(struct buf *b, const struct route *r)
{
    const char *method = http_method_name(r->method);
    bool plain = r->method == HTTP_GET || (r->method == HTTP_POST && r->body_example);
    buf_add_text(b, "    curl");
    if (!plain)
        buf_addf(b, " -X %s", method);
    buf_addf(b, " '127.0.0.1:7295%s'", r->example);
    if (r->body_example)
        buf_addf(b, " -d '%s'", r->body_example);
    buf_add_text(b, "\n\n");
}

/* ---- What comes back ------------------------------------------------------------------------- */

static void header_names_add(struct buf *b, const char *names)
{
    struct bytes name;
    for (bool first = true; header_next(&names, &name); first = false)
        buf_addf(b, "%s`%.*s`", first ? "" : ", ", BYTES_ARG(name));
}

static void answers_add(struct buf *b, const struct route *r)
{
    buf_add_text(b, "| answer | body | headers | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < r->n_answers; i++) {
        const struct answer *a = &r->answers[i];
        buf_addf(b, "| %d | ", a->status);
        if (a->schema)
            buf_addf(b, "`%s`%s", a->schema, a->type ? " or " : "");
        if (a->type || !a->schema)
            buf_add_text(b, a->type ? a->type : "none");
        buf_add_text(b, " | ");
        header_names_add(b, a->headers);
        buf_add_text(b, " | ");
        cell_add(b, a->about);
        buf_add_text(b, " |\n");
    }
    buf_add_char(b, '\n');
}

/* Columns of a line of prose. */
#define PROSE_MAX 118

/* Breaks what was added since `from`, one paragraph, into lines: spaces become line ends. */
static void prose_wrap(struct buf *b, size_t from)
{
    size_t line = from, space = 0;
    for (size_t i = from; i < b->len; i++) {
        if (b->data[i] == ' ')
            space = i;
        if (i - line >= PROSE_MAX && space > line) {
            b->data[space] = '\n';
            line = space + 1;
        }
    }
}

static void route_add(struct buf *b, const struct route *r)
{
    buf_addf(b, "## %s %s\n\n", http_method_name(r->method), r->pattern);
    size_t from = b->len;
    buf_addf(b, "%s%s %s For: ", r->summary, r->summary[strlen(r->summary) - 1] == '?' ? "" : ".",
             r->about);
    who_add(b, r);
    buf_add_text(b, ".\n\n");
    prose_wrap(b, from);
    example_add(b, r);
    sent_add(b, r);
    answers_add(b, r);
}

static void kind_add(struct buf *b, const struct member *m)
{
    if (m->array)
        buf_add_text(b, "array of ");
    else if (m->map)
        buf_add_text(b, "object of ");
    if (m->kind.data[0] == '@')
        buf_addf(b, "%.*s", (int)m->kind.len - 1, m->kind.data + 1);
    else
        buf_add_text(b, m->kind.data[0] == 't' ? "time" : member_type(m->kind.data[0]));
    if (m->null)
        buf_add_text(b, " or null");
}

static void schema_add(struct buf *b, const struct schema_text *s)
{
    struct member m;
    size_t from = b->len;
    buf_addf(b, "**%s**%s%s: ", s->name, s->about ? ", " : "", s->about ? s->about : "");
    if (s->words || s->any) {
        if (s->any)
            buf_add_text(b, "one of ");
        words_add(b, s->words ? s->words : s->any);
        buf_add_text(b, ".\n\n");
        prose_wrap(b, from);
        return;
    }
    bool first = true;
    for (const char *at = s->members; member_next(&at, &m); first = false) {
        buf_addf(b, "%s`%.*s` ", first ? "" : ", ", BYTES_ARG(m.name));
        kind_add(b, &m);
        if (m.maybe)
            buf_add_text(b, " (not always there)");
    }
    buf_add_text(b, ".\n\n");
    prose_wrap(b, from);
}

void api_print_markdown(struct buf *b)
{
    buf_add_text(b, "# The HTTP API\n\n<!-- Printed from src/api/routes.c; do not edit. -->\n\n");
    size_t from = b->len;
    buf_add_text(b, "Errors are `{\"error\":{\"code\",\"message\",\"id\",\"field\",\"status\","
                    "\"retry\"}}`; [status.md](status.md) lists the codes. Query parameters and "
                    "bodies are read strictly: unknown and repeated ones are refused by name. A "
                    "default of `none` means that nothing happens without it. Times are RFC 3339; "
                    "those in answers are UTC and always 27 characters long. `Json` is any JSON "
                    "value.\n\n");
    prose_wrap(b, from);
    for (size_t i = 0; i < n_routes; i++)
        route_add(b, &routes[i]);
    buf_add_text(b, "## Headers of answers\n\n| header | meaning |\n|---|---|\n");
    for (size_t i = 0; i < n_answer_headers; i++)
        buf_addf(b, "| `%s` | %s |\n", answer_headers[i].name, answer_headers[i].about);
    buf_add_text(b, "\n## What answers look like\n\n");
    for (size_t i = 0; i < n_schemas; i++)
        schema_add(b, &schemas[i]);
}
