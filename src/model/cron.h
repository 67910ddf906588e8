/*
 * cron.h - cron expressions: reading one, and the instants at which it fires. Pure: no clock, the
 * time is a parameter; any thread.
 *
 * Five fields, minute hour day month weekday, or six with the second first; without one the second
 * is 0. A field is a list of `*`, numbers, ranges `1-5`, steps (a star, a range or a number, then
 * `/n`; `5/10` is 5, 15, 25 ...), names of months and weekdays. Day also has `L`, the last day of
 * the month; weekday has 0 and 7 for Sunday, `MON#2` for the second Monday and `FRIL` or `5L` for
 * the last Friday. @hourly @daily @midnight @weekly @monthly @yearly @annually stand for five
 * fields. When day and weekday are both restricted (neither has a `*` without a step), a day that
 * matches either counts, as POSIX says.
 *
 * An expression names local times. What happens where the clock is set:
 *
 * - Without a star or a step in the hour field, each local time fires once. One that does not exist
 *   fires at the first instant after the gap; when several do not exist, or the clock shows a
 *   matching time there, that instant is still one tick. One that exists twice fires at its first.
 * - With a star or a step in the hour field it fires whenever the clock shows a matching time. So
 * it follows elapsed time: nothing is made up for a gap, and the repeated hour fires again.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MODEL_CRON_H
#define MODEL_CRON_H

#include "base/zone.h"

/* Bit n of a set is the value n. */
struct cron {
    uint64_t second, minute;
    uint32_t hour, day, month;
    uint8_t weekday;       /* bit 0 is Sunday */
    uint8_t weekday_no[6]; /* the same for the n-th such day of a month; [0]: for the last one */
    bool last_day;         /* day has L */
    bool any_day, any_weekday; /* not restricted */
    bool elapsed;              /* a star or a step in the hour field */
};

/* Read an expression of at most CRON_LEN_MAX bytes. INVALID when it is wrong or can never fire (31
 * February): the sentence begins with `field "cron": ` and quotes the offending text and its
 * column, counted from 1. */
MUST_USE enum pawl_status cron_parse(struct bytes text, struct cron *out, struct pawl_err *err);
/* What a user may not expect of an expression, as one sentence: that day and weekday are both
 * restricted. NULL: nothing. */
const char *cron_note(const struct cron *c);
/* Is there a day in any year on which it fires? */
bool cron_ever_fires(const struct cron *c);

/* The first tick after `after_s`. False when there is none up to the year 9999. The search ends
 * after 400 years, when the calendar repeats; what can ever fire is found within 40. */
bool cron_next(const struct cron *c, const struct zone *z, int64_t after_s, int64_t *out_at_s);
/* As cron_next, without ticks for local times at or before `past_local_s`: with another version of
 * the zone's data, the local time of the last tick must not come again. */
bool cron_next_past(const struct cron *c, const struct zone *z, int64_t after_s,
                    int64_t past_local_s, int64_t *out_at_s);
/* The last tick at or before `at_s`. False when there is none from year 1 on. */
bool cron_prev(const struct cron *c, const struct zone *z, int64_t at_s, int64_t *out_at_s);
/* How many ticks there are after `after_s` and up to `until_s`, inclusive. Exact; it costs time for
 * each month between them, not for each tick. */
int64_t cron_count(const struct cron *c, const struct zone *z, int64_t after_s, int64_t until_s);
/* Why a tick of this expression is at `at_s`: ZONE_GAP, for a local time that does not exist;
 * ZONE_FOLD, the local time exists twice; else ZONE_ONCE. */
enum zone_fit cron_fit(const struct cron *c, const struct zone *z, int64_t at_s);

#endif
