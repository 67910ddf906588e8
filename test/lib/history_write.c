/*
 * history_write.c - write a history as text, to find out what happened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "history.h"

static int by_place(const void *a, const void *b)
{
    const struct history_row *x = *(const struct history_row *const *)a;
    const struct history_row *y = *(const struct history_row *const *)b;
    int order = strcmp(x->key, y->key);
    if (!order)
        order = x->key_no < y->key_no ? -1 : x->key_no > y->key_no;
    return order ? order : x->finished_us < y->finished_us ? -1 : x->finished_us > y->finished_us;
}

static void write_row(const struct history *h, FILE *f, const struct history_row *r)
{
    const struct history_call *c = r->call ? r->call : r->sender;
    fprintf(f, "row\t%s\t%lld\t%s\tseq %lld\t%s %s %lld\t%s\t%lld\t%s\t", r->key,
            (long long)r->key_no, r->id, (long long)r->seq, r->method, c ? c->to : "",
            (long long)(c ? c->amount : 0), history_state(r->state),
            (long long)(r->result == HISTORY_NONE ? -1 : r->result), r->node);
    fprintf(f, "claimed %.6f\tstarted %.6f\tfinished %.6f\tattempts %d\tlost %d\t%s\n",
            history_at(h, r->claimed_us), history_at(h, r->started_us),
            history_at(h, r->finished_us), r->attempts, r->lost, r->error);
}

static void write_rows(const struct history *h, FILE *f)
{
    const struct history_row **v = calloc(h->n_rows + 1, sizeof(const struct history_row *));
    TRUE(v != NULL);
    for (size_t i = 0; i < h->n_rows; i++)
        v[i] = &h->rows[i];
    qsort(v, h->n_rows, sizeof *v, by_place);
    for (size_t i = 0; i < h->n_rows; i++)
        write_row(h, f, v[i]);
    free(v);
}

void history_write(const struct history *h, const char *path)
{
    static const char *const kinds[] = { "killed", "frozen", "died", "database away" };
    FILE *f = fopen(path, "w");
    TRUE(f != NULL);
    write_rows(h, f);
    for (size_t i = 0; i < h->n_attempts; i++)
        fprintf(f, "lost\t%s\tseq %lld\t%s\t%.6f\n",
                h->attempts[i].row ? h->attempts[i].row->id : "?", (long long)h->attempts[i].seq,
                h->attempts[i].node, history_at(h, h->attempts[i].finished_us));
    for (size_t i = 0; i < h->n_faults; i++)
        fprintf(f, "fault\tn%d\t%s\t%.6f\t%.6f\n", h->faults[i].node, kinds[h->faults[i].kind],
                history_at(h, h->faults[i].at_us), history_at(h, h->faults[i].until_us));
    for (size_t i = 0; i < h->n_asks; i++) {
        const struct history_ask *a = &h->asks[i];
        fprintf(f, "ask\t%s\tn%d\t%.6f\t%.6f\t%d\t%s%s%s\t%lld\t%s\n", h->calls[a->call].id,
                a->node, history_at(h, a->sent_us), a->status ? history_at(h, a->answered_us) : 0.0,
                a->status, history_state(a->state), a->duplicate ? " duplicate" : "",
                a->other ? " other" : "", (long long)(a->result == HISTORY_NONE ? -1 : a->result),
                a->error);
    }
    fclose(f);
}
