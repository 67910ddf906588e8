/*
 * table.h - a hash table by name whose nodes are members of the things they name. Adding cannot
 * fail: without memory for more buckets the chains grow longer.
 *
 * Used under the database's mutex.
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
    struct bytes name; /* borrowed from the thing that contains the node */
};

struct table {
    struct table_node **buckets; /* owned */
    size_t size, count;          /* size is a power of two */
};

/* Make an empty table. False without memory. */
MUST_USE bool table_init(struct table *t);
/* Free the buckets; the nodes belong to their things. Accepts a table that is all zero. */
void table_release(struct table *t);

/* Add a node under a name that is not in the table; the name is borrowed. */
void table_add(struct table *t, struct table_node *n, struct bytes name);
/* Remove a node that is in the table. */
void table_remove(struct table *t, struct table_node *n);
/* The node with this name; NULL: none. */
struct table_node *table_find(const struct table *t, struct bytes name);
/* The next of all nodes, in no order; NULL gives the first, and the end is NULL. The table must not
 * change meanwhile. */
struct table_node *table_next(const struct table *t, const struct table_node *n);

#endif
