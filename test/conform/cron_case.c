/*
 * cron_case.c - helpers of the cases about schedules (cron_case.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cron_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "feature/all.h"
#include "feature/zones.h"
#include "model/schedule.h"

/* A handle that knows the features, in place of the fixture's own. */
static void with_features(struct conform_fixture *b)
{
    if (b->features)
        return;
    b->features = features_all(&b->n_features);
    store_close(b->s);
    b->s = conform_fixture_handle(b);
}

struct op cron_op_of(struct conform_fixture *b, struct cron_op q)
{
    struct cron_op *ctx = arena_zalloc(&b->a, 1, sizeof *ctx);
    TRUE(ctx != NULL);
    *ctx = q;
    with_features(b);
    return (struct op){ .kind = OP_FEATURE, .feature = { .of = &feature_cron, .ctx = ctx } };
}

struct cron_op *cron(struct conform_fixture *b, struct cron_op q)
{
    struct op op = cron_op_of(b, q);
    one(b, &op);
    return op.feature.ctx;
}

static const struct schedule *schedule(struct conform_fixture *b, const char *json)
{
    struct schedule *s = arena_zalloc(&b->a, 1, sizeof *s);
    struct json *v;
    TRUE(s != NULL);
    OK(json_parse(&b->a, bytes_of(json), &v, &b->err), &b->err);
    OK(schedule_read(&b->a, v, &(struct schedule_limits){ 0 }, s, &b->err), &b->err);
    return s;
}

struct cron_op put_op(struct conform_fixture *b, const char *name, const char *json)
{
    return (
        struct cron_op){ .what = CRON_PUT, .name = bytes_of(name), .schedule = schedule(b, json) };
}

struct cron_op *put(struct conform_fixture *b, const char *name, const char *json)
{
    struct cron_op *q = cron(b, put_op(b, name, json));
    OK(b->op.status, &b->op.err);
    return q;
}

void put_minute(struct conform_fixture *b, const char *name, const char *more)
{
    put(b, name,
        arena_printf(&b->a, "{\"cron\":\"* * * * *\",\"call\":{\"type\":\"t\",\"input\":1}%s}",
                     more));
}

enum pawl_status named(struct conform_fixture *b, enum cron_do what, const char *name)
{
    cron(b, (struct cron_op){ .what = what, .name = bytes_of(name), .node = BYTES("n1") });
    return b->op.status;
}

struct cron_op *tick(struct conform_fixture *b)
{
    struct cron_op *q =
        cron(b, (struct cron_op){ .what = CRON_TICK, .max = CRON_STEP_MAX, .node = BYTES("n1") });
    OK(b->op.status, &b->op.err);
    return q;
}

struct cron_row row_of(struct conform_fixture *b, const char *name)
{
    struct cron_row r;
    OK(cron_get(b->s, &b->a, bytes_of(name), &r, &b->err), &b->err);
    return r;
}

const char *runs(struct conform_fixture *b, const char *name)
{
    static const char *const kinds[] = { "?", "submitted", "manual", "skipped", "missed" };
    struct cron_run_rows r;
    struct cron_run_query q = { .name = bytes_of(name), .limit = LIST_MAX };
    char *out = "";
    OK(cron_runs(b->s, &b->a, &q, &r, &b->err), &b->err);
    for (size_t i = r.n; i-- > 0;) {
        const struct cron_run *t = &r.v[i];
        char at[TIME_TEXT_LEN + 1];
        time_text(t->at_us, at);
        out = arena_printf(&b->a, "%s%s%.5s %s%s%.*s", out, *out ? ", " : "", at + 11,
                           kinds[t->kind], t->reason.data ? "/" : "", BYTES_ARG(t->reason));
        if (t->kind == CRON_MISSED)
            out = arena_printf(&b->a, "%s*%lld", out, (long long)t->count);
    }
    return out;
}

const char *due(struct conform_fixture *b)
{
    return claimable(b, want(b, CLAIM_MAX));
}

struct cron_op *put_unread(struct conform_fixture *b, const char *name)
{
    struct cron_op q = put_op(b, name, "{\"cron\":\"* * * * *\",\"call\":{\"type\":\"t\"}}");
    struct schedule *s = arena_alloc(&b->a, sizeof *s);
    TRUE(s != NULL);
    *s = *q.schedule;
    s->cron = BYTES("61 * * * *"); /* what is written; it ticks by the rule */
    q.schedule = s;
    struct cron_op *got = cron(b, q);
    OK(b->op.status, &b->op.err);
    return got;
}
