/*
 * registry.h - which handler serves which type.method. Filled before the workers start, read-only
 * after.
 *
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
};

struct registry {
    struct registry_entry *v; /* owned; sorted by type, then method */
    size_t n, cap;
    struct bytes *types; /* owned array of borrowed names, distinct, made by registry_seal */
    size_t n_types;
};

void registry_release(struct registry *r);
/* CONFLICT when type.method is served already. */
MUST_USE enum pawl_status registry_add(struct registry *r, const char *type, const char *method,
                                       pawl_handler *handler, struct pawl_err *err);
/* No more additions; `types` is there. */
MUST_USE enum pawl_status registry_seal(struct registry *r, struct pawl_err *err);
/* The index into `v`; below 0: no handler serves it. */
int registry_find(const struct registry *r, struct bytes type, struct bytes method);

#endif
