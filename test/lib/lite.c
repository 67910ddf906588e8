/*
 * lite.c - see lite.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lite.h"

void lite_fixture_open(struct lite_fixture *r, const char *url, const struct world *world)
{
    struct store_conf conf = {
        .url = url, .world = world, .retention_us = 100 * SEC_US, .remember_us = 1000 * SEC_US
    };
    *r = (struct lite_fixture){ 0 };
    arena_init(&r->a, (size_t)1 << 30);
    OK(store_open(&conf, &r->s, &r->err), &r->err);
    OK(store_migrate(r->s, true, &r->err), &r->err);
}

void lite_fixture_close(struct lite_fixture *r)
{
    store_end(&r->s);
    arena_release(&r->a);
}

struct lite *lite_of_fixture(const struct lite_fixture *r)
{
    return lite_of(r->s);
}

enum pawl_status lite_one(struct lite_fixture *r, struct op *op)
{
    enum pawl_status st;
    int64_t until_us = world_mono(&world_real) + 30 * SEC_US * check_scale();
    op->a = &r->a;
    do /* On a slow machine, or with many writers, the lock may not come in time: BUSY is retried.
        */
        st = store_commit(r->s, &op, 1);
    while (st == PAWL_BUSY && world_mono(&world_real) < until_us);
    OK(st, &op->err);
    return op->status;
}

void lite_accept_n(struct lite_fixture *r, const char *type, int n, size_t len, int64_t delay_us)
{
    char *input = arena_zalloc(&r->a, 1, len + 1);
    struct call_spec *v = arena_zalloc(&r->a, (size_t)n, sizeof *v);
    TRUE(v != NULL && input != NULL);
    for (int i = 0; i < n; i++) {
        call_spec_init(&v[i]);
        v[i].id = bytes_of(arena_printf(&r->a, "i%d", r->ids++));
        v[i].type = bytes_of(type);
        v[i].delay_us = delay_us;
        v[i].input = (struct payload){ PAWL_BYTES, { input, len } };
        OK(call_spec_settle(&r->a, &world_real, &v[i], &r->err), &r->err);
    }
    for (int at = 0; at < n; at += BATCH_MAX) {
        struct op op = { .kind = OP_ACCEPT,
                         .accept = { .v = v + at, .n = (size_t)MIN(n - at, BATCH_MAX) } };
        OK(lite_one(r, &op), &op.err);
    }
}

struct op lite_claim_of(struct lite_fixture *r, const char *type, int max, unsigned char token)
{
    struct bytes *types = arena_zalloc(&r->a, 1, sizeof *types);
    TRUE(types != NULL);
    *types = bytes_of(type);
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = { { token, 1 } },
                                .node = BYTES("n1"),
                                .boot = BYTES("b1"),
                                .types = types,
                                .n_types = type ? 1 : 0,
                                .max = max } };
    OK(lite_one(r, &op), &op.err);
    return op;
}

enum pawl_status lite_finish_seq(struct lite_fixture *r, struct token token, int64_t seq)
{
    struct finish_item item = { .seq = seq, .how = END_RESULT };
    struct op op = { .kind = OP_FINISH, .finish = { .token = token, .v = &item, .n = 1 } };
    return lite_one(r, &op);
}

int64_t lite_ask(const struct lite_fixture *r, const char *sql)
{
    sqlite3_stmt *q = NULL;
    EQ_INT(sqlite3_prepare_v2(lite_of_fixture(r)->db, sql, -1, &q, NULL), SQLITE_OK);
    EQ_INT(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}
