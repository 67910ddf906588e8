/*
 * lib_workflows_code.c - what the code of a run may do and may not: change, begin again; and
 * what of it is undone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* ---- Changes --------------------------------------------------------------------------------- */

static int changes(struct pawl_call *c)
{
    int version = atomic_load(&steps_told);
    if (steps_do_undoable(c, version == 2 ? "other" : "a"))
        return 0;
    if (pawl_step_signal(c, "go", 0, NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(changed_code_stops_the_run_and_mended_code_goes_on)
{
    struct pawl *p = steps_open(param, changes);
    struct pawl_err err;
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    atomic_store(&steps_told, 2);
    steps_signal(p, "x", "go", "1");
    steps_end(p, "x", PAWL_DEAD_LETTER, "step 1 is run \"a\", and the code asks for run \"other\"");
    atomic_store(&steps_told, 1);
    OK(pawl_retry(p, "x", &err), &err);
    steps_complete(p, "x", "1");
    EQ_STR(steps_log, "a");
    pawl_close(p);
}

static int patched(struct pawl_call *c)
{
    if (steps_do(c, "a"))
        return 0;
    if (atomic_load(&steps_told) && pawl_patched(c, "mail-first") && steps_do(c, "mail"))
        return 0;
    if (pawl_step_signal(c, "go", 0, NULL))
        return 0;
    if (atomic_load(&steps_told) && !pawl_patched(c, "mail-first") && steps_do(c, "late-mail"))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_change_is_for_runs_that_met_it_first)
{
    struct pawl *p = steps_open(param, patched);
    fixture_start(p, 2);
    steps_start(p, "old", "1");
    UNTIL(steps_wait(p, "old", "signal"));
    atomic_store(&steps_told, 1);
    steps_start(p, "new", "1");
    UNTIL(steps_wait(p, "new", "signal"));
    EQ_STR(steps_log, "a a mail");
    steps_signal(p, "old", "go", "1");
    steps_complete(p, "old", "1");
    EQ_STR(steps_log, "a a mail late-mail");
    steps_signal(p, "new", "go", "1");
    steps_complete(p, "new", "1");
    EQ_STR(steps_log, "a a mail late-mail");
    pawl_close(p);
}

static int counts_down(struct pawl_call *c)
{
    int64_t n = 0;
    char next[32];
    if (pawl_input_int(c, &n) || steps_do_undoable(c, "round"))
        return 0;
    if (n == 0)
        return pawl_reply_int(c, 5);
    snprintf(next, sizeof next, "%d", (int)n - 1);
    return pawl_restart(c, pawl_text(next));
}

TEST(a_run_begins_again_with_another_input)
{
    struct pawl *p = steps_open(param, counts_down);
    fixture_start(p, 2);
    steps_start(p, "x", "3");
    steps_complete(p, "x", "5");
    EQ_STR(steps_log, "round round round round");
    pawl_close(p);
}

static int values(struct pawl_call *c)
{
    static int64_t now;
    static uint64_t random;
    static char uuid[37];
    int64_t then;
    uint64_t dice;
    char id[37];
    if (pawl_step_now(c, &then) || pawl_step_random(c, &dice) || pawl_step_uuid(c, id) ||
        steps_do(c, "a"))
        return 0;
    if (!now) {
        now = then;
        random = dice;
        memcpy(uuid, id, sizeof id);
    }
    EQ_INT(then, now);
    EQ_UINT(dice, random);
    EQ_STR(id, uuid);
    return pawl_step_sleep(c, "nap", 1000) ? 0 : pawl_reply_int(c, 1);
}

TEST(values_are_the_same_on_every_pass)
{
    struct pawl *p = steps_open(param, values);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "1");
    pawl_close(p);
}

/* ---- Undoing --------------------------------------------------------------------------------- */

static int undo_fails(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    (void)known;
    EQ_BYTES(result.data, result.len, "\"b\"", 3);
    steps_note("tries-un", arg);
    return atomic_load(&steps_told) ? 0 : pawl_fail(c, "no money");
}

static int stuck(struct pawl_call *c)
{
    if (steps_do_undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = steps_run,
                                       .undo = undo_fails, .arg = "b",
                                       .backoff_base_us = FIXTURE_MS, .max_attempts = 2 },
                  NULL))
        return 0;
    return pawl_refuse(c, "no");
}

TEST(an_undo_out_of_tries_stops_the_run_and_a_retry_goes_on_with_it)
{
    struct pawl *p = steps_open(param, stuck);
    struct pawl_err err;
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_end(p, "x", PAWL_DEAD_LETTER, "undo:b: no money");
    EQ_STR(steps_log, "a b tries-unb tries-unb");
    atomic_store(&steps_told, 1);
    OK(pawl_retry(p, "x", &err), &err);
    steps_end(p, "x", PAWL_FAILED, "no");
    EQ_STR(steps_log, "a b tries-unb tries-unb tries-unb una");
    pawl_close(p);
}

/* The second pass is the first one that undoes; it does not come to the steps. */
static int not_now(struct pawl_call *c)
{
    int passes = atomic_fetch_add(&steps_told, 1);
    int64_t how = 0;
    pawl_input_int(c, &how);
    if (passes == 1 && how == 1)
        return pawl_fail(c, "not now");
    if (passes == 1 && how == 2)
        return pawl_later(c, FIXTURE_MS);
    if (steps_do_undoable(c, "a"))
        return 0;
    if (passes == 1)
        return pawl_reply_int(c, 1);
    return steps_do_undoable(c, "b") ? 0 : pawl_refuse(c, "no");
}

TEST(a_pass_that_does_not_come_to_a_step_undoes_nothing)
{
    struct pawl *p = steps_open(param, not_now);
    fixture_start(p, 2);
    for (int how = 1; how <= 3; how++) {
        char id[] = { 'x', (char)('0' + how), 0 };
        atomic_store(&steps_told, 0);
        steps_log[0] = 0;
        fixture_submit_as(p, (struct pawl_spec){ .id = id,
                                                 .type = "flow",
                                                 .backoff_base_us = FIXTURE_MS,
                                                 .input = pawl_text(id + 1) });
        steps_end(p, id, PAWL_FAILED, "no");
        EQ_STR(steps_log, "a b unb una");
    }
    pawl_close(p);
}

/* What the handler does behind its first step, wrongly. */
static int misuses(struct pawl_call *c)
{
    int64_t how = 0;
    pawl_input_int(c, &how);
    if (steps_do_undoable(c, "a"))
        return 0;
    int code = how == 1   ? pawl_step_child(c, "kid", NULL, NULL)
               : how == 2 ? pawl_step_sleep(c, "a#b", 1)
               : how == 3 ? pawl_step_sleep(c, NULL, 1)
                          : pawl_publish(c, "", pawl_text("1"));
    return code ? 0 : pawl_reply_int(c, 1);
}

TEST(a_call_that_is_wrong_fails_the_run_which_undoes)
{
    static const char *const texts[] = { "pawl_step_child: an argument is NULL",
                                         "step \"a#b\": its name has \"#\"", "name is NULL",
                                         "a published value: its name" };
    struct pawl *p = steps_open(param, misuses);
    fixture_start(p, 2);
    for (size_t how = 1; how <= COUNT_OF(texts); how++) {
        char id[] = { 'x', (char)('0' + how), 0 };
        steps_log[0] = 0;
        steps_start(p, id, id + 1);
        steps_end(p, id, PAWL_FAILED, texts[how - 1]);
        EQ_STR(steps_log, "a una");
    }
    pawl_close(p);
}

/* Its process dies inside the step; what it did is not known. */
static int dies(struct pawl_call *c, void *arg)
{
    (void)arg;
    if (atomic_load(&steps_told))
        kill(getpid(), SIGKILL);
    return pawl_reply_int(c, 1);
}

static int in_doubt(struct pawl_call *c)
{
    if (steps_do_undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = dies, .undo = steps_undo,
                                       .arg = "b" },
                  NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_step_that_may_have_happened_is_undone_as_unknown)
{
    const char *url = engine_url(param);
    struct pawl_err err;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
        fixture_on(p, "flow", in_doubt);
        atomic_store(&steps_told, 1);
        fixture_start(p, 2);
        steps_start(p, "x", "1");
        fixture_ended(p, "x");
        _exit(0);
    }
    waitpid(pid, &status, 0);
    TRUE(WIFSIGNALED(status));
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .db = url });
    fixture_on(p, "flow", in_doubt);
    OK(pawl_cancel(p, "x", NULL, &err), &err);
    fixture_start(p, 2);
    fixture_ends(p, "x", PAWL_CANCELLED);
    EQ_STR(steps_log, "perhaps-unb una");
    pawl_close(p);
}

static int hangs(struct pawl_call *c, void *arg)
{
    steps_note("", arg);
    if (atomic_fetch_add(&steps_told, 1) < 1)
        pawl_sleep(c, 600 * FIXTURE_SEC);
    return pawl_reply_int(c, 3);
}

/* The first try of b hangs; with the input 1 it has no other. */
static int too_slow(struct pawl_call *c)
{
    int64_t tries = 0;
    pawl_input_int(c, &tries);
    if (steps_do_undoable(c, "a") ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = hangs,
                                       .undo = steps_undo, .arg = "b",
                                       .timeout_us = 200 * FIXTURE_MS, .backoff_base_us = 1,
                                       .max_attempts = (int)tries },
                  NULL))
        return 0;
    return pawl_reply_int(c, 1);
}

TEST(a_step_has_a_timeout_of_its_own)
{
    struct pawl *p = steps_open(param, too_slow);
    fixture_start(p, 2);
    steps_start(p, "x", "2");
    steps_complete(p, "x", "1");
    EQ_STR(steps_log, "a b b");
    atomic_store(&steps_told, 0);
    steps_log[0] = '\0';
    steps_start(p, "y", "1");
    steps_end(p, "y", PAWL_FAILED, "took longer than its timeout of 0.2 s");
    EQ_STR(steps_log, "a b perhaps-unb una");
    pawl_close(p);
}

/* ---- Retry ----------------------------------------------------------------------------------- */

static int refuses_first(struct pawl_call *c, void *arg)
{
    (void)arg;
    return atomic_load(&steps_told) ? pawl_reply_int(c, 3) : pawl_refuse(c, "not today");
}

static int refused_step(struct pawl_call *c)
{
    struct pawl_data three;
    if (steps_do(c, "a") ||
        pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "b", .run = refuses_first },
                  &three))
        return 0;
    return pawl_reply(c, three);
}

TEST(a_retry_tries_the_step_again_that_failed_last)
{
    struct pawl *p = steps_open(param, refused_step);
    struct pawl_err err;
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_end(p, "x", PAWL_FAILED, "not today");
    atomic_store(&steps_told, 1);
    OK(pawl_retry(p, "x", &err), &err);
    steps_complete(p, "x", "3");
    EQ_STR(steps_log, "a");
    pawl_close(p);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* What the call `echo` answers to this digit; below 0: there was no answer. */
static int64_t answer_to(struct pawl_call *c, int n)
{
    const char text[] = { (char)('0' + n), 0 };
    const struct pawl_view *v;
    struct pawl_err err;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = "echo", .input = pawl_text(text) };
    return pawl_ask(c, &spec, &v, &err) == PAWL_OK ? ((const char *)v->result.data)[0] - '0' : -1;
}

static int ask(struct pawl_call *c, void *n)
{
    int64_t got = answer_to(c, *(int *)n);
    return got < 0 ? pawl_refuse(c, "there was no answer") : pawl_reply_int(c, got);
}

static int asks(struct pawl_call *c)
{
    struct pawl_data got[2];
    int64_t mine = answer_to(c, 7);
    for (int i = 0; i < 2; i++) {
        int n = i + 1;
        if (pawl_step(c,
                      &(struct pawl_step){ PAWL_STEP_INIT, .name = "ask", .run = ask, .arg = &n },
                      &got[i]) ||
            pawl_step_sleep(c, "nap", FIXTURE_MS))
            return 0;
    }
    EQ_BYTES(got[0].data, got[0].len, "1", 1);
    EQ_BYTES(got[1].data, got[1].len, "2", 1);
    return pawl_reply_int(c, mine);
}

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

/* A later pass does not run the first step again, and so asks fewer calls than the one before. */
TEST(a_step_never_gets_the_answer_of_another_one)
{
    struct pawl *p = steps_open(param, asks);
    fixture_on(p, "echo", echo);
    fixture_start(p, 4);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "7");
    EQ_INT(fixture_state(p, "x.ask.1"), PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "x.ask.ask.1"), PAWL_COMPLETED);
    EQ_INT(fixture_state(p, "x.ask#2.ask.1"), PAWL_COMPLETED);
    pawl_close(p);
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static int inserts(struct pawl_call *c, void *arg)
{
    struct pawl_err err;
    struct pawl_value v = { .kind = PAWL_V_INT, .i = *(const int *)arg };
    enum pawl_status st = pawl_sql(c, "INSERT INTO box VALUES (?)", &v, 1, NULL, &err);
    if (st != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    OK(pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "sent" }, &err), &err);
    if (atomic_fetch_add(&steps_told, 1) == 1)
        return pawl_fail(c, "rolled back");
    return pawl_reply_int(c, v.i);
}

static int box(struct pawl_call *c)
{
    const struct pawl_rows *rows;
    struct pawl_err err;
    for (int i = 1; i <= 3; i++)
        if (pawl_step(c,
                      &(struct pawl_step){ PAWL_STEP_INIT, .name = "put", .run = inserts, .arg = &i,
                                           .arg_size = sizeof i, .backoff_base_us = FIXTURE_MS },
                      NULL))
            return 0;
    EQ_STATUS(pawl_sql(c, "SELECT 1", NULL, 0, &rows, &err), PAWL_STATE, &err);
    return pawl_reply_int(c, 1);
}

static int boxed(struct pawl_call *c)
{
    const struct pawl_rows *rows;
    struct pawl_err err;
    OK(pawl_sql(c, "SELECT count(*), sum(n) FROM box", NULL, 0, &rows, &err), &err);
    return pawl_reply_int(c, rows->v[0].i);
}

TEST(sql_and_sends_of_a_step_commit_with_its_result)
{
    struct pawl *p = steps_open(param, box);
    OK(pawl_prepare(pawl_program(p), "CREATE TABLE IF NOT EXISTS box (n INTEGER PRIMARY KEY)"),
       NULL);
    fixture_on(p, "count", boxed);
    fixture_start(p, 2);
    steps_start(p, "x", "1");
    steps_complete(p, "x", "1");
    EQ_INT(atomic_load(&steps_told), 4);
    fixture_submit(p, "y", "count");
    steps_complete(p, "y", "3");
    EQ_INT(fixture_state(p, "x.put.1"), PAWL_PENDING);
    EQ_INT(fixture_state(p, "x.put#2.1"), PAWL_PENDING);
    EQ_INT(fixture_state(p, "x.put#3.1"), PAWL_PENDING);
    EQ_INT(fixture_count(p, 0), 5);
    pawl_close(p);
}
