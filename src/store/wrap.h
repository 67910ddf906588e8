/*
 * wrap.h - engines that wrap engines: `fault+URL` fails the n-th call, `trace+URL` logs every call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_WRAP_H
#define STORE_WRAP_H

#include "store/store.h"

/* The two wrappers. Their traits are those of the engine below: store_traits(). */
extern const struct store_ops store_fault_ops;
extern const struct store_ops store_trace_ops;

/* A wrapper's handle: the engine below it. */
struct wrap {
    struct store base;
    struct store *inner; /* owned */
};

/* Open the engine whose URL follows `prefix` in conf->url, and wrap it in a handle of `ops`. */
MUST_USE enum pawl_status wrap_open(const struct store_ops *ops, const char *prefix,
                                    const struct store_conf *conf, struct store **out,
                                    struct pawl_err *err);
/* Close the wrapper and the engine below it. */
void wrap_close(struct store *s);
/* The schema steps of the engine whose URL follows `prefix`. */
MUST_USE enum pawl_status wrap_steps(const char *prefix, const struct store_conf *conf,
                                     struct arena *a, struct steps *out, struct pawl_err *err);

/* The grants of the engine whose URL follows `prefix`. */
MUST_USE enum pawl_status wrap_grants(const char *prefix, const struct store_conf *conf,
                                      const struct roles *roles, struct arena *a, const char **out,
                                      struct pawl_err *err);

/* The engine below a wrapper. */
static inline struct store *wrap_inner(struct store *s)
{
    return ((struct wrap *)s)->inner;
}

#endif
