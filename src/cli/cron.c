/*
 * cron.c - `pawl cron`: which subcommand, its options, and those that only name schedules: pause,
 * resume, run, rm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cron.h"

#include <string.h>

#include "base/err.h"
#include "cli/subcommand.h"

char *cron_path(struct remote *r, const char *name, const char *rest)
{
    return remote_path(r, "/v1/schedules/{NAME}", &name, rest);
}

/* ---- pause, resume, rm ----------------------------------------------------------------------- */

struct change {
    const char *method, *rest; /* of the request */
    const char *done;          /* "paused" */
};

static int change_one(struct remote *r, const char *name, const struct change *c)
{
    struct json *answer = NULL;
    struct client_ask ask = { .method = c->method,
                              .path = cron_path(r, name, c->rest),
                              .body = strcmp(c->method, "POST") ? BYTES_NONE : BYTES("{}"),
                              .has = strcmp(c->method, "POST") ? "name deleted" : SCHEDULE_HAS };
    enum pawl_status st = remote_ask(r, &ask, &answer);
    if (st == PAWL_UNKNOWN)
        st = remote_lost(
            r, arena_printf(&r->arena, "schedule \"%.150s\" may have been %s", name, c->done),
            strcmp(c->method, "DELETE") ? "the same command can be given again"
                                        : "the same command again says NOT_FOUND if it was");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    fprintf(r->cli->out, "%s %s\n", name, c->done);
    return cli_done(r->cli);
}

/* Every name, also behind one that failed; the first failure decides the exit code. */
static int change_all(struct remote *r, int argc, char **argv, const struct change *c)
{
    int first = 0;
    for (int i = 0; i < argc; i++) {
        int code = change_one(r, argv[i], c);
        first = first ? first : code;
    }
    return first;
}

static int pause_run(struct remote *r, int argc, char **argv)
{
    return change_all(r, argc, argv, &(struct change){ "POST", "/pause", "paused" });
}

static int resume_run(struct remote *r, int argc, char **argv)
{
    return change_all(r, argc, argv, &(struct change){ "POST", "/resume", "resumed" });
}

static int rm_run(struct remote *r, int argc, char **argv)
{
    return change_all(r, argc, argv, &(struct change){ "DELETE", "", "deleted" });
}

/* ---- run ------------------------------------------------------------------------------------- */

/* The header Idempotency-Key with a quoted string (RFC 8941), in the arena; NULL without memory. */
static char *key_header(struct arena *a, const char *key)
{
    struct buf b;
    buf_init(&b, 4096);
    buf_add_text(&b, "Idempotency-Key: \"");
    for (; *key; key++) {
        if (*key == '"' || *key == '\\')
            buf_add_char(&b, '\\');
        buf_add_char(&b, *key);
    }
    buf_add_char(&b, '"');
    char *header = buf_ok(&b) ? arena_text(a, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return header;
}

/* Without --id a repeat would be another run, so a lost answer is UNKNOWN at once. */
static int run_run(struct remote *r, int argc, char **argv)
{
    const char *key = cli_option(r->cli, "id");
    struct json *answer = NULL;
    struct client_ask ask = { .method = "POST",
                              .path = cron_path(r, argv[0], "/run"),
                              .body = BYTES("{}"),
                              .has = CALL_HAS,
                              .once = !key };
    (void)argc;
    if (key && (strchr(key, '\n') || strchr(key, '\r')))
        return cli_failf(r->cli, PAWL_INVALID, "option --id: has a line end");
    if (key)
        ask.header = key_header(&r->arena, key);
    enum pawl_status st = key && !ask.header ? err_no_memory(&r->err, "asking the server")
                                             : remote_ask(r, &ask, &answer);
    if (st == PAWL_UNKNOWN)
        remote_lost(
            r, arena_printf(&r->arena, "schedule \"%.150s\" may have submitted a run", argv[0]),
            key ? "the same command again is the same run" : "`pawl cron runs` shows it");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    fprintf(r->cli->out, "%s\n", shown(&r->arena, answer, "id"));
    return cli_done(r->cli);
}

/* ---- Subcommands ----------------------------------------------------------------------------- */

static int list_run(struct remote *r, int argc, char **argv)
{
    (void)argc, (void)argv;
    return cron_list_run(r);
}

static int get_run(struct remote *r, int argc, char **argv)
{
    (void)argc;
    return cron_get_run(r, argv[0]);
}

static int put_run(struct remote *r, int argc, char **argv)
{
    return cron_put_run(r, argv[0], argc > 1 ? argv[1] : NULL);
}

static int runs_run(struct remote *r, int argc, char **argv)
{
    (void)argc;
    return cron_runs_run(r, argv[0]);
}

static int next_run(struct remote *r, int argc, char **argv)
{
    (void)argc;
    return cron_next_run(r, argv[0]);
}

static int apply_run(struct remote *r, int argc, char **argv)
{
    (void)argc;
    return cron_apply_run(r, argv[0]);
}

static const struct subcommand subcommands[] = {
    { "list", list_run, NULL, 0, " limit " },
    { "get", get_run, "NAME", 1, " " },
    { "put", put_run, "NAME", 2,
      " cron every at zone type method queue key input needs tag timeout catch-up catch-up-for "
      "overlap jitter starts-at ends-at new if-version " },
    { "pause", pause_run, "NAME", SUBCOMMAND_NAMES_MAX, " " },
    { "resume", resume_run, "NAME", SUBCOMMAND_NAMES_MAX, " " },
    { "run", run_run, "NAME", 1, " id " },
    { "rm", rm_run, "NAME", SUBCOMMAND_NAMES_MAX, " " },
    { "runs", runs_run, "NAME", 1, " limit " },
    { "next", next_run, "EXPRESSION or NAME", 1, " zone from count " },
    { "apply", apply_run, "FILE", 1, " prune dry-run yes " },
    { 0 },
};

static const struct option_row options[] = {
    { "cron", "EXPR", NULL, "put: \"minute hour day month weekday\", or @daily and so on" },
    { "every", "D", NULL, "put: each time this long after the one before, instead of --cron" },
    { "at", "TIME", NULL, "put: at this time, instead of --cron; may be repeated" },
    { "zone", "ZONE", NULL, "put, next: time zone of the expression; default UTC" },
    { "type", "T[.M]", NULL, "put: type of the call, and its method after the last dot" },
    { "method", "M", NULL, "put: its method; --type is then not split at its last dot" },
    { "queue", "Q", NULL, "put: its queue" },
    { "key", "K", NULL, "put: its key" },
    { "input", "JSON", NULL, "put: its input: JSON, @FILE, or - for stdin" },
    { "needs", "A,B", NULL, "put: capabilities: only a worker that has them all takes the call" },
    { "tag", "NAME:VALUE", NULL, "put: a label to list its calls by; may be repeated" },
    { "timeout", "D", NULL, "put: how long one attempt of the call may take" },
    { "catch-up", "HOW", NULL, "put: last, none or all: which missed ticks are submitted" },
    { "catch-up-for", "D", NULL, "put: how late the last one may be" },
    { "overlap", "HOW", NULL, "put: allow, skip, wait or replace: while the last call runs" },
    { "jitter", "D", NULL, "put: run each call up to this much later" },
    { "starts-at", "TIME", NULL, "put: no tick before this time" },
    { "ends-at", "TIME", NULL, "put: no tick at this time or later" },
    { "new", NULL, NULL, "put: only if no schedule has this name" },
    { "if-version", "N", NULL, "put: only if it has this version" },
    { "id", "KEY", NULL, "run: the same KEY again is the same run" },
    { "from", "TIME", NULL, "next: the first time is at this one or later; default now" },
    { "count", "N", NULL, "next: print this many times; default 10" },
    { "limit", "N", "100", "list, runs: print at most this many" },
    { "prune", NULL, NULL, "apply: delete schedules that are not in FILE" },
    { "dry-run", NULL, NULL, "apply: print what would change, and change nothing" },
    { "yes", NULL, NULL, "apply: with --prune do not ask for confirmation" },
    { 0 },
};

static int run(struct cli *cli, int argc, char **argv)
{
    return subcommand_run(cli, subcommands, NULL, argc, argv);
}

const struct command cmd_cron = {
    .name = "cron",
    .summary = "schedules: calls that are submitted by the clock",
    .usage = "list|get|put|pause|resume|run|rm|runs|next|apply [ARGUMENTS]",
    .about =
        "list shows all schedules, get NAME one of them. put NAME stores one, from its options or\n"
        "from JSON, @FILE or - as a second argument. pause, resume and rm take one NAME or more.\n"
        "run NAME submits the call of a schedule now and prints the call's id. runs NAME shows\n"
        "what came of its ticks, newest first. next EXPRESSION shows when an expression fires,\n"
        "without storing anything; next NAME shows the next times of a schedule.\n"
        "apply FILE stores the schedules of a file: a JSON array of them, each with its name. All\n"
        "are checked first, so a file with a mistake changes nothing; what is stored already is\n"
        "not written again. --prune deletes the schedules that are not in the file: on a terminal\n"
        "it asks first, a script (stdin or stderr is not a terminal) is never asked.",
    .example = "pawl cron put nightly --cron '0 3 * * 1-5' --zone Europe/Berlin --type echo "
               "--input '{\"kind\": \"daily\"}'\n"
               "pawl cron put beat '{\"every\": 60, \"call\": {\"type\": \"echo\"}}'\n"
               "pawl cron list\n"
               "pawl cron next '0 3 * * *' --zone Europe/Berlin --count 3\n"
               "pawl cron run nightly\n"
               "pawl cron runs nightly --limit 20\n"
               "pawl cron pause nightly && pawl cron resume nightly\n"
               "echo '[{\"name\": \"beat\", \"every\": 60, \"call\": {\"type\": \"echo\"}}]' "
               "> schedules.json && pawl cron apply schedules.json --dry-run --prune\n"
               "pawl cron rm nightly beat",
    .options = options,
    .args_max = 1 + SUBCOMMAND_NAMES_MAX,
    .reach = REACH_SERVER,
    .run = run,
};
