/*
 * accept.c - the same id submitted by many threads and handles at once: exactly one submit is new.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

enum { THREADS = 16 };

struct submitter {
    pthread_t thread;
    struct pawl *p;
    int round, which;
    bool differ;
    struct pawl_receipt receipt;
};

static pthread_barrier_t line;

static void *submits(void *arg)
{
    struct submitter *s = arg;
    char id[32], input[32];
    struct pawl_err err;
    snprintf(id, sizeof id, "x%d", s->round);
    snprintf(input, sizeof input, "%d", s->differ ? s->which : 0);
    struct pawl_spec spec = { PAWL_SPEC_INIT, .id = id, .type = "t" };
    spec.input = (struct pawl_data){ PAWL_JSON, input, strlen(input) };
    pthread_barrier_wait(&line);
    OK(pawl_submit(s->p, &spec, 1, 0, &s->receipt, &err), &err);
    return NULL;
}

/* One id, all threads: counts how many submits were new, duplicates, refused. */
static void round_of(struct pawl *const *handles, size_t n_handles, int round, bool differ)
{
    struct submitter v[THREADS];
    int fresh = 0, known = 0, refused = 0;
    int64_t seq = 0;
    pthread_barrier_init(&line, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        v[i] = (struct submitter){
            .p = handles[(size_t)i % n_handles], .round = round, .which = i, .differ = differ
        };
        EQ_INT(pthread_create(&v[i].thread, NULL, submits, &v[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(v[i].thread, NULL);
        const struct pawl_receipt *r = &v[i].receipt;
        fresh += r->status == PAWL_OK && !r->duplicate;
        known += r->status == PAWL_OK && r->duplicate;
        refused += r->status == PAWL_CONFLICT;
        if (r->status == PAWL_OK && seq)
            EQ_INT(r->seq, seq);
        if (r->status == PAWL_OK)
            seq = r->seq;
    }
    pthread_barrier_destroy(&line);
    EQ_INT(fresh, 1);
    EQ_INT(differ ? refused : known, THREADS - 1);
}

TEST(the_same_id_from_many_threads)
{
    struct pawl *p = fixture_open(param);
    for (int i = 0; i < (check_long() ? 60 : 10); i++)
        round_of(&p, 1, i, i % 2);
    EQ_INT(fixture_count(p, 0), check_long() ? 60 : 10);
    pawl_close(p);
}

TEST(the_same_id_from_many_handles)
{
    struct pawl *p[3] = { fixture_open(param),
                          fixture_open_as(param, (struct pawl_options){ .node = "b" }),
                          fixture_open_as(param, (struct pawl_options){ .node = "c" }) };
    int n = check_long() ? 25 : 5;
    for (int i = 0; i < n; i++)
        round_of(p, 3, i, i % 2);
    EQ_INT(fixture_count(p[0], 0), n);
    for (int i = 0; i < 3; i++)
        pawl_close(p[i]);
}

/* ---- Claims ---- */

struct claimer {
    pthread_t thread;
    struct pawl *p;
    int got;
};

static atomic_int taken[400];

static void *claims(void *arg)
{
    struct claimer *c = arg;
    for (;;) {
        struct pawl_lease *l;
        struct pawl_err err;
        OK(pawl_claim(c->p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .max = 3 }, &l, &err), &err);
        size_t n = l->n;
        for (size_t i = 0; i < n; i++) {
            int which = (int)l->calls[i].seq - 1;
            TRUE(which >= 0 && which < 400);
            atomic_fetch_add(&taken[which], 1);
            OK(fixture_finish(c->p, l->token, l->calls[i].id, PAWL_END_RESULT, NULL, &err), &err);
        }
        c->got += (int)n;
        pawl_lease_free(l);
        if (!n)
            return NULL;
    }
}

TEST(no_call_is_claimed_twice)
{
    enum { N = 6 };
    struct pawl *a = fixture_open(param),
                *b = fixture_open_as(param, (struct pawl_options){ .node = "b" });
    struct claimer v[N];
    int got = 0;
    fixture_submit_many(a, "t", 400);
    for (int i = 0; i < N; i++) {
        v[i] = (struct claimer){ .p = i % 2 ? a : b };
        EQ_INT(pthread_create(&v[i].thread, NULL, claims, &v[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(v[i].thread, NULL);
        got += v[i].got;
    }
    EQ_INT(got, 400);
    for (int i = 0; i < 400; i++)
        EQ_INT(atomic_load(&taken[i]), 1);
    EQ_INT(fixture_count(a, PAWL_COMPLETED), 400);
    pawl_close(a);
    pawl_close(b);
}

/* Many threads that submit and wait while the handlers run. */
static void *asks_around(void *arg)
{
    struct submitter *s = arg;
    for (int i = 0; i < 30; i++) {
        struct pawl_shown *shown;
        struct pawl_err err;
        char input[32];
        int len = snprintf(input, sizeof input, "[%d,%d]", s->which, i);
        struct pawl_spec spec = { PAWL_SPEC_INIT, .type = "t" };
        spec.input = (struct pawl_data){ PAWL_JSON, input, (size_t)len };
        OK(pawl_submit_wait(s->p, &spec, 100 * FIXTURE_SEC, &shown, &err), &err);
        EQ_INT(pawl_shown_view(shown)->state, PAWL_COMPLETED);
        EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, input,
                 (size_t)len);
        pawl_shown_free(shown);
    }
    return NULL;
}

TEST(everybody_gets_his_own_answer)
{
    struct pawl *p = fixture_open(param);
    struct submitter v[THREADS];
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 4);
    for (int i = 0; i < THREADS; i++) {
        v[i] = (struct submitter){ .p = p, .which = i };
        EQ_INT(pthread_create(&v[i].thread, NULL, asks_around, &v[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(v[i].thread, NULL);
    EQ_INT(atomic_load(&fixture_runs), THREADS * 30);
    pawl_close(p);
}
