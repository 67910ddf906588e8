/*
 * schedule_json.c - schedules and their runs as clients see them (schedule_json.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/schedule_json.h"

#include "api/call_json.h"
#include "base/json.h"
#include "base/world.h"
#include "feature/zones.h"
#include "model/spec_json.h"
#include "model/words.h"

/* ---- What is computed ------------------------------------------------------------------------ */

/* Coming times: the stored one first, unless it is due already. */
static void next_fill(struct schedule_shown *s, const struct zone *z, int64_t now_us)
{
    int64_t at_us = s->row.next_us;
    if (s->row.paused || !at_us)
        return;
    if (at_us > now_us)
        s->next[s->n_next++] = at_us;
    else
        at_us = now_us;
    for (struct schedule_tick t = { .at_us = at_us };
         s->n_next < SCHEDULE_NEXT_SHOWN && schedule_next(&s->s.rule, z, t.at_us, &t);)
        s->next[s->n_next++] = t.at_us;
}

/* Fill what follows from the row. A text that cannot be read, or a zone, is told in out->error. */
static enum pawl_status shown_fill(struct arena *a, int64_t now_us, struct schedule_shown *out,
                                   struct pawl_err *err)
{
    struct pawl_err why = { 0 };
    const struct zone *zone;
    enum pawl_status status = schedule_stored(a, out->row.name, out->row.spec, &out->s, &why);
    out->unknown = status != PAWL_OK;
    if (status == PAWL_OK) {
        out->note = out->s.rule.kind == SCHEDULE_CRON ? cron_note(&out->s.rule.cron) : NULL;
        status = zones_get(out->s.zone, &zone, &why);
    }
    if (status == PAWL_OK)
        next_fill(out, zone, now_us);
    else if (status != PAWL_NO_MEMORY)
        out->error = arena_text(a, bytes_of(why.text));
    return status == PAWL_NO_MEMORY || a->failed ? err_no_memory(err, "a schedule") : PAWL_OK;
}

enum pawl_status schedules_show(struct ask_read *rd, struct store *st, const struct cron_rows *rows,
                                int64_t now_us, struct schedule_shown **out)
{
    struct schedule_shown *v = arena_zalloc(&rd->arena, rows->n + 1, sizeof *v);
    struct cron_run *last;
    *out = v;
    if (!v)
        return err_no_memory(&rd->err, "schedules");
    enum pawl_status status = cron_last(st, &rd->arena, rows, &last, &rd->err);
    for (size_t i = 0; status == PAWL_OK && i < rows->n; i++) {
        v[i].row = rows->v[i];
        v[i].last = last[i];
        status = shown_fill(&rd->arena, now_us, &v[i], &rd->err);
    }
    return status;
}

/* ---- Printing -------------------------------------------------------------------------------- */

static void add_times(struct buf *b, const char *name, const int64_t *v, size_t n)
{
    char text[TIME_TEXT_LEN + 1];
    json_add_name(b, name);
    buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        time_text(v[i], text);
        json_add_comma(b);
        json_add_string(b, bytes_of(text));
    }
    buf_add_char(b, ']');
}

/* cron, every and at, of which two are null. */
static void rule_add(struct buf *b, const struct schedule *s)
{
    add_text(b, "cron", s->cron);
    if (s->rule.kind == SCHEDULE_EVERY)
        add_seconds(b, "every", s->rule.every_us);
    else
        add_raw(b, "every", BYTES_NONE);
    if (s->rule.kind == SCHEDULE_AT)
        add_times(b, "at", s->rule.at_us, s->rule.n_at);
    else
        add_raw(b, "at", BYTES_NONE);
}

static struct bytes run_status(const struct cron_run *r)
{
    switch (r->kind) {
    case CRON_SKIPPED:
        return BYTES("skipped");
    case CRON_MISSED:
        return BYTES("missed");
    case CRON_SUBMITTED:
    case CRON_MANUAL:
        break;
    }
    return r->state ? bytes_of(pawl_state_name(r->state)) : BYTES_NONE;
}

void run_json_add(struct buf *b, const struct cron_run *r, bool contents)
{
    buf_add_char(b, '{');
    add_text(b, "cron_name", r->name);
    add_time(b, "scheduled_time", r->at_us);
    add_text(b, "timezone", r->zone);
    add_text(b, "status", run_status(r));
    add_text(b, "reason", r->kind == CRON_MANUAL ? BYTES("manual") : r->reason);
    add_int(b, "count", r->kind == CRON_MISSED ? r->count : 1);
    add_text(b, "call", r->id);
    add_text(b, "node_id", r->node);
    add_time(b, "started_at", r->started_us);
    add_time(b, "completed_at", r->finished_us);
    add_text(b, "error", contents ? r->error : BYTES_NONE);
    add_seconds(b, "late_seconds", MAX(r->decided_us - r->at_us, 0));
    buf_add_char(b, '}');
}

/* How late the next tick is: due, and not decided. */
static int64_t lag_us(const struct cron_row *r, int64_t now_us)
{
    return r->next_us && !r->paused ? MAX(now_us - r->next_us, 0) : 0;
}

/* What its text says. */
static void spec_add(struct buf *b, const struct schedule *s, bool contents)
{
    rule_add(b, s);
    add_text(b, "zone", s->zone);
    json_add_name(b, "call");
    tick_write_json(b, &s->call, contents ? 0 : TICK_NO_INPUT | TICK_NO_TAGS);
    add_text(b, "catch_up", word_of(CATCH_UP_WORDS, (int)s->catch_up));
    add_seconds(b, "catch_up_for", s->catch_up_for_us);
    add_text(b, "overlap", word_of(OVERLAP_WORDS, (int)s->overlap));
    add_seconds(b, "jitter", s->jitter_us);
    add_time(b, "starts_at", s->rule.starts_us);
    add_time(b, "ends_at", s->rule.ends_us);
}

/* The same members of one whose text cannot be read. */
static void spec_add_unknown(struct buf *b)
{
    static const char *const names[] = { "cron",   "every",     "at",           "zone",
                                         "call",   "catch_up",  "catch_up_for", "overlap",
                                         "jitter", "starts_at", "ends_at" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        add_raw(b, names[i], BYTES_NONE);
}

void schedule_json_add(struct buf *b, const struct schedule_shown *s, int64_t now_us, bool contents)
{
    const struct cron_row *r = &s->row;
    buf_add_char(b, '{');
    add_text(b, "name", r->name);
    if (s->unknown)
        spec_add_unknown(b);
    else
        spec_add(b, &s->s, contents);
    add_bool(b, "paused", r->paused);
    add_int(b, "version", r->version);
    add_time(b, "next_at", r->paused ? 0 : r->next_us);
    add_times(b, "next", s->next, s->n_next);
    if (s->last.kind) {
        json_add_name(b, "last");
        run_json_add(b, &s->last, contents);
    } else {
        add_raw(b, "last", BYTES_NONE);
    }
    add_time(b, "waiting_at", r->waiting_us);
    add_seconds(b, "lag_seconds", lag_us(r, now_us));
    add_text(b, "note", bytes_of(s->note));
    add_text(b, "error", bytes_of(s->error));
    add_text(b, "zone_data", r->zone_data.len ? r->zone_data : BYTES_NONE);
    add_time(b, "created_at", r->created_us);
    add_time(b, "updated_at", r->updated_us);
    buf_add_char(b, '}');
}
