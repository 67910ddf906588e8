/*
 * finish.c - how tries end: an owner's finish with what it sends, and the end of one try, which
 * reclaim shares.
 *
 * A finish is decided for all its items before any of it is written: an item that the lease does
 * not hold, and that was not answered under the same token before, refuses the whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "store/sqlite/move.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/read.h"

/* ---- One try ends ---------------------------------------------------------------------------- */

static bool error_kept(enum ending how)
{
    return how == END_ERROR || how == END_TIMEOUT || how == END_REFUSE || how == END_LOST;
}

/* The row of tries this end leaves, if any: a try that counts, or what an owner with an end of its
 * own handed back, so that its repeat finds the answer. */
static enum pawl_status row_write(struct lite *c, const struct lite_lease *l, const struct held *h,
                                  const struct lite_try *t, struct pawl_err *err)
{
    const struct verdict *v = &t->verdict;
    bool trace = t->owner && l->until_us && v->next == PAWL_PENDING;
    struct lite_arg token = { .kind = ARG_NULL };
    if (!v->count_try && !trace)
        return PAWL_OK;
    if (t->owner)
        token = TOKEN(&l->token);
    return lite_run(c, SQL_ATTEMPT_ADD,
                    ARGS(INT(h->seq), INT(h->tries.attempts + h->tries.lost + 1), INT(t->end.how),
                         INT(v->next), TEXT(error_kept(t->end.how) ? t->error : BYTES_NONE),
                         TEXT(l->owner), token, INT(t->started_us), INT(c->now_us)),
                    NULL, err);
}

static enum pawl_status move_write(struct lite *c, const struct lite_lease *l, const struct held *h,
                                   const struct lite_try *t, const struct call *call,
                                   struct pawl_err *err)
{
    const struct verdict *v = &t->verdict;
    bool failed = v->next == PAWL_FAILED || v->next == PAWL_DEAD_LETTER;
    struct lite_end end = { .error = failed ? t->error : BYTES_NONE,
                            .node = l->owner,
                            .token = t->owner ? &l->token : NULL,
                            .claimed_us = l->claimed_us,
                            .started_us = t->started_us,
                            .keep_us = call->spec.keep_us };
    if (v->next == PAWL_COMPLETED)
        end.result = t->result;
    int behind = l->run[h - l->held].behind;
    end.blocks = call_blocks(&call->spec, v->next);
    return lite_move(c,
                     &(struct lite_move){ .seq = h->seq,
                                          .from = PAWL_PROCESSING,
                                          .to = v->next,
                                          .tries = v->tries,
                                          .lane = h->lane,
                                          .priority = h->priority,
                                          .run_at_us = v->run_at_us,
                                          .expires_us = call->expires_us,
                                          .end = pawl_state_ended(v->next) ? &end : NULL,
                                          .key = call->spec.key,
                                          .key_no = h->key_no,
                                          .pos = h->pos,
                                          .behind = behind < 0 ? 0 : l->held[behind].seq },
                     err);
}

/* When it began: not before the one before it in its key had ended, though the clock that saw it
 * begin is not the one that saw the other end. */
static enum pawl_status started(struct lite *c, const struct lite_lease *l, struct bytes key,
                                struct lite_try *t, struct pawl_err *err)
{
    struct lite_key *k;
    if (!t->started_us)
        t->started_us = l->claimed_us;
    if (!key.data)
        return PAWL_OK;
    enum pawl_status st = lite_key_get(c, key, &k, err);
    if (st == PAWL_OK)
        t->started_us = MAX(t->started_us, k->ended_us);
    return st;
}

enum pawl_status lite_try_end(struct lite *c, struct lite_lease *l, size_t i, struct lite_try *t,
                              struct bytes *id, struct pawl_err *err)
{
    const struct held *h = &l->held[i];
    struct lite_shelf to = { .a = &c->scratch };
    struct call call = { .seq = h->seq };
    enum pawl_status st = PAWL_OK;
    /* A result is decided by nothing but itself: no need to read what was asked. */
    if (t->end.how == END_RESULT && l->keep_us[i] >= 0) {
        call.spec.keep_us = l->keep_us[i];
        st = lite_lease_key(c, l, i, &call.spec.key, err);
    } else {
        st = lite_asked(c, &to, h->seq, false, &call, err);
    }
    if (st == PAWL_OK && t->end.how != END_RESULT)
        st = lite_wish_has(c, h->seq, &t->end.wish, err);
    if (st != PAWL_OK)
        return st;
    call.state = PAWL_PROCESSING;
    call.run_at_us = h->run_at_us;
    call.tries = h->tries;
    if (h->tries.redrives > 0)
        call.expires_us = 0;
    st = started(c, l, call.spec.key, t, err);
    if (st != PAWL_OK)
        return st;
    int64_t held_us = l->until_us ? MIN(l->until_us, c->now_us) : c->now_us;
    if (!try_timed_out(&c->scratch, &call.spec, t->started_us, held_us, &t->end, &t->error))
        return err_no_memory(err, "a try");
    t->verdict = call_after(&(struct try_of){ &call.spec, h->tries, h->run_at_us }, &t->end,
                            c->now_us, c->world);
    st = row_write(c, l, h, t, err);
    if (st == PAWL_OK)
        st = move_write(c, l, h, t, &call, err);
    t->id = call.spec.id;
    if (id)
        *id = pawl_state_ended(t->verdict.next) ? call.spec.id : BYTES_NONE;
    return st;
}

/* ---- Former answers -------------------------------------------------------------------------- */

static enum pawl_status former_outcome(struct lite *c, struct op *op, const struct token *token,
                                       struct finish_item *f, bool *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    enum pawl_status st =
        lite_query(c, SQL_OUTCOME_OF_TOKEN, ARGS(INT(f->seq_found), TOKEN(token)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, out, err);
    if (st != PAWL_OK || !*out)
        return st;
    f->state = (enum pawl_state)lite_int(q, 0);
    f->error_out = arena_copy(op->a, lite_column(q, 1));
    f->tries = (struct tries){ (int)lite_int(q, 2), (int)lite_int(q, 3), (int)lite_int(q, 4) };
    f->finished_us = lite_int(q, 5);
    return PAWL_OK;
}

/* A row of tries: state, end and error as they were, the rest as it is now. */
static enum pawl_status former_try(struct lite *c, struct op *op, const struct token *token,
                                   struct finish_item *f, bool *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct lite_shelf to = { .a = &c->scratch };
    struct call call;
    enum pawl_status st =
        lite_query(c, SQL_ATTEMPT_OF_TOKEN, ARGS(INT(f->seq_found), TOKEN(token)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, out, err);
    if (st != PAWL_OK || !*out)
        return st;
    f->state = (enum pawl_state)lite_int(q, 0);
    f->error_out = arena_copy(op->a, lite_column(q, 1));
    f->finished_us = f->state == PAWL_PENDING ? 0 : lite_int(q, 2);
    if (lite_fresh_has(c, f->seq_found))
        st = lite_fresh_write(c, err);
    if (st == PAWL_OK)
        st = lite_stands(c, &to, f->seq_found, 0, &call, err);
    if (st != PAWL_OK)
        return st;
    f->tries = call.tries;
    bool pending = call.state == PAWL_PENDING && !call.claimed_us;
    f->run_at_us = pending ? call.run_at_us : 0;
    return PAWL_OK;
}

static enum pawl_status former(struct lite *c, struct op *op, const struct token *token,
                               struct finish_item *f, bool *out, struct pawl_err *err)
{
    enum pawl_status st = former_outcome(c, op, token, f, out, err);
    if (st == PAWL_OK && !*out)
        st = former_try(c, op, token, f, out, err);
    return st == PAWL_OK && op->a->failed ? err_no_memory(err, "a finish") : st;
}

/* ---- Looking at the items -------------------------------------------------------------------- */

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void say_twice(struct op *op, const struct finish *f, int64_t seq)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].seq_found == seq && f->v[i].id.data) {
            op->status =
                err_set(&op->err, PAWL_INVALID, "call \"%.*s\" is named twice in one finish",
                        BYTES_ARG(f->v[i].id));
            return;
        }
    op->status =
        err_set(&op->err, PAWL_INVALID, "call %lld is named twice in one finish", (long long)seq);
}

/* Which calls the items name, each once. */
static enum pawl_status items_find(struct lite *c, struct op *op, struct finish *f,
                                   struct pawl_err *err)
{
    int64_t *seqs = arena_alloc(&c->scratch, f->n * sizeof *seqs);
    if (!seqs)
        return err_no_memory(err, "a finish");
    for (size_t i = 0; i < f->n; i++) {
        struct finish_item *it = &f->v[i];
        it->seq_found = it->seq;
        it->state = 0;
        it->run_at_us = it->finished_us = it->version = 0;
        it->error_out = it->queue = it->type = BYTES_NONE;
        if (!it->seq) {
            enum pawl_status st = lite_id_find(c, it->id, &it->seq_found, NULL, err);
            if (st != PAWL_OK)
                return st;
        }
        seqs[i] = it->seq_found;
    }
    if (f->n > 1)
        qsort(seqs, f->n, sizeof *seqs, compare_seqs);
    for (size_t i = 1; i < f->n && op->status == PAWL_OK; i++)
        if (seqs[i] && seqs[i] == seqs[i - 1])
            say_twice(op, f, seqs[i]);
    return PAWL_OK;
}

static bool holds(const struct lite *c, const struct lite_lease *l, int64_t seq)
{
    ssize_t i = l && !lite_lease_over(l, c->now_us) ? lite_lease_find(l, seq) : -1;
    return i >= 0 && l->state[i] == HELD_OPEN;
}

/* Every item has somewhere to go, or op->status refuses. Those answered before have their state. */
static enum pawl_status items_check(struct lite *c, struct op *op, struct finish *f,
                                    const struct lite_lease *l, struct pawl_err *err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct finish_item *it = &f->v[i];
        bool answered = false;
        if (holds(c, l, it->seq_found))
            continue;
        if (it->seq_found) {
            enum pawl_status st = former(c, op, &f->token, it, &answered, err);
            if (st != PAWL_OK)
                return st;
        }
        if (answered)
            continue;
        return op_not_held(op, &f->token, it->id, it->seq);
    }
    return PAWL_OK;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The id of an item that may be named by its number alone. */
static enum pawl_status item_id(struct lite *c, const struct finish_item *it, struct bytes *out,
                                struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    struct call call;
    *out = it->id;
    if (out->data)
        return PAWL_OK;
    enum pawl_status st = lite_asked(c, &to, it->seq_found, false, &call, err);
    *out = call.spec.id;
    return st;
}

/* Has the call of an item a key? One that was answered before may be on no list any more. */
static enum pawl_status item_key(struct lite *c, const struct finish_item *it,
                                 const struct lite_lease *l, struct bytes *out,
                                 struct pawl_err *err)
{
    struct lite_shelf to = { .a = &c->scratch };
    struct call call;
    ssize_t at = l ? lite_lease_find(l, it->seq_found) : -1;
    if (at >= 0)
        return lite_lease_key(c, l, (size_t)at, out, err);
    enum pawl_status st = lite_asked(c, &to, it->seq_found, false, &call, err);
    *out = call.spec.key;
    return st;
}

/* Only a call with a key keeps a state. */
static enum pawl_status state_check(struct lite *c, struct op *op, const struct finish_item *it,
                                    const struct lite_lease *l, struct pawl_err *err)
{
    struct bytes id, key = BYTES_NONE;
    if (it->state_do == STATE_KEEP)
        return PAWL_OK;
    enum pawl_status st = item_key(c, it, l, &key, err);
    if (st != PAWL_OK || key.data)
        return st;
    st = item_id(c, it, &id, err);
    if (st == PAWL_OK)
        op->status = err_set(&op->err, PAWL_INVALID,
                             "call \"%.*s\" has no key: it cannot keep a state", BYTES_ARG(id));
    return st;
}

/* Calls of one key come in the order of their run; `named` has those that came before. */
static enum pawl_status order_check(struct lite *c, struct op *op, const struct finish_item *it,
                                    const struct lite_lease *l, bool *named, struct pawl_err *err)
{
    size_t at = (size_t)lite_lease_find(l, it->seq_found);
    int before = l->run[at].before;
    struct bytes id, key;
    named[at] = true;
    if (before < 0 || l->state[before] != HELD_OPEN || named[before])
        return PAWL_OK;
    enum pawl_status st = item_id(c, it, &id, err);
    if (st == PAWL_OK)
        st = lite_lease_key(c, l, at, &key, err);
    if (st == PAWL_OK)
        op->status = err_set(&op->err, PAWL_INVALID,
                             "call \"%.*s\": the call before it in key \"%.*s\" has not ended",
                             BYTES_ARG(id), BYTES_ARG(key));
    return st;
}

static enum pawl_status keys_check(struct lite *c, struct op *op, const struct finish *f,
                                   const struct lite_lease *l, struct pawl_err *err)
{
    bool *named = l ? arena_zalloc(&c->scratch, l->n, sizeof *named) : NULL;
    enum pawl_status st = l && !named ? err_no_memory(err, "a finish") : PAWL_OK;
    for (size_t i = 0; i < f->n && st == PAWL_OK && op->status == PAWL_OK; i++) {
        st = state_check(c, op, &f->v[i], l, err);
        bool answered = f->v[i].state != 0; /* before */
        if (st == PAWL_OK && op->status == PAWL_OK && !answered)
            st = order_check(c, op, &f->v[i], l, named, err);
    }
    return st;
}

static enum pawl_status state_write(struct lite *c, struct finish_item *f,
                                    const struct lite_lease *l, size_t i, struct bytes type,
                                    struct pawl_err *err)
{
    struct bytes key;
    enum pawl_status st = lite_lease_key(c, l, i, &key, err);
    if (st == PAWL_OK)
        st = lite_object_write(
            c,
            &(struct object_op){ .type = type, .key = key, .how = f->state_do, .state = f->object },
            &f->version, err);
    return st;
}

/* ---- What it sends --------------------------------------------------------------------------- */

/* The result becomes this failure. */
static enum pawl_status send_failed(struct op *op, struct lite_try *t, enum ending how,
                                    struct bytes id, struct pawl_err *err)
{
    const char *why =
        how == END_ERROR ? ": too many queues and types" : " already exists with other content";
    const char *text = arena_printf(op->a, "outgoing call \"%.*s\"%s", BYTES_ARG(id), why);
    t->end.how = how;
    t->end.retry_in_us = -1;
    t->error = bytes_of(text);
    return text ? PAWL_OK : err_no_memory(err, "a finish");
}

static enum pawl_status send_all(struct lite *c, struct op *op, const struct finish_item *f,
                                 struct lite_try *t, struct pawl_err *err)
{
    struct lite_look *look = arena_alloc(&c->scratch, f->n_send * sizeof *look);
    size_t lanes = 0;
    enum pawl_status st =
        look ? lite_look(c, f->send, f->n_send, look, err) : err_no_memory(err, "sent calls");
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++)
        if (look[i].known == KNOWN_OTHER)
            return send_failed(op, t, END_REFUSE, f->send[i].id, err);
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++) {
        lanes += look[i].new_lane;
        if (look[i].new_lane && lite_lanes_full(c, lanes))
            return send_failed(op, t, END_ERROR, f->send[i].id, err);
    }
    for (size_t i = 0; i < f->n_send && st == PAWL_OK; i++) {
        struct call call;
        bool fresh;
        int lane;
        if (look[i].known != KNOWN_NOT)
            continue;
        st = lite_lane_for(c, &f->send[i], &lane, err);
        if (st == PAWL_OK)
            st = lite_call_make(c, &f->send[i], lane, &call, &fresh, err);
    }
    return st;
}

/* ---- The operation --------------------------------------------------------------------------- */

static void answer(struct lite *c, const struct lite_try *t, struct finish_item *f)
{
    const struct verdict *v = &t->verdict;
    bool pending = v->next == PAWL_PENDING;
    bool failed = v->next == PAWL_FAILED || v->next == PAWL_DEAD_LETTER;
    f->state = v->next;
    f->tries = v->tries;
    f->run_at_us = pending ? v->run_at_us : 0;
    f->finished_us = pending ? 0 : c->now_us;
    f->error_out = failed || (pending && v->count_try) ? t->error : BYTES_NONE;
}

/* Everything behind a call that did not complete goes back, whatever the finish says of it. */
static enum pawl_status hand_back(struct lite *c, struct op *op, struct lite_lease **l, int i,
                                  struct finish *f, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    while (i >= 0 && st == PAWL_OK) {
        struct lite_try t = { .end = { .how = END_RELEASE }, .owner = true };
        int64_t seq = (*l)->held[i].seq;
        int next = (*l)->run[i].behind;
        struct bytes id;
        bool named = false;
        st = lite_try_end(c, *l, (size_t)i, &t, &id, err);
        for (size_t k = 0; k < f->n && st == PAWL_OK && !named; k++)
            if ((named = f->v[k].seq_found == seq))
                answer(c, &t, &f->v[k]);
        if (st == PAWL_OK && id.data && !named)
            st = lite_told_ended(op, id, err);
        if (st == PAWL_OK)
            st = lite_lease_done(c, l, (size_t)i, t.verdict.next == PAWL_PENDING, err);
        i = next;
    }
    return st;
}

static enum pawl_status finish_one(struct lite *c, struct op *op, struct lite_lease **l,
                                   struct finish *f, struct finish_item *it, struct pawl_err *err)
{
    size_t i = (size_t)lite_lease_find(*l, it->seq_found);
    int behind = (*l)->run[i].behind;
    struct lite_try t = { .end = { .how = it->how, .retry_in_us = it->retry_in_us },
                          .result = it->result,
                          .error = it->error,
                          .started_us = it->started_us,
                          .owner = true };
    const struct lite_lane *lane;
    enum pawl_status st = lite_lane(c, (*l)->held[i].lane, &lane, err);
    if (st == PAWL_OK) {
        it->queue = lane->queue;
        it->type = lane->type;
    }
    if (st == PAWL_OK && it->how == END_RESULT && it->n_send)
        st = send_all(c, op, it, &t, err);
    if (st == PAWL_OK && t.end.how == END_RESULT && it->state_do != STATE_KEEP) {
        st = lite_lane(c, (*l)->held[i].lane, &lane, err); /* sending may have made lanes */
        if (st == PAWL_OK)
            st = state_write(c, it, *l, i, lane->type, err);
    }
    if (st == PAWL_OK)
        st = lite_try_end(c, *l, i, &t, NULL, err);
    if (st != PAWL_OK)
        return st;
    answer(c, &t, it);
    st = lite_lease_done(c, l, i, it->state == PAWL_PENDING, err);
    if (st == PAWL_OK && it->state != PAWL_COMPLETED && behind >= 0)
        st = hand_back(c, op, l, behind, f, err);
    return st;
}

enum pawl_status lite_finish(struct lite *c, struct op *op, struct finish *f, size_t *out_stored,
                             struct pawl_err *err)
{
    struct lite_lease *l = NULL;
    *out_stored = 0;
    enum pawl_status st = items_find(c, op, f, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = lite_lease_get(c, &f->token, &l, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = items_check(c, op, f, l, err);
    if (st == PAWL_OK && op->status == PAWL_OK)
        st = keys_check(c, op, f, l, err);
    if (st != PAWL_OK || op->status != PAWL_OK)
        return st;
    for (size_t i = 0; i < f->n && st == PAWL_OK; i++) {
        if (f->v[i].state)
            continue; /* answered before, or handed back with the one before it */
        st = finish_one(c, op, &l, f, &f->v[i], err);
        ++*out_stored;
    }
    f->until_us = l && !lite_lease_over(l, c->now_us) ? l->until_us : 0;
    return st;
}
