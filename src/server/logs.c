/*
 * logs.c - where log lines go: stderr, as text for people or as one JSON object a line.
 *
 * Any thread. A line is built whole and written by one write(). Lines of the library that are about
 * a call begin `call "ID"`; as JSON that id is a member of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/world.h"
#include "server/server.h"

#define LINE_LEN_MAX (16 << 10)

static struct {
    pthread_mutex_t lock;
    bool json;
    char node[256];
} how = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *level_name(enum log_level level)
{
    static const char *const names[] = { "debug", "info", "warn", "error", "off" };
    return names[level];
}

/* The id in `call "ID"...`; absent when the line is about something else. */
static struct bytes call_of(const char *line)
{
    static const char begins[] = "call \"";
    if (strncmp(line, begins, sizeof(begins) - 1) != 0)
        return BYTES_NONE;
    const char *id = line + sizeof(begins) - 1, *end = strstr(id, "\"");
    return end ? (struct bytes){ id, (size_t)(end - id) } : BYTES_NONE;
}

static void add_member(struct buf *b, const char *name, struct bytes text)
{
    json_add_name(b, name);
    if (utf8_valid(text))
        json_add_string(b, text);
    else
        buf_add_text(b, "\"?\"");
}

static void add_json(struct buf *b, enum log_level level, const char *line, const char *kind)
{
    char now[TIME_TEXT_LEN + 1];
    time_text(world_now(&world_real), now);
    buf_addf(b, "{\"time\":\"%s\",\"level\":\"%s\"", now, level_name(level));
    add_member(b, "node", bytes_of(how.node));
    if (*kind)
        add_member(b, "kind", bytes_of(kind));
    if (call_of(line).data)
        add_member(b, "call", call_of(line));
    add_member(b, "message", bytes_of(line));
    buf_add_text(b, "}\n");
}

static void put(enum log_level level, const char *line, const char *kind)
{
    struct buf b;
    char now[TIME_TEXT_LEN + 1];
    buf_init(&b, LINE_LEN_MAX);
    pthread_mutex_lock(&how.lock);
    if (how.json) {
        add_json(&b, level, line, kind);
    } else {
        time_text(world_now(&world_real), now);
        buf_addf(&b, "%s %-5s %s%s%s\n", now, level_name(level), kind, *kind ? ": " : "", line);
    }
    pthread_mutex_unlock(&how.lock);
    if (buf_ok(&b)) {
        ssize_t ignored = write(STDERR_FILENO, b.data, b.len);
        (void)ignored; /* nobody is left to tell when stderr itself cannot be written */
    }
    buf_release(&b);
}

static void sink(enum log_level level, const char *line, void *ctx)
{
    (void)ctx;
    put(level, line, "");
}

/* Written whatever the level: who wants no audit has no tokens. */
void logs_audit(const char *line, void *ctx)
{
    (void)ctx;
    put(LOG_INFO, line, "audit");
}

void logs_use(const struct settings *s, const char *node)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    const char *format = s->v[SET_LOG_FORMAT].text;
    pthread_mutex_lock(&how.lock);
    how.json =
        strcmp(format, "json") == 0 || (strcmp(format, "auto") == 0 && !isatty(STDERR_FILENO));
    snprintf(how.node, sizeof(how.node), "%s", node);
    pthread_mutex_unlock(&how.lock);
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        if (strcmp(levels[i], s->v[SET_LOG_LEVEL].text) == 0)
            log_level_set((enum log_level)i);
    log_sink_set(sink, NULL);
}
