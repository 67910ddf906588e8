/*
 * db_driver.h - what db_server.c needs to know of one kind of server: which programs there are and
 * how they are called. Private to test/lib.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DB_DRIVER_H
#define DB_DRIVER_H

#include <sys/types.h>

#include "db_server.h"

/* A command line. */
struct words {
    const char *v[64];
    int n;
    char text[6000];
    size_t len;
};
void word(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct db_server {
    const char *name;
    const char *users[3]; /* who runs it when we are root: the first that exists */
    int clean, kill;      /* signals */
    const char *admin;    /* the database an administrator is in */
    const char *first;    /* SQL of the first start */
    const char *cut;      /* SQL that ends every other connection; answers a row each */
    /* Does a connection to this database wait for a lock? */
    bool (*waits)(struct db_server *s);
    const char *list; /* SQL: the names of all databases */
    const char *drop; /* what follows DROP DATABASE and its name */
    const char *copy; /* what follows CREATE DATABASE and its name to copy MADE_DATABASE; NULL: it
                         cannot */
    bool cut_says;    /* these rows are the statements to be run, some in vain */
    bool (*find)(struct db_server *s);
    /* Say `sql` on a connection of its own as superuser. Answers 0 with the rows in `out`, a line
     * each, columns apart by tabs, cut where `out` ends; else something else, and why. */
    int (*say)(const struct db_server *s, const char *database, const char *sql, char *out,
               size_t size);
    /* Each fills in a command line, the program's path first. */
    void (*make)(const struct db_server *s, struct words *w);
    void (*serve)(const struct db_server *s, struct words *w);
    void (*client)(const struct db_server *s, struct words *w, const char *database);
    void (*url)(const struct db_server *s, char *out, size_t size, const char *database);

    const char *options[8]; /* more of its command line, as a case said */
    int n_options;
    const struct db_server *of; /* whose copy it is; NULL: nobody's */
    char bin[200], dir[64], data[80];
    int port;
    bool fast;
    pid_t pid;   /* 0: not running, or somebody else's */
    pid_t owner; /* who started it, and ends it */
    bool copies; /* the shared one has MADE_DATABASE, which can be copied */
    int databases;
    char database[60]; /* the one made last */
};

/* In db_server.c, for db_share.c: make the folder and start it; false: why was printed. */
bool db_begin(struct db_server *s, bool fast);
/* Stop it and remove its folder, in the process that owns it. */
void db_finish(struct db_server *s);

/* A database that was migrated when the shared server started, to be copied by cases. */
#define MADE_DATABASE "pawl_made"
/* Rows of an answer, as db_ask() gives them. NULL is the engine's own word for it. */
struct rows {
    char *out;
    size_t len, size;
};
void rows_begin(struct rows *r, char *out, size_t size);
/* One more cell; the first of a row begins a line. */
void rows_cell(struct rows *r, bool first, const char *text, size_t len);

/* `dir` and everything in it. */
void db_remove_folder(const char *dir);

#endif
