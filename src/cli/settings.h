/*
 * settings.h - the one table of settings, and where each value came from.
 *
 * Every setting NAME is `--name` on the command line and PAWL_NAME in the environment; command
 * line, then environment, then default. `pawl doctor` prints them all; the server reads the same
 * table and adds a file between environment and default. A wrong value is an error that names the
 * setting, its origin and what was expected. Resolved once at the start, never changed: read from
 * any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <pawl.h>

#include "base/macros.h"

enum setting_kind { SETTING_TEXT, SETTING_INT, SETTING_DURATION };

/* What this version acts on, and nothing else: a setting that nobody reads would be a lie in
 * doctor's mouth. min and max are numbers for INT and microseconds for DURATION; max 0 means no
 * bound of its own.
 *
 *   id  name  kind  default  min  max  meaning */
#define SETTING_MAP(X)                                                                             \
    X(DB, "db", TEXT, "sqlite:pawl.db", 0, 0,                                                      \
      "the database: sqlite:PATH, mem:NAME, or env:NAME to take it from that variable")            \
    X(SCHEMA, "schema", TEXT, "pawl", 0, 0,                                                        \
      "one Pawl is one schema; on SQLite the prefix of every table")                               \
    X(NODE, "node", TEXT, "", 0, 0, "this process's name in the database; empty: the host's name") \
    X(POOL_SIZE, "pool_size", INT, "8", 1, 256, "connections for reading")                         \
    X(HEARTBEAT_INTERVAL, "heartbeat_interval", DURATION, "2s", 1000, 0,                           \
      "how often a node says that it lives")                                                       \
    X(HEARTBEAT_GRACE, "heartbeat_grace", DURATION, "10s", 0, 0,                                   \
      "silence after which a node's calls are taken back; at least twice the interval")            \
    X(RECLAIM_INTERVAL, "reclaim_interval", DURATION, "1s", 1000, 0,                               \
      "how often lost leases and expired calls are looked for")                                    \
    X(RETENTION, "retention", DURATION, "7d", 0, 0,                                                \
      "how long an ended call is kept when it does not say")                                       \
    X(REMEMBER, "remember", DURATION, "30d", 0, 0, "how long its id is refused after that")        \
    X(GC_INTERVAL, "gc_interval", DURATION, "60s", 0, 0,                                           \
      "how often ended calls past their time are removed; 0: only by pawl gc")

#define SETTING_ENUM(id, name, kind, fallback, min, max, meaning) SET_##id,
enum setting_id { SETTING_MAP(SETTING_ENUM) SETTING_COUNT };
#undef SETTING_ENUM

struct setting {
    const char *name;
    enum setting_kind kind;
    const char *fallback;
    int64_t min, max;
    const char *meaning;
};
extern const struct setting setting_table[SETTING_COUNT];

enum setting_from { FROM_DEFAULT, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

struct setting_value {
    const char *text; /* borrowed from the environment, the command line or the table */
    int64_t number;   /* INT: the number; DURATION: microseconds */
    enum setting_from from;
    const char *via; /* db only: the variable that `env:NAME` named; NULL for none */
};

struct settings {
    struct setting_value v[SETTING_COUNT];
};

/* The setting of that name, `-` and `_` being one; -1 for none. */
int setting_find(const char *name);
/* "PAWL_WORKER_SLOTS". */
void setting_variable(int id, char *out, size_t size);
const char *setting_from_text(enum setting_from from);

/* Defaults, then the environment. INVALID: the first value that is wrong. */
MUST_USE enum pawl_status settings_init(struct settings *s, struct pawl_err *err);
/* One value from the command line; `text` is borrowed for good. */
MUST_USE enum pawl_status settings_set(struct settings *s, int id, const char *text,
                                       struct pawl_err *err);
/* What must hold between settings, and `db = env:NAME` followed. Once, when all are set. */
MUST_USE enum pawl_status settings_settle(struct settings *s, struct pawl_err *err);

/* What pawl_open() wants to know. Strings are borrowed from the settings. */
struct pawl_options settings_options(const struct settings *s);

/* The URL with whatever could be a secret replaced: the password before the @, and the value of
 * every parameter called password, passwd, pwd, token, secret or sslpassword. Written to out, cut
 * at its size. */
void url_safe(const char *url, char *out, size_t size);

#endif
