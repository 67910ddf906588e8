/*
 * key_fixture.c - see key_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "key_fixture.h"

char keyf_order[4096];
atomic_int keyf_overlaps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int inside;

void keyf_note(const char *id)
{
    pthread_mutex_lock(&lock);
    size_t len = strlen(keyf_order);
    snprintf(keyf_order + len, sizeof keyf_order - len, "%s ", id);
    pthread_mutex_unlock(&lock);
}

bool keyf_noted(const char *id)
{
    pthread_mutex_lock(&lock);
    bool is = strstr(keyf_order, id);
    pthread_mutex_unlock(&lock);
    return is;
}

int keyf_counts(struct pawl_call *c)
{
    if (atomic_fetch_add(&inside, 1) > 0)
        atomic_fetch_add(&keyf_overlaps, 1);
    keyf_note(pawl_call_id(c));
    int64_t n = pawl_state_int(c, 0) + 1;
    EQ_INT(pawl_set_state_int(c, n), 0);
    EQ_INT(pawl_state_int(c, 0), n); /* it sees what it has set */
    atomic_fetch_sub(&inside, 1);
    return pawl_reply_int(c, n);
}

void keyf_submit(struct pawl *p, const char *type, int n)
{
    struct pawl_spec *v = calloc((size_t)n, sizeof *v);
    struct pawl_receipt *r = calloc((size_t)n, sizeof *r);
    char(*ids)[16] = calloc((size_t)n, sizeof *ids);
    struct pawl_err err;
    fixture_assume_quick(); /* so that they are claimed in runs */
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "c%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT,      .id = ids[i],      .type = type,
                                   .key = "k",          .max_attempts = 2, .backoff_base_us = 1000,
                                   .backoff_jitter = -1 };
    }
    OK(pawl_submit(p, v, (size_t)n, 0, r, &err), &err);
    for (int i = 0; i < n; i++)
        EQ_INT(r[i].status, PAWL_OK);
    free(v);
    free(r);
    free(ids);
}

int64_t keyf_result(struct pawl *p, const char *id)
{
    struct pawl_shown *s = fixture_get(p, id);
    const struct pawl_view *v = pawl_shown_view(s);
    char text[32] = "";
    if (v->result.form == PAWL_JSON)
        snprintf(text, sizeof text, "%.*s", (int)v->result.len, (const char *)v->result.data);
    pawl_shown_free(s);
    return *text ? strtoll(text, NULL, 10) : INT64_MIN;
}

int64_t keyf_number(struct pawl *p, const char *id)
{
    struct pawl_shown *s = fixture_get(p, id);
    int64_t n = pawl_shown_view(s)->key_no;
    pawl_shown_free(s);
    return n;
}

int64_t keyf_state(struct pawl *p, const char *type)
{
    struct pawl_object *o = NULL;
    struct pawl_err err;
    enum pawl_status st = pawl_object_load(p, type, "k", &o, &err);
    if (st == PAWL_NOT_FOUND)
        return -1;
    OK(st, &err);
    int64_t n = strtoll(o->state.data, NULL, 10);
    pawl_object_free(o);
    return n;
}

void keyf_fails(struct pawl *p, const char *id, const char *words)
{
    fixture_ends(p, id, PAWL_FAILED);
    struct pawl_shown *s = fixture_get(p, id);
    HAS_STR(pawl_shown_view(s)->error, words);
    pawl_shown_free(s);
}
