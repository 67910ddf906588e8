/*
 * schedule_preview.c - POST /v1/schedules/preview: the times of an expression, without storing
 * anything.
 *
 * It runs on one of the loop's threads for work, because the zone is a file and 1,000 times of a
 * rare expression are some work.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/ask_io.h"
#include "api/body.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "api/schedule_json.h"
#include "base/json.h"
#include "feature/zones.h"
#include "base/limits.h"
#include "model/fields.h"

#define COUNT_DEFAULT 10

struct preview {
    struct ask_read read; /* first */
    struct bytes cron, zone;
    int64_t from_us;
    int count;
    struct schedule_rule rule;
    struct preview_time {
        struct schedule_tick tick;
        enum zone_fit fit;
    } * v;
    size_t n;
};

static const struct field preview_fields[] = {
    { "cron", FIELD_TEXT, offsetof(struct preview, cron), FIELD_MUST, .unit = "five or six fields",
      .about = "the expression, as of a schedule" },
    { "zone", FIELD_TEXT, offsetof(struct preview, zone), .dflt = "\"UTC\"", .unit = "an IANA name",
      .about = "the time zone" },
    { "from", FIELD_TIME, offsetof(struct preview, from_us), FIELD_NULL | FIELD_EPOCH,
      .dflt = "now", .about = "the first time is at this one or later" },
    { "count", FIELD_INT, offsetof(struct preview, count), 0, 1, SCHEDULE_PREVIEW_MAX, .dflt = "10",
      .about = "how many times" },
};
const struct shape preview_shape = SHAPE("PreviewSpec", preview_fields);

static enum pawl_status preview_work(struct ask_read *rd, struct store *s)
{
    struct preview *p = (struct preview *)rd;
    const struct zone *z;
    struct schedule_tick t = { .at_us = p->from_us - 1 };
    (void)s;
    enum pawl_status st = zones_of_field(p->zone, &z, &rd->err);
    if (st != PAWL_OK)
        return st;
    p->v = arena_zalloc(&rd->arena, (size_t)p->count, sizeof *p->v);
    if (!p->v)
        return err_no_memory(&rd->err, "a preview");
    for (; p->n < (size_t)p->count && schedule_next(&p->rule, z, t.at_us, &t); p->n++)
        p->v[p->n] = (struct preview_time){ t, schedule_fit(&p->rule, z, t.at_us) };
    return PAWL_OK;
}

static void preview_add(struct buf *b, const struct preview_time *t)
{
    static const char *const dst[] = { [ZONE_GAP] = "gap", [ZONE_FOLD] = "fold" };
    char utc[TIME_TEXT_LEN + 1], local[LOCAL_TEXT_LEN + 1];
    json_add_comma(b);
    buf_add_char(b, '{');
    time_text(t->tick.at_us, utc); /* add_time() would say null at 1970 */
    add_text(b, "utc", bytes_of(utc));
    schedule_local_text(&t->tick, local);
    add_text(b, "local", bytes_of(local));
    add_text(b, "dst", t->fit == ZONE_ONCE ? BYTES_NONE : bytes_of(dst[t->fit]));
    buf_add_char(b, '}');
}

static void preview_done(struct ask_read *rd)
{
    struct preview *p = (struct preview *)rd;
    struct ask *q = rd->ask;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"times\":[");
    for (size_t i = 0; i < p->n; i++)
        preview_add(b, &p->v[i]);
    buf_add_char(b, ']');
    add_text(b, "note", bytes_of(cron_note(&p->rule.cron)));
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_schedule_preview(struct ask *q)
{
    struct preview *p = arena_zalloc(q->a, 1, sizeof *p);
    struct pawl_err err;
    if (!p) {
        ask_no_memory(q);
        return;
    }
    p->zone = BYTES("UTC");
    p->count = COUNT_DEFAULT;
    p->from_us = exec_now(q->api->exec);
    err.status = body_object(q, p, NULL, &err);
    const char *bad = err.status == PAWL_OK ? zone_name_fault(p->zone) : NULL;
    if (bad)
        err_set(&err, PAWL_INVALID, "field \"zone\": %s", bad);
    if (err.status == PAWL_OK)
        err.status = cron_parse(p->cron, &p->rule.cron, &err);
    if (err.status != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    p->read.work = preview_work;
    p->read.done = preview_done;
    ask_read(q, &p->read);
}
