/*
 * wrap.c - what both wrappers share: opening and closing the engine below.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/wrap.h"

#include <string.h>

#include "base/mem.h"

enum pawl_status wrap_open(const struct store_ops *ops, const char *prefix,
                           const struct store_conf *conf, struct store **out, struct pawl_err *err)
{
    struct wrap *w = mem_zalloc(sizeof(*w));
    if (!w)
        return err_no_memory(err, "opening the database");
    struct store_conf below = *conf;
    below.url = conf->url + strlen(prefix);
    enum pawl_status st = store_open(&below, &w->inner, err);
    if (st != PAWL_OK) {
        mem_free(w);
        return st;
    }
    w->base.ops = ops;
    *out = &w->base;
    return PAWL_OK;
}

void wrap_close(struct store *s)
{
    struct wrap *w = (struct wrap *)s;
    store_close(w->inner);
    mem_free(w);
}

enum pawl_status wrap_steps(const char *prefix, const struct store_conf *conf, struct arena *a,
                            struct steps *out, struct pawl_err *err)
{
    struct store_conf below = *conf;
    below.url = conf->url + strlen(prefix);
    return store_steps(&below, a, out, err);
}

enum pawl_status wrap_grants(const char *prefix, const struct store_conf *conf,
                             const struct roles *roles, struct arena *a, const char **out,
                             struct pawl_err *err)
{
    struct store_conf below = *conf;
    below.url = conf->url + strlen(prefix);
    return store_grants(&below, roles, a, out, err);
}
