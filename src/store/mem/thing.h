/*
 * thing.h - the things in the in-memory database (calls, leases, lanes, queues, nodes, keys,
 * objects), and the log that can undo every change to them.
 *
 * Used under the database's mutex. To change a thing: undo_save(), take it out of its indexes,
 * change it, put it back. Only undo_save() can fail.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_THING_H
#define STORE_MEM_THING_H

#include "base/ident.h"
#include "base/limits.h"
#include "model/call.h"
#include "store/mem/table.h"
#include "store/mem/tree.h"
#include "store/op.h"

struct mem_db;

enum thing_kind {
    THING_CALL,
    THING_LEASE,
    THING_LANE,
    THING_QUEUE,
    THING_NODE,
    THING_LEADER,
    THING_KEY,
    THING_OBJECT
};

/* Every thing begins with this. */
struct thing {
    enum thing_kind kind;
    bool present;  /* it is in its indexes; if not, it is freed once no undo record names it */
    int undo_refs; /* undo records that name it */
};

struct queue {
    struct thing thing;
    struct table_node by_name;
    bool paused; /* the only member that changes */
    char name[]; /* the bytes of by_name.name */
};

/* A set (queue, type, needs): a claim looks only into the lanes it serves. */
struct lane {
    struct thing thing;
    struct table_node by_name; /* queue, NUL, type, and each need after a NUL: names hold no control
                                  characters */
    int number;
    struct queue *queue;
    struct bytes type; /* inside name, as needs are */
    struct bytes needs[NEEDS_MAX];
    size_t n_needs;
    int64_t calls;    /* kept by thing_link() and thing_unlink(): those that are not GONE */
    int64_t empty_us; /* the only member that changes: when gc first found it without calls; 0: gc
                         has not */
    char name[];
};

struct mem_call;

/* A key; it exists as long as it has a call or an object. */
struct mem_key {
    struct thing thing;
    struct table_node by_name;
    /* Indexes: thing_link() and thing_unlink() keep them in step with the key's calls and objects.
     */
    struct tree line;    /* pos: calls that have joined and not ended; the held ones are first */
    struct tree delayed; /* seq: calls that have not joined */
    int64_t calls;       /* all that are not GONE */
    int64_t held, objects;
    struct mem_call *offer, *blocker; /* NULL: none */
    struct key_state {
        int64_t last_no;  /* the last key_no given to a call */
        int64_t ended_us; /* when a held call of the key last ended; 0: none has */
    } now;
    char name[];
};

/* The state of (type, key). It never changes: a new state is a new thing. */
struct mem_object {
    struct thing thing;
    struct table_node by_name; /* type, NUL, key */
    struct mem_key *key;
    struct payload state; /* inside text */
    int64_t version, updated_us;
    char text[];
};

/* Memory that belongs to a call and does not change once it is written. */
struct blob {
    struct blob *older;
    _Alignas(16) char data[];
};

/* How a call ended. Lives in a blob. */
struct outcome {
    enum pawl_state state;
    struct payload result;
    struct bytes error, node;
    struct token token; /* none: it was not ended by its owner */
    int64_t serial;     /* of its lease: a token may be used again once its lease is gone */
    int64_t claimed_us, started_us, finished_us;
    int64_t keep_until_us; /* 0: it blocks its key */
};

/* A row of `attempt`. Lives in a blob. */
struct attempt_row {
    struct attempt_row *older;
    int no, attempt_no;
    int how; /* enum ending; 0: the outcome of a call that was retried */
    enum pawl_state state;
    struct bytes error, node;
    struct token token;
    int64_t started_us, finished_us;
};

struct mem_lease {
    struct thing thing;
    const struct mem_db *db; /* its database */
    struct token token;
    int64_t serial;
    int width;                       /* how many of its calls run at once; 0: all of them */
    struct bytes node, boot, worker; /* inside text */
    int64_t claimed_us;
    struct tree_node by_token, by_until;
    struct lease_state {
        int64_t until_us; /* 0: it lives as long as its node beats */
        int named;        /* calls on its list, ended ones included */
    } now;
    char text[];
};

enum place {
    PLACE_READY,   /* pending, and can be claimed: without a key, or on offer */
    PLACE_LINE,    /* pending, joined its key's line, not on offer */
    PLACE_DELAYED, /* pending, has a key and has not joined */
    PLACE_HELD,    /* a lease holds it, without an outcome: processing */
    PLACE_ENDED,   /* it has an outcome */
    PLACE_GONE,    /* it is a tombstone */
};

struct mem_call {
    struct thing thing;
    int64_t seq;
    struct bytes id; /* inside id_text */
    unsigned char fingerprint[FINGERPRINT_LEN];
    int64_t created_us;
    struct call_spec spec; /* its strings are in blobs: it must not be read once the call is GONE */
    uint64_t seen;         /* the last pass (db->finishes) over a finish that names the call */
    uint64_t handed;       /* the last pass that handed it back behind another call */
    struct table_node by_id;
    struct tree_node by_place, by_expiry, by_line;
    struct stand {
        enum place place;
        enum pawl_state state;
        struct lane *lane;   /* NULL: GONE */
        struct mem_key *key; /* NULL: none, or GONE */
        int64_t pos, key_no; /* its place in the line, its number; 0: none yet */
        bool blocks;         /* ENDED, and blocks its key */
        int priority;
        int64_t run_at_us;     /* when it is due */
        int64_t own_run_at_us; /* as accepted or moved, without retries; shown once it has ended */
        int64_t expires_us;    /* 0: never, or no longer */
        struct attempt_counts counts;
        struct mem_lease *lease; /* HELD */
        bool cancel_requested;
        const struct outcome *outcome; /* ENDED */
        struct attempt_row *newest_attempt;
        int64_t finished_us, forget_us; /* GONE */
        struct blob *blobs;             /* owned, newest first */
    } now;
    char id_text[];
};

struct mem_node {
    struct thing thing;
    struct table_node by_name;
    struct bytes name, boot, host, version, address, roles, queues, has; /* inside text */
    int64_t started_us;
    struct node_stand {
        bool dead, drain;
        enum node_state state;
        int slots, busy;
        int64_t beats, beat_us;
        int64_t connections, cpu_milli, memory;
    } now;
    char text[];
};

/* A role that one node at a time holds. Part of struct mem_db, never added nor dropped. */
struct mem_leader {
    struct thing thing;
    const char *role;
    struct leader_stand {
        char node[256], boot[64];
        int64_t epoch, acquired_us, until_us; /* until_us 0: the role is free */
    } now;
};

/* ---- The undo log ---------------------------------------------------------------------------- */

/* What a thing was before one change. */
struct undo_record {
    struct thing *thing;
    bool was_present;
    union {
        struct stand call;
        struct lease_state lease;
        struct node_stand node;
        struct leader_stand leader;
        struct key_state key;
        bool paused;
        int64_t empty_us;
    } was;
    struct blob *trash; /* freed when the change is committed */
};

struct undo {
    struct undo_record *v; /* owned */
    size_t n, cap;
};

/* A point in the log, and the last numbers given out by then. */
struct undo_mark {
    size_t n;
    int64_t last_seq, last_version;
    int last_lane;
};

/* Save what t is now, before a change. False without memory; then nothing has changed. */
MUST_USE bool undo_save(struct mem_db *db, struct thing *t);
/* The present end of the log. */
struct undo_mark undo_mark(const struct mem_db *db);
/* Undo every change since the mark. Cannot fail. */
void undo_to(struct mem_db *db, struct undo_mark mark);
/* Commit: empty the log, and free the things and blobs that were kept for it. */
void undo_forget(struct mem_db *db);

/* Add a new thing (not present, indexes zeroed) to the database. False without memory; the thing
 * has been freed then. */
MUST_USE bool thing_add(struct mem_db *db, struct thing *t);
/* Remove a thing from the database. False without memory; then nothing has changed. */
MUST_USE bool thing_drop(struct mem_db *db, struct thing *t);
/* Take it out of the indexes in which it is, according to what it is now. */
void thing_unlink(struct mem_db *db, struct thing *t);
/* Put it into the indexes in which it belongs, according to what it is now. */
void thing_link(struct mem_db *db, struct thing *t);
/* Free the thing and what it owns. */
void thing_free(struct thing *t);

/* Zeroed memory that lives until the call is GONE; NULL without memory. The caller has called
 * undo_save() for the call. */
MUST_USE void *call_blob(struct mem_call *c, size_t size);
/* Copy `in` into such memory; absent bytes stay absent. False without memory. */
MUST_USE bool call_keep(struct mem_call *c, struct bytes in, struct bytes *out);

#endif
