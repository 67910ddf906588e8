/*
 * history_lines.c - promise 4 from the order of each key's calls; promise 2 from what the calls did
 * to balances and counters, and from the total of all money.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "history.h"

/* A wallet's error when its balance is too small. */
#define REFUSAL "is not enough for"

/* ---- 4: one at a time, in order -------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct history_row *x = *(const struct history_row *const *)a;
    const struct history_row *y = *(const struct history_row *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->key_no < y->key_no ? -1 : x->key_no > y->key_no;
}

/* When the first request for the call was sent; 0: never. For a call that another one sent: when
 * that one was requested. */
static int64_t begun_us(const struct history_row *r)
{
    return r->call ? r->call->begun_us : r->sender ? r->sender->begun_us : 0;
}

/* When a client knew that the call was stored; 0: never. For a call that another one sent: when
 * that one ended. */
static int64_t standing_us(const struct history_row *r)
{
    return r->call ? r->call->accepted_us : r->sender ? r->sender->ended_us : 0;
}

/* From the last call of the key backwards: no call may have been accepted before a call that ran
 * before it was requested. */
static void check_overtaken(struct history *h, const struct history_row *const *v, size_t n)
{
    const struct history_row *first = NULL; /* of the later calls, the one that was accepted first
                                             */
    for (size_t i = n; i-- > 0;) {
        if (first && begun_us(v[i]) && standing_us(first) < begun_us(v[i]))
            history_found(h, 4,
                          "key %s: call %s was accepted at %.3f s, before call %s was asked for at "
                          "%.3f s, and ran behind it (%lld, %lld)",
                          v[i]->key, first->id, history_at(h, standing_us(first)), v[i]->id,
                          history_at(h, begun_us(v[i])), (long long)first->key_no,
                          (long long)v[i]->key_no);
        if (standing_us(v[i]) && (!first || standing_us(v[i]) < standing_us(first)))
            first = v[i];
    }
}

static void check_alone(struct history *h, const struct history_row *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i]->key_no != (int64_t)i + 1) {
            history_found(h, 4, "key %s: call %s has the number %lld at place %zu", v[i]->key,
                          v[i]->id, (long long)v[i]->key_no, i + 1);
            return; /* all later calls of the key would be reported too */
        }
        if (i && v[i]->started_us < v[i - 1]->finished_us)
            history_found(h, 4, "key %s: call %s began at %.6f s, and %s before it ended at %.6f s",
                          v[i]->key, v[i]->id, history_at(h, v[i]->started_us), v[i - 1]->id,
                          history_at(h, v[i - 1]->finished_us));
    }
}

/* ---- 2: one effect per id -------------------------------------------------------------------- */

static int64_t amount_of(const struct history_row *r)
{
    if (r->call)
        return r->call->kind == HISTORY_TRANSFER ? -r->call->amount : r->call->amount;
    return r->sender ? r->sender->amount : 0;
}

/* Check one call's effect. Returns the balance after it. */
static int64_t check_step(struct history *h, const struct history_row *r, int64_t balance)
{
    int64_t sum = balance + amount_of(r);
    if (r->state == PAWL_FAILED && strstr(r->error, REFUSAL)) {
        if (sum >= 0)
            history_found(h, 2, "wallet %s: call %s was refused with %lld at %lld", r->key, r->id,
                          (long long)balance, (long long)amount_of(r));
        return balance;
    }
    if (r->state != PAWL_COMPLETED) /* reported under promises 6 and 7 */
        return balance;
    if (r->result != sum || sum < 0)
        history_found(h, 2,
                      "wallet %s: call %s (number %lld) left %lld, and %lld with %lld is %lld",
                      r->key, r->id, (long long)r->key_no, (long long)r->result, (long long)balance,
                      (long long)amount_of(r), (long long)sum);
    return r->result;
}

static const struct history_sum *sum_of(const struct history_sum *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].name, name) == 0)
            return &v[i];
    return NULL;
}

static void check_line(struct history *h, const struct history_row *const *v, size_t n)
{
    const struct history_sum *kept = sum_of(h->wallets, h->n_wallets, v[0]->key);
    int64_t balance = 0;
    check_alone(h, v, n);
    check_overtaken(h, v, n);
    for (size_t i = 0; i < n; i++)
        balance = check_step(h, v[i], balance);
    if ((kept ? kept->n : 0) != balance)
        history_found(h, 2, "wallet %s holds %lld, and its calls left %lld (the last is %s)",
                      v[0]->key, (long long)(kept ? kept->n : 0), (long long)balance, v[n - 1]->id);
}

/* The total of all balances is what was paid in. While a call has not ended, a transfer may be
 * incomplete. */
static void check_money(struct history *h)
{
    int64_t there = 0, paid_in = 0;
    for (size_t i = 0; i < h->n_rows; i++)
        if (!h->rows[i].state)
            return;
    for (size_t i = 0; i < h->n_wallets; i++)
        there += h->wallets[i].n;
    for (size_t i = 0; i < h->n_rows; i++) {
        const struct history_call *c = h->rows[i].call;
        if (c && c->kind == HISTORY_ADD && h->rows[i].state == PAWL_COMPLETED)
            paid_in += c->amount;
    }
    if (there != paid_in)
        history_found(h, 2, "%lld was paid in, and the wallets hold %lld", (long long)paid_in,
                      (long long)there);
}

/* ---- 2: counters ----------------------------------------------------------------------------- */

static bool counts(const struct history_row *r)
{
    return r->call && r->call->kind == HISTORY_COUNT && r->state == PAWL_COMPLETED;
}

static int by_result(const void *a, const void *b)
{
    const struct history_row *x = *(const struct history_row *const *)a;
    const struct history_row *y = *(const struct history_row *const *)b;
    int order = strcmp(x->call->to, y->call->to);
    return order ? order : x->result < y->result ? -1 : x->result > y->result;
}

/* The results of one counter's calls are 1, 2, 3, ... without gaps. */
static void check_counter(struct history *h, const struct history_row *const *v, size_t n)
{
    const char *name = v[0]->call->to;
    const struct history_sum *kept = sum_of(h->counters, h->n_counters, name);
    if (!kept || kept->n != (int64_t)n)
        history_found(h, 2, "counter %s is at %lld, and %zu of its calls completed", name,
                      (long long)(kept ? kept->n : 0), n);
    for (size_t i = 0; i < n; i++)
        if (v[i]->result != (int64_t)i + 1) {
            history_found(
                h, 2, "counter %s: call %s is number %zu and counted %lld (before it: %s)", name,
                v[i]->id, i + 1, (long long)v[i]->result, i ? v[i - 1]->id : "none");
            return;
        }
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void check_counters(struct history *h, const struct history_row **v)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n_rows; i++)
        if (counts(&h->rows[i]))
            v[n++] = &h->rows[i];
    qsort(v, n, sizeof *v, by_result);
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && strcmp(v[i + k]->call->to, v[i]->call->to) == 0;)
            k++;
        check_counter(h, v + i, k);
    }
    for (size_t i = 0; i < h->n_counters; i++) {
        bool any = h->counters[i].n == 0;
        for (size_t k = 0; k < n && !any; k++)
            any = strcmp(v[k]->call->to, h->counters[i].name) == 0;
        if (!any)
            history_found(h, 2, "counter %s is at %lld, and none of its calls completed",
                          h->counters[i].name, (long long)h->counters[i].n);
    }
}

static void check_keys(struct history *h, const struct history_row **v)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n_rows; i++)
        if (*h->rows[i].key && h->rows[i].state) /* promise 6 reports the others */
            v[n++] = &h->rows[i];
    qsort(v, n, sizeof *v, by_place);
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && strcmp(v[i + k]->key, v[i]->key) == 0;)
            k++;
        check_line(h, v + i, k);
    }
}

void history_check_lines(struct history *h)
{
    const struct history_row **v = calloc(h->n_rows + 1, sizeof(const struct history_row *));
    TRUE(v != NULL);
    check_keys(h, v);
    check_counters(h, v);
    check_money(h);
    free(v);
}
