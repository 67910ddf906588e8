/*
 * ledger.h - the ledger on a database: load, decide, flush, over a driver.
 *
 * For store/ledger, its drivers (store/pg, store/mysql, store/sqlite), whose handle begins with a
 * `struct ledger`, and the event service, which uses the drivers without the ledger. A handle
 * belongs to one thread at a time. A transaction loads rows into `tx`, decides on them in memory,
 * and writes the difference between what each row was and what it is (led_flush). Everything that a
 * transaction has read lives in `scratch` and is not valid in the next transaction. What a handle
 * remembers across transactions (lanes, cursors, lease_cache) may be dropped at any time.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_LEDGER_H
#define STORE_LEDGER_LEDGER_H

#include "sql_names.h"
#include "store/ledger/stmt.h"
#include "store/store.h"

#define SCHEMA_LEN_MAX 32
#define LED_BUCKETS 1024
#define LED_STEPS_MAX 1000
/* The step of the schema whose second half allows watched calls. */
#define WATCH_STEP 9
/* The step of the schema whose second half allows flows. */
#define FLOW_STEP 11

/* What makes a lane. Needs are settled (needs.h); the gate says which rules for keys hold for its
 * calls, in the words of the feature that has gates (feature.h); empty: none. */
struct led_lane_names {
    struct bytes queue, type;
    const struct bytes *needs;
    size_t n_needs;
    struct bytes gate;
};
struct led_lane {
    int number;
    struct led_lane_names names; /* owned: one block, at `block` */
    void *block;
    struct bytes version; /* the same block: the version that its needs have; absent: none */
    bool flow;            /* its needs have NEED_STEPS: its calls are flows (flow.c) */
    int64_t retired_us;   /* 0: in use */
    int64_t since_us; /* world_mono, for gc: since when this handle knows that it has no call, or
                         that it is retired; 0: it is neither */
    bool back;        /* this transaction uses it again, and that is not written yet */
    unsigned shape;   /* `served` is the answer for this shape (led_lanes.shape) */
    bool served;
};
struct led_lanes {
    struct led_lane *v; /* owned; by number, which may have gaps */
    size_t n, cap;
    size_t n_stored;  /* the first n_stored are committed */
    size_t n_written; /* the first n_written are in the table, as the running transaction sees it */
    int *slots;       /* owned; index in v + 1, by hash; 0: free */
    size_t n_slots;
    size_t last; /* index of the lane that a call chose last: the next one often needs the same */
    void **dead; /* owned; blocks of removed lanes, which answers may borrow until the next group */
    size_t n_dead, cap_dead;
    bool read;     /* the table was read up to its end in this transaction */
    bool locked;   /* no other transaction makes or removes lanes until this one ends */
    bool whole;    /* locked, and all of the table was read since */
    bool stale;    /* all of the table has to be read before a new call uses a lane, or a lane is
                      taken for one that does not exist */
    bool any_flow; /* a lane of flows was known once */
    size_t n_back; /* lanes that are `back` */
    bool changed;  /* this transaction retired, brought back or removed a lane, so what it has read
                      of the table is not so if it is undone */
    int64_t whole_us, whole_now_us; /* when all of the table was last read: world_mono, and the
                                       database's clock */
    int64_t used_us; /* whole_us when this transaction first chose a lane for a call; 0: it has not
                      */
    int64_t gc_us;   /* world_mono: the next look for empty lanes */
    int gc_after;    /* that look begins behind this lane */
    struct bytes *has; /* owned: capabilities of the last claim, which are shape `shape` */
    size_t n_has;
    unsigned shape;
};

/* A handle that makes a call in a lane has read that the lane is in use within this time. */
#define LANES_AGE_US (10 * 60 * SEC_US)
/* A transaction that writes its calls later than this after that is undone and repeated. */
#define LANES_STALL_US (30 * 60 * SEC_US)
/* A lane without calls for this long is retired; so a queue that is used now and then keeps it. */
#define LANE_EMPTY_US (10 * 60 * SEC_US)
/* A retired lane is removed after this time. What is above, and the time that a server lets a
 * transaction be idle, end long before it. */
#define LANE_RETIRED_US (60 * 60 * SEC_US)
/* How many lanes one step of gc looks at, and how often gc begins with the first again. */
#define LANES_GC_MAX 1000
#define LANES_GC_US (60 * SEC_US)
/* The step of the schema whose second half allows lanes with needs, and removing lanes. */
#define LANES_STEP 8

/* The position from which claims of a (track, rank) continue: every row before it was taken by this
 * handle, or was locked. */
struct led_cursor {
    int64_t track, rank, run_at_us, seq;
    int64_t next_us; /* run_at of the first row that the running look found; INT64_MAX: it found
                        none */
};
struct led_cursors {
    struct led_cursor *v; /* owned; by track, then rank */
    size_t n, cap;
    int64_t full_us, near_us; /* world_mono: the last look at all rows, and the last look at rows
                                 slightly before the cursors */
    int64_t full_cost_us, near_cost_us; /* how long those looks took */
    bool looking, looking_full;         /* one of those looks is running */
    bool dry;                           /* the last look of a claim found no due row */
};

/* What the handle remembers of leases that it gave out (lease_cache.c). */
struct led_cached_call {
    int64_t seq;
    struct call_spec spec; /* id, key and options */
    int lane, priority;    /* its own */
    int64_t expires_us;
    bool ended;
};
struct led_cached_lease {
    struct led_cached_lease *same, *older, *newer;
    struct token token;
    int64_t rev, claimed_us;
    size_t size; /* bytes of this entry */
    size_t n;
    struct led_cached_call v[]; /* in the order of the lease's list; the bytes of their ids and keys
                                   follow it */
};
#define LED_CACHE_SLOTS 256
struct led_lease_cache {
    struct led_cached_lease *slots[LED_CACHE_SLOTS], *oldest, *newest; /* owned */
    struct led_cached_lease *spare; /* owned; memory of an entry that was dropped, for the next */
    size_t n;                       /* calls */
};
#ifdef PAWL_TEST
/* For tests: how many calls a handle remembers, in all of its leases together. 0: CACHE_MAX. */
extern size_t led_cache_max;
#endif

struct led_cache;
struct led_driver;

struct ledger {
    struct store base;
    const struct led_driver *db;
    const struct world *world; /* borrowed */
    bool own_clock;            /* the world is a test's: use its clock, not the server's */
    char schema[SCHEMA_LEN_MAX + 1];
    const char *path; /* of the database's file, borrowed from the engine; NULL: a server has it */
    int64_t retention_us, remember_us, key_pending_max;
    int64_t call_timeout_us; /* store_conf has these two, for features */
    size_t input_len_max;
    const struct feature *const *features; /* borrowed: store_conf.features */
    size_t n_features;
    unsigned watch;              /* the bits that any of them wants to hear of */
    const struct feature *flows; /* the one that has flows; NULL: none */
    const struct feature *gates; /* the one that has gates; NULL: none */
    void *gate_memory;           /* what the gates' feature remembers of its rules */
    struct led_lanes lanes;
    struct led_cursors cursors;
    bool keyed; /* the last claim found calls with keys */
    struct led_lease_cache lease_cache;
    bool busy;                                 /* its last claim took something */
    uint64_t finished[LED_STEPS_MAX / 64 + 1]; /* by step: led_finished() */

    /* The running transaction. */
    bool reading;   /* one snapshot for all of it: no other transaction can interfere */
    bool blocked;   /* it waited too long for a row that another transaction has locked */
    bool redo;      /* it lost a race with another transaction: repeat it */
    int redone;     /* how often the group has been repeated */
    bool only_once; /* the group cannot be repeated: it contains the SQL of a handler that has run
                     */
    int64_t now_us;
    struct arena scratch;
    struct led_cache *tx; /* in scratch */
};

static inline struct ledger *led_of(struct store *s)
{
    return (struct ledger *)s;
}

/* Initialize the part of a handle that all engines share; `db` must outlive the handle. led_end()
 * frees everything that the handle remembers, after the engine has closed its connection. */
void led_init(struct ledger *c, const struct store_conf *conf, const struct led_driver *db);
void led_end(struct ledger *c);

/* ---- Statements (stmt.c; stmt.h has their parameters and rows) ------------------------------- */

/* Run one statement and read its rows: *out, which is never NULL after OK. Without memory
 * NO_MEMORY; otherwise what the driver's query() returns. */
MUST_USE enum pawl_status led_query(struct ledger *c, enum sql_name name,
                                    const struct led_params *p, struct led_rows **out,
                                    struct pawl_err *err);
/* The same for a statement that changes rows and returns none. *out_rows: how many it changed;
 * out_rows may be NULL. */
MUST_USE enum pawl_status led_run(struct ledger *c, enum sql_name name, const struct led_params *p,
                                  int64_t *out_rows, struct pawl_err *err);
/* The first column of the only row; `otherwise` if there is no row or the value is null. BROKEN if
 * there are more rows. */
MUST_USE enum pawl_status led_number(struct ledger *c, enum sql_name name,
                                     const struct led_params *p, int64_t otherwise, int64_t *out,
                                     struct pawl_err *err);

/* Statements that are sent together and run in order. `rows` below 0: any number of rows may
 * change. Otherwise another number means that another transaction changed the same rows first, and
 * this transaction is repeated. `out` may be NULL. */
struct led_batch {
    struct led_batched {
        enum sql_name name;
        struct led_params p;
        int64_t rows;
        struct led_rows **out;
    } v[48];
    size_t n;
};
/* Add a statement that changes `rows` rows; p may be NULL, and is copied. */
void led_batch_add(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   int64_t rows);
/* Add a query to the batch; its rows are in *out after led_batch_run(). */
void led_batch_ask(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   struct led_rows **out);
/* Run the batch, unless it is empty. BUSY and c->redo if `rows` of a statement does not hold. */
MUST_USE enum pawl_status led_batch_run(struct ledger *c, const struct led_batch *b,
                                        struct pawl_err *err);

/* ---- The driver ------------------------------------------------------------------------------ */

enum led_begin { LED_WRITE, LED_READ };

/* What an engine adds: a connection that runs named statements. Errors come as a status and a
 * sentence. The driver sets `c->redo` for errors after which the same transaction may succeed if it
 * is repeated. */
struct led_driver {
    bool cursors; /* it has ready_known */
    bool grabs;   /* it has ready_grab */
    bool inbox;   /* applications use functions in SQL: there are tables for what they submit
                     (inbox), and for what they want to be removed (removal) */
    /* While one transaction writes, no other connection writes: what it has read is locked, there
     * are no key notes, and a row that is not as it was read is BROKEN. Its statements run inside
     * the process, once for each value of a column, so reading ahead saves nothing: an id is added
     * where it would be looked for, and a key's row when it is first written. Rows of ready_take
     * and call_list_lane come track by track and lane by lane. The `len` of ready_take and
     * line_take is the limit for each input; longer inputs are read when they are taken. */
    bool one_writer;
    /* Connect if necessary and begin a new transaction; one that is still open is rolled back.
     * LED_WRITE: READ COMMITTED; LED_READ: one snapshot for the whole transaction. Sets now_us,
     * unless the clock is a test's. `first` has its first statements, if any: they need no extra
     * round trip. */
    enum pawl_status (*begin)(struct ledger *c, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err);
    /* Connect if necessary, without a transaction: every statement commits by itself. NULL: the
     * engine cannot do this. */
    enum pawl_status (*autocommit)(struct ledger *c, struct pawl_err *err);
    /* `last` has its last statements, if any; only statements whose `rows` cannot fail to match.
     * UNKNOWN: the answer was lost. After any other status than OK the transaction has ended as
     * well, or rollback() ends it. */
    enum pawl_status (*commit)(struct ledger *c, const struct led_batch *last,
                               struct pawl_err *err);
    void (*rollback)(struct ledger *c);
    /* Is the transaction that was begun still open? */
    bool (*in_tx)(struct ledger *c);
    /* Run one statement. `p`, `out` and `out_rows` (how many rows changed) may each be NULL. */
    enum pawl_status (*query)(struct ledger *c, enum sql_name name, const struct led_params *p,
                              struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
    /* Run the statements in order, in as few round trips as possible; led_again() if `rows` of one
     * does not hold. */
    enum pawl_status (*batch)(struct ledger *c, const struct led_batch *b, struct pawl_err *err);
    /* n new sequence numbers, rising, each above every number that was given before this call
     * began. */
    enum pawl_status (*numbers)(struct ledger *c, int64_t *out, size_t n, struct pawl_err *err);
    /* The last n of those numbers were not used and may be given again. NULL: they are lost. */
    void (*numbers_back)(struct ledger *c, size_t n);
    /* Run a statement without parameters, such as "SAVEPOINT x". */
    enum pawl_status (*plain)(struct ledger *c, const char *text, struct pawl_err *err);
    /* Run the application's own statements, inside or outside the transaction. INVALID: they have
     * an error, and none of them took effect. */
    enum pawl_status (*script)(struct ledger *c, struct bytes text, struct pawl_err *err);
};

/* ---- Transactions (commit.c) ----------------------------------------------------------------- */

/* Begin a transaction; `first`, which may be NULL, has its first statements. After OK the caller
 * commits it, or undoes it (led_undo). */
MUST_USE enum pawl_status led_begin(struct ledger *c, enum led_begin how,
                                    const struct led_batch *first, struct pawl_err *err);
/* Release what the last transaction read, before a new one adds its first statements to a batch.
 * led_begin() does this unless it is given such a batch. */
MUST_USE enum pawl_status led_fresh(struct ledger *c, enum led_begin how, struct pawl_err *err);
/* For AUTO: roll back, and forget what the transaction made, unless *c is NULL (taken). */
void led_undo(struct ledger **c);
/* Commit, with `last` as the last statements, which may be NULL, and keep what the handle
 * remembers. The transaction has ended when it returns, whatever the status. */
MUST_USE enum pawl_status led_commit(struct ledger *taken, const struct led_batch *last,
                                     struct pawl_err *err);
/* Forget the rows that the transaction has read and decided; later operations read again what is
 * stored. Numbers that were drawn stay. */
MUST_USE enum pawl_status led_forget(struct ledger *c, struct pawl_err *err);
/* The server refused one of our statements because the account lacks a right: returns INVALID, for
 * store_denied(). `text` is the server's sentence. */
enum pawl_status led_denied(const char *account, const char *text, struct pawl_err *err);
/* Another transaction changed `what` first: sets c->redo and returns BUSY, so that the group is
 * repeated. BROKEN where no other transaction can interfere (one writer, or a snapshot). */
enum pawl_status led_again(struct ledger *c, const char *what, struct pawl_err *err);
/* The same for a row that this statement should have found. */
enum pawl_status led_row_changed(struct ledger *c, enum sql_name name, struct pawl_err *err);

/* What a driver was doing. A phase is for users, "connecting", and is never a statement's name. A
 * statement's name is only of use in a bug report. Each may be NULL. */
struct led_doing {
    const char *phase, *statement;
};
#define LED_PHASE(text) ((struct led_doing){ .phase = (text) })
#define LED_STATEMENT(name) ((struct led_doing){ .statement = sql_name_text[name] })
#define LED_PLAIN ((struct led_doing){ 0 })
/* Set an error of the database: `database "FILE": PHASE: TEXT`. BROKEN has the statement behind it:
 * `database: relation "pawl.call" does not exist [call_read]`. `file` NULL: a server. Returns st.
 */
enum pawl_status led_failed(enum pawl_status st, const char *file, struct led_doing doing,
                            struct bytes text, struct pawl_err *err);

/* ---- Waiting for answers (patience.c) -------------------------------------------------------- */

/* What the server says, on another connection, about a commit that has no answer. */
enum led_commit {
    LED_COMMIT_SILENT, /* no answer, or the server does not know the session */
    LED_COMMIT_WORKS,  /* the server is working on it */
    LED_COMMIT_WAITS,  /* the commit waits for a standby */
};
/* The wait for one answer; times are world_mono. */
struct led_patience {
    int64_t began_us, until_us;
    int64_t next_us; /* poll until then; if there is no answer by then, led_patient() decides */
    bool commits;    /* the statement commits: ask the server before calling led_patient() */
};
/* Begin to wait, for patience_us; longer while a commit waits for a standby. */
struct led_patience led_patience(const struct ledger *c, int64_t now_us, int64_t patience_us);
/* No answer came until next_us, and the server said this. True: wait until the new next_us. False:
 * give up. */
bool led_patient(struct ledger *c, struct led_patience *p, int64_t now_us, enum led_commit said);

/* ---- Connections to servers (conn.c) --------------------------------------------------------- */

/* What a handle remembers of its connection; times are world_mono. */
struct led_conn {
    int64_t retry_at_us, retry_gap_us; /* when a lost connection is opened again */
    int64_t retry_max_us;
    int64_t lifetime_us, replace_at_us; /* 0: never */
    int64_t used_us;
    int64_t patience_us; /* how long the next answer may take; 0: as long as a statement may run */
};
/* How an engine opens and closes one; `close` accepts that there is none. `usable`: it is there,
 * and after a pause in its use (`stale`) the server has not closed it. */
struct led_conn_ops {
    bool (*usable)(struct ledger *c, bool stale);
    void (*close)(struct ledger *c);
    enum pawl_status (*open)(struct ledger *c, struct pawl_err *err);
};
/* Take lifetime and pauses from the settings. */
void led_conn_init(struct led_conn *k, const struct store_conf *conf);
/* A connection that can be used, or BUSY. One that was lost or is too old is opened again; after a
 * failure not before retry_at_us. */
MUST_USE enum pawl_status led_connect(struct ledger *c, struct led_conn *k,
                                      const struct led_conn_ops *ops, struct pawl_err *err);
/* Set the patience for what begins a transaction, and for a statement without one. */
void led_conn_begins(struct led_conn *k, enum led_begin how, const struct led_batch *first);
void led_conn_autocommits(struct led_conn *k);
/* One number, asked outside a transaction. */
MUST_USE enum pawl_status led_number_alone(struct ledger *c, enum sql_name name, int64_t *out,
                                           struct pawl_err *err);
/* The `now` slot of a server: its clock, unless the clock is a test's. */
enum pawl_status led_now(struct store *s, int64_t *out_us, struct pawl_err *err);

/* ---- Findings (doctor.c) --------------------------------------------------------------------- */

#define LED_FINDINGS_MAX 20

struct led_visit {
    struct ledger *c;
    struct arena *a;
    struct findings *out;
};
typedef enum pawl_status led_look_fn(struct led_visit *v, struct pawl_err *err);
/* Add a finding, at most LED_FINDINGS_MAX of them; `name` is borrowed for ever. */
void led_found(struct led_visit *v, enum finding_level level, const char *name, const char *fmt,
               ...) PRINTF_LIKE(4, 5);
/* For the `doctor` slot: what `look` finds, in v->out. */
MUST_USE enum pawl_status led_doctor(struct led_visit *v, led_look_fn *look, struct pawl_err *err);

/* ---- Lanes (lanes.c, lanes_gc.c) ------------------------------------------------------------- */

/* Read the lanes that are new since the last read, unless this transaction has; or all of them, if
 * the last time is LANES_AGE_US ago or what is known is stale. BROKEN if a row is damaged. */
MUST_USE enum pawl_status led_lanes_read(struct ledger *c, struct pawl_err *err);
/* The lane in use with these names, for a new call; *out 0: there is none, or it is retired. */
MUST_USE enum pawl_status led_lane_find(struct ledger *c, const struct led_lane_names *names,
                                        int *out, struct pawl_err *err);
/* The lane with these names, for a new call: made if it is new, and brought back if it is retired.
 * *out 0: there are LANES_MAX already. */
MUST_USE enum pawl_status led_lane_for(struct ledger *c, const struct led_lane_names *names,
                                       int *out, struct pawl_err *err);
/* Is a lane with these names known, in use or retired? */
bool led_lane_known(const struct ledger *c, const struct led_lane_names *names);
/* The highest number of a lane: a track is twice the number, in a column of 32 bits. */
#define LANE_NUMBER_MAX (INT32_MAX / 2 - 1)
/* Would so many more lanes exceed LANES_MAX? */
bool led_lanes_full(const struct ledger *c, size_t more);
/* Lock out other transactions that make or remove lanes, until the commit. Needed before lanes are
 * counted. */
MUST_USE enum pawl_status led_lanes_lock(struct ledger *c, struct pawl_err *err);
/* Under that lock: read all of the table, unless this transaction has. */
MUST_USE enum pawl_status led_lanes_sure(struct ledger *c, struct pawl_err *err);
/* BUSY and c->redo if what is known of the lanes is too old to write calls by it. */
MUST_USE enum pawl_status led_lanes_young(struct ledger *c, struct pawl_err *err);
/* The names of a lane, borrowed until lanes are read or made again. BROKEN if it does not exist. */
MUST_USE enum pawl_status led_lane(struct ledger *c, int lane, const struct led_lane **out,
                                   struct pawl_err *err);
/* The same, with *out NULL if it does not exist. */
MUST_USE enum pawl_status led_lane_try(struct ledger *c, int lane, const struct led_lane **out,
                                       struct pawl_err *err);
/* The lane if it is known, without reading. */
struct led_lane *led_lane_at(const struct ledger *c, int lane);
/* Are the calls of this lane flows? False for 0, and for a lane that does not exist. */
MUST_USE enum pawl_status led_lane_flow(struct ledger *c, int lane, bool *out,
                                        struct pawl_err *err);
/* Is it known, without looking for the lane, that its calls are no flows? Lanes are made in the
 * order of their numbers, so this handle has read every lane up to its last one. */
static inline bool led_flowless(const struct ledger *c, int lane)
{
    const struct led_lanes *l = &c->lanes;
    return !c->flows || (!l->any_flow && l->n && lane <= l->v[l->n - 1].number);
}
/* Remember what the next claim's worker has, so that each lane is compared with it once.
 * NO_MEMORY. */
MUST_USE enum pawl_status led_lanes_shape(struct ledger *c, const struct bytes *has, size_t n_has,
                                          struct pawl_err *err);
/* Does the worker of the last led_lanes_shape() have what the lane needs? */
bool led_lane_served(struct ledger *c, int lane);
/* The names of the lane in which a new call waits; its gate is that of the rules which this
 * transaction knows, and a claim checks it again. */
MUST_USE enum pawl_status led_lane_names(struct ledger *c, const struct call_spec *s,
                                         struct led_lane_names *out, struct pawl_err *err);
/* One bounded step: retire lanes that have no calls, and remove those that were retired long ago;
 * nothing before the second half of LANES_STEP has run. */
MUST_USE enum pawl_status led_lanes_gc(struct ledger *c, struct pawl_err *err);
/* Is the queue of the lane paused? */
MUST_USE enum pawl_status led_lane_paused(struct ledger *c, int lane, bool *out,
                                          struct pawl_err *err);
/* A transaction begins: free what answers of the last one may have borrowed. */
void led_lanes_begin(struct ledger *c);
/* The transaction was committed. */
void led_lanes_stored(struct ledger *c);
/* Forget the lanes that this transaction made: it is undone. led_lanes_end() frees all of them. */
void led_lanes_undo(struct ledger *c);
void led_lanes_end(struct ledger *c);

/* ---- The schema's steps (steps.c) ------------------------------------------------------------ */

#define LED_CHECKSUM_LEN 32

/* The schema as the database records it. */
struct led_applied {
    int version;
    int64_t min_version;
    bool finished[LED_STEPS_MAX + 1];
};
/* Which account the server refused to let change the schema, and what the server said. */
struct led_refusal {
    char account[80];
    const char *why; /* borrowed from the connection */
};
/* What an engine brings. Texts have "pawl" where the schema's name belongs. */
struct led_steps {
    const struct sql_migration *v; /* number 0 ends it */
    const char *const *texts;      /* of statements */
    enum sql_name first[2];        /* run before any step */
    int n_first;
    int tries;   /* another process may be migrating: how often to wait for it */
    bool joined; /* migration_exists takes a table's name as one text, SCHEMA_TABLE */
    /* The text with the schema's name, perhaps in `a`. NULL without memory. */
    const char *(*own_names)(const char *schema, struct arena *a, const char *text);
    /* Run statements of ours. */
    enum pawl_status (*run)(struct ledger *c, const char *text, struct pawl_err *err);
    /* Each of these may be NULL. Wait until no other process migrates, for a bounded time: BUSY.
     * What needs no unlock ends with the transaction. */
    enum pawl_status (*lock)(struct ledger *c, struct pawl_err *err);
    void (*unlock)(struct ledger *c);
    /* Under the lock: when steps are due; and each time, after them. */
    enum pawl_status (*before)(struct ledger *c, const struct led_applied *had,
                               struct pawl_err *err);
    enum pawl_status (*after)(struct ledger *c, struct pawl_err *err);
    /* After a statement that was denied. NULL: there are no accounts. */
    struct led_refusal (*refusal)(struct ledger *c);
    /* For the printed script. */
    struct {
        const char *before; /* of each step */
        const char *table;  /* of steps */
        const char *hex;    /* what opens a blob in hexadecimal digits; "'" closes it */
        const char *clock;  /* an expression: microseconds since 1970 */
    } print;
};
#ifdef PAWL_TEST
/* For tests: use these steps, those of a later release. */
extern const struct sql_migration *led_steps_newer;
#endif
/* The steps that this program knows, and how many they are. */
const struct sql_migration *led_steps_known(const struct led_steps *s);
int led_steps_wanted(const struct led_steps *s);
/* What is stored of a step to recognise it. */
MUST_USE enum pawl_status led_step_checksum(const struct sql_migration *m,
                                            unsigned char out[LED_CHECKSUM_LEN],
                                            struct pawl_err *err);
/* For the `migrate` slot: apply every step that is due, or none where DDL is transactional. BUSY
 * when another process migrates for longer than all tries; STATE when the database needs a newer
 * program; BROKEN when an applied step is not the one this program has. */
MUST_USE enum pawl_status led_migrate(struct ledger *c, const struct led_steps *s, bool finish,
                                      struct pawl_err *err);
/* For the `steps` slot: the steps as texts in `a`, with the rows that say they were applied. Opens
 * nothing. (steps_text.c) */
MUST_USE enum pawl_status led_steps_print(const struct led_steps *s, const struct store_conf *conf,
                                          struct arena *a, struct steps *out, struct pawl_err *err);
/* STATE unless the schema has every table that `migrate grants` names. */
MUST_USE enum pawl_status led_grantable(struct ledger *c, struct pawl_err *err);
/* Has the second half of this step run, so that no node of an older version is left? True is
 * remembered for as long as the handle is open. */
MUST_USE enum pawl_status led_finished(struct ledger *c, int step, bool *out, struct pawl_err *err);
/* For the `schema` slot. */
MUST_USE enum pawl_status led_schema(struct ledger *c, const struct led_steps *s,
                                     struct schema *out, struct pawl_err *err);

/* ---- Slots, for the engines' tables ---------------------------------------------------------- */

/* The slots of struct store_ops (store.h has their contracts) that are the same on every engine.
 * What they answer is allocated in `a`. */
enum pawl_status led_commit_ops(struct store *s, struct op *const *v, size_t n,
                                struct pawl_err *err);
enum pawl_status led_get_calls(struct store *s, struct arena *a, struct get *g,
                               struct pawl_err *err);
enum pawl_status led_list(struct store *s, struct arena *a, const struct query *q, struct page *out,
                          struct pawl_err *err);
enum pawl_status led_archived(struct store *s, struct arena *a, struct bytes id,
                              struct archived *out, struct pawl_err *err);
enum pawl_status led_attempts(struct store *s, struct arena *a, struct bytes id,
                              struct attempts *out, struct pawl_err *err);
enum pawl_status led_read_object(struct store *s, struct arena *a, struct bytes type,
                                 struct bytes key, struct object *out, struct pawl_err *err);
enum pawl_status led_read_keys(struct store *s, struct arena *a, const struct key_query *q,
                               struct key_rows *out, struct pawl_err *err);
enum pawl_status led_queues(struct store *s, struct arena *a, struct queue_rows *out,
                            struct pawl_err *err);
enum pawl_status led_nodes(struct store *s, struct arena *a, struct node_rows *out,
                           struct pawl_err *err);
enum pawl_status led_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                             struct pawl_err *err);
enum pawl_status led_cancel_requests(struct store *s, struct arena *a, struct cancel_requests *out,
                                     struct pawl_err *err);
enum pawl_status led_feature_look(struct store *s, enum store_look how, feature_look_fn *look,
                                  void *ctx, struct pawl_err *err);

/* The handle for a handler's SQL, for the engine's `sql` slot. */
struct led_tx {
    struct sql_tx base;
    struct ledger *c;
    bool lost; /* the transaction or the connection was lost */
};

#endif
