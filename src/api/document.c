/*
 * document.c - what openapi.c and http_md.c share (document.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/document.h"

#include "api/route.h"
#include "api/schema.h"
#include "base/json.h"
#include "model/fields.h"

/* ---- Types ----------------------------------------------------------------------------------- */

const char *param_type(enum param_kind kind)
{
    switch (kind) {
    case PARAM_NAME:
    case PARAM_TEXT:
    case PARAM_TIME:
    case PARAM_WORD:
    case PARAM_WORDS:
        return "string";
    case PARAM_INT:
        return "integer";
    case PARAM_SECONDS:
        return "number";
    case PARAM_BOOL:
        return "boolean";
    }
    return NULL;
}

const char *field_type(enum field_kind kind)
{
    switch (kind) {
    case FIELD_NAME:
    case FIELD_TEXT:
    case FIELD_WORD:
    case FIELD_TIME:
    case FIELD_BASE64:
    case FIELD_LEASE:
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
    case FIELD_TIMES:
        return "array";
    case FIELD_JSON:
        break;
    }
    return NULL;
}

const char *member_type(char letter)
{
    switch (letter) {
    case 'i':
        return "integer";
    case 'n':
        return "number";
    case 'b':
        return "boolean";
    default:
        CHECK(letter == 's' || letter == 't');
        return "string";
    }
}

bool member_next(const char **at, struct member *m)
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
    m->map = kind.data[0] == '{';
    m->null = kind.data[kind.len - 1] == '?';
    size_t before = m->array || m->map;
    m->kind = (struct bytes){ kind.data + before, kind.len - before - m->null };
    *at += len;
    return true;
}

bool default_is_json(const char *dflt)
{
    return dflt && json_check(bytes_of(dflt), NULL) == PAWL_OK;
}

/* ---- Headers --------------------------------------------------------------------------------- */

const struct documented request_headers[] = {
    { "Idempotency-Key", "another way to give `id`, as it is or as a quoted string (RFC 8941); "
                         "header and body must agree" },
    { "Prefer",
      "`wait=SECONDS` is another way to give the query parameter wait (RFC 7240); one that is "
      "unknown or malformed is ignored, as that says" },
    { "If-Match", "versions in quotes, one of which the object or the schedule must have, or `*`: "
                  "it must exist (RFC 9110)" },
    { "If-None-Match", "`*`: there must be none yet (RFC 9110)" },
};
const size_t n_request_headers = COUNT_OF(request_headers);

const struct documented answer_headers[] = {
    { "Location", "the path of the call or the schedule" },
    { "ETag", "the version of the object or the schedule, in quotes" },
    { "Retry-After", "seconds after which to ask again" },
    { "Allow", "with 405: the methods this path takes" },
    { "WWW-Authenticate", "with 401: Bearer" },
};
const size_t n_answer_headers = COUNT_OF(answer_headers);

bool header_next(const char **at, struct bytes *out)
{
    if (!*at || !**at)
        return false;
    *out = (struct bytes){ *at, strcspn(*at, " ") };
    *at += out->len;
    *at += strspn(*at, " ");
    return true;
}
