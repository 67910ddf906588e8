/*
 * cache.h - the rows that a running transaction has read: calls, leases and keys as they were
 * loaded and as they are now. Private to store/ledger.
 *
 * Operations read and move calls here; led_flush() writes what changed. What a group can foresee is
 * loaded in batches; everything else is loaded when an operation asks for it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_CACHE_H
#define STORE_LEDGER_CACHE_H

#include <sys/types.h>

#include "store/ledger/ledger.h"

#include "model/lease.h"
#include "store/feature.h"

enum led_place {
    AT_NONE,    /* not stored yet */
    AT_READY,   /* can be claimed when it is due: a call without a key, or the head of its key */
    AT_LINE,    /* in its key's line, behind the head */
    AT_DELAYED, /* delayed: it joins its key's line when its time has come */
    AT_HELD,    /* a lease names it, and it has no outcome */
    AT_ENDED,
    AT_GONE, /* its retention is over: only a tombstone is left */
};

/* How a call ended. An outcome is never changed: a new outcome is a new struct. */
struct led_outcome {
    struct payload result;
    struct bytes error, node;
    struct bytes token; /* absent: the call was not ended by the owner of a lease */
    int64_t claimed_us, started_us, finished_us;
    int64_t keep_until_us; /* INT64_MAX: it blocks its key */
};

/* A place in a key's line. With one writer it is the number with which the call joined, and the
 * call keeps it: calls that join later have higher numbers, so a call that was claimed and handed
 * back stands before all calls that were never claimed. Where several connections write, a call may
 * be committed late, with a number below those of calls that were claimed long ago. So there a call
 * joins at LINE_FRESH + its number. A call that is claimed gets a place before all of these, in
 * case it is handed back: its number in the key times LINE_STEP, or right behind the last such
 * place if it had joined the line again with the number it had. */
#define LINE_FRESH (INT64_C(1) << 50)
#define LINE_STEP 1024

struct led_stand {
    enum led_place place;
    enum pawl_state state;
    int lane, priority;
    int64_t run_at_us, expires_us; /* expires 0: never */
    int64_t pos, key_no;
    struct attempt_counts counts;
    bool cancel_requested;
    unsigned marks; /* HELD: of its entry in the lease */
    const struct led_outcome *outcome;
};

/* A row of `attempt` that is not written yet. */
struct led_attempt {
    struct led_attempt *older;
    int attempt_no, how;
    enum pawl_state state;
    struct bytes error, node, token;
    int64_t started_us, finished_us;
};

struct led_lease;
struct led_key;

struct led_call {
    struct led_call *same;  /* same bucket */
    struct led_call *newer; /* in the order they were loaded */
    int64_t seq;
    struct call_spec spec; /* without its payload, unless `payload` */
    bool payload;
    int64_t created_us, own_run_at_us, own_expires_us;
    int own_lane, own_priority;
    bool fresh;      /* its row of `call` is not written */
    bool moved;      /* its row of `call` has to be updated: lane, priority or run_at changed */
    bool begins;     /* it became a flow, and its row of `call` does not say so */
    bool flow_asked; /* flows_ending() has named it */
    bool flow_shown; /* flow_wait is what flows_shown() answered */
    enum call_wait flow_wait;
    bool partial;     /* only its place is known: it was read as a row of a line */
    bool lean;        /* partial, but enough is known to end its attempt */
    bool cut;         /* its input was not read with it, because it is long */
    size_t input_len; /* set if the call was read for a claim */
    bool named, ends; /* a finish of the group names it; and is certain to end it */
    struct led_stand was, now;
    struct led_lease *lease; /* HELD: the lease that holds it, once that was loaded */
    struct led_lease *left;  /* no longer HELD: the lease that held it in this transaction */
    size_t held_at;          /* lean: its index in the lease */
    struct led_attempt *ended_attempts; /* newest first, not written */
    int64_t forget_us;                  /* GONE */
    bool skipped; /* the running claim skipped it: another transaction has locked its key */
    bool grabbed; /* its row of `ready` was deleted by the statement that found it */
    bool joined;  /* new in its key's line, and not stored: led_line_join() */
    struct led_call *joined_next;
};

struct led_id {
    struct led_id *same;
    struct bytes id;
    int64_t seq; /* 0: no call has this id */
    unsigned char fingerprint[FINGERPRINT_LEN];
    bool fresh;
    bool counted;    /* counted by led_ids_new() */
    int64_t claimed; /* its row was already inserted with this number, for a call that is about to
                        be made */
};

enum { HELD_OPEN, HELD_ENDED, HELD_OFF };
struct led_link {
    int before, behind; /* index of the neighbours in its run; below 0: none */
};
struct led_lease {
    struct led_lease *same, *newer;
    struct token token;
    struct bytes node, boot, worker, owner;
    struct bytes version; /* of the worker's code, if it says one for all of it (needs.h) */
    int64_t claimed_us, until_us, rev;
    int width; /* how many calls its owner runs at once; 0: all */
    size_t n, named, left;
    struct held *held;
    unsigned char *state; /* HELD_ */
    struct led_link *run;
    bool *begun;                 /* n; valid while `left` is begun_left: led_lease_begun() */
    size_t begun_left;           /* 0: not known */
    bool cached;                 /* the handle remembered this list when the lease was read */
    bool fresh, rewritten;       /* made, or written again with another list, by this transaction */
    int64_t writes;              /* how often this transaction has written it again */
    bool missing, stored, dirty; /* missing: no such lease is stored, or it has ended */
    bool asked, locked; /* its lock was requested; and the answer came, also if it is missing */
};

enum led_turn { KEY_IDLE, KEY_OFFERED, KEY_HELD, KEY_BLOCKED };
struct led_key {
    struct led_key *same, *newer, *next_due;
    struct bytes name;
    bool got;   /* its row is locked by this transaction, or it has none and is `fresh` */
    bool tried; /* its lock was requested; without `got` another transaction has it */
    bool known; /* it has a row */
    bool fresh; /* it has no row: the row is inserted when the key is written */
    bool dirty, due, drop;
    bool written; /* this transaction has written its row */
    bool moving;  /* calls entered or left the stored part of its line, and that is not written yet
                   */
    enum led_turn turn;
    int64_t head, head_pos, head_no;
    int64_t next_no, held, waiting, later, since_us, ended_us;
    int64_t last_place; /* the last place that a claim of this group gave */
    int64_t wake;       /* got: a key note says that this head is to be due now; 0: none does */
    bool note_wake;     /* not got: the key note says that its head is to be due now */
    int64_t note_waiting, note_later; /* not got: the key note that this transaction leaves */
    int64_t seen_waiting, seen_later; /* not got: key notes of other transactions, only for answers
                                       */
    int64_t *folded; /* key notes that were added to the numbers above; their rows are to be removed
                      */
    size_t n_folded;
    struct led_call *joined, *joined_last; /* new calls at the end of its line, not stored */
    int64_t n_joined;
    struct led_call **ahead; /* the next of its line, read ahead for the running claim */
    size_t n_ahead;
};

struct led_object {
    struct led_object *same, *newer;
    struct bytes type, key;
    struct object_state state; /* version 0: there is none */
    int64_t updated_us;
    bool dirty;
};

/* The leader of a role; until_us 0: it has none. */
struct led_leader {
    struct bytes node, boot;
    int64_t epoch, acquired_us, until_us;
};

/* What a claim reads first, requested together with BEGIN. */
struct led_ahead {
    bool asked;
    bool by_cursors; /* `pairs` has only known pairs, read from their cursors on */
    bool full;       /* this transaction has once read all pairs */
    struct led_rows *look, *pairs, *node;
    struct bytes whose; /* the node whose row is in `node` */
    bool shared;        /* that row is share-locked: the node cannot be removed or declared dead */
    bool asked_cancel_requests; /* the cancel requests for remembered calls of the group's leases
                                   were requested */
    struct led_rows *cancel_requests;
};

/* A claim's query for rows of `ready`, sent together with a flush. */
struct led_take {
    enum sql_name name;
    const struct led_params *params;
    struct led_rows *rows;
};

/* Sequence numbers or versions that were drawn and not used yet. */
struct led_reserve {
    int64_t *v;
    size_t n, at;
};

/* Rows of features that are not written yet, by statement, in the order of first use. */
struct led_feature_rows;
/* What a feature remembers in the transaction. */
struct led_memory {
    struct led_memory *next;
    const struct feature *of;
    void *bytes;
};
/* An operation made of a finish_item.with. */
struct led_with {
    struct led_with *next;
    const struct feature_op *asked;
    struct op op;
};

struct led_cache {
    struct led_call *calls[LED_BUCKETS], *first_call, **last_call;
    struct led_id *ids[LED_BUCKETS];
    struct led_lease *leases[LED_BUCKETS], *first_lease;
    struct led_key *keys[LED_BUCKETS], *first_key, *due;
    struct led_object *objects[LED_BUCKETS], *first_object;
    struct led_ahead ahead;
    struct led_take take;
    struct claim *late; /* the claim whose `more` and `next_due_us` are answered with the last flush
                         */
    bool late_passed;   /* that claim skipped calls whose keys are locked */
    bool last_op;       /* the operation that is being decided is the group's last */
    bool news;          /* `ready` as stored is out of date for a claim: flush before it looks */
    bool fresh;   /* calls in memory can be claimed, now or later, and are not in `ready` yet */
    bool delayed; /* a call with a key became delayed, or is no longer delayed */
    bool noted; /* this transaction leaves a key note for a key that another transaction has locked,
                   or has found one of a wake */
    unsigned writes; /* how often led_flush() and its variants have written */
    struct bytes *paused;
    size_t n_paused;
    bool paused_read;
    bool claims;        /* the group has a claim: what it obeys must not change until it ends */
    int64_t limits_rev; /* paused_read: the revision of limits; 0: there has been none */
    bool gates_read;    /* the rules of that revision are known */
    int64_t *shut;      /* tracks from which no more calls may be taken in this transaction */
    size_t n_shut, shut_room;
    bool hold;  /* a claim is taking calls: no key gets a head until it is done */
    bool wakes; /* a key has `wake` */
    struct led_reserve numbers, versions;

    /* Features (feature.c). */
    struct led_feature_rows *rows;
    size_t n_rows; /* statements in `rows` */
    struct led_memory *memory;
    struct led_with *withs, *with_at; /* with_at: the last that was found */
    bool loaded;                      /* the operations of the group were loaded */
    bool unlocked;       /* features change rows that are not locked, or that others may add too */
    struct op *telling;  /* whose answer has what features do now */
    struct moved *moved; /* watched calls that moved, and nobody was told */
    size_t n_moved, moved_room;
};

/* ---- Loading (load.c) ------------------------------------------------------------------------ */

/* Read these ids, unless they are in memory. BROKEN if a row is damaged. */
MUST_USE enum pawl_status led_ids_load(struct ledger *c, const struct bytes *ids, size_t n,
                                       struct pawl_err *err);
/* The id, which is read if necessary; seq 0: no call has it. *out is borrowed for the transaction.
 */
MUST_USE enum pawl_status led_id_get(struct ledger *c, struct bytes id, struct led_id **out,
                                     struct pawl_err *err);
/* The same, with one writer, for a call that is new unless its id is known: if it is new, its row
 * is inserted at once with the next number, which led_call_make() takes. */
MUST_USE enum pawl_status led_id_claim(struct ledger *c, const struct call_spec *s,
                                       struct led_id **out, struct pawl_err *err);
/* The call is refused: remove the row of its id if led_id_claim() inserted it. */
MUST_USE enum pawl_status led_id_release(struct ledger *c, struct led_id *id, struct pawl_err *err);
/* Ids for led_ids_ask(). `sure`: every `fresh` id that is new will take a number, so the numbers
 * are drawn in the same statement. */
struct led_asked_ids {
    const struct bytes *fresh;
    size_t n_fresh;
    const struct bytes *ids;
    size_t n_ids;
    bool sure;
};
/* led_ids_load() in two halves: led_ids_ask() adds the query to a batch, led_ids_take() reads its
 * rows after the batch has run. The ids are borrowed until then. *out stays as it is if nothing has
 * to be read. */
MUST_USE enum pawl_status led_ids_ask(struct ledger *c, struct led_batch *b, struct led_rows **out,
                                      const struct led_asked_ids *q, struct pawl_err *err);
MUST_USE enum pawl_status led_ids_take(struct ledger *c, const struct led_rows *r,
                                       struct pawl_err *err);
/* How many of these ids are new. An id is counted once in a transaction. */
size_t led_ids_new(struct ledger *c, const struct bytes *ids, size_t n);
/* Read these calls and their places, unless they are in memory. A number that no call and no
 * tombstone has is not an error: led_call_find() then gives NULL. BROKEN if a row is damaged. */
MUST_USE enum pawl_status led_calls_load(struct ledger *c, const int64_t *seqs, size_t n,
                                         struct pawl_err *err);
/* Fill in `it` from a row of ready_take or line_take; the call's columns begin at `at`. The caller
 * has filled in its place. BROKEN if the row is damaged. */
MUST_USE enum pawl_status led_call_taken(struct ledger *c, const struct led_rows *r, int row,
                                         int at, struct led_call *it, struct pawl_err *err);
/* Is one of these calls, which are known, somewhere else by now than where it was read, or due at
 * another time? What is known of them stays as it is. */
MUST_USE enum pawl_status led_calls_moved(struct ledger *c, const int64_t *seqs, size_t n,
                                          bool *out, struct pawl_err *err);
/* led_calls_load() of one call. *out NULL: no call and no tombstone has this number. */
MUST_USE enum pawl_status led_call_get(struct ledger *c, int64_t seq, struct led_call **out,
                                       struct pawl_err *err);
/* The call if it is in memory, else NULL. */
struct led_call *led_call_find(struct ledger *c, int64_t seq);
/* The call or id in memory; an empty one if it is not there; NULL without memory. */
struct led_call *led_call_new(struct ledger *c, int64_t seq);
struct led_id *led_id_new(struct ledger *c, struct bytes id);
/* Read the inputs and results of these calls, unless they are in memory or the call is GONE. */
MUST_USE enum pawl_status led_payloads_load(struct ledger *c, struct led_call *const *v, size_t n,
                                            struct pawl_err *err);
/* Draw sequence numbers, or versions of objects, until n are in reserve. BROKEN if the database
 * gives impossible ones. */
MUST_USE enum pawl_status led_numbers(struct ledger *c, size_t n, struct pawl_err *err);
MUST_USE enum pawl_status led_versions(struct ledger *c, size_t n, struct pawl_err *err);
/* Take the next sequence number; one is drawn if none is in reserve. */
MUST_USE enum pawl_status led_number_next(struct ledger *c, int64_t *out, struct pawl_err *err);
/* Add a query for the cancel requests of remembered calls, of the leases that the batch locks
 * before it. */
void led_cache_ask(struct ledger *c, struct led_batch *b);
/* The place in a line of a call that joins it with this number. */
int64_t led_line_place(const struct ledger *c, int64_t number);
/* Convert the places of a lease's calls: from the form that the stored list has, and into it. */
void led_places_read(const struct ledger *c, struct held *v, size_t n);
void led_places_list(const struct ledger *c, struct held *v, size_t n);
/* Take a new number, and give the place behind all others in a line. */
MUST_USE enum pawl_status led_line_end(struct ledger *c, int64_t *out, struct pawl_err *err);
/* The error of the call's newest attempt that has one; absent if there is none. */
MUST_USE enum pawl_status led_last_error(struct ledger *c, const struct led_call *call,
                                         struct bytes *out, struct pawl_err *err);
/* For led_show(): as the owner of its lease sees the call, for which all calls of the lease are
 * processing. */
#define LED_AS_OWNER 0x100u
/* The call as a reader sees it; everything in *out is allocated in `a`. `with`: WITH_INPUT,
 * WITH_RESULT, LED_AS_OWNER. */
MUST_USE enum pawl_status led_show(struct ledger *c, struct arena *a, struct led_call *call,
                                   unsigned with, struct call *out, struct pawl_err *err);

/* A hash for the tables of a transaction; not stable across versions. */
uint64_t led_hash(const void *data, size_t len);
/* qsort() with a fast path for input that is already sorted. */
void led_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));

/* ---- Leases (lease.c) ------------------------------------------------------------------------ */

/* Lock and read these leases, and which of their calls have ended. A lease that does not exist is
 * `missing`. BUSY and c->redo if one changed since it was read without a lock. */
MUST_USE enum pawl_status led_leases_load(struct ledger *c, const struct token *v, size_t n,
                                          struct pawl_err *err);
/* The same in two halves: led_leases_ask() adds the query to a batch (*out stays as it is if
 * nothing has to be read), led_leases_take() reads the rows after the batch has run. Which calls
 * have ended is left to led_leases_calls(). */
MUST_USE enum pawl_status led_leases_ask(struct ledger *c, struct led_batch *b,
                                         const struct token *v, size_t n, struct led_rows **out,
                                         struct pawl_err *err);
MUST_USE enum pawl_status led_leases_take(struct ledger *c, const struct token *v, size_t n,
                                          const struct led_rows *r, struct pawl_err *err);
/* ---- What a handle remembers (lease_cache.c) ------------------------------------------------- */

/* What the handle remembers of a lease, if it is still valid: same rev, same list. Otherwise it is
 * dropped and the answer is NULL. The answer is borrowed until the next call of a function of
 * lease_cache.c; the ids and keys of its calls stay until the transaction ends or is forgotten. */
struct led_cached_lease *led_cache_find(struct ledger *c, const struct led_lease *l);
/* The number of the call with this id, if the lease is remembered and the id stands at *at or soon
 * behind it; *at (0 at first) moves behind it. 0: look in the database. What it says is true only
 * of a lease that was found `cached` in this transaction; before that it is a guess. */
int64_t led_cache_seq(struct ledger *c, const struct token *token, struct bytes id, size_t *at);
/* The keys of the calls that this finish names, if they are remembered and have not ended: copied
 * to scratch, into out (room for q->n). False: some are not remembered, or there is no memory. */
MUST_USE bool led_cache_keys(struct ledger *c, const struct finish *q, struct bytes *out,
                             size_t *out_n);
/* The transaction was committed: remember what it changed. */
void led_cache_stored(struct ledger *c);
/* The transaction was undone, its result is unknown, or its leases are about to be forgotten before
 * the commit: drop what is remembered of the leases that it read. */
void led_cache_doubt(struct ledger *c);
/* Free everything that is remembered. */
void led_cache_end(struct ledger *c);

/* Read the calls of all leases in memory, lean, and which of them have ended. BROKEN if a row is
 * damaged. */
MUST_USE enum pawl_status led_leases_calls(struct ledger *c, struct pawl_err *err);
/* Lock and read one lease. *out NULL: there is no such lease. */
MUST_USE enum pawl_status led_lease_get(struct ledger *c, const struct token *token,
                                        struct led_lease **out, struct pawl_err *err);
/* Read the leases that hold these calls, without a lock, and set the `lease` of each call that is
 * HELD. If no lease holds one of them: led_again(). */
MUST_USE enum pawl_status led_holders_load(struct ledger *c, struct led_call *const *v, size_t n,
                                           struct pawl_err *err);
/* Read every lease, without a lock. */
MUST_USE enum pawl_status led_all_leases(struct ledger *c, struct pawl_err *err);
/* The lease in memory; an empty one if it is not there; NULL without memory. */
struct led_lease *led_lease_new(struct ledger *c, const struct token *token);
/* Make an empty lease for a claim, which fills it in. If a lease of this token ended in this group,
 * its row is removed before the new one is written. */
MUST_USE enum pawl_status led_lease_make(struct ledger *c, const struct token *token,
                                         struct led_lease **out, struct pawl_err *err);
/* Let the lease name these calls, all of them open: fill in n, state, run and begun, and ignore
 * what was remembered of another list. `held` is borrowed for the transaction. False without
 * memory. */
MUST_USE bool led_lease_list(struct ledger *c, struct led_lease *l, struct held *held, size_t n);
/* The index of a call in its list; below 0: it is not there. */
ssize_t led_lease_find(const struct led_lease *l, int64_t seq);
/* Is the lease past its `until`? */
static inline bool led_lease_over(const struct led_lease *l, int64_t now_us)
{
    return l->until_us && l->until_us <= now_us;
}
/* When the claim's lease ends: claim_until() for calls that are not shown yet. */
int64_t led_claim_until(const struct claim *q, struct led_call *const *taken,
                        const int64_t *position, int64_t now_us);
/* The i-th call is no longer open. `off`: it leaves the list. The lease ends with its last open
 * call. */
void led_lease_done(struct led_lease *l, size_t i, bool off);
/* Take an ended call off the list of the lease it ended under, if that lease still has others. */
MUST_USE enum pawl_status led_lease_leave(struct ledger *c, struct bytes token, int64_t seq,
                                          struct pawl_err *err);
/* How many open calls stand before the i-th in its run. *out_first: the first of these, or i. */
int64_t led_lease_before(const struct led_lease *l, size_t i, size_t *out_first);
/* Has the i-th call begun? An open call that has not begun is shown as pending, and a reclaim does
 * not count it as lost. */
bool led_lease_begun(struct led_lease *l, size_t i);
/* Has the first call of a key with held calls begun? True if its lease has ended since the key was
 * read. */
MUST_USE enum pawl_status led_head_begun(struct ledger *c, const struct led_key *k, bool *out,
                                         struct pawl_err *err);

/* ---- Keys (key.c) ---------------------------------------------------------------------------- */

/* TRY: a key that another transaction has locked is left out (`got` stays false). WAIT: wait for
 * it. Both also lock a key that has no row, for a caller that changes the key: the row is inserted
 * with that change. ROW: like WAIT, for a caller that may leave the key unchanged: the row is
 * inserted if it is missing. */
enum led_lock { LOCK_TRY, LOCK_WAIT, LOCK_ROW };
/* Lock and read these keys, and add the key notes for them. BROKEN if a row is damaged. */
MUST_USE enum pawl_status led_keys_load(struct ledger *c, const struct bytes *names, size_t n,
                                        enum led_lock how, struct pawl_err *err);
/* Keys for led_keys_ask(). */
struct led_asked_keys {
    const struct bytes *wait, *try; /* in; valid until the transaction ends */
    size_t n_wait, n_try;
    enum led_lock how; /* `wait`: LOCK_WAIT or LOCK_ROW */
    bool with_notes;   /* false: the caller adds them, or knows that there are none */
    struct bytes *v;   /* out: the names that were asked for, n_wait, then n_try */
    size_t n;
    struct led_rows *waited, *tried, *notes;
};
/* led_keys_load() in two halves: led_keys_ask() adds the queries to a batch, led_keys_take() reads
 * their rows after the batch has run. Without `with_notes`, led_keys_notes() reads and adds the key
 * notes after that. */
MUST_USE enum pawl_status led_keys_ask(struct ledger *c, struct led_batch *b,
                                       struct led_asked_keys *q, struct pawl_err *err);
MUST_USE enum pawl_status led_keys_take(struct ledger *c, const struct led_asked_keys *q,
                                        struct pawl_err *err);
MUST_USE enum pawl_status led_keys_notes(struct ledger *c, const struct led_asked_keys *q,
                                         struct pawl_err *err);
/* A key in memory; the caller has loaded it before. */
struct led_key *led_key_find(struct ledger *c, struct bytes name);
/* The key in memory that a row names; BROKEN if it was not asked for. */
MUST_USE enum pawl_status led_key_of_row(struct ledger *c, struct bytes name, struct led_key **out,
                                         struct pawl_err *err);
/* led_keys_load() of one key. *out is borrowed for the transaction. */
MUST_USE enum pawl_status led_key_get(struct ledger *c, struct bytes name, enum led_lock how,
                                      struct led_key **out, struct pawl_err *err);
/* The key as it is stored, read without a lock, for readers. *out NULL: it has no row. BROKEN if
 * the row is damaged. */
MUST_USE enum pawl_status led_key_look(struct ledger *c, struct bytes name, struct led_key **out,
                                       struct pawl_err *err);
/* How many calls of the key no lease holds, as far as this transaction knows. */
static inline int64_t led_key_pending(const struct led_key *k)
{
    return k->waiting + k->later + k->note_waiting + k->note_later + k->seen_waiting +
           k->seen_later;
}
/* Called before a call leaves its place: make sure that the key's numbers count it. Calls that
 * joined after the key was locked are counted now. A call that is still not counted has moved since
 * it was read: the group is repeated, and after a few repetitions it is BROKEN. */
MUST_USE enum pawl_status led_key_counts(struct ledger *c, struct led_key *k,
                                         const struct led_call *it, struct pawl_err *err);
/* Lock the keys for which other transactions left key notes, and add the notes to their numbers.
 * Keys that are locked are left out. */
MUST_USE enum pawl_status led_key_notes_fold(struct ledger *c, struct pawl_err *err);
/* Remove the rows of keys that led_key_gone() found empty, at the end of a transaction. */
MUST_USE enum pawl_status led_keys_drop(struct ledger *c, struct pawl_err *err);
/* A call or an object of the key was removed: if the key has no other, its row is removed with the
 * last writes. */
MUST_USE enum pawl_status led_key_gone(struct ledger *c, struct bytes name, struct pawl_err *err);

/* ---- Lines (line.c) -------------------------------------------------------------------------- */

/* Add a new call, which is not stored, to the end of the line of a key that is locked. */
void led_line_join(struct led_key *k, struct led_call *it);
/* Such a call leaves the end of the line. */
void led_line_left(struct led_key *k, struct led_call *it);
/* The line was written: its calls count as stored from now on. */
void led_line_written(struct led_key *k);
/* How many calls of the line are stored, by the key's numbers; without the head. */
static inline int64_t led_line_stored(const struct led_key *k)
{
    return k->waiting - (k->turn == KEY_OFFERED) - k->n_joined;
}
/* Make the call the head of its key, which takes over its place and number from `as`. */
void led_key_offer(struct led_key *k, int64_t seq, const struct led_stand *as);
/* Make the first call of the line the head, in memory. */
void led_line_offer(struct ledger *c, struct led_key *k, struct led_call *it);
/* The key may need a head: put it on tx->due, for led_keys_settle() or a claim. */
void led_key_turn(struct ledger *c, struct led_key *k);
/* Does any key need a head? Keys that need none are taken off tx->due. */
bool led_keys_unsettled(struct ledger *c);
/* Give a head to every key on tx->due whose whole line is in memory. *out: the keys whose stored
 * line has to be read, in scratch. A key that is `moving` stays on tx->due, unless everything was
 * just `written`. */
MUST_USE enum pawl_status led_keys_headless(struct ledger *c, bool written, struct led_key ***out,
                                            size_t *out_n, struct pawl_err *err);
/* Give a head to every key that needs one; `written` as above. Does nothing while a claim takes
 * calls (tx->hold). BROKEN if a key counts calls that its line does not have. */
MUST_USE enum pawl_status led_keys_settle(struct ledger *c, bool written, struct pawl_err *err);
/* Returns BROKEN: the key counts calls and its line has none. */
enum pawl_status led_line_missing(const struct led_key *k, struct pawl_err *err);
/* Up to max delayed calls whose time has come join the lines of their keys. Calls of keys that are
 * locked are left out. */
MUST_USE enum pawl_status led_keys_join_due(struct ledger *c, int max, int64_t *out_joined,
                                            struct pawl_err *err);
/* A stored call of a line. */
struct led_place_row {
    struct bytes key;
    struct led_call *call;
};
/* Read the first stored calls of these keys' lines, up to max of each, as partial calls, by key,
 * then place. The keys are locked. *out is in scratch. */
MUST_USE enum pawl_status led_lines_load(struct ledger *c, struct led_key *const *v, size_t n,
                                         int max, struct led_place_row **out, size_t *out_n,
                                         struct pawl_err *err);
/* The same with everything that a claim needs of them: up to max[i] calls of v[i], into its
 * `ahead`. Inputs are read up to `len` bytes in all. */
MUST_USE enum pawl_status led_lines_take(struct ledger *c, struct led_key *const *v,
                                         const int64_t *max, size_t n, int64_t len,
                                         struct pawl_err *err);

/* ---- Claim cursors (claim_cursor.c) ---------------------------------------------------------- */

/* May the running transaction's claim look from the cursors on? If not, it looks at everything.
 * `last`: the transaction has looked before. */
bool led_cursors_trusted(struct ledger *c, bool last);
/* The shortest time between two full looks if the cursors find no due row. */
#define LED_CURSORS_DOUBT_US (50 * MS_US)
/* A look from the cursors on found no due row: is it time for a full look? If so, the next look is
 * a full one. */
bool led_cursors_doubt(struct ledger *c);
/* The time from one full look to the next while the cursors find no due row. */
int64_t led_cursors_rest(const struct ledger *c);
/* Move the cursors to what a look found: the first row of each pair that has one, from its cursor
 * on. */
void led_cursors_answered(struct ledger *c, const struct led_rows *r);
/* Where to look from, in *run_at_us and *seq; 0: from the beginning. */
void led_cursor_get(struct ledger *c, int64_t track, int64_t rank, int64_t *run_at_us,
                    int64_t *seq);
/* Add a query for the first row of every known pair, from its cursor on. */
void led_cursors_ask(struct ledger *c, struct led_batch *b, struct led_rows **out);
/* A claim has taken everything up to this row. */
void led_cursor_raise(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us,
                      int64_t seq);
/* A row was written or seen there: move the cursor back if it stands behind the row. */
void led_cursor_lower(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us,
                      int64_t seq);

/* ---- Rules for rows (check.c) ---------------------------------------------------------------- */

/* LOADED: the row by itself, as it was read; if it is wrong, the database was damaged: BROKEN.
 * DECIDED: the row as it is about to be written, also compared with other rows that are locked; if
 * it is wrong, this program has a bug, and the process ends (CHECK). */
enum led_when { LED_LOADED, LED_DECIDED };
/* Place and state agree; number, attempt counts, expiry and priority are possible; the call has a
 * place in a line if, and only if, it has a key and is in the line, offered or in a run; it has an
 * outcome if it ended. DECIDED: the lease that holds it lists it with the same values, and a lease
 * that it left does not list it as open. */
MUST_USE enum pawl_status led_call_check(const struct led_call *it, enum led_when when,
                                         struct pawl_err *err);
/* The lease has a token and an owner; its calls rise by number, each with a lane and possible
 * counts, with both a number and a place in its key or with neither; runs are linked both ways and
 * in order. DECIDED, for a lease that is locked and stays: `left` and `named` are what the list
 * says, at least one call is left, runs end in order, and a lease that was made in this transaction
 * holds what it lists. */
MUST_USE enum pawl_status led_lease_check(struct ledger *c, const struct led_lease *l,
                                          enum led_when when, struct pawl_err *err);
/* For a key whose row was read or is locked: no number is below 0; calls are held if, and only if,
 * it is their turn; an offer, a run and a block have a first call. */
MUST_USE enum pawl_status led_key_check(const struct led_key *k, enum led_when when,
                                        struct pawl_err *err);
/* BROKEN unless a number of `what` that was read (a call's, a version, a row's) is above 0. */
MUST_USE enum pawl_status led_number_check(int64_t number, const char *what, struct pawl_err *err);
/* BROKEN if the answer has more rows than the statement was asked for. */
MUST_USE enum pawl_status led_rows_check(const struct led_rows *r, enum sql_name name, size_t max,
                                         struct pawl_err *err);
/* BROKEN unless track, rank and time of a row of `ready` are possible. */
MUST_USE enum pawl_status led_ready_check(int64_t track, int64_t rank, int64_t run_at_us,
                                          struct pawl_err *err);
/* BROKEN unless the call, which was found by the row of this id, has this id. */
MUST_USE enum pawl_status led_id_check(struct bytes id, const struct led_call *it,
                                       struct pawl_err *err);
/* BROKEN unless the form of `what` that was read is one of enum pawl_form. */
MUST_USE enum pawl_status led_form_check(enum pawl_form form, const char *what,
                                         struct pawl_err *err);
/* For an object that is stored: version and time are above 0, the form is known. */
MUST_USE enum pawl_status led_object_check(const struct led_object *o, enum led_when when,
                                           struct pawl_err *err);
/* BROKEN unless a row of a node that was read has a name, a boot and a possible count of
 * heartbeats.
 */
MUST_USE enum pawl_status led_node_check(struct bytes node, struct bytes boot, int64_t beats,
                                         struct pawl_err *err);
/* BROKEN unless the answer of node_read, node_lock or node_share is no row, or one that
 * led_node_check() lets pass. */
MUST_USE enum pawl_status led_node_rows_check(struct bytes node, const struct led_rows *r,
                                              struct pawl_err *err);
/* Epoch and times are possible; with a lease (`until_us`) there is a leader, with an epoch. */
MUST_USE enum pawl_status led_leader_check(struct bytes role, const struct led_leader *l,
                                           enum led_when when, struct pawl_err *err);
/* Check every lease and key of the transaction, DECIDED, and that every free key with a line has a
 * head. Called when all keys have heads and everything is written. */
void led_check_all(struct ledger *c);

/* ---- Moving and writing (flush.c, move.c) ---------------------------------------------------- */

/* Move a call to another place, in memory; no other function does. The key's numbers follow.
 * `behind`: if the call was held, the next call of its run, else 0. */
MUST_USE enum pawl_status led_put(struct ledger *c, struct led_call *call, struct led_stand to,
                                  int64_t behind, struct pawl_err *err);
/* End a pending call: it was cancelled or has expired. */
MUST_USE enum pawl_status led_end_pending(struct ledger *c, struct led_call *call,
                                          enum pawl_state state, struct pawl_err *err);
/* Add the id, copied, to op->ended. */
MUST_USE enum pawl_status led_told_ended(struct op *op, struct bytes id, struct pawl_err *err);
/* Write everything that changed. BUSY and c->redo if another transaction changed the same rows. A
 * transaction that only reads writes nothing. */
MUST_USE enum pawl_status led_flush(struct ledger *c, struct pawl_err *err);
/* Adds queries to a batch that writes. */
typedef void led_ask_fn(struct ledger *c, struct led_batch *b);
/* The same, followed by the queries that `ask` adds (NULL: none); it is called when all writes are
 * in the batch. */
MUST_USE enum pawl_status led_flush_ask(struct ledger *c, led_ask_fn *ask, struct pawl_err *err);
/* The same, followed by the commit: in one round trip if `sure`, which says that every row to be
 * removed or changed is locked. The transaction has ended when it returns; UNKNOWN: whether it was
 * committed is not known. */
MUST_USE enum pawl_status led_flush_commit(struct ledger *taken, led_ask_fn *ask, bool sure,
                                           struct pawl_err *err);

/* ---- Features (feature.c) -------------------------------------------------------------------- */

/* At most so many statements of features are sent with the group's own; more are sent before. */
#define FEATURE_STATEMENTS_MAX 8
/* Add a row to be written by led_flush(), behind the ledger's own statements (flush.c). */
MUST_USE enum pawl_status led_row_add(struct ledger *c, enum sql_name name, const char *kinds,
                                      const union feature_value *v, enum feature_count count,
                                      struct pawl_err *err);
/* Write the rows of features alone, if there are any (flush.c). */
MUST_USE enum pawl_status led_rows_flush(struct ledger *c, struct pawl_err *err);
/* Let the features of a group load what its operations need, each feature once. */
MUST_USE enum pawl_status led_features_load(struct ledger *c, struct op *const *v, size_t n,
                                            struct pawl_err *err);
/* Decide an operation of a feature (OP_FEATURE), behind its fence. */
MUST_USE enum pawl_status led_feature(struct ledger *c, struct op *op, struct pawl_err *err);
/* Decide the `with` of an item that the finish op->finish is about to end. *out: the operation with
 * its answer, in scratch. */
MUST_USE enum pawl_status led_feature_with(struct ledger *c, struct op *op, struct finish_item *it,
                                           const struct token *token, struct op **out,
                                           struct pawl_err *err);
/* A watched call is about to move `to`: remember it for led_moved_tell() if it leaves a lease or
 * ends. */
MUST_USE enum pawl_status led_moved_add(struct ledger *c, const struct led_call *call,
                                        const struct led_stand *to, struct pawl_err *err);
/* Tell features of the calls that moved, until nothing moves any more. What they do is answered in
 * one of the operations v. */
MUST_USE enum pawl_status led_moved_tell(struct ledger *c, struct op *const *v, size_t n,
                                         struct pawl_err *err);
/* Tell all features that these calls were removed. */
MUST_USE enum pawl_status led_features_forget(struct ledger *c, const int64_t *seqs, size_t n,
                                              struct pawl_err *err);

/* Let the features remove up to `max` rows each that need not be kept. *more: there are others. */
MUST_USE enum pawl_status led_features_gc(struct ledger *c, int max, bool *more,
                                          struct pawl_err *err);
/* Ask the features which of these ended calls have to stay for now. keep[i] is set for those. */
MUST_USE enum pawl_status led_features_keep(struct ledger *c, const int64_t *seqs, size_t n,
                                            bool *keep, struct pawl_err *err);

/* ---- Gates (gate.c) -------------------------------------------------------------------------- */

/* Know the rules that hold calls back by their lane. *out: are there any? */
MUST_USE enum pawl_status led_gates_read(struct ledger *c, bool *out, struct pawl_err *err);
/* Does one of them hold for this lane? After led_gates_read(). */
bool led_gated(const struct ledger *c, const struct led_lane *lane);
/* For readers: is the call in a lane from which none may begin now? */
MUST_USE enum pawl_status led_gate_closed(struct ledger *c, int lane, bool *out,
                                          struct pawl_err *err);
/* Does the transaction take no more calls from this track? */
bool led_gate_shut(const struct ledger *c, int64_t track);
/* Free what the handle remembers of the rules. */
void led_gates_end(struct ledger *c);

/* ---- Objects (object.c) ---------------------------------------------------------------------- */

/* The object, which is read if necessary; version 0: there is none. *out is borrowed for the
 * transaction. */
MUST_USE enum pawl_status led_object_get(struct ledger *c, struct bytes type, struct bytes key,
                                         struct led_object **out, struct pawl_err *err);
/* The same without reading it, for a caller that has locked its key and sets its state next:
 * led_object_set() with STATE_SET. */
MUST_USE enum pawl_status led_object_over(struct ledger *c, struct bytes type, struct bytes key,
                                          struct led_object **out, struct pawl_err *err);
/* Read several objects at once, so that led_object_get() finds them in memory. BROKEN if a row is
 * damaged. */
MUST_USE enum pawl_status led_objects_load(struct ledger *c, const struct bytes *types,
                                           const struct bytes *keys, size_t n,
                                           struct pawl_err *err);
/* Set the object's state, with the next version, or delete it. `state` is borrowed for the
 * transaction. */
MUST_USE enum pawl_status led_object_set(struct ledger *c, struct led_object *o, enum state_do how,
                                         struct payload state, struct pawl_err *err);

/* ---- Operations ------------------------------------------------------------------------------ */

/* One function for each kind of operation. Its answer is in op->status and op->err; it returns
 * another status than OK only if the whole transaction must be undone. */

/* Decide an operation of any kind (group.c). */
MUST_USE enum pawl_status led_apply(struct ledger *c, struct op *op, struct pawl_err *err);
/* Make the heads due that key notes name, for keys that are locked now (wake.c). */
MUST_USE enum pawl_status led_keys_wake(struct ledger *c, struct pawl_err *err);
/* Make pending calls due now (OP_WAKE). */
MUST_USE enum pawl_status led_wake(struct ledger *c, struct op *op, struct pawl_err *err);

/* Accept calls (OP_ACCEPT). Known ids are answered from what is stored. */
MUST_USE enum pawl_status led_accept(struct ledger *c, struct op *op, struct pawl_err *err);
/* Say in the operation's status and sentence why a call was not accepted. */
void led_say_refused(const struct ledger *c, struct op *op, const struct call_spec *s,
                     const struct accepted *a);
/* Lease due calls to a worker (OP_CLAIM). */
MUST_USE enum pawl_status led_claim(struct ledger *c, struct op *op, struct pawl_err *err);
/* Set seq_found of every item: its number, that of its id, or 0 when there is no such call. */
MUST_USE enum pawl_status led_finish_find(struct ledger *c, struct finish *f, struct pawl_err *err);
/* End attempts as their owner says. *out_stored: how many items ended now, without those that were
 * answered before. */
MUST_USE enum pawl_status led_finish(struct ledger *c, struct op *op, struct finish *f,
                                     size_t *out_stored, struct pawl_err *err);
/* Extend a lease with `until`; end its calls that are past their timeout (OP_EXTEND). */
MUST_USE enum pawl_status led_extend(struct ledger *c, struct op *op, struct pawl_err *err);
/* Cancel a pending call, or store a cancel request for one that a lease holds (OP_CANCEL). */
MUST_USE enum pawl_status led_cancel(struct ledger *c, struct op *op, struct pawl_err *err);
/* Make an ended call pending again (OP_RETRY). */
MUST_USE enum pawl_status led_retry(struct ledger *c, struct op *op, struct pawl_err *err);
/* The same for a call that the caller has loaded and that has ended. */
MUST_USE enum pawl_status led_retry_call(struct ledger *c, struct led_call *call,
                                         struct pawl_err *err);
/* Change queue, priority or time of a pending call (OP_MOVE). */
MUST_USE enum pawl_status led_move_to(struct ledger *c, struct op *op, struct pawl_err *err);
/* Pause or resume a queue (OP_PAUSE). */
MUST_USE enum pawl_status led_pause(struct ledger *c, struct op *op, struct pawl_err *err);
/* Set or delete the state of an object (OP_OBJECT). */
MUST_USE enum pawl_status led_object_op(struct ledger *c, struct op *op, struct pawl_err *err);
/* Free a key that an ended call blocks, or retry that call (OP_UNBLOCK). */
MUST_USE enum pawl_status led_unblock(struct ledger *c, struct op *op, struct pawl_err *err);
/* Prepare for one statement: without a transaction if the engine can, and then without the server's
 * clock (now_us 0). */
MUST_USE enum pawl_status led_begin_autocommit(struct ledger *c, struct pawl_err *err);
/* Run the group without a transaction if that is possible (*done). Otherwise it has done nothing
 * (autocommit.c). */
MUST_USE enum pawl_status led_autocommit(struct ledger *c, struct op *const *v, size_t n,
                                         bool *done, struct pawl_err *err);
/* Register a process as a node, and take back the leases of its former processes (OP_JOIN). */
MUST_USE enum pawl_status led_join(struct ledger *c, struct op *op, struct pawl_err *err);
/* Record a heartbeat; LOST_LEASE if another process is the node now (OP_BEAT). */
MUST_USE enum pawl_status led_beat(struct ledger *c, struct op *op, struct pawl_err *err);
/* Remove the node, and hand back the calls of its leases (OP_LEAVE). */
MUST_USE enum pawl_status led_leave(struct ledger *c, struct op *op, struct pawl_err *err);
/* Declare a node dead, unless it has sent a heartbeat since, and take back its leases (OP_BURY). */
MUST_USE enum pawl_status led_bury(struct ledger *c, struct op *op, struct pawl_err *err);
/* Tell a node to take no new work, or to take work again (OP_DRAIN). */
MUST_USE enum pawl_status led_drain(struct ledger *c, struct op *op, struct pawl_err *err);
/* Acquire, extend or resign the lead of a role (OP_LEAD). */
MUST_USE enum pawl_status led_lead(struct ledger *c, struct op *op, struct pawl_err *err);
/* Release the roles that the node leads under this boot (own), or under every other one. */
MUST_USE enum pawl_status led_vacate(struct ledger *c, const struct node_op *n, bool own,
                                     struct pawl_err *err);
/* Add what a claim reads first: its node (`likely`: it will probably find calls to take), and what
 * can be claimed. */
void led_claim_ask_node(struct ledger *c, struct led_batch *b, const struct claim *q, bool likely);
void led_claim_ask(struct ledger *c, struct led_batch *b);
/* Add what the claim tx->late reads with the group's last write; led_claim_late() answers it from
 * that. */
void led_claim_ask_last(struct ledger *c, struct led_batch *b);
void led_claim_late(struct ledger *c);
/* Did the last look of a claim find no key notes, of any key? */
bool led_claim_no_key_notes(const struct ledger *c);
/* The statement that reads which queues are paused, and the revision of limits; its parameters. */
enum sql_name led_paused_name(struct ledger *c, struct led_params *p);
/* Read that, unless this transaction has. */
MUST_USE enum pawl_status led_paused_read(struct ledger *c, struct pawl_err *err);
/* Take over its rows. */
MUST_USE enum pawl_status led_paused_take(struct ledger *c, const struct led_rows *r,
                                          struct pawl_err *err);
/* Do the rows of node_read or node_share say that the node was declared dead, or is another process
 * now? False if it has no row. */
bool led_node_replaced(struct bytes boot, const struct led_rows *r);
/* End calls that have expired, take back leases that are over, let delayed calls join (OP_SWEEP).
 */
MUST_USE enum pawl_status led_sweep(struct ledger *c, struct op *op, struct pawl_err *err);
/* Remove calls whose retention is over, and tombstones (OP_GC). */
MUST_USE enum pawl_status led_gc(struct ledger *c, struct op *op, struct pawl_err *err);
/* Run a handler with its SQL and store its finish in the same transaction (OP_HANDLER). */
MUST_USE enum pawl_status led_handler(struct ledger *c, struct op *op, struct pawl_err *err);
/* Run an application's script (OP_SCRIPT). */
MUST_USE enum pawl_status led_script_op(struct ledger *c, struct op *op, struct pawl_err *err);

/* Take back leases that are older than a time (OP_REQUEUE). */
MUST_USE enum pawl_status led_requeue(struct ledger *c, struct op *op, struct pawl_err *err);

/* Are there calls that were submitted in SQL and committed since (inbox.c)? */
MUST_USE enum pawl_status led_inbox_any(struct ledger *c, bool *out, struct pawl_err *err);
/* Make calls of up to max of them. A row that cannot become a call stays, with the reason. */
MUST_USE enum pawl_status led_inbox_move(struct ledger *c, int max, struct pawl_err *err);
/* Remove refused rows that are older than the retention of calls. */
MUST_USE enum pawl_status led_inbox_forget(struct ledger *c, int max, struct pawl_err *err);

/* What is known about an id of a batch before any of the batch is written. */
struct led_look {
    enum led_known { KNOWN_NOT, KNOWN_SAME, KNOWN_OTHER } known;
    bool new_lane;
};
/* Compare the ids of a batch with each other and with what is stored; out has n places. */
MUST_USE enum pawl_status led_look(struct ledger *c, const struct call_spec *v, size_t n,
                                   struct led_look *out, struct pawl_err *err);
/* May the call have the needs that it has? Not before the second half of LANES_STEP has run:
 * programs of older versions would claim it. */
MUST_USE enum pawl_status led_needs_allowed(struct ledger *c, const struct call_spec *s, bool *out,
                                            struct pawl_err *err);
/* Make a new call in memory: its id, its number and its place. *s is borrowed for the transaction.
 */
MUST_USE enum pawl_status led_call_make(struct ledger *c, const struct call_spec *s, int lane,
                                        struct call *out, struct pawl_err *err);

/* How an attempt ends, and what that means for its call. */
struct led_end {
    struct attempt_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us, claimed_us;
    bool owner;   /* a finish by the owner: the outcome records its token */
    bool unbegun; /* no handler began it under this lease */
    struct verdict verdict;
    enum flow_next flow;     /* of a flow: what its feature decided */
    struct bytes flow_error; /* ENDS: the error of the outcome; `error` is that of the attempt */
};
/* End one attempt of the i-th call of a lease, in a finish or a reclaim; fills in e->verdict. *out:
 * the call, in its new place. */
MUST_USE enum pawl_status led_attempt_end(struct ledger *c, struct led_lease *l, size_t i,
                                          struct led_end *e, struct led_call **out,
                                          struct pawl_err *err);
/* A call that a lease holds, with what is needed to end its attempt, and its lease. */
MUST_USE enum pawl_status led_held_call(struct ledger *c, int64_t seq, struct led_call **out,
                                        struct pawl_err *err);
/* Choose the place of a held call that is handed back. */
MUST_USE enum pawl_status led_place_back(struct ledger *c, const struct led_call *it,
                                         enum led_place *out, struct pawl_err *err);
/* Hand back the i-th call of a lease (i below 0: none) and those behind it in its run. Items of `f`
 * that name them are answered. */
MUST_USE enum pawl_status led_hand_back(struct ledger *c, struct op *op, struct led_lease *l, int i,
                                        struct finish *f, struct pawl_err *err);
/* When the present step of the i-th call of a lease began: for a call that is no flow, its attempt.
 */
static inline int64_t led_since(const struct led_lease *l, size_t i)
{
    return l->held[i].since_us ? l->held[i].since_us : l->claimed_us;
}
/* End the calls of a lease with `until` that are past their timeout; their ids are added to
 * op->extend. *out_last_us: the last deadline of the calls that are left; l->missing if none is
 * left. */
MUST_USE enum pawl_status led_time_out(struct ledger *c, struct op *op, struct led_lease *l,
                                       int64_t *out_last_us, struct pawl_err *err);
/* Take back a lease whose owner is gone: its calls end as `how` says, and *count grows by their
 * number. A lease that does not exist is not an error. */
MUST_USE enum pawl_status led_reclaim(struct ledger *c, struct op *op, const struct token *token,
                                      const struct attempt_end *how, int64_t *count,
                                      struct pawl_err *err);

#endif
