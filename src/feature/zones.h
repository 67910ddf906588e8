/*
 * zones.h - the time zones of this process: each is read once and then shared.
 *
 * Any thread. The folder is $TZDIR, else that of the system. A zone stays in memory for as long as
 * the process lives, also when newer data has replaced it: a thread may still use it. That is a few
 * KiB for each zone in use and each release of the database, of which a year has a few.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_ZONES_H
#define FEATURE_ZONES_H

#include "base/macros.h"
#include "base/zone.h"

/* The zone of this name. Its folder is looked at again once a minute, and a zone that was read from
 * another release or another file than is there now is read again. INVALID, BROKEN, BUSY,
 * NO_MEMORY: as zone_load(). */
MUST_USE enum pawl_status zones_get(struct bytes name, const struct zone **out,
                                    struct pawl_err *err);
/* The same for the field `zone`, which an INVALID names. */
MUST_USE enum pawl_status zones_of_field(struct bytes name, const struct zone **out,
                                         struct pawl_err *err);
/* A number that rises when other data was found than before. Looks at the folder as zones_get(). */
int64_t zones_changes(void);
/* Which release of the database the folder has, as zone_version(); "" when there is none. */
void zones_release(char out[ZONE_VERSION_LEN]);
/* For tests: look at the folder ($TZDIR) at the next use, not in a minute. */
void zones_look(void);

#endif
