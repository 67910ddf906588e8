/*
 * cluster.c - several `pawl serve` on one database: a stopped owner is fenced, calls of a dead one
 * run on another node, rolling restarts lose nothing, and a wrong clock does no harm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "fleet.h"
#include "fleet_load.h"
#include "server_process.h"

RUNS_ON(ENGINE_SERVER)

static struct server_client client;

/* Longer than a machine stalls; a sanitizer needs more. */
static int64_t grace_us(void)
{
    return MAX(4, check_scale()) * FIXTURE_SEC;
}

static void begin(void *param, struct fleet_conf conf)
{
    conf.db = engine_url(param);
    if (!conf.grace_us)
        conf.grace_us = grace_us();
    server_client_init(&client, 1);
    fleet_begin(&conf);
}

static void end(void)
{
    server_client_release(&client);
    fleet_end();
}

/* One request to one node that is up. */
static struct json *ask(int node, const char *path, const char *body)
{
    struct server_answer a = server_client_try(&client, fleet_port(node), path, body);
    if (a.status < 200 || a.status >= 300)
        FAIL("%s at n%d: %d", path, node, a.status);
    return a.json;
}

static bool is(int node, const char *path, const char *member, const char *want)
{
    return strcmp(server_client_text(&client, ask(node, path, NULL), member), want) == 0;
}

/* The nodes' statuses from the registry, "active dead". */
static int64_t nodes_that(const void *param, const char *where)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM pawl_node WHERE %s", where);
    return engine_int(param, sql);
}

static int64_t held_by(const void *param, const char *node)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM pawl_lease WHERE node = '%s'", node);
    return engine_int(param, sql);
}

/* ---- Fencing --------------------------------------------------------------------------------- */

/* Is the handler's transaction open, with its row written and not committed? The query looks for
 * that row: other cases and the node's own writer have transactions on the same server. */
static bool open_transaction(const void *param)
{
    bool pg = strcmp(engine_of(param)->name, "postgres") == 0;
    return engine_int(param,
                      pg ? "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
                           "WHERE l.relation = to_regclass('lab_count') AND l.granted "
                           "AND l.mode = 'RowExclusiveLock' AND a.state = 'idle in transaction'"
                         : "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; "
                           "SELECT COUNT(*) FROM lab_count WHERE name = 'f'") > 0;
}

/* Submit until it is accepted: a node that was stopped notices one by one that the server closed
 * its connections, and answers BUSY until it has new ones. */
static void ask_again(int node, const char *path, const char *body)
{
    int status = 0;
    UNTIL((status = server_client_try(&client, fleet_port(node), path, body).status) != 503 &&
          status != 504 && status != 0);
    if (status < 200 || status >= 300)
        FAIL("%s at n%d: %d", path, node, status);
}

/* A node is stopped in the middle of a handler's transaction for longer than the grace; another
 * node runs its call. When the first continues it can store nothing: its SQL is rolled back, the
 * other's result stands. The handler takes long enough to see its transaction and to stop the node.
 */
TEST(a_stopped_owner_is_fenced, .deadline_s = 120)
{
    begin(param, (struct fleet_conf){ 0 });
    fleet_start(0);
    fleet_ready();
    ask(0, "/v1/calls",
        "{\"id\":\"f\",\"type\":\"lab\",\"method\":\"count\",\"input\":{\"name\":\"f\","
        "\"ms\":6000}}");
    UNTIL(open_transaction(param));
    fleet_freeze(0); /* before the other node starts, so that this one holds the call */
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome"), 0); /* it was in time */
    fleet_start(1);
    fleet_ready();
    UNTIL(is(1, "/v1/calls/f", "status", "completed"));
    EQ_STR(server_client_text(&client, ask(1, "/v1/calls/f", NULL), "node"), "n1");
    EQ_INT(server_client_int(ask(1, "/v1/calls/f", NULL), "lost"), 1);
    EQ_INT(engine_int(param, "SELECT n FROM lab_count WHERE name = 'f'"), 1);
    EQ_INT(nodes_that(param, "dead = 1"), 1);
    fleet_thaw(0);
    UNTIL(nodes_that(param, "node = 'n0' AND dead = 0 AND state = 1") == 1); /* it is back */
    ask_again(0, "/v1/calls?wait=30",
              "{\"id\":\"g\",\"type\":\"lab\",\"method\":\"count\","
              "\"input\":{\"name\":\"f\"}}");
    UNTIL(is(0, "/v1/calls/g", "status", "completed"));
    EQ_INT(engine_int(param, "SELECT n FROM lab_count WHERE name = 'f'"), 2);
    EQ_STR(server_client_text(&client, ask(0, "/v1/calls/f", NULL), "node"), "n1");
    EQ_INT(server_client_int(ask(0, "/v1/calls/f", NULL), "result"), 1);
    EQ_INT(held_by(param, "n0"), 0);
    end();
}

/* ---- Dead nodes ------------------------------------------------------------------------------ */

/* No client sends anything meanwhile. */
TEST(a_dead_nodes_calls_run_elsewhere, .deadline_s = 120)
{
    begin(param, (struct fleet_conf){ 0 });
    fleet_start(0);
    fleet_ready();
    for (int i = 0; i < 3; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"id\":\"s%d\",\"type\":\"lab\",\"method\":\"sleep\",\"input\":{\"ms\":20000}}",
                 i);
        ask(0, "/v1/calls", body);
    }
    UNTIL(held_by(param, "n0") > 0);
    fleet_start(1);
    fleet_ready();
    /* It has sent heartbeats for one grace. */
    UNTIL(nodes_that(param, "node = 'n1' AND beats > 9") == 1);
    fleet_kill(0);
    int64_t killed = fixture_mono();
    UNTIL(held_by(param, "n1") > 0);
    int64_t took = fixture_mono() - killed;
    printf("running elsewhere %lld ms after it was killed, of a grace of %lld ms\n",
           (long long)took / 1000, (long long)grace_us() / 1000);
    /* Detected within 2 s; the rest is tolerance for a busy machine, as in chaos. */
    LT_INT(took, grace_us() + 2 * FIXTURE_SEC + 3 * FIXTURE_SEC * check_scale());
    EQ_INT(nodes_that(param, "node = 'n0' AND dead = 1"), 1);
    fleet_kill(1);
    end();
}

/* ---- Restarts -------------------------------------------------------------------------------- */

/* One node after another is stopped and started while calls go on: no attempt is used up or lost,
 * and every caller gets its answer. */
TEST(restarts_one_after_another_burn_nothing, .deadline_s = 300)
{
    begin(param, (struct fleet_conf){ 0 });
    for (int i = 0; i < FLEET_NODES; i++)
        fleet_start(i);
    fleet_ready();
    fleet_load_begin(6);
    for (int i = 0; i < FLEET_NODES * (check_long() ? 2 : 1); i++) {
        int before = fleet_load_done();
        UNTIL((fleet_tend(), fleet_load_done() > before + 50));
        fleet_restart(i % FLEET_NODES);
        fleet_ready();
    }
    int calls = fleet_load_end();
    printf("%d calls over %d restarts\n", calls, fleet_starts() - FLEET_NODES);
    end();
    fleet_load_check(param, calls, false);
    EQ_INT(nodes_that(param, "1 = 1"), 0); /* a node that left has no row */
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

static const char *faketime(void)
{
    static const char *const paths[] = { "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
                                         "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1" };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        if (access(paths[i], R_OK) == 0)
            return paths[i];
    return NULL;
}

/* The node with the wrong clock is the leader, so it is the one that searches for lost leases. */
static void wrong_clock(void *param, const char *clock)
{
    struct fleet_conf conf = { .preload = { faketime() }, .clock = { clock } };
#if ASAN || defined(__SANITIZE_THREAD__)
    /* libfaketime replaces pthread_cond_timedwait(), so its mutex looks locked twice. */
    skip("a sanitizer must be the first library, and does not see how libfaketime waits");
#endif
    if (!conf.preload[0]) {
        printf("left out: libfaketime is not installed\n");
        return;
    }
    begin(param, conf);
    fleet_start(0);
    fleet_ready();
    UNTIL(engine_int(param, "SELECT COUNT(*) FROM pawl_leader WHERE node = 'n0' "
                            "AND role = 'maintenance'") == 1);
    fleet_start(1);
    fleet_start(2);
    fleet_ready();
    ask(1, "/v1/calls", "{\"id\":\"hand\",\"type\":\"by_hand\"}");
    char *lease = strdup(server_client_text(&client,
                                            ask(1, "/v1/work/claim",
                                                "{\"worker\":\"w\",\"types\":[\"by_hand\"],"
                                                "\"lease_for\":60}"),
                                            "lease"));
    TRUE(lease && *lease);
    fleet_load_begin(4);
    int64_t beats = engine_int(param, "SELECT beats FROM pawl_node WHERE node = 'n0'");
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM pawl_node WHERE node = 'n0' AND beats > %lld",
             (long long)beats + 20); /* two and a half graces */
    UNTIL(fleet_load_done() > 100 && engine_int(param, sql) > 0);
    int calls = fleet_load_end();
    char body[300];
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"results\":[{\"id\":\"hand\",\"result\":1}]}",
             lease);
    ask(2, "/v1/work/finish", body);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node WHERE dead = 0"), FLEET_NODES);
    EQ_INT(engine_int(param, "SELECT epoch FROM pawl_leader WHERE role = 'maintenance'"), 1);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome WHERE lost > 0"), 0);
    EQ_INT(engine_int(param, "SELECT SUM(n) FROM lab_count WHERE name LIKE 'load%'"), calls);
    free(lease);
    end();
}

TEST(a_clock_ten_minutes_ahead_steals_nothing, .deadline_s = 120)
{
    wrong_clock(param, "+10m");
}

TEST(a_clock_ten_minutes_behind_loses_nothing, .deadline_s = 120)
{
    wrong_clock(param, "-10m");
}
