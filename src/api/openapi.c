/*
 * openapi.c - prints the table of routes as openapi.json, for programs. http_md.c prints it for
 * people.
 *
 * test/api/openapi.c compares real answers with it and checks its form; tools/openapi-lint.sh runs
 * spectral on it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>

#include "api/ask.h"
#include "api/auth.h"
#include "api/document.h"
#include "api/reply.h"
#include "api/route.h"
#include "api/routes.h"
#include "api/schema.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/fields.h"
#include "model/needs.h"
#include "model/words.h"

#define REF(kind) "{\"$ref\":\"#/components/" kind "/%.*s\"}"

static void string_add(struct buf *b, const char *name, const char *text)
{
    json_add_name(b, name);
    json_add_string(b, bytes_of(text));
}

/* ---- Schemas --------------------------------------------------------------------------------- */

static void enum_add(struct buf *b, const char *words)
{
    struct bytes one;
    buf_add_text(b, ",\"enum\":[");
    while (word_next(&words, &one)) {
        json_add_comma(b);
        json_add_string(b, one);
    }
    buf_add_char(b, ']');
}

/* `"type":"string"`, or `"type":["string","null"]` */
static void type_add(struct buf *b, const char *type, bool null)
{
    if (null)
        buf_addf(b, "\"type\":[\"%s\",\"null\"]", type);
    else
        buf_addf(b, "\"type\":\"%s\"", type);
}

static void kind_add(struct buf *b, struct bytes kind, bool null)
{
    if (kind.data[0] == '@') {
        if (null)
            buf_add_text(b, "{\"anyOf\":[");
        buf_addf(b, REF("schemas"), (int)kind.len - 1, kind.data + 1);
        if (null)
            buf_add_text(b, ",{\"type\":\"null\"}]}");
        return;
    }
    buf_add_char(b, '{');
    type_add(b, member_type(kind.data[0]), null);
    if (kind.data[0] == 't')
        buf_add_text(b, ",\"format\":\"date-time\"");
    buf_add_char(b, '}');
}

static void member_add(struct buf *b, const struct member *m)
{
    bool many = m->array || m->map;
    json_add_comma(b);
    json_add_string(b, m->name);
    buf_add_char(b, ':');
    if (many) {
        buf_add_char(b, '{');
        type_add(b, m->array ? "array" : "object", m->null);
        buf_add_text(b, m->array ? ",\"items\":" : ",\"additionalProperties\":");
    }
    kind_add(b, m->kind, m->null && !many);
    if (many)
        buf_add_char(b, '}');
}

static void members_add(struct buf *b, const char *members)
{
    struct member m;
    buf_add_text(b, "\"type\":\"object\",\"properties\":{");
    for (const char *at = members; member_next(&at, &m);)
        member_add(b, &m);
    buf_add_text(b, "},\"required\":[");
    for (const char *at = members; member_next(&at, &m);) {
        if (m.maybe)
            continue;
        json_add_comma(b);
        json_add_string(b, m.name);
    }
    buf_add_char(b, ']');
}

static void schema_add(struct buf *b, const struct schema_text *s)
{
    struct bytes one;
    json_add_name(b, s->name);
    buf_add_char(b, '{');
    if (s->about)
        string_add(b, "description", s->about);
    json_add_comma(b);
    if (s->words) {
        type_add(b, "string", false);
        enum_add(b, s->words);
    } else if (s->any) {
        buf_add_text(b, "\"anyOf\":[");
        for (const char *at = s->any; word_next(&at, &one);) {
            json_add_comma(b);
            buf_addf(b, REF("schemas"), BYTES_ARG(one));
        }
        buf_add_char(b, ']');
    } else {
        members_add(b, s->members);
    }
    buf_add_char(b, '}');
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

/* Only a default that is JSON is printed. */
static void default_add(struct buf *b, const char *dflt)
{
    if (default_is_json(dflt))
        buf_addf(b, ",\"default\":%s", dflt);
}

#define NAME_SCHEMA "\"minLength\":1,\"maxLength\":%d"

static void field_limits(struct buf *b, const struct field *f)
{
    if (f->kind == FIELD_NAME)
        buf_addf(b, "," NAME_SCHEMA, NAME_LEN_MAX);
    if (f->kind == FIELD_TIME)
        buf_add_text(b, ",\"format\":\"date-time\"");
    if (f->kind == FIELD_BASE64)
        buf_add_text(b, ",\"contentEncoding\":\"base64\"");
    if (f->kind == FIELD_INT)
        buf_addf(b, ",\"minimum\":%lld,\"maximum\":%lld", (long long)f->min, (long long)f->max);
    if (f->kind == FIELD_SECONDS && f->flags & FIELD_ABOVE_0)
        buf_add_text(b, ",\"exclusiveMinimum\":0");
    else if (f->kind == FIELD_SECONDS)
        buf_addf(b, ",\"minimum\":%lld", (long long)f->min);
    if (f->kind == FIELD_SECONDS && f->max)
        buf_addf(b, ",\"maximum\":%lld", (long long)f->max);
    if (f->kind == FIELD_WORD)
        enum_add(b, f->words);
    if (f->kind == FIELD_OBJECT)
        buf_addf(b, ",\"additionalProperties\":{\"type\":\"string\"},\"maxProperties\":%d",
                 TAG_MAX);
    if (f->kind == FIELD_ARRAY && f->shape)
        buf_addf(b, ",\"items\":{\"$ref\":\"#/components/schemas/%s\"}", f->shape->name);
    else if (f->kind == FIELD_ARRAY && f->max)
        buf_addf(b,
                 ",\"items\":{\"type\":\"string\",\"pattern\":\"" NEED_PATTERN
                 "\",\"maxLength\":%d},\"maxItems\":%lld",
                 NEED_LEN_MAX, (long long)f->max);
    else if (f->kind == FIELD_ARRAY)
        buf_addf(b, ",\"items\":{\"type\":\"string\"," NAME_SCHEMA "},\"minItems\":1",
                 NAME_LEN_MAX);
    if (f->kind == FIELD_TIMES)
        buf_addf(b,
                 ",\"items\":{\"type\":\"string\",\"format\":\"date-time\"},\"minItems\":1,"
                 "\"maxItems\":%lld",
                 (long long)f->max);
    default_add(b, f->dflt);
}

/* Append a reference to a schema, which may allow null besides. */
static void reference_add(struct buf *b, const struct field *f, const char *name)
{
    if (f->flags & FIELD_NULL)
        buf_addf(b, ",\"anyOf\":[{\"$ref\":\"#/components/schemas/%s\"},{\"type\":\"null\"}]}",
                 name);
    else
        buf_addf(b, ",\"$ref\":\"#/components/schemas/%s\"}", name);
}

static void field_add(struct buf *b, const struct field *f)
{
    json_add_name(b, f->name);
    buf_add_char(b, '{');
    string_add(b, "description", f->about);
    if (f->kind == FIELD_JSON || (f->kind == FIELD_OBJECT && f->shape)) {
        reference_add(b, f, f->shape ? f->shape->name : any_shape.name);
        return;
    }
    buf_add_char(b, ',');
    type_add(b, field_type(f->kind), f->flags & FIELD_NULL);
    field_limits(b, f);
    buf_add_char(b, '}');
}

static void shape_add(struct buf *b, const struct shape *s)
{
    json_add_name(b, s->name);
    if (!s->v) {
        buf_add_text(b, "{\"description\":\"any JSON value\",\"type\":[\"object\",\"array\","
                        "\"string\",\"number\",\"boolean\",\"null\"],\"items\":{},"
                        "\"additionalProperties\":true}");
        return;
    }
    buf_add_text(b, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < s->n; i++)
        if (shape_has(s, i))
            field_add(b, &s->v[i]);
    buf_add_text(b, "},\"required\":[");
    for (size_t i = 0; i < s->n; i++) {
        if (!(s->v[i].flags & FIELD_MUST) || !shape_has(s, i))
            continue;
        json_add_comma(b);
        json_add_string(b, bytes_of(s->v[i].name));
    }
    buf_add_text(b, "]}");
}

/* Collects every shape once: bodies, and the shapes of their fields. */
#define SHAPES_MAX 64
struct shapes {
    const struct shape *v[SHAPES_MAX];
    size_t n;
};

static void shapes_gather(struct shapes *all, const struct shape *s)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i] == s)
            return;
    CHECK(all->n < SHAPES_MAX);
    all->v[all->n++] = s;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].shape && shape_has(s, i))
            shapes_gather(all, s->v[i].shape);
}

/* ---- Headers, tags --------------------------------------------------------------------------- */

static const struct documented tags[] = {
    { "calls", "submit, read, change, cancel and retry calls" },
    { "work", "workers over HTTP: claim, extend, finish" },
    { "objects", "states that belong to a type and a key" },
    { "sessions", "requests that run one at a time, in order" },
    { "keys", "calls of one key, which run one at a time" },
    { "workflows", "calls whose handlers take steps" },
    { "schedules", "calls that are submitted by the clock" },
    { "queues", "queues and their figures, pause and resume" },
    { "cluster", "nodes and their roles" },
    { "server", "this process" },
};

static void header_parameters_add(struct buf *b)
{
    for (size_t i = 0; i < n_request_headers; i++) {
        json_add_name(b, request_headers[i].name);
        buf_add_text(b, "{\"in\":\"header\"");
        string_add(b, "name", request_headers[i].name);
        string_add(b, "description", request_headers[i].about);
        buf_add_text(b, ",\"schema\":{\"type\":\"string\"}}");
    }
}

static void headers_add(struct buf *b)
{
    for (size_t i = 0; i < n_answer_headers; i++) {
        json_add_name(b, answer_headers[i].name);
        buf_add_char(b, '{');
        string_add(b, "description", answer_headers[i].about);
        buf_addf(b, ",\"schema\":{\"type\":\"%s\"}}",
                 strcmp(answer_headers[i].name, "Retry-After") ? "string" : "integer");
    }
}

static void tags_add(struct buf *b)
{
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        json_add_comma(b);
        buf_add_char(b, '{');
        string_add(b, "name", tags[i].name);
        string_add(b, "description", tags[i].about);
        buf_add_char(b, '}');
    }
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static void path_params_add(struct buf *b, const char *pattern)
{
    for (const char *open = strchr(pattern, '{'); open; open = strchr(open + 1, '{')) {
        int len = (int)strcspn(open + 1, "}");
        json_add_comma(b);
        buf_addf(b,
                 "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"description\":\"one "
                 "percent-encoded segment\",\"schema\":{\"type\":\"string\"," NAME_SCHEMA "}}",
                 len, open + 1, NAME_LEN_MAX);
    }
}

static void param_add(struct buf *b, const struct param *p)
{
    json_add_comma(b);
    buf_addf(b, "{\"name\":\"%s\",\"in\":\"query\"", p->name);
    string_add(b, "description", p->about);
    if (p->kind == PARAM_WORDS)
        buf_add_text(b, ",\"style\":\"form\",\"explode\":false,\"schema\":{\"type\":\"array\","
                        "\"items\":");
    else
        buf_add_text(b, ",\"schema\":");
    buf_addf(b, "{\"type\":\"%s\"", param_type(p->kind));
    if (p->kind == PARAM_INT || p->kind == PARAM_SECONDS)
        buf_addf(b, ",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min, (long long)p->max);
    if (p->kind == PARAM_NAME)
        buf_addf(b, "," NAME_SCHEMA, NAME_LEN_MAX);
    if (p->kind == PARAM_TIME)
        buf_add_text(b, ",\"format\":\"date-time\"");
    if (p->words)
        enum_add(b, p->words);
    default_add(b, p->dflt);
    buf_add_text(b, p->kind == PARAM_WORDS ? "}}}" : "}}");
}

static void parameters_add(struct buf *b, const struct route *r)
{
    struct bytes name;
    buf_add_text(b, ",\"parameters\":[");
    path_params_add(b, r->pattern);
    for (size_t i = 0; i < r->n_params; i++)
        param_add(b, &r->params[i]);
    for (const char *at = r->headers; header_next(&at, &name);) {
        json_add_comma(b);
        buf_addf(b, REF("parameters"), BYTES_ARG(name));
    }
    buf_add_char(b, ']');
}

static void body_add(struct buf *b, const struct route *r)
{
    buf_addf(b,
             ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
             "\"#/components/schemas/%s\"}",
             r->body->name);
    if (r->body_example)
        buf_addf(b, ",\"example\":%s", r->body_example);
    buf_add_char(b, '}');
    if (r->ndjson)
        buf_add_text(b, ",\"application/x-ndjson\":{\"schema\":{\"type\":\"string\","
                        "\"description\":\"one CallSpec a line\"}}");
    buf_add_text(b, "}}");
}

static void answer_add(struct buf *b, const struct answer *a)
{
    struct bytes name;
    json_add_comma(b);
    buf_addf(b, "\"%d\":{", a->status);
    string_add(b, "description", a->about);
    if (a->headers) {
        buf_add_text(b, ",\"headers\":{");
        for (const char *at = a->headers; header_next(&at, &name);) {
            json_add_comma(b);
            json_add_string(b, name);
            buf_add_char(b, ':');
            buf_addf(b, REF("headers"), BYTES_ARG(name));
        }
        buf_add_char(b, '}');
    }
    if (a->schema || a->type)
        buf_add_text(b, ",\"content\":{");
    if (a->schema)
        buf_addf(b, "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}",
                 a->schema);
    if (a->type)
        buf_addf(b, "%s\"%s\":{\"schema\":{\"type\":\"string\"}}", a->schema ? "," : "", a->type);
    if (a->schema || a->type)
        buf_add_char(b, '}');
    buf_add_char(b, '}');
}

static void operation_add(struct buf *b, const struct route *r)
{
    char method[16] = { 0 };
    for (size_t i = 0; http_method_name(r->method)[i] && i + 1 < sizeof method; i++)
        method[i] = (char)tolower((unsigned char)http_method_name(r->method)[i]);
    json_add_name(b, method);
    buf_add_char(b, '{');
    string_add(b, "operationId", r->op);
    buf_addf(b, ",\"tags\":[\"%s\"]", r->tag);
    string_add(b, "summary", r->summary);
    string_add(b, "description", r->about);
    parameters_add(b, r);
    if (r->body)
        body_add(b, r);
    if (r->may & MAY_OPEN)
        buf_add_text(b, ",\"security\":[]");
    buf_add_text(b, ",\"responses\":{");
    for (size_t i = 0; i < r->n_answers; i++)
        answer_add(b, &r->answers[i]);
    buf_add_text(b, ",\"default\":{\"$ref\":\"#/components/responses/Error\"}}}");
}

static void paths_add(struct buf *b)
{
    for (size_t i = 0; i < n_routes; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= !strcmp(routes[k].pattern, routes[i].pattern);
        if (seen)
            continue;
        json_add_name(b, routes[i].pattern);
        buf_add_char(b, '{');
        for (size_t k = i; k < n_routes; k++)
            if (!strcmp(routes[k].pattern, routes[i].pattern))
                operation_add(b, &routes[k]);
        buf_add_char(b, '}');
    }
}

static void schemas_add(struct buf *b)
{
    struct shapes all = { 0 };
    for (size_t i = 0; i < n_schemas; i++)
        schema_add(b, &schemas[i]);
    for (size_t i = 0; i < n_routes; i++)
        if (routes[i].body)
            shapes_gather(&all, routes[i].body);
    for (size_t i = 0; i < all.n; i++)
        shape_add(b, all.v[i]);
}

static void info_add(struct buf *b)
{
    buf_add_text(b, "\"info\":{\"title\":\"Pawl\",\"version\":\"" PAWL_VERSION "\"");
    string_add(
        b, "description",
        "Durable execution on the database you already run: calls that are stored before they "
        "are answered and take effect at most once per id. Requests are read strictly: unknown "
        "and repeated fields and parameters are refused by name. Answers may gain members and "
        "never lose any.");
    buf_add_text(b, ",\"contact\":{\"name\":\"the Pawl maintainers\"},\"license\":{\"name\":"
                    "\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}}");
}

void api_print_openapi(struct buf *b)
{
    buf_add_text(b, "{\"openapi\":\"3.1.0\",");
    info_add(b);
    buf_add_text(b, ",\"servers\":[{\"url\":\"/\"}],\"security\":[{\"token\":[]},{}],\"tags\":[");
    tags_add(b);
    buf_add_text(b, "],\"paths\":{");
    paths_add(b);
    buf_add_text(b, "},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\","
                    "\"scheme\":\"bearer\"}},\"parameters\":{");
    header_parameters_add(b);
    buf_add_text(b, "},\"headers\":{");
    headers_add(b);
    buf_add_text(b, "},\"responses\":{\"Error\":{\"description\":\"an error; `code` says which\","
                    "\"headers\":{");
    for (size_t i = 0; i < n_answer_headers; i++) {
        const char *name = answer_headers[i].name;
        if (!strcmp(name, "Location") || !strcmp(name, "ETag"))
            continue;
        json_add_name(b, name);
        buf_addf(b, REF("headers"), (int)strlen(name), name);
    }
    buf_add_text(b, "},\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                    "\"#/components/schemas/Error\"}}}}},\"schemas\":{");
    schemas_add(b);
    buf_add_text(b, "}}}");
}

void route_openapi(struct ask *q)
{
    struct buf *b = ask_buf(q);
    api_print_openapi(b);
    ask_reply(q, 200, b);
}
