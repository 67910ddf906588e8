/*
 * token.c - `pawl token new NAME ROLE`: generate a token and the line for the settings file.
 *
 * It opens no database. The line holds only the token's hash, so the token itself is shown once and
 * stored nowhere.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "cli/table.h"

/* 256 random bits: two lease tokens of 128 bits each. */
static void secret_make(char out[80])
{
    char a[33], b[33];
    token_text(token_make(&world_real), a);
    token_text(token_make(&world_real), b);
    snprintf(out, 80, "pawl_%s%s", a, b);
}

/* The line stands in quotes in a file, and between spaces in PAWL_TOKENS. */
static const char *line_fault(struct bytes name)
{
    const char *fault = name_fault(name);
    for (size_t i = 0; !fault && i < name.len; i++)
        if (strchr(": \t\"\\", name.data[i]))
            fault = "must have no colon, space, quote or backslash";
    return fault;
}

static enum pawl_status check_queues(const char *list, const char *role, struct pawl_err *err)
{
    if (strcmp(role, "app") != 0)
        return err_set(err, PAWL_INVALID, "option --queues-of is for the role app, not for %s",
                       role);
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        const char *fault = line_fault((struct bytes){ at, (size_t)(end - at) });
        if (fault)
            return err_set(err, PAWL_INVALID, "option --queues-of: queue \"%.*s\" %s",
                           (int)MIN(end - at, 100), at, fault);
    }
    return PAWL_OK;
}

static enum pawl_status check(int argc, char **argv, const char *queues, struct pawl_err *err)
{
    if (argc != 3 || strcmp(argv[0], "new") != 0)
        return err_set(err, PAWL_INVALID,
                       "usage: pawl token new NAME ROLE; ROLE is admin, app or monitor");
    const char *fault = line_fault(bytes_of(argv[1]));
    if (fault)
        return err_set(err, PAWL_INVALID, "NAME \"%.100s\" %s", argv[1], fault);
    if (strcmp(argv[2], "admin") && strcmp(argv[2], "app") && strcmp(argv[2], "monitor"))
        return err_set(err, PAWL_INVALID,
                       "ROLE \"%.60s\" is unknown; expected admin, app or monitor", argv[2]);
    return queues ? check_queues(queues, argv[2], err) : PAWL_OK;
}

static int answer(struct cli *cli, const char *secret, const char *line)
{
    static const char *const columns[] = { "token", "line", NULL };
    struct cli_table s;
    if (!cli->json) {
        fprintf(cli->out, "%s\n", secret);
        int code = cli_done(cli);
        fprintf(cli->err,
                "This is the token; it is not stored anywhere and not shown again.\n"
                "Put this into pawl.conf, beside the other tokens if there are any, and send the\n"
                "server a SIGHUP:\n\n    tokens += {\"%s\"}\n\n"
                "Programs send it as Authorization: Bearer ...; pawl takes it from PAWL_TOKEN.\n",
                line);
        return code;
    }
    cli_table_init(&s, columns);
    cli_table_text(&s, "%s", secret);
    cli_table_text(&s, "%s", line);
    int code = cli_table_answer(cli, &s);
    cli_table_release(&s);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct pawl_err err = { 0 };
    char secret[80], hex[65] = "";
    unsigned char hash[32];
    struct buf line;
    const char *queues = cli_option(cli, "queues-of");
    if (check(argc, argv, queues, &err) != PAWL_OK)
        return cli_fail(cli, &err);
    secret_make(secret);
    if (!digest_plain(bytes_of(secret), hash))
        return cli_failf(cli, PAWL_NO_MEMORY, "no memory for a hash");
    for (size_t i = 0; i < sizeof(hash); i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    buf_init(&line, 1 << 20);
    buf_addf(&line, "%s:%s:%s%s", argv[1], argv[2], hex, queues ? ":" : "");
    buf_add_text(&line, queues ? queues : "");
    buf_add_char(&line, '\0');
    int code = buf_ok(&line) ? answer(cli, secret, line.data)
                             : cli_failf(cli, PAWL_NO_MEMORY, "no memory for the line");
    buf_release(&line);
    return code;
}

static const struct option_row options[] = {
    { "queues-of", "A,B", NULL, "app: queues it may work on; default all" },
    { 0 },
};

const struct command cmd_token = {
    .name = "token",
    .summary = "make a token for a person or a program",
    .usage = "new NAME ROLE",
    .about =
        "ROLE is admin (everything), app (submit calls; see and cancel its own; work on its\n"
        "queues) or monitor (see everything except inputs, results, errors, states and tags).\n"
        "Prints the token on stdout and the line for the setting `tokens` on stderr. The token\n"
        "is not stored and cannot be shown again.",
    .example = "pawl token new ann admin\npawl token new mailer app --queues-of mail --json",
    .options = options,
    .args_max = 3,
    .reach = REACH_NOTHING,
    .run = run,
};
