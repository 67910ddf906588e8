/*
 * maria_server.c - MariaDB as a temporary server: its programs and command lines.
 *
 * Grants are enabled: Pawl's account has a password, all rights in databases of cases, and none
 * elsewhere. The character set is the server's default, latin1, so Pawl must ask for utf8mb4
 * itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mariadb/mysql.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db_driver.h"

/* The files of a case's own server are a copy, and most of them would be an empty log. */
#define LOG_OWN "16M"
#define LOG_SHARED "64M"

static bool find(struct db_server *s)
{
    snprintf(s->bin, sizeof s->bin, "/usr");
    return access("/usr/sbin/mariadbd", X_OK) == 0 &&
           access("/usr/bin/mariadb-install-db", X_OK) == 0 &&
           access("/usr/bin/mariadb", X_OK) == 0;
}

static void make(const struct db_server *s, struct words *w)
{
    word(w, "%s/bin/mariadb-install-db", s->bin);
    word(w, "--no-defaults");
    word(w, "--datadir=%s", s->data);
    /* Not the shared /tmp: a server removes temporary tables there when it starts. */
    word(w, "--tmpdir=%s", s->dir);
    word(w, "--auth-root-authentication-method=normal");
    word(w, "--skip-test-db");
    word(w, "--skip-name-resolve");
    word(w, "--cross-bootstrap"); /* do not look for another server on this machine */
    word(w, "--innodb-log-file-size=" LOG_OWN);
}

static void serve(const struct db_server *s, struct words *w)
{
    word(w, "%s/sbin/mariadbd", s->bin);
    word(w, "--no-defaults");
    word(w, "--datadir=%s", s->data);
    word(w, "--tmpdir=%s", s->dir);
    word(w, "--socket=%s/socket", s->dir);
    word(w, "--pid-file=%s/pid", s->dir);
    word(w, "--bind-address=127.0.0.1");
    word(w, "--port=%d", s->port);
    word(w, "--skip-name-resolve");
    word(w, "--innodb-flush-log-at-trx-commit=1");
    word(w, "--innodb-flush-method=%s", s->fast ? "nosync" : "O_DIRECT");
    word(w, "--innodb-buffer-pool-size=64M");
    word(w, "--innodb-log-file-size=%s", s->fast ? LOG_SHARED : LOG_OWN);
    word(w, "--innodb-fast-shutdown=1");
    word(w, "--max-connections=300");
    word(w, "--max-allowed-packet=64M");
}

static void client(const struct db_server *s, struct words *w, const char *database)
{
    word(w, "%s/bin/mariadb", s->bin);
    word(w, "--no-defaults");
    word(w, "--user=root");
    word(w, "--socket=%s/socket", s->dir);
    word(w, "--batch");
    word(w, "--raw");
    word(w, "--skip-column-names");
    word(w, "--unbuffered");
    word(w, "--default-character-set=utf8mb4");
    word(w, "%s", database);
}

/* NULL is printed as "NULL", as the server's own client does. */
static void take_rows(MYSQL *db, struct rows *rows)
{
    MYSQL_RES *r = mysql_store_result(db);
    for (MYSQL_ROW row; r && (row = mysql_fetch_row(r));) {
        unsigned long *len = mysql_fetch_lengths(r);
        for (unsigned i = 0; i < mysql_num_fields(r); i++)
            rows_cell(rows, i == 0, row[i] ? row[i] : "NULL", row[i] ? len[i] : 4);
    }
    mysql_free_result(r);
}

static int say(const struct db_server *s, const char *database, const char *sql, char *out,
               size_t size)
{
    char path[100];
    struct rows rows;
    rows_begin(&rows, out, size);
    snprintf(path, sizeof path, "%s/socket", s->dir);
    MYSQL *db = mysql_init(NULL);
    mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    bool ok =
        mysql_real_connect(db, NULL, "root", NULL, database, 0, path, CLIENT_MULTI_STATEMENTS) &&
        mysql_query(db, sql) == 0;
    for (int more = 0; ok && more == 0; more = mysql_next_result(db), ok = more <= 0)
        take_rows(db, &rows);
    if (!ok)
        snprintf(out, size, "%s", mysql_error(db));
    mysql_close(db);
    return ok ? 0 : 1;
}

static void url(const struct db_server *s, char *out, size_t size, const char *database)
{
    snprintf(out, size, "mysql://pawl:pawl@127.0.0.1:%d/%s", s->port, database);
}

/* Is a transaction of this connection waiting, according to the InnoDB status report?
 *     ---TRANSACTION 1234, ACTIVE 0 sec starting index read
 *     ...
 *     LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)
 *     MariaDB thread id 17, OS thread handle ... */
static bool row_waits(const char *report, long thread)
{
    for (const char *at = report; (at = strstr(at, "\nLOCK WAIT ")); at++) {
        const char *id = strstr(at, " thread id ");
        if (id && strtol(id + strlen(" thread id "), NULL, 10) == thread)
            return true;
    }
    return false;
}

/* The tables in information_schema do not help: InnoDB refreshes them only when they were not read
 * for 100 ms, and other cases read them too. */
static bool waits(struct db_server *s)
{
    enum { THREADS = 64 };
    long thread[THREADS];
    int n = 0;
    char *at = (char *)db_ask(s, "SELECT id, state LIKE 'Waiting for%lock' OR state = 'User lock'"
                                 " FROM information_schema.processlist WHERE db = database()");
    for (char *line; n < THREADS && (line = strsep(&at, "\n")) && *line;) {
        thread[n++] = strtol(line, &line, 10);
        if (line[0] == '\t' && line[1] == '1')
            return true;
    }
    const char *report = db_ask(s, "SHOW ENGINE INNODB STATUS");
    for (int i = 0; i < n; i++)
        if (row_waits(report, thread[i]))
            return true;
    return false;
}

struct db_server db_mariadb = {
    .name = "mariadb",
    .users = { "mysql", "nobody" },
    .clean = SIGTERM,
    .kill = SIGKILL,
    .admin = "mysql",
    .first = "CREATE USER pawl@'127.0.0.1' IDENTIFIED BY 'pawl';"
             "CREATE USER pawl@localhost IDENTIFIED BY 'pawl';"
             "GRANT ALL ON `case\\_%`.* TO pawl@'127.0.0.1';"
             "GRANT ALL ON `case\\_%`.* TO pawl@localhost",
    .cut = "SELECT concat('KILL ', id, ';') FROM information_schema.processlist"
           " WHERE user IN ('pawl', 'root') AND id <> connection_id()",
    .cut_says = true,
    .waits = waits,
    .list = "SELECT schema_name FROM information_schema.schemata;",
    .drop = "",
    .say = say,
    .find = find,
    .make = make,
    .serve = serve,
    .client = client,
    .url = url,
};
