/*
 * bench.c - `pawl bench`: measures Pawl on this machine and this database, beside the same work on
 * plain SQLite, libpq or libmariadb.
 *
 * SQLite: on scratch files in the folder of the given database, so that the disk is the one that
 * matters and the database itself is never opened. A server: in scratch schemas, which this process
 * makes and removes, while a child process measures in them. Both are removed at the end, and also
 * when the program is interrupted.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/db.h"
#include "bench/engine.h"
#include "bench/rows.h"
#include "cli/cli.h"

/* ---- SQLite ---------------------------------------------------------------------------------- */

/* Static, because a signal handler removes them. */
static struct bench_files files;

static void interrupted(int sig)
{
    bench_files_remove(&files);
    _exit(128 + sig);
}

static void guard(void (*what)(int))
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    struct sigaction act = { .sa_handler = what };
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        sigaction(signals[i], &act, NULL);
}

/* The folder of a SQLite database. INVALID: no SQLite URL, or scratch files cannot be made there.
 */
static enum pawl_status folder_of(const char *url, char *out, size_t size, struct pawl_err *err)
{
    const char *path = cli_db_file(url), *slash = path ? strrchr(path, '/') : NULL;
    if (!path) {
        char safe[256];
        url_safe(url, safe, sizeof safe);
        return err_set(err, PAWL_INVALID,
                       "%s: bench measures sqlite:, postgres: and mysql: databases", safe);
    }
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

static int run_sqlite(struct cli *cli, const struct bench_beside *http)
{
    struct bench_table table = { .out = cli->out, .json = cli->json };
    struct bench_run bench = { .files = &files,
                               .size =
                                   cli_flag(cli, "quick") ? &bench_size_quick : &bench_size_user,
                               .table = &table,
                               .told = told,
                               .ctx = cli,
                               .http = http };
    struct pawl_err err = { 0 };
    char dir[900], engine[64] = "";
    const char *path = cli_db_file(cli_db(cli));
    if (path)
        snprintf(engine, sizeof engine, "%.*s", (int)(path - cli_db(cli)), cli_db(cli));
    bench.engine = engine;
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

/* ---- A server -------------------------------------------------------------------------------- */

/* The child process, which may be killed at any moment: it measures, and makes nothing that has to
 * be removed. */
_Noreturn static void measure(struct cli *cli, const struct bench_scratch *scratch,
                              const struct bench_beside *http, const sigset_t *mask)
{
    struct bench_table table = { .out = cli->out, .json = cli->json };
    struct bench_db bench = { .scratch = scratch,
                              .quick = cli_flag(cli, "quick"),
                              .table = &table,
                              .told = told,
                              .ctx = cli,
                              .http = http };
    struct pawl_err err = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    enum pawl_status st = bench_db(&bench, &err);
    cli_progress_end(cli);
    int code = st == PAWL_OK ? cli_done(cli) : cli_fail(cli, &err);
    fflush(cli->err);
    _exit(code);
}

/* Wait until the child has ended, or kill it when a signal comes. Returns the exit code. */
static int watch(pid_t child, const sigset_t *set)
{
    int status = 0, sig = 0;
    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigwait(set, &sig) == 0 && sig != SIGCHLD) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return 128 + sig;
        }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Signals are blocked while the schemas are made and handled afterwards: a schema that was made but
 * not recorded could not be found and removed. */
static int run_server(struct cli *cli, const struct bench_beside *http)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD };
    struct bench_scratch scratch;
    struct pawl_err err = { 0 };
    sigset_t set, before;
    int code = 0;
    sigemptyset(&set);
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    told(cli, "making its schemas");
    if (bench_scratch_make(&scratch, cli_db(cli), &err) == PAWL_OK) {
        fflush(cli->out);
        pid_t child = fork();
        if (child == 0)
            measure(cli, &scratch, http, &before);
        code = child > 0 ? watch(child, &set)
                         : cli_failf(cli, PAWL_BUSY, "cannot start a child process to measure in");
    } else {
        code = cli_fail(cli, &err);
    }
    if (bench_scratch_remove(&scratch, &err) != PAWL_OK) {
        int left = cli_fail(cli, &err);
        code = code ? code : left;
    }
    cli_progress_end(cli);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct bench_beside beside;
    char why[1200];
    bool http = bench_http_beside(&beside, why, sizeof why);
    if (!http)
        fprintf(cli->err, "pawl bench: skipping the figures over HTTP: %s\n", why);
    return bench_floor_of(cli_db(cli)) ? run_server(cli, http ? &beside : NULL)
                                       : run_sqlite(cli, http ? &beside : NULL);
}

static const struct option_row options[] = {
    { "quick", NULL, NULL, "shorter rounds, rougher figures" },
    { 0 },
};

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure Pawl on this machine and this database",
    .usage = "",
    .about =
        "Accepts, drains and runs calls that do nothing, beside the same work on straight\n"
        "SQLite, libpq or libmariadb with the same tables (\"beside\"; a ratio of 1 would mean\n"
        "that Pawl costs nothing). Then serves the sample echo, when it lies beside the\n"
        "program, and asks it over HTTP from the same machine. Your Pawl and your tables are\n"
        "never touched: on SQLite it uses scratch files pawlbench-* in the folder of the\n"
        "database, on a server schemas (MariaDB, MySQL: tables) pawlbench_*, which its user\n"
        "must be allowed to make. It removes them again, also when it is interrupted, and says\n"
        "what it could not remove; what a kill -9 leaves can be dropped by hand. Takes 15 to\n"
        "40 seconds, writes a few hundred MB, and wants the machine for itself: not beside work\n"
        "that matters.",
    .example = "pawl bench --quick --db sqlite:orders.db",
    .options = options,
    .run = run,
};
