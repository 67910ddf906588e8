/*
 * wiped_db.c - see wiped_db.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wiped_db.h"

#include <stdarg.h>
#include <stdio.h>

#include "check.h"
#include "db_server.h"
#include "engines.h"

#define NAMES_LEN_MAX 4000

/* The queries that list a server's tables. */
struct asks {
    const char *tables; /* the names of all tables, one a line */
    const char *filled; /* a statement that returns the names of tables that have rows */
    const char *counters;
};
static const struct asks asks_pg = {
    .tables = "SELECT relname FROM pg_class WHERE relnamespace = 'pawl'::regnamespace"
              " AND relkind = 'r' ORDER BY 1;",
    .filled = "SELECT string_agg(format('SELECT %L WHERE EXISTS (SELECT FROM pawl.%I)', relname,"
              " relname), ' UNION ALL ') FROM pg_class"
              " WHERE relnamespace = 'pawl'::regnamespace AND relkind = 'r';",
    .counters = "SELECT format('SELECT setval(''pawl.%I'', 1, false);', relname) FROM pg_class"
                " WHERE relnamespace = 'pawl'::regnamespace AND relkind = 'S';",
};
static const struct asks asks_mysql = {
    .tables = "SELECT table_name FROM information_schema.tables"
              " WHERE table_schema = database() AND table_type = 'BASE TABLE' ORDER BY 1;",
    .filled = "SET group_concat_max_len = 100000; SELECT group_concat(concat('SELECT ''',"
              " table_name, ''' WHERE EXISTS (SELECT 1 FROM ', table_name, ')')"
              " SEPARATOR ' UNION ALL ') FROM information_schema.tables"
              " WHERE table_schema = database() AND table_type = 'BASE TABLE';",
    .counters = "SELECT concat('ALTER TABLE ', table_name, ' AUTO_INCREMENT = 1;')"
                " FROM information_schema.tables WHERE table_schema = database()"
                " AND auto_increment IS NOT NULL;",
};

static void add(struct wiped_db *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct wiped_db *p, const char *format, ...)
{
    size_t len = strlen(p->sql), room = sizeof p->sql - len;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->sql + len, room, format, args);
    va_end(args);
    LT_INT(n, (int64_t)room);
}

/* The next line of the answer; NULL after the last. */
struct lines {
    char text[NAMES_LEN_MAX], *at;
};

static void lines_ask(struct lines *l, struct db_server *s, const char *sql)
{
    LT_INT(snprintf(l->text, sizeof l->text, "%s", db_ask(s, sql)), (int64_t)sizeof l->text);
    l->at = l->text;
}

static const char *lines_next(struct lines *l)
{
    return l->at && *l->at ? strsep(&l->at, "\n") : NULL;
}

void wiped_db_make(struct wiped_db *p, const char *param)
{
    const struct engine *e = engine_of(param);
    const struct asks *q = e->server == &db_postgres ? &asks_pg : &asks_mysql;
    const char *schema = e->server == &db_postgres ? "pawl." : "";
    struct lines l;
    p->sql[0] = '\0';
    lines_ask(&l, e->server, q->tables);
    for (const char *name; (name = lines_next(&l));)
        add(p, "DELETE FROM %s%s; ", schema, name);
    lines_ask(&l, e->server, q->filled);
    size_t len = strlen(l.text);
    snprintf(l.text + len, sizeof l.text - len, ";");
    lines_ask(&l, e->server, l.text);
    for (const char *name; (name = lines_next(&l));) {
        char copy[200];
        snprintf(copy, sizeof copy, "CREATE TABLE as_made_%s AS SELECT * FROM %s%s;", name, schema,
                 name);
        db_ask(e->server, copy);
        add(p, "INSERT INTO %s%s SELECT * FROM as_made_%s; ", schema, name, name);
    }
    lines_ask(&l, e->server, q->counters);
    for (const char *line; (line = lines_next(&l));)
        add(p, "%s ", line);
    p->session = db_session_open(e->server);
}

void wiped_db_reset(const struct wiped_db *p)
{
    db_session_say(p->session, p->sql);
}

void wiped_db_end(struct wiped_db *p)
{
    db_session_close(p->session);
    p->session = NULL;
}
