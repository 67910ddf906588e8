/*
 * finish.c - how attempts end: a finish by the owner, and what reclaim shares with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/mem.h"

/* ---- Leases ---------------------------------------------------------------------------------- */

struct tree_key token_key(struct token t)
{
    uint64_t half[2] = { 0, 0 };
    for (int i = 0; i < 16; i++)
        half[i / 8] = half[i / 8] << 8 | t.b[i];
    return KEY((int64_t)(half[0] ^ (UINT64_C(1) << 63)), (int64_t)(half[1] ^ (UINT64_C(1) << 63)));
}

struct mem_lease *lease_find_token(const struct mem_db *db, struct token token)
{
    struct tree_node *n = tree_from(&db->leases, token_key(token));
    struct mem_lease *l = n ? THING_OF(n, struct mem_lease, by_token) : NULL;
    return l && token_eq(l->token, token) ? l : NULL;
}

struct mem_call *lease_first(const struct mem_db *db, const struct mem_lease *l)
{
    struct mem_call *c =
        call_at(tree_from(&db->held, KEY(l->serial, INT64_MIN, INT64_MIN, INT64_MIN)));
    return c && c->now.lease == l ? c : NULL;
}

struct mem_call *lease_next(const struct mem_db *db, const struct mem_call *c)
{
    struct mem_call *next = call_at(tree_after(&db->held, &c->by_place));
    return next && next->now.lease == c->now.lease ? next : NULL;
}

bool lease_over(const struct mem_lease *l, int64_t now_us)
{
    return l->now.until_us && l->now.until_us <= now_us;
}

bool lease_off(struct mem_db *db, struct mem_lease *l)
{
    if (!undo_save(db, &l->thing))
        return false;
    l->now.named--;
    CHECK(l->now.named >= 0);
    return true;
}

bool lease_leave(struct mem_db *db, const struct mem_call *c)
{
    const struct outcome *o = c->now.outcome;
    CHECK(c->now.place == PLACE_ENDED && o);
    struct mem_lease *l = lease_find_token(db, o->token);
    return !l || l->serial != o->serial || lease_off(db, l);
}

/* ---- One attempt ends ------------------------------------------------------------------------ */

static struct bytes owner_of(const struct mem_lease *l)
{
    return l->worker.data ? l->worker : l->node;
}

static bool error_kept(const struct ending_of *e)
{
    return e->end.how == END_ERROR || e->end.how == END_TIMEOUT || e->end.how == END_REFUSE ||
           e->end.how == END_LOST;
}

/* When its handler began: never before the previous call of its key had ended. */
static int64_t started_of(const struct mem_call *c, const struct ending_of *e)
{
    int64_t us = e->started_us ? e->started_us : c->now.lease->claimed_us;
    return c->now.key ? MAX(us, c->now.key->now.ended_us) : us;
}

/* The row of `attempt` that this end leaves; *out is NULL when there is none. False without memory.
 */
static bool row_make(struct mem_tx *tx, struct mem_call *c, const struct ending_of *e,
                     const struct verdict *v, struct attempt_row **out)
{
    const struct mem_lease *l = c->now.lease;
    bool trace = e->owner && l->now.until_us && v->next == PAWL_PENDING;
    *out = NULL;
    if (!v->count_attempt && !trace)
        return true;
    struct attempt_row *t = call_blob(c, sizeof *t);
    if (!t)
        return false;
    *t = (struct attempt_row){ .older = c->now.newest_attempt,
                               .no = c->now.newest_attempt ? c->now.newest_attempt->no + 1 : 1,
                               .attempt_no = c->now.counts.attempts + c->now.counts.lost + 1,
                               .how = (int)e->end.how,
                               .state = v->next,
                               .started_us = started_of(c, e),
                               .finished_us = tx->now_us };
    if (e->owner)
        t->token = l->token;
    *out = t;
    return call_keep(c, owner_of(l), &t->node) &&
           call_keep(c, error_kept(e) ? e->error : BYTES_NONE, &t->error);
}

static struct outcome *outcome_make(struct mem_tx *tx, struct mem_call *c,
                                    const struct ending_of *e, enum pawl_state state)
{
    const struct mem_lease *l = c->now.lease;
    CHECK(pawl_state_ended(state) && state != PAWL_EXPIRED);
    struct outcome *o = call_blob(c, sizeof *o);
    if (!o)
        return NULL;
    int64_t keep_us = c->spec.keep_us ? c->spec.keep_us : tx->s->retention_us;
    bool blocks = call_blocks(&c->spec, state);
    *o = (struct outcome){ .state = state,
                           .serial = l->serial,
                           .claimed_us = l->claimed_us,
                           .started_us = started_of(c, e),
                           .finished_us = tx->now_us,
                           .keep_until_us = blocks ? 0 : tx->now_us + keep_us };
    bool completed = state == PAWL_COMPLETED;
    bool failed = state == PAWL_FAILED || state == PAWL_DEAD_LETTER;
    if (e->owner)
        o->token = l->token;
    o->result.form = completed ? e->result.form : PAWL_NOTHING;
    bool ok = call_keep(c, owner_of(l), &o->node) &&
              call_keep(c, completed ? e->result.bytes : BYTES_NONE, &o->result.bytes) &&
              call_keep(c, failed ? e->error : BYTES_NONE, &o->error);
    return ok ? o : NULL;
}

static bool run_goes_on(struct mem_tx *tx, struct mem_key *k)
{
    if (!k)
        return true;
    if (!undo_save(tx->db, &k->thing))
        return false;
    k->now.ended_us = tx->now_us;
    return true;
}

/* Fill in `to` for a call that has ended. False without memory. */
static bool ended_stand(struct mem_tx *tx, struct mem_call *c, const struct ending_of *e,
                        struct stand *to)
{
    to->place = PLACE_ENDED;
    to->cancel_requested = false;
    to->outcome = outcome_make(tx, c, e, to->state);
    to->blocks = call_blocks(&c->spec, to->state);
    return to->outcome && (call_behind(c) || run_goes_on(tx, to->key));
}

enum pawl_status attempt_end_write(struct mem_tx *tx, struct mem_call *c,
                                   const struct ending_of *said)
{
    struct mem_db *db = tx->db;
    struct mem_lease *l = c->now.lease;
    CHECK(c->now.place == PLACE_HELD && l);
    struct attempt_of attempt = { &c->spec, c->now.counts, c->now.run_at_us };
    struct ending_of late = *said, *e = &late;
    int64_t held_us = l->now.until_us ? MIN(l->now.until_us, tx->now_us) : tx->now_us;
    if (!attempt_timed_out(tx->op->a, &c->spec, started_of(c, e), held_us, &e->end, &e->error))
        return PAWL_NO_MEMORY;
    e->end.cancel_requested = c->now.cancel_requested;
    struct verdict v = call_after(&attempt, &e->end, tx->now_us, tx->s->world);
    struct attempt_row *row;
    if (!undo_save(db, &c->thing) || !row_make(tx, c, e, &v, &row))
        return PAWL_NO_MEMORY;

    struct stand to = c->now;
    to.state = v.next;
    to.counts = v.counts;
    if (row)
        to.newest_attempt = row;
    if (v.next == PAWL_PENDING) {
        to.place = to.key ? PLACE_LINE : PLACE_READY;
        to.run_at_us = v.run_at_us;
        if (!lease_off(db, l))
            return PAWL_NO_MEMORY;
    } else if (!ended_stand(tx, c, e, &to)) {
        return PAWL_NO_MEMORY;
    }
    call_put(db, c, to);
    return PAWL_OK;
}

enum pawl_status run_hand_back(struct mem_tx *tx, struct mem_key *k, int64_t pos, bool owner,
                               int64_t *count)
{
    struct ending_of e = { .end = { .how = END_RELEASE }, .owner = owner };
    enum pawl_status st = PAWL_OK;
    for (struct mem_call *c = line_first(k), *next; st == PAWL_OK && c; c = next) {
        next = line_next(k, c);
        if (c->now.place != PLACE_HELD || c->now.pos < pos)
            continue;
        st = attempt_end_write(tx, c, &e);
        bool answered = owner && c->seen == tx->db->finishes;
        if (st == PAWL_OK && c->now.place == PLACE_ENDED && !answered)
            st = told_ended(tx, c);
        c->handed = tx->db->finishes;
        (*count)++;
    }
    if (st == PAWL_OK && !key_settle(tx->db, k))
        st = PAWL_NO_MEMORY;
    return st;
}

/* ---- Former answers -------------------------------------------------------------------------- */

static const struct outcome *former_outcome(const struct mem_call *c, struct token token)
{
    bool ours = c->now.place == PLACE_ENDED && token_eq(c->now.outcome->token, token);
    return ours && !token_none(token) ? c->now.outcome : NULL;
}

static const struct attempt_row *former_attempt(const struct mem_call *c, struct token token)
{
    if (c->now.place == PLACE_GONE || token_none(token))
        return NULL;
    const struct attempt_row *t = c->now.newest_attempt;
    while (t && !token_eq(t->token, token))
        t = t->older;
    return t;
}

static bool answer_error(struct mem_tx *tx, struct finish_item *f, struct bytes error)
{
    f->error_out = arena_copy(tx->op->a, error);
    return !error.data || f->error_out.data;
}

/* Answer an item with what was just written, or with the stored outcome. */
static bool answer_now(struct mem_tx *tx, struct finish_item *f, const struct mem_call *c,
                       enum ending how)
{
    f->state = c->now.state;
    f->counts = c->now.counts;
    f->run_at_us = c->now.state == PAWL_PENDING ? c->now.run_at_us : 0;
    f->finished_us = c->now.outcome ? c->now.outcome->finished_us : 0;
    if (c->now.outcome)
        return answer_error(tx, f, c->now.outcome->error);
    bool counted =
        c->now.newest_attempt && how != END_LATER && how != END_RELEASE && how != END_CANCELLED;
    return answer_error(tx, f, counted ? c->now.newest_attempt->error : BYTES_NONE);
}

/* Answer an item from the row of its first finish; the call may have changed since. */
static bool answer_row(struct mem_tx *tx, struct finish_item *f, const struct mem_call *c,
                       const struct attempt_row *t)
{
    assert(t);
    f->state = t->state;
    f->counts = c->now.counts;
    f->run_at_us = c->now.state == PAWL_PENDING ? c->now.run_at_us : 0;
    f->finished_us = t->state == PAWL_PENDING ? 0 : t->finished_us;
    return answer_error(tx, f, t->error);
}

/* ---- Finish ---------------------------------------------------------------------------------- */

static struct mem_call *item_call(const struct mem_db *db, const struct finish_item *f)
{
    if (!f->seq)
        return call_by_id(db, f->id);
    struct mem_call *c = f->seq > 0 && f->seq <= db->last_seq ? db->calls[f->seq - 1] : NULL;
    CHECK(!c || c->seq == f->seq);
    return c;
}

static bool live(const struct mem_tx *tx, const struct mem_call *c, const struct mem_lease *l)
{
    return l && !lease_over(l, tx->now_us) && c->now.place == PLACE_HELD && c->now.lease == l;
}

/* Has an item before the i-th named the same call? Equal numbers count even if no call has them. */
static bool named_before(struct mem_tx *tx, const struct finish *q, size_t i, uint64_t mark)
{
    struct mem_call *c = item_call(tx->db, &q->v[i]);
    if (c) {
        bool before = c->seen == mark;
        c->seen = mark;
        return before;
    }
    for (size_t k = 0; q->v[i].seq && k < i; k++)
        if (q->v[k].seq == q->v[i].seq)
            return true;
    return false;
}

/* The call before it in its run that has no outcome; NULL: it is the first. */
static const struct mem_call *run_before(const struct mem_call *c)
{
    const struct mem_call *before = NULL;
    for (const struct mem_call *at = line_first(c->now.key); at != c;
         at = line_next(c->now.key, at))
        before = at;
    return before;
}

/* Calls of a key must end in the order of their run, except those that are handed back. Only calls
 * with a key may have a state. False: op->status says why. */
static bool keys_check(struct mem_tx *tx, const struct finish *q, const struct mem_lease *l)
{
    struct op *op = tx->op;
    uint64_t mark = ++tx->db->finishes;
    for (size_t i = 0; i < q->n; i++) {
        struct mem_call *c = item_call(tx->db, &q->v[i]);
        assert(c); /* items_check() has found it */
        const struct mem_call *before = c->now.key && live(tx, c, l) ? run_before(c) : NULL;
        if (!c->now.key && q->v[i].state_do != STATE_KEEP)
            op->status =
                err_set(&op->err, PAWL_INVALID, "call \"%.*s\" has no key: it cannot keep a state",
                        BYTES_ARG(c->id));
        else if (before && before->seen != mark && q->v[i].how != END_RELEASE)
            op->status = err_set(&op->err, PAWL_INVALID,
                                 "call \"%.*s\": the call before it in key \"%.*s\" has not ended",
                                 BYTES_ARG(c->id), BYTES_ARG(c->now.key->by_name.name));
        if (op->status != PAWL_OK)
            return false;
        c->seen = mark;
    }
    return true;
}

/* Every item must name a call of the lease, or have been answered before under its token. False:
 * op->status says why. */
static bool items_check(struct mem_tx *tx, const struct finish *q, const struct mem_lease *l)
{
    struct op *op = tx->op;
    uint64_t mark = ++tx->db->finishes;
    for (size_t i = 0; i < q->n; i++) {
        if (named_before(tx, q, i, mark)) {
            op->status = err_set(&op->err, PAWL_INVALID, "a call is named twice in one finish");
            return false;
        }
    }
    for (size_t i = 0; i < q->n; i++) {
        const struct mem_call *c = item_call(tx->db, &q->v[i]);
        if (c && (live(tx, c, l) || former_outcome(c, q->token) || former_attempt(c, q->token)))
            continue;
        (void)op_not_held(op, &q->token, c ? c->id : q->v[i].id, q->v[i].seq);
        return false;
    }
    return keys_check(tx, q, l);
}

static bool same_content(const unsigned char *fingerprint, const struct call_spec *spec)
{
    return memcmp(fingerprint, spec->fingerprint, FINGERPRINT_LEN) == 0;
}

/* Does an earlier send of the same item, for which no lane was left, give this id other content? */
static bool contradicts(const struct finish_item *f, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (bytes_eq(f->send[k].id, f->send[i].id))
            return !same_content(f->send[k].fingerprint, &f->send[i]);
    return false;
}

/* Accept every send; *at is the one that is refused. A conflict counts before a missing lane. */
static enum pawl_status send_each(struct mem_tx *tx, const struct finish_item *f, size_t *at)
{
    bool full = false;
    for (size_t i = 0; i < f->n_send; i++) {
        struct mem_call *c = call_by_id(tx->db, f->send[i].id);
        bool other = c ? !same_content(c->fingerprint, &f->send[i]) : full && contradicts(f, i);
        if (other) {
            *at = i;
            return PAWL_CONFLICT;
        }
        enum pawl_status st = c ? PAWL_OK : call_make(tx, &f->send[i], &c);
        if (st == PAWL_NO_MEMORY)
            return st;
        if (st == PAWL_FULL && !full)
            *at = i;
        full = full || st == PAWL_FULL;
    }
    return full ? PAWL_FULL : PAWL_OK;
}

/* Turn the result into this failure. */
static enum pawl_status send_failed(struct mem_tx *tx, struct ending_of *e, enum ending how,
                                    struct bytes id)
{
    const char *why =
        how == END_ERROR ? ": too many queues and types" : " already exists with other content";
    const char *text = arena_printf(tx->op->a, "outgoing call \"%.*s\"%s", BYTES_ARG(id), why);
    e->end.how = how;
    e->end.retry_in_us = -1;
    e->error = bytes_of(text);
    return text ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Accept all that the item sends, or turn its result into the failure that follows. */
static enum pawl_status send_all(struct mem_tx *tx, const struct finish_item *f,
                                 struct ending_of *e)
{
    struct undo_mark mark = undo_mark(tx->db);
    size_t at = 0;
    enum pawl_status st = send_each(tx, f, &at);
    if (st == PAWL_OK || st == PAWL_NO_MEMORY)
        return st;
    undo_to(tx->db, mark);
    return send_failed(tx, e, st == PAWL_FULL ? END_ERROR : END_REFUSE, f->send[at].id);
}

/* After a call of a key has ended: if it completed, write its object's state and offer the next
 * call; else hand back everything behind it in its run. */
static enum pawl_status key_after(struct mem_tx *tx, struct finish_item *f, struct mem_call *c)
{
    struct mem_key *k = c->now.key;
    int64_t handed = 0;
    if (!k)
        return PAWL_OK;
    if (c->now.state != PAWL_COMPLETED)
        return run_hand_back(tx, k, c->now.pos, true, &handed);
    bool ok = true;
    if (f->state_do == STATE_SET) {
        f->version = object_set(tx, c->now.lane->type, k, f->object);
        ok = f->version != 0;
    } else if (f->state_do == STATE_DELETE) {
        ok = object_remove(tx->db, c->now.lane->type, k->by_name.name);
    }
    return ok && key_settle(tx->db, k) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Answer an item whose attempt had ended before: by an earlier finish, or because this finish
 * handed it back behind another call. */
static enum pawl_status finished_before(struct mem_tx *tx, struct token token,
                                        struct finish_item *f, const struct mem_call *c)
{
    bool handed = c->handed == tx->db->finishes, ok;
    if (handed)
        f->queue = c->now.lane->queue->by_name.name;
    if (handed || former_outcome(c, token))
        ok = answer_now(tx, f, c, handed ? END_RELEASE : f->how);
    else
        ok = answer_row(tx, f, c, former_attempt(c, token));
    return ok ? PAWL_OK : PAWL_NO_MEMORY;
}

static enum pawl_status finish_one(struct mem_tx *tx, const struct mem_lease *l, struct token token,
                                   struct finish_item *f)
{
    struct mem_call *c = item_call(tx->db, f);
    assert(c);
    f->seq_found = c->seq;
    f->run_at_us = f->finished_us = f->version = 0;
    f->queue = f->type = BYTES_NONE;
    if (!live(tx, c, l))
        return finished_before(tx, token, f, c);
    struct ending_of e = { .end = { .how = f->how, .retry_in_us = f->retry_in_us },
                           .result = f->result,
                           .error = f->error,
                           .started_us = f->started_us,
                           .owner = true };
    enum pawl_status st = PAWL_OK;
    if (f->how == END_RESULT && f->n_send)
        st = send_all(tx, f, &e);
    if (st == PAWL_OK)
        st = attempt_end_write(tx, c, &e);
    if (st == PAWL_OK)
        st = key_after(tx, f, c);
    if (st == PAWL_OK && !answer_now(tx, f, c, f->how))
        st = PAWL_NO_MEMORY;
    f->queue = c->now.lane->queue->by_name.name;
    f->type = c->now.lane->type;
    return st;
}

enum pawl_status mem_finish(struct mem_tx *tx, struct finish *q)
{
    struct mem_lease *l = lease_find_token(tx->db, q->token);
    if (!items_check(tx, q, l))
        return PAWL_OK;
    for (size_t i = 0; i < q->n; i++) {
        enum pawl_status st = finish_one(tx, l, q->token, &q->v[i]);
        if (st != PAWL_OK)
            return st;
    }
    bool left = l && lease_first(tx->db, l);
    q->until_us = left && !lease_over(l, tx->now_us) ? l->now.until_us : 0;
    if (l && !left && !thing_drop(tx->db, &l->thing))
        return PAWL_NO_MEMORY;
    return PAWL_OK;
}
