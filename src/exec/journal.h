/*
 * journal.h - the journals of runs in memory: what a pass has read and stored, and the journals of
 * runs that this node suspended, for their next pass. Room-private.
 *
 * A step that has ended never changes within a generation of its run. So a journal that was kept is
 * complete while the run has the same `rev`, and else only its end is read again. A journal belongs
 * to one thread at a time: to a pass, or to the cache under its lock.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXEC_JOURNAL_H
#define EXEC_JOURNAL_H

#include <pthread.h>

#include "base/arena.h"
#include "feature/workflow.h"

struct exec;

#define JOURNAL_BUCKETS 1024

struct journal {
    struct arena arena; /* owned: the rows */
    int64_t seq, rev, generation;
    struct workflow_row *v; /* by no */
    size_t n, cap;
    /* What was read with it, and is not kept. */
    bool undoing, doubt;
    struct bytes error;
    bool has_input;
    struct payload input;
    /* The cache's. */
    struct journal *same, *newer, *older;
};

struct journals {
    pthread_mutex_t lock;
    struct journal *slots[JOURNAL_BUCKETS], *newest, *oldest; /* owned */
    size_t len, len_max;                                      /* bytes */
};

/* Keeps none yet. */
void journals_init(struct journals *k);
/* Free all that are kept. Accepts zeroed memory. */
void journals_release(struct journals *k);

/* The journal of a run that has begun, with all its steps: from the cache, if it is as stored, else
 * read on a connection for reading. The caller owns *out. The database's error; NO_MEMORY. */
MUST_USE enum pawl_status journal_open(struct exec *e, int64_t seq, struct journal **out,
                                       struct pawl_err *err);
/* An empty one, of a run that has not begun; NULL without memory. */
struct journal *journal_new(int64_t seq);
/* Put the row, copied, in place of one with the same number. False without memory. */
MUST_USE bool journal_put(struct journal *j, const struct workflow_row *row);
/* Keep the journal of a run that was suspended, as it is at j->rev; takes it. */
void journal_keep(struct exec *e, struct journal *taken);
/* Free it. Accepts NULL. */
void journal_free(struct journal *j);

#endif
