/*
 * document.h - what openapi.c and http_md.c both say of the tables: names of types, what is a
 * default in JSON, and every header with its sentence. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_DOCUMENT_H
#define API_DOCUMENT_H

#include "api/route.h"
#include "api/schema.h"

/* The JSON type of a query parameter; of one item where it is several. */
const char *param_type(enum param_kind kind);
/* The JSON type of a body's field; NULL: any. */
const char *field_type(enum field_kind kind);
/* The JSON type of an answer's member, by its letter in schemas.c. */
const char *member_type(char letter);

/* Is a default JSON, and not words for people? */
bool default_is_json(const char *dflt);

struct documented {
    const char *name, *about;
};
extern const struct documented request_headers[], answer_headers[];
extern const size_t n_request_headers, n_answer_headers;
/* "Location Retry-After": the next name off *at, which may be NULL. */
bool header_next(const char **at, struct bytes *out);

#endif
