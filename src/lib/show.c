/*
 * show.c - a call as the public struct pawl_view, in memory that its caller owns.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "lib/lib.h"

struct pawl_data data_of(struct payload p)
{
    return (struct pawl_data){ p.form, p.bytes.data, p.bytes.len };
}

static struct payload copy_payload(struct arena *a, struct payload p)
{
    p.bytes = arena_copy(a, p.bytes);
    return p;
}

static void fill_names(struct arena *a, const struct call *c, struct pawl_view *v)
{
    const struct call_spec *s = &c->spec;
    v->id = arena_text(a, s->id);
    v->type = arena_text(a, s->type);
    v->method = arena_text(a, s->method);
    v->key = arena_text(a, s->key);
    v->queue = arena_text(a, s->queue);
    v->caller = arena_text(a, s->caller);
    v->client = arena_text(a, s->client);
    v->parent = arena_text(a, s->parent);
    v->traceparent = arena_text(a, s->traceparent);
    v->node = arena_text(a, c->node);
    v->error = arena_text(a, c->error);
}

static void fill_tags(struct arena *a, const struct call *c, struct pawl_view *v)
{
    if (!c->spec.n_tags)
        return;
    struct pawl_tag *tags = arena_zalloc(a, c->spec.n_tags, sizeof(*tags));
    if (!tags)
        return; /* the arena remembers the failure */
    for (size_t i = 0; i < c->spec.n_tags; i++) {
        tags[i].name = arena_text(a, c->spec.tags[i].name);
        tags[i].value = arena_text(a, c->spec.tags[i].value);
    }
    v->tags = tags;
    v->n_tags = c->spec.n_tags;
}

static void fill_needs(struct arena *a, const struct call *c, struct pawl_view *v)
{
    size_t n = c->spec.n_needs;
    const char **needs = n ? arena_alloc(a, n * sizeof(*needs)) : NULL;
    for (size_t i = 0; needs && i < n; i++)
        needs[i] = arena_text(a, c->spec.needs[i]);
    v->needs = needs;
    v->n_needs = needs ? n : 0;
}

bool view_fill(struct arena *a, const struct call *c, struct pawl_view *v)
{
    *v = (struct pawl_view){ .size = sizeof(*v),
                             .seq = c->seq,
                             .state = c->state,
                             .waiting_for = call_wait_name(c->waiting_for),
                             .cancel_requested = c->cancel_requested,
                             .input = data_of(copy_payload(a, c->spec.input)),
                             .result = data_of(copy_payload(a, c->result)),
                             .priority = c->spec.priority,
                             .attempts = c->counts.attempts,
                             .lost = c->counts.lost,
                             .redrives = c->counts.redrives,
                             .max_attempts = c->spec.max_attempts,
                             .max_lost = c->spec.max_lost,
                             .timeout_us = c->spec.timeout_us,
                             .created_at_us = c->created_us,
                             .run_at_us = c->run_at_us,
                             .claimed_at_us = c->claimed_us,
                             .started_at_us = c->started_us,
                             .finished_at_us = c->finished_us,
                             .expires_at_us = c->expires_us,
                             .keep_until_us = c->keep_until_us,
                             .key_no = c->key_no,
                             .position = c->in_line ? c->position : -1 };
    fill_names(a, c, v);
    fill_tags(a, c, v);
    fill_needs(a, c, v);
    return !a->failed;
}

struct pawl_shown *shown_new(void)
{
    struct pawl_shown *s = mem_zalloc(sizeof(*s));
    if (s)
        arena_init(&s->arena, REQUEST_LEN_MAX);
    return s;
}

const struct pawl_view *pawl_shown_view(const struct pawl_shown *shown)
{
    return shown ? &shown->view : NULL;
}

void pawl_shown_free(struct pawl_shown *shown)
{
    if (!shown)
        return;
    arena_release(&shown->arena);
    mem_free(shown);
}

/* The error for a call that is no longer kept. */
static enum pawl_status say_gone(struct store *s, struct arena *a, const struct call *call,
                                 struct bytes id, struct pawl_err *err)
{
    struct archived copy;
    struct pawl_err own;
    bool archived = store_archived(s, a, id, &copy, &own) == PAWL_OK;
    return err_set(err, PAWL_GONE, "call \"%.*s\" ended %s and %s", BYTES_ARG(id),
                   pawl_state_name(call->state),
                   archived ? "was archived: pawl get --archived reads it" : "is no longer kept");
}

/* Read one call into a new pawl_shown. */
static enum pawl_status read_one(struct store *s, struct bytes id, struct pawl_shown *to,
                                 struct pawl_err *err)
{
    struct get g = { .ids = &id, .n = 1, .with = WITH_INPUT | WITH_RESULT };
    struct arena a;
    arena_init(&a, REQUEST_LEN_MAX);
    enum pawl_status st = store_get(s, &a, &g, err);
    if (st == PAWL_OK && g.found[0] == PAWL_NOT_FOUND)
        st = err_set(err, PAWL_NOT_FOUND, "call \"%.*s\" does not exist", BYTES_ARG(id));
    else if (st == PAWL_OK && g.found[0] == PAWL_GONE)
        st = say_gone(s, &a, &g.out[0], id, err);
    if (st == PAWL_OK && !view_fill(&to->arena, &g.out[0], &to->view))
        st = err_no_memory(err, "showing a call");
    arena_release(&a);
    return st;
}

enum pawl_status show_now(struct exec *e, struct bytes id, struct pawl_shown **out,
                          struct pawl_err *err)
{
    struct store *s;
    struct pawl_shown *shown = shown_new();
    if (!shown)
        return err_no_memory(err, "showing a call");
    enum pawl_status st = exec_reader(e, &s, err);
    if (st == PAWL_OK) {
        st = read_one(s, id, shown, err);
        exec_reader_back(e, s);
    }
    if (st != PAWL_OK) {
        pawl_shown_free(shown);
        return st;
    }
    *out = shown;
    return PAWL_OK;
}
