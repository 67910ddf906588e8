/*
 * zone_inside.h - what the files of a zone share: its table, and the rule for later times.
 * Private to zone*.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_ZONE_INSIDE_H
#define BASE_ZONE_INSIDE_H

#include "base/limits.h"
#include "base/ymd.h"
#include "base/zone.h"

#define ZONE_DAY_S INT64_C(86400)
/* After this time the calendar repeats, and with it every rule. */
#define ZONE_CYCLE_S (YMD_CYCLE_DAYS * ZONE_DAY_S)

struct zone_change {
    int64_t at_s;
    int offset_s; /* from at_s on */
    bool dst; /* of two changes at the same instant by a rule, the one to daylight time counts */
};

struct zone {
    char name[ZONE_NAME_LEN_MAX + 1];
    char version[ZONE_VERSION_LEN];
    int before_s;        /* the offset before the first change */
    int64_t cycle_end_s; /* from here on an instant is looked up 400 years, or a multiple, earlier;
                            INT64_MAX: never */
    size_t n;
    struct zone_change change[]; /* ascending; each one changes the offset */
};

/* When daylight time begins or ends: the three forms of POSIX. */
struct zone_when {
    enum { ZONE_JULIAN, ZONE_DAY_OF_YEAR, ZONE_WEEKDAY } kind;
    int month, week, day;
    int time_s; /* local time from midnight: -167 to 167 hours */
};
struct zone_rule {
    bool has_dst;
    int std_s, dst_s; /* offsets, east is positive */
    struct zone_when begin, end;
};

/* The years that a rule fills beyond a table: the cycle, and the years at both ends whose changes
 * may fall into a neighbour. */
#define ZONE_RULE_YEARS 405
#define ZONE_RULE_CHANGES_MAX (2 * ZONE_RULE_YEARS)

/* Read a TZ string of POSIX as RFC 8536 extends it, such as CET-1CEST,M3.5.0,M10.5.0/3. Daylight
 * time needs its two dates. NULL, or what is wrong with it as the end of `its last line ...`. */
const char *zone_rule_read(struct bytes text, struct zone_rule *out);
/* The two changes of a year, in either order. */
void zone_rule_year(const struct zone_rule *r, int year, struct zone_change out[2]);

#endif
