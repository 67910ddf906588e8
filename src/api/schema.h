/*
 * schema.h - what answers look like: a table (schemas.c) for openapi.json and for the test that
 * compares real answers with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_SCHEMA_H
#define API_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* Members separated by spaces, each `name:kind`, with a `?` behind it when it may be null. Kinds: s
 * string, t time, i integer, n number, b boolean, @Name a schema; `[` before one: an array of it,
 * `{`: an object whose members are all of it. Every member is always there, except those with a `*`
 * before their name. Instead of members: `words`, or `any`. */
struct schema_text {
    const char *name, *members;
    const char *words; /* "pending|processing": a string that is one of these */
    const char *any;   /* "Call|ArchivedCall": one of these schemas */
    const char *about; /* NULL: the name says it */
};
extern const struct schema_text schemas[];
extern const size_t n_schemas;

/* One member, taken apart. */
struct member {
    struct bytes name, kind; /* kind without `[`, `{` and `?` */
    bool array, map, null, maybe;
};
/* Take the next member off *at; false: there is none. document.c. */
bool member_next(const char **at, struct member *out);

#endif
