/*
 * claim_cursor.c - where claims continue, so that they do not scan rows that were claimed before.
 *
 * A claimed row is deleted, but stays in the index for as long as any snapshot may see it: a
 * transaction that keeps a snapshot open for minutes would make every claim scan all that was
 * claimed since. So the claims of a connection remember how far they came in each (track, rank),
 * and where the first row was when they looked, and continue from there. That alone would lose
 * calls: a row can be committed late, be handed back with the place it had, or belong to a pair
 * that this connection does not know. What this connection writes lowers its cursors. What others
 * write is found by looking slightly behind the cursors every NEAR_US, and at everything every
 * FULL_US, or every LED_CURSORS_DOUBT_US if the cursors find no due row. A look that takes long is
 * repeated less often, so that looking is never more than a small share of the work.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "store/ledger/cache.h"

#define NEAR_US (50 * MS_US)
#define FULL_US (1 * SEC_US)
/* How far behind a cursor such a look begins. */
#define BEHIND_US (2 * SEC_US)
/* Looks take at most one LOOK_SHARE-th of the time; the pause between two is limited by LOOK_MAX_US
 * in case the process was stopped during a look. */
#define LOOK_SHARE 100
#define LOOK_MAX_US (30 * SEC_US)
/* Other connections commit a call up to about this long after they read the clock: cursors stay
 * this far behind the present. */
#define LATE_US (200 * MS_US)
/* Beyond that many pairs every look is a full one. */
#define CURSORS_MAX 1000

static int compare(const struct led_cursor *m, int64_t track, int64_t rank)
{
    if (m->track != track)
        return m->track < track ? -1 : 1;
    return (m->rank > rank) - (m->rank < rank);
}

/* The index of the pair, or where it would be inserted. */
static size_t place(const struct led_cursors *k, int64_t track, int64_t rank)
{
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare(&k->v[mid], track, rank) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct led_cursor *find(struct led_cursors *k, int64_t track, int64_t rank)
{
    size_t i = place(k, track, rank);
    return i < k->n && compare(&k->v[i], track, rank) == 0 ? &k->v[i] : NULL;
}

/* Add a cursor for a new pair. NULL without memory or room: then looks are full ones. */
static struct led_cursor *add(struct led_cursors *k, int64_t track, int64_t rank)
{
    if (k->n >= CURSORS_MAX) {
        k->full_us = 0;
        return NULL;
    }
    if (k->n == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 16;
        struct led_cursor *v = mem_resize(k->v, cap * sizeof *v);
        if (!v) {
            k->full_us = 0;
            return NULL;
        }
        k->v = v;
        k->cap = cap;
    }
    size_t i = place(k, track, rank);
    memmove(&k->v[i + 1], &k->v[i], (k->n - i) * sizeof *k->v);
    k->v[i] = (struct led_cursor){ .track = track, .rank = rank };
    k->n++;
    return &k->v[i];
}

/* The pause after a look of this kind. */
static int64_t rest(int64_t least_us, int64_t cost_us)
{
    return MIN(MAX(least_us, cost_us * LOOK_SHARE), LOOK_MAX_US);
}

static void look_begins(struct led_cursors *k, int64_t now, bool full)
{
    k->near_us = now;
    if (full)
        k->full_us = now;
    k->looking = true;
    k->looking_full = full;
}

bool led_cursors_trusted(struct ledger *c, bool last)
{
    struct led_cursors *k = &c->cursors;
    int64_t now = world_mono(&world_real);
    /* A test's clock does not tell how long ago others wrote. */
    if (!c->db->cursors || c->own_clock)
        return false;
    int64_t full_us = rest(k->dry ? LED_CURSORS_DOUBT_US : FULL_US, k->full_cost_us);
    /* A full look whose answer was not read, because the claim was a repeat, has found nothing. */
    bool unread = k->looking && k->looking_full;
    if (unread || !k->full_us || (!last && now - k->full_us >= full_us)) {
        look_begins(k, now, true);
        for (size_t i = 0; i < k->n; i++)
            k->v[i].run_at_us = k->v[i].seq = 0;
        return false;
    }
    if (!last && now - k->near_us >= rest(NEAR_US, k->near_cost_us)) {
        look_begins(k, now, false);
        for (size_t i = 0; i < k->n; i++)
            if (k->v[i].run_at_us > c->now_us - BEHIND_US) {
                k->v[i].run_at_us = c->now_us - BEHIND_US;
                k->v[i].seq = 0;
            }
    }
    return true;
}

int64_t led_cursors_rest(const struct ledger *c)
{
    return rest(LED_CURSORS_DOUBT_US, c->cursors.full_cost_us);
}

bool led_cursors_doubt(struct ledger *c)
{
    bool old = world_mono(&world_real) - c->cursors.full_us >= led_cursors_rest(c);
    if (old)
        c->cursors.full_us = 0;
    return old;
}

void led_cursors_answered(struct ledger *c, const struct led_rows *r)
{
    struct led_cursors *k = &c->cursors;
    if (!c->db->cursors || c->own_clock)
        return;
    if (k->looking)
        *(k->looking_full ? &k->full_cost_us : &k->near_cost_us) =
            world_mono(&world_real) - k->near_us;
    k->looking = false;
    for (size_t i = 0; i < k->n; i++)
        k->v[i].next_us = INT64_MAX;
    for (int i = 0; i < r->n; i++) {
        int64_t track = led_get_int(r, i, 0), rank = led_get_int(r, i, 1);
        struct led_cursor *m = find(k, track, rank);
        if (m || (m = add(k, track, rank)))
            m->next_us = led_get_int(r, i, 2);
    }
    for (size_t i = 0; i < k->n; i++) {
        struct led_cursor *m = &k->v[i];
        int64_t to = MIN(m->next_us, c->now_us - LATE_US);
        if (to > m->run_at_us) {
            m->run_at_us = to;
            m->seq = 0;
        }
    }
}

void led_cursor_get(struct ledger *c, int64_t track, int64_t rank, int64_t *run_at_us, int64_t *seq)
{
    const struct led_cursor *m = find(&c->cursors, track, rank);
    *run_at_us = m ? m->run_at_us : 0;
    *seq = m ? m->seq : 0;
}

void led_cursors_ask(struct ledger *c, struct led_batch *b, struct led_rows **out)
{
    struct led_column v[4];
    struct led_params p = { 0 };
    for (size_t i = 0; i < COUNT_OF(v); i++)
        led_column_init(&v[i], &c->scratch, LED_INTS);
    for (size_t i = 0; i < c->cursors.n; i++) {
        const struct led_cursor *m = &c->cursors.v[i];
        led_add_int(&v[0], m->track);
        led_add_int(&v[1], m->rank);
        led_add_int(&v[2], m->run_at_us);
        led_add_int(&v[3], m->seq);
    }
    for (size_t i = 0; i < COUNT_OF(v); i++)
        led_column(&p, &v[i]);
    led_batch_ask(b, SQL_READY_KNOWN, &p, out);
}

void led_cursor_raise(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us, int64_t seq)
{
    struct led_cursor *m = find(&c->cursors, track, rank);
    if (!c->db->cursors || c->own_clock || (!m && !(m = add(&c->cursors, track, rank))))
        return;
    /* A cursor in the future would hide calls that become due. */
    CHECK(run_at_us <= c->now_us && seq > 0);
    m->run_at_us = run_at_us;
    m->seq = seq;
}

void led_cursor_lower(struct ledger *c, int64_t track, int64_t rank, int64_t run_at_us, int64_t seq)
{
    if (!c->db->cursors || c->own_clock)
        return;
    struct led_cursor *m = find(&c->cursors, track, rank);
    if (!m) {
        add(&c->cursors, track, rank); /* from the beginning */
    } else if (run_at_us < m->run_at_us || (run_at_us == m->run_at_us && seq < m->seq)) {
        m->run_at_us = run_at_us;
        m->seq = seq;
    }
}
