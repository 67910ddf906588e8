/*
 * ear.c - the thread that tells other processes to look, and listens to them.
 *
 * Hints are coalesced: however many commits there are, one hint is under way at a time and the next
 * waits for HINT_GAP_US. They only make things faster. While they are heard the store thread asks
 * for others' commits every HEARING_POLL_US; while they are not, as often as it ever did. Engines
 * without hints have no such thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exec/internal.h"
#include "exec/keeper.h"

/* Two hundred a second; one that is heard is as good as many. */
#define HINT_GAP_US (5 * MS_US)
#define LISTEN_US (1 * SEC_US)
/* After a failure, and the longest of the pauses that follow when it does not get better. */
#define PAUSE_FIRST_US (50 * MS_US)
#define PAUSE_MAX_US (2 * SEC_US)

static void ring(struct ear *r)
{
    uint64_t one = 1;
    if (write(r->wake_fd, &one, sizeof one) < 0)
        return; /* Full: it rings already. */
}

static void hush(struct ear *r)
{
    uint64_t n;
    if (read(r->wake_fd, &n, sizeof n) < 0)
        return; /* It did not ring. */
}

void ear_tell(struct exec *e, unsigned kinds)
{
    struct ear *r = &e->ear;
    if (r->runs && kinds && !atomic_fetch_or(&r->tell, kinds))
        ring(r);
}

bool ear_hears(struct exec *e)
{
    return atomic_load_explicit(&e->ear.hears, memory_order_relaxed);
}

static void heard(struct exec *e, unsigned kinds)
{
    if (kinds & HINT_ENDED && waiters_count(&e->waiters)) {
        waiters_mark_all(&e->waiters);
        keeper_nudge(e);
    }
    if (kinds & HINT_NODES)
        registry_changed(e);
    if (kinds & HINT_WORK)
        exec_work_came(e);
}

/* Do nothing for so long, unless it is over. */
static void pause_for(struct ear *r, int64_t us)
{
    int64_t until_us = world_mono(&world_real) + us, left_us = us;
    struct pollfd v = { .fd = r->wake_fd, .events = POLLIN };
    while (left_us > 0 && !atomic_load(&r->closed)) {
        if (poll(&v, 1, (int)(left_us / MS_US + 1)) > 0)
            hush(r);
        left_us = until_us - world_mono(&world_real);
    }
}

/* What is to be told, now and after: taken when the last hint is long enough ago, else the wait
 * ends when it is. */
static struct hint next_hint(struct ear *r, int64_t *told_us)
{
    int64_t now_us = world_mono(&world_real), may_us = *told_us + HINT_GAP_US;
    struct hint h = { .until_us = now_us + LISTEN_US, .wake_fd = r->wake_fd };
    hush(r);
    if (now_us >= may_us)
        h.tell = atomic_exchange(&r->tell, 0);
    else if (atomic_load(&r->tell))
        h = (struct hint){ .until_us = may_us, .wake_fd = -1 };
    if (h.tell) {
        *told_us = now_us;
        h.wake_fd = -1; /* Whatever comes next waits for the gap, and so may we. */
        h.until_us = now_us + HINT_GAP_US;
    }
    return h;
}

static void *ear_main(void *arg)
{
    struct exec *e = arg;
    struct ear *r = &e->ear;
    int64_t told_us = 0, pause_us = 0;
    while (!atomic_load(&r->closed)) {
        struct pawl_err err;
        struct hint h = next_hint(r, &told_us);
        enum pawl_status st = store_hint(r->store, &h, &err);
        atomic_store(&r->hears, st == PAWL_OK);
        if (st == PAWL_STATE)
            return NULL; /* Nothing ever comes through here: polling it is. */
        if (st == PAWL_OK) {
            pause_us = 0;
            heard(e, h.heard);
            if (h.heard)
                pause_for(r, HINT_GAP_US); /* What many tell us is one look, too. */
            continue;
        }
        atomic_fetch_or(&r->tell, h.tell);
        pause_us = pause_us ? MIN(pause_us * 2, PAUSE_MAX_US) : PAUSE_FIRST_US;
        queue_nudge(&e->queue); /* The store thread polls faster from now on. */
        pause_for(r, pause_us + (int64_t)(world_unit(&world_real) * (double)pause_us / 2));
    }
    return NULL;
}

enum pawl_status ear_open(struct exec *e, struct pawl_err *err)
{
    struct ear *r = &e->ear;
    if (!(e->traits & STORE_HINTS))
        return PAWL_OK;
    r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->open = r->wake_fd >= 0;
    if (!r->open)
        return err_no_memory(err, "listening to other processes");
    enum pawl_status st = exec_store(e, STORE_READER, &r->store, err);
    if (st == PAWL_OK)
        r->runs = !pthread_create(&r->thread, NULL, ear_main, e);
    return st != PAWL_OK || r->runs ? st : err_no_memory(err, "listening to other processes");
}

void ear_close(struct exec *e)
{
    struct ear *r = &e->ear;
    if (!r->runs)
        return;
    atomic_store(&r->closed, true);
    ring(r);
    pthread_join(r->thread, NULL);
    r->runs = false;
}

void ear_release(struct exec *e)
{
    store_close(e->ear.store);
    if (e->ear.open)
        close(e->ear.wake_fd);
}
