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
#include "base/limits.h"

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

/* ---- Runs that have begun -------------------------------------------------------------------- */

/* What a call that has begun to take steps needs besides its own needs: a worker that can go on
 * with it. Users cannot name it, because no name of theirs has a "@". */
#define NEED_STEPS BYTES("@steps")
/* What it needs besides that when it is pinned to a version of its code: NEED_VERSION and the
 * version, as `@v:2`. A worker of this version has the same name if it has the version for every
 * type, and else `@v:2@TYPE` for each type of which it runs this version. */
#define NEED_VERSION "@v:"
#define NEED_VERSION_LEN_MAX (sizeof NEED_VERSION + VERSION_LEN_MAX + 1 + NAME_LEN_MAX)

/* What is wrong with the version of a module, to stand after `the version ...`; NULL when it is
 * valid: 1..VERSION_LEN_MAX of the characters that a capability may have. */
const char *version_fault(struct bytes version);
/* The version of `v:X`, with which workers over HTTP say in `has` which version their code is;
 * absent: the name says none. It need not be valid. */
struct bytes version_in_has(struct bytes name);
/* Write what a worker has that has this version for this type, or with an absent type for every
 * type. Returns the name, in `text`. Both must be valid. */
struct bytes version_name(struct bytes version, struct bytes type, char text[NEED_VERSION_LEN_MAX]);

/* Has the settled list NEED_STEPS? */
bool needs_steps(const struct bytes *v, size_t n);
/* The version that the settled list of a lane needs; absent: none. */
struct bytes needs_version(const struct bytes *v, size_t n);
/* The one version that a worker with this settled list has for every type; absent when it has none
 * or several. */
struct bytes needs_one_version(const struct bytes *has, size_t n_has);
/* Does a worker with the settled list `has` serve a lane of this type that needs this version? */
bool needs_version_served(struct bytes version, struct bytes type, const struct bytes *has,
                          size_t n_has);
/* The settled list *v with this name; a list that has it stays. The new list is in `a`, its names
 * are borrowed. NO_MEMORY. */
MUST_USE enum pawl_status needs_add(struct arena *a, struct bytes name, const struct bytes **v,
                                    size_t *n, struct pawl_err *err);
/* What a run needs that has begun, besides *v: NEED_STEPS, and the version that it is pinned to;
 * absent: it is not. As needs_add(). */
MUST_USE enum pawl_status needs_begin(struct arena *a, struct bytes version, const struct bytes **v,
                                      size_t *n, struct pawl_err *err);
/* The inverse: the names that users gave. NULL without memory, and for an empty list. */
const struct bytes *needs_given(struct arena *a, const struct bytes *v, size_t *n);

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Do two settled lists have the same names? */
bool needs_same(const struct bytes *v, size_t n, const struct bytes *w, size_t m);

/* The names with newlines between them, in `a`; absent when there are none, and without memory. */
struct bytes needs_text(struct arena *a, const struct bytes *v, size_t n);

/* The inverse: *v and *n, in `a`; the names are borrowed from the text. False without memory. */
MUST_USE bool needs_of_text(struct arena *a, struct bytes text, const struct bytes **v, size_t *n);

/* Copy the list and its names into `a`; NULL for an empty list, and without memory. */
const struct bytes *needs_copy(struct arena *a, const struct bytes *v, size_t n);

#endif
