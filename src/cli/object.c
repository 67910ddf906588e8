/*
 * object.c - `pawl object`: show, write or delete an object's state from outside a call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/remote.h"

static char *object_path(struct remote *r, char **argv, int64_t wait_us)
{
    const char *query = "";
    const char *const names[] = { argv[0], argv[1] };
    if (wait_us >= 0)
        query =
            arena_printf(&r->arena, "?wait=%" PRId64 ".%06d%s", wait_us / SEC_US,
                         (int)(wait_us % SEC_US), cli_flag(r->cli, "cancel") ? "&cancel=true" : "");
    return query ? remote_path(r, "/v1/objects/{TYPE}/{KEY}", names, query) : NULL;
}

/* The state given with --set: JSON, @FILE or - for stdin. */
static enum pawl_status state_read(struct remote *r, struct bytes *out)
{
    struct pawl_err why;
    enum pawl_status st =
        input_read(&r->arena, cli_option(r->cli, "set"), STATE_LEN_MAX, out, &r->err);
    if (st == PAWL_OK && json_check(*out, &why) != PAWL_OK)
        st = err_set(&r->err, PAWL_INVALID, "option --set: the state is not JSON (%.200s)",
                     why.text);
    return st;
}

/* Build the request from the options; GET when neither --set nor --delete is given. */
static enum pawl_status ask_of(struct remote *r, char **argv, struct client_ask *out)
{
    bool set = cli_flag(r->cli, "set"), delete = cli_flag(r->cli, "delete");
    int64_t version = 0;
    enum pawl_status st = PAWL_OK;
    if (set)
        st = state_read(r, &out->body);
    if (st == PAWL_OK && (set || delete))
        st = cli_duration(r->cli, "wait", &out->wait_us, &r->err);
    if (st == PAWL_OK && cli_flag(r->cli, "if-version")) {
        st = cli_int(r->cli, "if-version", 1, INT64_MAX, &version, &r->err);
        out->header = arena_printf(&r->arena, "If-Match: \"%" PRId64 "\"", version);
    }
    out->method = set ? "PUT" : delete ? "DELETE" : NULL;
    out->once = set || delete;
    out->has = delete ? "key cancelled" : "key version";
    if (st == PAWL_OK)
        out->path = object_path(r, argv, set || delete ? out->wait_us : -1);
    return st;
}

static int say(struct remote *r, char **argv, const struct json *answer)
{
    struct cli *cli = r->cli;
    int64_t cancelled = 0;
    if (cli->json)
        return remote_print_raw(r, answer);
    if (cli_flag(cli, "delete") && json_int(json_member(answer, "cancelled"), &cancelled))
        fprintf(cli->out, "%s %s deleted, %" PRId64 " call%s cancelled\n", argv[0], argv[1],
                cancelled, plural(cancelled));
    else
        remote_print_fields(r, answer);
    return cli_done(cli);
}

/* A second write of the same state is harmless where nobody else writes; with --if-version it is
 * refused. */
static enum pawl_status object_lost(struct remote *r, char **argv)
{
    bool delete = cli_flag(r->cli, "delete"), bound = cli_flag(r->cli, "if-version");
    const char *what = arena_printf(&r->arena, "object \"%.100s\" \"%.100s\" may have been %s",
                                    argv[0], argv[1], delete ? "deleted" : "written");
    if (delete)
        return remote_lost(r, what, "the same command again says NOT_FOUND if it was");
    return remote_lost(r, what,
                       bound ? "the same command again says STALE if it was"
                             : "the same command again writes the same state, over what was "
                               "written since");
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct remote r;
    struct client_ask ask = { 0 };
    struct json *answer = NULL;
    bool set = cli_flag(cli, "set"), delete = cli_flag(cli, "delete");
    if (argc != 2)
        return cli_missing(cli, argc ? "KEY" : "TYPE");
    if (set && delete)
        return cli_failf(cli, PAWL_INVALID, "options --set and --delete cannot be used together");
    if (cli_flag(cli, "cancel") && !delete)
        return cli_failf(cli, PAWL_INVALID, "option --cancel can only be used with --delete");
    if (cli_flag(cli, "if-version") && !set && !delete)
        return cli_failf(cli, PAWL_INVALID,
                         "option --if-version can only be used with --set or --delete");
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = ask_of(&r, argv, &ask);
    if (st == PAWL_OK)
        st = remote_ask(&r, &ask, &answer);
    if (st == PAWL_UNKNOWN && (set || delete))
        st = object_lost(&r, argv);
    int code = st == PAWL_OK ? say(&r, argv, answer) : remote_fail(&r);
    remote_close(&r);
    return code;
}

static const struct option_row options[] = {
    { "set", "JSON", NULL, "write this state: JSON, @FILE, or - for stdin" },
    { "delete", NULL, NULL, "delete the state; refused while calls of the object are pending" },
    { "cancel", NULL, NULL, "with --delete: cancel the pending calls in the same transaction" },
    { "if-version", "N", NULL, "write or delete only if the state has this version" },
    { "wait", "D", "5s", "how long --set and --delete wait for a running call of the key" },
    { 0 },
};

const struct command cmd_object = {
    .name = "object",
    .summary = "show, write or delete the state of an object",
    .usage = "TYPE KEY",
    .about =
        "An object is identified by a type and a key. Calls of that key read its state, and\n"
        "write it in the same commit as their result. Without options, this command prints the\n"
        "state and its version; --set and --delete wait until no call of the key is running.",
    .example = "pawl object Counter c-1 --set '{\"n\": 1}'\n"
               "pawl object Counter c-1 --json | jq .state\n"
               "pawl object Counter c-1 --set 2 --if-version \"$(pawl object Counter c-1 --json | "
               "jq .version)\"\n"
               "pawl object Counter c-1 --delete",
    .options = options,
    .args_max = 2,
    .reach = REACH_SERVER,
    .run = run,
};
