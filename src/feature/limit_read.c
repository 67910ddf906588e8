/*
 * limit_read.c - reading limits (limit.h). Any thread, with a connection of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "feature/limit_inside.h"
#include "store/store.h"

struct looking {
    struct arena *a;
    const struct limit_query *query;
    struct limit_page *page;
};

static struct limit_row shown(struct arena *a, const struct rule *r)
{
    struct limit_row out = { .limit = r->limit,
                             .created_us = r->created_us,
                             .updated_us = r->updated_us };
    out.limit.name = arena_copy(a, r->limit.name);
    out.limit.queue = arena_copy(a, r->limit.queue);
    out.limit.type = arena_copy(a, r->limit.type);
    out.limit.key_prefix = arena_copy(a, r->limit.key_prefix);
    return out;
}

/* How many calls have a slot of the limit; `counts` are rows of slot_count. */
static int64_t running(const struct led_rows *counts, int64_t number)
{
    for (int i = 0; i < counts->n; i++)
        if (led_get_int(counts, i, 0) == number)
            return led_get_int(counts, i, 1);
    return 0;
}

static enum pawl_status look_list(struct ledger *d, void *ctx, struct pawl_err *err)
{
    struct looking *l = ctx;
    struct limit_page *out = l->page;
    struct rule *rules;
    struct led_rows *counts;
    size_t n, i = 0;
    enum pawl_status st = rules_query(d, &rules, &n, err);
    if (st == PAWL_OK)
        st = feature_query(d, SQL_SLOT_COUNT, NULL, &counts, err);
    if (st != PAWL_OK)
        return st;
    out->v = arena_alloc(l->a, (MIN(n, (size_t)l->query->limit) + 1) * sizeof *out->v);
    if (!out->v)
        return err_no_memory(err, "limits");
    while (i < n && l->query->after.data && bytes_cmp(rules[i].limit.name, l->query->after) <= 0)
        i++;
    for (out->n = 0; i < n && out->n < (size_t)l->query->limit; i++) {
        out->v[out->n] = shown(l->a, &rules[i]);
        out->v[out->n++].running = running(counts, rules[i].number);
    }
    out->next = i < n ? out->v[out->n - 1].limit.name : BYTES_NONE;
    return l->a->failed ? err_no_memory(err, "limits") : PAWL_OK;
}

enum pawl_status limit_list(struct store *s, struct arena *a, const struct limit_query *q,
                            struct limit_page *out, struct pawl_err *err)
{
    struct looking l = { .a = a, .query = q, .page = out };
    assert(q->limit >= 1 && q->limit <= LIST_MAX);
    *out = (struct limit_page){ 0 };
    return store_look(s, LOOK_SNAPSHOT, look_list, &l, err);
}

enum pawl_status limit_get(struct store *s, struct arena *a, struct bytes name,
                           struct limit_row *out, struct pawl_err *err)
{
    const struct limit_query q = { .limit = LIST_MAX };
    struct limit_page page;
    static_assert(LIMITS_MAX <= LIST_MAX, "one page has all limits");
    enum pawl_status st = limit_list(s, a, &q, &page, err);
    for (size_t i = 0; st == PAWL_OK && i < page.n; i++)
        if (bytes_eq(page.v[i].limit.name, name)) {
            *out = page.v[i];
            return PAWL_OK;
        }
    return st == PAWL_OK ? err_set(err, PAWL_NOT_FOUND, "no limit \"%.*s\"", BYTES_ARG(name)) : st;
}
