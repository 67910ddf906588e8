/*
 * doctor.c - `pawl doctor`: print every setting with its origin, and check the database.
 *
 * It only reads. One side effect: opening an SQLite file switches it to WAL mode, as every open
 * does. An error in one check becomes a finding, so that the other checks still run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/table.h"
#include "feature/cron.h"
#include "store/store.h"

#define DOCTOR_LEN_MAX (16 << 20)
#define URL_SHOWN_LEN 512
/* Longer than one query takes, shorter than any usual deadline. */
#define CLOCK_WARN_US SEC_US
/* A tick is decided when its time has come; two clocks of one server differ by less. */
#define SCHEDULE_AHEAD_US (60 * SEC_US)
/* Nodes that get a line of their own; further ones are only counted. */
#define NODES_TOLD_MAX 20

struct visit {
    struct cli *cli;
    struct arena arena;
    struct cli_table settings, checks;
    enum finding_level worst;
};

static const char *level_name(enum finding_level level)
{
    switch (level) {
    case FINDING_OK:
        return "ok";
    case FINDING_SKIP:
        return "skip";
    case FINDING_WARN:
        return "warn";
    case FINDING_BAD:
        return "bad";
    }
    return "bad";
}

static void found(struct visit *v, enum finding_level level, const char *name, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

static void found(struct visit *v, enum finding_level level, const char *name, const char *fmt, ...)
{
    static const enum paint paints[] = { PAINT_GOOD, PAINT_DIM, PAINT_WARN, PAINT_BAD };
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    cli_table_text(&v->checks, "%s", level_name(level));
    cli_table_paint(&v->checks, paints[level]);
    cli_table_text(&v->checks, "%s", name);
    cli_table_text(&v->checks, "%s", text);
    if (level != FINDING_SKIP)
        v->worst = MAX(v->worst, level);
}

/* A check that could not run: bad, unless the account lacks the permission to read. */
static void unanswered(struct visit *v, const char *name, const char *what,
                       const struct pawl_err *err)
{
    if (store_denied(err))
        found(v, FINDING_SKIP, name, "this account may not read %s: not checked", what);
    else
        found(v, FINDING_BAD, name, "%s", err->text);
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void show_settings(struct visit *v)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_value *value = &v->cli->settings.v[i];
        char shown[URL_SHOWN_LEN];
        char from[URL_SHOWN_LEN];
        setting_shown(&v->cli->settings, i, shown, sizeof(shown));
        setting_from_text(&v->cli->settings, i, from, sizeof(from));
        cli_table_text(&v->settings, "%s", setting_table[i].name);
        cli_table_text(&v->settings, "%s", shown);
        cli_table_text(&v->settings, "%s", from);
        if (value->from == FROM_DEFAULT)
            cli_table_paint(&v->settings, PAINT_DIM);
    }
}

/* A misspelled variable such as PAWL_RETENTON has no effect and no error; warn about it. */
static void look_at_variable(struct visit *v, const char *entry)
{
    char name[64];
    size_t len = strcspn(entry, "=");
    if (strncmp(entry, "PAWL_", 5) != 0 || len >= sizeof(name))
        return;
    for (size_t i = 5; i <= len; i++)
        name[i - 5] = (char)(i < len ? tolower((unsigned char)entry[i]) : 0);
    struct nearest n = { .asked = name };
    for (int i = 0; i < SETTING_COUNT; i++)
        nearest_offer(&n, setting_table[i].name);
    const char *near = strlen(name) > 3 ? nearest_name(&n) : NULL; /* PAWL_B is not PAWL_DB */
    if (near && n.distance > 0) {
        char meant[64];
        setting_variable(setting_find(near), meant, sizeof(meant));
        found(v, FINDING_WARN, "environment", "%.*s is not a setting; did you mean %s?", (int)len,
              entry, meant);
    }
}

/* ---- The database ---------------------------------------------------------------------------- */

static bool look_at_schema(struct visit *v, struct store *s)
{
    struct schema has = { 0 };
    struct pawl_err err = { 0 };
    if (store_schema(s, &has, &err) != PAWL_OK) {
        unanswered(v, "schema", "the schema's version, its queues and nodes", &err);
        return false;
    }
    if (has.min_version > has.wanted)
        found(v, FINDING_BAD, "schema", "version %d needs a newer program; this one knows %d",
              has.version, has.wanted);
    else if (has.version == 0)
        found(v, FINDING_WARN, "schema", "empty; pawl migrate up creates the tables");
    else if (has.version < has.wanted)
        found(v, FINDING_WARN, "schema", "version %d, this program needs %d; run pawl migrate up",
              has.version, has.wanted);
    else if (has.finish_due)
        found(v, FINDING_WARN, "schema",
              "version %d; run pawl migrate finish when no older program runs", has.version);
    else
        found(v, FINDING_OK, "schema", "version %d, this program needs %d", has.version,
              has.wanted);
    return has.version >= has.wanted && has.min_version <= has.wanted;
}

static void look_at_queues(struct visit *v, struct store *s, int64_t now_us)
{
    struct queue_rows q;
    struct pawl_err err = { 0 };
    int64_t pending = 0, processing = 0, oldest_us = 0;
    if (store_queues(s, &v->arena, &q, &err) != PAWL_OK) {
        unanswered(v, "queues", "the queues", &err);
        return;
    }
    for (size_t i = 0; i < q.n; i++) {
        const struct queue_row *row = &q.v[i];
        pending += row->pending;
        processing += row->processing;
        if (row->oldest_due_us)
            oldest_us = MAX(oldest_us, now_us - row->oldest_due_us);
        if (row->paused)
            found(v, FINDING_WARN, "queue", "\"%.*s\" is paused, %" PRId64 " pending",
                  BYTES_ARG(row->queue), row->pending);
    }
    char waits[32];
    duration_text(oldest_us / SEC_US * SEC_US, waits);
    found(v, FINDING_OK, "queues",
          "%zu known, %" PRId64 " pending, %" PRId64 " processing, oldest due for %s", q.n, pending,
          processing, waits);
}

/* A silent node may come back, and no other node has declared it dead yet. A dead one was declared
 * dead, and its calls were taken back. */
static void look_at_node(struct visit *v, const struct node_row *row, int64_t silent_us)
{
    char gone[32];
    duration_text(silent_us / SEC_US * SEC_US, gone);
    if (!row->dead)
        found(v, FINDING_WARN, "node",
              "\"%.*s\" has sent no heartbeat for %s; its calls are taken back as soon as another "
              "node runs",
              BYTES_ARG(row->node), gone);
    else
        found(v, FINDING_WARN, "node",
              "\"%.*s\" is dead: its last heartbeat was %s ago; its calls were taken back",
              BYTES_ARG(row->node), gone);
}

/* A node that died longer ago than `retention` is counted, but not warned about. */
static void look_at_nodes(struct visit *v, struct store *s, int64_t now_us)
{
    struct node_rows nodes;
    struct pawl_err err = { 0 };
    size_t alive = 0, silent = 0, dead = 0, told = 0;
    int64_t grace_us = v->cli->settings.v[SET_HEARTBEAT_GRACE].number;
    int64_t kept_us = v->cli->settings.v[SET_RETENTION].number;
    if (store_nodes(s, &v->arena, &nodes, &err) != PAWL_OK) {
        unanswered(v, "nodes", "the nodes", &err);
        return;
    }
    for (size_t i = 0; i < nodes.n; i++) {
        const struct node_row *row = &nodes.v[i];
        int64_t silent_us = MAX(now_us - row->beat_us, 0);
        bool lives = !row->dead && silent_us <= grace_us;
        alive += lives;
        dead += row->dead;
        silent += !row->dead && !lives;
        bool history = row->dead && silent_us > kept_us;
        if (!lives && !history && told++ < NODES_TOLD_MAX)
            look_at_node(v, row, silent_us);
    }
    found(v, FINDING_OK, "nodes", "%zu known, %zu alive, %zu silent, %zu dead", nodes.n, alive,
          silent, dead);
}

/* Each tick is decided once. After the database's clock was set back, schedules wait until it is
 * again where it was, and nothing else says so. */
static void look_at_schedules(struct visit *v, struct store *s, int64_t now_us)
{
    struct cron_ahead ahead;
    struct pawl_err err = { 0 };
    char last[TIME_TEXT_LEN + 1];
    if (cron_ahead(s, &v->arena, now_us + SCHEDULE_AHEAD_US, &ahead, &err) != PAWL_OK) {
        unanswered(v, "schedules", "the schedules", &err);
        return;
    }
    if (!ahead.n) {
        found(v, FINDING_OK, "schedules", "none has ticked for a time that is to come");
        return;
    }
    time_text(ahead.last_us, last);
    found(v, FINDING_WARN, "schedules",
          "%" PRId64
          " %s ticked for times up to %s, which %s to come: \"%.*s\"%s; the clock was set "
          "back, and %s until it is there again",
          ahead.n, ahead.n == 1 ? "has" : "have", last, ahead.n == 1 ? "is" : "are",
          BYTES_ARG(ahead.first), ahead.n == 1 ? "" : " and others",
          ahead.n == 1 ? "it does not tick" : "they do not tick");
}

/* The engine's own checks: its version, files and settings. */
static void ask_engine(struct visit *v, struct store *s)
{
    struct findings f;
    struct pawl_err err = { 0 };
    if (store_doctor(s, &v->arena, &f, &err) != PAWL_OK) {
        unanswered(v, "engine", "the server's settings", &err);
        return;
    }
    for (size_t i = 0; i < f.n; i++)
        found(v, f.v[i].level, f.v[i].name, "%s", f.v[i].text);
}

/* All times in the ledger come from the database's clock. A deadline that an application computes
 * with its own clock is wrong by the difference. */
static void look_at_clock(struct visit *v, int64_t now_us, int64_t ours_us)
{
    char now[TIME_TEXT_LEN + 1], apart[32];
    int64_t difference_us = now_us > ours_us ? now_us - ours_us : ours_us - now_us;
    bool far = difference_us > CLOCK_WARN_US;
    time_text(now_us, now);
    duration_text(difference_us / MS_US * MS_US, apart);
    found(v, far ? FINDING_WARN : FINDING_OK, "clock", "%s, %s %s this machine's%s", now, apart,
          now_us > ours_us ? "ahead of" : "behind", far ? ": synchronize the clocks" : "");
}

static void look_at_store(struct visit *v, struct store *s)
{
    int64_t now_us = 0;
    struct pawl_err err = { 0 };
    bool durable = store_traits(s) & STORE_DURABLE;
    found(v, durable ? FINDING_OK : FINDING_WARN, "engine", "%s%s", s->ops->name,
          durable ? "" : ": stored calls are lost when the process ends");
    ask_engine(v, s);
    bool usable = look_at_schema(v, s);
    if (store_now(s, &now_us, &err) != PAWL_OK) {
        found(v, FINDING_BAD, "clock", "%s", err.text);
        return;
    }
    look_at_clock(v, now_us, world_now(&world_real));
    if (!usable)
        return;
    look_at_queues(v, s, now_us);
    look_at_nodes(v, s, now_us);
    if (store_traits(s) & STORE_DRIVEN) /* else it keeps calls only */
        look_at_schedules(v, s, now_us);
}

static void look_at_database(struct visit *v)
{
    AUTO(store_end) struct store *s = NULL;
    struct pawl_err err = { 0 };
    struct store_conf conf = { .url = cli_db(v->cli),
                               .schema = cli_schema(v->cli),
                               .role = STORE_READER,
                               .retention_us = v->cli->settings.v[SET_RETENTION].number,
                               .remember_us = v->cli->settings.v[SET_REMEMBER].number };
    enum pawl_status st = cli_db_exists(v->cli, &err);
    if (st == PAWL_OK)
        st = store_open(&conf, &s, &err);
    if (st == PAWL_OK)
        look_at_store(v, s);
    else
        found(v, FINDING_BAD, "database", "%s", err.text);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int show_json(struct visit *v)
{
    struct buf b;
    buf_init(&b, DOCTOR_LEN_MAX);
    buf_add_text(&b, "{\"version\":\"" PAWL_VERSION "\"");
    json_add_name(&b, "verdict");
    json_add_string(&b, bytes_of(level_name(v->worst)));
    json_add_name(&b, "settings");
    cli_table_json(&b, &v->settings);
    json_add_name(&b, "checks");
    cli_table_json(&b, &v->checks);
    buf_add_char(&b, '}');
    int code = cli_table_send(v->cli, &b);
    buf_release(&b);
    return code;
}

static int show(struct visit *v)
{
    if (v->cli->json)
        return show_json(v);
    cli_table_print(v->cli, &v->settings);
    fputc('\n', v->cli->out);
    cli_table_print(v->cli, &v->checks);
    return cli_done(v->cli);
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const char *const settings[] = { "setting", "value", "from", NULL };
    static const char *const checks[] = { "level", "check", "finding", NULL };
    struct visit v = { .cli = cli };
    (void)argc, (void)argv;
    arena_init(&v.arena, DOCTOR_LEN_MAX);
    cli_table_init(&v.settings, settings);
    cli_table_init(&v.checks, checks);
    found(&v, FINDING_OK, "program", "pawl %s", PAWL_VERSION);
    show_settings(&v);
    for (char **entry = environ; *entry; entry++)
        look_at_variable(&v, *entry);
    look_at_database(&v);
    int code = show(&v);
    cli_table_release(&v.settings);
    cli_table_release(&v.checks);
    arena_release(&v.arena);
    return code ? code : v.worst == FINDING_BAD ? err_exit(PAWL_BROKEN) : 0;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "show every setting, and check the database",
    .usage = "",
    .about =
        "Prints each setting with its value and where it came from, then the checks: the engine\n"
        "and its version, settings of the database that weaken durability or isolation, the\n"
        "schema, the difference between the clocks, queues, nodes and schedules. It changes no\n"
        "data (an SQLite file is switched to WAL mode, as by every command that opens it). Each\n"
        "check is ok, skip (the database account may not read it), warn or bad. Exit code 0 when\n"
        "no check is bad, 9 when one is.",
    .example = "pawl doctor --db sqlite:orders.db\npawl doctor --json | jq .verdict",
    .run = run,
};
