/*
 * decide.c - `pawl cancel`, `pawl retry`, `pawl pause`, `pawl resume`: what a person decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "cli/remote.h"

/* ---- Calls by id ----------------------------------------------------------------------------- */

static const struct json nothing = { .raw = { "null", 4 } };

/* Print `ID status`, or the call; an error is said and the next one is tried. */
static int one_call(struct remote *r, const char *id, const char *action)
{
    struct json *call = NULL;
    if (remote_ask(r, call_path(&r->arena, id, action), BYTES("{}"), &call) != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, call ? call : &nothing);
    const char *status = shown(&r->arena, call, "status");
    const struct json *wish = json_member(call, "cancel_requested");
    fprintf(r->cli->out, "%s %s%s\n", id, status ? status : "?",
            wish && wish->kind == JSON_TRUE ? ", cancel requested" : "");
    return cli_done(r->cli);
}

static int each_call(struct remote *r, int argc, char **argv, const char *action)
{
    int first = 0;
    for (int i = 0; i < argc; i++) {
        int code = one_call(r, argv[i], action);
        first = first ? first : code;
    }
    return first;
}

/* ---- Calls by filter ------------------------------------------------------------------------- */

static void add_text(struct buf *b, const char *name, const char *text)
{
    if (!text)
        return;
    json_add_name(b, name);
    json_add_string(b, bytes_of(text));
}

static enum pawl_status bulk_page(struct remote *r, const char *path, const char *next,
                                  int64_t limit, struct json **out)
{
    static const char *const filters[] = { "status", "queue", "type", "key" };
    struct buf b;
    buf_init(&b, 64 << 10);
    buf_add_char(&b, '{');
    for (size_t i = 0; i < COUNT_OF(filters); i++)
        add_text(&b, filters[i], cli_option(r->cli, filters[i]));
    add_text(&b, "before", next ? next : cli_option(r->cli, "before"));
    json_add_name(&b, "limit");
    buf_add_int(&b, limit);
    buf_add_char(&b, '}');
    enum pawl_status st = remote_ask(r, path, buf_bytes(&b), out);
    buf_release(&b);
    return st;
}

/* In steps the server bounds, until it says that there is no more. */
static int bulk(struct remote *r, const char *path, const char *did)
{
    int64_t changed = 0, max = 0;
    const char *next = NULL;
    enum pawl_status st = cli_int(r->cli, "limit", 1, 1000000000, &max, &r->err);
    while (st == PAWL_OK && changed < max) {
        struct json *answer = NULL;
        int64_t n = 0;
        st = bulk_page(r, path, next, MIN(max - changed, 1000), &answer);
        if (st != PAWL_OK || !json_int(json_member(answer, "changed"), &n))
            break;
        changed += n;
        next = shown(&r->arena, answer, "next");
        cli_progress(r->cli, "%s: %" PRId64 " calls", did, changed);
        if (!next)
            break;
    }
    if (st != PAWL_OK)
        return remote_fail(r);
    cli_progress_end(r->cli);
    fprintf(r->cli->out, r->cli->json ? "{\"changed\":%" PRId64 "}\n" : "%" PRId64 " calls %s\n",
            changed, did);
    return cli_done(r->cli);
}

static bool filtered(const struct cli *cli)
{
    return cli_flag(cli, "status") || cli_flag(cli, "queue") || cli_flag(cli, "type") ||
           cli_flag(cli, "key") || cli_flag(cli, "before");
}

struct decision {
    const char *action, *path, *did;
};

static int decide(struct cli *cli, int argc, char **argv, struct decision d)
{
    struct remote r;
    int code;
    if ((argc != 0) == filtered(cli))
        return cli_failf(cli, PAWL_INVALID, "say ids, or --status and its like; one of the two");
    if (remote_open(&r, cli) != PAWL_OK)
        code = remote_fail(&r);
    else
        code = argc ? each_call(&r, argc, argv, d.action) : bulk(&r, d.path, d.did);
    remote_close(&r);
    return code;
}

static int run_cancel(struct cli *cli, int argc, char **argv)
{
    return decide(cli, argc, argv, (struct decision){ "/cancel", "/v1/calls/cancel", "cancelled" });
}

static int run_retry(struct cli *cli, int argc, char **argv)
{
    return decide(cli, argc, argv, (struct decision){ "/retry", "/v1/calls/retry", "redriven" });
}

static const struct option_row options_bulk[] = {
    { "status", "S", NULL, "every call of this status" },
    { "queue", "Q", NULL, "of this queue" },
    { "type", "T", NULL, "of this type" },
    { "key", "K", NULL, "of this key" },
    { "before", "TIME", NULL, "accepted before this time, RFC 3339" },
    { "limit", "N", "1000000000", "at most so many" },
    { 0 },
};

#define IDS_MAX 10000

const struct command cmd_cancel = {
    .name = "cancel",
    .summary = "cancel calls",
    .usage = "ID...",
    .about =
        "A pending call will never run. A running one is asked to stop; whichever comes first\n"
        "wins, its end or the wish. With --status and its like: every call that fits.",
    .example = "pawl submit echo --id later-1 --delay 1h && pawl cancel later-1\n"
               "pawl cancel --status pending --type nobody",
    .options = options_bulk,
    .args_max = IDS_MAX,
    .reach = REACH_SERVER,
    .run = run_cancel,
};

const struct command cmd_retry = {
    .name = "retry",
    .summary = "run calls again that did not complete",
    .usage = "ID...",
    .about = "Redrives failed, dead_letter, cancelled and expired calls under their own ids, with\n"
             "fresh tries. With --status and its like: every call that fits.",
    .example = "pawl retry later-1\npawl retry --status dead_letter --queue default",
    .options = options_bulk,
    .args_max = IDS_MAX,
    .reach = REACH_SERVER,
    .run = run_retry,
};

/* ---- Queues ---------------------------------------------------------------------------------- */

static int one_queue(struct remote *r, const char *queue, const char *action)
{
    struct buf b;
    struct json *answer = NULL;
    buf_init(&b, 4096);
    buf_add_text(&b, "/v1/queues/");
    url_add(&b, bytes_of(queue));
    buf_addf(&b, "/%s", action);
    enum pawl_status st = remote_ask(r, arena_text(&r->arena, buf_bytes(&b)), BYTES("{}"), &answer);
    buf_release(&b);
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    fprintf(r->cli->out, "%s %sd\n", queue, action);
    return cli_done(r->cli);
}

static int all_queues(struct remote *r, const char *action)
{
    struct json *answer = NULL;
    int first = 0;
    if (remote_ask(r, "/v1/queues", BYTES_NONE, &answer) != PAWL_OK)
        return remote_fail(r);
    const struct json *list = json_member(answer, "queues");
    for (const struct json *q = list ? list->first : NULL; q; q = q->next) {
        int code = one_queue(r, shown(&r->arena, q, "queue"), action);
        first = first ? first : code;
    }
    return first;
}

static int queues(struct cli *cli, int argc, char **argv, const char *action)
{
    struct remote r;
    int code = 0;
    bool all = cli_flag(cli, "all");
    if ((argc != 0) == all)
        return cli_failf(cli, PAWL_INVALID, "say which queue, or --all");
    if (remote_open(&r, cli) != PAWL_OK)
        code = remote_fail(&r);
    else if (all)
        code = all_queues(&r, action);
    for (int i = 0; i < argc && code == 0; i++)
        code = one_queue(&r, argv[i], action);
    remote_close(&r);
    return code;
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
    return queues(cli, argc, argv, "pause");
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
    return queues(cli, argc, argv, "resume");
}

static const struct option_row options_all[] = {
    { "all", NULL, NULL, "every queue that is known" },
    { 0 },
};

const struct command cmd_pause = {
    .name = "pause",
    .summary = "stop claiming from a queue; accepting goes on",
    .usage = "QUEUE...",
    .about = "For every node, until pawl resume. What runs already is not touched.",
    .example = "pawl pause mail",
    .options = options_all,
    .args_max = 100,
    .reach = REACH_SERVER,
    .run = run_pause,
};

const struct command cmd_resume = {
    .name = "resume",
    .summary = "claim from a queue again",
    .usage = "QUEUE...",
    .example = "pawl resume mail\npawl resume --all",
    .options = options_all,
    .args_max = 100,
    .reach = REACH_SERVER,
    .run = run_resume,
};
