/*
 * pg_calls.c - reading calls and maintaining the ledger in SQL, and which role may do what.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/lease.h"
#include "engines.h"
#include "pg_fixture.h"

RUNS_ON_ENGINE("postgres")

static struct pg_fixture r;

static const char *column(const char *id, const char *name)
{
    return sql_ask(r.db, "SELECT %s FROM pawl.calls WHERE id = '%s'", name, id);
}

static const char *status(const char *id)
{
    return column(id, "status");
}

static void by_id(enum op_kind kind, const char *id)
{
    struct op op = { .kind = kind, .by_id = { .id = bytes_of(id), .priority = PAWL_SAME } };
    pgf_do(&r, &op);
}

/* Submitted in SQL, moved in from the inbox, and claimed by itself. */
static struct token running(const char *id, const char *more)
{
    sql_run(r.db, "SELECT pawl.submit('t', id => '%s'%s)", id, more);
    struct claim q = pgf_claim(&r, 1);
    if (q.n == 0 && q.more) /* the last one was full */
        q = pgf_claim(&r, 1);
    EQ_INT(q.n, 1);
    TRUE(bytes_eq(q.calls[0].spec.id, bytes_of(id)));
    return q.token;
}

static void ended(const char *id, const char *more, enum ending how)
{
    pgf_finish(&r, running(id, more), id, how);
}

/* For every call, the view shows the same as a read through the store. */
static void agrees(const char *id)
{
    struct call c;
    OK(pgf_get(&r, id, &c), NULL);
    EQ_STR(status(id), pawl_state_name(c.state));
    EQ_INT(strtoll(column(id, "seq"), NULL, 10), c.seq);
    EQ_INT(strtoll(column(id, "attempts"), NULL, 10), c.counts.attempts);
    EQ_INT(strtoll(column(id, "lost"), NULL, 10), c.counts.lost);
    EQ_INT(strtoll(column(id, "redrives"), NULL, 10), c.counts.redrives);
    EQ_INT(strtoll(column(id, "priority"), NULL, 10), c.spec.priority);
    EQ_INT(strtoll(column(id, "coalesce(key_no, 0)"), NULL, 10), c.key_no);
    EQ_STR(column(id, "queue"), arena_text(&r.a, c.spec.queue));
    EQ_STR(column(id, "coalesce(error, '-')"), c.error.data ? arena_text(&r.a, c.error) : "-");
    EQ_STR(column(id, "coalesce(node, '-')"), c.node.data ? arena_text(&r.a, c.node) : "-");
    static const char us[] = "coalesce(extract(epoch FROM %s) * 1000000, 0)::bigint";
    const struct {
        const char *name;
        int64_t us;
    } times[] = {
        { "created_at", c.created_us },    { "run_at", c.run_at_us },
        { "claimed_at", c.claimed_us },    { "started_at", c.started_us },
        { "finished_at", c.finished_us },  { "expires_at", c.expires_us },
        { "keep_until", c.keep_until_us },
    };
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        char what[100];
        snprintf(what, sizeof what, us, times[i].name);
        EQ_INT(strtoll(column(id, what), NULL, 10), times[i].us);
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

TEST(every_state_has_its_word)
{
    static const char *const ids[] = { "ready",   "later",   "held",   "first",  "behind",
                                       "line",    "retry",   "done",   "failed", "dead",
                                       "gone",    "expired", "redone", "block",  "cancelled",
                                       "delayed", "worker" };
    pgf_open(&r, NULL);
    ended("done", "", END_RESULT);
    ended("failed", "", END_REFUSE);
    ended("dead", ", max_attempts => 2, backoff => '{\"base\": 0, \"jitter\": 0}'", END_ERROR);
    pgf_finish(&r, pgf_claim(&r, 1).token, "dead", END_ERROR);
    ended("redone", ", expires_in => '1 h'", END_REFUSE);
    by_id(OP_RETRY, "redone");
    pgf_finish(&r, pgf_claim(&r, 1).token, "redone", END_RESULT);
    ended("gone", "", END_RESULT);
    ended("block", ", key => 'b', max_attempts => 1, on_dead => 'block'", END_ERROR);
    ended("retry", ", backoff => '{\"base\": 3600}', priority => 5, queue => 'slow'", END_ERROR);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'expired', expires_in => '0')");
    pgf_claim(&r, 1);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'cancelled', delay => '1 h')");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'delayed', key => 'k', delay => '1 h')");
    pgf_sweep(&r);
    by_id(OP_CANCEL, "cancelled");
    running("held", ", tags => '{\"a\": \"1\"}', input => '{\"n\": 1}'");
    /* A run of one key in one lease: only its first call has started. */
    sql_run(r.db, "SELECT pawl.submit('t', id => 'first', key => 'k');"
                  "SELECT pawl.submit('t', id => 'behind', key => 'k');"
                  "SELECT pawl.submit('t', id => 'worker')");
    pgf_sweep(&r);
    EQ_INT(pgf_claim(&r, 10).n, 3);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'line', key => 'k');"
                  "SELECT pawl.submit('t', id => 'later', delay => '1 h');"
                  "SELECT pawl.submit('t', id => 'ready', priority => 3)");
    pgf_sweep(&r);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'inbox')");
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        agrees(ids[i]);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(status || ' ' || n, ', ' ORDER BY status) FROM "
                         "(SELECT status, count(*) AS n FROM pawl.calls GROUP BY status) t"),
           "cancelled 1, completed 3, dead_letter 1, expired 1, failed 2, pending 7, processing 3");
    EQ_STR(status("inbox"), "pending");
    EQ_STR(column("held", "tags ->> 'a'"), "1");
    EQ_STR(column("held", "input::json ->> 'n'"), "1");
    EQ_STR(column("done", "result"), "{\"ok\": true}");
    EQ_STR(column("held", "node"), "node-1");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls WHERE node = 'node-1' AND "
                           "status = 'processing'"),
           3);
    pgf_close(&r);
}

/* A claim of up to max calls, of which `width` run at the same time. */
static struct claim claim_wide(int max, int width)
{
    struct op op = { .kind = OP_CLAIM,
                     .claim = { .token = token_make(&world_real),
                                .node = BYTES("node-1"),
                                .boot = BYTES("boot-1"),
                                .max = max,
                                .run_max = 8,
                                .width = width,
                                .lease_us = 60 * SEC_US } };
    pgf_do(&r, &op);
    return op.claim;
}

/* The ids of a status, in order. */
static const char *ids_of(const char *status)
{
    return sql_ask(r.db,
                   "SELECT string_agg(id, ' ' ORDER BY seq) FROM pawl.calls WHERE status = '%s'",
                   status);
}

TEST(what_has_not_begun_is_pending)
{
    static const char *const ids[] = { "a", "b", "c", "k1", "k2", "k3", "high", "x", "y" };
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'a'); SELECT pawl.submit('t', id => 'b');"
                  "SELECT pawl.submit('t', id => 'k1', key => 'k');"
                  "SELECT pawl.submit('t', id => 'k2', key => 'k');"
                  "SELECT pawl.submit('t', id => 'c');"
                  "SELECT pawl.submit('t', id => 'high', priority => 9)");
    pgf_sweep(&r);
    struct claim q = claim_wide(10, 2);
    EQ_INT(q.n, 6);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'x'); SELECT pawl.submit('t', id => 'y');"
                  "SELECT pawl.submit('t', id => 'k3', key => 'k')");
    pgf_sweep(&r);
    EQ_INT(claim_wide(10, 0).n, 2); /* another lease, perhaps of an older program */
    EQ_STR(ids_of("processing"), "a high x y");
    EQ_STR(ids_of("pending"), "b k1 k2 c k3");
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        agrees(ids[i]);
    EQ_STR(column("b", "node"), "node-1"); /* of its lease */
    pgf_finish(&r, q.token, "high", END_RESULT);
    EQ_STR(ids_of("processing"), "a b x y");
    pgf_finish(&r, q.token, "a", END_RESULT);
    EQ_STR(ids_of("processing"), "b k1 x y");
    pgf_finish(&r, q.token, "k1", END_RESULT);
    EQ_STR(ids_of("processing"), "b k2 x y");
    pgf_finish(&r, q.token, "c", END_RESULT);
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        agrees(ids[i]);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(status, ' ' ORDER BY seq) FROM pawl.own_calls"),
           "completed processing completed processing completed completed processing processing "
           "pending");
    pgf_close(&r);
}

/* Calls of a run are in the order of their key; a number that was assigned earlier does not matter.
 */
TEST(a_run_is_shown_in_the_order_of_its_line)
{
    static const char *const ids[] = { "a", "b", "c" };
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'a', key => 'k');"
                  "SELECT pawl.submit('t', id => 'b', key => 'k');"
                  "SELECT pawl.submit('t', id => 'c', key => 'k')");
    pgf_sweep(&r);
    pgf_finish(&r, pgf_claim(&r, 1).token, "a", END_RELEASE);
    struct op op = { .kind = OP_MOVE,
                     .by_id = { .id = BYTES("a"),
                                .priority = PAWL_SAME,
                                .run_at_us = world_now(&world_real) + 3600 * SEC_US } };
    pgf_do(&r, &op); /* removed from the key's queue, and then added again, at its end */
    op.by_id.run_at_us = 1;
    pgf_do(&r, &op);
    struct claim q = pgf_claim(&r, 10);
    EQ_INT(q.n, 3);
    TRUE(bytes_eq(q.calls[2].spec.id, BYTES("a")));
    EQ_INT(q.calls[2].key_no, 1);
    EQ_STR(ids_of("processing"), "b");
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        agrees(ids[i]);
    pgf_close(&r);
}

/* A lease of an older program that stores no width. */
TEST(a_lease_without_a_width_is_as_it_was)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "INSERT INTO pawl.lease (token, node, boot, claimed_at, rev, low, high, held) "
                  "VALUES ('\\x01', 'n', 'b', 1, 1, 1, 1, '\\x0100')");
    EQ_INT(sql_count(r.db, "SELECT width FROM pawl.lease"), 0);
    pgf_close(&r);
}

/* The position of a leased call in its key's queue is not stored where its number gives it. */
static int64_t place_of(const struct held *h)
{
    return h->pos == h->seq ? h->key_no * 1024 : h->pos;
}

/* SQL reads from a lease what was packed, whatever it holds. */
TEST(a_lease_reads_the_same_in_sql)
{
    pgf_open(&r, NULL);
    for (unsigned round = 1; round <= 40; round++) {
        struct held v[60] = { 0 };
        struct bytes packed;
        size_t n = 1 + round % COUNT_OF(v);
        unsigned dice = round * 2654435761u;
        int64_t seq = 0;
        for (size_t i = 0; i < n; i++) {
            dice = dice * 1664525u + 1013904223u;
            unsigned d = dice >> 8;
            seq += d % 3 ? 1 : 1 + d % 100000;
            v[i] = (struct held){ .seq = seq,
                                  .run_at_us = INT64_C(1700000000000000) + d % 7 * 1000003,
                                  .lane = 1 + (int)(d % 4 ? 0 : d % 300),
                                  .priority = d % 5 ? 0 : (int)(d % 2001) - 1000 };
            if (d % 6 == 0)
                v[i].counts = (struct attempt_counts){ (int)(d % 200), (int)(d % 3), (int)(d % 2) };
            if (d % 2) {
                v[i].key = 1 + (int)(i % 3);
                v[i].key_no = 1000 - (int64_t)i; /* in another order than the seqs */
                v[i].pos = d % 4 == 1 ? seq : seq + 77;
            }
        }
        OK(lease_pack(&r.a, v, n, round % 2 ? BYTES("2.0-rc") : BYTES_NONE, &packed, &r.err),
           &r.err);
        char hex[4096] = "";
        for (size_t i = 0; i < packed.len; i++)
            snprintf(hex + 2 * i, 3, "%02x", (unsigned char)packed.data[i]);
        EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.held('\\x%s')", hex), n);
        for (size_t i = 0; i < n; i++) {
            const struct held *before = NULL;
            for (size_t k = 0; v[i].key && k < n; k++)
                if (v[k].key == v[i].key && place_of(&v[k]) < place_of(&v[i]) &&
                    (!before || place_of(&v[k]) > place_of(before)))
                    before = &v[k];
            const char *want =
                arena_printf(&r.a, "(%lld,%lld,%d,%d,%d,%d,%d,%s,%s)", (long long)v[i].seq,
                             (long long)v[i].run_at_us, v[i].lane, v[i].priority,
                             v[i].counts.attempts, v[i].counts.lost, v[i].counts.redrives,
                             v[i].key_no ? arena_printf(&r.a, "%lld", (long long)v[i].key_no) : "",
                             before ? arena_printf(&r.a, "%lld", (long long)before->seq) : "");
            EQ_STR(sql_ask(r.db, "SELECT h FROM pawl.held('\\x%s') h WHERE seq = %lld", hex,
                           (long long)v[i].seq),
                   want);
        }
    }
    pgf_close(&r);
}

/* Queries for one status, or one id, do not read everything. */
TEST(a_question_reads_what_it_asks_for)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SET enable_seqscan = off");
    FALSE(strstr(sql_ask(r.db, "EXPLAIN (FORMAT json) SELECT count(*) FROM pawl.calls WHERE "
                               "status = 'processing'"),
                 "\"ready\"") != NULL);
    const char *plan = sql_ask(r.db, "EXPLAIN (FORMAT json) SELECT status FROM pawl.calls WHERE "
                                     "id = 'x'");
    HAS_STR(plan, "id_pkey");
    TRUE(strstr(plan, "Seq Scan\",\\n") == NULL);
    pgf_close(&r);
}

/* ---- Maintenance ----------------------------------------------------------------------------- */

TEST(cleanup_is_what_gc_does)
{
    struct call c;
    pgf_open(&r, NULL);
    ended("a", ", keep => '0', key => 'k', tags => '{\"x\": \"y\"}'", END_RESULT);
    ended("b", ", keep => '0', max_attempts => 2", END_ERROR); /* pending again */
    ended("c", "", END_RESULT);
    ended("stuck", ", keep => '0', key => 's', max_attempts => 1, on_dead => 'block'", END_ERROR);
    sql_run(r.db, "SELECT pawl.submit('t', id => 'two', keep => '0');"
                  "SELECT pawl.submit('t', id => 'more')");
    pgf_sweep(&r);
    struct token both = pgf_claim(&r, 2).token;
    pgf_finish(&r, both, "two", END_RESULT); /* its lease still exists */
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 2);
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 0); /* they are marked */
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_OK, NULL);
    struct gc g = pgf_gc(&r);
    EQ_INT(g.removed, 2);
    FALSE(g.more);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.removal"), 0);
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_GONE, NULL);
    EQ_STATUS(pgf_get(&r, "b", &c), PAWL_OK, NULL);
    EQ_STATUS(pgf_get(&r, "c", &c), PAWL_OK, NULL);
    EQ_STATUS(pgf_get(&r, "stuck", &c), PAWL_OK, NULL);
    EQ_INT(sql_count(r.db,
                     "SELECT (SELECT count(*) FROM pawl.tag) + (SELECT count(*) FROM pawl.key "
                     "WHERE key = 'k')"),
           0);
    pgf_finish(&r, both, "more", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 0);
    EQ_INT(sql_count(r.db, "SELECT (forget_at - finished_at) / 1000000 FROM pawl.gone "
                           "WHERE id = 'a'"),
           30 * 86400); /* as the function says, not as the node's setting does */
    /* A repeated id is refused for as long as configured, then it is new. */
    struct call_spec s = pgf_plan("a");
    s.key = BYTES("k");
    EQ_STATUS(pgf_accept(&r, &s).status, PAWL_GONE, NULL);
    sql_run(r.db, "UPDATE pawl.gone SET forget_at = 0 WHERE id = 'a'");
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 0);
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(pgf_get(&r, "two", &c), PAWL_GONE, NULL);
    EQ_STATUS(pgf_accept(&r, &s).status, PAWL_OK, NULL);
    pgf_close(&r);
}

TEST(cleanup_goes_through_many)
{
    pgf_open(&r, NULL);
    sql_run(r.db, "SELECT pawl.submit('t', keep => '0') FROM generate_series(1, 2500)");
    for (struct claim q; (q = pgf_claim(&r, 1000)).n;) {
        struct finish_item *v = arena_zalloc(&r.a, q.n, sizeof *v);
        for (size_t i = 0; i < q.n; i++)
            v[i] = (struct finish_item){ .seq = q.calls[i].seq, .how = END_RESULT };
        struct op op = { .kind = OP_FINISH, .finish = { .token = q.token, .v = v, .n = q.n } };
        pgf_do(&r, &op);
    }
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired('0')"), 2500);
    struct op op = { .kind = OP_GC, .gc.max = 1000 };
    for (int i = 0; i < 3; i++) {
        pgf_do(&r, &op);
        EQ_INT(op.gc.removed, i < 2 ? 1000 : 500);
        EQ_INT(op.gc.more, i < 2 || op.gc.forgotten == 1000);
    }
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.calls"), 0);
    sql_run(r.db, "SELECT pawl.cleanup_expired()");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.id"), 0); /* not remembered at all */
    pgf_close(&r);
}

TEST(a_mark_that_was_damaged_is_broken)
{
    struct call c;
    pgf_open(&r, NULL);
    ended("a", "", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('0')"), 1);
    sql_run(r.db, "UPDATE pawl.removal SET remember = -remember");
    struct op op = { .kind = OP_GC, .gc.max = 10, .a = &r.a };
    EQ_STATUS(store_commit(r.s, &(struct op *){ &op }, 1), PAWL_BROKEN, &op.err);
    HAS_STR(op.err.text, "is to be remembered for -");
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_OK, NULL);
    sql_run(r.db, "UPDATE pawl.removal SET remember = -remember");
    EQ_INT(pgf_gc(&r).removed, 1);
    pgf_close(&r);
}

/* A mark means one end of the call. */
TEST(a_call_that_is_retried_is_not_removed)
{
    struct call c;
    pgf_open(&r, NULL);
    ended("a", "", END_REFUSE);
    ended("b", "", END_REFUSE);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('0')"), 2);
    by_id(OP_RETRY, "a");
    by_id(OP_RETRY, "b");
    struct token again = pgf_claim(&r, 1).token;
    pgf_finish(&r, again, "a", END_RESULT);
    EQ_INT(pgf_gc(&r).removed, 0);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.removal"), 0);
    EQ_STATUS(pgf_get(&r, "a", &c), PAWL_OK, NULL);
    EQ_INT(c.state, PAWL_COMPLETED);
    EQ_STR(status("b"), "pending");
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM pawl.archive"), 0);
    pgf_close(&r);
}

/* The retention of a marked call ends before gc comes: it is archived nevertheless. */
TEST(what_is_marked_is_archived_first)
{
    pgf_open(&r, NULL);
    ended("a", ", keep => '0'", END_RESULT);
    ended("b", ", keep => '0'", END_RESULT);
    sql_run(r.db, "UPDATE pawl.outcome o SET finished_at = o.finished_at - 3600000000 "
                  "FROM pawl.call c WHERE c.seq = o.seq AND c.id = 'a'");
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 2);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('30 minutes')"), 1);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('30 minutes')"), 0);
    EQ_INT(sql_count(r.db, "SELECT pawl.cleanup_expired()"), 0);
    EQ_INT(pgf_gc(&r).removed, 2);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id, ',') FROM pawl.archive"), "a");
    pgf_close(&r);
}

TEST(stuck_calls_are_taken_back)
{
    struct finish_item item = { .id = BYTES("a"), .how = END_RESULT };
    pgf_open(&r, NULL);
    struct token old = running("a", ", key => 'k'");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'b'); SELECT pawl.submit('t', id => 'c')");
    pgf_sweep(&r);
    struct token pair = pgf_claim(&r, 2).token;
    pgf_finish(&r, pair, "b", END_RESULT);
    EQ_INT(sql_count(r.db, "SELECT pawl.requeue_stuck('10 minutes')"), 0);
    EQ_STR(sql_fails(r.db, "SELECT pawl.requeue_stuck(NULL)"), "22023");
    EQ_STR(sql_fails(r.db, "SELECT pawl.requeue_stuck('-1 s')"), "22023");
    sql_run(r.db, "UPDATE pawl.lease SET claimed_at = claimed_at - 600000001");
    struct token young = running("d", "");
    EQ_INT(sql_count(r.db, "SELECT pawl.requeue_stuck('10 minutes')"), 2);
    EQ_INT(sql_count(r.db, "SELECT pawl.requeue_stuck('10 minutes')"), 0);
    struct op late = { .kind = OP_FINISH, .finish = { .token = old, .v = &item, .n = 1 } };
    struct op *v = &late;
    late.a = &r.a;
    EQ_STATUS(store_commit(r.s, &v, 1), PAWL_OK, &late.err);
    EQ_STATUS(late.status, PAWL_LOST_LEASE, &late.err);
    EQ_INT(pgf_sweep(&r).reclaimed, 2);
    EQ_STR(status("a"), "pending");
    EQ_STR(column("a", "lost"), "1");
    EQ_STR(status("b"), "completed");
    EQ_STR(status("c"), "pending");
    pgf_finish(&r, young, "d", END_RESULT);
    pgf_close(&r);
}

TEST(an_archive_takes_what_ended_before)
{
    struct call c;
    pgf_open(&r, NULL);
    ended("old", ", key => 'k', tags => '{\"x\": \"y\"}', input => '{\"n\": 1}', caller => 'me'",
          END_RESULT);
    ended("bytes", ", input_bytes => '\\x00'", END_REFUSE);
    sql_run(r.db, "UPDATE pawl.outcome SET finished_at = finished_at - 3600000000");
    ended("young", "", END_RESULT);
    running("runs", "");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'waits')");
    pgf_sweep(&r);
    OK(pgf_get(&r, "old", &c), NULL);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('1 hour')"), 2);
    EQ_INT(sql_count(r.db, "SELECT pawl.archive(older_than => '1 hour')"), 0);
    EQ_STR(sql_fails(r.db, "SELECT pawl.archive(NULL)"), "22023");
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id, ',' ORDER BY seq) FROM pawl.calls"),
           "old,bytes,young,runs,waits");
    EQ_INT(pgf_gc(&r).removed, 2);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id, ',' ORDER BY seq) FROM pawl.calls"),
           "young,runs,waits");
    EQ_STR(sql_ask(r.db, "SELECT concat_ws(' ', status, queue, type, method, key, key_no, input, "
                         "result, attempts, caller, client, tags) FROM pawl.archive "
                         "WHERE id = 'old'"),
           "completed default t run k 1 {\"n\": 1} {\"ok\": true} 0 me pawl {\"x\":\"y\"}");
    EQ_STR(sql_ask(r.db, "SELECT concat_ws(' ', status, input_bytes, error, node) "
                         "FROM pawl.archive WHERE id = 'bytes'"),
           "failed \\x00 it broke node-1");
    EQ_INT(sql_count(r.db, "SELECT (extract(epoch FROM finished_at) * 1000000)::bigint "
                           "FROM pawl.archive WHERE id = 'old'"),
           c.finished_us);
    struct call_spec s = pgf_plan("old");
    EQ_STATUS(pgf_accept(&r, &s).status, PAWL_CONFLICT, NULL);
    EQ_INT(sql_count(r.db, "SELECT forget_at FROM pawl.gone WHERE id = 'old'"),
           c.keep_until_us + INT64_C(30) * 86400 * SEC_US);
    pgf_close(&r);
}

/* What the program archives has the same columns. */
TEST(both_ways_of_archiving_agree)
{
    struct op op = { .kind = OP_GC, .gc = { .max = 10, .archive = true } };
    pgf_open(&r, NULL);
    ended("a", ", input => '[1]'", END_RESULT);
    ended("b", ", input => '[1]'", END_RESULT);
    OK(store_now(r.s, &op.gc.ended_before_us, &r.err), &r.err);
    sql_run(r.db,
            "UPDATE pawl.outcome o SET finished_at = o.finished_at + 100000000 FROM pawl.call c "
            "WHERE c.seq = o.seq AND c.id = 'b'");
    pgf_do(&r, &op);
    EQ_INT(op.gc.removed, 1);
    sql_run(r.db, "UPDATE pawl.outcome SET finished_at = finished_at - 100000000");
    EQ_INT(sql_count(r.db, "SELECT pawl.archive('0')"), 1);
    EQ_INT(pgf_gc(&r).removed, 1);
    EQ_STR(sql_ask(r.db, "SELECT string_agg(id, ',' ORDER BY id) FROM pawl.archive"), "a,b");
    EQ_INT(sql_count(r.db, "SELECT count(DISTINCT to_jsonb(a) - '{seq,id,key_no,created_at,run_at,"
                           "started_at,finished_at,archived_at}'::text[]) FROM pawl.archive a"),
           1);
    pgf_close(&r);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static const char *role(const char *name)
{
    sql_run(r.db, "CREATE ROLE %s LOGIN", name);
    return name;
}

static void grant(const struct roles *roles)
{
    const char *text;
    struct store_conf conf = { .url = r.url, .schema = r.schema };
    OK(store_grants(&conf, roles, &r.a, &text, &r.err), &r.err);
    OK(store_grant(r.s, text, &r.err), &r.err);
    OK(store_grant(r.s, text, &r.err), &r.err); /* running it again does no harm */
}

TEST(an_application_submits_and_sees_its_own)
{
    pgf_open_alone(&r, NULL);
    struct roles roles = { .app = role("app") };
    const char *other = role("nobody");
    grant(&roles);
    PGconn *app = pgf_connect(&r, roles.app), *nobody = pgf_connect(&r, other);
    EQ_STR(sql_fails(nobody, "SELECT pawl.submit('t')"), "42501");
    sql_run(app, "SELECT pawl.submit('t', id => 'mine', tags => '{\"a\": \"b\"}', strict => true, "
                 "notify => true)");
    sql_run(r.db, "SELECT pawl.submit('t', id => 'foreign')");
    pgf_sweep(&r);
    EQ_STR(sql_ask(app, "SELECT string_agg(id || ' ' || status, ',') FROM pawl.own_calls"),
           "mine pending");
    EQ_INT(pgf_claim(&r, 1).n, 1);
    EQ_STR(sql_ask(app, "SELECT string_agg(id || ' ' || status, ',') FROM pawl.own_calls"),
           "mine processing");
    static const char *const forbidden[] = {
        "SELECT 1 FROM pawl.calls",
        "SELECT 1 FROM pawl.inbox",
        "SELECT 1 FROM pawl.call",
        "SELECT 1 FROM pawl.leased",
        "SELECT 1 FROM pawl.inbox_conflicts",
        ("INSERT INTO pawl.inbox (id, type, method, queue, form, priority, created_at) "
         "VALUES ('x', 't', 'run', 'default', 0, 0, 0)"),
        "SELECT pawl.cleanup_expired()",
        "SELECT pawl.requeue_stuck('1 s')",
        "SELECT pawl.archive('1 s')",
        "SELECT 1 FROM pawl.removal",
        "SELECT pawl.archive_copy('{1}', 0)",
        "SELECT nextval('pawl.seq')",
        "CREATE TABLE pawl.own (x int)",
    };
    for (size_t i = 0; i < COUNT_OF(forbidden); i++)
        EQ_STR(sql_fails(app, "%s", forbidden[i]), "42501");
    PQfinish(app);
    PQfinish(nobody);
    pgf_close(&r);
}

/* An application cannot make the function use its own tables and operators. */
TEST(a_search_path_changes_nothing)
{
    pgf_open_alone(&r, "Odd");
    struct roles roles = { .app = role("app") };
    grant(&roles);
    sql_run(r.db, "CREATE SCHEMA mine AUTHORIZATION %s", roles.app);
    PGconn *app = pgf_connect(&r, roles.app);
    sql_run(app, "CREATE FUNCTION mine.octet_length(text) RETURNS integer LANGUAGE sql AS "
                 "$$ SELECT 1000 $$; SET search_path = mine, pg_catalog");
    sql_run(app, "CREATE TEMP TABLE inbox (id text)");
    sql_run(app, "SELECT \"Odd\".submit('t', id => 'x')");
    EQ_INT(sql_count(app, "SELECT count(*) FROM inbox"), 0);
    EQ_INT(pgf_claim(&r, 1).n, 1);
    PQfinish(app);
    pgf_close(&r);
}

TEST(a_monitor_sees_no_contents)
{
    pgf_open_alone(&r, NULL);
    struct roles roles = { .monitor = role("monitor") };
    grant(&roles);
    ended("a", ", input => '1'", END_RESULT);
    running("b", "");
    sql_run(r.db, "SELECT pawl.submit('u', id => 'a'); SELECT pawl.submit('t', id => 'c')");
    pgf_sweep(&r);
    PGconn *m = pgf_connect(&r, roles.monitor);
    EQ_STR(sql_ask(m, "SELECT string_agg(id || ' ' || status, ',' ORDER BY id) FROM pawl.calls"),
           "a completed,b processing,c pending");
    EQ_STR(sql_ask(m, "SELECT node FROM pawl.calls WHERE status = 'processing'"), "node-1");
    EQ_STR(sql_ask(m, "SELECT code FROM pawl.inbox_conflicts"), "CONFLICT");
    static const char *const forbidden[] = {
        "SELECT input FROM pawl.calls", "SELECT result FROM pawl.calls",
        "SELECT error FROM pawl.calls", "SELECT tags FROM pawl.calls",
        "SELECT * FROM pawl.calls",     "SELECT input FROM pawl.inbox_conflicts",
        "SELECT 1 FROM pawl.outcome",   "SELECT pawl.submit('t')",
        "SELECT 1 FROM pawl.object",    "SELECT 1 FROM pawl.archive",
    };
    for (size_t i = 0; i < COUNT_OF(forbidden); i++)
        EQ_STR(sql_fails(m, "%s", forbidden[i]), "42501");
    PQfinish(m);
    pgf_close(&r);
}

TEST(an_admin_may_run_a_node)
{
    struct pawl_err err;
    struct store *s = NULL;
    pgf_open_alone(&r, NULL);
    struct roles roles = { .admin = role("admin") };
    grant(&roles);
    PGconn *db = pgf_connect(&r, roles.admin);
    sql_run(db, "SELECT pawl.submit('t', id => 'a'); SELECT pawl.cleanup_expired(); SELECT "
                "pawl.requeue_stuck('1 s'); SELECT pawl.archive('1 s'); SELECT * FROM pawl.calls; "
                "SELECT * FROM pawl.inbox_conflicts");
    char *url = arena_printf(&r.a, "%s&user=%s", r.url, roles.admin);
    struct store_conf conf = { .url = url, .retention_us = SEC_US, .remember_us = SEC_US };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, false, &err), &err);
    struct pg_fixture as = { .s = s };
    arena_init(&as.a, 1 << 20);
    struct claim q = pgf_claim(&as, 1);
    EQ_INT(q.n, 1);
    pgf_finish(&as, q.token, "a", END_RESULT);
    arena_release(&as.a);
    store_close(s);
    PQfinish(db);
    pgf_close(&r);
}

/* ---- The page -------------------------------------------------------------------------------- */

/* Every ```sql block of doc/sql.md runs as it is printed, in order, each as one script. */
TEST(the_page_runs_as_printed)
{
    char line[1000], text[32 << 10] = "";
    size_t len = 0;
    int blocks = 0;
    bool inside = false;
    pgf_open_alone(&r, NULL);
    FILE *f = fopen(PAWL_SOURCE_DIR "/doc/sql.md", "r");
    TRUE(f != NULL);
    while (fgets(line, sizeof line, f)) {
        if (!inside) {
            inside = strcmp(line, "```sql\n") == 0;
        } else if (strcmp(line, "```\n") == 0) {
            sql_run(r.db, "%s", text);
            pgf_sweep(&r);
            blocks++;
            inside = false;
            text[len = 0] = 0;
        } else {
            size_t more = strlen(line);
            TRUE(len + more < sizeof text);
            memcpy(text + len, line, more + 1);
            len += more;
        }
    }
    fclose(f);
    FALSE(inside);
    GE_INT(blocks, 8);
    EQ_INT(sql_count(r.db, "SELECT count(*) FROM orders o JOIN pawl.calls c ON c.id = "
                           "'order-' || o.id || '-mail'"),
           1);
    pgf_close(&r);
}
