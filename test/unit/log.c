/*
 * log.c - log levels, the host's log function, and whole lines on stderr.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"

static char seen[4096];
static int lines;

static void sink(const struct log_record *r, void *ctx)
{
    struct buf b;
    EQ_PTR(ctx, &lines);
    lines++;
    buf_init(&b, sizeof seen - 10);
    log_text_add(&b, r);
    TRUE(buf_ok(&b));
    snprintf(seen, sizeof seen, "%d %.*s", (int)r->level, BYTES_ARG(buf_bytes(&b)));
    buf_release(&b);
}

/* The members that a record adds to a JSON object. */
static const char *as_json(const struct log_record *r)
{
    static char text[4096];
    struct buf b;
    buf_init(&b, sizeof text - 1);
    log_json_add(&b, r);
    TRUE(buf_ok(&b));
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(buf_bytes(&b)));
    buf_release(&b);
    return text;
}

TEST(fields_are_fields)
{
    const struct log_field v[] = { LOG_TEXT("id", BYTES("a \"b\"\nc")), LOG_NUMBER("try", 2),
                                   LOG_TEXT("error", BYTES("")),
                                   LOG_TEXT("odd", BYTES("a\xff b")) };
    log_sink_set(sink, &lines);
    log_fields(LOG_WARN, "call failed", v, COUNT_OF(v));
    EQ_STR(seen, "2 call failed: id=\"a \\\"b\\\"\\nc\" try=2 error=\"\" "
                 "odd=\"a\xef\xbf\xbd b\"");
    struct log_record r = { LOG_WARN, "call failed", v, 3 };
    HAS_STR(as_json(&r), "\"message\":\"call failed\",\"id\":\"a \\\"b\\\"\\nc\",\"try\":2,"
                         "\"error\":\"\"");
    lines = 0;
    log_level_set(LOG_ERROR);
    log_fields(LOG_WARN, "below its level", v, 1);
    EQ_INT(lines, 0);
}

TEST(drops_what_is_below_its_level)
{
    log_sink_set(sink, &lines);
    log_line(LOG_INFO, "not by default");
    EQ_INT(lines, 0);
    log_line(LOG_WARN, "node %s", "a");
    EQ_STR(seen, "2 node a");
    log_level_set(LOG_DEBUG);
    log_line(LOG_DEBUG, "x");
    EQ_STR(seen, "0 x");
    log_level_set(LOG_OFF);
    log_line(LOG_ERROR, "x");
    log_line(LOG_OFF, "x");
    EQ_INT(lines, 2);
}

TEST(a_line_is_one_line)
{
    log_sink_set(sink, &lines);
    log_line(LOG_ERROR, "a\nb\r\nc");
    EQ_STR(seen, "3 a b  c");
    log_line(LOG_ERROR, "%5000d", 1);
    LT_INT((int64_t)strlen(seen), 2100);
}

TEST(stderr_without_a_sink)
{
    int fd[2];
    char text[200] = "";
    EQ_INT(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], 2);
        log_sink_set(NULL, NULL);
        log_line(LOG_WARN, "hello");
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    TRUE(read(fd[0], text, sizeof text - 1) > 0);
    HAS_STR(text, "Z warn pawl: hello\n");
    close(fd[0]);
    close(fd[1]);
}
