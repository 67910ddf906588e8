/*
 * history_read.c - read the tables into a history after a test, page by page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos_load.h"
#include "db_server.h"
#include "fixture.h"

/* Rows in one page; the answer has room for many times more. */
#define PAGE 5000

/* How an engine converts bytes, or text, to UTF-8: the SQL before and behind a column. */
struct speech {
    const char *bytes[2], *text[2];
};

static const struct speech *speech_of(const void *param)
{
    static const struct speech pg = { { "convert_from(", ",'UTF8')" }, { "", "" } };
    static const struct speech my = { { "convert(", " using utf8mb4)" },
                                      { "convert(", " using utf8mb4)" } };
    return strcmp(engine_of(param)->says, "postgres") == 0 ? &pg : &my;
}

/* A column as text, "" for NULL. */
static const char *say(const char *const *how, const char *column)
{
    static char v[8][120];
    static int at;
    char *out = v[at++ % 8];
    snprintf(out, sizeof v[0], "coalesce(%s%s%s,'')", how[0], column, how[1]);
    return out;
}

/* ---- Reading columns ------------------------------------------------------------------------- */

static char *column(char **line)
{
    char *v = strsep(line, "\t");
    if (!v)
        FAIL("a row has too few columns");
    return v;
}

static int64_t number(char **line)
{
    return strtoll(column(line), NULL, 10);
}

static void name(char **line, char *out, size_t size)
{
    const char *v = column(line);
    if (strlen(v) >= size)
        FAIL("\"%s\" is longer than a name of ours", v);
    snprintf(out, size, "%s", v);
}
#define NAME(line, field) name(line, field, sizeof(field))

static int64_t result_of(const char *text)
{
    char *end;
    int64_t n = strtoll(text, &end, 10);
    return end == text || *end ? HISTORY_NONE : n;
}

static int64_t read_row(struct history *h, char *line)
{
    struct history_row r = { .seq = number(&line) };
    NAME(&line, r.id);
    NAME(&line, r.key);
    NAME(&line, r.parent);
    NAME(&line, r.method);
    r.state = (int)number(&line);
    r.key_no = number(&line);
    r.attempts = (int)number(&line);
    r.lost = (int)number(&line);
    NAME(&line, r.node);
    r.claimed_us = number(&line);
    r.started_us = number(&line);
    r.finished_us = number(&line);
    r.result = result_of(column(&line));
    snprintf(r.error, sizeof r.error, "%s", line ? line : "");
    history_add_row(h, &r);
    return r.seq;
}

static int64_t read_attempt(struct history *h, char *line)
{
    struct history_attempt t = { .seq = number(&line), .no = (int)number(&line) };
    NAME(&line, t.node);
    t.finished_us = number(&line);
    history_add_attempt(h, &t);
    return t.seq;
}

static struct history_sum read_sum(char *line)
{
    struct history_sum s;
    NAME(&line, s.name);
    s.n = number(&line);
    return s;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Call `one` for every line of an answer. Returns the number of lines; *last is the last seq. */
static size_t each(struct history *h, const void *param, const char *sql, int64_t *last,
                   int64_t (*one)(struct history *h, char *line))
{
    char *text = strdup(engine_rows(param, sql)), *at = text;
    size_t n = 0;
    TRUE(text != NULL);
    for (char *line; (line = strsep(&at, "\n")) && *line; n++)
        *last = one(h, line);
    free(text);
    return n;
}

static void read_rows(struct history *h, const void *param)
{
    const struct speech *s = speech_of(param);
    char sql[1500];
    int64_t last = 0;
    do
        snprintf(sql, sizeof sql,
                 "SELECT c.seq, %s, %s, %s, %s, coalesce(o.status,0), coalesce(o.key_no,0),"
                 " coalesce(o.attempts,0), coalesce(o.lost,0), %s, coalesce(o.claimed_at,0),"
                 " coalesce(o.started_at,0), coalesce(o.finished_at,0), %s, %s"
                 " FROM pawl_call c LEFT JOIN pawl_outcome o ON o.seq = c.seq"
                 " WHERE c.seq > %lld ORDER BY c.seq LIMIT %d",
                 say(s->text, "c.id"), say(s->text, "c.key"), say(s->text, "c.parent"),
                 say(s->text, "c.method"), say(s->text, "o.node"), say(s->bytes, "o.result"),
                 say(s->text, "o.error"), (long long)last, PAGE);
    while (each(h, param, sql, &last, read_row) > 0);
}

/* A page ends at the end of a call, so that no call is read twice. */
static void read_counts(struct history *h, const void *param)
{
    const struct speech *s = speech_of(param);
    char sql[1000];
    int64_t last = 0, top = engine_int(param, "SELECT coalesce(max(seq),0) FROM pawl_call");
    for (int64_t from = 0; from <= top; from += PAGE) {
        snprintf(sql, sizeof sql,
                 "SELECT seq, no, %s, finished_at FROM pawl_attempt"
                 " WHERE how = 8 AND seq > %lld AND seq <= %lld ORDER BY seq, no",
                 say(s->text, "node"), (long long)from, (long long)(from + PAGE));
        each(h, param, sql, &last, read_attempt);
    }
}

static int64_t read_wallet(struct history *h, char *line)
{
    struct history_sum s = read_sum(line);
    history_add_wallet(h, &s);
    return 0;
}

static int64_t read_counter(struct history *h, char *line)
{
    struct history_sum s = read_sum(line);
    history_add_counter(h, &s);
    return 0;
}

#define LEFT                                                                                       \
    "SELECT (SELECT count(*) FROM pawl_ready) + (SELECT count(*) FROM pawl_line)"                  \
    " + (SELECT count(*) FROM pawl_lease)"

void history_read(struct history *h, const void *param)
{
    const struct speech *s = speech_of(param);
    char sql[300];
    int64_t none;
    read_rows(h, param);
    read_counts(h, param);
    snprintf(sql, sizeof sql, "SELECT %s, %s FROM pawl_object o WHERE o.type = 'Wallet'",
             say(s->text, "o.key"), say(s->bytes, "o.state"));
    each(h, param, sql, &none, read_wallet);
    each(h, param, "SELECT name, n FROM lab_count", &none, read_counter);
    h->left = history_left(param);
}

int64_t history_left(const void *param)
{
    return engine_int(param, LEFT);
}

void history_print_left(const void *param)
{
    static const char *const tables[][2] = {
        { "nodes: node, boot, dead, beats, beat_at",
          "SELECT node, boot, dead, beats, beat_at FROM pawl_node" },
        { "leases: node, boot, claimed_at, low, high",
          "SELECT node, boot, claimed_at, low, high FROM pawl_lease ORDER BY claimed_at LIMIT 20" },
        { "keys: key, state, head, head_no, next_no, held, waiting",
          "SELECT k.key, state, head, head_no, next_no, held, waiting FROM pawl_key k"
          " WHERE state <> 0 OR waiting <> 0" },
        { "ready: seq, track, run_at, lost, key_no",
          "SELECT seq, track, run_at, lost, key_no FROM pawl_ready ORDER BY seq LIMIT 20" },
        { "line: key, pos, seq, lost",
          "SELECT l.key, pos, seq, lost FROM pawl_line l ORDER BY l.key, pos LIMIT 20" },
        { "hints: key, waiting", "SELECT h.key, waiting FROM pawl_hint h" },
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        printf("%s\n%s\n", tables[i][0], engine_rows(param, tables[i][1]));
    bool pg = strcmp(engine_of(param)->says, "postgres") == 0;
    printf("connections that are not idle\n%s\n",
           engine_rows(param, pg ? "SELECT pid, state, wait_event, now() - xact_start,"
                                   " left(query, 150) FROM pg_stat_activity"
                                   " WHERE state <> 'idle' AND datname = current_database()"
                                 : "SELECT trx_mysql_thread_id, trx_state, trx_started, trx_query"
                                   " FROM information_schema.innodb_trx"));
}
