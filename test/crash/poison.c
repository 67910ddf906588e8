/*
 * poison.c - a call that kills its process, among 500 good ones that were claimed with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

enum { GOOD = 500, MAX_LOST = 5 };

static int poison(struct pawl_call *c)
{
    (void)c;
    abort();
}

/* A process that serves both types until nothing is left. */
static void serve(void *param)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    alarm((unsigned)(100 * check_scale()));
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    fixture_on(p, "good", fixture_echo);
    fixture_on(p, "poison", poison);
    fixture_start(p, 64);
    fixture_drain(p);
    pawl_close(p);
    _exit(0);
}

static void submit_all(void *param, int at)
{
    static struct pawl_spec v[GOOD + 1];
    static struct pawl_receipt r[GOOD + 1];
    static char ids[GOOD + 1][16];
    struct pawl_err err;
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    for (int i = 0; i <= GOOD; i++) {
        snprintf(ids[i], sizeof ids[i], i == at ? "poison" : "g%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i],
                                   .type = i == at ? "poison" : "good", .max_lost = MAX_LOST };
    }
    OK(pawl_submit(p, v, GOOD + 1, PAWL_ATOMIC, r, &err), &err);
    pawl_close(p);
}

/* How often its process died before everything had ended. */
static int run_until_done(void *param)
{
    for (int deaths = 0;; deaths++) {
        pid_t pid = fork();
        if (pid == 0)
            serve(param);
        int status = 0;
        EQ_INT(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return deaths;
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            FAIL("a worker ended with status %x", status);
        LE_INT(deaths, MAX_LOST + 1);
    }
}

static void check_good(struct pawl *p, int at)
{
    int charged = 0;
    for (int i = 0; i <= GOOD; i++) {
        char id[32];
        if (i == at)
            continue;
        snprintf(id, sizeof id, "g%d", i);
        struct pawl_shown *shown = fixture_get(p, id);
        const struct pawl_view *v = pawl_shown_view(shown);
        EQ_INT(v->state, PAWL_COMPLETED);
        EQ_INT(v->attempts, 0);
        LE_INT(v->lost, 1); /* the single claim they were in */
        charged += v->lost;
        pawl_shown_free(shown);
    }
    printf("%d of %d good calls were lost once\n", charged, GOOD);
}

static void poisoned(void *param, int at)
{
    submit_all(param, at);
    int64_t begun = fixture_mono();
    EQ_INT(run_until_done(param), MAX_LOST);
    int64_t took = fixture_mono() - begun;
    printf("done after %lld ms\n", (long long)(took / 1000));
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    struct pawl_shown *shown = fixture_get(p, "poison");
    EQ_INT(pawl_shown_view(shown)->state, PAWL_DEAD_LETTER);
    EQ_INT(pawl_shown_view(shown)->lost, MAX_LOST);
    pawl_shown_free(shown);
    check_good(p, at);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), GOOD);
    pawl_close(p);
    LT_INT(took, 30 * FIXTURE_SEC * check_scale());
}

TEST(a_poison_call_first_among_500, .deadline_s = 240)
{
    poisoned(param, 0);
}

TEST(a_poison_call_in_the_middle_of_500, .deadline_s = 240)
{
    poisoned(param, GOOD / 2);
}

/* ---- Together with a full queue -------------------------------------------------------------- */

/* Two slots, and calls that count as quick: the first claim takes 202 calls of the full queue, the
 * second takes the poison call together with older ones of that queue. */
enum { SLOTS = 2, BULK = 600 };

static struct pawl *node;
static int already; /* completed in earlier rounds */
static atomic_int returned;
static atomic_bool poisoned_inside;

static int bulk(struct pawl_call *c)
{
    while (atomic_load(&poisoned_inside))
        pause();
    atomic_fetch_add(&returned, 1);
    return pawl_reply_int(c, 1);
}

/* The other slot runs a call of an earlier claim: this round proves nothing. */
enum { TWO_LEASES = 77 };
static const char *database;

/* Die when every result is stored: then the only unfinished calls before it in its lease are
 * running ones. */
static int poison_stored(struct pawl_call *c)
{
    (void)c;
    atomic_store(&poisoned_inside, true);
    while (fixture_count(node, PAWL_COMPLETED) < already + atomic_load(&returned))
        ;
    if (engine_int(database, "SELECT count(*) FROM pawl_lease") > 1)
        _exit(TWO_LEASES);
    abort();
}

static _Noreturn void serve_bulk(void *param)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    fixture_assume_quick();
    database = param;
    node = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    fixture_on(node, "good", bulk);
    fixture_on(node, "poison", poison_stored);
    fixture_start(node, SLOTS);
    for (;;)
        pause();
}

static void submit_bulk(struct pawl *p, const char *id, int round)
{
    static struct pawl_spec v[BULK];
    static struct pawl_receipt r[BULK];
    static char ids[BULK][16];
    struct pawl_err err;
    for (int i = 0; i < BULK; i++) {
        snprintf(ids[i], sizeof ids[i], "g%d-%d", round, i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = "good", .queue = "bulk" };
    }
    OK(pawl_submit(p, v, BULK, PAWL_ATOMIC, r, &err), &err);
    fixture_submit(p, id, "poison");
}

/* A process works until the poison call has run. False: this round proves nothing; all its calls
 * have ended. */
static bool bulk_dies(void *param, const char *id, int round)
{
    int status = 0;
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    already = fixture_count(p, PAWL_COMPLETED);
    submit_bulk(p, id, round);
    pawl_close(p);
    pid_t pid = fork();
    if (pid == 0)
        serve_bulk(param);
    EQ_INT(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != TWO_LEASES) {
        TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        return true;
    }
    p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    fixture_on(p, "good", fixture_echo);
    fixture_on(p, "poison", fixture_echo);
    fixture_start(p, SLOTS);
    fixture_drain(p);
    pawl_close(p);
    return false;
}

/* Its first death is charged to it, and to none of the waiting calls that were claimed with it. */
TEST(a_poison_call_beside_a_full_queue)
{
    char id[32];
    int round = 0;
    do {
        LT_INT(round, 10);
        snprintf(id, sizeof id, "poison%d", round);
    } while (!bulk_dies(param, id, round++));
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "n" });
    /* Joins the registry, which takes back the first one's calls. */
    fixture_on(p, "other", fixture_echo);
    fixture_start(p, 1);
    struct pawl_shown *shown = fixture_get(p, id);
    EQ_INT(pawl_shown_view(shown)->lost, 1);
    pawl_shown_free(shown);
    pawl_close(p);
    LT_INT(engine_int(param, "SELECT count(*) FROM pawl_ready WHERE lost > 0"), SLOTS + 1);
}
