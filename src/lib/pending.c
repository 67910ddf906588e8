/*
 * pending.c - the calls of an object that have not begun, in the order in which they will run.
 *
 * A list is newest first and a line is shown oldest first, so the whole line is read and the first
 * few are kept. A line is bounded (max_pending_key), and so is a page.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "lib/lib.h"

/* One call of the line and its place. */
struct place {
    int64_t position, run_at_us, seq;
    struct bytes id;
};
struct line {
    struct arena arena;
    struct place *v;
    size_t n, cap;
};

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    if (x->run_at_us != y->run_at_us)
        return x->run_at_us < y->run_at_us ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* When there are twice as many, keep the first `cap`. */
static void line_trim(struct line *l)
{
    qsort(l->v, l->n, sizeof(*l->v), by_place);
    l->n = MIN(l->n, l->cap);
}

static bool line_add(struct line *l, const struct call *c)
{
    struct place one = { .position = c->in_line ? c->position : INT64_MAX,
                         .run_at_us = c->in_line ? 0 : c->run_at_us,
                         .seq = c->seq,
                         .id = arena_copy(&l->arena, c->spec.id) };
    if (l->n == 2 * l->cap)
        line_trim(l);
    l->v[l->n++] = one;
    return one.id.data;
}

/* Read every pending call of the key, page by page. */
static enum pawl_status line_read(struct store *s, struct query *q, struct line *l,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    do {
        struct page page;
        struct arena a;
        arena_init(&a, REQUEST_LEN_MAX);
        st = store_list(s, &a, q, &page, err);
        for (size_t i = 0; st == PAWL_OK && i < page.n; i++)
            if (!line_add(l, &page.v[i]))
                st = err_no_memory(err, "reading a line");
        q->before_seq = page.next_before;
        arena_release(&a);
    } while (st == PAWL_OK && q->before_seq);
    line_trim(l);
    return st;
}

/* Show the kept calls, with their inputs, as far as they are still pending. */
static enum pawl_status line_show(struct store *s, const struct line *l, struct page_holder *h,
                                  struct pawl_err *err)
{
    struct arena a;
    arena_init(&a, REQUEST_LEN_MAX);
    struct bytes *ids = arena_alloc(&a, (l->n + 1) * sizeof(*ids));
    struct pawl_view *v = arena_zalloc(&h->arena, l->n + 1, sizeof(*v));
    struct get g = { .ids = ids, .n = l->n, .with = WITH_INPUT };
    for (size_t i = 0; ids && i < l->n; i++)
        ids[i] = l->v[i].id;
    enum pawl_status st = ids && v ? PAWL_OK : err_no_memory(err, "showing a line");
    if (st == PAWL_OK && l->n)
        st = store_get(s, &a, &g, err);
    for (size_t i = 0; st == PAWL_OK && i < l->n; i++)
        if (g.found[i] == PAWL_OK && g.out[i].state == PAWL_PENDING)
            view_fill(&h->arena, &g.out[i], &v[h->shown.n++]);
    h->shown.calls = v;
    if (st == PAWL_OK && h->arena.failed)
        st = err_no_memory(err, "showing a line");
    arena_release(&a);
    return st;
}

static enum pawl_status read_pending(struct pawl *p, struct query *q, int limit,
                                     struct page_holder *h, struct pawl_err *err)
{
    struct line l = { .cap = (size_t)limit };
    struct store *s;
    arena_init(&l.arena, REQUEST_LEN_MAX);
    l.v = arena_alloc(&l.arena, 2 * l.cap * sizeof(*l.v));
    if (!l.v)
        return err_no_memory(err, "reading a line");
    enum pawl_status st = exec_reader(p->e, &s, err);
    if (st == PAWL_OK) {
        st = line_read(s, q, &l, err);
        if (st == PAWL_OK)
            st = line_show(s, &l, h, err);
        exec_reader_back(p->e, s);
    }
    arena_release(&l.arena);
    return st;
}

enum pawl_status pawl_pending(struct pawl *p, const char *type, const char *key, int limit,
                              struct pawl_page **out, struct pawl_err *err)
{
    if (!p || !out || limit < 1 || limit > LIST_MAX)
        return err_set(err, PAWL_INVALID,
                       "pawl_pending: an argument is NULL, or limit is not 1 to %d", LIST_MAX);
    const char *fault = type ? name_fault(bytes_of(type)) : NULL;
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"type\": %s", fault);
    fault = name_fault(bytes_of(key));
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"key\": %s", fault);
    struct query q = {
        .state = PAWL_PENDING, .type = bytes_of(type), .key = bytes_of(key), .limit = LIST_MAX
    };
    struct page_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing a line");
    arena_init(&h->arena, REQUEST_LEN_MAX);
    enum pawl_status st = read_pending(p, &q, limit, h, err);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_page_free(&h->shown);
    return st;
}
