/*
 * state.c - `pawl queues` and `pawl nodes`: how things stand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/remote.h"

static int show(struct cli *cli, const char *path, const char *list, const char *const *columns)
{
    struct remote r;
    struct json *answer = NULL;
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = remote_ask(&r, path, BYTES_NONE, &answer);
    int code = st == PAWL_OK ? remote_table(&r, answer, list, columns) : remote_fail(&r);
    remote_close(&r);
    return code;
}

static int run_queues(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "queue",
                                           "paused",
                                           "pending",
                                           "due",
                                           "processing",
                                           "oldest_pending_seconds",
                                           "accepted_per_second",
                                           "ended_per_second",
                                           NULL };
    (void)argc, (void)argv;
    return show(cli, "/v1/queues", "queues", columns);
}

static int run_nodes(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "node",         "status",  "slots",   "busy",
                                           "host",         "address", "version", "started_at",
                                           "heartbeat_at", NULL };
    (void)argc, (void)argv;
    return show(cli, "/v1/nodes", "nodes", columns);
}

const struct command cmd_queues = {
    .name = "queues",
    .summary = "show the queues and what waits in them",
    .usage = "",
    .example = "pawl queues\npawl queues --json | jq '.queues[] | select(.paused)'",
    .reach = REACH_SERVER,
    .run = run_queues,
};

const struct command cmd_nodes = {
    .name = "nodes",
    .summary = "show the processes that work on the database",
    .usage = "",
    .example = "pawl nodes",
    .reach = REACH_SERVER,
    .run = run_nodes,
};
