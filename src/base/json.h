/*
 * json.h - strict JSON (RFC 8259): validate, walk, canonicalise, write. A value keeps the bytes
 * that it was written with.
 *
 * A parsed document is a tree of nodes on an arena. Each node points at its own bytes in the text,
 * so that a payload is copied out exactly as it came in: 9.99 stays 9.99 and 2^64 stays 2^64.
 * Refused: anything that RFC 8259 refuses, invalid UTF-8, lone surrogate escapes, nesting beyond
 * JSON_DEPTH_MAX (json_parse: and JSON_AROUND_MAX), bytes after the value. Pure functions, any
 * thread.
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
    unsigned levels;           /* of nesting: 0 for 1, 1 for [] and [1], 2 for [[]] */
    struct bytes raw;          /* the value as written, without white space around it */
    struct bytes name;         /* the member's name as written, unquoted; absent outside objects */
    size_t count;              /* members or items */
    struct json *first, *next; /* first child, next sibling; NULL at the end */
};

/* Validate only. INVALID names the byte offset and what was expected there. */
MUST_USE enum pawl_status json_check(struct bytes text, struct pawl_err *err);
/* Validate and build nodes on `a`. The nodes point into `text`, which must outlive them. A document
 * may nest JSON_AROUND_MAX levels deeper than json_check allows, so that a value in it may have all
 * of its own: the caller who takes one out looks at its `levels`. INVALID as json_check; NO_MEMORY.
 */
MUST_USE enum pawl_status json_parse(struct arena *a, struct bytes text, struct json **out,
                                     struct pawl_err *err);

/* The first member with this name (compared unescaped); NULL when there is none or v is no
 * object. */
struct json *json_member(const struct json *v, const char *name);
/* True, and *out, when v is a number written as an integer that fits; 1.0 and 1e2 are refused. */
bool json_int(const struct json *v, int64_t *out);
/* True, and *out the nearest double, when v is a number; false when that is not finite. */
bool json_real(const struct json *v, double *out);
/* The content of a string, unescaped, on `a`, ended with NUL. Absent when v is no string or memory
 * is short. */
struct bytes json_string(struct arena *a, const struct json *v);
/* The name of a member, unescaped; otherwise as json_string. */
struct bytes json_name(struct arena *a, const struct json *v);

/* The canonical text of a JSON value: no white space, members sorted by their names as written
 * (equal names keep their order), numbers and strings as written. Equal values give equal text.
 * *out is on `a`, or is `text` itself when that is canonical already. INVALID as json_check;
 * NO_MEMORY. */
MUST_USE enum pawl_status json_canonical(struct arena *a, struct bytes text, struct bytes *out,
                                         struct pawl_err *err);

/* Append `text` (UTF-8) in quotes, with control characters, quotes and backslashes escaped. */
void json_add_string(struct buf *b, struct bytes text);
/* Append `"name":`, with a comma before it unless it follows `{` or `[` or begins the buffer. */
void json_add_name(struct buf *b, const char *name);
/* Append the comma that json_add_name would put here. */
void json_add_comma(struct buf *b);
/* Append microseconds as a number of seconds, with as many digits as it needs: 1.5. */
void json_add_seconds(struct buf *b, int64_t us);
/* Append bytes as a string of Base64. */
void json_add_base64(struct buf *b, struct bytes bytes);

#endif
