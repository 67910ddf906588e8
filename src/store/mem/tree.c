/*
 * tree.c - the ordered set of mem: a treap with split and merge.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/tree.h"

#include "base/macros.h"

static int key_cmp(const struct tree_key *a, const struct tree_key *b)
{
    for (int i = 0; i < TREE_KEY_LEN; i++)
        if (a->k[i] != b->k[i])
            return a->k[i] < b->k[i] ? -1 : 1;
    return 0;
}

/* A hash of the key: splitmix64 over its numbers. */
static uint64_t key_weight(const struct tree_key *key)
{
    uint64_t w = 0;
    for (int i = 0; i < TREE_KEY_LEN; i++) {
        w += (uint64_t)key->k[i] + UINT64_C(0x9e3779b97f4a7c15);
        w = (w ^ (w >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        w = (w ^ (w >> 27)) * UINT64_C(0x94d049bb133111eb);
        w ^= w >> 31;
    }
    return w;
}

static int64_t size_of(const struct tree_node *n)
{
    return n ? n->size : 0;
}

static void count(struct tree_node *n)
{
    n->size = 1 + size_of(n->left) + size_of(n->right);
}

/* Split a subtree that a new key goes into: keys below `key` go left, the rest right. Recurses as
 * deep as the tree is, about log2(n). */
static void split(struct tree_node *n, const struct tree_key *key, struct tree_node **left,
                  struct tree_node **right)
{
    if (!n) {
        *left = *right = NULL;
        return;
    }
    int order = key_cmp(&n->key, key);
    CHECK(order != 0); /* a key is there once */
    if (order < 0) {
        *left = n;
        split(n->right, key, &n->right, right);
    } else {
        *right = n;
        split(n->left, key, left, &n->left);
    }
    count(n);
}

/* Join two subtrees; every key of a is below every key of b. */
static struct tree_node *merge(struct tree_node *a, struct tree_node *b)
{
    if (!a || !b)
        return a ? a : b;
    struct tree_node *root = a->weight > b->weight ? a : b;
    if (root == a)
        a->right = merge(a->right, b);
    else
        b->left = merge(a, b->left);
    count(root);
    return root;
}

void tree_add(struct tree *t, struct tree_node *n, struct tree_key key)
{
    struct tree_node *left, *right;
    n->key = key;
    n->weight = key_weight(&key);
    n->left = n->right = NULL;

    struct tree_node **at = &t->root;
    while (*at && (*at)->weight >= n->weight) {
        int order = key_cmp(&(*at)->key, &key);
        CHECK(order != 0);
        (*at)->size++;
        at = order < 0 ? &(*at)->right : &(*at)->left;
    }
    split(*at, &key, &left, &right);
    n->left = left;
    n->right = right;
    count(n);
    *at = n;
}

void tree_remove(struct tree *t, struct tree_node *n)
{
    struct tree_node **at = &t->root;
    while (*at && *at != n) {
        (*at)->size--;
        at = key_cmp(&(*at)->key, &n->key) < 0 ? &(*at)->right : &(*at)->left;
    }
    CHECK(*at == n);
    *at = merge(n->left, n->right);
}

int64_t tree_count(const struct tree *t)
{
    return size_of(t->root);
}

int64_t tree_rank(const struct tree *t, struct tree_key key)
{
    int64_t below = 0;
    for (const struct tree_node *n = t->root; n;) {
        if (key_cmp(&n->key, &key) < 0) {
            below += size_of(n->left) + 1;
            n = n->right;
        } else {
            n = n->left;
        }
    }
    return below;
}

struct tree_node *tree_from(const struct tree *t, struct tree_key from)
{
    struct tree_node *best = NULL;
    for (struct tree_node *n = t->root; n;) {
        if (key_cmp(&n->key, &from) < 0) {
            n = n->right;
        } else {
            best = n;
            n = n->left;
        }
    }
    return best;
}

struct tree_node *tree_after(const struct tree *t, const struct tree_node *n)
{
    struct tree_key key = n->key;
    CHECK(key.k[TREE_KEY_LEN - 1] < INT64_MAX);
    key.k[TREE_KEY_LEN - 1]++;
    return tree_from(t, key);
}
