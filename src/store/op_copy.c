/*
 * op_copy.c - copies of operations that may be answered after their caller has returned.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/needs.h"
#include "store/feature.h"

static void copy(struct arena *a, struct bytes *b)
{
    *b = arena_copy(a, *b);
}

static const struct call_spec *copy_specs(struct arena *a, const struct call_spec *v, size_t n)
{
    struct call_spec *to = n ? arena_alloc(a, n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++)
        if (!call_spec_copy(a, &v[i], &to[i]))
            return NULL;
    return to;
}

static void copy_claim(struct arena *a, struct claim *c)
{
    copy(a, &c->node);
    copy(a, &c->boot);
    copy(a, &c->worker);
    copy(a, &c->last);
    copy(a, &c->without);
    c->queues = needs_copy(a, c->queues, c->n_queues);
    c->types = needs_copy(a, c->types, c->n_types);
    c->has = needs_copy(a, c->has, c->n_has);
    c->quick = needs_copy(a, c->quick, c->n_quick);
}

static void copy_feature(struct arena *a, struct feature_op *q)
{
    q->id = arena_copy(a, q->id);
    q->ctx = q->of->copy ? q->of->copy(a, q->ctx) : q->ctx;
}

static const int64_t *copy_seqs(struct arena *a, const int64_t *v, size_t n)
{
    int64_t *to = n ? arena_alloc(a, n * sizeof *to) : NULL;
    if (to)
        memcpy(to, v, n * sizeof *to);
    return to;
}

static struct feature_op *copy_with(struct arena *a, const struct feature_op *with)
{
    struct feature_op *to = with ? arena_alloc(a, sizeof *to) : NULL;
    if (!to)
        return NULL;
    *to = *with;
    copy_feature(a, to);
    return to;
}

static void copy_finish(struct arena *a, struct finish *f)
{
    struct finish_item *v = arena_alloc(a, f->n * sizeof *v);
    for (size_t i = 0; v && i < f->n; i++) {
        v[i] = f->v[i];
        copy(a, &v[i].id);
        copy(a, &v[i].result.bytes);
        copy(a, &v[i].error);
        copy(a, &v[i].object.bytes);
        v[i].send = copy_specs(a, v[i].send, v[i].n_send);
        v[i].with = copy_with(a, v[i].with);
    }
    f->v = v;
}

static void copy_node(struct arena *a, struct node_op *n)
{
    struct bytes *const places[] = { &n->node,    &n->boot,  &n->host,   &n->version,
                                     &n->address, &n->roles, &n->queues, &n->has };
    for (size_t i = 0; i < COUNT_OF(places); i++)
        copy(a, places[i]);
}

static void copy_object(struct arena *a, struct object_op *o)
{
    copy(a, &o->type);
    copy(a, &o->key);
    copy(a, &o->state.bytes);
    o->or_versions = copy_seqs(a, o->or_versions, o->n_or_versions);
}

static void copy_lead(struct arena *a, struct lead *l)
{
    copy(a, &l->role);
    copy(a, &l->node);
    copy(a, &l->boot);
}

/* Without a default, so that the compiler warns here about a new kind. */
bool op_copy(struct arena *a, const struct op *op, struct op *out)
{
    *out = *op;
    out->a = a;
    switch (op->kind) {
    case OP_ACCEPT:
        out->accept.v = copy_specs(a, op->accept.v, op->accept.n);
        break;
    case OP_CLAIM:
        copy_claim(a, &out->claim);
        break;
    case OP_FINISH:
        copy_finish(a, &out->finish);
        break;
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
        copy(a, &out->by_id.id);
        copy(a, &out->by_id.queue);
        break;
    case OP_PAUSE:
        copy(a, &out->pause.queue);
        break;
    case OP_OBJECT:
        copy_object(a, &out->object);
        break;
    case OP_UNBLOCK:
        copy(a, &out->unblock.key);
        break;
    case OP_JOIN:
    case OP_BEAT:
    case OP_LEAVE:
    case OP_BURY:
    case OP_DRAIN:
        copy_node(a, &out->node);
        break;
    case OP_LEAD:
        copy_lead(a, &out->lead);
        break;
    case OP_SCRIPT:
        copy(a, &out->script.sql);
        break;
    case OP_FEATURE:
        copy_feature(a, &out->feature);
        break;
    case OP_WAKE:
        out->wake.seqs = copy_seqs(a, op->wake.seqs, op->wake.n);
        break;
    case OP_EXTEND:
    case OP_SWEEP:
    case OP_GC:
    case OP_REQUEUE: /* numbers alone */
        break;
    case OP_HANDLER:
    case OP_COUNT:
        CHECK(!"an operation that can be copied");
    }
    return !a->failed;
}
