/*
 * cycle.c - refuse a handler that asks for a key which waits for that same handler (a deadlock).
 *
 * A call with a key waits for the call that holds it. If that is the call which asks, or a call
 * that waits for it because it asked in turn, neither would ever end; so the request is refused
 * before it is submitted. The calls that wait are the parents that run: a parent which only sent
 * its child has ended.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/limits.h"
#include "exec/attempt.h"
#include "lib/lib.h"

/* How many parents are checked; real chains of calls that wait for each other are shorter. */
#define CHAIN_MAX 100
/* Ids named in the error; those between are left out. */
#define CHAIN_SHOWN 4

struct chain {
    struct arena *a;             /* borrowed: ids and keys of the chain */
    struct bytes ids[CHAIN_MAX]; /* from the call that asks upwards */
    size_t n;
};

/* The error names who holds the key and the chain down to the call that asks. */
static enum pawl_status refuse(const struct chain *c, struct bytes key, struct pawl_err *err)
{
    char text[400];
    size_t len = 0;
    for (size_t i = c->n; i-- > 0;) {
        bool first = i == c->n - 1;
        if (!first && i && c->n - i > CHAIN_SHOWN)
            continue;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"%.60s\"%s",
                                first ? "call " : "", c->ids[i].data,
                                first && i ? " holds, waiting for "
                                : first    ? " itself holds"
                                : i        ? ", waiting for "
                                           : "");
        len = MIN(len, sizeof(text) - 1);
    }
    return err_set(err, PAWL_STATE, "call \"%.60s\" would wait for key \"%.60s\", which %s",
                   c->ids[0].data, key.data, text);
}

/* Go to the parent, if it runs: *key and *id become its key and its own parent. False: no parent
 * waits. */
static bool step_up(struct store *s, struct chain *c, struct bytes *id, struct bytes *key,
                    struct pawl_err *err, enum pawl_status *st)
{
    struct get g = { .ids = id, .n = 1 };
    *st = store_get(s, c->a, &g, err);
    if (*st != PAWL_OK || g.found[0] != PAWL_OK)
        return false;
    /* A call of a run may run before the previous result is stored: it is pending, and claimed. */
    bool held = g.out[0].state == PAWL_PROCESSING ||
                (g.out[0].state == PAWL_PENDING && g.out[0].claimed_us);
    if (!held)
        return false;
    c->ids[c->n++] = arena_copy(c->a, *id);
    *key = g.out[0].spec.key;
    *id = g.out[0].spec.parent;
    return true;
}

enum pawl_status cycle_check(struct pawl_call *t, struct bytes key, struct pawl_err *err)
{
    const struct call_spec *mine = &t->call->spec;
    struct chain c = { .a = &t->arena, .ids = { arena_copy(&t->arena, mine->id) }, .n = 1 };
    struct bytes held = mine->key, up = mine->parent;
    enum pawl_status st = PAWL_OK;
    struct store *s;
    if (!key.data)
        return PAWL_OK;
    key = arena_copy(&t->arena, key);
    if (held.data && bytes_eq(held, key))
        return refuse(&c, key, err);
    if (!up.data)
        return PAWL_OK;
    st = exec_reader(t->e, &s, err);
    if (st != PAWL_OK)
        return st;
    while (up.data && c.n < CHAIN_MAX && step_up(s, &c, &up, &held, err, &st)) {
        if (held.data && bytes_eq(held, key)) {
            st = refuse(&c, key, err);
            break;
        }
    }
    exec_reader_back(t->e, s);
    return st == PAWL_OK && t->arena.failed ? err_no_memory(err, "asking for a call") : st;
}
