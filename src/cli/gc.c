/*
 * gc.c - `pawl gc`: remove ended calls whose retention has passed, while the database is in use.
 *
 * A running server does the same every gc_interval. This command is for installations that switched
 * that off, or that need the space now. Each batch is one commit, so an interruption does no harm.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "base/text.h"
#include "base/world.h"
#include "cli/table.h"

/* Small enough that the count on the terminal moves, large enough that drawing it costs nothing. */
#define ROUND_MAX 2000
/* The default of --max; larger than any database. */
#define MAX_MAX 1000000000

struct tally {
    int64_t removed, forgotten;
};

static enum pawl_status collect(struct cli *cli, struct pawl *p, int64_t max, struct tally *t,
                                struct pawl_err *err)
{
    for (;;) {
        int64_t removed = 0, forgotten = 0;
        int64_t round = MIN(max - t->removed - t->forgotten, ROUND_MAX);
        enum pawl_status st = pawl_gc(p, round, &removed, &forgotten, err);
        t->removed += removed;
        t->forgotten += forgotten;
        if (st != PAWL_OK || removed + forgotten < round || t->removed + t->forgotten >= max)
            return st;
        cli_progress(cli, "gc: %" PRId64 " call%s removed, %" PRId64 " id%s forgotten", t->removed,
                     plural(t->removed), t->forgotten, plural(t->forgotten));
    }
}

static int answer(struct cli *cli, const struct tally *t, int64_t took_us)
{
    static const char *const columns[] = { "removed", "forgotten", "seconds", NULL };
    if (!cli->json) {
        cli_progress_end(cli);
        fprintf(cli->out, "%" PRId64 " call%s removed, %" PRId64 " id%s forgotten in %.3f s\n",
                t->removed, plural(t->removed), t->forgotten, plural(t->forgotten),
                (double)took_us / 1e6);
        return cli_done(cli);
    }
    struct cli_table s;
    cli_table_init(&s, columns);
    cli_table_int(&s, t->removed);
    cli_table_int(&s, t->forgotten);
    cli_table_seconds(&s, took_us);
    int code = cli_table_answer(cli, &s);
    cli_table_release(&s);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct tally t = { 0 };
    struct pawl_err err = { 0 };
    struct pawl *p = NULL;
    int64_t max = 0, began_us = world_mono(&world_real);
    struct pawl_options options = settings_options(&cli->settings);
    options.no_migrate = true; /* gc must not change the schema */
    options.gc_interval_us = -1;
    enum pawl_status st = cli_int(cli, "max", 1, MAX_MAX, &max, &err);
    if (st == PAWL_OK)
        st = cli_db_exists(cli, &err);
    if (st == PAWL_OK)
        st = pawl_open(&options, &p, &err);
    if (st == PAWL_OK)
        st = collect(cli, p, max, &t, &err);
    pawl_close(p);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    return answer(cli, &t, world_mono(&world_real) - began_us);
}

static const struct option_row options[] = {
    { "max", "N", "1000000000", "stop after about this many removed calls and forgotten ids" },
    { 0 },
};

const struct command cmd_gc = {
    .name = "gc",
    .summary = "remove ended calls whose retention has passed",
    .usage = "",
    .about =
        "Removes ended calls older than their `keep` (default: the setting `retention`): input\n"
        "and result are deleted, and the id is still refused. After `remember` more, the id is\n"
        "forgotten too. A call that has not ended is never removed. Runs of schedules older than\n"
        "`cron_runs_retention`, and signals whose keys need not be known any more, are removed\n"
        "too, and not counted. Works in small batches while the database is in use. pawl serve\n"
        "does this by itself every `gc_interval`.",
    .example = "pawl gc --db sqlite:orders.db\npawl gc --max 100000 --json",
    .options = options,
    .run = run,
};
