/*
 * control.c - `pawl cancel`, `pawl retry`, `pawl pause`, `pawl resume`: operator commands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cli/remote.h"

/* At most this many calls are counted before asking; with more the question says "at least". */
#define COUNT_MAX 1000
/* Calls that one request changes. */
#define STEP_MAX 1000

struct control {
    const char *verb, *action, *path, *did;
    const char *again;           /* what the same bulk command does when it is repeated */
    const char *const *statuses; /* of the calls that it can change; NULL ends them */
};

/* ---- Calls by id ----------------------------------------------------------------------------- */

/* Prints `ID status`, or the call with --json. An error is printed; the caller goes on with the
 * next id. */
static int one_call(struct remote *r, const char *id, const struct control *d)
{
    struct json *call = NULL;
    struct client_ask ask = { .path = call_path(r, id, d->action),
                              .body = BYTES("{}"),
                              .has = CALL_HAS };
    enum pawl_status st = remote_ask(r, &ask, &call);
    r->id = id;
    if (st == PAWL_UNKNOWN)
        st = remote_unknown(r, d->did);
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, call);
    const struct json *request = json_member(call, "cancel_requested");
    fprintf(r->cli->out, "%s %s%s\n", id, shown(&r->arena, call, "status"),
            request && request->kind == JSON_TRUE ? ", cancel requested" : "");
    return cli_done(r->cli);
}

static int each_call(struct remote *r, int argc, char **argv, const struct control *d)
{
    int first = 0;
    for (int i = 0; i < argc; i++) {
        int code = one_call(r, argv[i], d);
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
    struct client_ask ask = { .path = path, .body = buf_bytes(&b), .has = "changed" };
    enum pawl_status st = remote_ask(r, &ask, out);
    buf_release(&b);
    return st;
}

/* The answer to a request was lost, which may have changed up to `step` calls beyond `changed`. */
static enum pawl_status bulk_lost(struct remote *r, const struct control *d, int64_t changed,
                                  int64_t step)
{
    const char *sure = changed
                           ? arena_printf(&r->arena, "%" PRId64 " call%s %s %s, and ", changed,
                                          plural(changed), changed == 1 ? "was" : "were", d->did)
                           : "";
    const char *since = cli_flag(r->cli, "before") ? "" : " and those accepted since";
    const char *what =
        arena_printf(&r->arena, "%sup to %" PRId64 "%s call%s may have been %s", sure ? sure : "",
                     step, changed ? " more" : "", plural(step), d->did);
    return remote_lost(r, what,
                       arena_printf(&r->arena, "the same command again %s those that are left%s%s",
                                    d->again, since,
                                    cli_flag(r->cli, "limit") ? ", up to its --limit" : ""));
}

/* Repeats bounded requests until the server reports that no matching call is left. */
static int bulk(struct remote *r, const struct control *d, int64_t max)
{
    const char *did = d->did;
    int64_t changed = 0;
    const char *next = NULL;
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && changed < max) {
        struct json *answer = NULL;
        int64_t n = 0, step = MIN(max - changed, STEP_MAX);
        st = bulk_page(r, d->path, next, step, &answer);
        if (st == PAWL_UNKNOWN)
            st = bulk_lost(r, d, changed, step);
        if (st != PAWL_OK || !json_int(json_member(answer, "changed"), &n))
            break;
        changed += n;
        next = shown(&r->arena, answer, "next");
        cli_progress(r->cli, "%s: %" PRId64 " call%s", did, changed, plural(changed));
        if (!next)
            break;
    }
    if (st != PAWL_OK)
        return remote_fail(r);
    cli_progress_end(r->cli);
    if (r->cli->json)
        fprintf(r->cli->out, "{\"changed\":%" PRId64 "}\n", changed);
    else
        fprintf(r->cli->out, "%" PRId64 " call%s %s\n", changed, plural(changed), did);
    return cli_done(r->cli);
}

/* ---- Confirmation ---------------------------------------------------------------------------- */

/* One page of the calls of this status that match the filters, from `cursor` on. */
static enum pawl_status count_page(struct remote *r, const char *status, const char *cursor,
                                   struct json **out)
{
    static const char *const filters[] = { "queue", "type", "key" };
    const char *before = cli_option(r->cli, "before");
    struct buf b;
    int64_t time_us;
    buf_init(&b, 16 << 10);
    buf_addf(&b, "/v1/calls?limit=%d", COUNT_MAX);
    query_add(&b, "status", status);
    for (size_t i = 0; i < COUNT_OF(filters); i++)
        query_add(&b, filters[i], cli_option(r->cli, filters[i]));
    /* As in the API, --before may also be the `next` of an earlier answer. */
    bool time = before && time_parse(bytes_of(before), &time_us);
    if (time)
        query_add(&b, "until", before);
    query_add(&b, "cursor", cursor || time ? cursor : before);
    const char *path = buf_ok(&b) ? arena_text(&r->arena, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return remote_ask(r, &(struct client_ask){ .path = path, .list = "calls", .has = "id" }, out);
}

/* Adds how many calls of this status match the filters, COUNT_MAX at most; *more: there may be
 * others. The server scans a bounded number of calls for each page, so an empty page with a `next`
 * is not the end. */
static enum pawl_status count_status(struct remote *r, const char *status, int64_t *n, bool *more)
{
    const char *next = NULL;
    int64_t found = 0;
    do {
        struct json *page = NULL;
        enum pawl_status st = count_page(r, status, next, &page);
        if (st != PAWL_OK)
            return st;
        const struct json *calls = json_member(page, "calls");
        found = (int64_t)calls->count;
        next = shown(&r->arena, page, "next");
    } while (!found && next);
    *n += found;
    *more |= next != NULL;
    return PAWL_OK;
}

/* On a terminal: print how many calls would change, and ask. *go: the answer is yes, or no call
 * matches. */
static enum pawl_status confirm(struct remote *r, const struct control *d, int64_t limit, bool *go)
{
    const char *only = cli_option(r->cli, "status");
    enum pawl_status st = PAWL_OK;
    int64_t n = 0;
    bool more = false;
    for (size_t i = 0; st == PAWL_OK && d->statuses[i]; i++)
        if (!only || strcmp(only, d->statuses[i]) == 0)
            st = count_status(r, d->statuses[i], &n, &more);
    if (st != PAWL_OK)
        return st;
    more = more && n < limit;
    n = MIN(n, limit);
    *go = n == 0 || cli_ask(r->cli, "%s %s%" PRId64 " call%s?", d->verb, more ? "at least " : "", n,
                            plural(n));
    return PAWL_OK;
}

static bool filtered(const struct cli *cli)
{
    return cli_flag(cli, "status") || cli_flag(cli, "queue") || cli_flag(cli, "type") ||
           cli_flag(cli, "key") || cli_flag(cli, "before");
}

/* Every call that matches the filters. */
static int control_many(struct remote *r, const struct control *d)
{
    int64_t limit = 0;
    bool go = true;
    enum pawl_status st = cli_int(r->cli, "limit", 1, 1000000000, &limit, &r->err);
    if (st == PAWL_OK && r->cli->person && !cli_flag(r->cli, "yes"))
        st = confirm(r, d, limit, &go);
    if (st != PAWL_OK)
        return remote_fail(r);
    if (!go)
        return cli_failf(r->cli, PAWL_INVALID, "not confirmed; nothing was changed");
    return bulk(r, d, limit);
}

static int control_run(struct cli *cli, int argc, char **argv, const struct control *d)
{
    struct remote r;
    int code;
    if (argc && filtered(cli))
        return cli_failf(cli, PAWL_INVALID, "give IDs or filters such as --status, not both");
    if (!argc && !filtered(cli))
        return cli_missing(cli, "ID, or a filter such as --status,");
    if (remote_open(&r, cli) != PAWL_OK)
        code = remote_fail(&r);
    else
        code = argc ? each_call(&r, argc, argv, d) : control_many(&r, d);
    remote_close(&r);
    return code;
}

static int run_cancel(struct cli *cli, int argc, char **argv)
{
    static const char *const statuses[] = { "pending", "processing", NULL };
    static const struct control d = { "cancel",    "/cancel", "/v1/calls/cancel",
                                      "cancelled", "cancels", statuses };
    return control_run(cli, argc, argv, &d);
}

static int run_retry(struct cli *cli, int argc, char **argv)
{
    static const char *const statuses[] = { "failed", "dead_letter", "cancelled", "expired", NULL };
    static const struct control d = {
        "retry", "/retry", "/v1/calls/retry", "retried", "retries those that have failed again,",
        statuses
    };
    return control_run(cli, argc, argv, &d);
}

static const struct option_row options_bulk[] = {
    { "status", "S", NULL, "calls of this status" },
    { "queue", "Q", NULL, "calls of this queue" },
    { "type", "T", NULL, "calls of this type" },
    { "key", "K", NULL, "calls of this key" },
    { "before", "TIME", NULL, "calls accepted before this time, RFC 3339" },
    { "limit", "N", "1000000000", "change at most this many calls" },
    { "yes", NULL, NULL, "with filters: do not ask for confirmation" },
    { 0 },
};

#define IDS_MAX 10000
#define BULK_ABOUT                                                                                 \
    "With filters instead of IDs: every call that matches all of them.\n"                          \
    "On a terminal, filters print how many calls would change and ask for confirmation; --yes\n"   \
    "skips the question, and a script (stdin or stderr is not a terminal) is never asked."

const struct command cmd_cancel = {
    .name = "cancel",
    .summary = "cancel calls",
    .usage = "ID...",
    .about =
        "A pending call ends as cancelled and never runs. A running call is asked to stop; if it\n"
        "ends first, its own outcome stays. " BULK_ABOUT,
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
    .about =
        "Runs failed, dead_letter, cancelled and expired calls again, with the same id and all\n"
        "attempts available. " BULK_ABOUT,
    .example = "pawl retry later-1\npawl retry --status dead_letter --queue default",
    .options = options_bulk,
    .args_max = IDS_MAX,
    .reach = REACH_SERVER,
    .run = run_retry,
};

/* ---- Queues ---------------------------------------------------------------------------------- */

static int one_queue(struct remote *r, const char *queue, const char *action)
{
    struct json *answer = NULL;
    struct client_ask ask = { .path = remote_path(r, "/v1/queues/{QUEUE}/", &queue, action),
                              .body = BYTES("{}"),
                              .has = "queue paused" };
    enum pawl_status st = remote_ask(r, &ask, &answer);
    if (st == PAWL_UNKNOWN)
        st = remote_lost(
            r, arena_printf(&r->arena, "queue \"%.150s\" may have been %sd", queue, action),
            "the same command can be given again");
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
    struct client_ask ask = { .path = "/v1/queues", .list = "queues", .has = "queue" };
    if (remote_ask(r, &ask, &answer) != PAWL_OK)
        return remote_fail(r);
    const struct json *list = json_member(answer, "queues");
    for (const struct json *q = list->first; q; q = q->next) {
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
    if (argc && all)
        return cli_failf(cli, PAWL_INVALID, "give QUEUE or --all, not both");
    if (!argc && !all)
        return cli_missing(cli, "QUEUE, or --all,");
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
    { "all", NULL, NULL, "every known queue" },
    { 0 },
};

const struct command cmd_pause = {
    .name = "pause",
    .summary = "stop taking calls from a queue; new ones are still accepted",
    .usage = "QUEUE...",
    .about =
        "No node starts calls of the queue until pawl resume. Running calls go on, and new calls\n"
        "are still accepted. The queue stays paused when servers restart.",
    .example = "pawl pause mail",
    .options = options_all,
    .args_max = 100,
    .reach = REACH_SERVER,
    .run = run_pause,
};

const struct command cmd_resume = {
    .name = "resume",
    .summary = "take calls from a queue again",
    .usage = "QUEUE...",
    .about = "Ends a pause: nodes start calls of the queue again at once.",
    .example = "pawl resume mail\npawl resume --all",
    .options = options_all,
    .args_max = 100,
    .reach = REACH_SERVER,
    .run = run_resume,
};
