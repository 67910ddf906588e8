/*
 * commands.c - the one table of commands, and the options that each of them has besides its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cli/cli.h"

const struct command *const commands[] = {
    &cmd_serve,         &cmd_call,       &cmd_submit,  &cmd_batch,  &cmd_get,    &cmd_list,
    &cmd_attempts,      &cmd_cancel,     &cmd_retry,   &cmd_work,   &cmd_queues, &cmd_pause,
    &cmd_resume,        &cmd_keys,       &cmd_unblock, &cmd_object, &cmd_nodes,  &cmd_leaders,
    &cmd_drain,         &cmd_undrain,    &cmd_migrate, &cmd_doctor, &cmd_gc,     &cmd_archive,
    &cmd_requeue_stuck, &cmd_backup,     &cmd_bench,   &cmd_events, &cmd_token,  &cmd_version,
    &cmd_help,          &cmd_completion, &cmd_man,     NULL,
};

const struct option_row options_common[] = {
    { "config", "FILE", "$PAWL_CONFIG, or pawl.conf here", "the file of settings" },
    { "json", NULL, NULL, "one JSON value on stdout, for programs" },
    { "help", NULL, NULL, "print this" },
    { 0 },
};

/* These are settings, too; they stand here because everybody who reaches that far needs them. */
static const struct option_row options_database[] = {
    { "db", "URL", "$PAWL_DB, or sqlite:pawl.db",
      "the database; env:NAME takes it from that variable" },
    { "schema", "NAME", "$PAWL_SCHEMA, or pawl",
      "which Pawl in that database: a prefix on SQLite" },
    { 0 },
};

static const struct option_row options_server[] = {
    { "url", "URL", "$PAWL_URL, or http://127.0.0.1:7295", "the server; PAWL_TOKEN says who asks" },
    { 0 },
};

const struct option_row *options_of(enum reach reach)
{
    static const struct option_row none = { 0 };
    switch (reach) {
    case REACH_DATABASE:
        return options_database;
    case REACH_SERVER:
        return options_server;
    case REACH_NOTHING:
        break;
    }
    return &none;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
