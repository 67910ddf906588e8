/*
 * http.c - the server is killed at random times under load from many clients, and restarted.
 *
 * Clients choose the ids of their calls and repeat a request when its answer was lost. Each call
 * adds 1 to a row of its client in the same transaction that ends it. So the result of a client's
 * n-th call is n, and in the end the row is the number of calls that took effect. PAWL_SEED repeats
 * the times of the kills; PAWL_CRASH_SECONDS is the length of the test (12).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "server_process.h"

RUNS_ON(ENGINES_DURABLE)

enum { CLIENTS = 24, BATCH = 20, CALLS_MAX = 200000 };

/* What a client was told about a call; it must stay true. */
struct ledger {
    bool cancelled; /* false: completed */
    int64_t result;
};

struct client {
    struct server_client http;
    pthread_t thread;
    int index;
    int calls;             /* calls that have ended, ids %d-0 to %d-(calls-1) */
    int64_t completed;     /* of these */
    int repeats, refusals; /* provoked by the client itself */
    struct ledger *told;   /* owned */
};

static struct client clients[CLIENTS];
static atomic_bool over;

static void path_of(char *out, size_t size, const struct client *c, int n, const char *rest)
{
    snprintf(out, size, "/v1/calls/%d-%d%s", c->index, n, rest);
}

/* One call as JSON. Its ms block the database's only writer, so they are few. */
static int call_make(char *out, size_t size, struct client *c, int n, const char *more)
{
    return snprintf(out, size,
                    "{\"id\":\"%d-%d\",\"type\":\"lab\",\"method\":\"count\",\"max_lost\":1000,"
                    "\"input\":{\"name\":\"c%d\",\"ms\":%d}%s}",
                    c->index, n, c->index, n % 16 == 0, more);
}

static void told(struct client *c, bool cancelled, int64_t result)
{
    LT_INT(c->calls, CALLS_MAX);
    c->told[c->calls++] = (struct ledger){ cancelled, result };
    c->completed += !cancelled;
}

/* Wait for an accepted call, which must exist. */
static struct server_answer ended(struct client *c, int n)
{
    char path[64];
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    path_of(path, sizeof path, c, n, "?wait=10");
    for (;;) {
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        if (a.status != 200)
            FAIL("%s was accepted, and now is %d %.*s", path, a.status, BYTES_ARG(a.json->raw));
        const char *status = server_client_text(&c->http, a.json, "status");
        if (strcmp(status, "pending") != 0 && strcmp(status, "processing") != 0)
            return a;
        if (fixture_mono() > until)
            FAIL("%s is stuck: %.*s", path, BYTES_ARG(a.json->raw));
    }
}

static int64_t completed_with(struct client *c, struct server_answer a)
{
    if (strcmp(server_client_text(&c->http, a.json, "status"), "completed") != 0)
        FAIL("not completed: %d %.*s", a.status, BYTES_ARG(a.json->raw));
    return server_client_int(a.json, "result");
}

/* ---- Three kinds of clients ------------------------------------------------------------------ */

/* Repeat the call, and use its id for another call. */
static void again(struct client *c, const char *body, int n)
{
    char other[256];
    struct server_answer a = server_client_ask(&c->http, "/v1/calls", body);
    EQ_INT(a.status, 200);
    TRUE(json_member(a.json, "duplicate")->kind == JSON_TRUE);
    EQ_INT(completed_with(c, a), c->told[n].result);
    c->repeats++;
    snprintf(other, sizeof other, "{\"id\":\"%d-%d\",\"type\":\"lab\",\"method\":\"count\"}",
             c->index, n);
    a = server_client_ask(&c->http, "/v1/calls", other);
    EQ_INT(a.status, 409);
    c->refusals++;
}

/* One call, in one request or in two. Its result is the next number, whatever happened. */
static void one(struct client *c)
{
    char body[256];
    int n = c->calls;
    bool waits = server_client_dice(&c->http, 4) != 0;
    call_make(body, sizeof body, c, n, "");
    struct server_answer a =
        server_client_ask(&c->http, waits ? "/v1/calls?wait=10" : "/v1/calls", body);
    if (a.status == 202)
        a = ended(c, n);
    EQ_INT(a.status, 200);
    int64_t result = completed_with(c, a);
    EQ_INT(result, n + 1);
    told(c, false, result);
    if (server_client_dice(&c->http, 4) == 0)
        again(c, body, n);
}

/* A batch of calls, sometimes all or none. Their results are the next numbers in any order. */
static void batch(struct client *c)
{
    char body[BATCH * 256];
    int first = c->calls, len = snprintf(body, sizeof body, "{\"calls\":[");
    bool seen[BATCH] = { false };
    for (int i = 0; i < BATCH; i++) {
        len += call_make(body + len, sizeof body - (size_t)len, c, first + i, "");
        len += snprintf(body + len, sizeof body - (size_t)len, i < BATCH - 1 ? "," : "]");
    }
    snprintf(body + len, sizeof body - (size_t)len, ",\"atomic\":%s}",
             server_client_dice(&c->http, 2) ? "true" : "false");
    struct server_answer a = server_client_ask(&c->http, "/v1/calls/batch", body);
    if (a.status != 200)
        FAIL("batch: %d %.*s", a.status, BYTES_ARG(a.json->raw));
    const struct json *list = json_member(a.json, "calls");
    EQ_INT((int64_t)list->count, BATCH);
    for (const struct json *v = list->first; v; v = v->next)
        if (!*server_client_text(&c->http, v, "status"))
            FAIL("refused in a batch: %.*s", BYTES_ARG(v->raw));
    for (int i = 0; i < BATCH; i++) {
        int64_t result = completed_with(c, ended(c, first + i));
        if (result <= first || result > first + BATCH || seen[result - first - 1])
            FAIL("call %d-%d: result %lld", c->index, first + i, (long long)result);
        seen[result - first - 1] = true;
        told(c, false, result);
    }
}

/* A call is accepted, then cancelled: while delayed, while it runs, or too late. */
static void cancel(struct client *c)
{
    char body[256], path[64];
    int n = c->calls;
    call_make(body, sizeof body, c, n, server_client_dice(&c->http, 2) ? ",\"delay\":0.02" : "");
    path_of(path, sizeof path, c, n, "/cancel");
    struct server_answer a = server_client_ask(&c->http, "/v1/calls", body);
    if (a.status != 200 && a.status != 202)
        FAIL("submit: %d %.*s", a.status, BYTES_ARG(a.json->raw));
    int answered = server_client_ask(&c->http, path, "").status;
    if (answered != 200 && answered != 202 && answered != 409)
        FAIL("%s: %d", path, answered);
    a = ended(c, n);
    bool is = strcmp(server_client_text(&c->http, a.json, "status"), "cancelled") == 0;
    if (answered == 200 && !is)
        FAIL("%s: it was cancelled, and then %.*s", path, BYTES_ARG(a.json->raw));
    if (answered == 409 && is)
        FAIL("%s: it had ended, and then %.*s", path, BYTES_ARG(a.json->raw));
    int64_t result = is ? 0 : completed_with(c, a);
    if (!is)
        EQ_INT(result, c->completed + 1);
    told(c, is, result);
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(&over))
        switch (c->index % 6) {
        case 4:
            batch(c);
            break;
        case 5:
            cancel(c);
            break;
        default:
            one(c);
        }
    return NULL;
}

/* ---- Checks at the end ----------------------------------------------------------------------- */

/* Ask again for the outcome of every call that was ever answered. */
static void check_told(struct client *c)
{
    char path[64];
    for (int n = 0; n < c->calls; n++) {
        path_of(path, sizeof path, c, n, "");
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        EQ_INT(a.status, 200);
        EQ_STR(server_client_text(&c->http, a.json, "status"),
               c->told[n].cancelled ? "cancelled" : "completed");
        if (!c->told[n].cancelled)
            EQ_INT(server_client_int(a.json, "result"), c->told[n].result);
    }
}

/* How many calls the list of one status has. */
static int64_t listed(struct client *c, const char *status)
{
    char path[256], cursor[128] = "";
    int64_t n = 0;
    do {
        snprintf(path, sizeof path, "/v1/calls?limit=1000&status=%s%s%s", status,
                 *cursor ? "&cursor=" : "", cursor);
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        EQ_INT(a.status, 200);
        n += (int64_t)json_member(a.json, "calls")->count;
        snprintf(cursor, sizeof cursor, "%s", server_client_text(&c->http, a.json, "next"));
    } while (*cursor);
    return n;
}

/* Check the tables themselves, when no server runs. */
static void check_tables(const void *param, int64_t calls, int64_t completed)
{
    char sql[128];
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(sql, sizeof sql, "SELECT coalesce(max(n), 0) FROM lab_count WHERE name = 'c%d'",
                 i);
        int64_t effects = engine_int(param, sql);
        if (effects != clients[i].completed)
            FAIL("client %d: %lld calls completed, %lld took effect", i,
                 (long long)clients[i].completed, (long long)effects);
    }
    EQ_INT(engine_int(param, "SELECT sum(n) FROM lab_count"), completed);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_call"), calls);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_outcome"), calls);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_id"), calls);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_ready"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_lease"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_cancel"), 0);
    engine_intact(param);
}

static void count(const void *param)
{
    int64_t calls = 0, completed = 0;
    int lost = 0, repeats = 0;
    for (int i = 0; i < CLIENTS; i++) {
        calls += clients[i].calls;
        completed += clients[i].completed;
        lost += clients[i].http.lost;
        repeats += clients[i].repeats;
        check_told(&clients[i]);
    }
    printf("%lld calls, %lld completed, %d answers lost, %d repeats\n", (long long)calls,
           (long long)completed, lost, repeats);
    EQ_INT(listed(&clients[0], "completed"), completed);
    EQ_INT(listed(&clients[0], "cancelled"), calls - completed);
    EQ_INT(listed(&clients[0], "pending"), 0);
    EQ_INT(listed(&clients[0], "processing"), 0);
    server_process_stop();
    check_tables(param, calls, completed);
    GT_INT(completed, CLIENTS);
    GT_INT(repeats, 0);
    GT_INT(lost, 0);
}

static int64_t from_env(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* A minimum number of kills, however slow the machine is. */
enum { KILLS = 4 };

/* Kill the server repeatedly; one time in five before it listens. */
static int kill_until(struct server_client *dice, int64_t until)
{
    int kills = 0;
    for (; fixture_mono() < until || kills < KILLS; kills++) {
        bool early = server_client_dice(dice, 5) == 0;
        server_process_start();
        if (!early)
            server_process_ready();
        usleep((unsigned)(1000 + server_client_dice(dice, early ? 30000 : 600000) * check_scale()));
        server_process_kill(); /* a random time */
    }
    server_process_start();
    server_process_ready();
    return kills;
}

TEST(killed_at_random_moments_under_many_clients, .deadline_s = 1200)
{
    int64_t otherwise = !check_long() ? 4 : check_scale() > 1 ? 20 : 10;
    int64_t seconds = from_env("PAWL_CRASH_SECONDS", otherwise);
    uint64_t seed = (uint64_t)from_env("PAWL_SEED", fixture_mono());
    struct server_client dice;
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    server_process_on(param);
    server_client_init(&dice, seed);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &clients[i];
        c->index = i;
        c->told = calloc(CALLS_MAX, sizeof *c->told);
        TRUE(c->told != NULL);
        server_client_init(&c->http, seed + (uint64_t)(i + 1) * 1000000007);
        EQ_INT(pthread_create(&c->thread, NULL, client_run, c), 0);
    }
    int kills = kill_until(&dice, fixture_mono() + seconds * FIXTURE_SEC);
    int64_t begun = fixture_mono();
    atomic_store(&over, true);
    for (int i = 0; i < CLIENTS; i++)
        EQ_INT(pthread_join(clients[i].thread, NULL), 0);
    printf("%d kills, done %lld ms after the last\n", kills,
           (long long)(fixture_mono() - begun) / 1000);
    GE_INT(kills, KILLS);
    count(param);
    for (int i = 0; i < CLIENTS; i++) {
        server_client_release(&clients[i].http);
        free(clients[i].told);
    }
    server_client_release(&dice);
}
