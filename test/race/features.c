/*
 * features.c - a row of a feature that another transaction adds after ours has looked for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"
#include "check.h"
#include "db_server.h"
#include "engines.h"
#include "feature/cron.h"
#include "model/schedule.h"
#include "store/feature.h"

RUNS_ON(ENGINE_SERVER)

static struct arena a;
static struct pawl_err err;

static const struct schedule *schedule(const char *json)
{
    struct schedule *s = arena_zalloc(&a, 1, sizeof *s);
    struct json *v;
    TRUE(s != NULL);
    OK(json_parse(&a, bytes_of(json), &v, &err), &err);
    OK(schedule_read(&a, v, &(struct schedule_limits){ 0 }, s, &err), &err);
    return s;
}

/* ---- The other transaction ------------------------------------------------------------------- */

static struct db_session *other;
static const char *meanwhile; /* statements of the other session; NULL: none */

/* Runs the two operations of its ctx inside its own. Then the other session acts: everything has
 * been read and decided, and nothing is written. */
static enum pawl_status then_other(struct ledger *d, struct op *op, struct pawl_err *why)
{
    struct op *v = op->feature.ctx;
    enum pawl_status st = feature_nested(d, &v[0], why);
    if (st == PAWL_OK)
        st = feature_nested(d, &v[1], why);
    const char *sql = TAKE(meanwhile);
    if (sql)
        db_session_say(other, sql);
    return st;
}

static const struct feature before = { .name = "before", .apply = then_other };

static struct store *opened(const char *param)
{
    static const struct feature *features[2] = { &feature_cron, &before };
    struct store *s = NULL;
    struct store_conf conf = { .url = engine_url(param),
                               .retention_us = 3600 * SEC_US,
                               .features = features,
                               .n_features = COUNT_OF(features) };
    arena_init(&a, 64 << 20);
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    other = db_session_open(engine_of(param)->server);
    return s;
}

/* ---- Schedules ------------------------------------------------------------------------------- */

static struct cron_op put_of(const char *name, const char *json)
{
    return (struct cron_op){ .what = CRON_PUT, .name = bytes_of(name), .schedule = schedule(json) };
}

static struct op op_of(struct cron_op *q)
{
    return (struct op){ .kind = OP_FEATURE, .a = &a, .feature = { .of = &feature_cron, .ctx = q } };
}

/* Both store a schedule under one new name: the group that finds it there is repeated, and replaces
 * it. */
TEST(two_nodes_put_one_new_schedule)
{
    struct store *s = opened(param);
    const char *table = arena_printf(&a, "%sschedule", engine_of(param)->tables);
    struct cron_op model =
        put_of("model", "{\"cron\": \"@hourly\", \"call\": {\"type\": \"theirs\"}}");
    struct cron_op ours = put_of("new", "{\"cron\": \"@hourly\", \"call\": {\"type\": \"ours\"}}");
    struct call_spec call;
    call_spec_init(&call);
    call.id = BYTES("x");
    call.type = BYTES("t");
    OK(call_spec_settle(&a, &world_real, &call, &err), &err);
    struct op accept = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &call, .n = 1 } };
    struct op first = op_of(&model), v[] = { op_of(&ours), accept };
    struct op outer = { .kind = OP_FEATURE, .a = &a, .feature = { .of = &before, .ctx = v } };
    struct cron_row row;
    OK(store_commit(s, &(struct op *){ &first }, 1), &first.err);
    OK(first.status, &first.err);
    meanwhile = arena_printf(&a,
                             "INSERT INTO %s SELECT 'new', spec, version, paused, zone_data, "
                             "due_at, next_at, next_local, last_at, last_local, last_id, last_seq, "
                             "waiting_at, created_at, updated_at FROM %s WHERE name = 'model';",
                             table, table);
    OK(store_commit(s, &(struct op *){ &outer }, 1), &outer.err);
    TRUE(meanwhile == NULL);
    OK(outer.status, &outer.err);
    OK(v[0].status, &v[0].err);
    FALSE(v[1].accept.out[0].duplicate); /* nothing of the first try was stored */
    FALSE(ours.created);
    TRUE(ours.changed);
    OK(cron_get(s, &a, BYTES("new"), &row, &err), &err);
    TRUE(strstr(arena_text(&a, row.spec), "ours") != NULL);
    EQ_INT(row.version, ours.version);
    db_session_close(other);
    store_close(s);
    arena_release(&a);
}
