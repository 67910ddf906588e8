/*
 * wallet.c - money moves between wallets while clients hang up, ask twice, and the server is
 * killed.
 *
 * Each wallet is a key, its balance the key's state. Every client keeps a ledger of what it was
 * told took effect; in the end every balance is the sum of these ledgers, what was paid in is all
 * there is, and the calls of each wallet ran one after another. PAWL_SEED replays the moments;
 * PAWL_CRASH_SECONDS says for how long.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "killed.h"

enum { CLIENTS = 50, WALLETS = 20 };

struct client {
    struct killed_client http;
    pthread_t thread;
    int index, calls;
    int abandoned, replays, refused, transfers;
    int64_t moved[WALLETS]; /* what its completed calls did to each wallet */
    int64_t paid_in;
};

static struct client clients[CLIENTS];
static atomic_bool over;

/* A call's first answer. */
struct told {
    bool completed;
    int64_t result;
    char error[128];
};

static struct told told_of(struct client *c, struct killed_answer a)
{
    struct told t = { 0 };
    const char *status = killed_text(&c->http, a.json, "status");
    t.completed = strcmp(status, "completed") == 0;
    if (!t.completed && strcmp(status, "failed") != 0)
        FAIL("neither completed nor failed: %d %.*s", a.status, BYTES_ARG(a.json->raw));
    if (t.completed)
        t.result = killed_int(a.json, "result");
    snprintf(t.error, sizeof t.error, "%s", killed_text(&c->http, a.json, "error"));
    return t;
}

/* Ask until it has ended. */
static struct killed_answer outcome(struct client *c, const char *body)
{
    int64_t until = rig_mono() + RIG_WAIT_US;
    for (;;) {
        struct killed_answer a = killed_ask(&c->http, "/v1/calls?wait=10", body);
        if (a.status == 200)
            return a;
        if (a.status != 202)
            FAIL("refused: %d %.*s", a.status, BYTES_ARG(a.json->raw));
        if (rig_mono() > until)
            FAIL("stuck: %.*s", BYTES_ARG(a.json->raw));
    }
}

/* One call in five is abandoned in flight first and sent again; three in ten are asked for once
 * more without need. Whatever happens, there is one answer. */
static struct told settle(struct client *c, const char *body)
{
    if (killed_dice(&c->http, 5) == 0) {
        killed_abandon(&c->http, "/v1/calls?wait=10", body);
        c->abandoned++;
    }
    struct told first = told_of(c, outcome(c, body));
    if (killed_dice(&c->http, 10) < 3) {
        struct killed_answer a = outcome(c, body);
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
    int64_t n = killed_dice(&c->http, 20) - 6;
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
    int to = (int)(from + 1 + killed_dice(&c->http, WALLETS - 1)) % WALLETS;
    int64_t n = 1 + killed_dice(&c->http, 8);
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
        int wallet = (int)killed_dice(&c->http, WALLETS);
        if (killed_dice(&c->http, 3) == 0)
            transfer(c, wallet);
        else
            add(c, wallet);
    }
    return NULL;
}

/* ---- The count ------------------------------------------------------------------------------- */

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        FAIL("%s: %s", sql, sqlite3_errmsg(db));
    EQ_INT(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

/* What is sent has no caller that waits: until it has ended too. */
static void all_ended(struct client *c)
{
    int64_t until = rig_mono() + RIG_WAIT_US;
    for (const char *status = "pending"; status;) {
        char path[64];
        snprintf(path, sizeof path, "/v1/calls?status=%s&limit=1", status);
        struct killed_answer a = killed_ask(&c->http, path, NULL);
        if (json_member(a.json, "calls")->count == 0)
            status = strcmp(status, "pending") == 0 ? "processing" : NULL;
        else if (rig_mono() > until)
            FAIL("still %s: %.*s", status, BYTES_ARG(a.json->raw));
        else
            status = "pending";
    }
}

/* Of each key: numbers without a gap, and no call begun before the one before it had ended. */
static void check_order(sqlite3 *db)
{
#define RUNS                                                                                       \
    "FROM (SELECT key, key_no, started_at, row_number() OVER w AS place,"                          \
    " lag(finished_at) OVER w AS before FROM pawl_call JOIN pawl_outcome USING (seq)"              \
    " WHERE key_no > 0 WINDOW w AS (PARTITION BY key ORDER BY key_no))"
    EQ_INT(ask(db, "SELECT count(*) " RUNS " WHERE key_no <> place"), 0);
    EQ_INT(ask(db, "SELECT count(*) " RUNS " WHERE started_at < before"), 0);
    GT_INT(ask(db, "SELECT count(*) " RUNS " WHERE started_at >= before"), 0);
#undef RUNS
}

static void check_file(void)
{
    sqlite3 *db;
    int64_t paid_in = 0;
    EQ_INT(sqlite3_open_v2(KILLED_DB, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    for (int w = 0; w < WALLETS; w++) {
        char sql[160];
        int64_t ledger = 0;
        for (int i = 0; i < CLIENTS; i++)
            ledger += clients[i].moved[w];
        snprintf(sql, sizeof sql,
                 "SELECT coalesce(max(CAST(CAST(state AS TEXT) AS INTEGER)), 0) FROM pawl_object"
                 " WHERE key = 'w%d' AND type = 'Wallet'",
                 w);
        int64_t balance = ask(db, sql);
        if (balance != ledger)
            FAIL("wallet %d: the balance is %lld, the clients' ledgers say %lld", w,
                 (long long)balance, (long long)ledger);
    }
    for (int i = 0; i < CLIENTS; i++)
        paid_in += clients[i].paid_in;
    EQ_INT(ask(db, "SELECT sum(CAST(CAST(state AS TEXT) AS INTEGER)) FROM pawl_object"), paid_in);
    check_order(db);
    EQ_INT(ask(db, "SELECT count(*) FROM pawl_call"), ask(db, "SELECT count(*) FROM pawl_outcome"));
    EQ_INT(ask(db, "SELECT count(*) FROM pawl_line"), 0);
    EQ_INT(ask(db, "SELECT count(*) FROM pawl_ready"), 0);
    EQ_INT(ask(db, "SELECT count(*) FROM pawl_lease"), 0);
    EQ_INT(ask(db, "SELECT count(*) FROM pawl_key WHERE state <> 0 OR held OR waiting OR later"),
           0);
    EQ_INT(ask(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
    sqlite3_close(db);
}

static int64_t from_env(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static int kill_until(struct killed_client *dice, int64_t until)
{
    int kills = 0;
    for (; rig_mono() < until; kills++) {
        killed_start();
        killed_ready();
        usleep((unsigned)(1000 + killed_dice(dice, 700000) * check_scale()));
        killed_kill(); /* the moment is the test */
    }
    killed_start();
    killed_ready();
    return kills;
}

static void count(int kills)
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
    printf("%d kills, %d calls: %d abandoned first, %d replayed, %d refused, %d transfers, %d"
           " answers lost\n",
           kills, calls, abandoned, replays, refused, transfers, lost);
    GT_INT(kills, 2);
    GT_INT(abandoned, 0);
    GT_INT(replays, 0);
    GT_INT(refused, 0);
    GT_INT(transfers, 0);
    GT_INT(lost, 0);
}

TEST(every_balance_is_what_the_clients_were_told, .deadline_s = 1200)
{
    int64_t seconds = from_env("PAWL_CRASH_SECONDS", check_fast()        ? 4
                                                     : check_scale() > 1 ? 20
                                                                         : 10);
    uint64_t seed = (uint64_t)from_env("PAWL_SEED", rig_mono());
    struct killed_client dice;
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    killed_client_init(&dice, seed);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].index = i;
        killed_client_init(&clients[i].http, seed + (uint64_t)(i + 1) * 1000000007);
        EQ_INT(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    int kills = kill_until(&dice, rig_mono() + seconds * RIG_SEC);
    atomic_store(&over, true);
    for (int i = 0; i < CLIENTS; i++)
        EQ_INT(pthread_join(clients[i].thread, NULL), 0);
    all_ended(&clients[0]);
    count(kills);
    killed_stop();
    check_file();
    for (int i = 0; i < CLIENTS; i++)
        killed_client_release(&clients[i].http);
    killed_client_release(&dice);
}
