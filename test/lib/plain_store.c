/*
 * plain_store.c - see plain_store.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plain_store.h"

#include "base/limits.h"
#include "check.h"
#include "own_world.h"

#define ANSWER_LEN_MAX (1 << 20)

struct store *plain_open(const char *url, const char *schema)
{
    struct pawl_err err;
    struct store *s = NULL;
    struct store_conf conf = { .url = url, .schema = schema, .retention_us = SEC_US };
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

enum pawl_status plain_needing(struct store *s, const char *id, struct pawl_err *err)
{
    struct arena a;
    struct call_spec spec;
    arena_init(&a, ANSWER_LEN_MAX);
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.type = BYTES("t");
    spec.needs = &BYTES("gpu");
    spec.n_needs = 1;
    OK(call_spec_settle(&a, &world_real, &spec, err), err);
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1, .atomic = true } };
    enum pawl_status st = store_commit(s, &(struct op *){ &op }, 1);
    *err = op.err;
    arena_release(&a);
    return st == PAWL_OK ? op.status : st;
}

void plain_accept(struct store *s, const char *id, struct bytes input)
{
    struct pawl_err err;
    struct arena a;
    struct call_spec spec;
    arena_init(&a, ANSWER_LEN_MAX);
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.type = BYTES("t");
    if (input.data)
        spec.input = (struct payload){ PAWL_BYTES, input };
    OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1 } };
    OK(store_commit(s, &(struct op *){ &op }, 1), &op.err);
    OK(op.accept.out[0].status, NULL);
    arena_release(&a);
}

static struct call_spec spec_of(struct arena *a, const char *id, bool needs)
{
    struct pawl_err err;
    struct call_spec spec;
    call_spec_init(&spec);
    spec.id = bytes_of(id);
    spec.type = BYTES("t");
    spec.needs = &BYTES("gpu");
    spec.n_needs = needs;
    OK(call_spec_settle(a, &world_real, &spec, &err), &err);
    return spec;
}

static void commit(struct store *s, struct op *op)
{
    OK(store_commit(s, &(struct op *){ op }, 1), &op->err);
}

void plain_refuses_needs(struct store *s)
{
    struct pawl_err err = { 0 };
    struct arena a;
    arena_init(&a, ANSWER_LEN_MAX);
    EQ_STATUS(plain_needing(s, "refused", &err), PAWL_STATE, NULL);
    EQ_STR(err.text,
           "field \"needs\": every node must run this version first: run pawl migrate finish");
    struct call_spec batch[] = { spec_of(&a, "sends", false), spec_of(&a, "refused", true) };
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = batch, .n = 2 } };
    commit(s, &op);
    OK(op.accept.out[0].status, NULL);
    EQ_STATUS(op.accept.out[1].status, PAWL_STATE, NULL);

    struct token token = token_make(&world_real);
    op = (struct op){ .kind = OP_CLAIM,
                      .a = &a,
                      .claim = { .token = token,
                                 .node = BYTES("n"),
                                 .boot = BYTES("b"),
                                 .max = 10,
                                 .lease_us = 30 * SEC_US } };
    commit(s, &op);
    GT_INT((int64_t)op.claim.n, 0);
    struct finish_item item = {
        .id = BYTES("sends"), .how = END_RESULT, .send = &batch[1], .n_send = 1
    };
    op =
        (struct op){ .kind = OP_FINISH, .a = &a, .finish = { .token = token, .v = &item, .n = 1 } };
    commit(s, &op);
    EQ_INT(item.state, PAWL_PENDING);
    static const char says[] = "outgoing call \"refused\": its needs wait for pawl migrate finish";
    EQ_BYTES(item.error_out.data, item.error_out.len, says, sizeof says - 1);
    arena_release(&a);
}

static bool listed(struct store *s, struct arena *a, const char *queue)
{
    struct queue_rows rows;
    struct pawl_err err;
    bool found = false;
    OK(store_queues(s, a, &rows, &err), &err);
    for (size_t i = 0; i < rows.n; i++)
        found = found || bytes_eq(rows.v[i].queue, bytes_of(queue));
    return found;
}

bool plain_lane_stays(const char *url, const char *queue)
{
    struct own_world w;
    struct arena a;
    struct store *s = NULL;
    struct pawl_err err;
    own_world_init(&w, 1);
    arena_init(&a, 64 << 20);
    OK(store_open(&(struct store_conf){ .url = url, .world = &w.world }, &s, &err), &err);
    struct call_spec v[] = { spec_of(&a, queue, false), spec_of(&a, "last", false) };
    v[0].queue = bytes_of(queue);
    v[1].queue = BYTES("last"); /* the lane with the highest number stays in any case */
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = v, .n = 2 } };
    commit(s, &op);
    op = (struct op){ .kind = OP_CANCEL, .a = &a, .by_id.id = bytes_of(queue) };
    commit(s, &op);
    for (int i = 0; i < 96; i++) {
        own_world_advance(&w, 900 * SEC_US);
        op = (struct op){ .kind = OP_GC, .a = &a, .gc.max = GC_STEP_MAX };
        commit(s, &op);
    }
    bool stays = listed(s, &a, queue);
    store_close(s);
    arena_release(&a);
    return stays;
}

void plain_has(struct store *s, const char *id, struct bytes input)
{
    struct pawl_err err;
    struct arena a;
    struct bytes ids[] = { bytes_of(id) };
    struct get g = { .ids = ids, .n = 1, .with = WITH_INPUT };
    arena_init(&a, ANSWER_LEN_MAX);
    OK(store_get(s, &a, &g, &err), &err);
    OK(g.found[0], NULL);
    struct bytes found = g.out[0].spec.input.bytes;
    EQ_BYTES(found.data, found.len, input.data, input.len);
    arena_release(&a);
}

struct schema plain_schema(struct store *s)
{
    struct schema schema;
    struct pawl_err err;
    OK(store_schema(s, &schema, &err), &err);
    return schema;
}
