/*
 * zones.c - the time zones of the process: other data in their folder is noticed, whatever the
 * folder says about its release.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <utime.h>

#include "feature/zones.h"
#include "check.h"

/* Make a folder in which these two zones are so many hours ahead of UTC, all the year; `release`
 * NULL: it names none. */
static void folder(const char *dir, const char *release, int london, int berlin)
{
    char command[1000];
    snprintf(command, sizeof command,
             "set -e; mkdir -p '%s'; printf 'Zone Europe/London %d:00 - XXX\\n"
             "Zone Europe/Berlin %d:00 - XXX\\n' > src; zic -d '%s' src",
             dir, london, berlin, dir);
    EQ_INT(system(command), 0);
    if (!release)
        return;
    snprintf(command, sizeof command, "printf '%s\\n' > '%s/+VERSION'", release, dir);
    EQ_INT(system(command), 0);
}

static int hours(const char *name)
{
    const struct zone *z;
    struct pawl_err err;
    OK(zones_get(bytes_of(name), &z, &err), &err);
    return zone_offset(z, 0) / 3600;
}

/* Only the zone in use has changed, and no file says so. */
TEST(a_folder_without_a_release_is_watched_by_its_files)
{
    folder("z", NULL, 1, 2);
    setenv("TZDIR", "z", 1);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    EQ_INT(hours("UTC"), 0);
    int64_t changes = zones_changes();
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    EQ_INT(zones_changes(), changes);
    folder("z", NULL, 1, 3);
    EQ_INT(hours("Europe/Berlin"), 2); /* until the next look */
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 3);
    GT_INT(zones_changes(), changes);
}

/* A package that repairs its files keeps the name of the release, and archives keep old times. */
TEST(a_folder_that_changes_within_a_release_is_noticed)
{
    struct stat st;
    folder("z", "2026a", 1, 2);
    setenv("TZDIR", "z", 1);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    int64_t changes = zones_changes();
    EQ_INT(stat("z/Europe/Berlin", &st), 0);
    folder("z", "2026a", 1, 3);
    EQ_INT(utime("z/Europe/Berlin", &(struct utimbuf){ st.st_atime, st.st_mtime }), 0);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 3);
    GT_INT(zones_changes(), changes);
}

TEST(a_new_release_is_noticed)
{
    char release[ZONE_VERSION_LEN];
    folder("z", "2026a", 1, 2);
    setenv("TZDIR", "z", 1);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    int64_t changes = zones_changes();
    folder("z", "2026b", 1, 2);
    zones_look();
    zones_release(release);
    EQ_STR(release, "2026b");
    GT_INT(zones_changes(), changes);
}

/* Files that are away for a moment, as while a package is replaced. */
TEST(a_file_that_is_gone_changes_nothing)
{
    folder("z", NULL, 1, 2);
    setenv("TZDIR", "z", 1);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    EQ_INT(hours("Europe/London"), 1);
    int64_t changes = zones_changes();
    EQ_INT(system("rm z/Europe/Berlin"), 0);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    EQ_INT(system("mv z y"), 0);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 2);
    EQ_INT(hours("Europe/London"), 1);
    EQ_INT(zones_changes(), changes);
    folder("z", NULL, 1, 4);
    zones_look();
    EQ_INT(hours("Europe/Berlin"), 4);
}
