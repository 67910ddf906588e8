/*
 * backup.c - `pawl backup FILE`: a consistent copy of the database while it is in use.
 *
 * The copy is written to FILE.partial and renamed to FILE when it is complete, synced and checked.
 * A file called FILE is therefore always a whole backup, and an existing file is never overwritten.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/db_command.h"
#include "cli/dump.h"
#include "cli/table.h"

#define WORK_LEN_MAX (16 << 20)
#define PARTIAL ".partial"

struct job {
    struct cli *cli;
    struct arena arena;
    const char *path, *partial;
};

static void draw_pages(void *ctx, int64_t done, int64_t total)
{
    cli_progress(ctx, "backup: %" PRId64 " of %" PRId64 " pages", done, total);
}

static void draw_bytes(void *ctx, int64_t done, int64_t total)
{
    (void)total;
    cli_progress(ctx, "backup: %.1f MiB", (double)done / (1 << 20));
}

/* ---- Copying --------------------------------------------------------------------------------- */

/* SQLite: the engine makes the copy. */
static enum pawl_status copy_engine(struct job *j, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf conf = db_command_conf(j->cli, STORE_READER);
    enum pawl_status st = cli_db_exists(j->cli, err);
    if (st == PAWL_OK)
        st = store_open(&conf, &s, err);
    if (st != PAWL_OK)
        return st;
    return store_backup(
        s, &(struct backup){ .path = j->partial, .progress = draw_pages, .ctx = j->cli }, err);
}

/* The migration steps that the database has applied. MariaDB and MySQL are dumped table by table,
 * and an older schema has fewer tables than this program knows. */
static enum pawl_status applied_steps(const struct store_conf *conf, struct steps *v,
                                      struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct schema has = { 0 };
    enum pawl_status st = store_open(conf, &s, err);
    if (st == PAWL_OK)
        st = store_schema(s, &has, err);
    if (st == PAWL_OK && has.version == 0)
        st = err_set(err, PAWL_STATE,
                     "the database has no schema \"%s\" that this account can see: there is "
                     "nothing to copy; run pawl migrate up first, or set --schema",
                     conf->schema);
    v->n = MIN(v->n, (size_t)has.version);
    return st;
}

/* Database servers: the server's dump program makes the copy. */
static enum pawl_status copy_server(struct job *j, struct pawl_err *err)
{
    struct store_conf conf = db_command_conf(j->cli, STORE_READER);
    struct dump_plan plan;
    struct steps steps;
    struct dump_run run = { .path = j->partial, .progress = draw_bytes, .ctx = j->cli };
    int64_t timeout_us = 0;
    enum pawl_status st = cli_duration(j->cli, "timeout", &timeout_us, err);
    if (st == PAWL_OK)
        st = store_steps(&conf, &j->arena, &steps, err);
    if (st == PAWL_OK && dump_by_table(conf.url))
        st = applied_steps(&conf, &steps, err);
    if (st == PAWL_OK)
        st = dump_plan(conf.url, conf.schema, &steps, &j->arena, &plan, err);
    if (st != PAWL_OK)
        return st;
    run.until_us = world_mono(&world_real) + timeout_us;
    return dump_run(&plan, &run, err);
}

/* ---- Renaming -------------------------------------------------------------------------------- */

static enum pawl_status name_free(const char *path, struct pawl_err *err)
{
    struct stat s;
    if (lstat(path, &s) != 0)
        return PAWL_OK; /* other errors are reported when the file is created */
    return err_set(err, PAWL_INVALID,
                   "\"%.150s\" exists already, and a backup overwrites no file; name another FILE",
                   path);
}

static bool folder_sync(struct job *j)
{
    char *copy = arena_text(&j->arena, bytes_of(j->path));
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* rename() would overwrite a file that another process created meanwhile. */
static enum pawl_status name_take(struct job *j, struct pawl_err *err)
{
    int rc = renameat2(AT_FDCWD, j->partial, AT_FDCWD, j->path, RENAME_NOREPLACE);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) {
        rc = link(j->partial, j->path);
        if (rc == 0)
            unlink(j->partial);
    }
    if (rc == 0 && folder_sync(j))
        return PAWL_OK;
    enum pawl_status st =
        err_set(err, PAWL_BUSY, "the backup could not be renamed to \"%.150s\": %s", j->path,
                strerror(errno));
    if (rc != 0)
        unlink(j->partial);
    return st;
}

/* ---- The command ----------------------------------------------------------------------------- */

static enum pawl_status backup(struct job *j, struct pawl_err *err)
{
    j->partial = arena_printf(&j->arena, "%s" PARTIAL, j->path);
    if (!j->partial)
        return err_no_memory(err, "a backup");
    enum pawl_status st = name_free(j->path, err);
    if (st == PAWL_OK && access(j->partial, F_OK) == 0)
        st = err_set(err, PAWL_INVALID,
                     "\"%.150s\" exists: another backup is running, or one was interrupted; if "
                     "none is running, remove the file",
                     j->partial);
    if (st == PAWL_OK)
        st = dump_for(cli_db(j->cli)) ? copy_server(j, err) : copy_engine(j, err);
    return st == PAWL_OK ? name_take(j, err) : st;
}

static int answer(struct job *j, int64_t took_us)
{
    static const char *const columns[] = { "file", "bytes", "seconds", NULL };
    struct stat s = { 0 };
    stat(j->path, &s);
    if (!j->cli->json) {
        cli_progress_end(j->cli);
        fprintf(j->cli->out, "%s: %lld bytes in %.3f s\n", j->path, (long long)s.st_size,
                (double)took_us / 1e6);
        return cli_done(j->cli);
    }
    struct cli_table table;
    cli_table_init(&table, columns);
    cli_table_text(&table, "%s", j->path);
    cli_table_int(&table, (int64_t)s.st_size);
    cli_table_seconds(&table, took_us);
    int code = cli_table_answer(j->cli, &table);
    cli_table_release(&table);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct job j = { .cli = cli, .path = argc ? argv[0] : "" };
    struct pawl_err err = { 0 };
    int64_t began_us = world_mono(&world_real);
    if (!*j.path)
        return cli_missing(cli, "FILE");
    arena_init(&j.arena, WORK_LEN_MAX);
    enum pawl_status st = backup(&j, &err);
    int code = st == PAWL_OK ? answer(&j, world_mono(&world_real) - began_us) : cli_fail(cli, &err);
    arena_release(&j.arena);
    return code;
}

static const struct option_row options[] = {
    { "timeout", "D", "1h", "how long pg_dump or mariadb-dump may take" },
    { 0 },
};

const struct command cmd_backup = {
    .name = "backup",
    .summary = "copy the database into a file while it is in use",
    .usage = "FILE",
    .about =
        "FILE must not exist; when the command succeeds it is complete, synced and checked, and\n"
        "shows the database as it was at one moment. SQLite: a copy of the whole database file,\n"
        "with the tables of the application. PostgreSQL: Pawl's schema, made by pg_dump; restore\n"
        "it with pg_restore. MariaDB and MySQL: Pawl's tables as SQL, made by mariadb-dump or\n"
        "mysqldump. The dump program must be in PATH; it gets the password in its environment.\n"
        "The account must be the owner of the schema, or the --admin role of pawl migrate\n"
        "grants.",
    .example = "pawl backup orders-backup.db --db sqlite:orders.db\n"
               "pawl backup \"orders-$(date +%s).db\" --json",
    .options = options,
    .args_max = 1,
    .run = run,
};
