/*
 * engines.c - see engines.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "engines.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "check.h"
#include "db_server.h"
#include "pooler.h"

const struct engine engines[] = {
    { .name = "mem", .says = "mem", .url = "mem:fixture", .kind = ENGINE_MEM },
    { .name = "sqlite",
      .says = "sqlite",
      .url = "sqlite:fixture.db",
      .kind = ENGINE_FILE,
      .sql = true,
      .tables = "pawl_",
      .blob = "BLOB" },
    { .name = "postgres",
      .says = "postgres",
      .url = "postgres:",
      .kind = ENGINE_SERVER,
      .sql = true,
      .tables = "pawl.",
      .blob = "BYTEA",
      .server = &db_postgres },
    { .name = "pooled",
      .says = "postgres",
      .url = "pooled:",
      .kind = ENGINE_POOLED,
      .sql = true,
      .tables = "pawl.",
      .blob = "BYTEA",
      .server = &db_postgres,
      .way_there = pooler_there,
      .way = pooler_url },
    { .name = "mariadb",
      .says = "mariadb",
      .url = "mysql:",
      .kind = ENGINE_SERVER,
      .sql = true,
      .tables = "pawl_",
      .blob = "BLOB",
      .server = &db_mariadb },
};
const size_t n_engines = COUNT_OF(engines);

/* PAWL_ENGINES names the engines to run on, separated by spaces; unset or empty: all. */
static bool wanted(const char *name)
{
    const char *names = getenv("PAWL_ENGINES");
    size_t len = strlen(name);
    if (!names || !*names)
        return true;
    for (const char *at = names; (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == ' ') && (at[len] == 0 || at[len] == ' '))
            return true;
    return false;
}

/* Every file of a program asks: report a missing server only once. */
static void say_missing(const struct engine *e)
{
    static bool said[COUNT_OF(engines)];
    if (!said[e - engines])
        printf("# %s is not installed: its cases are left out\n", e->name);
    said[e - engines] = true;
}

static void add(const struct engine *e, int every)
{
    if (e->off || !wanted(e->name))
        return;
    if (!e->server || (db_there(e->server) && (!e->way_there || e->way_there())))
        check_param_sample(e->name, (void *)e->url, every);
    else
        say_missing(e);
}

void engines_add(unsigned kinds)
{
    for (size_t i = 0; i < n_engines; i++)
        if (engines[i].kind & kinds)
            add(&engines[i], 1);
}

void engines_add_sample(const char *name, int every)
{
    for (size_t i = 0; i < n_engines; i++)
        if (strcmp(engines[i].name, name) == 0)
            add(&engines[i], every);
}

void engines_add_servers(void)
{
    for (size_t i = 0; i < n_engines; i++)
        if (engines[i].kind == ENGINE_SERVER && !engines[i].off && wanted(engines[i].name)) {
            if (db_there(engines[i].server))
                check_param(engines[i].name, engines[i].server);
            else
                say_missing(&engines[i]);
        }
}

/* The scheme of a URL behind any wrappers. */
const struct engine *engine_of(const char *url)
{
    size_t colon = strcspn(url, ":");
    for (size_t i = 0; i < n_engines; i++) {
        size_t len = strcspn(engines[i].url, ":");
        if (len <= colon && strncmp(url + colon - len, engines[i].url, len) == 0 &&
            (len == colon || url[colon - len - 1] == '+'))
            return &engines[i];
    }
    FAIL("no engine has the URL %s", url);
}

static const char *own; /* the case's database on a server */

const char *engine_url(const char *param)
{
    const struct engine *e = engine_of(param);
    const char *colon = strchr(param, ':');
    static char wrapped[300];
    if (!e->server || colon[1])
        return param;
    if (!own)
        own = e->way ? e->way(db_migrated(e->server)) : db_migrated(e->server);
    size_t before = (size_t)(colon - param) - strcspn(e->url, ":");
    if (!before)
        return own;
    snprintf(wrapped, sizeof wrapped, "%.*s%s", (int)before, param, own);
    return wrapped;
}

void engine_empty(const char *param)
{
    const struct engine *e = engine_of(param);
    if (e->server)
        own = e->way ? e->way(db_database(e->server)) : db_database(e->server);
}

static const char *file_of(const char *param)
{
    return strchr(param, ':') + 1;
}

void engine_fresh(const char *param)
{
    static const char *const tails[] = { "", "-wal", "-shm" };
    if (own)
        db_drop(engine_of(param)->server);
    own = NULL;
    for (size_t i = 0; engine_of(param)->kind == ENGINE_FILE && i < COUNT_OF(tails); i++) {
        char path[200];
        snprintf(path, sizeof path, "%s%s", file_of(param), tails[i]);
        unlink(path);
    }
}

void engine_another(void)
{
    own = NULL;
}

struct db_server *engine_own(const char *param)
{
    struct db_server *s = engine_of(param)->server;
    db_start_own(s);
    return s;
}

/* ---- Reading the tables without Pawl --------------------------------------------------------- */

static const char *with_names(const struct engine *e, const char *sql)
{
    static const char ours[] = "pawl_";
    static char out[4000];
    size_t len = 0, step = strlen(e->tables);
    while (*sql) {
        bool name = strncmp(sql, ours, sizeof ours - 1) == 0;
        LT_INT((int64_t)(len + step + 2), (int64_t)sizeof out);
        if (name)
            memcpy(out + len, e->tables, step);
        else
            out[len] = *sql;
        len += name ? step : 1;
        sql += name ? sizeof ours - 1 : 1;
    }
    memcpy(out + len, ";", 2);
    return out;
}

/* The rows of one answer, while they are put together. */
struct text {
    char *at; /* owned, and used for the next answer */
    size_t len, cap;
};

static void text_add(struct text *t, const char *before, const char *what)
{
    size_t more = strlen(before) + strlen(what);
    if (t->len + more + 1 > t->cap)
        t->at = realloc(t->at, t->cap = (t->len + more + 1) * 2);
    TRUE(t->at != NULL);
    snprintf(t->at + t->len, more + 1, "%s%s", before, what);
    t->len += more;
}

static const char *sqlite_rows(const char *file, const char *sql)
{
    static struct text out;
    sqlite3 *db;
    sqlite3_stmt *q;
    out.len = 0;
    EQ_INT(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        FAIL("%s: %s", sql, sqlite3_errmsg(db));
    for (int st; (st = sqlite3_step(q)) != SQLITE_DONE;) {
        EQ_INT(st, SQLITE_ROW);
        for (int i = 0; i < sqlite3_column_count(q); i++) {
            const char *cell = (const char *)sqlite3_column_text(q, i);
            text_add(&out, i ? "\t" : out.len ? "\n" : "", cell ? cell : "");
        }
    }
    sqlite3_finalize(q);
    sqlite3_close(db);
    return out.len ? out.at : "";
}

const char *engine_rows(const char *param, const char *sql)
{
    const struct engine *e = engine_of(param);
    if (!e->tables)
        FAIL("%s has no tables", e->name);
    sql = with_names(e, sql);
    return e->server ? db_ask(e->server, sql) : sqlite_rows(file_of(param), sql);
}

int64_t engine_int(const char *param, const char *sql)
{
    char *rest;
    const char *text = engine_rows(param, sql);
    int64_t n = strtoll(text, &rest, 10);
    if (rest == text || *rest)
        FAIL("%s: \"%s\" is not a number", sql, text);
    return n;
}

bool engine_writable(const char *param)
{
    sqlite3 *db;
    if (engine_of(param)->kind != ENGINE_FILE)
        return true;
    EQ_INT(sqlite3_open_v2(file_of(param), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 2000);
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    return rc == SQLITE_OK;
}

void engine_intact(const char *param)
{
    if (engine_of(param)->kind == ENGINE_FILE)
        EQ_STR(engine_rows(param, "PRAGMA integrity_check"), "ok");
}

bool engine_point(const char *name, const char *what)
{
    const char *dot = strchr(name, '.');
    return dot && strcmp(dot + 1, what) == 0 && strncmp(name, "migrate.", 8) != 0;
}
