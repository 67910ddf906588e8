/*
 * cron_fixture.c - see cron_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cron_fixture.h"

#include "base/json.h"
#include "feature/all.h"
#include "model/schedule.h"

struct store *cron_fixture_open(const char *url, const struct own_world *w)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct store_conf conf = { .url = url, .world = &w->world, .retention_us = 3600 * SEC_US };
    conf.features = features_all(&conf.n_features);
    OK(store_open(&conf, &s, &err), &err);
    return s;
}

enum pawl_status cron_fixture_commit(struct store *s, struct op *op)
{
    do
        (void)store_commit(s, &op, 1);
    while (op->status == PAWL_BUSY);
    return op->status;
}

struct op cron_fixture_op(struct arena *a, struct cron_op *q)
{
    return (struct op){ .kind = OP_FEATURE, .a = a, .feature = { .of = &feature_cron, .ctx = q } };
}

struct cron_op cron_fixture_put_op(struct arena *a, const char *name, const char *json)
{
    struct schedule *s = arena_zalloc(a, 1, sizeof *s);
    struct pawl_err err;
    struct json *v;
    TRUE(s != NULL);
    OK(json_parse(a, bytes_of(json), &v, &err), &err);
    OK(schedule_read(a, v, &(struct schedule_limits){ 0 }, s, &err), &err);
    return (struct cron_op){ .what = CRON_PUT, .name = bytes_of(name), .schedule = s };
}

void cron_fixture_put(struct store *s, struct arena *a, const char *name, const char *json)
{
    struct cron_op q = cron_fixture_put_op(a, name, json);
    struct op op = cron_fixture_op(a, &q);
    OK(cron_fixture_commit(s, &op), &op.err);
}

int cron_fixture_tick(struct store *s, struct arena *a, const char *node)
{
    int submitted = 0;
    bool more = true;
    while (more) {
        struct cron_op q = { .what = CRON_TICK, .max = CRON_STEP_MAX, .node = bytes_of(node) };
        struct op op = cron_fixture_op(a, &q);
        OK(cron_fixture_commit(s, &op), &op.err);
        submitted += q.submitted;
        more = q.more;
    }
    return submitted;
}

struct claim cron_fixture_claim(struct store *s, struct arena *a, int max)
{
    struct op op = { .kind = OP_CLAIM,
                     .a = a,
                     .claim = { .token = { { 7 } },
                                .node = BYTES("n"),
                                .boot = BYTES("b"),
                                .max = max,
                                .lease_us = 3600 * SEC_US } };
    OK(cron_fixture_commit(s, &op), &op.err);
    return op.claim;
}

struct op cron_fixture_finish(struct arena *a, const struct claim *c)
{
    struct finish_item *v = arena_zalloc(a, c->n + 1, sizeof *v);
    TRUE(v != NULL);
    for (size_t i = 0; i < c->n; i++)
        v[i] = (struct finish_item){ .seq = c->calls[i].seq, .how = END_RESULT };
    return (
        struct op){ .kind = OP_FINISH, .a = a, .finish = { .token = c->token, .v = v, .n = c->n } };
}
