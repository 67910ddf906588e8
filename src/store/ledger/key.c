/*
 * key.c - keys, their lines and whose turn it is.
 *
 * The one thing that must stay true: a key that is neither held nor blocked and has a line has its
 * first call on offer, in ready, or a hint says that somebody has to look. A key's row is changed
 * only by who holds its lock. An accept does not wait for the lock: it joins the line and leaves a
 * hint, which whoever gets the lock next adds to the row, and every claim looks for such.
 * Whether there is more in a line is always asked in a statement of its own, after the lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

#define FOLD_MAX 1000
/* Columns of line_take: where the call's begin. */
#define TAKEN_LINE 10

static struct led_key **slot(struct ledger *c, struct bytes name)
{
    struct led_key **at = &c->tx->keys[led_hash(name.data, name.len) % LED_BUCKETS];
    while (*at && !bytes_eq((*at)->name, name))
        at = &(*at)->same;
    return at;
}

/* One that has been asked for. */
static struct led_key *key_of(struct ledger *c, struct bytes name)
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

/* ---- Rows ------------------------------------------------------------------------------------ */

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

/* What key_look, key_try, key_wait or key_add answered. */
static void rows_take(struct ledger *c, enum sql_name name, const struct led_rows *r)
{
    bool got = name != SQL_KEY_LOOK;
    for (int i = 0; r && i < r->n; i++) {
        struct led_key *k = key_of(c, led_get(r, i, 0));
        if (name == SQL_KEY_ADD)
            k->known = true;
        else if (!k->got)
            row_read(r, i, k);
        k->got = k->got || got;
    }
}

static bool remember(struct ledger *c, struct led_key *k, int64_t hint)
{
    if (k->n_folded == 0 || (k->n_folded >= 8 && (k->n_folded & (k->n_folded - 1)) == 0)) {
        int64_t *v = arena_alloc(&c->scratch, MAX(k->n_folded * 2, 8) * sizeof *v);
        if (!v)
            return false;
        if (k->n_folded)
            memcpy(v, k->folded, k->n_folded * sizeof *v);
        k->folded = v;
    }
    k->folded[k->n_folded++] = hint;
    return true;
}

static bool remembered(const struct led_key *k, int64_t hint)
{
    for (size_t i = 0; i < k->n_folded; i++)
        if (k->folded[i] == hint)
            return true;
    return false;
}

/* What joined while others held these keys; just looked at: into the numbers, nothing more. */
static enum pawl_status hints_take(struct ledger *c, const struct led_rows *r, struct pawl_err *err)
{
    for (int i = 0; r && i < r->n; i++) {
        struct led_key *k = key_of(c, led_get(r, i, 1));
        if (k->got && remembered(k, led_get_int(r, i, 0)))
            continue;
        if (k->got) {
            k->waiting += led_get_int(r, i, 2);
            k->later += led_get_int(r, i, 3);
            k->dirty = true;
            if (!remember(c, k, led_get_int(r, i, 0)))
                return err_no_memory(err, "hints");
            led_key_turn(c, k);
        } else {
            k->seen_waiting += led_get_int(r, i, 2);
            k->seen_later += led_get_int(r, i, 3);
        }
    }
    return PAWL_OK;
}

/* Up to two statements about keys, and their hints after them. */
static enum pawl_status keys_ask(struct ledger *c, const enum sql_name *names, size_t n_names,
                                 const struct bytes *v, size_t n, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    struct led_rows *rows[2] = { 0 }, *hints = NULL;
    struct led_params p = { 0 };
    if (!b)
        return err_no_memory(err, "keys");
    b->n = 0;
    led_texts(c, &p, v, n);
    for (size_t i = 0; i < n_names; i++)
        led_batch_ask(b, names[i], &p, &rows[i]);
    if (!c->db->one_writer)
        led_batch_ask(b, SQL_HINT_OF_KEY, &p, &hints);
    enum pawl_status st = led_batch_run(c, b, err);
    for (size_t i = 0; st == PAWL_OK && i < n_names; i++)
        rows_take(c, names[i], rows[i]);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct led_key *k = key_of(c, v[i]);
        k->seen_waiting = k->seen_later = 0;
    }
    return st == PAWL_OK ? hints_take(c, hints, err) : st;
}

static int compare_names(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Those we do not have as we want them, sorted, each once. */
static enum pawl_status wanting(struct ledger *c, const struct bytes *names, size_t n,
                                enum led_lock how, struct bytes **out, size_t *out_n,
                                struct pawl_err *err)
{
    struct bytes *v = arena_alloc(&c->scratch, (n + 1) * sizeof *v);
    size_t m = 0, kept = 0;
    if (!v)
        return err_no_memory(err, "keys");
    for (size_t i = 0; i < n; i++) {
        const struct led_key *k = *slot(c, names[i]);
        if (!k || (!k->got && (how == LOCK_WAIT || !k->tried)))
            v[m++] = names[i];
    }
    qsort(v, m, sizeof *v, compare_names);
    for (size_t i = 0; i < m; i++)
        if (kept == 0 || !bytes_eq(v[kept - 1], v[i]))
            v[kept++] = v[i];
    for (size_t i = 0; i < kept; i++)
        if (!key_new(c, v[i]))
            return err_no_memory(err, "keys");
    *out = v;
    *out_n = kept;
    return PAWL_OK;
}

/* Rows for those that have none. */
static enum pawl_status rows_add(struct ledger *c, const struct bytes *v, size_t n,
                                 struct pawl_err *err)
{
    static const enum sql_name add[] = { SQL_KEY_ADD };
    struct bytes *missing = arena_alloc(&c->scratch, (n + 1) * sizeof *missing);
    size_t m = 0;
    if (!missing)
        return err_no_memory(err, "keys");
    for (size_t i = 0; i < n; i++)
        if (!key_of(c, v[i])->known)
            missing[m++] = v[i];
    return m ? keys_ask(c, add, 1, missing, m, err) : PAWL_OK;
}

static enum pawl_status keys_lock(struct ledger *c, const struct bytes *v, size_t n,
                                  enum led_lock how, struct pawl_err *err)
{
    static const enum sql_name try[] = { SQL_KEY_LOOK, SQL_KEY_TRY }, wait[] = { SQL_KEY_WAIT };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < n; i++) {
        struct led_key *k = key_of(c, v[i]);
        if (k->hint_waiting || k->hint_later) { /* ours, not written yet: they come back as rows */
            st = led_flush(c, err);
            break;
        }
    }
    if (st == PAWL_OK)
        st = how == LOCK_TRY ? keys_ask(c, try, 2, v, n, err) : keys_ask(c, wait, 1, v, n, err);
    return st == PAWL_OK ? rows_add(c, v, n, err) : st;
}

/* Where nobody else writes, looking is locking, and a row is added when it is first written. */
static enum pawl_status keys_own(struct ledger *c, const struct bytes *v, size_t n,
                                 struct pawl_err *err)
{
    static const enum sql_name look[] = { SQL_KEY_LOOK };
    enum pawl_status st = keys_ask(c, look, 1, v, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        struct led_key *k = key_of(c, v[i]);
        k->got = k->known = true;
    }
    return st;
}

enum pawl_status led_keys_load(struct ledger *c, const struct bytes *names, size_t n,
                               enum led_lock how, struct pawl_err *err)
{
    struct bytes *v = NULL;
    size_t m = 0;
    enum pawl_status st = wanting(c, names, n, how, &v, &m, err);
    if (st != PAWL_OK || m == 0)
        return st;
    st = c->db->one_writer ? keys_own(c, v, m, err) : keys_lock(c, v, m, how, err);
    for (size_t i = 0; st == PAWL_OK && i < m; i++) {
        struct led_key *k = key_of(c, v[i]);
        k->tried = true;
        st = how == LOCK_WAIT && !k->got ? led_again(c, "a key", err)
                                         : led_key_check(k, LED_LOADED, err);
    }
    return st;
}

enum pawl_status led_key_get(struct ledger *c, struct bytes name, enum led_lock how,
                             struct led_key **out, struct pawl_err *err)
{
    enum pawl_status st = led_keys_load(c, &name, 1, how, err);
    if (st == PAWL_OK)
        *out = key_of(c, name);
    return st;
}

enum pawl_status led_key_look(struct ledger *c, struct bytes name, struct led_key **out,
                              struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    struct led_key *k = *slot(c, name);
    if (!k) {
        static const enum sql_name look[] = { SQL_KEY_LOOK };
        k = key_new(c, name);
        st = k ? keys_ask(c, look, 1, &name, 1, err) : err_no_memory(err, "a key");
    }
    *out = st == PAWL_OK && k->known ? k : NULL;
    return st;
}

/* So often a call that a key does not count may have joined just now. */
#define COUNT_TRIES 3

static bool counted(const struct led_key *k, enum led_place from)
{
    if (from == AT_LATER)
        return k->later > 0;
    if (from == AT_LINE)
        return k->waiting > (k->turn == KEY_OFFERED);
    return from != AT_READY || k->waiting > 0;
}

enum pawl_status led_key_counts(struct ledger *c, struct led_key *k, enum led_place from,
                                struct pawl_err *err)
{
    if (counted(k, from))
        return PAWL_OK;
    enum pawl_status st = keys_ask(c, NULL, 0, &k->name, 1, err);
    if (st != PAWL_OK || counted(k, from))
        return st;
    /* A call that joined a moment ago is counted the next time: the key's row is wrong otherwise.
     */
    if (c->redone < COUNT_TRIES && !c->db->one_writer)
        return led_again(c, "a call of a line", err);
    return err_set(err, PAWL_BROKEN, "database: key \"%.*s\": more calls wait than it counts",
                   BYTES_ARG(k->name));
}

/* ---- Whose turn it is ------------------------------------------------------------------------ */

void led_key_turn(struct ledger *c, struct led_key *k)
{
    k->drop = false;
    if (k->due)
        return;
    k->due = true;
    k->next_due = c->tx->due;
    c->tx->due = k;
}

static int compare_rows(const void *a, const void *b)
{
    const struct led_place_row *x = a, *y = b;
    int order = bytes_cmp(x->key, y->key);
    if (order)
        return order;
    return (x->call->now.pos > y->call->now.pos) - (x->call->now.pos < y->call->now.pos);
}

/* Did this group do something to it that is not written yet? */
static bool changed(const struct led_call *it)
{
    return it->was.place != it->now.place || it->was.pos != it->now.pos || it->moved;
}

/* A row of a line as a call, of which nothing else need be known. We have the key, so the row is
 * how things are: where the call stood when it was read, before we had the key, may be long past.
 */
static struct led_call *row_call(struct ledger *c, const struct led_rows *r, int row,
                                 struct led_key *k)
{
    struct led_call *it = led_call_new(c, led_get_int(r, row, 2));
    if (!it || (it->was.place != AT_NONE && changed(it)))
        return it;
    struct tries tries = { (int)led_get_int(r, row, 6), (int)led_get_int(r, row, 7),
                           (int)led_get_int(r, row, 8) };
    it->partial = it->was.place == AT_NONE || it->partial || it->lean;
    it->spec.key = k->name;
    it->lease = NULL;
    it->now = (struct led_stand){ .place = AT_LINE,
                                  .state = PAWL_PENDING,
                                  .pos = led_get_int(r, row, 1),
                                  .lane = (int)led_get_int(r, row, 3),
                                  .priority = (int)led_get_int(r, row, 4),
                                  .run_at_us = led_get_int(r, row, 5),
                                  .expires_us = tries.redrives > 0 ? 0 : it->now.expires_us,
                                  .tries = tries,
                                  .key_no = led_get_int(r, row, 9) };
    it->was = it->now;
    return it;
}

enum pawl_status led_lines_load(struct ledger *c, struct led_key *const *v, size_t n, int max,
                                struct led_place_row **out, size_t *out_n, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    *out_n = 0;
    led_column_init(&col, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++)
        led_add_bytes(&col, v[i]->name);
    led_column(&p, &col);
    led_int(&p, max);
    enum pawl_status st = led_query(c, SQL_LINE_RUN, &p, &r, err);
    if (st != PAWL_OK)
        return st;
    *out = arena_alloc(&c->scratch, (r->n + 1) * sizeof **out);
    for (int i = 0; *out && i < r->n; i++) {
        struct led_key *k = key_of(c, led_get(r, i, 0));
        struct led_call *it = row_call(c, r, i, k);
        if (!it)
            return err_no_memory(err, "a line");
        st = led_call_check(it, LED_LOADED, err);
        if (st != PAWL_OK)
            return st;
        if (it->now.place == AT_LINE)
            (*out)[(*out_n)++] = (struct led_place_row){ k->name, it };
    }
    if (!*out)
        return err_no_memory(err, "a line");
    qsort(*out, *out_n, sizeof **out, compare_rows);
    return PAWL_OK;
}

static bool is_free(const struct led_key *k)
{
    return k->got && !k->held && k->turn != KEY_BLOCKED && k->turn != KEY_OFFERED;
}

void led_key_offer(struct led_key *k, int64_t seq, const struct led_stand *as)
{
    k->turn = KEY_OFFERED;
    k->head = seq;
    k->head_pos = as->pos;
    k->head_no = as->key_no;
}

/* The first of the line stands among the calls that can be claimed. */
static void offer(struct led_key *k, struct led_call *it)
{
    it->now.place = AT_READY;
    led_key_offer(k, it->seq, &it->now);
    k->dirty = k->moving = true;
}

/* Keys that are due and free, into v; those whose line is not stored as it is stay due, unless
 * everything was just written. */
static size_t due_take(struct ledger *c, bool written, struct led_key **v, bool *out_any)
{
    struct led_key *k = c->tx->due, *next;
    size_t n = 0;
    c->tx->due = NULL;
    for (; k; k = next) {
        next = k->next_due;
        k->due = false;
        if (!written && k->moving) {
            led_key_turn(c, k);
            continue;
        }
        if (!is_free(k))
            continue;
        if (k->turn != KEY_IDLE) {
            k->turn = KEY_IDLE;
            k->head = 0;
            k->dirty = *out_any = true;
        }
        if (k->waiting > 0)
            v[n++] = k;
    }
    return n;
}

enum pawl_status led_keys_settle(struct ledger *c, bool written, bool *out_any,
                                 struct pawl_err *err)
{
    struct led_key **v = NULL;
    struct led_place_row *rows = NULL;
    size_t n = 0, m = 0, n_rows = 0;
    *out_any = false;
    if (c->tx->hold)
        return PAWL_OK;
    for (struct led_key *k = c->tx->due; k; k = k->next_due)
        m++;
    if (m && !(v = arena_alloc(&c->scratch, m * sizeof(struct led_key *))))
        return err_no_memory(err, "keys");
    n = due_take(c, written, v, out_any);
    enum pawl_status st = n ? led_lines_load(c, v, n, 1, &rows, &n_rows, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n_rows; i++)
        offer(key_of(c, rows[i].key), rows[i].call);
    c->tx->news = c->tx->news || n_rows > 0;
    *out_any = *out_any || n_rows > 0;
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        if (v[i]->turn != KEY_OFFERED)
            st = err_set(err, PAWL_BROKEN, "key \"%.*s\": calls wait and none is in the line",
                         BYTES_ARG(v[i]->name));
    return st;
}

/* Inputs up to this long come along with their calls; all of them together fit into len. */
static int64_t len_each(const int64_t *max, size_t n, int64_t len)
{
    int64_t calls = 1;
    for (size_t i = 0; i < n; i++)
        calls += max[i];
    return MAX(len, 0) / calls;
}

/* The rows are by key, in the order asked, then by place. */
enum pawl_status led_lines_take(struct ledger *c, struct led_key *const *v, const int64_t *max,
                                size_t n, int64_t len, struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column keys;
    led_column_init(&keys, &c->scratch, LED_TEXTS);
    for (size_t i = 0; i < n; i++) {
        led_add_bytes(&keys, v[i]->name);
        v[i]->n_ahead = 0; /* of a claim before this one */
    }
    led_column(&p, &keys);
    led_ints(c, &p, max, n);
    led_int(&p, c->db->one_writer ? len_each(max, n, len) : len);
    enum pawl_status st = led_query(c, SQL_LINE_TAKE, &p, &r, err);
    struct led_call **calls =
        st == PAWL_OK ? arena_alloc(&c->scratch, ((size_t)r->n + 1) * sizeof *calls) : NULL;
    if (st == PAWL_OK && !calls)
        st = err_no_memory(err, "a line");
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct led_key *k = key_of(c, led_get(r, i, 0));
        struct led_call *it = row_call(c, r, i, k);
        if (!it)
            return err_no_memory(err, "a line");
        if (it->now.place != AT_LINE)
            continue;
        if (it->partial)
            st = led_call_taken(c, r, i, TAKEN_LINE, it, err);
        if (!k->n_ahead)
            k->ahead = calls;
        k->n_ahead++;
        *calls++ = it;
    }
    return st;
}

enum pawl_status led_hints_fold(struct ledger *c, struct pawl_err *err)
{
    struct led_rows *hints = NULL;
    struct led_params p = { 0 };
    if (c->db->one_writer)
        return PAWL_OK;
    led_int(&p, FOLD_MAX);
    enum pawl_status st = led_query(c, SQL_HINT_LIST, &p, &hints, err);
    if (st != PAWL_OK || hints->n == 0)
        return st;
    struct bytes *v = arena_alloc(&c->scratch, (size_t)hints->n * sizeof *v);
    if (!v)
        return err_no_memory(err, "hints");
    for (int i = 0; i < hints->n; i++)
        v[i] = led_get(hints, i, 0);
    return led_keys_load(c, v, (size_t)hints->n, LOCK_TRY, err);
}

/* ---- Time and retention ---------------------------------------------------------------------- */

enum pawl_status led_keys_join_due(struct ledger *c, int max, int64_t *out_joined,
                                   struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out_joined = 0;
    enum pawl_status st = led_flush(c, err);
    led_int(&p, c->now_us);
    led_int(&p, max);
    if (st == PAWL_OK)
        st = led_query(c, SQL_LINE_DUE, &p, &r, err);
    if (st != PAWL_OK || r->n == 0)
        return st;
    size_t n = r->n;
    int64_t *seqs = arena_alloc(&c->scratch, n * sizeof *seqs);
    struct bytes *keys = arena_alloc(&c->scratch, n * sizeof *keys);
    if (!seqs || !keys)
        return err_no_memory(err, "a line");
    for (size_t i = 0; i < n; i++) {
        seqs[i] = led_get_int(r, (int)i, 0);
        keys[i] = arena_copy(&c->scratch, led_get(r, (int)i, 1));
    }
    st = led_keys_load(c, keys, n, LOCK_TRY, err);
    if (st == PAWL_OK)
        st = led_calls_load(c, seqs, n, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++) {
        struct led_call *it = led_call_find(c, seqs[i]);
        struct led_key *k = key_of(c, keys[i]);
        if (!k->got || !it || it->now.place != AT_LATER)
            continue; /* the next claim's */
        struct led_stand to = it->now;
        to.place = AT_LINE;
        st = led_line_end(c, &to.pos, err);
        if (st == PAWL_OK)
            st = led_put(c, it, to, 0, err);
        ++*out_joined;
    }
    return st;
}

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
    led_text(&p, name);
    st = led_number(c, SQL_CALL_OF_KEY, &p, 0, &left, err);
    if (st == PAWL_OK && !left)
        st = led_number(c, SQL_OBJECT_ANY, &p, 0, &left, err);
    if (st != PAWL_OK || left)
        return st;
    /* Ours until the commit: whoever comes later in this group finds it as good as new. */
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
        if (k->drop && k->got)
            led_add_bytes(&col, k->name);
    if (col.n == 0)
        return PAWL_OK;
    led_column(&p, &col);
    return led_run(c, SQL_KEY_REMOVE, &p, NULL, err);
}
