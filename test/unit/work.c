/*
 * work.c - parts of `pawl work`: a program run through pipes, and the meaning of its exit status.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <sys/wait.h>

#include "base/world.h"
#include "cli/child.h"
#include "cli/work.h"

#include "check.h"

static char *const no_env[] = { (char *)"PATH=/usr/bin:/bin", NULL };

static struct child run(const char *command, struct bytes input, int64_t for_us)
{
    struct child c;
    struct pawl_err err;
    struct child_conf conf = {
        .command = command, .env = no_env, .input = input, .output_max = 1 << 20
    };
    signal(SIGPIPE, SIG_IGN); /* as the command does */
    OK(child_open(&c, &conf, &err), &err);
    child_turn(&c, world_mono(&world_real) + for_us);
    return c;
}

static const char *output(struct child *c)
{
    buf_add_char(&c->output, 0);
    return c->output.data;
}

TEST(input_output_errors_and_exit_code)
{
    struct child c = run("cat; echo warned >&2; exit 7", BYTES("in"), 10 * SEC_US);
    TRUE(c.ended);
    EQ_STR(output(&c), "in");
    EQ_BYTES(c.tail, c.tail_len, "warned\n", 7);
    EQ_INT(WEXITSTATUS(c.status), 7);
    EQ_INT(child_end_of(c.status), CHILD_ERROR);
    child_release(&c);
}

TEST(a_program_that_does_not_read_is_not_waited_for)
{
    static char large[1 << 20];
    memset(large, 'x', sizeof(large));
    struct child c = run("echo done", (struct bytes){ large, sizeof(large) }, 10 * SEC_US);
    TRUE(c.ended);
    EQ_STR(output(&c), "done\n");
    child_release(&c);
}

TEST(both_pipes_full_do_not_lock)
{
    static char large[900000];
    memset(large, 'x', sizeof(large));
    struct child c = run("tee /dev/stderr", (struct bytes){ large, sizeof(large) }, 20 * SEC_US);
    TRUE(c.ended);
    EQ_INT(c.output.len, sizeof(large));
    EQ_INT(c.tail_len, CHILD_TAIL_LEN);
    child_release(&c);
}

TEST(too_much_output_ends_it)
{
    struct child c = run("yes", BYTES_NONE, 20 * SEC_US);
    TRUE(c.ended && c.too_long);
    child_release(&c);
}

TEST(killing_takes_the_group_and_does_not_wait)
{
    struct child c = run("trap '' TERM; sleep 60 & wait; sleep 60", BYTES_NONE, 200 * MS_US);
    FALSE(c.ended);
    child_kill(&c, false);
    TRUE(child_turn(&c, world_mono(&world_real) + 10 * SEC_US));
    TRUE(WIFSIGNALED(c.status));
    child_release(&c);
}

TEST(exit_codes)
{
    EQ_INT(child_end_of(0), CHILD_RESULT);
    EQ_INT(child_end_of(65 << 8), CHILD_REFUSE);
    EQ_INT(child_end_of(75 << 8), CHILD_LATER);
    EQ_INT(child_end_of(1 << 8), CHILD_ERROR);
    EQ_INT(child_end_of(9), CHILD_ERROR);
}

static void says(int status, const char *tail, const char *want)
{
    char text[200];
    child_error_text(status, bytes_of(tail), text, sizeof(text));
    EQ_STR(text, want);
}

TEST(the_text_of_an_error)
{
    says(1 << 8, "one\ntwo\n\n", "one\ntwo");
    says(3 << 8, "", "the program ended with exit code 3");
    says(3 << 8, " \n", "the program ended with exit code 3");
    says(9, "", "the program was ended by signal 9 (Killed)");
    says(1 << 8, "\x9f\xa6\x84 cut", " cut");
    says(1 << 8, "a\xff", "the program ended with exit code 1, and its stderr is not UTF-8");
}

static void result(const char *stdout_text, size_t len, const char *want)
{
    struct buf b;
    buf_init(&b, 1000);
    buf_add_char(&b, '{');
    child_result_add(&b, (struct bytes){ stdout_text, len });
    EQ_BYTES(b.data, b.len, want, strlen(want));
    buf_release(&b);
}

TEST(stdout_becomes_the_result)
{
    result("{\"a\": 9.99}\n", 12, "{\"result\":{\"a\": 9.99}");
    result("5", 1, "{\"result\":5");
    result("plain\n", 6, "{\"result\":\"plain\"");
    result("two\nlines\n\n", 11, "{\"result\":\"two\\nlines\\n\"");
    result("", 0, "{\"result\":\"\"");
    result("\xff\n", 2, "{\"result_base64\":\"/wo=\"");
}

TEST(the_environment_has_the_call_and_no_secret)
{
    static char *const ours[] = { (char *)"PATH=/bin",
                                  (char *)"PAWL_TOKEN=hush",
                                  (char *)"PAWL_DB=sqlite:hush",
                                  (char *)"DATABASE_URL=hush",
                                  (char *)"ORDERS=Postgres://a:hush@h/d",
                                  (char *)"TRACEPARENT=old",
                                  NULL };
    struct arena a;
    struct held h = { .id = "a b",
                      .type = "mail",
                      .method = "run",
                      .attempt = 2,
                      .timeout_us = 60 * SEC_US,
                      .trace_id = "0af7651916cd43dd8448eb211c80319c" };
    arena_init(&a, 1 << 20);
    char **env = work_environment(&a, &h, ours, 0);
    EQ_STR(env[0], "PATH=/bin");
    EQ_STR(env[1], "PAWL_CALL_ID=a b");
    EQ_STR(env[4], "PAWL_CALL_KEY=");
    EQ_STR(env[5], "PAWL_CALL_ATTEMPT=2");
    EQ_STR(env[6], "PAWL_CALL_DEADLINE=1970-01-01T00:00:59.500000Z");
    HAS_STR(env[7], "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-");
    EQ_INT(strlen(env[7]), 12 + 55);
    EQ_PTR(env[8], NULL);
    for (int i = 0; env[i]; i++)
        FALSE(strstr(env[i], "hush"));
    arena_release(&a);
}

static void finishes(struct ending_of e, int status, const char *want)
{
    struct child c = { .status = status };
    struct held h = { .id = "x", .timeout_us = 1500000 };
    struct buf b;
    buf_init(&b, 1000);
    e.child = &c;
    work_result(&b, &h, &e);
    EQ_BYTES(b.data, b.len, want, strlen(want));
    buf_release(&b);
}

TEST(what_the_server_is_told)
{
    finishes((struct ending_of){ 0 }, 0, "{\"id\":\"x\",\"result\":\"\"}");
    finishes((struct ending_of){ .later_us = 2500000 }, 75 << 8,
             "{\"id\":\"x\",\"retry_in\":2.500000}");
    finishes((struct ending_of){ 0 }, 65 << 8,
             "{\"id\":\"x\",\"error\":\"the program ended with exit code 65\",\"retry\":false}");
    finishes((struct ending_of){ .cancelled = true }, 15, "{\"id\":\"x\",\"cancelled\":true}");
    finishes((struct ending_of){ .released = true }, 15, "{\"id\":\"x\",\"release\":true}");
    finishes((struct ending_of){ .timed_out = true }, 15,
             "{\"id\":\"x\",\"error\":\"the program did not end within its timeout of 1.5 s\"}");
}

TEST(a_program_ends_a_little_before_its_timeout)
{
    EQ_INT(work_run_us(2 * SEC_US), 1800 * MS_US);
    EQ_INT(work_run_us(5 * SEC_US), 4500 * MS_US);
    EQ_INT(work_run_us(60 * SEC_US), 59500 * MS_US);
    EQ_INT(work_run_us(1), 1);
}
