/*
 * tree.c - the ordered set of mem: split and merge, from which everything else follows.
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

/* splitmix64 over the numbers of the key. */
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

/* Everything below key goes left, the rest right. */
static void split(struct tree_node *n, const struct tree_key *key, struct tree_node **left,
                  struct tree_node **right)
{
    while (n) {
        if (key_cmp(&n->key, key) < 0) {
            *left = n;
            left = &n->right;
            n = n->right;
        } else {
            *right = n;
            right = &n->left;
            n = n->left;
        }
    }
    *left = *right = NULL;
}

/* Every key of a is below every key of b. */
static struct tree_node *merge(struct tree_node *a, struct tree_node *b)
{
    struct tree_node *root = NULL, **at = &root;
    while (a && b) {
        if (a->weight > b->weight) {
            *at = a;
            at = &a->right;
            a = a->right;
        } else {
            *at = b;
            at = &b->left;
            b = b->left;
        }
    }
    *at = a ? a : b;
    return root;
}

void tree_add(struct tree *t, struct tree_node *n, struct tree_key key)
{
    struct tree_node *left, *right;
    n->key = key;
    n->weight = key_weight(&key);
    n->left = n->right = NULL;

    struct tree_node **at = &t->root;
    while (*at && (*at)->weight >= n->weight)
        at = key_cmp(&(*at)->key, &key) < 0 ? &(*at)->right : &(*at)->left;
    split(*at, &key, &left, &right);
    n->left = left;
    n->right = right;
    *at = n;
}

void tree_remove(struct tree *t, struct tree_node *n)
{
    struct tree_node **at = &t->root;
    while (*at && *at != n)
        at = key_cmp(&(*at)->key, &n->key) < 0 ? &(*at)->right : &(*at)->left;
    CHECK(*at == n);
    *at = merge(n->left, n->right);
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
