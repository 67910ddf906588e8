/*
 * zone.h - time zones of the IANA database, read from its compiled files (TZif, RFC 8536).
 *
 * A zone never changes after it was loaded, so any thread may read it. Times are whole seconds: an
 * instant (`at_s`) counts from 1970 in UTC; a local time (`local_s`) is what a clock on the wall
 * shows, as if it were UTC. The functions are exact from year 1 to year 9999, beyond the file's
 * table by the rule in its last line; earlier and later times are taken for the nearest one inside.
 *
 * Not with localtime(): TZ is one setting for the whole process. Not with a library: ours is as
 * new as the files of the machine, and its zones are free of locks.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"
#include "base/world.h"

/* Where Debian and most others keep the files. */
#define ZONE_DIR "/usr/share/zoneinfo"
#define ZONE_VERSION_LEN 40
#define ZONE_FIRST_S (TIME_FIRST_US / SEC_US)
#define ZONE_LAST_S (TIME_LAST_US / SEC_US)
/* No clock is further from UTC than this: RFC 8536 has -24:59:59 to 25:59:59. */
#define ZONE_OFFSET_MAX 93600
/* A local time that was shown once is never shown again after more than this. */
#define ZONE_REPEAT_MAX (2 * ZONE_OFFSET_MAX)

struct zone;

/* What is wrong with the name of a zone, as the end of the sentence `zone "x" ...`; NULL when it
 * can be one: 1 to ZONE_NAME_LEN_MAX letters, digits and `+-_`, in parts between `/` that begin
 * with a capital, as all IANA names do. That keeps out `..`, `/etc/passwd`, and what stands beside
 * the zones without being one: `localtime`, `posixrules`, `right/`, `tzdata.zi`. */
const char *zone_name_fault(struct bytes name);

/* Load a zone from a folder (NULL: ZONE_DIR). "UTC" is built in and needs no folder. The caller
 * frees it. INVALID: no such zone, or it counts leap seconds, which our clock has not. BROKEN: the
 * folder is missing, or the file is damaged or cannot be read; BUSY: no file handle is left;
 * NO_MEMORY. The sentence names zone, file and reason. */
MUST_USE enum pawl_status zone_load(const char *dir, struct bytes name, struct zone **out,
                                    struct pawl_err *err);
/* Make a zone from the bytes of its file; `file` is the file's name for the error. INVALID and
 * BROKEN as above; NO_MEMORY. Its version is the hash of the bytes. */
MUST_USE enum pawl_status zone_parse(struct bytes name, const char *file, struct bytes data,
                                     struct zone **out, struct pawl_err *err);
/* Free a zone; NULL does nothing. */
void zone_free(struct zone *z);
/* zone_free for AUTO; accepts a pointer to NULL. */
void zone_end(struct zone **z);

/* The name it was loaded by. */
const char *zone_name(const struct zone *z);
/* Which data it is made from: the release of the database ("2025b") when the folder says so
 * (tzdata.zi or +VERSION), else `sha256:` and 16 hex digits of the file's hash; "UTC" when it is
 * built in. At most ZONE_VERSION_LEN - 1 bytes. */
const char *zone_version(const struct zone *z);
/* Is data of version `a` newer than data of version `b`? A release is newer than an older release
 * and than a hash. A hash is never newer, because hashes have no order: two nodes whose files
 * differ would each replace what the other one computed. */
bool zone_version_newer(struct bytes a, struct bytes b);

/* A time during which the offset stays the same: `from` inclusive, `to` exclusive. */
struct zone_span {
    int64_t from_s, to_s; /* INT64_MIN and INT64_MAX: without a beginning, without an end */
    int offset_s;         /* local time minus UTC */
};
/* The span that contains an instant. */
struct zone_span zone_span(const struct zone *z, int64_t at_s);
/* Local time minus UTC at an instant. */
int zone_offset(const struct zone *z, int64_t at_s);
/* The first instant after `after_s` at which the offset changes. False when it never does again. */
bool zone_next_change(const struct zone *z, int64_t after_s, int64_t *out_at_s);

/* The latest local time that the clock has shown up to `at_s`, inclusive. It is later than the one
 * that is shown at `at_s` while the hour that was set back is repeated. It never decreases. */
int64_t zone_reached(const struct zone *z, int64_t at_s);

/* Does a local time exist once, not at all, or twice? */
enum zone_fit { ZONE_ONCE, ZONE_GAP, ZONE_FOLD };
struct zone_local {
    enum zone_fit fit;
    int64_t first_s;  /* the first instant at which the clock shows this time, or has passed it: for
                         a gap the first instant after it */
    int64_t second_s; /* ZONE_FOLD: the next instant at which it shows it; else equal to first_s */
};
/* The instants of a local time. first_s never decreases when local_s rises. */
struct zone_local zone_local(const struct zone *z, int64_t local_s);

#endif
