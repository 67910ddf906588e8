/*
 * engine.c - a server engine beside its floor (engine.h): the threads and the rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char bench_result[] = "{\"sent\":true}";
const size_t bench_result_len = sizeof bench_result - 1;

/* ---- One connection -------------------------------------------------------------------------- */

struct hand {
    const struct bench_side *side;
    void *conn;
    struct bench_id *ids; /* owned; assigned before a round */
    size_t n_ids;
    enum bench_shape shape;
    pthread_barrier_t *go; /* NULL: it works alone */
    size_t done;           /* number of calls accepted or finished */
    enum pawl_status status;
    struct pawl_err err;
};

static enum pawl_status accept_all(struct hand *h)
{
    enum pawl_status st = PAWL_OK;
    while (h->done < h->n_ids && st == PAWL_OK) {
        size_t n = MIN(h->n_ids - h->done, BENCH_BATCH);
        st = h->side->accept(h->conn, h->done, n, &h->err);
        h->done += n;
    }
    return st;
}

static enum pawl_status drain_all(struct hand *h)
{
    size_t n = 1;
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK) {
        st = h->side->claim(h->conn, BENCH_BATCH, &n, &h->err);
        if (st != PAWL_OK || n == 0)
            break;
        st = h->side->finish(h->conn, &h->err);
        h->done += n;
    }
    return st;
}

static enum pawl_status drain_fused(struct hand *h)
{
    size_t n = 0;
    enum pawl_status st = h->side->claim(h->conn, BENCH_BATCH, &n, &h->err);
    while (st == PAWL_OK && n > 0) {
        h->done += n;
        st = h->side->finish_claim(h->conn, BENCH_BATCH, &n, &h->err);
    }
    return st;
}

static void *work(void *arg)
{
    static enum pawl_status (*const shapes[])(struct hand *) = {
        [SHAPE_ACCEPT] = accept_all, [SHAPE_DRAIN] = drain_all, [SHAPE_FUSED] = drain_fused
    };
    struct hand *h = arg;
    if (h->go)
        pthread_barrier_wait(h->go);
    h->done = 0;
    h->status = shapes[h->shape](h);
    return NULL;
}

static void hand_close(struct hand *h)
{
    if (h->side)
        h->side->close(h->conn);
    free(h->ids);
    *h = (struct hand){ 0 };
}

static enum pawl_status hand_open(struct hand *h, const struct bench_side *side,
                                  const struct bench_place *place, size_t calls,
                                  struct pawl_err *err)
{
    *h = (struct hand){ .side = side, .ids = calloc(calls, sizeof *h->ids) };
    return h->ids ? side->open(place, &h->conn, err) : err_no_memory(err, "ids");
}

/* ---- Two of them ----------------------------------------------------------------------------- */

struct team {
    struct hand hands[BENCH_CONNS];
};

static void team_close(struct team *t)
{
    for (size_t i = 0; i < BENCH_CONNS; i++)
        hand_close(&t->hands[i]);
}

static enum pawl_status team_open(struct team *t, const struct bench_side *side,
                                  const struct bench_place *place, size_t calls,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < BENCH_CONNS && st == PAWL_OK; i++)
        st = hand_open(&t->hands[i], side, place, calls, err);
    return st;
}

/* Assign the ids batch by batch in turn, so that ordered ids are ordered on every connection, as in
 * practice. */
static enum pawl_status team_deal(struct team *t, const struct bench_id *ids, size_t n,
                                  struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < BENCH_CONNS; i++)
        t->hands[i].n_ids = 0;
    for (size_t at = 0; at < n; at++) {
        struct hand *h = &t->hands[at / BENCH_BATCH % BENCH_CONNS];
        h->ids[h->n_ids++] = ids[at];
    }
    for (size_t i = 0; i < BENCH_CONNS && st == PAWL_OK; i++) {
        const struct hand *h = &t->hands[i];
        st = h->side->load(h->conn, h->ids, h->n_ids, err);
    }
    return st;
}

static enum pawl_status team_ended(const struct team *t, size_t n, struct pawl_err *err)
{
    size_t done = 0;
    for (size_t i = 0; i < BENCH_CONNS; i++) {
        if (t->hands[i].status != PAWL_OK) {
            *err = t->hands[i].err;
            return t->hands[i].status;
        }
        done += t->hands[i].done;
    }
    return done == n ? PAWL_OK : err_set(err, PAWL_BROKEN, "%zu calls of %zu were done", done, n);
}

static enum pawl_status team_run(struct team *t, enum bench_shape shape, size_t n,
                                 double *out_per_s, struct pawl_err *err)
{
    pthread_t threads[BENCH_CONNS];
    pthread_barrier_t go;
    pthread_barrier_init(&go, NULL, BENCH_CONNS + 1);
    for (size_t i = 0; i < BENCH_CONNS; i++) {
        t->hands[i].shape = shape;
        t->hands[i].go = &go;
        if (pthread_create(&threads[i], NULL, work, &t->hands[i]) != 0)
            abort(); /* else the other threads would wait at the barrier for ever */
    }
    pthread_barrier_wait(&go);
    double began = bench_clock();
    for (size_t i = 0; i < BENCH_CONNS; i++)
        pthread_join(threads[i], NULL);
    *out_per_s = (double)n / (bench_clock() - began);
    pthread_barrier_destroy(&go);
    return team_ended(t, n, err);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

struct match {
    struct bench_engine *e;
    struct team floor, batch, singles;
    struct bench_id *ids; /* owned */
};

static enum pawl_status tend(const struct bench_engine *e, struct pawl_err *err)
{
    enum pawl_status st = e->tend ? e->tend(e->floor_place.url, err) : PAWL_OK;
    return st == PAWL_OK && e->tend ? e->tend(e->place.url, err) : st;
}

static enum pawl_status both(struct match *m, struct team *engine, enum bench_shape shape,
                             struct bench_rounds *out, struct pawl_err *err)
{
    size_t n = m->e->calls;
    double figure = 0, floor = 0;
    bool engine_first = out->n % 2;
    enum pawl_status st = tend(m->e, err);
    if (st == PAWL_OK && shape == SHAPE_ACCEPT)
        st = team_deal(&m->floor, m->ids, n, err);
    if (st == PAWL_OK && shape == SHAPE_ACCEPT)
        st = team_deal(engine, m->ids, n, err);
    if (st == PAWL_OK && engine_first)
        st = team_run(engine, shape, n, &figure, err);
    if (st == PAWL_OK)
        st = team_run(&m->floor, shape, n, &floor, err);
    if (st == PAWL_OK && !engine_first)
        st = team_run(engine, shape, n, &figure, err);
    bench_rounds_add(out, figure, floor);
    return st;
}

/* Every accept is followed by a drain, so that each begins with an empty table of ready calls. */
static enum pawl_status round_once(struct match *m, struct pawl_err *err)
{
    struct bench_engine *e = m->e;
    bench_ids_make(BENCH_IDS_ORDERED, m->ids, e->calls);
    enum pawl_status st = both(m, &m->batch, SHAPE_ACCEPT, &e->accept, err);
    if (st == PAWL_OK)
        st = both(m, &m->batch, SHAPE_DRAIN, &e->drain, err);
    bench_ids_make(BENCH_IDS_ORDERED, m->ids, e->calls);
    if (st == PAWL_OK)
        st = both(m, &m->singles, SHAPE_ACCEPT, &e->singles, err);
    if (st == PAWL_OK)
        st = both(m, &m->batch, SHAPE_FUSED, &e->fused, err);
    return st;
}

static enum pawl_status match_open(struct match *m, struct pawl_err *err)
{
    const struct bench_engine *e = m->e;
    m->ids = calloc(e->calls, sizeof *m->ids);
    enum pawl_status st = m->ids ? PAWL_OK : err_no_memory(err, "ids");
    if (st == PAWL_OK)
        st = bench_engine_schema(&e->floor_place, err);
    if (st == PAWL_OK)
        st = bench_engine_schema(&e->place, err);
    if (st == PAWL_OK)
        st = team_open(&m->floor, e->floor, &e->floor_place, e->calls, err);
    if (st == PAWL_OK)
        st = team_open(&m->batch, &bench_side_batch, &e->place, e->calls, err);
    return st == PAWL_OK ? team_open(&m->singles, &bench_side_singles, &e->place, e->calls, err)
                         : st;
}

static void match_close(struct match *m)
{
    team_close(&m->floor);
    team_close(&m->batch);
    team_close(&m->singles);
    free(m->ids);
}

enum pawl_status bench_engine_run(struct bench_engine *e, struct pawl_err *err)
{
    struct match m = { .e = e };
    enum pawl_status st = match_open(&m, err);
    /* Warm up once: the server makes its plans, files grow. */
    if (st == PAWL_OK)
        st = round_once(&m, err);
    e->accept.n = e->singles.n = e->drain.n = e->fused.n = 0;
    for (size_t i = 0; i < e->rounds && st == PAWL_OK; i++)
        st = round_once(&m, err);
    match_close(&m);
    return st;
}

static enum pawl_status few_claimed(struct hand *h, struct pawl_err *err)
{
    enum { FEW = 8 };
    size_t n = 0;
    bench_ids_make(BENCH_IDS_ORDERED, h->ids, FEW);
    enum pawl_status st = h->side->load(h->conn, h->ids, FEW, err);
    if (st == PAWL_OK)
        st = h->side->accept(h->conn, 0, FEW, err);
    if (st == PAWL_OK)
        st = h->side->claim(h->conn, FEW, &n, err);
    if (st == PAWL_OK && n != FEW)
        st = err_set(err, PAWL_BROKEN, "%zu calls of %d were claimed", n, FEW);
    return st;
}

/* Accept a few calls, let the server collect statistics while nothing waits, and drain them. */
static enum pawl_status trickle(struct match *m, struct pawl_err *err)
{
    struct team *const teams[] = { &m->floor, &m->batch };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < COUNT_OF(teams) * BENCH_CONNS && st == PAWL_OK; i++)
        st = few_claimed(&teams[i / BENCH_CONNS]->hands[i % BENCH_CONNS], err);
    if (st == PAWL_OK)
        st = tend(m->e, err);
    for (size_t i = 0; i < COUNT_OF(teams) * BENCH_CONNS && st == PAWL_OK; i++) {
        struct hand *h = &teams[i / BENCH_CONNS]->hands[i % BENCH_CONNS];
        st = h->side->finish(h->conn, err);
    }
    return st;
}

enum pawl_status bench_engine_burst(struct bench_engine *e, struct pawl_err *err)
{
    struct match m = { .e = e };
    enum pawl_status st = match_open(&m, err);
    for (int i = 0; i < 2 && st == PAWL_OK; i++)
        st = trickle(&m, err);
    e->tend = NULL;
    bench_ids_make(BENCH_IDS_ORDERED, m.ids, m.ids ? e->calls : 0);
    if (st == PAWL_OK)
        st = both(&m, &m.batch, SHAPE_ACCEPT, &e->burst_accept, err);
    if (st == PAWL_OK)
        st = both(&m, &m.batch, SHAPE_DRAIN, &e->burst_drain, err);
    match_close(&m);
    return st;
}

void bench_engine_rows(const struct bench_engine *e, struct bench_table *t)
{
    const struct bench_row rows[] = {
        { "accept, one operation of 1,000 calls", "/s", &e->accept, BENCH_RATIO_MIN, e->goal },
        { "accept, 1,000 operations of one call", "/s", &e->singles, BENCH_RATIO_MIN, e->goal },
        { "drain, claim 1,000 + finish 1,000", "/s", &e->drain, BENCH_RATIO_MIN, e->goal },
        { "drain, finish and claim in one commit", "/s", &e->fused, BENCH_RATIO_MIN, e->goal },
        { "burst after a few calls: accept", "/s", &e->burst_accept, BENCH_RATIO_MIN, e->goal },
        { "burst after a few calls: drain", "/s", &e->burst_drain, BENCH_RATIO_MIN, e->goal },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].rounds->n)
            bench_table_row(t, &rows[i]);
}

/* ---- Alone ----------------------------------------------------------------------------------- */

enum pawl_status bench_engine_alone(const struct bench_alone *b, double *out_s,
                                    struct pawl_err *err)
{
    struct hand h;
    enum pawl_status st = hand_open(&h, b->side, &b->place, b->calls, err);
    h.shape = b->shape;
    h.n_ids = b->calls;
    bench_ids_make(BENCH_IDS_ORDERED, h.ids, h.ids ? b->calls : 0);
    if (st == PAWL_OK && b->shape == SHAPE_ACCEPT)
        st = h.side->load(h.conn, h.ids, h.n_ids, err);
    if (st == PAWL_OK) {
        double began = bench_clock();
        work(&h);
        *out_s = bench_clock() - began;
        st = h.status;
        if (st != PAWL_OK)
            *err = h.err;
        else if (h.done != b->calls)
            st = err_set(err, PAWL_BROKEN, "%zu calls of %zu were done", h.done, b->calls);
    }
    hand_close(&h);
    return st;
}

enum pawl_status bench_engine_through(const struct bench_alone *b, double *out_accept,
                                      double *out_drain, struct pawl_err *err)
{
    struct team t = { 0 };
    struct bench_id *ids = calloc(b->calls, sizeof *ids);
    enum pawl_status st = ids ? PAWL_OK : err_no_memory(err, "ids");
    if (st == PAWL_OK)
        st = team_open(&t, b->side, &b->place, b->calls, err);
    bench_ids_make(BENCH_IDS_ORDERED, ids, ids ? b->calls : 0);
    if (st == PAWL_OK)
        st = team_deal(&t, ids, b->calls, err);
    if (st == PAWL_OK)
        st = team_run(&t, SHAPE_ACCEPT, b->calls, out_accept, err);
    if (st == PAWL_OK)
        st = team_run(&t, SHAPE_FUSED, b->calls, out_drain, err);
    team_close(&t);
    free(ids);
    return st;
}

const struct bench_side *bench_floor_of(const char *url)
{
    if (strncmp(url, "postgres", 8) == 0)
        return &bench_floor_pg;
    return strncmp(url, "mysql:", 6) == 0 || strncmp(url, "mariadb:", 8) == 0 ? &bench_floor_maria
                                                                              : NULL;
}
