/*
 * chaos_load.c - see chaos_load.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "chaos_load.h"

#include <pthread.h>
#include <stdio.h>

#include "fleet.h"
#include "server_process.h"

enum { CLIENTS = 40, WALLETS = 10, POISON_LOST = 3 };
/* How long a request waits for the outcome of its call; its client waits a little longer for the
 * answer. */
#define WAIT_S "1.5"
#define PATIENCE_MS 2500

struct client {
    struct server_client http;
    struct history seen;
    pthread_t thread;
    int index, node;
};

static struct client clients[CLIENTS + 1]; /* the last client sends poison calls */
static atomic_bool over, slow;
static atomic_int poisons;

/* ---- One request ----------------------------------------------------------------------------- */

static void elsewhere(struct client *c)
{
    c->node = (int)(c->node + 1 + server_client_dice(&c->http, FLEET_NODES - 1)) % FLEET_NODES;
}

static int state_of(const char *name)
{
    for (int i = PAWL_PENDING; i <= PAWL_EXPIRED; i++)
        if (strcmp(pawl_state_name((enum pawl_state)i), name) == 0)
            return i;
    return 0;
}

static void note(struct client *c, struct history_ask *q, struct server_answer a)
{
    bool ok = a.status == 200 || a.status == 202;
    const struct json *from = ok ? a.json : json_member(a.json, "error");
    const struct json *duplicate = ok ? json_member(a.json, "duplicate") : NULL;
    int64_t result;
    q->duplicate = duplicate && duplicate->kind == JSON_TRUE;
    q->state = ok ? state_of(server_client_text(&c->http, a.json, "status")) : 0;
    const struct json *v = ok ? json_member(a.json, "result") : NULL;
    if (v && json_int(v, &result))
        q->result = result;
    if (from)
        snprintf(q->error, sizeof q->error, "%s",
                 server_client_text(&c->http, from, ok ? "error" : "message"));
}

/* Send a request to the client's present node and record it. Returns the HTTP status. */
static int ask(struct client *c, size_t call, const char *path, const char *body, bool other)
{
    struct history_ask q = { .call = call,
                             .node = c->node,
                             .other = other,
                             .result = HISTORY_NONE,
                             .sent_us = history_now() };
    struct server_answer a = server_client_try(&c->http, fleet_port(c->node), path, body);
    q.status = a.status;
    if (a.status) {
        q.answered_us = history_now();
        note(c, &q, a);
    }
    history_add_ask(&c->seen, &q);
    return a.status;
}

/* Send a request to another node and close the connection. */
static void abandon(struct client *c, size_t call, const char *body)
{
    struct history_ask q = { .call = call, .result = HISTORY_NONE };
    elsewhere(c);
    int port = fleet_port(c->node);
    if (!port)
        return;
    q.node = c->node;
    q.sent_us = history_now();
    server_client_abandon_at(&c->http, port, "/v1/calls?wait=" WAIT_S, body);
    history_add_ask(&c->seen, &q);
    elsewhere(c);
}

/* Repeat the request until the call is accepted (wait: has ended). False: the client gave up. */
static bool settle(struct client *c, size_t call, const char *body, bool wait)
{
    const char *path = wait ? "/v1/calls?wait=" WAIT_S : "/v1/calls";
    int64_t until = fixture_mono() + 2 * FIXTURE_WAIT_US;
    while (!atomic_load(&over)) {
        int status = ask(c, call, path, body, false);
        if (status == 200 || (status == 202 && !wait))
            return true;
        if (fixture_mono() > until)
            FAIL("call %s: no end in %d s, the last answer was %d", c->seen.calls[call].id,
                 60 * check_scale(), status);
        if (status == 202)
            continue;
        if (status && status != 429 && status != 503 && status != 504)
            return false; /* the checker will report it */
        usleep((unsigned)(1000 + server_client_dice(&c->http, 100000))); /* before repeating */
        elsewhere(c);
    }
    return false;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static size_t call_make(struct client *c, const struct history_call *what, char *body, size_t size,
                        const char *spec)
{
    struct history_call v = *what;
    snprintf(v.id, sizeof v.id, "%d-%zu", c->index, c->seen.n_calls);
    int n = snprintf(body, size, "{\"id\":\"%s\",%s}", v.id, spec);
    LT_INT(n, (int)size);
    return history_add_call(&c->seen, &v);
}

static size_t add(struct client *c, char *body, size_t size)
{
    char spec[200];
    struct history_call v = { .kind = HISTORY_ADD, .amount = server_client_dice(&c->http, 20) - 6 };
    snprintf(v.key, sizeof v.key, "w%d", (int)server_client_dice(&c->http, WALLETS));
    snprintf(spec, sizeof spec,
             "\"type\":\"Wallet\",\"method\":\"add\",\"key\":\"%s\",\"max_lost\":1000,"
             "\"max_attempts\":1,\"input\":%lld",
             v.key, (long long)v.amount);
    return call_make(c, &v, body, size, spec);
}

static size_t transfer(struct client *c, char *body, size_t size)
{
    char spec[250];
    int from = (int)server_client_dice(&c->http, WALLETS);
    int to = (int)(from + 1 + server_client_dice(&c->http, WALLETS - 1)) % WALLETS;
    struct history_call v = { .kind = HISTORY_TRANSFER,
                              .amount = 1 + server_client_dice(&c->http, 8) };
    snprintf(v.key, sizeof v.key, "w%d", from);
    snprintf(v.to, sizeof v.to, "w%d", to);
    snprintf(spec, sizeof spec,
             "\"type\":\"Wallet\",\"method\":\"transfer\",\"key\":\"%s\",\"max_lost\":1000,"
             "\"max_attempts\":1,\"input\":{\"to\":\"%s\",\"amount\":%lld}",
             v.key, v.to, (long long)v.amount);
    return call_make(c, &v, body, size, spec);
}

/* One call in eight keeps its transaction open for a while, so that faults hit it. */
static size_t count(struct client *c, char *body, size_t size)
{
    char spec[250];
    struct history_call v = { .kind = HISTORY_COUNT };
    int64_t ms = server_client_dice(&c->http, 8) ? 0 : 20 + server_client_dice(&c->http, 200);
    ms = atomic_load(&slow) ? 1000 : ms;
    snprintf(v.to, sizeof v.to, "c%d", c->index);
    snprintf(spec, sizeof spec,
             "\"type\":\"lab\",\"method\":\"count\",\"max_lost\":1000,\"max_attempts\":1000,"
             "\"backoff\":{\"base\":0.05,\"max\":0.2},\"input\":{\"name\":\"%s\",\"ms\":%lld}",
             v.to, (long long)ms);
    return call_make(c, &v, body, size, spec);
}

static void one(struct client *c)
{
    char body[400], other[100];
    int64_t kind = server_client_dice(&c->http, 10);
    size_t call = kind < 4   ? add(c, body, sizeof body)
                  : kind < 7 ? transfer(c, body, sizeof body)
                             : count(c, body, sizeof body);
    bool wait = server_client_dice(&c->http, 4) != 0;
    if (server_client_dice(&c->http, 10) == 0)
        abandon(c, call, body);
    if (!settle(c, call, body, wait))
        return;
    if (server_client_dice(&c->http, 5) == 0 && !atomic_load(&over)) {
        elsewhere(c);
        ask(c, call, "/v1/calls", body, false);
    }
    if (server_client_dice(&c->http, 20) == 0 && !atomic_load(&over)) {
        snprintf(other, sizeof other, "{\"id\":\"%s\",\"type\":\"lab\",\"method\":\"big\"}",
                 c->seen.calls[call].id);
        ask(c, call, "/v1/calls", other, true);
    }
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(&over)) {
        one(c);
        usleep((unsigned)server_client_dice(&c->http, 20000)); /* bounds the load */
    }
    return NULL;
}

static void *poison_run(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(&over)) {
        char body[300];
        struct history_call v = { .kind = HISTORY_POISON, .amount = POISON_LOST };
        usleep(1000);
        if ((int)c->seen.n_calls >= atomic_load(&poisons))
            continue;
        size_t call = call_make(c, &v, body, sizeof body,
                                "\"type\":\"lab\",\"method\":\"crash\",\"max_lost\":3,"
                                "\"input\":{\"times\":1000}");
        settle(c, call, body, false);
    }
    return NULL;
}

/* ---- All of them ----------------------------------------------------------------------------- */

void chaos_load_begin(uint64_t seed)
{
    static_assert(POISON_LOST == 3, "as the poison's body says");
    for (int i = 0; i <= CLIENTS; i++) {
        struct client *c = &clients[i];
        c->index = i;
        c->node = i % FLEET_NODES;
        history_init(&c->seen);
        server_client_init(&c->http, seed + (uint64_t)(i + 1) * 1000000007);
        c->http.patience_ms = PATIENCE_MS * check_scale();
        EQ_INT(pthread_create(&c->thread, NULL, i < CLIENTS ? client_run : poison_run, c), 0);
    }
}

void chaos_load_poison(void)
{
    atomic_fetch_add(&poisons, 1);
}

void chaos_load_slow(void)
{
    atomic_store(&slow, true);
}

void chaos_load_over(void)
{
    atomic_store(&over, true);
}

void chaos_load_end(struct history *h)
{
    for (int i = 0; i <= CLIENTS; i++) {
        EQ_INT(pthread_join(clients[i].thread, NULL), 0);
        history_add_all(h, &clients[i].seen);
        history_release(&clients[i].seen);
        server_client_release(&clients[i].http);
    }
}
