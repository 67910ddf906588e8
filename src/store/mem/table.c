/*
 * table.c - the hash table of mem.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/table.h"

#include "base/mem.h"

#define TABLE_SIZE_FIRST 64

/* FNV-1a: short. It need not resist chosen names, because the engine is for tests. */
static uint64_t name_hash(struct bytes name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
    return h ^ (h >> 29);
}

bool table_init(struct table *t)
{
    t->buckets = mem_zalloc(TABLE_SIZE_FIRST * sizeof(struct table_node *));
    t->size = TABLE_SIZE_FIRST;
    t->count = 0;
    return t->buckets != NULL;
}

void table_release(struct table *t)
{
    mem_free(t->buckets);
    *t = (struct table){ 0 };
}

static void table_grow(struct table *t)
{
    size_t size = t->size * 2;
    struct table_node **buckets = mem_zalloc(size * sizeof(struct table_node *));
    if (!buckets)
        return;
    for (size_t i = 0; i < t->size; i++) {
        for (struct table_node *n = t->buckets[i], *next; n; n = next) {
            next = n->next;
            n->next = buckets[n->hash & (size - 1)];
            buckets[n->hash & (size - 1)] = n;
        }
    }
    mem_free(t->buckets);
    t->buckets = buckets;
    t->size = size;
}

void table_add(struct table *t, struct table_node *n, struct bytes name)
{
    CHECK(!table_find(t, name)); /* a name is there once */
    if (t->count >= t->size)
        table_grow(t);
    n->name = name;
    n->hash = name_hash(name);
    struct table_node **at = &t->buckets[n->hash & (t->size - 1)];
    n->next = *at;
    *at = n;
    t->count++;
}

void table_remove(struct table *t, struct table_node *n)
{
    struct table_node **at = &t->buckets[n->hash & (t->size - 1)];
    while (*at && *at != n)
        at = &(*at)->next;
    CHECK(*at == n);
    *at = n->next;
    t->count--;
}

struct table_node *table_find(const struct table *t, struct bytes name)
{
    uint64_t hash = name_hash(name);
    struct table_node *n = t->buckets[hash & (t->size - 1)];
    while (n && (n->hash != hash || !bytes_eq(n->name, name)))
        n = n->next;
    return n;
}

struct table_node *table_next(const struct table *t, const struct table_node *n)
{
    if (n && n->next)
        return n->next;
    for (size_t i = n ? (n->hash & (t->size - 1)) + 1 : 0; i < t->size; i++)
        if (t->buckets[i])
            return t->buckets[i];
    return NULL;
}
