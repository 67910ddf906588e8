/*
 * route.h - the table of routes: what there is, who may use it, and what the documents say of it.
 *
 * routes.c has the table, match.c finds a route in it, openapi.c and http_md.c print it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_ROUTE_H
#define API_ROUTE_H

#include "api/auth.h"
#include "model/fields.h"

struct ask;

enum param_kind {
    PARAM_NAME,    /* as the contract's names */
    PARAM_TEXT,    /* any UTF-8 */
    PARAM_INT,     /* min..max */
    PARAM_SECONDS, /* fractions allowed; min..max are seconds, the value microseconds */
    PARAM_TIME,    /* RFC 3339; the value microseconds */
    PARAM_BOOL,    /* true or false; the value 1 or 0 */
    PARAM_WORD,    /* one of `words` */
    PARAM_WORDS,   /* some of `words`, separated by commas */
};

/* One query parameter. Unknown and repeated ones are refused by name before the route runs. */
struct param {
    const char *name;
    enum param_kind kind;
    int64_t min, max; /* of INT and SECONDS */
    const char *about;
    const char *dflt;  /* what a missing one means: JSON, or words; NULL: nothing */
    const char *words; /* WORD, WORDS: "pending|processing" */
};

/* What an answer is, for the documents. Errors need no line: all are `Error`. */
struct answer {
    int status;
    const char *about;
    const char *schema;  /* "Call", "CallList"...; NULL: none */
    const char *headers; /* "Location Retry-After"; NULL: none that matter */
    const char *type; /* of a body that is no JSON, or may be none: "text/plain"; NULL: it is JSON
                       */
};

struct route {
    enum http_method method; /* HEAD is answered as GET */
    const char *pattern;     /* "/v1/calls/{id}/cancel" */
    void (*run)(struct ask *q);
    unsigned may;  /* MAY_..., 0: admin only */
    bool audited;  /* one audit line for each that was answered below 400 */
    bool raw_body; /* the body is no JSON object: run reads it itself (body_json, NDJSON) */
    bool ndjson;   /* with raw_body: it may also be NDJSON */
    const char *summary, *about; /* one line; what else is to be known */
    const char *op, *tag;        /* operationId, and the group it is shown in */
    const char *headers;         /* request headers it reads: "If-Match Prefer"; NULL: none */
    const char *example, *body_example; /* a path and a body that are well-formed */
    const struct param *params;
    size_t n_params;
    const struct shape *body; /* NULL: takes none */
    const struct answer *answers;
    size_t n_answers;
};

extern const struct route routes[];
extern const size_t n_routes;

#endif
