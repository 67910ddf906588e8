/*
 * lib_needs.c - calls that need what only some nodes have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "lib/lib.h"
#include "fixture.h"

RUNS_ON(ENGINES_ALL)

static const char *const gpu[] = { "gpu" };
static const char *const much[] = { "v:2", "gpu", "big" };

static struct pawl *node(const void *param, const char *name, const char *const *has, size_t n)
{
    struct pawl_err err;
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = name });
    fixture_on(p, "t", fixture_echo);
    struct pawl_workers w = { PAWL_WORKERS_INIT, .slots = 2, .has = has, .n_has = n };
    OK(pawl_start(p, &w, &err), &err);
    return p;
}

static void submit(struct pawl *p, const char *id, const char *const *needs, size_t n)
{
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = id, .type = "t", .needs = needs, .n_needs = n };
    fixture_submit_as(p, s);
}

/* It waits as long as only nodes without it live, and runs when one comes. */
TEST(a_call_waits_for_a_node_that_has_what_it_needs)
{
    struct pawl *plain = node(param, "plain", NULL, 0);
    submit(plain, "gpu", gpu, 1);
    for (int i = 0; i < 20; i++) { /* the node goes on with calls behind it */
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        submit(plain, id, NULL, 0);
        fixture_ends(plain, id, PAWL_COMPLETED);
    }
    struct pawl_shown *call = fixture_get(plain, "gpu");
    const struct pawl_view *v = pawl_shown_view(call);
    EQ_INT(v->state, PAWL_PENDING);
    EQ_STR(v->waiting_for, "worker");
    EQ_UINT(v->n_needs, 1);
    EQ_STR(v->needs[0], "gpu");
    EQ_INT(v->attempts + v->lost, 0);
    pawl_shown_free(call);

    struct pawl *able = node(param, "able", much, 3);
    fixture_ends(plain, "gpu", PAWL_COMPLETED);
    call = fixture_get(plain, "gpu");
    EQ_STR(pawl_shown_view(call)->node, "able");
    pawl_shown_free(call);
    /* Submitted where it cannot run: the other node is told. */
    submit(plain, "again", gpu, 1);
    fixture_ends(plain, "again", PAWL_COMPLETED);
    pawl_close(able);
    pawl_close(plain);
}

/* A program that was built before `needs` hands over a shorter struct. */
TEST(a_shorter_struct_has_no_needs)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_receipt receipt;
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "a", .type = "t" };
    s.size = offsetof(struct pawl_spec, needs);
    s.needs = (const char *const *)1;
    s.n_needs = 7;
    OK(pawl_submit(p, &s, 1, 0, &receipt, &err), &err);
    OK(receipt.status, NULL);
    struct pawl_shown *call = fixture_get(p, "a");
    EQ_UINT(pawl_shown_view(call)->n_needs, 0);
    pawl_shown_free(call);
    pawl_close(p);
}

TEST(a_claim_says_what_its_worker_has)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_lease *lease;
    submit(p, "both", much, 2);
    struct pawl_claim q = { PAWL_CLAIM_INIT, .max = 10, .has = gpu, .n_has = 1 };
    OK(pawl_claim(p, &q, &lease, &err), &err);
    EQ_UINT(lease->n, 0);
    pawl_lease_free(lease);
    q.has = much;
    q.n_has = 3;
    OK(pawl_claim(p, &q, &lease, &err), &err);
    EQ_UINT(lease->n, 1);
    EQ_UINT(lease->calls[0].n_needs, 2);
    EQ_STR(lease->calls[0].needs[0], "gpu");
    EQ_STR(lease->calls[0].needs[1], "v:2");
    pawl_lease_free(lease);
    q.n_has = 65;
    EQ_STATUS(pawl_claim(p, &q, &lease, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "field \"has\": has 65 names, limit 64");
    pawl_close(p);
}

TEST(wrong_names_are_refused)
{
    static const char *const wrong[] = { "gpu", "a b" };
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_receipt r = fixture_offer(
        p, (struct pawl_spec){ PAWL_SPEC_INIT, .type = "t", .needs = wrong, .n_needs = 2 });
    EQ_STATUS(r.status, PAWL_INVALID, NULL);
    HAS_STR(r.error, "field \"needs\": name 2, \"a b\", is not");
    fixture_on(p, "t", fixture_echo);
    struct pawl_workers w = { PAWL_WORKERS_INIT, .has = wrong, .n_has = 2 };
    EQ_STATUS(pawl_start(p, &w, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "field \"has\": name 2, \"a b\", is not");
    w.n_has = 1;
    OK(pawl_start(p, &w, &err), &err);
    pawl_close(p);
}

static int sends(struct pawl_call *c)
{
    struct pawl_err err;
    const char *name = "gpu"; /* copied by pawl_send() */
    OK(pawl_send(c,
                 &(struct pawl_spec){ PAWL_SPEC_INIT, .id = "sent", .type = "u", .needs = &name,
                                      .n_needs = 1 },
                 &err),
       &err);
    name = NULL;
    return pawl_reply_int(c, 1);
}

TEST(a_sent_call_has_its_needs)
{
    struct pawl *p = fixture_open(param);
    fixture_on(p, "sends", sends);
    fixture_start(p, 1);
    fixture_submit(p, "a", "sends");
    fixture_ends(p, "a", PAWL_COMPLETED);
    struct pawl_shown *call = fixture_get(p, "sent");
    EQ_UINT(pawl_shown_view(call)->n_needs, 1);
    EQ_STR(pawl_shown_view(call)->needs[0], "gpu");
    pawl_shown_free(call);
    pawl_close(p);
}
