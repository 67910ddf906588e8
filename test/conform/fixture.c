/*
 * fixture.c - the conformance suite's helpers: a database, a clock, and short names for operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "conform.h"

#define FIXTURE_ARENA_MAX (1u << 30)

/* ---- The fixture
 * ----------------------------------------------------------------------------------
 */

struct store *conform_fixture_handle(struct conform_fixture *b)
{
    struct store *s = NULL;
    struct store_conf conf = { .url = b->url,
                               .world = &b->world.world,
                               .retention_us = RETENTION_US,
                               .remember_us = REMEMBER_US,
                               .key_pending_max = b->key_pending_max,
                               .features = b->features,
                               .n_features = b->n_features };
    OK(store_open(&conf, &s, &b->err), &b->err);
    return s;
}

struct conform_fixture *conform_fixture_open(const char *url)
{
    struct conform_fixture *b = calloc(1, sizeof *b);
    TRUE(b != NULL);
    b->engine = engine_of(url);
    own_world_init(&b->world, 1);
    arena_init(&b->a, FIXTURE_ARENA_MAX);
    engine_another();
    b->url = arena_text(&b->a, bytes_of(engine_url(url)));
    TRUE(b->url != NULL);
    b->s = conform_fixture_handle(b);
    OK(store_migrate(b->s, true, &b->err), &b->err);
    return b;
}

void conform_fixture_end(struct conform_fixture **at)
{
    struct conform_fixture *b = *at;
    store_close(b->s);
    arena_release(&b->a);
    free(b);
    *at = NULL;
}

void advance(struct conform_fixture *b, int64_t us)
{
    own_world_advance(&b->world, us);
}

int64_t now(struct conform_fixture *b)
{
    return atomic_load(&b->world.now_us);
}

struct token fresh_token(struct conform_fixture *b)
{
    struct token t = { { 1 } };
    unsigned n = ++b->tokens;
    memcpy(t.b + 8, &n, sizeof n);
    return t;
}

/* ---- Operations ------------------------------------------------------------------------------ */

void commit(struct conform_fixture *b, struct op *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i]->a = &b->a;
    enum pawl_status st = store_commit(b->s, v, n);
    for (size_t i = 0; st != PAWL_OK && i < n; i++)
        if (v[i]->status != PAWL_OK)
            OK(st, &v[i]->err);
}

enum pawl_status one(struct conform_fixture *b, struct op *op)
{
    commit(b, &op, 1);
    b->op = *op;
    return op->status;
}

struct call_spec plan(const char *id)
{
    struct call_spec s;
    call_spec_init(&s);
    s.id = bytes_of(id);
    s.type = BYTES("t");
    s.input = (struct payload){ PAWL_JSON, BYTES("1") };
    s.backoff.jitter = 0;
    return s;
}

struct call_spec settled(struct conform_fixture *b, struct call_spec s)
{
    OK(call_spec_settle(&b->a, &b->world.world, &s, &b->err), &b->err);
    return s;
}

struct op accept_op(struct conform_fixture *b, struct call_spec s)
{
    struct call_spec *v = arena_zalloc(&b->a, 1, sizeof *v);
    TRUE(v != NULL);
    *v = settled(b, s);
    return (struct op){ .kind = OP_ACCEPT, .accept = { .v = v, .n = 1, .want_result = true } };
}

struct accepted accept_spec(struct conform_fixture *b, struct call_spec s)
{
    struct op op = accept_op(b, s);
    OK(one(b, &op), &op.err);
    return op.accept.out[0];
}

int64_t accept_one(struct conform_fixture *b, const char *id)
{
    struct accepted r = accept_spec(b, plan(id));
    OK(r.status, NULL);
    FALSE(r.duplicate);
    return r.call.seq;
}

void accept_n(struct conform_fixture *b, const char *prefix, int n)
{
    struct call_spec *v = arena_zalloc(&b->a, (size_t)n, sizeof *v);
    TRUE(v != NULL);
    for (int i = 0; i < n; i++)
        v[i] = settled(b, plan(arena_printf(&b->a, "%s%d", prefix, i)));
    struct op op = { .kind = OP_ACCEPT, .accept = { .v = v, .n = (size_t)n } };
    OK(one(b, &op), &op.err);
    for (int i = 0; i < n; i++)
        OK(op.accept.out[i].status, NULL);
}

struct claim want(struct conform_fixture *b, int max)
{
    return (struct claim){
        .token = fresh_token(b), .node = BYTES("n1"), .boot = BYTES("b1"), .max = max
    };
}

struct op claim_op(struct claim q)
{
    return (struct op){ .kind = OP_CLAIM, .claim = q };
}

struct claim claim_as(struct conform_fixture *b, struct claim q)
{
    struct op op = claim_op(q);
    OK(one(b, &op), &op.err);
    return op.claim;
}

struct token claim_for(struct conform_fixture *b, int n, int64_t lease_us)
{
    struct claim q = want(b, n);
    q.lease_us = lease_us;
    q = claim_as(b, q);
    EQ_INT(q.n, n);
    return q.token;
}

struct token claim_n(struct conform_fixture *b, int n)
{
    return claim_for(b, n, 0);
}

const char *claimable(struct conform_fixture *b, struct claim q)
{
    q = claim_as(b, q);
    const char *out = ids_of(b, &q);
    struct finish_item *v = arena_zalloc(&b->a, q.n + 1, sizeof *v);
    TRUE(v != NULL);
    for (size_t i = 0; i < q.n; i++)
        v[i] = (struct finish_item){ .seq = q.calls[i].seq, .how = END_RELEASE };
    struct op op = finish_op(q.token, v, q.n);
    if (q.n)
        OK(one(b, &op), &op.err);
    return out;
}

struct finish_item item(const char *id, enum ending how)
{
    return (struct finish_item){ .id = bytes_of(id), .how = how, .retry_in_us = -1 };
}

struct op finish_op(struct token token, struct finish_item *v, size_t n)
{
    return (struct op){ .kind = OP_FINISH, .finish = { .token = token, .v = v, .n = n } };
}

enum pawl_status finish_item(struct conform_fixture *b, struct token token, struct finish_item f)
{
    b->item = f;
    struct op op = finish_op(token, &b->item, 1);
    enum pawl_status st = one(b, &op);
    b->err = op.err;
    return st;
}

enum pawl_status finish(struct conform_fixture *b, struct token token, const char *id,
                        enum ending how)
{
    return finish_item(b, token, item(id, how));
}

void finish_ok(struct conform_fixture *b, struct token token, const char *id, const char *result)
{
    struct finish_item f = item(id, END_RESULT);
    f.result = (struct payload){ PAWL_JSON, bytes_of(result) };
    OK(finish_item(b, token, f), &b->err);
    EQ_INT(b->item.state, PAWL_COMPLETED);
}

void finish_error(struct conform_fixture *b, struct token token, const char *id, const char *error)
{
    struct finish_item f = item(id, END_ERROR);
    f.error = bytes_of(error);
    OK(finish_item(b, token, f), &b->err);
}

void ended_call(struct conform_fixture *b, const char *id, enum pawl_state state)
{
    struct call_spec s = plan(id);
    s.priority = PRIORITY_MAX;
    s.max_attempts = state == PAWL_DEAD_LETTER ? 2 : 3;
    s.expires_in_us = state == PAWL_EXPIRED ? 1 : 0;
    accept_spec(b, s);
    if (state == PAWL_CANCELLED) {
        OK(by_id(b, OP_CANCEL, id), NULL);
    } else if (state == PAWL_EXPIRED) {
        advance(b, 1);
        sweep(b);
    } else if (state == PAWL_COMPLETED) {
        finish_ok(b, claim_n(b, 1), id, "1");
    } else if (state == PAWL_FAILED) {
        OK(finish(b, claim_n(b, 1), id, END_REFUSE), NULL);
    } else {
        finish_error(b, claim_n(b, 1), id, "first");
        advance(b, 1 * SEC_US);
        finish_error(b, claim_n(b, 1), id, "second");
    }
    EQ_INT(state_of(b, id), state);
}

struct op by_id_op(enum op_kind kind, const char *id)
{
    return (struct op){ .kind = kind, .by_id = { .id = bytes_of(id), .priority = PAWL_SAME } };
}

enum pawl_status by_id(struct conform_fixture *b, enum op_kind kind, const char *id)
{
    struct op op = by_id_op(kind, id);
    return one(b, &op);
}

void pause_queue(struct conform_fixture *b, const char *queue, bool paused)
{
    struct op op = { .kind = OP_PAUSE, .pause = { .queue = bytes_of(queue), .paused = paused } };
    OK(one(b, &op), &op.err);
}

struct sweep sweep_max(struct conform_fixture *b, int max)
{
    struct op op = { .kind = OP_SWEEP, .sweep = { .max = max } };
    OK(one(b, &op), &op.err);
    return op.sweep;
}

struct sweep sweep(struct conform_fixture *b)
{
    return sweep_max(b, SWEEP_STEP_MAX);
}

struct gc gc_max(struct conform_fixture *b, int max)
{
    struct op op = { .kind = OP_GC, .gc = { .max = max } };
    OK(one(b, &op), &op.err);
    return op.gc;
}

struct gc gc(struct conform_fixture *b)
{
    return gc_max(b, GC_STEP_MAX);
}

struct op node_op(enum op_kind kind, const char *name, const char *boot)
{
    return (struct op){ .kind = kind,
                        .node = { .node = bytes_of(name),
                                  .boot = bytes_of(boot),
                                  .host = BYTES("host"),
                                  .version = BYTES("1.2.3"),
                                  .slots = 4 } };
}

enum pawl_status node(struct conform_fixture *b, enum op_kind kind, const char *name,
                      const char *boot)
{
    struct op op = node_op(kind, name, boot);
    return one(b, &op);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

struct call_spec keyed(const char *id, const char *key)
{
    struct call_spec s = plan(id);
    s.key = bytes_of(key);
    return s;
}

void line_up(struct conform_fixture *b, const char *key, const char *letters)
{
    for (; *letters; letters++) {
        struct accepted r = accept_spec(b, keyed(arena_printf(&b->a, "%c", *letters), key));
        OK(r.status, NULL);
        FALSE(r.duplicate);
    }
}

struct claim claim_run_for(struct conform_fixture *b, int max, int run_max, int64_t lease_us)
{
    struct claim q = want(b, max);
    q.run_max = run_max;
    q.lease_us = lease_us;
    return claim_as(b, q);
}

struct claim claim_run(struct conform_fixture *b, int max, int run_max)
{
    return claim_run_for(b, max, run_max, 0);
}

const char *ids_of(struct conform_fixture *b, const struct claim *q)
{
    char *out = arena_printf(&b->a, "%s", "");
    for (size_t i = 0; i < q->n; i++)
        out = arena_printf(&b->a, "%s%s%s", out, i ? " " : "",
                           arena_text(&b->a, q->calls[i].spec.id));
    return out;
}

enum pawl_status finish_run(struct conform_fixture *b, struct token token, const char *letters,
                            const char *how)
{
    static const char words[] = "reflbc";
    static const enum ending hows[] = { END_RESULT, END_ERROR,   END_REFUSE,
                                        END_LATER,  END_RELEASE, END_CANCELLED };
    size_t n = strlen(letters);
    struct finish_item *v = arena_zalloc(&b->a, n, sizeof *v);
    TRUE(v != NULL && strlen(how) == n);
    for (size_t i = 0; i < n; i++) {
        const char *word = strchr(words, how[i]);
        TRUE(word != NULL);
        v[i] = item(arena_printf(&b->a, "%c", letters[i]), hows[word - words]);
        if (how[i] == 'l')
            v[i].retry_in_us = SEC_US;
        if (how[i] == 'e' || how[i] == 'f')
            v[i].error = BYTES("boom");
    }
    struct op op = finish_op(token, v, n);
    return one(b, &op);
}

enum pawl_status object(struct conform_fixture *b, struct object_op q)
{
    struct op op = { .kind = OP_OBJECT, .object = q };
    return one(b, &op);
}

int64_t object_put(struct conform_fixture *b, const char *type, const char *key, const char *json)
{
    struct object_op q = { .type = bytes_of(type),
                           .key = bytes_of(key),
                           .how = STATE_SET,
                           .state = { PAWL_JSON, bytes_of(json) } };
    OK(object(b, q), &b->op.err);
    return b->op.object.version;
}

enum pawl_status object_found(struct conform_fixture *b, const char *type, const char *key)
{
    struct object o;
    return store_object(b->s, &b->a, bytes_of(type), bytes_of(key), &o, &b->err);
}

struct object object_of(struct conform_fixture *b, const char *type, const char *key)
{
    struct object o;
    OK(store_object(b->s, &b->a, bytes_of(type), bytes_of(key), &o, &b->err), &b->err);
    return o;
}

enum pawl_status unblock(struct conform_fixture *b, const char *key, bool retry)
{
    struct op op = { .kind = OP_UNBLOCK, .unblock = { .key = bytes_of(key), .retry = retry } };
    return one(b, &op);
}

const char *keys_shown(struct conform_fixture *b, bool blocked)
{
    struct key_query q = { .limit = 1, .blocked = blocked };
    char *out = arena_printf(&b->a, "%s", "");
    do {
        struct key_rows rows;
        OK(store_keys(b->s, &b->a, &q, &rows, &b->err), &b->err);
        for (size_t i = 0; i < rows.n; i++)
            out = arena_printf(&b->a, "%s%s%s", out, *out ? " " : "",
                               arena_text(&b->a, rows.v[i].key));
        q.after = rows.next;
    } while (q.after.data);
    return out;
}

struct key_row key_of(struct conform_fixture *b, const char *key)
{
    struct key_query q = { .limit = LIST_MAX };
    struct key_rows rows;
    OK(store_keys(b->s, &b->a, &q, &rows, &b->err), &b->err);
    for (size_t i = 0; i < rows.n; i++)
        if (bytes_eq(rows.v[i].key, bytes_of(key)))
            return rows.v[i];
    FAIL("key %s is not shown", key);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

static struct get get_one(struct conform_fixture *b, const char *id)
{
    struct bytes *ids = arena_zalloc(&b->a, 1, sizeof *ids);
    TRUE(ids != NULL);
    ids[0] = bytes_of(id);
    struct get g = { .ids = ids, .n = 1, .with = WITH_INPUT | WITH_RESULT };
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    return g;
}

enum pawl_status found(struct conform_fixture *b, const char *id)
{
    return get_one(b, id).found[0];
}

struct call get(struct conform_fixture *b, const char *id)
{
    struct get g = get_one(b, id);
    if (g.found[0] != PAWL_OK)
        FAIL("get \"%s\": %s", id, pawl_status_name(g.found[0]));
    return g.out[0];
}

enum pawl_state state_of(struct conform_fixture *b, const char *id)
{
    return get(b, id).state;
}

struct attempts attempts_of(struct conform_fixture *b, const char *id)
{
    struct attempts t;
    OK(store_attempts(b->s, &b->a, bytes_of(id), &t, &b->err), &b->err);
    return t;
}

struct queue_row queue_of(struct conform_fixture *b, const char *queue)
{
    struct queue_rows rows;
    OK(store_queues(b->s, &b->a, &rows, &b->err), &b->err);
    for (size_t i = 0; i < rows.n; i++)
        if (bytes_eq(rows.v[i].queue, bytes_of(queue)))
            return rows.v[i];
    FAIL("no queue \"%s\"", queue);
}

const char *snapshot(struct conform_fixture *b)
{
    struct buf text;
    buf_init(&text, 64 << 20);
    dump_store(&text, b->s, LIST_MAX);
    TRUE(buf_ok(&text));
    char *out = arena_text(&b->a, buf_bytes(&text));
    buf_release(&text);
    return out;
}

bool holds(const struct bytes *v, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], bytes_of(id)))
            return true;
    return false;
}
