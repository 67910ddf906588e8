/*
 * conform.h - helpers of the conformance suite, so that a case reads like a sentence.
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
 * clock that the case moves, and one handle; answers live in its arena. Helpers end the case when
 * the store does not answer OK, unless they return a status.
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
    int64_t key_pending_max;               /* for handles that are opened from now on */
    const struct feature *const *features; /* likewise */
    size_t n_features;
    struct finish_item item; /* the answer to the last finish() */
    struct op op;            /* the answer to the last one() */
};

#define CASE(name, ...)                                                                            \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name, __VA_ARGS__)                                                                        \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = conform_fixture_open(param);         \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* Open a fixture on the engine of this URL; for a server's parameter (engines.h) with a new
 * database. */
struct conform_fixture *conform_fixture_open(const char *url);
/* Close the store and free the fixture; for AUTO(). */
void conform_fixture_end(struct conform_fixture **b);
/* One more handle on the fixture's database; the caller closes it. */
struct store *conform_fixture_handle(struct conform_fixture *b);

/* Move the clock forward. */
void advance(struct conform_fixture *b, int64_t us);
/* The present time of the fixture's clock. */
int64_t now(struct conform_fixture *b);
/* A token that was not used before. */
struct token fresh_token(struct conform_fixture *b);

/* ---- Operations ------------------------------------------------------------------------------ */

/* Commit these operations together; each gets the fixture's arena. */
void commit(struct conform_fixture *b, struct op *const *v, size_t n);
#define TOGETHER(b, ...)                                                                           \
    commit((b), (struct op *const[]){ __VA_ARGS__ },                                               \
           sizeof((struct op *const[]){ __VA_ARGS__ }) / sizeof(struct op *))
/* Commit one operation; b->op is its copy with the answer. Returns its status. */
enum pawl_status one(struct conform_fixture *b, struct op *op);

/* A call of type "t" with input 1 and no jitter; not passed to call_spec_settle() yet. */
struct call_spec plan(const char *id);
/* The same after call_spec_settle(), with its strings in the fixture's arena. */
struct call_spec settled(struct conform_fixture *b, struct call_spec s);
/* The operation that accepts this call. */
struct op accept_op(struct conform_fixture *b, struct call_spec s);
/* Accept one call. Returns the answer, which must be OK. */
struct accepted accept_spec(struct conform_fixture *b, struct call_spec s);
/* Accept one new call. Returns its seq. */
int64_t accept_one(struct conform_fixture *b, const char *id);
/* Accept n new calls `prefix0`, `prefix1`, ... in one operation. */
void accept_n(struct conform_fixture *b, const char *prefix, int n);

/* A claim of up to max calls of all queues by node "n1", boot "b1", with a lease without an end. */
struct claim want(struct conform_fixture *b, int max);
/* Commit this claim. Returns it with its answer. */
struct claim claim_as(struct conform_fixture *b, struct claim q);
/* The operation of this claim. */
struct op claim_op(struct claim q);
/* Claim n calls; there must be n. Returns the token. lease_us 0: without an end. */
struct token claim_for(struct conform_fixture *b, int n, int64_t lease_us);
/* The same without an end of the lease. */
struct token claim_n(struct conform_fixture *b, int n);
/* The ids that this claim takes now, in order, "a b c"; they are released at once. */
const char *claimable(struct conform_fixture *b, struct claim q);

/* A finish of one call by its id. */
struct finish_item item(const char *id, enum ending how);
/* The operation that finishes these calls of the lease. */
struct op finish_op(struct token token, struct finish_item *v, size_t n);
/* Finish one call; b->item is its copy with the answer. Returns the operation's status. */
enum pawl_status finish_item(struct conform_fixture *b, struct token token, struct finish_item f);
/* The same by id and kind of end. */
enum pawl_status finish(struct conform_fixture *b, struct token token, const char *id,
                        enum ending how);
/* Finish with a result (JSON); it must be accepted. */
void finish_ok(struct conform_fixture *b, struct token token, const char *id, const char *result);
/* Finish with an error; it must be accepted. */
void finish_error(struct conform_fixture *b, struct token token, const char *id, const char *error);
/* Accept, claim and end a call, so that it is in this state. */
void ended_call(struct conform_fixture *b, const char *id, enum pawl_state state);

/* The operation of this kind on one call: cancel, retry and the like. */
struct op by_id_op(enum op_kind kind, const char *id);
/* Commit it. Returns its status. */
enum pawl_status by_id(struct conform_fixture *b, enum op_kind kind, const char *id);
/* Pause or resume a queue. */
void pause_queue(struct conform_fixture *b, const char *queue, bool paused);
/* Run one sweep with the largest step. */
struct sweep sweep(struct conform_fixture *b);
/* Run one sweep of at most max calls. */
struct sweep sweep_max(struct conform_fixture *b, int max);
/* Run one gc with the largest step. */
struct gc gc(struct conform_fixture *b);
/* Run one gc of at most max calls. */
struct gc gc_max(struct conform_fixture *b, int max);
/* The operation of this kind on a node: join, beat, leave. */
struct op node_op(enum op_kind kind, const char *node, const char *boot);
/* Commit it. Returns its status. */
enum pawl_status node(struct conform_fixture *b, enum op_kind kind, const char *name,
                      const char *boot);

/* ---- Keys ------------------------------------------------------------------------------------ */

/* As plan(), with a key. */
struct call_spec keyed(const char *id, const char *key);
/* Accept one new due call of this key for every letter. */
void line_up(struct conform_fixture *b, const char *key, const char *letters);
/* Claim up to max calls, at most run_max of one key, without an end of the lease. */
struct claim claim_run(struct conform_fixture *b, int max, int run_max);
/* The same with a lease of lease_us. */
struct claim claim_run_for(struct conform_fixture *b, int max, int run_max, int64_t lease_us);
/* The ids that a claim took, "a b c". */
const char *ids_of(struct conform_fixture *b, const struct claim *q);
/* Finish the calls of `letters` in one operation as the letters of `how` say: r result, e error
 * (with the call's backoff), f refuse, l later (1 s), b release, c cancelled. The answers are in
 * b->op. */
enum pawl_status finish_run(struct conform_fixture *b, struct token token, const char *letters,
                            const char *how);
/* Commit this operation on an object. Returns its status. */
enum pawl_status object(struct conform_fixture *b, struct object_op q);
/* Write an object's state as JSON. Returns its version. */
int64_t object_put(struct conform_fixture *b, const char *type, const char *key, const char *json);
/* OK when the object has a state, else NOT_FOUND. */
enum pawl_status object_found(struct conform_fixture *b, const char *type, const char *key);
/* The object's state; ends the case when it has none. */
struct object object_of(struct conform_fixture *b, const char *type, const char *key);
/* Unblock a key: retry its failed call or skip it. Returns the status. */
enum pawl_status unblock(struct conform_fixture *b, const char *key, bool retry);
/* All keys that are listed, read in pages of one: "k1 k2". */
const char *keys_shown(struct conform_fixture *b, bool blocked);
/* The row of one key; ends the case when it is not listed. */
struct key_row key_of(struct conform_fixture *b, const char *key);

/* ---- Reads ----------------------------------------------------------------------------------- */

/* One call with input and result; ends the case unless it is found. */
struct call get(struct conform_fixture *b, const char *id);
/* OK when the call is found, else the status. */
enum pawl_status found(struct conform_fixture *b, const char *id);
/* The call's state. */
enum pawl_state state_of(struct conform_fixture *b, const char *id);
/* The call's attempts. */
struct attempts attempts_of(struct conform_fixture *b, const char *id);
/* The row of one queue; ends the case when it is not listed. */
struct queue_row queue_of(struct conform_fixture *b, const char *queue);
/* Everything that is stored, as text in the fixture's arena. */
const char *snapshot(struct conform_fixture *b);
/* Does `v` contain this id? */
bool holds(const struct bytes *v, size_t n, const char *id);

#define EQ_TEXT(got, want)                                                                         \
    check_bytes(__FILE__, __LINE__, #got, (got).data, (got).len, (want), strlen(want))
#define ABSENT(got) TRUE((got).data == NULL)
#define STATE_IS(b, id, want)                                                                      \
    check_str(__FILE__, __LINE__, "state of " id, pawl_state_name(state_of((b), (id))),            \
              pawl_state_name(want))

#endif
