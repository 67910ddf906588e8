/*
 * maria_server.c - MariaDB as a throw-away server: its programs and how they are called.
 *
 * Grants are on: Pawl is a user with a password who may do what he likes in databases of cases and
 * nothing elsewhere. The character set is what the server has when nobody chose one, latin1: what
 * Pawl needs it must ask for.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "db_driver.h"

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
    word(w, "--auth-root-authentication-method=normal");
    word(w, "--skip-test-db");
    word(w, "--skip-name-resolve");
    word(w, "--cross-bootstrap"); /* does not look for another server on this machine */
}

static void serve(const struct db_server *s, struct words *w)
{
    word(w, "%s/sbin/mariadbd", s->bin);
    word(w, "--no-defaults");
    word(w, "--datadir=%s", s->data);
    word(w, "--socket=%s/socket", s->dir);
    word(w, "--pid-file=%s/pid", s->dir);
    word(w, "--bind-address=127.0.0.1");
    word(w, "--port=%d", s->port);
    word(w, "--skip-name-resolve");
    word(w, "--innodb-flush-log-at-trx-commit=1");
    word(w, "--innodb-flush-method=%s", s->fast ? "nosync" : "O_DIRECT");
    word(w, "--innodb-buffer-pool-size=64M");
    word(w, "--innodb-log-file-size=64M");
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

static void url(const struct db_server *s, char *out, size_t size, const char *database)
{
    snprintf(out, size, "mysql://pawl:pawl@127.0.0.1:%d/%s", s->port, database);
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
    .waits = "SELECT (SELECT count(*) FROM information_schema.innodb_trx x"
             " JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id"
             " WHERE x.trx_state = 'LOCK WAIT' AND p.db = database())"
             " + (SELECT count(*) FROM information_schema.processlist"
             " WHERE db = database() AND (state = 'User lock' OR state LIKE 'Waiting for%lock'));",
    .list = "SELECT schema_name FROM information_schema.schemata;",
    .drop = "",
    .find = find,
    .make = make,
    .serve = serve,
    .client = client,
    .url = url,
};
