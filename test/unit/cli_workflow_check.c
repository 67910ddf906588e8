/*
 * cli_workflow_check.c - `pawl workflow check`: stored runs of deploy_first.so against the modules
 * that may come after it (test/modules/deploy.c).
 *
 * The runs are made with the library. Each check is the program itself, on the same database.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/limits.h"
#include "cli_fixture.h"
#include "dump.h"
#include "feature/all.h"
#include "steps_fixture.h"

RUNS_ON(ENGINES_DURABLE)

#define MODULE(form) PAWL_BUILD_DIR "/test/deploy_" form ".so"

/* ---- Runs ------------------------------------------------------------------------------------ */

static struct pawl *first(const void *param)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    OK(pawl_load(p, MODULE("first"), &err), &err);
    fixture_start(p, 4);
    return p;
}

static void begin(struct pawl *p, const char *id, const char *method, const char *input)
{
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = id, .type = "deploy", .method = method, .input = pawl_text(input) });
}

/* A run that waits for the signal `go`, and nothing else. */
static void one_waits(const void *param, const char *id, const char *input)
{
    struct pawl *p = first(param);
    begin(p, id, "run", input);
    UNTIL(steps_wait(p, id, "signal"));
    pawl_close(p);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* Everything that is stored, and how many effects the modules had. The caller frees it. */
static char *world(const void *param)
{
    static const char *const tables[] = {
        "SELECT seq * 1000000 + rev FROM pawl_workflow ORDER BY seq",
        "SELECT status FROM pawl_step ORDER BY seq, no",
        "SELECT no FROM pawl_step ORDER BY seq, no",
        "SELECT no FROM pawl_signal ORDER BY seq, no",
        "SELECT name FROM pawl_published ORDER BY seq, name",
        "SELECT ended FROM pawl_child ORDER BY parent, child",
        "SELECT name FROM pawl_schedule",
        "SELECT n FROM deploy_log",
    };
    size_t n_features;
    const struct feature *const *features = features_all(&n_features);
    struct store_conf conf = { .url = engine_url(param),
                               .role = STORE_READER,
                               .features = features,
                               .n_features = n_features };
    AUTO(store_end) struct store *s = NULL;
    struct pawl_err err;
    struct stat effects;
    struct buf b;
    OK(store_open(&conf, &s, &err), &err);
    buf_init(&b, 16 << 20);
    dump_store(&b, s, LIST_MAX);
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        buf_addf(&b, "%s: %s\n", tables[i], engine_rows(param, tables[i]));
    buf_addf(&b, "effects: %lld\n", stat("effects", &effects) ? 0 : (long long)effects.st_size);
    buf_add_char(&b, '\0');
    TRUE(buf_ok(&b));
    return b.data;
}

/* Run the check with this module; nothing has changed. Returns the exit code. */
static int check_with(const void *param, const char *module, const char *more)
{
    char line[1024];
    char *before = world(param);
    snprintf(line, sizeof line, "workflow check --db '%s' --module %s --timeout 60s %s",
             engine_url(param), module, more);
    int code = cli_run(line);
    char *after = world(param);
    EQ_STR(after, before);
    free(before);
    free(after);
    return code;
}

#define CHECK_WITH(form, more) check_with(param, MODULE(form), "--json " more)

static void counts(int64_t checked, int64_t fit, int64_t broken, int64_t unknown)
{
    const struct json *v = cli_answer();
    EQ_INT(cli_number(v, "checked"), checked);
    EQ_INT(cli_number(v, "fit"), fit);
    EQ_INT(cli_number(v, "broken"), broken);
    EQ_INT(cli_number(v, "unknown"), unknown);
}

/* "run charge", or "-". */
static const char *point_text(const struct json *run, const char *name, char out[80])
{
    const struct json *p = json_member(run, name);
    snprintf(out, 80, "-");
    if (p->kind == JSON_OBJECT)
        snprintf(out, 80, "%s %s", cli_text(p, "kind"), cli_text(p, "name"));
    return out;
}

struct broken {
    const char *verdict;
    int64_t no;
    const char *stored, *asked, *problem;
};

/* The one run that is listed is this one. */
static void listed(const char *id, const struct broken *want)
{
    char text[80];
    const struct json *runs = json_member(cli_answer(), "runs"), *v = runs->first;
    EQ_INT(runs->count, 1);
    EQ_STR(cli_text(v, "id"), id);
    EQ_STR(cli_text(v, "type"), "deploy");
    EQ_STR(cli_text(v, "verdict"), want->verdict);
    EQ_INT(cli_number(v, "no"), want->no);
    EQ_STR(point_text(v, "stored", text), want->stored);
    EQ_STR(point_text(v, "asked", text), want->asked);
    HAS_STR(cli_text(v, "problem"), want->problem);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

TEST(code_that_fits)
{
    static const char *const forms[] = { MODULE("first"), MODULE("patched"), MODULE("longer") };
    one_waits(param, "x", "1");
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        EQ_INT(check_with(param, forms[i], "--json"), 0);
        counts(1, 1, 0, 0);
        EQ_INT(json_member(cli_answer(), "runs")->count, 0);
        EQ_INT(json_member(cli_answer(), "not_served")->count, 0);
    }
    EQ_INT(check_with(param, MODULE("first"), ""), 0);
    EQ_STR(cli_out, "1 live run checked: 1 fit, 0 would break\n");
}

TEST(code_that_does_not_fit_is_named_with_its_place)
{
    static const struct {
        const char *module;
        struct broken want;
    } forms[] = {
        { MODULE("renamed"), { "diverges", 2, "run charge", "run pay", "another" } },
        { MODULE("swapped"), { "diverges", 1, "run reserve", "run charge", "another" } },
        { MODULE("inserted"), { "diverges", 2, "run charge", "run audit", "another" } },
        { MODULE("other"), { "diverges", 2, "run charge", "sleep charge", "another" } },
        { MODULE("shorter"),
          { "misses", 12, "signal go", "-",
            "never asks for stored step 12: the handler returned" } },
        { MODULE("refuses"),
          { "misses", 12, "signal go", "-", "the handler refused: closed today" } },
        { MODULE("fails"), { "misses", 12, "signal go", "-", "the handler failed: no network" } },
        { MODULE("restarts"), { "misses", 12, "signal go", "-", "the handler restarts the run" } },
        { MODULE("misnamed"),
          { "fails", 5, "value uuid", "value uuid", "would fail: step \"book#2\": its name" } },
        { MODULE("crashes"),
          { "crashes", 1, "run reserve", "run reserve",
            "crashes with signal 6 (Aborted), "
            "after step 1" } },
        { MODULE("exits"),
          { "exits", 1, "run reserve", "run reserve", "exit code 3, after step 1" } },
    };
    one_waits(param, "x", "13");
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (check_with(param, forms[i].module, "--json") != 1)
            FAIL("%s: %s%s", forms[i].module, cli_out, cli_err_out);
        counts(1, 0, 1, 0);
        listed("x", &forms[i].want);
    }
}

TEST(text_names_the_run_its_place_and_both_steps)
{
    one_waits(param, "x", "1");
    EQ_INT(check_with(param, MODULE("renamed"), ""), 1);
    HAS_STR(cli_out, "run  workflow    no  stored        asked      problem\n"
                     "x    deploy.run  2   run \"charge\"  run \"pay\"  the code asks for another "
                     "step\n");
    HAS_STR(cli_out, "\n1 live run checked: 0 fit, 1 would break\n");
}

TEST(a_run_that_crashes_or_hangs_does_not_hide_the_others, .deadline_s = 120)
{
    static const struct broken hangs = { "hangs", 1, "run reserve", "run reserve",
                                         "does not end within" };
    char more[64];
    struct pawl *p = first(param);
    begin(p, "a", "run", "1");
    begin(p, "b", "run", "13");
    begin(p, "c", "run", "1");
    UNTIL(steps_wait(p, "a", "signal"));
    UNTIL(steps_wait(p, "b", "signal"));
    UNTIL(steps_wait(p, "c", "signal"));
    pawl_close(p);
    EQ_INT(CHECK_WITH("crashes", ""), 1);
    counts(3, 2, 1, 0);
    EQ_STR(cli_text(json_member(cli_answer(), "runs")->first, "id"), "b");
    /* Long enough for the two others on a busy machine. */
    snprintf(more, sizeof more, "--json --timeout %ds", 8 * check_scale());
    EQ_INT(check_with(param, MODULE("loops"), more), 1);
    counts(3, 2, 1, 0);
    listed("b", &hangs);
}

/* Its init inserts a row and declares a schedule, its handler sends, sets a state, runs SQL and
 * opens a database. */
TEST(nothing_that_code_tries_has_an_effect)
{
    one_waits(param, "x", "1");
    EQ_INT(CHECK_WITH("acts", ""), 0);
    counts(1, 1, 0, 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM deploy_log"), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_call"), 2); /* the run and its child */
}

TEST(a_call_that_code_asks_for_is_not_submitted)
{
    static const struct broken asks = { "unknown", 1, "run reserve", "run reserve",
                                        "cannot be checked further: the handler asks for call "
                                        "\"x.ask.1\", which has not ended, after step 1" };
    static const struct broken later = { "unknown", 11, "sleep nap", "sleep nap",
                                         "the handler asked to run again later" };
    one_waits(param, "x", "1");
    EQ_INT(CHECK_WITH("asks", ""), 0);
    counts(1, 0, 0, 1);
    listed("x", &asks);
    EQ_INT(engine_int(param, "SELECT count(*) FROM pawl_call"), 2);
    EQ_INT(CHECK_WITH("later", ""), 0);
    counts(1, 0, 0, 1);
    listed("x", &later);
    EQ_INT(check_with(param, MODULE("asks"), ""), 0);
    HAS_STR(cli_out, "1 live run checked: 0 fit, 0 would break, 1 cannot be checked to the end\n");
    /* With its answer stored it can be seen what follows. */
    struct pawl *p = first(param);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x.ask.1", .type = "deploy", .method = "look" });
    fixture_ends(p, "x.ask.1", PAWL_COMPLETED);
    pawl_close(p);
    EQ_INT(CHECK_WITH("asks", ""), 0);
    counts(1, 1, 0, 0);
}

static bool undoes(struct pawl *p, const char *id)
{
    return steps_wait(p, id, "retry");
}

TEST(runs_that_undo)
{
    static const struct broken renamed = { "diverges", 1, "run reserve", "run hold", "another" };
    static const struct broken shorter = { "misses", 12, "signal go", "-", "returned" };
    static const struct broken misnamed = { "misses", 6, "run book", "-", "\"book#2\": its name" };
    struct pawl *p = first(param);
    struct pawl_err err;
    begin(p, "late", "late", "1");
    UNTIL(undoes(p, "late"));
    pawl_close(p);
    /* It refused behind a wait whose time had come. */
    EQ_INT(CHECK_WITH("first", ""), 0);
    counts(1, 1, 0, 0);
    EQ_INT(CHECK_WITH("renamed", ""), 1);
    listed("late", &renamed);
    p = first(param);
    begin(p, "x", "run", "1");
    UNTIL(steps_wait(p, "x", "signal"));
    OK(pawl_workflow_cancel(p, "x", 0, NULL, &err), &err);
    UNTIL(undoes(p, "x"));
    pawl_close(p);
    EQ_INT(CHECK_WITH("first", ""), 0);
    counts(2, 2, 0, 0);
    EQ_INT(CHECK_WITH("shorter", ""), 1);
    counts(2, 1, 1, 0);
    listed("x", &shorter);
    EQ_INT(CHECK_WITH("misnamed", ""), 1);
    counts(2, 1, 1, 0);
    listed("x", &misnamed);
}

/* A step that has begun, and was cut off; a failure, with which a run ends; and one behind which
 * its former worker went on, over HTTP. */
TEST(steps_that_have_not_ended_well, .plain = true)
{
    static const char file[] = "sqlite:fixture.db";
    static const struct broken swapped = { "diverges", 1, "run reserve", "run charge", "another" };
    static const struct broken failed = { "misses", 3, "value now", "-",
                                          "the run fails with step 2" };
    one_waits(file, "x", "1");
    cli_sql("fixture.db", "UPDATE pawl_step SET status = 5, error = 'no money' WHERE no = 2");
    EQ_INT(check_with(file, MODULE("first"), "--json"), 1);
    listed("x", &failed);
    cli_sql("fixture.db", "DELETE FROM pawl_step WHERE no > 2");
    EQ_INT(check_with(file, MODULE("first"), "--json"), 0);
    counts(1, 1, 0, 0);
    cli_sql("fixture.db", "DELETE FROM pawl_step WHERE no > 1; UPDATE pawl_step SET status = 1, "
                          "completed_at = NULL");
    EQ_INT(check_with(file, MODULE("renamed"), "--json"), 0);
    counts(1, 1, 0, 0);
    EQ_INT(check_with(file, MODULE("swapped"), "--json"), 1);
    listed("x", &swapped);
    cli_sql("fixture.db", "DELETE FROM pawl_step");
    EQ_INT(check_with(file, MODULE("swapped"), "--json"), 0);
    counts(1, 1, 0, 0);
}

/* A run that has restarted has another input, and one with a key a state. */
TEST(input_and_state_are_those_of_the_run)
{
    struct pawl *p = first(param);
    begin(p, "r", "rounds", "3");
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "s", .type = "deploy", .method = "set", .key = "k" });
    fixture_ends(p, "s", PAWL_COMPLETED);
    fixture_submit_as(
        p, (struct pawl_spec){ .id = "k", .type = "deploy", .method = "keyed", .key = "k" });
    UNTIL(steps_wait(p, "r", "signal"));
    UNTIL(steps_wait(p, "k", "signal"));
    EQ_STR(engine_rows(param, "SELECT name FROM pawl_step ORDER BY seq, no"),
           "round-1\ngo\nstate-7\ngo");
    pawl_close(p);
    EQ_INT(CHECK_WITH("first", ""), 0);
    counts(2, 2, 0, 0);
}

TEST(runs_that_have_ended_or_not_begun_are_not_checked)
{
    struct pawl *p = first(param);
    struct pawl_err err;
    begin(p, "done", "run", "1");
    UNTIL(steps_wait(p, "done", "signal"));
    steps_signal(p, "done", "go", "1");
    fixture_ends(p, "done", PAWL_COMPLETED);
    begin(p, "diverged", "run", "1");
    UNTIL(steps_wait(p, "diverged", "signal"));
    pawl_close(p);
    p = fixture_open(param);
    OK(pawl_load(p, MODULE("renamed"), &err), &err);
    fixture_start(p, 2);
    steps_signal(p, "diverged", "go", "1");
    fixture_ends(p, "diverged", PAWL_DEAD_LETTER);
    pawl_close(p);
    p = fixture_open(param);
    begin(p, "waits", "run", "1");
    OK(pawl_signal(p, "waits", "go", pawl_text("1"), NULL, &err), &err);
    pawl_close(p);
    EQ_INT(CHECK_WITH("renamed", ""), 0);
    counts(0, 0, 0, 0);
    EQ_INT(check_with(param, MODULE("renamed"), ""), 0);
    EQ_STR(cli_out, "0 live runs checked: 0 fit, 0 would break\n");
}

TEST(types_and_samples)
{
    struct pawl *p = first(param);
    char id[8];
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "d%d", i);
        begin(p, id, "run", i == 0 ? "13" : "1");
        UNTIL(steps_wait(p, id, "signal"));
    }
    fixture_submit_as(p, (struct pawl_spec){ .id = "p", .type = "parcel" });
    UNTIL(steps_wait(p, "p", "signal"));
    pawl_close(p);
    EQ_INT(CHECK_WITH("crashes", ""), 1);
    counts(3, 2, 1, 0);
    const struct json *other = json_member(cli_answer(), "not_served")->first;
    EQ_STR(cli_text(other, "type"), "parcel");
    EQ_STR(cli_text(other, "method"), "run");
    EQ_INT(cli_number(other, "runs"), 1);
    /* The newest two: not the first run, which is the one that crashes. */
    EQ_INT(CHECK_WITH("crashes", "--sample 2"), 0);
    counts(2, 2, 0, 0);
    EQ_INT(CHECK_WITH("crashes", "--type deploy"), 1);
    counts(3, 2, 1, 0);
    EQ_INT(json_member(cli_answer(), "not_served")->count, 0);
    EQ_INT(CHECK_WITH("stranger", ""), 0);
    counts(0, 0, 0, 0);
    EQ_INT(json_member(cli_answer(), "not_served")->count, 2);
    EQ_INT(check_with(param, MODULE("stranger"), ""), 0);
    HAS_STR(cli_out, "not served: deploy.run, 3 live runs\n");
    HAS_STR(cli_out, "not served: parcel.run, 1 live run\n");
    /* Both modules together serve what both do; two of one type contradict each other. */
    EQ_INT(CHECK_WITH("stranger", "--module " MODULE("first")), 0);
    counts(4, 4, 0, 0);
    EQ_INT(CHECK_WITH("longer", "--module " MODULE("first")), 10);
}

/* Workers of the new version do not go on with the run that is pinned. */
TEST(pinned_runs_are_for_their_version)
{
    static const struct broken renamed = { "diverges", 2, "run charge", "run pay", "another" };
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .pin_versions = true });
    struct pawl_err err;
    setenv("DEPLOY_VERSION", "1", 1);
    OK(pawl_load(p, MODULE("first"), &err), &err);
    fixture_start(p, 4);
    begin(p, "pinned", "run", "1");
    UNTIL(steps_wait(p, "pinned", "signal"));
    pawl_close(p);
    one_waits(param, "follows", "1");
    setenv("DEPLOY_VERSION", "2", 1);
    EQ_INT(CHECK_WITH("renamed", ""), 1);
    counts(1, 0, 1, 0);
    EQ_INT(cli_number(cli_answer(), "pinned"), 1);
    listed("follows", &renamed);
    EQ_INT(CHECK_WITH("first", ""), 0);
    counts(1, 1, 0, 0);
    EQ_INT(check_with(param, MODULE("first"), ""), 0);
    HAS_STR(cli_out, "pinned to other versions: 1 live run\n");
    setenv("DEPLOY_VERSION", "1", 1);
    EQ_INT(CHECK_WITH("renamed", ""), 1);
    counts(2, 0, 2, 0);
    EQ_INT(cli_number(cli_answer(), "pinned"), 0);
}

/* More runs than are read at once. */
TEST(pages, .deadline_s = 180)
{
    enum { RUNS = 230 };
    struct pawl *p = first(param);
    char id[8];
    for (int i = 0; i < RUNS; i++) {
        snprintf(id, sizeof id, "r%d", i);
        begin(p, id, "rounds", "1");
    }
    for (int i = 0; i < RUNS; i++) {
        snprintf(id, sizeof id, "r%d", i);
        UNTIL(steps_wait(p, id, "signal"));
    }
    pawl_close(p);
    EQ_INT(CHECK_WITH("renamed", ""), 0);
    counts(RUNS, RUNS, 0, 0);
    EQ_INT(CHECK_WITH("renamed", "--sample 150"), 0);
    counts(150, 150, 0, 0);
}

TEST(progress_is_drawn_on_a_terminal)
{
    char line[1024];
    one_waits(param, "x", "1");
    snprintf(line, sizeof line, CLI_PROGRAM " workflow check --db '%s' --module %s",
             engine_url(param), MODULE("renamed"));
    EQ_INT(cli_on_terminal(line), 1);
    HAS_STR(cli_out, "workflow check: 1 run, 1 would break");
    HAS_STR(cli_out, "1 live run checked: 0 fit, 1 would break");
}

/* ---- Usage ----------------------------------------------------------------------------------- */

TEST(wrong_usage, .plain = true)
{
    static const struct {
        const char *args;
        int code;
        const char *says;
    } bad[] = {
        { "", 2, "option --module is missing" },
        { "--module " MODULE("first"), 3, "no such file" },
        { "--db sqlite:u.db --module none.so", 3, "module \"./none.so\" cannot be loaded" },
        { "--db sqlite:u.db --module " PAWL_BUILD_DIR "/libpawl.so", 2, "pawl_module_init" },
        { "--db sqlite:u.db --module " MODULE("dies"), 2, "crashed with signal 6 (Aborted)" },
        { "--db sqlite:u.db --module " MODULE("first") " --sample 0", 2, "--sample" },
        { "--db sqlite:u.db --module " MODULE("first") " --timeout 0s", 2, "--timeout" },
        { "--db sqlite:u.db --module " MODULE("first") " --type ''", 2, "--type" },
        { "--db sqlite:u.db --module " MODULE("first") " --limit 3", 2, "--limit" },
        { "--db sqlite:u.db --module " MODULE("first") " x", 2, "unexpected argument \"x\"" },
        { "--db sqlite:empty.db --module " MODULE("first"), 13, "schema" },
        { "--db mem:x --module " MODULE("first"), 2, "calls only" },
    };
    EQ_INT(cli_run("migrate up --db sqlite:u.db"), 0);
    cli_sql("empty.db", "CREATE TABLE mine (x)");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char line[600];
        snprintf(line, sizeof line, "workflow check %s", bad[i].args);
        int code = cli_run(line);
        if (code != bad[i].code)
            FAIL("%s: exit code %d, want %d: %s", bad[i].args, code, bad[i].code, cli_err_out);
        HAS_STR(cli_err_out, bad[i].says);
    }
    EQ_INT(cli_run("workflow show x --sample 3"), 2);
    HAS_STR(cli_err_out, "option --sample cannot be used with pawl workflow show");
    EQ_INT(cli_run("workflow --help"), 0);
    HAS_STR(cli_out, "pawl workflow check --module build/samples/order.so");
    EQ_INT(cli_run_with("PAWL_MODULE=" MODULE("first") " PAWL_DB=sqlite:u.db", "workflow check"),
           0);
    EQ_STR(cli_out, "0 live runs checked: 0 fit, 0 would break\n");
}
