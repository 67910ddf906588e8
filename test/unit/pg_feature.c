/*
 * pg_feature.c - what operations of features cost on a server, calls that functions in SQL remove,
 * and what SQL sees of marks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "counter.h"
#include "engines.h"
#include "model/lease.h"
#include "pg_fixture.h"
#include "proxy.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

/* Like pgf_open(), with the feature, and through the proxy, which counts. */
static void open_counting(struct pg_fixture *proxied)
{
    struct store_conf conf = { .retention_us = FIXTURE_RETENTION_US,
                               .remember_us = FIXTURE_REMEMBER_US,
                               .features = counter_features,
                               .n_features = COUNT_OF(counter_features) };
    pgf_beside(proxied, &(struct pg_fixture){ .url = proxy_url(db_database(&db_postgres)) }, NULL);
    store_close(TAKE(proxied->s));
    conf.url = proxied->url;
    conf.schema = proxied->schema;
    OK(store_open(&conf, &proxied->s, &proxied->err), &proxied->err);
    counter_tables(proxied->s, engine_of("postgres:"));
}

static void commit(struct op *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i]->a = &r.a;
    OK(store_commit(r.s, v, n), &v[0]->err);
    for (size_t i = 0; i < n; i++)
        OK(v[i]->status, &v[i]->err);
}

/* Statements of a group of n operations, each on a counter of its own. */
static int64_t count_cost(int n, const char *prefix)
{
    struct counter_op *q = arena_zalloc(&r.a, (size_t)n, sizeof *q);
    struct op *ops = arena_zalloc(&r.a, (size_t)n, sizeof *ops);
    struct op **v = arena_alloc(&r.a, (size_t)n * sizeof *v);
    for (int i = 0; i < n; i++) {
        q[i] = (struct counter_op){ .id = bytes_of(arena_printf(&r.a, "%s%d", prefix, i)),
                                    .name = bytes_of(arena_printf(&r.a, "%s-%d", prefix, i)),
                                    .by = 1 };
        ops[i] = counter_count(&q[i]);
        v[i] = &ops[i];
    }
    int64_t from = proxy_statements();
    commit(v, (size_t)n);
    return proxy_statements() - from;
}

TEST(rows_of_a_group_share_their_statements)
{
    open_counting(&r);
    count_cost(3, "prepared");
    EQ_INT(count_cost(500, "b"), count_cost(2, "c"));
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM counter"), 505);
    pgf_close(&r);
}

/* Statements of an operation that accepts n calls; half of them have keys. */
static int64_t accept_cost(int n, const char *prefix, bool known)
{
    struct call_spec *v = arena_zalloc(&r.a, (size_t)n, sizeof *v);
    for (int i = 0; i < n; i++) {
        v[i] = pgf_plan(arena_printf(&r.a, "%s%d", prefix, i));
        v[i].watch = WATCH_END;
        if (i % 2)
            v[i].key = bytes_of(arena_printf(&r.a, "%s-k%d", prefix, i));
        OK(call_spec_settle(&r.a, &world_real, &v[i], &r.err), &r.err);
    }
    struct op nested = { .kind = OP_ACCEPT, .a = &r.a, .accept = { .v = v, .n = (size_t)n } };
    struct counter_op q = { .name = BYTES("a"), .by = 1, .nested = &nested, .n_nested = 1 };
    struct op op = counter_count(&q), *one = &op;
    int64_t from = proxy_statements();
    commit(&one, 1);
    int64_t cost = proxy_statements() - from;
    for (int i = 0; i < n; i++)
        EQ_INT(nested.accept.out[i].duplicate, known);
    return cost;
}

TEST(a_thousand_nested_calls_cost_what_two_do)
{
    open_counting(&r);
    accept_cost(4, "first", false);
    int64_t few = accept_cost(2, "few", false), many = accept_cost(1000, "many", false);
    printf("%lld statements for 2 calls, %lld for 1,000\n", (long long)few, (long long)many);
    EQ_INT(many, few);
    few = accept_cost(2, "few", true);
    EQ_INT(accept_cost(1000, "many", true) > 3 * few, false);
    pgf_close(&r);
}

/* ---- Calls that SQL removes ------------------------------------------------------------------ */

/* A call that the feature watches and that is cancelled, so that the feature has a row for it. */
static void watched_ends(const char *id, int64_t keep_us)
{
    struct call_spec s = pgf_plan(id);
    s.watch = WATCH_END;
    s.keep_us = keep_us;
    EQ_INT(pgf_accept(&r, &s).status, PAWL_OK);
    struct op cancel = { .kind = OP_CANCEL, .by_id.id = bytes_of(id) };
    pgf_do(&r, &cancel);
}

static int64_t in_counter(const char *id)
{
    return sql_count(r.db, "SELECT count(*) FROM counter_moved WHERE id = '%s'", id);
}

/* What is left of a call that was marked: everything, or only its tombstone. */
static void removed(const char *id, bool is)
{
    struct call call;
    EQ_STATUS(pgf_get(&r, id, &call), is ? PAWL_GONE : PAWL_OK, NULL);
    EQ_INT(in_counter(id), is ? 0 : 1);
    EQ_INT(sql_count(r.db,
                     "SELECT count(*) FROM pawl.outcome o JOIN pawl.id i USING (seq) WHERE "
                     "i.id = '%s'",
                     id),
           is ? 0 : 1);
}

/* Functions in SQL mark; gc removes, tells the feature once, and the feature's rows go. */
TEST(what_sql_removes_is_forgotten_by_gc)
{
    open_counting(&r);
    counter_seen = (struct counter_seen){ 0 };
    watched_ends("archived", 0);
    watched_ends("cleaned", 1);
    watched_ends("kept", 0);
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 1);
    sql_run(r.db, "UPDATE pawl.outcome SET finished_at = finished_at - 3600000000 "
                  "WHERE seq = (SELECT seq FROM pawl.id WHERE id = 'archived')");
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('30 min')"), 1);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('30 min')"), 0); /* marked already */
    removed("archived", false);
    removed("cleaned", false);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.removal"), 2);
    EQ_INT(counter_seen.forgotten, 0);
    struct gc g = pgf_gc(&r);
    EQ_INT(g.removed, 2);
    EQ_INT(counter_seen.forgotten, 2);
    removed("archived", true);
    removed("cleaned", true);
    removed("kept", false);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id, ' ') FROM pawl.archive"), "archived");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.removal"), 0);
    EQ_INT(pgf_gc(&r).removed, 0); /* it is told once */
    EQ_INT(counter_seen.forgotten, 2);
    pgf_close(&r);
}

/* ---- Marks in SQL ---------------------------------------------------------------------------- */

TEST(sql_reads_a_lease_with_marks)
{
    static const struct held v[] = {
        { .seq = 5, .run_at_us = 100, .lane = 1, .marks = WATCH_ALL },
        { .seq = 6, .run_at_us = 100, .lane = 1, .counts = { 0, 1, 0 }, .marks = 1 },
        { .seq = 7, .run_at_us = 100, .lane = 1, .counts = { 0, 1, 0 } },
        { .seq = 9, .run_at_us = 90, .lane = 2, .key = 1, .pos = 9, .key_no = 3, .marks = 300 },
        { .seq = 10, .run_at_us = 90, .lane = 2, .key = 1, .pos = 4096, .key_no = 4, .marks = 2 },
    };
    struct bytes packed;
    char hex[400];
    pgf_open(&r, NULL);
    for (size_t n = 1; n <= COUNT_OF(v); n++) {
        OK(lease_pack(&r.a, v, n, BYTES("3:z"), &packed, &r.err), &r.err);
        for (size_t i = 0; i < packed.len; i++)
            snprintf(hex + 2 * i, 3, "%02x", (unsigned char)packed.data[i]);
        for (size_t i = 0; i < n; i++)
            EQ_STR(sql_ask(r.db,
                           "SELECT concat_ws(' ', run_at, lane, lost, coalesce(key_no, 0)) "
                           "FROM pawl.held('\\x%s') WHERE seq = %lld",
                           hex, (long long)v[i].seq),
                   arena_printf(&r.a, "%lld %d %d %lld", (long long)v[i].run_at_us, v[i].lane,
                                v[i].counts.lost, (long long)v[i].key_no));
        EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.held('\\x%s')", hex), n);
    }
    pgf_close(&r);
}
