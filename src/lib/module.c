/*
 * module.c - handlers of the program and of shared objects, and starting and stopping them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/replay.h"
#include "exec/write_job.h"
#include "lib/lib.h"

enum pawl_status module_remember(struct pawl_module *m, enum pawl_status st,
                                 const struct pawl_err *err)
{
    if (st != PAWL_OK && m->err.status == PAWL_OK)
        m->err = *err;
    return st;
}

struct pawl_module *pawl_program(struct pawl *p)
{
    return p ? &p->program : NULL;
}

enum pawl_status pawl_on(struct pawl_module *m, const char *type, const char *method,
                         pawl_handler *handler)
{
    struct pawl_err err = { 0 };
    if (!m)
        return PAWL_INVALID;
    enum pawl_status st;
    if (!type || !method || !handler)
        st = err_set(&err, PAWL_INVALID, "pawl_on: an argument is NULL");
    else if (exec_started(m->p->e))
        st = err_set(&err, PAWL_STATE, "handler \"%.255s.%.255s\": register it before pawl_start()",
                     type, method);
    else
        st = exec_on(m->p->e, type, method, handler, &err);
    if (st == PAWL_OK && m->version[0])
        st = exec_version(m->p->e, type, method, bytes_of(m->version), &err);
    return module_remember(m, st, &err);
}

enum pawl_status pawl_prepare(struct pawl_module *m, const char *sql)
{
    struct arena a;
    if (!m)
        return PAWL_INVALID;
    if (exec_replays(m->p->e)) /* its tables are there, or its handlers have not run yet */
        return PAWL_OK;
    arena_init(&a, 1 << 20);
    struct op op = { .kind = OP_SCRIPT, .a = &a, .script = { .sql = bytes_of(sql) } };
    if (!sql || op.script.sql.len > SQL_LEN_MAX)
        op.status = err_set(&op.err, PAWL_INVALID,
                            "pawl_prepare: the statement is NULL or over %d bytes", SQL_LEN_MAX);
    else
        exec_do(m->p->e, &op);
    arena_release(&a);
    return module_remember(m, op.status, &op.err);
}

/* Run its init function; a failure in it is a failure of the load. */
static enum pawl_status run_init(struct pawl *p, void *handle, const char *path,
                                 struct pawl_err *err)
{
    struct pawl_module m = { .p = p };
    void (*init)(struct pawl_module *) = NULL;
    const int *abi = dlsym(handle, "pawl_module_abi");
    void *found = dlsym(handle, "pawl_module_init");
    memcpy(&init, &found, sizeof(init)); /* ISO C has no cast from an object pointer to a function
                                            pointer */
    if (!abi || !init)
        return err_set(
            err, PAWL_INVALID,
            "module \"%.200s\": pawl_module_init is missing; its source needs PAWL_MODULE", path);
    if (*abi != PAWL_MODULE_ABI)
        return err_set(err, PAWL_INVALID,
                       "module \"%.200s\": it was built for ABI %d; this library has %d", path,
                       *abi, PAWL_MODULE_ABI);
    init(&m);
    if (m.err.status != PAWL_OK)
        return err_set(err, m.err.status, "module \"%.200s\": %.250s", path, m.err.text);
    return PAWL_OK;
}

enum pawl_status pawl_load(struct pawl *p, const char *path, struct pawl_err *err)
{
    if (!p || !path)
        return err_set(err, PAWL_INVALID, "pawl_load: an argument is NULL");
    if (exec_started(p->e))
        return err_set(err, PAWL_STATE, "module \"%.200s\": load it before pawl_start()", path);
    void **handles = mem_resize(p->handles, (p->n_handles + 1) * sizeof(*handles));
    if (!handles)
        return err_no_memory(err, "loading a module");
    p->handles = handles;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_set(err, PAWL_NOT_FOUND, "module \"%.200s\" cannot be loaded: %.250s", path,
                       dlerror());
    /* Kept open even when its init fails: handlers that it has registered point into it. */
    p->handles[p->n_handles++] = handle;
    return run_init(p, handle, path, err);
}

enum pawl_status pawl_start(struct pawl *p, const struct pawl_workers *workers,
                            struct pawl_err *err)
{
    struct pawl_workers w = { PAWL_WORKERS_INIT };
    if (!p)
        return err_set(err, PAWL_INVALID, "pawl_start: the handle is NULL");
    if (workers && (workers->size < sizeof(size_t) || workers->size > STRUCT_SIZE_MAX))
        return err_set(err, PAWL_INVALID,
                       "struct pawl_workers: initialise it with PAWL_WORKERS_INIT");
    if (workers)
        memcpy(&w, workers, MIN(workers->size, sizeof(w)));
    for (size_t i = 0; i < w.n_queues; i++) {
        const char *fault = w.queues ? name_fault(bytes_of(w.queues[i])) : "is missing";
        if (fault)
            return err_set(err, PAWL_INVALID, "queue %zu of the workers: %s", i, fault);
    }
    struct exec_workers e = { .slots = w.slots ? w.slots : 16,
                              .queues = w.queues,
                              .n_queues = w.n_queues,
                              .has = w.has,
                              .n_has = w.n_has };
    enum pawl_status st = exec_started(p->e) ? PAWL_OK : declared_store(p, err);
    return st == PAWL_OK ? exec_start(p->e, &e, err) : st;
}

enum pawl_status pawl_stop(struct pawl *p, int64_t grace_us, struct pawl_err *err)
{
    if (!p || grace_us < 0 || grace_us > DURATION_MAX_US)
        return err_set(err, PAWL_INVALID, "pawl_stop: the handle is NULL, or the grace is below 0");
    return exec_stop(p->e, grace_us, err);
}
