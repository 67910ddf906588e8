/*
 * group.c - a group of operations as one transaction: load what they need, decide, write.
 *
 * The isolation level is READ COMMITTED. A group locks what it relies on, or checks it when it
 * writes; if another transaction changed it first, the whole group is undone and repeated, REDO_MAX
 * times at most. What can be foreseen is requested together with BEGIN: leases, ids, keys, and what
 * claims read first. What only these answers name is requested after them: calls, their keys,
 * objects. Keys are sorted over the whole group, and those to wait for are locked before those that
 * are only tried, so that two groups do not deadlock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "store/ledger/flow.h"

/* How often a group that conflicts with another transaction is tried before its caller gets BUSY.
 */
#define REDO_MAX 10
#define REDO_NAP_US (1 * MS_US)
/* If key_pending_max is at least this, a group's calls are given numbers before it is known whether
 * one of them is refused. */
#define PENDING_FAR 1000

static void nap(const struct ledger *c, int64_t us)
{
    us += (int64_t)(world_dice(c->world) % (uint64_t)us);
    struct timespec t = { .tv_sec = us / SEC_US, .tv_nsec = us % SEC_US * 1000 };
    nanosleep(&t, NULL);
}

enum pawl_status led_apply(struct ledger *c, struct op *op, struct pawl_err *err)
{
    size_t stored;
    switch (op->kind) {
    case OP_ACCEPT:
        return led_accept(c, op, err);
    case OP_CLAIM:
        return led_claim(c, op, err);
    case OP_FINISH:
        return led_finish(c, op, &op->finish, &stored, err);
    case OP_EXTEND:
        return led_extend(c, op, err);
    case OP_CANCEL:
        return led_cancel(c, op, err);
    case OP_RETRY:
        return led_retry(c, op, err);
    case OP_MOVE:
        return led_move_to(c, op, err);
    case OP_PAUSE:
        return led_pause(c, op, err);
    case OP_OBJECT:
        return led_object_op(c, op, err);
    case OP_UNBLOCK:
        return led_unblock(c, op, err);
    case OP_JOIN:
        return led_join(c, op, err);
    case OP_BEAT:
        return led_beat(c, op, err);
    case OP_LEAVE:
        return led_leave(c, op, err);
    case OP_BURY:
        return led_bury(c, op, err);
    case OP_DRAIN:
        return led_drain(c, op, err);
    case OP_LEAD:
        return led_lead(c, op, err);
    case OP_SWEEP:
        return led_sweep(c, op, err);
    case OP_GC:
        return led_gc(c, op, err);
    case OP_REQUEUE:
        return led_requeue(c, op, err);
    case OP_HANDLER:
        return led_handler(c, op, err);
    case OP_SCRIPT:
        return led_script_op(c, op, err);
    case OP_FEATURE:
        return led_feature(c, op, err);
    case OP_WAKE:
        return led_wake(c, op, err);
    case OP_COUNT:
        break;
    }
    return err_set(err, PAWL_INVALID, "operation %d is unknown", (int)op->kind);
}

/* ---- What a group will need ------------------------------------------------------------------ */

struct foreseen {
    struct op *const *v; /* the group */
    size_t n;
    struct bytes *fresh; /* ids of accepts; each that is new takes a number */
    struct bytes *ids;   /* other ids */
    struct bytes *keys;  /* keys that new calls join */
    struct bytes *ends;  /* keys of calls that finishes end, as far as they are remembered */
    struct token *tokens;
    size_t n_fresh, n_ids, n_keys, n_ends, n_tokens;
    size_t n_items;  /* items of all finishes */
    bool ends_known; /* `ends` has all of them */
    struct led_asked_keys asked;
    bool sure;                 /* no new call can be refused */
    const struct claim *claim; /* the first claim of the group */
    bool one_writer;
    bool paused, finish, atomic;
    bool fence, features; /* operations of features: with a lease; any */
    bool plain;           /* only accepts, claims, finishes, extends: locks_all() */
    struct led_rows *leases, *known;
};

enum spec_id { ID_SENT, ID_FRESH, ID_LATER };
static void foresee_specs(struct foreseen *f, const struct call_spec *v, size_t n, enum spec_id how,
                          bool fill)
{
    for (size_t i = 0; i < n; i++) {
        if (fill && how != ID_LATER)
            *(how == ID_SENT ? &f->ids[f->n_ids] : &f->fresh[f->n_fresh]) = v[i].id;
        f->n_ids += how == ID_SENT;
        f->n_fresh += how == ID_FRESH;
        if (v[i].key.data && fill)
            f->keys[f->n_keys] = v[i].key;
        f->n_keys += v[i].key.data != NULL;
    }
}

static void foresee_finish(struct ledger *c, struct foreseen *f, const struct finish *q, bool fill)
{
    size_t at = 0;
    f->finish = true;
    if (fill)
        f->tokens[f->n_tokens] = q->token;
    f->n_tokens++;
    f->n_items += fill ? 0 : q->n;
    for (size_t i = 0; i < q->n; i++) {
        foresee_specs(f, q->v[i].send, q->v[i].n_send, ID_SENT, fill);
        f->paused = f->paused || q->v[i].n_send;
        f->features = f->features || q->v[i].with;
        if (q->v[i].seq || led_cache_seq(c, &q->token, q->v[i].id, &at))
            continue;
        if (fill)
            f->ids[f->n_ids] = q->v[i].id;
        f->n_ids++;
    }
}

static void foresee(struct ledger *c, struct foreseen *f, const struct op *op, bool fill)
{
    size_t at = 0;
    switch (op->kind) {
    case OP_ACCEPT:
        /* With one writer, led_id_claim() reads and inserts them. */
        foresee_specs(f, op->accept.v, op->accept.n,
                      f->one_writer && !op->accept.atomic ? ID_LATER : ID_FRESH, fill);
        f->paused = true;
        f->atomic = f->atomic || op->accept.atomic;
        break;
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
        if (fill)
            f->ids[f->n_ids] = op->by_id.id;
        f->n_ids++;
        break;
    case OP_FINISH:
        foresee_finish(c, f, &op->finish, fill);
        break;
    case OP_FEATURE:
        f->features = true;
        if (token_none(op->feature.token))
            break;
        f->fence = true;
        if (fill)
            f->tokens[f->n_tokens] = op->feature.token;
        f->n_tokens++;
        if (op->feature.seq || led_cache_seq(c, &op->feature.token, op->feature.id, &at))
            break;
        if (fill)
            f->ids[f->n_ids] = op->feature.id;
        f->n_ids++;
        break;
    case OP_CLAIM:
        if (fill)
            f->tokens[f->n_tokens] = op->claim.token;
        f->n_tokens++;
        f->claim = f->claim ? f->claim : &op->claim;
        break;
    default:
        break;
    }
}

/* Does every operation of the group lock the rows that it removes or changes before it decides? */
static bool locks_all(const struct foreseen *f)
{
    for (size_t i = 0; i < f->n; i++) {
        enum op_kind kind = f->v[i]->kind;
        if (kind != OP_ACCEPT && kind != OP_CLAIM && kind != OP_FINISH && kind != OP_EXTEND &&
            kind != OP_FEATURE)
            return false;
    }
    return true;
}

/* Find the keys of the calls that finishes end. False: some are not remembered. */
static bool foresee_ends(struct ledger *c, struct foreseen *f)
{
    bool all = true;
    for (size_t i = 0; i < f->n && all; i++) {
        size_t n = 0;
        if (f->v[i]->kind == OP_FINISH)
            all = led_cache_keys(c, &f->v[i]->finish, f->ends + f->n_ends, &n);
        f->n_ends += n;
    }
    return all;
}

/* Is the limit of a key so high that a refused call is unlikely? */
static bool is_far(const struct ledger *c, size_t n)
{
    return !c->key_pending_max || (c->key_pending_max >= PENDING_FAR && n < PENDING_FAR / 2);
}

static enum pawl_status foresee_all(struct ledger *c, struct foreseen *f, struct pawl_err *err)
{
    for (size_t i = 0; i < f->n; i++)
        foresee(c, f, f->v[i], false);
    f->fresh = arena_alloc(&c->scratch, (f->n_fresh + 1) * sizeof *f->fresh);
    f->ids = arena_alloc(&c->scratch, (f->n_ids + 1) * sizeof *f->ids);
    f->keys = arena_alloc(&c->scratch, (f->n_keys + 1) * sizeof *f->keys);
    f->tokens = arena_alloc(&c->scratch, (f->n_tokens + 1) * sizeof *f->tokens);
    f->ends = arena_alloc(&c->scratch, (f->n_items + 1) * sizeof *f->ends);
    if (!f->fresh || !f->ids || !f->keys || !f->tokens || !f->ends)
        return err_no_memory(err, "a group");
    f->n_fresh = f->n_ids = f->n_keys = f->n_tokens = 0;
    for (size_t i = 0; i < f->n; i++)
        foresee(c, f, f->v[i], true);
    /* A refused call uses no number: if one may be refused, numbers are drawn later. */
    f->sure =
        (f->n_keys == 0 || is_far(c, f->n_fresh)) && !f->atomic && !led_lanes_full(c, f->n_fresh);
    f->plain = locks_all(f);
    f->ends_known = !f->one_writer && foresee_ends(c, f);
    return PAWL_OK;
}

/* ---- Loading --------------------------------------------------------------------------------- */

/* Request the keys, unless some of those to wait for are not known yet: a transaction that has
 * locked keys with LOCK_TRY must not wait for others. If the group has a claim, its look, which
 * runs after these locks, says whether there are any key notes; otherwise they are requested here.
 */
static enum pawl_status ask_keys(struct ledger *c, struct foreseen *f, struct led_batch *b,
                                 struct pawl_err *err)
{
    if (!f->ends_known)
        return PAWL_OK;
    f->asked = (struct led_asked_keys){ .wait = f->ends,
                                        .try = f->keys,
                                        .n_wait = f->n_ends,
                                        .n_try = f->n_keys,
                                        .how = LOCK_WAIT,
                                        .with_notes = !(f->claim && f->plain) };
    return led_keys_ask(c, b, &f->asked, err);
}

/* Leases come first: a transaction that waits for a lease must not hold anything that the holder of
 * the lease may need. */
static enum pawl_status ask_first(struct ledger *c, struct foreseen *f, struct led_batch *b,
                                  struct led_rows **paused, struct pawl_err *err)
{
    struct led_asked_ids ids = { f->fresh, f->n_fresh, f->ids, f->n_ids, f->sure };
    enum pawl_status st = led_leases_ask(c, b, f->tokens, f->n_tokens, &f->leases, err);
    if (st == PAWL_OK)
        st = led_ids_ask(c, b, &f->known, &ids, err);
    if (st != PAWL_OK)
        return st;
    if (f->finish || f->fence)
        led_cache_ask(c, b);
    c->tx->claims = f->claim != NULL;
    if (f->paused || f->claim) {
        struct led_params p = { 0 };
        enum sql_name name = led_paused_name(c, &p);
        led_batch_ask(b, name, &p, paused);
    }
    if (f->claim && f->plain)
        led_claim_ask_node(c, b, f->claim, f->n_fresh > 0);
    st = ask_keys(c, f, b, err);
    if (f->claim && f->plain)
        led_claim_ask(c, b);
    return st;
}

/* Begin, and load what is requested together with BEGIN. */
static enum pawl_status load_first(struct ledger *c, struct foreseen *f, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    struct led_rows *paused = NULL;
    if (!b)
        return err_no_memory(err, "a group");
    b->n = 0;
    enum pawl_status st = ask_first(c, f, b, &paused, err);
    if (st == PAWL_OK)
        st = led_begin(c, LED_WRITE, b, err);
    if (st == PAWL_OK && f->asked.n)
        st = led_keys_take(c, &f->asked, err);
    if (st == PAWL_OK && f->asked.n && !f->asked.with_notes && !led_claim_no_key_notes(c))
        st = led_keys_notes(c, &f->asked, err);
    if (st == PAWL_OK && f->leases)
        st = led_leases_take(c, f->tokens, f->n_tokens, f->leases, err);
    if (st == PAWL_OK && f->known)
        st = led_ids_take(c, f->known, err);
    return st == PAWL_OK && paused ? led_paused_take(c, paused, err) : st;
}

/* Load the calls that leases and known ids name. */
static enum pawl_status load_calls(struct ledger *c, const struct foreseen *f, struct pawl_err *err)
{
    size_t n = 0, all = f->n_fresh + f->n_ids;
    int64_t *seqs = arena_alloc(&c->scratch, (all + 1) * sizeof *seqs);
    enum pawl_status st = seqs ? led_leases_calls(c, err) : err_no_memory(err, "a group");
    for (size_t i = 0; i < all && st == PAWL_OK; i++) {
        struct led_id *id;
        st = led_id_get(c, i < f->n_fresh ? f->fresh[i] : f->ids[i - f->n_fresh], &id, err);
        const struct led_call *it = st == PAWL_OK && id->seq ? led_call_find(c, id->seq) : NULL;
        if (st == PAWL_OK && id->seq && !(it && it->lean))
            seqs[n++] = id->seq;
    }
    return st == PAWL_OK && n ? led_calls_load(c, seqs, n, err) : st;
}

static struct led_call *held_item(struct ledger *c, const struct finish_item *it)
{
    struct led_call *call = it->seq_found > 0 ? led_call_find(c, it->seq_found) : NULL;
    return call && call->lean ? call : NULL;
}

/* Has the call before it in its run ended, or will an earlier item of the group certainly end it?
 */
static bool next_of_run(struct ledger *c, const struct led_call *call)
{
    int before = call->lease->run[call->held_at].before;
    return before < 0 || call->lease->state[before] != HELD_OPEN ||
           led_call_find(c, call->lease->held[before].seq)->ends;
}

/* Will every item of the finish certainly end as it says? Then the number of versions it takes is
 * known in advance. Otherwise versions are drawn one by one, so that none is lost. A second item
 * for the same call is not certain. */
static bool ends_as_said(struct ledger *c, const struct finish *q)
{
    bool sure = true;
    for (size_t i = 0; i < q->n; i++) {
        struct led_call *call = held_item(c, &q->v[i]);
        sure = sure && call && !call->named && q->v[i].how == END_RESULT && !q->v[i].n_send &&
               !led_lease_over(call->lease, c->now_us) && token_eq(call->lease->token, q->token) &&
               (call->spec.key.data || q->v[i].state_do == STATE_KEEP) && next_of_run(c, call);
        if (call)
            call->named = call->ends = true;
    }
    for (size_t i = 0; i < q->n && !sure; i++) {
        struct led_call *call = held_item(c, &q->v[i]);
        if (call)
            call->ends = false;
    }
    return sure;
}

/* What the finishes of a group need: keys, objects that are deleted, and how many versions. */
struct ending_now {
    struct bytes *keys, *objects, *types;
    size_t n, n_objects, versions;
};

static enum pawl_status ends_of(struct ledger *c, struct finish *q, struct ending_now *e,
                                struct pawl_err *err)
{
    enum pawl_status st = led_finish_find(c, q, err);
    bool sure = st == PAWL_OK && ends_as_said(c, q);
    for (size_t i = 0; i < q->n && st == PAWL_OK; i++) {
        const struct finish_item *it = &q->v[i];
        const struct led_call *call = held_item(c, it);
        const struct led_lane *lane;
        if (!call || !call->spec.key.data)
            continue;
        e->keys[e->n++] = call->spec.key;
        if (it->how != END_RESULT || it->state_do == STATE_KEEP)
            continue;
        e->versions += sure && it->state_do == STATE_SET;
        if (it->state_do == STATE_SET)
            continue; /* the former state is not read */
        st = led_lane(c, call->now.lane, &lane, err);
        if (st != PAWL_OK)
            return st;
        e->objects[e->n_objects] = call->spec.key;
        e->types[e->n_objects++] = lane->names.type;
    }
    return st;
}

static enum pawl_status load_keys(struct ledger *c, const struct foreseen *f, struct pawl_err *err)
{
    struct ending_now e = { 0 };
    size_t m = 1;
    for (size_t i = 0; i < f->n; i++)
        m += f->v[i]->kind == OP_FINISH ? f->v[i]->finish.n : 0;
    e.keys = arena_alloc(&c->scratch, m * sizeof *e.keys);
    e.objects = arena_alloc(&c->scratch, m * sizeof *e.objects);
    e.types = arena_alloc(&c->scratch, m * sizeof *e.types);
    enum pawl_status st = e.keys && e.objects && e.types ? PAWL_OK : err_no_memory(err, "a group");
    for (size_t i = 0; i < f->n && st == PAWL_OK; i++)
        if (f->v[i]->kind == OP_FINISH)
            st = ends_of(c, &f->v[i]->finish, &e, err);
    if (st == PAWL_OK && e.n)
        st = led_keys_load(c, e.keys, e.n, LOCK_WAIT, err);
    if (st == PAWL_OK && e.n_objects)
        st = led_objects_load(c, e.types, e.objects, e.n_objects, err);
    return st == PAWL_OK && e.versions ? led_versions(c, e.versions, err) : st;
}

/* Load the keys that new calls join, if no other transaction has locked them; and draw numbers, if
 * none of the calls can be refused. */
static enum pawl_status load_lines(struct ledger *c, const struct foreseen *f, struct pawl_err *err)
{
    enum pawl_status st = led_keys_load(c, f->keys, f->n_keys, LOCK_TRY, err);
    bool sure = !f->atomic && !led_lanes_full(c, f->n_fresh);
    for (size_t i = 0; st == PAWL_OK && i < f->n_keys && sure && c->key_pending_max; i++) {
        struct led_key *k;
        st = led_key_get(c, f->keys[i], LOCK_TRY, &k, err);
        sure = st == PAWL_OK && led_key_pending(k) + (int64_t)f->n_fresh <= c->key_pending_max;
    }
    return st == PAWL_OK && sure ? led_numbers(c, led_ids_new(c, f->fresh, f->n_fresh), err) : st;
}

static enum pawl_status load(struct ledger *c, struct foreseen *f, struct pawl_err *err)
{
    enum pawl_status st = f->leases || f->known ? load_calls(c, f, err) : PAWL_OK;
    PAUSE_POINT("ledger.loaded");
    if (st == PAWL_OK && f->finish)
        st = load_keys(c, f, err);
    if (st == PAWL_OK && (f->n_keys || f->n_fresh))
        st = load_lines(c, f, err);
    if (st == PAWL_OK && c->flows)
        st = led_flows_foresee(c, f->v, f->n, err);
    if (st == PAWL_OK && f->features)
        st = led_features_load(c, f->v, f->n, err);
    return st;
}

/* ---- The group ------------------------------------------------------------------------------- */

static enum pawl_status decide(struct ledger *c, const struct foreseen *f, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < f->n && st == PAWL_OK; i++) {
        enum op_kind kind = f->v[i]->kind;
        op_clear(f->v[i]);
        /* A claim takes what features make due; gc drops what the transaction remembers. */
        if (c->tx->n_moved && (kind == OP_CLAIM || kind == OP_GC))
            st = led_moved_tell(c, f->v, i, err);
        if (st != PAWL_OK)
            break;
        c->tx->last_op = i + 1 == f->n;
        c->tx->telling = f->v[i];
        PAUSE_POINT("ledger.next_op");
        st = led_apply(c, f->v[i], err);
    }
    return st;
}

static enum pawl_status group_once(struct ledger *c, struct op *const *v, size_t n,
                                   struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct foreseen f = { .v = v, .n = n, .one_writer = c->db->one_writer };
    enum pawl_status st = led_fresh(c, LED_WRITE, err);
    if (st == PAWL_OK)
        st = foresee_all(c, &f, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("ledger.begin");
    PAUSE_POINT("ledger.begin");
    tx = c;
    st = load_first(c, &f, err);
    if (st == PAWL_OK)
        st = load(c, &f, err);
    if (st == PAWL_OK)
        st = decide(c, &f, err);
    if (st == PAWL_OK && c->tx->n_moved)
        st = led_moved_tell(c, v, n, err);
    if (st != PAWL_OK)
        return st;
    bool sure = f.plain && !c->tx->unlocked;
    st = led_flush_commit(TAKE(tx), c->tx->late ? led_claim_ask_last : NULL, sure, err);
    if (st == PAWL_OK && c->tx->late)
        led_claim_late(c);
    return st;
}

enum pawl_status led_commit_ops(struct store *s, struct op *const *v, size_t n,
                                struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    bool done;
    enum pawl_status st = led_autocommit(c, v, n, &done, err);
    if (st != PAWL_OK || done)
        return st;
    /* A handler has run and cannot run again. */
    int tries = v[0]->kind == OP_HANDLER ? 1 : REDO_MAX;
    c->only_once = tries == 1;
    for (int i = 0; i < tries; i++) {
        if (i)
            nap(c, REDO_NAP_US * i);
        c->redone = i;
        st = group_once(c, v, n, err);
        if (st == PAWL_OK || st == PAWL_UNKNOWN || !c->redo)
            return st;
        if (c->blocked && (n > 1 || s->hasty))
            break;
    }
    if (c->blocked && err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "55P03");
    return st == PAWL_BROKEN ? st : PAWL_BUSY;
}
