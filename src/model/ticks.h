/*
 * ticks.h - when a schedule ticks, and which ticks are made up for after a time without anybody
 * to tick. Pure: no I/O, no clock; any thread.
 *
 * Three kinds: a cron expression in a zone, an interval, and a list of times. A tick is an instant;
 * its text is part of the id of its call, so the same tick is the same call whatever node submits
 * it. Times are microseconds since 1970.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_TICKS_H
#define MODEL_TICKS_H

#include "base/limits.h"
#include "model/cron.h"

enum schedule_kind { SCHEDULE_CRON, SCHEDULE_EVERY, SCHEDULE_AT };

struct schedule_rule {
    enum schedule_kind kind;
    struct cron cron;     /* SCHEDULE_CRON */
    int64_t every_us;     /* SCHEDULE_EVERY: counted from starts_us, without it from 1970 */
    const int64_t *at_us; /* SCHEDULE_AT: borrowed; ascending, each one once (schedule_sort) */
    size_t n_at;
    int64_t starts_us, ends_us; /* ticks from starts_us on and before ends_us; 0: without that end
                                 */
};

/* A tick, with the local time that the clock showed by the data which found it. Both are stored
 * with a schedule's next tick: see schedule_follow. */
struct schedule_tick {
    int64_t at_us, local_us;
};

/* Sort a list of times and drop repeats; returns how many are left. */
size_t schedule_sort(int64_t *at_us, size_t n);
/* Check the numbers of a rule: SCHEDULE_EVERY_MIN_US <= every_us <= DURATION_MAX_US, 1 to
 * SCHEDULE_TIMES_MAX times in order, all times in the years 1 to 9999, starts_us before ends_us,
 * and at least one tick after `now_us`. INVALID names the field: `every`, `at`, `starts_at`,
 * `ends_at`, or `cron`. */
MUST_USE enum pawl_status schedule_rule_check(const struct schedule_rule *r, const struct zone *z,
                                              int64_t now_us, struct pawl_err *err);

/* The first tick after `after_us`. False when there is none. */
bool schedule_next(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                   struct schedule_tick *out);
/* The first tick after both `last` and `after_us`, where `last` may have been found with other data
 * of the zone (another version, on another node). When that data showed another local time at
 * last->at_us than `z` does, no tick of a cron rule is at or before last->local_us: what ticked for
 * 03:00 does not tick for 03:00 again because 03:00 is now an hour later. */
bool schedule_follow(const struct schedule_rule *r, const struct zone *z,
                     const struct schedule_tick *last, int64_t after_us, struct schedule_tick *out);
/* The last tick at or before `at_us`. False when there is none. */
bool schedule_prev(const struct schedule_rule *r, const struct zone *z, int64_t at_us,
                   struct schedule_tick *out);
/* How many ticks there are after `after_us` and up to `until_us`, inclusive. Exact, without walking
 * them. */
int64_t schedule_count(const struct schedule_rule *r, const struct zone *z, int64_t after_us,
                       int64_t until_us);
/* Why a tick is where it is (cron_fit). ZONE_ONCE for an interval and for a list. */
enum zone_fit schedule_fit(const struct schedule_rule *r, const struct zone *z, int64_t at_us);

/* RFC 3339 in UTC, without a fraction when it is a whole second: 2026-11-15T02:00:00Z. For ids. */
void schedule_time_text(int64_t at_us, char out[TIME_TEXT_LEN + 1]);
#define LOCAL_TEXT_LEN (TIME_TEXT_LEN + 9)
/* What the clock shows and its offset: 2026-11-15T03:00:00+01:00, with a fraction and with seconds
 * in the offset (+00:53:28) only where there are some. */
void schedule_local_text(const struct schedule_tick *t, char out[LOCAL_TEXT_LEN + 1]);

enum catch_up { CATCH_UP_LAST, CATCH_UP_NONE, CATCH_UP_ALL };

/* What is done about the ticks that are due. */
struct schedule_due {
    struct schedule_tick submit[CATCH_UP_MAX]; /* ascending */
    size_t n_submit;
    int64_t missed; /* ticks that are due and not submitted: all of them are before submit[0] */
    int64_t missed_first_us, missed_last_us;
    bool has_next; /* false: the schedule has ended */
    struct schedule_tick next;
};

/* Decide about the tick `due`, which is stored as the next one, and about all that are due after it
 * by `now_us`. `paused`: nobody ticked until now because the schedule was paused.
 *
 * A tick that is handled a little late is not a missed one: a timer, a busy database, a new leader.
 * So the ticks that are due are on time, and all submitted, when the oldest of them is at most
 * TICK_LATE_US late; or TICK_LATE_ALONE_US, if it is the only one. (Under a short interval more
 * ticks are due by then, and submitting them all would be what `all` is for; a schedule of an hour
 * must not lose its tick because a leader died in that minute.) Otherwise, and when it was paused,
 * there was downtime, and what was due in it was missed: of the ticks that are due, all but one at
 * now_us exactly. With ticks each minute, downtime is whatever lasts longer than a minute.
 *
 * After downtime CATCH_UP_LAST submits the newest tick if it is at most `catch_up_for_us` late;
 * CATCH_UP_NONE none; CATCH_UP_ALL the newest CATCH_UP_MAX, however late. A tick at now_us exactly
 * is submitted by all three. The rest counts as missed. `next` is the first tick after now_us. When
 * `due` is after now_us nothing is done, and `next` is `due`. */
void schedule_decide(const struct schedule_rule *r, const struct zone *z,
                     const struct schedule_tick *due, int64_t now_us, bool paused,
                     enum catch_up policy, int64_t catch_up_for_us, struct schedule_due *out);

#endif
