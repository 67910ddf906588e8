/*
 * archive.c - `pawl archive`: move ended calls from the ledger's tables into the archive table.
 *
 * The cutoff time is read once, from the database's clock. Each step copies and removes a batch of
 * calls in one commit, so after an interruption every call is either in the ledger or in the
 * archive, never in both.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "base/limits.h"
#include "base/text.h"
#include "cli/db_command.h"
#include "cli/table.h"

static enum pawl_status move_all(struct cli *cli, struct store *s, int64_t before_us,
                                 int64_t *archived, struct pawl_err *err)
{
    struct op op = { .kind = OP_GC };
    int64_t after_seq = 0;
    do {
        op.gc = (struct gc){ .max = GC_STEP_MAX,
                             .ended_before_us = before_us,
                             .after_seq = after_seq,
                             .archive = true };
        enum pawl_status st = db_command_step(s, &op, err);
        if (st != PAWL_OK)
            return st;
        *archived += op.gc.removed;
        after_seq = op.gc.next_seq;
        cli_progress(cli, "archive: %" PRId64 " call%s", *archived, plural(*archived));
    } while (op.gc.more);
    return PAWL_OK;
}

static int answer(struct cli *cli, int64_t archived, int64_t before_us, int64_t took_us)
{
    static const char *const columns[] = { "archived", "ended_before", "seconds", NULL };
    char before[TIME_TEXT_LEN + 1];
    time_text(before_us, before);
    if (!cli->json) {
        cli_progress_end(cli);
        fprintf(cli->out, "%" PRId64 " call%s that ended before %s archived in %.3f s\n", archived,
                plural(archived), before, (double)took_us / 1e6);
        return cli_done(cli);
    }
    struct cli_table s;
    cli_table_init(&s, columns);
    cli_table_int(&s, archived);
    cli_table_text(&s, "%s", before);
    cli_table_seconds(&s, took_us);
    int code = cli_table_answer(cli, &s);
    cli_table_release(&s);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    (void)argc, (void)argv;
    AUTO(store_end) struct store *s = NULL;
    struct pawl_err err = { 0 };
    int64_t before_us = 0, archived = 0, began_us = world_mono(&world_real);
    enum pawl_status st = db_command_open_before(cli, "older-than", &s, &before_us, &err);
    if (st == PAWL_OK)
        st = move_all(cli, s, before_us, &archived, &err);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    return answer(cli, archived, before_us, world_mono(&world_real) - began_us);
}

static const struct option_row options[] = {
    { "older-than", "D", "30d", "archive calls that ended longer ago than this" },
    { 0 },
};

const struct command cmd_archive = {
    .name = "archive",
    .summary = "move ended calls into the archive table",
    .usage = "",
    .about =
        "Copies ended calls with input and result into the table `archive` of the schema (SQLite:\n"
        "pawl_archive), one readable row each, and removes them from the other tables as gc does:\n"
        "their ids are still refused. A call that has not ended, or that blocks its key, stays.\n"
        "Calls that retention has removed are not archived: keep `retention` longer than D. Works\n"
        "in small steps while the database is in use, one commit each, and can be interrupted.",
    .example = "pawl archive --db sqlite:orders.db\npawl archive --older-than 90d --json",
    .options = options,
    .run = run,
};
