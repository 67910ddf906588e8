/*
 * damage.c - rows that were damaged from outside are reported as BROKEN, and an internal error in
 * memory ends the process before it is stored. On the engines that run on the ledger
 * (store/ledger/check.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hook.h"
#include "conform.h"
#include "store/ledger/cache.h"

static void on_the_ledger(const struct conform_fixture *b)
{
    if (!(store_traits(b->s) & STORE_DRIVEN))
        skip("the ledger's own");
}

CASE(a_damaged_row_is_broken_and_nothing_ends)
{
    on_the_ledger(b);
    line_up(b, "k", "ab");
    accept_one(b, "free");
    engine_rows(b->engine->url, "UPDATE pawl_key SET waiting = -5");
    struct op op = by_id_op(OP_CANCEL, "b");
    op.a = &b->a;
    EQ_STATUS(store_commit(b->s, &(struct op *){ &op }, 1), PAWL_BROKEN, &op.err);
    HAS_STR(op.err.text, "key \"k\": its count of waiting or held calls is below 0");
    engine_rows(b->engine->url, "UPDATE pawl_key SET waiting = 2");
    OK(by_id(b, OP_CANCEL, "b"), NULL);
    engine_rows(b->engine->url, "UPDATE pawl_ready SET lost = -1");
    op = by_id_op(OP_CANCEL, "free");
    op.a = &b->a;
    EQ_STATUS(store_commit(b->s, &(struct op *){ &op }, 1), PAWL_BROKEN, &op.err);
    HAS_STR(op.err.text, "its attempt counts are below 0");
    engine_rows(b->engine->url, "UPDATE pawl_ready SET lost = 0");
    OK(by_id(b, OP_CANCEL, "free"), NULL);
}

/* Not BUSY: a retry would find the same. */
CASE(a_key_that_counts_too_few_is_broken)
{
    on_the_ledger(b);
    line_up(b, "k", "ab");
    engine_rows(b->engine->url, "UPDATE pawl_key SET waiting = 1");
    struct op op = by_id_op(OP_CANCEL, "b");
    op.a = &b->a;
    EQ_STATUS(store_commit(b->s, &(struct op *){ &op }, 1), PAWL_BROKEN, &op.err);
    HAS_STR(op.err.text, "key \"k\": more calls wait than it counts");
    engine_rows(b->engine->url, "UPDATE pawl_key SET waiting = 2");
    OK(by_id(b, OP_CANCEL, "b"), NULL);
}

/* What one statement broke, and what the reader says about it; `mend` restores the row. */
static void broken_by(struct conform_fixture *b, const char *damage, const char *mend,
                      enum pawl_status (*read)(struct conform_fixture *, struct pawl_err *),
                      const char *says)
{
    struct pawl_err err = { 0 };
    OK(read(b, &err), &err);
    engine_rows(b->engine->url, damage);
    EQ_STATUS(read(b, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, says);
    engine_rows(b->engine->url, mend);
    OK(read(b, &err), &err);
}

static enum pawl_status read_call(struct conform_fixture *b, struct pawl_err *err)
{
    struct bytes id = BYTES("b");
    struct get g = { .ids = &id, .n = 1, .with = WITH_INPUT };
    return store_get(b->s, &b->a, &g, err);
}

static enum pawl_status read_object(struct conform_fixture *b, struct pawl_err *err)
{
    struct object o;
    return store_object(b->s, &b->a, BYTES("t"), BYTES("k"), &o, err);
}

static enum pawl_status read_nodes(struct conform_fixture *b, struct pawl_err *err)
{
    struct node_rows rows = { 0 };
    return store_nodes(b->s, &b->a, &rows, err);
}

static enum pawl_status read_leaders(struct conform_fixture *b, struct pawl_err *err)
{
    struct leader_rows rows = { 0 };
    return store_leaders(b->s, &b->a, &rows, err);
}

static enum pawl_status read_keys(struct conform_fixture *b, struct pawl_err *err)
{
    struct key_rows rows = { 0 };
    struct key_query q = { .limit = 10 };
    return store_keys(b->s, &b->a, &q, &rows, err);
}

CASE(a_reader_reports_a_damaged_call)
{
    on_the_ledger(b);
    line_up(b, "k", "ab");
    broken_by(b, "UPDATE pawl_call SET created_at = -created_at",
              "UPDATE pawl_call SET created_at = -created_at", read_call,
              "its row has no id, lane or time");
    broken_by(b, "UPDATE pawl_call SET form = form + 7", "UPDATE pawl_call SET form = form - 7",
              read_call, "the input of a call has form");
    broken_by(b, "UPDATE pawl_id SET seq = -seq", "UPDATE pawl_id SET seq = -seq", read_call,
              "an id has number -");
}

/* It is left alone: it keeps nothing else from being claimed, counted or collected. */
CASE(a_call_whose_lane_is_missing_is_broken_alone)
{
    on_the_ledger(b);
    struct call_spec s = plan("lost");
    s.queue = BYTES("q");
    accept_spec(b, s);
    accept_one(b, "good");
    engine_rows(b->engine->url, "DELETE FROM pawl_lane WHERE queue = 'q'");
    store_close(b->s); /* what it knew of lanes was true when it read it */
    b->s = conform_fixture_handle(b);
    struct pawl_err err = { 0 };
    struct bytes id = BYTES("lost");
    struct get g = { .ids = &id, .n = 1 };
    EQ_STATUS(store_get(b->s, &b->a, &g, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "a call names lane 1, which does not exist");
    EQ_STR(claimable(b, want(b, 10)), "good");
    EQ_INT(queue_of(b, "default").pending, 1);
    gc(b);
    sweep(b);
    s = plan("next");
    s.queue = BYTES("q");
    accept_spec(b, s); /* its number is not given again */
    EQ_INT(engine_int(b->engine->url, "SELECT max(lane) FROM pawl_lane"), 3);
    EQ_STR(claimable(b, want(b, 10)), "good next");
}

CASE(a_reader_reports_a_damaged_key_or_object)
{
    on_the_ledger(b);
    object_put(b, "t", "k", "1");
    line_up(b, "k", "ab");
    broken_by(b, "UPDATE pawl_key SET next_no = -next_no", "UPDATE pawl_key SET next_no = -next_no",
              read_keys, "its next number is not above 0");
    broken_by(b, "UPDATE pawl_object SET version = -version",
              "UPDATE pawl_object SET version = -version", read_object,
              "its version is not above 0");
}

CASE(a_reader_reports_a_damaged_node_or_leader)
{
    on_the_ledger(b);
    struct op op = node_op(OP_JOIN, "n", "1");
    op.a = &b->a;
    OK(store_commit(b->s, &(struct op *){ &op }, 1), &op.err);
    broken_by(b, "UPDATE pawl_node SET beats = -1", "UPDATE pawl_node SET beats = 0", read_nodes,
              "node \"n\" has no boot, or heartbeats below 0");
    broken_by(b, "UPDATE pawl_node SET state = 9", "UPDATE pawl_node SET state = 0", read_nodes,
              "node \"n\" has an unknown state");
    broken_by(b, "UPDATE pawl_leader SET epoch = -1", "UPDATE pawl_leader SET epoch = 0",
              read_leaders, "its epoch is below 0");
    broken_by(b, "UPDATE pawl_leader SET until = 5", "UPDATE pawl_leader SET until = 0",
              read_leaders, "it has a lease and no leader");
}

static enum pawl_status read_queues(struct conform_fixture *b, struct pawl_err *err)
{
    struct queue_rows rows = { 0 };
    return store_queues(b->s, &b->a, &rows, err);
}

CASE(a_reader_reports_a_call_that_another_row_contradicts)
{
    on_the_ledger(b);
    line_up(b, "k", "abc");
    broken_by(b, "UPDATE pawl_call SET id = REPLACE(id, 'b', 'x')",
              "UPDATE pawl_call SET id = REPLACE(id, 'x', 'b')", read_call,
              "id \"b\": its row names call ");
    broken_by(b, "UPDATE pawl_key SET waiting = 1", "UPDATE pawl_key SET waiting = 3", read_call,
              "key \"k\": more calls wait than it counts");
    broken_by(b, "UPDATE pawl_ready SET track = -track", "UPDATE pawl_ready SET track = -track",
              read_queues, "a row of ready has track -");
    claim_n(b, 1);
    broken_by(b, "UPDATE pawl_key SET head = head + 1000000",
              "UPDATE pawl_key SET head = head - 1000000", read_call,
              " is neither pending nor held nor ended");
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* Commit the operation alone. */
static enum pawl_status apply(struct conform_fixture *b, struct op op, struct pawl_err *err)
{
    op.a = &b->a;
    enum pawl_status st = store_commit(b->s, &(struct op *){ &op }, 1);
    *err = op.err;
    return st;
}

/* The operation is BROKEN after the damage, and done after the row is restored. */
static void broken_until(struct conform_fixture *b, const char *damage, const char *mend,
                         struct op op, const char *says)
{
    struct pawl_err err = { 0 };
    engine_rows(b->engine->url, damage);
    EQ_STATUS(apply(b, op, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, says);
    engine_rows(b->engine->url, mend);
    OK(apply(b, op, &err), &err);
}

CASE(a_claim_reports_a_damaged_row)
{
    on_the_ledger(b);
    accept_one(b, "free");
    broken_until(b, "UPDATE pawl_ready SET track = -track", "UPDATE pawl_ready SET track = -track",
                 claim_op(want(b, 1)), "a row of ready has track -");
    accept_one(b, "more");
    broken_until(b, "UPDATE pawl_ready SET run_at = -run_at",
                 "UPDATE pawl_ready SET run_at = -run_at", claim_op(want(b, 1)),
                 "a row of ready has time -");
    line_up(b, "k", "ab");
    broken_until(b, "UPDATE pawl_key SET head = head + 1000000",
                 "UPDATE pawl_key SET head = head - 1000000", claim_op(want(b, 1)),
                 " is ready and is not its first call");
    OK(node(b, OP_JOIN, "n2", "b1"), NULL);
    struct claim q = want(b, 1);
    q.node = BYTES("n2");
    accept_one(b, "third");
    broken_until(b, "UPDATE pawl_node SET beats = -1", "UPDATE pawl_node SET beats = 0",
                 claim_op(q), "node \"n2\" has no boot, or heartbeats below 0");
}

CASE(a_sweep_reports_a_damaged_row)
{
    on_the_ledger(b);
    struct call_spec s = plan("x");
    s.expires_in_us = SEC_US;
    accept_spec(b, s);
    advance(b, 2 * SEC_US);
    broken_until(b, "UPDATE pawl_expiry SET seq = -seq", "UPDATE pawl_expiry SET seq = -seq",
                 (struct op){ .kind = OP_SWEEP, .sweep = { .max = 10 } },
                 "a call past its expiry has number -");
    STATE_IS(b, "x", PAWL_EXPIRED);
}

CASE(a_retry_reports_a_damaged_token)
{
    struct pawl_err err = { 0 };
    on_the_ledger(b);
    ended_call(b, "a", PAWL_FAILED);
    engine_rows(b->engine->url, "UPDATE pawl_outcome SET token = SUBSTR(token, 1, 3)");
    EQ_STATUS(apply(b, by_id_op(OP_RETRY, "a"), &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "its outcome has a token of 3 bytes");
    engine_rows(b->engine->url, "UPDATE pawl_outcome SET token = NULL");
    OK(apply(b, by_id_op(OP_RETRY, "a"), &err), &err);
}

/* The engine reports the group. store_commit() would repeat each operation alone. */
static void broken_group(struct conform_fixture *b, struct op *one, struct op *two,
                         const char *says)
{
    struct pawl_err err = { 0 };
    one->a = two->a = &b->a;
    EQ_STATUS(b->s->ops->commit(b->s, (struct op *const[]){ one, two }, 2, &err), PAWL_BROKEN,
              &err);
    HAS_STR(err.text, says);
}

/* Both leases list the call of one of them. */
CASE(a_call_in_two_leases_is_broken)
{
    on_the_ledger(b);
    accept_n(b, "a", 2);
    struct token first = claim_n(b, 1), second = claim_n(b, 1);
    struct finish_item one_item = item("a0", END_RESULT), two_item = item("a1", END_RESULT);
    struct op one = finish_op(first, &one_item, 1), two = finish_op(second, &two_item, 1);
    engine_rows(b->engine->url, "UPDATE pawl_lease SET held = (SELECT held FROM (SELECT held FROM "
                                "pawl_lease ORDER BY low LIMIT 1) t)");
    broken_group(b, &one, &two, " is in two leases");
    STATE_IS(b, "a0", PAWL_PROCESSING);
}

/* With one writer the numbers are in a row, and what has read it is alone. */
CASE(a_number_that_is_given_twice_is_broken)
{
    on_the_ledger(b);
    if (!(store_traits(b->s) & STORE_ONE_WRITER))
        skip("a sequence gives the numbers");
    accept_n(b, "a", 2);
    struct op cancel = by_id_op(OP_CANCEL, "a0"), accept = accept_op(b, plan("x"));
    engine_rows(b->engine->url, "UPDATE pawl_meta SET value = 0 WHERE name = 'seq'");
    broken_group(b, &cancel, &accept, "the number 1 was given to two calls");
    engine_rows(b->engine->url, "UPDATE pawl_meta SET value = 2 WHERE name = 'seq'");
    TOGETHER(b, &cancel, &accept);
    STATE_IS(b, "x", PAWL_PENDING);
}

/* An outcome without its call: the archive does not end the process. */
CASE(an_outcome_without_its_call_is_not_archived)
{
    struct pawl_err err = { 0 };
    on_the_ledger(b);
    if (!(store_traits(b->s) & STORE_ONE_WRITER))
        skip("BUSY: another transaction may have removed the call");
    ended_call(b, "a", PAWL_FAILED);
    engine_rows(b->engine->url, "DELETE FROM pawl_call");
    struct op op = { .kind = OP_GC,
                     .gc = { .max = 10, .archive = true, .ended_before_us = now(b) + 1 } };
    EQ_STATUS(apply(b, op, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "an ended call");
}

/* ---- Mistakes in memory ---------------------------------------------------------------------- */

/* Between loading and deciding, the count of a call to be finished is increased by one. */
static void spoil(const char *name, void *store)
{
    struct ledger *c = led_of(store);
    if (strcmp(name, "ledger.loaded") == 0)
        c->tx->first_lease->left++;
}

CASE(a_mistake_in_memory_is_not_stored)
{
    on_the_ledger(b);
    if (!(b->s->ops->traits & STORE_DRIVEN))
        skip("the handle is a wrapper's");
    int status;
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), 2);
        b->s = conform_fixture_handle(b); /* a separate connection */
        hook_on_pause(spoil, b->s);
        finish(b, t, "a0", END_RESULT);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    STATE_IS(b, "a0", PAWL_PROCESSING);
    finish_ok(b, t, "a0", "1");
    finish_ok(b, t, "a1", "1");
}

/* A call joins the key's queue while the group has loaded the key, and the group's sweep ends it:
 * the key's counters do not count it yet, its key note does. */
struct joining {
    struct conform_fixture *b;
    struct store *other;
    struct op accept;
    int left; /* before this many operations of the group */
};

static void join(const char *name, void *ctx)
{
    struct joining *j = ctx;
    if (strcmp(name, "ledger.next_op") != 0 || --j->left)
        return;
    hook_on_pause(NULL, NULL);
    OK(store_commit(j->other, &(struct op *){ &j->accept }, 1), &j->accept.err);
    OK(j->accept.accept.out[0].status, NULL);
}

CASE(a_call_that_joined_after_its_key_was_locked_is_counted)
{
    on_the_ledger(b);
    if (store_traits(b->s) & STORE_ONE_WRITER)
        skip("nobody joins while another connection writes");
    object_put(b, "t", "k", "0"); /* the insert of a new key's row waits for a lock */
    struct call_spec s = keyed("x", "k");
    s.expires_at_us = now(b);
    struct joining j = {
        .b = b, .other = conform_fixture_handle(b), .accept = accept_op(b, s), .left = 2
    };
    j.accept.a = &b->a;
    struct op put = { .kind = OP_OBJECT,
                      .object = { .type = BYTES("t"),
                                  .key = BYTES("k"),
                                  .how = STATE_SET,
                                  .state = { PAWL_JSON, BYTES("1") } } };
    struct op sweeper = { .kind = OP_SWEEP, .sweep = { .max = 10 } };
    hook_on_pause(join, &j);
    TOGETHER(b, &put, &sweeper);
    OK(put.status, &put.err);
    EQ_INT(sweeper.sweep.expired, 1);
    STATE_IS(b, "x", PAWL_EXPIRED);
    EQ_STR(keys_shown(b, false), "");
    line_up(b, "k", "y");
    EQ_INT(key_of(b, "k").pending, 1);
    EQ_STR(claimable(b, want(b, 5)), "y");
    store_close(j.other);
}
