/*
 * openapi.c - openapi.json names every route of the table, every reference in it resolves, and real
 * answers of every route match their schema.
 *
 * The validator supports the few keywords of JSON Schema that the document uses, and fails on any
 * other.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <stdio.h>

#include "api/route.h"
#include "api/schema.h"
#include "model/words.h"
#include "lib/lib.h"
#include "engines.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

/* ---- The validator --------------------------------------------------------------------------- */

static struct json *doc;

/* The target of `{"$ref":"#/components/KIND/NAME"}`; any other value is returned itself. */
static const struct json *resolve(const struct json *schema)
{
    const struct json *ref = json_member(schema, "$ref");
    if (!ref)
        return schema;
    char kind[32], name[96];
    EQ_INT(sscanf(ref->raw.data, "\"#/components/%31[a-z]/%95[A-Za-z-]\"", kind, name), 2);
    const struct json *all = json_member(json_member(doc, "components"), kind);
    const struct json *found = all ? json_member(all, name) : NULL;
    if (!found)
        FAIL("nothing of %s is called %s", kind, name);
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

/* Is the value one of these types, or one of these enum values? */
static bool type_fits(const struct json *type, const struct json *v)
{
    if (type->kind == JSON_STRING)
        return is_type(type->raw, v);
    for (const struct json *one = type->first; one; one = one->next)
        if (is_type(one->raw, v))
            return true;
    return false;
}

static bool is_listed(const struct json *list, const struct json *v)
{
    for (const struct json *one = list->first; one; one = one->next)
        if (bytes_eq(one->raw, v->raw))
            return true;
    return false;
}

/* NULL: the value matches the schema; else the reason why not. */
static const char *differs(const struct json *schema, const struct json *v, const char *where);

static const char *object_differs(const struct json *schema, const struct json *v,
                                  const char *where)
{
    const struct json *properties = json_member(schema, "properties");
    const struct json *required = json_member(schema, "required");
    const struct json *others = json_member(schema, "additionalProperties");
    for (const struct json *r = required ? required->first : NULL; r; r = r->next) {
        const char *name = web_text("%.*s", (int)r->raw.len - 2, r->raw.data + 1);
        if (!json_member(v, name))
            return web_text("%s: no %s in %.*s", where, name, BYTES_ARG(v->raw));
    }
    for (const struct json *m = v->first; m; m = m->next) {
        const char *name = web_text("%.*s", BYTES_ARG(m->name)), *why = NULL;
        const struct json *p = properties ? json_member(properties, name) : NULL;
        if (p || (others && others->kind == JSON_OBJECT))
            why = differs(p ? p : others, m, web_text("%s.%s", where, name));
        else if (properties)
            why = web_text("%s: %s is not in the document", where, name);
        if (why)
            return why;
    }
    return NULL;
}

static const char *any_differs(const struct json *any, const struct json *v, const char *where)
{
    const char *why = NULL;
    for (const struct json *one = any->first; one; one = one->next)
        if (!(why = differs(one, v, where)))
            return NULL;
    return why;
}

/* Has the array as many items as it may? */
static bool count_fits(const struct json *schema, const struct json *v)
{
    const struct json *min = json_member(schema, "minItems"),
                      *max = json_member(schema, "maxItems");
    int64_t low = 0, high = INT64_MAX;
    TRUE(!min || json_int(min, &low));
    TRUE(!max || json_int(max, &high));
    return (int64_t)v->count >= low && (int64_t)v->count <= high;
}

static const char *differs(const struct json *schema, const struct json *v, const char *where)
{
    schema = resolve(schema);
    if (v->kind == JSON_ARRAY && !count_fits(schema, v))
        return web_text("%s: %.*s has too few or too many items", where, BYTES_ARG(v->raw));
    for (const struct json *word = schema->first; word; word = word->next) {
        const char *why = NULL;
        if (bytes_eq(word->name, BYTES("type")) && !type_fits(word, v))
            why = web_text("%s: %.*s is not %.*s", where, BYTES_ARG(v->raw), BYTES_ARG(word->raw));
        if (bytes_eq(word->name, BYTES("enum")) && !is_listed(word, v))
            why =
                web_text("%s: %.*s is not in %.*s", where, BYTES_ARG(v->raw), BYTES_ARG(word->raw));
        if (bytes_eq(word->name, BYTES("format")) && v->kind == JSON_STRING && v->raw.len != 29)
            why = web_text("%s: %.*s is no time", where, BYTES_ARG(v->raw));
        if (bytes_eq(word->name, BYTES("anyOf")))
            why = any_differs(word, v, where);
        if (why)
            return why;
    }
    const struct json *items = json_member(schema, "items");
    const char *why = v->kind == JSON_OBJECT ? object_differs(schema, v, where) : NULL;
    for (const struct json *one = items && v->kind == JSON_ARRAY ? v->first : NULL; one && !why;
         one = one->next)
        why = differs(items, one, web_text("%s[]", where));
    return why;
}

static void validate(const struct json *schema, const struct json *v, const char *where)
{
    const char *why = differs(schema, v, where);
    if (why)
        FAIL("%s", why);
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

/* ---- Form: the rules of spectral's `oas` that concern our document --------------------------- */

static const char *text_of(const struct json *object, const char *member)
{
    const struct json *m = json_member(object, member);
    if (!m || m->kind != JSON_STRING || m->raw.len <= 2)
        FAIL("no %s in %.*s", member, (int)MIN(object->raw.len, 200), object->raw.data);
    return web_text("%.*s", (int)m->raw.len - 2, m->raw.data + 1);
}

TEST(every_operation_is_described)
{
    struct web w;
    web_begin(&w, param);
    fetch(&w);
    const struct json *info = json_member(doc, "info");
    text_of(info, "description");
    TRUE(json_member(info, "contact") != NULL);
    for (size_t i = 0; i < n_routes; i++) {
        const struct json *op = operation(routes[i].pattern, routes[i].method);
        const char *id = text_of(op, "operationId");
        text_of(op, "summary");
        text_of(op, "description");
        for (const char *c = id; *c; c++)
            TRUE(isalpha((unsigned char)*c)); /* submitCall, not post_v1_calls */
        for (size_t k = 0; k < i; k++)
            TRUE(strcmp(routes[k].op, routes[i].op) != 0);
        const struct json *tag = json_member(op, "tags")->first, *known = NULL;
        for (const struct json *t = json_member(doc, "tags")->first; t && !known; t = t->next)
            known = bytes_eq(json_member(t, "name")->raw, tag->raw) ? t : NULL;
        if (!known)
            FAIL("%s: tag %.*s is not in the document", id, BYTES_ARG(tag->raw));
        bool success = false;
        for (const struct json *a = json_member(op, "responses")->first; a; a = a->next)
            success |= a->name.data[0] == '2';
        TRUE(success);
        for (const struct json *p = json_member(op, "parameters")->first; p; p = p->next)
            text_of(resolve(p), "description");
    }
    web_end(&w);
}

static bool says(const struct json *v, const char *name, const char *raw)
{
    const struct json *m = json_member(v, name);
    return m && bytes_eq(m->raw, bytes_of(raw));
}

/* Every schema has a type, every array its items' type, every object typed members, and a default
 * is one of the values that are allowed. */
static void check_schema(const struct json *s, const char *where)
{
    const struct json *any = json_member(s, "anyOf"), *properties = json_member(s, "properties");
    const struct json *dflt = json_member(s, "default");
    const struct json *items = json_member(s, "items");
    const struct json *others = json_member(s, "additionalProperties");
    if (json_member(s, "$ref"))
        return;
    if (!any && !json_member(s, "type"))
        FAIL("%s: what is it? %.*s", where, (int)MIN(s->raw.len, 200), s->raw.data);
    bool array = says(s, "type", "\"array\"") || says(s, "type", "[\"array\",\"null\"]");
    if (array && !items)
        FAIL("%s: an array of what?", where);
    if (says(s, "type", "\"object\"") && !properties && !(others && others->kind == JSON_OBJECT))
        FAIL("%s: an object of what?", where);
    if (dflt)
        validate(s, dflt, web_text("%s: its default", where));
    for (const struct json *one = any ? any->first : NULL; one; one = one->next)
        check_schema(one, where);
    for (const struct json *p = properties ? properties->first : NULL; p; p = p->next)
        check_schema(p, web_text("%s.%.*s", where, BYTES_ARG(p->name)));
    if (items && array)
        check_schema(items, web_text("%s[]", where));
    if (others && others->kind == JSON_OBJECT)
        check_schema(others, web_text("%s.*", where));
}

/* All members called "schema", at any depth. */
static void check_schemas(const struct json *v, const char *where)
{
    for (const struct json *one = v->first; one; one = one->next) {
        bool named = v->kind == JSON_OBJECT;
        const char *deeper = named ? web_text("%s/%.*s", where, BYTES_ARG(one->name)) : where;
        if (named && bytes_eq(one->name, BYTES("schema")))
            check_schema(one, deeper);
        else if (!named || !bytes_eq(one->name, BYTES("example")))
            check_schemas(one, deeper);
    }
}

/* Is the component referred to anywhere? */
static bool is_used(const struct json *v, const char *ref)
{
    if (v->kind == JSON_OBJECT && says(v, "$ref", ref))
        return true;
    for (const struct json *one = v->first; one; one = one->next)
        if (is_used(one, ref))
            return true;
    return false;
}

TEST(every_schema_is_typed_and_used)
{
    struct web w;
    web_begin(&w, param);
    fetch(&w);
    check_schemas(json_member(doc, "paths"), "paths");
    const struct json *components = json_member(doc, "components");
    for (const struct json *s = json_member(components, "schemas")->first; s; s = s->next)
        check_schema(s, web_text("%.*s", BYTES_ARG(s->name)));
    static const char *const kinds[] = { "schemas", "headers", "parameters", "responses" };
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (const struct json *s = json_member(components, kinds[i])->first; s; s = s->next) {
            const char *ref = web_text("\"#/components/%s/%.*s\"", kinds[i], BYTES_ARG(s->name));
            if (!is_used(doc, ref))
                FAIL("nothing refers to %s", ref);
        }
    web_end(&w);
}

static bool of_feature(const char *path)
{
    return strncmp(path, "/v1/schedules", 13) == 0 || strncmp(path, "/v1/limits", 10) == 0 ||
           strncmp(path, "/v1/workflows", 13) == 0 || strncmp(path, "/v1/work/steps", 14) == 0;
}

/* The requests shown in doc/http.md and openapi.json are well-formed: they may find nothing, or use
 * a lease that does not exist, but they are not invalid. */
TEST(examples_are_well_formed)
{
    struct web w;
    web_begin(&w, param);
    fetch(&w);
    for (size_t i = 0; i < n_routes; i++) {
        const struct route *r = &routes[i];
        const char *wait = strstr(r->example, "wait="), *path = r->example;
        if (wait) /* no worker runs here */
            path = web_text("%.*swait=0", (int)(wait - r->example), r->example);
        const char *body = r->body_example;
        const char *long_wait = body ? strstr(body, ",\"wait\":20") : NULL;
        if (long_wait)
            body = web_text("%.*s%s", (int)(long_wait - body), body, long_wait + 10);
        if (strstr(r->pattern, "{method}"))
            path = web_text("%s?wait=0", path);
        struct web_answer a = web_ask(&w, http_method_name(r->method), path, body);
        if (fixture_is_mem(param) && a.status == 400 && of_feature(path))
            continue; /* mem: keeps calls only */
        if (a.status == 400 || a.status == 405 || a.status == 413 || a.status == 415)
            FAIL("%s %s: %d %.*s", http_method_name(r->method), path, a.status, BYTES_ARG(a.body));
    }
    web_end(&w);
}

/* ---- Real answers ---------------------------------------------------------------------------- */

/* One request and the expected answer. $L is the lease of the last claim. */
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
    { HTTP_GET, "/v1/calls/{id}", "/v1/calls/a?archived=true", NULL, 404 },
    { HTTP_GET, "/v1/calls", "/v1/calls", NULL, 200 },
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
    { HTTP_POST, "/v1/calls", "/v1/calls", "{\"type\":\"wf\",\"id\":\"f1\",\"input\":[1]}", 202 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"types\":[\"wf\"],\"steps\":true}", 200 },
    { HTTP_POST, "/v1/work/steps", "/v1/work/steps",
      "{\"lease\":\"$L\",\"id\":\"f1\",\"steps\":[{\"no\":1,\"name\":\"a\",\"kind\":\"run\","
      "\"result\":1}],\"publish\":{\"p\":[2]}}",
      200 },
    { HTTP_GET, "/v1/work/steps", "/v1/work/steps?lease=$L&id=f1", NULL, 200 },
    { HTTP_POST, "/v1/work/steps", "/v1/work/steps",
      "{\"lease\":\"$L\",\"id\":\"f1\",\"steps\":[{\"no\":2,\"name\":\"s\",\"kind\":"
      "\"signal\",\"wait\":{\"signals\":[\"s\"],\"until\":\"2100-01-01T00:00:00Z\"}}]}",
      200 },
    { HTTP_GET, "/v1/workflows", "/v1/workflows?status=waiting", NULL, 200 },
    { HTTP_GET, "/v1/workflows/{id}", "/v1/workflows/f1", NULL, 200 },
    { HTTP_GET, "/v1/workflows/{id}/published/{name}", "/v1/workflows/f1/published/p", NULL, 200 },
    { HTTP_POST, "/v1/workflows/{id}/signals/{name}", "/v1/workflows/f1/signals/t", "{}", 202 },
    { HTTP_POST, "/v1/workflows/{id}/cancel", "/v1/workflows/f1/cancel", "{}", 202 },
    { HTTP_POST, "/v1/work/claim", "/v1/work/claim", "{\"types\":[\"wf\"],\"steps\":true}", 200 },
    { HTTP_POST, "/v1/work/finish", "/v1/work/finish",
      "{\"lease\":\"$L\",\"results\":[{\"id\":\"f1\",\"result\":1}]}", 200 },
    { HTTP_GET, "/v1/workflows/{id}", "/v1/workflows/f1", NULL, 200 },
    { HTTP_POST, "/v1/workflows/{id}/fork", "/v1/workflows/f1/fork",
      "{\"id\":\"f2\",\"from\":\"s\"}", 202 },
    { HTTP_POST, "/v1/workflows/{id}/retry", "/v1/workflows/f1/retry", "{}", 202 },
    { HTTP_PUT, "/v1/limits/{name}", "/v1/limits/l", "{\"type\":\"lim\",\"max\":3}", 201 },
    { HTTP_PUT, "/v1/limits/{name}", "/v1/limits/l", "{\"type\":\"lim\",\"rate\":3}", 200 },
    { HTTP_PUT, "/v1/limits/{name}", "/v1/limits/l", "{}", 400 },
    { HTTP_GET, "/v1/limits/{name}", "/v1/limits/l", NULL, 200 },
    { HTTP_GET, "/v1/limits/{name}", "/v1/limits/none", NULL, 404 },
    { HTTP_GET, "/v1/limits", "/v1/limits", NULL, 200 },
    { HTTP_DELETE, "/v1/limits/{name}", "/v1/limits/l", NULL, 200 },
    { HTTP_PUT, "/v1/schedules/{name}", "/v1/schedules/s",
      "{\"cron\":\"0 9 1 * MON\",\"zone\":\"Europe/Berlin\",\"call\":{\"type\":\"t\"}}", 201 },
    { HTTP_PUT, "/v1/schedules/{name}", "/v1/schedules/s", "{\"paused\":true}", 200 },
    { HTTP_PUT, "/v1/schedules/{name}", "/v1/schedules/s?dry_run=true",
      "{\"every\":60,\"call\":{\"type\":\"t\",\"tags\":{\"a\":\"b\"}}}", 200 },
    { HTTP_PUT, "/v1/schedules/{name}", "/v1/schedules/e",
      "{\"at\":[\"2100-01-01T00:00:00Z\"],\"call\":{\"type\":\"t\",\"backoff\":{\"base\":2}}}",
      201 },
    { HTTP_PUT, "/v1/schedules/{name}", "/v1/schedules/s", "{}", 400 },
    { HTTP_POST, "/v1/schedules/{name}/resume", "/v1/schedules/s/resume", NULL, 200 },
    { HTTP_POST, "/v1/schedules/{name}/pause", "/v1/schedules/s/pause", NULL, 200 },
    { HTTP_POST, "/v1/schedules/{name}/run", "/v1/schedules/s/run", NULL, 202 },
    { HTTP_GET, "/v1/schedules/{name}", "/v1/schedules/s", NULL, 200 },
    { HTTP_GET, "/v1/schedules/{name}", "/v1/schedules/none", NULL, 404 },
    { HTTP_GET, "/v1/schedules", "/v1/schedules", NULL, 200 },
    { HTTP_GET, "/v1/schedules/{name}/runs", "/v1/schedules/s/runs", NULL, 200 },
    { HTTP_POST, "/v1/schedules/preview", "/v1/schedules/preview",
      "{\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\",\"from\":\"2027-03-28T00:00:00Z\"}",
      200 },
    { HTTP_DELETE, "/v1/schedules/{name}", "/v1/schedules/s", NULL, 200 },
    { HTTP_GET, "/v1/nodes", "/v1/nodes", NULL, 200 },
    { HTTP_GET, "/v1/leaders", "/v1/leaders", NULL, 200 },
    { HTTP_POST, "/v1/nodes/{node}/drain", "/v1/nodes/fixture/drain", NULL, 200 },
    { HTTP_GET, "/readyz", "/readyz", NULL, 503 },
    { HTTP_POST, "/v1/nodes/{node}/undrain", "/v1/nodes/fixture/undrain", NULL, 200 },
    { HTTP_GET, "/readyz", "/readyz", NULL, 200 },
    { HTTP_GET, "/v1/info", "/v1/info", NULL, 200 },
    { HTTP_GET, "/healthz", "/healthz", NULL, 200 },
    { HTTP_GET, "/metrics", "/metrics", NULL, 200 },
    { HTTP_GET, "/openapi.json", "/openapi.json", NULL, 200 },
    { HTTP_GET, "/", "/", NULL, 200 },
    { HTTP_GET, "/favicon.ico", "/favicon.ico", NULL, 204 },
};

/* mem: keeps calls only, and says so with 400. */
static int status_of(const struct shot *s, const char *url)
{
    bool feature = of_feature(s->pattern) && !strstr(s->path, "preview");
    return feature && engine_of(url)->kind == ENGINE_MEM ? 400 : s->status;
}

static void check_answer(const struct shot *s, int status, struct web_answer a)
{
    const char *where = web_text("%s %s: %d", http_method_name(s->method), s->path, a.status);
    if (a.status != status)
        FAIL("%s, not %d: %.*s", where, status, BYTES_ARG(a.body));
    const struct json *answers = json_member(operation(s->pattern, s->method), "responses");
    const struct json *said = json_member(answers, web_text("%d", a.status));
    if (!said && a.status < 400)
        FAIL("%s is not in the document", where);
    const struct json *content =
        json_member(resolve(said ? said : json_member(answers, "default")), "content");
    const struct json *json = content ? json_member(content, "application/json") : NULL;
    if (!json)
        return;
    const struct json *ref = json_member(json_member(json, "schema"), "$ref");
    if (!a.json && bytes_eq(ref->raw, BYTES("\"#/components/schemas/Json\"")))
        return; /* any value: web.c keeps only objects and arrays */
    if (!a.json)
        FAIL("%s: no JSON: %.*s", where, BYTES_ARG(a.body));
    validate(json_member(json, "schema"), a.json, where);
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
        struct web_answer a = web_ask(&w, http_method_name(s->method), with_lease(s->path, lease),
                                      with_lease(s->body, lease));
        check_answer(s, status_of(s, param), a);
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
