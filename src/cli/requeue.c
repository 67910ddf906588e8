/*
 * requeue.c - `pawl requeue-stuck`: end leases that are older than a given age, so that other
 * workers can run their calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "cli/db_command.h"
#include "cli/table.h"

struct tally {
    int64_t leases, calls, ended;
};

static enum pawl_status end_all(struct cli *cli, struct store *s, int64_t before_us,
                                struct tally *t, struct pawl_err *err)
{
    struct op op = { .kind = OP_REQUEUE };
    do {
        op.requeue = (struct requeue){ .max = REQUEUE_STEP_MAX,
                                       .claimed_before_us = before_us,
                                       .fail_lost = strcmp(cli->settings.v[SET_RECLAIM_ACTION].text,
                                                           "fail") == 0 };
        enum pawl_status st = db_command_step(s, &op, err);
        if (st != PAWL_OK)
            return st;
        t->leases += op.requeue.leases;
        t->calls += op.requeue.reclaimed;
        t->ended += (int64_t)op.n_ended;
        cli_progress(cli, "requeue-stuck: %" PRId64 " call%s", t->calls, plural(t->calls));
    } while (op.requeue.more);
    return PAWL_OK;
}

static int answer(struct cli *cli, const struct tally *t, int64_t took_us)
{
    static const char *const columns[] = { "leases", "calls", "ended", "seconds", NULL };
    if (!cli->json) {
        cli_progress_end(cli);
        fprintf(cli->out,
                "%" PRId64 " lease%s ended in %.3f s: %" PRId64 " call%s pending again, %" PRId64
                " ended\n",
                t->leases, plural(t->leases), (double)took_us / 1e6, t->calls - t->ended,
                plural(t->calls - t->ended), t->ended);
        return cli_done(cli);
    }
    struct cli_table s;
    cli_table_init(&s, columns);
    cli_table_int(&s, t->leases);
    cli_table_int(&s, t->calls);
    cli_table_int(&s, t->ended);
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
    struct tally t = { 0 };
    int64_t before_us = 0, began_us = world_mono(&world_real);
    enum pawl_status st = db_command_open_before(cli, "older-than", &s, &before_us, &err);
    if (st == PAWL_OK)
        st = end_all(cli, s, before_us, &t, &err);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    return answer(cli, &t, world_mono(&world_real) - began_us);
}

static const struct option_row options[] = {
    { "older-than", "D", "10m", "take back calls that were claimed longer ago than this" },
    { 0 },
};

const struct command cmd_requeue_stuck = {
    .name = "requeue-stuck",
    .summary = "take back calls that have been processing for too long",
    .usage = "",
    .about =
        "Ends every lease that was claimed longer ago than D, even if its worker is alive. Its\n"
        "calls become pending again and count one lost attempt: `max_lost` applies, and the\n"
        "order within a key is kept. Results that the former worker still sends are refused;\n"
        "what it did outside the database may then happen twice. Choose D longer than the\n"
        "longest call takes. Calls of a dead node are taken back without this command.",
    .example =
        "pawl requeue-stuck --db sqlite:orders.db\npawl requeue-stuck --older-than 1h --json",
    .options = options,
    .run = run,
};
