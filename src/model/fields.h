/*
 * fields.h - JSON objects read strictly against a table of fields: unknown, repeated and wrong
 * members are errors that name the field. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_FIELDS_H
#define MODEL_FIELDS_H

#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/macros.h"

/* What a member may hold, and the C type of the place its value goes to. */
enum field_kind {
    FIELD_NAME,    /* struct bytes; checked as a name */
    FIELD_TEXT,    /* struct bytes; any string */
    FIELD_WORD,    /* struct bytes; one of the words in `words` */
    FIELD_INT,     /* int; min..max */
    FIELD_REAL,    /* double */
    FIELD_SECONDS, /* int64_t microseconds; min..max are seconds. min 1 and FIELD_ABOVE_0: above 0
                    */
    FIELD_TIME,    /* int64_t microseconds; RFC 3339 */
    FIELD_BOOL,    /* bool */
    FIELD_JSON,    /* struct bytes: the value as it was written */
    FIELD_BASE64,  /* struct bytes: decoded */
    FIELD_LEASE,   /* struct bytes: the text of a lease. A value that is no string gives a piece of
                      its JSON too short to be one: a malformed lease is LOST_LEASE, not INVALID
                      (lease_read) */
    FIELD_OBJECT,  /* const struct json *: an object */
    FIELD_ARRAY,   /* const struct json *: an array. Without a shape and with `max`: capabilities
                      (model/needs.h), which the caller reads */
    FIELD_TIMES,   /* struct times: an array of at most `max` times, RFC 3339, at least one */
};
/* What FIELD_TIMES reads, as they were written; nothing is sorted. */
struct times {
    int64_t *v;
    size_t n;
};
enum {
    FIELD_MUST = 1,    /* it is required */
    FIELD_NULL = 2,    /* null reads as if it were missing */
    FIELD_ABOVE_0 = 4, /* SECONDS: 0 is refused */
    FIELD_EPOCH = 8,   /* TIME: 1970-01-01T00:00:00Z reads as 0; else as 1, since 0 means that none
                          was given */
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t at;      /* offset in the struct that fields_read() fills */
    unsigned flags; /* FIELD_MUST... */
    int64_t min, max;
    const char *words;         /* WORD: "skip|block" */
    const char *about;         /* what it means, for the documents */
    const struct shape *shape; /* OBJECT; ARRAY: of its items. NULL: an object of strings; an array
                                  of names */
    const char *dflt;          /* what a missing one means: JSON, or words; NULL: nothing */
    const char *unit;          /* for the documents, where the kind does not say it */
};

/* The members of one kind of object. */
struct shape {
    const char *name; /* "CallSpec": its schema in openapi.json */
    const struct field *v;
    size_t n;           /* at most 64 */
    const char *prefix; /* before a field's name in sentences: "backoff."; NULL: none */
    uint64_t without;   /* bit i: v[i] is no member of this kind of object */
};
#define SHAPE(title, fields)                                                                       \
    {                                                                                              \
        .name = (title), .v = (fields), .n = COUNT_OF(fields)                                      \
    }

/* Is v[i] a member of it? */
static inline bool shape_has(const struct shape *s, size_t i)
{
    return !(s->without >> i & 1);
}

/* Fill *out from an object's members; missing ones leave it as it is. INVALID (unknown, repeated,
 * wrong type, out of bounds, missing) with a text that begins `field "name": `. *given (may be
 * NULL) has bit i set when v[i] was there and not a null that means missing. Strings live in `a`.
 */
MUST_USE enum pawl_status fields_read(struct arena *a, const struct json *object,
                                      const struct shape *shape, void *out, uint64_t *given,
                                      struct pawl_err *err);

#endif
