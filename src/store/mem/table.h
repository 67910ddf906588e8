/*
 * table.h - a hash table by name whose nodes live inside the things they name; adding allocates
 * nothing that could fail: without memory for more buckets the chains grow longer instead.
 *
 * Under the database's mutex.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_TABLE_H
#define STORE_MEM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/macros.h"

struct table_node {
    struct table_node *next;
    uint64_t hash;
    struct bytes name; /* borrowed from the thing the node is in */
};

struct table {
    struct table_node **buckets; /* owned */
    size_t size, count;          /* size is a power of two */
};

/* False without memory. */
MUST_USE bool table_init(struct table *t);
/* The nodes are their owners' business. Accepts one that is all zero. */
void table_release(struct table *t);

void table_add(struct table *t, struct table_node *n, struct bytes name);
void table_remove(struct table *t, struct table_node *n);
struct table_node *table_find(const struct table *t, struct bytes name);
/* All nodes in no order: start with NULL. The table must not change meanwhile. */
struct table_node *table_next(const struct table *t, const struct table_node *n);

#endif
