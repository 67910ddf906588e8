/*
 * sweep.c - what no request triggers: expiry, leases past their end, retention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mem/mem.h"

/* The first node of a tree that is ordered by time, if that time has come; else NULL. */
static struct tree_node *first_due(const struct tree *t, int64_t now_us)
{
    struct tree_node *n = tree_from(t, KEY(INT64_MIN, INT64_MIN, INT64_MIN));
    return n && n->key.k[0] <= now_us ? n : NULL;
}

static int64_t first_to_come(const struct tree *t, int64_t now_us)
{
    struct tree_node *n = tree_from(t, KEY(now_us + 1, INT64_MIN, INT64_MIN));
    return n ? n->key.k[0] : 0;
}

static void look_ahead(const struct mem_tx *tx, struct sweep *q)
{
    const struct tree *all[] = { &tx->db->expiry, &tx->db->ends, &tx->db->delayed };
    q->more = false;
    q->next_us = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        int64_t next_us = first_to_come(all[i], tx->now_us);
        q->more |= first_due(all[i], tx->now_us) != NULL;
        if (next_us && (!q->next_us || next_us < q->next_us))
            q->next_us = next_us;
    }
}

enum pawl_status mem_sweep(struct mem_tx *tx, struct sweep *q)
{
    struct mem_db *db = tx->db;
    struct tree_node *n;
    enum pawl_status st = PAWL_OK;
    q->expired = q->reclaimed = q->cancelled = q->joined = 0;
    while (q->expired < q->max && (n = first_due(&db->expiry, tx->now_us))) {
        struct mem_call *c = THING_OF(n, struct mem_call, by_expiry);
        st = call_end(tx, c, call_expired_as(&c->spec, c->now.expires_us));
        if (st == PAWL_OK && !key_settle(db, c->now.key))
            st = PAWL_NO_MEMORY;
        if (st == PAWL_OK)
            st = told_ended(tx, c);
        if (st != PAWL_OK)
            return st;
        q->expired++;
    }
    for (int i = 0; i < q->max && (n = first_due(&db->ends, tx->now_us)); i++) {
        struct mem_lease *l = THING_OF(n, struct mem_lease, by_until);
        struct attempt_end end = { .how = END_LOST, .fail_lost = q->fail_lost, .timed = true };
        st = lease_reclaim(tx, l, end, &q->reclaimed);
        if (st != PAWL_OK)
            return st;
    }
    q->joined = join_due(tx, q->max);
    if (q->joined < 0)
        return PAWL_NO_MEMORY;
    look_ahead(tx, q);
    return PAWL_OK;
}

/* ---- Leases that an operator ends ------------------------------------------------------------ */

/* The oldest lease that was claimed before this moment; NULL: none. */
static struct mem_lease *oldest_lease(const struct mem_db *db, int64_t before_us)
{
    struct mem_lease *oldest = NULL;
    struct tree_node *n =
        db->leases.root ? tree_from(&db->leases, KEY(INT64_MIN, INT64_MIN)) : NULL;
    for (; n; n = tree_after(&db->leases, n)) {
        struct mem_lease *l = THING_OF(n, struct mem_lease, by_token);
        if (l->claimed_us < before_us && (!oldest || l->claimed_us < oldest->claimed_us))
            oldest = l;
    }
    return oldest;
}

enum pawl_status mem_requeue(struct mem_tx *tx, struct requeue *q)
{
    struct attempt_end end = { .how = END_LOST, .fail_lost = q->fail_lost };
    struct mem_lease *l;
    q->leases = q->reclaimed = 0;
    while (q->leases < q->max && (l = oldest_lease(tx->db, q->claimed_before_us))) {
        enum pawl_status st = lease_reclaim(tx, l, end, &q->reclaimed);
        if (st != PAWL_OK)
            return st;
        q->leases++;
    }
    q->more = oldest_lease(tx->db, q->claimed_before_us) != NULL;
    return PAWL_OK;
}

/* ---- Retention ------------------------------------------------------------------------------- */

/* Make a tombstone of an ended call; the rest of it is freed when the change is committed. There is
 * no archive, because it would end with the process too. */
static bool bury_call(struct mem_tx *tx, struct mem_call *c)
{
    struct mem_db *db = tx->db;
    struct mem_key *k = c->now.key;
    CHECK(c->now.place == PLACE_ENDED && !c->now.blocks);
    if (!lease_leave(db, c) || !undo_save(db, &c->thing))
        return false;
    struct stand to = c->now;
    to.place = PLACE_GONE;
    to.finished_us = c->now.outcome->finished_us;
    to.forget_us = c->now.outcome->keep_until_us + tx->s->remember_us;
    to.newest_attempt = NULL;
    to.key = NULL;
    to.lane = NULL;
    db->undo.v[db->undo.n - 1].trash = c->now.blobs;
    call_put(db, c, to);
    c->now.blobs = NULL;
    return key_forget(db, k);
}

/* Remove calls that ended before q->ended_before_us, by seq. */
static enum pawl_status gc_ended(struct mem_tx *tx, struct gc *q)
{
    struct mem_db *db = tx->db;
    int64_t seq = q->after_seq;
    while (seq < db->last_seq && q->removed < q->max) {
        struct mem_call *c = db->calls[seq++];
        if (!c || c->now.place != PLACE_ENDED || c->now.blocks ||
            c->now.outcome->finished_us >= q->ended_before_us)
            continue;
        if (!bury_call(tx, c))
            return PAWL_NO_MEMORY;
        q->removed++;
    }
    q->more = q->removed == q->max;
    q->next_seq = q->more ? seq : 0;
    return PAWL_OK;
}

enum pawl_status mem_gc(struct mem_tx *tx, struct gc *q)
{
    struct mem_db *db = tx->db;
    struct tree_node *n;
    q->removed = q->forgotten = q->next_seq = 0;
    if (q->ended_before_us)
        return gc_ended(tx, q);
    while (q->removed < q->max && (n = first_due(&db->keep, tx->now_us))) {
        if (!bury_call(tx, call_at(n)))
            return PAWL_NO_MEMORY;
        q->removed++;
    }
    while (q->forgotten < q->max && (n = first_due(&db->forget, tx->now_us))) {
        CHECK(call_at(n)->now.place == PLACE_GONE);
        if (!thing_drop(db, &call_at(n)->thing))
            return PAWL_NO_MEMORY;
        q->forgotten++;
    }
    q->more = first_due(&db->keep, tx->now_us) || first_due(&db->forget, tx->now_us);
    return lanes_remove(tx) ? PAWL_OK : PAWL_NO_MEMORY;
}
