/*
 * tree.h - an ordered set whose nodes live inside the things they order; adding and removing
 * allocate nothing.
 *
 * A treap: a search tree by key, a heap by weight, and the weight is a hash of the key, so that the
 * shape is the same in every run. Under the database's mutex.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_TREE_H
#define STORE_MEM_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define TREE_KEY_LEN 5

/* Compared number by number. */
struct tree_key {
    int64_t k[TREE_KEY_LEN];
};

struct tree_node {
    struct tree_node *left, *right;
    uint64_t weight;
    int64_t size; /* of the tree it is the root of */
    struct tree_key key;
};

struct tree {
    struct tree_node *root;
};

/* No two nodes of one tree have the same key. */
void tree_add(struct tree *t, struct tree_node *n, struct tree_key key);
void tree_remove(struct tree *t, struct tree_node *n);
/* The first node whose key is `from` or greater; NULL for none. */
struct tree_node *tree_from(const struct tree *t, struct tree_key from);
/* How many there are, and how many of them have a key below this one. */
int64_t tree_count(const struct tree *t);
int64_t tree_rank(const struct tree *t, struct tree_key key);
/* The next one in order, whether or not `n` is still in the tree. */
struct tree_node *tree_after(const struct tree *t, const struct tree_node *n);

#endif
