/*
 * tree.h - an ordered set whose nodes are members of the things they order; adding and removing
 * allocate nothing.
 *
 * A treap: a search tree by key and a heap by weight. The weight is a hash of the key, so that the
 * shape is the same in every run. Used under the database's mutex.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_TREE_H
#define STORE_MEM_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define TREE_KEY_LEN 5

/* Compared number by number, the first first. */
struct tree_key {
    int64_t k[TREE_KEY_LEN];
};

struct tree_node {
    struct tree_node *left, *right;
    uint64_t weight;
    int64_t size; /* nodes in the subtree of which it is the root */
    struct tree_key key;
};

struct tree {
    struct tree_node *root;
};

/* Add a node under a key that is not in the tree. */
void tree_add(struct tree *t, struct tree_node *n, struct tree_key key);
/* Remove a node that is in the tree. */
void tree_remove(struct tree *t, struct tree_node *n);
/* The first node whose key is `from` or greater; NULL: none. */
struct tree_node *tree_from(const struct tree *t, struct tree_key from);
/* How many nodes there are. */
int64_t tree_count(const struct tree *t);
/* How many nodes have a key below this one. */
int64_t tree_rank(const struct tree *t, struct tree_key key);
/* The first node whose key is above that of `n`, which need not be in the tree any more; NULL:
 * none.
 */
struct tree_node *tree_after(const struct tree *t, const struct tree_node *n);

#endif
