/*
 * pawl.h - durable execution on the database you already run.
 *
 * Submit a call to Pawl; Pawl stores it, runs it, and keeps its outcome. This header is the whole
 * public interface of libpawl: plain C11, opaque handles, errors as values, nothing calls exit().
 *
 * The promises, in the words that the documentation uses and the tests prove:
 *   1. Accepted means stored: pawl_submit() returns after the commit, with full fsync.
 *   2. At most one committed effect per id: outcome, state, sent calls and the handler's own SQL
 *      commit in one transaction. Effects outside the database are at-least-once; give the other
 *      side pawl_call_id() and pawl_call_attempt_no() so that it can refuse a duplicate.
 *   3. A duplicate gets the first one's answer, without a write. The same id with other content is
 *      PAWL_CONFLICT.
 *   4. One at a time, in order, per key: a call sees the state its predecessor left.
 *   5. A stale owner can change nothing: every write of an owner names its lease.
 *   6. Recovery needs no traffic.
 *   7. Bad work cannot block good work.
 *   8. One clock for everything stored: the database's.
 *
 * Threads: any number of threads may use a `struct pawl *` at the same time, unless a function says
 * otherwise. A `struct pawl_call *` belongs to the handler that receives it, on that thread, until
 * the handler returns. Strings are UTF-8; names are 1 to 255 bytes without control characters.
 * Times are microseconds since 1970 UTC, durations are microseconds; 0 means the default in every
 * option unless it says otherwise.
 *
 * Structs that carry a `size` begin with it: set it to sizeof the struct (the PAWL_..._INIT macros
 * do) so that a program built against an older header keeps working with a newer library.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PAWL_H
#define PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_VERSION "0.1.0"

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define PAWL_MUST_USE __attribute__((warn_unused_result))
#else
#define PAWL_API
#define PAWL_PRINTF(f, a)
#define PAWL_MUST_USE
#endif

/* ---- Statuses -------------------------------------------------------------------------------- */

/* name          http  exit  retry     what it means to the caller */
#define PAWL_STATUS_MAP(X)                                                                         \
    X(OK, 200, 0, NEVER, "done")                                                                   \
    X(INVALID, 400, 2, NEVER, "the request breaks the contract")                                   \
    X(UNAUTHORIZED, 401, 11, NEVER, "no token, or an unknown one")                                 \
    X(FORBIDDEN, 403, 12, NEVER, "this token may not do that")                                     \
    X(NOT_FOUND, 404, 3, NEVER, "no such call, key, object or node")                               \
    X(METHOD, 405, 2, NEVER, "this path does not take that method")                                \
    X(TIMEOUT, 408, 6, SOON, "the request did not arrive in time")                                 \
    X(CONFLICT, 409, 10, NEVER, "another call already has this id")                                \
    X(STATE, 409, 13, NEVER, "not possible in its present state")                                  \
    X(LOST_LEASE, 409, 4, NEVER, "another worker owns this attempt now")                           \
    X(GONE, 410, 15, NEVER, "ended and no longer kept: retention, or archived")                    \
    X(STALE, 412, 16, NEVER, "the version it was based on is no longer the present one")           \
    X(TOO_LARGE, 413, 17, NEVER, "larger than its limit; nothing was stored")                      \
    X(MEDIA, 415, 2, NEVER, "an unknown content type")                                             \
    X(FULL, 429, 5, LATER, "a limit was reached; nothing was stored")                              \
    X(BROKEN, 500, 9, NEVER, "stored data failed its own check")                                   \
    X(BUSY, 503, 6, SOON, "the database refused for the moment; nothing was stored")               \
    X(NO_MEMORY, 503, 8, LATER, "an allocation failed; nothing was stored")                        \
    X(UNKNOWN, 504, 7, READBACK, "the commit was sent and its answer was lost; repeat it")

#define PAWL_STATUS_ENUM(name, http, exit, retry, text) PAWL_##name,
enum pawl_status { PAWL_STATUS_MAP(PAWL_STATUS_ENUM) PAWL_STATUS_COUNT };
#undef PAWL_STATUS_ENUM

/* What went wrong, as one sentence that names the thing. Every function that can fail takes one as
 * its last argument; NULL is allowed. It is filled only when the function does not return
 * PAWL_OK. */
struct pawl_err {
    enum pawl_status status;
    int native;       /* the engine's own error number; 0 without one */
    char sqlstate[6]; /* "" without one */
    char text[512];
};

/* The name of a status in the API ("CONFLICT"); "?" for a number that is no status. */
PAWL_API const char *pawl_status_name(enum pawl_status status);

/* ---- A call ---------------------------------------------------------------------------------- */

enum pawl_state {
    PAWL_PENDING = 1,     /* accepted, not running */
    PAWL_PROCESSING = 2,  /* held by a lease */
    PAWL_COMPLETED = 3,   /* the result is stored */
    PAWL_FAILED = 4,      /* the handler refused it for good, or its only attempt failed */
    PAWL_DEAD_LETTER = 5, /* its attempts are used up */
    PAWL_CANCELLED = 6,   /* ended before an outcome, because a cancel was requested */
    PAWL_EXPIRED = 7      /* ended before an outcome, because its time had passed */
};

/* "pending", "completed", ...; "?" for a number that is no state. */
PAWL_API const char *pawl_state_name(enum pawl_state state);
/* Is it one of the five states that end a call? */
PAWL_API bool pawl_state_ended(enum pawl_state state);

enum pawl_form {
    PAWL_NOTHING = 0, /* no value: shown as JSON null */
    PAWL_JSON = 1,    /* one JSON text, kept byte for byte */
    PAWL_BYTES = 2    /* any bytes */
};

struct pawl_data {
    enum pawl_form form;
    const void *data;
    size_t len;
};

/* A JSON text in a C string: pawl_text(line). The string is borrowed, not copied; NULL gives
 * PAWL_NOTHING. */
PAWL_API struct pawl_data pawl_text(const char *json);

/* The same for a literal, without a call: PAWL_TEXT("{\"to\":1}"). Also takes a char array whose
 * text fills it to the last byte. A pointer does not compile, because sizeof does not know the
 * length of its text: use pawl_text() for that. */
#ifdef __cplusplus
extern "C++" {
template <size_t size> inline struct pawl_data pawl_text_of_array(const char (&array)[size])
{
    struct pawl_data data = { PAWL_JSON, array, size - 1 };
    return data;
}
}
#define PAWL_TEXT(s) (pawl_text_of_array(s))
#else
#define PAWL_TEXT(s) ((struct pawl_data){ PAWL_JSON, (s), sizeof(s) - sizeof(PAWL_TEXT_CHECK(s)) })
/* A type of one byte; it does not compile when s is not an array of char. */
#define PAWL_TEXT_CHECK(s)                                                                         \
    struct {                                                                                       \
        _Static_assert(                                                                            \
            _Generic(&(s), char (*)[sizeof(s)] : 1, const char (*)[sizeof(s)] : 1, default : 0),   \
            "PAWL_TEXT takes a string literal or a char array; for a pointer use pawl_text()");    \
        char byte;                                                                                 \
    }
#endif

struct pawl_tag {
    const char *name, *value; /* up to 16 pairs, names to 64 bytes, values to 255 */
};

/* What a call with a key does to its key when it ends `failed` or `dead_letter`: let the next call
 * run, or block the key until a person decides (pawl_unblock). */
enum pawl_on_dead { PAWL_ON_DEAD_SKIP = 0, PAWL_ON_DEAD_BLOCK = 1 };

/* A call as it is submitted. Only `type` is required; NULL and 0 mean the default. */
struct pawl_spec {
    size_t size;
    const char *id;         /* NULL: the library makes a UUIDv7 */
    const char *type;       /* which handlers serve it */
    const char *method;     /* default "run" */
    const char *key;        /* calls of one key run one at a time, in order; NULL: none */
    const char *queue;      /* default "default" */
    struct pawl_data input; /* at most 1 MiB */
    int priority;           /* -1000..1000, higher first */
    int max_attempts;       /* default 3; attempts that may end in an error or timeout */
    int max_lost;           /* default 5; attempts whose process may die */
    int64_t delay_us;       /* run no earlier than now + delay; or: */
    int64_t run_at_us;      /* run no earlier than this */
    int64_t expires_in_us;  /* a call that has not begun by now + this ends `expired`; or: */
    int64_t expires_at_us;
    int64_t timeout_us;      /* the longest duration of one attempt; default 60 s */
    int64_t keep_us;         /* how long it is kept after its end; 0: the `retention` setting */
    int64_t backoff_base_us; /* the n-th error is retried after base * factor^(n-1); default 1 s */
    int64_t backoff_max_us;  /* but never later than this; default 300 s */
    double backoff_factor;   /* default 2 */
    double backoff_jitter;   /* vary it by up to this share; default 0.1; below 0: not at all */
    enum pawl_on_dead on_dead; /* with a key: does it block its key when it fails for good? */
    const char *caller, *parent, *traceparent; /* its caller, parent call and trace */
    const struct pawl_tag *tags;
    size_t n_tags;
    const char *const *needs; /* capabilities, at most 16: only a worker that has them all takes it.
                                 1..64 letters, digits, "_", "-", "." and ":" each */
    size_t n_needs;
    int64_t run_timeout_us; /* cancel it this long after it was first due, whether it runs, waits or
                               has not begun; a workflow undoes what it did. 0: never */
};
#define PAWL_SPEC_INIT .size = sizeof(struct pawl_spec)

/* A call as it is shown. Borrowed strings live as long as the object that holds this struct. An
 * absent text is NULL, an absent time 0. */
struct pawl_view {
    size_t size;
    int64_t seq;
    const char *id, *type, *method, *key, *queue;
    enum pawl_state state;
    const char *waiting_for; /* pending only: "time", "retry", "key", "paused", "limit", "worker" */
    bool cancel_requested;
    bool duplicate; /* this submit stored nothing: the id existed */
    struct pawl_data input, result;
    const char *error; /* of the last attempt, also while it waits for its retry; NULL once
                          completed */
    int priority, attempts, lost, redrives, max_attempts, max_lost;
    int64_t timeout_us;
    const char *node, *caller, *client, *parent, *traceparent;
    const struct pawl_tag *tags;
    size_t n_tags;
    int64_t created_at_us, run_at_us, claimed_at_us, started_at_us, finished_at_us;
    int64_t expires_at_us, keep_until_us;
    int64_t key_no;   /* its number within its key, from 1, in the order they run; 0: not yet */
    int64_t position; /* its place in the line of its key: 0 while it runs, 1 is next; -1: in no
                         line */
    const char *const *needs; /* capabilities, sorted */
    size_t n_needs;
};

/* ---- Opening and closing --------------------------------------------------------------------- */

struct pawl;

struct pawl_options {
    size_t size;
    const char *db;     /* "sqlite:PATH", "postgres://...", "mysql://..." or "mem:NAME"; NULL:
                           $PAWL_DB, else sqlite:pawl.db */
    const char *schema; /* default "pawl": the schema on PostgreSQL, elsewhere the prefix of every
                           table */
    const char *node;   /* the name of this process in the database; default: the host's name and
                           eight hex digits that differ between machines, databases and working
                           folders. A process that starts workers replaces one of the same name on
                           another machine; on the same machine it is refused (STATE), or gets a
                           number after a default name */
    const char *client; /* stored with every call submitted through this handle; may be NULL */
    int pool_size; /* connections for reading, default 4; on database servers up to as many more, 64
                      at most, for the transactions of handlers */
    int64_t heartbeat_interval_us, heartbeat_grace_us; /* 2 s, 10 s */
    int64_t reclaim_interval_us;                       /* 1 s */
    int64_t retention_us, remember_us;                 /* 7 days, 30 days more */
    int64_t gc_interval_us;  /* how often ended calls past their time are removed; 60 s; below 0:
                                only by pawl_gc() */
    bool no_migrate;         /* refuse to open an older schema instead of migrating it */
    bool paused;             /* start no work, even after pawl_start() */
    bool fail_lost;          /* a call whose process died ends `failed` instead of being retried */
    int64_t pool_timeout_us; /* the longest wait for a connection for reading; 30 s */
    int64_t poll_min_us, poll_max_us; /* how often to look for changes by other processes: 5 ms
                                         after there were some, up to 250 ms after there were none
                                       */
    int64_t max_pending_key;          /* calls that may wait on one key, more are FULL; 100,000 */
    int64_t pool_lifetime_us; /* an older connection to a server is replaced between two uses; 30
                                 minutes */
    int64_t cron_runs_us;     /* how long what came of the ticks of schedules is kept; 30 days */
    bool pin_versions;        /* a run that begins here is for handlers of the same version alone
                                 (pawl_module_version); else any version goes on with it */
};
#define PAWL_OPTIONS_INIT .size = sizeof(struct pawl_options)

/* Open the database, migrate its schema and start the store threads. options may be NULL. The
 * caller owns *out and frees it with pawl_close(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_open(const struct pawl_options *options,
                                                  struct pawl **out, struct pawl_err *err);

/* Stop the workers as pawl_stop() does without a grace period, refuse new requests, close. Accepts
 * NULL. No other thread may still be inside a function of this handle. */
PAWL_API void pawl_close(struct pawl *p);

/* ---- Submitting and waiting ------------------------------------------------------------------ */

/* The answer of a submit for one call. */
struct pawl_receipt {
    enum pawl_status status; /* OK (new or duplicate), CONFLICT, GONE, FULL, INVALID, TOO_LARGE,
                                STATE (it has needs, and pawl migrate finish has not been run) */
    bool duplicate;
    enum pawl_state state; /* of the call that has this id */
    int64_t seq;
    char id[256];
    char error[200]; /* one sentence when status is not OK */
};

enum { PAWL_ATOMIC = 1 }; /* all calls of the batch or none */

/* Accept n calls (1..10,000) in one commit. out[i] answers v[i]. Returns PAWL_OK when the batch was
 * processed, even when single receipts have another status; with PAWL_ATOMIC it returns the first
 * refusal, and nothing is stored. UNKNOWN: the answer of the commit was lost; submit the same calls
 * again with the ids in their receipts. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_submit(struct pawl *p, const struct pawl_spec *v,
                                                    size_t n, unsigned flags,
                                                    struct pawl_receipt *out, struct pawl_err *err);

/* One call as it was at one moment. The caller owns it and frees it with pawl_shown_free(). */
struct pawl_shown;
/* The call; borrowed from `shown`. */
PAWL_API const struct pawl_view *pawl_shown_view(const struct pawl_shown *shown);
/* Free it; accepts NULL. */
PAWL_API void pawl_shown_free(struct pawl_shown *shown);

/* Submit one call and wait until it ends or wait_us (at most 300 s) has passed. *out then shows the
 * call as it is, so check its state. The end of the wait does not change the call. UNKNOWN: the
 * answer of the commit was lost; err->text names the id, also a generated one: submit the same call
 * again with it. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_submit_wait(struct pawl *p,
                                                         const struct pawl_spec *spec,
                                                         int64_t wait_us, struct pawl_shown **out,
                                                         struct pawl_err *err);

/* Show the call with this id; with wait_us above 0, when it has ended or that time has passed.
 * NOT_FOUND. GONE: it ended and is no longer kept, because its retention has passed or it was
 * archived; the message says which (`pawl get --archived` reads an archived one). BUSY: the
 * database does not answer; a caller that waits gets this only when its time has passed. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_get(struct pawl *p, const char *id, int64_t wait_us,
                                                 struct pawl_shown **out, struct pawl_err *err);

/* Which calls to list: newest first; every given filter must match. */
struct pawl_query {
    size_t size;
    enum pawl_state state; /* 0: all */
    const char *queue, *type, *method, *key, *parent, *caller;
    const char *tag_name, *tag_value;
    int64_t since_us, until_us; /* created_at in [since, until) */
    int limit;                  /* 1..1000, default 100 */
    const char *cursor;         /* the `next` of the previous page */
    bool with_input, with_result;
};
#define PAWL_QUERY_INIT .size = sizeof(struct pawl_query)

/* A page reads a bounded number of rows: it may be short, even empty, while `next` is not NULL. */
struct pawl_page {
    const struct pawl_view *calls;
    size_t n;
    const char *next; /* NULL: this is the last page */
};
/* List calls. The caller owns *out and frees it with pawl_page_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_list(struct pawl *p, const struct pawl_query *q,
                                                  struct pawl_page **out, struct pawl_err *err);
/* Free a page; accepts NULL. */
PAWL_API void pawl_page_free(struct pawl_page *page);

/* The attempts of a call that did not succeed, oldest first, at most the last 100. */
struct pawl_attempt {
    int try_no;
    const char *kind; /* "error", "timeout", "lost" */
    const char *error, *node;
    int64_t started_at_us, finished_at_us;
};
struct pawl_attempts {
    const struct pawl_attempt *v;
    size_t n;
};
/* The failed attempts of a call. The caller owns *out and frees it with pawl_attempts_free().
 * NOT_FOUND. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_attempts(struct pawl *p, const char *id,
                                                      struct pawl_attempts **out,
                                                      struct pawl_err *err);
/* Free it; accepts NULL. */
PAWL_API void pawl_attempts_free(struct pawl_attempts *a);

/* ---- Controlling calls and queues ------------------------------------------------------------ */

/* Cancel a call. *out_state is CANCELLED (it will never run), or PROCESSING: the cancel request is
 * stored, its worker is told, and the end that comes first counts. STATE: it has ended
 * otherwise. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_cancel(struct pawl *p, const char *id,
                                                    enum pawl_state *out_state,
                                                    struct pawl_err *err);

/* Retry an ended call that did not complete, with all its attempts anew; its former outcome moves
 * to the history. STATE: it completed, or has not ended. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_retry(struct pawl *p, const char *id,
                                                   struct pawl_err *err);
/* Its former name. */
#define pawl_redrive pawl_retry

enum { PAWL_SAME = INT32_MIN };
/* Change the time, priority or queue of a pending call. run_at_us 0, queue NULL and priority
 * PAWL_SAME leave them unchanged. A call that a node has claimed and not begun is pending: the move
 * waits up to 1 s until the node hands it back, which takes 100 ms. STATE: it is not pending, or
 * began meanwhile. BUSY: it was not handed back, because its node does not answer. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_move(struct pawl *p, const char *id, int64_t run_at_us,
                                                  int priority, const char *queue,
                                                  struct pawl_err *err);

/* Stop or resume claiming from a queue, for all processes, until it is changed back. Calls are
 * still accepted. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_pause(struct pawl *p, const char *queue, bool paused,
                                                   struct pawl_err *err);

struct pawl_queue {
    const char *queue;
    bool paused;
    int64_t pending, due, processing; /* counted up to 100,000 */
    int64_t oldest_pending_us;        /* how long the longest-due call has waited; 0: none is due */
};
struct pawl_queues {
    const struct pawl_queue *v;
    size_t n;
};
/* All queues. The caller owns *out and frees it with pawl_queues_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_queues(struct pawl *p, struct pawl_queues **out,
                                                    struct pawl_err *err);
/* Free it; accepts NULL. */
PAWL_API void pawl_queues_free(struct pawl_queues *q);

/* Remove at most `max` ended calls past their time, in small batches. *out_removed counts calls
 * whose input and result were removed, *out_forgotten ids that may be used again. Both may be NULL.
 * What came of the ticks of schedules is removed after cron_runs_us, uncounted, unless max is 0.
 * The library does the same by itself every gc_interval. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_gc(struct pawl *p, int64_t max, int64_t *out_removed,
                                                int64_t *out_forgotten, struct pawl_err *err);

/* ---- Objects and keys ------------------------------------------------------------------------ */

/* An object is a type and a key; its calls are the calls of that type and key, and it keeps one
 * state. Objects of several types may share a key; their calls then wait in one line. */
struct pawl_object {
    const char *type, *key;
    struct pawl_data state;
    int64_t version; /* grows with every change and is never reused */
    int64_t updated_at_us;
    int64_t pending; /* its calls that wait, counted up to 100,000 */
};
/* Read an object. NOT_FOUND: it keeps no state. The caller owns *out and frees it with
 * pawl_object_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_load(struct pawl *p, const char *type,
                                                         const char *key, struct pawl_object **out,
                                                         struct pawl_err *err);
/* Free it; accepts NULL. */
PAWL_API void pawl_object_free(struct pawl_object *object);

struct pawl_object_change {
    size_t size;
    const char *type, *key;
    struct pawl_data state; /* save: JSON or bytes, at most 1 MiB */
    int64_t if_version;     /* change it only at this version; 0: at any */
    int64_t wait_us; /* how long to wait while a call of the key runs; 5 s; below 0: not at all */
    bool cancel;     /* delete: end its pending calls `cancelled` in the same commit */
};
#define PAWL_OBJECT_CHANGE_INIT .size = sizeof(struct pawl_object_change)

/* Save the state from outside its calls, between two of them. BUSY: calls of the key ran for all of
 * wait_us. STALE: it has another version, which *out_version then holds. out_version may be
 * NULL. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_save(struct pawl *p,
                                                         const struct pawl_object_change *change,
                                                         int64_t *out_version,
                                                         struct pawl_err *err);
/* Delete the state, otherwise like pawl_object_save(). STATE while its calls are pending, unless
 * they are to be cancelled; NOT_FOUND. out_cancelled may be NULL. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_delete(struct pawl *p,
                                                           const struct pawl_object_change *change,
                                                           int64_t *out_cancelled,
                                                           struct pawl_err *err);

/* The calls of an object that have not begun, in the order they will run; delayed ones come last.
 * At most limit (1..1000), with inputs; `next` is always NULL. type may be NULL: all calls of the
 * key. The caller owns *out and frees it with pawl_page_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_pending(struct pawl *p, const char *type,
                                                     const char *key, int limit,
                                                     struct pawl_page **out, struct pawl_err *err);

/* Keys on which a call waits, runs or blocks, by name. */
struct pawl_key_query {
    size_t size;
    bool blocked;      /* only keys that an ended call blocks */
    int limit;         /* 1..1000, default 100 */
    const char *after; /* the `next` of the previous page */
};
#define PAWL_KEY_QUERY_INIT .size = sizeof(struct pawl_key_query)
struct pawl_key {
    const char *key;
    const char *head; /* the id of the call that runs, blocks, or is next */
    enum pawl_state head_state;
    const char *waiting_for; /* what the head waits for; NULL: nothing */
    bool blocked;
    int64_t pending;  /* calls that wait */
    int64_t since_us; /* blocked: since when; otherwise when the head was accepted */
};
struct pawl_keys {
    const struct pawl_key *v;
    size_t n;
    const char *next; /* NULL: this is the last page. A page may be short */
};
/* List keys. The caller owns *out and frees it with pawl_keys_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_keys(struct pawl *p, const struct pawl_key_query *q,
                                                  struct pawl_keys **out, struct pawl_err *err);
/* Free it; accepts NULL. */
PAWL_API void pawl_keys_free(struct pawl_keys *keys);

/* Release a blocked key: retry the call that blocks it, or let the next one run. STATE: it is not
 * blocked. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_unblock(struct pawl *p, const char *key, bool retry,
                                                     struct pawl_err *err);

/* ---- Working without handlers: claim, extend, finish ----------------------------------------- */

struct pawl_claim {
    size_t size;
    const char *worker;        /* shown as the node of the calls that it holds */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
    const char *const *types; /* n_types 0: all */
    size_t n_types;
    int max;                /* 1..1000, default 1 */
    int64_t wait_us;        /* how long to wait for work; default 0 */
    int64_t lease_us;       /* default 30 s, 1 s..1 h: after it the calls are released */
    const char *repeats;    /* the lease token of a claim whose answer was lost, or NULL */
    const char *const *has; /* capabilities of the worker, at most 64: only calls that need no
                               others are claimed */
    size_t n_has;
};
#define PAWL_CLAIM_INIT .size = sizeof(struct pawl_claim)

/* The state of an object (type, key). */
struct pawl_state_of {
    struct pawl_data state; /* PAWL_NOTHING: no state */
    int64_t version;        /* 0 without a state */
};

struct pawl_lease {
    char token[40]; /* "" when n is 0 */
    int64_t until_us;
    const struct pawl_view *calls; /* in the order to run them; the number of the attempt is
                                      attempts + lost + 1 */
    size_t n;
    const struct pawl_state_of *states; /* n: states[i] is the state of the object of calls[i] */
};
/* Claim up to max due calls under one lease, at most one of each key. Fewer, or none, is normal. A
 * call that was lost before comes alone. Free *out with pawl_lease_free(), which does not end the
 * lease itself. UNKNOWN: the answer of the commit has not come; claim again. Calls that it claimed
 * are released uncounted when the answer comes, or counted as lost when the lease ends. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_claim(struct pawl *p, const struct pawl_claim *claim,
                                                   struct pawl_lease **out, struct pawl_err *err);
/* Free it; accepts NULL. The lease stays. */
PAWL_API void pawl_lease_free(struct pawl_lease *lease);

/* Move the end of the lease to now + lease_us, or to when the last of its calls exceeds its timeout
 * if that comes first. Calls that have exceeded their timeout end so; the lease keeps the others.
 * LOST_LEASE: it has ended; stop, your results are void. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_extend(struct pawl *p, const char *token,
                                                    int64_t lease_us, int64_t *out_until_us,
                                                    struct pawl_err *err);

enum pawl_ending {
    PAWL_END_RESULT = 1,    /* completed */
    PAWL_END_ERROR = 2,     /* counts; retried while max_attempts allows */
    PAWL_END_TIMEOUT = 3,   /* as an error, recorded as a timeout */
    PAWL_END_REFUSE = 4,    /* failed for good */
    PAWL_END_LATER = 5,     /* not now: run again in retry_in_us, counts as nothing */
    PAWL_END_RELEASE = 6,   /* released unchanged, counts as nothing */
    PAWL_END_CANCELLED = 7, /* stopped because of a cancel request; without one it counts as
                               released */
};

struct pawl_finish {
    size_t size;
    const char *id;
    enum pawl_ending how;
    struct pawl_data result; /* with RESULT */
    const char *error;       /* with ERROR, TIMEOUT, REFUSE */
    int64_t retry_in_us;     /* with ERROR, LATER: below 0 or (for ERROR) 0: the call's backoff */
    const struct pawl_spec *send; /* calls to accept in the same commit, with RESULT */
    size_t n_send;                /* ids default to {id}.{n} */
    struct pawl_data state;       /* with RESULT, of a call with a key: the new state of its object;
                                     PAWL_NOTHING: unchanged */
    bool delete_state;            /* or: delete the state */
};
#define PAWL_FINISH_INIT .size = sizeof(struct pawl_finish)

/* Finish some calls of a lease, all in one commit or none. out_states[i] answers v[i]; may be NULL.
 * Repeating the same finish gives the same answer. LOST_LEASE: nothing was stored. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_finish(struct pawl *p, const char *token,
                                                    const struct pawl_finish *v, size_t n,
                                                    enum pawl_state *out_states,
                                                    struct pawl_err *err);

/* ---- Handlers -------------------------------------------------------------------------------- */

struct pawl_module;
struct pawl_call;

/* A handler runs one attempt of one call on a worker's thread. It ends by returning the result of
 * pawl_reply*, pawl_fail, pawl_refuse or pawl_later; plain 0 is an empty reply, any other number an
 * error that is retried. It may run again after a crash: its effects in the database happen once,
 * its effects outside may happen again. */
typedef int pawl_handler(struct pawl_call *c);

/* Serve TYPE.METHOD with this handler. Before pawl_start() only. In a module pawl_load() reports
 * the first failure; a program checks the return value. */
PAWL_API enum pawl_status pawl_on(struct pawl_module *m, const char *type, const char *method,
                                  pawl_handler *handler);
/* One statement, run once at load in its own transaction, for CREATE TABLE IF NOT EXISTS and the
 * like: safe when several processes load at once. */
PAWL_API enum pawl_status pawl_prepare(struct pawl_module *m, const char *sql);

/* What becomes of the ticks that were missed while no node ticked: submit the newest one if it is
 * at most catch_up_for late; none; the newest 100 in order. */
enum pawl_catch_up { PAWL_CATCH_UP_LAST = 0, PAWL_CATCH_UP_NONE = 1, PAWL_CATCH_UP_ALL = 2 };
/* What becomes of a tick while the call of the last one has not ended: submit it; skip it; let it
 * wait for that end; cancel that call, and wait. */
enum pawl_overlap {
    PAWL_OVERLAP_ALLOW = 0,
    PAWL_OVERLAP_SKIP = 1,
    PAWL_OVERLAP_WAIT = 2,
    PAWL_OVERLAP_REPLACE = 3
};

/* A schedule: a call that is submitted again and again, by the clock of the database. Exactly one
 * of cron, every_us and at_us is given; NULL and 0 elsewhere mean the default. */
struct pawl_schedule {
    size_t size;
    const char *name;     /* a later one of the same name replaces it */
    const char *cron;     /* five fields, or six with the second first: "0 3 * * 1-5" */
    int64_t every_us;     /* from 1 s; counted from starts_at_us, else from 1970 */
    const int64_t *at_us; /* n_at times */
    size_t n_at;
    const char *zone;             /* an IANA name; default "UTC" */
    const struct pawl_spec *call; /* what is submitted: without id, run_at and expires_at; its delay
                                     and expires_in count from the tick */
    enum pawl_catch_up catch_up;
    int64_t catch_up_for_us; /* default 1 h */
    enum pawl_overlap overlap;
    int64_t jitter_us;                /* run each call up to so much later, by a hash of its id */
    int64_t starts_at_us, ends_at_us; /* ticks from then on, and before then */
    bool paused;                      /* pause it; false: an operator's pause stays */
};
#define PAWL_SCHEDULE_INIT .size = sizeof(struct pawl_schedule)

/* Store this schedule when pawl_start() is called. Nothing is written if it is stored already, so
 * every process may declare it. Everything is copied. Before pawl_start() only. In a module
 * pawl_load() reports the first failure; a program checks the return value. What needs the database
 * (a schedule that never fires) is reported by pawl_start(). */
PAWL_API enum pawl_status pawl_schedule(struct pawl_module *m,
                                        const struct pawl_schedule *schedule);
/* The same for a schedule that is no longer wanted: pawl_start() removes it, if it is there. The
 * calls that it submitted stay. */
PAWL_API enum pawl_status pawl_unschedule(struct pawl_module *m, const char *name);

/* The module of the program itself, for programs that link libpawl. */
PAWL_API struct pawl_module *pawl_program(struct pawl *p);

/* Load a shared object whose source has PAWL_MODULE(m) { ... }. Before pawl_start() only. NOT_FOUND
 * when it cannot be loaded; INVALID when it is not a module of this library. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_load(struct pawl *p, const char *path,
                                                  struct pawl_err *err);

#define PAWL_MODULE_ABI 1
#define PAWL_MODULE(m)                                                                             \
    PAWL_API extern const int pawl_module_abi;                                                     \
    const int pawl_module_abi = PAWL_MODULE_ABI;                                                   \
    PAWL_API void pawl_module_init(struct pawl_module *m);                                         \
    void pawl_module_init(struct pawl_module *m)

/* The call of this attempt; the text is borrowed until the attempt ends. */
PAWL_API const char *pawl_call_id(const struct pawl_call *c);
PAWL_API const char *pawl_call_type(const struct pawl_call *c);
PAWL_API const char *pawl_call_method(const struct pawl_call *c);
/* NULL without a key. */
PAWL_API const char *pawl_call_key(const struct pawl_call *c);
/* The number of this attempt: attempts + lost + 1. */
PAWL_API int pawl_call_attempt_no(const struct pawl_call *c);
/* Its former name. */
#define pawl_call_try pawl_call_attempt_no
/* Everything of the call; borrowed until the attempt ends. */
PAWL_API const struct pawl_view *pawl_call_view(const struct pawl_call *c);
/* The input; borrowed until the attempt ends. */
PAWL_API struct pawl_data pawl_input(const struct pawl_call *c);

/* Small readers of a JSON input. The first reads the whole input, the others a member of an object.
 * 0: found and of that kind; otherwise non-zero, and *out is unchanged. Text is copied and ends
 * with NUL, in memory that lives until the attempt ends. */
PAWL_API int pawl_input_int(struct pawl_call *c, int64_t *out);
PAWL_API int pawl_input_get_int(struct pawl_call *c, const char *member, int64_t *out);
PAWL_API int pawl_input_get_bool(struct pawl_call *c, const char *member, bool *out);
PAWL_API int pawl_input_get_text(struct pawl_call *c, const char *member, const char **out);
PAWL_API int pawl_input_get_json(struct pawl_call *c, const char *member, struct pawl_data *out);

/* Memory that lives until the attempt ends; NULL when the limit of the attempt is reached. */
PAWL_API void *pawl_alloc(struct pawl_call *c, size_t size);

/* Reply with a result, which is copied: `return pawl_reply_int(c, 5);` */
PAWL_API int pawl_reply(struct pawl_call *c, struct pawl_data result);
PAWL_API int pawl_reply_json(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
PAWL_API int pawl_reply_int(struct pawl_call *c, int64_t n);
/* The text as a JSON string. */
PAWL_API int pawl_reply_text(struct pawl_call *c, const char *text);
/* An error: counts, and is retried while max_attempts allows. */
PAWL_API int pawl_fail(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Fail for good. */
PAWL_API int pawl_refuse(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Not now: run again in delay_us, counts as nothing. */
PAWL_API int pawl_later(struct pawl_call *c, int64_t delay_us);

/* The state of the object (type, key) of a call with a key: as the previous call left it, or as
 * this attempt has set it; borrowed. PAWL_NOTHING: no state, or the call has no key. */
PAWL_API struct pawl_data pawl_state(const struct pawl_call *c);
/* The state when it is a JSON number that is an integer; otherwise the second argument. */
PAWL_API int64_t pawl_state_int(const struct pawl_call *c, int64_t otherwise);
/* Set the state, at most 1 MiB, JSON or bytes. It is copied, and commits with a reply or not at
 * all. Non-zero when it cannot be set: the call has no key, the state is not JSON, or it is too
 * large; a reply then becomes an error that says so. PAWL_NOTHING deletes. */
PAWL_API int pawl_set_state(struct pawl_call *c, struct pawl_data state);
PAWL_API int pawl_set_state_json(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
PAWL_API int pawl_set_state_int(struct pawl_call *c, int64_t n);
/* Delete the state, with the reply or not at all. Non-zero when the call has no key. */
PAWL_API int pawl_delete_state(struct pawl_call *c);

/* Send a call, which is accepted in the same commit as the completion of this one, or not at all.
 * Its id defaults to {id}.{n}, inside a step to {id}.NAME.{n}; its parent is this call. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_send(struct pawl_call *c, const struct pawl_spec *spec,
                                                  struct pawl_err *err);
/* The id of the n-th call sent so far, from 0; NULL beyond the last. */
PAWL_API const char *pawl_sent_id(const struct pawl_call *c, size_t n);

/* Submit a call from inside a handler and wait for its end. Its id defaults to {id}.ask.{n},
 * inside a step to {id}.NAME.ask.{n}, so that a handler or step which runs again gets the same
 * answer. *out lives until the attempt ends.
 * PAWL_STATE: the attempt holds a transaction (pawl_sql); or it asks for its own key, or for a key
 * that a call which waits for it holds. That would wait for ever, and is refused at once, with the
 * calls named. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_ask(struct pawl_call *c, const struct pawl_spec *spec,
                                                 const struct pawl_view **out,
                                                 struct pawl_err *err);

/* The time that this attempt has left; 0 when it is up. After that its answer is void. */
PAWL_API int64_t pawl_time_left_us(const struct pawl_call *c);
/* True when a cancel was requested, the time of the attempt is up, or the process is stopping
 * without waiting. */
PAWL_API bool pawl_cancelled(const struct pawl_call *c);
/* Wait for that long, or until pawl_cancelled(). 0: the time passed; 1: cancelled. */
PAWL_API int pawl_sleep(struct pawl_call *c, int64_t us);

/* ---- Workflows: handlers that take steps ----------------------------------------------------- */

/* A handler may take steps. A step that has ended is stored and never runs again: the handler runs
 * from the top, here or on another node, and passes over it; its stored result is returned. So a
 * handler must ask for the same steps in the same order whenever it runs: it takes what it decides
 * by from its input, its steps and the functions here. Code that asks for another step than the
 * stored one stops the run as `dead_letter`; pawl_retry() after a mended deploy goes on.
 *
 * The functions below return 0, or PAWL_STEP_TIMEOUT where it is said, or something else when the
 * run is suspended or fails here: then the handler returns, and what it returns means nothing. From
 * there on every one of them, pawl_send(), pawl_sql(), pawl_set_state() and the reply do nothing,
 * and outputs are empty; but the handler's own code would still run. Outputs live until the attempt
 * ends.
 *
 * In such a handler pawl_send() and pawl_set_state() outside of steps take effect at the end of the
 * run, and pawl_sql() is refused. A name of a step has at most 100 bytes and no "#"; it may be used
 * several times, and the n-th use is stored as name#n. */
enum {
    PAWL_STEP_VOID = 101,    /* the run is suspended or fails: return */
    PAWL_STEP_TIMEOUT = 102, /* an answer: the time of the wait has passed */
    PAWL_STEP_UNKNOWN = 103  /* for an undo: the step may have happened, and has no result */
};

#define PAWL_SECOND INT64_C(1000000)
#define PAWL_MINUTE (60 * PAWL_SECOND)
#define PAWL_HOUR (60 * PAWL_MINUTE)
#define PAWL_DAY (24 * PAWL_HOUR)

/* What a step does: it ends like a handler, by returning the result of pawl_reply*, pawl_fail (a
 * failed try), pawl_refuse (it has failed and has not happened) or pawl_later. Its pawl_sql() and
 * pawl_send() commit with its result. It cannot take steps itself, nor set the object's state. */
typedef int pawl_step_run(struct pawl_call *c, void *arg);
/* What undoes it; `result` is its stored result. PAWL_STEP_UNKNOWN: it may have happened or not,
 * and there is none. It has tries of its own, as the step has, and ends like it; the last one that
 * fails stops the run as `dead_letter`, and pawl_retry() goes on with it. */
typedef int pawl_step_undo(struct pawl_call *c, int known, struct pawl_data result, void *arg);

struct pawl_step {
    size_t size;
    const char *name;
    pawl_step_run *run;
    pawl_step_undo *undo; /* NULL: there is nothing to undo */
    void *arg; /* for both; copied, if arg_size says how long it is. With an undo a pointer
                  into the handler's own variables must be */
    size_t arg_size;
    int max_attempts;        /* default 3; tries that may end in an error or timeout */
    int64_t timeout_us;      /* of one try; default: the call's timeout, for the whole attempt */
    int64_t backoff_base_us; /* as those of a call */
    int64_t backoff_max_us;
    double backoff_factor;
    double backoff_jitter;
    bool lazy; /* its result is stored with the next step: after a crash it may run again. Without
                  effect on a step with an undo, SQL or sends */
};
#define PAWL_STEP_INIT .size = sizeof(struct pawl_step)

/* Run a step once, and store its result or its error. *out (may be NULL) is its result. A step that
 * fails for good ends the run: the undo of each completed step runs, the last one first, and the
 * call ends `failed` with the error of the step. So do a pawl_refuse() of the handler and a cancel.
 */
PAWL_API PAWL_MUST_USE int pawl_step(struct pawl_call *c, const struct pawl_step *step,
                                     struct pawl_data *out);
/* Sleep for so long from when the run first comes here, or until then. No worker is held. */
PAWL_API PAWL_MUST_USE int pawl_step_sleep(struct pawl_call *c, const char *name, int64_t us);
PAWL_API PAWL_MUST_USE int pawl_step_until(struct pawl_call *c, const char *name, int64_t at_us);
/* Wait for the next signal of this name, in the order in which they came; also one that came
 * before. timeout_us 0: for ever, else PAWL_STEP_TIMEOUT when it has passed. *out (may be NULL) is
 * its value. */
PAWL_API PAWL_MUST_USE int pawl_step_signal(struct pawl_call *c, const char *name,
                                            int64_t timeout_us, struct pawl_data *out);
/* Submit a call of our own, as the step `name`. Its id is {id}.name#n, whatever the spec says;
 * *out_id (may be NULL) is that id. A key that this run or a run above it has is refused. */
PAWL_API PAWL_MUST_USE int pawl_step_child(struct pawl_call *c, const char *name,
                                           const struct pawl_spec *spec, const char **out_id);
enum pawl_join { PAWL_ALL, PAWL_ANY };
/* Wait until all children of these ids have ended, or any one of them. timeout_us 0: for ever. */
PAWL_API PAWL_MUST_USE int pawl_step_join(struct pawl_call *c, enum pawl_join how,
                                          const char *const *ids, size_t n, int64_t timeout_us);
/* The outcome of a child that a join or select of this attempt has found ended: its state, result
 * and error. NOT_FOUND: none has. STATE: the run is suspended. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_step_result(struct pawl_call *c, const char *id,
                                                         const struct pawl_view **out,
                                                         struct pawl_err *err);

/* The first of several: a signal of these names, an end of these children, a time. */
struct pawl_select {
    size_t size;
    const char *name; /* of the step; default "select" */
    const char *const *signals;
    size_t n_signals;
    const char *const *ids; /* of children */
    size_t n_ids;
    enum pawl_join how; /* for children */
    int64_t timeout_us; /* 0: none */
    int64_t until_us;   /* or: a time; 0: none */
    /* answer */
    const char *signal;       /* its name; NULL: something else came first */
    struct pawl_data value;   /* with it */
    const char *const *ended; /* the children that had ended; n_ended 0: something else came first
                               */
    size_t n_ended;
};
#define PAWL_SELECT_INIT .size = sizeof(struct pawl_select)
/* Wait for it. PAWL_STEP_TIMEOUT: the time came first. */
PAWL_API PAWL_MUST_USE int pawl_step_select(struct pawl_call *c, struct pawl_select *what);

/* Values that are the same whenever the handler runs: the time when the run first came here, random
 * bits, a UUIDv7. They are stored before a step runs. */
PAWL_API PAWL_MUST_USE int pawl_step_now(struct pawl_call *c, int64_t *out_us);
PAWL_API PAWL_MUST_USE int pawl_step_random(struct pawl_call *c, uint64_t *out);
PAWL_API PAWL_MUST_USE int pawl_step_uuid(struct pawl_call *c, char out[37]);

/* Show a value to others while the run goes on. Stored with the next new step, or with the end. A
 * run shows at most 1,000 values, 1 MiB each and 64 MiB in all; with more it fails for good. */
PAWL_API int pawl_publish(struct pawl_call *c, const char *name, struct pawl_data value);
/* For a change of the code of runs that go on: true in a run that came here first in code that has
 * the change, false in one that came past here before. */
PAWL_API bool pawl_patched(struct pawl_call *c, const char *change);
/* Forget the steps of this run, and begin again under the same id with this input; for loops that
 * would take more than 10,000 steps. What was done is final. Signals that were not read and
 * published values stay. */
PAWL_API PAWL_MUST_USE int pawl_restart(struct pawl_call *c, struct pawl_data input);

/* Name the version of the handlers that the module registers after this: 1 to 50 letters, digits,
 * "_", "-", "." and ":". A run remembers with which one it began, and with pin_versions (struct
 * pawl_options) stays with it. The handlers of one type have one version, or pawl_start() refuses
 * (INVALID). */
PAWL_API enum pawl_status pawl_module_version(struct pawl_module *m, const char *version);

/* Send a run a signal. The same key (may be NULL) is one signal. NOT_FOUND; GONE; STATE: it has
 * ended; FULL: 10,000 are unread; CONFLICT: the key was used for another one. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_signal(struct pawl *p, const char *id,
                                                    const char *name, struct pawl_data value,
                                                    const char *key, struct pawl_err *err);

enum { PAWL_NO_UNDO = 1 };
/* Cancel a run: it undoes what it did, and ends `cancelled`. A run that has failed and has steps
 * that are not undone begins to undo them. With PAWL_NO_UNDO it ends at once, and a run whose
 * undoing failed need not be kept any more. *out_state (may be NULL): PROCESSING while it undoes.
 * NOT_FOUND; GONE; STATE: it has ended, and nothing is left to undo. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_workflow_cancel(struct pawl *p, const char *id,
                                                             unsigned flags,
                                                             enum pawl_state *out_state,
                                                             struct pawl_err *err);
/* Go on with a run that has ended without completing; `from` (may be NULL) is the stored name of
 * the step from which on results are forgotten. NOT_FOUND; GONE; STATE. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_workflow_retry(struct pawl *p, const char *id,
                                                            const char *from, struct pawl_err *err);
/* Begin a new run with the results of another one's steps before `from`, which are final there.
 * new_id NULL: one is made. out_id (may be NULL) gets it. NOT_FOUND; GONE; STATE; CONFLICT. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_workflow_fork(struct pawl *p, const char *id,
                                                           const char *from, const char *new_id,
                                                           char out_id[256], struct pawl_err *err);

/* ---- SQL in the call's own transaction ------------------------------------------------------- */

enum pawl_value_kind { PAWL_V_NULL, PAWL_V_INT, PAWL_V_REAL, PAWL_V_TEXT, PAWL_V_BLOB };
struct pawl_value {
    enum pawl_value_kind kind;
    int64_t i;
    double r;
    const char *data; /* TEXT and BLOB; in results also ended with NUL */
    size_t len;
};
struct pawl_rows {
    size_t n, columns;
    const struct pawl_value *v; /* n * columns, row by row */
    int64_t changed;            /* rows that an INSERT, UPDATE or DELETE changed */
};

/* Run one statement with `?` parameters on the application's own tables. The first one opens the
 * call's transaction; it commits with a reply and is rolled back by every other ending. After an
 * error every further statement fails, and a reply becomes an error. rows (may be NULL) lives until
 * the attempt ends, at most 10,000 rows. On SQLite the transaction holds the only write lock: it
 * may last 1 s from its first statement; then it is rolled back and the attempt has failed. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_sql(struct pawl_call *c, const char *sql,
                                                 const struct pawl_value *params, size_t n_params,
                                                 const struct pawl_rows **rows,
                                                 struct pawl_err *err);

/* ---- Running the handlers -------------------------------------------------------------------- */

struct pawl_workers {
    size_t size;
    int slots;                 /* handlers that run at the same time; default 16, at most 1024 */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
    const char *const *has; /* capabilities of this process, at most 64: it takes only calls that
                               need no others */
    size_t n_has;
};
#define PAWL_WORKERS_INIT .size = sizeof(struct pawl_workers)

/* Start to run the registered handlers, on threads of the library. workers may be NULL. Calls that
 * a former process of this node name held are reclaimed first. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_start(struct pawl *p,
                                                   const struct pawl_workers *workers,
                                                   struct pawl_err *err);

/* Stop claiming, wait up to grace_us for handlers that run, and release the other calls uncounted.
 * Returns when no handler runs, or BUSY when some still run after the grace: their leases are
 * released, their results are void, and their threads end when they return. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_stop(struct pawl *p, int64_t grace_us,
                                                  struct pawl_err *err);

/* Counters since pawl_open(). */
struct pawl_stats {
    size_t size;
    int64_t accepted, duplicates, claimed, completed, failed_tries, ended, lost, commits, repeats;
    int64_t queue_depth, running, waiting, hung; /* now */
};
#define PAWL_STATS_INIT .size = sizeof(struct pawl_stats)
/* Read the counters. */
PAWL_API void pawl_stats(struct pawl *p, struct pawl_stats *out);

/* Set a function that is called once, with one line, just before the library aborts because a CHECK
 * of durable truth failed. Process-wide; NULL removes it. It must not call the library. */
PAWL_API void pawl_on_panic(void (*told)(const char *line));

#ifdef __cplusplus
}
#endif
#endif
