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
