/*
 * engine_store.c - the engine as a side of engine.h: operations through store.h.
 *
 * Calls are settled before anything is measured, because a store takes them settled. Leases live as
 * long as their node sends heartbeats, like those of a process's own workers.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"
#include "bench/engine.h"
#include "feature/all.h"
#include "store/store.h"

/* Memory for the answers of one commit, and for the calls of one round. */
#define ANSWER_LEN_MAX ((size_t)64 << 20)
#define SPECS_LEN_MAX ((size_t)1 << 30)

static const struct bytes node = { "bench", 5 };

struct conn {
    struct store *s;
    struct arena specs_in, answer;
    struct call_spec *specs; /* in the arena specs_in */
    struct bytes boot;
    struct op ops[BENCH_BATCH];
    struct op *v[BENCH_BATCH];
    struct token token; /* the calls of the lease */
    struct finish_item items[BENCH_BATCH];
    size_t n_items;
};

/* ---- Commits --------------------------------------------------------------------------------- */

static enum pawl_status commit(struct conn *c, size_t n, struct pawl_err *err)
{
    enum pawl_status st = store_commit(c->s, c->v, n);
    for (size_t i = 0; i < n; i++)
        if (c->ops[i].status != PAWL_OK) {
            *err = c->ops[i].err;
            return c->ops[i].status;
        }
    return st == PAWL_OK ? PAWL_OK : err_set(err, st, "a commit had no answer");
}

static void op_make(struct conn *c, size_t i, enum op_kind kind)
{
    c->ops[i] = (struct op){ .kind = kind, .a = &c->answer };
    c->v[i] = &c->ops[i];
}

static enum pawl_status accepted(const struct op *op, struct pawl_err *err)
{
    for (size_t i = 0; i < op->accept.n; i++)
        if (op->accept.out[i].status != PAWL_OK || op->accept.out[i].duplicate)
            return err_set(err, PAWL_BROKEN, "a fresh call was not accepted as one");
    return PAWL_OK;
}

static enum pawl_status accept_batch(void *conn, size_t at, size_t n, struct pawl_err *err)
{
    struct conn *c = conn;
    arena_reset(&c->answer);
    op_make(c, 0, OP_ACCEPT);
    c->ops[0].accept = (struct accept){ .v = c->specs + at, .n = n };
    enum pawl_status st = commit(c, 1, err);
    return st == PAWL_OK ? accepted(&c->ops[0], err) : st;
}

static enum pawl_status accept_singles(void *conn, size_t at, size_t n, struct pawl_err *err)
{
    struct conn *c = conn;
    arena_reset(&c->answer);
    for (size_t i = 0; i < n; i++) {
        op_make(c, i, OP_ACCEPT);
        c->ops[i].accept = (struct accept){ .v = c->specs + at + i, .n = 1 };
    }
    enum pawl_status st = commit(c, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = accepted(&c->ops[i], err);
    return st;
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void claim_make(struct conn *c, size_t i, size_t max)
{
    op_make(c, i, OP_CLAIM);
    c->ops[i].claim = (struct claim){ .token = token_make(&world_real),
                                      .node = node,
                                      .boot = c->boot,
                                      .max = (int)max,
                                      .run_max = 64 };
}

/* Prepare the next finish from the calls that a claim brought. */
static void claimed(struct conn *c, const struct claim *q, size_t *out_n)
{
    c->token = q->token;
    c->n_items = *out_n = q->n;
    for (size_t i = 0; i < q->n; i++)
        c->items[i] =
            (struct finish_item){ .seq = q->calls[i].seq,
                                  .how = END_RESULT,
                                  .result = { .form = PAWL_JSON,
                                              .bytes = { bench_result, bench_result_len } } };
}

static void finish_make(struct conn *c, size_t i)
{
    op_make(c, i, OP_FINISH);
    c->ops[i].finish = (struct finish){ .token = c->token, .v = c->items, .n = c->n_items };
}

static enum pawl_status claim(void *conn, size_t max, size_t *out_n, struct pawl_err *err)
{
    struct conn *c = conn;
    arena_reset(&c->answer);
    claim_make(c, 0, max);
    enum pawl_status st = commit(c, 1, err);
    if (st == PAWL_OK)
        claimed(c, &c->ops[0].claim, out_n);
    return st;
}

static enum pawl_status finish(void *conn, struct pawl_err *err)
{
    struct conn *c = conn;
    arena_reset(&c->answer);
    finish_make(c, 0);
    return commit(c, 1, err);
}

static enum pawl_status finish_claim(void *conn, size_t max, size_t *out_n, struct pawl_err *err)
{
    struct conn *c = conn;
    arena_reset(&c->answer);
    finish_make(c, 0);
    claim_make(c, 1, max);
    enum pawl_status st = commit(c, 2, err);
    if (st == PAWL_OK)
        claimed(c, &c->ops[1].claim, out_n);
    return st;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static enum pawl_status load(void *conn, const struct bench_id *ids, size_t n, struct pawl_err *err)
{
    struct conn *c = conn;
    enum pawl_status st = PAWL_OK;
    arena_reset(&c->specs_in);
    c->specs = arena_zalloc(&c->specs_in, n, sizeof *c->specs);
    if (!c->specs)
        return err_no_memory(err, "calls");
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct call_spec *s = &c->specs[i];
        call_spec_init(s);
        s->id = bytes_of(ids[i].text);
        s->type = BYTES("noop");
        s->input = (struct payload){ .form = PAWL_JSON, .bytes = { bench_input, bench_input_len } };
        st = call_spec_settle(&c->specs_in, &world_real, s, err);
    }
    return st;
}

static void conn_close(void *conn)
{
    struct conn *c = conn;
    if (!c)
        return;
    store_close(c->s);
    arena_release(&c->specs_in);
    arena_release(&c->answer);
    free(c);
}

/* With every feature, as the handles of a program have them: unused ones must cost nothing. */
static enum pawl_status handle_open(const struct bench_place *place, struct store **out,
                                    struct pawl_err *err)
{
    size_t n = 0;
    const struct feature *const *features = features_all(&n);
    return store_open(&(struct store_conf){ .url = place->url,
                                            .schema = place->schema,
                                            .role = STORE_WRITER,
                                            .retention_us = 7 * 86400 * SEC_US,
                                            .remember_us = 30 * 86400 * SEC_US,
                                            .key_pending_max = 100000,
                                            .features = features,
                                            .n_features = n },
                      out, err);
}

static enum pawl_status conn_open(const struct bench_place *place, void **out, struct pawl_err *err)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        return err_no_memory(err, "a connection");
    arena_init(&c->specs_in, SPECS_LEN_MAX);
    arena_init(&c->answer, ANSWER_LEN_MAX);
    enum pawl_status st = handle_open(place, &c->s, err);
    /* All connections belong to one process: the first that joined is the node. */
    static char boot[UUID_TEXT_LEN + 1];
    if (!*boot)
        uuid7_make(&world_real, boot);
    c->boot = bytes_of(boot);
    op_make(c, 0, OP_JOIN);
    c->ops[0].node = (struct node_op){ .node = node, .boot = c->boot, .slots = 1 };
    if (st == PAWL_OK)
        st = commit(c, 1, err);
    if (st == PAWL_OK)
        *out = c;
    else
        conn_close(c);
    return st;
}

enum pawl_status bench_engine_schema(const struct bench_place *place, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    enum pawl_status st = handle_open(place, &s, err);
    return st == PAWL_OK ? store_migrate(s, true, err) : st;
}

const struct bench_side bench_side_batch = {
    .open = conn_open,
    .close = conn_close,
    .load = load,
    .accept = accept_batch,
    .claim = claim,
    .finish = finish,
    .finish_claim = finish_claim,
};
const struct bench_side bench_side_singles = {
    .open = conn_open,
    .close = conn_close,
    .load = load,
    .accept = accept_singles,
    .claim = claim,
    .finish = finish,
    .finish_claim = finish_claim,
};
