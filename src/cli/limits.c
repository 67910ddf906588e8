/*
 * limits.c - `pawl limits`: how many calls run at once, and how many begin in a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "cli/subcommand.h"

/* What Pawl always answers about a limit. */
#define LIMIT_HAS "name running"

static char *limit_path(struct remote *r, const char *name)
{
    return remote_path(r, "/v1/limits/{NAME}", &name, "");
}

/* ---- list, get ------------------------------------------------------------------------------- */

/* "queue mail, type send, keys acme-*", in the arena. */
static const char *calls_text(struct remote *r, const struct json *v)
{
    static const struct {
        const char *member, *word, *end;
    } parts[] = { { "queue", "queue ", "" },
                  { "type", "type ", "" },
                  { "key_prefix", "keys ", "*" } };
    const char *out = "";
    for (size_t i = 0; i < COUNT_OF(parts) && out; i++) {
        const char *text = shown(&r->arena, v, parts[i].member);
        if (text)
            out = arena_printf(&r->arena, "%s%s%s%s%s", out, *out ? ", " : "", parts[i].word, text,
                               parts[i].end);
    }
    return out && *out ? out : "-";
}

/* "10 in 1 s, burst 20", in the arena. */
static const char *rate_text(struct remote *r, const struct json *v)
{
    const char *rate = shown(&r->arena, v, "rate");
    const char *per = shown(&r->arena, v, "per"), *burst = shown(&r->arena, v, "burst");
    const char *text = rate ? arena_printf(&r->arena, "%s in %s s%s%s", rate, per ? per : "?",
                                           burst && strcmp(burst, rate) ? ", burst " : "",
                                           burst && strcmp(burst, rate) ? burst : "")
                            : NULL;
    return text ? text : "-";
}

static void row(struct remote *r, struct cli_table *s, const struct json *v)
{
    const char *max = shown(&r->arena, v, "max");
    cli_table_text(s, "%s", shown(&r->arena, v, "name"));
    cli_table_text(s, "%s", calls_text(r, v));
    cli_table_text(s, "%s", max ? shown(&r->arena, v, "running") : "-");
    cli_table_text(s, "%s", max ? max : "-");
    cli_table_text(s, "%s", rate_text(r, v));
}

static int list_run(struct remote *r, int argc, char **argv)
{
    static const char *const columns[] = { "name", "calls", "running", "max", "rate", NULL };
    (void)argc, (void)argv;
    return remote_list(r, &(struct listing){ .path = "/v1/limits",
                                             .member = "limits",
                                             .has = LIMIT_HAS,
                                             .columns = columns,
                                             .row = row });
}

static int show(struct remote *r, const struct json *answer)
{
    if (r->cli->json)
        return remote_print_raw(r, answer);
    remote_print_fields(r, answer);
    return cli_done(r->cli);
}

static int get_run(struct remote *r, int argc, char **argv)
{
    struct json *answer = NULL;
    (void)argc;
    enum pawl_status st = remote_ask(
        r, &(struct client_ask){ .path = limit_path(r, argv[0]), .has = LIMIT_HAS }, &answer);
    return st == PAWL_OK ? show(r, answer) : remote_fail(r);
}

/* ---- put, rm --------------------------------------------------------------------------------- */

static void int_add(struct buf *b, const char *name, int64_t n)
{
    json_add_name(b, name);
    buf_addf(b, "%" PRId64, n);
}

/* The body from the options; the server checks it. */
static enum pawl_status body_write(struct remote *r, struct buf *b)
{
    int64_t per_us = 0, n = 0;
    enum pawl_status st = PAWL_OK;
    buf_add_char(b, '{');
    call_text_add(b, "queue", cli_option(r->cli, "queue"));
    call_text_add(b, "type", cli_option(r->cli, "type"));
    call_text_add(b, "key_prefix", cli_option(r->cli, "key-prefix"));
    static const struct {
        const char *name;
        int64_t max;
    } numbers[] = { { "max", LIMIT_MAX }, { "rate", LIMIT_RATE_MAX }, { "burst", LIMIT_RATE_MAX } };
    for (size_t i = 0; i < COUNT_OF(numbers) && st == PAWL_OK; i++) {
        if (!cli_flag(r->cli, numbers[i].name))
            continue;
        st = cli_int(r->cli, numbers[i].name, 1, numbers[i].max, &n, &r->err);
        int_add(b, numbers[i].name, n);
    }
    if (st == PAWL_OK && cli_flag(r->cli, "per")) {
        st = cli_duration(r->cli, "per", &per_us, &r->err);
        json_add_name(b, "per");
        buf_addf(b, "%" PRId64 ".%06" PRId64, per_us / 1000000, per_us % 1000000);
    }
    buf_add_char(b, '}');
    return st == PAWL_OK && !buf_ok(b) ? err_no_memory(&r->err, "a limit") : st;
}

static int put_run(struct remote *r, int argc, char **argv)
{
    struct json *answer = NULL;
    struct buf body;
    (void)argc;
    buf_init(&body, 64 << 10);
    enum pawl_status st = body_write(r, &body);
    if (st == PAWL_OK)
        st = remote_ask(r,
                        &(struct client_ask){ .method = "PUT",
                                              .path = limit_path(r, argv[0]),
                                              .body = buf_bytes(&body),
                                              .has = LIMIT_HAS },
                        &answer);
    if (st == PAWL_UNKNOWN)
        remote_lost(r, arena_printf(&r->arena, "limit \"%.150s\" may have been stored", argv[0]),
                    "the same command can be given again");
    buf_release(&body);
    return st == PAWL_OK ? show(r, answer) : remote_fail(r);
}

static int remove_one(struct remote *r, const char *name)
{
    struct json *answer = NULL;
    enum pawl_status st =
        remote_ask(r,
                   &(struct client_ask){
                       .method = "DELETE", .path = limit_path(r, name), .has = "name deleted" },
                   &answer);
    if (st == PAWL_UNKNOWN)
        remote_lost(r, arena_printf(&r->arena, "limit \"%.150s\" may have been deleted", name),
                    "the same command again says NOT_FOUND if it was");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    fprintf(r->cli->out, "%s deleted\n", name);
    return cli_done(r->cli);
}

/* Every name, also behind one that failed; the first failure decides the exit code. */
static int rm_run(struct remote *r, int argc, char **argv)
{
    int first = 0;
    for (int i = 0; i < argc; i++) {
        int code = remove_one(r, argv[i]);
        first = first ? first : code;
    }
    return first;
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct subcommand subcommands[] = {
    { "list", list_run, NULL, 0, " limit " },
    { "get", get_run, "NAME", 1, " " },
    { "put", put_run, "NAME", 1, " queue type key-prefix max rate per burst " },
    { "rm", rm_run, "NAME", SUBCOMMAND_NAMES_MAX, " " },
    { 0 },
};

static const struct option_row options[] = {
    { "queue", "Q", NULL, "put: for calls of this queue" },
    { "type", "T", NULL, "put: for calls of this type" },
    { "key-prefix", "P", NULL, "put: for calls whose key begins with this" },
    { "max", "N", NULL, "put: so many of them may run at once, on all nodes together" },
    { "rate", "N", NULL, "put: so many of them may begin in the time of --per" },
    { "per", "D", "1s", "put: the time of --rate" },
    { "burst", "N", NULL, "put: so many may begin at one time; default: as --rate" },
    { "limit", "N", "100", "list: print at most this many" },
    { 0 },
};

static int run(struct cli *cli, int argc, char **argv)
{
    return subcommand_run(cli, subcommands, "list", argc, argv);
}

const struct command cmd_limits = {
    .name = "limits",
    .summary = "limits: how many calls run at once, and how many begin in a time",
    .usage = "[list|get|put|rm] [NAME]",
    .about =
        "put NAME stores a limit for calls of a queue, of a type, or whose key begins with a\n"
        "prefix; when several hold for a call, all must allow it. It binds what begins from then\n"
        "on, on all nodes, also calls that wait already; what runs is let end. A call that waits\n"
        "for one shows waiting_for limit. list shows all limits and how many calls run.",
    .example = "pawl limits put mailer --type mail --max 3\n"
               "pawl limits put acme --key-prefix acme- --rate 10 --per 1s --burst 20\n"
               "pawl limits\n"
               "pawl limits get mailer\n"
               "pawl limits rm mailer acme",
    .options = options,
    .args_max = 1 + SUBCOMMAND_NAMES_MAX,
    .reach = REACH_SERVER,
    .run = run,
};
