/*
 * key.c - rows of keys: locking them, key notes of other transactions, and removing a key.
 *
 * A key's row is changed only by the transaction that holds its lock. An accept does not wait for
 * the lock: without it the call joins the line and leaves a key note, which the next transaction
 * that gets the lock adds to the row's numbers; every claim looks for key notes. So the rule of
 * line.c (a free key with a line has a head) holds, or a key note says that the key has to be
 * looked at.
 *
 * A key that has no row yet is made by the group that needs it. If the group can be repeated, the
 * row is inserted with the group's last writes, with its final numbers: if another transaction
 * inserted it first, the insert fails, and the repeated group finds the row. If the row itself must
 * keep others out (a write of an object), or the group cannot be repeated, it is inserted at once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

#define FOLD_MAX 1000

static struct led_key **slot(struct ledger *c, struct bytes name)
{
    struct led_key **at = &c->tx->keys[led_hash(name.data, name.len) % LED_BUCKETS];
    while (*at && !bytes_eq((*at)->name, name))
        at = &(*at)->same;
    return at;
}

struct led_key *led_key_find(struct ledger *c, struct bytes name)
{
    struct led_key *k = *slot(c, name);
    assert(k);
    return k;
}

static struct led_key *key_new(struct ledger *c, struct bytes name)
{
    struct led_key **at = slot(c, name);
    if (*at)
        return *at;
    struct led_key *k = arena_zalloc(&c->scratch, 1, sizeof *k);
    if (!k)
        return NULL;
    k->name = arena_copy(&c->scratch, name);
    k->next_no = 1;
    if (!k->name.data)
        return NULL;
    k->newer = c->tx->first_key;
    c->tx->first_key = k;
    *at = k;
    return k;
}

/* ---- Rows and key notes ---------------------------------------------------------------------- */

static void row_read(const struct led_rows *r, int row, struct led_key *k)
{
    k->known = true;
    k->turn = (enum led_turn)led_get_int(r, row, 1);
    k->head = led_get_int(r, row, 2);
    k->head_pos = led_get_int(r, row, 3);
    k->head_no = led_get_int(r, row, 4);
    k->next_no = led_get_int(r, row, 5);
    k->held = led_get_int(r, row, 6);
    k->waiting = led_get_int(r, row, 7);
    k->later = led_get_int(r, row, 8);
    k->since_us = led_get_int(r, row, 9);
    k->ended_us = led_get_int(r, row, 10);
}

enum pawl_status led_key_of_row(struct ledger *c, struct bytes name, struct led_key **out,
                                struct pawl_err *err)
{
    *out = *slot(c, name);
    return *out ? PAWL_OK
                : err_set(err, PAWL_BROKEN, "database: key \"%.*s\" was not asked for",
                          BYTES_ARG(name));
}

/* Read the rows of key_look, key_try, key_wait or key_add. */
static enum pawl_status rows_take(struct ledger *c, enum sql_name name, const struct led_rows *r,
                                  struct pawl_err *err)
{
    bool got = name != SQL_KEY_LOOK;
    for (int i = 0; r && i < r->n; i++) {
        struct led_key *k;
        enum pawl_status st = led_key_of_row(c, led_get(r, i, 0), &k, err);
        if (st != PAWL_OK)
            return st;
        if (name == SQL_KEY_ADD) {
            if (k->known)
                return err_set(err, PAWL_BROKEN, "database: key \"%.*s\" has two rows",
                               BYTES_ARG(k->name));
            k->known = true;
            k->fresh = false;
        } else if (!k->got) {
            row_read(r, i, k);
        }
        k->got = k->got || got;
    }
    return PAWL_OK;
}

static bool remember(struct ledger *c, struct led_key *k, int64_t note)
{
    if (k->n_folded == 0 || (k->n_folded >= 8 && (k->n_folded & (k->n_folded - 1)) == 0)) {
        int64_t *v = arena_alloc(&c->scratch, MAX(k->n_folded * 2, 8) * sizeof *v);
        if (!v)
            return false;
        if (k->n_folded)
            memcpy(v, k->folded, k->n_folded * sizeof *v);
        k->folded = v;
    }
    k->folded[k->n_folded++] = note;
    return true;
}

static bool remembered(const struct led_key *k, int64_t note)
{
    for (size_t i = 0; i < k->n_folded; i++)
        if (k->folded[i] == note)
            return true;
    return false;
}

/* A key note that counts no call is one of led_wake(). It means the call that is on offer now: if
 * that was claimed meanwhile, it has got what it was to be woken for. */
static void wake_read(struct ledger *c, struct led_key *k, int64_t calls)
{
    if (calls || k->turn != KEY_OFFERED)
        return;
    k->wake = k->head;
    c->tx->wakes = true;
}

/* Add the calls that joined these keys while other transactions had locked them. For a key that is
 * locked here, key notes are added to its numbers; for any other key they are only counted for
 * answers. */
static enum pawl_status notes_take(struct ledger *c, const struct bytes *v, size_t n,
                                   const struct led_rows *r, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct led_key *k = led_key_find(c, v[i]);
        k->seen_waiting = k->seen_later = 0;
    }
    for (int i = 0; i < r->n; i++) {
        struct led_key *k;
        enum pawl_status st = led_key_of_row(c, led_get(r, i, 1), &k, err);
        if (st != PAWL_OK)
            return st;
        if (led_get_int(r, i, 0) <= 0 || led_get_int(r, i, 2) < 0 || led_get_int(r, i, 3) < 0)
            return err_set(err, PAWL_BROKEN, "key \"%.*s\": a key note counts calls below 0",
                           BYTES_ARG(k->name));
        if (k->got && remembered(k, led_get_int(r, i, 0)))
            continue;
        if (k->got) {
            k->waiting += led_get_int(r, i, 2);
            k->later += led_get_int(r, i, 3);
            wake_read(c, k, led_get_int(r, i, 2) + led_get_int(r, i, 3));
            k->dirty = true;
            if (!remember(c, k, led_get_int(r, i, 0)))
                return err_no_memory(err, "key notes");
            led_key_turn(c, k);
        } else {
            k->seen_waiting += led_get_int(r, i, 2);
            k->seen_later += led_get_int(r, i, 3);
            /* Its head is due and cannot be claimed yet: look again soon. */
            c->tx->noted = c->tx->noted || !(led_get_int(r, i, 2) + led_get_int(r, i, 3));
        }
    }
    return PAWL_OK;
}

/* Run one statement about keys, and read their key notes after it unless the caller does that. */
static enum pawl_status rows_ask(struct ledger *c, enum sql_name name, const struct bytes *v,
                                 size_t n, bool with_notes, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    struct led_rows *rows = NULL, *notes = NULL;
    struct led_params p = { 0 };
    if (!b)
        return err_no_memory(err, "keys");
    b->n = 0;
    led_texts(c, &p, v, n);
    led_batch_ask(b, name, &p, &rows);
    if (with_notes)
        led_batch_ask(b, SQL_KEY_NOTES_OF, &p, &notes);
    enum pawl_status st = led_batch_run(c, b, err);
    if (st == PAWL_OK)
        st = led_rows_check(rows, name, n, err);
    if (st != PAWL_OK)
        return st;
    st = rows_take(c, name, rows, err);
    return st == PAWL_OK && notes ? notes_take(c, v, n, notes, err) : st;
}

/* Read the key notes of keys in memory, including those that were left after the keys were locked.
 */
static enum pawl_status notes_ask(struct ledger *c, const struct bytes *v, size_t n,
                                  struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_texts(c, &p, v, n);
    enum pawl_status st = led_query(c, SQL_KEY_NOTES_OF, &p, &r, err);
    return st == PAWL_OK ? notes_take(c, v, n, r, err) : st;
}

/* ---- Locking --------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

static bool is_wanting(const struct led_key *k, enum led_lock how)
{
    if (!k || (k->got && !k->fresh))
        return !k;
    return k->got ? how == LOCK_ROW : how != LOCK_TRY || !k->tried;
}

/* The keys that still have to be locked, sorted, without duplicates. */
static enum pawl_status wanting(struct ledger *c, const struct bytes *names, size_t n,
                                enum led_lock how, struct bytes **out, size_t *out_n,
                                struct pawl_err *err)
{
    struct bytes *v = arena_alloc(&c->scratch, (n + 1) * sizeof *v);
    size_t m = 0, kept = 0;
    if (!v)
        return err_no_memory(err, "keys");
    for (size_t i = 0; i < n; i++)
        if (is_wanting(*slot(c, names[i]), how))
            v[m++] = names[i];
    qsort(v, m, sizeof *v, compare_names);
    for (size_t i = 0; i < m; i++)
        if (kept == 0 || !bytes_eq(v[kept - 1], v[i]))
            v[kept++] = v[i];
    for (size_t i = 0; i < kept; i++) {
        struct led_key *k = key_new(c, v[i]);
        if (!k)
            return err_no_memory(err, "keys");
        v[i] = k->name;
        k->tried = true;
    }
    *out = v;
    *out_n = kept;
    return PAWL_OK;
}

enum pawl_status led_keys_ask(struct ledger *c, struct led_batch *b, struct led_asked_keys *q,
                              struct pawl_err *err)
{
    struct led_params wait = { 0 }, try = { 0 }, all = { 0 };
    struct bytes *waits = NULL, *tries = NULL;
    enum pawl_status st = wanting(c, q->wait, q->n_wait, q->how, &waits, &q->n_wait, err);
    if (st == PAWL_OK)
        st = wanting(c, q->try, q->n_try, LOCK_TRY, &tries, &q->n_try, err);
    q->n = st == PAWL_OK ? q->n_wait + q->n_try : 0;
    if (!q->n)
        return st;
    q->v = arena_alloc(&c->scratch, q->n * sizeof *q->v);
    if (!q->v)
        return err_no_memory(err, "keys");
    memcpy(q->v, waits, q->n_wait * sizeof *q->v);
    memcpy(q->v + q->n_wait, tries, q->n_try * sizeof *q->v);
    led_texts(c, &wait, q->v, q->n_wait);
    led_texts(c, &try, q->v + q->n_wait, q->n_try);
    led_texts(c, &all, q->v, q->n);
    if (q->n_wait)
        led_batch_ask(b, SQL_KEY_WAIT, &wait, &q->waited);
    if (q->n_try)
        led_batch_ask(b, SQL_KEY_TRY, &try, &q->tried);
    if (q->with_notes)
        led_batch_ask(b, SQL_KEY_NOTES_OF, &all, &q->notes);
    return PAWL_OK;
}

/* Those of these keys that are not locked, or with `known` false those that have no row, into *out.
 */
static enum pawl_status without(struct ledger *c, const struct bytes *v, size_t n, bool known,
                                struct bytes **out, size_t *out_n, struct pawl_err *err)
{
    *out_n = 0;
    *out = arena_alloc(&c->scratch, (n + 1) * sizeof **out);
    if (!*out)
        return err_no_memory(err, "keys");
    for (size_t i = 0; i < n; i++) {
        const struct led_key *k = led_key_find(c, v[i]);
        if (known ? !k->got : !k->known)
            (*out)[(*out_n)++] = v[i];
    }
    return PAWL_OK;
}

/* Insert rows now for keys that have none. */
static enum pawl_status rows_add(struct ledger *c, const struct bytes *v, size_t n, bool with_notes,
                                 struct pawl_err *err)
{
    struct bytes *missing;
    size_t m;
    enum pawl_status st = without(c, v, n, false, &missing, &m, err);
    return st == PAWL_OK && m ? rows_ask(c, SQL_KEY_ADD, missing, m, with_notes, err) : st;
}

/* Mark keys that have no row: they get one with the group's last writes. */
static enum pawl_status rows_plan(struct ledger *c, const struct bytes *v, size_t n,
                                  struct pawl_err *err)
{
    bool noted = false;
    for (size_t i = 0; i < n; i++) {
        struct led_key *k = led_key_find(c, v[i]);
        if (k->known)
            continue;
        CHECK(k->turn == KEY_IDLE && !k->held && !k->waiting && !k->later); /* it has no row */
        k->got = k->fresh = true;
        noted = noted || k->seen_waiting || k->seen_later;
    }
    /* The key's row was removed while a call joined. */
    return noted ? notes_ask(c, v, n, err) : PAWL_OK;
}

/* Keys without a row get one now, or with the group's last writes. */
static enum pawl_status rows_make(struct ledger *c, const struct bytes *v, size_t n,
                                  const struct led_asked_keys *q, struct pawl_err *err)
{
    return q->how == LOCK_ROW || c->only_once ? rows_add(c, v, n, q->with_notes, err)
                                              : rows_plan(c, v, n, err);
}

/* Keys that were tried and were not returned are locked by another transaction, or have no row. */
static enum pawl_status tried_look(struct ledger *c, const struct led_asked_keys *q,
                                   struct pawl_err *err)
{
    struct bytes *missing;
    size_t m;
    enum pawl_status st = without(c, q->v + q->n_wait, q->n_try, true, &missing, &m, err);
    if (st != PAWL_OK || m == 0)
        return st;
    st = rows_ask(c, SQL_KEY_LOOK, missing, m, q->with_notes, err);
    return st == PAWL_OK ? rows_make(c, missing, m, q, err) : st;
}

enum pawl_status led_keys_take(struct ledger *c, const struct led_asked_keys *q,
                               struct pawl_err *err)
{
    enum pawl_status st = rows_take(c, SQL_KEY_WAIT, q->waited, err);
    if (st == PAWL_OK)
        st = rows_take(c, SQL_KEY_TRY, q->tried, err);
    if (st == PAWL_OK && q->notes)
        st = notes_take(c, q->v, q->n, q->notes, err);
    if (st == PAWL_OK)
        st = rows_make(c, q->v, q->n_wait, q, err);
    if (st == PAWL_OK)
        st = tried_look(c, q, err);
    for (size_t i = 0; st == PAWL_OK && i < q->n; i++) {
        const struct led_key *k = led_key_find(c, q->v[i]);
        bool lost = i < q->n_wait && (!k->got || (q->how == LOCK_ROW && !k->known));
        st = lost ? led_again(c, "a key", err) : led_key_check(k, LED_LOADED, err);
    }
    return st;
}

enum pawl_status led_keys_notes(struct ledger *c, const struct led_asked_keys *q,
                                struct pawl_err *err)
{
    CHECK(!q->with_notes);
    return q->n ? notes_ask(c, q->v, q->n, err) : PAWL_OK;
}

/* Write the key notes that this transaction has not written yet: the query for key notes has to
 * return them too. */
static enum pawl_status own_notes_write(struct ledger *c, const struct bytes *names, size_t n,
                                        enum led_lock how, struct pawl_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct led_key *k = *slot(c, names[i]);
        if (k && is_wanting(k, how) && (k->note_waiting || k->note_later || k->note_wake))
            return led_flush(c, err);
    }
    return PAWL_OK;
}

/* With one writer, reading is locking, and a row is inserted when it is first written. */
static enum pawl_status keys_own(struct ledger *c, const struct bytes *names, size_t n,
                                 enum led_lock how, struct pawl_err *err)
{
    struct bytes *v = NULL;
    size_t m = 0;
    enum pawl_status st = wanting(c, names, n, how, &v, &m, err);
    if (st == PAWL_OK && m)
        st = rows_ask(c, SQL_KEY_LOOK, v, m, false, err);
    for (size_t i = 0; i < m && st == PAWL_OK; i++) {
        struct led_key *k = led_key_find(c, v[i]);
        k->got = k->known = true;
        st = led_key_check(k, LED_LOADED, err);
    }
    return st;
}

enum pawl_status led_keys_load(struct ledger *c, const struct bytes *names, size_t n,
                               enum led_lock how, struct pawl_err *err)
{
    struct led_asked_keys q = { .how = how, .with_notes = true };
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = is_wanting(*slot(c, names[i]), how);
    if (!any)
        return PAWL_OK;
    if (c->db->one_writer)
        return keys_own(c, names, n, how, err);
    *(how == LOCK_TRY ? &q.try : &q.wait) = names;
    *(how == LOCK_TRY ? &q.n_try : &q.n_wait) = n;
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    enum pawl_status st = b ? own_notes_write(c, names, n, how, err) : err_no_memory(err, "keys");
    if (st != PAWL_OK)
        return st;
    b->n = 0;
    st = led_keys_ask(c, b, &q, err);
    if (st == PAWL_OK)
        st = led_batch_run(c, b, err);
    return st == PAWL_OK ? led_keys_take(c, &q, err) : st;
}

enum pawl_status led_key_get(struct ledger *c, struct bytes name, enum led_lock how,
                             struct led_key **out, struct pawl_err *err)
{
    enum pawl_status st = led_keys_load(c, &name, 1, how, err);
    if (st == PAWL_OK)
        *out = led_key_find(c, name);
    return st;
}

enum pawl_status led_key_look(struct ledger *c, struct bytes name, struct led_key **out,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    struct led_key *k = *slot(c, name);
    if (!k) {
        k = key_new(c, name);
        st = k ? rows_ask(c, SQL_KEY_LOOK, &name, 1, !c->db->one_writer, err)
               : err_no_memory(err, "a key");
        if (st == PAWL_OK)
            st = led_key_check(k, LED_LOADED, err);
    }
    *out = st == PAWL_OK && (k->known || k->got) ? k : NULL;
    return st;
}

/* How often a group is repeated for a call that its key does not count: it may have joined a moment
 * ago. */
#define COUNT_TRIES 3

static bool counted(const struct led_key *k, const struct led_call *it)
{
    enum led_place from = it->now.place;
    if (from == AT_DELAYED)
        return k->later > 0;
    if (from == AT_LINE)
        return it->joined || led_line_stored(k) > 0;
    if (from != AT_READY)
        return true;
    /* Else it was claimed between the read of its place and the lock of its key. */
    return k->waiting > 0 && k->turn == KEY_OFFERED && k->head == it->seq;
}

enum pawl_status led_key_counts(struct ledger *c, struct led_key *k, const struct led_call *it,
                                struct pawl_err *err)
{
    if (counted(k, it))
        return PAWL_OK;
    enum pawl_status st = c->db->one_writer ? PAWL_OK : notes_ask(c, &k->name, 1, err);
    if (st != PAWL_OK || counted(k, it))
        return st;
    /* A call that joined a moment ago is counted by the repeated group. If it is not, the key's row
     * is wrong. */
    if (c->redone < COUNT_TRIES && !c->db->one_writer)
        return led_again(c, "a call of a line", err);
    if (it->now.place == AT_READY && k->waiting > 0)
        return err_set(err, PAWL_BROKEN,
                       "key \"%.*s\": call %lld is ready and is not its first call",
                       BYTES_ARG(k->name), (long long)it->seq);
    return err_set(err, PAWL_BROKEN, "database: key \"%.*s\": more calls wait than it counts",
                   BYTES_ARG(k->name));
}

enum pawl_status led_key_notes_fold(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *notes = NULL;
    struct led_params p = { 0 };
    if (c->db->one_writer)
        return PAWL_OK;
    led_int(&p, FOLD_MAX);
    enum pawl_status st = led_query(c, SQL_KEY_NOTE_LIST, &p, &notes, err);
    if (st == PAWL_OK)
        st = led_rows_check(notes, SQL_KEY_NOTE_LIST, FOLD_MAX, err);
    if (st != PAWL_OK || notes->n == 0)
        return st;
    struct bytes *v = arena_alloc(&c->scratch, (size_t)notes->n * sizeof *v);
    if (!v)
        return err_no_memory(err, "key notes");
    for (int i = 0; i < notes->n; i++)
        v[i] = led_get(notes, i, 0);
    st = led_keys_load(c, v, (size_t)notes->n, LOCK_TRY, err);
    return st == PAWL_OK && c->tx->wakes ? led_keys_wake(c, err) : st;
}

/* ---- The end of a key ------------------------------------------------------------------------ */

enum pawl_status led_key_gone(struct ledger *c, struct bytes name, struct pawl_err *err)
{
    struct led_key *k;
    int64_t left = 0;
    struct led_params p = { 0 };
    enum pawl_status st = led_key_get(c, name, LOCK_WAIT, &k, err);
    if (st == PAWL_OK)
        st = led_flush(c, err);
    if (st != PAWL_OK || k->turn != KEY_IDLE || led_key_pending(k))
        return st;
    CHECK(k->got && !k->held && !k->due);
    led_text(&p, name);
    st = led_number(c, SQL_CALL_OF_KEY, &p, 0, &left, err);
    if (st == PAWL_OK && !left)
        st = led_number(c, SQL_OBJECT_ANY, &p, 0, &left, err);
    if (st != PAWL_OK || left)
        return st;
    /* The row stays locked until the commit. A later operation of this group finds the key as if it
     * were new. */
    k->next_no = 1;
    k->ended_us = k->head_no = k->head_pos = 0;
    k->drop = true;
    return PAWL_OK;
}

enum pawl_status led_keys_drop(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column col;
    led_column_init(&col, &c->scratch, LED_TEXTS);
    for (const struct led_key *k = c->tx->first_key; k; k = k->newer)
        if (k->drop && k->got) {
            CHECK(k->turn == KEY_IDLE && !k->held && !k->waiting && !k->later);
            led_add_bytes(&col, k->name);
        }
    if (col.n == 0)
        return PAWL_OK;
    led_column(&p, &col);
    return led_run(c, SQL_KEY_REMOVE, &p, NULL, err);
}
