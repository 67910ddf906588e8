/*
 * ids.c - ids in their own table (pawl_id) compared with UNIQUE (id) on pawl_call, on plain SQLite.
 *
 * This measures what doc/internals/ledger.md says under "Ids have a table of their own". Both
 * variants keep the promise that a known id is refused, also when its call is gone. The figure is
 * that of pawl_id, the index's is beside it; "slim" is a pawl_id without the fingerprint, which the
 * call's row then has.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/world.h"
#include "bench/floor.h"
#include "bench/table.h"

#define BATCH 1000

static const char *const paths[FLOOR_IDS_COUNT] = { "ids-own.db", "ids-slim.db", "ids-on-call.db" };

struct sizes {
    size_t rounds, calls, history;
};
static const struct sizes full = { 5, 20000, 1000000 }, quick = { 3, 5000, 60000 };

struct trio {
    const struct sizes *size;
    enum bench_ids kind;
    struct floor *f[FLOOR_IDS_COUNT];
    struct bench_id *ids;
};

static void remove_files(void)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        for (size_t k = 0; k < COUNT_OF(endings); k++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", paths[i], endings[k]);
            unlink(name);
        }
}

static void trio_close(struct trio *p)
{
    for (int i = 0; i < FLOOR_IDS_COUNT; i++) {
        floor_close(p->f[i]);
        p->f[i] = NULL;
    }
}

static enum pawl_status trio_open(struct trio *p, bool attach, bool unsafe, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < FLOOR_IDS_COUNT && st == PAWL_OK; i++)
        st = floor_open(
            &(struct floor_conf){
                .path = paths[i], .ids = (enum floor_ids)i, .attach = attach, .unsafe = unsafe },
            &p->f[i], err);
    return st;
}

/* ---- What is measured ------------------------------------------------------------------------ */

static double accept_all(struct floor *f, const struct trio *p)
{
    double began = bench_clock();
    for (size_t at = 0; at < p->size->calls; at += BATCH)
        floor_accept(f, p->ids + at, BATCH);
    return (double)p->size->calls / (bench_clock() - began);
}

static double drain_all(struct floor *f, const struct trio *p)
{
    struct floor_lease l;
    double began = bench_clock();
    for (size_t at = 0; at < p->size->calls; at += BATCH) {
        floor_claim(f, BATCH, true, &l);
        floor_finish(f, &l);
    }
    return (double)p->size->calls / (bench_clock() - began);
}

/* In steps of 200, as the library's gc. */
static double drop_all(struct floor *f, const struct trio *p)
{
    size_t n = 0, got = 1;
    int64_t now_us = world_now(&world_real);
    double began = bench_clock();
    while (n < p->size->calls && got) {
        got = floor_drop(f, now_us, 200);
        n += got;
    }
    return (double)n / (bench_clock() - began);
}

static double megabytes(struct floor *f)
{
    floor_checkpoint(f);
    return (double)floor_number(f, "SELECT page_count * page_size / 1000 FROM pragma_page_count, "
                                   "pragma_page_size") /
           1000;
}

/* The results of the two kinds of pawl_id, each compared with the index. */
struct figures {
    struct bench_rounds own, slim;
};

static void figures_add(struct figures *out, const double v[FLOOR_IDS_COUNT])
{
    bench_rounds_add(&out->own, v[FLOOR_IDS_OWN], v[FLOOR_IDS_ON_CALL]);
    bench_rounds_add(&out->slim, v[FLOOR_IDS_SLIM], v[FLOOR_IDS_ON_CALL]);
}

/* One round of one kind of work; the variants alternate in going first. */
static void once(struct trio *p, double (*shape)(struct floor *, const struct trio *), size_t round,
                 struct figures *out)
{
    double v[FLOOR_IDS_COUNT];
    for (size_t i = 0; i < FLOOR_IDS_COUNT; i++) {
        size_t which = (i + round) % FLOOR_IDS_COUNT;
        v[which] = shape(p->f[which], p);
    }
    figures_add(out, v);
}

static void rows(struct bench_table *t, const struct trio *p, const char *what,
                 const struct figures *v)
{
    const char *unit = strstr(what, "size") ? "MB" : "/s";
    const char *kind = p->kind == BENCH_IDS_RANDOM ? "random" : "UUIDv7";
    char name[96];
    snprintf(name, sizeof name, "%s, %s ids", what, kind);
    bench_table_row(t, &(struct bench_row){ .name = name, .unit = unit, .rounds = &v->own });
    snprintf(name, sizeof name, "%s, %s ids, slim", what, kind);
    bench_table_row(t, &(struct bench_row){ .name = name, .unit = unit, .rounds = &v->slim });
}

static enum pawl_status measure(struct trio *p, struct bench_table *t, bool history,
                                struct pawl_err *err)
{
    struct figures accept = { 0 }, drain = { 0 }, drop = { 0 }, size = { 0 };
    double mb[FLOOR_IDS_COUNT];
    for (size_t i = 0; i < FLOOR_IDS_COUNT; i++)
        mb[i] = megabytes(p->f[i]);
    figures_add(&size, mb);
    for (size_t i = 0; i < p->size->rounds; i++) {
        bench_ids_make(p->kind, p->ids, p->size->calls);
        once(p, accept_all, i, &accept);
        once(p, drain_all, i, &drain);
        if (history)
            once(p, drop_all, i, &drop);
    }
    rows(t, p, history ? "full: accept" : "empty: accept", &accept);
    rows(t, p, history ? "full: claim + finish" : "empty: claim + finish", &drain);
    if (history) {
        rows(t, p, "full: drop, ids kept", &drop);
        rows(t, p, "full: file size", &size);
    }
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < FLOOR_IDS_COUNT && st == PAWL_OK; i++)
        st = floor_ok(p->f[i], err);
    return st;
}

static enum pawl_status fill(struct trio *p, struct pawl_err *err)
{
    trio_close(p);
    enum pawl_status st = trio_open(p, true, true, err);
    for (int i = 0; i < FLOOR_IDS_COUNT && st == PAWL_OK; i++) {
        floor_fill(p->f[i], &(struct floor_fill){ .type = "noop",
                                                  .n = p->size->history,
                                                  .ids = p->kind,
                                                  .keep_until_us = world_now(&world_real) });
        st = floor_ok(p->f[i], err);
    }
    trio_close(p);
    return st == PAWL_OK ? trio_open(p, true, false, err) : st;
}

static enum pawl_status kind_run(struct trio *p, struct bench_table *t, struct pawl_err *err)
{
    remove_files();
    enum pawl_status st = trio_open(p, false, false, err);
    if (st == PAWL_OK)
        st = measure(p, t, false, err);
    if (st == PAWL_OK)
        st = fill(p, err);
    if (st == PAWL_OK)
        st = measure(p, t, true, err);
    trio_close(p);
    return st;
}

int main(void)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    struct trio p = { .size = env && *env ? &quick : &full };
    struct bench_table table = { .out = stdout };
    struct pawl_err err;
    char title[128];
    enum pawl_status st = PAWL_OK;
    snprintf(title, sizeof title, "ids: pawl_id beside UNIQUE on pawl_call, history %zu",
             p.size->history);
    bench_table_begin(&table, title);
    p.ids = calloc(p.size->calls, sizeof *p.ids);
    for (int kind = 0; kind < 2 && p.ids && st == PAWL_OK; kind++) {
        p.kind = (enum bench_ids)kind;
        st = kind_run(&p, &table, &err);
    }
    if (st == PAWL_OK)
        bench_table_end(&table);
    else
        fprintf(stderr, "bench ids: %s\n", err.text);
    remove_files();
    free(p.ids);
    return st == PAWL_OK ? 0 : 1;
}
