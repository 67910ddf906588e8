/*
 * cache.h - what a running transaction knows: calls, leases and keys as they were loaded and as
 * they are now. Private to store/ledger.
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

enum led_place {
    AT_NONE,    /* not stored yet */
    AT_READY,   /* it can be claimed when it is due: a call without a key, or the head of its key */
    AT_LINE,    /* in its key's line, behind the head */
    AT_DELAYED, /* delayed: it joins its key's line when its time has come */
    AT_HELD,    /* a lease names it, and it has no outcome */
    AT_ENDED,
    AT_GONE, /* its retention is over: only a tombstone is left */
};

/* How a call ended. It is never changed: another outcome is another object. */
struct led_outcome {
    struct payload result;
    struct bytes error, node;
    struct bytes token; /* absent: ended by no owner */
    int64_t claimed_us, started_us, finished_us;
    int64_t keep_until_us; /* INT64_MAX: it blocks its key */
};

/* A place in a key's line. Where one connection writes at a time it is the number with which a call
 * joined, and the call keeps it: calls that join later have higher ones, so a call that was claimed
 * and handed back stands before all that were never claimed. Where several connections write, a
 * call may be committed late, with a number below those of calls that were claimed long ago. There
 * a call joins at LINE_FRESH + its number, and a call that is claimed gets a place before all of
 * these, in case it is handed back: its number in the key times LINE_STEP, or right behind the last
 * such place if it joined the line again with the number it had. */
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
    bool fresh;       /* its row of `call` is not written */
    bool moved;       /* its row of `call` has another lane, priority or run_at now */
    bool partial;     /* only its place is known: it was read as a row of a line */
    bool lean;        /* partial, but enough is known to end its attempt */
    bool cut;         /* its input was not read with it, because of its length */
    size_t input_len; /* of a call that was read for a claim */
    bool named, ends; /* a finish of the group names it; and will surely end it */
    struct led_stand was, now;
    struct led_lease *lease; /* HELD: the lease that holds it, once it was asked for */
    struct led_lease *left;  /* no longer HELD: the lease that held it in this transaction */
    size_t held_at;          /* lean: its index in the lease */
    struct led_attempt *ended_attempts; /* newest first, not written */
    unsigned mark;                      /* of the finish that looked at it last */
    int64_t forget_us;                  /* GONE */
    bool skipped;                       /* the running claim passed over it: its key is locked */
    bool grabbed;                       /* its row of `ready` was deleted when it was found */
    bool joined;                        /* new in its key's line, and not stored: led_line_join() */
    struct led_call *joined_next;
};

struct led_id {
    struct led_id *same;
    struct bytes id;
    int64_t seq; /* 0: no call has this id */
    unsigned char fingerprint[FINGERPRINT_LEN];
    bool fresh;
    bool counted;    /* by led_ids_new() */
    int64_t claimed; /* its row was added with this number, for a call that is about to be made */
};

enum { HELD_OPEN, HELD_ENDED, HELD_OFF };
struct led_link {
    int before, behind; /* in its run; below 0: none */
};
struct led_lease {
    struct led_lease *same, *newer;
    struct token token;
    struct bytes node, boot, worker, owner;
    int64_t claimed_us, until_us, rev;
    int width; /* calls its owner runs at once; 0: all */
    size_t n, named, left;
    struct held *held;
    unsigned char *state; /* HELD_ */
    struct led_link *run;
    bool *begun;                 /* n; true while `left` is begun_left: led_lease_begun() */
    size_t begun_left;           /* 0: not known */
    bool cached;                 /* the handle remembered this list when the lease was read */
    bool fresh, rewritten;       /* in this transaction */
    bool missing, stored, dirty; /* missing: there is no such lease, or it has ended */
    bool asked, locked;          /* its lock was asked for; and answered, also if it is missing */
};

enum led_turn { KEY_IDLE, KEY_OFFERED, KEY_HELD, KEY_BLOCKED };
struct led_key {
    struct led_key *same, *newer, *next_due;
    struct bytes name;
    bool got;   /* its row is locked by this transaction, or it has none and is `fresh` */
    bool tried; /* its lock was asked for; without `got` another transaction has it */
    bool known; /* there is a row */
    bool fresh; /* there is none: it is inserted when the key is written */
    bool dirty, due, drop;
    bool written; /* its row, by this transaction */
    bool moving;  /* the stored part of its line is not as it is in memory */
    enum led_turn turn;
    int64_t head, head_pos, head_no;
    int64_t next_no, held, waiting, later, since_us, ended_us;
    int64_t last_place;               /* the last place that a claim of this group gave */
    int64_t note_waiting, note_later; /* not got: the key note that this transaction leaves */
    int64_t seen_waiting, seen_later; /* not got: key notes of others, just to be shown */
    int64_t *folded;                  /* key notes that are in the numbers above, and go */
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

/* What a claim looks at first, asked with the beginning of the transaction. */
struct led_ahead {
    bool asked;
    bool by_cursors; /* `pairs` has only known pairs, from their cursors on */
    bool full;       /* all pairs were asked for once in this transaction */
    struct led_rows *look, *pairs, *node;
    struct bytes whose;         /* of which node `node` is the row */
    bool shared;                /* that row is locked against the end of the node */
    bool asked_cancel_requests; /* cancel requests for what is remembered of the group's leases:
                                   asked */
    struct led_rows *cancel_requests;
};

/* A claim's query for rows of `ready`, which goes along with a flush. */
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

struct led_cache {
    struct led_call *calls[LED_BUCKETS], *first_call, **last_call;
    struct led_id *ids[LED_BUCKETS];
    struct led_lease *leases[LED_BUCKETS], *first_lease;
    struct led_key *keys[LED_BUCKETS], *first_key, *due;
    struct led_object *objects[LED_BUCKETS], *first_object;
    struct led_ahead ahead;
    struct led_take take;
    struct claim *late; /* its `more` and `next_due_us` are answered with the last flush */
    bool late_passed;   /* it passed over calls whose keys are locked */
    bool last_op;       /* no operation of the group comes after the one that is being decided */
    bool news;          /* `ready` as it is stored is not what a claim has to see */
    bool fresh;         /* calls in memory can be claimed, or will, that are not in `ready` yet */
    bool delayed;       /* a delayed call with a key came or went */
    bool noted;         /* a key note is left for a key that another transaction has locked */
    unsigned writes;    /* counts what led_flush() and its like did */
    struct bytes *paused;
    size_t n_paused;
    bool paused_read;
    bool hold; /* a claim takes calls: no key gets a head meanwhile */
    struct led_reserve numbers, versions;
};

/* ---- Loading (load.c) ------------------------------------------------------------------------ */

/* Read these ids, as far as they are not in memory. */
MUST_USE enum pawl_status led_ids_load(struct ledger *c, const struct bytes *ids, size_t n,
                                       struct pawl_err *err);
/* What is known of an id; seq 0: no call has it. Borrowed for the transaction. */
MUST_USE enum pawl_status led_id_get(struct ledger *c, struct bytes id, struct led_id **out,
                                     struct pawl_err *err);
/* The same for a call that is new unless its id is known, where one connection writes at a time:
 * the row is added at once with the next number, which led_call_make() takes. */
MUST_USE enum pawl_status led_id_claim(struct ledger *c, const struct call_spec *s,
                                       struct led_id **out, struct pawl_err *err);
/* The call is refused after all: the row of its id is removed, if led_id_claim() added it. */
MUST_USE enum pawl_status led_id_release(struct ledger *c, struct led_id *id, struct pawl_err *err);
/* led_ids_load() in halves. `sure`: every `fresh` id that is new will take a number, so the numbers
 * are drawn in the same statement. */
struct led_asked_ids {
    const struct bytes *fresh;
    size_t n_fresh;
    const struct bytes *ids;
    size_t n_ids;
    bool sure;
};
MUST_USE enum pawl_status led_ids_ask(struct ledger *c, struct led_batch *b, struct led_rows **out,
                                      const struct led_asked_ids *q, struct pawl_err *err);
MUST_USE enum pawl_status led_ids_take(struct ledger *c, const struct led_rows *r,
                                       struct pawl_err *err);
/* How many of these ids are new; each is counted once a transaction. */
size_t led_ids_new(struct ledger *c, const struct bytes *ids, size_t n);
/* Read these calls and where they stand, as far as they are not in memory. */
MUST_USE enum pawl_status led_calls_load(struct ledger *c, const int64_t *seqs, size_t n,
                                         struct pawl_err *err);
/* The call of a row of ready_take or line_take, whose columns of the call begin at `at`. */
MUST_USE enum pawl_status led_call_taken(struct ledger *c, const struct led_rows *r, int row,
                                         int at, struct led_call *it, struct pawl_err *err);
/* NULL: no call and no tombstone has this number. */
MUST_USE enum pawl_status led_call_get(struct ledger *c, int64_t seq, struct led_call **out,
                                       struct pawl_err *err);
/* The call if it is in memory, else NULL. */
struct led_call *led_call_find(struct ledger *c, int64_t seq);
/* The call or id in memory; an empty one if it is not there; NULL without memory. */
struct led_call *led_call_new(struct ledger *c, int64_t seq);
struct led_id *led_id_new(struct ledger *c, struct bytes id);
/* Read the inputs and results of these calls. */
MUST_USE enum pawl_status led_payloads_load(struct ledger *c, struct led_call *const *v, size_t n,
                                            struct pawl_err *err);
/* Draw sequence numbers, or versions of objects, until n are in reserve. */
MUST_USE enum pawl_status led_numbers(struct ledger *c, size_t n, struct pawl_err *err);
MUST_USE enum pawl_status led_versions(struct ledger *c, size_t n, struct pawl_err *err);
/* Take the next sequence number. */
MUST_USE enum pawl_status led_number_next(struct ledger *c, int64_t *out, struct pawl_err *err);
/* Ask for the cancel requests of the calls that are remembered of the leases which the batch locks
 * before. */
void led_cache_ask(struct ledger *c, struct led_batch *b);
/* The place of a call that joins a line with this number. */
int64_t led_line_place(const struct ledger *c, int64_t number);
/* The places of a lease's calls: from the form that its stored list has, and into that form. */
void led_places_read(const struct ledger *c, struct held *v, size_t n);
void led_places_list(const struct ledger *c, struct held *v, size_t n);
/* The place behind all others of a line. */
MUST_USE enum pawl_status led_line_end(struct ledger *c, int64_t *out, struct pawl_err *err);
/* The error of its newest attempt that is shown; absent for none. */
MUST_USE enum pawl_status led_last_error(struct ledger *c, const struct led_call *call,
                                         struct bytes *out, struct pawl_err *err);
/* The call as a reader sees it, everything in `a`. LED_AS_OWNER in `with`: as the owner of its
 * lease sees it, for whom all of the lease's calls are processing. */
#define LED_AS_OWNER 0x100u
MUST_USE enum pawl_status led_show(struct ledger *c, struct arena *a, struct led_call *call,
                                   unsigned with, struct call *out, struct pawl_err *err);

/* For the hash tables of a transaction. */
uint64_t led_hash(const void *data, size_t len);
/* qsort() with a fast path for input that is already sorted. */
void led_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));

/* ---- Leases (lease.c) ------------------------------------------------------------------------ */

/* Lock and read these leases. */
MUST_USE enum pawl_status led_leases_load(struct ledger *c, const struct token *v, size_t n,
                                          struct pawl_err *err);
/* The same in halves, of which the first goes along with other statements. */
MUST_USE enum pawl_status led_leases_ask(struct ledger *c, struct led_batch *b,
                                         const struct token *v, size_t n, struct led_rows **out,
                                         struct pawl_err *err);
MUST_USE enum pawl_status led_leases_take(struct ledger *c, const struct token *v, size_t n,
                                          const struct led_rows *r, struct pawl_err *err);
/* ---- What a handle remembers (lease_cache.c)
 * -------------------------------------------------------- */

/* What the handle remembers of a lease, if it is still true: same rev, same list. Else it is
 * dropped and the answer is NULL. The answer is borrowed until the next call of this file; the ids
 * and keys of its calls stay until the transaction ends or is forgotten. */
struct led_cached_lease *led_cache_find(struct ledger *c, const struct led_lease *l);
/* The number of the call with this id, if the lease is remembered and the id stands at *at or soon
 * behind it; *at (0 at first) moves behind it. 0: look in the database. What it says is true only
 * of a lease that was found `cached` in this transaction; before that it is a guess. */
int64_t led_cache_seq(struct ledger *c, const struct token *token, struct bytes id, size_t *at);
/* The keys of the calls that this finish names, as far as they are remembered and have not ended,
 * in scratch, into out (room for q->n). False: some are not remembered, or there is no memory. */
MUST_USE bool led_cache_keys(struct ledger *c, const struct finish *q, struct bytes *out,
                             size_t *out_n);
/* The transaction was committed: remember what it changed. */
void led_cache_stored(struct ledger *c);
/* It was undone, its end is not known, or its leases are about to be forgotten before the commit:
 * remember nothing of the leases it read. */
void led_cache_doubt(struct ledger *c);
/* Free everything that is remembered. */
void led_cache_end(struct ledger *c);

/* Read the calls of the leases in memory, lean, and which of them have ended. */
MUST_USE enum pawl_status led_leases_calls(struct ledger *c, struct pawl_err *err);
/* The lease, locked; NULL when there is none. */
MUST_USE enum pawl_status led_lease_get(struct ledger *c, const struct token *token,
                                        struct led_lease **out, struct pawl_err *err);
/* Read the leases that hold these calls, without a lock. BROKEN when no lease holds one. */
MUST_USE enum pawl_status led_holders_load(struct ledger *c, struct led_call *const *v, size_t n,
                                           struct pawl_err *err);
/* Read every lease, without a lock. */
MUST_USE enum pawl_status led_all_leases(struct ledger *c, struct pawl_err *err);
/* The lease in memory; an empty one if it is not there; NULL without memory. */
struct led_lease *led_lease_new(struct ledger *c, const struct token *token);
/* A new lease for a claim. If one of this token ended in this group, its row is removed before the
 * new one is written. */
MUST_USE enum pawl_status led_lease_make(struct ledger *c, const struct token *token,
                                         struct led_lease **out, struct pawl_err *err);
/* The lease names these calls from now on, all of them open: fill in n, state, run and begun, and
 * forget what was remembered of another list. False without memory. */
MUST_USE bool led_lease_list(struct ledger *c, struct led_lease *l, struct held *held, size_t n);
/* The index of a call in its list; below 0: it is not there. */
ssize_t led_lease_find(const struct led_lease *l, int64_t seq);
/* Has the lease ended by time? */
static inline bool led_lease_over(const struct led_lease *l, int64_t now_us)
{
    return l->until_us && l->until_us <= now_us;
}
/* claim_until() for calls that are not shown yet. */
int64_t led_claim_until(const struct claim *q, struct led_call *const *taken,
                        const int64_t *position, int64_t now_us);
/* The i-th call is no longer open; `off`: it leaves the list. The last open call ends the lease. */
void led_lease_done(struct led_lease *l, size_t i, bool off);
/* Take an ended call off the list of the lease it ended under, if that lease still has others. */
MUST_USE enum pawl_status led_lease_leave(struct ledger *c, struct bytes token, int64_t seq,
                                          struct pawl_err *err);
/* How many of its run stand before it without an outcome; *out_first: the first of these, or i. */
int64_t led_lease_before(const struct led_lease *l, size_t i, size_t *out_first);
/* Has the i-th call, which is open, begun? If not it is shown as pending, and a reclaim does not
 * count it as lost. */
bool led_lease_begun(struct led_lease *l, size_t i);
/* Has the first call of a key that is held begun? True when its lease has ended meanwhile. */
MUST_USE enum pawl_status led_head_begun(struct ledger *c, const struct led_key *k, bool *out,
                                         struct pawl_err *err);

/* ---- Keys (key.c) ---------------------------------------------------------------------------- */

/* TRY: a key that another transaction has locked is left out (`got` says so). WAIT: wait for it.
 * Both also lock a key that has no row, for a caller that changes the key: its row is inserted
 * then. ROW: as WAIT, for a caller that may leave the key as it is; the row is there after it. */
enum led_lock { LOCK_TRY, LOCK_WAIT, LOCK_ROW };
/* Lock and read these keys, with the key notes for them. */
MUST_USE enum pawl_status led_keys_load(struct ledger *c, const struct bytes *names, size_t n,
                                        enum led_lock how, struct pawl_err *err);
/* The same in halves, of which the first goes along with other statements. Without `with_notes`
 * led_keys_notes() adds the key notes after the second half. */
struct led_asked_keys {
    const struct bytes *wait, *try; /* in; they live as long as the transaction */
    size_t n_wait, n_try;
    enum led_lock how; /* `wait`: LOCK_WAIT or LOCK_ROW */
    bool with_notes;   /* false: the caller adds them, or knows that there are none */
    struct bytes *v;   /* out: the names that are asked for, n_wait, then n_try */
    size_t n;
    struct led_rows *waited, *tried, *notes;
};
MUST_USE enum pawl_status led_keys_ask(struct ledger *c, struct led_batch *b,
                                       struct led_asked_keys *q, struct pawl_err *err);
MUST_USE enum pawl_status led_keys_take(struct ledger *c, const struct led_asked_keys *q,
                                        struct pawl_err *err);
MUST_USE enum pawl_status led_keys_notes(struct ledger *c, const struct led_asked_keys *q,
                                         struct pawl_err *err);
/* A key in memory: it must have been asked for. */
struct led_key *led_key_find(struct ledger *c, struct bytes name);
/* led_keys_load() of one. */
MUST_USE enum pawl_status led_key_get(struct ledger *c, struct bytes name, enum led_lock how,
                                      struct led_key **out, struct pawl_err *err);
/* The key as it is stored, without a lock, for readers; NULL when there is no row. */
MUST_USE enum pawl_status led_key_look(struct ledger *c, struct bytes name, struct led_key **out,
                                       struct pawl_err *err);
/* How many calls of the key no lease holds, as far as it is known. */
static inline int64_t led_key_pending(const struct led_key *k)
{
    return k->waiting + k->later + k->note_waiting + k->note_later + k->seen_waiting +
           k->seen_later;
}
/* Before a call leaves its place: do the key's numbers count it? Calls that joined after the key
 * was locked are counted now. A call that is not counted even so has moved since it was read: the
 * group is done again. */
MUST_USE enum pawl_status led_key_counts(struct ledger *c, struct led_key *k,
                                         const struct led_call *it, struct pawl_err *err);
/* Look at the keys for which other transactions left key notes, as far as they are not locked. */
MUST_USE enum pawl_status led_key_notes_fold(struct ledger *c, struct pawl_err *err);
/* Remove the rows of keys that led_key_gone() found empty, at the end of a transaction. */
MUST_USE enum pawl_status led_keys_drop(struct ledger *c, struct pawl_err *err);
/* A call or an object of the key was removed: if nothing else is left, its row goes too. */
MUST_USE enum pawl_status led_key_gone(struct ledger *c, struct bytes name, struct pawl_err *err);

/* ---- Lines (line.c) -------------------------------------------------------------------------- */

/* A new call stands at the end of the line of a key that is locked; it is not stored. */
void led_line_join(struct led_key *k, struct led_call *it);
/* It leaves that place, wherever it goes. */
void led_line_left(struct led_key *k, struct led_call *it);
/* The line is stored as it is in memory from here on. */
void led_line_written(struct led_key *k);
/* How many calls of the line are stored, as far as they are counted; without the head. */
static inline int64_t led_line_stored(const struct led_key *k)
{
    return k->waiting - (k->turn == KEY_OFFERED) - k->n_joined;
}
/* The call is the head from now on, standing so: the key has its place and number. */
void led_key_offer(struct led_key *k, int64_t seq, const struct led_stand *as);
/* The first call of the line becomes the head, in memory. */
void led_line_offer(struct ledger *c, struct led_key *k, struct led_call *it);
/* The key may need a head: led_keys_settle() or a claim looks at it. */
void led_key_turn(struct ledger *c, struct led_key *k);
/* Does a key need a head? */
bool led_keys_unsettled(struct ledger *c);
/* Keys that need a head. Where the whole line is in memory its first call is the head then; *out
 * has the keys whose stored line has to be read. A key that is `moving` is left for later, unless
 * everything was just `written`. */
MUST_USE enum pawl_status led_keys_headless(struct ledger *c, bool written, struct led_key ***out,
                                            size_t *out_n, struct pawl_err *err);
/* Give a head to every key that needs one; `written` as above. Nothing while a claim takes calls
 * (tx->hold). */
MUST_USE enum pawl_status led_keys_settle(struct ledger *c, bool written, struct pawl_err *err);
/* BROKEN: the key counts calls and its line has none. */
enum pawl_status led_line_missing(const struct led_key *k, struct pawl_err *err);
/* Up to max delayed calls whose time has come join. */
MUST_USE enum pawl_status led_keys_join_due(struct ledger *c, int max, int64_t *out_joined,
                                            struct pawl_err *err);
/* The first stored calls of these keys' lines, up to max each, as partial calls, by key, then
 * place. */
struct led_place_row {
    struct bytes key;
    struct led_call *call;
};
MUST_USE enum pawl_status led_lines_load(struct ledger *c, struct led_key *const *v, size_t n,
                                         int max, struct led_place_row **out, size_t *out_n,
                                         struct pawl_err *err);
/* The same with everything a claim needs of them, for keys of which each says how many; the calls
 * are k->ahead. Inputs come along up to `len` bytes in all. */
MUST_USE enum pawl_status led_lines_take(struct ledger *c, struct led_key *const *v,
                                         const int64_t *max, size_t n, int64_t len,
                                         struct pawl_err *err);

/* ---- Claim cursors
 * (claim_cursor.c)------------------------------------------------------------------ */

/* May the running transaction's claim look from the cursors on? If not it looks at everything.
 * `last`: it has looked before. */
bool led_cursors_trusted(struct ledger *c, bool last);
/* A look from the cursors on found no due row: is it time for a full look? Then the next look is
 * one. And how long is it from one full look to the next in that case? */
#define LED_CURSORS_DOUBT_US (50 * MS_US)
bool led_cursors_doubt(struct ledger *c);
int64_t led_cursors_rest(const struct ledger *c);
/* What a look found: the first row of each pair that has one, from its cursor on. */
void led_cursors_answered(struct ledger *c, const struct led_rows *r);
/* Where to look from: *out_run_at and *out_seq; 0: from the beginning. */
void led_cursor_get(struct ledger *c, int64_t track, int64_t rank, int64_t *run_at_us,
                    int64_t *seq);
/* Ask for the first row of every known pair, from its cursor on. */
void led_cursors_ask(struct ledger *c, struct led_batch *b, struct led_rows **out);
/* A claim has taken everything up to this row. */
void led_cursor_raise(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us,
                      int64_t seq);
/* A row was written or seen there: the cursor does not stand behind it. */
void led_cursor_lower(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us,
                      int64_t seq);

/* ---- What must hold (check.c) ---------------------------------------------------------------- */

/* LOADED: the row as it was read, by itself; if it is wrong the database was damaged: BROKEN.
 * DECIDED: the row as it is about to be written, also compared with others that are locked; if it
 * is wrong this program has a bug, and the process ends (CHECK). */
enum led_when { LED_LOADED, LED_DECIDED };
/* Place and state agree; number, attempt counts, expiry, priority are possible; it has a place in a
 * line if, and only if, it has a key and stands in the line, on offer or in a run; an outcome if it
 * ended. DECIDED: the lease that holds it lists it as it is, and one that it left does not list it.
 */
MUST_USE enum pawl_status led_call_check(const struct led_call *it, enum led_when when,
                                         struct pawl_err *err);
/* Its calls rise by number, each with a lane and possible counts, with a number and a place in its
 * key or neither; runs are linked both ways and in their order; it has an owner. DECIDED, of a
 * lease that is locked and stays: what is left and named is what the list says, something is left,
 * runs end in their order, and one that was made here holds what it lists. */
MUST_USE enum pawl_status led_lease_check(struct ledger *c, const struct led_lease *l,
                                          enum led_when when, struct pawl_err *err);
/* Of a key that is locked, with its key notes in its numbers: no number is below 0; calls are held
 * if, and only if, it is their turn; an offer, a run and a block have a first call. */
MUST_USE enum pawl_status led_key_check(const struct led_key *k, enum led_when when,
                                        struct pawl_err *err);
/* Check every lease and key of the transaction, DECIDED, and that no free key has a line without a
 * head. To be called when everything is settled and written. */
void led_check_all(struct ledger *c);

/* ---- Moving and writing (flush.c, move.c) ---------------------------------------------------- */

/* The one function that moves a call between places; the key's numbers follow. `behind` is the next
 * of its run when it was held. */
MUST_USE enum pawl_status led_put(struct ledger *c, struct led_call *call, struct led_stand to,
                                  int64_t behind, struct pawl_err *err);
/* The call ends while it is pending: it was cancelled or has expired. */
MUST_USE enum pawl_status led_end_pending(struct ledger *c, struct led_call *call,
                                          enum pawl_state state, struct pawl_err *err);
/* Add the id to op->ended. */
MUST_USE enum pawl_status led_told_ended(struct op *op, struct bytes id, struct pawl_err *err);
/* Write everything that changed. */
MUST_USE enum pawl_status led_flush(struct ledger *c, struct pawl_err *err);
/* The same, followed by the queries that `ask` adds when it is known what is written. */
typedef void led_ask_fn(struct ledger *c, struct led_batch *b);
MUST_USE enum pawl_status led_flush_ask(struct ledger *c, led_ask_fn *ask, struct pawl_err *err);
/* The same, followed by the commit: in one round trip if `sure`, which says that every row to be
 * removed or changed is locked. */
MUST_USE enum pawl_status led_flush_commit(struct ledger *taken, led_ask_fn *ask, bool sure,
                                           struct pawl_err *err);

/* ---- Objects (object.c) ---------------------------------------------------------------------- */

/* The object; version 0: there is none. */
MUST_USE enum pawl_status led_object_get(struct ledger *c, struct bytes type, struct bytes key,
                                         struct led_object **out, struct pawl_err *err);
/* The same without asking what is stored, for a caller that has its key locked and sets its state
 * next: led_object_set() with STATE_SET. */
MUST_USE enum pawl_status led_object_over(struct ledger *c, struct bytes type, struct bytes key,
                                          struct led_object **out, struct pawl_err *err);
/* Read several at once, so that led_object_get() finds them in memory. */
MUST_USE enum pawl_status led_objects_load(struct ledger *c, const struct bytes *types,
                                           const struct bytes *keys, size_t n,
                                           struct pawl_err *err);
/* Set its state, with the next version, or delete it. */
MUST_USE enum pawl_status led_object_set(struct ledger *c, struct led_object *o, enum state_do how,
                                         struct payload state, struct pawl_err *err);

/* ---- Operations ------------------------------------------------------------------------------ */

/* One function for each kind of operation. It answers in op->status and op->err; it returns another
 * status than OK only when the whole transaction must be undone. */
MUST_USE enum pawl_status led_accept(struct ledger *c, struct op *op, struct pawl_err *err);
/* Why a call was not accepted, as the operation's status and sentence. */
void led_say_refused(const struct ledger *c, struct op *op, const struct call_spec *s,
                     const struct accepted *a);
MUST_USE enum pawl_status led_claim(struct ledger *c, struct op *op, struct pawl_err *err);
/* Set seq_found of every item: its number, that of its id, or 0 when there is no such call. */
MUST_USE enum pawl_status led_finish_find(struct ledger *c, struct finish *f, struct pawl_err *err);
MUST_USE enum pawl_status led_finish(struct ledger *c, struct op *op, struct finish *f,
                                     size_t *out_stored, struct pawl_err *err);
MUST_USE enum pawl_status led_extend(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_cancel(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_retry(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_retry_call(struct ledger *c, struct led_call *call,
                                         struct pawl_err *err);
MUST_USE enum pawl_status led_move_to(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_pause(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_object_op(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_unblock(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_join(struct ledger *c, struct op *op, struct pawl_err *err);
/* For one statement: without a transaction if the engine can, and then without a clock (now_us 0).
 */
MUST_USE enum pawl_status led_begin_autocommit(struct ledger *c, struct pawl_err *err);
/* Do the group without a transaction, if it can be (*done); else nothing is done (autocommit.c). */
MUST_USE enum pawl_status led_autocommit(struct ledger *c, struct op *const *v, size_t n,
                                         bool *done, struct pawl_err *err);
MUST_USE enum pawl_status led_beat(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_leave(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_bury(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_drain(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_lead(struct ledger *c, struct op *op, struct pawl_err *err);
/* Release the roles that the node leads under this boot (own), or under every other one. */
MUST_USE enum pawl_status led_vacate(struct ledger *c, const struct node_op *n, bool own,
                                     struct pawl_err *err);
/* What a claim asks first: about its node (`likely`: it will find something to take), and what
 * there is to claim. */
void led_claim_ask_node(struct ledger *c, struct led_batch *b, const struct claim *q, bool likely);
void led_claim_ask(struct ledger *c, struct led_batch *b);
/* What it asks with the group's last write, and its answer from that: tx->late. */
void led_claim_ask_last(struct ledger *c, struct led_batch *b);
void led_claim_late(struct ledger *c);
/* Did the last look of a claim find no key notes, of any key? */
bool led_claim_no_key_notes(const struct ledger *c);
/* Take over which queues are paused, as queue_list answered. */
MUST_USE enum pawl_status led_paused_take(struct ledger *c, const struct led_rows *r,
                                          struct pawl_err *err);
/* Does the registry, as node_read or node_share answered, say that the claimer is no longer the
 * node? */
bool led_node_replaced(struct bytes boot, const struct led_rows *r);
MUST_USE enum pawl_status led_sweep(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_gc(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_handler(struct ledger *c, struct op *op, struct pawl_err *err);
MUST_USE enum pawl_status led_script_op(struct ledger *c, struct op *op, struct pawl_err *err);

MUST_USE enum pawl_status led_requeue(struct ledger *c, struct op *op, struct pawl_err *err);

/* Calls that were submitted in SQL and committed since (inbox.c): are there any? */
MUST_USE enum pawl_status led_inbox_any(struct ledger *c, bool *out, struct pawl_err *err);
/* Up to max of them become calls. */
MUST_USE enum pawl_status led_inbox_move(struct ledger *c, int max, struct pawl_err *err);
/* Remove refused rows that are older than the retention of calls. */
MUST_USE enum pawl_status led_inbox_forget(struct ledger *c, int max, struct pawl_err *err);

/* What is known about the ids of a batch before any of it is written. */
struct led_look {
    enum led_known { KNOWN_NOT, KNOWN_SAME, KNOWN_OTHER } known;
    bool new_lane;
};
/* Compare the ids of a batch with each other and with what is stored. */
MUST_USE enum pawl_status led_look(struct ledger *c, const struct call_spec *v, size_t n,
                                   struct led_look *out, struct pawl_err *err);
/* Make a new call, in memory: its id, its number and its place. */
MUST_USE enum pawl_status led_call_make(struct ledger *c, const struct call_spec *s, int lane,
                                        struct call *out, struct pawl_err *err);

/* One attempt of the i-th call of a lease ends; reclaim shares it. */
struct led_end {
    struct attempt_end end;
    struct payload result;
    struct bytes error;
    int64_t started_us;
    bool owner; /* a finish of the owner: it leaves the token */
    struct verdict verdict;
};
MUST_USE enum pawl_status led_attempt_end(struct ledger *c, struct led_lease *l, size_t i,
                                          struct led_end *e, struct led_call **out,
                                          struct pawl_err *err);
/* End the calls of a lease with `until` that are past their timeout; their ids go into op->extend.
 * *out_last_us: the last deadline of the calls that are left; l->missing if none is left. */
MUST_USE enum pawl_status led_time_out(struct ledger *c, struct op *op, struct led_lease *l,
                                       int64_t *out_last_us, struct pawl_err *err);
/* Take back a lease whose owner is gone: its calls end as `how` says. */
MUST_USE enum pawl_status led_reclaim(struct ledger *c, struct op *op, const struct token *token,
                                      const struct attempt_end *how, int64_t *count,
                                      struct pawl_err *err);

#endif
