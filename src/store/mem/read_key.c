/*
 * read_key.c - reads of keys and objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/mem/mem.h"

enum pawl_status mem_read_object(struct store *s, struct arena *a, struct bytes type,
                                 struct bytes key, struct object *out, struct pawl_err *err)
{
    struct mem_db *db = ((struct mem *)s)->db;
    pthread_mutex_lock(&db->lock);
    const struct mem_object *o = object_find(db, type, key);
    if (o)
        *out = (struct object){ .type = arena_copy(a, type),
                                .key = arena_copy(a, key),
                                .state = { o->state.form, arena_copy(a, o->state.bytes) },
                                .version = o->version,
                                .updated_us = o->updated_us,
                                .pending = MIN(key_pending_type(o->key, type), COUNT_MAX) };
    pthread_mutex_unlock(&db->lock);
    if (!o)
        return err_set(err, PAWL_NOT_FOUND, "no object \"%.*s\" \"%.*s\"", BYTES_ARG(type),
                       BYTES_ARG(key));
    return a->failed ? err_no_memory(err, "reading from mem") : PAWL_OK;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static int name_cmp(const void *a, const void *b)
{
    const struct mem_key *const *x = a, *const *y = b;
    return bytes_cmp((*x)->by_name.name, (*y)->by_name.name);
}

/* Every key behind `after`, by name, in the arena; NULL without memory. */
static struct mem_key **keys_after(struct mem_db *db, struct arena *a, struct bytes after,
                                   size_t *out_n)
{
    struct mem_key **v = arena_zalloc(a, db->keys.count + 1, sizeof(struct mem_key *));
    size_t n = 0;
    if (!v)
        return NULL;
    for (struct table_node *t = table_next(&db->keys, NULL); t; t = table_next(&db->keys, t))
        if (!after.data || bytes_cmp(t->name, after) > 0)
            v[n++] = THING_OF(t, struct mem_key, by_name);
    qsort(v, n, sizeof(struct mem_key *), name_cmp);
    *out_n = n;
    return v;
}

static struct key_row row_make(struct arena *a, const struct mem_key *k, int64_t now_us)
{
    const struct mem_call *head = k->blocker ? k->blocker : line_first(k);
    CHECK(head && head->now.key == k);
    struct call c = call_model(head, now_us);
    return (struct key_row){ .key = arena_copy(a, k->by_name.name),
                             .head = arena_copy(a, head->id),
                             .head_state = c.state,
                             .waiting_for = c.waiting_for,
                             .blocked = k->blocker != NULL,
                             .pending = key_pending(k),
                             .since_us = k->blocker ? c.finished_us : c.created_us };
}

enum pawl_status mem_read_keys(struct store *s, struct arena *a, const struct key_query *q,
                               struct key_rows *out, struct pawl_err *err)
{
    struct mem *m = (struct mem *)s;
    int64_t now_us = world_now(m->world);
    size_t n = 0, i = 0;
    out->v = arena_zalloc(a, (size_t)q->limit, sizeof *out->v);
    pthread_mutex_lock(&m->db->lock);
    struct mem_key **v = keys_after(m->db, a, q->after, &n);
    for (; out->v && i < n && i < LIST_LOOK_MAX && out->n < (size_t)q->limit; i++) {
        bool shown = v[i]->blocker || (!q->blocked && line_first(v[i]));
        if (shown)
            out->v[out->n++] = row_make(a, v[i], now_us);
    }
    if (i > 0 && i < n)
        out->next = arena_copy(a, v[i - 1]->by_name.name);
    pthread_mutex_unlock(&m->db->lock);
    return a->failed ? err_no_memory(err, "reading from mem") : PAWL_OK;
}
