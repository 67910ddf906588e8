/*
 * openapi.c - the table of routes as documents: openapi.json for programs, doc/http.md for people.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>

#include "api/inside.h"

/* ---- Schemas --------------------------------------------------------------------------------- */

/* One word of schema_text.members, taken apart. */
struct member {
    struct bytes name, kind; /* kind without `[` and `?` */
    bool array, null, maybe;
};

static bool next_member(const char **at, struct member *m)
{
    *at += strspn(*at, " ");
    size_t len = strcspn(*at, " ");
    const char *colon = len ? memchr(*at, ':', len) : NULL;
    if (!colon)
        return false;
    struct bytes kind = { colon + 1, len - (size_t)(colon - *at) - 1 };
    *m = (struct member){ .maybe = **at == '*' };
    m->name = (struct bytes){ *at + m->maybe, (size_t)(colon - *at) - m->maybe };
    m->array = kind.data[0] == '[';
    m->null = kind.data[kind.len - 1] == '?';
    m->kind = (struct bytes){ kind.data + m->array, kind.len - m->array - m->null };
    *at += len;
    return true;
}

static void type_add(struct buf *b, struct bytes kind, bool null)
{
    static const char *const types[] = { ['s'] = "string", ['t'] = "string",  ['i'] = "integer",
                                         ['n'] = "number", ['b'] = "boolean", ['o'] = "object" };
    if (kind.data[0] == '@') {
        buf_addf(b, "{\"$ref\":\"#/components/schemas/%.*s\"}", (int)kind.len - 1, kind.data + 1);
        return;
    }
    if (kind.data[0] == 'a') {
        buf_add_text(b, "{}");
        return;
    }
    const char *type = types[(unsigned char)kind.data[0]];
    if (null)
        buf_addf(b, "{\"type\":[\"%s\",\"null\"]", type);
    else
        buf_addf(b, "{\"type\":\"%s\"", type);
    if (kind.data[0] == 't')
        buf_add_text(b, ",\"format\":\"date-time\"");
    buf_add_char(b, '}');
}

static void schema_add(struct buf *b, const struct schema_text *s)
{
    struct member m;
    json_add_name(b, s->name);
    buf_add_text(b, "{\"type\":\"object\",\"properties\":{");
    for (const char *at = s->members; next_member(&at, &m);) {
        json_add_comma(b);
        json_add_string(b, m.name);
        buf_add_char(b, ':');
        if (m.array)
            buf_add_text(b, "{\"type\":\"array\",\"items\":");
        type_add(b, m.kind, m.null);
        if (m.array)
            buf_add_char(b, '}');
    }
    buf_add_text(b, "},\"required\":[");
    for (const char *at = s->members; next_member(&at, &m);) {
        if (m.maybe)
            continue;
        json_add_comma(b);
        json_add_string(b, m.name);
    }
    buf_add_text(b, "]}");
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

static const char *field_type(enum field_kind kind)
{
    switch (kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
    case FIELD_WORD:
    case FIELD_TIME:
    case FIELD_BASE64:
        return "string";
    case FIELD_INT:
        return "integer";
    case FIELD_REAL:
    case FIELD_SECONDS:
        return "number";
    case FIELD_BOOL:
        return "boolean";
    case FIELD_OBJECT:
        return "object";
    case FIELD_ARRAY:
        return "array";
    case FIELD_JSON:
        break;
    }
    return NULL;
}

static void words_add(struct buf *b, const char *words)
{
    buf_add_text(b, ",\"enum\":[");
    for (const char *at = words; *at; at += strspn(at, "|")) {
        size_t len = strcspn(at, "|");
        json_add_comma(b);
        json_add_string(b, (struct bytes){ at, len });
        at += len;
    }
    buf_add_char(b, ']');
}

static void field_limits(struct buf *b, const struct field *f)
{
    if (f->kind == FIELD_NAME)
        buf_addf(b, ",\"minLength\":1,\"maxLength\":%d", NAME_LEN_MAX);
    if (f->kind == FIELD_TIME)
        buf_add_text(b, ",\"format\":\"date-time\"");
    if (f->kind == FIELD_INT)
        buf_addf(b, ",\"minimum\":%lld,\"maximum\":%lld", (long long)f->min, (long long)f->max);
    if (f->kind == FIELD_SECONDS && f->flags & FIELD_ABOVE_0)
        buf_add_text(b, ",\"exclusiveMinimum\":0");
    else if (f->kind == FIELD_SECONDS)
        buf_addf(b, ",\"minimum\":%lld", (long long)f->min);
    if (f->kind == FIELD_SECONDS && f->max)
        buf_addf(b, ",\"maximum\":%lld", (long long)f->max);
    if (f->kind == FIELD_WORD)
        words_add(b, f->words);
}

static void field_add(struct buf *b, const struct field *f)
{
    const char *type = field_type(f->kind);
    json_add_name(b, f->name);
    if (f->kind == FIELD_OBJECT && f->shape) {
        buf_addf(b, "{\"$ref\":\"#/components/schemas/%s\"}", f->shape->name);
        return;
    }
    buf_add_char(b, '{');
    if (f->about) {
        json_add_name(b, "description");
        json_add_string(b, bytes_of(f->about));
    }
    if (type) {
        json_add_name(b, "type");
        if (f->flags & FIELD_NULL)
            buf_addf(b, "[\"%s\",\"null\"]", type);
        else
            buf_addf(b, "\"%s\"", type);
    }
    if (f->kind == FIELD_ARRAY && f->shape)
        buf_addf(b, ",\"items\":{\"$ref\":\"#/components/schemas/%s\"}", f->shape->name);
    field_limits(b, f);
    buf_add_char(b, '}');
}

static void shape_add(struct buf *b, const struct shape *s)
{
    json_add_name(b, s->name);
    if (!s->v) {
        buf_add_text(b, "{}"); /* any value */
        return;
    }
    buf_add_text(b, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < s->n; i++)
        field_add(b, &s->v[i]);
    buf_add_text(b, "},\"required\":[");
    for (size_t i = 0; i < s->n; i++) {
        if (!(s->v[i].flags & FIELD_MUST))
            continue;
        json_add_comma(b);
        json_add_string(b, bytes_of(s->v[i].name));
    }
    buf_add_text(b, "]}");
}

/* Every shape once: bodies, and what their fields are made of. */
#define SHAPES_MAX 32
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
        if (s->v[i].shape)
            shapes_gather(all, s->v[i].shape);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static void path_params_add(struct buf *b, const char *pattern)
{
    for (const char *open = strchr(pattern, '{'); open; open = strchr(open + 1, '{')) {
        size_t len = strcspn(open + 1, "}");
        json_add_comma(b);
        buf_addf(b,
                 "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":"
                 "\"string\",\"minLength\":1,\"maxLength\":%d}}",
                 (int)len, open + 1, NAME_LEN_MAX);
    }
}

static void param_add(struct buf *b, const struct param *p)
{
    static const char *const types[] = {
        [PARAM_NAME] = "string",    [PARAM_TEXT] = "string", [PARAM_INT] = "integer",
        [PARAM_SECONDS] = "number", [PARAM_TIME] = "string", [PARAM_BOOL] = "boolean"
    };
    json_add_comma(b);
    buf_addf(b, "{\"name\":\"%s\",\"in\":\"query\",\"description\":", p->name);
    json_add_string(b, bytes_of(p->about));
    buf_addf(b, ",\"schema\":{\"type\":\"%s\"", types[p->kind]);
    if (p->kind == PARAM_INT || p->kind == PARAM_SECONDS)
        buf_addf(b, ",\"minimum\":%lld,\"maximum\":%lld", (long long)p->min, (long long)p->max);
    if (p->kind == PARAM_TIME)
        buf_add_text(b, ",\"format\":\"date-time\"");
    buf_add_text(b, "}}");
}

static void answer_add(struct buf *b, const struct answer *a)
{
    json_add_comma(b);
    if (a->status)
        buf_addf(b, "\"%d\":{\"description\":", a->status);
    else
        buf_add_text(b, "\"default\":{\"description\":");
    json_add_string(b, bytes_of(a->about));
    if (a->schema)
        buf_addf(b,
                 ",\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                 "\"#/components/schemas/%s\"}}}",
                 a->schema);
    buf_add_char(b, '}');
}

/* "post" + "/v1/calls/{id}/cancel" -> "post_v1_calls_id_cancel" */
static void operation_id_add(struct buf *b, const struct route *r)
{
    bool gap = true;
    json_add_name(b, "operationId");
    buf_add_char(b, '"');
    for (const char *p = http_method_name(r->method); *p; p++)
        buf_add_char(b, (char)tolower((unsigned char)*p));
    for (const char *p = r->pattern; *p; p++) {
        bool word = isalnum((unsigned char)*p);
        if (word && gap)
            buf_add_char(b, '_');
        if (word)
            buf_add_char(b, *p);
        gap = !word;
    }
    buf_add_char(b, '"');
}

static void operation_add(struct buf *b, const struct route *r)
{
    char method[16] = { 0 };
    for (size_t i = 0; http_method_name(r->method)[i] && i + 1 < sizeof method; i++)
        method[i] = (char)tolower((unsigned char)http_method_name(r->method)[i]);
    json_add_name(b, method);
    buf_add_char(b, '{');
    operation_id_add(b, r);
    json_add_name(b, "summary");
    json_add_string(b, bytes_of(r->summary));
    buf_add_text(b, ",\"parameters\":[");
    path_params_add(b, r->pattern);
    for (size_t i = 0; i < r->n_params; i++)
        param_add(b, &r->params[i]);
    buf_add_char(b, ']');
    if (r->body)
        buf_addf(b,
                 ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                 "\"#/components/schemas/%s\"}}}}",
                 r->body->name);
    if (r->may & MAY_OPEN)
        buf_add_text(b, ",\"security\":[]");
    buf_add_text(b, ",\"responses\":{");
    for (size_t i = 0; i < r->n_answers; i++)
        answer_add(b, &r->answers[i]);
    answer_add(b, &(struct answer){ 0, "an error", "Error" });
    buf_add_text(b, "}}");
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

void api_print_openapi(struct buf *b)
{
    struct shapes all = { 0 };
    buf_add_text(b,
                 "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Pawl\",\"version\":\"" PAWL_VERSION
                 "\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}},"
                 "\"servers\":[{\"url\":\"/\"}],\"security\":[{\"token\":[]},{}],\"paths\":{");
    paths_add(b);
    buf_add_text(b, "},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\","
                    "\"scheme\":\"bearer\"}},\"schemas\":{");
    for (size_t i = 0; i < n_schemas; i++)
        schema_add(b, &schemas[i]);
    for (size_t i = 0; i < n_routes; i++)
        if (routes[i].body)
            shapes_gather(&all, routes[i].body);
    for (size_t i = 0; i < all.n; i++)
        shape_add(b, all.v[i]);
    buf_add_text(b, "}}}");
}

void route_openapi(struct ask *q)
{
    struct buf *b = ask_buf(q);
    api_print_openapi(b);
    ask_reply(q, 200, b);
}
