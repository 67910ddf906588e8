/*
 * wallet - an object with a state: `Wallet` keeps a balance for each key.
 *
 * Calls of one key run one at a time and in order, so a handler reads the balance, decides and sets
 * the new one without a lock; the balance commits together with the reply. Every method refuses for
 * good what would be wrong the next time too: no key, a wrong input, too little money.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names are at most this long, in bytes. */
#define KEY_MAX 255

/* Read the balance of this wallet; a new wallet has 0. Non-zero: what the handler must return. */
static int need_balance(struct pawl_call *c, int64_t *out)
{
    if (!pawl_call_key(c))
        return pawl_refuse(c, "call \"%s\" has no key: a wallet is named by its key",
                           pawl_call_id(c));
    *out = pawl_state_int(c, 0);
    if (pawl_state(c).form != PAWL_NOTHING && pawl_state_int(c, 1) != *out)
        return pawl_refuse(c, "wallet \"%s\" does not hold a whole number", pawl_call_key(c));
    return 0;
}

/* Add n to the balance and set the state; refused when the sum is below 0 or over 64 bits. */
static int keep_sum(struct pawl_call *c, int64_t balance, int64_t n, int64_t *out)
{
    if ((n > 0 && balance > INT64_MAX - n) || (n < 0 && balance < INT64_MIN - n))
        return pawl_refuse(c, "balance %" PRId64 " and %" PRId64 " do not fit in 64 bits", balance,
                           n);
    if (balance + n < 0)
        return pawl_refuse(c, "balance %" PRId64 " is not enough for %" PRId64, balance, n);
    *out = balance + n;
    pawl_set_state_int(c, *out); /* if it cannot be set, the reply is an error that says so */
    return 0;
}

/* Wallet.add N: returns the new balance. N may be below 0; the balance may not. */
static int add(struct pawl_call *c)
{
    int64_t n = 0, balance = 0;
    int bad = need_balance(c, &balance);
    if (!bad && pawl_input_int(c, &n) != 0)
        bad = pawl_refuse(c, "input must be a whole number");
    if (!bad)
        bad = keep_sum(c, balance, n, &balance);
    return bad ? bad : pawl_reply_int(c, balance);
}

/* Wallet.balance */
static int balance_of(struct pawl_call *c)
{
    int64_t balance = 0;
    int bad = need_balance(c, &balance);
    return bad ? bad : pawl_reply_int(c, balance);
}

/* The receiver and the amount of a transfer. */
static int need_transfer(struct pawl_call *c, const char **to, int64_t *amount)
{
    if (pawl_input_get_text(c, "to", to) != 0 || !**to || strlen(*to) > KEY_MAX)
        return pawl_refuse(c, "member \"to\" must be the key of a wallet");
    if (pawl_input_get_int(c, "amount", amount) != 0 || *amount <= 0)
        return pawl_refuse(c, "member \"amount\" must be a whole number above 0");
    return 0;
}

/* Wallet.transfer {"to": key, "amount": n}: takes n from this wallet and sends the other one an
 * `add`, in one commit: the money is never in both wallets, and is never lost. Returns the new
 * balance. A transfer to the same wallet works too: the money leaves, and the next call adds it
 * again. */
static int transfer(struct pawl_call *c)
{
    const char *to = NULL;
    int64_t amount = 0, balance = 0;
    struct pawl_err err;
    int bad = need_balance(c, &balance);
    if (!bad)
        bad = need_transfer(c, &to, &amount);
    if (!bad)
        bad = keep_sum(c, balance, -amount, &balance);
    if (bad)
        return bad;
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, amount);
    /* Its id is derived from this call's, so a second attempt sends the same call. Money that has
     * left this wallet must arrive: the add gets the most attempts that are allowed. */
    struct pawl_spec spec = { PAWL_SPEC_INIT,
                              .type = "Wallet",
                              .method = "add",
                              .key = to,
                              .input = { PAWL_JSON, text, (size_t)len },
                              .max_attempts = 1000,
                              .max_lost = 1000 };
    enum pawl_status st = pawl_send(c, &spec, &err);
    if (st == PAWL_INVALID)
        return pawl_refuse(c, "member \"to\" must be the key of a wallet");
    if (st != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    return pawl_reply_int(c, balance);
}

PAWL_MODULE(m)
{
    if (pawl_on(m, "Wallet", "add", add) != PAWL_OK ||
        pawl_on(m, "Wallet", "balance", balance_of) != PAWL_OK ||
        pawl_on(m, "Wallet", "transfer", transfer) != PAWL_OK)
        return;
}
