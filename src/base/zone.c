/*
 * zone.c - looking into a zone: offsets, changes, local times (zone.h). Pure, any thread.
 *
 * A zone is one sorted table. The reader (zone_read.c) has continued the file's own table by its
 * rule for 400 years, after which the calendar repeats; a later instant is looked up a multiple of
 * that earlier. So every question is a binary search, whatever the time and the kind of the file.
 *
 * Local times are answered from one idea, the latest local time that has been shown (zone_reached).
 * It never decreases, so "the first instant at which it has come to L" is the same rule for a time
 * that exists once, for the first of two, and for the end of a gap.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/zone_inside.h"

void zone_free(struct zone *z)
{
    mem_free(z);
}

void zone_end(struct zone **z)
{
    zone_free(*z);
}

const char *zone_name(const struct zone *z)
{
    return z->name;
}

const char *zone_version(const struct zone *z)
{
    return z->version;
}

/* A release: four digits, then one letter or more. Releases sort as texts. */
static bool is_release(struct bytes v)
{
    for (size_t i = 0; i < v.len; i++) {
        char c = v.data[i];
        if (i < 4 ? c < '0' || c > '9' : c < 'a' || c > 'z')
            return false;
    }
    return v.len > 4;
}

bool zone_version_newer(struct bytes a, struct bytes b)
{
    return is_release(a) && (!is_release(b) || bytes_cmp(a, b) > 0);
}

/* ---- Instants -------------------------------------------------------------------------------- */

/* How many changes there are up to `at_s`, inclusive. */
static size_t changes_until(const struct zone *z, int64_t at_s)
{
    size_t low = 0, high = z->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (z->change[middle].at_s <= at_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t inside(int64_t at_s)
{
    return MIN(MAX(at_s, ZONE_FIRST_S - ZONE_REPEAT_MAX), ZONE_LAST_S + ZONE_REPEAT_MAX);
}

struct zone_span zone_span(const struct zone *z, int64_t at_s)
{
    int64_t shift = 0;
    at_s = inside(at_s);
    if (at_s >= z->cycle_end_s)
        shift = ((at_s - z->cycle_end_s) / ZONE_CYCLE_S + 1) * ZONE_CYCLE_S;
    size_t i = changes_until(z, at_s - shift);
    return (struct zone_span){
        .from_s = i > 0 ? z->change[i - 1].at_s + shift : INT64_MIN,
        .to_s = i < z->n ? z->change[i].at_s + shift : INT64_MAX,
        .offset_s = i > 0 ? z->change[i - 1].offset_s : z->before_s,
    };
}

int zone_offset(const struct zone *z, int64_t at_s)
{
    return zone_span(z, at_s).offset_s;
}

bool zone_next_change(const struct zone *z, int64_t after_s, int64_t *out_at_s)
{
    struct zone_span span = zone_span(z, after_s);
    if (span.to_s > ZONE_LAST_S)
        return false;
    *out_at_s = span.to_s;
    return true;
}

/* ---- Local times ----------------------------------------------------------------------------- */

int64_t zone_reached(const struct zone *z, int64_t at_s)
{
    at_s = inside(at_s);
    struct zone_span span = zone_span(z, at_s);
    int64_t most = at_s + span.offset_s;
    while (span.from_s > at_s - ZONE_REPEAT_MAX) {
        int64_t last = span.from_s - 1;
        span = zone_span(z, last);
        most = MAX(most, last + span.offset_s);
    }
    return most;
}

/* The span that follows; its end if there is none. */
static bool step(const struct zone *z, struct zone_span *span)
{
    if (span->to_s > ZONE_LAST_S + ZONE_OFFSET_MAX)
        return false;
    *span = zone_span(z, span->to_s);
    return true;
}

struct zone_local zone_local(const struct zone *z, int64_t local_s)
{
    local_s = MIN(MAX(local_s, ZONE_FIRST_S), ZONE_LAST_S);
    struct zone_span span = zone_span(z, local_s - ZONE_OFFSET_MAX);
    while (span.to_s != INT64_MAX && span.to_s - 1 + span.offset_s < local_s && step(z, &span))
        continue;
    int64_t first = MAX(span.from_s, local_s - span.offset_s);
    struct zone_local l = { ZONE_ONCE, first, first };
    if (first + span.offset_s != local_s) {
        l.fit = ZONE_GAP;
        return l;
    }
    while (span.to_s <= local_s + ZONE_OFFSET_MAX && step(z, &span)) {
        int64_t again = local_s - span.offset_s;
        if (again >= span.from_s && again < span.to_s) {
            l.fit = ZONE_FOLD;
            l.second_s = again;
            break;
        }
    }
    return l;
}
