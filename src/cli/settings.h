/*
 * settings.h - the table of settings, their values, and where each value came from.
 *
 * Every setting NAME is `--name` on the command line, PAWL_NAME in the environment and `name = ...`
 * in the file. The command line wins over the environment, that over the file, that over the
 * default. `pawl doctor` prints all of them. A wrong name or value is an error that names the
 * setting, its origin and what was expected. Settings are resolved once at the start (and again on
 * SIGHUP, into a second struct) and never changed, so any thread may read them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include <pawl.h>

#include "base/arena.h"
#include "base/macros.h"

/* LIST: several texts, separated by commas in the environment and on the command line. LINES: the
 * same, separated by white space, and secret. RANGE: two durations, "5ms to 250ms". */
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

/* When a new value takes effect: LIVE with the next SIGHUP, START when the server starts again. */
enum setting_when { SETTING_LIVE, SETTING_START };

/* min and max are numbers for INT and microseconds for DURATION; max 0 means no upper limit.
 *
 *   id  name  kind  default  min  max  when  meaning */
#define SETTING_MAP(X)                                                                             \
    X(DB, "db", TEXT, "sqlite:pawl.db", 0, 0, START,                                               \
      "database: sqlite:PATH, postgres://..., mysql://..., mem:NAME, or env:NAME to read the URL " \
      "from variable NAME")                                                                        \
    X(SCHEMA, "schema", TEXT, "pawl", 0, 0, START,                                                 \
      "schema that holds Pawl's tables; on SQLite, MariaDB and MySQL the prefix of their names")   \
    X(NODE, "node", TEXT, "", 0, 0, START,                                                         \
      "name of this process in the database; empty: the host's name and eight hex digits")         \
    X(LISTEN, "listen", TEXT, "127.0.0.1:7295", 0, 0, START,                                       \
      "address to serve HTTP on, ADDR:PORT or unix:PATH; beyond loopback only with tokens")        \
    X(TLS_CERT, "tls_cert", TEXT, "", 0, 0, START,                                                 \
      "file with the certificate chain, PEM; needs tls_key")                                       \
    X(TLS_KEY, "tls_key", TEXT, "", 0, 0, START, "file with its private key, PEM")                 \
    X(MODULE, "module", LIST, "", 0, 0, START, "shared objects with handlers to load")             \
    X(QUEUES, "queues", LIST, "all", 0, 0, START,                                                  \
      "queues that handlers take calls from; all: every queue")                                    \
    X(HAS, "has", LIST, "", 0, 0, START,                                                           \
      "capabilities of this node's handlers: they run calls that need these, and no others")       \
    X(ROLES, "roles", LIST, "all", 0, 0, START,                                                    \
      "what this node does: gateway, worker, scheduler; all: all three")                           \
    X(WORKER_SLOTS, "worker_slots", INT, "16", 1, 1024, START,                                     \
      "handlers that run at the same time")                                                        \
    X(PAUSED, "paused", BOOL, "no", 0, 0, START, "start no work; calls are still accepted")        \
    X(POOL_SIZE, "pool_size", INT, "8", 1, 256, START,                                             \
      "connections for reading; with a database server up to as many more for handlers' SQL")      \
    X(POOL_TIMEOUT, "pool_timeout", DURATION, "30s", 1000, 0, START,                               \
      "how long a request waits for a free connection before it is answered 503")                  \
    X(POOL_LIFETIME, "pool_lifetime", DURATION, "30m", 1000, 0, START,                             \
      "age at which a connection to a database server is replaced")                                \
    X(LEASE_FOR, "lease_for", DURATION, "30s", 1000000, INT64_C(3600000000), START,                \
      "lease of an HTTP worker that asks for no other length")                                     \
    X(HEARTBEAT_INTERVAL, "heartbeat_interval", DURATION, "2s", 1000, 0, START,                    \
      "how often a node writes its heartbeat")                                                     \
    X(HEARTBEAT_GRACE, "heartbeat_grace", DURATION, "10s", 0, 0, START,                            \
      "a node without a heartbeat for this long is dead, and its calls are taken back; at least "  \
      "twice heartbeat_interval")                                                                  \
    X(RECLAIM_INTERVAL, "reclaim_interval", DURATION, "1s", 1000, 0, START,                        \
      "how often to search for lost leases and expired calls")                                     \
    X(RECLAIM_ACTION, "reclaim_action", CHOICE, "requeue", 0, 0, START,                            \
      "what happens to a call whose attempt is lost: requeue runs it again, fail ends it")         \
    X(VERSIONS, "versions", CHOICE, "follow", 0, 0, START,                                         \
      "who goes on with a run that began here: pin: handlers of the version it began with, "       \
      "follow: handlers of any version")                                                           \
    X(CALL_TIMEOUT, "call_timeout", DURATION, "60s", 1000, 0, START,                               \
      "how long one attempt may take, for calls without a timeout of their own")                   \
    X(SESSION_WAIT, "session_wait", DURATION, "120s", 0, INT64_C(300000000), START,                \
      "how long a session's request waits for its outcome")                                        \
    X(GRACE, "grace", DURATION, "30s", 0, 0, LIVE,                                                 \
      "how long running calls may go on when the server stops")                                    \
    X(POLL_INTERVAL, "poll_interval", RANGE, "5ms to 250ms", 1000, 0, START,                       \
      "how often to poll the database for changes of other processes; grows from the first to "    \
      "the second duration while there are none")                                                  \
    X(RETENTION, "retention", DURATION, "7d", 0, 0, START,                                         \
      "how long an ended call is kept, for calls without `keep`")                                  \
    X(REMEMBER, "remember", DURATION, "30d", 0, 0, START,                                          \
      "how long the id of a removed call is still refused")                                        \
    X(CRON_RUNS_RETENTION, "cron_runs_retention", DURATION, "30d", 0, 0, START,                    \
      "how long it is kept what came of the ticks of schedules")                                   \
    X(GC_INTERVAL, "gc_interval", DURATION, "60s", 0, 0, START,                                    \
      "how often ended calls past their retention are removed; 0: only by pawl gc")                \
    X(MAX_PENDING_KEY, "max_pending_key", INT, "100000", 1, 0, START,                              \
      "calls that may be pending on one key; more are refused")                                    \
    X(MAX_INPUT, "max_input", INT, "1048576", 1, 1048576, START,                                   \
      "largest input of a call, in bytes")                                                         \
    X(MAX_BATCH, "max_batch", INT, "67108864", 1024, 67108864, START,                              \
      "largest body of a batch request, in bytes")                                                 \
    X(MAX_CONNECTIONS, "max_connections", INT, "10000", 1, 1000000, START,                         \
      "HTTP connections at the same time; more are answered 503")                                  \
    X(TOKENS, "tokens", LINES, "", 0, 0, LIVE,                                                     \
      "access tokens: name:role:sha256[:queue,queue], as pawl token new prints them")              \
    X(ORIGINS, "origins", LIST, "", 0, 0, LIVE,                                                    \
      "origins of web pages that may use the API, besides the server's own: "                      \
      "https://ops.example.org")                                                                   \
    X(HOSTS, "hosts", LIST, "", 0, 0, LIVE,                                                        \
      "host names that requests may use when there are no tokens, besides localhost")              \
    X(METRICS_OPEN, "metrics_open", BOOL, "no", 0, 0, LIVE, "GET /metrics needs no token")         \
    X(EVENTS_WORKERS, "events_workers", INT, "4", 1, 256, START,                                   \
      "pawl events work: threads, each with a connection")                                         \
    X(EVENTS_BATCH, "events_batch", INT, "100", 1, 1000, START,                                    \
      "pawl events work: pending events in one transaction")                                       \
    X(EVENTS_POLL, "events_poll", DURATION, "1s", 1000, INT64_C(3600000000), START,                \
      "pawl events work: how long to wait when no event is pending")                               \
    X(EVENTS_JITTER, "events_jitter", DURATION, "500ms", 0, INT64_C(3600000000), START,            \
      "pawl events work: random time up to this that is added to events_poll")                     \
    X(LOG_LEVEL, "log_level", CHOICE, "info", 0, 0, LIVE,                                          \
      "least severe messages to log: debug, info, warn or error")                                  \
    X(LOG_FORMAT, "log_format", CHOICE, "auto", 0, 0, LIVE,                                        \
      "text, json (a JSON object a line), or auto: text on a terminal, else json")                 \
    X(URL, "url", TEXT, "http://127.0.0.1:7295", 0, 0, START,                                      \
      "server that pawl call, list and the other client commands ask; or unix:PATH")               \
    X(TOKEN, "token", SECRET, "", 0, 0, START,                                                     \
      "token that the client commands send; best set as PAWL_TOKEN")

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
                         or the table. Lists: their items, separated by commas */
    int64_t number;   /* INT: the number; DURATION: microseconds; RANGE: the first; BOOL: 0 or 1 */
    int64_t last;     /* RANGE: the second */
    const char *const *items; /* LIST, LINES: in the arena; NULL while n_items is 0 */
    size_t n_items;
    enum setting_from from;
    int line;         /* in the file, for values from there; for a list the line of its end */
    const int *lines; /* LIST, LINES from the file: the line of each item, in the arena; else NULL
                       */
    const char *via;  /* db only: the variable in `env:NAME`; NULL: none */
};

/* A block `schedule "NAME" { ... }` of the file. */
struct conf_schedule {
    const char *name;
    struct bytes text; /* a flat JSON object (model/schedule.h), checked as far as it can be here */
    int line;          /* of its beginning */
    struct bytes lines; /* of its fields: " zone=4 cron=3 " */
};
/* The line of the field that an error of this schedule names; that of its beginning when it names
 * none of the block. */
int conf_schedule_line(const struct conf_schedule *s, const char *error);

struct settings {
    struct setting_value v[SETTING_COUNT];
    struct conf_schedule *schedules; /* in the arena, in the order of the file */
    size_t n_schedules;
    const char *file; /* the file that was read; NULL: none */
    struct arena arena;
};

/* The id of the setting with this name, in which `-` and `_` are equal; -1: there is none. */
int setting_find(const char *name);
/* Write the name of the setting's environment variable: "PAWL_WORKER_SLOTS". */
void setting_variable(int id, char *out, size_t size);
/* The allowed values of a CHOICE, "requeue, fail"; NULL for other kinds. */
const char *setting_choices(int id);
/* Write where the value came from: "default", "environment", "command line", "pawl.conf:12". */
void setting_from_text(const struct settings *s, int id, char *out, size_t size);
/* Prefix an error about this setting, or about this item of a list, with `pawl.conf:12: `. Does
 * nothing when the value is not from the file. */
void setting_blame(const struct settings *s, int id, size_t item, struct pawl_err *err);
/* Write the value for display: secrets are hidden, and a URL has no password. */
void setting_shown(const struct settings *s, int id, char *out, size_t size);
/* Must the value never be shown? */
bool setting_secret(int id);

/* Set the defaults, then the environment's values. INVALID: the first wrong value; all others are
 * set. settings_release() in both cases. */
MUST_USE enum pawl_status settings_init(struct settings *s, struct pawl_err *err);
/* Free all values. */
void settings_release(struct settings *s);
/* Set one value from the command line. `text` must live as long as `s`. A repeated list option
 * appends. */
MUST_USE enum pawl_status settings_set(struct settings *s, int id, const char *text,
                                       struct pawl_err *err);
struct setting_texts {
    const char *const *v;
    const int *lines; /* of each item; NULL: not a list */
    size_t n;
};
/* Set one value from this line of the file, unless the environment or the command line has set it.
 * Texts are copied. The error has no file and line: the caller adds them. */
MUST_USE enum pawl_status settings_from_file(struct settings *s, int id, struct setting_texts texts,
                                             int line, struct pawl_err *err);
/* The setting `roles` as a set of DUTY_... bits. INVALID: an unknown role. */
MUST_USE enum pawl_status settings_duties(const struct settings *s, unsigned *out,
                                          struct pawl_err *err);
/* Resolve `db = env:NAME`, and check what must hold between settings. To be called once, when all
 * are set. */
MUST_USE enum pawl_status settings_settle(struct settings *s, struct pawl_err *err);

/* Read the settings file: `path`; when NULL $PAWL_CONFIG, else pawl.conf in the working directory
 * if it exists. Before or after settings_set(). INVALID: the message names file, line and what was
 * expected. */
MUST_USE enum pawl_status conf_read(struct settings *s, const char *path, struct pawl_err *err);
/* The same for a text in memory; error messages call it `path`. */
MUST_USE enum pawl_status conf_parse(struct settings *s, const char *path, struct bytes text,
                                     struct pawl_err *err);

/* The settings as options for pawl_open(). Strings are borrowed from the settings. */
struct pawl_options settings_options(const struct settings *s);

/* Write the URL with everything that may be a secret replaced by ***: the password before the @,
 * and the value of every parameter called password, passwd, pwd, token, secret or sslpassword. Cut
 * at `size`. */
void url_safe(const char *url, char *out, size_t size);

#endif
