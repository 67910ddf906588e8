/*
 * lane.c - a bounded queue of errands and the thread that does them, a group at a time.
 *
 * While one group commits, the next one collects: nothing waits for a timer, and an idle server
 * answers one request with one commit.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "events/inside.h"

bool lane_post(struct lane *l, struct errand *j)
{
    pthread_mutex_lock(&l->lock);
    bool room = l->n < l->max && !l->over;
    if (room) {
        j->next = NULL;
        *l->last = j;
        l->last = &j->next;
        l->n++;
        pthread_cond_signal(&l->cond);
    }
    pthread_mutex_unlock(&l->lock);
    return room;
}

/* Take up to group_max errands that were not dropped; 0: the lane is closed. Dropped ones go to the
 * list `dropped` instead of v. */
static size_t take(struct lane *l, struct errand **v, struct errand **dropped)
{
    size_t n = 0;
    *dropped = NULL;
    pthread_mutex_lock(&l->lock);
    while (!l->first && !l->over)
        pthread_cond_wait(&l->cond, &l->lock);
    while (l->first && n < l->group_max && !l->over) {
        struct errand *j = l->first;
        enum errand_stage queued = ERRAND_QUEUED;
        l->first = j->next;
        l->n--;
        if (atomic_compare_exchange_strong(&j->stage, &queued, ERRAND_TAKEN)) {
            v[n++] = j;
        } else {
            j->next = *dropped;
            *dropped = j;
        }
    }
    if (!l->first)
        l->last = &l->first;
    pthread_mutex_unlock(&l->lock);
    return n;
}

static void give_back(struct lane *l, struct errand *list)
{
    while (list) {
        struct errand *j = list;
        list = j->next;
        loop_post(l->loop, &j->back);
    }
}

static bool is_over(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    bool over = l->over;
    pthread_mutex_unlock(&l->lock);
    return over;
}

static void *lane_main(void *arg)
{
    struct lane *l = arg;
    struct errand **v = mem_alloc(l->group_max * sizeof *v), *dropped;
    while (v && !is_over(l)) {
        size_t n = take(l, v, &dropped);
        if (n)
            l->run(l->db, v, n);
        for (size_t i = 0; i < n; i++)
            loop_post(l->loop, &v[i]->back);
        give_back(l, dropped);
    }
    mem_free(v);
    return NULL;
}

enum pawl_status lane_open(struct lane *l, struct pawl_err *err)
{
    l->last = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->cond, NULL);
    l->runs = pthread_create(&l->thread, NULL, lane_main, l) == 0;
    return l->runs ? PAWL_OK : err_no_memory(err, "a thread for the database");
}

void lane_close(struct lane *l)
{
    if (l->runs) {
        pthread_mutex_lock(&l->lock);
        l->over = true;
        pthread_cond_signal(&l->cond);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
        pthread_mutex_destroy(&l->lock);
        pthread_cond_destroy(&l->cond);
        l->runs = false;
    }
    events_db_close(l->db);
    l->db = NULL;
}
