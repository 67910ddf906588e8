/*
 * pair.c - two builds of Pawl beside each other: accept and drain, for tools/bench-pair.sh.
 *
 * The script compiles this file in both builds, and runs the program of the second one:
 *
 *   pair rates A B PAIRS       calls a second of both programs in alternating pairs of rounds, the
 *                              medians, and the median of the pairs' ratios with its interval
 *   pair counts A B            instructions a call (callgrind) and statements a call of both
 *
 * A and B are the two programs pair; each is run again and again with one of
 *
 *   pair lib URL N             through pawl.h: rates of accept and drain, in batches of 1,000
 *   pair store URL N BATCH     through store.h on one connection, for counting: groups of BATCH
 *
 * A private PostgreSQL, and SQLite files in the working directory, which should be in memory so
 * that the processor is what is measured. Each run has a new database.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/engine.h"
#include "bench/load.h"
#include "bench/table.h"
#include "db_server.h"
#include "pg_log.h"

#define BATCH 1000
#define PAIRS_MAX 100
/* Calls of one round of rates. */
#define ROUND_CALLS "60000"
/* The first groups are not counted: statements are prepared, lanes are read. */
#define WARM_GROUPS 2

/* ---- One side, in a process of its own ------------------------------------------------------- */

static enum pawl_status lib(const char *url, size_t n, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    struct load_batch batch = { .type = LOAD_TYPE_HAND, .n = BATCH, .batch = BATCH };
    double accept = 0, drain = 0;
    enum pawl_status st = load_open(&(struct load_conf){ .url = url, .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = load_submit(p, &batch, &accept, err);
    if (st == PAWL_OK)
        st = load_drain(p, BATCH, BATCH, &drain, err);
    batch.n = n;
    if (st == PAWL_OK)
        st = load_submit(p, &batch, &accept, err);
    if (st == PAWL_OK)
        st = load_drain(p, n, BATCH, &drain, err);
    if (st == PAWL_OK)
        printf("%.1f %.1f\n", accept, drain);
    return st;
}

/* callgrind counts within these two, by their names. */
__attribute__((noinline)) enum pawl_status counted_accept(void *conn, size_t at, size_t n,
                                                          size_t batch, struct pawl_err *err);
__attribute__((noinline)) enum pawl_status counted_drain(void *conn, size_t n, size_t batch,
                                                         struct pawl_err *err);

static enum pawl_status accept_some(void *conn, size_t at, size_t n, size_t batch,
                                    struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t end = at + n; at < end && st == PAWL_OK; at += batch)
        st = bench_side_batch.accept(conn, at, batch, err);
    return st;
}

static enum pawl_status drain_some(void *conn, size_t n, size_t batch, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t got = 0; n && st == PAWL_OK; n -= got) {
        st = bench_side_batch.claim(conn, batch, &got, err);
        if (st == PAWL_OK && got != batch)
            st = err_set(err, PAWL_BROKEN, "%zu of %zu calls were claimed", got, batch);
        if (st == PAWL_OK)
            st = bench_side_batch.finish(conn, err);
    }
    return st;
}

enum pawl_status counted_accept(void *conn, size_t at, size_t n, size_t batch, struct pawl_err *err)
{
    return accept_some(conn, at, n, batch, err);
}

enum pawl_status counted_drain(void *conn, size_t n, size_t batch, struct pawl_err *err)
{
    return drain_some(conn, n, batch, err);
}

static enum pawl_status store(const char *url, size_t n, size_t batch, struct pawl_err *err)
{
    struct bench_place place = { .url = url };
    size_t warm = WARM_GROUPS * batch;
    struct bench_id *ids = calloc(warm + n, sizeof *ids);
    void *conn = NULL;
    enum pawl_status st = ids ? bench_engine_schema(&place, err) : err_no_memory(err, "ids");
    if (st == PAWL_OK)
        st = bench_side_batch.open(&place, &conn, err);
    bench_ids_make(BENCH_IDS_ORDERED, ids, ids ? warm + n : 0);
    if (st == PAWL_OK)
        st = bench_side_batch.load(conn, ids, warm + n, err);
    if (st == PAWL_OK)
        st = accept_some(conn, 0, warm, batch, err);
    if (st == PAWL_OK)
        st = drain_some(conn, warm, batch, err);
    if (st == PAWL_OK)
        st = counted_accept(conn, warm, n, batch, err);
    if (st == PAWL_OK)
        st = counted_drain(conn, n, batch, err);
    bench_side_batch.close(conn);
    free(ids);
    return st;
}

/* ---- Both sides ------------------------------------------------------------------------------ */

struct engine {
    const char *name;
    struct db_server *server; /* NULL: SQLite */
};
static const struct engine engines[] = { { "SQLite", NULL }, { "PostgreSQL", &db_postgres } };

static const char *database_make(const struct engine *e)
{
    static int n;
    static char url[300];
    if (e->server)
        return db_database(e->server);
    snprintf(url, sizeof url, "sqlite:pair-%d.db", n++);
    return url;
}

static void database_drop(const struct engine *e, const char *url)
{
    static const char *const endings[] = { "", "-wal", "-shm" };
    if (e->server)
        db_drop(e->server);
    for (size_t i = 0; !e->server && i < COUNT_OF(endings); i++) {
        char name[320];
        snprintf(name, sizeof name, "%s%s", url + strlen("sqlite:"), endings[i]);
        unlink(name);
    }
}

/* Run a program and read what it prints; it ends this one when it fails. */
static void run(const char *const *args, char *out, size_t size)
{
    int ends[2], status = 0;
    size_t n = 0;
    if (pipe(ends) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execvp(args[0], (char *const *)args);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t got; n < size - 1 && (got = read(ends[0], out + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = 0;
    close(ends[0]);
    waitpid(pid, &status, 0);
    if (status != 0) {
        fprintf(stderr, "bench pair: %s ended with status %d\n", args[0], status);
        exit(1);
    }
}

/* ---- Rates ----------------------------------------------------------------------------------- */

enum { ACCEPT, DRAIN, WORKS };
static const char *const works[] = { "accept", "drain" };

struct rates {
    double v[2][WORKS][PAIRS_MAX];
    size_t n;
};

static void rates_of(const struct engine *e, const char *program, double *accept, double *drain)
{
    char said[200];
    const char *url = database_make(e);
    run((const char *const[]){ program, "lib", url, ROUND_CALLS, NULL }, said, sizeof said);
    database_drop(e, url);
    if (sscanf(said, "%lf %lf", accept, drain) != 2) {
        fprintf(stderr, "bench pair: %s printed no rates\n", program);
        exit(1);
    }
}

/* The median of the ratios, and the interval in which the true one lies at 95 %: between the k-th
 * smallest and the k-th largest ratio, by the binomial distribution. */
static void rates_print(const struct engine *e, const struct rates *r, size_t w)
{
    double a[PAIRS_MAX], b[PAIRS_MAX], ratio[PAIRS_MAX], outside = 0, chance = 1;
    size_t k = 0;
    for (size_t i = 0; i < r->n; i++) {
        a[i] = r->v[0][w][i];
        b[i] = r->v[1][w][i];
        ratio[i] = b[i] / a[i];
        chance /= 2;
    }
    for (; k < r->n / 2 && 2 * (outside + chance) <= 0.05; k++) {
        outside += chance;
        chance = chance * (double)(r->n - k) / (double)(k + 1);
    }
    double median = bench_median(ratio, r->n), low = ratio[k ? k - 1 : 0],
           high = ratio[r->n - (k ? k : 1)];
    printf("%-10s %-6s %10.0f/s %10.0f/s  %.3f  %.3f to %.3f  %s\n", e->name, works[w],
           bench_median(a, r->n), bench_median(b, r->n), median, low, high,
           low <= 1 && high >= 1 ? "holds 1.0" : "DOES NOT HOLD 1.0");
}

static void rates(const char *const programs[2], size_t pairs)
{
    printf("%-10s %-6s %12s %12s  %-5s  %s\n", "", "", "a", "b", "b/a",
           "interval of the median, 95 %");
    for (size_t i = 0; i < COUNT_OF(engines); i++) {
        static struct rates r;
        for (r.n = 0; r.n < pairs && r.n < PAIRS_MAX; r.n++)
            for (size_t j = 0; j < 2; j++) {
                size_t side = (j + r.n) % 2;
                rates_of(&engines[i], programs[side], &r.v[side][ACCEPT][r.n],
                         &r.v[side][DRAIN][r.n]);
            }
        for (size_t w = 0; w < WORKS; w++)
            rates_print(&engines[i], &r, w);
        fflush(stdout);
    }
}

/* ---- Instructions and statements ------------------------------------------------------------- */

static const struct {
    const char *batch, *n;
    double calls;
} shapes[] = { { "1000", "20000", 20000 }, { "1", "2000", 2000 } };

/* callgrind writes the name of a function once, as "(number) name", and then only the number. */
#define FUNCTIONS_MAX 65536

/* The number of a function in this line, which is "fn=(12) name" or "cfn=(12)"; 0: it is another
 * line. Notes in `is` whether its name begins with `prefix`. */
static size_t function_of(const char *line, const char *prefix, bool *is)
{
    size_t n = 0;
    char name[200] = "";
    const char *at = strncmp(line, "cfn=", 4) == 0 ? line + 1 : line;
    if (sscanf(at, "fn=(%zu) %199s", &n, name) < 1 || n >= FUNCTIONS_MAX)
        return 0;
    if (*name)
        is[n] = strncmp(name, prefix, strlen(prefix)) == 0;
    return n;
}

/* The sum of the events in callgrind's file, and how often functions with this beginning were
 * called. */
static double totals(const char *path, const char *prefix, double *out_called)
{
    static bool is[FUNCTIONS_MAX];
    char line[4096];
    double sum = 0;
    size_t called = 0;
    FILE *f = fopen(path, "r");
    memset(is, 0, sizeof is);
    *out_called = 0;
    while (f && fgets(line, sizeof line, f)) {
        double n = 0;
        size_t function = function_of(line, prefix, is);
        if (function)
            called = *line == 'c' ? function : 0;
        if (sscanf(line, "totals: %lf", &n) == 1)
            sum = n;
        else if (called && is[called] && sscanf(line, "calls=%lf", &n) == 1)
            *out_called += n;
    }
    if (f)
        fclose(f);
    return sum;
}

/* Instructions and statements a call of one program, for accept and drain. */
struct counted {
    double instructions[WORKS], statements[WORKS];
};

static struct counted count(const struct engine *e, const char *program, size_t shape)
{
    struct counted c;
    char said[4000];
    const char *url = database_make(e);
    run((const char *const[]){ "valgrind", "--tool=callgrind", "-q",
                               "--callgrind-out-file=pair.out", "--zero-before=counted_accept",
                               "--dump-after=counted_accept", "--zero-before=counted_drain",
                               "--dump-after=counted_drain", program, "store", url, shapes[shape].n,
                               shapes[shape].batch, NULL },
        said, sizeof said);
    database_drop(e, url);
    for (size_t w = 0; w < WORKS; w++) {
        char file[40];
        snprintf(file, sizeof file, "pair.out.%zu", w + 1);
        /* Each statement is one call of such a function of the client library. */
        c.instructions[w] =
            totals(file, e->server ? "PQsendQueryP" : "sqlite3_reset", &c.statements[w]) /
            shapes[shape].calls;
        c.statements[w] /= shapes[shape].calls;
        unlink(file);
    }
    unlink("pair.out");
    return c;
}

static void counts(const char *const programs[2])
{
    printf("%-10s %-6s %5s %15s %12s %7s %21s %12s\n", "", "", "batch", "instructions a", "b",
           "b/a", "statements a call, a", "b");
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        for (size_t s = 0; s < COUNT_OF(shapes); s++) {
            struct counted a = count(&engines[i], programs[0], s);
            struct counted b = count(&engines[i], programs[1], s);
            for (size_t w = 0; w < WORKS; w++)
                printf("%-10s %-6s %5s %15.1f %12.1f %7.4f %21.4f %12.4f\n", engines[i].name,
                       works[w], shapes[s].batch, a.instructions[w], b.instructions[w],
                       b.instructions[w] / a.instructions[w], a.statements[w], b.statements[w]);
            fflush(stdout);
        }
}

int main(int argc, char **argv)
{
    struct pawl_err err = { 0 };
    enum pawl_status st = PAWL_OK;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "lib") == 0 && argc == 4) {
        st = lib(argv[2], strtoul(argv[3], NULL, 10), &err);
    } else if (strcmp(what, "store") == 0 && argc == 5) {
        st = store(argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10), &err);
    } else if (argc >= 4 && db_there(&db_postgres)) {
        const char *const programs[] = { argv[2], argv[3] };
        db_start_own(&db_postgres);
        if (strcmp(what, "rates") == 0)
            rates(programs, argc > 4 ? strtoul(argv[4], NULL, 10) : 20);
        else
            counts(programs);
    } else {
        fprintf(stderr, "usage: pair rates|counts A B, with a PostgreSQL to start\n");
        return 2;
    }
    if (st != PAWL_OK)
        fprintf(stderr, "bench pair: %s\n", err.text);
    return st == PAWL_OK ? 0 : 1;
}
