/*
 * registry.h - which handler serves which type.method. Room-private.
 *
 * Filled before the workers start, read-only after that, so it needs no lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_REGISTRY_H
#define EXEC_REGISTRY_H

#include <pawl.h>

#include "base/bytes.h"
#include "base/macros.h"

struct registry_entry {
    char *type, *method; /* owned */
    struct bytes type_b, method_b;
    pawl_handler *handler;
    struct bytes version; /* owned; of its module, absent: none */
};

struct registry {
    struct registry_entry *v; /* owned; sorted by type, then method */
    size_t n, cap;
    struct bytes *types; /* owned array of borrowed names, distinct, made by registry_seal */
    size_t n_types;
};

/* Free all entries. */
void registry_release(struct registry *r);
/* Add a handler; the names are copied. CONFLICT: type.method has one already; INVALID: a bad name;
 * FULL; NO_MEMORY. */
MUST_USE enum pawl_status registry_add(struct registry *r, const char *type, const char *method,
                                       pawl_handler *handler, struct pawl_err *err);
/* The handler at this index is of this version of its module; copied. NO_MEMORY. */
MUST_USE enum pawl_status registry_version(struct registry *r, int at, struct bytes version,
                                           struct pawl_err *err);
/* Make `types`; nothing is added after this. INVALID: handlers of one type have different versions.
 * NO_MEMORY. */
MUST_USE enum pawl_status registry_seal(struct registry *r, struct pawl_err *err);
/* The index into `v` of the handler that serves it; below 0: there is none. */
int registry_find(const struct registry *r, struct bytes type, struct bytes method);

#endif
