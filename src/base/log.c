/*
 * log.c - one line at a time, to stderr or to the host's sink.
 *
 * Any thread. A line is built whole and written by one write(), so that lines of threads and
 * processes do not mix; line ends inside it become blanks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/world.h"

#define LINE_LEN_MAX 2048

static atomic_int level_min = LOG_WARN;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sink {
    void (*fn)(enum log_level level, const char *line, void *ctx);
    void *ctx;
} sink;

void log_level_set(enum log_level level)
{
    atomic_store(&level_min, (int)level);
}

void log_sink_set(void (*fn)(enum log_level level, const char *line, void *ctx), void *ctx)
{
    pthread_mutex_lock(&sink_lock);
    sink = (struct sink){ fn, ctx };
    pthread_mutex_unlock(&sink_lock);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    case LOG_OFF:
        break;
    }
    return "?";
}

static void to_stderr(enum log_level level, const char *text)
{
    char now[TIME_TEXT_LEN + 1], line[LINE_LEN_MAX + 64];
    time_text(world_now(&world_real), now);
    int n = snprintf(line, sizeof line, "%s %s pawl: %s\n", now, level_name(level), text);
    if (n <= 0)
        return;
    /* Nobody is left to tell when stderr itself cannot be written. */
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if ((int)level < atomic_load_explicit(&level_min, memory_order_relaxed) || level >= LOG_OFF)
        return;
    char text[LINE_LEN_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';

    pthread_mutex_lock(&sink_lock);
    struct sink s = sink;
    pthread_mutex_unlock(&sink_lock);
    /* Outside the lock: a sink may log. */
    if (s.fn)
        s.fn(level, text, s.ctx);
    else
        to_stderr(level, text);
}
