/*
 * history_owners.c - promises 5 to 7 from lost attempts: which node lost them, which node had the
 * call afterwards, and which fault explains it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "history.h"

#define SEC INT64_C(1000000)
/* How long recovery may take beyond the grace. */
#define RECOVERY_US (2 * SEC)

static int by_seq(const void *a, const void *b)
{
    const struct history_attempt *x = a, *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return x->no < y->no ? -1 : x->no > y->no;
}

static int rows_by_seq(const void *a, const void *b)
{
    const struct history_row *x = *(const struct history_row *const *)a;
    const struct history_row *y = *(const struct history_row *const *)b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static const char *id_of(const struct history_attempt *t)
{
    return t->row ? t->row->id : "(unknown)";
}

/* Sort lost attempts by call, and find the row of each. */
static void join(struct history *h)
{
    struct history_row **v = calloc(h->n_rows + 1, sizeof(struct history_row *));
    size_t at = 0;
    TRUE(v != NULL);
    for (size_t i = 0; i < h->n_rows; i++)
        v[i] = &h->rows[i];
    qsort(v, h->n_rows, sizeof *v, rows_by_seq);
    if (h->n_attempts)
        qsort(h->attempts, h->n_attempts, sizeof *h->attempts, by_seq);
    for (size_t i = 0; i < h->n_attempts; i++) {
        while (at < h->n_rows && v[at]->seq < h->attempts[i].seq)
            at++;
        bool found = at < h->n_rows && v[at]->seq == h->attempts[i].seq;
        h->attempts[i].row = found ? v[at] : NULL;
        if (found)
            v[at]->n_lost++;
    }
    free(v);
}

/* ---- 5: a stale owner can change nothing ----------------------------------------------------- */

/* The attempt that ended the call must have been claimed after the lost attempt was taken back. The
 * time of a claim may be read shortly before the commit it sees; a stale owner would be off by a
 * whole grace. */
static void check_stale(struct history *h, const struct history_attempt *t)
{
    const struct history_row *r = t->row;
    if (r && r->state && r->state != PAWL_DEAD_LETTER &&
        r->claimed_us < t->finished_us - h->grace_us / 2)
        history_found(h, 5,
                      "call %s was taken from %s at %.3f s, and its outcome of %.3f s is that of "
                      "%s, which had it since %.3f s",
                      r->id, t->node, history_at(h, t->finished_us), history_at(h, r->finished_us),
                      r->node, history_at(h, r->claimed_us));
}

/* ---- 6: recovery, and nobody is declared dead who lives -------------------------------------- */

/* The total time of other faults between two moments: while they last, no node observes the others.
 */
static int64_t trouble_us(const struct history *h, const struct history_fault *but, int64_t from_us,
                          int64_t to_us)
{
    int64_t sum = 0;
    for (size_t i = 0; i < h->n_faults; i++) {
        const struct history_fault *f = &h->faults[i];
        if (f != but && f->at_us < to_us && f->until_us + h->grace_us > from_us)
            sum += f->until_us - f->at_us + h->grace_us;
    }
    return sum;
}

static bool explains(const struct history *h, const struct history_fault *f,
                     const struct history_attempt *t)
{
    if (f->node < 0 || f->at_us > t->finished_us + h->slack_us || t->node[0] != 'n' ||
        strtol(t->node + 1, NULL, 10) != f->node)
        return false;
    return t->finished_us <= f->until_us + h->grace_us + RECOVERY_US + h->slack_us +
                                 trouble_us(h, f, f->at_us, t->finished_us);
}

static void check_explained(struct history *h, const struct history_attempt *t)
{
    const struct history_fault *last = NULL;
    for (size_t i = 0; i < h->n_faults; i++) {
        const struct history_fault *f = &h->faults[i];
        if (explains(h, f, t))
            return;
        if (f->node >= 0 && t->node[0] == 'n' && strtol(t->node + 1, NULL, 10) == f->node &&
            f->at_us <= t->finished_us && (!last || f->at_us > last->at_us))
            last = f;
    }
    history_found(h, 6, "call %s was taken from %s at %.3f s, %s%.3f s", id_of(t), t->node,
                  history_at(h, t->finished_us),
                  last ? "whose last fault was over at " : "which had none since ",
                  last ? history_at(h, last->until_us) : 0.0);
}

static void check_ended(struct history *h)
{
    for (size_t i = 0; i < h->n_rows; i++)
        if (!h->rows[i].state)
            history_found(h, 6, "call %s (%s of \"%s\", seq %lld) has not ended", h->rows[i].id,
                          h->rows[i].method, h->rows[i].key, (long long)h->rows[i].seq);
    if (h->left)
        history_found(h, 6, "%lld rows wait or are held when all is over", (long long)h->left);
}

/* ---- 7: bad work cannot block good work ------------------------------------------------------ */

static void check_poison(struct history *h, const struct history_row *r)
{
    if (r->state && (r->state != PAWL_DEAD_LETTER || r->lost != r->call->amount))
        history_found(h, 7, "poison %s ended %s after %d deaths instead of dead_letter after %lld",
                      r->id, history_state(r->state), r->lost, (long long)r->call->amount);
}

static void check_good(struct history *h, const struct history_row *r)
{
    bool fine = r->state == PAWL_COMPLETED || (r->state == PAWL_FAILED && *r->key);
    if (r->state && (!fine || (r->state == PAWL_FAILED && !strstr(r->error, "is not enough for"))))
        history_found(h, 7, "call %s ended %s \"%s\" at %.3f s, %d errors, %d lost", r->id,
                      history_state(r->state), r->error, history_at(h, r->finished_us), r->attempts,
                      r->lost);
}

/* Nodes abort only because of poison calls, and each poison call may kill only as often as it says.
 */
static void check_deaths(struct history *h)
{
    int64_t deaths = 0, may = 0;
    for (size_t i = 0; i < h->n_faults; i++)
        deaths += h->faults[i].kind == HISTORY_DEATH;
    for (size_t i = 0; i < h->n_rows; i++)
        may += h->rows[i].call && h->rows[i].call->kind == HISTORY_POISON ? h->rows[i].lost : 0;
    if (deaths > may)
        history_found(h, 7, "%lld nodes aborted, and poison was lost %lld times", (long long)deaths,
                      (long long)may);
}

static void check_charged(struct history *h, const struct history_row *r)
{
    if (r->state && r->lost != r->n_lost)
        history_found(h, 7, "call %s was charged %d lost attempts, and %d are recorded", r->id,
                      r->lost, r->n_lost);
}

static void check_counts(struct history *h)
{
    for (size_t i = 0, n; i < h->n_attempts; i += n) {
        const struct history_attempt *t = &h->attempts[i];
        for (n = 1; i + n < h->n_attempts && h->attempts[i + n].seq == t->seq;)
            n++;
        if (!t->row)
            history_found(h, 1, "an attempt of call number %lld is there without it",
                          (long long)t->seq);
        for (size_t k = i; k < i + n; k++) {
            check_stale(h, &h->attempts[k]);
            check_explained(h, &h->attempts[k]);
            if (k > i && h->attempts[k].finished_us <= h->attempts[k - 1].finished_us)
                history_found(h, 7, "call %s was charged twice at %.3f s", id_of(t),
                              history_at(h, h->attempts[k].finished_us));
        }
    }
}

void history_check_owners(struct history *h)
{
    join(h);
    check_counts(h);
    check_deaths(h);
    check_ended(h);
    for (size_t i = 0; i < h->n_rows; i++) {
        const struct history_row *r = &h->rows[i];
        check_charged(h, r);
        if (r->call && r->call->kind == HISTORY_POISON)
            check_poison(h, r);
        else
            check_good(h, r);
    }
}
