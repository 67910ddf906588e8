/*
 * outage.c - the database goes down for a while and comes back: /readyz reports it, callers wait or
 * get a retryable error, nothing is lost, and work goes on by itself.
 *
 * PAWL_OUTAGE_SECONDS is the length of the outage (5).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "db_server.h"
#include "server_process.h"
#include "wallet_fixture.h"

RUNS_ON(ENGINE_SERVER)

enum { CALLS = 100, WAITERS = 8 };

/* How long an answer may take that asks to retry later. */
#define ANSWER_US (15 * FIXTURE_SEC * check_scale())

static struct server_client client;

static int ready(void)
{
    return server_client_once(&client, "/readyz", NULL).status;
}

/* ---- A caller that waits during the outage --------------------------------------------------- */

struct waiter {
    struct server_client http;
    pthread_t thread;
    int index;
    atomic_bool asks;
};

/* One request, repeated while the answer asks to retry later. */
static void *waits(void *arg)
{
    struct waiter *v = arg;
    char body[200];
    snprintf(body, sizeof body,
             "{\"id\":\"w%d\",\"type\":\"lab\",\"method\":\"sleep\",\"max_attempts\":1,"
             "\"max_lost\":1,\"input\":{\"ms\":%d}}",
             v->index, 300 * (v->index + 1));
    atomic_store(&v->asks, true);
    struct server_answer a = { 0 };
    for (int64_t until = fixture_mono() + 2 * FIXTURE_WAIT_US; a.status != 200;) {
        if (fixture_mono() > until)
            FAIL("call w%d has not ended: %d", v->index, a.status);
        a = server_client_ask(&v->http, "/v1/calls?wait=60", body);
        if (a.status != 200 && a.status != 202)
            FAIL("call w%d: %d %.*s", v->index, a.status, BYTES_ARG(a.json->raw));
    }
    /* The outage is not the attempt's fault: it is neither failed nor lost. */
    EQ_STR(server_client_text(&v->http, a.json, "status"), "completed");
    EQ_INT(server_client_int(a.json, "attempts"), 0);
    return NULL;
}

static void waiters_begin(struct waiter *v)
{
    for (int i = 0; i < WAITERS; i++) {
        v[i].index = i;
        server_client_init(&v[i].http, (uint64_t)i);
        EQ_INT(pthread_create(&v[i].thread, NULL, waits, &v[i]), 0);
    }
    for (int i = 0; i < WAITERS; i++)
        UNTIL(atomic_load(&v[i].asks));
}

static void waiters_end(struct waiter *v)
{
    for (int i = 0; i < WAITERS; i++) {
        EQ_INT(pthread_join(v[i].thread, NULL), 0);
        server_client_release(&v[i].http);
    }
}

/* ---- Before, during and after ---------------------------------------------------------------- */

static void call_make(char *out, size_t size, const char *prefix, int n)
{
    snprintf(out, size,
             "{\"id\":\"%s%d\",\"type\":\"lab\",\"method\":\"count\",\"input\":{\"name\":\"n\"}}",
             prefix, n);
}

static void accept_before(void)
{
    for (int i = 0; i < CALLS; i++) {
        char body[200];
        call_make(body, sizeof body, "b", i);
        struct server_answer a = server_client_ask(&client, "/v1/calls", body);
        if (a.status != 200 && a.status != 202)
            FAIL("%s: %d", body, a.status);
    }
}

/* Every answer is true: the server is alive and accepted nothing. Returns how many requests were
 * refused. */
static int during(int64_t until)
{
    int refused = 0;
    while (fixture_mono() < until) {
        char body[200];
        int64_t asked = fixture_mono();
        call_make(body, sizeof body, "d", refused);
        struct server_answer a = server_client_once(&client, "/v1/calls", body);
        LT_INT(fixture_mono() - asked, ANSWER_US);
        if (a.status != 503 && a.status != 504)
            FAIL("a submit without a database was answered %d %.*s", a.status,
                 BYTES_ARG(a.json->raw));
        const struct json *error = json_member(a.json, "error");
        EQ_STR(server_client_text(&client, error, "code"), a.status == 503 ? "BUSY" : "UNKNOWN");
        refused++;
        EQ_INT(server_client_once(&client, "/healthz", NULL).status, 200);
        usleep(50000); /* wait before repeating */
    }
    return refused;
}

static void ended(const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/calls/%s%d?wait=30", prefix, i);
        struct server_answer a = server_client_ask(&client, path, NULL);
        EQ_INT(a.status, 200);
        if (strcmp(server_client_text(&client, a.json, "status"), "completed") != 0)
            FAIL("%.*s", BYTES_ARG(a.json->raw));
    }
}

/* The refused ids are submitted again, and each takes effect once. */
static void after(int refused)
{
    for (int i = 0; i < refused; i++) {
        char body[200];
        call_make(body, sizeof body, "d", i);
        struct server_answer a = server_client_ask(&client, "/v1/calls", body);
        if (a.status != 200 && a.status != 202)
            FAIL("%s: %d", body, a.status);
    }
    ended("b", CALLS);
    ended("d", refused);
}

static struct db_server *begin(void *param)
{
    struct db_server *s = engine_own(param);
    server_client_init(&client, 1);
    server_process_on(param);
    server_process_start();
    server_process_ready();
    return s;
}

static int64_t away_us(void)
{
    return FIXTURE_SEC * wallet_setting("PAWL_OUTAGE_SECONDS", check_long() ? 5 : 3);
}

static void outage(void *param, enum db_stop how)
{
    struct db_server *s = begin(param);
    static struct waiter waiters[WAITERS];
    waiters_begin(waiters);
    int64_t asked = fixture_mono();
    accept_before();
    printf("%d accepted in %lld ms\n", CALLS, (long long)(fixture_mono() - asked) / 1000);
    db_stop(s, how);
    int refused = during(fixture_mono() + away_us());
    db_up(s);
    int64_t begun = fixture_mono();
    char body[200];
    call_make(body, sizeof body, "d", 0);
    server_client_ask(&client, "/v1/calls", body);
    int64_t took = fixture_mono() - begun;
    printf("%d refused; the first was accepted %lld ms after it was back\n", refused,
           (long long)took / 1000);
    LT_INT(took, 5 * FIXTURE_SEC * check_scale());
    GT_INT(refused, 0);
    after(refused);
    waiters_end(waiters);
    server_process_stop();
    EQ_INT(db_int(s, "SELECT n FROM lab_count WHERE name = 'n';"), CALLS + refused);
    server_client_release(&client);
}

TEST(the_database_is_stopped_for_a_while, .deadline_s = 300)
{
    outage(param, DB_CLEAN);
}

TEST(the_database_is_killed_and_stays_away, .deadline_s = 300)
{
    outage(param, DB_KILL);
}

/* Without any request that needs the database. */
TEST(readyz_says_that_the_database_is_away, .deadline_s = 120)
{
    struct db_server *s = begin(param);
    EQ_INT(ready(), 200);
    db_stop(s, DB_CLEAN);
    int64_t begun = fixture_mono();
    UNTIL(ready() == 503);
    LT_INT(fixture_mono() - begun, 10 * FIXTURE_SEC * check_scale());
    struct server_answer a = server_client_once(&client, "/readyz", NULL);
    TRUE(*server_client_text(&client, a.json, "reason"));
    EQ_INT(server_client_once(&client, "/healthz", NULL).status, 200);
    db_up(s);
    begun = fixture_mono();
    UNTIL(ready() == 200);
    LT_INT(fixture_mono() - begun, 5 * FIXTURE_SEC * check_scale());
    server_process_stop();
    server_client_release(&client);
}

/* ---- Requests that begin to wait during the outage ------------------------------------------- */

struct latecomer {
    struct server_client http;
    pthread_t thread;
    const char *id;
    int want;
    atomic_bool asks;
};

/* One request, answered once: no 503 in between. */
static void *comes_late(void *arg)
{
    struct latecomer *v = arg;
    char path[64];
    snprintf(path, sizeof path, "/v1/calls/%s?wait=60", v->id);
    atomic_store(&v->asks, true);
    struct server_answer a = server_client_once(&v->http, path, NULL);
    bool done = strcmp(server_client_text(&v->http, a.json, "status"), "completed") == 0;
    if (a.status != v->want || done != (v->want == 200))
        FAIL("%s: %d %.*s", path, a.status, BYTES_ARG(a.json->raw));
    return NULL;
}

/* One call has ended, one runs during the outage, one was never submitted. A GET that waits for one
 * of them is answered when the database is back; it is refused only when its own time is up. */
TEST(a_get_that_begins_in_an_outage_waits, .deadline_s = 300)
{
    static struct latecomer v[] = { { .id = "was", .want = 200 },
                                    { .id = "runs", .want = 200 },
                                    { .id = "never", .want = 404 } };
    struct db_server *s = begin(param);
    EQ_INT(server_client_ask(
               &client, "/v1/calls?wait=60",
               "{\"id\":\"was\",\"type\":\"lab\",\"method\":\"sleep\",\"input\":{\"ms\":1}}")
               .status,
           200);
    server_client_ask(
        &client, "/v1/calls",
        "{\"id\":\"runs\",\"type\":\"lab\",\"method\":\"sleep\",\"input\":{\"ms\":3000}}");
    db_stop(s, DB_CLEAN);
    int64_t asked = fixture_mono();
    struct server_answer a = server_client_once(&client, "/v1/calls/was?wait=1", NULL);
    EQ_INT(a.status, 503);
    GE_INT(fixture_mono() - asked, 1 * FIXTURE_SEC);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        server_client_init(&v[i].http, 10 + i);
        EQ_INT(pthread_create(&v[i].thread, NULL, comes_late, &v[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(v); i++)
        UNTIL(atomic_load(&v[i].asks));
    /* A request that does not wait is refused at once. */
    EQ_INT(server_client_once(&client, "/v1/calls/was", NULL).status, 503);
    db_up(s);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        EQ_INT(pthread_join(v[i].thread, NULL), 0);
        server_client_release(&v[i].http);
    }
    server_process_stop();
    server_client_release(&client);
}
