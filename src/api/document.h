/*
 * document.h - what openapi.c and http_md.c both need to print the tables: names of types,
 * defaults, and the headers with their descriptions. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_DOCUMENT_H
#define API_DOCUMENT_H

#include "api/route.h"
#include "api/schema.h"

/* The JSON type of a query parameter; of one item where it takes several. */
const char *param_type(enum param_kind kind);
/* The JSON type of a body's field; NULL: any type. */
const char *field_type(enum field_kind kind);
/* The JSON type of an answer's member, by its letter in schemas.c. */
const char *member_type(char letter);

/* Is this default JSON, rather than words for people? */
bool default_is_json(const char *dflt);

struct documented {
    const char *name, *about;
};
extern const struct documented request_headers[], answer_headers[];
extern const size_t n_request_headers, n_answer_headers;
/* Take the next name off a list such as "Location Retry-After"; *at may be NULL. False: there is
 * none. */
bool header_next(const char **at, struct bytes *out);

#endif
