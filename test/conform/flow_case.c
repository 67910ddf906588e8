/*
 * flow_case.c - see flow_case.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "flow_case.h"

#include <stdio.h>
#include <string.h>

#include "model/needs.h"

struct conform_fixture *flow_fixture(void *param, const char *wrapper)
{
    static char url[200];
    if (engine_of(param)->kind == ENGINE_MEM)
        skip("mem keeps calls only");
    if (strchr(param, '+') && *wrapper)
        skip("%s is wrapped already", (const char *)param);
    snprintf(url, sizeof url, "%s%s", wrapper, (const char *)param);
    struct conform_fixture *b = conform_fixture_open(url);
    store_close(b->s);
    b->features = flow_features;
    b->n_features = COUNT_OF(flow_features);
    b->s = conform_fixture_handle(b);
    flow_tables(b->s, b->engine);
    flow_seen = (struct flow_seen){ 0 };
    return b;
}

struct claim want_steps(struct conform_fixture *b, int max)
{
    static const struct bytes has[] = { NEED_STEPS };
    struct claim q = want(b, max);
    q.has = has;
    q.n_has = COUNT_OF(has);
    return q;
}

struct token claim_steps(struct conform_fixture *b, int n, int64_t lease_us)
{
    struct claim q = want_steps(b, n);
    q.lease_us = lease_us;
    q = claim_as(b, q);
    EQ_UINT(q.n, (size_t)n);
    return q.token;
}

enum pawl_status flow_do(struct conform_fixture *b, struct flow_op *q, struct token token,
                         int64_t seq)
{
    struct op op = flow_fenced(q, token, seq);
    return one(b, &op);
}

void flow_step(struct conform_fixture *b, struct token token, int64_t seq, int64_t step)
{
    struct flow_op q = { .step = step };
    OK(flow_do(b, &q, token, seq), &b->op.err);
    EQ_INT(q.steps, step);
}

void flow_wait(struct conform_fixture *b, struct token token, int64_t seq, int64_t step,
               int64_t until_us)
{
    struct flow_op q = { .step = step, .until_us = until_us, .waits = WAIT_TIMER };
    OK(flow_do(b, &q, token, seq), &b->op.err);
}

int64_t flow_waiting(struct conform_fixture *b, struct call_spec s, int64_t until_us)
{
    int64_t seq = accept_spec(b, s).call.seq;
    flow_wait(b, claim_steps(b, 1, 0), seq, 1, until_us);
    return seq;
}

void flow_wake(struct conform_fixture *b, int64_t seq)
{
    struct op op = { .kind = OP_WAKE, .wake = { &seq, 1 } };
    OK(one(b, &op), &op.err);
}

enum pawl_status flow_from_outside(struct conform_fixture *b, struct flow_op q)
{
    struct op op = flow_open(&q);
    return one(b, &op);
}

const char *flow_told(struct conform_fixture *b, int64_t seq)
{
    static char sql[200];
    snprintf(sql, sizeof sql, "SELECT was * 10 + state FROM flow_moved WHERE seq = %lld ORDER BY 1",
             (long long)seq);
    return engine_rows(b->url, sql);
}
