/*
 * bench.c - `pawl bench`: what Pawl does on this machine and this disk, beside straight SQLite.
 *
 * Works on scratch files of its own in the folder of the database it is given, so that the disk is
 * the one that matters and the database itself is never opened. They are removed at the end, and
 * also when it is interrupted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/bench_rows.h"
#include "cli/cli.h"

/* What a signal handler may still touch. */
static struct bench_files files;

static void interrupted(int sig)
{
    bench_files_remove(&files);
    _exit(128 + sig);
}

static void guard(void (*what)(int))
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act = { .sa_handler = what };
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        sigaction(signals[i], &act, NULL);
}

/* The folder a SQLite database lies in. */
static enum pawl_status folder_of(const char *url, char *out, size_t size, struct pawl_err *err)
{
    static const char scheme[] = "sqlite:";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0) {
        char safe[256];
        url_safe(url, safe, sizeof safe);
        return err_set(err, PAWL_INVALID, "%s: bench measures sqlite: databases", safe);
    }
    const char *path = url + sizeof scheme - 1, *slash = strrchr(path, '/');
    size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (len >= size)
        return err_set(err, PAWL_INVALID, "the folder's name is too long: %.100s...", path);
    snprintf(out, size, "%.*s", len ? (int)len : 1, len ? path : ".");
    if (access(out, W_OK) != 0)
        return err_set(err, PAWL_INVALID, "folder \"%s\": scratch files cannot be made there", out);
    return PAWL_OK;
}

static void told(void *ctx, const char *what)
{
    cli_progress(ctx, "bench: %s", what);
}

static int run(struct cli *cli, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct bench_table table = { .out = cli->out, .json = cli->json };
    struct bench_run bench = { .files = &files,
                               .size =
                                   cli_flag(cli, "quick") ? &bench_size_quick : &bench_size_user,
                               .table = &table,
                               .told = told,
                               .ctx = cli };
    struct pawl_err err = { 0 };
    struct bench_beside beside;
    char dir[900], why[1200];
    if (bench_http_beside(&beside, why, sizeof why))
        bench.http = &beside;
    else
        fprintf(cli->err, "pawl bench: nothing is measured over HTTP: %s\n", why);
    enum pawl_status st = folder_of(cli_db(cli), dir, sizeof dir, &err);
    if (st == PAWL_OK)
        st = bench_files_name(dir, &files, &err);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    guard(interrupted);
    st = bench_rows(&bench, &err);
    bench_files_remove(&files);
    guard(SIG_DFL);
    cli_progress_end(cli);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    return cli_done(cli);
}

static const struct option_row options[] = {
    { "quick", NULL, NULL, "shorter rounds, rougher figures" },
    { 0 },
};

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure Pawl on this machine and this disk",
    .usage = "",
    .about =
        "Accepts, drains and runs calls that do nothing, beside the same work on straight SQLite\n"
        "with the same tables (\"beside\"; a ratio of 1 would mean that Pawl costs nothing). Then\n"
        "serves the sample echo, when it lies beside the program, and asks it over HTTP from the\n"
        "same machine. Uses scratch files pawlbench-* in the folder of the database, never the\n"
        "database itself, and removes them again. Takes 15 to 30 seconds, and wants the machine\n"
        "for itself.",
    .example = "pawl bench --quick --db sqlite:orders.db",
    .options = options,
    .run = run,
};
