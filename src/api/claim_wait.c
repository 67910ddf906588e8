/*
 * claim_wait.c - the lines of claims that wait for work (claim_wait.h says how they take turns).
 *
 * Loop thread, except for moved(). What must stay true: while a claim stands in a line, exec has
 * been asked to announce the next time work may have come, before the look that might miss it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/claim_wait.h"

#include "api/ask.h"
#include "api/internal.h"
#include "api/work.h"
#include "base/mem.h"
#include "exec/work_signal.h"

#define LINE_BUCKETS 256
/* How many claims of one line may be under way: enough to fill a commit, few enough to leave room
 * for others. */
#define LINE_LOOKING_MAX 32

struct line {
    struct line *next, **link; /* same bucket */
    struct claim_wait *claim_wait;
    struct claiming *first, **end; /* claims that are not looking now, oldest first */
    size_t members;                /* all of its claims, also those that are looking */
    int looking;
    bool again;              /* work may have come while a claim was looking */
    struct loop_timer timer; /* fires when the next call is due */
    unsigned char wants[32]; /* digest of queues and types */
};

struct claim_wait {
    struct work_signal_watch watch; /* first */
    struct api *api;
    struct loop_task task; /* work may have come */
    struct line *buckets[LINE_BUCKETS];
    size_t waiting;
    bool asked;
};

/* ---- Turns ----------------------------------------------------------------------------------- */

static struct claiming *pop(struct line *l)
{
    struct claiming *c = l->first;
    l->first = c->next;
    if (c->next)
        c->next->link = &l->first;
    else
        l->end = &l->first;
    c->next = NULL;
    c->link = NULL;
    return c;
}

/* Let up to n claims look. */
static void wake(struct line *l, int n)
{
    while (n-- > 0 && l->first && l->looking < LINE_LOOKING_MAX) {
        l->looking++;
        claim_look(pop(l));
    }
}

/* Something may be there. A claim that is looking may have looked too early: then look once more
 * after it. */
static void stir(struct line *l)
{
    if (l->looking)
        l->again = true;
    else
        wake(l, 1);
}

static void due(struct loop_timer *t)
{
    stir((struct line *)((char *)t - offsetof(struct line, timer)));
}

static void ask_work_signal(struct claim_wait *d)
{
    if (d->asked)
        return;
    d->asked = true;
    exec_work_signal_ask(d->api->exec);
}

/* Work may have come. */
static void turn(struct loop_task *t)
{
    struct claim_wait *d = (struct claim_wait *)((char *)t - offsetof(struct claim_wait, task));
    d->asked = false;
    if (!d->waiting || d->api->stopping)
        return;
    ask_work_signal(d);
    for (size_t i = 0; i < LINE_BUCKETS; i++)
        for (struct line *l = d->buckets[i]; l; l = l->next)
            stir(l);
}

/* Any thread. Called once for each exec_work_signal_ask(), so the task is not posted twice. */
static void moved(struct work_signal_watch *w)
{
    struct claim_wait *d = (struct claim_wait *)w;
    loop_post(d->api->loop, &d->task);
}

/* ---- Coming and going ------------------------------------------------------------------------ */

static bool wants_digest(const struct claiming *c, unsigned char out[32])
{
    struct bytes parts[4] = { { (const char *)&c->want.n_queues, sizeof(c->want.n_queues) } };
    unsigned char lists[3][32];
    if (!digest_parts(c->want.queues, c->want.n_queues, lists[0]) ||
        !digest_parts(c->want.types, c->want.n_types, lists[1]) ||
        !digest_parts(c->want.has, c->want.n_has, lists[2]))
        return false;
    parts[1] = (struct bytes){ (const char *)lists[0], 32 };
    parts[2] = (struct bytes){ (const char *)lists[1], 32 };
    parts[3] = (struct bytes){ (const char *)lists[2], 32 };
    return digest_parts(parts, 4, out);
}

static struct line *line_make(struct claim_wait *d, const unsigned char wants[32])
{
    struct line **at = &d->buckets[wants[0]];
    struct line *l = mem_zalloc(sizeof(*l));
    if (!l)
        return NULL;
    l->claim_wait = d;
    l->end = &l->first;
    l->timer.run = due;
    memcpy(l->wants, wants, sizeof(l->wants));
    l->next = *at;
    l->link = at;
    if (*at)
        (*at)->link = &l->next;
    *at = l;
    return l;
}

static void line_free(struct line *l)
{
    CHECK(!l->first && !l->looking);
    loop_timer_cancel(l->claim_wait->api->loop, &l->timer);
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    mem_free(l);
}

bool line_enter(struct claiming *c)
{
    struct claim_wait *d = c->ask->api->claim_wait;
    unsigned char wants[32];
    if (!wants_digest(c, wants))
        return false;
    struct line *l = d->buckets[wants[0]];
    while (l && memcmp(l->wants, wants, sizeof(wants)) != 0)
        l = l->next;
    if (!l)
        l = line_make(d, wants);
    if (!l)
        return false;
    c->line = l;
    l->members++;
    l->looking++; /* Its first look follows at once. */
    d->waiting++;
    ask_work_signal(d);
    return true;
}

static void put_first(struct line *l, struct claiming *c)
{
    c->next = l->first;
    c->link = &l->first;
    if (l->first)
        l->first->link = &c->next;
    else
        l->end = &c->next;
    l->first = c;
}

static void put_last(struct line *l, struct claiming *c)
{
    c->next = NULL;
    c->link = l->end;
    *l->end = c;
    l->end = &c->next;
}

void line_back(struct claiming *c, int64_t next_due_us)
{
    struct line *l = c->line;
    struct api *api = l->claim_wait->api;
    l->looking--;
    if (c->seated)
        put_first(l, c);
    else
        put_last(l, c);
    c->seated = true;
    if (next_due_us)
        loop_timer_set(api->loop, &l->timer,
                       world_mono(&world_real) + MAX(next_due_us - exec_now(api->exec), 0));
    if (l->again) {
        l->again = false;
        wake(l, 1);
    }
}

void line_leave(struct claiming *c, bool more)
{
    struct line *l = TAKE(c->line);
    if (!l)
        return;
    if (c->link) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        else
            l->end = c->link;
        c->link = NULL;
    } else {
        l->looking--;
    }
    l->members--;
    l->claim_wait->waiting--;
    if (!l->members) {
        line_free(l);
    } else if (more) {
        wake(l, 2);
    } else if (l->again && l->first) {
        l->again = false;
        wake(l, 1);
    }
}

size_t claim_wait_waiting(const struct api *api)
{
    return api->claim_wait ? api->claim_wait->waiting : 0;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

enum pawl_status claim_wait_open(struct api *api, struct pawl_err *err)
{
    struct claim_wait *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_no_memory(err, "opening the API");
    d->api = api;
    d->watch.moved = moved;
    d->task.run = turn;
    api->claim_wait = d;
    exec_work_signal_watch(api->exec, &d->watch);
    return PAWL_OK;
}

void claim_wait_stop(struct api *api)
{
    if (api->claim_wait)
        exec_work_signal_watch(api->exec, NULL);
}

void claim_wait_close(struct api *api)
{
    if (!api->claim_wait)
        return;
    claim_wait_stop(api);
    for (size_t i = 0; i < LINE_BUCKETS; i++)
        CHECK(!api->claim_wait->buckets[i]);
    mem_free(TAKE(api->claim_wait));
}
