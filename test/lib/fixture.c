/*
 * fixture.c - see fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fixture.h"

#include "exec/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

atomic_int fixture_inside, fixture_runs;
static atomic_bool gate;

bool fixture_is_mem(const void *param)
{
    return strncmp(param, "mem:", 4) == 0;
}

int64_t fixture_mono(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * FIXTURE_SEC + t.tv_nsec / 1000;
}

/* Should the request be repeated? BUSY and UNKNOWN come when the machine stalls for longer
 * than a connection's timeout. The test begins after what is done here, so they are retried. */
static bool again(enum pawl_status st, int64_t *until_us, const struct pawl_err *err)
{
    if (st != PAWL_BUSY && st != PAWL_UNKNOWN)
        return false;
    if (!*until_us)
        *until_us = fixture_mono() + FIXTURE_WAIT_US;
    printf("once more: %s\n", err->text);
    usleep(5000);
    return fixture_mono() < *until_us;
}

struct pawl *fixture_open_as(const void *param, struct pawl_options o)
{
    struct pawl *p;
    struct pawl_err err;
    enum pawl_status st;
    int64_t until_us = 0;
    o.size = sizeof o;
    if (!o.db)
        o.db = engine_url(param);
    if (!o.node)
        o.node = "fixture";
    if (!o.heartbeat_interval_us)
        o.heartbeat_interval_us = 100 * FIXTURE_MS;
    if (!o.heartbeat_grace_us)
        o.heartbeat_grace_us = 20 * FIXTURE_SEC * check_scale();
    if (!o.reclaim_interval_us)
        o.reclaim_interval_us = 50 * FIXTURE_MS;
    if (!o.gc_interval_us)
        o.gc_interval_us = -1;
    do
        st = pawl_open(&o, &p, &err);
    while (again(st, &until_us, &err));
    OK(st, &err);
    return p;
}

struct pawl *fixture_open(const void *param)
{
    return fixture_open_as(param, (struct pawl_options){ 0 });
}

void fixture_on(struct pawl *p, const char *type, pawl_handler *handler)
{
    OK(pawl_on(pawl_program(p), type, "run", handler), NULL);
}

void fixture_assume_quick(void)
{
#ifdef PAWL_TEST
    durations_assumed_us = 100;
#else
    FAIL("this build has no hooks");
#endif
}

void fixture_start(struct pawl *p, int slots)
{
    struct pawl_err err;
    enum pawl_status st;
    int64_t until_us = 0;
    do
        st = pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = slots }, &err);
    while (again(st, &until_us, &err));
    OK(st, &err);
}

/* A call that is reported as a duplicate after an UNKNOWN was stored by ourselves. */
static void submit(struct pawl *p, const struct pawl_spec *v, struct pawl_receipt *r, int n,
                   unsigned flags)
{
    struct pawl_err err;
    enum pawl_status st;
    int64_t until_us = 0;
    bool unknown = false;
    while (again(st = pawl_submit(p, v, (size_t)n, flags, r, &err), &until_us, &err) && v->id)
        unknown |= st == PAWL_UNKNOWN;
    OK(st, &err);
    for (int i = 0; i < n && unknown; i++)
        r[i].duplicate = false;
}

struct pawl_receipt fixture_offer(struct pawl *p, struct pawl_spec s)
{
    struct pawl_receipt r;
    s.size = sizeof s;
    submit(p, &s, &r, 1, 0);
    return r;
}

void fixture_submit_as(struct pawl *p, struct pawl_spec s)
{
    struct pawl_receipt r = fixture_offer(p, s);
    if (r.status != PAWL_OK || r.duplicate)
        FAIL("call \"%s\" is %s%s: %s", r.id, pawl_status_name(r.status),
             r.duplicate ? ", a duplicate" : "", r.error);
}

void fixture_submit(struct pawl *p, const char *id, const char *type)
{
    fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = type });
}

void fixture_submit_many(struct pawl *p, const char *type, int n)
{
    struct pawl_spec *v = calloc((size_t)n, sizeof *v);
    struct pawl_receipt *r = calloc((size_t)n, sizeof *r);
    char(*ids)[16] = calloc((size_t)n, sizeof *ids);
    TRUE(v && r && ids);
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "c%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = type };
    }
    submit(p, v, r, n, PAWL_ATOMIC);
    for (int i = 0; i < n; i++) {
        EQ_STATUS(r[i].status, PAWL_OK, NULL);
        FALSE(r[i].duplicate);
    }
    free(v);
    free(r);
    free(ids);
}

struct pawl_shown *fixture_get(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    enum pawl_status st;
    int64_t until_us = 0;
    do
        st = pawl_get(p, id, 0, &shown, &err);
    while (again(st, &until_us, &err));
    OK(st, &err);
    return shown;
}

enum pawl_state fixture_state(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = fixture_get(p, id);
    enum pawl_state state = pawl_shown_view(shown)->state;
    pawl_shown_free(shown);
    return state;
}

enum pawl_state fixture_ended(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    OK(pawl_get(p, id, FIXTURE_WAIT_US > 300 * FIXTURE_SEC ? 300 * FIXTURE_SEC : FIXTURE_WAIT_US,
                &shown, &err),
       &err);
    enum pawl_state state = pawl_shown_view(shown)->state;
    pawl_shown_free(shown);
    return state;
}

void fixture_ends(struct pawl *p, const char *id, enum pawl_state want)
{
    enum pawl_state got = fixture_ended(p, id);
    if (got != want)
        FAIL("call \"%s\" is %s, not %s", id, pawl_state_name(got), pawl_state_name(want));
}

/* Reads all calls once, newest first. A call whose state changes meanwhile is counted as it was
 * read. */
static int count(struct pawl *p, enum pawl_state state, bool open_only)
{
    struct pawl_query q = { PAWL_QUERY_INIT, .state = state, .limit = 1000 };
    struct pawl_err err;
    char cursor[200] = "";
    int64_t until_us = 0;
    int n = 0;
    for (;;) {
        struct pawl_page *page;
        enum pawl_status st;
        do
            st = pawl_list(p, &q, &page, &err);
        while (again(st, &until_us, &err));
        OK(st, &err);
        for (size_t i = 0; i < page->n; i++)
            n += !open_only || !pawl_state_ended(page->calls[i].state);
        bool more = page->next != NULL;
        if (more)
            snprintf(cursor, sizeof cursor, "%s", page->next);
        pawl_page_free(page);
        if (!more)
            return n;
        q.cursor = cursor;
    }
}

int fixture_count(struct pawl *p, enum pawl_state state)
{
    return count(p, state, false);
}

/* Print the calls that have not ended, before the case fails. */
static void print_open(struct pawl *p)
{
    struct pawl_query q = { PAWL_QUERY_INIT, .limit = 1000 };
    struct pawl_page *page;
    OK(pawl_list(p, &q, &page, NULL), NULL);
    for (size_t i = 0; i < page->n; i++) {
        const struct pawl_view *v = &page->calls[i];
        if (!pawl_state_ended(v->state))
            printf("%s is %s on %s, waits for %s, %d attempts, %d lost\n", v->id,
                   pawl_state_name(v->state), v->node ? v->node : "-",
                   v->waiting_for ? v->waiting_for : "-", v->attempts, v->lost);
    }
    pawl_page_free(page);
}

void fixture_drain(struct pawl *p)
{
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    while (count(p, 0, true) > 0) {
        if (fixture_mono() > until) {
            print_open(p);
            FAIL("these calls did not end");
        }
        usleep(1000);
    }
}

struct pawl_lease *fixture_claim(struct pawl *p, const char *type, int max)
{
    struct pawl_lease *l;
    struct pawl_err err;
    struct pawl_claim c = { PAWL_CLAIM_INIT, .types = &type, .n_types = 1, .max = max };
    OK(pawl_claim(p, &c, &l, &err), &err);
    GT_INT((int64_t)l->n, 0);
    return l;
}

enum pawl_status fixture_finish(struct pawl *p, const char *token, const char *id,
                                enum pawl_ending how, enum pawl_state *out, struct pawl_err *err)
{
    struct pawl_finish f = { PAWL_FINISH_INIT, .id = id, .how = how, .error = "by hand" };
    if (how == PAWL_END_RESULT)
        f.result = PAWL_TEXT("1");
    return pawl_finish(p, token, &f, 1, out, err);
}

int fixture_echo(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_reply(c, pawl_input(c));
}

int fixture_fails(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_fail(c, "no luck with %s", pawl_call_id(c));
}

int fixture_refuse(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    return pawl_refuse(c, "never %s", pawl_call_id(c));
}

int fixture_blocks(struct pawl_call *c)
{
    atomic_fetch_add(&fixture_runs, 1);
    atomic_fetch_add(&fixture_inside, 1);
    while (!atomic_load(&gate))
        usleep(1000);
    atomic_fetch_sub(&fixture_inside, 1);
    return pawl_reply_int(c, 1);
}

void fixture_open_gate(void)
{
    atomic_store(&gate, true);
}
