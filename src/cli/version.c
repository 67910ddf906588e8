/*
 * version.c - `pawl version`: which program this is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "cli/sheet.h"

static int run(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "version", "module_abi", NULL };
    (void)argc, (void)argv;
    if (!cli->json) {
        fprintf(cli->out, "pawl %s\n", PAWL_VERSION);
        return cli_done(cli);
    }
    struct sheet s;
    sheet_init(&s, columns);
    sheet_text(&s, "%s", PAWL_VERSION);
    sheet_int(&s, PAWL_MODULE_ABI);
    int code = sheet_answer(cli, &s);
    sheet_release(&s);
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
