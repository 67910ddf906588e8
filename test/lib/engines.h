/*
 * engines.h - the engines that tests run on, in one table.
 *
 * A case's parameter is a row's `url`: one that opens as it is, or that of a server, which stands
 * for a database of the case's own (engine_url). A file says which rows it is for and gets each of
 * its cases once on each; a server is started by the first case that needs it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ENGINES_H
#define ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db_server;

enum { ENGINE_MEM = 1, ENGINE_FILE = 2, ENGINE_SERVER = 4, ENGINE_POOLED = 8 };
#define ENGINES_ALL (ENGINE_MEM | ENGINE_FILE | ENGINE_SERVER)
/* What a second process can open. */
#define ENGINES_DURABLE (ENGINE_FILE | ENGINE_SERVER)

struct engine {
    const char *name; /* of the cases: "postgres" */
    const char *says; /* what it calls itself */
    const char *url;
    unsigned kind;
    bool sql;                 /* handlers have SQL */
    const char *tables;       /* what the names of its tables begin with */
    const char *blob;         /* what it calls a column of bytes */
    struct db_server *server; /* NULL: none */
    bool off;                 /* there is no such engine yet */
    bool (*way_there)(void);  /* a way to it that may not be there; NULL: straight */
    const char *(*way)(const char *url);
};
extern const struct engine engines[];
extern const size_t n_engines;

/* check_param() for each row of these kinds that is not off and that PAWL_ENGINES names. A server
 * that is not installed is said and left out. */
void engines_add(unsigned kinds);
/* One by its name, for one case in `every` of a file (check_param_sample). */
void engines_add_sample(const char *name, int every);
/* The row of a case's parameter, or of any URL, wrapped or not; ends the case when there is none.
 */
const struct engine *engine_of(const char *url);
/* What to open: itself, or the case's own database, made when it is first asked for, with Pawl's
 * tables where the server can copy them. */
const char *engine_url(const char *param);
/* That one is empty: for what is about making the tables. Before engine_url(). */
void engine_empty(const char *param);
/* Remove that one; the next is new. Nobody may have it open. */
void engine_fresh(const char *param);
/* The next is new, and the one before stays. */
void engine_another(void);
/* Start the server of a case that breaks it; nobody else is on it. */
struct db_server *engine_own(const char *param);

/* One number out of the tables, beside Pawl. "pawl_call" and its like are given the engine's names.
 */
int64_t engine_int(const char *param, const char *sql);
/* The first column of every row, a line each; lives until the next question. */
const char *engine_rows(const char *param, const char *sql);

/* Can another connection write within two seconds? A stopped process may hold a file's only lock.
 */
bool engine_writable(const char *param);

/* The database's own check of its files, where it has one. */
void engine_intact(const char *param);

/* Is this pause or crash point the engine's "before_commit", whatever the engine calls itself? That
 * of a migration is not. */
bool engine_point(const char *name, const char *what);

/* A file whose cases run on these. */
#define RUNS_ON(kinds)                                                                             \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        engines_add(kinds);                                                                        \
    }
/* A file whose cases run on one, by its name. */
#define RUNS_ON_ENGINE(name)                                                                       \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        engines_add_sample(name, 1);                                                               \
    }

#endif
