/*
 * samples_keys.c - the modules with keys, wallet and chat, the cycle that lab.ask finds, and the
 * program provider, as users run them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

#define SAMPLES PAWL_BUILD_DIR "/samples/"

static struct pawl *host(void *param, bool lab)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    OK(pawl_load(p, SAMPLES "wallet.so", &err), &err);
    OK(pawl_load(p, SAMPLES "chat.so", &err), &err);
    OK(pawl_load(p, SAMPLES "echo.so", &err), &err);
    if (lab)
        OK(pawl_load(p, SAMPLES "lab.so", &err), &err);
    fixture_start(p, 8);
    return p;
}

static struct pawl_shown *ran(struct pawl *p, const char *what, const char *key, const char *input)
{
    char type[32];
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    snprintf(type, sizeof type, "%s", what);
    char *dot = strchr(type, '.');
    *dot = '\0';
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = type, .method = dot + 1, .key = key };
    if (input)
        spec.input = (struct pawl_data){ PAWL_JSON, input, strlen(input) };
    OK(pawl_submit_wait(p, &spec, FIXTURE_WAIT_US, &shown, &err), &err);
    return shown;
}

/* Assert that TYPE.METHOD completes with this result. */
static void completes(struct pawl *p, const char *what, const char *key, const char *input,
                      const char *result)
{
    struct pawl_shown *shown = ran(p, what, key, input);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->error, NULL);
    EQ_STR(pawl_state_name(v->state), "completed");
    EQ_BYTES(v->result.data, v->result.len, result, strlen(result));
    pawl_shown_free(shown);
}

/* Assert that it fails for good at its first attempt, with an error that contains these words. */
static void refuses(struct pawl *p, const char *what, const char *key, const char *input,
                    const char *words)
{
    struct pawl_shown *shown = ran(p, what, key, input);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(pawl_state_name(v->state), "failed");
    HAS_STR(v->error, words);
    EQ_INT(v->attempts, 1);
    pawl_shown_free(shown);
}

TEST(wallet_keeps_a_balance)
{
    struct pawl *p = host(param, false);
    completes(p, "Wallet.balance", "a", NULL, "0");
    completes(p, "Wallet.add", "a", "5", "5");
    completes(p, "Wallet.add", "a", "-2", "3");
    refuses(p, "Wallet.add", "a", "-4", "balance 3 is not enough");
    completes(p, "Wallet.balance", "a", NULL, "3");
    completes(p, "Wallet.balance", "b", NULL, "0");
    refuses(p, "Wallet.add", "a", "1.5", "must be a whole number");
    refuses(p, "Wallet.add", "a", "\"1\"", "must be a whole number");
    refuses(p, "Wallet.add", "a", NULL, "must be a whole number");
    completes(p, "Wallet.add", "rich", "9223372036854775807", "9223372036854775807");
    refuses(p, "Wallet.add", "rich", "1", "do not fit in 64 bits");
    completes(p, "Wallet.add", "rich", "-9223372036854775807", "0");
    refuses(p, "Wallet.add", "rich", "-9223372036854775808", "not enough");
    refuses(p, "Wallet.add", NULL, "1", "has no key");
    refuses(p, "Wallet.balance", NULL, NULL, "has no key");
    refuses(p, "Wallet.transfer", NULL, "{\"to\":\"a\",\"amount\":1}", "has no key");
    pawl_close(p);
}

TEST(wallet_transfers)
{
    struct pawl *p = host(param, false);
    completes(p, "Wallet.add", "a", "10", "10");
    completes(p, "Wallet.transfer", "a", "{\"to\": \"b\", \"amount\": 4}", "6");
    fixture_drain(p);
    completes(p, "Wallet.balance", "b", NULL, "4");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"b\", \"amount\": 7}", "balance 6 is not enough");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"b\", \"amount\": 0}", "member \"amount\"");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"b\", \"amount\": -1}", "member \"amount\"");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"b\", \"amount\": 1.5}", "member \"amount\"");
    refuses(p, "Wallet.transfer", "a", "{\"amount\": 1}", "member \"to\"");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"\", \"amount\": 1}", "member \"to\"");
    refuses(p, "Wallet.transfer", "a", "{\"to\": \"\\u0001\", \"amount\": 1}", "member \"to\"");
    refuses(p, "Wallet.transfer", "a", "7", "member \"to\"");
    completes(p, "Wallet.transfer", "a", "{\"to\": \"a\", \"amount\": 6}", "0");
    fixture_drain(p);
    completes(p, "Wallet.balance", "a", NULL, "6");
    pawl_close(p);
}

#define WALLETS 5
#define PAYERS 6
#define PAYMENTS 40

struct payer {
    struct pawl *p;
    unsigned seed;
    pthread_t thread;
};

static void *pay(void *arg)
{
    struct payer *y = arg;
    for (int i = 0; i < PAYMENTS; i++) {
        char from[8], input[64];
        snprintf(from, sizeof from, "w%u", (unsigned)rand_r(&y->seed) % WALLETS);
        snprintf(input, sizeof input, "{\"to\":\"w%u\",\"amount\":%u}",
                 (unsigned)rand_r(&y->seed) % WALLETS, 1 + (unsigned)rand_r(&y->seed) % 60);
        /* Some are refused for lack of money. */
        pawl_shown_free(ran(y->p, "Wallet.transfer", from, input));
    }
    return NULL;
}

TEST(wallets_conserve_their_sum)
{
    struct pawl *p = host(param, false);
    struct payer v[PAYERS];
    char key[8];
    for (int i = 0; i < WALLETS; i++) {
        snprintf(key, sizeof key, "w%d", i);
        completes(p, "Wallet.add", key, "100", "100");
    }
    for (unsigned i = 0; i < PAYERS; i++) {
        v[i] = (struct payer){ .p = p, .seed = i + 1 };
        EQ_INT(pthread_create(&v[i].thread, NULL, pay, &v[i]), 0);
    }
    for (int i = 0; i < PAYERS; i++)
        pthread_join(v[i].thread, NULL);
    fixture_drain(p);
    int64_t sum = 0;
    for (int i = 0; i < WALLETS; i++) {
        struct pawl_object *o;
        struct pawl_err err;
        snprintf(key, sizeof key, "w%d", i);
        OK(pawl_object_load(p, "Wallet", key, &o, &err), &err);
        int64_t n = strtoll(o->state.data, NULL, 10);
        GE_INT(n, 0);
        sum += n;
        pawl_object_free(o);
    }
    EQ_INT(sum, 100 * WALLETS);
    pawl_close(p);
}

TEST(chat_answers_in_order)
{
    struct pawl *p = host(param, false);
    struct pawl_object *o;
    struct pawl_err err;
    completes(p, "Chat.say", "s", "{\"text\": \"one\"}", "{\"n\":1,\"before\":null}");
    completes(p, "Chat.say", "s", "{\"text\": \"a \\\"b\\\\\"}", "{\"n\":2,\"before\":\"one\"}");
    completes(p, "Chat.say", "s", "{\"text\": \"3\"}", "{\"n\":3,\"before\":\"a \\\"b\\\\\"}");
    completes(p, "Chat.say", "other", "{\"text\": \"x\"}", "{\"n\":1,\"before\":null}");
    for (int i = 4; i < 9; i++)
        pawl_shown_free(ran(p, "Chat.say", "s", "{\"text\": \"more\"}"));
    OK(pawl_object_load(p, "Chat", "s", &o, &err), &err);
    static const char want[] = "{\"n\":8,\"last\":[\"more\",\"more\",\"more\",\"more\",\"more\"]}";
    EQ_BYTES(o->state.data, o->state.len, want, sizeof want - 1);
    pawl_object_free(o);
    refuses(p, "Chat.say", "s", "{\"text\": 5}", "member \"text\"");
    refuses(p, "Chat.say", NULL, "{\"text\": \"x\"}", "has no key");
    pawl_shown_free(ran(p, "Chat.forget", "s", NULL));
    completes(p, "Chat.say", "s", "{\"text\": \"again\"}", "{\"n\":1,\"before\":null}");
    pawl_close(p);
}

TEST(lab_ask_names_its_cycle)
{
    if (fixture_is_mem(param))
        return; /* The module creates a table, which mem does not support. */
    struct pawl *p = host(param, true);
    completes(p, "lab.ask", "a",
              "{\"type\":\"Wallet\",\"method\":\"add\",\"key\":\"b\",\"input\":3}", "3");
    refuses(p, "lab.ask", "a", "{\"type\":\"Wallet\",\"method\":\"balance\",\"key\":\"a\"}",
            "would wait for key \"a\"");
    refuses(p, "lab.ask", "a",
            "{\"type\":\"lab\",\"method\":\"ask\",\"key\":\"b\",\"input\":"
            "{\"type\":\"echo\",\"key\":\"a\"}}",
            "would wait for key \"a\"");
    pawl_close(p);
}

TEST(provider_runs_and_remembers)
{
    if (fixture_is_mem(param))
        return; /* It opens a file. */
    EQ_INT(system(SAMPLES "provider >first 2>&1"), 0);
    EQ_INT(system(SAMPLES "provider >second 2>&1"), 0);
    EQ_INT(system("grep -q 'pending add-3 at 3' first && grep -q 'number 3 of c1: 15' first"), 0);
    EQ_INT(system("grep -q 'known add-1 is completed' second && ! grep -q '^ran' second"), 0);
    EQ_INT(system("grep -q 'c1 keeps 15' second && grep -q 'c2 is gone' second"), 0);
    NE_INT(system(SAMPLES "provider no/such/folder/x.db >third 2>&1"), 0);
}
