/*
 * deploy.c - the module of cli_workflow_check: one workflow before a deploy, and what may come
 * after it. -DDEPLOY=NAME chooses which of them is built, as deploy_NAME.so; the environment may
 * give it a version.
 *
 * Its steps and undos add a line to the file `effects`, so that a test sees that none has run.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum deploy {
    FIRST,    /* what the runs began with */
    RENAMED,  /* a step has another name */
    SWAPPED,  /* two steps have changed places */
    INSERTED, /* a step in the middle */
    PATCHED,  /* the same step behind pawl_patched() */
    LONGER,   /* a step at the end */
    SHORTER,  /* it returns where it waited */
    REFUSES,  /* it refuses there */
    FAILS,    /* it fails there */
    LATER,    /* it wants to run again later there */
    RESTARTS, /* it restarts there */
    MISNAMED, /* a name that no step may have */
    OTHER,    /* a wait in place of a step */
    CRASHES,  /* behind the first step, where the input is 13 */
    EXITS,    /* it ends the process there */
    LOOPS,    /* it does not end there */
    ACTS,     /* it tries to have effects */
    ASKS,     /* it asks for a call */
    DIES,     /* it crashes while it is loaded */
    STRANGER, /* it serves another type */
};

static void note(const char *what)
{
    int fd = open("effects", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || dprintf(fd, "%s\n", what) < 0)
        abort();
    close(fd);
}

static int does(struct pawl_call *c, void *name)
{
    note(name);
    return pawl_reply_text(c, name);
}

/* It never ends, so a run that undoes goes on doing so. */
static int undoes(struct pawl_call *c, int known, struct pawl_data result, void *name)
{
    (void)known, (void)result;
    note(name);
    return pawl_later(c, PAWL_DAY);
}

static int step(struct pawl_call *c, const char *name)
{
    return pawl_step(
        c, &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = does, .arg = (void *)name },
        NULL);
}

static int undoable(struct pawl_call *c, const char *name)
{
    return pawl_step(c,
                     &(struct pawl_step){ PAWL_STEP_INIT, .name = name, .run = does, .undo = undoes,
                                          .arg = (void *)name },
                     NULL);
}

/* ---- What a handler should not do ------------------------------------------------------------ */

/* Outside of steps: all of it has to be refused, or to stay in memory. */
static void act(struct pawl_call *c)
{
    struct pawl_err err;
    struct pawl *p = NULL;
    const struct pawl_rows *rows;
    if (pawl_open(NULL, &p, &err) == PAWL_OK ||
        pawl_sql(c, "INSERT INTO deploy_log VALUES (2)", NULL, 0, &rows, &err) == PAWL_OK)
        abort();
    if (pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "deploy", .method = "sent" },
                  &err) != PAWL_OK)
        abort();
    pawl_set_state_int(c, 99);
    pawl_publish(c, "at", PAWL_TEXT("\"act\""));
    pawl_sleep(c, PAWL_DAY);
    printf("a line on stdout\n");
}

static int ask(struct pawl_call *c)
{
    struct pawl_err err;
    const struct pawl_view *v;
    return pawl_ask(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "deploy", .method = "asked" },
                    &v, &err) != PAWL_OK;
}

/* What becomes of it behind its first step. */
static void go_wrong(struct pawl_call *c)
{
    int64_t n = 0;
    if (pawl_input_int(c, &n) || n != 13)
        return;
    if (DEPLOY == CRASHES)
        abort();
    if (DEPLOY == EXITS)
        exit(3);
    while (DEPLOY == LOOPS)
        usleep(1000);
}

/* ---- deploy.run ------------------------------------------------------------------------------ */

/* A child says what comes next. */
static int by_child(struct pawl_call *c)
{
    struct pawl_err err;
    const struct pawl_view *v;
    const char *id;
    char name[32] = "";
    if (pawl_step_child(c, "look",
                        &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "deploy", .method = "look" },
                        &id) ||
        pawl_step_join(c, PAWL_ALL, &id, 1, 0))
        return 1;
    if (pawl_step_result(c, id, &v, &err) != PAWL_OK)
        abort();
    if (v->result.len > 2)
        snprintf(name, sizeof name, "%.*s", (int)v->result.len - 2,
                 (const char *)v->result.data + 1);
    return step(c, name);
}

static int values(struct pawl_call *c)
{
    int64_t now;
    uint64_t dice;
    char id[37];
    return pawl_step_now(c, &now) || pawl_step_random(c, &dice) || pawl_step_uuid(c, id);
}

static int ends(struct pawl_call *c)
{
    switch (DEPLOY) {
    case REFUSES:
        return pawl_refuse(c, "closed today");
    case FAILS:
        return pawl_fail(c, "no network");
    case LATER:
        return pawl_later(c, PAWL_DAY);
    case RESTARTS:
        return pawl_restart(c, PAWL_TEXT("1"));
    default:
        return pawl_reply_int(c, 0);
    }
}

static int run(struct pawl_call *c)
{
    if (DEPLOY == ACTS)
        act(c);
    if (undoable(c, DEPLOY == SWAPPED ? "charge" : "reserve"))
        return 0;
    go_wrong(c);
    if (DEPLOY == INSERTED && step(c, "audit"))
        return 0;
    if (DEPLOY == PATCHED && pawl_patched(c, "audit") && step(c, "audit"))
        return 0;
    if (DEPLOY == ASKS && ask(c))
        return 0;
    if (DEPLOY == OTHER ? pawl_step_sleep(c, "charge", 1)
                        : undoable(c, DEPLOY == SWAPPED   ? "reserve"
                                      : DEPLOY == RENAMED ? "pay"
                                                          : "charge"))
        return 0;
    pawl_publish(c, "at", PAWL_TEXT("\"charged\""));
    if (values(c) || step(c, DEPLOY == MISNAMED ? "book#2" : "book") || step(c, "book") ||
        by_child(c) || pawl_step_sleep(c, "nap", 1000))
        return 0;
    if (DEPLOY == SHORTER || DEPLOY == REFUSES || DEPLOY == FAILS || DEPLOY == LATER ||
        DEPLOY == RESTARTS)
        return ends(c);
    if (pawl_step_signal(c, "go", 0, NULL) || step(c, "mail") ||
        (DEPLOY == LONGER && step(c, "audit")))
        return 0;
    return pawl_reply_int(c, 1);
}

/* ---- Other runs ------------------------------------------------------------------------------ */

static int look(struct pawl_call *c)
{
    return pawl_reply_text(c, "found");
}

/* deploy.late: nobody answers in time, and it is undone. */
static int late(struct pawl_call *c)
{
    if (undoable(c, DEPLOY == RENAMED ? "hold" : "reserve"))
        return 0;
    int code = pawl_step_signal(c, "answer", 1000, NULL);
    return code == PAWL_STEP_TIMEOUT ? pawl_refuse(c, "no answer") : 0;
}

/* deploy.rounds N: each round is a run of its own; the last one waits. */
static int rounds(struct pawl_call *c)
{
    int64_t n = 0;
    char name[32], next[24];
    if (pawl_input_int(c, &n))
        return pawl_refuse(c, "a number");
    snprintf(name, sizeof name, "round-%" PRId64, n);
    if (step(c, name))
        return 0;
    snprintf(next, sizeof next, "%" PRId64, n - 1);
    if (n > 1)
        return pawl_restart(c, pawl_text(next));
    return pawl_step_signal(c, "go", 0, NULL) ? 0 : pawl_reply_int(c, 1);
}

/* deploy.keyed: the state of its object says which step it takes. */
static int keyed(struct pawl_call *c)
{
    char name[32];
    snprintf(name, sizeof name, "state-%" PRId64, pawl_state_int(c, 0));
    return step(c, name) || pawl_step_signal(c, "go", 0, NULL) ? 0 : pawl_reply_int(c, 1);
}

static int set(struct pawl_call *c)
{
    pawl_set_state_int(c, 7);
    return 0;
}

/* All of this is for the start of workers. */
static void begin_to_act(struct pawl_module *m)
{
    const struct pawl_spec call = { PAWL_SPEC_INIT, .type = "deploy", .method = "sent" };
    pawl_prepare(m, "INSERT INTO deploy_log VALUES (1)");
    pawl_schedule(m, &(struct pawl_schedule){ PAWL_SCHEDULE_INIT, .name = "often",
                                              .every_us = PAWL_SECOND, .call = &call });
}

PAWL_MODULE(m)
{
    if (DEPLOY == DIES)
        abort();
    if (DEPLOY == STRANGER) {
        pawl_on(m, "stranger", "run", look);
        return;
    }
    const char *version = getenv("DEPLOY_VERSION");
    if (version)
        pawl_module_version(m, version);
    if (DEPLOY == ACTS)
        begin_to_act(m);
    pawl_prepare(m, "CREATE TABLE IF NOT EXISTS deploy_log (n INT)");
    pawl_on(m, "deploy", "run", run);
    pawl_on(m, "deploy", "look", look);
    pawl_on(m, "deploy", "late", late);
    pawl_on(m, "deploy", "rounds", rounds);
    pawl_on(m, "deploy", "keyed", keyed);
    pawl_on(m, "deploy", "set", set);
    if (DEPLOY == FIRST)
        pawl_on(m, "parcel", "run", keyed);
}
