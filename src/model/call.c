/*
 * call.c - names of states, defaults, legal transitions and times of a call. Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/text.h"
#include "base/limits.h"
#include "model/call.h"
#include "model/needs.h"

void call_spec_init(struct call_spec *s)
{
    *s = (struct call_spec){
        .max_attempts = 3,
        .max_lost = 5,
        .timeout_us = 60 * SEC_US,
        .backoff = { .base_us = SEC_US, .max_us = 300 * SEC_US, .factor = 2, .jitter = 0.1 },
        .on_dead = PAWL_ON_DEAD_SKIP,
    };
}

/* ---- Copies ---------------------------------------------------------------------------------- */

#define SPEC_TEXTS 11
#define CALL_TEXTS (SPEC_TEXTS + 3)

/* Every text of a spec, for both copies. */
static size_t spec_texts(struct call_spec *s, struct bytes *out[SPEC_TEXTS])
{
    struct bytes *const all[SPEC_TEXTS] = { &s->id,     &s->type,        &s->method,  &s->key,
                                            &s->queue,  &s->input.bytes, &s->caller,  &s->client,
                                            &s->parent, &s->traceparent, &s->schedule };
    memcpy(out, all, sizeof all);
    return SPEC_TEXTS;
}

/* Copy these texts, each with a NUL behind it: one allocation for all. */
static bool copy_texts(struct arena *a, struct bytes *const *v, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += v[i]->data ? v[i]->len + 1 : 0;
    char *at = arena_alloc(a, len + 1);
    for (size_t i = 0; at && i < n; i++) {
        if (!v[i]->data)
            continue;
        memcpy(at, v[i]->data, v[i]->len);
        at[v[i]->len] = 0;
        v[i]->data = at;
        at += v[i]->len + 1;
    }
    return at != NULL;
}

static bool copy_lists(struct arena *a, struct call_spec *s)
{
    struct tag *tags = s->n_tags ? arena_alloc(a, s->n_tags * sizeof *tags) : NULL;
    for (size_t i = 0; tags && i < s->n_tags; i++)
        tags[i] = (struct tag){ arena_copy(a, s->tags[i].name), arena_copy(a, s->tags[i].value) };
    s->tags = tags;
    s->needs = needs_copy(a, s->needs, s->n_needs);
    return !a->failed;
}

bool call_spec_copy(struct arena *a, const struct call_spec *s, struct call_spec *out)
{
    struct bytes *v[SPEC_TEXTS];
    *out = *s;
    return copy_texts(a, v, spec_texts(out, v)) && copy_lists(a, out);
}

bool call_copy(struct arena *a, const struct call *c, struct call *out)
{
    struct bytes *v[CALL_TEXTS];
    *out = *c;
    size_t n = spec_texts(&out->spec, v);
    v[n++] = &out->error;
    v[n++] = &out->node;
    v[n++] = &out->result.bytes;
    return copy_texts(a, v, n) && copy_lists(a, &out->spec);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static const struct {
    enum pawl_state state;
    const char *name;
} states[] = {
    { PAWL_PENDING, "pending" },         { PAWL_PROCESSING, "processing" },
    { PAWL_COMPLETED, "completed" },     { PAWL_FAILED, "failed" },
    { PAWL_DEAD_LETTER, "dead_letter" }, { PAWL_CANCELLED, "cancelled" },
    { PAWL_EXPIRED, "expired" },
};

PAWL_API const char *pawl_state_name(enum pawl_state state)
{
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (states[i].state == state)
            return states[i].name;
    return "?";
}

enum pawl_state call_state_of(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (bytes_eq(name, bytes_of(states[i].name)))
            return states[i].state;
    return 0;
}

PAWL_API bool pawl_state_ended(enum pawl_state state)
{
    return state >= PAWL_COMPLETED && state <= PAWL_EXPIRED;
}

const char *call_wait_name(enum call_wait w)
{
    switch (w) {
    case WAIT_NONE:
        return NULL;
    case WAIT_TIME:
        return "time";
    case WAIT_RETRY:
        return "retry";
    case WAIT_KEY:
        return "key";
    case WAIT_PAUSED:
        return "paused";
    case WAIT_LIMIT:
        return "limit";
    case WAIT_WORKER:
        return "worker";
    case WAIT_SIGNAL:
        return "signal";
    case WAIT_CHILDREN:
        return "children";
    case WAIT_TIMER:
        return "timer";
    }
    return NULL;
}

/* ---- Transitions ----------------------------------------------------------------------------- */

bool call_may(enum pawl_state from, enum pawl_state to)
{
    if (from == 0)
        return to == PAWL_PENDING;
    if (to < PAWL_PENDING || to > PAWL_EXPIRED)
        return false;
    switch (from) {
    case PAWL_PENDING: /* to itself: moved to another time, priority or queue */
        return to == PAWL_PENDING || to == PAWL_PROCESSING || to == PAWL_CANCELLED ||
               to == PAWL_EXPIRED;
    case PAWL_PROCESSING: /* a call that has begun can no longer expire */
        return to != PAWL_PROCESSING && to != PAWL_EXPIRED;
    case PAWL_COMPLETED:
        return false;
    case PAWL_FAILED:
    case PAWL_DEAD_LETTER:
    case PAWL_CANCELLED:
    case PAWL_EXPIRED: /* retried */
        return to == PAWL_PENDING;
    }
    return false;
}

/* ---- Times ----------------------------------------------------------------------------------- */

void call_times(const struct call_spec *s, int64_t now_us, int64_t *out_run_at_us,
                int64_t *out_expires_us)
{
    assert(!s->delay_us || !s->run_at_us);
    assert(!s->expires_in_us || !s->expires_at_us);
    *out_run_at_us = MAX(now_us, s->run_at_us ? s->run_at_us : now_us + s->delay_us);
    *out_expires_us = 0;
    if (s->expires_at_us || s->expires_in_us)
        *out_expires_us =
            MAX(now_us, s->expires_at_us ? s->expires_at_us : now_us + s->expires_in_us);
}

void call_run_until(struct call_spec *s, int64_t run_at_us, int64_t *expires_us)
{
    bool given = s->run_timeout_us && s->run_until_us;
    int64_t until_us = given ? s->run_until_us : run_at_us + s->run_timeout_us;
    s->run_until_us = 0;
    if (!s->run_timeout_us)
        return;
    s->run_until_us = MIN(MAX(until_us, run_at_us), TIME_LAST_US);
    if (!*expires_us || *expires_us > s->run_until_us)
        *expires_us = s->run_until_us;
}

enum pawl_state call_expired_as(const struct call_spec *s, int64_t expires_us)
{
    return s->run_until_us && expires_us == s->run_until_us ? PAWL_CANCELLED : PAWL_EXPIRED;
}

enum call_wait call_waiting_for(const struct call *c, int64_t now_us, struct call_where where)
{
    if (c->state != PAWL_PENDING)
        return WAIT_NONE;
    if (where.behind)
        return WAIT_KEY;
    if (c->run_at_us > now_us)
        return c->counts.attempts > 0 ? WAIT_RETRY : WAIT_TIME;
    if (where.queue_paused)
        return WAIT_PAUSED;
    return where.limited ? WAIT_LIMIT : WAIT_WORKER;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

bool call_blocks(const struct call_spec *s, enum pawl_state ended)
{
    return s->key.data && s->on_dead == PAWL_ON_DEAD_BLOCK &&
           (ended == PAWL_FAILED || ended == PAWL_DEAD_LETTER);
}
