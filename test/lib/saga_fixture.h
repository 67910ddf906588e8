/*
 * saga_fixture.h - a program of sagas over money that is killed and started again, and the count
 * afterwards.
 *
 * A saga takes ten steps with a child, a sleep and a signal between them. Its steps move money
 * between accounts and write a line into a table without a unique key, so an effect that happened
 * twice is there twice; two steps also write into a file that stands for the world outside of the
 * database. The program is the driver as well: it submits the runs, sends each its signal, cancels
 * those that are to be cancelled, and ends when every run has. All it asks for has an id or a key,
 * so it begins from the front after every start. No matter when it was killed, saga_check() must
 * find what each run was to do.
 *
 * A case that starts programs passes no crash point itself, because the first one reads the
 * environment.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SAGA_FIXTURE_H
#define SAGA_FIXTURE_H

#include <sys/types.h>

#include "fixture.h"

enum { SAGA_STEPS = 10, SAGA_RUNS_MAX = 8, SAGA_ACCOUNTS = 5 };

/* What one step does. */
struct saga_step {
    const char *name;
    bool sql;     /* it moves money */
    bool undo;    /* it has an undo */
    bool outside; /* it writes into the file of the world outside */
    bool lazy;    /* its result is stored with the next step */
    bool sends;   /* it sends a call */
};
/* From 1 on. */
extern const struct saga_step saga_steps[SAGA_STEPS + 1];

/* How a run is to end. */
enum saga_end {
    SAGA_COMPLETES,
    SAGA_REFUSED,   /* step `at` refuses, and has done nothing */
    SAGA_FAILS,     /* every try of step `at` does its work and then fails */
    SAGA_LATE,      /* every try of step `at` does its work and outlives its timeout */
    SAGA_DECLINED,  /* the handler refuses behind step `at` */
    SAGA_TOLD,      /* its signal tells it to stop */
    SAGA_UNTOLD,    /* its signal does not come in time */
    SAGA_CANCELLED, /* it is cancelled in step `at`, which waits for that; 0: when it is submitted
                     */
    SAGA_ENDS
};

struct saga_plan {
    enum saga_end end;
    int at;
    int trips;    /* the first try of this step, and of its undo, fails; 0: none */
    bool early;   /* its signal is sent before it waits for it */
    bool keyed;   /* it has the key that all such runs of the program have */
    bool lingers; /* the step waits for its cancel; else that may come too late */
    bool obeys;   /* the step that is cancelled does its work and then stops; else it ends well */
};

/* A program. */
struct saga_program {
    const char *url;
    const char *prefix; /* of the ids of its runs: PREFIX-0, ..., and of the file PREFIX.world */
    struct saga_plan v[SAGA_RUNS_MAX];
    int n;
    const char *node; /* NULL: "saga" */
    int slots;
    int64_t beat_us, grace_us; /* 0: those of fixture_open() */
    const char *crash, *log;   /* PAWL_CRASH and PAWL_CRASH_LOG; NULL: unset */
    /* Called by a step before it does its work and when it has done it, also by the undo of a step;
     * NULL: nothing is. */
    void (*inside)(const char *run, int step, bool undoes, bool done);
};

/* A plan of this many runs, from a seed. */
void saga_plan(struct saga_program *s, int n, uint64_t seed);
/* Make the tables of the application; once per database. Runs in a process of its own. */
void saga_make(const char *url);
/* Start the program in a process of its own. */
pid_t saga_start(const struct saga_program *s);
/* Wait for it. Returns true when it was killed, false when it has ended everything; any other end
 * fails the case. */
bool saga_killed(pid_t pid);
/* Wait for any of those that were started; *out: which. */
bool saga_killed_any(pid_t *out);
/* The same in this process and on this thread; returns when every run has ended. */
void saga_run(const struct saga_program *s);

/* ---- The file of the world outside ----------------------------------------------------------- */

/* What happened, as it is written there. A kill may come between what happened and its line, but
 * not between two lines of it. */
#define SAGA_PASS "pass"       /* a pass of the run begins */
#define SAGA_LEFT "left"       /* its handler returns */
#define SAGA_LISTENS "listens" /* it comes to its signal */
#define SAGA_BEGUN "begun"     /* a try of the step begins */
#define SAGA_DID "did"         /* the effect of the step outside */
#define SAGA_KNOWN "known"     /* an undo of the step begins, with the step's result */
#define SAGA_UNKNOWN "unknown" /* an undo begins, of a step that may have happened */
#define SAGA_UNDID "undid"     /* the effect outside is undone */

/* Add a line. Any process. */
void saga_note(const struct saga_program *s, const char *run, const char *step, const char *what);
/* How many lines say this; NULL: anything. */
int saga_noted(const struct saga_program *s, const char *run, const char *step, const char *what);

/* ---- Afterwards (saga_check.c) --------------------------------------------------------------- */

/* Assert that every run of the program has ended as planned, with every effect once, what had to be
 * undone undone in order, and no money lost. To be called once per program, when no process has the
 * database open. `kills`: how often it was killed. */
void saga_check(const struct saga_program *s, int kills);
/* The rows of its runs' steps and of what they did, as text; valid until the next call. */
const char *saga_rows(const struct saga_program *s);

#endif
