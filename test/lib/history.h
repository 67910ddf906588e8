/*
 * history.h - what clients saw and what the database holds in the end, checked together against
 * promises 1 to 7 of doc/promises.md.
 *
 * The test records every request with the times when it was sent and answered, and every fault;
 * then it reads the tables. history_check() reports which promise was broken, by which calls, and
 * when. It knows the samples: wallets whose balance is their state, transfers that send an add,
 * counters in a table of the application, and calls that kill their process.
 *
 * Times are microseconds: the wall clock at the start, continued with the monotonic clock. So they
 * can be compared with times of a database on the same machine. Not thread-safe.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_ID = 32, HISTORY_NAME = 16, HISTORY_TEXT = 80 };
enum { HISTORY_PROMISES = 7, HISTORY_SHOWN = 20, HISTORY_LINE = 400 };

/* The call has no result. */
#define HISTORY_NONE INT64_MIN

enum history_kind { HISTORY_ADD, HISTORY_TRANSFER, HISTORY_COUNT, HISTORY_POISON };

/* A call that a client submits. */
struct history_call {
    char id[HISTORY_ID];
    char key[HISTORY_NAME]; /* "": none */
    char to[HISTORY_NAME];  /* the other wallet, or the counter */
    enum history_kind kind;
    int64_t amount; /* of money; for a poison call: how often its process may die */
    /* Set by history_check(); 0: never. */
    int64_t begun_us, accepted_us, ended_us;
    const struct history_row *row;
};

/* One request for a call, as its client saw it. */
struct history_ask {
    size_t call; /* index in the history's calls */
    int node;
    int64_t sent_us, answered_us;
    int status; /* HTTP status; 0: no answer */
    bool other; /* the id was reused for another call, which must be refused */
    bool duplicate;
    int state; /* enum pawl_state, 0: not in the answer */
    int64_t result;
    char error[HISTORY_TEXT];
};

/* A call as it is stored. */
struct history_row {
    int64_t seq;
    char id[HISTORY_ID], parent[HISTORY_ID];
    char key[HISTORY_NAME], method[HISTORY_NAME], node[HISTORY_NAME];
    int state; /* enum pawl_state, 0: it has not ended */
    int64_t key_no;
    int attempts, lost;
    int64_t claimed_us, started_us, finished_us; /* of the attempt that ended it */
    int64_t result;
    char error[HISTORY_TEXT];
    /* Set by history_check(). */
    const struct history_call *call, *sender; /* this call; the call that sent it */
    int sent;                                 /* calls it sent */
    int n_lost;                               /* its lost attempts */
};

/* An attempt whose owner was lost. */
struct history_attempt {
    int64_t seq;
    int no;
    char node[HISTORY_NAME];
    int64_t finished_us;           /* when it was taken back */
    const struct history_row *row; /* set by history_check() */
};

/* A wallet's balance, or a counter. */
struct history_sum {
    char name[HISTORY_NAME];
    int64_t n;
};

/* A fault of a node, or with node -1 of the database. DEATH: the process died of a poison call. A
 * clean stop and a cut connection are not faults: no attempt may be lost because of them. */
enum history_fault_kind { HISTORY_KILL, HISTORY_FREEZE, HISTORY_DEATH, HISTORY_AWAY };
struct history_fault {
    enum history_fault_kind kind;
    int node;
    int64_t at_us, until_us;
};

struct history {
    int64_t began_us;
    int64_t grace_us; /* time without a heartbeat after which a node is dead */
    int64_t slack_us; /* tolerance for a busy machine, added to every promised time */
    struct history_call *calls;
    struct history_ask *asks;
    struct history_row *rows;
    struct history_attempt *attempts;
    struct history_sum *wallets, *counters;
    struct history_fault *faults;
    size_t n_calls, n_asks, n_rows, n_attempts, n_wallets, n_counters, n_faults;
    int64_t left; /* rows left in the tables of pending and claimed calls */
    /* Set by history_check(): how often each promise was broken, and the first findings. */
    int broken[HISTORY_PROMISES + 1];
    char found[HISTORY_SHOWN][HISTORY_LINE];
    int n_found;
};

/* An empty history. */
void history_init(struct history *h);
/* Free the history. */
void history_release(struct history *h);
/* The present time. */
int64_t history_now(void);

/* Append a call and return its index. The history_add functions end the case when there is no
 * memory. */
size_t history_add_call(struct history *h, const struct history_call *c);
/* Append a request. */
void history_add_ask(struct history *h, const struct history_ask *a);
/* Append a stored call. */
void history_add_row(struct history *h, const struct history_row *r);
/* Append a lost attempt. */
void history_add_attempt(struct history *h, const struct history_attempt *t);
/* Append a wallet's final balance. */
void history_add_wallet(struct history *h, const struct history_sum *s);
/* Append a counter's final value. */
void history_add_counter(struct history *h, const struct history_sum *s);
/* Append a fault. */
void history_add_fault(struct history *h, const struct history_fault *f);
/* Append everything from another history: each client has its own, and they are joined in the end.
 */
void history_add_all(struct history *h, const struct history *from);

/* Check the promises. Returns the number of findings; each is counted in broken[], the first are in
 * found[]. Sorts the arrays. */
int history_check(struct history *h);

/* Write everything to a file, for people. */
void history_write(const struct history *h, const char *path);

/* ---- For history_check()'s parts ------------------------------------------------------------- */

/* Record a finding about this promise, built like printf. */
void history_found(struct history *h, int promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Seconds since the start. */
double history_at(const struct history *h, int64_t us);
/* The state's name. */
const char *history_state(int state);
/* Promises 1, 2 and 3, from the requests and answers. */
void history_check_asks(struct history *h);
/* Promises 4 and 2, from the order of calls of each key. */
void history_check_lines(struct history *h);
/* Promises 5, 6 and 7, from the owners of lost attempts. */
void history_check_owners(struct history *h);

#endif
