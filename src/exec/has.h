/*
 * has.h - what this process's workers have: a settled list of capabilities (model/needs.h) that is
 * kept. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_HAS_H
#define EXEC_HAS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/macros.h"
#include "model/call.h"

struct registry;

struct has {
    struct bytes *v; /* owned; one block with the names */
    size_t n;
    char *text; /* owned: the given names with newlines between them; NULL: none */
};

/* Replace the list by these names, and NEED_STEPS, because every handler may take steps: checked,
 * sorted, copied. INVALID names the field `has`;
 * NO_MEMORY; then the list is empty. */
MUST_USE enum pawl_status has_make(struct has *h, const char *const *names, size_t n,
                                   struct pawl_err *err);
/* Add the versions of these handlers, each for its type (needs.h). The registry is sealed.
 * NO_MEMORY; then the list is as before. */
MUST_USE enum pawl_status has_versions(struct has *h, const struct registry *r,
                                       struct pawl_err *err);
/* Free the list; it is empty then. */
void has_release(struct has *h);
/* Does it have all that the call needs? */
bool has_all(const struct has *h, const struct call_spec *s);

#endif
