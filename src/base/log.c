/*
 * log.c - log lines, to stderr or to the host's sink.
 *
 * Any thread. A line is built whole and written by one write(), so that the lines of threads and
 * processes do not mix. Line breaks in a message become blanks; those in a field are escaped.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "base/world.h"

#define MESSAGE_LEN_MAX 2048
#define LINE_LEN_MAX (16 << 10)
/* The longest field: room for an error and its cause. */
#define FIELD_LEN_MAX 2000

static atomic_int level_min = LOG_WARN;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sink {
    void (*fn)(const struct log_record *r, void *ctx);
    void *ctx;
} sink;

void log_level_set(enum log_level level)
{
    atomic_store(&level_min, (int)level);
}

void log_sink_set(void (*fn)(const struct log_record *r, void *ctx), void *ctx)
{
    pthread_mutex_lock(&sink_lock);
    sink = (struct sink){ fn, ctx };
    pthread_mutex_unlock(&sink_lock);
}

const char *log_level_name(enum log_level level)
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

/* ---- Writing a record ------------------------------------------------------------------------ */

/* Bytes that are not UTF-8 become U+FFFD, because programs parse the line. */
static void add_string(struct buf *b, struct bytes text)
{
    json_add_string(b, utf8_cut(text, FIELD_LEN_MAX));
}

static void add_value(struct buf *b, const struct log_field *f)
{
    if (f->text.data)
        add_string(b, f->text);
    else
        buf_add_int(b, f->number);
}

void log_text_add(struct buf *b, const struct log_record *r)
{
    buf_add_text(b, r->message);
    for (size_t i = 0; i < r->n_fields; i++) {
        buf_addf(b, "%s %s=", i || !*r->message ? "" : ":", r->fields[i].name);
        add_value(b, &r->fields[i]);
    }
}

void log_json_add(struct buf *b, const struct log_record *r)
{
    json_add_name(b, "message");
    add_string(b, bytes_of(r->message));
    for (size_t i = 0; i < r->n_fields; i++) {
        json_add_name(b, r->fields[i].name);
        add_value(b, &r->fields[i]);
    }
}

static void to_stderr(const struct log_record *r)
{
    char now[TIME_TEXT_LEN + 1];
    struct buf b;
    time_text(world_now(&world_real), now);
    buf_init(&b, LINE_LEN_MAX);
    buf_addf(&b, "%s %s pawl: ", now, log_level_name(r->level));
    log_text_add(&b, r);
    buf_add_char(&b, '\n');
    char poor[300]; /* without memory: the message alone */
    int n = snprintf(poor, sizeof poor, "%s %s pawl: %.200s\n", now, log_level_name(r->level),
                     r->message);
    /* When stderr cannot be written, there is nowhere left to report it. */
    ssize_t ignored = buf_ok(&b) ? write(STDERR_FILENO, b.data, b.len)
                                 : write(STDERR_FILENO, poor, (size_t)MAX(n, 0));
    (void)ignored;
    buf_release(&b);
}

/* ---- Logging --------------------------------------------------------------------------------- */

static bool wanted(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed) && level < LOG_OFF;
}

static void put(const struct log_record *r)
{
    pthread_mutex_lock(&sink_lock);
    struct sink s = sink;
    pthread_mutex_unlock(&sink_lock);
    /* Outside the lock: a sink may log. */
    if (s.fn)
        s.fn(r, s.ctx);
    else
        to_stderr(r);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if (!wanted(level))
        return;
    char text[MESSAGE_LEN_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    put(&(struct log_record){ .level = level, .message = text });
}

void log_fields(enum log_level level, const char *message, const struct log_field *v, size_t n)
{
    if (wanted(level))
        put(&(struct log_record){ level, message, v, n });
}
