/*
 * standby.c - the database's synchronous standby goes down: commits wait, callers are told within
 * seconds, and when it is back nothing is lost, done twice or declared dead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "db_server.h"
#include "fleet.h"
#include "fleet_load.h"
#include "server_process.h"
#include "standby.h"
#include "wallet_fixture.h"

RUNS_ON(ENGINE_SERVER)

/* Longer than a machine stalls; a sanitizer needs more. */
#define GRACE_US (MAX(4, check_scale()) * FIXTURE_SEC)

static struct server_client client;
static struct db_server *server;

/* One node. Its next heartbeat is later than the end of the case, so only the case's own requests
 * wait. */
static void begin(void *param, const char *beat, int64_t grace_us)
{
    /* The nodes' COMMIT_WAIT_US is 4 s: longer than a machine stalls, and no longer than necessary.
     */
    setenv("PAWL_CHECK_SCALE", "2", 1);
    server = standby_server(param);
    fleet_begin(
        &(struct fleet_conf){ .db = engine_url(param), .grace_us = grace_us, .beat = beat });
    server_client_init(&client, 1);
    client.patience_ms = 20000 * check_scale(); /* a missing answer ends the case */
    fleet_start(0);
    fleet_ready();
}

static void begin_without_beats(void *param)
{
    begin(param, "1000s", 4000 * FIXTURE_SEC);
}

static void end(void)
{
    server_client_release(&client);
    fleet_end();
}

static struct server_answer ask(const char *path, const char *body)
{
    struct server_answer a = server_client_try(&client, fleet_port(0), path, body);
    if (!a.status)
        FAIL("%s: no answer", path);
    return a;
}

/* The member `name` of the error. */
static const char *error(struct server_answer a, const char *name)
{
    const struct json *e = a.json ? json_member(a.json, "error") : NULL;
    return e ? server_client_text(&client, e, name) : "";
}

static bool is_ready(void)
{
    return ask("/readyz", NULL).status == 200;
}

/* Stop the standby and send a request. The node's own write may have come first, and then the
 * request gets BUSY: repeat it. */
static struct server_answer ask_unknown(const char *path, const char *body)
{
    for (int i = 0; i < 5; i++) {
        standby_away(server);
        struct server_answer a = ask(path, body);
        if (a.status != 503)
            return a;
        standby_back(server);
        UNTIL(is_ready());
    }
    FAIL("%s: BUSY each time", path);
}

static const char a_call[] = "{\"id\":\"a\",\"type\":\"lab\",\"method\":\"count\","
                             "\"input\":{\"name\":\"a\"}}";

TEST(a_caller_hears_unknown_and_the_call_runs_once, .deadline_s = 200)
{
    begin_without_beats(param);
    struct server_answer a = ask_unknown("/v1/calls?wait=30", a_call);
    EQ_INT(a.status, 504);
    EQ_STR(error(a, "code"), "UNKNOWN");
    EQ_STR(error(a, "id"), "a");
    GT_INT(standby_waiting(server), 0); /* the writer is still waiting */

    a = ask("/v1/calls?wait=30", "{\"id\":\"b\",\"type\":\"lab\",\"method\":\"echo\"}");
    EQ_INT(a.status, 503);
    EQ_STR(error(a, "code"), "BUSY");
    /* The same again: it may be stored, and no answer says that it is not. */
    a = ask("/v1/calls", a_call);
    EQ_INT(a.status, 503);
    a = ask("/readyz", NULL);
    EQ_INT(a.status, 503);
    HAS_STR(server_client_text(&client, a.json, "reason"), "standby");
    EQ_INT(ask("/healthz", NULL).status, 200);
    EQ_INT(ask("/v1/calls/nothing", NULL).status, 404); /* reads go on */
    GT_INT(standby_waiting(server), 0);

    standby_back(server);
    UNTIL(is_ready());
    a = ask("/v1/calls?wait=30", a_call);
    EQ_INT(a.status, 200);
    EQ_INT(json_member(a.json, "duplicate")->kind, JSON_TRUE);
    EQ_STR(server_client_text(&client, a.json, "status"), "completed");
    end();
    EQ_INT(engine_int(param, "SELECT n FROM lab_count WHERE name = 'a'"), 1);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_call"), 1); /* BUSY: nothing was stored */
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome WHERE attempts + lost > 0"), 0);
    EQ_INT(fleet_starts(), 1);
}

/* An HTTP worker: its finish is UNKNOWN, the same again BUSY, and later it gets the answer that it
 * missed at first. */
TEST(a_worker_repeats_its_finish, .deadline_s = 200)
{
    char body[300];
    begin_without_beats(param);
    EQ_INT(ask("/v1/calls", "{\"id\":\"h\",\"type\":\"by_hand\"}").status, 202);
    struct server_answer a = ask("/v1/work/claim", "{\"worker\":\"w\",\"types\":[\"by_hand\"],"
                                                   "\"lease_for\":600}");
    EQ_INT(a.status, 200);
    snprintf(body, sizeof body, "{\"lease\":\"%s\",\"results\":[{\"id\":\"h\",\"result\":7}]}",
             server_client_text(&client, a.json, "lease"));
    a = ask_unknown("/v1/work/finish", body);
    EQ_INT(a.status, 504);
    EQ_STR(error(a, "code"), "UNKNOWN");
    EQ_INT(ask("/v1/work/finish", body).status, 503);
    EQ_INT(ask("/v1/work/claim", "{\"types\":[\"by_hand\"]}").status, 503);
    standby_back(server);
    UNTIL(is_ready());
    a = ask("/v1/work/finish", body);
    EQ_INT(a.status, 200);
    EQ_STR(server_client_text(&client, ask("/v1/calls/h", NULL).json, "status"), "completed");
    EQ_INT(server_client_int(ask("/v1/calls/h", NULL).json, "result"), 7);
    end();
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome"), 1);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_lease"), 0);
}

/* A node that is told to stop ends. The commit that it leaves behind is stored or not, as the
 * database decides; the next node finds out. */
TEST(a_stop_does_not_wait_for_it, .deadline_s = 200)
{
    begin_without_beats(param);
    EQ_INT(ask_unknown("/v1/calls?wait=30", a_call).status, 504);
    fleet_ask_to_stop(0);
    UNTIL(fleet_has_stopped(0));
    GT_INT(standby_waiting(server), 0);
    standby_back(server);
    fleet_start(0);
    fleet_ready();
    struct server_answer a = ask("/v1/calls?wait=30", a_call);
    EQ_INT(a.status, 200);
    EQ_STR(server_client_text(&client, a.json, "status"), "completed");
    end();
    EQ_INT(engine_int(param, "SELECT n FROM lab_count WHERE name = 'a'"), 1);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_call"), 1);
}

/* No client sends anything: heartbeats notice the wait, and never more sessions wait than there are
 * writing connections, however long it takes. */
static void idle_is_not_ready(void *param)
{
    TRUE(is_ready());
    standby_away(server);
    UNTIL(!is_ready());
    /* More than twice the timeout of a heartbeat. */
    int64_t until = fixture_mono() + 8 * FIXTURE_SEC;
    UNTIL((FALSE(is_ready()), fixture_mono() > until));
    LE_INT(standby_waiting(server), 3);
    FALSE(is_ready());
    standby_back(server);
    UNTIL(is_ready());
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node WHERE dead = 1"), 0);
    end();
    EQ_INT(fleet_starts(), 1);
}

TEST(an_idle_node_is_not_ready, .deadline_s = 200)
{
    begin(param, NULL, GRACE_US);
    idle_is_not_ready(param);
}

/* Of the heartbeat and the node's other writes only the first is seen waiting. */
TEST(an_idle_node_is_not_ready_after_sync, .deadline_s = 200)
{
    begin(param, NULL, GRACE_US);
    standby_after_sync(server);
    idle_is_not_ready(param);
}

/* Three nodes under load, without a standby for longer than the grace: all heartbeats stop at the
 * same time. */
TEST(nobody_is_taken_for_dead, .deadline_s = 400)
{
    begin(param, NULL, GRACE_US);
    for (int i = 1; i < FLEET_NODES; i++)
        fleet_start(i);
    fleet_ready();
    fleet_load_begin(6);
    UNTIL((fleet_tend(), fleet_load_done() > 50));
    standby_away(server);
    int64_t back = fixture_mono() + GRACE_US + 2 * FIXTURE_SEC;
    UNTIL((fleet_tend(), !is_ready()));
    while (fixture_mono() < back) {
        fleet_tend();
        usleep(10000);
    }
    standby_back(server);
    int before = fleet_load_done();
    UNTIL((fleet_tend(), fleet_load_done() > before + 50));
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node WHERE dead = 1"), 0);
    int calls = fleet_load_end();
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node WHERE dead = 1"), 0);
    end();
    fleet_load_check(param, calls, true);
    EQ_INT(fleet_starts(), FLEET_NODES); /* no node's process ended */
}
