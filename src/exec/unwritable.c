/*
 * unwritable.c - a database that answers and refuses every write: a full disk, a server that turned
 * read-only, a lock that is never released, a file that was moved away.
 *
 * The store thread notes how each of its groups went. The housekeeping thread, which knows whether
 * the database answers at all (keep_clock), logs once that writes are refused and once that they
 * are stored again; /readyz asks exec_figures(). What must stay true: while writes are refused, the
 * housekeeping thread sends a heartbeat through the store thread from time to time. Otherwise a
 * node that gets no requests because it is not ready would never find out that it could be.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/log.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

void unwritable_init(struct unwritable *u)
{
    pthread_mutex_init(&u->lock, NULL);
}

void unwritable_release(struct unwritable *u)
{
    pthread_mutex_destroy(&u->lock);
}

/* What the database said about the first refused operation. NULL: a transaction outside Pawl holds
 * one row or table, which says nothing about other writes. */
static const char *said(struct op *const *ops, size_t n, enum pawl_status st)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i]->status == st)
            return store_blocked(&ops[i]->err) ? NULL : ops[i]->err.text;
    return NULL;
}

/* Has this operation changed a row? Many find nothing to do, and succeed also on a full disk. */
static bool wrote(const struct op *op)
{
    if (op->status != PAWL_OK)
        return false;
    switch (op->kind) {
    case OP_ACCEPT:
        for (size_t i = 0; i < op->accept.n; i++)
            if (op->accept.out[i].status == PAWL_OK && !op->accept.out[i].duplicate)
                return true;
        return false;
    case OP_CLAIM:
        return op->claim.n > 0;
    case OP_FINISH:
    case OP_HANDLER:
    case OP_BEAT:
        return true;
    default:
        return false;
    }
}

static bool any_wrote(struct op *const *ops, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n && !any; i++)
        any = wrote(ops[i]);
    return any;
}

void unwritable_note(struct exec *e, enum pawl_status st, struct op *const *ops, size_t n)
{
    struct unwritable *u = &e->unwritable;
    bool whole = st == PAWL_BUSY || st == PAWL_UNKNOWN;
    const char *text = whole ? said(ops, n, st) : NULL;
    int64_t now_us = world_mono(&world_real);
    atomic_store(&u->whole, whole);
    if (text) {
        pthread_mutex_lock(&u->lock);
        snprintf(u->text, sizeof u->text, "%s", text);
        pthread_mutex_unlock(&u->lock);
        atomic_store(&u->last_us, now_us);
        if (!atomic_load(&u->since_us))
            atomic_store(&u->since_us, now_us);
    }
    if (whole)
        housekeeping_probe(e);
    if (st == PAWL_OK && atomic_load(&u->since_us) && any_wrote(ops, n)) {
        atomic_store(&u->since_us, 0);
        housekeeping_nudge(e);
    }
}

void unwritable_restart(struct exec *e)
{
    if (!atomic_load(&e->unwritable.told_us))
        atomic_store(&e->unwritable.since_us, 0);
}

int64_t unwritable_last(const struct exec *e)
{
    const struct unwritable *u = &e->unwritable;
    bool refused = atomic_load(&u->since_us) && !atomic_load(&e->away_us);
    return refused ? atomic_load(&u->last_us) : 0;
}

void unwritable_look(struct exec *e)
{
    struct unwritable *u = &e->unwritable;
    int64_t since_us = atomic_load(&u->since_us), told_us = atomic_load(&u->told_us);
    int64_t last_us = unwritable_last(e);
    char text[sizeof u->text];
    if (told_us && !since_us) {
        atomic_store(&u->told_us, 0);
        log_line(LOG_WARN, "the database stores writes again, after %.1f s",
                 (double)(world_mono(&world_real) - told_us) / SEC_US);
    } else if (!told_us && last_us && last_us - since_us >= SLOWER(REFUSED_WAIT_US)) {
        unwritable_copy(e, text, sizeof text);
        atomic_store(&u->told_us, since_us);
        log_line(LOG_ERROR, "the database refuses writes: %s", text);
    }
}

void unwritable_copy(struct exec *e, char *out, size_t size)
{
    pthread_mutex_lock(&e->unwritable.lock);
    snprintf(out, size, "%s", e->unwritable.text);
    pthread_mutex_unlock(&e->unwritable.lock);
}
