/*
 * cron_plan.c - a schedule made ready for computing, and the calls of its ticks (cron_inside.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"

#include "base/ident.h"
#include "feature/zones.h"

enum pawl_status plan_given(const struct schedule *s, struct plan *out, struct pawl_err *err)
{
    out->s = *s;
    return zones_of_field(s->zone, &out->zone, err);
}

enum pawl_status plan_stored(struct arena *a, const struct row *r, struct plan *out,
                             struct pawl_err *err)
{
    struct schedule s;
    enum pawl_status st = schedule_stored(a, r->name, r->spec, &s, err);
    return st == PAWL_OK ? plan_given(&s, out, err) : st;
}

struct schedule_tick tick_in(const struct zone *z, int64_t at_us)
{
    int64_t at_s = at_us / SEC_US - (at_us % SEC_US < 0);
    return (struct schedule_tick){ at_us, at_us ? at_us + zone_offset(z, at_s) * SEC_US : 0 };
}

struct bytes tick_id(struct arena *a, struct bytes name, int64_t at_us)
{
    char at[TIME_TEXT_LEN + 1];
    schedule_time_text(at_us, at);
    char *id = arena_printf(a, "cron:%.*s@%s", BYTES_ARG(name), at);
    return id ? ident_derived(a, bytes_of(id)) : BYTES_NONE;
}

struct bytes manual_id(struct arena *a, struct bytes name, int64_t now_us)
{
    char at[TIME_TEXT_LEN + 1];
    time_text(now_us, at);
    char *id = arena_printf(a, "cron:%.*s@%s!manual", BYTES_ARG(name), at);
    return id ? ident_derived(a, bytes_of(id)) : BYTES_NONE;
}

bool call_is_others(const struct accepted *a, struct bytes name)
{
    return a->status == PAWL_OK && a->duplicate && !bytes_eq(a->call.spec.schedule, name);
}

uint64_t id_hash(struct bytes id)
{
    unsigned char digest[32] = { 0 };
    uint64_t n = 0;
    if (!digest_plain(id, digest))
        return 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | digest[i];
    return n;
}

/* Between 0 and the jitter, the same for the same id. */
static int64_t jitter_of(struct bytes id, int64_t jitter_us)
{
    return jitter_us ? (int64_t)(id_hash(id) % (uint64_t)(jitter_us + 1)) : 0;
}

enum pawl_status plan_call(struct ledger *d, const struct plan *p, struct bytes name,
                           struct bytes id, int64_t at_us, struct call_spec *out,
                           struct pawl_err *err)
{
    bool waits = p->s.overlap == OVERLAP_WAIT || p->s.overlap == OVERLAP_REPLACE;
    *out = p->s.call;
    out->id = id;
    out->schedule = name;
    out->scheduled_us = at_us;
    if (at_us) {
        /* What the call counts from its submit, a tick counts from its own time, so that a late one
         * is not later still. */
        out->run_at_us = at_us + jitter_of(id, p->s.jitter_us) + out->delay_us;
        out->delay_us = 0;
        out->expires_at_us = out->expires_in_us ? at_us + out->expires_in_us : 0;
        out->expires_in_us = 0;
        out->watch = waits ? WATCH_CRON : 0;
    }
    return call_spec_settle(feature_arena(d), feature_world(d), out, err);
}
