/*
 * samples.c - the modules echo and lab, loaded as a user loads them, each method once with right
 * and once with wrong input.
 *
 * On SQLite in the case's own folder. lab.crash kills a child process; a second one finishes its
 * call.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SAMPLES PAWL_BUILD_DIR "/samples/"
#define SECOND INT64_C(1000000)

static struct pawl *host(void)
{
    struct pawl *p = NULL;
    struct pawl_err err;
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = "sqlite:samples.db", .node = "bench" };
    OK(pawl_open(&o, &p, &err), &err);
    OK(pawl_load(p, SAMPLES "echo.so", &err), &err);
    OK(pawl_load(p, SAMPLES "lab.so", &err), &err);
    OK(pawl_start(p, NULL, &err), &err);
    return p;
}

static struct pawl_data json(const char *text)
{
    return (struct pawl_data){ text ? PAWL_JSON : PAWL_NOTHING, text, text ? strlen(text) : 0 };
}

static struct pawl_shown *ran(struct pawl *p, struct pawl_spec spec)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    spec.size = sizeof(spec);
    spec.backoff_base_us = 1000;
    OK(pawl_submit_wait(p, &spec, 20 * SECOND, &shown, &err), &err);
    return shown;
}

/* Assert that TYPE.METHOD with this input completes with this result; NULL: with none. */
static void completes(struct pawl *p, const char *type, const char *method, const char *input,
                      const char *result)
{
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){ .type = type, .method = method, .input = json(input) });
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->error, NULL);
    EQ_STR(pawl_state_name(v->state), "completed");
    if (result)
        EQ_BYTES(v->result.data, v->result.len, result, strlen(result));
    else
        EQ_INT(v->result.form, PAWL_NOTHING);
    pawl_shown_free(shown);
}

/* Assert that it is refused at its first attempt, with an error that contains these words. */
static void refuses(struct pawl *p, const char *method, const char *input, const char *words)
{
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){ .type = "lab", .method = method, .input = json(input) });
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(pawl_state_name(v->state), "failed");
    HAS_STR(v->error, words);
    EQ_INT(v->attempts, 1);
    pawl_shown_free(shown);
}

TEST(echo_returns_its_input)
{
    struct pawl *p = host();
    completes(p, "echo", "run", "{ \"a\": [1, 2.50] }", "{ \"a\": [1, 2.50] }");
    completes(p, "echo", NULL, "null", "null");
    completes(p, "echo", NULL, NULL, NULL);
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){ .type = "echo", .input = { PAWL_BYTES, "\0\xff\"", 3 } });
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "\0\xff\"",
             3);
    EQ_INT(pawl_shown_view(shown)->result.form, PAWL_BYTES);
    pawl_shown_free(shown);
    pawl_close(p);
}

TEST(sleep_takes_its_time_and_returns_nothing)
{
    struct pawl *p = host();
    completes(p, "lab", "sleep", "{\"ms\": 0}", NULL);
    struct pawl_shown *shown = ran(
        p, (struct pawl_spec){ .type = "lab", .method = "sleep", .input = json("{\"ms\": 60}") });
    const struct pawl_view *v = pawl_shown_view(shown);
    GE_INT(v->finished_at_us - v->started_at_us, 60000);
    pawl_shown_free(shown);
    refuses(p, "sleep", "{\"ms\": -1}", "member \"ms\"");
    refuses(p, "sleep", "{\"ms\": \"5\"}", "member \"ms\"");
    refuses(p, "sleep", "[]", "member \"ms\"");
    refuses(p, "sleep", NULL, "member \"ms\"");
    pawl_close(p);
}

TEST(sleep_stops_early_when_cancelled)
{
    struct pawl *p = host();
    struct pawl_err err;
    struct pawl_receipt receipt;
    struct pawl_shown *shown = NULL;
    enum pawl_state state = PAWL_PENDING;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .id = "long", .type = "lab", .method = "sleep",
                              .input = json("{\"ms\": 50000}") };
    OK(pawl_submit(p, &spec, 1, 0, &receipt, &err), &err);
    while (state == PAWL_PENDING) {
        usleep(5000);
        OK(pawl_get(p, "long", 0, &shown, &err), &err);
        state = pawl_shown_view(shown)->state;
        pawl_shown_free(shown);
    }
    OK(pawl_cancel(p, "long", &state, &err), &err);
    OK(pawl_get(p, "long", 20 * SECOND, &shown, &err), &err);
    EQ_STR(pawl_state_name(pawl_shown_view(shown)->state), "cancelled");
    pawl_shown_free(shown);
    pawl_close(p);
}

TEST(fail_reports_an_error)
{
    struct pawl *p = host();
    refuses(p, "fail", "{\"message\": \"100% \\u00e9\", \"permanent\": true}", "100% \xc3\xa9");
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){ .type = "lab",
                                   .method = "fail",
                                   .max_attempts = 2,
                                   .input = json("{\"message\": \"no\", \"permanent\": false}") });
    EQ_STR(pawl_state_name(pawl_shown_view(shown)->state), "dead_letter");
    EQ_STR(pawl_shown_view(shown)->error, "no");
    EQ_INT(pawl_shown_view(shown)->attempts, 2);
    pawl_shown_free(shown);
    refuses(p, "fail", "{\"permanent\": 1}", "member \"permanent\"");
    refuses(p, "fail", "{\"message\": {}}", "member \"message\"");
    pawl_close(p);
}

TEST(flaky_returns_the_attempt_that_succeeded)
{
    struct pawl *p = host();
    completes(p, "lab", "flaky", "{\"times\": 0}", "1");
    completes(p, "lab", "flaky", "{\"times\": 2}", "3");
    refuses(p, "flaky", "{\"times\": 1.5}", "member \"times\"");
    refuses(p, "crash", "{}", "member \"times\"");
    pawl_close(p);
}

TEST(crash_kills_its_process_and_the_next_one_finishes)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT, .id = "boom", .type = "lab", .method = "crash",
                              .input = json("{\"times\": 1}") };
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        struct pawl_shown *shown = NULL;
        setrlimit(RLIMIT_CORE, &none);
        enum pawl_status st = pawl_submit_wait(host(), &spec, 20 * SECOND, &shown, NULL);
        _exit(st == PAWL_OK ? 1 : 2);
    }
    EQ_INT(waitpid(child, &status, 0), child);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    struct pawl *p = host();
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    OK(pawl_get(p, "boom", 20 * SECOND, &shown, &err), &err);
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(pawl_state_name(v->state), "completed");
    EQ_BYTES(v->result.data, v->result.len, "2", 1);
    EQ_INT(v->lost, 1);
    pawl_shown_free(shown);
    pawl_close(p);
}

TEST(count_counts_each_call_once)
{
    struct pawl *p = host();
    completes(p, "lab", "count", "{\"name\": \"a\"}", "1");
    completes(p, "lab", "count", "{\"name\": \"a\", \"ms\": 20}", "2");
    completes(p, "lab", "count", "{\"name\": \"it's\"}", "1");
    for (int i = 0; i < 2; i++) {
        struct pawl_shown *shown = ran(p, (struct pawl_spec){ .id = "once",
                                                              .type = "lab",
                                                              .method = "count",
                                                              .input = json("{\"name\": \"a\"}") });
        EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "3", 1);
        pawl_shown_free(shown);
    }
    refuses(p, "count", "{\"name\": \"\"}", "member \"name\"");
    refuses(p, "count", "{\"name\": \"a\", \"ms\": \"1\"}", "member \"ms\"");
    char text[400];
    snprintf(text, sizeof(text), "{\"name\": \"%0256d\"}", 0);
    refuses(p, "count", text, "member \"name\"");
    completes(p, "lab", "count", "{\"name\": \"a\"}", "4");
    pawl_close(p);
}

TEST(ask_waits_for_another_call)
{
    struct pawl *p = host();
    completes(p, "lab", "ask", "{\"type\": \"echo\", \"input\": [7]}", "[7]");
    completes(p, "lab", "ask",
              "{\"type\": \"lab\", \"method\": \"count\", \"input\": {\"name\": \"asked\"}}", "1");
    refuses(p, "ask",
            "{\"type\": \"lab\", \"method\": \"fail\", \"input\": {\"message\": \"never\","
            " \"permanent\": true}}",
            "ended failed: never");
    refuses(p, "ask", "{\"method\": \"run\"}", "member \"type\"");
    refuses(p, "ask", "{\"type\": \"echo\", \"method\": 1}", "member \"method\"");
    completes(p, "lab", "ask", "{\"type\": \"echo\", \"key\": \"k\", \"input\": 1}", "1");
    refuses(p, "ask", "{\"type\": \"echo\", \"key\": \"\"}", "key");
    pawl_close(p);
}

TEST(fan_sends_calls_and_returns_their_ids)
{
    struct pawl *p = host();
    struct pawl_err err;
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){ .id = "a\"b",
                                   .type = "lab",
                                   .method = "fan",
                                   .input = json("{\"n\": 2, \"type\": \"echo\", \"input\": 5}") });
    const struct pawl_view *v = pawl_shown_view(shown);
    EQ_STR(v->error, NULL);
    EQ_BYTES(v->result.data, v->result.len, "[\"a\\\"b.1\",\"a\\\"b.2\"]", 19);
    pawl_shown_free(shown);
    OK(pawl_get(p, "a\"b.2", 20 * SECOND, &shown, &err), &err);
    EQ_BYTES(pawl_shown_view(shown)->result.data, pawl_shown_view(shown)->result.len, "5", 1);
    EQ_STR(pawl_shown_view(shown)->parent, "a\"b");
    pawl_shown_free(shown);
    completes(p, "lab", "fan", "{\"n\": 0, \"type\": \"echo\"}", "[]");
    refuses(p, "fan", "{\"n\": 10001, \"type\": \"echo\"}", "member \"n\"");
    refuses(p, "fan", "{\"n\": 1}", "member \"type\"");
    pawl_close(p);
}

TEST(big_returns_a_string_of_that_length)
{
    struct pawl *p = host();
    completes(p, "lab", "big", "{\"bytes\": 3}", "\"xxx\"");
    completes(p, "lab", "big", "{\"bytes\": 0}", "\"\"");
    struct pawl_shown *shown =
        ran(p, (struct pawl_spec){
                   .type = "lab", .method = "big", .input = json("{\"bytes\": 1048574}") });
    EQ_INT(pawl_shown_view(shown)->result.len, 1 << 20);
    pawl_shown_free(shown);
    refuses(p, "big", "{\"bytes\": 1048575}", "limit 1048576");
    refuses(p, "big", "{\"bytes\": null}", "member \"bytes\"");
    pawl_close(p);
}

TEST(hello_runs_once_and_remembers)
{
    EQ_INT(system(SAMPLES "hello >first 2>&1"), 0);
    EQ_INT(system(SAMPLES "hello >second 2>&1"), 0);
    EQ_INT(system("grep -q 'the handler runs' first && grep -q 'hello, world' first"), 0);
    EQ_INT(system("grep -q 'was known before' second && ! grep -q 'the handler runs' second"), 0);
    NE_INT(system(SAMPLES "hello no/such/folder/x.db >third 2>&1"), 0);
}
