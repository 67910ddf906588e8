/*
 * db_driver.h - what db_server.c needs to know about one kind of server: its programs, command
 * lines and SQL. Private to test/lib.
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
/* Append one argument, built like printf. */
void word(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct db_server {
    const char *name;
    const char *users[3]; /* the account that runs the server when the tests run as root: the first
                             that exists */
    int clean, kill;      /* the signals for a clean and for an immediate stop */
    const char *admin;    /* the database that an administrator connects to */
    const char *first;    /* SQL to run after the first start */
    const char *cut;      /* SQL that ends every other connection; one row for each */
    /* Is a connection to the case's database waiting for a lock? */
    bool (*waits)(struct db_server *s);
    const char *list; /* SQL: the names of all databases */
    const char *drop; /* appended to DROP DATABASE NAME */
    const char *copy; /* appended to CREATE DATABASE NAME to copy MADE_DATABASE; NULL: the server
                         cannot copy */
    bool cut_says;    /* the rows of `cut` are statements to run, some of which may fail */
    /* Find the server's programs; false: it is not installed. */
    bool (*find)(struct db_server *s);
    /* Run `sql` as superuser on a new connection. Returns 0 with the rows in `out`, a line each,
     * columns separated by tabs, cut at `size`; else an error code, with the message in `out`. */
    int (*say)(const struct db_server *s, const char *database, const char *sql, char *out,
               size_t size);
    /* The command line that creates the server's files; the program's path first. */
    void (*make)(const struct db_server *s, struct words *w);
    /* The command line that runs the server. */
    void (*serve)(const struct db_server *s, struct words *w);
    /* The command line of the server's client program. */
    void (*client)(const struct db_server *s, struct words *w, const char *database);
    /* The URL of a database on the server. */
    void (*url)(const struct db_server *s, char *out, size_t size, const char *database);

    const char *options[8]; /* further options of its command line */
    int n_options;
    const struct db_server *of; /* the primary of a replica; NULL: it is not a replica */
    char bin[200], dir[64], data[80];
    int port;
    bool fast;
    pid_t pid;   /* 0: not running, or not started by this process */
    pid_t owner; /* the process that started it and ends it */
    bool copies; /* the shared server has MADE_DATABASE, which can be copied */
    int databases;
    char database[60]; /* the one that was created last */
};

/* For db_share.c: create the folder and start the server. False: it did not start, and the reason
 * was printed. */
bool db_begin(struct db_server *s, bool fast);
/* Stop the server and remove its folder; does nothing unless this process owns it. */
void db_finish(struct db_server *s);

/* A database that is migrated when the shared server starts, and that cases copy. */
#define MADE_DATABASE "pawl_made"
/* The rows of an answer as db_ask() returns them. NULL is printed as the engine prints it. */
struct rows {
    char *out;
    size_t len, size;
};
/* Start with no rows. */
void rows_begin(struct rows *r, char *out, size_t size);
/* Add one cell; the first cell of a row begins a line. */
void rows_cell(struct rows *r, bool first, const char *text, size_t len);

/* Remove `dir` and everything in it. */
void db_remove_folder(const char *dir);

#endif
