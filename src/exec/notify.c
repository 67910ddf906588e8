/*
 * notify.c - the thread that notifies other processes (NOTIFY) and listens to them (LISTEN).
 *
 * Notifications ("hints") are coalesced: however many commits there are, one is under way at a time
 * and the next waits for HINT_GAP_US. They only make things faster. While they arrive, the store
 * thread looks for other processes' commits every HEARING_POLL_US; while they do not, as often as
 * without them. Engines without notifications have no such thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exec/internal.h"
#include "exec/housekeeping.h"

/* At most 200 notifications a second; one that arrives does what many would. */
#define HINT_GAP_US (5 * MS_US)
#define LISTEN_US (1 * SEC_US)
/* The pause after a failure, and the longest one when failures go on. */
#define PAUSE_FIRST_US (50 * MS_US)
#define PAUSE_MAX_US (2 * SEC_US)

static void ring(struct notify *r)
{
    uint64_t one = 1;
    if (write(r->wake_fd, &one, sizeof one) < 0)
        return; /* Full: it is set already. */
}

static void hush(struct notify *r)
{
    uint64_t n;
    if (read(r->wake_fd, &n, sizeof n) < 0)
        return; /* It was not set. */
}

void notify_send(struct exec *e, unsigned kinds)
{
    struct notify *r = &e->notify;
    if (r->runs && kinds && !atomic_fetch_or(&r->tell, kinds))
        ring(r);
}

bool notify_works(struct exec *e)
{
    return atomic_load_explicit(&e->notify.hears, memory_order_relaxed);
}

static void heard(struct exec *e, unsigned kinds)
{
    if (kinds & HINT_ENDED && waiters_count(&e->waiters)) {
        waiters_mark_all(&e->waiters);
        housekeeping_nudge(e);
    }
    if (kinds & HINT_NODES)
        registry_changed(e);
    if (kinds & HINT_TIMES)
        schedules_changed(e);
    if (kinds & HINT_WORK)
        exec_work_came(e);
}

/* Do nothing for so long, unless the thread has to end. */
static void pause_for(struct notify *r, int64_t us)
{
    int64_t until_us = world_mono(&world_real) + us, left_us = us;
    struct pollfd v = { .fd = r->wake_fd, .events = POLLIN };
    while (left_us > 0 && !atomic_load(&r->closed)) {
        if (poll(&v, 1, (int)(left_us / MS_US + 1)) > 0)
            hush(r);
        left_us = until_us - world_mono(&world_real);
    }
}

/* The next call of store_hint(): what to send, and how long to listen. When the last notification
 * is less than HINT_GAP_US ago nothing is sent, and the wait ends when the gap does. */
static struct hint next_hint(struct notify *r, int64_t *told_us)
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
        h.wake_fd = -1; /* The next notification waits for the gap anyway, so nothing needs to wake
                           us. */
        h.until_us = now_us + HINT_GAP_US;
    }
    return h;
}

static void *notify_main(void *arg)
{
    struct exec *e = arg;
    struct notify *r = &e->notify;
    int64_t told_us = 0, pause_us = 0;
    while (!atomic_load(&r->closed)) {
        struct pawl_err err;
        struct hint h = next_hint(r, &told_us);
        enum pawl_status st = store_hint(r->store, &h, &err);
        atomic_store(&r->hears, st == PAWL_OK);
        if (st == PAWL_STATE)
            return NULL; /* Notifications cannot work on this connection (a pooler): the store
                            thread polls. */
        if (st == PAWL_OK) {
            pause_us = 0;
            heard(e, h.heard);
            if (h.heard)
                pause_for(r, HINT_GAP_US); /* Coalesce what several processes send into one look. */
            continue;
        }
        atomic_fetch_or(&r->tell, h.tell);
        pause_us = pause_us ? MIN(pause_us * 2, PAUSE_MAX_US) : PAUSE_FIRST_US;
        queue_nudge(&e->queue); /* The store thread has to poll faster from now on. */
        pause_for(r, pause_us + (int64_t)(world_unit(&world_real) * (double)pause_us / 2));
    }
    return NULL;
}

enum pawl_status notify_open(struct exec *e, struct pawl_err *err)
{
    struct notify *r = &e->notify;
    if (!(e->traits & STORE_HINTS))
        return PAWL_OK;
    r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->open = r->wake_fd >= 0;
    if (!r->open)
        return err_no_memory(err, "listening to other processes");
    enum pawl_status st = exec_store(e, STORE_READER, &r->store, err);
    if (st == PAWL_OK)
        r->runs = !pthread_create(&r->thread, NULL, notify_main, e);
    return st != PAWL_OK || r->runs ? st : err_no_memory(err, "listening to other processes");
}

void notify_close(struct exec *e)
{
    struct notify *r = &e->notify;
    if (!r->runs)
        return;
    atomic_store(&r->closed, true);
    ring(r);
    pthread_join(r->thread, NULL);
    r->runs = false;
}

void notify_release(struct exec *e)
{
    store_close(e->notify.store);
    if (e->notify.open)
        close(e->notify.wake_fd);
}
