/*
 * leaders.c - roles that only one node has at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#define LEASE_US (10 * SEC_US)

static struct leader_row leader(struct conform_fixture *b, const char *role)
{
    struct leader_rows rows;
    OK(store_leaders(b->s, &b->a, &rows, &b->err), &b->err);
    for (size_t i = 0; i < rows.n; i++)
        if (bytes_eq(rows.v[i].role, bytes_of(role)))
            return rows.v[i];
    return (struct leader_row){ 0 };
}

static struct op lead_op(const char *name, const char *boot)
{
    return (struct op){ .kind = OP_LEAD,
                        .lead = { .role = BYTES("maintenance"),
                                  .node = bytes_of(name),
                                  .boot = bytes_of(boot),
                                  .lease_us = LEASE_US } };
}

static bool leads(struct conform_fixture *b, const char *name, const char *boot)
{
    struct op op = lead_op(name, boot);
    OK(one(b, &op), &op.err);
    return op.lead.ours;
}

static void resign(struct conform_fixture *b, const char *name, const char *boot)
{
    struct op op = lead_op(name, boot);
    op.lead.resign = true;
    OK(one(b, &op), &op.err);
    FALSE(op.lead.ours);
}

CASE(roles_are_there_and_nobody_has_them)
{
    struct leader_rows rows;
    OK(store_leaders(b->s, &b->a, &rows, &b->err), &b->err);
    EQ_INT(rows.n, 2);
    EQ_TEXT(rows.v[0].role, "maintenance");
    EQ_TEXT(rows.v[1].role, "scheduler");
    ABSENT(rows.v[0].node);
    ABSENT(rows.v[0].boot);
    EQ_INT(rows.v[0].epoch, 0);
    EQ_INT(rows.v[0].until_us, 0);
}

CASE(the_first_has_it_until_its_lease_is_over)
{
    TRUE(leads(b, "n1", "b1"));
    EQ_INT(b->op.lead.epoch, 1);
    EQ_INT(b->op.lead.until_us, now(b) + LEASE_US);
    struct leader_row l = leader(b, "maintenance");
    EQ_TEXT(l.node, "n1");
    EQ_TEXT(l.boot, "b1");
    EQ_INT(l.epoch, 1);
    EQ_INT(l.acquired_us, now(b));
    EQ_INT(l.until_us, now(b) + LEASE_US);
    ABSENT(leader(b, "scheduler").node); /* the roles are independent */
    FALSE(leads(b, "n2", "b2"));
    EQ_INT(b->op.lead.epoch, 1);
    advance(b, LEASE_US - 1);
    FALSE(leads(b, "n2", "b2"));
    advance(b, 1);
    TRUE(leads(b, "n2", "b2"));
    EQ_INT(b->op.lead.epoch, 2);
    FALSE(leads(b, "n1", "b1"));
}

CASE(whoever_has_it_keeps_it)
{
    TRUE(leads(b, "n1", "b1"));
    int64_t since_us = now(b);
    advance(b, LEASE_US / 2);
    TRUE(leads(b, "n1", "b1"));
    EQ_INT(b->op.lead.epoch, 1); /* it never changed hands */
    EQ_INT(leader(b, "maintenance").acquired_us, since_us);
    EQ_INT(leader(b, "maintenance").until_us, now(b) + LEASE_US);
    advance(b, LEASE_US);
    TRUE(leads(b, "n1", "b1")); /* too late: another node might have had it */
    EQ_INT(b->op.lead.epoch, 2);
}

CASE(who_resigns_hands_over_at_once)
{
    TRUE(leads(b, "n1", "b1"));
    resign(b, "n2", "b2"); /* n2 cannot decide that */
    EQ_TEXT(leader(b, "maintenance").node, "n1");
    resign(b, "n1", "b1");
    ABSENT(leader(b, "maintenance").node);
    EQ_INT(leader(b, "maintenance").epoch, 1);
    TRUE(leads(b, "n2", "b2"));
    EQ_INT(b->op.lead.epoch, 2);
}

CASE(who_leaves_hands_over_at_once)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    TRUE(leads(b, "n1", "b1"));
    OK(node(b, OP_LEAVE, "n1", "b1"), NULL);
    ABSENT(leader(b, "maintenance").node);
    TRUE(leads(b, "n2", "b2"));
}

CASE(who_is_buried_leads_no_more)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    TRUE(leads(b, "n1", "b1"));
    OK(node(b, OP_BURY, "n1", "b1"), NULL);
    ABSENT(leader(b, "maintenance").node);
    struct op op = lead_op("n1", "b1");
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    TRUE(leads(b, "n2", "b2"));
}

CASE(a_new_boot_does_not_inherit)
{
    OK(node(b, OP_JOIN, "n1", "b1"), NULL);
    TRUE(leads(b, "n1", "b1"));
    OK(node(b, OP_JOIN, "n1", "b1"), NULL); /* joining again keeps the node's own roles */
    EQ_TEXT(leader(b, "maintenance").boot, "b1");
    OK(node(b, OP_JOIN, "n1", "b2"), NULL);
    ABSENT(leader(b, "maintenance").node);
    struct op op = lead_op("n1", "b1");
    EQ_STATUS(one(b, &op), PAWL_LOST_LEASE, &op.err);
    TRUE(leads(b, "n1", "b2"));
    EQ_INT(b->op.lead.epoch, 2);
}

CASE(an_unknown_role_is_not_found)
{
    struct op op = lead_op("n1", "b1");
    op.lead.role = BYTES("king");
    EQ_STATUS(one(b, &op), PAWL_NOT_FOUND, &op.err);
    EQ_STR(op.err.text, "no role \"king\"");
}
