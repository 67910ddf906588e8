/*
 * pg_cost.c - the bytes that a group sends and reads grow at most in proportion to the group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/mem.h"
#include "engines.h"
#include "feature/all.h"
#include "feature/cron.h"
#include "feature/workflow.h"
#include "pg_fixture.h"
#include "sql_names.h"
#include "store/ledger/cache.h"
#include "proxy.h"

RUNS_ON_ENGINE("postgres")

/* ---- Bytes on the wire ----------------------------------------------------------------------- */

/* A store whose statements and bytes the proxy counts. The server's log cannot be used: cases that
 * run at the same time share it. */
static void open_proxied(struct pg_fixture *r)
{
    pgf_beside(r, &(struct pg_fixture){ .url = proxy_url(db_database(&db_postgres)) }, NULL);
}

static void accept_many(struct pg_fixture *r, int n)
{
    r->tokens++;
    for (int i = 0; i < n; i++) {
        char id[40];
        snprintf(id, sizeof id, "%u-%d", r->tokens, i);
        struct call_spec s = pgf_plan(arena_text(&r->a, bytes_of(id)));
        OK(pgf_accept(r, &s).status, NULL);
    }
}

/* Bytes sent and read while n calls of one lease end, each in its own operation, in one group: as
 * workers do it. */
static int64_t ends_cost(struct pg_fixture *r, int n)
{
    accept_many(r, n);
    struct claim q = pgf_claim(r, n);
    EQ_INT(q.n, n);
    struct op *ops = arena_zalloc(&r->a, (size_t)n, sizeof *ops), **v;
    struct finish_item *items = arena_zalloc(&r->a, (size_t)n, sizeof *items);
    v = arena_alloc(&r->a, (size_t)n * sizeof *v);
    for (int i = 0; i < n; i++) {
        items[i] = (struct finish_item){
            .seq = q.calls[i].seq, .id = q.calls[i].spec.id, .how = END_RESULT, .retry_in_us = -1
        };
        ops[i] = (struct op){ .kind = OP_FINISH,
                              .a = &r->a,
                              .finish = { .token = q.token, .v = &items[i], .n = 1 } };
        v[i] = &ops[i];
    }
    int64_t from = proxy_bytes();
    EQ_STATUS(store_commit(r->s, v, (size_t)n), PAWL_OK, NULL);
    for (int i = 0; i < n; i++)
        EQ_STATUS(ops[i].status, PAWL_OK, &ops[i].err);
    return proxy_bytes() - from;
}

TEST(many_ends_of_one_lease_name_it_once)
{
    struct pg_fixture r;
    open_proxied(&r);
    ends_cost(&r, 50); /* statements are prepared */
    int64_t few = ends_cost(&r, 50), many = ends_cost(&r, 500);
    TRUE(few > 0);
    /* Ten times, if each costs the same; a hundred times, if each reads all of them. */
    if (many > 20 * few)
        FAIL("%lld bytes for 500 ends, %lld for 50", (long long)many, (long long)few);
    pgf_close(&r);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

/* n calls of a type, named by its letter and a number: "s0", "s1". */
static void accept_type(struct pg_fixture *r, const char *type, int n)
{
    for (int i = 0; i < n; i++) {
        struct call_spec s = pgf_plan(arena_printf(&r->a, "%c%d", *type, i));
        s.type = bytes_of(type);
        OK(pgf_accept(r, &s).status, NULL);
    }
}

static struct claim claim_ahead(struct pg_fixture *r, int max, int max_any, const char *quick)
{
    struct bytes type = bytes_of(quick);
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("node-1"),
                                .boot = BYTES("boot-1"),
                                .max = max,
                                .max_any = max_any,
                                .quick = &type,
                                .n_quick = 1,
                                .lease_us = 60 * SEC_US } };
    pgf_do(r, &op);
    return op.claim;
}

/* The smallest number of statements of twelve claims that take 4 calls: occasionally one is planned
 * again. */
static int64_t claim_cost(struct pg_fixture *r, int max, int max_any, const char *quick)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 12; i++) {
        int64_t before = proxy_statements();
        EQ_INT(claim_ahead(r, max, max_any, quick).n, 4);
        least = MIN(least, proxy_statements() - before);
    }
    return least;
}

/* Types that make no difference to what is taken cost no statement. */
TEST(a_claim_of_one_kind_of_type_asks_no_more)
{
    struct pg_fixture r;
    open_proxied(&r);
    accept_many(&r, 200);
    for (int i = 0; i < 5; i++) /* statements are prepared, claim cursors are known */
        EQ_INT(claim_ahead(&r, 4, 0, "t").n, 4);
    int64_t plain = claim_cost(&r, 4, 0, "t");
    GT_INT(plain, 0);
    LE_INT(claim_cost(&r, 4, 2, "t"), plain);
    LE_INT(claim_cost(&r, 100, 4, "other"), plain);
    pgf_close(&r);
}

/* With the server's own clock, where claims continue from cursors: skipped calls are found. */
TEST(a_slow_call_that_was_passed_over_is_found_again)
{
    struct pg_fixture r;
    pgf_open(&r, NULL);
    accept_type(&r, "slow", 5);
    accept_type(&r, "quick", 5);
    struct claim q = claim_ahead(&r, 100, 2, "quick");
    EQ_INT(q.n, 7);
    TRUE(q.more);
    for (int i = 2; i < 5; i++) {
        q = claim_ahead(&r, 100, 1, "quick");
        EQ_INT(q.n, 1);
        TRUE(bytes_eq(q.calls[0].spec.id, bytes_of(arena_printf(&r.a, "s%d", i))));
    }
    FALSE(q.more);
    pgf_close(&r);
}

/* A process that was killed claims again with its old token, and gets its lease; its next claim, in
 * the same moment, finds what else is due. */
TEST(the_claim_after_a_repeated_one_finds_what_is_due)
{
    struct pg_fixture r;
    struct store *first;
    pgf_open(&r, NULL);
    accept_type(&r, "t", 3);
    struct claim q = claim_ahead(&r, 1, 0, "t");
    struct op again = { .kind = OP_CLAIM, .claim = q };
    EQ_INT(q.n, 1);
    first = r.s;
    r.s = NULL;
    OK(store_open(&(struct store_conf){ .url = r.url,
                                        .schema = r.schema,
                                        .retention_us = FIXTURE_RETENTION_US,
                                        .remember_us = FIXTURE_REMEMBER_US },
                  &r.s, &r.err),
       &r.err);
    pgf_do(&r, &again);
    EQ_INT(again.claim.n, 1);
    EQ_INT(claim_ahead(&r, 5, 0, "t").n, 2);
    store_close(first);
    pgf_close(&r);
}

/* Statements of a group of n claims, each for a type that has no call; the smallest of five. */
static int64_t idle_claims_cost(struct pg_fixture *r, int n)
{
    int64_t least = INT64_MAX;
    for (int round = 0; round < 5; round++) {
        struct op *ops = arena_zalloc(&r->a, (size_t)n, sizeof *ops);
        struct op **v = arena_alloc(&r->a, (size_t)n * sizeof *v);
        struct bytes *types = arena_alloc(&r->a, (size_t)n * sizeof *types);
        for (int i = 0; i < n; i++) {
            types[i] = bytes_of(arena_printf(&r->a, "none%d", i));
            ops[i] = (struct op){ .kind = OP_CLAIM,
                                  .a = &r->a,
                                  .claim = { .token = token_make(&world_real),
                                             .node = BYTES("node-1"),
                                             .boot = BYTES("boot-1"),
                                             .worker = BYTES("w"),
                                             .types = &types[i],
                                             .n_types = 1,
                                             .max = 1,
                                             .run_max = 1,
                                             .lease_us = 60 * SEC_US } };
            v[i] = &ops[i];
        }
        int64_t before = proxy_statements();
        OK(store_commit(r->s, v, (size_t)n), NULL);
        least = MIN(least, proxy_statements() - before);
        for (int i = 0; i < n; i++) {
            OK(ops[i].status, &ops[i].err);
            EQ_INT(ops[i].claim.n, 0);
            FALSE(ops[i].claim.more);
        }
    }
    return least;
}

/* Hundreds of workers may wait, each for another type: all of them look whenever work may be due.
 */
TEST(claims_that_find_nothing_share_one_look)
{
    struct pg_fixture r;
    open_proxied(&r);
    accept_type(&r, "other", 3);
    int64_t few = idle_claims_cost(&r, 2), many = idle_claims_cost(&r, 100);
    if (many > few)
        FAIL("%lld statements for 100 claims, %lld for 2", (long long)many, (long long)few);
    pgf_close(&r);
}

/* ---- Calls with a key ------------------------------------------------------------------------ */

/* What a submit-and-wait of one call with a key may send in its two commits, as a node does them:
 * accept and claim, then finish and claim. The key's row is there, or new. */
#define KEYED_STATEMENTS 28
#define NEW_KEY_STATEMENTS 29

/* Who writes rows of these tables is written down. */
static void watch_writes(struct pg_fixture *r)
{
    sql_run(r->db, "CREATE TABLE public.writes (tx bigint, place text, what text)");
    sql_run(r->db, "CREATE FUNCTION public.wrote() RETURNS trigger LANGUAGE plpgsql AS "
                   "'BEGIN INSERT INTO public.writes VALUES (txid_current(), TG_TABLE_NAME, TG_OP);"
                   " RETURN NULL; END'");
    sql_run(r->db, "CREATE TRIGGER wrote AFTER INSERT OR UPDATE ON pawl.key FOR EACH ROW "
                   "EXECUTE FUNCTION public.wrote()");
    sql_run(r->db, "CREATE TRIGGER wrote AFTER INSERT ON pawl.ready FOR EACH ROW "
                   "EXECUTE FUNCTION public.wrote()");
    sql_run(r->db, "CREATE TRIGGER wrote AFTER INSERT ON pawl.line FOR EACH ROW "
                   "EXECUTE FUNCTION public.wrote()");
}

static struct op node_claim(struct pg_fixture *r)
{
    static struct bytes type = BYTES("t");
    return (struct op){ .kind = OP_CLAIM,
                        .a = &r->a,
                        .claim = { .token = token_make(&world_real),
                                   .node = BYTES("node-1"),
                                   .boot = BYTES("boot-1"),
                                   .types = &type,
                                   .n_types = 1,
                                   .max = 16,
                                   .run_max = 16,
                                   .width = 16 } };
}

static void commit_both(struct pg_fixture *r, struct op *first, struct op *second)
{
    struct op *v[] = { first, second };
    EQ_STATUS(store_commit(r->s, v, 2), PAWL_OK, &first->err);
    EQ_STATUS(first->status, PAWL_OK, &first->err);
    EQ_STATUS(second->status, PAWL_OK, &second->err);
}

/* Statements of one call, from its accept to its end; key NULL: it has none. */
static int64_t call_cost(struct pg_fixture *r, const char *key)
{
    struct call_spec s = pgf_plan(arena_printf(&r->a, "call-%u", ++r->tokens));
    if (key)
        s.key = bytes_of(key);
    OK(call_spec_settle(&r->a, &world_real, &s, &r->err), &r->err);
    struct op accept = { .kind = OP_ACCEPT, .a = &r->a, .accept = { .v = &s, .n = 1 } };
    struct op claim = node_claim(r), next = node_claim(r);
    int64_t from = proxy_statements();
    commit_both(r, &accept, &claim);
    EQ_INT(claim.claim.n, 1);
    FALSE(claim.claim.more);
    struct finish_item item = { .seq = claim.claim.calls[0].seq,
                                .id = s.id,
                                .how = END_RESULT,
                                .result = { PAWL_JSON, BYTES("1") },
                                .retry_in_us = -1 };
    struct op finish = { .kind = OP_FINISH,
                         .a = &r->a,
                         .finish = { .token = claim.claim.token, .v = &item, .n = 1 } };
    if (key) /* its end may free the next of its line, so a claim goes with it */
        commit_both(r, &finish, &next);
    else
        pgf_do(r, &finish);
    EQ_INT(item.state, PAWL_COMPLETED);
    EQ_INT(next.claim.n, 0);
    return proxy_statements() - from;
}

/* The fewest of twelve: now and then plans are made anew, or a claim looks at everything. */
static int64_t calls_cost(struct pg_fixture *r, const char *key, bool new_keys)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 12; i++) {
        int64_t n = call_cost(r, new_keys ? arena_printf(&r->a, "%s-%d", key, i) : key);
        least = MIN(least, n);
    }
    return least;
}

static void open_node(struct pg_fixture *r)
{
    struct store_conf conf = { .retention_us = FIXTURE_RETENTION_US,
                               .remember_us = FIXTURE_REMEMBER_US,
                               .key_pending_max = 100000 }; /* the default */
    conf.features = features_all(&conf.n_features);         /* as a server does */
    open_proxied(r);
    store_close(r->s);
    conf.url = r->url;
    OK(store_open(&conf, &r->s, &r->err), &r->err);
    struct op join = { .kind = OP_JOIN,
                       .node = { .node = BYTES("node-1"), .boot = BYTES("boot-1"), .slots = 16 } };
    pgf_do(r, &join);
    watch_writes(r);
    for (int i = 0; i < 5; i++) /* statements are prepared, cursors are known */
        call_cost(r, "k");
}

TEST(a_call_with_a_key_goes_from_accept_to_claim_in_memory)
{
    struct pg_fixture r;
    open_node(&r);
    LE_INT(calls_cost(&r, "k", false), KEYED_STATEMENTS);
    LE_INT(calls_cost(&r, "n", true), NEW_KEY_STATEMENTS);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM public.writes WHERE place <> 'key'"), 0);
    /* Its key is written once a commit; a new one is inserted with what it is in the end. */
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM public.writes"), 2 * (5 + 12 + 12));
    EQ_INT(sql_count(r.db,
                     "SELECT max(n) FROM (SELECT count(*) AS n FROM public.writes GROUP BY tx) w"),
           1);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM public.writes WHERE what = 'INSERT'"), 13);
    pgf_close(&r);
}

/* As many as a call without a key sends: 20, before its claim could answer without a last look. */
#define PLAIN_STATEMENTS 19

TEST(a_call_without_a_key_costs_less_than_one_with)
{
    struct pg_fixture r;
    open_node(&r);
    for (int i = 0; i < 5; i++)
        call_cost(&r, NULL);
    LE_INT(calls_cost(&r, NULL, false), PLAIN_STATEMENTS);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM public.writes WHERE place <> 'key'"), 0);
    pgf_close(&r);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static size_t times(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The plan of a claim that was made when the tables were empty according to the server's
 * statistics: ready calls are read by their place, and everything else by the index that leads
 * there. */
static void plan_holds(struct pg_fixture *r, enum sql_name name, const char *values)
{
    sql_run(r->db, "PREPARE claim AS %s", sql_pg[name]);
    const char *plan =
        sql_ask(r->db, "EXPLAIN (FORMAT json, COSTS off) EXECUTE claim (%s)", values);
    EQ_INT(times(plan, "\"Tid Scan\""), 1);
    EQ_INT(times(plan, "\"Index Name\": \"ready_due\""), 1);
    EQ_INT(times(plan, "\"Index Name\": \"call_pkey\""), 1);
    EQ_INT(times(plan, "\"Index Name\""), 2);
    EQ_INT(times(plan, "\"Index Cond\""), 2);
    EQ_INT(times(plan, "Seq Scan"), 0);
    sql_run(r->db, "DEALLOCATE claim");
}

TEST(a_claim_planned_on_empty_tables_is_right_for_full_ones)
{
    struct pg_fixture r;
    pgf_open(&r, NULL);
    sql_run(r.db, "VACUUM ANALYZE pawl.ready");
    sql_run(r.db, "VACUUM ANALYZE pawl.call");
    accept_many(&r, 1);
    sql_run(r.db, "PREPARE settings AS %s", sql_pg[SQL_SETTINGS]);
    sql_run(r.db, "EXECUTE settings (0, 60000)");
    plan_holds(&r, SQL_READY_GRAB_ONE, "2, 0, 1, 1000, 1000, 0, 0");
    plan_holds(&r, SQL_READY_GRAB, "'{2,4}', 0, 1, 1000, 1000, '{0,0}', '{0,0}'");
    pgf_close(&r);
}

/* ---- Claim cursors --------------------------------------------------------------------------- */

/* A ledger that has nothing but claim cursors. */
static const struct led_driver with_cursors = { .cursors = true };
#define NOW_US (1000 * SEC_US)

static struct led_rows answer(struct led_cell *v, int64_t track, int64_t run_at_us)
{
    v[0].i = track;
    v[1].i = 0;
    v[2].i = run_at_us;
    return (struct led_rows){ .n = track ? 1 : 0, .columns = 3, .v = v };
}

static int64_t mark_of(struct ledger *c, int64_t track)
{
    int64_t at_us, seq;
    led_cursor_get(c, track, 0, &at_us, &seq);
    return at_us;
}

TEST(a_cursor_stands_where_the_last_look_found_something)
{
    struct ledger c = { .db = &with_cursors, .now_us = NOW_US };
    struct led_cell v[3] = { 0 };
    struct led_rows due = answer(v, 2, NOW_US - 10 * SEC_US);
    FALSE(led_cursors_trusted(&c, false)); /* nothing is known: look at everything */
    led_cursors_answered(&c, &due);
    EQ_INT(mark_of(&c, 2), NOW_US - 10 * SEC_US);
    /* Nothing is due any more: what comes has a time that is not long past. */
    struct led_rows none = answer(v, 0, 0);
    TRUE(led_cursors_trusted(&c, true));
    led_cursors_answered(&c, &none);
    GT_INT(mark_of(&c, 2), NOW_US - 1 * SEC_US);
    /* And not in the future, where the next call may be known. */
    struct led_rows later = answer(v, 2, NOW_US + 3600 * SEC_US);
    led_cursors_answered(&c, &later);
    LT_INT(mark_of(&c, 2), NOW_US);
    mem_free(c.cursors.v);
}

TEST(what_is_written_here_is_never_behind_a_mark)
{
    struct ledger c = { .db = &with_cursors, .now_us = NOW_US };
    struct led_cell v[3] = { 0 };
    struct led_rows due = answer(v, 2, NOW_US - 1 * SEC_US);
    led_cursors_answered(&c, &due);
    led_cursor_lower(&c, 2, 0, NOW_US - 100 * SEC_US, 7);
    EQ_INT(mark_of(&c, 2), NOW_US - 100 * SEC_US);
    mem_free(c.cursors.v);
}

TEST(a_look_that_takes_long_comes_less_often)
{
    struct ledger c = { .db = &with_cursors, .now_us = NOW_US };
    EQ_INT(led_cursors_rest(&c), LED_CURSORS_DOUBT_US);
    c.cursors.full_cost_us = 100 * MS_US;
    GE_INT(led_cursors_rest(&c), 2 * SEC_US);
    c.cursors.full_cost_us = 3600 * SEC_US; /* the process slept, or the clock was changed */
    LE_INT(led_cursors_rest(&c), 60 * SEC_US);
}

/* ---- Steps of workflows ---------------------------------------------------------------------- */

#define FLOWS 40

/* One group in which each run of the lease says something of its step `no`. The result is the run's
 * number. Returns its statements. */
static int64_t steps_say(struct pg_fixture *r, const struct claim *q, int64_t no,
                         enum step_says says)
{
    struct op ops[FLOWS], *v[FLOWS];
    struct workflow_op w[FLOWS];
    struct workflow_step s[FLOWS];
    for (size_t i = 0; i < q->n; i++) {
        const char *seq = arena_printf(&r->a, "%lld", (long long)q->calls[i].seq);
        s[i] = (struct workflow_step){ .no = no,
                                       .name = bytes_of(no % 2 ? "odd" : "even"),
                                       .kind = STEP_RUN,
                                       .says = says,
                                       .attempts = (int)no,
                                       .result = { PAWL_JSON, bytes_of(seq) } };
        w[i] = (struct workflow_op){ .what = WORKFLOW_STEPS,
                                     .steps = { .v = &s[i], .n = 1, .node = BYTES("n") } };
        ops[i] = (struct op){ .kind = OP_FEATURE,
                              .a = &r->a,
                              .feature = { .of = &feature_workflow,
                                           .ctx = &w[i],
                                           .token = q->token,
                                           .seq = q->calls[i].seq } };
        v[i] = &ops[i];
    }
    int64_t before = proxy_statements();
    EQ_STATUS(store_commit(r->s, v, q->n), PAWL_OK, NULL);
    for (size_t i = 0; i < q->n; i++)
        OK(ops[i].status, &ops[i].err);
    return proxy_statements() - before;
}

/* A lease of n new runs that store so many steps. Returns the statements of the last group. */
static int64_t steps_cost(struct pg_fixture *r, int n, int steps)
{
    int64_t last = 0;
    accept_many(r, n);
    struct claim q = pgf_claim(r, n);
    EQ_INT(q.n, n);
    for (int no = 1; no <= steps; no++)
        last = steps_say(r, &q, no, SAYS_RESULT);
    return last;
}

/* Names of steps are looked up for all runs of a group together, and its rows are written together.
 */
TEST(the_steps_of_a_group_cost_as_many_statements_as_one)
{
    struct pg_fixture r;
    open_proxied(&r);
    steps_cost(&r, 2, 6); /* statements are prepared */
    int64_t two = steps_cost(&r, 2, 6);
    GT_INT(two, 0);
    EQ_INT(steps_cost(&r, FLOWS, 6), two);
    pgf_close(&r);
}

/* Columns that are the same in all rows of an update are sent once: each row gets its own values
 * all the same. From eight rows on, and for one. */
TEST(an_update_of_many_rows_gives_each_its_own_values)
{
    static const int sizes[] = { 1, 7, 8, FLOWS };
    struct pg_fixture r;
    open_proxied(&r);
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        accept_many(&r, sizes[k]);
        struct claim q = pgf_claim(&r, sizes[k]);
        EQ_INT(q.n, sizes[k]);
        for (int64_t no = 1; no <= 3; no++) {
            steps_say(&r, &q, no, SAYS_BEGUN);
            steps_say(&r, &q, no, SAYS_RESULT);
        }
        EQ_INT(
            sql_count(r.db,
                      "SELECT count(*) FROM pawl.step WHERE seq BETWEEN %lld AND %lld AND "
                      "status = 4 AND attempts = no AND convert_from(result, 'UTF8') = seq::text "
                      "AND completed_at >= started_at",
                      (long long)q.calls[0].seq, (long long)q.calls[q.n - 1].seq),
            3 * sizes[k]);
        EQ_INT(sql_count(r.db,
                         "SELECT count(*) FROM pawl.workflow w WHERE seq BETWEEN %lld AND %lld AND "
                         "next_no = 4 AND steps = 3 AND rev = 6 AND last_done_at = (SELECT "
                         "completed_at FROM pawl.step s WHERE s.seq = w.seq AND s.no = 3) AND "
                         "bytes = 3 * length(seq::text) AND error IS NULL AND wait_at IS NULL",
                         (long long)q.calls[0].seq, (long long)q.calls[q.n - 1].seq),
               sizes[k]);
    }
    pgf_close(&r);
}

/* ---- A list of schedules --------------------------------------------------------------------- */

static int64_t page_cost(struct pg_fixture *r, int limit)
{
    struct cron_query q = { .limit = limit };
    struct cron_rows rows;
    struct cron_run *last;
    struct pawl_err err;
    int64_t before = proxy_statements();
    OK(cron_list(r->s, &r->a, &q, &rows, &err), &err);
    OK(cron_last(r->s, &r->a, &rows, &last, &err), &err);
    EQ_UINT(rows.n, (size_t)limit);
    for (size_t i = 0; i < rows.n; i++)
        EQ_INT(last[i].at_us, 9);
    return proxy_statements() - before;
}

/* The newest runs of a page are read together. */
TEST(a_page_of_schedules_costs_as_many_statements_as_one)
{
    struct pg_fixture r;
    open_proxied(&r);
    db_ask(&db_postgres,
           "INSERT INTO pawl.schedule (name, spec, version, paused, zone_data, created_at, "
           "updated_at) SELECT 's' || i, '{}', 1, 1, 'UTC', 1, 1 FROM generate_series(1, 1000) i;"
           "INSERT INTO pawl.tick (name, at, no, kind, zone, count, created_at) "
           "SELECT 's' || i, t, 0, 4, 'UTC', 1, 1 FROM generate_series(1, 1000) i, "
           "generate_series(1, 9) t;");
    page_cost(&r, 1); /* statements are prepared */
    int64_t one = page_cost(&r, 1);
    GT_INT(one, 0);
    EQ_INT(page_cost(&r, LIST_MAX), one);
    pgf_close(&r);
}
