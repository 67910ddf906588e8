/*
 * workflow.c - `pawl workflow`: runs of workflows, their signals, and what people do to them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/remote.h"
#include "cli/workflow_check.h"

#define PAGE_MAX 1000
/* Members that every answer about a run has: without them another program has answered. */
#define RUN_HAS "id status workflow_name"

static char *run_path(struct remote *r, const char *id, const char *rest)
{
    return remote_path(r, "/v1/workflows/{ID}", &id, rest);
}

/* The text of a buffer in the arena, and the buffer released. NULL without memory. */
static char *taken(struct remote *r, struct buf *b)
{
    char *text = buf_ok(b) ? arena_text(&r->arena, buf_bytes(b)) : NULL;
    buf_release(b);
    return text;
}

/* ---- list -------------------------------------------------------------------------------------
 */

static const char *const list_columns[] = { "id",        "workflow", "status", "step",
                                            "waits for", "since",    NULL };

/* "signal shipped, until 2026-..." */
static const char *waiting_text(struct remote *r, const struct json *run)
{
    const struct json *w = json_member(run, "waiting_for");
    const char *out = "";
    if (!w || w->kind != JSON_OBJECT)
        return "-";
    const char *signal = shown(&r->arena, w, "signal"), *until = shown(&r->arena, w, "until");
    const struct json *children = json_member(w, "children");
    if (signal)
        out = arena_printf(&r->arena, "signal %s", signal);
    if (out && children)
        out = arena_printf(&r->arena, "%s%s%zu children", out, *out ? ", " : "", children->count);
    if (out && until)
        out = arena_printf(&r->arena, "%s%suntil %.19sZ", out, *out ? ", " : "", until);
    return out && *out ? out : "-";
}

static void list_row(struct remote *r, struct cli_table *s, const struct json *run)
{
    const char *step = shown(&r->arena, run, "current_step");
    const char *since = shown(&r->arena, run, "started_at");
    const char *status = shown(&r->arena, run, "status");
    cli_table_text(s, "%s", shown(&r->arena, run, "id"));
    cli_table_text(s, "%s", shown(&r->arena, run, "workflow_name"));
    cli_table_text(s, "%s", status);
    cli_table_text(s, "%s", step ? step : "-");
    cli_table_text(s, "%s", waiting_text(r, run));
    cli_table_text(s, "%.19sZ", since ? since : "-");
}

static const char *list_path(struct remote *r, int64_t limit, const char *cursor)
{
    struct buf b;
    char number[24];
    buf_init(&b, 16 << 10);
    buf_add_text(&b, "/v1/workflows");
    snprintf(number, sizeof number, "%" PRId64, MIN(limit, PAGE_MAX));
    query_add(&b, "limit", number);
    query_add(&b, "cursor", cursor);
    query_add(&b, "status", cli_option(r->cli, "status"));
    query_add(&b, "name", cli_option(r->cli, "name"));
    return taken(r, &b);
}

static enum pawl_status list_read(struct remote *r, struct cli_table *s, struct buf *json,
                                  bool *more)
{
    const char *cursor = NULL;
    int64_t n = 0, limit = 0;
    enum pawl_status st = cli_int(r->cli, "limit", 1, 1000000, &limit, &r->err);
    if (st != PAWL_OK)
        return st;
    do {
        struct json *page = NULL;
        st = remote_ask(r,
                        &(struct client_ask){ .path = list_path(r, limit - n, cursor),
                                              .list = "workflows",
                                              .has = RUN_HAS },
                        &page);
        if (st != PAWL_OK)
            return st;
        for (const struct json *v = json_member(page, "workflows")->first; v && n < limit;
             v = v->next, n++) {
            list_row(r, s, v);
            json_add_comma(json);
            buf_add_bytes(json, v->raw);
        }
        cursor = shown(&r->arena, page, "next");
    } while (cursor && n < limit);
    buf_add_text(json, "],\"next\":");
    if (cursor)
        json_add_string(json, bytes_of(cursor));
    else
        buf_add_text(json, "null");
    buf_add_char(json, '}');
    *more = cursor != NULL;
    return PAWL_OK;
}

static int list_run(struct remote *r, int argc, char **argv)
{
    struct cli_table s;
    struct buf json;
    bool more = false;
    int code;
    (void)argc, (void)argv;
    cli_table_init(&s, list_columns);
    buf_init(&json, (size_t)512 << 20);
    buf_add_text(&json, "{\"workflows\":[");
    if (list_read(r, &s, &json, &more) != PAWL_OK) {
        code = remote_fail(r);
    } else if (r->cli->json) {
        code = cli_table_send(r->cli, &json);
    } else {
        cli_table_print(r->cli, &s);
        if (more && !cli_flag(r->cli, "limit"))
            fprintf(r->cli->err, "pawl workflow: there are more runs; --limit N prints more\n");
        code = cli_done(r->cli);
    }
    buf_release(&json);
    cli_table_release(&s);
    return code;
}

/* ---- show -------------------------------------------------------------------------------------
 */

static const char *const step_columns[] = { "no",       "step",  "kind",  "status",
                                            "attempts", "error", "ended", NULL };

static void steps_print(struct remote *r, const struct json *run)
{
    const struct json *steps = json_member(run, "steps");
    struct cli_table s;
    cli_table_init(&s, step_columns);
    for (const struct json *v = steps ? steps->first : NULL; v; v = v->next) {
        const char *error = shown(&r->arena, v, "error");
        const char *ended = shown(&r->arena, v, "completed_at");
        const struct json *undone = json_member(v, "undone");
        bool was = undone && undone->kind == JSON_TRUE;
        cli_table_text(&s, "%s", shown(&r->arena, v, "no"));
        cli_table_text(&s, "%s", shown(&r->arena, v, "step_name"));
        cli_table_text(&s, "%s", shown(&r->arena, v, "kind"));
        cli_table_text(&s, "%s%s", shown(&r->arena, v, "status"), was ? ", undone" : "");
        cli_table_text(&s, "%s", shown(&r->arena, v, "attempts"));
        cli_table_text(&s, "%s", error ? error : "-");
        cli_table_text(&s, "%s", ended ? ended : "-");
    }
    cli_table_print(r->cli, &s);
    cli_table_release(&s);
}

/* The lines above the steps: what a person asks first. */
static void head_print(struct remote *r, const struct json *run)
{
    static const char *const names[] = {
        "id",      "workflow_name", "status", "error",      "compensation_status",
        "version", "input",         "output", "started_at", "completed_at"
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = shown(&r->arena, run, names[i]);
        if (value)
            fprintf(r->cli->out, "%-20s %s\n", names[i], value);
    }
    const char *waits = waiting_text(r, run);
    if (strcmp(waits, "-") != 0)
        fprintf(r->cli->out, "%-20s %s\n", "waiting_for", waits);
    const struct json *signals = json_member(run, "signals");
    size_t unread = 0;
    for (const struct json *v = signals ? signals->first : NULL; v; v = v->next)
        unread += !shown(&r->arena, v, "consumed_at");
    if (unread)
        fprintf(r->cli->out, "%-20s %zu\n", "unread signals", unread);
    const struct json *children = json_member(run, "children");
    const struct json *published = json_member(run, "published");
    if (children && children->count)
        fprintf(r->cli->out, "%-20s %zu: `pawl list --parent %s`\n", "children", children->count,
                shown(&r->arena, run, "id"));
    if (published && published->count)
        fprintf(r->cli->out, "%-20s %.*s\n", "published", BYTES_ARG(published->raw));
    fputc('\n', r->cli->out);
}

static int show_run(struct remote *r, int argc, char **argv)
{
    struct json *run = NULL;
    (void)argc;
    if (remote_ask(r, &(struct client_ask){ .path = run_path(r, argv[0], ""), .has = RUN_HAS },
                   &run) != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, run);
    head_print(r, run);
    steps_print(r, run);
    const struct json *truncated = json_member(run, "truncated");
    if (truncated && truncated->kind == JSON_TRUE)
        fprintf(r->cli->err, "pawl workflow: there is more of it than one answer has; the view "
                             "workflow_steps has all steps\n");
    return cli_done(r->cli);
}

/* ---- published --------------------------------------------------------------------------------
 */

static int published_run(struct remote *r, int argc, char **argv)
{
    const char *const names[] = { argv[0], argc > 1 ? argv[1] : "" };
    struct json *value = NULL;
    if (argc < 2)
        return cli_failf(r->cli, PAWL_INVALID,
                         "NAME is missing; usage: pawl workflow published ID NAME");
    struct client_ask ask = { .path =
                                  remote_path(r, "/v1/workflows/{ID}/published/{NAME}", names, ""),
                              .any = true };
    return remote_ask(r, &ask, &value) == PAWL_OK ? remote_print_raw(r, value) : remote_fail(r);
}

/* ---- signal -----------------------------------------------------------------------------------
 */

/* The header Idempotency-Key with a quoted string (RFC 8941). NULL without memory. */
static char *key_header(struct remote *r, const char *key)
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
    return taken(r, &b);
}

/* Without --key a repeat would be another signal, so a lost answer is UNKNOWN at once. */
static int signal_run(struct remote *r, int argc, char **argv)
{
    const char *key = cli_option(r->cli, "key");
    const char *const names[] = { argv[0], argc > 1 ? argv[1] : "" };
    struct bytes value = BYTES("null");
    struct json *answer = NULL;
    if (argc < 2)
        return cli_failf(r->cli, PAWL_INVALID,
                         "NAME is missing; usage: pawl workflow signal ID NAME [VALUE]");
    if (key && (strchr(key, '\n') || strchr(key, '\r')))
        return cli_failf(r->cli, PAWL_INVALID, "option --key: has a line end");
    if (argc > 2 && input_read(&r->arena, argv[2], RESULT_LEN_MAX, &value, &r->err) != PAWL_OK)
        return remote_fail(r);
    struct client_ask ask = { .method = "POST",
                              .path =
                                  remote_path(r, "/v1/workflows/{ID}/signals/{NAME}", names, ""),
                              .body = value,
                              .has = "id name",
                              .once = !key };
    if (key)
        ask.header = key_header(r, key);
    enum pawl_status st = key && !ask.header ? err_no_memory(&r->err, "asking the server")
                                             : remote_ask(r, &ask, &answer);
    if (st == PAWL_UNKNOWN)
        remote_lost(r,
                    arena_printf(&r->arena, "workflow \"%.150s\" may have been signalled", argv[0]),
                    key ? "the same command again is the same signal"
                        : "`pawl workflow show` lists its signals");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    const struct json *again = json_member(answer, "duplicate");
    fprintf(r->cli->out, "%s signalled%s\n", argv[0],
            again && again->kind == JSON_TRUE ? " before" : "");
    return cli_done(r->cli);
}

/* ---- cancel, retry, fork ----------------------------------------------------------------------
 */

static int change(struct remote *r, const char *id, const char *rest, const char *body,
                  const char *done)
{
    struct json *call = NULL;
    struct client_ask ask = {
        .method = "POST",
        .path = run_path(r, id, rest),
        .body = bytes_of(body),
        .has = CALL_HAS,
    };
    enum pawl_status st = remote_ask(r, &ask, &call);
    if (st == PAWL_UNKNOWN)
        st = remote_lost(r,
                         arena_printf(&r->arena, "workflow \"%.150s\" may have been %s", id, done),
                         "`pawl workflow show` shows its state");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, call);
    fprintf(r->cli->out, "%s %s\n", shown(&r->arena, call, "id"), shown(&r->arena, call, "status"));
    return cli_done(r->cli);
}

static int cancel_run(struct remote *r, int argc, char **argv)
{
    bool no = cli_flag(r->cli, "no-compensation");
    (void)argc;
    return change(r, argv[0], "/cancel", no ? "{\"compensate\":false}" : "{}", "cancelled");
}

static void member_add(struct buf *b, const char *name, const char *text)
{
    if (!text)
        return;
    json_add_name(b, name);
    json_add_string(b, bytes_of(text));
}

/* {"id":...,"from":...}, each if it was given. */
static const char *from_body(struct remote *r, const char *id)
{
    struct buf b;
    buf_init(&b, 8192);
    buf_add_char(&b, '{');
    member_add(&b, "id", id);
    member_add(&b, "from", cli_option(r->cli, "from"));
    buf_add_char(&b, '}');
    return taken(r, &b);
}

static int retry_run(struct remote *r, int argc, char **argv)
{
    const char *body = from_body(r, NULL);
    (void)argc;
    if (!body)
        return cli_failf(r->cli, PAWL_NO_MEMORY, "no memory");
    return change(r, argv[0], "/retry", body, "retried");
}

static int fork_run(struct remote *r, int argc, char **argv)
{
    const char *body = from_body(r, cli_option(r->cli, "id"));
    (void)argc;
    if (!cli_option(r->cli, "from"))
        return cli_failf(r->cli, PAWL_INVALID,
                         "option --from is missing: the step with which the new run begins");
    if (!body)
        return cli_failf(r->cli, PAWL_NO_MEMORY, "no memory");
    return change(r, argv[0], "/fork", body, "forked");
}

/* ---- Subcommands ------------------------------------------------------------------------------
 */

static const struct subcommand {
    const char *name;
    int (*run)(struct remote *r, int argc, char **argv); /* NULL: it asks no server */
    const char *argument; /* the first one, which it needs; NULL: it takes none */
    int args_max;
    const char *options; /* that it takes, each with a space before and behind */
} subcommands[] = {
    { "list", list_run, NULL, 0, " status name limit " },
    { "show", show_run, "ID", 1, " " },
    { "published", published_run, "ID", 2, " " },
    { "signal", signal_run, "ID", 3, " key " },
    { "cancel", cancel_run, "ID", 1, " no-compensation " },
    { "retry", retry_run, "ID", 1, " from " },
    { "fork", fork_run, "ID", 1, " from id " },
    { "check", NULL, NULL, 0, " type sample timeout " },
};
#define SUBCOMMANDS "list, show, published, signal, cancel, retry, fork or check"

static const struct option_row options[] = {
    { "status", "STATUS", NULL,
      "list: only runs that are running, waiting, completed, failed, compensating, compensated or "
      "cancelled" },
    { "name", "TYPE", NULL, "list: only runs of this workflow" },
    { "limit", "N", "100", "list: print at most this many" },
    { "key", "KEY", NULL, "signal: the same KEY again is the same signal" },
    { "no-compensation", NULL, NULL, "cancel: end it at once, and undo nothing" },
    { "from", "STEP", NULL, "retry: forget this step and the later ones; fork: begin with it" },
    { "id", "ID", NULL, "fork: the id of the new run; the same ID again is the same fork" },
    { "module", "FILE", NULL, "check: a module of handlers; may be given several times" },
    { "type", "TYPE", NULL, "check: only runs of this type" },
    { "sample", "N", NULL, "check: only the newest N runs that the modules serve" },
    { "timeout", "D", "10s", "check: how long the replay of one run may take" },
    { "db", "URL", NULL,
      "check: the database that is read (default $PAWL_DB, else sqlite:pawl.db)" },
    { 0 },
};

static const struct subcommand *subcommand_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(subcommands); i++)
        if (strcmp(subcommands[i].name, name) == 0)
            return &subcommands[i];
    return NULL;
}

/* An option of another subcommand that was given; NULL: there is none. A setting is an option of
 * every command. */
static const char *option_of_others(const struct cli *cli, const struct subcommand *sub)
{
    char word[40];
    for (const struct option_row *row = options; row->name; row++) {
        snprintf(word, sizeof word, " %s ", row->name);
        if (setting_find(row->name) < 0 && cli_flag(cli, row->name) && !strstr(sub->options, word))
            return row->name;
    }
    return NULL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct subcommand *sub = argc ? subcommand_find(argv[0]) : NULL;
    struct remote r;
    if (!sub)
        return cli_unknown(cli, "subcommand", argc ? argv[0] : "", SUBCOMMANDS);
    argc--;
    argv++;
    if (sub->argument && !argc)
        return cli_failf(cli, PAWL_INVALID, "%s is missing; usage: pawl workflow %s %s",
                         sub->argument, sub->name, sub->argument);
    if (argc > sub->args_max)
        return cli_failf(cli, PAWL_INVALID, "unexpected argument \"%.100s\" of pawl workflow %s",
                         argv[sub->args_max], sub->name);
    const char *wrong = option_of_others(cli, sub);
    if (wrong)
        return cli_failf(cli, PAWL_INVALID, "option --%s cannot be used with pawl workflow %s",
                         wrong, sub->name);
    if (!sub->run)
        return workflow_check(cli);
    int code = remote_open(&r, cli) == PAWL_OK ? sub->run(&r, argc, argv) : remote_fail(&r);
    remote_close(&r);
    return code;
}

const struct command cmd_workflow = {
    .name = "workflow",
    .summary = "workflows: calls whose handlers take steps",
    .usage = "list|show|published|signal|cancel|retry|fork|check [ARGUMENTS]",
    .about =
        "list shows runs, newest first. show ID shows one: its steps, and for what it waits.\n"
        "published ID NAME prints a value that it shows while it goes on.\n"
        "signal ID NAME [VALUE] sends it a signal; VALUE is JSON, @FILE or -, else null.\n"
        "cancel ID undoes what the run did, and ends it. retry ID lets a run that has ended go\n"
        "on; with --from it forgets that step and the later ones. fork ID --from STEP begins a\n"
        "new run with the results of the steps before that one.\n"
        "check replays the stored steps of all live runs against new modules before they are\n"
        "deployed, and lists the runs that would break, with the step. It opens the database\n"
        "itself and writes nothing; no step and no undo runs, but the handler's code between them\n"
        "does. Exit code 0 when every run that could be checked fits, 1 when one would break.",
    .example =
        "pawl submit trip --id trip-17 && pawl workflow signal trip-17 paid '{\"by\": \"card\"}' "
        "--key pay-1\n"
        "pawl workflow list --status waiting\n"
        "pawl workflow show trip-17\n"
        "pawl workflow cancel trip-17\n"
        "pawl workflow retry trip-17\n"
        "pawl workflow check --module build/samples/order.so --db sqlite:orders.db",
    .options = options,
    .args_max = 4,
    .reach = REACH_SERVER,
    .run = run,
};
