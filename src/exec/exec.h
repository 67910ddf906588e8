/*
 * exec.h - the machine as `lib` sees it: post writes, read, wait for ends, run handlers.
 *
 * One struct exec is one open database in one process: a store thread that commits, a keeper thread
 * that needs no traffic, connections for reading, and (after exec_start) worker threads. All
 * functions may be called from any thread unless they say otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/count.h"
#include "exec/failures.h"
#include "exec/haul.h"
#include "exec/job.h"
#include "exec/name.h"
#include "exec/pool.h"
#include "exec/registry.h"
#include "exec/waiters.h"
#include "store/store.h"

/* What exec_open() is told; strings are copied. Every number is set, none means "default". */
struct exec_conf {
    const char *url, *schema;
    const char *_Atomic node; /* NULL: a default (name.h); changes at most while entering */
    const struct world *world;
    int pool_size;
    int64_t heartbeat_interval_us, heartbeat_grace_us, reclaim_interval_us;
    int64_t retention_us, remember_us, gc_interval_us; /* gc_interval_us 0: never by itself */
    int64_t pool_timeout_us;          /* the longest wait for a connection for reading */
    int64_t pool_lifetime_us;         /* a connection older than that is replaced; 0: never */
    int64_t poll_min_us, poll_max_us; /* how often to look for what other processes did */
    int64_t key_pending_max;          /* calls that may wait on one key; 0: no bound */
    bool fail_lost;                   /* a lost try ends its call `failed` */
    bool no_migrate, paused;
};

/* Connections for reading: opened when first needed, borrowed one at a time. */
struct readers {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct store **idle; /* owned */
    int n_idle, n_open, max;
    int64_t wait_us; /* the longest wait for one before BUSY */
};

/* What the keeper remembers between its rounds. */
struct keeper;

/* Somebody with a loop of its own, who is told instead of waiting on a thread. */
struct epoch_watch {
    void (*moved)(struct epoch_watch *w); /* on whichever thread moved it; must not block */
};

/* Work may have come: counted, and those who claim by hand wait for the count to move. */
struct epoch {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t n;
    int waiting;
    struct epoch_watch *watch; /* borrowed; NULL: none */
    bool asked;                /* it wants to be told of the next move */
    int telling;               /* threads inside watch->moved */
};

/* Hints to and from other processes (ear.c); nothing of it runs on engines without them. */
struct ear {
    struct store *store; /* owned; the ear thread's alone */
    pthread_t thread;
    bool open, runs;
    int wake_fd; /* owned, while open */
    atomic_uint tell;
    atomic_bool hears, closed;
};

/* The heartbeat of engines on which many write at once (beat.c). */
struct beater {
    struct store *store; /* owned; the beat thread's alone */
    pthread_t thread;
    pthread_mutex_t lock; /* nudged, closed */
    pthread_cond_t wake;
    bool open, runs, nudged, closed;
};

/* What a node does, its roles in the registry: answer HTTP, run handlers, stand for the roles that
 * one at a time has. */
enum { DUTY_GATEWAY = 1, DUTY_WORKER = 2, DUTY_SCHEDULER = 4, DUTY_ALL = 7 };
/* The bit of a name; 0: there is no such role. */
unsigned duty_find(struct bytes name);

/* This process among the others (member.c). */
struct membership {
    pthread_mutex_t lock;
    /* Set when it enters, before anybody looks. */
    char *address, *roles_text, *queues; /* owned; NULL: nowhere; none; all */
    unsigned roles;
    int slots;
    atomic_int_least64_t connections; /* of HTTP clients */
    /* Under the lock. */
    bool joined;     /* it is in the registry, and beats */
    bool drain;      /* what the registry last said that it should do */
    uint64_t drains; /* how often that was decided here */
    int64_t sent_us; /* when the last beat that was stored was sent; monotonic */
    enum { CUT_NOT, CUT_TOLD, CUT_DONE } cut; /* too long ago: workers told to stop; taken from */
    char why[sizeof((struct pawl_err *)0)->text]; /* what refused the last beat; "": it was stored
                                                   */
    void (*replaced)(void *ctx);
    void *replaced_ctx;
    pthread_t thread; /* watches sent_us, and never asks the database anything */
    pthread_cond_t wake;
    bool runs, closed;
};

/* Roles that one node at a time has (lead.c). */
enum lead_role { LEAD_MAINTENANCE, LEAD_SCHEDULER, LEAD_COUNT };

/* Threads that commit beside the store thread, where the engine lets them (side.c). */
#define SIDE_MAX 64
struct side {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job *head, **end;
    struct store *first; /* owned until its thread takes it: no handler waits for a connection */
    pthread_t v[SIDE_MAX];
    int n, idle, max, waiting; /* max 0: there are none */
    bool closed;
};

/* Commits that have no answer (stall.c). */
struct under_way {
    struct store *store; /* borrowed, while it commits; NULL: it does not */
    struct job *jobs;    /* what it commits, linked by `next` */
    int64_t since_us;    /* told: when its COMMIT was sent; monotonic */
    bool told;           /* who waits for it heard UNKNOWN */
    bool counts;         /* nobody else's doing can hold it up: new writes are refused then. Else it
                            is a thread of side.c */
    struct under_way *next;
};
struct stall {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct under_way *all, writer, beat; /* one for each thread that commits */
    bool open, runs, closed, sleeping;
};

/* Groups of the store thread that the database refused (unwritable.c). */
struct unwritable {
    atomic_bool whole;             /* the last group was, whole */
    atomic_int_least64_t since_us; /* the first one since a row was changed; 0: none; monotonic */
    atomic_int_least64_t last_us;
    atomic_int_least64_t told_us; /* since when, once that was said; 0: not, or no longer */
    pthread_mutex_t lock;
    char text[sizeof((struct pawl_err *)0)->text]; /* under the lock: what the database said last */
};

struct exec {
    struct exec_conf conf; /* strings owned */
    char boot[UUID_TEXT_LEN + 1];
    struct exec_name *names; /* owned: conf.node, and those it was before */
    bool named;              /* the name was given, and is no other */
    int presence;            /* the socket that says that this boot lives; -1: none */
    unsigned traits;
    struct store *writer; /* owned; the store thread's alone once it runs */
    struct queue queue;
    struct readers readers;
    struct waiters waiters;
    struct waiter *told; /* store thread only: to wake when its group is settled */
    struct job *turns;   /* store thread only: writes that wait for their key's turn */
    struct registry registry;
    struct pool pool;
    struct membership member;
    atomic_int_least64_t lead_until_us[LEAD_COUNT]; /* monotonic; 0: not ours */
    struct keeper *keeper;                          /* owned */
    struct ear ear;
    struct side side;
    struct hauls hauls;
    struct beater beater;
    struct stall stall;
    struct unwritable unwritable;
    struct epoch epoch;
    struct exec_stats stats;
    struct rates rates;
    struct failures failures;
    pthread_t writer_thread, keeper_thread;
    bool writer_runs, keeper_runs;
    atomic_int_least64_t clock_offset_us; /* database clock minus monotonic */
    atomic_int_least64_t away_us;    /* since when it does not answer (monotonic); 0: it does */
    atomic_int_least64_t stalled_us; /* since when a commit has no answer (monotonic), once that is
                                        COMMIT_WAIT_US ago; 0: none is so late */
    atomic_int_least64_t found; /* claims and looks that found something; a pace, not a count */
    atomic_int refs;            /* the handle and every thread that may outlive it */
};

MUST_USE enum pawl_status exec_open(const struct exec_conf *conf, struct exec **out,
                                    struct pawl_err *err);
/* Stops the workers hard, answers what was posted, closes. Accepts NULL. Threads whose handler does
 * not return keep the memory alive until it does. */
void exec_close(struct exec *e);
void exec_unref(struct exec *e);

/* Commit this job beside the others; its `done` is called on the store thread all the same. False:
 * there is no such way here, and the job is still yours. */
bool side_post(struct exec *e, struct job *j);
/* Out of those that wait for a thread: jobs with `late`, in their order, if no thread will come to
 * them soon, for so many of the threads are in commits without an answer. */
struct job *side_shed(struct exec *e, int stalled);
MUST_USE enum pawl_status side_open(struct exec *e, struct pawl_err *err);
void side_close(struct exec *e); /* when what was posted is committed */
void side_release(struct exec *e);

/* The database's clock, from the monotonic one and the last known difference. */
int64_t exec_now(struct exec *e);

/* Hand a job over; its `done` is called on the store thread after the commit. On BUSY it is still
 * yours. */
MUST_USE enum pawl_status exec_post(struct exec *e, struct job *j, struct pawl_err *err);
/* The same for a list linked by `next`, all or none, without a gap for the store thread to take
 * only the first of them: what comes together is committed together, as far as a group holds it. */
MUST_USE enum pawl_status exec_post_all(struct exec *e, struct job *first, struct pawl_err *err);
/* Post one operation and wait for its answer; not on the store thread. Returns op->status. Where
 * commits may wait for somebody else the question is copied, and its answer says UNKNOWN when it
 * has not come COMMIT_WAIT_US after its COMMIT was sent: it may still be stored. `op` then has no
 * answer, and what it names is the caller's again. */
enum pawl_status exec_do(struct exec *e, struct op *op);
/* BUSY while a commit has had no answer for COMMIT_WAIT_US. */
enum pawl_status exec_stalled(struct exec *e, struct pawl_err *err);
/* The status and sentence UNKNOWN for callers that wait for that commit. */
enum pawl_status exec_unknown(struct pawl_err *err);
/* exec_do() for an OP_CLAIM with a token that only this caller knows: after UNKNOWN what it took is
 * handed back uncounted when the commit lands. */
enum pawl_status exec_claim(struct exec *e, struct op *op);
/* exec_do() for an OP_OBJECT that waits for its key's turn (job.h). */
enum pawl_status exec_do_by(struct exec *e, struct op *op, int64_t turn_until_us);

/* Borrow a connection for reading, at most pool_timeout later; give it back. BUSY. */
MUST_USE enum pawl_status exec_reader(struct exec *e, struct store **out, struct pawl_err *err);
void exec_reader_back(struct exec *e, struct store *s);

/* Enter a waiter (waiters.h). The first one wakes the store thread, which listens to other
 * processes only while that matters to anybody. */
void exec_wait(struct exec *e, struct waiter *w);

/* Calls may have ended or become due without our own finish: look again soon. */
void exec_look(struct exec *e, const struct bytes *ids, size_t n);
void exec_work_came(struct exec *e);
/* Does anybody here want to hear of what other processes do? */
bool exec_listens(struct exec *e);

/* Those who wait for work by hand: the number rises whenever work may have come. */
uint64_t exec_epoch(struct exec *e);
void exec_epoch_move(struct exec *e);
/* Until it has moved from `seen`, or until_us (monotonic) has passed. */
void exec_epoch_wait(struct exec *e, uint64_t seen, int64_t until_us);
/* Have this one told when it was asked for; one at a time. NULL: no more, and when this returns
 * nobody is inside its `moved`. */
void exec_epoch_watch(struct exec *e, struct epoch_watch *w);
/* Tell the watch of the next move, once; ask before you look, or a move falls between. */
void exec_epoch_ask(struct exec *e);
void exec_epoch_unask(struct exec *e);

/* Enter the registry and beat, once: first of all, before anything is claimed. Strings are copied.
 */
struct exec_member {
    const char *address; /* NULL: it answers no HTTP */
    unsigned roles;
    int slots;                 /* handlers that will run here; 0: none */
    const char *const *queues; /* n_queues 0: all */
    size_t n_queues;
};
MUST_USE enum pawl_status exec_enter(struct exec *e, const struct exec_member *m,
                                     struct pawl_err *err);
bool exec_entered(struct exec *e);
/* Out of the registry; what is still held is handed back uncounted, what is led is free. */
void exec_leave(struct exec *e);
/* Called once, on a thread of the machine, when another process has taken this node's name. Must
 * not block. NULL: no more, and when this returns nobody is inside. */
void exec_on_replaced(struct exec *e, void (*replaced)(void *ctx), void *ctx);
/* Is this node the one that has the role just now? */
bool exec_leads(struct exec *e, enum lead_role role);

/* What this process uses: thousandths of a core lately, bytes. */
int64_t process_cpu_milli(void);
int64_t process_memory(void);

/* Run the registered handlers; see pawl_start() and pawl_stop(). A process that has not entered the
 * registry enters it here. */
struct exec_workers {
    int slots;
    const char *const *queues;
    size_t n_queues;
};
MUST_USE enum pawl_status exec_start(struct exec *e, const struct exec_workers *w,
                                     struct pawl_err *err);
MUST_USE enum pawl_status exec_stop(struct exec *e, int64_t grace_us, struct pawl_err *err);

/* Begin nothing more: what was claimed and has not begun is handed back uncounted, what runs goes
 * on. Off: claim again. */
void exec_drain(struct exec *e, bool drained);
/* The same for who has written the wish into the registry: it is not news then. */
void exec_drain_wished(struct exec *e, bool drain);
bool exec_drained(struct exec *e);

/* How things stand, for people and metrics. */
struct exec_figures {
    int slots, busy; /* busy: handlers that run, the hung ones left out */
    int queued;      /* claimed, not begun */
    int hung, blocked;
    bool started, drained, stopping, replaced;
    size_t writes_waiting; /* jobs the store thread has not taken */
    size_t waiting;        /* callers that wait for an end */
    int64_t away_us;       /* for how long the database has not answered; 0: it does */
    int64_t stalled_us; /* for how long a commit has had no answer, past COMMIT_WAIT_US; else 0 */
    int64_t refused_us; /* for how long every write was refused, past REFUSED_WAIT_US; else 0 */
    bool cut;           /* the workers are stopped: no beat was stored for too long */
    char why[sizeof((struct pawl_err *)0)->text]; /* refused_us, cut: what the database said; or ""
                                                   */
};
void exec_figures(struct exec *e, struct exec_figures *out);

/* ---- Inside the room ------------------------------------------------------------------------- */

void epoch_init(struct epoch *p);
void epoch_release(struct epoch *p);

/* How often a database that does not answer is asked again; the engine's own pauses between two
 * connects are longer. */
#define PROBE_US (100 * MS_US)
/* An answer that took less tells the time well enough. */
#define CLOCK_NEAR_US (20 * MS_US)
/* Measure the difference of the database's clock and ours. Fails when the database does not answer.
 */
MUST_USE enum pawl_status exec_measure_clock(struct exec *e, struct store *s, struct pawl_err *err);
/* A connection of one's own. */
MUST_USE enum pawl_status exec_store(const struct exec *e, enum store_role role, struct store **out,
                                     struct pawl_err *err);

MUST_USE enum pawl_status ear_open(struct exec *e, struct pawl_err *err);
/* Its thread ends. */
void ear_close(struct exec *e);
void ear_release(struct exec *e);
/* Have the other processes look for this (HINT_...). Any thread, cheap. */
void ear_tell(struct exec *e, unsigned kinds);
/* Do their hints get through to us just now? */
bool ear_hears(struct exec *e);

MUST_USE enum pawl_status beat_open(struct exec *e, struct pawl_err *err);
void beat_nudge(struct exec *e);
void beat_close(struct exec *e);
void beat_release(struct exec *e);

MUST_USE enum pawl_status stall_open(struct exec *e, struct pawl_err *err);
void stall_close(struct exec *e); /* when nothing commits any more */
void stall_release(struct exec *e);
/* A thread that commits. `counts`: see struct under_way. */
void stall_enter(struct exec *e, struct under_way *u, bool counts);
void stall_leave(struct exec *e, struct under_way *u);
/* Around store_commit(); jobs may be NULL. After stall_end() none of them is told any more. */
void stall_begin(struct exec *e, struct under_way *u, struct store *store, struct job *jobs);
void stall_end(struct exec *e, struct under_way *u);

/* No write was refused yet. */
void unwritable_init(struct unwritable *r);
/* After the last thread that may call any of these has ended. */
void unwritable_release(struct unwritable *r);
/* How a group went. Store thread. */
void unwritable_note(struct exec *e, enum pawl_status st, struct op *const *ops, size_t n);
/* The database was away and answers: what was refused meanwhile does not count. Keeper thread. */
void unwritable_restart(struct exec *e);
/* Say it when writes begin to be refused for good, and when they are stored again. Keeper thread.
 */
void unwritable_look(struct exec *e);
/* When a write was last refused (monotonic); 0: none since one was stored, or the database does not
 * answer at all. */
int64_t unwritable_last(const struct exec *e);
/* What the database said when it last refused a write; "" before it did. Any thread. */
void unwritable_copy(struct exec *e, char *out, size_t size);

void *writer_main(void *exec);
/* Enter the registry; what another boot of this name held is taken back first. */
MUST_USE enum pawl_status exec_join(struct exec *e, struct pawl_err *err);
void member_init(struct membership *m);
void member_release(struct membership *m);
/* What to say with a beat; false: nothing, it is not ours to beat. */
bool member_beat(struct exec *e, struct op *out);
/* A beat that was sent then (monotonic) is stored. */
void member_stored(struct exec *e, int64_t sent_us);
/* One was not, and what was said of it. */
void member_refused(struct exec *e, const char *why);
/* Its thread ends. */
void member_close(struct exec *e);
/* Are they stopped? */
bool member_cut(struct exec *e);
/* What was said of the last beat; "": it was stored, or has no answer. */
void member_why(struct exec *e, char *out, size_t size);
/* Our row as it was read after member_look() gave `since`. */
uint64_t member_look(struct exec *e);
void member_seen(struct exec *e, const struct node_row *own, uint64_t since);
void member_replaced(struct exec *e);
/* Nodes or leaders may have changed: beat and look now. Any thread. */
void registry_changed(struct exec *e);
void keeper_registry(struct exec *e);
/* The database says that we are no longer the node: the keeper looks whether that is so. Any
 * thread. */
void keeper_doubt(struct exec *e);
enum pawl_status keeper_init(struct exec *e, struct pawl_err *err);
void keeper_release(struct exec *e);
void *keeper_main(void *exec);
void keeper_nudge(struct exec *e);
/* The database refused something: the keeper looks whether it answers at all. Any thread. */
void keeper_probe(struct exec *e);
/* Wake the keeper no later than this (monotonic). */
void keeper_by(struct exec *e, int64_t mono_us);
void keeper_close(struct exec *e);
/* Try this finish again a little later: the database was away. */
void keeper_repost(struct exec *e, struct job *j);

enum pawl_status readers_init(struct readers *r, int max, int64_t wait_us, struct pawl_err *err);
void readers_release(struct readers *r);

#endif
