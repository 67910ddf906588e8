/*
 * openapi.c - openapi.json names every route of the table, everything it refers to is in it, and
 * real answers of every route are what it says.
 *
 * The validator knows the few words of JSON Schema that the document uses, and fails on any other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <stdio.h>

#include "api/inside.h"
#include "lib/lib.h"
#include "web.h"

RIG_MAIN

/* ---- The validator --------------------------------------------------------------------------- */

static struct json *doc;

static const struct json *resolve(const struct json *schema)
{
    const struct json *ref = json_member(schema, "$ref");
    if (!ref)
        return schema;
    char name[128];
    EQ_INT(sscanf(ref->raw.data, "\"#/components/schemas/%127[A-Za-z]\"", name), 1);
    const struct json *all = json_member(json_member(doc, "components"), "schemas");
    const struct json *found = json_member(all, name);
    if (!found)
        FAIL("no schema is called %s", name);
    return found;
}

static bool is_type(struct bytes type, const struct json *v)
{
    static const struct {
        const char *name;
        enum json_kind kind;
    } types[] = { { "\"null\"", JSON_NULL },      { "\"boolean\"", JSON_TRUE },
                  { "\"boolean\"", JSON_FALSE },  { "\"number\"", JSON_NUMBER },
                  { "\"integer\"", JSON_NUMBER }, { "\"string\"", JSON_STRING },
                  { "\"array\"", JSON_ARRAY },    { "\"object\"", JSON_OBJECT } };
    int64_t n;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (bytes_eq(type, bytes_of(types[i].name)) && types[i].kind == v->kind)
            return strcmp(types[i].name, "\"integer\"") || json_int(v, &n);
    return false;
}

static bool type_fits(const struct json *type, const struct json *v)
{
    if (type->kind == JSON_STRING)
        return is_type(type->raw, v);
    for (const struct json *one = type->first; one; one = one->next)
        if (is_type(one->raw, v))
            return true;
    return false;
}

static void validate(const struct json *schema, const struct json *v, const char *where);

static void validate_object(const struct json *schema, const struct json *v, const char *where)
{
    const struct json *properties = json_member(schema, "properties");
    const struct json *required = json_member(schema, "required");
    for (const struct json *r = required ? required->first : NULL; r; r = r->next) {
        const char *name = web_text("%.*s", (int)r->raw.len - 2, r->raw.data + 1);
        if (!json_member(v, name))
            FAIL("%s: no %s in %.*s", where, name, BYTES_ARG(v->raw));
    }
    for (const struct json *m = v->first; m; m = m->next) {
        const char *name = web_text("%.*s", BYTES_ARG(m->name));
        const struct json *p = properties ? json_member(properties, name) : NULL;
        if (p)
            validate(p, m, web_text("%s.%s", where, name));
        else if (properties)
            FAIL("%s: %s is not in the document", where, name);
    }
}

static void validate(const struct json *schema, const struct json *v, const char *where)
{
    schema = resolve(schema);
    for (const struct json *word = schema->first; word; word = word->next) {
        if (bytes_eq(word->name, BYTES("type")) && !type_fits(word, v))
            FAIL("%s: %.*s is not %.*s", where, BYTES_ARG(v->raw), BYTES_ARG(word->raw));
        if (bytes_eq(word->name, BYTES("format")) && v->kind == JSON_STRING)
            EQ_UINT(v->raw.len, 29); /* a time, and its quotes */
    }
    const struct json *items = json_member(schema, "items");
    if (v->kind == JSON_OBJECT)
        validate_object(schema, v, where);
    for (const struct json *one = items && v->kind == JSON_ARRAY ? v->first : NULL; one;
         one = one->next)
        validate(items, one, web_text("%s[]", where));
}

/* ---- Every route ----------------------------------------------------------------------------- */

static void fetch(struct web *w)
{
    struct web_answer a = GET(w, "/openapi.json");
    EQ_INT(a.status, 200);
    doc = a.json;
    EQ_STR(AT(a, "openapi"), "3.1.0");
}

static const struct json *operation(const char *pattern, enum http_method method)
{
    char name[16] = { 0 };
    for (size_t i = 0; http_method_name(method)[i]; i++)
        name[i] = (char)tolower((unsigned char)http_method_name(method)[i]);
    const struct json *path = json_member(json_member(doc, "paths"), pattern);
    const struct json *op = path ? json_member(path, name) : NULL;
    if (!op)
        FAIL("%s %s is not in the document", name, pattern);
    return op;
}

static void check_refs(const struct json *v)
{
    if (v->kind == JSON_OBJECT)
        resolve(v);
    for (const struct json *one = v->first; one; one = one->next)
        check_refs(one);
}

TEST(names_every_route_and_refers_to_what_is_there)
{
    struct web w;
    web_begin(&w, param);
    fetch(&w);
    for (size_t i = 0; i < n_routes; i++) {
        const struct json *op = operation(routes[i].pattern, routes[i].method);
        TRUE(json_member(op, "summary"));
        TRUE(json_member(json_member(op, "responses"), "default"));
        EQ_INT(!json_member(op, "requestBody"), !routes[i].body);
    }
    check_refs(doc);
    web_end(&w);
}

/* One request, and what is to come back. $L is the lease of the last claim. */
static const struct shot {
    enum http_method method;
    const char *pattern, *path, *body;
    int status;
} shots[] = {
    { HTTP_POST, "/v1/calls", "/v1/calls",
      "{\"type\":\"t\",\"id\":\"a\",\"tags\":{\"k\":\"v\"},\"expires_in\":99}", 202 },
    { HTTP_POST, "/v1/calls", "/v1/calls",
      "{\"type\":\"t\",\"id\":\"b\",\"input_base64\":\"/w==\"}", 202 },
    { HTTP_POST, "/v1/calls", "/v1/calls", "{\"type\":\"t\",\"id\":\"a\",\"input\":1}", 409 },
    { HTTP_POST, "/v1/calls", "/v1/calls", "{\"type\":7}", 400 },
    { HTTP_POST, "/v1/calls/batch", "/v1/calls/batch",
      "{\"calls\":[{\"type\":\"t\",\"id\":\"c\"},{}]}", 200 },
    { HTTP_GET, "/v1/calls", "/v1/calls?include=input,result", NULL, 200 },
    { HTTP_GET, "/v1/calls/{id}", "/v1/calls/a", NULL, 200 },
    { HTTP_GET, "/v1/calls/{id}", "/v1/calls/nobody", NULL, 404 },
    { HTTP_PATCH, "/v1/calls/{id}", "/v1/calls/a", "{\"priority\":9}", 200 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"queues\":[\"none\"]}", 200 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"max\":3}", 200 },
    { HTTP_POST, "/v1/work/extend", "/v1/work/extend", "{\"lease\":\"$L\"}", 200 },
    { HTTP_POST, "/v1/calls/{id}/cancel", "/v1/calls/c/cancel", NULL, 202 },
    { HTTP_POST, "/v1/work/finish", "/v1/work/finish",
      "{\"lease\":\"$L\",\"results\":[{\"id\":\"a\",\"result\":1},{\"id\":\"b\",\"error\":\"x\"}],"
      "\"claim\":{}}",
      200 },
    { HTTP_POST, "/v1/work/finish", "/v1/work/finish",
      "{\"lease\":\"x\",\"results\":[{\"id\":\"a\",\"result\":1}]}", 409 },
    { HTTP_GET, "/v1/calls/{id}/attempts", "/v1/calls/b/attempts", NULL, 200 },
    { HTTP_GET, "/v1/calls/{id}/result", "/v1/calls/a/result", NULL, 200 },
    { HTTP_GET, "/v1/calls/{id}/result", "/v1/calls/b/result", NULL, 202 },
    { HTTP_POST, "/v1/calls/{id}/cancel", "/v1/calls/b/cancel", NULL, 200 },
    { HTTP_POST, "/v1/calls/{id}/cancel", "/v1/calls/a/cancel", NULL, 409 },
    { HTTP_POST, "/v1/calls/{id}/retry", "/v1/calls/b/retry", NULL, 202 },
    { HTTP_POST, "/v1/calls/cancel", "/v1/calls/cancel", "{\"status\":\"pending\"}", 200 },
    { HTTP_POST, "/v1/calls/retry", "/v1/calls/retry", "{\"status\":\"cancelled\"}", 200 },
    { HTTP_GET, "/v1/queues", "/v1/queues", NULL, 200 },
    { HTTP_POST, "/v1/queues/{queue}/pause", "/v1/queues/q/pause", NULL, 200 },
    { HTTP_POST, "/v1/queues/{queue}/resume", "/v1/queues/q/resume", NULL, 200 },
    { HTTP_PUT, "/v1/objects/{type}/{key}", "/v1/objects/W/k", "{\"n\":1}", 200 },
    { HTTP_PUT, "/v1/objects/{type}/{key}", "/v1/objects/W/k", "{", 400 },
    { HTTP_GET, "/v1/objects/{type}/{key}", "/v1/objects/W/k", NULL, 200 },
    { HTTP_GET, "/v1/objects/{type}/{key}", "/v1/objects/W/none", NULL, 404 },
    { HTTP_POST, "/v1/objects/{type}/{key}/{method}", "/v1/objects/W/k/add?wait=0", "5", 202 },
    { HTTP_DELETE, "/v1/objects/{type}/{key}", "/v1/objects/W/k", NULL, 409 },
    { HTTP_DELETE, "/v1/objects/{type}/{key}", "/v1/objects/W/k?cancel=true", NULL, 200 },
    { HTTP_POST, "/v1/sessions/{session}/requests", "/v1/sessions/s/requests?wait=0",
      "{\"type\":\"t\"}", 202 },
    { HTTP_POST, "/v1/sessions/{session}/requests", "/v1/sessions/s/requests?wait=0",
      "{\"type\":\"t\",\"on_timeout\":\"cancel\"}", 503 },
    { HTTP_POST, "/v1/calls", "/v1/calls", "{\"type\":\"W\",\"id\":\"w1\",\"key\":\"k\"}", 202 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"types\":[\"W\"]}", 200 },
    { HTTP_POST, "/v1/work/finish", "/v1/work/finish",
      "{\"lease\":\"$L\",\"results\":[{\"id\":\"w1\",\"result\":1,\"state\":7}]}", 200 },
    { HTTP_POST, "/v1/calls", "/v1/calls",
      "{\"type\":\"W\",\"id\":\"w2\",\"key\":\"k\",\"on_dead\":\"block\"}", 202 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"types\":[\"W\"]}", 200 },
    { HTTP_POST, "/v1/work/finish", "/v1/work/finish",
      "{\"lease\":\"$L\",\"results\":[{\"id\":\"w2\",\"error\":\"x\",\"retry\":false}]}", 200 },
    { HTTP_GET, "/v1/keys", "/v1/keys", NULL, 200 },
    { HTTP_POST, "/v1/keys/{key}/unblock", "/v1/keys/k/unblock", "{\"action\":\"skip\"}", 200 },
    { HTTP_POST, "/v1/keys/{key}/unblock", "/v1/keys/k/unblock", "{\"action\":\"skip\"}", 409 },
    { HTTP_GET, "/v1/nodes", "/v1/nodes", NULL, 200 },
    { HTTP_GET, "/v1/leaders", "/v1/leaders", NULL, 200 },
    { HTTP_POST, "/v1/nodes/{node}/drain", "/v1/nodes/rig/drain", NULL, 200 },
    { HTTP_GET, "/readyz", "/readyz", NULL, 503 },
    { HTTP_POST, "/v1/nodes/{node}/undrain", "/v1/nodes/rig/undrain", NULL, 200 },
    { HTTP_GET, "/readyz", "/readyz", NULL, 200 },
    { HTTP_GET, "/v1/info", "/v1/info", NULL, 200 },
    { HTTP_GET, "/healthz", "/healthz", NULL, 200 },
    { HTTP_GET, "/metrics", "/metrics", NULL, 200 },
    { HTTP_GET, "/openapi.json", "/openapi.json", NULL, 200 },
    { HTTP_GET, "/", "/", NULL, 200 },
    { HTTP_GET, "/favicon.ico", "/favicon.ico", NULL, 204 },
};

static void check_answer(const struct shot *s, struct web_answer a)
{
    const char *where = web_text("%s %s: %d", http_method_name(s->method), s->path, a.status);
    if (a.status != s->status)
        FAIL("%s, not %d: %.*s", where, s->status, BYTES_ARG(a.body));
    const struct json *answers = json_member(operation(s->pattern, s->method), "responses");
    const struct json *said = json_member(answers, web_text("%d", a.status));
    if (!said && a.status < 400)
        FAIL("%s is not in the document", where);
    const struct json *content =
        json_member(said ? said : json_member(answers, "default"), "content");
    if (!content)
        return;
    if (!a.json)
        FAIL("%s: no JSON: %.*s", where, BYTES_ARG(a.body));
    validate(json_member(json_member(content, "application/json"), "schema"), a.json, where);
}

static const char *with_lease(const char *body, const char *lease)
{
    const char *at = body ? strstr(body, "$L") : NULL;
    return at ? web_text("%.*s%s%s", (int)(at - body), body, lease, at + 2) : body;
}

TEST(answers_are_what_it_says)
{
    struct web w;
    const char *lease = "";
    web_begin(&w, param);
    fetch(&w);
    for (size_t i = 0; i < COUNT_OF(shots); i++) {
        const struct shot *s = &shots[i];
        struct web_answer a =
            web_ask(&w, http_method_name(s->method), s->path, with_lease(s->body, lease));
        check_answer(s, a);
        if (a.json && AT(a, "lease") && strcmp(AT(a, "lease"), "null"))
            lease = AT(a, "lease");
    }
    for (size_t i = 0; i < n_routes; i++) {
        bool asked = false;
        for (size_t k = 0; k < COUNT_OF(shots); k++)
            asked |=
                shots[k].method == routes[i].method && !strcmp(shots[k].pattern, routes[i].pattern);
        if (!asked)
            FAIL("%s %s was not asked", http_method_name(routes[i].method), routes[i].pattern);
    }
    web_end(&w);
}
