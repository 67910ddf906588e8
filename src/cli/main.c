/*
 * main.c - the program `pawl`: find the command, read its options, run it.
 *
 * Exit codes come from the status map; no command calls exit().
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"

/* If a standard stream is closed, the next file that is opened would take its number, and error
 * messages would be written into that file. /dev/null opened the wrong way fails as a closed stream
 * does. */
static void streams_hold(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            _exit(err_exit(PAWL_BUSY));
}

static bool wants(int argc, char **argv, const char *option)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

static void cli_init(struct cli *cli, int argc, char **argv)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    /* A dumb terminal would print the escape sequences. */
    bool dumb = term && strcmp(term, "dumb") == 0;
    bool plain = dumb || (no_colour && *no_colour);
    *cli = (struct cli){ .out = stdout, .err = stderr };
    cli->json = wants(argc, argv, "--json");
    cli->colour = !plain && !cli->json && isatty(STDOUT_FILENO);
    cli->live = !dumb && isatty(STDERR_FILENO);
    cli->person = isatty(STDERR_FILENO) && isatty(STDIN_FILENO);
}

static int unknown_command(struct cli *cli, const char *name)
{
    struct nearest n = { .asked = name };
    for (size_t i = 0; commands[i]; i++)
        nearest_offer(&n, commands[i]->name);
    /* What people call schedules is no misspelling of the command's name. */
    const char *like = strncmp(name, "schedule", 8) == 0 ? "cron" : nearest_name(&n);
    if (like)
        return cli_failf(cli, PAWL_INVALID, "unknown command \"%.60s\"; did you mean %s?", name,
                         like);
    return cli_failf(cli, PAWL_INVALID, "unknown command \"%.60s\"; pawl help lists them", name);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct pawl_err err = { 0 };
    int n = 0;
    if (wants(argc, argv, "--help") || wants(argc, argv, "-h")) {
        help_command(cli, cli->command);
        return cli_done(cli);
    }
    bool alone = cli->command->reach == REACH_NOTHING;
    enum pawl_status st = settings_init(&cli->settings, &err);
    if (alone)
        st = PAWL_OK;
    if (st == PAWL_OK)
        st = options_read(cli, argc, argv, &n, &err);
    if (st == PAWL_OK && !alone)
        st = conf_read(&cli->settings, cli_option(cli, "config"), &err);
    if (st == PAWL_OK && cli->command->reach == REACH_DATABASE)
        st = settings_settle(&cli->settings, &err);
    int code = st == PAWL_OK ? cli->command->run(cli, n, argv) : cli_fail(cli, &err);
    settings_release(&cli->settings);
    return code;
}

/* There is no command: print the overview when it was asked for, else report the mistake. */
static int run_without(struct cli *cli, int argc, char **argv)
{
    bool asked = wants(argc, argv, "--help") || wants(argc, argv, "-h");
    if (!asked) {
        cli->out = stderr; /* nothing was asked for, so stdout stays empty */
        cli->colour = false;
    }
    help_overview(cli);
    return asked ? cli_done(cli) : err_exit(PAWL_INVALID);
}

int main(int argc, char **argv)
{
    struct cli cli;
    struct pawl_err err = { 0 };
    int at = 0;
    streams_hold();
    argc -= argc > 0;
    argv++;
    cli_init(&cli, argc, argv);
    if (command_place(argc, argv, &at, &err) != PAWL_OK)
        return cli_fail(&cli, &err);
    bool version = wants(at, argv, "--version");
    if (at == argc && !version)
        return run_without(&cli, argc, argv);
    cli.command = command_find(version ? "version" : argv[at]);
    if (!cli.command)
        return unknown_command(&cli, argv[at]);
    if (version) /* wherever it stands on the command line */
        return cli.command->run(&cli, 0, argv);
    /* Remove the command's name; the options before and behind it are read together. */
    memmove(&argv[at], &argv[at + 1], (size_t)(argc - at) * sizeof(*argv));
    return run(&cli, argc - 1, argv);
}

/* ---- The database ---------------------------------------------------------------------------- */

const char *cli_db(const struct cli *cli)
{
    return cli->settings.v[SET_DB].text;
}

const char *cli_schema(const struct cli *cli)
{
    return cli->settings.v[SET_SCHEMA].text;
}

const char *cli_db_file(const char *url)
{
    static const char scheme[] = "sqlite:";
    const char *at = strstr(url, scheme);
    return at && (at == url || at[-1] == '+') ? at + sizeof scheme - 1 : NULL;
}

enum pawl_status cli_db_exists(const struct cli *cli, struct pawl_err *err)
{
    struct stat found;
    const char *path = cli_db_file(cli_db(cli));
    if (!path || !*path || stat(path, &found) == 0)
        return PAWL_OK; /* the engine reports whether the file is usable */
    return err_set(err, PAWL_NOT_FOUND,
                   "database \"%.300s\": no such file; pawl migrate up creates it", path);
}
