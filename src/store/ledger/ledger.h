/*
 * ledger.h - the ledger on a database: load, decide, flush, over a driver.
 *
 * For store/ledger, its drivers (store/pg, store/mysql, store/sqlite), whose handle begins with a
 * `struct ledger`, and the event service, which uses their drivers alone. A handle belongs to one
 * thread at a time. A transaction loads rows into `tx`, decides on them in memory, and writes the
 * difference between what each was and what it is (led_flush). Everything a transaction knows lives
 * in `scratch` and is worth nothing in the next; what a handle remembers (lanes, cursors,
 * lease_cache) may be dropped at any time.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_LEDGER_LEDGER_H
#define STORE_LEDGER_LEDGER_H

#include "sql_names.h"
#include "store/store.h"

#define SCHEMA_LEN_MAX 32
#define LED_PARAMS_MAX 20
#define LED_BUCKETS 1024

struct led_lane {
    struct bytes queue, type; /* owned: one block, at queue.data */
};
struct led_lanes {
    struct led_lane *v; /* owned; lane n is v[n - 1] */
    size_t n, cap;
    size_t n_stored;  /* of these are committed */
    size_t n_written; /* of these are in the table, as the running transaction sees it */
    int *slots;       /* owned; lane numbers by hash; 0: free */
    size_t n_slots;
    bool read;   /* the table was read up to its end in this transaction */
    bool locked; /* nobody else makes lanes until this transaction ends */
};

/* Where claims of a (track, rank) go on: every row before it was taken here, or was locked. */
struct led_cursor {
    int64_t track, rank, run_at_us, seq;
    int64_t next_us; /* of the first row that the running look found, INT64_MAX: none */
};
struct led_cursors {
    struct led_cursor *v; /* owned; by track, then rank */
    size_t n, cap;
    int64_t full_us, near_us; /* world_mono: when everything, and what is a little older, was looked
                                 at last */
    int64_t full_cost_us, near_cost_us; /* how long that took */
    bool looking, looking_full;         /* such a look is under way */
    bool dry;                           /* the last look of a claim found no due row */
};

/* What is remembered of leases that were given out here (lease_cache.c). */
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
    struct led_cached_call v[]; /* in the order of the lease's list; behind them what they name */
};
#define LED_CACHE_SLOTS 256
struct led_lease_cache {
    struct led_cached_lease *slots[LED_CACHE_SLOTS], *oldest, *newest; /* owned */
    struct led_cached_lease *spare; /* owned; memory of an entry that was dropped, for the next */
    size_t n;                       /* calls */
};
#ifdef PAWL_TEST
/* How many calls a handle remembers, in all of its leases, instead of CACHE_MAX; 0: that. */
extern size_t led_cache_max;
#endif

struct led_cache;
struct led_driver;

struct ledger {
    struct store base;
    const struct led_driver *db;
    const struct world *world; /* borrowed */
    bool own_clock;            /* the world is a test's: its clock, not the server's */
    char schema[SCHEMA_LEN_MAX + 1];
    const char *path; /* of the database's file, borrowed from the engine; NULL: a server has it */
    int64_t retention_us, remember_us, key_pending_max;
    struct led_lanes lanes;
    struct led_cursors cursors;
    bool keyed; /* the last claim found calls with keys */
    struct led_lease_cache lease_cache;
    bool busy; /* its last claim took something */

    /* The running transaction. */
    bool reading;   /* one snapshot for all of it: no other transaction can interfere */
    bool blocked;   /* it waited too long for a row that another transaction has locked */
    bool redo;      /* it lost a race with another transaction: repeat it */
    int redone;     /* how often the group has been repeated */
    bool only_once; /* the group cannot be done again: it has the SQL of a handler that has run */
    int64_t now_us;
    struct arena scratch;
    struct led_cache *tx; /* in scratch */
};

static inline struct ledger *led_of(struct store *s)
{
    return (struct ledger *)s;
}

/* What every engine sets up and takes down. */
void led_init(struct ledger *c, const struct store_conf *conf, const struct led_driver *db);
void led_end(struct ledger *c);

/* ---- Statements (stmt.c) --------------------------------------------------------------------- */

/* A column of values on their way to the server. Bytes are borrowed until the statement has run.
 * What does not fit into memory shows in the arena's `failed`. */
enum led_kind { LED_INTS, LED_TEXTS, LED_BLOBS };
#define LED_NULL INT64_MIN
struct led_column {
    struct arena *a;
    enum led_kind kind;
    size_t n, cap;
    int64_t *ints;       /* INTS; LED_NULL: null */
    struct bytes *bytes; /* else; absent: null */
};
void led_column_init(struct led_column *k, struct arena *a, enum led_kind kind);
void led_add_int(struct led_column *k, int64_t v);
void led_add_int_or_null(struct led_column *k, int64_t v); /* 0: null */
void led_add_bytes(struct led_column *k, struct bytes v);  /* absent: null */

/* Parameters, in order: one value, or a column of them. */
struct led_param {
    bool many;
    int64_t i;      /* one number */
    struct bytes b; /* or bytes */
    enum led_kind kind;
    struct led_column k;
};
struct led_params {
    struct led_param v[LED_PARAMS_MAX];
    int n;
};
/* Each adds one parameter. Bytes are borrowed until the statement has run. */
void led_int(struct led_params *p, int64_t v);
void led_text(struct led_params *p, struct bytes v);
void led_blob(struct led_params *p, struct bytes v);
void led_column(struct led_params *p, const struct led_column *k);
void led_ints(struct ledger *c, struct led_params *p, const int64_t *v, size_t n);
void led_texts(struct ledger *c, struct led_params *p, const struct bytes *v, size_t n);

/* Rows of an answer, in scratch: they live as long as the transaction. */
struct led_cell {
    struct bytes b; /* absent: null. Bytes of text and blobs; of numbers nothing one may look at */
    int64_t i;      /* numbers; null: 0 */
};
struct led_rows {
    int n, columns;
    struct led_cell *v;
};
int64_t led_get_int(const struct led_rows *r, int row, int column);  /* null: 0 */
struct bytes led_get(const struct led_rows *r, int row, int column); /* null: absent */
bool led_null(const struct led_rows *r, int row, int column);

/* One statement, now. */
MUST_USE enum pawl_status led_query(struct ledger *c, enum sql_name name,
                                    const struct led_params *p, struct led_rows **out,
                                    struct pawl_err *err);
/* The same for what changes rows: nothing comes back. */
MUST_USE enum pawl_status led_run(struct ledger *c, enum sql_name name, const struct led_params *p,
                                  int64_t *out_rows, struct pawl_err *err);
/* The first column of the first row; `otherwise` when there is none. */
MUST_USE enum pawl_status led_number(struct ledger *c, enum sql_name name,
                                     const struct led_params *p, int64_t otherwise, int64_t *out,
                                     struct pawl_err *err);

/* Statements that go out together and are done in order. `rows` below 0: any number; else another
 * number means that another transaction was faster, and this one is repeated. `out` may be
 * NULL. */
struct led_batch {
    struct led_batched {
        enum sql_name name;
        struct led_params p;
        int64_t rows;
        struct led_rows **out;
    } v[48];
    size_t n;
};
void led_batch_add(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   int64_t rows);
/* A question among them. */
void led_batch_ask(struct led_batch *b, enum sql_name name, const struct led_params *p,
                   struct led_rows **out);
MUST_USE enum pawl_status led_batch_run(struct ledger *c, const struct led_batch *b,
                                        struct pawl_err *err);

/* ---- The driver ------------------------------------------------------------------------------ */

enum led_begin { LED_WRITE, LED_READ };

/* What an engine adds: a connection that runs named statements. Errors come as a status and a
 * sentence; `c->redo` is set by those after which the same transaction may well do. */
struct led_driver {
    bool cursors; /* it has ready_known */
    bool grabs;   /* it has ready_grab */
    bool inbox;   /* applications submit in SQL: there is a table for it */
    /* While one transaction writes nobody else does: what it has read is locked, there are no
     * key notes, and what is not as it was read is BROKEN. Its statements run inside the process,
     * once for each value of a column: nothing is gained by asking before it is needed, an id is
     * added where it would be looked for, a key's row when it is first written; rows of ready_take
     * and call_list_lane come track by track and lane by lane, and the `len` of ready_take and
     * line_take is that of each input; longer ones are read when they are taken. */
    bool one_writer;
    /* Connected, in a transaction of its own, whatever was open before. LED_WRITE: READ COMMITTED;
     * LED_READ: one snapshot for all of it. Sets now_us, unless the clock is a test's. `first` are
     * its first statements, if any, so that they need no round trip of their own. */
    enum pawl_status (*begin)(struct ledger *c, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err);
    /* Connected, and in no transaction: a statement commits by itself. NULL: it cannot. */
    enum pawl_status (*autocommit)(struct ledger *c, struct pawl_err *err);
    /* `last` are its last statements, if any: of those whose `rows` cannot fail to hold. UNKNOWN:
     * the answer was lost. After anything but OK the transaction is over all the same, or
     * rollback() ends it. */
    enum pawl_status (*commit)(struct ledger *c, const struct led_batch *last,
                               struct pawl_err *err);
    void (*rollback)(struct ledger *c);
    /* Is the transaction that was begun still there? */
    bool (*in_tx)(struct ledger *c);
    /* Parameters and statement are the ledger's; out_rows: how many changed. Each may be NULL. */
    enum pawl_status (*query)(struct ledger *c, enum sql_name name, const struct led_params *p,
                              struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
    /* In order, in as few round trips as can be; led_again() when one's `rows` do not hold. */
    enum pawl_status (*batch)(struct ledger *c, const struct led_batch *b, struct pawl_err *err);
    /* n fresh sequence numbers, rising, each above every one that was given before this began. */
    enum pawl_status (*numbers)(struct ledger *c, int64_t *out, size_t n, struct pawl_err *err);
    /* The last n of those were not used, and may be given again. NULL: they are lost. */
    void (*numbers_back)(struct ledger *c, size_t n);
    /* "SAVEPOINT x" and its like. */
    enum pawl_status (*plain)(struct ledger *c, const char *text, struct pawl_err *err);
    /* The application's own statements, inside or outside the transaction; INVALID: theirs is
     * the mistake, and nothing of them stands. */
    enum pawl_status (*script)(struct ledger *c, struct bytes text, struct pawl_err *err);
};

/* ---- Transactions (commit.c) ----------------------------------------------------------------- */

MUST_USE enum pawl_status led_begin(struct ledger *c, enum led_begin how,
                                    const struct led_batch *first, struct pawl_err *err);
/* Empty memory, before anything is asked. */
MUST_USE enum pawl_status led_fresh(struct ledger *c, enum led_begin how, struct pawl_err *err);
void led_undo(struct ledger **c); /* for AUTO: roll back unless it was taken */
MUST_USE enum pawl_status led_commit(struct ledger *taken, const struct led_batch *last,
                                     struct pawl_err *err);
/* Empty memory of the transaction's rows: what is stored is what counts again. */
MUST_USE enum pawl_status led_forget(struct ledger *c, struct pawl_err *err);
/* The server refused a statement of ours for want of a right: INVALID, and store_denied(). `text`
 * is its sentence. */
enum pawl_status led_denied(const char *account, const char *text, struct pawl_err *err);
/* Another transaction was faster: do the group again. */
enum pawl_status led_again(struct ledger *c, const char *what, struct pawl_err *err);

/* ---- Waiting for answers (patience.c) -------------------------------------------------------- */

/* What the server says, on another connection, of a commit that has no answer. */
enum led_commit {
    LED_COMMIT_SILENT, /* nothing: it does not answer, or does not know the session */
    LED_COMMIT_WORKS,  /* it is at work on it */
    LED_COMMIT_WAITS,  /* it waits for a standby */
};
/* The wait for one answer; times are world_mono. */
struct led_patience {
    int64_t began_us, until_us;
    int64_t next_us; /* poll until then; with no answer by then led_patient() decides */
    bool commits;    /* what was sent commits: ask the server before led_patient() */
};
/* Waiting begins, for patience_us; longer while a commit waits for a standby. */
struct led_patience led_patience(const struct ledger *c, int64_t now_us, int64_t patience_us);
/* Nothing came until next_us, and the server said this. False: give up. */
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

/* ---- Lanes (lanes.c) ------------------------------------------------------------------------- */

MUST_USE enum pawl_status led_lanes_read(struct ledger *c, struct pawl_err *err);
MUST_USE enum pawl_status led_lane_find(struct ledger *c, struct bytes queue, struct bytes type,
                                        int *out, struct pawl_err *err);
/* Made when it is new; *out 0: no lane is left. */
MUST_USE enum pawl_status led_lane_for(struct ledger *c, struct bytes queue, struct bytes type,
                                       int *out, struct pawl_err *err);
bool led_lanes_full(const struct ledger *c, size_t more);
/* Nobody else makes lanes from here on; needed before lanes are counted. */
MUST_USE enum pawl_status led_lanes_lock(struct ledger *c, struct pawl_err *err);
MUST_USE enum pawl_status led_lane(struct ledger *c, int lane, const struct led_lane **out,
                                   struct pawl_err *err);
MUST_USE enum pawl_status led_lane_paused(struct ledger *c, int lane, bool *out,
                                          struct pawl_err *err);
void led_lanes_undo(struct ledger *c);
void led_lanes_end(struct ledger *c);

/* ---- The schema's steps (steps.c) ------------------------------------------------------------ */

#define LED_STEPS_MAX 1000

#define LED_CHECKSUM_LEN 32

/* What the database says of itself. */
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
/* Those of a program of a later release, instead. */
extern const struct sql_migration *led_steps_newer;
#endif
/* The steps this program knows; how many these are. */
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
/* For the `schema` slot. */
MUST_USE enum pawl_status led_schema(struct ledger *c, const struct led_steps *s,
                                     struct schema *out, struct pawl_err *err);

/* ---- Slots, for the engines' tables ---------------------------------------------------------- */

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

/* The handle for a handler's SQL, for the engine's `sql` slot. */
struct led_tx {
    struct sql_tx base;
    struct ledger *c;
    bool lost; /* the transaction is gone, or the connection */
};

#endif
