/*
 * workflow_pin.c - runs that are pinned to the version of the code they began with: who gets them,
 * what keeps it, and what of it is shown and left.
 *
 * Calls are of type "t". What a worker has is written as its names, sorted: a node that runs
 * version 1 of type t has "@v:1@t", a worker over HTTP that says "v:1" has "@v:1" as well.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "workflow_case.h"

#include <string.h>

#include "model/needs.h"

#define ANY "@steps"
#define NODE(version) "@steps @v:" version "@t"
#define HTTP(version) "@steps @v:" version " v:" version

#define HOUR_US (3600 * SEC_US)

static size_t names_of(struct conform_fixture *b, const char *names, const struct bytes **out)
{
    struct bytes *v = arena_alloc(&b->a, 16 * sizeof *v);
    size_t n = 0;
    for (const char *at = names; *at; n++) {
        size_t len = strcspn(at, " ");
        TRUE(n < 16);
        v[n] = (struct bytes){ at, len };
        at += len + (at[len] == ' ');
    }
    *out = v;
    return n;
}

static struct claim having(struct conform_fixture *b, const char *names)
{
    struct claim q = want(b, 20);
    q.n_has = names_of(b, names, &q.has);
    return q;
}

/* A pass of a worker that has this; its code says this version. */
static struct pass pass_as(struct conform_fixture *b, const char *names, const char *version)
{
    const struct bytes *has;
    size_t n = names_of(b, names, &has);
    struct pass p = pass_begin_as(b, has, n);
    p.version = bytes_of(version);
    return p;
}

/* The next due call begins on a node with versions = pin that runs this version. */
static struct pass pinned(struct conform_fixture *b, const char *version)
{
    const char *names = arena_printf(&b->a, "@steps @v:%s@t", version);
    struct pass p = pass_as(b, names, version);
    p.pin = true;
    step_ok(&p, 1, "a", "1");
    return p;
}

static struct pass pinned_new(struct conform_fixture *b, const char *id, const char *version)
{
    accept_one(b, id);
    return pinned(b, version);
}

/* Only workers of version 1 get these ids, in this order. */
static void only_for_1(struct conform_fixture *b, const char *ids)
{
    static const char *const others[] = { "",         "@v:1@t",         ANY,
                                          NODE("2"),  HTTP("2"),        "@steps @v:1@other",
                                          NODE("11"), "@steps @v:1@t@", "@steps v:1" };
    static const char *const its[] = { NODE("1"), HTTP("1"), "@steps @v:1 @v:2 v:1 v:2",
                                       "@steps @v:1@s @v:1@t @v:2@u" };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        EQ_STR(claimable(b, having(b, others[i])), "");
    for (size_t i = 0; i < COUNT_OF(its); i++)
        EQ_STR(claimable(b, having(b, its[i])), ids);
}

static struct bytes version_of(struct conform_fixture *b, const char *id)
{
    return journal_read(b, get(b, id).seq).version;
}

/* ---- Who gets it ----------------------------------------------------------------------------- */

WORKFLOW_CASE(a_pinned_run_is_for_workers_of_its_version)
{
    struct pass p = pinned_new(b, "x", "1");
    OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    TRUE(p.answer.steps.suspended);
    OK(signal_to(b, "x", "go", "7", NULL), &b->op.err);
    only_for_1(b, "x");
    EQ_TEXT(version_of(b, "x"), "1");
    p = pass_as(b, NODE("1"), "1");
    OK(wait_signal(&p, 2, "go", 0), &b->op.err);
    EQ_TEXT(p.steps[0].result_out.bytes, "7");
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_COMPLETED);
}

WORKFLOW_CASE(a_run_that_follows_is_for_every_version)
{
    accept_one(b, "x");
    struct pass p = pass_as(b, NODE("1"), "1");
    step_ok(&p, 1, "a", "1");
    end_pass(&p, END_RELEASE);
    EQ_TEXT(version_of(b, "x"), "1");
    EQ_STR(claimable(b, having(b, NODE("2"))), "x");
    EQ_STR(claimable(b, having(b, ANY)), "x");
    /* The setting has changed since: what has begun stays as it is. */
    p = pass_as(b, NODE("2"), "2");
    p.pin = true;
    step_ok(&p, 2, "b", "2");
    end_pass(&p, END_RELEASE);
    EQ_STR(claimable(b, having(b, ANY)), "x");
    EQ_TEXT(version_of(b, "x"), "1");
}

WORKFLOW_CASE(a_version_is_of_a_type)
{
    struct call_spec s = plan("approval");
    struct pass p = pinned_new(b, "x", "1");
    end_pass(&p, END_RELEASE);
    s.type = BYTES("approval");
    accept_spec(b, s);
    p = pass_as(b, "@steps @v:1@approval @v:2@t", "1");
    EQ_TEXT(p.id, "approval");
    p.pin = true;
    step_ok(&p, 1, "a", "1");
    end_pass(&p, END_RELEASE);
    EQ_STR(claimable(b, having(b, "@steps @v:1@approval @v:2@t")), "approval");
    EQ_STR(claimable(b, having(b, "@steps @v:1@t @v:2@approval")), "x");
    EQ_STR(claimable(b, having(b, HTTP("1"))), "x approval");
}

WORKFLOW_CASE(code_without_a_version_pins_nothing)
{
    accept_one(b, "x");
    struct pass p = pass_as(b, ANY, NULL);
    p.pin = true;
    step_ok(&p, 1, "a", "1");
    end_pass(&p, END_RELEASE);
    ABSENT(version_of(b, "x"));
    EQ_STR(claimable(b, having(b, NODE("2"))), "x");
    EQ_STR(claimable(b, having(b, ANY)), "x");
}

/* What the claim of a worker over HTTP says is known when it stores a step, on each node. */
WORKFLOW_CASE(a_lease_knows_the_version_of_its_worker)
{
    static const struct {
        const char *has, *version;
        bool pin;
    } v[] = {
        { HTTP("1"), "1", true },     { "@steps @v:1 gpu v:1", "1", true },
        { HTTP("1"), "1", false },    { "@steps @v:1 @v:2 v:1 v:2", NULL, true },
        { "@steps gpu", NULL, true }, { "@steps v:1", NULL, true }, /* a node's own capability */
    };
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        const char *id = arena_printf(&b->a, "x%zu", i);
        accept_one(b, id);
        struct pass p = pass_as(b, v[i].has, NULL);
        struct store *first = b->s;
        AUTO(store_end) struct store *other = conform_fixture_handle(b);
        b->s = other;
        p.by_lease = true;
        p.pin = v[i].pin;
        step_ok(&p, 1, "a", "1");
        step_ok(&p, 2, "b", "1"); /* the lease was written again */
        b->s = first;
        end_pass(&p, END_RELEASE);
        EQ_INT(version_of(b, id).data != NULL, v[i].version != NULL);
        if (v[i].version)
            EQ_TEXT(version_of(b, id), v[i].version);
        if (v[i].version && v[i].pin)
            only_for_1(b, id);
        else
            EQ_STR(claimable(b, having(b, ANY)), id);
        p = pass_as(b, HTTP("1"), NULL);
        end_pass(&p, END_RESULT);
    }
}

WORKFLOW_CASE(no_lease_has_a_version_before_the_second_half)
{
    engine_rows(b->url, "UPDATE pawl_migration SET finished = 0 WHERE number = 11");
    AUTO(store_end) struct store *before = TAKE(b->s);
    b->s = conform_fixture_handle(b); /* the first one remembers that it has run */
    accept_one(b, "x");
    struct claim q = having(b, HTTP("1"));
    q = claim_as(b, q);
    EQ_STR(ids_of(b, &q), "x");
    int64_t len = engine_int(b->url, "SELECT length(held) FROM pawl_lease");
    OK(finish(b, q.token, "x", END_RELEASE), &b->err);
    q.token = fresh_token(b);
    q.has = NULL;
    q.n_has = 0;
    q = claim_as(b, q);
    EQ_INT(engine_int(b->url, "SELECT length(held) FROM pawl_lease"), len);
    struct pass p = { .b = b, .token = q.token, .seq = q.calls[0].seq, .pin = true };
    p.version = BYTES("1");
    const struct workflow_step s = {
        .no = 1, .name = BYTES("a"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    EQ_STATUS(pass_steps(&p, &s, 1), PAWL_STATE, &b->op.err);
    EQ_INT(engine_int(b->url, "SELECT COUNT(*) FROM pawl_lane WHERE needs <> ''"), 0);
}

/* ---- What keeps it --------------------------------------------------------------------------- */

WORKFLOW_CASE(a_pinned_run_stays_pinned_until_it_ends)
{
    struct pass p = pinned_new(b, "x", "1");
    end_pass(&p, END_ERROR); /* a failed attempt */
    advance(b, 60 * SEC_US);
    only_for_1(b, "x");
    struct claim q = having(b, NODE("1"));
    q.lease_us = 30 * SEC_US;
    EQ_UINT(claim_as(b, q).n, 1); /* its worker dies */
    advance(b, 31 * SEC_US);
    EQ_INT(sweep(b).reclaimed, 1);
    advance(b, 60 * SEC_US);
    only_for_1(b, "x");
    p = pass_as(b, NODE("1"), "1");
    OK(sleep_for(&p, 2, "nap", 60), &b->op.err);
    advance(b, 61 * SEC_US);
    only_for_1(b, "x");
    OK(by_id(b, OP_CANCEL, "x"), &b->op.err);
    only_for_1(b, "x"); /* so does the pass that undoes */
    p = pass_as(b, NODE("1"), "1");
    TRUE(p.undoing);
    end_pass(&p, END_RESULT);
    STATE_IS(b, "x", PAWL_CANCELLED);
}

WORKFLOW_CASE(the_node_of_a_pinned_run_is_declared_dead)
{
    OK(node(b, OP_JOIN, "dies", "b1"), &b->op.err);
    accept_one(b, "x");
    struct claim q = having(b, NODE("1"));
    q.node = BYTES("dies");
    q = claim_as(b, q);
    struct pass p = { .b = b, .token = q.token, .seq = q.calls[0].seq, .pin = true };
    p.version = BYTES("1");
    step_ok(&p, 1, "a", "1");
    OK(node(b, OP_JOIN, "dies", "b2"), &b->op.err); /* it was started again */
    sweep(b);
    advance(b, 60 * SEC_US);
    STATE_IS(b, "x", PAWL_PROCESSING);
    only_for_1(b, "x");
}

WORKFLOW_CASE(a_retry_keeps_the_version)
{
    struct pass p = pinned_new(b, "x", "1");
    step_ok(&p, 2, "b", "1");
    const struct workflow_step other = {
        .no = 2, .name = BYTES("other"), .kind = STEP_RUN, .says = SAYS_RESULT
    };
    OK(pass_steps(&p, &other, 1), &b->op.err);
    STATE_IS(b, "x", PAWL_DEAD_LETTER);
    OK(by_id(b, OP_RETRY, "x"), &b->op.err);
    only_for_1(b, "x");
    p = pass_as(b, NODE("1"), "1");
    OK(pass_steps(&p, &other, 1), &b->op.err);
    OK(change(b,
              (struct workflow_op){ .what = WORKFLOW_RETRY, .id = BYTES("x"), .from = BYTES("a") }),
       &b->op.err);
    only_for_1(b, "x");
    p = pass_as(b, HTTP("1"), NULL);
    p.by_lease = p.pin = true;
    step_ok(&p, 1, "z", "1");
    EQ_TEXT(version_of(b, "x"), "1");
    end_pass(&p, END_RESULT);
}

WORKFLOW_CASE(a_restart_keeps_the_version)
{
    for (int first = 0; first < 2; first++) { /* before its first step, and after it */
        const char *id = first ? "x" : "y";
        accept_one(b, id);
        struct pass p = pass_as(b, NODE("1"), "1");
        p.pin = true;
        if (!first)
            step_ok(&p, 1, "a", "1");
        struct workflow_op q = { .what = WORKFLOW_RESTART,
                                 .input = { PAWL_JSON, BYTES("2") },
                                 .steps = { .version = BYTES("1"), .pin = true } };
        struct op op = { .kind = OP_FEATURE,
                         .feature = {
                             .of = &feature_workflow, .ctx = &q, .token = p.token, .seq = p.seq } };
        OK(one(b, &op), &op.err);
        only_for_1(b, id);
        p = pinned(b, "1");
        EQ_TEXT(version_of(b, id), "1");
        end_pass(&p, END_RESULT);
    }
}

/* With the call's own needs. */
WORKFLOW_CASE(a_fork_is_for_the_version_of_its_run)
{
    static const struct bytes gpu = BYTES("gpu");
    struct call_spec s = plan("x");
    s.needs = &gpu;
    s.n_needs = 1;
    accept_spec(b, s);
    struct pass p = pass_as(b, "@steps @v:1@t gpu", "1");
    p.pin = true;
    step_ok(&p, 1, "a", "1");
    step_ok(&p, 2, "b", "2");
    end_pass(&p, END_RESULT);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = BYTES("x"),
                                       .from = BYTES("b"),
                                       .fork_id = BYTES("y") }),
       &b->op.err);
    EQ_TEXT(version_of(b, "y"), "1");
    EQ_UINT(get(b, "y").spec.n_needs, 1);
    EQ_TEXT(get(b, "y").spec.needs[0], "gpu");
    only_for_1(b, "");
    EQ_STR(claimable(b, having(b, "@steps @v:2@t gpu")), "");
    EQ_STR(claimable(b, having(b, "@steps @v:1@t gpu")), "y");
    /* A fork of the fork, and one of a run that follows. */
    p = pass_as(b, "@steps @v:1@t gpu", "1");
    step_ok(&p, 2, "b", "2");
    end_pass(&p, END_RESULT);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = BYTES("y"),
                                       .from = BYTES("b"),
                                       .fork_id = BYTES("z") }),
       &b->op.err);
    EQ_STR(claimable(b, having(b, "@steps @v:2@t gpu")), "");
    EQ_STR(claimable(b, having(b, "@steps @v:1@t gpu")), "z");
    accept_one(b, "follows");
    p = pass_as(b, NODE("1"), "1");
    step_ok(&p, 1, "a", "1");
    end_pass(&p, END_RESULT);
    OK(change(b, (struct workflow_op){ .what = WORKFLOW_FORK,
                                       .id = BYTES("follows"),
                                       .from = BYTES("a"),
                                       .fork_id = BYTES("w") }),
       &b->op.err);
    EQ_STR(claimable(b, having(b, ANY)), "w");
}

/* The group that begins it is decided again because its answer is lost. */
TEST(a_lost_answer_pins_a_run_once)
{
    AUTO(conform_fixture_end) struct conform_fixture *b = workflow_fixture(param, "fault+");
    for (int i = 0; i < 6; i++) {
        const char *id = arena_printf(&b->a, "x%d", i);
        struct pass p = pinned_new(b, id, "1");
        OK(wait_signal(&p, 2, "go", 0), &b->op.err);
        OK(signal_to(b, id, "go", "7", "k"), &b->op.err);
        EQ_STR(claimable(b, having(b, NODE("2"))), "");
        p = pass_as(b, NODE("1"), "1");
        EQ_TEXT(version_of(b, id), "1");
        end_pass(&p, END_RESULT);
    }
    EQ_INT(engine_int(b->engine->url, "SELECT COUNT(*) FROM pawl_lane WHERE needs <> ''"), 1);
}

/* ---- What is shown --------------------------------------------------------------------------- */

WORKFLOW_CASE(a_pinned_run_is_shown_with_the_needs_of_its_user)
{
    static const struct bytes needs[] = { BYTES("gpu"), BYTES("v:1") };
    struct call_spec s = plan("x");
    s.needs = needs;
    s.n_needs = COUNT_OF(needs);
    accept_spec(b, s);
    struct pass p = pass_as(b, "@steps @v:1@t gpu v:1", "1");
    p.pin = true;
    OK(sleep_for(&p, 1, "nap", 60), &b->op.err);
    for (int i = 0; i < 2; i++) {
        struct call c = get(b, "x");
        EQ_UINT(c.spec.n_needs, 2);
        EQ_TEXT(c.spec.needs[0], "gpu");
        EQ_TEXT(c.spec.needs[1], "v:1");
        EQ_INT(c.state, PAWL_PROCESSING);
        /* Nobody who is alive may have the version: it waits for a worker that has. */
        EQ_INT(c.waiting_for, i ? WAIT_WORKER : WAIT_TIMER);
        advance(b, 61 * SEC_US);
    }
    struct claim q = having(b, "@steps @v:2@t gpu v:1");
    q = claim_as(b, q);
    EQ_INT(q.n, 0);
    FALSE(q.more);
    EQ_INT(q.next_due_us, 0); /* it is no reason to look again */
    EQ_INT(get(b, "x").waiting_for, WAIT_WORKER);
    EQ_INT(queue_of(b, "default").pending, 0);
}

/* ---- What is left ---------------------------------------------------------------------------- */

static int64_t lanes(struct conform_fixture *b, const char *version)
{
    return engine_int(
        b->engine->url,
        arena_printf(&b->a, "SELECT COUNT(*) FROM pawl_lane WHERE needs LIKE '%%@v:%s'", version));
}

WORKFLOW_CASE(lanes_of_old_versions_are_removed)
{
    for (int i = 1; i <= 4; i++) {
        struct pass p = pinned_new(b, arena_printf(&b->a, "x%d", i), arena_printf(&b->a, "%d", i));
        if (i == 2)
            OK(wait_signal(&p, 2, "go", 0), &b->op.err); /* it goes on, and needs its lane */
        else
            end_pass(&p, END_RESULT);
        EQ_INT(lanes(b, arena_printf(&b->a, "%d", i)), 1);
    }
    struct call_spec s = plan("last");
    s.queue = BYTES("last"); /* the lane with the highest number stays */
    accept_spec(b, s);
    OK(by_id(b, OP_CANCEL, "last"), &b->op.err);
    for (int64_t passed = 0; passed < 6 * HOUR_US; passed += HOUR_US / 4) {
        advance(b, HOUR_US / 4);
        gc(b);
    }
    EQ_INT(lanes(b, "1"), 0);
    EQ_INT(lanes(b, "2"), 1);
    EQ_INT(lanes(b, "3"), 0);
    EQ_INT(lanes(b, "4"), 0);
    OK(signal_to(b, "x2", "go", "1", NULL), &b->op.err);
    EQ_STR(claimable(b, having(b, NODE("3"))), "");
    EQ_STR(claimable(b, having(b, NODE("2"))), "x2");
    /* A run of an old version begins again: another lane. */
    struct pass p = pinned_new(b, "again", "1");
    EQ_TEXT(p.id, "again");
}
