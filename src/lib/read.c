/*
 * read.c - lists: calls, attempts, queues. Each answer is one block that its caller frees.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "lib/lib.h"
#include "model/cursor.h"

/* What a caller holds: the public struct first, so that its pointer is also the one to free. */
#define HOLDER(name, type)                                                                         \
    struct name {                                                                                  \
        type shown;                                                                                \
        struct arena arena;                                                                        \
    }
HOLDER(attempts_holder, struct pawl_attempts);
HOLDER(queues_holder, struct pawl_queues);

static enum pawl_status read_query(const struct pawl_query *given, struct query *q,
                                   struct pawl_err *err)
{
    struct pawl_query g = { PAWL_QUERY_INIT };
    if (given && (given->size < sizeof(size_t) || given->size > STRUCT_SIZE_MAX))
        return err_set(err, PAWL_INVALID, "struct pawl_query: initialise it with PAWL_QUERY_INIT");
    if (given)
        memcpy(&g, given, MIN(given->size, sizeof(g)));
    if (g.limit < 0 || g.limit > LIST_MAX)
        return err_set(err, PAWL_INVALID, "field \"limit\": %d, must be 1 to %d", g.limit,
                       LIST_MAX);
    if ((int)g.state < 0 || g.state > PAWL_EXPIRED)
        return err_set(err, PAWL_INVALID, "field \"status\": is %d, not one of enum pawl_state",
                       (int)g.state);
    *q = (struct query){ .state = g.state,
                         .queue = bytes_of(g.queue),
                         .type = bytes_of(g.type),
                         .method = bytes_of(g.method),
                         .key = bytes_of(g.key),
                         .parent = bytes_of(g.parent),
                         .caller = bytes_of(g.caller),
                         .tag_name = bytes_of(g.tag_name),
                         .tag_value = bytes_of(g.tag_value),
                         .since_us = g.since_us,
                         .until_us = g.until_us,
                         .limit = g.limit ? g.limit : LIST_DEFAULT,
                         .with =
                             (g.with_input ? WITH_INPUT : 0) | (g.with_result ? WITH_RESULT : 0) };
    if (g.cursor && !cursor_read(bytes_of(g.cursor), &q->before_seq))
        return err_set(err, PAWL_INVALID,
                       "field \"cursor\": is \"%.64s\", not the cursor of an earlier page",
                       g.cursor);
    return PAWL_OK;
}

static enum pawl_status fill_page(struct page_holder *h, const struct page *page,
                                  struct pawl_err *err)
{
    struct pawl_view *v = arena_zalloc(&h->arena, page->n ? page->n : 1, sizeof(*v));
    for (size_t i = 0; v && i < page->n; i++)
        view_fill(&h->arena, &page->v[i], &v[i]);
    h->shown = (struct pawl_page){ .calls = v, .n = page->n };
    if (page->next_before) {
        char text[CURSOR_TEXT_MAX];
        cursor_write(page->next_before, text);
        h->shown.next = arena_text(&h->arena, bytes_of(text));
    }
    return h->arena.failed ? err_no_memory(err, "showing a list") : PAWL_OK;
}

enum pawl_status pawl_list(struct pawl *p, const struct pawl_query *given, struct pawl_page **out,
                           struct pawl_err *err)
{
    struct query q;
    struct page page;
    struct store *s;
    if (!p || !out)
        return err_set(err, PAWL_INVALID, "pawl_list: an argument is NULL");
    enum pawl_status st = read_query(given, &q, err);
    if (st != PAWL_OK)
        return st;
    struct page_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing a list");
    struct arena a;
    arena_init(&a, REQUEST_LEN_MAX);
    arena_init(&h->arena, REQUEST_LEN_MAX);
    st = exec_reader(p->e, &s, err);
    if (st == PAWL_OK) {
        st = store_list(s, &a, &q, &page, err);
        exec_reader_back(p->e, s);
    }
    if (st == PAWL_OK)
        st = fill_page(h, &page, err);
    arena_release(&a);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_page_free(&h->shown);
    return st;
}

void pawl_page_free(struct pawl_page *page)
{
    struct page_holder *h = (struct page_holder *)page;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}

static const char *kind_name(enum ending how)
{
    return how == END_TIMEOUT ? "timeout" : how == END_LOST ? "lost" : "error";
}

static enum pawl_status fill_attempts(struct attempts_holder *h, const struct attempts *t,
                                      struct pawl_err *err)
{
    struct pawl_attempt *v = arena_zalloc(&h->arena, t->n ? t->n : 1, sizeof(*v));
    for (size_t i = 0; v && i < t->n; i++)
        v[i] = (struct pawl_attempt){ .try_no = t->v[i].attempt_no,
                                      .kind = kind_name(t->v[i].how),
                                      .error = arena_text(&h->arena, t->v[i].error),
                                      .node = arena_text(&h->arena, t->v[i].node),
                                      .started_at_us = t->v[i].started_us,
                                      .finished_at_us = t->v[i].finished_us };
    h->shown = (struct pawl_attempts){ v, t->n };
    return h->arena.failed ? err_no_memory(err, "showing attempts") : PAWL_OK;
}

enum pawl_status pawl_attempts(struct pawl *p, const char *id, struct pawl_attempts **out,
                               struct pawl_err *err)
{
    struct attempts t;
    struct store *s;
    if (!p || !out)
        return err_set(err, PAWL_INVALID, "pawl_attempts: an argument is NULL");
    const char *fault = name_fault(bytes_of(id));
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"id\": %s", fault);
    struct attempts_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing attempts");
    struct arena a;
    arena_init(&a, REQUEST_LEN_MAX);
    arena_init(&h->arena, REQUEST_LEN_MAX);
    enum pawl_status st = exec_reader(p->e, &s, err);
    if (st == PAWL_OK) {
        st = store_attempts(s, &a, bytes_of(id), &t, err);
        exec_reader_back(p->e, s);
    }
    if (st == PAWL_OK)
        st = fill_attempts(h, &t, err);
    arena_release(&a);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_attempts_free(&h->shown);
    return st;
}

void pawl_attempts_free(struct pawl_attempts *attempts)
{
    struct attempts_holder *h = (struct attempts_holder *)attempts;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}

static enum pawl_status fill_queues(struct queues_holder *h, const struct queue_rows *r,
                                    int64_t now_us, struct pawl_err *err)
{
    struct pawl_queue *v = arena_zalloc(&h->arena, r->n ? r->n : 1, sizeof(*v));
    for (size_t i = 0; v && i < r->n; i++) {
        int64_t oldest = r->v[i].oldest_due_us;
        v[i] = (struct pawl_queue){ .queue = arena_text(&h->arena, r->v[i].queue),
                                    .paused = r->v[i].paused,
                                    .pending = r->v[i].pending,
                                    .due = r->v[i].due,
                                    .processing = r->v[i].processing,
                                    .oldest_pending_us = oldest ? MAX(now_us - oldest, 0) : 0 };
    }
    h->shown = (struct pawl_queues){ v, r->n };
    return h->arena.failed ? err_no_memory(err, "showing queues") : PAWL_OK;
}

enum pawl_status pawl_queues(struct pawl *p, struct pawl_queues **out, struct pawl_err *err)
{
    struct queue_rows rows;
    struct store *s;
    if (!p || !out)
        return err_set(err, PAWL_INVALID, "pawl_queues: an argument is NULL");
    struct queues_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing queues");
    struct arena a;
    arena_init(&a, REQUEST_LEN_MAX);
    arena_init(&h->arena, REQUEST_LEN_MAX);
    enum pawl_status st = exec_reader(p->e, &s, err);
    if (st == PAWL_OK) {
        st = store_queues(s, &a, &rows, err);
        exec_reader_back(p->e, s);
    }
    if (st == PAWL_OK)
        st = fill_queues(h, &rows, exec_now(p->e), err);
    arena_release(&a);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_queues_free(&h->shown);
    return st;
}

void pawl_queues_free(struct pawl_queues *queues)
{
    struct queues_holder *h = (struct queues_holder *)queues;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}
