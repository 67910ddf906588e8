/*
 * feature_runs.c - the view `cron_runs`: every column of every kind of run, on every engine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cron_case.h"

static void tick_by(struct conform_fixture *b, const char *node)
{
    cron(b, (struct cron_op){ .what = CRON_TICK, .max = CRON_STEP_MAX, .node = bytes_of(node) });
    OK(b->op.status, &b->op.err);
}

/* ---- The view -------------------------------------------------------------------------------- */

static bool is_maria(const struct conform_fixture *b)
{
    return strcmp(b->engine->says, "mariadb") == 0;
}

/* A column as text; null is "-". */
static const char *text(struct conform_fixture *b, const char *name)
{
    return arena_printf(&b->a, "COALESCE(CAST(\"%s\" AS %s), '-')", name,
                        is_maria(b) ? "CHAR" : "TEXT");
}

/* The same for a time, which is a text of this form on SQLite. */
static const char *moment(struct conform_fixture *b, const char *name)
{
    if (is_maria(b))
        return arena_printf(&b->a, "COALESCE(DATE_FORMAT(\"%s\", '%%H:%%i:%%s.%%f'), '-')", name);
    if (strchr(b->engine->tables, '.'))
        return arena_printf(
            &b->a, "COALESCE(to_char(\"%s\" AT TIME ZONE 'UTC', 'HH24:MI:SS.US'), '-')", name);
    return arena_printf(&b->a, "COALESCE(substr(\"%s\", 12, 15), '-')", name);
}

/* What the view has for one tick; `no`: a pattern of what its id has behind the time. */
static const char *view(struct conform_fixture *b, int64_t at_us, const char *no)
{
    static const char *const columns[] = { "cron_name", "timezone", "status",  "reason",
                                           "count",     "call",     "node_id", "error" };
    const char *all = "''";
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        all = arena_printf(&b->a, "%s || %s || ' '", all, text(b, columns[i]));
    all =
        arena_printf(&b->a, "%s || %s || ' ' || %s || ' ' || %s", all, moment(b, "scheduled_time"),
                     moment(b, "started_at"), moment(b, "completed_at"));
    return engine_rows(b->url, arena_printf(&b->a,
                                            "%sSELECT %s FROM pawl_cron_runs WHERE id LIKE "
                                            "'a@%lld%s'",
                                            is_maria(b) ? "SET sql_mode = 'ANSI'; " : "", all,
                                            (long long)at_us, no));
}

static int64_t count(struct conform_fixture *b)
{
    return engine_int(b->url, "SELECT count(*) FROM pawl_cron_runs");
}

/* ---- Cases ----------------------------------------------------------------------------------- */

CASE(the_view_has_every_run_with_every_column)
{
    if (b->engine->kind == ENGINE_MEM)
        skip("mem keeps calls only");
    int64_t first_us = now(b) + MINUTE_US; /* 08:01 */
    put(b, "a",
        "{\"cron\":\"* * * * *\",\"zone\":\"Europe/Berlin\",\"overlap\":\"skip\","
        "\"call\":{\"type\":\"t\",\"backoff\":{\"jitter\":0}}}");
    advance(b, MINUTE_US + SEC_US / 4); /* a quarter of a second late */
    tick_by(b, "ticker");
    EQ_STR(view(b, first_us, ""),
           "a Europe/Berlin pending - 1 cron:a@2026-11-15T08:01:00Z ticker - 08:01:00.000000 - -");
    /* A call that was claimed counts as processing. The next tick is skipped because of it. */
    struct token t = claim_n(b, 1);
    EQ_STR(
        view(b, first_us, ""),
        "a Europe/Berlin processing - 1 cron:a@2026-11-15T08:01:00Z ticker - 08:01:00.000000 - -");
    advance(b, MINUTE_US);
    tick_by(b, "other");
    EQ_STR(view(b, first_us + MINUTE_US, ""),
           "a Europe/Berlin skipped overlap 1 - other - 08:02:00.000000 - -");
    /* Its end: which node ran it, when, and why it failed. */
    struct finish_item f = item("cron:a@2026-11-15T08:01:00Z", END_REFUSE);
    f.error = BYTES("broke");
    f.started_us = now(b) - 3 * SEC_US;
    OK(finish_item(b, t, f), &b->err);
    EQ_STR(view(b, first_us, ""),
           "a Europe/Berlin failed - 1 cron:a@2026-11-15T08:01:00Z n1 broke 08:01:00.000000 "
           "08:01:57.250000 08:02:00.250000");
    /* After a downtime the newest is caught up; the others are one row, of the newest of them. */
    advance(b, 5 * MINUTE_US);
    tick_by(b, "ticker");
    EQ_STR(view(b, first_us + 5 * MINUTE_US, ""),
           "a Europe/Berlin missed - 4 - ticker - 08:06:00.000000 - -");
    EQ_STR(view(b, first_us + 6 * MINUTE_US, ""),
           "a Europe/Berlin pending - 1 cron:a@2026-11-15T08:07:00Z ticker - 08:07:00.000000 - -");
    EQ_INT(count(b), 4);
    OK(named(b, CRON_RUN, "a"), &b->op.err);
    EQ_STR(view(b, now(b), ".%"),
           "a Europe/Berlin pending - 1 cron:a@2026-11-15T08:07:00.250000Z!manual n1 - "
           "08:07:00.250000 - -");
    EQ_INT(count(b), 5);
}

/* A call that is no longer kept leaves how and when it ended, and then nothing. */
CASE(the_view_keeps_runs_whose_calls_are_gone)
{
    if (b->engine->kind == ENGINE_MEM)
        skip("mem keeps calls only");
    int64_t first_us = now(b) + MINUTE_US;
    put_minute(b, "a", "");
    advance(b, MINUTE_US);
    tick_by(b, "ticker");
    finish_ok(b, claim_n(b, 1), "cron:a@2026-11-15T08:01:00Z", "1");
    EQ_STR(view(b, first_us, ""),
           "a UTC completed - 1 cron:a@2026-11-15T08:01:00Z n1 - 08:01:00.000000 08:01:00.000000 "
           "08:01:00.000000");
    advance(b, RETENTION_US + SEC_US);
    EQ_INT(gc(b).removed, 1);
    EQ_STR(view(b, first_us, ""),
           "a UTC completed - 1 cron:a@2026-11-15T08:01:00Z ticker - 08:01:00.000000 - "
           "08:01:00.000000");
    advance(b, REMEMBER_US + SEC_US);
    EQ_INT(gc(b).forgotten, 1);
    EQ_STR(view(b, first_us, ""),
           "a UTC - - 1 cron:a@2026-11-15T08:01:00Z ticker - 08:01:00.000000 - -");
}
