/*
 * conform.h - the words of the conformance suite, so that a case reads like a sentence.
 *
 *     CASE(a_stale_finish_is_refused)
 *     {
 *         accept_one(b, "a");
 *         struct token old = claim_for(b, 1, 30 * SEC_US);
 *         advance(b, 31 * SEC_US);
 *         sweep(b);
 *         EQ_STATUS(finish(b, old, "a", END_RESULT), PAWL_LOST_LEASE, NULL);
 *     }
 *
 * Every case runs on every engine of main.c. A fixture is one database in the case's own folder, a
 * clock that moves by hand and one handle; answers live in its arena. Helpers end the case when
 * what they ask for is not answered OK, unless they return a status.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONFORM_H
#define CONFORM_H

#include "base/limits.h"
#include "check.h"
#include "dump.h"
#include "engines.h"
#include "own_world.h"
#include "store/store.h"

#define RETENTION_US (100 * SEC_US)
#define REMEMBER_US (1000 * SEC_US)

struct conform_fixture {
    const struct engine *engine;
    const char *url; /* of this fixture's own database */
    struct own_world world;
    struct store *s; /* owned */
    struct arena a;
    struct pawl_err err;
    unsigned tokens;
    int64_t key_pending_max; /* of handles opened from now on */
    struct finish_item item; /* what the last finish() answered */
    struct op op;            /* what the last one() answered */
};

#define CASE(name, ...)                                                                            \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name, __VA_ARGS__)                                                                        \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = conform_fixture_open(param);         \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* On the engine of this URL; a server's alone (engines.h) is a new database every time. */
struct conform_fixture *conform_fixture_open(const char *url);
void conform_fixture_end(struct conform_fixture **b);
/* One more handle on the fixture's database; the caller closes it. */
struct store *conform_fixture_handle(struct conform_fixture *b);

void advance(struct conform_fixture *b, int64_t us);
int64_t now(struct conform_fixture *b);
struct token fresh_token(struct conform_fixture *b);

/* ---- Operations -------------------------------------------------------------------------------
 */

/* Commit these together. Every one gets the fixture's arena. */
void commit(struct conform_fixture *b, struct op *const *v, size_t n);
#define TOGETHER(b, ...)                                                                           \
    commit((b), (struct op *const[]){ __VA_ARGS__ },                                               \
           sizeof((struct op *const[]){ __VA_ARGS__ }) / sizeof(struct op *))
/* Commit one; the answer is b->op as well. */
enum pawl_status one(struct conform_fixture *b, struct op *op);

/* A call of type "t", input 1, no jitter; not settled yet. */
struct call_spec plan(const char *id);
/* Settled, with its strings in the fixture's arena. */
struct call_spec settled(struct conform_fixture *b, struct call_spec s);
struct op accept_op(struct conform_fixture *b, struct call_spec s);
/* Accept one and show what was said. */
struct accepted accept_spec(struct conform_fixture *b, struct call_spec s);
/* Accept a new one; its seq. */
int64_t accept_one(struct conform_fixture *b, const char *id);
/* n new calls `prefix0`, `prefix1`, ... in one operation. */
void accept_n(struct conform_fixture *b, const char *prefix, int n);

/* Up to max of everything, as node "n1", boot "b1", without an end. */
struct claim want(struct conform_fixture *b, int max);
struct claim claim_as(struct conform_fixture *b, struct claim q);
struct op claim_op(struct claim q);
/* Claim exactly n of up to n; the token. lease_us 0: no end. */
struct token claim_for(struct conform_fixture *b, int n, int64_t lease_us);
struct token claim_n(struct conform_fixture *b, int n);
/* The ids a claim would take now, in order, "a b c"; it is given back at once. */
const char *claimable(struct conform_fixture *b, struct claim q);

struct finish_item item(const char *id, enum ending how);
struct op finish_op(struct token token, struct finish_item *v, size_t n);
/* The item's answer is b->item. */
enum pawl_status finish_item(struct conform_fixture *b, struct token token, struct finish_item f);
enum pawl_status finish(struct conform_fixture *b, struct token token, const char *id,
                        enum ending how);
/* A result (JSON), an error: both must be taken. */
void finish_ok(struct conform_fixture *b, struct token token, const char *id, const char *result);
void finish_error(struct conform_fixture *b, struct token token, const char *id, const char *error);
/* Accept, claim and end a call in one go. */
void ended_call(struct conform_fixture *b, const char *id, enum pawl_state state);

struct op by_id_op(enum op_kind kind, const char *id);
enum pawl_status by_id(struct conform_fixture *b, enum op_kind kind, const char *id);
void pause_queue(struct conform_fixture *b, const char *queue, bool paused);
struct sweep sweep(struct conform_fixture *b);
struct sweep sweep_max(struct conform_fixture *b, int max);
struct gc gc(struct conform_fixture *b);
struct gc gc_max(struct conform_fixture *b, int max);
struct op node_op(enum op_kind kind, const char *node, const char *boot);
enum pawl_status node(struct conform_fixture *b, enum op_kind kind, const char *name,
                      const char *boot);

/* ---- Keys -------------------------------------------------------------------------------------
 */

struct call_spec keyed(const char *id, const char *key);
/* A new due call of this key for every letter. */
void line_up(struct conform_fixture *b, const char *key, const char *letters);
/* Up to max, run_max of a key, without an end or with one. */
struct claim claim_run(struct conform_fixture *b, int max, int run_max);
struct claim claim_run_for(struct conform_fixture *b, int max, int run_max, int64_t lease_us);
/* What a claim took, "a b c". */
const char *ids_of(struct conform_fixture *b, const struct claim *q);
/* Ends as the letters of `how` say, one a call of `letters`, in one finish: r result, e error (with
 * the call's backoff), f refuse, l later (1 s), b release, c cancelled. b->op has the answers. */
enum pawl_status finish_run(struct conform_fixture *b, struct token token, const char *letters,
                            const char *how);
enum pawl_status object(struct conform_fixture *b, struct object_op q);
/* A state as JSON; its version. */
int64_t object_put(struct conform_fixture *b, const char *type, const char *key, const char *json);
enum pawl_status object_found(struct conform_fixture *b, const char *type, const char *key);
struct object object_of(struct conform_fixture *b, const char *type, const char *key);
enum pawl_status unblock(struct conform_fixture *b, const char *key, bool retry);
/* Every key that is shown, through pages of one, "k1 k2". */
const char *keys_shown(struct conform_fixture *b, bool blocked);
struct key_row key_of(struct conform_fixture *b, const char *key);

/* ---- Reads ------------------------------------------------------------------------------------
 */

/* With input and result; ends the case unless it is found. */
struct call get(struct conform_fixture *b, const char *id);
enum pawl_status found(struct conform_fixture *b, const char *id);
enum pawl_state state_of(struct conform_fixture *b, const char *id);
struct attempts attempts_of(struct conform_fixture *b, const char *id);
struct queue_row queue_of(struct conform_fixture *b, const char *queue);
/* Everything, as text in the fixture's arena. */
const char *snapshot(struct conform_fixture *b);
/* Does `v` hold this id? */
bool holds(const struct bytes *v, size_t n, const char *id);

#define EQ_TEXT(got, want)                                                                         \
    check_bytes(__FILE__, __LINE__, #got, (got).data, (got).len, (want), strlen(want))
#define ABSENT(got) TRUE((got).data == NULL)
#define STATE_IS(b, id, want)                                                                      \
    check_str(__FILE__, __LINE__, "state of " id, pawl_state_name(state_of((b), (id))),            \
              pawl_state_name(want))

#endif
