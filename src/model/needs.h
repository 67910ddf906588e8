/*
 * needs.h - capabilities: sorted lists of short names, of what a call needs and a worker has.
 *
 * A settled list is sorted and has no name twice, so that lists are compared in one pass. Engines
 * store it as one text with newlines between the names. Pure.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_NEEDS_H
#define MODEL_NEEDS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

struct json;

/* What name a capability may have, besides its length: for the documents. */
#define NEED_PATTERN "^[A-Za-z0-9_.:-]+$"

/* How a list is called in errors, and how many names it may have. */
struct needs_field {
    const char *name;
    size_t max;
};

/* Check the names of a list, sort it and drop repeated names. The new list is in `a`; its names are
 * borrowed. INVALID names the field: more than `max` names, or one that is not 1..NEED_LEN_MAX
 * letters, digits, "_", "-", "." and ":". NO_MEMORY. */
MUST_USE enum pawl_status needs_settle(struct arena *a, const struct needs_field *field,
                                       const struct bytes **v, size_t *n, struct pawl_err *err);

/* The strings of a JSON array, unescaped into `a` and not settled; NULL: none. INVALID names the
 * field. NO_MEMORY. */
MUST_USE enum pawl_status needs_of_json(struct arena *a, const struct json *list,
                                        const struct needs_field *field, const struct bytes **v,
                                        size_t *n, struct pawl_err *err);

/* Is every name of the settled list `needs` in the settled list `has`? */
bool needs_served(const struct bytes *needs, size_t n_needs, const struct bytes *has, size_t n_has);

/* What a call that has begun to take steps needs besides its own needs: a worker that can go on
 * with it. Users cannot name it, because no name of theirs has a "@". */
#define NEED_STEPS BYTES("@steps")
/* Has the settled list NEED_STEPS? */
bool needs_steps(const struct bytes *v, size_t n);
/* The settled list with NEED_STEPS, of n + 1 names, and without it, of n - 1; the new list is in
 * `a`, its names are borrowed. NULL without memory, and for an empty list. */
const struct bytes *needs_with_steps(struct arena *a, const struct bytes *v, size_t n);
const struct bytes *needs_without_steps(struct arena *a, const struct bytes *v, size_t n);

/* Do two settled lists have the same names? */
bool needs_same(const struct bytes *v, size_t n, const struct bytes *w, size_t m);

/* The names with newlines between them, in `a`; absent when there are none, and without memory. */
struct bytes needs_text(struct arena *a, const struct bytes *v, size_t n);

/* The inverse: *v and *n, in `a`; the names are borrowed from the text. False without memory. */
MUST_USE bool needs_of_text(struct arena *a, struct bytes text, const struct bytes **v, size_t *n);

/* Copy the list and its names into `a`; NULL for an empty list, and without memory. */
const struct bytes *needs_copy(struct arena *a, const struct bytes *v, size_t n);

#endif
