/*
 * zone_ref.c - time zones by the C library (zone_ref.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zone_ref.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/zone.h"
#include "check.h"

#define ZONES_MAX 2000

static char *names[ZONES_MAX + 1];
static ino_t inodes[ZONES_MAX];
static int n_names, only_once;

static int is_compiled(const char *path)
{
    char head[4] = "";
    FILE *f = fopen(path, "rb");
    size_t len = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    return len == sizeof head && memcmp(head, "TZif", 4) == 0;
}

/* posixrules, localtime and the folders of other rules begin with a small letter. */
static int found(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    const char *name = path + strlen(ZONE_DIR) + 1;
    (void)at;
    if (kind != FTW_F || name[0] < 'A' || name[0] > 'Z' || !is_compiled(path))
        return 0;
    for (int i = 0; only_once && i < n_names; i++)
        if (inodes[i] == st->st_ino)
            return 0;
    TRUE(n_names < ZONES_MAX);
    inodes[n_names] = st->st_ino;
    names[n_names++] = strdup(name);
    return 0;
}

const char *const *ref_zones(int once)
{
    if (n_names && only_once == once)
        return (const char *const *)names;
    while (n_names)
        free(names[--n_names]);
    only_once = once;
    if (nftw(ZONE_DIR, found, 16, 0) != 0 || n_names == 0)
        skip("there are no time zones in %s", ZONE_DIR);
    names[n_names] = NULL;
    return (const char *const *)names;
}

void ref_use(const char *name)
{
    setenv("TZ", name, 1);
    tzset();
}

int ref_offset(int64_t at_s)
{
    struct tm tm;
    time_t at = (time_t)at_s;
    TRUE(localtime_r(&at, &tm) != NULL);
    return (int)tm.tm_gmtoff;
}

size_t ref_spans(int64_t from_s, int64_t to_s, int64_t step_s, struct ref_span *out, size_t max)
{
    size_t n = 1;
    out[0] = (struct ref_span){ from_s, to_s, ref_offset(from_s) };
    for (int64_t at = from_s + step_s; at < to_s; at += step_s) {
        int offset = ref_offset(at);
        if (offset == out[n - 1].offset_s)
            continue;
        int64_t low = at - step_s, high = at;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (ref_offset(middle) == out[n - 1].offset_s)
                low = middle;
            else
                high = middle;
        }
        TRUE(n < max);
        out[n - 1].to_s = high;
        out[n++] = (struct ref_span){ high, to_s, ref_offset(high) };
        at = high;
    }
    return n;
}
