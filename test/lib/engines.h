/*
 * engines.h - the table of engines that tests run on.
 *
 * A case's parameter is the `url` of a row. For mem and files it can be opened as it is; for a
 * server it stands for the case's own database (engine_url). A file says for which kinds its cases
 * are, and each case runs once on each of them. A server is started by the first case that needs
 * it.
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
/* Engines whose database a second process can open. */
#define ENGINES_DURABLE (ENGINE_FILE | ENGINE_SERVER)

struct engine {
    const char *name; /* the suffix of the cases' names: "postgres" */
    const char *says; /* the engine's own name */
    const char *url;
    unsigned kind;
    bool sql;                 /* it has handler SQL */
    const char *tables;       /* the prefix of its tables' names */
    const char *blob;         /* its type for a column of bytes */
    struct db_server *server; /* NULL: not on a server */
    bool off;                 /* disabled: no case runs on it */
    bool (*way_there)(void); /* is the pooler or proxy to it installed? NULL: it is reached directly
                              */
    const char *(*way)(const char *url);
};
extern const struct engine engines[];
extern const size_t n_engines;

/* Call check_param() for each row of these kinds that is not off and that PAWL_ENGINES names. A
 * server that is not installed is reported and left out. */
void engines_add(unsigned kinds);
/* The same for one engine by name, for one of `every` cases of a file (check_param_sample). */
void engines_add_sample(const char *name, int every);
/* The same for the servers, with the `struct db_server` as the parameter: for cases that need only
 * the server. */
void engines_add_servers(void);
/* The row of a case's parameter or of any URL, with or without wrappers; ends the case when there
 * is none. */
const struct engine *engine_of(const char *url);
/* The URL to open: the parameter itself, or the case's own database, created at the first call,
 * with Pawl's tables if the server can copy them. */
const char *engine_url(const char *param);
/* Make that database empty, for tests of the migration. To be called before engine_url(). */
void engine_empty(const char *param);
/* Remove that database; the next call of engine_url() makes a new one. No process may have it open.
 */
void engine_fresh(const char *param);
/* Let the next call of engine_url() make a new database; the present one stays. */
void engine_another(void);
/* Start the case's own server, for a case that breaks it. */
struct db_server *engine_own(const char *param);

/* One number from the tables, read without Pawl. Names such as "pawl_call" are replaced by the
 * engine's. */
int64_t engine_int(const char *param, const char *sql);
/* Every row, a line each, with a tab between columns; valid until the next call. */
const char *engine_rows(const char *param, const char *sql);

/* Can another connection write within two seconds? A stopped process may hold SQLite's only write
 * lock. */
bool engine_writable(const char *param);

/* Run the database's own integrity check, where it has one. */
void engine_intact(const char *param);

/* Is this pause or crash point the engine's point `what` ("before_commit"), whatever the engine's
 * name? Points of a migration are not. */
bool engine_point(const char *name, const char *what);

/* For a file whose cases run on these kinds. */
#define RUNS_ON(kinds)                                                                             \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        engines_add(kinds);                                                                        \
    }
/* For a file whose cases run on one engine, by its name. */
#define RUNS_ON_ENGINE(name)                                                                       \
    CHECK_PARAMS                                                                                   \
    {                                                                                              \
        engines_add_sample(name, 1);                                                               \
    }

#endif
