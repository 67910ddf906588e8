/*
 * wallet_fixture.c - see wallet_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wallet_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 50, WALLETS = 20 };
/* A wallet's error when its balance is too small. */
#define REFUSAL "is not enough for"

struct client {
    struct server_client http;
    pthread_t thread;
    int index, calls;
    int abandoned, replays, refused, transfers;
    int64_t moved[WALLETS]; /* the sum of its completed calls, for each wallet */
    int64_t paid_in;
};

static struct client clients[CLIENTS];
static atomic_bool over;

/* The first answer to a call. */
struct told {
    bool completed;
    int64_t result;
    char error[128];
};

static struct told told_of(struct client *c, struct server_answer a)
{
    struct told t = { 0 };
    const char *status = server_client_text(&c->http, a.json, "status");
    t.completed = strcmp(status, "completed") == 0;
    if (!t.completed && strcmp(status, "failed") != 0)
        FAIL("neither completed nor failed: %d %.*s", a.status, BYTES_ARG(a.json->raw));
    if (t.completed)
        t.result = server_client_int(a.json, "result");
    snprintf(t.error, sizeof t.error, "%s", server_client_text(&c->http, a.json, "error"));
    if (!t.completed && !strstr(t.error, REFUSAL))
        FAIL("failed of something else than its money: %.*s", BYTES_ARG(a.json->raw));
    return t;
}

/* Ask until the call has ended. */
static struct server_answer outcome(struct client *c, const char *body)
{
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    for (;;) {
        struct server_answer a = server_client_ask(&c->http, "/v1/calls?wait=10", body);
        if (a.status == 200)
            return a;
        if (a.status != 202)
            FAIL("refused: %d %.*s", a.status, BYTES_ARG(a.json->raw));
        if (fixture_mono() > until)
            FAIL("stuck: %.*s", BYTES_ARG(a.json->raw));
    }
}

/* One call in five is first sent with the connection closed at once, and sent again; three in ten
 * are requested once more at the end. All answers must be the same. */
static struct told settle(struct client *c, const char *body)
{
    if (server_client_dice(&c->http, 5) == 0) {
        server_client_abandon(&c->http, "/v1/calls?wait=10", body);
        c->abandoned++;
    }
    struct told first = told_of(c, outcome(c, body));
    if (server_client_dice(&c->http, 10) < 3) {
        struct server_answer a = outcome(c, body);
        TRUE(json_member(a.json, "duplicate")->kind == JSON_TRUE);
        struct told again = told_of(c, a);
        EQ_INT(again.completed, first.completed);
        EQ_INT(again.result, first.result);
        EQ_STR(again.error, first.error);
        c->replays++;
    }
    c->calls++;
    c->refused += !first.completed;
    return first;
}

static void add(struct client *c, int wallet)
{
    char body[256];
    int64_t n = server_client_dice(&c->http, 20) - 6;
    snprintf(body, sizeof body,
             "{\"id\":\"%d-%d\",\"type\":\"Wallet\",\"method\":\"add\",\"key\":\"w%d\","
             "\"max_lost\":1000,\"max_attempts\":1,\"input\":%lld}",
             c->index, c->calls, wallet, (long long)n);
    struct told t = settle(c, body);
    if (t.completed) {
        GE_INT(t.result, 0);
        c->moved[wallet] += n;
        c->paid_in += n;
    }
}

static void transfer(struct client *c, int from)
{
    char body[256];
    int to = (int)(from + 1 + server_client_dice(&c->http, WALLETS - 1)) % WALLETS;
    int64_t n = 1 + server_client_dice(&c->http, 8);
    snprintf(body, sizeof body,
             "{\"id\":\"%d-%d\",\"type\":\"Wallet\",\"method\":\"transfer\",\"key\":\"w%d\","
             "\"max_lost\":1000,\"max_attempts\":1,\"input\":{\"to\":\"w%d\",\"amount\":%lld}}",
             c->index, c->calls, from, to, (long long)n);
    struct told t = settle(c, body);
    if (t.completed) {
        c->moved[from] -= n;
        c->moved[to] += n;
        c->transfers++;
    }
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(&over)) {
        int wallet = (int)server_client_dice(&c->http, WALLETS);
        if (server_client_dice(&c->http, 3) == 0)
            transfer(c, wallet);
        else
            add(c, wallet);
    }
    return NULL;
}

/* ---- Checks at the end ----------------------------------------------------------------------- */

/* No client waits for calls that a handler sent: wait until they have ended too. */
static void all_ended(struct client *c)
{
    int64_t until = fixture_mono() + FIXTURE_WAIT_US;
    for (const char *status = "pending"; status;) {
        char path[64];
        snprintf(path, sizeof path, "/v1/calls?status=%s&limit=1", status);
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        if (json_member(a.json, "calls")->count == 0)
            status = strcmp(status, "pending") == 0 ? "processing" : NULL;
        else if (fixture_mono() > until)
            FAIL("still %s: %.*s", status, BYTES_ARG(a.json->raw));
        else
            status = "pending";
    }
}

/* One call of a wallet, from the list. */
struct shown {
    int wallet;
    int64_t key_no;
    char started[28], finished[28];
};

static int by_place(const void *a, const void *b)
{
    const struct shown *x = a, *y = b;
    if (x->wallet != y->wallet)
        return x->wallet < y->wallet ? -1 : 1;
    return x->key_no < y->key_no ? -1 : x->key_no > y->key_no;
}

static void show(struct client *c, const struct json *call, struct shown *out)
{
    const char *key = server_client_text(&c->http, call, "key");
    const char *status = server_client_text(&c->http, call, "status");
    TRUE(*key == 'w');
    if (strcmp(status, "completed") != 0 && strcmp(status, "failed") != 0)
        FAIL("neither completed nor failed: %.*s", BYTES_ARG(call->raw));
    out->wallet = (int)strtol(key + 1, NULL, 10);
    out->key_no = server_client_int(call, "key_no");
    snprintf(out->started, sizeof out->started, "%s",
             server_client_text(&c->http, call, "started_at"));
    snprintf(out->finished, sizeof out->finished, "%s",
             server_client_text(&c->http, call, "finished_at"));
}

/* All calls; the caller frees them. */
static struct shown *show_all(struct client *c, size_t *out_n)
{
    char path[300] = "/v1/calls?limit=1000", cursor[200];
    struct shown *v = NULL;
    size_t n = 0;
    do {
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        EQ_INT(a.status, 200);
        const struct json *list = json_member(a.json, "calls");
        v = realloc(v, (n + list->count + 1) * sizeof *v);
        TRUE(v != NULL);
        for (const struct json *call = list->first; call; call = call->next)
            show(c, call, &v[n++]);
        snprintf(cursor, sizeof cursor, "%s", server_client_text(&c->http, a.json, "next"));
        snprintf(path, sizeof path, "/v1/calls?limit=1000&cursor=%s", cursor);
    } while (*cursor);
    *out_n = n;
    return v;
}

/* The calls of each wallet have numbers without gaps, and none began before its predecessor had
 * ended. Returns the number of calls. */
static int64_t check_order(struct client *c)
{
    size_t n;
    struct shown *v = show_all(c, &n);
    qsort(v, n, sizeof *v, by_place);
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || v[i - 1].wallet != v[i].wallet;
        EQ_INT(v[i].key_no, first ? 1 : v[i - 1].key_no + 1);
        if (!first && strcmp(v[i].started, v[i - 1].finished) < 0)
            FAIL("wallet %d: call %lld began at %s, the one before ended at %s", v[i].wallet,
                 (long long)v[i].key_no, v[i].started, v[i - 1].finished);
    }
    free(v);
    return (int64_t)n;
}

static void check_balances(struct client *c)
{
    int64_t sum = 0, paid_in = 0;
    for (int w = 0; w < WALLETS; w++) {
        char path[64];
        int64_t ledger = 0;
        for (int i = 0; i < CLIENTS; i++)
            ledger += clients[i].moved[w];
        snprintf(path, sizeof path, "/v1/objects/Wallet/w%d", w);
        struct server_answer a = server_client_ask(&c->http, path, NULL);
        int64_t balance = a.status == 404 ? 0 : server_client_int(a.json, "state");
        if (balance != ledger)
            FAIL("wallet %d: the balance is %lld, the clients' ledgers say %lld", w,
                 (long long)balance, (long long)ledger);
        sum += balance;
    }
    for (int i = 0; i < CLIENTS; i++)
        paid_in += clients[i].paid_in;
    EQ_INT(sum, paid_in);
}

/* Check the tables themselves, when no server runs. */
static void check_tables(const void *param, int64_t calls)
{
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_call"), calls);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_outcome"), calls);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_line"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_ready"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_lease"), 0);
    engine_intact(param);
}

static void print_sums(void)
{
    int calls = 0, abandoned = 0, replays = 0, refused = 0, transfers = 0, lost = 0;
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *c = &clients[i];
        calls += c->calls;
        abandoned += c->abandoned;
        replays += c->replays;
        refused += c->refused;
        transfers += c->transfers;
        lost += c->http.lost;
    }
    printf("%d calls: %d abandoned first, %d replayed, %d refused, %d transfers, %d answers lost\n",
           calls, abandoned, replays, refused, transfers, lost);
    GT_INT(abandoned, 0);
    GT_INT(replays, 0);
    GT_INT(refused, 0);
    GT_INT(transfers, 0);
}

/* ---- The fixture ----------------------------------------------------------------------------- */

void wallet_begin(const void *param, uint64_t seed)
{
    server_process_on(param);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].index = i;
        server_client_init(&clients[i].http, seed + (uint64_t)(i + 1) * 1000000007);
        EQ_INT(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
}

int wallet_lost(void)
{
    int lost = 0;
    for (int i = 0; i < CLIENTS; i++)
        lost += clients[i].http.lost;
    return lost;
}

void wallet_end(const void *param)
{
    atomic_store(&over, true);
    for (int i = 0; i < CLIENTS; i++)
        EQ_INT(pthread_join(clients[i].thread, NULL), 0);
    all_ended(&clients[0]);
    print_sums();
    check_balances(&clients[0]);
    int64_t calls = check_order(&clients[0]);
    struct server_answer a = server_client_ask(&clients[0].http, "/v1/keys", NULL);
    EQ_INT((int64_t)json_member(a.json, "keys")->count, 0);
    server_process_stop();
    check_tables(param, calls);
    for (int i = 0; i < CLIENTS; i++)
        server_client_release(&clients[i].http);
}

int64_t wallet_setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}
