/*
 * version.c - `pawl version`: print the program's version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "cli/table.h"

static int run(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "version", "module_abi", NULL };
    (void)argc, (void)argv;
    if (!cli->json) {
        fprintf(cli->out, "pawl %s\n", PAWL_VERSION);
        return cli_done(cli);
    }
    struct cli_table s;
    cli_table_init(&s, columns);
    cli_table_text(&s, "%s", PAWL_VERSION);
    cli_table_int(&s, PAWL_MODULE_ABI);
    int code = cli_table_answer(cli, &s);
    cli_table_release(&s);
    return code;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the program's version",
    .usage = "",
    .example = "pawl version",
    .reach = REACH_NOTHING,
    .run = run,
};
