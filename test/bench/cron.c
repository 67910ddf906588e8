/*
 * cron.c - 10,000 schedules that are due in the same second: how long until all of their calls are
 * submitted, and what other callers notice of it.
 *
 * All schedules tick every PERIOD_S seconds, so each period has a tick phase, from the due time
 * until no schedule is due any more, and a quiet phase. Eight callers submit a call, wait for its
 * end, pause, and begin again all the time; a call counts for the phase in which it began. The
 * calls of the ticks are of a type that no worker serves, or (the rows below) of one that the same
 * workers serve beside the other callers' calls. --quick (or PAWL_BENCH_QUICK): fewer rounds; names
 * of engines: only these.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/world.h"
#include "bench/floor.h"
#include "bench/load.h"
#include "bench/table.h"
#include "db_server.h"
#include "feature/all.h"
#include "feature/cron.h"
#include "model/schedule.h"
#include "store/store.h"

enum { SCHEDULES = 10000, CALLERS = 8, PERIOD_S = 10, ROUNDS = 5, ROUNDS_QUICK = 3 };
#define PERIOD_US (PERIOD_S * SEC_US)
/* Puts in one commit. */
#define PUT_GROUP 500
/* A caller pauses so long between two calls: the callers alone must not fill the machine. */
#define PAUSE_US 5000
#define LOOK_US 5000
/* The quiet phase: so long after the tick phase, and before the next one. */
#define AFTER_US SEC_US
#define BEFORE_US (500 * MS_US)
#define CALLS_MAX 200000

struct engine {
    const char *key, *name;
    struct db_server *server; /* NULL: SQLite */
    const char *ticks;        /* the table */
};
static const struct engine engines[] = {
    { "postgres", "PostgreSQL", &db_postgres, "pawl.tick" },
    { "mariadb", "MariaDB", &db_mariadb, "pawl_tick" },
    { "sqlite", "SQLite", NULL, "pawl_tick" },
};
#define SQLITE_FILE "cron.db"

/* ---- Schedules ------------------------------------------------------------------------------- */

static enum pawl_status handle_open(const char *url, enum store_role role, struct store **out,
                                    struct pawl_err *err)
{
    size_t n = 0;
    const struct feature *const *features = features_all(&n);
    return store_open(&(struct store_conf){ .url = url,
                                            .role = role,
                                            .retention_us = 7 * 86400 * SEC_US,
                                            .remember_us = 30 * 86400 * SEC_US,
                                            .features = features,
                                            .n_features = n },
                      out, err);
}

static enum pawl_status put_group(struct store *s, struct arena *a, const struct schedule *value,
                                  int first, struct pawl_err *err)
{
    static struct op ops[PUT_GROUP], *v[PUT_GROUP];
    static struct cron_op puts[PUT_GROUP];
    for (int i = 0; i < PUT_GROUP; i++) {
        puts[i] = (struct cron_op){ .what = CRON_PUT,
                                    .name = bytes_of(arena_printf(a, "schedule-%d", first + i)),
                                    .schedule = value };
        ops[i] = (struct op){ .kind = OP_FEATURE,
                              .a = a,
                              .feature = { .of = &feature_cron, .ctx = &puts[i] } };
        v[i] = &ops[i];
    }
    enum pawl_status st = store_commit(s, v, PUT_GROUP);
    for (int i = 0; i < PUT_GROUP && st == PAWL_OK; i++)
        if (ops[i].status != PAWL_OK) {
            *err = ops[i].err;
            return ops[i].status;
        }
    return st == PAWL_OK ? PAWL_OK : err_set(err, st, "schedules could not be stored");
}

static enum pawl_status put_all(const char *url, const char *type, struct pawl_err *err)
{
    struct store *s = NULL;
    struct arena a;
    struct schedule value;
    struct json *object;
    arena_init(&a, (size_t)64 << 20);
    enum pawl_status st = handle_open(url, STORE_WRITER, &s, err);
    const char *text =
        arena_printf(&a, "{\"every\":%d,\"call\":{\"type\":\"%s\"}}", PERIOD_S, type);
    if (st == PAWL_OK)
        st = json_parse(&a, bytes_of(text), &object, err);
    if (st == PAWL_OK)
        st = schedule_read(&a, object, &(struct schedule_limits){ 0 }, &value, err);
    for (int i = 0; i < SCHEDULES && st == PAWL_OK; i += PUT_GROUP)
        st = put_group(s, &a, &value, i, err);
    store_close(s);
    arena_release(&a);
    return st;
}

/* ---- Other callers --------------------------------------------------------------------------- */

struct called {
    int64_t began_us; /* world_now */
    double us;
};
struct callers {
    struct pawl *p;
    atomic_bool stop;
    struct called *v;
    atomic_size_t n;
    pthread_t threads[CALLERS];
    _Atomic(enum pawl_status) status;
};

static void *caller_main(void *arg)
{
    struct callers *c = arg;
    while (!atomic_load(&c->stop)) {
        struct pawl_spec spec = { PAWL_SPEC_INIT, .type = LOAD_TYPE_NOOP,
                                  .input = { PAWL_JSON, bench_input, bench_input_len } };
        struct pawl_shown *shown = NULL;
        struct pawl_err err;
        int64_t at_us = world_now(&world_real);
        double began = bench_clock();
        enum pawl_status st = pawl_submit_wait(c->p, &spec, 30 * SEC_US, &shown, &err);
        pawl_shown_free(shown);
        if (st != PAWL_OK) {
            fprintf(stderr, "bench cron: a caller: %s\n", err.text);
            atomic_store(&c->status, st);
            break;
        }
        size_t i = atomic_fetch_add(&c->n, 1);
        if (i < CALLS_MAX)
            c->v[i] = (struct called){ at_us, (bench_clock() - began) * 1e6 };
        usleep(PAUSE_US);
    }
    return NULL;
}

static void callers_start(struct callers *c, struct pawl *p)
{
    *c = (struct callers){ .p = p, .v = calloc(CALLS_MAX, sizeof *c->v) };
    for (int i = 0; i < CALLERS; i++)
        if (!c->v || pthread_create(&c->threads[i], NULL, caller_main, c) != 0)
            abort();
}

static void callers_stop(struct callers *c)
{
    atomic_store(&c->stop, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(c->threads[i], NULL);
}

/* The p99 of the calls that began in this time. */
static double p99_of(const struct callers *c, int64_t from_us, int64_t until_us)
{
    static double v[CALLS_MAX];
    size_t n = 0, all = MIN(atomic_load(&c->n), (size_t)CALLS_MAX);
    for (size_t i = 0; i < all; i++)
        if (c->v[i].began_us >= from_us && c->v[i].began_us < until_us)
            v[n++] = c->v[i].us;
    return bench_quantile(v, n, 0.99);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* The handler of the served type. Static, because a handler gets no argument from its program. */
static atomic_llong served;

static int serve(struct pawl_call *c)
{
    (void)c;
    atomic_fetch_add(&served, 1);
    return 0;
}

struct round {
    int64_t due_us, submitted_us, over_us; /* over: submitted, and those that are served have begun
                                            */
};
struct measure {
    const struct engine *e;
    const char *url;
    bool serves;
    size_t n;
    struct round rounds[ROUNDS];
    struct callers callers;
    struct store *looks;
    struct bench_rounds took, p99, submitted;
};

static void until(int64_t us)
{
    int64_t left_us = us - world_now(&world_real);
    if (left_us > 0)
        usleep((unsigned)left_us);
}

static enum pawl_status round_of(struct measure *m, struct round *r, struct pawl_err *err)
{
    struct cron_due due = { 0 };
    enum pawl_status st = PAWL_OK;
    r->due_us = (world_now(&world_real) / PERIOD_US + 1) * PERIOD_US;
    until(r->due_us - BEFORE_US);
    atomic_store(&served, 0);
    until(r->due_us);
    do {
        usleep(LOOK_US);
        st = cron_due(m->looks, &due, err);
    } while (st == PAWL_OK && due.next_us <= r->due_us);
    r->over_us = r->submitted_us = world_now(&world_real);
    while (m->serves && atomic_load(&served) < SCHEDULES && r->over_us < r->due_us + PERIOD_US) {
        usleep(LOOK_US);
        r->over_us = world_now(&world_real);
    }
    if (st == PAWL_OK && r->over_us + AFTER_US + SEC_US > r->due_us + PERIOD_US)
        st = err_set(err, PAWL_BUSY, "a tick took longer than %d s", PERIOD_S - 2);
    until(r->due_us + PERIOD_US - BEFORE_US);
    return st == PAWL_OK ? atomic_load(&m->callers.status) : st;
}

static enum pawl_status counts_read(struct measure *m, struct pawl_err *err)
{
    struct floor *f = NULL;
    enum pawl_status st = PAWL_OK;
    if (!m->e->server)
        st = floor_open(&(struct floor_conf){ .path = SQLITE_FILE, .attach = true }, &f, err);
    for (size_t i = 0; i < m->n && st == PAWL_OK; i++) {
        char sql[120];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE kind = 1 AND at = %lld",
                 m->e->ticks, (long long)m->rounds[i].due_us);
        bench_rounds_add(&m->submitted,
                         (double)(m->e->server ? db_int(m->e->server, sql) : floor_number(f, sql)),
                         0);
    }
    floor_close(f);
    return st;
}

static void rounds_sum(struct measure *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct round *r = &m->rounds[i];
        bench_rounds_add(&m->took, (double)(r->submitted_us - r->due_us) / 1e6, 0);
        bench_rounds_add(
            &m->p99, p99_of(&m->callers, r->due_us, r->over_us) / 1e3,
            p99_of(&m->callers, r->over_us + AFTER_US, r->due_us + PERIOD_US - BEFORE_US) / 1e3);
    }
}

static enum pawl_status measure(struct measure *m, size_t rounds, struct pawl_err *err)
{
    AUTO(load_end) struct pawl *p = NULL;
    const char *type = m->serves ? "served" : "unserved";
    struct round warm;
    enum pawl_status st = load_open(&(struct load_conf){ .url = m->url, .node = "bench" }, &p, err);
    if (st == PAWL_OK)
        st = pawl_on(pawl_program(p), "served", "run", serve);
    if (st == PAWL_OK)
        st = put_all(m->url, type, err);
    if (st == PAWL_OK)
        st = load_start(p, err);
    if (st == PAWL_OK)
        st = handle_open(m->url, STORE_READER, &m->looks, err);
    if (st != PAWL_OK)
        return st;
    callers_start(&m->callers, p);
    st = round_of(m, &warm, err);
    for (; m->n < rounds && st == PAWL_OK; m->n++)
        st = round_of(m, &m->rounds[m->n], err);
    callers_stop(&m->callers);
    store_close(m->looks);
    rounds_sum(m);
    free(m->callers.v);
    return st == PAWL_OK ? counts_read(m, err) : st;
}

static void rows(const struct measure *m, struct bench_table *t)
{
    char took[80], p99[80];
    snprintf(took, sizeof took, "%s: %d ticks at once%s", m->e->name, SCHEDULES,
             m->serves ? ", served" : "");
    snprintf(p99, sizeof p99, "  others' p99 (beside: quiet)");
    const struct bench_row v[] = {
        { took, "s", &m->took, m->serves ? BENCH_NO_GOAL : BENCH_FIGURE_MAX, 2 },
        { "  calls submitted", "", &m->submitted, BENCH_FIGURE_EXACT, SCHEDULES },
        { p99, "ms", &m->p99, m->serves ? BENCH_NO_GOAL : BENCH_RATIO_MAX, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(v); i++)
        bench_table_row(t, &v[i]);
}

static void files_remove(void)
{
    unlink(SQLITE_FILE);
    unlink(SQLITE_FILE "-wal");
    unlink(SQLITE_FILE "-shm");
}

static bool asked(const struct engine *e, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], e->key) == 0)
            return true;
        any = any || *argv[i] != '-';
    }
    return !any;
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool quick = (env && *env) || (argc > 1 && strcmp(argv[1], "--quick") == 0);
    struct bench_table table = { .out = stdout };
    int code = 0;
    bench_table_load(&table);
    bench_table_begin(&table, "schedules that are due in the same second");
    for (size_t i = 0; i < 2 * COUNT_OF(engines); i++) {
        const struct engine *e = &engines[i / 2];
        struct measure m = { .e = e, .serves = i % 2 };
        struct pawl_err err = { 0 };
        if (!asked(e, argc, argv))
            continue;
        if (e->server && !db_there(e->server)) {
            printf("%s: not measured, there is no server to start\n", e->name);
            continue;
        }
        if (e->server && !m.serves)
            db_start_own(e->server);
        m.url = e->server ? db_database(e->server) : "sqlite:" SQLITE_FILE;
        if (measure(&m, quick ? ROUNDS_QUICK : ROUNDS, &err) == PAWL_OK) {
            rows(&m, &table);
        } else {
            fprintf(stderr, "bench cron: %s: %s\n", e->name, err.text);
            code = 1;
        }
        files_remove();
    }
    bench_table_end(&table);
    return code;
}
