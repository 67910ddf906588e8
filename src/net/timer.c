/*
 * timer.c - the loop's timers: a pairing heap whose nodes are the timers themselves, so that
 * setting one needs no memory and cannot fail.
 *
 * Setting a timer later than all others, as connections do, takes a few stores, however many there
 * are. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/loop.h"

/* prev is the parent for a first child, otherwise the previous sibling. The top has no prev and no
 * next. */
static struct loop_timer *merge(struct loop_timer *a, struct loop_timer *b)
{
    if (b->at_us < a->at_us) {
        struct loop_timer *t = a;
        a = b;
        b = t;
    }
    b->prev = a;
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    a->child = b;
    return a;
}

/* Merge a list of siblings into one heap: neighbours in pairs, then the pairs from last to
 * first. */
static struct loop_timer *merge_all(struct loop_timer *first)
{
    struct loop_timer *pairs = NULL;
    while (first) {
        struct loop_timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b) {
            b->next = b->prev = NULL;
            a = merge(a, b);
        }
        a->next = pairs;
        pairs = a;
    }
    struct loop_timer *top = NULL;
    while (pairs) {
        struct loop_timer *next = pairs->next;
        pairs->next = NULL;
        top = top ? merge(top, pairs) : pairs;
        pairs = next;
    }
    return top;
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
    if (!t->at_us)
        return;
    struct loop_timer *below = merge_all(t->child);
    if (l->timers == t) {
        l->timers = below;
    } else {
        if (t->prev->child == t)
            t->prev->child = t->next;
        else
            t->prev->next = t->next;
        if (t->next)
            t->next->prev = t->prev;
        if (below)
            l->timers = merge(l->timers, below);
    }
    t->child = t->next = t->prev = NULL;
    t->at_us = 0;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t mono_us)
{
    loop_timer_cancel(l, t);
    /* A timer that is set for now while timers run fires in the next iteration; otherwise this one
     * would never end. */
    t->at_us = MAX(mono_us, l->pass_us + 1);
    l->timers = l->timers ? merge(l->timers, t) : t;
}

void timers_run(struct loop *l, int64_t now_us)
{
    l->pass_us = now_us;
    while (l->timers && l->timers->at_us <= now_us) {
        struct loop_timer *t = l->timers;
        loop_timer_cancel(l, t);
        t->run(t);
    }
    l->pass_us = 0;
}
