/*
 * pawl.h - durable execution on the database you already run.
 *
 * Hand Pawl a call; it writes it down, runs it, and remembers how it ended. This header is the
 * whole public face of libpawl: plain C11, opaque handles, errors as values, nothing calls exit().
 *
 * The promises, in the words the documentation uses and the tests prove:
 *   1. Accepted means stored: pawl_submit() returns after the commit, with full fsync.
 *   2. At most one committed effect per id: outcome, state, sent calls and the handler's own SQL
 *      commit in one transaction. Effects outside the database are at-least-once; give the other
 *      side pawl_call_id() and pawl_call_try() so that it can refuse a duplicate.
 *   3. A duplicate gets the first one's answer, without a write. The same id with other content is
 *      PAWL_CONFLICT.
 *   4. One at a time, in order, per key: a call sees the state its predecessor left.
 *   5. A stale owner can change nothing: every write of an owner names its lease.
 *   6. Recovery needs no traffic.
 *   7. Bad work cannot block good work.
 *   8. One clock for everything stored: the database's.
 *
 * Threads: a `struct pawl *` may be used by any number of threads at once unless a function says
 * otherwise. A `struct pawl_call *` belongs to the handler it was given to, on that thread, until
 * the handler returns. Strings are UTF-8; names are 1 to 255 bytes without control characters.
 * Times are microseconds since 1970 UTC, durations are microseconds; 0 means "the default" in every
 * option unless it says otherwise.
 *
 * Structs that carry a `size` begin with it: set it to sizeof the struct (the PAWL_..._INIT macros
 * do) so that a program built against an older header keeps working with a newer library.
 *
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

/* ---- Endings --------------------------------------------------------------------------------- */

/*   name          http  exit  retry     what the caller should understand */
#define PAWL_STATUS_MAP(X)                                                                         \
    X(OK, 200, 0, NEVER, "done")                                                                   \
    X(INVALID, 400, 2, NEVER, "the request breaks the contract")                                   \
    X(UNAUTHORIZED, 401, 11, NEVER, "no token, or an unknown one")                                 \
    X(FORBIDDEN, 403, 12, NEVER, "this token may not do that")                                     \
    X(NOT_FOUND, 404, 3, NEVER, "no such call, key, object or node")                               \
    X(METHOD, 405, 2, NEVER, "this path does not take that method")                                \
    X(TIMEOUT, 408, 6, SOON, "the request did not arrive in time")                                 \
    X(CONFLICT, 409, 10, NEVER, "this id already means something else")                            \
    X(STATE, 409, 13, NEVER, "not possible in its present state")                                  \
    X(LOST_LEASE, 409, 4, NEVER, "another worker owns this try now")                               \
    X(GONE, 410, 15, NEVER, "ended and no longer kept: retention, or archived")                    \
    X(STALE, 412, 16, NEVER, "the version it was based on is no longer the present one")           \
    X(TOO_LARGE, 413, 17, NEVER, "larger than its limit; nothing was stored")                      \
    X(MEDIA, 415, 2, NEVER, "a content type that is not understood")                               \
    X(FULL, 429, 5, LATER, "a limit was reached; nothing was stored")                              \
    X(BROKEN, 500, 9, NEVER, "stored data failed its own check")                                   \
    X(BUSY, 503, 6, SOON, "the database refused for the moment; nothing was stored")               \
    X(NO_MEMORY, 503, 8, LATER, "an allocation failed; nothing was stored")                        \
    X(UNKNOWN, 504, 7, READBACK, "the commit was sent and its answer was lost; repeat it")

#define PAWL_STATUS_ENUM(name, http, exit, retry, text) PAWL_##name,
enum pawl_status { PAWL_STATUS_MAP(PAWL_STATUS_ENUM) PAWL_STATUS_COUNT };
#undef PAWL_STATUS_ENUM

/* What went wrong, as one sentence that names the thing. Every function that can fail takes one
 * last; NULL is allowed. It means something only when the function did not return PAWL_OK. */
struct pawl_err {
    enum pawl_status status;
    int native;       /* the engine's own error number, 0 when there is none */
    char sqlstate[6]; /* "" when there is none */
    char text[512];
};

/* The name of a status as the contract spells it ("CONFLICT"); "?" for a number that is none. */
PAWL_API const char *pawl_status_name(enum pawl_status status);

/* ---- A call ---------------------------------------------------------------------------------- */

enum pawl_state {
    PAWL_PENDING = 1,     /* accepted, not running */
    PAWL_PROCESSING = 2,  /* held by a lease */
    PAWL_COMPLETED = 3,   /* the result is stored */
    PAWL_FAILED = 4,      /* the handler said never again, or its only try failed */
    PAWL_DEAD_LETTER = 5, /* its tries are used up */
    PAWL_CANCELLED = 6,   /* ended before an outcome, because a client asked */
    PAWL_EXPIRED = 7      /* ended before an outcome, because its time had passed */
};

/* "pending", "completed", ...; "?" for a number that is none. */
PAWL_API const char *pawl_state_name(enum pawl_state state);
/* True for the five states that end a call. */
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

/* A JSON text that lies in a C string: pawl_text(line). The string is borrowed, not copied; NULL
 * makes PAWL_NOTHING. */
PAWL_API struct pawl_data pawl_text(const char *json);

/* The same without a call, for a literal: PAWL_TEXT("{\"to\":1}"). Also takes a char array that its
 * text fills to the last byte. A pointer does not compile, because sizeof knows nothing of what it
 * points at: that is what pawl_text() is for. */
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
/* A type of one byte; it does not compile when s is no array of char. */
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

/* What a call with a key does to its line when it ends `failed` or `dead_letter`: the next one
 * runs, or no call of the key runs until pawl_unblock(). */
enum pawl_on_dead { PAWL_ON_DEAD_SKIP = 0, PAWL_ON_DEAD_BLOCK = 1 };

/* A call as it is submitted. Only `type` is required; NULL and 0 mean the default. */
struct pawl_spec {
    size_t size;
    const char *id;         /* NULL: the library makes a UUIDv7 */
    const char *type;       /* who serves it */
    const char *method;     /* default "run" */
    const char *key;        /* calls of one key run one at a time, in order; NULL: none */
    const char *queue;      /* default "default" */
    struct pawl_data input; /* at most 1 MiB */
    int priority;           /* -1000..1000, higher first */
    int max_attempts;       /* default 3; tries that may end in an error or timeout */
    int max_lost;           /* default 5; tries whose process may die */
    int64_t delay_us;       /* run no earlier than now + delay; or: */
    int64_t run_at_us;      /* run no earlier than this */
    int64_t expires_in_us;  /* if it has not begun by now + this it ends `expired`; or: */
    int64_t expires_at_us;
    int64_t timeout_us;      /* how long one try may take; default 60 s */
    int64_t keep_us;         /* how long it is kept after its end; 0: the `retention` setting */
    int64_t backoff_base_us; /* the n-th error is retried after base * factor^(n-1); default 1 s */
    int64_t backoff_max_us;  /* but never later than this; default 300 s */
    double backoff_factor;   /* default 2 */
    double backoff_jitter;   /* give or take this share; default 0.1; below 0: none */
    enum pawl_on_dead on_dead; /* with a key: does it hold its key when it fails for good? */
    const char *caller, *parent, *traceparent; /* who asked, under which call, in which trace */
    const struct pawl_tag *tags;
    size_t n_tags;
};
#define PAWL_SPEC_INIT .size = sizeof(struct pawl_spec)

/* A call as it is shown. Borrowed strings live as long as the thing that holds this struct. Absent
 * text is NULL, an absent time 0. */
struct pawl_view {
    size_t size;
    int64_t seq;
    const char *id, *type, *method, *key, *queue;
    enum pawl_state state;
    const char *waiting_for; /* pending only: "time", "retry", "key", "paused", "limit", "worker" */
    bool cancel_requested;
    bool duplicate; /* this submit stored nothing: the id was known */
    struct pawl_data input, result;
    const char *error; /* the last try's, also while it waits for its retry; NULL once completed */
    int priority, attempts, lost, redrives, max_attempts, max_lost;
    int64_t timeout_us;
    const char *node, *caller, *client, *parent, *traceparent;
    const struct pawl_tag *tags;
    size_t n_tags;
    int64_t created_at_us, run_at_us, claimed_at_us, started_at_us, finished_at_us;
    int64_t expires_at_us, keep_until_us;
    int64_t key_no;   /* its number in its key, from 1, in the order they run; 0: not yet */
    int64_t position; /* its place in its key's line: 0 while it runs, 1 is next; -1: in no line */
};

/* ---- Opening and closing --------------------------------------------------------------------- */

struct pawl;

struct pawl_options {
    size_t size;
    const char *db;     /* "sqlite:PATH", "postgres://...", "mysql://..." or "mem:NAME"; NULL:
                           $PAWL_DB, else sqlite:pawl.db */
    const char *schema; /* default "pawl": the schema on PostgreSQL, elsewhere the prefix of every
                           table */
    const char *node;   /* this process's name in the database; default: the host's name and eight
                           hex digits that tell machine, database and working folder apart. A
                           process that starts workers replaces one of the same name on another
                           machine; on this one it is refused (STATE), or gets a number behind a
                           default name */
    const char *client; /* stored with every call submitted through this handle; may be NULL */
    int pool_size;      /* connections for reading, default 4; on database servers up to as many
                           more, 64 at most, for the transactions of handlers */
    int64_t heartbeat_interval_us, heartbeat_grace_us; /* 2 s, 10 s */
    int64_t reclaim_interval_us;                       /* 1 s */
    int64_t retention_us, remember_us;                 /* 7 days, 30 days more */
    int64_t gc_interval_us; /* how often ended calls past their time are removed; 60 s; below 0:
                               only by pawl_gc() */
    bool no_migrate;        /* refuse to open an older schema instead of bringing it up to date */
    bool paused;            /* start no work even after pawl_start() */
    bool fail_lost; /* a call whose process died ends `failed` instead of being tried again */
    int64_t pool_timeout_us;          /* the longest wait for a connection for reading; 30 s */
    int64_t poll_min_us, poll_max_us; /* how often to look for what other processes did; 5 ms when
                                         there was something, to 250 ms when there was not */
    int64_t max_pending_key;          /* calls that may wait on one key: more are FULL; 100,000 */
    int64_t pool_lifetime_us; /* a connection to a server older than that is replaced between two
                                 uses; 30 minutes */
};
#define PAWL_OPTIONS_INIT .size = sizeof(struct pawl_options)

/* Open the database, bring its schema up to date and start the store threads. options may be NULL.
 * The caller owns *out and ends it with pawl_close(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_open(const struct pawl_options *options,
                                                  struct pawl **out, struct pawl_err *err);

/* Stop the workers as pawl_stop() does with no grace, answer nobody new, close. Accepts NULL. No
 * other thread may still be inside a function of this handle. */
PAWL_API void pawl_close(struct pawl *p);

/* ---- Submitting and waiting ------------------------------------------------------------------ */

/* What a submit says of one call. */
struct pawl_receipt {
    enum pawl_status status; /* OK (new or duplicate), CONFLICT, GONE, FULL, INVALID, TOO_LARGE */
    bool duplicate;
    enum pawl_state state; /* of the call that has this id */
    int64_t seq;
    char id[256];
    char error[200]; /* one sentence when status is not OK */
};

enum { PAWL_ATOMIC = 1 }; /* all of the batch or none of it */

/* Accept n calls (1..10,000) in one commit. out[i] answers v[i]. Returns PAWL_OK when the batch was
 * processed, also when single receipts say otherwise; with PAWL_ATOMIC the first refusal is
 * returned and nothing was stored. UNKNOWN: the commit's answer was lost; submit the same calls
 * again with the ids in their receipts. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_submit(struct pawl *p, const struct pawl_spec *v,
                                                    size_t n, unsigned flags,
                                                    struct pawl_receipt *out, struct pawl_err *err);

/* One call as it was at one moment. The holder owns it and ends it with pawl_shown_free(). */
struct pawl_shown;
PAWL_API const struct pawl_view *pawl_shown_view(const struct pawl_shown *shown);
PAWL_API void pawl_shown_free(struct pawl_shown *shown);

/* Submit one call and wait until it ends or wait_us (at most 300 s) has passed; then *out shows it
 * as it is, so look at its state. Giving up changes nothing about the call. UNKNOWN: the commit's
 * answer was lost; err->text names the id, also one that was made here: submit the same call again
 * with it. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_submit_wait(struct pawl *p,
                                                         const struct pawl_spec *spec,
                                                         int64_t wait_us, struct pawl_shown **out,
                                                         struct pawl_err *err);

/* The call with this id as it is; with wait_us above 0, when it has ended or that time has passed.
 * NOT_FOUND; GONE: it ended and is no longer kept, since its retention has passed or it was
 * archived, which the message says (`pawl get --archived` reads it then). BUSY: the database does
 * not answer; a caller that waits is told so only when its time has passed. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_get(struct pawl *p, const char *id, int64_t wait_us,
                                                 struct pawl_shown **out, struct pawl_err *err);

/* Which calls to list: newest first, every filter given must hold. */
struct pawl_query {
    size_t size;
    enum pawl_state state; /* 0: all */
    const char *queue, *type, *method, *key, *parent, *caller;
    const char *tag_name, *tag_value;
    int64_t since_us, until_us; /* created_at in [since, until) */
    int limit;                  /* 1..1000, default 100 */
    const char *cursor;         /* the `next` of the page before */
    bool with_input, with_result;
};
#define PAWL_QUERY_INIT .size = sizeof(struct pawl_query)

/* A page looks at a bounded number of rows: it may be short, even empty, while `next` is not NULL.
 */
struct pawl_page {
    const struct pawl_view *calls;
    size_t n;
    const char *next; /* NULL: that was the last page */
};
PAWL_API PAWL_MUST_USE enum pawl_status pawl_list(struct pawl *p, const struct pawl_query *q,
                                                  struct pawl_page **out, struct pawl_err *err);
PAWL_API void pawl_page_free(struct pawl_page *page);

/* The tries of a call that did not succeed, oldest first, the last 100. */
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
PAWL_API PAWL_MUST_USE enum pawl_status pawl_attempts(struct pawl *p, const char *id,
                                                      struct pawl_attempts **out,
                                                      struct pawl_err *err);
PAWL_API void pawl_attempts_free(struct pawl_attempts *a);

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Cancel. *out_state is CANCELLED (it will never run), or PROCESSING: the cancel request is
 * stored, its worker is told, and whichever comes first wins. STATE: it has ended otherwise. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_cancel(struct pawl *p, const char *id,
                                                    enum pawl_state *out_state,
                                                    struct pawl_err *err);

/* Run an ended call that did not complete once more, with fresh tries; its former outcome moves to
 * the history. STATE: it completed, or has not ended. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_redrive(struct pawl *p, const char *id,
                                                     struct pawl_err *err);

/* Change when, how urgently or where a pending call runs. run_at_us 0, queue NULL and a priority of
 * PAWL_SAME leave that as it is. STATE: it is not pending. */
enum { PAWL_SAME = INT32_MIN };
PAWL_API PAWL_MUST_USE enum pawl_status pawl_move(struct pawl *p, const char *id, int64_t run_at_us,
                                                  int priority, const char *queue,
                                                  struct pawl_err *err);

/* Stop or start claiming from a queue, for everybody, until changed back. Accepting goes on. */
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
PAWL_API PAWL_MUST_USE enum pawl_status pawl_queues(struct pawl *p, struct pawl_queues **out,
                                                    struct pawl_err *err);
PAWL_API void pawl_queues_free(struct pawl_queues *q);

/* Remove what is past its time, at most `max` calls, in small batches: never a call that has not
 * ended. *out_removed: calls whose input and result are gone; *out_forgotten: ids that are new
 * again. Both may be NULL. The library does the same by itself every gc_interval. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_gc(struct pawl *p, int64_t max, int64_t *out_removed,
                                                int64_t *out_forgotten, struct pawl_err *err);

/* ---- Objects and keys ------------------------------------------------------------------------ */

/* An object is a type and a key; its calls are the calls of that type and key, and it keeps one
 * state. Objects of several types may share a key; their calls then stand in one line. */
struct pawl_object {
    const char *type, *key;
    struct pawl_data state;
    int64_t version; /* rises with every change, and never comes back */
    int64_t updated_at_us;
    int64_t pending; /* its calls that wait, counted up to 100,000 */
};
/* What it keeps. NOT_FOUND: nothing. End *out with pawl_object_free(). */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_load(struct pawl *p, const char *type,
                                                         const char *key, struct pawl_object **out,
                                                         struct pawl_err *err);
PAWL_API void pawl_object_free(struct pawl_object *object);

struct pawl_object_change {
    size_t size;
    const char *type, *key;
    struct pawl_data state; /* save: JSON or bytes, at most 1 MiB */
    int64_t if_version;     /* only while it has this version; 0: whatever it has */
    int64_t wait_us;        /* how long to wait for the key's turn; 5 s; below 0: not at all */
    bool cancel;            /* delete: end its pending calls `cancelled` in the same commit */
};
#define PAWL_OBJECT_CHANGE_INIT .size = sizeof(struct pawl_object_change)

/* Change or delete a state from outside its calls, between two of them. BUSY: a call of the key ran
 * for all that time. STALE: it has another version; *out_version is what it has. Delete: STATE
 * while its calls are pending, unless they are to be cancelled; NOT_FOUND. out_version and
 * out_cancelled may be NULL. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_save(struct pawl *p,
                                                         const struct pawl_object_change *change,
                                                         int64_t *out_version,
                                                         struct pawl_err *err);
PAWL_API PAWL_MUST_USE enum pawl_status pawl_object_delete(struct pawl *p,
                                                           const struct pawl_object_change *change,
                                                           int64_t *out_cancelled,
                                                           struct pawl_err *err);

/* The calls of an object that have not begun, in the order they will run; delayed ones come last.
 * At most limit (1..1000), with inputs; `next` is always NULL. type may be NULL: all of the key. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_pending(struct pawl *p, const char *type,
                                                     const char *key, int limit,
                                                     struct pawl_page **out, struct pawl_err *err);

/* Keys on which something waits, runs or is blocked, by name. */
struct pawl_key_query {
    size_t size;
    bool blocked;      /* only those that an ended call blocks */
    int limit;         /* 1..1000, default 100 */
    const char *after; /* the `next` of the page before */
};
#define PAWL_KEY_QUERY_INIT .size = sizeof(struct pawl_key_query)
struct pawl_key {
    const char *key;
    const char *head; /* the id of the call that runs, blocks, or is next */
    enum pawl_state head_state;
    const char *waiting_for; /* what the head waits for; NULL: nothing */
    bool blocked;
    int64_t pending;  /* calls that wait */
    int64_t since_us; /* blocked: since when; else when the head was accepted */
};
struct pawl_keys {
    const struct pawl_key *v;
    size_t n;
    const char *next; /* NULL: that was the last page, though a page may be short */
};
PAWL_API PAWL_MUST_USE enum pawl_status pawl_keys(struct pawl *p, const struct pawl_key_query *q,
                                                  struct pawl_keys **out, struct pawl_err *err);
PAWL_API void pawl_keys_free(struct pawl_keys *keys);

/* Decide about a key that is blocked: run the call that blocks it once more, or let the next one
 * run. STATE: it is not blocked. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_unblock(struct pawl *p, const char *key, bool retry,
                                                     struct pawl_err *err);

/* ---- Working by hand: claim, extend, finish -------------------------------------------------- */

struct pawl_claim {
    size_t size;
    const char *worker;        /* shown as the node of what it holds */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
    const char *const *types; /* n_types 0: all */
    size_t n_types;
    int max;             /* 1..1000, default 1 */
    int64_t wait_us;     /* how long to wait for work; default 0 */
    int64_t lease_us;    /* default 30 s, 1 s..1 h: after it others get the calls */
    const char *repeats; /* the lease token of a claim whose answer was lost, else NULL */
};
#define PAWL_CLAIM_INIT .size = sizeof(struct pawl_claim)

/* What an object (type, key) keeps. */
struct pawl_state_of {
    struct pawl_data state; /* PAWL_NOTHING: nothing */
    int64_t version;        /* 0 then */
};

struct pawl_lease {
    char token[40]; /* "" when n is 0 */
    int64_t until_us;
    const struct pawl_view *calls; /* best first; the number of the try is attempts + lost + 1 */
    size_t n;
    const struct pawl_state_of *states; /* n: states[i] is what the object of calls[i] keeps */
};
/* Take up to max due calls under one lease, at most one of a key. Fewer, or none, is normal. A call
 * whose try was lost before comes alone. End *out with pawl_lease_free(), which does not end the
 * lease itself. UNKNOWN: the commit's answer has not come; claim again. What it took is handed back
 * uncounted when the answer comes, or when the lease ends, counted as lost. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_claim(struct pawl *p, const struct pawl_claim *claim,
                                                   struct pawl_lease **out, struct pawl_err *err);
PAWL_API void pawl_lease_free(struct pawl_lease *lease);

/* Move the lease's end to now + lease_us, or to when the last of its calls is past its timeout if
 * that comes first. Calls that are past their timeout end as such; the lease goes on with the
 * others. LOST_LEASE: it is over; stop, your results are void. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_extend(struct pawl *p, const char *token,
                                                    int64_t lease_us, int64_t *out_until_us,
                                                    struct pawl_err *err);

enum pawl_ending {
    PAWL_END_RESULT = 1,    /* completed */
    PAWL_END_ERROR = 2,     /* counts; tried again while max_attempts lasts */
    PAWL_END_TIMEOUT = 3,   /* as an error, of its own kind */
    PAWL_END_REFUSE = 4,    /* failed for good */
    PAWL_END_LATER = 5,     /* not now: again in retry_in_us, counts as nothing */
    PAWL_END_RELEASE = 6,   /* handed back untouched, counts as nothing */
    PAWL_END_CANCELLED = 7, /* stopped because it was asked to; else it counts as released */
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
    struct pawl_data state;       /* with RESULT, of a call with a key: what its object keeps from
                                     now on; PAWL_NOTHING: as it is */
    bool delete_state;            /* or: it keeps nothing */
};
#define PAWL_FINISH_INIT .size = sizeof(struct pawl_finish)

/* Finish some calls of a lease, all in one commit or none. out_states[i] answers v[i]; may be NULL.
 * The same finish sent again gets the same answer. LOST_LEASE: nothing was stored. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_finish(struct pawl *p, const char *token,
                                                    const struct pawl_finish *v, size_t n,
                                                    enum pawl_state *out_states,
                                                    struct pawl_err *err);

/* ---- Handlers -------------------------------------------------------------------------------- */

struct pawl_module;
struct pawl_call;

/* A handler runs one try of one call on a worker's thread. It ends by returning what one of
 * pawl_reply*, pawl_fail, pawl_refuse, pawl_later gave it; plain 0 is a reply of nothing, any other
 * number an error that is retried. It may be started again after a crash: what it does in the
 * database lands once, what it does outside may happen again. */
typedef int pawl_handler(struct pawl_call *c);

/* Serve TYPE.METHOD with this handler. Before pawl_start() only. A module remembers the first thing
 * that failed, and pawl_load() says it; a program looks at what it gets. */
PAWL_API enum pawl_status pawl_on(struct pawl_module *m, const char *type, const char *method,
                                  pawl_handler *handler);
/* One statement, run once at load in a transaction of its own, for CREATE TABLE IF NOT EXISTS and
 * its like: safe when several processes load at once. */
PAWL_API enum pawl_status pawl_prepare(struct pawl_module *m, const char *sql);

/* The module of the program itself, for programs that link libpawl. */
PAWL_API struct pawl_module *pawl_program(struct pawl *p);

/* Load a shared object whose source says PAWL_MODULE(m) { ... }. Before pawl_start() only. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_load(struct pawl *p, const char *path,
                                                  struct pawl_err *err);

#define PAWL_MODULE_ABI 1
#define PAWL_MODULE(m)                                                                             \
    PAWL_API extern const int pawl_module_abi;                                                     \
    const int pawl_module_abi = PAWL_MODULE_ABI;                                                   \
    PAWL_API void pawl_module_init(struct pawl_module *m);                                         \
    void pawl_module_init(struct pawl_module *m)

/* The call: what it is. Borrowed for the try. */
PAWL_API const char *pawl_call_id(const struct pawl_call *c);
PAWL_API const char *pawl_call_type(const struct pawl_call *c);
PAWL_API const char *pawl_call_method(const struct pawl_call *c);
PAWL_API const char *pawl_call_key(const struct pawl_call *c); /* NULL: it has none */
PAWL_API int pawl_call_try(const struct pawl_call *c);         /* attempts + lost + 1 */
PAWL_API const struct pawl_view *pawl_call_view(const struct pawl_call *c);
PAWL_API struct pawl_data pawl_input(const struct pawl_call *c);

/* Small readers of a JSON input. The first reads the whole input, the others a member of an object.
 * 0: found and of that kind; otherwise non-zero and *out is untouched. Text is copied and ended
 * with NUL, in memory that lives as long as the try. */
PAWL_API int pawl_input_int(struct pawl_call *c, int64_t *out);
PAWL_API int pawl_input_get_int(struct pawl_call *c, const char *member, int64_t *out);
PAWL_API int pawl_input_get_bool(struct pawl_call *c, const char *member, bool *out);
PAWL_API int pawl_input_get_text(struct pawl_call *c, const char *member, const char **out);
PAWL_API int pawl_input_get_json(struct pawl_call *c, const char *member, struct pawl_data *out);

/* Memory that lives until the try ends; NULL when the try's limit is reached. */
PAWL_API void *pawl_alloc(struct pawl_call *c, size_t size);

/* Answers. Each copies what it is given. `return pawl_reply_int(c, 5);` */
PAWL_API int pawl_reply(struct pawl_call *c, struct pawl_data result);
PAWL_API int pawl_reply_json(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
PAWL_API int pawl_reply_int(struct pawl_call *c, int64_t n);
PAWL_API int pawl_reply_text(struct pawl_call *c, const char *text); /* as a JSON string */
/* An error: counts, and is retried while max_attempts lasts. */
PAWL_API int pawl_fail(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Failed for good. */
PAWL_API int pawl_refuse(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
/* Not now: run again in delay_us, counts as nothing. */
PAWL_API int pawl_later(struct pawl_call *c, int64_t delay_us);

/* What the object (type, key) of a call with a key keeps: as the call before it left it, or as this
 * try has set it. PAWL_NOTHING: nothing, or the call has no key. The second reads a JSON number. */
PAWL_API struct pawl_data pawl_state(const struct pawl_call *c);
PAWL_API int64_t pawl_state_int(const struct pawl_call *c, int64_t otherwise);
/* Keep this from now on, at most 1 MiB, JSON or bytes; it is copied, and commits with a reply or
 * not at all. Non-zero when it cannot be: the call has no key, it is not JSON, or too large; then a
 * reply is an error that says so. PAWL_NOTHING deletes. */
PAWL_API int pawl_set_state(struct pawl_call *c, struct pawl_data state);
PAWL_API int pawl_set_state_json(struct pawl_call *c, const char *fmt, ...) PAWL_PRINTF(2, 3);
PAWL_API int pawl_set_state_int(struct pawl_call *c, int64_t n);
PAWL_API int pawl_delete_state(struct pawl_call *c);

/* Send a call that is accepted in the same commit as this one's completion, or not at all. Its id
 * defaults to {id}.{n}; its parent is this call. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_send(struct pawl_call *c, const struct pawl_spec *spec,
                                                  struct pawl_err *err);
/* The id of the n-th call sent so far, from 0; NULL beyond. */
PAWL_API const char *pawl_sent_id(const struct pawl_call *c, size_t n);

/* Submit a call and wait for its end from inside a handler. Its id defaults to {id}.ask.{n}, so
 * that a handler which is started again gets the same answer. The result in *out lives as long as
 * the try. A try that holds a transaction (pawl_sql) must not ask: PAWL_STATE. Nor may it ask for
 * its own key, or one that a call it was asked by holds: that would wait for itself for ever, and
 * is PAWL_STATE at once, with the calls named. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_ask(struct pawl_call *c, const struct pawl_spec *spec,
                                                 const struct pawl_view **out,
                                                 struct pawl_err *err);

/* How long this try may still take; 0 when its time is up. After that its answer is void. */
PAWL_API int64_t pawl_time_left_us(const struct pawl_call *c);
/* True once a client has asked to cancel, the attempt's time is up, or the process is stopping
 * hard. */
PAWL_API bool pawl_cancelled(const struct pawl_call *c);
/* Wait for that long, or until pawl_cancelled(). 0: the time passed; 1: cancelled. */
PAWL_API int pawl_sleep(struct pawl_call *c, int64_t us);

/* ---- SQL in the call's own transaction ------------------------------------------------------- */

enum pawl_value_kind { PAWL_V_NULL, PAWL_V_INT, PAWL_V_REAL, PAWL_V_TEXT, PAWL_V_BLOB };
struct pawl_value {
    enum pawl_value_kind kind;
    int64_t i;
    double r;
    const char *data; /* TEXT and BLOB; results are also ended with NUL */
    size_t len;
};
struct pawl_rows {
    size_t n, columns;
    const struct pawl_value *v; /* n * columns, row by row */
    int64_t changed;            /* rows an INSERT, UPDATE or DELETE touched */
};

/* Run one statement with `?` parameters on the application's own tables. The first one opens the
 * call's transaction; what it did commits with a reply, and is undone by every other ending. After
 * an error every further statement fails and a reply becomes an error. rows (may be NULL) lives as
 * long as the try, at most 10,000 rows. On SQLite the transaction holds the only write lock: it may
 * last 1 s from its first statement, then it is undone and the try has failed. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_sql(struct pawl_call *c, const char *sql,
                                                 const struct pawl_value *params, size_t n_params,
                                                 const struct pawl_rows **rows,
                                                 struct pawl_err *err);

/* ---- Running the handlers -------------------------------------------------------------------- */

struct pawl_workers {
    size_t size;
    int slots;                 /* handlers at a time; default 16, at most 1024 */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
};
#define PAWL_WORKERS_INIT .size = sizeof(struct pawl_workers)

/* Begin to run the handlers registered so far, on threads of the library's own. workers may be
 * NULL. What a former process of this node's name held is taken back first. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_start(struct pawl *p,
                                                   const struct pawl_workers *workers,
                                                   struct pawl_err *err);

/* Stop claiming, let what runs end within grace_us, hand the rest back uncounted. Returns when no
 * handler runs any more, or BUSY when some still do after the grace: their leases are given back
 * and whatever they return is void, and the threads end when they do. */
PAWL_API PAWL_MUST_USE enum pawl_status pawl_stop(struct pawl *p, int64_t grace_us,
                                                  struct pawl_err *err);

/* Figures since pawl_open(). */
struct pawl_stats {
    size_t size;
    int64_t accepted, duplicates, claimed, completed, failed_tries, ended, lost, commits, repeats;
    int64_t queue_depth, running, waiting, hung; /* now */
};
#define PAWL_STATS_INIT .size = sizeof(struct pawl_stats)
PAWL_API void pawl_stats(struct pawl *p, struct pawl_stats *out);

/* Called once, with one line, right before the library aborts because durable truth does not hold.
 * Process-wide; NULL takes it back. It must not call back into the library. */
PAWL_API void pawl_on_panic(void (*told)(const char *line));

#ifdef __cplusplus
}
#endif
#endif
