/*
 * commands.c - the table of commands, and the options that commands share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cli/cli.h"

const struct command *const commands[] = {
    &cmd_serve,    &cmd_call,   &cmd_submit,  &cmd_batch,         &cmd_get,        &cmd_list,
    &cmd_attempts, &cmd_cancel, &cmd_retry,   &cmd_work,          &cmd_queues,     &cmd_pause,
    &cmd_resume,   &cmd_limits, &cmd_cron,    &cmd_workflow,      &cmd_keys,       &cmd_unblock,
    &cmd_object,   &cmd_nodes,  &cmd_leaders, &cmd_drain,         &cmd_undrain,    &cmd_migrate,
    &cmd_doctor,   &cmd_gc,     &cmd_archive, &cmd_requeue_stuck, &cmd_backup,     &cmd_bench,
    &cmd_events,   &cmd_token,  &cmd_version, &cmd_help,          &cmd_completion, &cmd_man,
    NULL,
};

const struct option_row options_common[] = {
    { "config", "FILE", "$PAWL_CONFIG, else ./pawl.conf", "read settings from this file" },
    { "json", NULL, NULL, "print one JSON value on stdout instead of text" },
    { "help", NULL, NULL, "print this help" },
    { 0 },
};

/* These are settings; the help of every command with this reach lists them. */
static const struct option_row options_database[] = {
    { "db", "URL", "$PAWL_DB, else sqlite:pawl.db",
      "sqlite:PATH, postgres://..., mysql://..., or env:NAME for the URL in variable NAME" },
    { "schema", "NAME", "$PAWL_SCHEMA, else pawl",
      "schema that holds Pawl's tables; on SQLite, MariaDB and MySQL the prefix of their names" },
    { 0 },
};

static const struct option_row options_server[] = {
    { "url", "URL", "$PAWL_URL, else http://127.0.0.1:7295",
      "address of the server; the token is taken from PAWL_TOKEN" },
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
