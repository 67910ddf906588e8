/*
 * pg_log.c - see pg_log.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pg_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pg_log_begin(struct pg_log *log, const char *url)
{
    const char *host = strstr(url, "host=");
    host = host ? host + 5 : "";
    *log = (struct pg_log){ .at = 0 };
    snprintf(log->url, sizeof log->url,
             "%.200s&options=-c%%20log_min_duration_statement%%3D0%%20"
             "-c%%20log_parameter_max_length%%3D0",
             url);
    snprintf(log->path, sizeof log->path, "%.*s/log", (int)strcspn(host, "&"), host);
    pg_log_skip(log);
}

void pg_log_skip(struct pg_log *log)
{
    FILE *f = fopen(log->path, "r");
    if (!f)
        return;
    fseek(f, 0, SEEK_END);
    log->at = ftell(f);
    fclose(f);
}

/* A line is `... duration: 0.123 ms  bind id_add: INSERT ...` (or parse, or execute), or `...
 * duration: 0.123 ms  statement: BEGIN`. */
static void count_line(struct pg_counts *t, const char *line)
{
    static const char took[] = "duration: ", plain[] = "statement: ", run[] = "execute ";
    const char *at = strstr(line, took), *what = at ? strstr(at, " ms  ") : NULL;
    char name[sizeof t->v[0].name];
    if (!what)
        return;
    what += 5;
    bool is_plain = strncmp(what, plain, sizeof plain - 1) == 0;
    bool executed = is_plain || strncmp(what, run, sizeof run - 1) == 0;
    double ms = strtod(at + sizeof took - 1, NULL);
    what += strcspn(what, " ");
    what += strspn(what, " ");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(what, is_plain ? ";\n" : ":\n"), what);
    t->all_n += executed;
    t->all_ms += ms;
    size_t i = 0;
    while (i < t->n && strcmp(t->v[i].name, name) != 0)
        i++;
    if (i == sizeof t->v / sizeof t->v[0])
        return;
    if (i == t->n)
        memcpy(t->v[t->n++].name, name, sizeof name);
    t->v[i].ms += ms;
    t->v[i].n += executed;
}

void pg_log_count(struct pg_log *log, struct pg_counts *out)
{
    FILE *f = fopen(log->path, "r");
    char line[1024];
    *out = (struct pg_counts){ .n = 0 };
    if (!f)
        return;
    fseek(f, log->at, SEEK_SET);
    while (fgets(line, sizeof line, f))
        count_line(out, line);
    log->at = ftell(f);
    fclose(f);
}
