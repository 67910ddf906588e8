/*
 * json.h - strict JSON (RFC 8259): validate, walk, canonicalise, write. Values stay the bytes they
 * were.
 *
 * A parsed document is a flat array of nodes on an arena; each node points at its own bytes in the
 * text, so a payload is spliced out again exactly as it came in: 9.99 stays 9.99 and 2^64 stays
 * 2^64. Refused: anything RFC 8259 refuses, invalid UTF-8, lone surrogate escapes, nesting beyond
 * JSON_DEPTH_MAX, bytes after the value. Pure functions, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_kind kind;
    struct bytes raw;  /* the value as written, without white space around it */
    struct bytes name; /* the member's name as written, without its quotes; absent outside objects
                        */
    size_t count;      /* members or items */
    struct json *first, *next; /* first child, next sibling; NULL at the end */
};

/* Only check. INVALID names the byte offset and what was expected. */
MUST_USE enum pawl_status json_check(struct bytes text, struct pawl_err *err);
/* Check and build nodes on `a`, which must outlive them; `text` is borrowed. */
MUST_USE enum pawl_status json_parse(struct arena *a, struct bytes text, struct json **out,
                                     struct pawl_err *err);

/* The first member whose name, unescaped, equals; NULL when there is none or v is no object. */
struct json *json_member(const struct json *v, const char *name);
/* True and the number when v is a number written as an integer that fits. 1.0 and 1e2 are not. */
bool json_int(const struct json *v, int64_t *out);
/* True for any JSON number, as the nearest double; false when it is not finite. */
bool json_real(const struct json *v, double *out);
/* A string's content, unescaped, on `a`, ended with NUL; absent when v is no string or has no
 * memory. */
struct bytes json_string(struct arena *a, const struct json *v);
/* A member's name, unescaped; as json_string. */
struct bytes json_name(struct arena *a, const struct json *v);

/* The same text for the same JSON value: no white space, members sorted by their names as written
 * (equal names keep their order); numbers and strings as written. *out is on `a`, or is `text`
 * itself when that is canonical already. INVALID as json_check says it. */
MUST_USE enum pawl_status json_canonical(struct arena *a, struct bytes text, struct bytes *out,
                                         struct pawl_err *err);

/* Writing. `"text"` with quotes, control characters, quote and backslash escaped; `text` is UTF-8.
 */
void json_add_string(struct buf *b, struct bytes text);
/* `"name":` preceded by a comma unless it follows `{` or `[`, or opens the buffer. */
void json_add_name(struct buf *b, const char *name);
void json_add_comma(struct buf *b);

#endif
