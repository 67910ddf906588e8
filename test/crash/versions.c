/*
 * versions.c - deploys: nodes of one version of a program are replaced by nodes of another while
 * its runs sleep, wait for signals, and are started; some nodes are killed.
 *
 * The program is test/module/deploy.c. Three `pawl serve` on one database; one client that submits
 * and signals through any of them, and repeats what was not answered.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "fleet.h"
#include "server_process.h"

RUNS_ON(ENGINES_DURABLE)

static struct server_client client;
static void *engine;
/* DEPLOY of the next start of each node. */
static const char *deployed[FLEET_NODES];
static bool pins;

static void dress(int node)
{
    setenv("DEPLOY", deployed[node], 1);
    if (pins)
        setenv("PAWL_VERSIONS", "pin", 1);
}

static void begin(void *param, int nodes, bool pin)
{
    engine = param;
    pins = pin;
    server_client_init(&client, 1);
    client.patience_ms = 5000 * check_scale();
    fleet_begin(&(struct fleet_conf){ .db = engine_url(param),
                                      .grace_us = 2 * FIXTURE_SEC * check_scale(),
                                      .module = PAWL_BUILD_DIR "/test/deploy.so",
                                      .dress = dress });
    for (int i = 0; i < nodes; i++) {
        deployed[i] = "1";
        fleet_start(i);
    }
    fleet_ready();
}

static void end(void)
{
    server_client_release(&client);
    fleet_end();
    EQ_INT(engine_int(engine, "SELECT COUNT(*) FROM pawl_lease"), 0);
}

static void replace(int node, const char *deploy, bool kill)
{
    deployed[node] = deploy;
    if (!kill) {
        fleet_restart(node);
        return;
    }
    fleet_kill(node);
    fleet_start(node);
}

/* ---- The load -------------------------------------------------------------------------------- */

enum { PHASES = 4, RUNS_MAX = 4000 };

static struct {
    int phase, n, wanted; /* of all phases: submitted, and to be submitted */
    int told_from;        /* every earlier run was told */
    struct {
        int phase;
        bool told;
    } v[RUNS_MAX];
} load;

/* Every seventh is refused in the end, and undone. */
static int input_of(int i)
{
    int ms = 1 + i * 13 % 60;
    return i % 7 == 3 ? -ms : ms;
}

/* A third waits for its signal until every node is of version 2. */
static bool may_be_told(int i)
{
    int since = load.phase - load.v[i].phase;
    return i % 3 == 0 || (i % 3 == 1 && since > 0) || load.phase >= PHASES - 1;
}

/* Send it to any node. False: nobody knows whether it was stored. */
static bool sent(const char *path, const char *body)
{
    int first = (int)server_client_dice(&client, FLEET_NODES), port = 0;
    for (int i = 0; i < FLEET_NODES && !port; i++)
        port = fleet_port((first + i) % FLEET_NODES);
    int status = server_client_try(&client, port, path, body).status;
    if (status && status != 200 && status != 202 && status != 503 && status != 504)
        FAIL("%s %s: %d", path, body, status);
    return status == 200 || status == 202;
}

static void submit(void)
{
    char body[200];
    int i = load.n;
    snprintf(body, sizeof body, "{\"id\":\"p%d-%d\",\"type\":\"order\",\"input\":%d}", load.phase,
             i, input_of(i));
    load.v[i].phase = load.phase;
    load.n += sent("/v1/calls", body);
}

/* The signal has a key, so a repeat is the same one. */
static void tell(int i)
{
    char body[300];
    snprintf(body, sizeof body,
             "{\"id\":\"p%d-%d\",\"type\":\"order\",\"input\":%d,"
             "\"signal\":{\"name\":\"go\",\"value\":1,\"key\":\"go\"}}",
             load.v[i].phase, i, input_of(i));
    load.v[i].told = sent("/v1/calls", body);
}

/* One request. */
static void load_more(void)
{
    fleet_tend();
    if (load.n < load.wanted && server_client_dice(&client, 2)) {
        submit();
        return;
    }
    while (load.told_from < load.n && load.v[load.told_from].told)
        load.told_from++;
    for (int i = load.told_from; i < load.n; i++)
        if (!load.v[i].told && may_be_told(i)) {
            tell(i);
            return;
        }
    if (load.n < load.wanted)
        submit();
}

/* As UNTIL(), and the client goes on meanwhile. */
#define UNDER_LOAD(cond)                                                                           \
    do {                                                                                           \
        int64_t until_ = fixture_mono() + 4 * FIXTURE_WAIT_US;                                     \
        while (!(cond)) {                                                                          \
            if (fixture_mono() > until_)                                                           \
                FAIL("did not come: %s", #cond);                                                   \
            for (int i_ = 0; i_ < 10; i_++)                                                        \
                load_more();                                                                       \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static void phase_begin(int phase, int runs)
{
    load.phase = phase;
    load.wanted += runs;
    LE_INT(load.wanted, RUNS_MAX);
}

static int64_t runs_that(const char *where)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "SELECT COUNT(*) FROM pawl_workflow w JOIN pawl_call c ON c.seq = w.seq "
             "LEFT JOIN pawl_outcome o ON o.seq = w.seq WHERE w.shown > 0 AND %s",
             where);
    return engine_int(engine, sql);
}

static bool all_begun(void)
{
    return load.n == load.wanted && runs_that("w.seq > 0") == load.n;
}

#define OPEN_1 "w.version = '1' AND o.seq IS NULL"
#define OPEN_2 "w.version = '2' AND o.seq IS NULL"

/* ---- A rolling deploy ------------------------------------------------------------------------ */

static struct json *ask(const char *path, const char *body)
{
    struct server_answer a = { 0 };
    UNTIL((fleet_tend(), a = server_client_try(&client, fleet_port(0), path, body), a.status) &&
          a.status != 503 && a.status != 504);
    if (a.status != 200 && a.status != 202)
        FAIL("%s: %d", path, a.status);
    return a.json;
}

static bool shows(const char *path, const char *member, const char *want)
{
    return strcmp(server_client_text(&client, ask(path, NULL), member), want) == 0;
}

/* An open run of version 1 while no node has it: it is due, and waits for a worker. */
static void waits_for_its_version(void)
{
    char path[100];
    const char *ids = engine_rows(
        engine, "SELECT c.id FROM pawl_workflow w JOIN pawl_call c ON c.seq = w.seq "
                "LEFT JOIN pawl_outcome o ON o.seq = w.seq WHERE " OPEN_1 " ORDER BY c.id");
    snprintf(path, sizeof path, "/v1/calls/%.*s", (int)strcspn(ids, "\n"), ids);
    UNTIL(shows(path, "waiting_for", "worker"));
    TRUE(shows(path, "status", "processing"));
    TRUE(shows(path, "needs", ""));
}

static void count(void)
{
    int64_t refused = 0;
    for (int i = 0; i < load.n; i++)
        refused += input_of(i) < 0;
    EQ_INT(runs_that("o.status = 3"), load.n - refused);
    EQ_INT(runs_that("o.status = 4"), refused);
    EQ_INT(runs_that("w.compensation = 2"), refused);
    /* Each step says which version ran it: the one with which its run began. */
    EQ_INT(engine_int(engine,
                      "SELECT COUNT(*) FROM pawl_workflow_steps s JOIN pawl_workflow_runs r "
                      "ON r.id = s.workflow_run_id WHERE s.kind = 'run' AND "
                      "(s.result IS NULL OR s.result <> r.version)"),
           0);
    EQ_INT(engine_int(engine, "SELECT COUNT(*) FROM pawl_step WHERE kind = 1"), 4 * load.n);
    EQ_INT(engine_int(engine, "SELECT COUNT(*) FROM pawl_step WHERE kind = 8"), 4 * refused);
    GT_INT(runs_that("w.version = '1'"), 0);
    EQ_INT(runs_that("w.version = '1' AND c.id LIKE 'p3-%'"), 0); /* after the deploy */
    GT_INT(runs_that("w.version = '2' AND c.id LIKE 'p3-%'"), 0);
}

static bool all_listen(void)
{
    bool all = true;
    for (int i = 0; i < FLEET_NODES; i++)
        all = all && fleet_port(i);
    return all;
}

/* Kill nodes, one after another, and start each again as it was. */
static void kill_some(int times)
{
    for (int i = 0; i < times; i++) {
        int node = (int)server_client_dice(&client, FLEET_NODES);
        UNDER_LOAD(all_listen());
        replace(node, deployed[node], true);
    }
    UNDER_LOAD(all_listen());
}

TEST(a_rolling_deploy_with_pinned_runs, .deadline_s = 300)
{
    int runs = check_long() ? 300 : 24, kills = check_long() ? 5 : 0;
    begin(param, FLEET_NODES, true);
    phase_begin(0, runs);
    UNDER_LOAD(all_begun());
    replace(0, "2", true);
    phase_begin(1, runs);
    kill_some(kills);
    UNDER_LOAD(all_begun());
    replace(1, "2", false);
    replace(0, "2", true);
    phase_begin(2, runs);
    kill_some(kills);
    UNDER_LOAD(all_listen() && all_begun());
    replace(2, "2", true);
    UNDER_LOAD(all_listen());
    phase_begin(3, runs);
    kill_some(kills);
    UNDER_LOAD(all_begun() && load.told_from == load.n && runs_that(OPEN_2) == 0);
    int64_t left = runs_that(OPEN_1);
    GT_INT(left, 0);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_workflow_runs WHERE completed_at IS NULL "
                             "AND version = '1'"),
           left);
    waits_for_its_version();
    EQ_INT(runs_that(OPEN_1), left);
    printf("%d runs, %d starts of nodes; %d runs waited for version 1\n", load.n, fleet_starts(),
           (int)left);
    /* A node of version 1 comes back until they have ended; it is killed once more. */
    replace(1, "1", false);
    UNDER_LOAD(runs_that(OPEN_1) < left);
    replace(1, "1", true);
    UNDER_LOAD(runs_that(OPEN_1) == 0);
    count();
    end();
}

/* ---- Code that does not fit, and code that does ---------------------------------------------- */

static void start(const char *id)
{
    char body[100], path[100];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"order\",\"input\":1}", id);
    snprintf(path, sizeof path, "/v1/calls/%s", id);
    ask("/v1/calls", body);
    UNTIL(shows(path, "waiting_for", "signal"));
}

static void go(const char *id)
{
    char path[100];
    snprintf(path, sizeof path, "/v1/workflows/%s/signals/go", id);
    ask(path, "1");
}

static void becomes(const char *id, const char *status)
{
    char path[100];
    snprintf(path, sizeof path, "/v1/calls/%s", id);
    UNTIL(shows(path, "status", status));
}

static void error_is(const char *id, const char *error)
{
    char path[100];
    snprintf(path, sizeof path, "/v1/calls/%s", id);
    EQ_STR(server_client_text(&client, ask(path, NULL), "error"), error);
}

static void retry(const char *id)
{
    char path[100];
    snprintf(path, sizeof path, "/v1/workflows/%s/retry", id);
    ask(path, "{}");
}

/* The run's own steps, in order, a line each. */
static const char *steps_of(const char *id)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT s.step_name FROM pawl_workflow_steps s WHERE s.workflow_run_id = '%s' "
             "AND s.kind = 'run' ORDER BY s.no",
             id);
    return engine_rows(engine, sql);
}

TEST(a_mistaken_deploy_stops_runs_and_a_mended_one_goes_on, .deadline_s = 120)
{
    begin(param, 1, false);
    start("x");
    start("y");
    replace(0, "bad", false);
    go("x");
    becomes("x", "dead_letter");
    error_is("x", "step 1 is run \"reserve\", and the code asks for run \"pack\"");
    EQ_INT(runs_that("w.compensation > 0"), 0); /* nothing is guessed, and nothing undone */
    replace(0, "1", true);
    retry("x");
    becomes("x", "completed");
    EQ_STR(steps_of("x"), "reserve\ncharge\npack\nship");
    go("y"); /* it met no mistake */
    becomes("y", "completed");
    end();
}

TEST(a_patched_deploy_and_the_way_back, .deadline_s = 120)
{
    begin(param, 1, false);
    start("old");
    start("older");
    replace(0, "patched", true);
    start("new");
    start("newer");
    go("old");
    go("new");
    becomes("old", "completed");
    becomes("new", "completed");
    EQ_STR(steps_of("old"), "reserve\ncharge\npack\nweigh-late\nship");
    EQ_STR(steps_of("new"), "reserve\nweigh\ncharge\npack\nship");
    /* Back to the code without the change: runs that met it stop, the others go on. */
    replace(0, "1", false);
    go("older");
    go("newer");
    becomes("older", "completed");
    EQ_STR(steps_of("older"), "reserve\ncharge\npack\nship");
    becomes("newer", "dead_letter");
    error_is("newer",
             "step 2 is value \"patched:weigh-first\", and the code asks for run \"charge\"");
    replace(0, "patched", false);
    retry("newer");
    becomes("newer", "completed");
    EQ_STR(steps_of("newer"), "reserve\nweigh\ncharge\npack\nship");
    end();
}
