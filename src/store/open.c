/*
 * open.c - from a URL to an engine: the only file that lists all engines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "store/store.h"
#include "store/wrap.h"

/* The longest role name of any supported database: MySQL's name@host. */
#define ROLE_LEN_MAX 93

extern const struct store_ops store_mem;
extern const struct store_ops store_mysql;
extern const struct store_ops store_pg;
extern const struct store_ops store_sqlite;

static const struct {
    const char *scheme;
    const struct store_ops *ops;
} engines[] = {
    { "mem:", &store_mem },         { "sqlite:", &store_sqlite },   { "postgres://", &store_pg },
    { "postgresql://", &store_pg }, { "mysql://", &store_mysql },   { "mariadb://", &store_mysql },
    { "fault+", &store_fault_ops }, { "trace+", &store_trace_ops },
};

enum pawl_status store_engine(const char *url, const struct store_ops **out, struct pawl_err *err)
{
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        if (strncmp(url, engines[i].scheme, strlen(engines[i].scheme)) == 0) {
            *out = engines[i].ops;
            return PAWL_OK;
        }
    }
    /* Only the scheme is printed: the rest may hold a password. */
    int scheme_len = (int)strspn(url, "abcdefghijklmnopqrstuvwxyz");
    return err_set(err, PAWL_INVALID,
                   "database \"%.*s:...\": no such engine; use sqlite:PATH, postgres://..., "
                   "mysql://... or mem:NAME",
                   scheme_len, url);
}

static enum pawl_status check_conf(const struct store_conf *conf, struct pawl_err *err)
{
    const char *schema = conf->schema;
    if (!conf->url)
        return err_set(err, PAWL_INVALID, "no database was named");
    if (conf->retention_us < 0 || conf->remember_us < 0)
        return err_set(err, PAWL_INVALID, "retention and remember must not be below 0");
    if (!schema)
        return PAWL_OK;
    size_t len = strspn(schema, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (schema[len] || len < 1 || len > 32 || schema[0] == '_' ||
        (schema[0] >= '0' && schema[0] <= '9'))
        return err_set(err, PAWL_INVALID,
                       "schema \"%.40s\": must be 1 to 32 letters, digits or _, a letter first",
                       schema);
    return PAWL_OK;
}

enum pawl_status store_open(const struct store_conf *conf, struct store **out, struct pawl_err *err)
{
    const struct store_ops *ops = NULL;
    struct store_conf full = *conf;
    if (!full.world)
        full.world = &world_real;
    enum pawl_status st = check_conf(&full, err);
    if (st == PAWL_OK)
        st = store_engine(full.url, &ops, err);
    if (st == PAWL_OK)
        st = ops->open(&full, out, err);
    CHECK(st != PAWL_OK || (*out)->ops);
    if (st == PAWL_OK)
        (*out)->hasty = conf->role == STORE_HASTY;
    return st;
}

/* Every role is a plain name, so that an engine can put it into its SQL between quotes. */
static enum pawl_status check_roles(const struct roles *r, struct pawl_err *err)
{
    const char *const names[] = { r->app, r->monitor, r->admin };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!names[i])
            continue;
        size_t len = strspn(names[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_-.@%");
        if (names[i][len] || len < 1 || len > ROLE_LEN_MAX)
            return err_set(err, PAWL_INVALID,
                           "role \"%.70s\": must be 1 to %d letters, digits or any of _-.@%%",
                           names[i], ROLE_LEN_MAX);
    }
    return PAWL_OK;
}

enum pawl_status store_grants(const struct store_conf *conf, const struct roles *roles,
                              struct arena *a, const char **out, struct pawl_err *err)
{
    const struct store_ops *ops = NULL;
    enum pawl_status st = check_conf(conf, err);
    if (st == PAWL_OK)
        st = check_roles(roles, err);
    if (st == PAWL_OK)
        st = store_engine(conf->url, &ops, err);
    if (st == PAWL_OK && !ops->grants)
        st = err_set(err, PAWL_INVALID, "engine \"%s\" has no roles", ops->name);
    if (st == PAWL_OK)
        st = ops->grants(conf, roles, a, out, err);
    CHECK(st != PAWL_OK || *out);
    return st;
}

/* The engine below any wrappers. */
static const struct store *bottom(const struct store *s)
{
    while (s->ops == &store_fault_ops || s->ops == &store_trace_ops)
        s = ((const struct wrap *)s)->inner;
    return s;
}

unsigned store_traits(const struct store *s)
{
    return bottom(s)->ops->traits;
}

int64_t store_committing(const struct store *s)
{
    return atomic_load(&bottom(s)->commit_us);
}

enum pawl_status store_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                             struct pawl_err *err)
{
    const struct store_ops *ops = NULL;
    *out = (struct steps){ 0 };
    enum pawl_status st = check_conf(conf, err);
    if (st == PAWL_OK)
        st = store_engine(conf->url, &ops, err);
    if (st == PAWL_OK && ops->steps)
        st = ops->steps(conf, a, out, err);
    for (size_t i = 0; st == PAWL_OK && i < out->n; i++)
        CHECK(out->v[i].number == (int)i + 1);
    return st;
}
