/*
 * mem.c - the in-memory engine: databases by name, handles on them, and the commit.
 *
 * There may be any number of handles on any number of threads; one thread at a time uses a handle.
 * A database lives as long as it has a handle.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/mem.h"

#include "base/mem.h"

#define MEM_SCHEMA_VERSION 1

extern const struct store_ops store_mem;

/* ---- Databases ------------------------------------------------------------------------------- */

static pthread_mutex_t databases_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mem_db *databases; /* under databases_lock, like `handles` of each */

static void tree_free(struct tree *t, size_t offset)
{
    while (t->root) {
        struct tree_node *n = t->root;
        tree_remove(t, n);
        thing_free((struct thing *)((char *)n - offset));
    }
}

static void table_free(struct table *t, size_t offset)
{
    struct table_node *n = t->buckets ? table_next(t, NULL) : NULL;
    while (n) {
        struct table_node *next = table_next(t, n);
        thing_free((struct thing *)((char *)n - offset));
        n = next;
    }
    table_release(t);
}

static void db_free(struct mem_db *db)
{
    if (!db)
        return;
    table_free(&db->ids, offsetof(struct mem_call, by_id));
    table_free(&db->lanes, offsetof(struct lane, by_name));
    table_free(&db->queues, offsetof(struct queue, by_name));
    table_free(&db->nodes, offsetof(struct mem_node, by_name));
    table_free(&db->keys, offsetof(struct mem_key, by_name));
    table_free(&db->objects, offsetof(struct mem_object, by_name));
    tree_free(&db->leases, offsetof(struct mem_lease, by_token));
    mem_free(db->calls);
    mem_free(db->undo.v);
    mem_free(db->name);
    pthread_mutex_destroy(&db->lock);
    mem_free(db);
}

/* Owns `name` from now on, also when it fails. NULL without memory. */
static struct mem_db *db_new(char *name)
{
    struct mem_db *db = mem_zalloc(sizeof *db);
    if (!db) {
        mem_free(name);
        return NULL;
    }
    db->name = name;
    pthread_mutex_init(&db->lock, NULL);
    if (!table_init(&db->ids) || !table_init(&db->lanes) || !table_init(&db->queues) ||
        !table_init(&db->nodes) || !table_init(&db->keys) || !table_init(&db->objects)) {
        db_free(db);
        return NULL;
    }
    mem_leaders_init(db);
    return db;
}

static char *db_name(const struct store_conf *conf)
{
    const char *schema = conf->schema ? conf->schema : "pawl";
    const char *name = strchr(conf->url, ':') + 1;
    size_t schema_len = strlen(schema), name_len = strlen(name);
    char *out = mem_alloc(schema_len + name_len + 2);
    if (!out)
        return NULL;
    memcpy(out, schema, schema_len);
    out[schema_len] = ':';
    memcpy(out + schema_len + 1, name, name_len + 1);
    return out;
}

/* The database of this name with one more handle; NULL without memory. */
static struct mem_db *db_get(const struct store_conf *conf)
{
    char *name = db_name(conf);
    if (!name)
        return NULL;
    pthread_mutex_lock(&databases_lock);
    struct mem_db *db = databases;
    while (db && strcmp(db->name, name) != 0)
        db = db->next;
    if (db) {
        mem_free(name);
    } else {
        db = db_new(name);
        if (db) {
            db->next = databases;
            databases = db;
        }
    }
    if (db)
        db->handles++;
    pthread_mutex_unlock(&databases_lock);
    return db;
}

static void db_put(struct mem_db *db)
{
    pthread_mutex_lock(&databases_lock);
    bool last = --db->handles == 0;
    if (last) {
        struct mem_db **at = &databases;
        while (*at != db)
            at = &(*at)->next;
        *at = db->next;
    }
    pthread_mutex_unlock(&databases_lock);
    if (last)
        db_free(db);
}

static enum pawl_status mem_open(const struct store_conf *conf, struct store **out,
                                 struct pawl_err *err)
{
    struct mem *s = mem_zalloc(sizeof *s);
    if (!s)
        return err_no_memory(err, "opening mem");
    s->base.ops = &store_mem;
    s->world = conf->world ? conf->world : &world_real;
    s->retention_us = conf->retention_us;
    s->remember_us = conf->remember_us;
    s->key_pending_max = conf->key_pending_max;
    s->db = db_get(conf);
    if (!s->db) {
        mem_free(s);
        return err_no_memory(err, "opening mem");
    }
    *out = &s->base;
    return PAWL_OK;
}

static void mem_close(struct store *base)
{
    struct mem *s = (struct mem *)base;
    if (!s)
        return;
    db_put(s->db);
    mem_free(s);
}

/* ---- Commit ---------------------------------------------------------------------------------- */

/* Tables of features are written once, for databases: there would be nothing to compare. */
static enum pawl_status calls_only(struct op *op)
{
    op->status = err_set(&op->err, PAWL_INVALID, "mem: keeps calls only");
    return PAWL_OK;
}

static enum pawl_status finish(struct mem_tx *tx, struct finish *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].with)
            return calls_only(tx->op);
    return mem_finish(tx, f);
}

static enum pawl_status apply(struct mem_tx *tx)
{
    struct op *op = tx->op;
    switch (op->kind) {
    case OP_ACCEPT:
        return mem_accept(tx, &op->accept);
    case OP_CLAIM:
        return mem_claim(tx, &op->claim);
    case OP_FINISH:
        return finish(tx, &op->finish);
    case OP_EXTEND:
        return mem_extend(tx, &op->extend);
    case OP_CANCEL:
        return mem_cancel(tx, &op->by_id);
    case OP_RETRY:
        return mem_retry(tx, &op->by_id);
    case OP_MOVE:
        return mem_move(tx, &op->by_id);
    case OP_PAUSE:
        return mem_pause(tx, &op->pause);
    case OP_OBJECT:
        return mem_object(tx, &op->object);
    case OP_UNBLOCK:
        return mem_unblock(tx, &op->unblock);
    case OP_JOIN:
        return mem_join(tx, &op->node);
    case OP_BEAT:
        return mem_beat(tx, &op->node);
    case OP_LEAVE:
        return mem_leave(tx, &op->node);
    case OP_BURY:
        return mem_bury(tx, &op->node);
    case OP_DRAIN:
        return mem_drain(tx, &op->node);
    case OP_LEAD:
        return mem_lead(tx, &op->lead);
    case OP_SWEEP:
        return mem_sweep(tx, &op->sweep);
    case OP_GC:
        return mem_gc(tx, &op->gc);
    case OP_REQUEUE:
        return mem_requeue(tx, &op->requeue);
    case OP_HANDLER:
        if (op->handler.end->kind == OP_FINISH)
            return finish(tx, &op->handler.end->finish);
        return calls_only(op);
    case OP_FEATURE:
    case OP_WAKE:
        return calls_only(op);
    case OP_SCRIPT:
    case OP_COUNT:
        return PAWL_OK;
    }
    return PAWL_OK;
}

/* Run the handler before the mutex is locked: there is no SQL to roll back, and other commits need
 * not wait for it. */
static bool handler_run(struct op *op)
{
    struct sql_tx tx = { .ops = &store_mem };
    return op->kind == OP_HANDLER && op->handler.run(op->handler.ctx, &tx);
}

/* The SQL counts as committed only if this commit stored a result for every item. */
static bool handler_stands(const struct op *op, bool wrote)
{
    if (op->status != PAWL_OK || !wrote)
        return false;
    for (size_t i = 0; i < op->handler.end->finish.n; i++)
        if (op->handler.end->finish.v[i].state != PAWL_COMPLETED)
            return false;
    return true;
}

static enum pawl_status mem_commit(struct store *base, struct op *const *v, size_t n,
                                   struct pawl_err *err)
{
    struct mem *s = (struct mem *)base;
    struct mem_db *db = s->db;
    enum pawl_status st = PAWL_OK;
    bool wanted = handler_run(v[0]), wrote;
    pthread_mutex_lock(&db->lock);
    struct undo_mark mark = undo_mark(db);
    struct mem_tx tx = { .s = s, .db = db, .now_us = world_now(s->world) };
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        tx.op = v[i];
        st = apply(&tx);
    }
    wrote = db->undo.n > 0;
    if (st == PAWL_OK) {
        db->version += wrote;
        s->own += wrote;
        undo_forget(db);
    } else {
        undo_to(db, mark);
    }
    pthread_mutex_unlock(&db->lock);
    if (st != PAWL_OK)
        return err_no_memory(err, "committing to mem");
    if (v[0]->kind == OP_HANDLER && v[0]->handler.end->kind == OP_FINISH)
        v[0]->handler.committed_sql = wanted && handler_stands(v[0], wrote);
    return PAWL_OK;
}

/* ---- The small slots ------------------------------------------------------------------------- */

static enum pawl_status mem_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    (void)s, (void)finish, (void)err;
    return PAWL_OK;
}

static enum pawl_status mem_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    (void)s, (void)err;
    *out = (struct schema){ .version = MEM_SCHEMA_VERSION,
                            .wanted = MEM_SCHEMA_VERSION,
                            .min_version = MEM_SCHEMA_VERSION };
    return PAWL_OK;
}

static enum pawl_status mem_now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    (void)err;
    *out_us = world_now(((struct mem *)s)->world);
    return PAWL_OK;
}

static enum pawl_status mem_version(struct store *s, int64_t *out, struct pawl_err *err)
{
    struct mem *m = (struct mem *)s;
    struct mem_db *db = m->db;
    (void)err;
    pthread_mutex_lock(&db->lock);
    *out = db->version - m->own; /* only the commits of other handles */
    pthread_mutex_unlock(&db->lock);
    return PAWL_OK;
}

static enum pawl_status mem_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                                struct pawl_rows *out, struct pawl_err *err)
{
    (void)tx, (void)a, (void)q, (void)out;
    return err_set(err, PAWL_INVALID, "mem: has no SQL");
}

const struct store_ops store_mem = {
    .name = "mem",
    .traits = STORE_SHARED,
    .open = mem_open,
    .close = mem_close,
    .migrate = mem_migrate,
    .schema = mem_schema,
    .commit = mem_commit,
    .get = mem_get,
    .list = mem_list,
    .attempts = mem_attempts,
    .object = mem_read_object,
    .keys = mem_read_keys,
    .queues = mem_queues,
    .nodes = mem_nodes,
    .leaders = mem_leaders,
    .cancel_requests = mem_cancel_requests,
    .now = mem_now,
    .version = mem_version,
    .sql = mem_sql,
};
