/*
 * keys.c - `pawl keys` and `pawl unblock`: list keys that have calls, and release a blocked one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "cli/remote.h"

/* ---- keys ------------------------------------------------------------------------------------ */

static void key_row(struct remote *r, struct cli_table *s, const struct json *key)
{
    static const char *const members[] = {
        "key", "pending", "head", "head_status", "since", "note"
    };
    for (size_t i = 0; i + 1 < COUNT_OF(members); i++) {
        const char *text = shown(&r->arena, key, members[i]);
        if (strcmp(members[i], "since") == 0 && text)
            cli_table_text(s, "%.19sZ", text); /* full seconds are enough for people */
        else
            cli_table_text(s, "%s", text ? text : "-");
        if (strcmp(members[i], "head_status") == 0)
            cli_table_paint(s, paint_of_status(text));
    }
    const struct json *blocked = json_member(key, "blocked");
    const char *waits = shown(&r->arena, key, "waiting_for");
    if (blocked && blocked->kind == JSON_TRUE) {
        cli_table_text(s, "blocked");
        cli_table_paint(s, PAINT_BAD);
    } else if (waits) {
        cli_table_text(s, "waiting for %s", waits);
    } else {
        cli_table_none(s);
    }
}

/* Reads page after page until `limit` keys are read; with --json the keys of all pages go into one
 * array. */
static enum pawl_status keys_all(struct remote *r, int64_t limit, struct cli_table *s,
                                 struct buf *json)
{
    const char *cursor = NULL;
    int64_t n = 0;
    do {
        struct json *page = NULL;
        /* A cursor consists of letters and digits, so it needs no escaping. */
        const char *path =
            arena_printf(&r->arena, "/v1/keys?limit=%" PRId64 "%s%s%s", MIN(limit - n, 1000),
                         cli_flag(r->cli, "blocked") ? "&blocked=true" : "",
                         cursor ? "&cursor=" : "", cursor ? cursor : "");
        enum pawl_status st = remote_ask(
            r, &(struct client_ask){ .path = path, .list = "keys", .has = "key" }, &page);
        if (st != PAWL_OK)
            return st;
        const struct json *keys = json_member(page, "keys");
        for (const struct json *k = keys->first; k && n < limit; k = k->next, n++) {
            key_row(r, s, k);
            json_add_comma(json);
            buf_add_bytes(json, k->raw);
        }
        cursor = shown(&r->arena, page, "next");
        cli_progress(r->cli, "keys: %" PRId64, n);
    } while (cursor && n < limit);
    cli_progress_end(r->cli);
    return PAWL_OK;
}

static int run_keys(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "key",   "pending", "head", "head_status",
                                           "since", "note",    NULL };
    struct remote r;
    struct cli_table s;
    struct buf json;
    int64_t limit = 0;
    int code;
    (void)argc, (void)argv;
    cli_table_init(&s, columns);
    buf_init(&json, (size_t)512 << 20);
    buf_add_text(&json, "{\"keys\":[");
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = cli_int(cli, "limit", 1, 1000000, &limit, &r.err);
    if (st == PAWL_OK)
        st = keys_all(&r, limit, &s, &json);
    buf_add_text(&json, "]}");
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

static const struct option_row options_keys[] = {
    { "blocked", NULL, NULL, "only keys that a failed call blocks" },
    { "limit", "N", "100", "print at most this many keys" },
    { 0 },
};

const struct command cmd_keys = {
    .name = "keys",
    .summary = "list keys on which something waits, runs or is blocked",
    .usage = "",
    .about =
        "Calls of one key run one after another. The head of a key is its first call: the one\n"
        "that runs, that is next, or that blocks the key because it failed and was submitted\n"
        "with --on-dead block. pawl unblock lets a blocked key go on.",
    .example = "pawl keys\n"
               "pawl keys --blocked --json | jq -r '.keys[].key'",
    .options = options_keys,
    .reach = REACH_SERVER,
    .run = run_keys,
};

/* ---- unblock --------------------------------------------------------------------------------- */

static enum pawl_status unblock(struct remote *r, const char *key, const char *action,
                                struct json **out)
{
    struct buf body;
    buf_init(&body, 64 << 10);
    buf_add_text(&body, "{\"action\":");
    json_add_string(&body, bytes_of(action));
    buf_add_char(&body, '}');
    struct client_ask ask = { .path = remote_path(r, "/v1/keys/{KEY}/unblock", &key, ""),
                              .body = buf_bytes(&body),
                              .has = "key action" };
    enum pawl_status st = remote_ask(r, &ask, out);
    buf_release(&body);
    if (st != PAWL_UNKNOWN)
        return st;
    return remote_lost(
        r, arena_printf(&r->arena, "key \"%.200s\" may have been unblocked", key),
        "`pawl keys --blocked` tells, and whether another call of it blocks it by now");
}

static int run_unblock(struct cli *cli, int argc, char **argv)
{
    struct remote r;
    struct json *answer = NULL;
    int code;
    if (!argc)
        return cli_missing(cli, "KEY");
    if (argc != 2 || (strcmp(argv[1], "skip") != 0 && strcmp(argv[1], "retry") != 0))
        return cli_unknown(cli, "action", argc == 2 ? argv[1] : "", "skip or retry");
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = unblock(&r, argv[0], argv[1], &answer);
    if (st != PAWL_OK) {
        code = remote_fail(&r);
    } else if (cli->json) {
        code = remote_print_raw(&r, answer);
    } else {
        const char *id = shown(&r.arena, answer, "id");
        fprintf(cli->out, "%s: %s %s\n", argv[0],
                strcmp(argv[1], "skip") == 0 ? "skipped" : "retrying", id ? id : "?");
        code = cli_done(cli);
    }
    remote_close(&r);
    return code;
}

const struct command cmd_unblock = {
    .name = "unblock",
    .summary = "let a key go on that a failed call blocks",
    .usage = "KEY skip|retry",
    .about =
        "skip leaves the failed call as it ended and lets the next one run; retry runs it again,\n"
        "with no attempts used, before the calls behind it.",
    .example = "pawl call lab.fail '{\"permanent\": true}' --key desk-1 --on-dead block; "
               "pawl unblock desk-1 skip\n"
               "pawl call lab.fail '{\"permanent\": true}' --key desk-2 --on-dead block; "
               "pawl unblock desk-2 retry",
    .args_max = 2,
    .reach = REACH_SERVER,
    .run = run_unblock,
};
