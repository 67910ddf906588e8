/*
 * move.c - the one function that moves a call between places, and what a transaction keeps about
 * that.
 *
 * A call is in pawl_ready or in its key's line, named by a lease without an outcome, or in
 * pawl_outcome. lite_move() takes it out of one and puts it into the other; a row that was to be
 * taken out and is not there means that what is stored contradicts itself, and stops everything.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/sqlite/move.h"

/* ---- Small memory of the transaction --------------------------------------------------------- */

enum pawl_status lite_seq_load(struct lite *c, struct pawl_err *err)
{
    if (c->seq_tx == c->tx)
        return PAWL_OK;
    enum pawl_status st = lite_number(c, SQL_META_GET, ARGS(TEXT(BYTES("seq"))), -1, &c->seq, err);
    if (st == PAWL_OK && c->seq < 0)
        st = err_set(err, PAWL_BROKEN, "database \"%s\": has no sequence number", c->path);
    if (st == PAWL_OK) {
        c->seq_stored = c->seq;
        c->seq_tx = c->tx;
    }
    return st;
}

enum pawl_status lite_version_next(struct lite *c, int64_t *out, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    if (c->version_tx != c->tx)
        st = lite_number(c, SQL_META_GET, ARGS(TEXT(BYTES("version"))), -1, &c->version, err);
    if (st == PAWL_OK && c->version < 0)
        st = err_set(err, PAWL_BROKEN, "database \"%s\": has no version number", c->path);
    if (st != PAWL_OK)
        return st;
    c->version_tx = c->tx;
    *out = ++c->version;
    return PAWL_OK;
}

static enum pawl_status wishes_load(struct lite *c, struct pawl_err *err)
{
    int64_t one = 0;
    if (c->wishes_tx == c->tx)
        return PAWL_OK;
    enum pawl_status st = lite_number(c, SQL_WISH_ANY, NO_ARGS, 0, &one, err);
    if (st == PAWL_OK) {
        c->wishes = one != 0;
        c->wishes_tx = c->tx;
    }
    return st;
}

enum pawl_status lite_wish_has(struct lite *c, int64_t seq, bool *out, struct pawl_err *err)
{
    int64_t one = 0;
    enum pawl_status st = wishes_load(c, err);
    if (st == PAWL_OK && c->wishes)
        st = lite_number(c, SQL_WISH_HAS, ARGS(INT(seq)), 0, &one, err);
    *out = one != 0;
    return st;
}

enum pawl_status lite_wish_add(struct lite *c, int64_t seq, struct pawl_err *err)
{
    c->wishes_tx = 0;
    return lite_run(c, SQL_WISH_ADD, ARGS(INT(seq), INT(c->now_us)), NULL, err);
}

enum pawl_status lite_told_ended(struct op *op, struct bytes id, struct pawl_err *err)
{
    /* Room for 8, 16, 32, ...: an arena cannot give back, so grow by doubling. */
    size_t n = op->n_ended;
    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
        struct bytes *v = arena_zalloc(op->a, n ? n * 2 : 8, sizeof *v);
        if (!v)
            return err_no_memory(err, "ended calls");
        if (n)
            memcpy(v, op->ended, n * sizeof *v);
        op->ended = v;
    }
    op->ended[n] = arena_copy(op->a, id);
    if (!op->ended[n].data)
        return err_no_memory(err, "ended calls");
    op->n_ended++;
    return PAWL_OK;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static enum pawl_status contradiction(int64_t seq, const char *what, struct pawl_err *err)
{
    return err_set(err, PAWL_BROKEN, "call %lld %s", (long long)seq, what);
}

static enum pawl_status out_of_pending(struct lite *c, const struct lite_move *m,
                                       struct lite_key *k, struct pawl_err *err)
{
    int changed = 0;
    enum pawl_status st = k ? lite_key_out(c, k, m->seq, err)
                            : lite_run(c, SQL_READY_REMOVE, ARGS(INT(m->seq)), &changed, err);
    if (st == PAWL_OK && !k && changed != 1)
        return contradiction(m->seq, "is pending but not ready", err);
    if (st == PAWL_OK && m->expires_us)
        st = lite_run(c, SQL_EXPIRY_REMOVE, ARGS(INT(m->expires_us), INT(m->seq)), NULL, err);
    return st;
}

enum pawl_status lite_ready_add(struct lite *c, const struct lite_fresh *f, struct pawl_err *err)
{
    enum pawl_status st = lite_run(
        c, SQL_READY_ADD,
        ARGS(INT(f->seq), INT(lite_track(f->lane, f->tries)), INT(-f->priority), INT(f->run_at_us),
             INT(f->tries.attempts), INT(f->tries.lost), INT(f->tries.redrives)),
        NULL, err);
    if (st == PAWL_BROKEN)
        return contradiction(f->seq, "is ready already", err);
    if (st == PAWL_OK && f->expires_us)
        st = lite_run(c, SQL_EXPIRY_ADD, ARGS(INT(f->expires_us), INT(f->seq)), NULL, err);
    return st;
}

static enum pawl_status into_pending(struct lite *c, const struct lite_move *m, struct lite_key *k,
                                     struct pawl_err *err)
{
    if (!k)
        return lite_ready_add(c,
                              &(struct lite_fresh){ .seq = m->seq,
                                                    .run_at_us = m->run_at_us,
                                                    .expires_us = m->expires_us,
                                                    .lane = m->lane,
                                                    .priority = m->priority,
                                                    .tries = m->tries },
                              err);
    enum pawl_status st = lite_key_into(c, k, m, err);
    if (st == PAWL_OK && m->expires_us)
        st = lite_run(c, SQL_EXPIRY_ADD, ARGS(INT(m->expires_us), INT(m->seq)), NULL, err);
    return st;
}

static enum pawl_status out_of_outcome(struct lite *c, const struct lite_move *m,
                                       struct pawl_err *err)
{
    int changed = 0;
    enum pawl_status st = lite_run(c, SQL_OUTCOME_REMOVE, ARGS(INT(m->seq)), &changed, err);
    if (st == PAWL_OK && changed != 1)
        return contradiction(m->seq, "has ended but has no outcome", err);
    return st;
}

static enum pawl_status into_outcome(struct lite *c, const struct lite_move *m,
                                     struct pawl_err *err)
{
    const struct lite_end *e = m->end;
    int64_t keep_until = c->now_us + (e->keep_us ? e->keep_us : c->retention_us);
    struct bytes token = BYTES_NONE;
    if (e->token)
        token = (struct bytes){ (const char *)e->token->b, sizeof e->token->b };
    enum pawl_status st = lite_run(
        c, SQL_OUTCOME_ADD,
        ARGS(INT(m->seq), INT(m->to), INT(e->result.form), BLOB(e->result.bytes), TEXT(e->error),
             INT(m->tries.attempts), INT(m->tries.lost), INT(m->tries.redrives), INT(m->key_no),
             BLOB(token), TEXT(e->node), INT_OR_NULL(e->claimed_us), INT_OR_NULL(e->started_us),
             INT(c->now_us), INT(e->blocks ? INT64_MAX : keep_until)),
        NULL, err);
    if (st == PAWL_BROKEN)
        return contradiction(m->seq, "has an outcome already", err);
    if (st == PAWL_OK)
        st = wishes_load(c, err);
    if (st == PAWL_OK && c->wishes)
        st = lite_run(c, SQL_WISH_REMOVE, ARGS(INT(m->seq)), NULL, err);
    return st;
}

/* What it means to the key that the call is no longer held, or holds it for good. */
static void key_follows(struct lite *c, const struct lite_move *m, struct lite_key *k)
{
    if (m->from == PAWL_PROCESSING) {
        CHECK(k->held > 0);
        k->held--;
        if (k->turn == KEY_HELD)
            k->head = m->behind;
        if (m->end)
            k->ended_us = c->now_us;
    }
    if (m->end && m->end->blocks) {
        k->turn = KEY_BLOCKED;
        k->head = m->seq;
        k->head_pos = m->pos;
        k->head_no = m->key_no;
        k->since_us = c->now_us;
    } else if (k->turn == KEY_BLOCKED && k->head == m->seq && m->to == PAWL_PENDING) {
        k->turn = KEY_IDLE; /* the one that blocked it is redriven */
        k->since_us = 0;
    }
    k->dirty = true;
}

static enum pawl_status move_out(struct lite *c, const struct lite_move *m, struct lite_key *k,
                                 struct pawl_err *err)
{
    switch (m->from) {
    case PAWL_PENDING:
        return out_of_pending(c, m, k, err);
    case PAWL_PROCESSING: /* Its lease is the caller's: one row holds many calls. */
        break;
    case PAWL_COMPLETED:
    case PAWL_FAILED:
    case PAWL_DEAD_LETTER:
    case PAWL_CANCELLED:
    case PAWL_EXPIRED:
        return out_of_outcome(c, m, err);
    }
    return PAWL_OK;
}

static enum pawl_status move_in(struct lite *c, const struct lite_move *m, struct lite_key *k,
                                struct pawl_err *err)
{
    switch (m->to) {
    case PAWL_PENDING:
        return into_pending(c, m, k, err);
    case PAWL_PROCESSING:
        break;
    case PAWL_COMPLETED:
    case PAWL_FAILED:
    case PAWL_DEAD_LETTER:
    case PAWL_CANCELLED:
    case PAWL_EXPIRED:
        return into_outcome(c, m, err);
    }
    return PAWL_OK;
}

enum pawl_status lite_move(struct lite *c, const struct lite_move *m, struct pawl_err *err)
{
    struct lite_key *k = NULL;
    CHECK(call_may(m->from, m->to));
    enum pawl_status st = m->key.data ? lite_key_get(c, m->key, &k, err) : PAWL_OK;
    if (st == PAWL_OK)
        st = move_out(c, m, k, err);
    if (st == PAWL_OK)
        st = move_in(c, m, k, err);
    if (st != PAWL_OK || !k)
        return st;
    key_follows(c, m, k);
    return lite_key_turn(c, k, err);
}

enum pawl_status lite_move_claimed(struct lite *c, const struct lite_claimed *m,
                                   struct pawl_err *err)
{
    int before = 0, same = 0;
    CHECK(call_may(PAWL_PENDING, PAWL_PROCESSING));
    enum pawl_status st = lite_run(
        c, SQL_READY_CLAIM, ARGS(INT(m->track), INT(m->rank), INT(m->run_at_us)), &before, err);
    if (st == PAWL_OK)
        st =
            lite_run(c, SQL_READY_CLAIM_SAME,
                     ARGS(INT(m->track), INT(m->rank), INT(m->run_at_us), INT(m->seq)), &same, err);
    if (st == PAWL_OK && (size_t)before + (size_t)same != m->n)
        st = err_set(err, PAWL_BROKEN, "up to call %lld %zu calls are ready and %d were taken",
                     (long long)m->seq, m->n, before + same);
    return st;
}

/* ---- Fresh calls ----------------------------------------------------------------------------- */

enum pawl_status lite_fresh_add(struct lite *c, const struct lite_fresh *f, struct pawl_err *err)
{
    if (c->n_fresh == c->fresh_cap) {
        size_t cap = c->fresh_cap ? c->fresh_cap * 2 : 64;
        struct lite_fresh *v = mem_resize(c->fresh, cap * sizeof *v);
        if (!v)
            return err_no_memory(err, "accepted calls");
        c->fresh = v;
        c->fresh_cap = cap;
    }
    c->fresh_low = c->n_fresh ? MIN(c->fresh_low, f->seq) : f->seq;
    c->fresh[c->n_fresh++] = *f;
    return PAWL_OK;
}

bool lite_fresh_has(const struct lite *c, int64_t seq)
{
    return c->n_fresh && seq >= c->fresh_low;
}

enum pawl_status lite_fresh_write(struct lite *c, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    CHECK(call_may(0, PAWL_PENDING));
    for (size_t i = 0; i < c->n_fresh && st == PAWL_OK; i++)
        st = lite_ready_add(c, &c->fresh[i], err);
    c->n_fresh = 0;
    return st;
}
