/*
 * client_answer.c - is a JSON answer one that Pawl gives to this request? Pure functions.
 *
 * Any web server may answer 200 with some JSON. Commands print what they find in an answer, so an
 * answer of another program must not reach them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"

static bool plain(const struct json *v)
{
    return v && v->kind != JSON_NULL && v->kind != JSON_OBJECT && v->kind != JSON_ARRAY;
}

/* Has the object each member that the words name? */
static bool has_all(const struct json *v, const char *words, char *why, size_t size)
{
    char name[64];
    if (v->kind != JSON_OBJECT) {
        snprintf(why, size, "it is not an object");
        return false;
    }
    for (const char *at = words; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, at);
        if (!plain(json_member(v, name))) {
            snprintf(why, size, "it has no \"%s\"", name);
            return false;
        }
        at += len;
    }
    return true;
}

bool answer_fits(const struct json *v, const struct client_ask *ask, char *why, size_t size)
{
    if (ask->any)
        return true;
    if (!ask->list)
        return has_all(v, ask->has, why, size);
    const struct json *list = v->kind == JSON_OBJECT ? json_member(v, ask->list) : NULL;
    if (!list || list->kind != JSON_ARRAY) {
        snprintf(why, size, "it has no list \"%s\"", ask->list);
        return false;
    }
    for (const struct json *row = list->first; row && ask->has; row = row->next) {
        char what[64];
        if (!has_all(row, ask->has, what, sizeof(what))) {
            snprintf(why, size, "in \"%s\", %s", ask->list, what);
            return false;
        }
    }
    return true;
}
