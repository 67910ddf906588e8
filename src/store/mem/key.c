/*
 * key.c - keys: their lines, the call on offer, and when calls join.
 *
 * A key's counts and its line follow from its calls (thing.c), so they cannot disagree with them.
 * After a change only key_settle() must be called.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/mem/mem.h"

struct mem_key *key_find(const struct mem_db *db, struct bytes name)
{
    struct table_node *n = table_find(&db->keys, name);
    return n ? THING_OF(n, struct mem_key, by_name) : NULL;
}

struct mem_key *key_get(struct mem_db *db, struct bytes name)
{
    struct mem_key *k = key_find(db, name);
    if (k)
        return k;
    k = mem_zalloc(sizeof *k + name.len);
    if (!k)
        return NULL;
    k->thing.kind = THING_KEY;
    memcpy(k->name, name.data, name.len);
    k->by_name.name = (struct bytes){ k->name, name.len };
    return thing_add(db, &k->thing) ? k : NULL;
}

bool key_forget(struct mem_db *db, struct mem_key *k)
{
    if (!k || k->calls || k->objects)
        return true;
    CHECK(!k->held && !k->offer && !k->blocker && !key_pending(k));
    return thing_drop(db, &k->thing);
}

/* ---- The line -------------------------------------------------------------------------------- */

static struct mem_call *call_in_line(struct tree_node *by_line)
{
    return by_line ? THING_OF(by_line, struct mem_call, by_line) : NULL;
}

struct mem_call *line_first(const struct mem_key *k)
{
    return call_in_line(tree_from(&k->line, KEY(0)));
}

struct mem_call *line_next(const struct mem_key *k, const struct mem_call *c)
{
    return call_in_line(tree_after(&k->line, &c->by_line));
}

bool call_behind(const struct mem_call *c)
{
    return c->now.place == PLACE_HELD && c->now.key && line_first(c->now.key) != c;
}

bool call_begun(const struct mem_call *c)
{
    const struct mem_lease *l = c->now.lease;
    int first = 0;
    if (call_behind(c))
        return false;
    for (const struct mem_call *m = lease_first(l->db, l); l->width && m != c;
         m = lease_next(l->db, m)) {
        first += !call_behind(m);
        if (first == l->width)
            return false;
    }
    return true;
}

bool line_runs(const struct mem_key *k)
{
    return k->held && call_begun(line_first(k));
}

int64_t key_pending(const struct mem_key *k)
{
    return tree_count(&k->line) - k->held + tree_count(&k->delayed);
}

static int64_t count_type(const struct tree *t, struct bytes type)
{
    int64_t count = 0;
    for (struct tree_node *n = tree_from(t, KEY(0)); n; n = tree_after(t, n)) {
        const struct mem_call *c = call_in_line(n);
        count += c->now.place != PLACE_HELD && bytes_eq(c->now.lane->type, type);
    }
    return count;
}

int64_t key_pending_type(const struct mem_key *k, struct bytes type)
{
    return count_type(&k->line, type) + count_type(&k->delayed, type);
}

static bool offer(struct mem_db *db, struct mem_call *c, enum place place)
{
    if (!undo_save(db, &c->thing))
        return false;
    struct stand to = c->now;
    to.place = place;
    call_put(db, c, to);
    return true;
}

bool key_settle(struct mem_db *db, struct mem_key *k)
{
    if (!k)
        return true;
    struct mem_call *next = k->held || k->blocker ? NULL : line_first(k);
    if (k->offer == next)
        return true;
    if (k->offer && !offer(db, k->offer, PLACE_LINE))
        return false;
    if (next && !offer(db, next, PLACE_READY))
        return false;
    CHECK(k->offer == next);
    return true;
}

/* ---- Joining --------------------------------------------------------------------------------- */

bool call_join(struct mem_db *db, struct mem_call *c)
{
    CHECK(c->now.place == PLACE_DELAYED);
    int64_t pos = seq_next(db);
    if (!pos || !undo_save(db, &c->thing))
        return false;
    struct stand to = c->now;
    to.place = PLACE_LINE;
    to.pos = pos;
    call_put(db, c, to);
    return key_settle(db, to.key);
}

int64_t join_due(struct mem_tx *tx, int64_t max)
{
    int64_t n = 0;
    for (; n < max; n++) {
        struct mem_call *c = call_at(tree_from(&tx->db->delayed, KEY(INT64_MIN, INT64_MIN)));
        if (!c || c->now.run_at_us > tx->now_us)
            break;
        if (!call_join(tx->db, c))
            return -1;
    }
    return n;
}

/* ---- Deciding about a key that is blocked ---------------------------------------------------- */

/* The call no longer blocks its key: from now on it is an ended call like any other. */
static bool let_go(struct mem_tx *tx, struct mem_call *c)
{
    if (!undo_save(tx->db, &c->thing))
        return false;
    struct outcome *o = call_blob(c, sizeof *o);
    if (!o)
        return false;
    CHECK(c->now.blocks && c->now.outcome->keep_until_us == 0);
    int64_t keep_us = c->spec.keep_us ? c->spec.keep_us : tx->s->retention_us;
    *o = *c->now.outcome;
    o->keep_until_us = tx->now_us + keep_us;
    struct stand to = c->now;
    to.outcome = o;
    to.blocks = false;
    call_put(tx->db, c, to);
    return key_settle(tx->db, to.key);
}

enum pawl_status mem_unblock(struct mem_tx *tx, struct unblock *q)
{
    struct op *op = tx->op;
    struct mem_key *k = key_find(tx->db, q->key);
    q->id = BYTES_NONE;
    if (!k)
        op->status = err_set(&op->err, PAWL_NOT_FOUND, "no key \"%.*s\"", BYTES_ARG(q->key));
    else if (!k->blocker)
        op->status =
            err_set(&op->err, PAWL_STATE, "key \"%.*s\" is not blocked", BYTES_ARG(q->key));
    if (!k || !k->blocker)
        return PAWL_OK;
    q->id = arena_copy(op->a, k->blocker->id);
    if (!q->id.data)
        return PAWL_NO_MEMORY;
    if (q->retry)
        return call_retry(tx, k->blocker);
    return let_go(tx, k->blocker) ? PAWL_OK : PAWL_NO_MEMORY;
}
