/*
 * history.c - storage of a history, relations between its parts, and promises 1 to 3.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

/* ---- Recording ------------------------------------------------------------------------------- */

static int64_t clock_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

/* The wall clock may be changed during a test, so it is read once and continued with the monotonic
 * clock. */
static int64_t offset_us;

int64_t history_now(void)
{
    return clock_us(CLOCK_MONOTONIC) + offset_us;
}

void history_init(struct history *h)
{
    if (!offset_us)
        offset_us = clock_us(CLOCK_REALTIME) - clock_us(CLOCK_MONOTONIC);
    *h = (struct history){ .began_us = history_now() };
}

void history_release(struct history *h)
{
    free(h->calls);
    free(h->asks);
    free(h->rows);
    free(h->attempts);
    free(h->wallets);
    free(h->counters);
    free(h->faults);
}

/* Make room for one more element; capacities are powers of two. */
static void *grown(void *v, size_t n, size_t size)
{
    if (n && (n & (n - 1)))
        return v;
    v = realloc(v, (n ? n * 2 : 1) * size);
    TRUE(v != NULL);
    return v;
}

#define ADD(list, count, one)                                                                      \
    do {                                                                                           \
        (list) = grown((list), (count), sizeof *(list));                                           \
        (list)[(count)++] = *(one);                                                                \
    } while (0)

size_t history_add_call(struct history *h, const struct history_call *c)
{
    ADD(h->calls, h->n_calls, c);
    return h->n_calls - 1;
}

void history_add_ask(struct history *h, const struct history_ask *a)
{
    ADD(h->asks, h->n_asks, a);
}

void history_add_row(struct history *h, const struct history_row *r)
{
    ADD(h->rows, h->n_rows, r);
}

void history_add_attempt(struct history *h, const struct history_attempt *t)
{
    ADD(h->attempts, h->n_attempts, t);
}

void history_add_wallet(struct history *h, const struct history_sum *s)
{
    ADD(h->wallets, h->n_wallets, s);
}

void history_add_counter(struct history *h, const struct history_sum *s)
{
    ADD(h->counters, h->n_counters, s);
}

void history_add_fault(struct history *h, const struct history_fault *f)
{
    ADD(h->faults, h->n_faults, f);
}

void history_add_all(struct history *h, const struct history *from)
{
    size_t base = h->n_calls;
    for (size_t i = 0; i < from->n_calls; i++)
        history_add_call(h, &from->calls[i]);
    for (size_t i = 0; i < from->n_asks; i++) {
        struct history_ask a = from->asks[i];
        a.call += base;
        history_add_ask(h, &a);
    }
    for (size_t i = 0; i < from->n_faults; i++)
        history_add_fault(h, &from->faults[i]);
}

/* ---- Findings -------------------------------------------------------------------------------- */

void history_found(struct history *h, int promise, const char *format, ...)
{
    va_list args;
    h->broken[promise]++;
    if (h->n_found == HISTORY_SHOWN)
        return;
    char *line = h->found[h->n_found++];
    int n = snprintf(line, HISTORY_LINE, "promise %d: ", promise);
    va_start(args, format);
    vsnprintf(line + n, HISTORY_LINE - (size_t)n, format, args);
    va_end(args);
}

double history_at(const struct history *h, int64_t us)
{
    return (double)(us - h->began_us) / 1e6;
}

const char *history_state(int state)
{
    const char *name = state ? pawl_state_name((enum pawl_state)state) : NULL;
    return name ? name : "not ended";
}

/* ---- Relations ------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct history_row *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int id_of(const void *id, const void *row)
{
    return strcmp(id, ((const struct history_row *)row)->id);
}

static struct history_row *row_of(struct history *h, const char *id)
{
    if (!h->n_rows)
        return NULL;
    return bsearch(id, h->rows, h->n_rows, sizeof *h->rows, id_of);
}

static void see(struct history_call *c, const struct history_ask *a)
{
    bool accepted = a->status == 200 || a->status == 202;
    if (a->other)
        return;
    if (!c->begun_us || a->sent_us < c->begun_us)
        c->begun_us = a->sent_us;
    if (accepted && (!c->accepted_us || a->answered_us < c->accepted_us))
        c->accepted_us = a->answered_us;
    if (accepted && pawl_state_ended((enum pawl_state)a->state) &&
        (!c->ended_us || a->answered_us < c->ended_us))
        c->ended_us = a->answered_us;
}

/* From here on rows do not move, so pointers to them stay valid. */
static void join(struct history *h)
{
    if (h->n_rows)
        qsort(h->rows, h->n_rows, sizeof *h->rows, by_id);
    for (size_t i = 0; i < h->n_asks; i++)
        see(&h->calls[h->asks[i].call], &h->asks[i]);
    for (size_t i = 0; i < h->n_calls; i++) {
        struct history_row *r = row_of(h, h->calls[i].id);
        h->calls[i].row = r;
        if (r)
            r->call = &h->calls[i];
    }
    for (size_t i = 0; i < h->n_rows; i++) {
        struct history_row *r = &h->rows[i];
        struct history_row *parent = *r->parent ? row_of(h, r->parent) : NULL;
        if (parent) {
            r->sender = parent->call;
            parent->sent++;
        }
    }
}

/* ---- 1: accepted means stored ---------------------------------------------------------------- */

static const char *method_of(const struct history_call *c)
{
    static const char *const names[] = { "add", "transfer", "count", "crash" };
    return names[c->kind];
}

static void check_stored(struct history *h, const struct history_call *c)
{
    const struct history_row *r = c->row;
    if (c->accepted_us && !r)
        history_found(h, 1, "call %s was accepted at %.3f s and is not in the database", c->id,
                      history_at(h, c->accepted_us));
    if (r && (strcmp(r->key, c->key) != 0 || strcmp(r->method, method_of(c)) != 0))
        history_found(h, 1, "call %s is %s of \"%s\" and is stored as %s of \"%s\"", c->id,
                      method_of(c), c->key, r->method, r->key);
}

/* ---- 2: as often as asked -------------------------------------------------------------------- */

static void check_sent(struct history *h, const struct history_row *r)
{
    bool moved = r->state == PAWL_COMPLETED && strcmp(r->method, "transfer") == 0;
    if (r->sent != moved)
        history_found(h, 2, "call %s (%s, %s) sent %d calls instead of %d", r->id, r->method,
                      history_state(r->state), r->sent, moved);
}

static void check_asked_for(struct history *h, const struct history_row *r)
{
    const struct history_call *from = r->sender;
    if (!r->call && !from)
        history_found(h, 2, "call %s (%s of \"%s\") is one that nobody asked for", r->id, r->method,
                      r->key);
    else if (!r->call && (strcmp(r->method, "add") != 0 || strcmp(r->key, from->to) != 0))
        history_found(h, 2, "call %s sent %s to \"%s\" instead of add to \"%s\"", from->id,
                      r->method, r->key, from->to);
}

static void check_rows(struct history *h)
{
    for (size_t i = 0; i < h->n_rows; i++) {
        const struct history_row *r = &h->rows[i];
        if (i && strcmp(r->id, r[-1].id) == 0)
            history_found(h, 2, "call %s is there twice, as %lld and %lld", r->id,
                          (long long)r[-1].seq, (long long)r->seq);
        check_asked_for(h, r);
        check_sent(h, r);
    }
}

/* ---- 3: a duplicate gets the first one's answer ---------------------------------------------- */

static int by_call(const void *a, const void *b)
{
    const struct history_ask *x = a, *y = b;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    return x->sent_us < y->sent_us ? -1 : x->sent_us > y->sent_us;
}

/* No answer, or one that asks for a retry. */
static bool no_answer(int status)
{
    return status == 0 || status == 429 || status == 503 || status == 504;
}

static void check_other(struct history *h, const struct history_ask *a)
{
    const struct history_call *c = &h->calls[a->call];
    if (!no_answer(a->status) && a->status != 409)
        history_found(h, 3, "call %s with another meaning was answered %d by n%d at %.3f s", c->id,
                      a->status, a->node, history_at(h, a->answered_us));
}

static void check_outcome(struct history *h, const struct history_ask *a)
{
    const struct history_call *c = &h->calls[a->call];
    const struct history_row *r = c->row;
    if (!r) /* reported under promise 1 */
        return;
    if (!pawl_state_ended((enum pawl_state)a->state)) {
        if (c->ended_us && c->ended_us < a->sent_us)
            history_found(h, 3, "call %s had ended at %.3f s and was %s on n%d at %.3f s", c->id,
                          history_at(h, c->ended_us), history_state(a->state), a->node,
                          history_at(h, a->answered_us));
        return;
    }
    bool result = a->state != PAWL_COMPLETED || a->result == r->result;
    if (a->state != r->state || !result || strcmp(a->error, r->error) != 0)
        history_found(
            h, 3, "call %s: n%d answered %s %lld \"%s\" at %.3f s, stored is %s %lld \"%s\"", c->id,
            a->node, history_state(a->state), (long long)a->result, a->error,
            history_at(h, a->answered_us), history_state(r->state), (long long)r->result, r->error);
}

static void check_answer(struct history *h, const struct history_ask *a)
{
    const struct history_call *c = &h->calls[a->call];
    if (a->other) {
        check_other(h, a);
    } else if (a->status == 200 || a->status == 202) {
        check_outcome(h, a);
        if (!a->duplicate && c->accepted_us < a->sent_us)
            history_found(h, 3, "call %s was accepted at %.3f s and again as new by n%d at %.3f s",
                          c->id, history_at(h, c->accepted_us), a->node,
                          history_at(h, a->answered_us));
    } else if (!no_answer(a->status)) {
        history_found(h, 3, "call %s was answered %d \"%s\" by n%d at %.3f s", c->id, a->status,
                      a->error, a->node, history_at(h, a->answered_us));
    }
}

/* Of concurrent requests for one call, at most one may be answered as new. */
static void check_first(struct history *h, const struct history_ask *v, size_t n)
{
    const struct history_ask *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (v[i].other || v[i].duplicate || (v[i].status != 200 && v[i].status != 202))
            continue;
        if (first)
            history_found(h, 3, "call %s was new to n%d at %.3f s and to n%d at %.3f s",
                          h->calls[v[i].call].id, first->node, history_at(h, first->answered_us),
                          v[i].node, history_at(h, v[i].answered_us));
        first = &v[i];
    }
}

void history_check_asks(struct history *h)
{
    for (size_t i = 0; i < h->n_calls; i++)
        check_stored(h, &h->calls[i]);
    check_rows(h);
    if (h->n_asks)
        qsort(h->asks, h->n_asks, sizeof *h->asks, by_call);
    for (size_t i = 0, n; i < h->n_asks; i += n) {
        for (n = 1; i + n < h->n_asks && h->asks[i + n].call == h->asks[i].call;)
            n++;
        check_first(h, &h->asks[i], n);
        for (size_t k = i; k < i + n; k++)
            check_answer(h, &h->asks[k]);
    }
}

int history_check(struct history *h)
{
    int n = 0;
    join(h);
    history_check_asks(h);
    history_check_lines(h);
    history_check_owners(h);
    for (int i = 1; i <= HISTORY_PROMISES; i++)
        n += h->broken[i];
    return n;
}
