/*
 * zone_folder.c - folders of zone data (zone_folder.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zone_folder.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "feature/zones.h"

void zone_data(const char *dir, const char *release, int hours)
{
    char command[1000];
    snprintf(command, sizeof command,
             "set -e; mkdir -p '%s'; printf '# version %s\\nZone Europe/London %d:00 - XXX\\n"
             "Zone Europe/Berlin %d:00 - XXX\\n' > '%s/src'; zic -d '%s' '%s/src'; "
             "printf '# version %s\\n' > '%s/tzdata.zi'",
             dir, release, hours, hours, dir, dir, dir, release, dir);
    EQ_INT(system(command), 0);
}

void use_zones(const char *dir)
{
    setenv("TZDIR", dir, 1);
    zones_look();
}
