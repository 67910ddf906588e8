/*
 * zone_ref.h - an independent reader of time zones to compare ours with: the C library's
 * localtime_r(), under the TZ of this process. Slow, and it shares no code with src/base/zone*.c.
 *
 * The zone in use belongs to the process; each case runs in a process of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZONE_REF_H
#define ZONE_REF_H

#include <stddef.h>
#include <stdint.h>

/* 1970-01-01 and 2038-01-01. */
#define REF_FROM_S INT64_C(0)
#define REF_TO_S INT64_C(2145916800)

/* A time with one offset: `from_s` inclusive, `to_s` exclusive. */
struct ref_span {
    int64_t from_s, to_s;
    int offset_s;
};

/* The names of all zones in the system's database, without the folders posix/ and right/; with
 * `once` only one name for each file. The array ends with NULL and stays until the other kind is
 * asked for. Skips the case when there is no database. */
const char *const *ref_zones(int once);
/* Use this zone from now on: a name, or a TZ string of POSIX. */
void ref_use(const char *name);
/* Local time minus UTC. */
int ref_offset(int64_t at_s);
/* The spans from `from_s` to `to_s`, found by looking every `step_s` seconds and halving. Returns
 * how many; fails the case when there are more than `max`. */
size_t ref_spans(int64_t from_s, int64_t to_s, int64_t step_s, struct ref_span *out, size_t max);

#endif
