/*
 * nodes.c - the registry of nodes: joining, heartbeats, leaving, being declared dead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static struct node_row row(struct conform_fixture *b, const char *name)
{
    struct node_rows rows;
    OK(store_nodes(b->s, &b->a, &rows, &b->err), &b->err);
    for (size_t i = 0; i < rows.n; i++)
        if (bytes_eq(rows.v[i].node, bytes_of(name)))
            return rows.v[i];
    return (struct node_row){ 0 };
}

static enum pawl_status bury(struct conform_fixture *b, const char *name, const char *boot,
                             int64_t beats)
{
    struct op op = node_op(OP_BURY, name, boot);
    op.node.beats = beats;
    return one(b, &op);
}

CASE(a_node_joins_beats_and_leaves)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    struct node_row r = row(b, "n1");
    EQ_TEXT(r.boot, "b1");
    EQ_TEXT(r.host, "host");
    EQ_TEXT(r.version, "1.2.3");
    EQ_INT(r.slots, 4);
    EQ_INT(r.beats, 0);
    EQ_INT(r.started_us, now(b));
    EQ_INT(r.beat_us, now(b));
    FALSE(r.dead);
    advance(b, 7);
    struct op op = node_op(OP_BEAT, "n1", "b1");
    op.node.slots = 8;
    op.node.busy = 3;
    OK(one(b, &op), &op.err);
    r = row(b, "n1");
    EQ_INT(r.beats, 1);
    EQ_INT(r.busy, 3);
    EQ_INT(r.slots, 8);
    EQ_INT(r.beat_us, now(b));
    EQ_INT(r.started_us, now(b) - 7);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    ABSENT(row(b, "n1").node);
}

/* Each change of the version wakes every thread that waits for work. Where the version is Pawl's
 * own, heartbeats do not change it. */
CASE(a_beat_wakes_nobody)
{
    AUTO(store_end) struct store *other = conform_fixture_handle(b);
    int64_t before = 0, after = 0;
    if (strcmp(b->engine->name, "mariadb") != 0)
        skip("%s: the database's own count of commits is the version", b->engine->name);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    OK(store_version(other, &before, &b->err), &b->err);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
    EQ_INT(row(b, "n1").beats, 1);
    OK(store_version(other, &after, &b->err), &b->err);
    EQ_INT(after, before);
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    OK(store_version(other, &after, &b->err), &b->err);
    NE_INT(after, before);
}

/* A node's row has everything that an operator needs to know. */
CASE(a_node_says_what_it_is)
{
    struct op op = node_op(OP_JOIN, "n1", "b1");
    op.node.address = BYTES("127.0.0.1:7295");
    op.node.roles = BYTES("gateway\nworker");
    op.node.queues = BYTES("mail\nbulk");
    op.node.connections = 3;
    op.node.cpu_milli = 1500;
    op.node.memory = INT64_C(1) << 40;
    OK(one(b, &op), &op.err);
    struct node_row r = row(b, "n1");
    EQ_TEXT(r.address, "127.0.0.1:7295");
    EQ_TEXT(r.roles, "gateway\nworker");
    EQ_TEXT(r.queues, "mail\nbulk");
    EQ_INT(r.state, NODE_JOINING);
    EQ_INT(r.connections, 3);
    EQ_INT(r.cpu_milli, 1500);
    EQ_INT(r.memory, INT64_C(1) << 40);
    op = node_op(OP_BEAT, "n1", "b1");
    op.node.state = NODE_ACTIVE;
    op.node.connections = 4;
    op.node.cpu_milli = 5;
    op.node.memory = 6;
    OK(one(b, &op), &op.err);
    r = row(b, "n1");
    EQ_INT(r.state, NODE_ACTIVE);
    EQ_INT(r.connections, 4);
    EQ_INT(r.cpu_milli, 5);
    EQ_INT(r.memory, 6);
    EQ_TEXT(r.address, "127.0.0.1:7295"); /* a heartbeat does not change that */
    op.node.state = NODE_DRAINING;
    OK(one(b, &op), &op.err);
    EQ_INT(row(b, "n1").state, NODE_DRAINING);
}

CASE(what_a_node_does_not_say_is_absent)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    struct node_row r = row(b, "n1");
    ABSENT(r.address);
    ABSENT(r.roles);
    ABSENT(r.queues);
}

static enum pawl_status drain(struct conform_fixture *b, const char *name, bool on)
{
    struct op op = { .kind = OP_DRAIN, .node = { .node = bytes_of(name), .drain = on } };
    return one(b, &op);
}

CASE(a_request_to_drain_is_kept_until_it_is_taken_back)
{
    EQ_STATUS(drain(b, "n1", true), PAWL_NOT_FOUND, &b->op.err);
    EQ_STR(b->op.err.text, "no node \"n1\"");
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    OK(node(b, OP_JOIN, "n2", "b1"), NULL);
    FALSE(row(b, "n1").drain);
    OK(drain(b, "n1", true), NULL);
    OK(drain(b, "n1", true), NULL); /* the same request again has no effect */
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
    TRUE(row(b, "n1").drain);
    FALSE(row(b, "n2").drain);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL); /* also after a restart without leaving */
    TRUE(row(b, "n1").drain);
    OK(drain(b, "n1", false), NULL);
    FALSE(row(b, "n1").drain);
    OK(drain(b, "n1", true), NULL);
    OK(node(b, OP_LEAVE, "n1", "b2"), NULL);
    OK(node(b, OP_JOIN, "n1", "b3"), NULL);
    FALSE(row(b, "n1").drain); /* a node that left has no row */
}

CASE(nodes_come_by_name)
{
    OK(node(b, OP_JOIN, "b", "1"), NULL);
    OK(node(b, OP_JOIN, "a", "1"), NULL);
    OK(node(b, OP_JOIN, "B", "1"), NULL);
    struct node_rows rows;
    OK(store_nodes(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 3);
    EQ_TEXT(rows.v[0].node, "B");
    EQ_TEXT(rows.v[1].node, "a");
    EQ_TEXT(rows.v[2].node, "b");
}

CASE(a_beat_without_a_row_is_lost)
{
    EQ_STATUS(node(b, OP_BEAT, "n1", "b1"), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(node(b, OP_LEAVE, "n1", "b1"), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(bury(b, "n1", "b1", 0), PAWL_STATE, NULL);
}

CASE(a_new_boot_takes_the_name)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
    advance(b, 5);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(row(b, "n1").beats, 0);
    EQ_INT(row(b, "n1").started_us, now(b));
    EQ_STATUS(node(b, OP_BEAT, "n1", "b1"), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(node(b, OP_LEAVE, "n1", "b1"), PAWL_LOST_LEASE, NULL);
    EQ_INT(row(b, "n1").beats, 0);
    OK(node(b, OP_BEAT, "n1", "b2"), NULL);
}

CASE(joining_takes_back_what_the_former_self_held)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 3);
    struct token old = claim_n(b, 2);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 2);
    STATE_IS(b, "a0", PAWL_PENDING);
    EQ_INT(get(b, "a0").counts.lost, 1); /* counted */
    EQ_TEXT(get(b, "a0").error, "node \"n1\" was lost");
    EQ_STATUS(finish(b, old, "a0", END_RESULT), PAWL_LOST_LEASE, NULL);
}

CASE(joining_takes_back_also_without_a_row)
{
    accept_one(b, "a");
    claim_n(b, 1); /* node n1, boot b1, which never joined */
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 1);
}

CASE(joining_again_keeps_ones_own)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    EQ_INT(row(b, "n1").beats, 0);
    finish_ok(b, t, "a", "1");
}

CASE(other_names_keep_theirs)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(node(b, OP_JOIN, "n2", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    OK(node(b, OP_LEAVE, "n2", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    finish_ok(b, t, "a", "1");
}

CASE(leaving_hands_back_uncounted)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_n(b, "a", 2);
    struct token t = claim_n(b, 2);
    finish_ok(b, t, "a0", "1");
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    EQ_INT(b->op.node.reclaimed, 1);
    EQ_INT(b->op.n_ended, 0);
    struct call c = get(b, "a1");
    EQ_INT(c.state, PAWL_PENDING);
    EQ_INT(c.counts.lost + c.counts.attempts, 0);
    EQ_INT(attempts_of(b, "a1").n, 0);
    EQ_STATUS(finish(b, t, "a1", END_RESULT), PAWL_LOST_LEASE, NULL);
    OK(finish(b, t, "a0", END_RESULT), NULL);
}

CASE(a_silent_node_is_buried)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_n(b, 1);
    OK(bury(b, "n1", "b1", 0), NULL);
    EQ_INT(b->op.node.reclaimed, 1);
    TRUE(row(b, "n1").dead);
    EQ_INT(get(b, "a").counts.lost, 1);
    EQ_STATUS(node(b, OP_BEAT, "n1", "b1"), PAWL_LOST_LEASE, NULL);
    EQ_STATUS(finish(b, t, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL); /* and comes back */
    FALSE(row(b, "n1").dead);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
}

CASE(who_beats_is_not_buried)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    claim_n(b, 1);
    OK(node(b, OP_BEAT, "n1", "b1"), NULL);
    EQ_STATUS(bury(b, "n1", "b1", 0), PAWL_STATE, NULL); /* its counter changed */
    EQ_STATUS(bury(b, "n1", "b2", 1), PAWL_STATE, NULL);
    STATE_IS(b, "a", PAWL_PROCESSING);
    FALSE(row(b, "n1").dead);
    OK(bury(b, "n1", "b1", 1), NULL);
    STATE_IS(b, "a", PAWL_PENDING);
}

CASE(burying_may_fail_the_calls)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    claim_n(b, 1);
    struct op op = node_op(OP_BURY, "n1", "b1");
    op.node.fail_lost = true;
    OK(one(b, &op), &op.err);
    EQ_INT(op.n_ended, 1);
    STATE_IS(b, "a", PAWL_FAILED);
}

CASE(joining_may_fail_the_calls)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    claim_n(b, 1);
    struct op op = node_op(OP_JOIN, "n1", "b2");
    op.node.fail_lost = true;
    OK(one(b, &op), &op.err);
    EQ_TEXT(op.ended[0], "a");
    STATE_IS(b, "a", PAWL_FAILED);
}

/* A lease with an end belongs to a worker outside the process, which may outlive the process. */
CASE(leases_with_an_end_outlive_the_process)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    accept_one(b, "a");
    struct token t = claim_for(b, 1, 30 * SEC_US);
    OK(bury(b, "n1", "b1", 0), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    OK(node(b, OP_LEAVE, "n1", "b2"), NULL);
    EQ_INT(b->op.node.reclaimed, 0);
    finish_ok(b, t, "a", "1");
}

CASE(a_replaced_process_takes_no_lease_without_an_end)
{
    accept_one(b, "x");
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    struct op op = claim_op(want(b, 1));
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    EQ_INT(state_of(b, "x"), PAWL_PENDING);
    /* A lease with an end belongs to an outside worker: it runs out by itself. */
    claim_for(b, 1, 5 * SEC_US);
}

CASE(a_buried_process_takes_no_lease_without_an_end)
{
    accept_one(b, "x");
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    OK(bury(b, "n1", "b1", 0), NULL);
    struct op op = claim_op(want(b, 1));
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    claim_n(b, 1);
}
