/*
 * commands.c - the one table of commands, and the options that each of them has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cli/cli.h"

const struct command *const commands[] = { &cmd_migrate, &cmd_doctor, &cmd_gc, &cmd_bench,
                                           &cmd_version, &cmd_help,   NULL };

/* --db and --schema are settings, too; they stand here because everybody needs them. */
const struct option_row options_common[] = {
    { "db", "URL", "$PAWL_DB, or sqlite:pawl.db",
      "the database; env:NAME takes it from that variable" },
    { "schema", "NAME", "$PAWL_SCHEMA, or pawl",
      "which Pawl in that database: a prefix on SQLite" },
    { "json", NULL, NULL, "one JSON value on stdout, for programs" },
    { "help", NULL, NULL, "print this" },
    { 0 },
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
