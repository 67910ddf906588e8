/*
 * history.h - what clients saw and what the database holds in the end, and whether both together
 * keep the promises of doc/promises.md, 1 to 7.
 *
 * Whoever fills it in writes down every request with the moments it was sent and answered, and
 * every fault; then reads the tables. history_check() says which promise was broken, by which
 * calls, when. It knows the samples: wallets whose balance is their state, transfers that send an
 * add, counters in a table of the application's own, and calls that kill their process.
 *
 * Times are microseconds of the machine's clock as it was at the start, going on evenly: those of a
 * database on the same machine can be laid beside them. Nothing here knows threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_ID = 32, HISTORY_NAME = 16, HISTORY_TEXT = 80 };
enum { HISTORY_PROMISES = 7, HISTORY_SHOWN = 20, HISTORY_LINE = 400 };

/* There is no result. */
#define HISTORY_NONE INT64_MIN

enum history_kind { HISTORY_ADD, HISTORY_TRANSFER, HISTORY_COUNT, HISTORY_POISON };

/* A call some client wants made. */
struct history_call {
    char id[HISTORY_ID];
    char key[HISTORY_NAME]; /* "": none */
    char to[HISTORY_NAME];  /* the other wallet, or the counter */
    enum history_kind kind;
    int64_t amount; /* of money; of a poison: how often its owner may die of it */
    /* Found by history_check(), 0: never. */
    int64_t begun_us, accepted_us, ended_us;
    const struct history_row *row;
};

/* One request for a call, as its client saw it. */
struct history_ask {
    size_t call; /* which of the history's */
    int node;
    int64_t sent_us, answered_us;
    int status; /* of HTTP; 0: no answer came */
    bool other; /* the id with another meaning, to be refused */
    bool duplicate;
    int state; /* enum pawl_state, 0: none was said */
    int64_t result;
    char error[HISTORY_TEXT];
};

/* A call as the database has it. */
struct history_row {
    int64_t seq;
    char id[HISTORY_ID], parent[HISTORY_ID];
    char key[HISTORY_NAME], method[HISTORY_NAME], node[HISTORY_NAME];
    int state; /* enum pawl_state, 0: it has not ended */
    int64_t key_no;
    int attempts, lost;
    int64_t claimed_us, started_us, finished_us; /* of the try that ended it */
    int64_t result;
    char error[HISTORY_TEXT];
    /* Found by history_check(). */
    const struct history_call *call, *sender; /* whose it is; that of the call that sent it */
    int sent;                                 /* calls it sent */
    int tries;                                /* of it that were lost */
};

/* A try whose owner was lost. */
struct history_try {
    int64_t seq;
    int no;
    char node[HISTORY_NAME];
    int64_t finished_us;           /* when it was taken away */
    const struct history_row *row; /* found by history_check() */
};

/* A wallet's balance, or a counter. */
struct history_sum {
    char name[HISTORY_NAME];
    int64_t n;
};

/* What was done to a node, or with node -1 to the database. A DEATH is one of its own, by poison; a
 * clean stop and a cut connection are no fault at all: nobody may lose anything by them. */
enum history_fault_kind { HISTORY_KILL, HISTORY_FREEZE, HISTORY_DEATH, HISTORY_AWAY };
struct history_fault {
    enum history_fault_kind kind;
    int node;
    int64_t at_us, until_us;
};

struct history {
    int64_t began_us;
    int64_t grace_us; /* silence after which a node is taken for dead */
    int64_t slack_us; /* what a busy machine may add to any promised time */
    struct history_call *calls;
    struct history_ask *asks;
    struct history_row *rows;
    struct history_try *tries;
    struct history_sum *wallets, *counters;
    struct history_fault *faults;
    size_t n_calls, n_asks, n_rows, n_tries, n_wallets, n_counters, n_faults;
    int64_t left; /* rows in the tables of what waits or is held */
    /* Filled in by history_check(): how often each promise was broken, and the first findings. */
    int broken[HISTORY_PROMISES + 1];
    char found[HISTORY_SHOWN][HISTORY_LINE];
    int n_found;
};

void history_init(struct history *h);
void history_release(struct history *h);
/* The present moment. */
int64_t history_now(void);

/* Each ends the case when there is no memory. */
size_t history_add_call(struct history *h, const struct history_call *c);
void history_add_ask(struct history *h, const struct history_ask *a);
void history_add_row(struct history *h, const struct history_row *r);
void history_add_try(struct history *h, const struct history_try *t);
void history_add_wallet(struct history *h, const struct history_sum *s);
void history_add_counter(struct history *h, const struct history_sum *s);
void history_add_fault(struct history *h, const struct history_fault *f);
/* What another one wrote down, behind its own: a client each, put together in the end. */
void history_add_all(struct history *h, const struct history *from);

/* The number of findings, each in broken[] and the first in found[]. Sorts what it is given. */
int history_check(struct history *h);

/* All of it into a file, for people. */
void history_write(const struct history *h, const char *path);

/* ---- For history_check()'s parts -------------------------------------------------------------
 */

void history_found(struct history *h, int promise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Seconds since the beginning. */
double history_at(const struct history *h, int64_t us);
const char *history_state(int state);
/* 1, 2 and 3 need what was asked; 4, 2 the lines; 5, 6 and 7 who owned what. */
void history_check_asks(struct history *h);
void history_check_lines(struct history *h);
void history_check_owners(struct history *h);

#endif
