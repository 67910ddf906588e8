/*
 * table.c - the two tables: ids and events in one transaction, and the result of a commit whose
 * answer was lost.
 *
 * What must stay true: every process that adds events first locks the row of the counter, for the
 * whole transaction, so that ids are committed in order and without gaps; then it inserts the
 * events.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/mem.h"
#include "events/table.h"
#include "store/ledger/ledger.h"

/* How long a group waits for the counter in all, and for the result of a lost commit. Requests that
 * wait for it have somewhat longer (http.c). */
#define ADD_US (5 * SEC_US)
#define SETTLE_US (5 * SEC_US)
/* One wait for a lock; one scan for a client and for a worker. */
#define LOCK_MS 2000
#define LOOK_MS 5000
#define SCAN_MS 60000
#define GATE_S 10
#define MAKE_TRIES 10
#define NAP_US (2 * MS_US)

struct events_db {
    struct store *s; /* owned */
    struct ledger *l;
    bool one_writer;
};

enum pawl_status events_db_open(const char *url, int64_t lifetime_us, struct events_db **out,
                                struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf conf = { .url = url, .role = STORE_DRIVER_ONLY, .lifetime_us = lifetime_us };
    const struct store_ops *ops = NULL;
    enum pawl_status st = store_engine(url, &ops, err);
    if (st == PAWL_OK)
        st = store_open(&conf, &s, err);
    if (st != PAWL_OK)
        return st;
    if (!(s->ops->traits & STORE_DRIVEN))
        return err_set(err, PAWL_INVALID,
                       "database: events need mysql://, mariadb://, postgres:// or sqlite:, not %s",
                       s->ops->name);
    struct events_db *db = mem_zalloc(sizeof *db);
    if (!db)
        return err_no_memory(err, "a connection");
    db->one_writer = s->ops->traits & STORE_ONE_WRITER;
    db->l = led_of(s);
    db->s = TAKE(s);
    *out = db;
    return PAWL_OK;
}

void events_db_close(struct events_db *db)
{
    if (!db)
        return;
    store_close(db->s);
    mem_free(db);
}

bool events_db_met(const struct events_db *db)
{
    return db->l->redo || db->l->blocked;
}

static void nap(void)
{
    int64_t us = NAP_US + (int64_t)(world_unit(&world_real) * 8 * MS_US);
    struct timespec t = { .tv_nsec = us * 1000 };
    nanosleep(&t, NULL);
}

/* ---- Transactions ---------------------------------------------------------------------------- */

/* How long a transaction waits for a lock, and how long its statements may take. */
struct patience {
    int64_t lock_ms, look_ms;
};
static const struct patience usual = { LOCK_MS, SCAN_MS }, quick = { LOCK_MS, LOOK_MS };

/* Begin a transaction with these statements, in one round trip; the memory was emptied before. */
static enum pawl_status begin_with(struct ledger *l, enum led_begin how, struct patience patience,
                                   struct led_batch *b, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *set;
    led_int(&p, patience.lock_ms);
    led_int(&p, patience.look_ms);
    memmove(&b->v[1], &b->v[0], b->n * sizeof b->v[0]);
    b->v[0] = (struct led_batched){ .name = SQL_EVENTS_PATIENCE, .p = p, .rows = -1, .out = &set };
    b->n++;
    return led_begin(l, how, b, err);
}

/* ---- Creating the tables --------------------------------------------------------------------- */

static enum pawl_status shape(struct ledger *l, int64_t *out_columns, struct pawl_err *err)
{
    struct led_rows *r;
    enum pawl_status st = led_query(l, SQL_EVENTS_SHAPE, NULL, &r, err);
    if (st != PAWL_OK)
        return st;
    CHECK(r->n == 1);
    *out_columns = led_get_int(r, 0, 0);
    if (led_get_int(r, 0, 1) != *out_columns)
        return err_set(
            err, PAWL_STATE,
            "database: table status or events has other columns; expected "
            "status(id int) and events(id int, value varchar(255)); use another database");
    return PAWL_OK;
}

static enum pawl_status make_tables(struct ledger *l, struct pawl_err *err)
{
    int64_t columns = 0, counters = 0;
    enum pawl_status st = shape(l, &columns, err);
    if (st == PAWL_OK && columns < 3) {
        st = led_run(l, SQL_EVENTS_MAKE_STATUS, NULL, NULL, err);
        if (st == PAWL_OK)
            st = led_run(l, SQL_EVENTS_MAKE_EVENTS, NULL, NULL, err);
        if (st == PAWL_OK)
            st = shape(l, &columns, err);
        if (st == PAWL_OK && columns != 3)
            st = err_set(err, PAWL_STATE, "database: table status or events lacks a column");
    }
    CHECK(st != PAWL_OK || columns == 3); /* all that shape() lets pass, now that they exist */
    PAUSE_POINT("events.made");
    if (st == PAWL_OK)
        st = led_number(l, SQL_EVENTS_COUNTERS, NULL, 0, &counters, err);
    if (st == PAWL_OK && counters == 0)
        st = led_run(l, SQL_EVENTS_FIRST, NULL, NULL, err);
    if (st == PAWL_OK && counters > 1)
        st = err_set(err, PAWL_BROKEN, "table status has %" PRId64 " rows; expected one", counters);
    return st;
}

static enum pawl_status make_once(struct events_db *db, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch first = { 0 };
    struct led_params p = { 0 };
    int64_t got = 0;
    enum pawl_status st = led_fresh(db->l, LED_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    st = begin_with(tx, LED_WRITE, (struct patience){ GATE_S * 1000, SCAN_MS }, &first, err);
    led_int(&p, GATE_S);
    if (st == PAWL_OK)
        st = led_number(tx, SQL_EVENTS_GATE, &p, 0, &got, err);
    if (st == PAWL_OK && !got)
        st = err_set(err, PAWL_BUSY, "database: another process is creating the tables of events");
    if (st != PAWL_OK)
        return st;
    st = make_tables(tx, err);
    if (st == PAWL_OK)
        st = led_commit(TAKE(tx), NULL, err);
    struct led_rows *r;
    enum pawl_status gone = led_query(db->l, SQL_EVENTS_UNGATE, NULL, &r, NULL);
    (void)gone; /* a connection that fails here has lost the lock anyway */
    return st;
}

enum pawl_status events_db_make(struct events_db *db, struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < MAKE_TRIES && (st == PAWL_BUSY || st == PAWL_UNKNOWN); i++) {
        if (i)
            nap();
        st = make_once(db, err);
    }
    return st;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* A transaction that adds events, and what distinguishes it from others. */
struct passage {
    int64_t first;
    int64_t number; /* of the transaction, where the server remembers it; otherwise 0 */
    size_t n;
};

static enum pawl_status counter_read(const struct led_rows *r, int64_t *out, struct pawl_err *err)
{
    if (r->n != 1 || led_null(r, 0, 0))
        return err_set(err, PAWL_BROKEN, "table status has %d rows; expected one with a number",
                       r->n);
    *out = led_get_int(r, 0, 0);
    if (*out < 0 || *out > EVENT_ID_MAX)
        return err_set(err, PAWL_BROKEN,
                       "table status has %" PRId64 "; expected 0 to the largest id", *out);
    return PAWL_OK;
}

/* Read the counter and lock it until the transaction ends. */
static enum pawl_status lock_counter(struct ledger *l, struct passage *out, int64_t *out_id,
                                     struct pawl_err *err)
{
    struct led_batch first = { 0 };
    struct led_rows *r = NULL;
    led_batch_ask(&first, SQL_EVENTS_COUNTER, &(struct led_params){ 0 }, &r);
    enum pawl_status st = begin_with(l, LED_WRITE, usual, &first, err);
    if (st == PAWL_OK)
        st = counter_read(r, out_id, err);
    if (st == PAWL_OK)
        out->number = led_get_int(r, 0, 1);
    CHECK(st != PAWL_OK || out->number >= 0);
    return st;
}

static void batch_add(struct ledger *l, const struct event_add *add, const struct passage *p,
                      struct led_batch *out)
{
    struct led_params count = { 0 }, rows = { 0 };
    struct led_column ids, values;
    CHECK(p->first > 0 && p->n > 0 && (int64_t)p->n <= EVENT_ID_MAX - p->first + 1);
    led_int(&count, p->first + (int64_t)p->n - 1);
    led_int(&count, p->first - 1);
    led_batch_add(out, SQL_EVENTS_COUNT_TO, &count, 1);
    led_column_init(&ids, &l->scratch, LED_INTS);
    led_column_init(&values, &l->scratch, LED_TEXTS);
    for (size_t i = 0; i < p->n; i++) {
        CHECK(add->v[i].value.len <= EVENT_VALUE_MAX); /* the column holds no more */
        led_add_int(&ids, p->first + (int64_t)i);
        led_add_bytes(&values, add->v[i].value);
    }
    led_column(&rows, &ids);
    led_column(&rows, &values);
    led_batch_add(out, SQL_EVENTS_ADD, &rows, (int64_t)p->n);
}

static enum pawl_status add_once(struct events_db *db, struct event_add *add, struct passage *out,
                                 struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch last = { 0 };
    int64_t id = 0;
    *out = (struct passage){ 0 };
    enum pawl_status st = led_fresh(db->l, LED_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    st = lock_counter(tx, out, &id, err);
    if (st != PAWL_OK)
        return st;
    if (id >= EVENT_ID_MAX)
        return err_set(err, PAWL_FULL, "the table is full: the last id, %" PRId64 ", is used",
                       EVENT_ID_MAX);
    out->first = id + 1;
    out->n = MIN(add->n, (size_t)(EVENT_ID_MAX - id));
    if (add->told)
        add->told(add->ctx, out->first, out->n);
    batch_add(tx, add, out, &last);
    if (tx->scratch.failed)
        return err_no_memory(err, "events");
    CRASH_POINT("events.counted");
    PAUSE_POINT("events.counted");
    st = led_commit(TAKE(tx), &last, err);
    CRASH_POINT("events.added");
    return st;
}

/* ---- A commit without an answer -------------------------------------------------------------- */

enum fate { FATE_STORED, FATE_UNDONE, FATE_OPEN };

static enum pawl_status ask_transaction(struct ledger *l, int64_t number, enum fate *out,
                                        struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r;
    led_int(&p, number);
    enum pawl_status st = led_query(l, SQL_EVENTS_FATE, &p, &r, err);
    CHECK(st != PAWL_OK || r->n == 1);
    if (st == PAWL_OK)
        *out = led_null(r, 0, 0)           ? FATE_OPEN
               : led_get_int(r, 0, 0) != 0 ? FATE_STORED
                                           : FATE_UNDONE;
    return st;
}

/* Look for our first word: a process that took these ids instead did not make the same word. */
static enum pawl_status ask_event(struct ledger *l, const struct event_add *add,
                                  const struct passage *lost, enum fate *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_rows *r;
    size_t i = 0;
    CHECK(lost->first > 0 && lost->n <= add->n); /* the ids that its transaction took */
    *out = FATE_OPEN;
    while (i < lost->n && !add->v[i].value.data)
        i++;
    if (i == lost->n)
        return PAWL_OK; /* pending events have no word to compare */
    led_ints(l, &p, (int64_t[]){ lost->first + (int64_t)i }, 1);
    led_int(&p, LOOK_MS);
    enum pawl_status st = led_query(l, SQL_EVENTS_FIND, &p, &r, err);
    if (st == PAWL_OK)
        *out = r->n == 1 && bytes_eq(led_get(r, 0, 1), add->v[i].value) ? FATE_STORED : FATE_UNDONE;
    return st;
}

/* Under the lock of the counter, which the lost transaction held: so that transaction has ended. */
static enum pawl_status fate_once(struct events_db *db, const struct event_add *add,
                                  const struct passage *lost, enum fate *out, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct passage now;
    int64_t id = 0;
    enum pawl_status st = led_fresh(db->l, LED_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    st = lock_counter(tx, &now, &id, err);
    if (st != PAWL_OK)
        return st;
    *out = FATE_OPEN;
    if (id < lost->first + (int64_t)lost->n - 1)
        *out = FATE_UNDONE;
    else if (lost->number)
        st = ask_transaction(tx, lost->number, out, err);
    if (st == PAWL_OK && *out == FATE_OPEN)
        st = ask_event(tx, add, lost, out, err);
    return st;
}

/* OK: it was stored. BUSY: it was not. UNKNOWN: it cannot be found out, or not in time. */
static enum pawl_status settle(struct events_db *db, const struct event_add *add,
                               const struct passage *lost, struct pawl_err *err)
{
    int64_t until = world_mono(&world_real) + SETTLE_US;
    enum pawl_status st = PAWL_BUSY;
    enum fate fate = FATE_OPEN;
    PAUSE_POINT("events.lost");
    while (st != PAWL_OK && world_mono(&world_real) < until) {
        st = fate_once(db, add, lost, &fate, NULL);
        if (st != PAWL_OK)
            nap();
    }
    if (st == PAWL_OK && fate == FATE_STORED)
        return PAWL_OK;
    if (st == PAWL_OK && fate == FATE_UNDONE)
        return err_set(err, PAWL_BUSY, "database: the commit was undone");
    return err_set(err, PAWL_UNKNOWN,
                   "database: the answer to COMMIT was lost; the event may be stored or not");
}

static void name(const struct event_add *add, const struct passage *p)
{
    for (size_t i = 0; i < p->n; i++)
        add->v[i].id = p->first + (int64_t)i;
}

enum pawl_status events_db_add(struct events_db *db, struct event_add *add, struct pawl_err *err)
{
    int64_t until = world_mono(&world_real) + ADD_US;
    assert(add->n > 0);
    for (;;) {
        struct passage p;
        enum pawl_status st = add_once(db, add, &p, err);
        bool again = st == PAWL_BUSY && events_db_met(db);
        if (st == PAWL_UNKNOWN) {
            st = settle(db, add, &p, err);
            again = st == PAWL_BUSY;
        }
        if (st == PAWL_OK || st == PAWL_UNKNOWN) {
            name(add, &p);
            add->n = p.n;
            return st;
        }
        if (!again || world_mono(&world_real) >= until)
            return st;
        nap();
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

enum pawl_status events_db_ready(struct events_db *db, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch first = { 0 };
    struct led_rows *r = NULL;
    enum pawl_status st = led_fresh(db->l, LED_READ, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    led_batch_ask(&first, SQL_EVENTS_COUNTERS, &(struct led_params){ 0 }, &r);
    st = begin_with(tx, LED_READ, quick, &first, err);
    CHECK(st != PAWL_OK || r->n == 1);
    if (st == PAWL_OK && led_get_int(r, 0, 0) != 1)
        st = err_set(err, PAWL_BROKEN, "table status has %" PRId64 " rows; expected one",
                     led_get_int(r, 0, 0));
    return st;
}

enum pawl_status events_db_count(struct events_db *db, int64_t *out, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch first = { 0 };
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    enum pawl_status st = led_fresh(db->l, LED_READ, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    led_int(&p, LOOK_MS);
    led_batch_ask(&first, SQL_EVENTS_COUNT, &p, &r);
    st = begin_with(tx, LED_READ, quick, &first, err);
    if (st == PAWL_OK)
        *out = led_get_int(r, 0, 0);
    CHECK(st != PAWL_OK || (r->n == 1 && *out >= 0));
    return st;
}

/* Other programs may have inserted several rows with one id: take the first. */
static void found(struct arena *a, const struct led_rows *r, struct event *e)
{
    int64_t id = e->id;
    CHECK(id > 0); /* 0 is the answer for no such event */
    e->id = 0;
    for (int i = 0; i < r->n && !e->id; i++) {
        if (led_get_int(r, i, 0) != id)
            continue;
        e->id = id;
        e->value = led_null(r, i, 1) ? BYTES_NONE : arena_copy(a, led_get(r, i, 1));
    }
}

enum pawl_status events_db_find(struct events_db *db, struct arena *a, struct event *v, size_t n,
                                struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch first = { 0 };
    struct led_params p = { 0 };
    struct led_column ids;
    struct led_rows *r = NULL;
    enum pawl_status st = led_fresh(db->l, LED_READ, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    led_column_init(&ids, &tx->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        led_add_int(&ids, v[i].id);
    led_column(&p, &ids);
    led_int(&p, LOOK_MS);
    led_batch_ask(&first, SQL_EVENTS_FIND, &p, &r);
    st = begin_with(tx, LED_READ, quick, &first, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        found(a, r, &v[i]);
    return st == PAWL_OK && a->failed ? err_no_memory(err, "events") : st;
}

/* ---- Giving values --------------------------------------------------------------------------- */

/* Separate from the begin, which has a short time limit: this may scan the whole table. */
static enum pawl_status take(struct ledger *l, const struct event_work *w, struct led_rows **out,
                             struct pawl_err *err)
{
    struct led_batch none = { 0 };
    struct led_params p = { 0 };
    enum pawl_status st = begin_with(l, LED_WRITE, usual, &none, err);
    led_int(&p, (int64_t)w->max);
    led_ints(l, &p, w->skip, w->n_skip);
    if (st == PAWL_OK)
        st = led_query(l, SQL_EVENTS_TAKE, &p, out, err);
    CHECK(st != PAWL_OK || (size_t)(*out)->n <= w->max);
    return st;
}

/* Is anything pending? Locks nothing: for a worker whose last poll was empty, and for an engine
 * with one writer. */
static enum pawl_status look(struct events_db *db, const struct event_work *w, bool *out_any,
                             struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    struct led_batch first = { 0 };
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    enum pawl_status st = led_fresh(db->l, LED_READ, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    led_ints(tx, &p, w->skip, w->n_skip);
    led_batch_ask(&first, SQL_EVENTS_ANY, &p, &r);
    st = begin_with(tx, LED_READ, usual, &first, err);
    CHECK(st != PAWL_OK || r->n <= 1);
    *out_any = st == PAWL_OK && r->n > 0;
    if (!*out_any)
        PAUSE_POINT("events.empty");
    return st;
}

/* Make the values, and return how many could be made. */
static size_t give_values(struct ledger *l, struct event_work *w, const struct led_rows *r,
                          struct led_batch *out)
{
    struct led_params p = { 0 };
    struct led_column ids, places, values;
    led_column_init(&ids, &l->scratch, LED_INTS);
    led_column_init(&places, &l->scratch, LED_TEXTS);
    led_column_init(&values, &l->scratch, LED_TEXTS);
    for (int i = 0; i < r->n; i++) {
        char value[EVENT_VALUE_MAX + 1];
        int64_t id = led_get_int(r, i, 0);
        size_t len = w->make(w->ctx, id, value);
        CHECK(len <= EVENT_VALUE_MAX); /* the column holds no more */
        if (!len) {
            w->failed(w->failed_ctx, id);
            continue;
        }
        led_add_int(&ids, id);
        led_add_bytes(&places, led_get(r, i, 1));
        led_add_bytes(&values, arena_copy(&l->scratch, (struct bytes){ value, len }));
    }
    led_column(&p, &ids);
    led_column(&p, &places);
    led_column(&p, &values);
    led_int(&p, (int64_t)ids.n);
    led_batch_add(out, SQL_EVENTS_PUT, &p, (int64_t)ids.n);
    return ids.n;
}

enum pawl_status events_db_work(struct events_db *db, struct event_work *w, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL; /* an empty poll is rolled back */
    struct led_batch last = { 0 };
    struct led_rows *r = NULL;
    bool any = true;
    w->taken = w->done = 0;
    assert(w->n_skip > 0);
    enum pawl_status st = db->one_writer || w->idle ? look(db, w, &any, err) : PAWL_OK;
    if (st != PAWL_OK || !any)
        return st;
    st = led_fresh(db->l, LED_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = db->l;
    st = take(tx, w, &r, err);
    if (st != PAWL_OK || r->n == 0) {
        PAUSE_POINT("events.empty");
        return st;
    }
    w->taken = (size_t)r->n;
    w->first = led_get_int(r, 0, 0);
    CRASH_POINT("events.held");
    PAUSE_POINT("events.held");
    size_t n = give_values(tx, w, r, &last);
    if (tx->scratch.failed)
        return err_no_memory(err, "values");
    if (n == 0)
        return PAWL_OK;
    CRASH_POINT("events.before_put");
    st = led_commit(TAKE(tx), &last, err);
    if (st == PAWL_OK)
        w->done = n;
    return st;
}
