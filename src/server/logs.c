/*
 * logs.c - log lines on stderr, as text for people or as one JSON object a line.
 *
 * Any thread. A line is built whole and written by one write(). The subject of a line is in fields
 * (base/log.h): members of their own in JSON, name=value after the sentence in text.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

static void add_line(struct buf *b, const struct log_record *r, const char *kind)
{
    char now[TIME_TEXT_LEN + 1];
    time_text(world_now(&world_real), now);
    pthread_mutex_lock(&how.lock);
    if (how.json) {
        buf_addf(b, "{\"time\":\"%s\",\"level\":\"%s\"", now, log_level_name(r->level));
        if (*how.node) { /* the event service has no nodes */
            json_add_name(b, "node");
            json_add_string(b, utf8_valid(bytes_of(how.node)) ? bytes_of(how.node) : BYTES("?"));
        }
        if (*kind) {
            json_add_name(b, "kind");
            json_add_string(b, bytes_of(kind));
        }
        log_json_add(b, r);
        buf_add_text(b, "}\n");
    } else {
        buf_addf(b, "%s %-5s %s%s", now, log_level_name(r->level), kind, *kind ? ": " : "");
        log_text_add(b, r);
        buf_add_char(b, '\n');
    }
    pthread_mutex_unlock(&how.lock);
}

static void put(const struct log_record *r, const char *kind)
{
    struct buf b;
    buf_init(&b, LINE_LEN_MAX);
    add_line(&b, r, kind);
    if (buf_ok(&b)) {
        ssize_t ignored = write(STDERR_FILENO, b.data, b.len);
        (void)ignored; /* when stderr cannot be written, there is nowhere left to report it */
    }
    buf_release(&b);
}

static void sink(const struct log_record *r, void *ctx)
{
    (void)ctx;
    put(r, "");
}

/* Written at every level; a server without tokens writes none. */
void logs_audit(const struct log_record *r, void *ctx)
{
    (void)ctx;
    put(r, "audit");
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

void logs_say_file(const struct cli *cli)
{
    char folder[PATH_MAX] = "?";
    const char *named = getenv("PAWL_CONFIG");
    if (!cli->settings.file || cli_flag(cli, "config") || (named && *named))
        return;
    if (!getcwd(folder, sizeof(folder)))
        snprintf(folder, sizeof(folder), "?");
    log_line(LOG_INFO, "settings are from ./%s, in %s", cli->settings.file, folder);
}
