/*
 * state.c - `pawl queues`, `nodes` and `leaders` show the cluster's state; `drain` and `undrain`
 * change a node's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/remote.h"

/* columns[0] is what every row has. */
static int show(struct cli *cli, const char *path, const char *list, const char *const *columns)
{
    struct remote r;
    struct json *answer = NULL;
    enum pawl_status st = remote_open(&r, cli);
    if (st == PAWL_OK)
        st = remote_ask(&r, &(struct client_ask){ .path = path, .list = list, .has = columns[0] },
                        &answer);
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
    static const char *const columns[] = { "node",    "status",     "slots",        "busy",
                                           "cpu",     "memory",     "connections",  "host",
                                           "address", "started_at", "heartbeat_at", "has",
                                           NULL };
    (void)argc, (void)argv;
    return show(cli, "/v1/nodes", "nodes", columns);
}

static int run_leaders(struct cli *cli, int argc, char **argv)
{
    static const char *const columns[] = { "role",        "node",        "epoch",
                                           "acquired_at", "lease_until", NULL };
    (void)argc, (void)argv;
    return show(cli, "/v1/leaders", "leaders", columns);
}

static int drain_to(struct cli *cli, const char *node, const char *action)
{
    struct remote r;
    struct json *answer = NULL;
    enum pawl_status st = remote_open(&r, cli);
    struct client_ask ask = { .body = BYTES("{}"), .has = "node status" };
    if (st == PAWL_OK) {
        ask.path = remote_path(&r, "/v1/nodes/{NODE}/", &node, action);
        st = remote_ask(&r, &ask, &answer);
    }
    if (st == PAWL_UNKNOWN)
        st = remote_lost(
            &r, arena_printf(&r.arena, "node \"%.150s\" may have been told to %s", node, action),
            "the same command can be given again");
    int code = st == PAWL_OK ? 0 : remote_fail(&r);
    if (st == PAWL_OK && cli->json) {
        code = remote_print_raw(&r, answer);
    } else if (st == PAWL_OK) {
        fprintf(cli->out, "%s %s\n", node, shown(&r.arena, answer, "status"));
        code = cli_done(cli);
    }
    remote_close(&r);
    return code;
}

static int run_drain(struct cli *cli, int argc, char **argv)
{
    if (argc != 1)
        return cli_missing(cli, "NODE");
    return drain_to(cli, argv[0], "drain");
}

static int run_undrain(struct cli *cli, int argc, char **argv)
{
    if (argc != 1)
        return cli_missing(cli, "NODE");
    return drain_to(cli, argv[0], "undrain");
}

const struct command cmd_queues = {
    .name = "queues",
    .summary = "show the queues and what waits in them",
    .usage = "",
    .about =
        "Prints for each queue how many calls are pending, due (could run now) and processing,\n"
        "how long the oldest pending call has waited in seconds, and the rates of accepted and\n"
        "ended calls a second.",
    .example = "pawl queues\npawl queues --json | jq '.queues[] | select(.paused)'",
    .reach = REACH_SERVER,
    .run = run_queues,
};

const struct command cmd_nodes = {
    .name = "nodes",
    .summary = "show the processes that work on the database",
    .usage = "",
    .about =
        "A node is one process that opened the database. It is joining, active, draining or dead\n"
        "(no heartbeat for longer than `heartbeat_grace`). slots, busy, cpu, memory and\n"
        "connections are the values of its last heartbeat; has are the capabilities of its\n"
        "handlers.",
    .example = "pawl nodes\n"
               "pawl nodes --json | jq -r '.nodes[] | select(.status == \"dead\") | .node'",
    .reach = REACH_SERVER,
    .run = run_nodes,
};

const struct command cmd_leaders = {
    .name = "leaders",
    .summary = "show which node has which role",
    .usage = "",
    .about =
        "One node at a time has the role `maintenance` (expires calls, takes back lost leases,\n"
        "removes calls past their retention), and one has the role `scheduler`. The epoch is a\n"
        "number that grows each time a node takes over the role.",
    .example = "pawl leaders",
    .reach = REACH_SERVER,
    .run = run_leaders,
};

const struct command cmd_drain = {
    .name = "drain",
    .summary = "stop a node from taking new work",
    .usage = "NODE",
    .about =
        "--url may be any server of the cluster: the node reads the request from the database\n"
        "with its next heartbeat. Running calls go on; claimed calls that have not started are\n"
        "handed back, which does not count as an attempt; /readyz of the node answers 503. The\n"
        "node stays drained until pawl undrain, or until its process ends.",
    .example = "pawl drain \"$(pawl nodes --json | jq -r '.nodes[0].node')\"",
    .args_max = 1,
    .reach = REACH_SERVER,
    .run = run_drain,
};

const struct command cmd_undrain = {
    .name = "undrain",
    .summary = "let a drained node take work again",
    .usage = "NODE",
    .about = "Ends a drain: the node takes work again after its next heartbeat.",
    .example = "pawl undrain \"$(pawl nodes --json | jq -r '.nodes[0].node')\"",
    .args_max = 1,
    .reach = REACH_SERVER,
    .run = run_undrain,
};
