/*
 * thing.h - what the in-memory database is made of, and the log that can undo every change to it.
 *
 * Everything here is under the database's mutex. A thing is changed in three steps: undo_save(),
 * then take it out of its indexes, change it and put it back. Only the first step can fail.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MEM_THING_H
#define STORE_MEM_THING_H

#include "base/ident.h"
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
    bool present; /* in the indexes; one that is not is freed when no undo record names it */
    int undo_refs;
};

struct queue {
    struct thing thing;
    struct table_node by_name;
    bool paused; /* may change */
    char name[]; /* name_len bytes are by_name.name */
};

/* (queue, type): a claim looks only into the lanes it serves. */
struct lane {
    struct thing thing;
    struct table_node by_name; /* queue, NUL, type: names hold no control characters */
    int number;
    struct queue *queue;
    struct bytes type; /* inside name */
    char name[];
};

struct mem_call;

/* What is known of a key, as long as there is a call or an object of it. */
struct mem_key {
    struct thing thing;
    struct table_node by_name;
    /* Indexes: they follow from the calls and objects that have this key. */
    struct tree line;    /* pos: calls that have joined and not ended; those that are held first */
    struct tree delayed; /* seq: calls that have not joined */
    int64_t calls;       /* all that are not GONE */
    int64_t held, objects;
    struct mem_call *offer, *blocker; /* NULL: none */
    struct key_state {
        int64_t last_no;  /* given to a call */
        int64_t ended_us; /* when a call last ended that was held; 0: none has */
    } now;
    char name[];
};

/* The state of (type, key). Never changed: a new state is a new thing. */
struct mem_object {
    struct thing thing;
    struct table_node by_name; /* type, NUL, key */
    struct mem_key *key;
    struct payload state; /* inside text */
    int64_t version, updated_us;
    char text[];
};

/* A piece of memory that belongs to a call and never changes once it is written. */
struct blob {
    struct blob *older;
    _Alignas(16) char data[];
};

/* How a call ended. Lives in a blob. */
struct outcome {
    enum pawl_state state;
    struct payload result;
    struct bytes error, node;
    struct token token; /* none: no owner ended it */
    int64_t serial;     /* of its lease: a token may be used again once its lease is over */
    int64_t claimed_us, started_us, finished_us, keep_until_us; /* keep 0: it blocks its key */
};

/* A row of `attempt`. Lives in a blob. how 0: a former outcome. */
struct attempt_row {
    struct attempt_row *older;
    int no, attempt_no;
    int how; /* enum ending, or 0 */
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
    int width;                       /* so many of its calls run at once; 0: all of them */
    struct bytes node, boot, worker; /* inside text */
    int64_t claimed_us;
    struct tree_node by_token, by_until;
    struct lease_state {
        int64_t until_us; /* 0: lives as long as its node beats */
        int named;        /* calls on its list, ended ones included */
    } now;
    char text[];
};

enum place {
    PLACE_READY, /* pending, and can be claimed: without a key, or on offer */
    PLACE_LINE,  /* pending, joined its key's line, not on offer */
    PLACE_LATER, /* pending, has a key and has not joined */
    PLACE_HELD,  /* a lease without an outcome: processing */
    PLACE_ENDED, /* an outcome */
    PLACE_GONE,  /* a tombstone */
};

struct mem_call {
    struct thing thing;
    int64_t seq;
    struct bytes id; /* inside id_text */
    unsigned char fingerprint[FINGERPRINT_LEN];
    int64_t created_us;
    struct call_spec spec; /* strings in blobs: nothing of it may be read once it is GONE */
    uint64_t seen;         /* the last finish that named it */
    uint64_t handed;       /* the last finish that handed it back behind another */
    struct table_node by_id;
    struct tree_node by_place, by_expiry, by_line;
    struct stand {
        enum place place;
        enum pawl_state state;
        struct lane *lane;
        struct mem_key *key; /* NULL: none, or GONE */
        int64_t pos, key_no; /* its place in the line, its number; 0: none yet */
        bool blocks;         /* ENDED, and holds its key */
        int priority;
        int64_t run_at_us;     /* where it stands now */
        int64_t own_run_at_us; /* the call's own: shown once it has ended */
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
    struct bytes name, boot, host, version, address, roles, queues; /* inside text */
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

/* One of the roles that one node at a time has. Part of the database, never made nor dropped. */
struct mem_leader {
    struct thing thing;
    const char *role;
    struct leader_stand {
        char node[256], boot[64];
        int64_t epoch, acquired_us, until_us; /* until_us 0: nobody has it */
    } now;
};

/* ---- The undo log -----------------------------------------------------------------------------
 */

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
    } was;
    struct blob *trash; /* to be freed when the change stands */
};

struct undo {
    struct undo_record *v; /* owned */
    size_t n, cap;
};

/* How far the log had come, and the numbers given out by then. */
struct undo_mark {
    size_t n;
    int64_t last_seq, last_version;
    int last_lane;
};

/* Save what t is now. False without memory, and nothing has changed. */
MUST_USE bool undo_save(struct mem_db *db, struct thing *t);
struct undo_mark undo_mark(const struct mem_db *db);
/* Back to how it was then. Cannot fail. */
void undo_to(struct mem_db *db, struct undo_mark mark);
/* What was done stands: free what nobody needs any more. */
void undo_forget(struct mem_db *db);

/* Put a new thing (present false, zeroed indexes) into the database, or take one out. False without
 * memory; a new thing that could not be added has been freed. */
MUST_USE bool thing_add(struct mem_db *db, struct thing *t);
MUST_USE bool thing_drop(struct mem_db *db, struct thing *t);
/* Out of and into the indexes that follow from what it is now. */
void thing_unlink(struct mem_db *db, struct thing *t);
void thing_link(struct mem_db *db, struct thing *t);
void thing_free(struct thing *t);

/* Zeroed memory that lives as long as the call is not GONE. NULL without memory. The call has been
 * saved. */
MUST_USE void *call_blob(struct mem_call *c, size_t size);
/* A copy there. False without memory; absent in, absent out. */
MUST_USE bool call_keep(struct mem_call *c, struct bytes in, struct bytes *out);

#endif
