/*
 * settings_page.c - print doc/settings.md and a commented pawl.conf from the table of settings.
 *
 * A second table in doc/settings.md compares the defaults with those of the earlier designs
 * ("seeds").
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

/* A setting of an earlier design: its name and value there, ours, and why the default differs. */
static const struct seed {
    const char *where, *name, *said;
    int id;
    const char *why;
} seeds[] = {
    { "000", "SetMaxOpenConns", "25", SET_POOL_SIZE,
      "one thread writes for all callers; these connections only read, and idle ones cost memory" },
    { "000", "SetConnMaxLifetime", "5 minutes", SET_POOL_LIFETIME,
      "a healthy connection is kept; 30 minutes are short enough to follow a failover" },
    { "000", "mark_stuck_requests_as_failed", "5 minutes", SET_HEARTBEAT_GRACE,
      "a dead owner is detected by missing heartbeats, not by age; a slow call is not stuck" },
    { "000", "archive after", "30 days", SET_RETENTION,
      "results are read within days; the id alone is remembered for 30 days more" },
    { "001", "TTL for pending calls", "none", SET_RETENTION,
      "expires_in ends a call with an outcome; a pending call is never removed" },
    { "001", "process interval", "none", SET_POLL_INTERVAL,
      "a commit wakes waiting threads of the same process; polling is for other processes only" },
    { "003", "max_concurrent_jobs", "100", SET_WORKER_SLOTS,
      "a slot is a thread; 16 keep two cores busy, and handlers that wait for I/O need more" },
    { "003", "timeout_seconds", "3600", SET_CALL_TIMEOUT,
      "an hour hides a hung handler; a call that needs it can set its own timeout" },
    { "003", "pool_size", "50", SET_POOL_SIZE, "see above; PostgreSQL's own limit is 100" },
    { "003", "pool_timeout", "30s", SET_POOL_TIMEOUT, "the same" },
    { "003", "http_port", "8080", SET_LISTEN,
      "8080 is taken on many machines; 7295 is free, and the default accepts only local clients" },
    { "003", "DELETE completed after", "7 days", SET_RETENTION, "the same" },
    { "004", "SESSION_LOCK_WAIT_TIMEOUT", "120", SET_SESSION_WAIT,
      "the same, but the request stays queued when the caller's time is up; on_timeout cancel does "
      "what that design did" },
    { "004", "AGENT_TIMEOUT", "120", SET_CALL_TIMEOUT,
      "per call; the default suits short handlers" },
    { "004", "SESSION_LOCK_STUCK_BUFFER_SECONDS", "30", SET_LEASE_FOR,
      "the owner extends its lease, so the length of the work need not be guessed" },
    { "004", "POD_HEARTBEAT_INTERVAL_SECONDS", "15", SET_HEARTBEAT_INTERVAL,
      "a heartbeat writes one small row; with 2 s a crash delays callers by 10 s instead of 30" },
    { "004", "POD_HEARTBEAT_GRACE_SECONDS", "30", SET_HEARTBEAT_GRACE,
      "five missed heartbeats; never less than two, as in that design" },
    { "004", "RECLAIM_ACTION", "requeue", SET_RECLAIM_ACTION, "the same" },
};

static const char *when_text(enum setting_when when)
{
    return when == SETTING_LIVE ? "SIGHUP" : "start";
}

int help_settings_page(struct cli *cli)
{
    fputs(
        "<!-- Printed by `pawl help settings --markdown`; change src/cli instead. -->\n"
        "# Settings\n\n"
        "Every setting NAME is `--name` on the command line, `PAWL_NAME` in the environment and\n"
        "`name = value` in a file: `--config FILE`, else `PAWL_CONFIG`, else `pawl.conf` in the\n"
        "working directory if it exists. The command line wins over the environment, that over\n"
        "the file, and that over the default. `pawl doctor` prints each setting with its value\n"
        "and where it came from. A wrong name or value stops the start with an error that names\n"
        "the line and what was expected.\n\n"
        "Durations are `500ms`, `5s`, `2m`, `3h`, `7d`; a number alone is seconds. Items of a\n"
        "list are separated by commas (tokens: by white space); in the file a list has braces:\n\n"
        "    # pawl.conf\n"
        "    listen = \"0.0.0.0:7295\"\n"
        "    retention = 14d\n"
        "    queues = {\"default\", \"mail\"}\n"
        "    tokens = {\"ann:admin:SHA256\", \"mailer:app:SHA256:mail\"}\n"
        "    db = \"postgres://pawl:${DB_PASSWORD}@db/pawl\"\n\n"
        "A block `schedule \"NAME\" { ... }` declares a schedule, with the members that a PUT of "
        "one\n"
        "has, and those of its call beside them ([cron.md](cron.md)). It is stored when `pawl "
        "serve`\n"
        "starts and on SIGHUP; taken out of the file, the schedule stays until `pawl cron rm`.\n\n"
        "    schedule \"nightly\" {\n"
        "        cron = \"0 3 * * 1-5\"\n"
        "        zone = \"Europe/Berlin\"\n"
        "        type = report\n"
        "        input = '{\"kind\": \"daily\"}'\n"
        "    }\n\n"
        "The last column says when a new value takes effect: on the next SIGHUP, or when the\n"
        "server starts again.\n\n"
        "| setting | default | meaning | effective |\n|---|---|---|---|\n",
        cli->out);
    for (int i = 0; i < SETTING_COUNT; i++)
        fprintf(cli->out, "| `%s` | %s | %s | %s |\n", setting_table[i].name,
                setting_table[i].fallback, setting_table[i].meaning,
                when_text(setting_table[i].when));
    fputs(
        "\n## Settings of the earlier designs\n\n"
        "Pawl continues several earlier designs, numbered here. Their settings became these:\n\n"
        "| design | its setting | its value | here | default | why |\n|---|---|---|---|---|---|\n",
        cli->out);
    for (size_t i = 0; i < COUNT_OF(seeds); i++)
        fprintf(cli->out, "| %s | `%s` | %s | `%s` | %s | %s |\n", seeds[i].where, seeds[i].name,
                seeds[i].said, setting_table[seeds[i].id].name, setting_table[seeds[i].id].fallback,
                seeds[i].why);
    return cli_done(cli);
}

/* ---- pawl.conf ------------------------------------------------------------------------------- */

static void conf_value(struct cli *cli, const struct setting *row)
{
    switch (row->kind) {
    case SETTING_INT:
    case SETTING_DURATION:
    case SETTING_BOOL:
    case SETTING_CHOICE:
        fprintf(cli->out, "%s", row->fallback);
        break;
    case SETTING_LIST:
    case SETTING_LINES:
        fprintf(cli->out, *row->fallback ? "{\"%s\"}" : "{%s}", row->fallback);
        break;
    case SETTING_TEXT:
    case SETTING_SECRET:
    case SETTING_RANGE:
        fprintf(cli->out, "\"%s\"", row->fallback);
        break;
    }
}

int help_settings_conf(struct cli *cli)
{
    fputs(
        "# pawl.conf - the settings of pawl " PAWL_VERSION ", each with its default.\n"
        "# A line counts when the # before its name is taken away. pawl.service reads\n"
        "# /etc/pawl.conf; otherwise name the file by --config or PAWL_CONFIG, or call it\n"
        "# pawl.conf in the working directory. `pawl doctor --config FILE` prints every value and\n"
        "# where it came from.\n"
        "#\n"
        "# Durations are 500ms, 5s, 2m, 3h, 7d. Lists have braces: {\"default\", \"mail\"}.\n"
        "# ${NAME} in a quoted text is the environment variable NAME.\n"
        "#\n"
        "# A schedule is a block:\n"
        "#schedule \"nightly\" {\n"
        "#    cron = \"0 3 * * 1-5\"\n"
        "#    zone = \"Europe/Berlin\"\n"
        "#    type = report\n"
        "#    input = '{\"kind\": \"daily\"}'\n"
        "#}\n",
        cli->out);
    for (int i = 0; i < SETTING_COUNT; i++) {
        fprintf(cli->out, "\n# %s\n#%s = ", setting_table[i].meaning, setting_table[i].name);
        conf_value(cli, &setting_table[i]);
        fputc('\n', cli->out);
    }
    return cli_done(cli);
}
