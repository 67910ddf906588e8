/*
 * http_md.c - doc/http.md from the table of routes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/inside.h"

static void who_add(struct buf *b, const struct route *r)
{
    if (r->may & MAY_OPEN) {
        buf_add_text(b, "anybody");
        return;
    }
    buf_add_text(b, "admin");
    if (r->may & MAY_APP)
        buf_add_text(b, ", app");
    if (r->may & MAY_MONITOR)
        buf_add_text(b, ", monitor");
}

static void route_add(struct buf *b, const struct route *r)
{
    buf_addf(b, "## %s %s\n\n%s. For: ", http_method_name(r->method), r->pattern, r->summary);
    who_add(b, r);
    buf_add_text(b, ".\n\n");
    for (size_t i = 0; i < r->n_params; i++)
        buf_addf(b, "- query `%s`: %s\n", r->params[i].name, r->params[i].about);
    if (r->body && !r->body->v)
        buf_add_text(b, "- body: any JSON value\n");
    for (size_t i = 0; r->body && i < r->body->n; i++) {
        const struct field *f = &r->body->v[i];
        buf_addf(b, "- body `%s`%s%s%s\n", f->name, f->flags & FIELD_MUST ? " (required)" : "",
                 f->about ? ": " : "", f->about ? f->about : "");
    }
    for (size_t i = 0; i < r->n_answers; i++) {
        buf_addf(b, "- answers %d: %s", r->answers[i].status, r->answers[i].about);
        if (r->answers[i].schema)
            buf_addf(b, " (`%s`)", r->answers[i].schema);
        buf_add_char(b, '\n');
    }
    buf_add_char(b, '\n');
}

static void schemas_add(struct buf *b)
{
    buf_add_text(b, "## What answers look like\n\n");
    for (size_t i = 0; i < n_schemas; i++) {
        buf_addf(b, "**%s**: `", schemas[i].name);
        for (const char *p = schemas[i].members; *p; p++) {
            /* `name:kind` reads as its name alone; openapi.json has the kinds. */
            if (*p == ':')
                p += strcspn(p, " ") - 1;
            else if (*p == ' ')
                buf_add_text(b, "` `");
            else if (*p != '*')
                buf_add_char(b, *p);
        }
        buf_add_text(b, "`\n\n");
    }
}

void api_print_markdown(struct buf *b)
{
    buf_add_text(b, "# The HTTP API\n\n<!-- Printed from src/api/routes.c; do not edit. -->\n\n"
                    "Errors are `{\"error\":{\"code\",\"message\",\"id\",\"field\",\"status\","
                    "\"retry\"}}`; [status.md](status.md) lists the codes. Query parameters and "
                    "bodies are read strictly: what is not known here is refused by name.\n\n");
    for (size_t i = 0; i < n_routes; i++)
        route_add(b, &routes[i]);
    schemas_add(b);
}
