/*
 * cron_show.c - `pawl cron list|get|runs|next`: schedules, their runs and their times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "cli/cron.h"
#include "cli/subcommand.h"

/* Full seconds are enough for people. */
static void cell_time(struct cli_table *s, const char *text)
{
    if (text)
        cli_table_text(s, "%.19sZ", text);
    else
        cli_table_text(s, "-");
}

/* ---- list ------------------------------------------------------------------------------------ */

static const char *rule_text(struct remote *r, const struct json *v)
{
    const char *cron = shown(&r->arena, v, "cron"), *every = shown(&r->arena, v, "every");
    const char *zone = shown(&r->arena, v, "zone");
    const struct json *at = json_member(v, "at");
    const char *text = NULL;
    if (cron)
        text = arena_printf(&r->arena, "%s%s%s", cron, zone && strcmp(zone, "UTC") ? " " : "",
                            zone && strcmp(zone, "UTC") ? zone : "");
    else if (every)
        text = arena_printf(&r->arena, "every %s s", every);
    else if (at)
        text = arena_printf(&r->arena, "at %zu time%s", at->count, at->count == 1 ? "" : "s");
    return text ? text : "-";
}

static void list_row(struct remote *r, struct cli_table *s, const struct json *v)
{
    const struct json *paused = json_member(v, "paused"), *last = json_member(v, "last");
    const char *name = shown(&r->arena, v, "name"), *lag = shown(&r->arena, v, "lag_seconds");
    const char *status = last ? shown(&r->arena, last, "status") : NULL;
    const char *error = shown(&r->arena, v, "error"), *next = shown(&r->arena, v, "next_at");
    cli_table_text(s, "%s", name ? name : "-");
    cli_table_text(s, "%s", rule_text(r, v));
    cell_time(s, next);
    cell_time(s, last ? shown(&r->arena, last, "scheduled_time") : NULL);
    cli_table_text(s, "%s", status ? status : "-");
    cli_table_paint(s, paint_of_status(status));
    if (error) {
        cli_table_text(s, "does not tick: %s", error);
        cli_table_paint(s, PAINT_BAD);
    } else if (paused && paused->kind == JSON_TRUE) {
        cli_table_text(s, "paused");
        cli_table_paint(s, PAINT_WARN);
    } else if (lag && strcmp(lag, "0") != 0) {
        cli_table_text(s, "%s s late", lag);
        cli_table_paint(s, PAINT_WARN);
    } else if (!next) {
        cli_table_text(s, shown(&r->arena, v, "waiting_at") ? "its last tick waits" : "is over");
    } else {
        cli_table_none(s);
    }
}

int cron_list_run(struct remote *r)
{
    static const char *const columns[] = { "name",        "rule", "next_at", "last",
                                           "last_status", "note", NULL };
    return remote_list(
        r, &(struct listing){ "/v1/schedules", "schedules", SCHEDULE_HAS, columns, list_row });
}

/* ---- get ------------------------------------------------------------------------------------- */

int cron_get_run(struct remote *r, const char *name)
{
    struct json *answer = NULL;
    struct client_ask ask = { .path = cron_path(r, name, ""), .has = SCHEDULE_HAS };
    if (remote_ask(r, &ask, &answer) != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    remote_print_fields(r, answer);
    return cli_done(r->cli);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void runs_row(struct remote *r, struct cli_table *s, const struct json *v)
{
    const char *status = shown(&r->arena, v, "status"), *reason = shown(&r->arena, v, "reason");
    const char *count = shown(&r->arena, v, "count"), *error = shown(&r->arena, v, "error");
    const char *call = shown(&r->arena, v, "call"), *late = shown(&r->arena, v, "late_seconds");
    cell_time(s, shown(&r->arena, v, "scheduled_time"));
    cli_table_text(s, "%s", status ? status : "-");
    cli_table_paint(s, paint_of_status(status));
    cli_table_text(s, "%s", late ? late : "-");
    cell_time(s, shown(&r->arena, v, "started_at"));
    cell_time(s, shown(&r->arena, v, "completed_at"));
    cli_table_text(s, "%s", call ? call : "-");
    if (error)
        cli_table_text(s, "%s", error);
    else if (reason)
        cli_table_text(s, "%s", reason);
    else if (status && count && strcmp(status, "missed") == 0)
        cli_table_text(s, "%s tick%s", count, strcmp(count, "1") == 0 ? "" : "s");
    else
        cli_table_none(s);
}

int cron_runs_run(struct remote *r, const char *name)
{
    static const char *const columns[] = { "scheduled_time", "status", "late", "started_at",
                                           "completed_at",   "call",   "note", NULL };
    const char *path = cron_path(r, name, "/runs");
    if (!path)
        return remote_fail(r);
    return remote_list(
        r, &(struct listing){ path, "runs", "scheduled_time status", columns, runs_row });
}

/* ---- next ------------------------------------------------------------------------------------ */

/* An expression has several fields, or begins with `@`; anything else is a name. */
static bool is_expression(const char *what)
{
    return what[0] == '@' || strpbrk(what, " \t");
}

static enum pawl_status preview_ask(struct remote *r, const char *expression, struct json **out)
{
    static const char *const texts[] = { "zone", "from" };
    struct buf b;
    int64_t count = 0;
    enum pawl_status st = PAWL_OK;
    buf_init(&b, 64 << 10);
    buf_add_text(&b, "{\"cron\":");
    json_add_string(&b, bytes_of(expression));
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (cli_flag(r->cli, texts[i])) {
            json_add_name(&b, texts[i]);
            json_add_string(&b, bytes_of(cli_option(r->cli, texts[i])));
        }
    if (cli_flag(r->cli, "count")) {
        st = cli_int(r->cli, "count", 1, 1000, &count, &r->err);
        buf_addf(&b, ",\"count\":%" PRId64, count);
    }
    buf_add_char(&b, '}');
    if (st == PAWL_OK && !buf_ok(&b))
        st = err_no_memory(&r->err, "asking the server");
    if (st == PAWL_OK)
        st = remote_ask(r,
                        &(struct client_ask){ .path = "/v1/schedules/preview",
                                              .body = buf_bytes(&b),
                                              .list = "times",
                                              .has = "utc local" },
                        out);
    buf_release(&b);
    return st;
}

static int preview_print(struct remote *r, const struct json *answer)
{
    static const char *const columns[] = { "utc", "local", "dst", NULL };
    const struct json *times = json_member(answer, "times");
    const char *note = shown(&r->arena, answer, "note");
    struct cli_table s;
    if (r->cli->json)
        return remote_print_raw(r, answer);
    cli_table_init(&s, columns);
    for (const struct json *v = times ? times->first : NULL; v; v = v->next) {
        const char *dst = shown(&r->arena, v, "dst"), *local = shown(&r->arena, v, "local");
        cell_time(&s, shown(&r->arena, v, "utc"));
        cli_table_text(&s, "%s", local ? local : "-");
        if (dst)
            cli_table_text(&s, "%s", dst);
        else
            cli_table_none(&s);
    }
    cli_table_print(r->cli, &s);
    cli_table_release(&s);
    if (note)
        fprintf(r->cli->out, "note: %s\n", note);
    return cli_done(r->cli);
}

/* The coming times of a schedule, as a preview shows them. */
static int coming_print(struct remote *r, const char *name)
{
    static const char *const columns[] = { "utc", NULL };
    struct json *answer = NULL;
    struct cli_table s;
    if (cli_flag(r->cli, "zone") || cli_flag(r->cli, "from") || cli_flag(r->cli, "count"))
        return cli_failf(
            r->cli, PAWL_INVALID,
            "options --zone, --from and --count need an expression; \"%.100s\" is read "
            "as the name of a schedule",
            name);
    struct client_ask ask = { .path = cron_path(r, name, ""), .has = SCHEDULE_HAS };
    if (remote_ask(r, &ask, &answer) != PAWL_OK)
        return remote_fail(r);
    const struct json *next = json_member(answer, "next");
    if (r->cli->json) {
        fprintf(r->cli->out, "{\"next\":%.*s}\n", next ? (int)next->raw.len : 2,
                next ? next->raw.data : "[]");
        return cli_done(r->cli);
    }
    cli_table_init(&s, columns);
    for (const struct json *v = next ? next->first : NULL; v; v = v->next)
        cell_time(&s, json_string(&r->arena, v).data);
    cli_table_print(r->cli, &s);
    cli_table_release(&s);
    return cli_done(r->cli);
}

int cron_next_run(struct remote *r, const char *what)
{
    struct json *answer = NULL;
    if (!is_expression(what))
        return coming_print(r, what);
    return preview_ask(r, what, &answer) == PAWL_OK ? preview_print(r, answer) : remote_fail(r);
}
