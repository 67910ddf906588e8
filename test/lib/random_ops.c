/*
 * random_ops.c - see random_ops.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "random_ops.h"

#include "check.h"

/* ---- Random numbers -------------------------------------------------------------------------- */

static uint64_t roll(struct random_ops *q)
{
    return mix64(q->dice++);
}

int below(struct random_ops *q, int n)
{
    return (int)(roll(q) % (uint64_t)n);
}

bool one_in(struct random_ops *q, int n)
{
    return below(q, n) == 0;
}

static struct bytes pick(struct random_ops *q, const char *const *v, int n)
{
    return bytes_of(v[below(q, n)]);
}
#define PICK(q, ...)                                                                               \
    pick((q), (const char *const[]){ __VA_ARGS__ },                                                \
         (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)))

static struct bytes some_id(struct random_ops *q)
{
    return bytes_of(arena_printf(&q->a, "i%d", below(q, RANDOM_IDS)));
}

/* Half of the ids have a key, most of them the first one, so that keys have several calls. */
static struct bytes key_of(struct bytes id)
{
    int n = id.data[id.len - 1] - '0';
    return n % 2 ? BYTES_NONE : n == 8 ? BYTES("k2") : n == 6 ? BYTES("k3") : BYTES("k1");
}

static struct bytes some_key(struct random_ops *q)
{
    return PICK(q, "k1", "k1", "k2", "k3");
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void some_options(struct random_ops *q, struct call_spec *s)
{
    s->priority = below(q, 3) - 1;
    s->max_attempts = 1 + below(q, 3);
    s->max_lost = 1 + below(q, 2);
    s->keep_us = one_in(q, 3) ? 5 * SEC_US : 0;
    /* Uses no random number, so that existing seeds keep their sequences. */
    if (s->max_lost == 1)
        s->timeout_us = s->keep_us ? 20 * SEC_US : 7 * SEC_US;
    if (one_in(q, 5))
        s->delay_us = (1 + below(q, 5)) * SEC_US;
    else if (one_in(q, 6))
        s->run_at_us = OWN_WORLD_BEGIN + below(q, 200) * SEC_US;
    if (one_in(q, 4))
        s->expires_in_us = (1 + below(q, 30)) * SEC_US;
    else if (one_in(q, 8))
        s->expires_at_us = OWN_WORLD_BEGIN + below(q, 200) * SEC_US;
    s->backoff.base_us = below(q, 3) * SEC_US + 1;
    if (one_in(q, 3))
        s->caller = PICK(q, "alice", "bob");
    if (one_in(q, 5))
        s->parent = some_id(q);
}

/* What a call needs follows from its id, and what a worker has from its token, so that existing
 * seeds keep their sequences. */
static const struct bytes capabilities[] = { { "big", 3 }, { "gpu", 3 }, { "v:2", 3 } };

static void some_needs(struct call_spec *s)
{
    unsigned n = (unsigned char)s->id.data[s->id.len - 1] + 3u * (unsigned char)s->id.data[1];
    if (n % 4)
        return;
    s->needs = n % 8 ? &capabilities[1] : &capabilities[0];
    s->n_needs = n % 3 ? 1 : 2;
}

static void some_has(struct claim *c)
{
    unsigned n = c->token.b[0];
    c->has = n % 2 ? &capabilities[0] : &capabilities[1];
    c->n_has = n % 3;
}

static struct call_spec some_spec(struct random_ops *q)
{
    static const struct tag red = { { "color", 5 }, { "red", 3 } };
    struct call_spec s;
    struct pawl_err err;
    call_spec_init(&s);
    s.id = some_id(q);
    s.type = one_in(q, 6) ? BYTES("u") : BYTES("t");
    s.queue = PICK(q, "q", "r", "q");
    s.method = one_in(q, 12) ? BYTES("other") : BYTES("run");
    /* The content mostly follows from the id, so that most repeated ids are duplicates and some
     * conflict. */
    s.type = s.id.data[1] % 2 ? BYTES("t") : s.type;
    s.key = one_in(q, 20) ? some_key(q) : key_of(s.id);
    if (s.key.data && !one_in(q, 6))
        s.queue = BYTES("q"); /* a run needs calls of one lane */
    if (one_in(q, 10))
        s.input = (struct payload){ PAWL_JSON, BYTES("2") };
    some_options(q, &s);
    some_needs(&s);
    if (s.key.data && one_in(q, 3))
        s.on_dead = PAWL_ON_DEAD_BLOCK;
    if (one_in(q, 4)) {
        s.tags = &red;
        s.n_tags = 1;
    }
    OK(call_spec_settle(&q->a, q->world, &s, &err), &err);
    return s;
}

static struct call_spec *some_specs(struct random_ops *q, size_t n)
{
    struct call_spec *v = arena_zalloc(&q->a, n, sizeof *v);
    TRUE(v != NULL);
    for (size_t i = 0; i < n; i++)
        v[i] = some_spec(q);
    return v;
}

static void ask_accept(struct random_ops *q, struct op *op)
{
    op->kind = OP_ACCEPT;
    op->accept.n = (size_t)(1 + below(q, 6));
    op->accept.v = some_specs(q, op->accept.n);
    op->accept.atomic = one_in(q, 4);
    op->accept.want_result = one_in(q, 2);
}

static struct bytes *names(struct random_ops *q, size_t *n, const char *x, const char *y)
{
    struct bytes *v = arena_zalloc(&q->a, 2, sizeof *v);
    TRUE(v != NULL);
    v[0] = bytes_of(x);
    v[1] = bytes_of(y);
    *n = (size_t)below(q, 3);
    return v;
}

static void ask_claim(struct random_ops *q, struct op *op)
{
    struct claim *c = &op->claim;
    op->kind = OP_CLAIM;
    if (one_in(q, 8)) {
        c->token = q->leases[below(q, RANDOM_TOKENS)].token;
    } else {
        uint64_t x = roll(q);
        memcpy(c->token.b, &x, sizeof x);
    }
    c->token.b[15] = 1;
    some_has(c);
    c->node = PICK(q, "n1", "n2", "n3");
    c->boot = PICK(q, "b1", "b1", "b2");
    if (one_in(q, 3))
        c->worker = PICK(q, "w1", "w2");
    if (one_in(q, 3))
        c->queues = names(q, &c->n_queues, "q", "r");
    if (one_in(q, 3))
        c->types = names(q, &c->n_types, "t", "u");
    c->max = 1 + below(q, RANDOM_ITEMS);
    c->run_max = one_in(q, 4) ? below(q, 2) : 2 + below(q, 4);
    if (one_in(q, 2)) {
        c->max_any = 1 + below(q, 3);
        c->quick = names(q, &c->n_quick, one_in(q, 2) ? "t" : "u", "u");
    }
    c->width = one_in(q, 3) ? 0 : 1 + below(q, 3);
    c->lease_us = one_in(q, 2) ? (1 + below(q, 30)) * SEC_US : 0;
    c->no_retry_alone = one_in(q, 4);
    if (one_in(q, 3))
        c->last = PICK(q, "q", "r");
}

static const struct lease_known *some_lease(struct random_ops *q)
{
    const struct lease_known *l = &q->leases[q->last_lease];
    if (one_in(q, 2))
        return l;
    for (int i = 0; i < 6; i++) { /* prefer one that has calls */
        l = &q->leases[below(q, RANDOM_TOKENS)];
        if (l->n)
            break;
    }
    return l;
}

static void some_state(struct random_ops *q, struct finish_item *f)
{
    f->state_do = one_in(q, 4) ? STATE_DELETE : STATE_SET;
    f->object = (struct payload){ one_in(q, 4) ? PAWL_BYTES : PAWL_JSON,
                                  PICK(q, "1", "{\"n\":2}", "null") };
}

/* A random end for the i-th call of a lease. */
static void some_item(struct random_ops *q, const struct lease_known *l, size_t i,
                      struct finish_item *f)
{
    static const enum ending hows[] = { END_RESULT,  END_RESULT,   END_RESULT, END_ERROR,
                                        END_ERROR,   END_TIMEOUT,  END_REFUSE, END_LATER,
                                        END_RELEASE, END_CANCELLED };
    if (i >= l->n || one_in(q, 20))
        f->id = some_id(q);
    else if (one_in(q, 2))
        f->id = l->ids[i];
    else
        f->seq = l->seqs[i];
    f->how = hows[below(q, (int)COUNT_OF(hows))];
    f->retry_in_us = below(q, 4) * SEC_US - 1;
    if (one_in(q, 2))
        f->result = (struct payload){ PAWL_JSON, PICK(q, "1", "[2]", "null") };
    if (one_in(q, 2))
        f->error = PICK(q, "boom", "b\xc3\xa4ng", "");
    if (one_in(q, 3))
        f->started_us = OWN_WORLD_BEGIN + below(q, 100);
    if (one_in(q, 3)) {
        f->n_send = (size_t)(1 + below(q, 3));
        f->send = some_specs(q, f->n_send);
    }
    if (i < l->n && (l->keyed[i] ? one_in(q, 2) : one_in(q, 100)))
        some_state(q, f);
}

static void ask_finish(struct random_ops *q, struct op *op)
{
    const struct lease_known *l = some_lease(q);
    op->kind = OP_FINISH;
    op->finish.token = l->token;
    op->finish.token.b[15] = 1;
    op->finish.n = (size_t)(1 + below(q, 3));
    op->finish.v = arena_zalloc(&q->a, op->finish.n, sizeof *op->finish.v);
    TRUE(op->finish.v != NULL);
    /* Mostly in the order of the claim: a run must be finished in order. */
    size_t first = one_in(q, 2) || !l->n ? 0 : (size_t)below(q, (int)l->n);
    bool in_order = !one_in(q, 5);
    for (size_t i = 0; i < op->finish.n; i++) {
        size_t at = in_order ? first + i : l->n ? (size_t)below(q, (int)l->n) : 0;
        if (in_order && at >= l->n && i > 0)
            op->finish.n = i;
        else
            some_item(q, l, at, &op->finish.v[i]);
    }
}

static void ask_key(struct random_ops *q, struct op *op)
{
    if (one_in(q, 2)) {
        op->kind = OP_UNBLOCK;
        op->unblock.key = some_key(q);
        op->unblock.retry = one_in(q, 2);
        return;
    }
    struct object_op *o = &op->object;
    op->kind = OP_OBJECT;
    o->type = PICK(q, "t", "t", "u");
    o->key = some_key(q);
    o->how = one_in(q, 3) ? STATE_SET : STATE_DELETE;
    o->state = (struct payload){ PAWL_JSON, PICK(q, "3", "[]") };
    o->if_version = one_in(q, 2) ? 0 : q->version + one_in(q, 4);
    o->cancel = one_in(q, 3);
}

static void ask_extend(struct random_ops *q, struct op *op)
{
    op->kind = OP_EXTEND;
    op->extend.token = some_lease(q)->token;
    op->extend.lease_us = (1 + below(q, 30)) * SEC_US;
}

static void ask_by_id(struct random_ops *q, struct op *op)
{
    static const enum op_kind kinds[] = { OP_CANCEL, OP_RETRY, OP_RETRY, OP_MOVE };
    op->kind = kinds[below(q, 4)];
    op->by_id.id = some_id(q);
    op->by_id.priority = one_in(q, 2) ? below(q, 5) - 2 : PAWL_SAME;
    if (one_in(q, 2))
        op->by_id.run_at_us = OWN_WORLD_BEGIN + below(q, 200) * SEC_US;
    if (one_in(q, 3))
        op->by_id.queue = PICK(q, "q", "r", "s");
}

static void ask_node(struct random_ops *q, struct op *op)
{
    static const enum op_kind kinds[] = { OP_JOIN, OP_BEAT, OP_BEAT, OP_LEAVE, OP_BURY, OP_DRAIN };
    op->kind = kinds[below(q, 6)];
    op->node.node = PICK(q, "n1", "n2", "n3");
    op->node.boot = PICK(q, "b1", "b1", "b2");
    op->node.host = BYTES("h");
    op->node.version = BYTES("v");
    op->node.slots = below(q, 9);
    op->node.busy = below(q, 9);
    op->node.beats = below(q, 2);
    op->node.fail_lost = one_in(q, 6);
    op->node.address = PICK(q, "127.0.0.1:1", "unix:x");
    op->node.roles = BYTES("gateway\nworker");
    op->node.has = op->node.slots % 2 ? BYTES("big\ngpu") : BYTES_NONE;
    op->node.state = one_in(q, 2) ? NODE_ACTIVE : NODE_DRAINING;
    op->node.drain = one_in(q, 2);
    op->node.connections = below(q, 3);
    op->node.memory = below(q, 3);
}

static void ask_lead(struct random_ops *q, struct op *op)
{
    op->kind = OP_LEAD;
    op->lead.role = PICK(q, "maintenance", "scheduler");
    op->lead.node = PICK(q, "n1", "n2", "n3");
    op->lead.boot = PICK(q, "b1", "b1", "b2");
    op->lead.lease_us = (1 + below(q, 20)) * SEC_US;
    op->lead.resign = one_in(q, 4);
}

static void ask_rest(struct random_ops *q, struct op *op)
{
    int which = below(q, 4);
    if (which == 0) {
        op->kind = OP_PAUSE;
        op->pause.queue = PICK(q, "q", "r", "z");
        op->pause.paused = one_in(q, 3);
    } else if (which < 3) {
        op->kind = OP_SWEEP;
        op->sweep.max = 1 + below(q, 5);
        op->sweep.fail_lost = one_in(q, 8);
    } else {
        op->kind = OP_GC;
        op->gc.max = 1 + below(q, 4);
    }
}

/* Operations that an operator requests. */
static void ask_operator(struct random_ops *q, struct op *op)
{
    int64_t edge_us = world_now(q->world) - below(q, 40) * SEC_US;
    if (one_in(q, 2)) {
        op->kind = OP_REQUEUE;
        op->requeue = (struct requeue){ .max = 1 + below(q, 3),
                                        .claimed_before_us = edge_us,
                                        .fail_lost = one_in(q, 8) };
        return;
    }
    op->kind = OP_GC;
    op->gc = (struct gc){ .max = 1 + below(q, 4),
                          .ended_before_us = edge_us,
                          .after_seq = one_in(q, 2) ? 0 : below(q, 20),
                          .archive = one_in(q, 2) };
}

void random_op(struct random_ops *q, struct op *op)
{
    *op = (struct op){ 0 };
    int n = below(q, 100);
    if (n < 27)
        ask_accept(q, op);
    else if (n < 46)
        ask_claim(q, op);
    else if (n < 67)
        ask_finish(q, op);
    else if (n < 69)
        ask_extend(q, op);
    else if (n < 75)
        ask_key(q, op);
    else if (n < 85)
        ask_by_id(q, op);
    else if (n < 91)
        ask_node(q, op);
    else if (n < 93)
        ask_lead(q, op);
    else if (n < 98)
        ask_rest(q, op);
    else
        ask_operator(q, op);
}

/* ---- Learning and reading -------------------------------------------------------------------- */

static void learn_version(struct random_ops *q, const struct op *op)
{
    if (op->kind == OP_OBJECT && op->object.version)
        q->version = op->object.version;
    for (size_t i = 0; op->kind == OP_FINISH && op->status == PAWL_OK && i < op->finish.n; i++)
        if (op->finish.v[i].version)
            q->version = op->finish.v[i].version;
}

void random_learn(struct random_ops *q, const struct op *op)
{
    learn_version(q, op);
    if (op->kind != OP_CLAIM || op->claim.n == 0)
        return;
    q->last_lease = below(q, RANDOM_TOKENS);
    struct lease_known *l = &q->leases[q->last_lease];
    l->token = op->claim.token;
    l->n = op->claim.n;
    for (size_t k = 0; k < l->n; k++) {
        l->ids[k] = arena_copy(&q->a, op->claim.calls[k].spec.id);
        l->seqs[k] = op->claim.calls[k].seq;
        l->keyed[k] = op->claim.calls[k].spec.key.data != NULL;
    }
}

struct query random_query(struct random_ops *q)
{
    struct query f = { .limit = 1 + below(q, 4), .with = WITH_INPUT };
    f.state = one_in(q, 2) ? (enum pawl_state)(1 + below(q, 7)) : 0;
    f.queue = one_in(q, 3) ? PICK(q, "q", "r", "s") : BYTES_NONE;
    f.type = one_in(q, 3) ? PICK(q, "t", "u") : BYTES_NONE;
    f.method = one_in(q, 4) ? PICK(q, "run", "other") : BYTES_NONE;
    f.caller = one_in(q, 4) ? PICK(q, "alice", "bob") : BYTES_NONE;
    f.key = one_in(q, 4) ? some_key(q) : BYTES_NONE;
    f.parent = one_in(q, 6) ? some_id(q) : BYTES_NONE;
    if (one_in(q, 4)) {
        f.tag_name = BYTES("color");
        f.tag_value = PICK(q, "red", "blue");
    }
    f.since_us = one_in(q, 4) ? OWN_WORLD_BEGIN + below(q, 200) * SEC_US : 0;
    f.until_us = one_in(q, 4) ? OWN_WORLD_BEGIN + below(q, 200) * SEC_US : 0;
    return f;
}
