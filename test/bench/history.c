/*
 * history.c - what history and backlogs of other types cost; by design of the ledger nothing.
 *
 * Three questions. Is anything slower with 1,000,000 ended calls than with 10,000? With 500,000
 * pending calls of a type that is not served than with none? Does removing 1,000,000 ended calls
 * slow down 64 busy threads, or touch a call that has not ended? Pairs of databases, alternating
 * rounds; "beside" is the small, empty or quiet one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/world.h"
#include "bench/floor.h"
#include "bench/load.h"
#include "bench/table.h"

#define LOOKUPS 1000
/* Another type than the measured one, so that a claim has calls to skip. */
#define TYPE_OTHER "other"

struct sizes {
    size_t rounds, small, large, backlog, pending, calls;
    double seconds;
};
static const struct sizes full = { 5, 10000, 1000000, 500000, 5000, 10000, 2.0 };
static const struct sizes quick = { 3, 10000, 100000, 50000, 1000, 4000, 0.7 };

/* One database: its file, its handle, and some ids of its history. */
struct base {
    const char *path;
    char url[64];
    struct pawl *p;
    struct bench_id ids[LOOKUPS];
};

struct bench {
    const struct sizes *size;
    struct bench_table table;
    struct base a, b; /* the large one, and the one to compare with */
    struct bench_id *ids;
};

/* ---- Databases ------------------------------------------------------------------------------- */

static void base_remove(const struct base *d)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", d->path, endings[i]);
        unlink(name);
    }
}

static void base_close(struct base *d)
{
    pawl_close(d->p);
    d->p = NULL;
}

static enum pawl_status base_open(struct base *d, bool gc, struct pawl_err *err)
{
    snprintf(d->url, sizeof d->url, "sqlite:%s", d->path);
    return load_open(&(struct load_conf){ .url = d->url, .node = "bench", .gc = gc }, &d->p, err);
}

/* Fill the tables directly, after the library has created them; then open the database for the
 * measurement. */
static enum pawl_status base_make(struct base *d, const struct floor_fill *v, size_t n,
                                  struct pawl_err *err)
{
    struct floor *f = NULL;
    base_remove(d);
    enum pawl_status st = base_open(d, false, err);
    base_close(d);
    if (st == PAWL_OK)
        st = floor_open(&(struct floor_conf){ .path = d->path, .attach = true, .unsafe = true }, &f,
                        err);
    for (size_t i = 0; i < n && st == PAWL_OK; i++) {
        if (v[i].n)
            floor_fill(f, &v[i]);
        st = floor_ok(f, err);
    }
    if (st == PAWL_OK)
        floor_checkpoint(f);
    floor_close(f);
    return st == PAWL_OK ? base_open(d, false, err) : st;
}

/* ---- What is measured ------------------------------------------------------------------------ */

/* Microseconds, or calls a second, of one kind of work on one database. */
typedef enum pawl_status shape(struct bench *b, struct base *d, double *out, struct pawl_err *err);

static enum pawl_status get_some(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    (void)b;
    double began = bench_clock();
    for (size_t i = 0; i < LOOKUPS && st == PAWL_OK; i++) {
        struct pawl_shown *shown = NULL;
        st = pawl_get(d->p, d->ids[i].text, 0, &shown, err);
        pawl_shown_free(shown);
    }
    *out = (bench_clock() - began) * 1e6 / LOOKUPS;
    return st;
}

static enum pawl_status list_with(struct base *d, struct pawl_query q, double *out,
                                  struct pawl_err *err)
{
    enum { PAGES = 50 };
    enum pawl_status st = PAWL_OK;
    double began = bench_clock();
    for (size_t i = 0; i < PAGES && st == PAWL_OK; i++) {
        struct pawl_page *page = NULL;
        st = pawl_list(d->p, &q, &page, err);
        if (st == PAWL_OK && page->n == 0)
            st = err_set(err, PAWL_BROKEN, "%s: an empty page", d->path);
        pawl_page_free(page);
    }
    *out = (bench_clock() - began) * 1e6 / PAGES;
    return st;
}

static enum pawl_status list_all(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    (void)b;
    return list_with(d, (struct pawl_query){ PAWL_QUERY_INIT }, out, err);
}

static enum pawl_status list_state(struct bench *b, struct base *d, double *out,
                                   struct pawl_err *err)
{
    (void)b;
    return list_with(d, (struct pawl_query){ PAWL_QUERY_INIT, .state = PAWL_COMPLETED }, out, err);
}

static enum pawl_status list_type(struct bench *b, struct base *d, double *out,
                                  struct pawl_err *err)
{
    (void)b;
    return list_with(d, (struct pawl_query){ PAWL_QUERY_INIT, .type = TYPE_OTHER }, out, err);
}

static enum pawl_status submit_own(struct bench *b, struct base *d, double *out,
                                   struct pawl_err *err)
{
    struct load_batch batch = { .type = LOAD_TYPE_HAND, .n = b->size->calls, .batch = 1000 };
    return load_submit(d->p, &batch, out, err);
}

static enum pawl_status submit_random(struct bench *b, struct base *d, double *out,
                                      struct pawl_err *err)
{
    struct load_batch batch = {
        .type = LOAD_TYPE_HAND, .ids = b->ids, .n = b->size->calls, .batch = 1000
    };
    bench_ids_make(BENCH_IDS_RANDOM, b->ids, b->size->calls);
    return load_submit(d->p, &batch, out, err);
}

/* The calls that the two submits before it left. */
static enum pawl_status drain(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    return load_drain(d->p, 2 * b->size->calls, 1000, out, err);
}

static enum pawl_status wait_64(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct load_waited w;
    enum pawl_status st =
        load_wait(d->p, &(struct load_wait){ .threads = 64, .seconds = b->size->seconds }, &w, err);
    *out = w.per_s;
    return st;
}

static enum pawl_status wait_1(struct bench *b, struct base *d, double *out, struct pawl_err *err)
{
    struct load_waited w;
    enum pawl_status st = load_wait(
        d->p, &(struct load_wait){ .threads = 1, .seconds = b->size->seconds / 2 }, &w, err);
    *out = w.p50_us;
    return st;
}

struct question {
    const char *name, *unit;
    shape *ask;
    enum bench_goal goal;
    double bound;
};

/* Every question on both databases, alternating; then its rows. */
static enum pawl_status ask_all(struct bench *b, const struct question *v, size_t n,
                                struct pawl_err *err)
{
    struct bench_rounds r[16] = { 0 };
    enum pawl_status st = PAWL_OK;
    for (size_t round = 0; round < b->size->rounds; round++)
        for (size_t i = 0; i < n && st == PAWL_OK; i++) {
            double x = 0, y = 0;
            bool a_first = round % 2;
            st = v[i].ask(b, a_first ? &b->a : &b->b, a_first ? &x : &y, err);
            if (st == PAWL_OK)
                st = v[i].ask(b, a_first ? &b->b : &b->a, a_first ? &y : &x, err);
            bench_rounds_add(&r[i], x, y);
        }
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        bench_table_row(&b->table,
                        &(struct bench_row){ v[i].name, v[i].unit, &r[i], v[i].goal, v[i].bound });
    return st;
}

static enum pawl_status start_both(struct bench *b, struct pawl_err *err)
{
    enum pawl_status st = load_start(b->a.p, err);
    return st == PAWL_OK ? load_start(b->b.p, err) : st;
}

static void close_both(struct bench *b)
{
    base_close(&b->a);
    base_close(&b->b);
    base_remove(&b->a);
    base_remove(&b->b);
}

/* ---- History --------------------------------------------------------------------------------- */

static enum pawl_status history(struct bench *b, struct pawl_err *err)
{
    static const struct question questions[] = {
        { "get one", "us", get_some, BENCH_RATIO_MAX, 2 },
        { "list, first page", "us", list_all, BENCH_RATIO_MAX, 2 },
        { "list, by state", "us", list_state, BENCH_RATIO_MAX, 2 },
        { "list, by type", "us", list_type, BENCH_RATIO_MAX, 2 },
        { "submit 1,000, UUIDv7", "/s", submit_own, BENCH_RATIO_MIN, 0.5 },
        { "submit 1,000, random ids", "/s", submit_random, BENCH_RATIO_MIN, 0.5 },
        { "claim 1,000 + finish 1,000", "/s", drain, BENCH_RATIO_MIN, 0.5 },
        { "64 threads, submit one and wait", "/s", wait_64, BENCH_RATIO_MIN, 0.5 },
    };
    struct floor_fill fill = { .type = TYPE_OTHER,
                               .ids = BENCH_IDS_RANDOM,
                               .keep_until_us = INT64_MAX / 2,
                               .n_out = LOOKUPS };
    fill.n = b->size->large;
    fill.out = b->a.ids;
    enum pawl_status st = base_make(&b->a, &fill, 1, err);
    fill.n = b->size->small;
    fill.out = b->b.ids;
    if (st == PAWL_OK)
        st = base_make(&b->b, &fill, 1, err);
    if (st == PAWL_OK)
        st = start_both(b, err);
    if (st == PAWL_OK)
        st = ask_all(b, questions, COUNT_OF(questions), err);
    close_both(b);
    return st;
}

/* ---- Backlog --------------------------------------------------------------------------------- */

static enum pawl_status backlog(struct bench *b, struct pawl_err *err)
{
    /* Differences below a tenth count as none, because of noise. */
    static const struct question questions[] = {
        { "beside a backlog: submit 1,000, UUIDv7", "/s", submit_own, BENCH_RATIO_MIN, 0.9 },
        { "beside a backlog: submit 1,000, random ids", "/s", submit_random, BENCH_NO_GOAL, 0 },
        { "beside a backlog: claim + finish", "/s", drain, BENCH_RATIO_MIN, 0.9 },
        { "beside a backlog: 64 threads", "/s", wait_64, BENCH_RATIO_MIN, 0.9 },
        { "beside a backlog: 1 thread, p50", "us", wait_1, BENCH_RATIO_MAX, 1.1 },
    };
    struct floor_fill fill = { .type = TYPE_OTHER, .ids = BENCH_IDS_ORDERED, .pending = true };
    fill.n = b->size->backlog;
    enum pawl_status st = base_make(&b->a, &fill, 1, err);
    fill.n = 0;
    if (st == PAWL_OK)
        st = base_make(&b->b, &fill, 1, err);
    if (st == PAWL_OK)
        st = start_both(b, err);
    if (st == PAWL_OK)
        st = ask_all(b, questions, COUNT_OF(questions), err);
    close_both(b);
    return st;
}

/* ---- gc -------------------------------------------------------------------------------------- */

struct counts {
    int64_t ended, pending, calls, ids;
};

static enum pawl_status count(const struct base *d, struct counts *out, struct pawl_err *err)
{
    struct floor *f = NULL;
    enum pawl_status st =
        floor_open(&(struct floor_conf){ .path = d->path, .attach = true }, &f, err);
    if (st != PAWL_OK)
        return st;
    out->ended = floor_number(f, "SELECT count(*) FROM pawl_outcome "
                                 "WHERE keep_until < strftime('%s', 'now') * 1000000");
    out->pending = floor_number(f, "SELECT count(*) FROM pawl_ready r JOIN pawl_call c USING (seq) "
                                   "JOIN pawl_id i ON i.id = c.id AND i.seq = c.seq");
    out->calls = floor_number(f, "SELECT count(*) FROM pawl_call");
    out->ids = floor_number(f, "SELECT count(*) FROM pawl_id");
    st = floor_ok(f, err);
    floor_close(f);
    return st;
}

/* One round of load without gc and one with it, each on its own handle, because gc_interval is a
 * setting. r: the rate of the load, and of gc. */
static enum pawl_status gc_round(struct bench *b, size_t round, struct bench_rounds *r,
                                 struct pawl_err *err)
{
    double per_s[2] = { 0 };
    struct counts before, after;
    enum pawl_status st = count(&b->a, &before, err);
    for (size_t i = 0; i < 2 && st == PAWL_OK; i++) {
        bool gc = (i + round) % 2;
        st = base_open(&b->a, gc, err);
        if (st == PAWL_OK)
            st = load_start(b->a.p, err);
        if (st == PAWL_OK)
            st = wait_64(b, &b->a, &per_s[gc], err);
        base_close(&b->a);
    }
    if (st == PAWL_OK)
        st = count(&b->a, &after, err);
    if (st == PAWL_OK) {
        bench_rounds_add(&r[0], per_s[1], per_s[0]);
        bench_rounds_add(&r[1], (double)(before.ended - after.ended) / b->size->seconds, per_s[1]);
    }
    return st;
}

/* The rest of the history, at full speed, with the function behind `pawl gc`. */
static enum pawl_status gc_rest(struct bench *b, struct bench_rounds *alone, struct pawl_err *err)
{
    int64_t removed = 0;
    enum pawl_status st = base_open(&b->a, false, err);
    double began = bench_clock();
    if (st == PAWL_OK)
        st = pawl_gc(b->a.p, INT64_MAX / 2, &removed, NULL, err);
    bench_rounds_add(alone, (double)removed / (bench_clock() - began), 0);
    base_close(&b->a);
    return st;
}

static void gc_rows(struct bench *b, const struct counts *before, const struct counts *after,
                    struct bench_rounds r[3])
{
    struct bench_rounds pending = { 0 }, ended = { 0 };
    bench_rounds_add(&pending, (double)after->pending, (double)before->pending);
    bench_rounds_add(&ended, (double)after->ended, 0);
    const struct bench_row rows[] = {
        { "64 threads while gc runs (beside: without)", "/s", &r[0], BENCH_RATIO_MIN, 0.9 },
        { "  removed meanwhile (beside: ended)", "/s", &r[1], BENCH_NO_GOAL, 0 },
        { "gc alone", "/s", &r[2], BENCH_NO_GOAL, 0 },
        { "  ended calls left", "", &ended, BENCH_FIGURE_EXACT, 0 },
        { "  pending calls left (beside: before)", "", &pending, BENCH_FIGURE_EXACT,
          (double)before->pending },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        bench_table_row(&b->table, &rows[i]);
}

static enum pawl_status gc(struct bench *b, struct pawl_err *err)
{
    struct bench_rounds r[3] = { 0 };
    struct counts before, after;
    const struct floor_fill fill[] = {
        { .type = TYPE_OTHER, .n = b->size->pending / 2, .pending = true },
        /* Their retention has just passed: the calls are removed, the ids stay known. */
        { .type = TYPE_OTHER,
          .n = b->size->large,
          .ids = BENCH_IDS_RANDOM,
          .keep_until_us = world_now(&world_real) - SEC_US },
        { .type = TYPE_OTHER, .n = b->size->pending / 2, .pending = true },
    };
    enum pawl_status st = base_make(&b->a, fill, COUNT_OF(fill), err);
    base_close(&b->a);
    if (st == PAWL_OK)
        st = count(&b->a, &before, err);
    for (size_t i = 0; i < b->size->rounds && st == PAWL_OK; i++)
        st = gc_round(b, i, r, err);
    if (st == PAWL_OK)
        st = gc_rest(b, &r[2], err);
    if (st == PAWL_OK)
        st = count(&b->a, &after, err);
    if (st == PAWL_OK)
        gc_rows(b, &before, &after, r);
    close_both(b);
    return st;
}

int main(void)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    struct bench *b = calloc(1, sizeof *b);
    char title[128];
    struct pawl_err err;
    if (!b)
        return 1;
    b->size = env && *env ? &quick : &full;
    b->table.out = stdout;
    b->a.path = "history-a.db";
    b->b.path = "history-b.db";
    b->ids = calloc(b->size->calls, sizeof *b->ids);
    snprintf(title, sizeof title, "history: %zu ended calls beside %zu; backlog %zu",
             b->size->large, b->size->small, b->size->backlog);
    bench_table_begin(&b->table, title);
    enum pawl_status st = b->ids ? history(b, &err) : err_no_memory(&err, "ids");
    if (st == PAWL_OK)
        st = backlog(b, &err);
    if (st == PAWL_OK)
        st = gc(b, &err);
    if (st == PAWL_OK)
        bench_table_end(&b->table);
    else
        fprintf(stderr, "bench history: %s\n", err.text);
    free(b->ids);
    free(b);
    return st == PAWL_OK ? 0 : 1;
}
