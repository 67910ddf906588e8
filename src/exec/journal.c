/*
 * journal.c - reading journals, and the cache of those of suspended runs (journal.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/journal.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "exec/internal.h"

/* What the journals of suspended runs may take in all; the least recently used go first. */
#define KEPT_LEN_MAX ((size_t)64 << 20)
/* A kept journal that takes more is read anew: each pass adds to its arena, which frees nothing. */
#define AGAIN_LEN ((size_t)16 << 20)
/* One journal: all results, and what is around them. */
#define JOURNAL_LEN_MAX ((size_t)STEPS_LEN_MAX * 2)

void journals_init(struct journals *k)
{
    pthread_mutex_init(&k->lock, NULL);
    k->len_max = KEPT_LEN_MAX;
}

void journals_release(struct journals *k)
{
    if (!k->len_max)
        return;
    for (struct journal *j = k->newest, *older; j; j = older) {
        older = j->older;
        journal_free(j);
    }
    pthread_mutex_destroy(&k->lock);
}

struct journal *journal_new(int64_t seq)
{
    struct journal *j = mem_zalloc(sizeof *j);
    if (!j)
        return NULL;
    arena_init(&j->arena, JOURNAL_LEN_MAX);
    j->seq = seq;
    return j;
}

void journal_free(struct journal *j)
{
    if (!j)
        return;
    arena_release(&j->arena);
    mem_free(j);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static bool room(struct journal *j, size_t n)
{
    if (n <= j->cap)
        return true;
    size_t cap = MAX(n, j->cap ? j->cap * 2 : 16);
    struct workflow_row *v = arena_alloc(&j->arena, cap * sizeof *v);
    if (!v)
        return false;
    if (j->n)
        memcpy(v, j->v, j->n * sizeof *v);
    j->v = v;
    j->cap = cap;
    return true;
}

bool journal_put(struct journal *j, const struct workflow_row *row)
{
    size_t at = j->n;
    while (at && j->v[at - 1].no > row->no)
        at--;
    bool there = at && j->v[at - 1].no == row->no;
    if (!there && !room(j, j->n + 1))
        return false;
    if (!there)
        memmove(j->v + at + 1, j->v + at, (j->n - at) * sizeof *j->v);
    struct workflow_row *to = &j->v[there ? at - 1 : at];
    j->n += !there;
    *to = *row;
    to->name = arena_copy(&j->arena, row->name);
    to->result.bytes = arena_copy(&j->arena, row->result.bytes);
    to->error = arena_copy(&j->arena, row->error);
    to->node = BYTES_NONE;
    return !j->arena.failed;
}

/* ---- The cache ------------------------------------------------------------------------------- */

static struct journal **slot(struct journals *k, int64_t seq)
{
    struct journal **at = &k->slots[(uint64_t)seq % JOURNAL_BUCKETS];
    while (*at && (*at)->seq != seq)
        at = &(*at)->same;
    return at;
}

/* Take it out of the cache. Under the lock. */
static struct journal *unlink_at(struct journals *k, struct journal **at)
{
    struct journal *j = *at;
    if (!j)
        return NULL;
    *at = j->same;
    *(j->newer ? &j->newer->older : &k->newest) = j->older;
    *(j->older ? &j->older->newer : &k->oldest) = j->newer;
    j->same = j->newer = j->older = NULL;
    k->len -= j->arena.used;
    return j;
}

static struct journal *journal_take(struct exec *e, int64_t seq)
{
    struct journals *k = &e->journals;
    pthread_mutex_lock(&k->lock);
    struct journal *j = unlink_at(k, slot(k, seq));
    pthread_mutex_unlock(&k->lock);
    return j;
}

void journal_keep(struct exec *e, struct journal *taken)
{
    struct journals *k = &e->journals;
    struct journal *gone = NULL, *one;
    taken->input = (struct payload){ 0 };
    taken->error = BYTES_NONE;
    pthread_mutex_lock(&k->lock);
    struct journal **at = slot(k, taken->seq);
    gone = unlink_at(k, at);
    taken->same = NULL;
    at = &k->slots[(uint64_t)taken->seq % JOURNAL_BUCKETS];
    taken->same = *at;
    *at = taken;
    taken->newer = NULL;
    taken->older = k->newest;
    *(k->newest ? &k->newest->newer : &k->oldest) = taken;
    k->newest = taken;
    k->len += taken->arena.used;
    while (k->len > k->len_max && (one = unlink_at(k, slot(k, k->oldest->seq)))) {
        one->older = gone;
        gone = one;
    }
    pthread_mutex_unlock(&k->lock);
    for (struct journal *next; gone; gone = next) {
        next = gone->older;
        journal_free(gone);
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* From this number on a kept journal has to be read again: the first step that has not ended. */
static int64_t known_until(const struct journal *j)
{
    for (size_t i = 0; i < j->n; i++)
        if (!step_ended(j->v[i].status))
            return j->v[i].no;
    return j->n ? j->v[j->n - 1].no + 1 : 1;
}

static void forget_from(struct journal *j, int64_t no)
{
    while (j->n && j->v[j->n - 1].no >= no)
        j->n--;
}

/* Add what was read from `no` on, which lives in the journal's arena. */
static bool add(struct journal *j, const struct workflow_journal *read)
{
    if (!room(j, j->n + read->n))
        return false;
    if (read->n)
        memcpy(j->v + j->n, read->v, read->n * sizeof *read->v);
    j->n += read->n;
    return true;
}

static enum pawl_status read_from(struct store *s, struct journal *j, int64_t no, int64_t have_rev,
                                  struct workflow_journal *out, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    bool first = true;
    forget_from(j, no);
    for (int64_t next = no; next && st == PAWL_OK; first = false) {
        struct workflow_journal page;
        st = workflow_journal_read(s, &j->arena, j->seq, next, (size_t)STEPS_LEN_MAX,
                                   first ? have_rev : 0, &page, err);
        if (st == PAWL_OK && !add(j, &page))
            st = err_no_memory(err, "a journal");
        next = st == PAWL_OK ? page.next : 0;
        if (first)
            *out = page;
    }
    return st;
}

static enum pawl_status read_all(struct store *s, struct journal *j, struct pawl_err *err)
{
    struct workflow_journal head;
    int64_t no = j->rev ? known_until(j) : 1, rev = j->rev;
    size_t n = j->n;
    struct workflow_row *v = j->v;
    enum pawl_status st = read_from(s, j, no, rev, &head, err);
    if (st == PAWL_OK && rev && head.rev == rev) { /* what was kept is what is stored */
        j->v = v;
        j->n = n;
    } else if (st == PAWL_OK && rev && (head.generation != j->generation || head.undoing)) {
        j->n = 0; /* steps were forgotten, or undone: what was kept says nothing */
        st = read_from(s, j, 1, 0, &head, err);
    }
    if (st != PAWL_OK)
        return st;
    j->rev = head.rev;
    j->generation = head.generation;
    j->undoing = head.undoing;
    j->doubt = head.doubt;
    j->error = head.error;
    j->has_input = head.has_input;
    j->input = head.input;
    return PAWL_OK;
}

enum pawl_status journal_open(struct exec *e, int64_t seq, struct journal **out,
                              struct pawl_err *err)
{
    struct journal *j = journal_take(e, seq);
    struct store *s;
    if (j && j->arena.used > AGAIN_LEN)
        journal_free(TAKE(j));
    if (!j)
        j = journal_new(seq);
    if (!j)
        return err_no_memory(err, "a journal");
    enum pawl_status st = exec_reader(e, &s, err);
    if (st == PAWL_OK) {
        st = read_all(s, j, err);
        exec_reader_back(e, s);
    }
    if (st != PAWL_OK) {
        journal_free(j);
        return st;
    }
    *out = j;
    return PAWL_OK;
}
