/*
 * plain_store.c - see plain_store.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plain_store.h"
#include "check.h"

#define ANSWER_LEN_MAX (1 << 20)

struct store *plain_open(const char *url, const char *schema)
{
    struct pawl_err err;
    struct store *s = NULL;
    struct store_conf conf = { .url = url, .schema = schema, .retention_us = SEC_US };
    OK(store_open(&conf, &s, &err), &err);
    return s;
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
