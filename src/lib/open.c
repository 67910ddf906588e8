/*
 * open.c - opening and closing a database, and its counters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/stats.h"
#include "feature/all.h"
#include "lib/lib.h"

#define DAY_US (INT64_C(86400) * SEC_US)

static int64_t or_default(int64_t given, int64_t fallback)
{
    return given ? given : fallback;
}

/* The caller's struct may come from an older header and be shorter: its missing fields are zero,
 * which means the default. */
static enum pawl_status read_options(const struct pawl_options *given, struct pawl_options *out,
                                     struct pawl_err *err)
{
    *out = (struct pawl_options){ PAWL_OPTIONS_INIT };
    if (!given)
        return PAWL_OK;
    if (given->size < sizeof(size_t) || given->size > STRUCT_SIZE_MAX)
        return err_set(err, PAWL_INVALID,
                       "struct pawl_options: its size is %zu; initialise it with PAWL_OPTIONS_INIT",
                       given->size);
    memcpy(out, given, MIN(given->size, sizeof(*out)));
    return PAWL_OK;
}

static enum pawl_status check_conf(const struct exec_conf *c, struct pawl_err *err)
{
    const char *fault = c->node ? name_fault(bytes_of(c->node)) : NULL;
    if (fault)
        return err_set(err, PAWL_INVALID, "setting \"node\": %s", fault);
    if (c->pool_size < 1 || c->pool_size > 256)
        return err_set(err, PAWL_INVALID, "setting \"pool_size\": must be 1 to 256");
    if (c->heartbeat_interval_us < MS_US || c->reclaim_interval_us < MS_US)
        return err_set(
            err, PAWL_INVALID,
            "settings \"heartbeat_interval\" and \"reclaim_interval\": must be at least 1 ms");
    if (c->heartbeat_grace_us < 2 * c->heartbeat_interval_us)
        return err_set(err, PAWL_INVALID,
                       "setting \"heartbeat_grace\": must be at least twice heartbeat_interval");
    if (c->poll_min_us < MS_US || c->poll_max_us < c->poll_min_us)
        return err_set(err, PAWL_INVALID,
                       "setting \"poll_interval\": must be 1 ms or more, the shorter time first");
    if (c->pool_timeout_us < 0)
        return err_set(err, PAWL_INVALID, "setting \"pool_timeout\": must not be below 0");
    if (c->pool_lifetime_us < 0)
        return err_set(err, PAWL_INVALID, "setting \"pool_lifetime\": must not be below 0");
    if (c->retention_us < 0 || c->retention_us > DURATION_MAX_US || c->remember_us < 0 ||
        c->remember_us > DURATION_MAX_US)
        return err_set(err, PAWL_INVALID,
                       "settings \"retention\" and \"remember\": must be 0 to 100 years");
    if (c->cron_runs_us < 0 || c->cron_runs_us > DURATION_MAX_US)
        return err_set(err, PAWL_INVALID,
                       "setting \"cron_runs_retention\": must be 0 to 100 years");
    if (c->key_pending_max < 1)
        return err_set(err, PAWL_INVALID, "setting \"max_pending_key\": must be at least 1");
    return PAWL_OK;
}

static struct exec_conf conf_of(const struct pawl_options *o)
{
    const char *from_env = getenv("PAWL_DB");
    size_t n_features;
    const struct feature *const *features = features_all(&n_features);
    return (struct exec_conf){
        .url = o->db                   ? o->db
               : from_env && *from_env ? from_env
                                       : "sqlite:pawl.db",
        .schema = o->schema,
        .node = o->node,
        .world = &world_real,
        .pool_size = o->pool_size ? o->pool_size : 4,
        .heartbeat_interval_us = or_default(o->heartbeat_interval_us, 2 * SEC_US),
        .heartbeat_grace_us = or_default(o->heartbeat_grace_us, 10 * SEC_US),
        .reclaim_interval_us = or_default(o->reclaim_interval_us, 1 * SEC_US),
        .retention_us = or_default(o->retention_us, 7 * DAY_US),
        .remember_us = or_default(o->remember_us, 30 * DAY_US),
        .cron_runs_us = or_default(o->cron_runs_us, 30 * DAY_US),
        .gc_interval_us = o->gc_interval_us < 0 ? 0 : or_default(o->gc_interval_us, 60 * SEC_US),
        .pool_timeout_us = or_default(o->pool_timeout_us, 30 * SEC_US),
        .pool_lifetime_us = or_default(o->pool_lifetime_us, 30 * 60 * SEC_US),
        .poll_min_us = or_default(o->poll_min_us, 5 * MS_US),
        .poll_max_us = or_default(o->poll_max_us, 250 * MS_US),
        .key_pending_max = or_default(o->max_pending_key, 100000),
        .features = features,
        .n_features = n_features,
        .fail_lost = o->fail_lost,
        .pin_versions = o->pin_versions,
        .no_migrate = o->no_migrate,
        .paused = o->paused
    };
}

static enum pawl_status copy_client(struct pawl *p, const char *client, struct pawl_err *err)
{
    if (!client)
        return PAWL_OK;
    const char *fault = name_fault(bytes_of(client));
    if (fault)
        return err_set(err, PAWL_INVALID, "setting \"client\": %s", fault);
    size_t len = strlen(client) + 1;
    p->client = mem_alloc(len);
    if (!p->client)
        return err_no_memory(err, "opening the database");
    memcpy(p->client, client, len);
    return PAWL_OK;
}

enum pawl_status pawl_open(const struct pawl_options *options, struct pawl **out,
                           struct pawl_err *err)
{
    return pawl_open_with(options, &(struct call_defaults){ 0 }, out, err);
}

enum pawl_status pawl_open_with(const struct pawl_options *options,
                                const struct call_defaults *defaults, struct pawl **out,
                                struct pawl_err *err)
{
    struct pawl_options o;
    if (!out)
        return err_set(err, PAWL_INVALID, "pawl_open: out is NULL");
    *out = NULL;
    enum pawl_status st = read_options(options, &o, err);
    if (st != PAWL_OK)
        return st;
    struct exec_conf conf = conf_of(&o);
    conf.call_timeout_us = defaults->timeout_us;
    conf.input_len_max = defaults->input_len_max;
    st = check_conf(&conf, err);
    if (st != PAWL_OK)
        return st;
    struct pawl *p = mem_zalloc(sizeof(*p));
    if (!p)
        return err_no_memory(err, "opening the database");
    p->program.p = p;
    st = copy_client(p, o.client, err);
    if (st == PAWL_OK)
        st = exec_open(&conf, &p->e, err);
    if (st != PAWL_OK) {
        pawl_close(p);
        return st;
    }
    *out = p;
    return PAWL_OK;
}

void pawl_close(struct pawl *p)
{
    if (!p)
        return;
    /* A handler that has not returned still needs the code of its module: the modules then stay
     * loaded. */
    bool quiet = true;
    if (p->e && exec_started(p->e)) {
        struct pawl_err err;
        quiet = exec_stop(p->e, 0, &err) == PAWL_OK;
    }
    exec_close(p->e);
    for (size_t i = 0; quiet && i < p->n_handles; i++)
        dlclose(p->handles[i]);
    declared_free(p);
    mem_free(p->handles);
    mem_free(p->client);
    mem_free(p);
}

void pawl_stats(struct pawl *p, struct pawl_stats *out)
{
    if (!p || !out)
        return;
    const struct exec_stats *c = exec_stats_of(p->e);
    struct exec_figures now;
    struct pawl_stats s = { .size = out->size };
    s.accepted = atomic_load(&c->accepted);
    s.duplicates = atomic_load(&c->duplicates);
    s.claimed = atomic_load(&c->claimed);
    s.completed = atomic_load(&c->completed);
    s.failed_tries = atomic_load(&c->failed_tries);
    s.ended = atomic_load(&c->ended);
    s.lost = atomic_load(&c->lost);
    s.commits = atomic_load(&c->commits);
    s.repeats = atomic_load(&c->repeats);
    exec_figures(p->e, &now);
    s.queue_depth = (int64_t)now.writes_waiting;
    s.waiting = (int64_t)now.waiting;
    s.running = now.busy + now.hung;
    s.hung = now.hung;
    memcpy(out, &s, MIN(out->size, sizeof(s)));
}
