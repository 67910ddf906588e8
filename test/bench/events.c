/*
 * events.c - rates of the event service on each engine: new events over one and two servers,
 * workers on a backlog, and the cost of a scan without an index.
 *
 * Private servers with default settings; everything shares this machine. --quick (or
 * PAWL_BENCH_QUICK): shorter rounds.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/world.h"
#include "bench/table.h"
#include "db_server.h"
#include "events_fixture.h"
#include "events/table.h"

enum { CONNS = 64, GROUP = 1000 };
/* Work that has not ended after this time is stuck. */
#define WORK_S 300

struct sizes {
    size_t rounds;
    double seconds;
    int backlog;
    int looks;
};
static const struct sizes full = { 3, 3, 20000, 100 }, quick = { 1, 1, 5000, 20 };

/* ---- A load ---------------------------------------------------------------------------------- */

struct load {
    int port[2], n_ports;
    int conns;
    const char *path;
    double seconds;
};

static void ask(int fd, const char *path)
{
    events_send(fd, "POST", path, NULL);
}

/* Every connection sends a request as soon as the last is answered. Returns answers a second. */
static double rate(const struct load *l)
{
    struct pollfd v[CONNS];
    char block[4096];
    int64_t n = 0;
    for (int i = 0; i < l->conns; i++) {
        v[i] = (struct pollfd){ .fd = events_connect(l->port[i % l->n_ports]), .events = POLLIN };
        GE_INT(v[i].fd, 0);
        ask(v[i].fd, l->path);
    }
    double begun = bench_clock(), now = begun;
    while (now - begun < l->seconds) {
        GT_INT(poll(v, (nfds_t)l->conns, 10000), 0);
        for (int i = 0; i < l->conns; i++) {
            if (!v[i].revents)
                continue;
            /* An answer comes in one piece. */
            ssize_t got = recv(v[i].fd, block, sizeof block - 1, 0);
            GT_INT(got, 0);
            block[got] = 0;
            if (strncmp(block, "HTTP/1.1 20", 11) != 0)
                FAIL("%.200s", block);
            n++;
            ask(v[i].fd, l->path);
        }
        now = bench_clock();
    }
    for (int i = 0; i < l->conns; i++) {
        events_read(v[i].fd); /* the last one */
        close(v[i].fd);
    }
    return (double)n / (now - begun);
}

/* ---- One engine ------------------------------------------------------------------------------ */

struct figures {
    struct bench_rounds one, many, two, later, work, single, count, find;
};

static void serve_rounds(const char *url, const struct sizes *size, struct figures *f)
{
    struct events_proc a = events_start(url, "serve", NULL, NULL);
    struct events_proc b = events_start(url, "serve", NULL, NULL);
    events_ready(&a);
    events_ready(&b);
    for (size_t i = 0; i < size->rounds; i++) {
        struct load l = { .port = { a.port, b.port }, .n_ports = 1, .seconds = size->seconds };
        l.path = "/events";
        l.conns = 1;
        bench_rounds_add(&f->one, rate(&l), 0);
        l.conns = CONNS;
        bench_rounds_add(&f->many, rate(&l), 0);
        l.n_ports = 2;
        bench_rounds_add(&f->two, rate(&l), 0);
        l.path = "/events/async";
        l.n_ports = 1;
        bench_rounds_add(&f->later, rate(&l), 0);
    }
    events_end(&a, SIGTERM);
    events_end(&b, SIGTERM);
}

static int64_t pending(struct events_db *db)
{
    struct pawl_err err;
    int64_t n = 0;
    OK(events_db_count(db, &n, &err), &err);
    return n;
}

static void backlog(struct events_db *db, int n)
{
    static struct event v[GROUP];
    struct pawl_err err;
    for (int left = n; left > 0; left -= GROUP) {
        struct event_add add = { .v = v, .n = (size_t)MIN(left, GROUP) };
        OK(events_db_add(db, &add, &err), &err);
    }
}

/* Run workers in this process until all n events are done. */
static double work(const char *url, int n, int batch)
{
    struct pawl_err err;
    struct events_workers *w;
    struct events_figures f = { 0 };
    struct events_workers_conf conf = {
        .db = url, .threads = 8, .batch = batch, .poll_us = 5 * MS_US, .jitter_us = 5 * MS_US
    };
    double begun = bench_clock();
    OK(events_workers_open(&conf, &w, &err), &err);
    while (f.done < n) {
        TRUE(bench_clock() - begun < WORK_S);
        usleep(500);
        events_workers_figures(w, &f);
    }
    double took = bench_clock() - begun;
    events_workers_close(w);
    return n / took;
}

static void look_rounds(struct events_db *db, int looks, struct figures *f)
{
    struct pawl_err err;
    struct arena a;
    arena_init(&a, 1 << 20);
    for (int i = 0; i < (looks < BENCH_ROUNDS_MAX ? looks : BENCH_ROUNDS_MAX); i++) {
        struct event e = { .id = 1 + i };
        double begun = bench_clock();
        pending(db);
        bench_rounds_add(&f->count, (bench_clock() - begun) * 1e6, 0);
        begun = bench_clock();
        OK(events_db_find(db, &a, &e, 1, &err), &err);
        bench_rounds_add(&f->find, (bench_clock() - begun) * 1e6, 0);
    }
    arena_release(&a);
}

/* Workers start with an empty table: done events slow down their scans. */
static void engine(const char *name, const char *url, const char *other, const struct sizes *size)
{
    static char title[100], backlog_name[60], look_name[60];
    struct figures f = { 0 };
    struct pawl_err err;
    struct events_db *db;
    struct bench_table table = { .out = stdout };
    bench_table_load(&table);
    OK(events_db_open(url, 0, &db, &err), &err);
    OK(events_db_make(db, &err), &err);
    for (size_t i = 0; i < size->rounds; i++) {
        backlog(db, 1000);
        bench_rounds_add(&f.single, work(url, 1000, 1), 0);
        backlog(db, size->backlog);
        bench_rounds_add(&f.work, work(url, size->backlog, 100), 0);
    }
    look_rounds(db, size->looks, &f);
    int64_t rows = pending(db);
    events_db_close(db);
    serve_rounds(other, size, &f);
    snprintf(title, sizeof title, "events: %s", name);
    snprintf(backlog_name, sizeof backlog_name, "8 workers, %d pending, 100 at a time",
             size->backlog);
    snprintf(look_name, sizeof look_name, "GET one of %lld events, no index", (long long)rows);
    const struct bench_row v[] = {
        { "POST /events, 1 connection", "/s", &f.one, BENCH_NO_GOAL, 0 },
        { "POST /events, 64 connections", "/s", &f.many, BENCH_NO_GOAL, 0 },
        { "POST /events, 64 connections, 2 servers", "/s", &f.two, BENCH_NO_GOAL, 0 },
        { "POST /events/async, 64 connections", "/s", &f.later, BENCH_NO_GOAL, 0 },
        { "8 workers, 1000 pending, one at a time", "/s", &f.single, BENCH_NO_GOAL, 0 },
        { backlog_name, "/s", &f.work, BENCH_NO_GOAL, 0 },
        { "count them all", "us", &f.count, BENCH_NO_GOAL, 0 },
        { look_name, "us", &f.find, BENCH_NO_GOAL, 0 },
    };
    bench_table_begin(&table, title);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        bench_table_row(&table, &v[i]);
    bench_table_end(&table);
}

static void server(struct db_server *s, const struct sizes *size)
{
    char first[400];
    if (!db_there(s)) {
        printf("events: %s: not measured, there is no server to start\n", db_name(s));
        return;
    }
    db_start_own(s);
    snprintf(first, sizeof first, "%s", db_database(s));
    engine(db_name(s), first, db_database(s), size);
}

int main(int argc, char **argv)
{
    const char *env = getenv("PAWL_BENCH_QUICK");
    bool is_quick = (env && *env) || (argc > 1 && strcmp(argv[1], "--quick") == 0);
    const struct sizes *size = is_quick ? &quick : &full;
    engine("sqlite", "sqlite:events.db", "sqlite:events2.db", size);
    server(&db_mariadb, size);
    server(&db_postgres, size);
    return 0;
}
