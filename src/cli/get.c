/*
 * get.c - `pawl get`, `pawl attempts`, `pawl list`: show calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/remote.h"

/* ---- get ------------------------------------------------------------------------------------- */

static int run_get(struct cli *cli, int argc, char **argv)
{
    struct remote r;
    struct json *call = NULL;
    int64_t wait_us = 0;
    char query[64] = "";
    if (!argc)
        return cli_missing(cli, "ID");
    if (cli_flag(cli, "wait") && cli_flag(cli, "archived"))
        return cli_failf(cli, PAWL_INVALID,
                         "--wait cannot be used with --archived: a call in the archive has "
                         "ended");
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK && cli_flag(cli, "wait"))
        st = cli_duration(cli, "wait", &wait_us, &r.err);
    if (wait_us)
        snprintf(query, sizeof(query), "?wait=%" PRId64 ".%06d", wait_us / SEC_US,
                 (int)(wait_us % SEC_US));
    if (cli_flag(cli, "archived"))
        snprintf(query, sizeof(query), "?archived=true");
    struct client_ask ask = { .wait_us = wait_us, .has = CALL_HAS };
    if (st == PAWL_OK) {
        ask.path = call_path(&r, argv[0], query);
        st = remote_ask(&r, &ask, &call);
    }
    int code;
    if (st != PAWL_OK) {
        code = remote_fail(&r);
    } else if (cli_flag(cli, "result")) {
        code = call_outcome(&r, call);
    } else if (cli->json) {
        code = remote_print_raw(&r, call);
    } else {
        remote_print_fields(&r, call);
        code = cli_done(cli);
    }
    remote_close(&r);
    return code;
}

static const struct option_row options_get[] = {
    { "wait", "D", NULL, "wait until it has ended, at most this long; default 0s" },
    { "result", NULL, NULL, "print only its result; exit codes as in pawl call" },
    { "archived", NULL, NULL, "look it up in the archive, where pawl archive moved it" },
    { 0 },
};

const struct command cmd_get = {
    .name = "get",
    .summary = "show one call",
    .usage = "ID",
    .about =
        "Prints the call's fields: status, type, times, attempts, input and result. With --json\n"
        "prints the call as the server sends it. Exit code 3: there is no such call.",
    .example = "pawl get echo-1\npawl get echo-1 --json | jq .status\npawl get echo-1 --result",
    .options = options_get,
    .args_max = 1,
    .reach = REACH_SERVER,
    .run = run_get,
};

/* ---- attempts -------------------------------------------------------------------------------- */

static int run_attempts(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "try",         "kind",  "node", "started_at",
                                           "finished_at", "error", NULL };
    struct remote r;
    struct json *answer = NULL;
    if (!argc)
        return cli_missing(cli, "ID");
    enum pawl_status st = remote_open(&r, cli);
    struct client_ask ask = { .list = "attempts", .has = "try kind" };
    if (st == PAWL_OK) {
        ask.path = call_path(&r, argv[0], "/attempts");
        st = remote_ask(&r, &ask, &answer);
    }
    int code = st == PAWL_OK ? remote_table(&r, answer, "attempts", columns) : remote_fail(&r);
    remote_close(&r);
    return code;
}

const struct command cmd_attempts = {
    .name = "attempts",
    .summary = "show the attempts of a call that did not succeed",
    .usage = "ID",
    .about =
        "Prints each attempt that ended in an error, in a timeout or was lost (its process died):\n"
        "its number, kind, node, times and error. A completed call may have earlier failed ones.",
    .example = "pawl attempts flaky-1",
    .args_max = 1,
    .reach = REACH_SERVER,
    .run = run_attempts,
};

/* ---- list ------------------------------------------------------------------------------------ */

static const char *list_path(struct remote *r, const char *cursor, int64_t limit)
{
    static const char *const filters[] = { "status", "queue",  "type",  "method", "key",
                                           "parent", "caller", "since", "until" };
    struct buf b;
    char number[32];
    buf_init(&b, 16 << 10);
    buf_add_text(&b, "/v1/calls");
    for (size_t i = 0; i < COUNT_OF(filters); i++)
        query_add(&b, filters[i], cli_option(r->cli, filters[i]));
    for (int i = 0; i < cli_count(r->cli, "tag"); i++)
        query_add(&b, "tag", cli_nth(r->cli, "tag", i));
    snprintf(number, sizeof(number), "%" PRId64, MIN(limit, 1000));
    query_add(&b, "limit", number);
    query_add(&b, "cursor", cursor);
    const char *path = buf_ok(&b) ? arena_text(&r->arena, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return path;
}

static void list_row(struct remote *r, struct cli_table *s, const struct json *call)
{
    static const char *const members[] = {
        "id", "type", "method", "status", "queue", "created_at"
    };
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const char *text = shown(&r->arena, call, members[i]);
        if (strcmp(members[i], "created_at") == 0 && text)
            cli_table_text(s, "%.19sZ", text); /* full seconds are enough for people */
        else
            cli_table_text(s, "%s", text ? text : "-");
        if (strcmp(members[i], "status") == 0)
            cli_table_paint(s, paint_of_status(text));
    }
    const char *error = shown(&r->arena, call, "error");
    const char *waits = shown(&r->arena, call, "waiting_for");
    if (error)
        cli_table_text(s, "%s", error);
    else if (waits)
        cli_table_text(s, "waiting for %s", waits);
    else
        cli_table_none(s);
}

/* Reads page after page until `limit` calls are read. With --json the calls of all pages go into
 * one array, and `next` is that of the last page: where the list continues, or null. */
static enum pawl_status list_all(struct remote *r, int64_t limit, struct cli_table *s,
                                 struct buf *json)
{
    const char *cursor = cli_option(r->cli, "cursor");
    int64_t n = 0;
    do {
        struct json *page = NULL, *calls;
        struct client_ask ask = { .path = list_path(r, cursor, limit - n),
                                  .list = "calls",
                                  .has = CALL_HAS " method queue created_at" };
        enum pawl_status st = remote_ask(r, &ask, &page);
        if (st != PAWL_OK)
            return st;
        calls = json_member(page, "calls");
        for (const struct json *c = calls->first; c && n < limit; c = c->next, n++) {
            list_row(r, s, c);
            json_add_comma(json);
            buf_add_bytes(json, c->raw);
        }
        cursor = shown(&r->arena, page, "next");
        cli_progress(r->cli, "list: %" PRId64 " call%s", n, plural(n));
    } while (cursor && n < limit);
    cli_progress_end(r->cli);
    buf_add_char(json, ']');
    json_add_name(json, "next");
    if (cursor)
        json_add_string(json, bytes_of(cursor));
    else
        buf_add_text(json, "null");
    buf_add_char(json, '}');
    return PAWL_OK;
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "id",    "type",       "method", "status",
                                           "queue", "created_at", "note",   NULL };
    struct remote r;
    struct cli_table s;
    struct buf json;
    int64_t limit = 0;
    (void)argc, (void)argv;
    cli_table_init(&s, columns);
    buf_init(&json, (size_t)512 << 20);
    buf_add_text(&json, "{\"calls\":[");
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = cli_int(cli, "limit", 1, 1000000, &limit, &r.err);
    if (st == PAWL_OK)
        st = list_all(&r, limit, &s, &json);
    int code;
    if (st != PAWL_OK) {
        code = remote_fail(&r);
    } else if (cli->json) {
        code = cli_table_send(cli, &json);
    } else {
        cli_table_print(cli, &s);
        code = cli_done(cli);
    }
    buf_release(&json);
    cli_table_release(&s);
    remote_close(&r);
    return code;
}

static const struct option_row options_list[] = {
    { "status", "S", NULL,
      "pending, processing, completed, failed, dead_letter, cancelled or expired" },
    { "queue", "Q", NULL, "only calls of this queue" },
    { "type", "T", NULL, "only calls of this type" },
    { "method", "M", NULL, "only calls of this method" },
    { "key", "K", NULL, "only calls of this key" },
    { "parent", "ID", NULL, "only calls that this call sent" },
    { "caller", "NAME", NULL, "only calls submitted with this --caller" },
    { "tag", "NAME:VALUE", NULL, "only calls with this tag; may be repeated, then all must match" },
    { "since", "TIME", NULL, "only calls accepted at this time or later, RFC 3339" },
    { "until", "TIME", NULL, "only calls accepted before this time" },
    { "limit", "N", "100", "print at most this many calls" },
    { "cursor", "TEXT", NULL, "continue a list: the \"next\" of an earlier answer (--json)" },
    { 0 },
};

const struct command cmd_list = {
    .name = "list",
    .summary = "list calls, newest first",
    .usage = "",
    .about = "Filters are combined: a call is listed when it matches all of them.",
    .example = "pawl list --status dead_letter\n"
               "pawl list --type echo --tag team:shop --json | jq -r '.calls[].id'",
    .options = options_list,
    .reach = REACH_SERVER,
    .run = run_list,
};
