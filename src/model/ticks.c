/*
 * ticks.c - the ticks of a schedule, and catching up (ticks.h). Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/ymd.h"
#include "model/ticks.h"

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t schedule_sort(int64_t *at_us, size_t n)
{
    size_t kept = 0;
    if (n) /* at_us may be NULL */
        qsort(at_us, n, sizeof *at_us, compare_times);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || at_us[i] != at_us[kept - 1])
            at_us[kept++] = at_us[i];
    return kept;
}

/* ---- Instants, without start and end --------------------------------------------------------- */

/* How many times of the list are at or before `at_us`. */
static size_t times_until(const struct schedule_rule *r, int64_t at_us)
{
    size_t low = 0, high = r->n_at;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->at_us[middle] <= at_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The number of the last interval that ends at or before `at_us`; starts_us ends interval 0. */
static int64_t interval(const struct schedule_rule *r, int64_t at_us)
{
    return floor_div(at_us - r->starts_us, r->every_us);
}

static bool next_at(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                    int64_t past_local_s, int64_t *out)
{
    int64_t at_s;
    size_t i;
    switch (r->kind) {
    case SCHEDULE_CRON:
        if (!cron_next_past(&r->cron, z, floor_div(after_us, SEC_US), past_local_s, &at_s))
            return false;
        *out = at_s * SEC_US;
        return true;
    case SCHEDULE_EVERY:
        *out = r->starts_us + (interval(r, after_us) + 1) * r->every_us;
        return true;
    case SCHEDULE_AT:
        i = times_until(r, after_us);
        if (i == r->n_at)
            return false;
        *out = r->at_us[i];
        return true;
    }
    return false;
}

static bool prev_at(const struct schedule_rule *r, const struct zone *z, int64_t at_us,
                    int64_t *out)
{
    int64_t at_s;
    size_t i;
    switch (r->kind) {
    case SCHEDULE_CRON:
        if (!cron_prev(&r->cron, z, floor_div(at_us, SEC_US), &at_s))
            return false;
        *out = at_s * SEC_US;
        return true;
    case SCHEDULE_EVERY:
        *out = r->starts_us + interval(r, at_us) * r->every_us;
        return true;
    case SCHEDULE_AT:
        i = times_until(r, at_us);
        if (i == 0)
            return false;
        *out = r->at_us[i - 1];
        return true;
    }
    return false;
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

static struct schedule_tick tick_at(const struct zone *z, int64_t at_us)
{
    return (struct schedule_tick){ at_us,
                                   at_us + zone_offset(z, floor_div(at_us, SEC_US)) * SEC_US };
}

/* The instants between which a rule may tick, both inclusive. */
static int64_t first_us(const struct schedule_rule *r)
{
    return r->starts_us ? MAX(r->starts_us, TIME_FIRST_US) : TIME_FIRST_US;
}

static int64_t last_us(const struct schedule_rule *r)
{
    return r->ends_us ? MIN(r->ends_us - 1, TIME_LAST_US) : TIME_LAST_US;
}

static bool next_past(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                      int64_t past_local_s, struct schedule_tick *out)
{
    int64_t at_us;
    after_us = MAX(after_us, first_us(r) - 1);
    if (after_us >= last_us(r) || !next_at(r, z, after_us, past_local_s, &at_us) ||
        at_us > last_us(r))
        return false;
    *out = tick_at(z, at_us);
    return true;
}

bool schedule_next(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                   struct schedule_tick *out)
{
    return next_past(r, z, after_us, INT64_MIN, out);
}

bool schedule_follow(const struct schedule_rule *r, const struct zone *z,
                     const struct schedule_tick *last, int64_t after_us, struct schedule_tick *out)
{
    bool same = tick_at(z, last->at_us).local_us == last->local_us;
    return next_past(r, z, MAX(after_us, last->at_us),
                     same ? INT64_MIN : floor_div(last->local_us, SEC_US), out);
}

bool schedule_prev(const struct schedule_rule *r, const struct zone *z, int64_t at_us,
                   struct schedule_tick *out)
{
    int64_t found_us;
    at_us = MIN(at_us, last_us(r));
    if (at_us < first_us(r) || !prev_at(r, z, at_us, &found_us) || found_us < first_us(r))
        return false;
    *out = tick_at(z, found_us);
    return true;
}

int64_t schedule_count(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                       int64_t until_us)
{
    after_us = MAX(after_us, first_us(r) - 1);
    until_us = MIN(until_us, last_us(r));
    if (after_us >= until_us)
        return 0;
    switch (r->kind) {
    case SCHEDULE_CRON:
        return cron_count(&r->cron, z, floor_div(after_us, SEC_US), floor_div(until_us, SEC_US));
    case SCHEDULE_EVERY:
        return interval(r, until_us) - interval(r, after_us);
    case SCHEDULE_AT:
        return (int64_t)(times_until(r, until_us) - times_until(r, after_us));
    }
    return 0;
}

enum zone_fit schedule_fit(const struct schedule_rule *r, const struct zone *z, int64_t at_us)
{
    return r->kind == SCHEDULE_CRON ? cron_fit(&r->cron, z, floor_div(at_us, SEC_US)) : ZONE_ONCE;
}

/* ---- Checking -------------------------------------------------------------------------------- */

static bool in_years(int64_t us)
{
    return us >= TIME_FIRST_US && us <= TIME_LAST_US;
}

static enum pawl_status check_times(const struct schedule_rule *r, struct pawl_err *err)
{
    if (r->n_at == 0 || r->n_at > SCHEDULE_TIMES_MAX)
        return err_set(err, PAWL_INVALID, "field \"at\": has %zu times, not in 1..%d", r->n_at,
                       SCHEDULE_TIMES_MAX);
    for (size_t i = 0; i < r->n_at; i++) {
        assert(i == 0 || r->at_us[i] > r->at_us[i - 1]);
        if (!in_years(r->at_us[i]))
            return err_set(err, PAWL_INVALID, "field \"at\": a time is not in the years 1..9999");
    }
    return PAWL_OK;
}

static enum pawl_status check_kind(const struct schedule_rule *r, struct pawl_err *err)
{
    if (r->kind == SCHEDULE_AT)
        return check_times(r, err);
    if (r->kind == SCHEDULE_EVERY &&
        (r->every_us < SCHEDULE_EVERY_MIN_US || r->every_us > DURATION_MAX_US))
        return err_set(err, PAWL_INVALID, "field \"every\": is not in %lld..%lld seconds",
                       (long long)(SCHEDULE_EVERY_MIN_US / SEC_US),
                       (long long)(DURATION_MAX_US / SEC_US));
    return PAWL_OK;
}

enum pawl_status schedule_rule_check(const struct schedule_rule *r, const struct zone *z,
                                     int64_t now_us, struct pawl_err *err)
{
    static const char *const fields[] = { "cron", "every", "at" };
    struct schedule_tick tick;
    enum pawl_status st = check_kind(r, err);
    if (st != PAWL_OK)
        return st;
    if (!in_years(r->starts_us) || !in_years(r->ends_us))
        return err_set(err, PAWL_INVALID, "field \"%s\": is not in the years 1..9999",
                       in_years(r->starts_us) ? "ends_at" : "starts_at");
    if (r->starts_us && r->ends_us && r->starts_us >= r->ends_us)
        return err_set(err, PAWL_INVALID, "field \"ends_at\": is not after starts_at");
    if (r->ends_us && r->ends_us <= now_us)
        return err_set(err, PAWL_INVALID, "field \"ends_at\": is not in the future");
    if (!schedule_next(r, z, now_us, &tick))
        return err_set(err, PAWL_INVALID, "field \"%s\": has no tick in the future%s",
                       fields[r->kind],
                       r->starts_us || r->ends_us ? ", from starts_at to ends_at" : "");
    return PAWL_OK;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

void schedule_time_text(int64_t at_us, char out[TIME_TEXT_LEN + 1])
{
    time_text(at_us, out);
    if (at_us % SEC_US == 0)
        memcpy(out + 19, "Z", 2);
}

void schedule_local_text(const struct schedule_tick *t, char out[LOCAL_TEXT_LEN + 1])
{
    char text[TIME_TEXT_LEN + 1];
    int offset_s = (int)((t->local_us - t->at_us) / SEC_US), s = abs(offset_s);
    schedule_time_text(t->local_us, text);
    text[strlen(text) - 1] = 0; /* without Z */
    int n = snprintf(out, LOCAL_TEXT_LEN + 1, "%s%c%02d:%02d", text, offset_s < 0 ? '-' : '+',
                     s / 3600 % 100, s / 60 % 60);
    if (s % 60)
        snprintf(out + n, LOCAL_TEXT_LEN + 1 - (size_t)n, ":%02d", s % 60);
}

/* ---- Catching up ----------------------------------------------------------------------------- */

/* The ticks that are due: the stored one, and those of the rule from `first` on. */
struct backlog {
    const struct schedule_rule *r;
    const struct zone *z;
    struct schedule_tick due, first, newest;
    bool more; /* there is a `first` */
    int64_t n;
};

/* The tick before one that is not the oldest. */
static struct schedule_tick before(const struct backlog *b, const struct schedule_tick *t)
{
    struct schedule_tick prev;
    if (t->at_us <= b->first.at_us || !schedule_prev(b->r, b->z, t->at_us - 1, &prev) ||
        prev.at_us < b->first.at_us)
        return b->due;
    return prev;
}

static struct backlog backlog_of(const struct schedule_rule *r, const struct zone *z,
                                 const struct schedule_tick *due, int64_t now_us)
{
    struct backlog b = { .r = r, .z = z, .due = *due, .newest = *due, .n = 1 };
    b.more = schedule_follow(r, z, due, due->at_us, &b.first) && b.first.at_us <= now_us;
    if (b.more) {
        b.n += schedule_count(r, z, b.first.at_us - 1, now_us);
        if (!schedule_prev(r, z, now_us, &b.newest) || b.newest.at_us < b.first.at_us)
            b.newest = b.first;
    }
    return b;
}

/* How many of the newest ticks are submitted. */
static int64_t to_submit(const struct backlog *b, int64_t now_us, bool paused, enum catch_up policy,
                         int64_t catch_up_for_us)
{
    int64_t oldest_late = now_us - b->due.at_us, late = now_us - b->newest.at_us;
    bool on_time = oldest_late <= (b->n == 1 ? TICK_LATE_ALONE_US : TICK_LATE_US);
    if (policy == CATCH_UP_ALL || (on_time && !paused))
        return MIN(b->n, CATCH_UP_MAX);
    return late == 0 || (policy == CATCH_UP_LAST && late <= catch_up_for_us);
}

void schedule_decide(const struct schedule_rule *r, const struct zone *z,
                     const struct schedule_tick *due, int64_t now_us, bool paused,
                     enum catch_up policy, int64_t catch_up_for_us, struct schedule_due *out)
{
    memset(out, 0, sizeof *out);
    if (due->at_us > now_us) {
        out->has_next = true;
        out->next = *due;
        return;
    }
    struct backlog b = backlog_of(r, z, due, now_us);
    struct schedule_tick t = b.newest;
    out->has_next = schedule_follow(r, z, &b.newest, now_us, &out->next);
    out->n_submit = (size_t)to_submit(&b, now_us, paused, policy, catch_up_for_us);
    out->missed = b.n - (int64_t)out->n_submit;
    for (size_t i = out->n_submit; i-- > 0;) {
        out->submit[i] = t;
        if (i > 0 || out->missed)
            t = before(&b, &t);
    }
    if (out->missed) {
        out->missed_first_us = due->at_us;
        out->missed_last_us = t.at_us;
    }
}
