/*
 * settings.h - the one table of settings, and where each value came from.
 *
 * Every setting NAME is `--name` on the command line, PAWL_NAME in the environment and `name = ...`
 * in the file; command line, then environment, then file, then default. `pawl doctor` prints them
 * all. A wrong name or value is an error that names the setting, its origin and what was expected.
 * Resolved once at the start (and again by the server on SIGHUP, into a second struct), never
 * changed: read from any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <pawl.h>

#include "base/arena.h"
#include "base/macros.h"

/* LIST: several texts, with commas between them in the environment and on the command line. LINES:
 * the same with white space between them, and secret. RANGE: two durations, "5ms to 250ms". */
enum setting_kind {
    SETTING_TEXT,
    SETTING_SECRET,
    SETTING_INT,
    SETTING_DURATION,
    SETTING_RANGE,
    SETTING_BOOL,
    SETTING_CHOICE,
    SETTING_LIST,
    SETTING_LINES
};

/* When a new value counts: LIVE with the next SIGHUP, START with the next start of the server. */
enum setting_when { SETTING_LIVE, SETTING_START };

/* min and max are numbers for INT and microseconds for DURATION; max 0 means no bound of its own.
 *
 *   id  name  kind  default  min  max  when  meaning */
#define SETTING_MAP(X)                                                                             \
    X(DB, "db", TEXT, "sqlite:pawl.db", 0, 0, START,                                               \
      "the database: sqlite:PATH, postgres://..., mysql://..., mem:NAME, or env:NAME to take it "  \
      "from that variable")                                                                        \
    X(SCHEMA, "schema", TEXT, "pawl", 0, 0, START,                                                 \
      "one Pawl is one schema; on SQLite and MariaDB the prefix of every table")                   \
    X(NODE, "node", TEXT, "", 0, 0, START,                                                         \
      "this process's name in the database; empty: the host's name and eight hex digits")          \
    X(LISTEN, "listen", TEXT, "127.0.0.1:7295", 0, 0, START,                                       \
      "ADDR:PORT or unix:PATH; beyond loopback only with tokens")                                  \
    X(TLS_CERT, "tls_cert", TEXT, "", 0, 0, START, "certificate chain, PEM; with tls_key")         \
    X(TLS_KEY, "tls_key", TEXT, "", 0, 0, START, "its private key, PEM")                           \
    X(MODULE, "module", LIST, "", 0, 0, START, "shared objects with handlers to load")             \
    X(QUEUES, "queues", LIST, "all", 0, 0, START, "queues the handlers work on; all: every one")   \
    X(ROLES, "roles", LIST, "all", 0, 0, START,                                                    \
      "what this node does: gateway, worker, scheduler; all: all of it")                           \
    X(WORKER_SLOTS, "worker_slots", INT, "16", 1, 1024, START, "handlers that run at a time")      \
    X(PAUSED, "paused", BOOL, "no", 0, 0, START, "start no work; calls are still accepted")        \
    X(POOL_SIZE, "pool_size", INT, "8", 1, 256, START,                                             \
      "connections for reading; on servers up to as many more for handlers' transactions")         \
    X(POOL_TIMEOUT, "pool_timeout", DURATION, "30s", 1000, 0, START,                               \
      "the longest wait for one of them; then 503")                                                \
    X(POOL_LIFETIME, "pool_lifetime", DURATION, "30m", 1000, 0, START,                             \
      "when a connection to a database server is replaced")                                        \
    X(LEASE_FOR, "lease_for", DURATION, "30s", 1000000, INT64_C(3600000000), START,                \
      "how long an HTTP worker holds a call when it does not say")                                 \
    X(HEARTBEAT_INTERVAL, "heartbeat_interval", DURATION, "2s", 1000, 0, START,                    \
      "how often a node writes its heartbeat")                                                     \
    X(HEARTBEAT_GRACE, "heartbeat_grace", DURATION, "10s", 0, 0, START,                            \
      "silence after which a node's calls are taken back; at least twice the interval")            \
    X(RECLAIM_INTERVAL, "reclaim_interval", DURATION, "1s", 1000, 0, START,                        \
      "how often lost leases and expired calls are looked for")                                    \
    X(RECLAIM_ACTION, "reclaim_action", CHOICE, "requeue", 0, 0, START,                            \
      "what a lost try does to its call: requeue runs it again, fail ends it")                     \
    X(CALL_TIMEOUT, "call_timeout", DURATION, "60s", 1000, 0, START,                               \
      "how long one try may take when the call does not say")                                      \
    X(SESSION_WAIT, "session_wait", DURATION, "120s", 0, INT64_C(300000000), START,                \
      "how long a session's request waits for its end")                                            \
    X(GRACE, "grace", DURATION, "30s", 0, 0, LIVE,                                                 \
      "how long running calls may take to end when the server stops")                              \
    X(POLL_INTERVAL, "poll_interval", RANGE, "5ms to 250ms", 1000, 0, START,                       \
      "how often to look for what other processes did")                                            \
    X(RETENTION, "retention", DURATION, "7d", 0, 0, START,                                         \
      "how long an ended call is kept when it does not say")                                       \
    X(REMEMBER, "remember", DURATION, "30d", 0, 0, START, "how long its id is refused after that") \
    X(GC_INTERVAL, "gc_interval", DURATION, "60s", 0, 0, START,                                    \
      "how often ended calls past their time are removed; 0: only by pawl gc")                     \
    X(MAX_PENDING_KEY, "max_pending_key", INT, "100000", 1, 0, START,                              \
      "calls that may wait in one key's line")                                                     \
    X(MAX_INPUT, "max_input", INT, "1048576", 1, 1048576, START, "bytes of one call's input")      \
    X(MAX_BATCH, "max_batch", INT, "67108864", 1024, 67108864, START, "bytes of one batch")        \
    X(MAX_CONNECTIONS, "max_connections", INT, "10000", 1, 1000000, START,                         \
      "HTTP connections at a time; more are answered 503")                                         \
    X(TOKENS, "tokens", LINES, "", 0, 0, LIVE,                                                     \
      "who may do what: name:role:sha256[:queue,queue], as pawl token new prints it")              \
    X(ORIGINS, "origins", LIST, "", 0, 0, LIVE,                                                    \
      "web pages that may ask, besides the server's own: https://ops.example.org")                 \
    X(HOSTS, "hosts", LIST, "", 0, 0, LIVE,                                                        \
      "names the server may be called by when there are no tokens, besides localhost")             \
    X(METRICS_OPEN, "metrics_open", BOOL, "no", 0, 0, LIVE, "GET /metrics needs no token")         \
    X(EVENTS_WORKERS, "events_workers", INT, "4", 1, 256, START,                                   \
      "pawl events work: threads, each with a connection")                                         \
    X(EVENTS_BATCH, "events_batch", INT, "100", 1, 1000, START,                                    \
      "pawl events work: pending events of one transaction")                                       \
    X(EVENTS_POLL, "events_poll", DURATION, "1s", 1000, INT64_C(3600000000), START,                \
      "pawl events work: how long to wait after finding nothing")                                  \
    X(EVENTS_JITTER, "events_jitter", DURATION, "500ms", 0, INT64_C(3600000000), START,            \
      "pawl events work: up to so much longer, by chance")                                         \
    X(LOG_LEVEL, "log_level", CHOICE, "info", 0, 0, LIVE, "debug, info, warn or error")            \
    X(LOG_FORMAT, "log_format", CHOICE, "auto", 0, 0, LIVE,                                        \
      "text, json (a JSON object a line), or auto: text on a terminal")                            \
    X(URL, "url", TEXT, "http://127.0.0.1:7295", 0, 0, START,                                      \
      "the server of pawl call, list and the other client commands; unix:PATH for a socket")       \
    X(TOKEN, "token", SECRET, "", 0, 0, START, "the token they send; best kept in PAWL_TOKEN")

#define SETTING_ENUM(id, name, kind, fallback, min, max, when, meaning) SET_##id,
enum setting_id { SETTING_MAP(SETTING_ENUM) SETTING_COUNT };
#undef SETTING_ENUM

struct setting {
    const char *name;
    enum setting_kind kind;
    const char *fallback;
    int64_t min, max;
    enum setting_when when;
    const char *meaning;
};
extern const struct setting setting_table[SETTING_COUNT];

enum setting_from { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

struct setting_value {
    const char *text; /* as given; in the arena, or borrowed from the environment, the command line
                         or the table. Lists: their items with a comma between them */
    int64_t number;   /* INT: the number; DURATION: microseconds; RANGE: the first; BOOL: 0 or 1 */
    int64_t last;     /* RANGE: the second */
    const char *const *items; /* LIST, LINES: in the arena; NULL while n_items is 0 */
    size_t n_items;
    enum setting_from from;
    int line;         /* of the file, when it is from there; of a list its end */
    const int *lines; /* LIST, LINES from the file: of each item, in the arena; else NULL */
    const char *via;  /* db only: the variable that `env:NAME` named; NULL for none */
};

struct settings {
    struct setting_value v[SETTING_COUNT];
    const char *file; /* the file that was read; NULL: none */
    struct arena arena;
};

/* The setting of that name, `-` and `_` being one; -1 for none. */
int setting_find(const char *name);
/* "PAWL_WORKER_SLOTS". */
void setting_variable(int id, char *out, size_t size);
/* "requeue, fail" for a CHOICE, else NULL. */
const char *setting_choices(int id);
/* "default", "environment", "command line", "pawl.conf:12". */
void setting_from_text(const struct settings *s, int id, char *out, size_t size);
/* Put `pawl.conf:12: ` in front of an error about this setting, or about this item of a list, when
 * the file has it. */
void setting_blame(const struct settings *s, int id, size_t item, struct pawl_err *err);
/* The value as it may be shown: secrets are hidden, a URL has no password. */
void setting_shown(const struct settings *s, int id, char *out, size_t size);
bool setting_secret(int id);

/* Defaults, then the environment. INVALID: the first value that is wrong; the others are set. */
MUST_USE enum pawl_status settings_init(struct settings *s, struct pawl_err *err);
void settings_release(struct settings *s);
/* One value from the command line; `text` is borrowed for good. Lists grow with each. */
MUST_USE enum pawl_status settings_set(struct settings *s, int id, const char *text,
                                       struct pawl_err *err);
/* One value that stands in the file at this line; counts only where nothing stronger said
 * otherwise. Texts are copied. The error's text has no file and line: the caller adds them. */
struct setting_texts {
    const char *const *v;
    const int *lines; /* of each; NULL: of no list */
    size_t n;
};
MUST_USE enum pawl_status settings_from_file(struct settings *s, int id, struct setting_texts texts,
                                             int line, struct pawl_err *err);
/* What must hold between settings, and `db = env:NAME` followed. Once, when all are set. */
MUST_USE enum pawl_status settings_duties(const struct settings *s, unsigned *out,
                                          struct pawl_err *err); /* `roles` as DUTY_... */
MUST_USE enum pawl_status settings_settle(struct settings *s, struct pawl_err *err);

/* Read the settings' file: `path`, or when NULL $PAWL_CONFIG, or pawl.conf here if there is one.
 * Before or after settings_set(). INVALID names file, line and what was expected. */
MUST_USE enum pawl_status conf_read(struct settings *s, const char *path, struct pawl_err *err);
/* The same for a text in memory, `path` being what errors call it. */
MUST_USE enum pawl_status conf_parse(struct settings *s, const char *path, struct bytes text,
                                     struct pawl_err *err);

/* What pawl_open() wants to know. Strings are borrowed from the settings. */
struct pawl_options settings_options(const struct settings *s);

/* The URL with whatever could be a secret replaced: the password before the @, and the value of
 * every parameter called password, passwd, pwd, token, secret or sslpassword. Written to out, cut
 * at its size. */
void url_safe(const char *url, char *out, size_t size);

#endif
