/*
 * zones.c - the time zones of this process (zones.h).
 *
 * One lock around a short list: a process uses a few zones, and a look-up compares their names.
 * What must stay true: a zone that was handed out is never freed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/zones.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LOOK_US (60 * SEC_US)
/* A zone that every release has: it tells which one the folder holds. */
#define WITNESS BYTES("Europe/London")

struct loaded {
    struct loaded *next;
    struct zone *zone; /* owned for ever */
    bool old;          /* newer data is there */
};

static struct {
    pthread_mutex_t lock;
    struct loaded *first;
    int64_t look_us; /* world_mono: look at the folder then */
    int64_t changes;
    char release[ZONE_VERSION_LEN]; /* "" : none was found */
} zones = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *folder(void)
{
    const char *dir = getenv("TZDIR");
    return dir && *dir ? dir : NULL;
}

/* Has the folder other data than at the last look? Then all zones are read again when they are next
 * used. A folder that cannot be read says nothing: what is loaded stays in use. */
static void look(void)
{
    struct pawl_err err;
    struct zone *witness;
    int64_t now_us = world_mono(&world_real);
    if (now_us < zones.look_us)
        return;
    zones.look_us = now_us + LOOK_US;
    if (zone_load(folder(), WITNESS, &witness, &err) != PAWL_OK)
        return;
    if (strcmp(zone_version(witness), zones.release) != 0) {
        for (struct loaded *k = zones.first; k; k = k->next)
            k->old = true;
        zones.changes += zones.release[0] != 0;
        memcpy(zones.release, zone_version(witness), strlen(zone_version(witness)) + 1);
    }
    zone_free(witness);
}

static enum pawl_status load(struct bytes name, const struct zone **out, struct pawl_err *err)
{
    struct loaded *k = mem_zalloc(sizeof *k);
    if (!k)
        return err_no_memory(err, "a time zone");
    enum pawl_status st = zone_load(folder(), name, &k->zone, err);
    if (st != PAWL_OK) {
        mem_free(k);
        return st;
    }
    k->next = zones.first;
    zones.first = k;
    *out = k->zone;
    return PAWL_OK;
}

enum pawl_status zones_get(struct bytes name, const struct zone **out, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out = NULL;
    pthread_mutex_lock(&zones.lock);
    look();
    for (const struct loaded *k = zones.first; k && !*out; k = k->next)
        if (!k->old && bytes_eq(bytes_of(zone_name(k->zone)), name))
            *out = k->zone;
    if (!*out)
        st = load(name, out, err);
    pthread_mutex_unlock(&zones.lock);
    return st;
}

int64_t zones_changes(void)
{
    pthread_mutex_lock(&zones.lock);
    look();
    int64_t changes = zones.changes;
    pthread_mutex_unlock(&zones.lock);
    return changes;
}

void zones_release(char out[ZONE_VERSION_LEN])
{
    pthread_mutex_lock(&zones.lock);
    look();
    memcpy(out, zones.release, sizeof zones.release);
    pthread_mutex_unlock(&zones.lock);
}

void zones_look(void)
{
    pthread_mutex_lock(&zones.lock);
    zones.look_us = 0;
    pthread_mutex_unlock(&zones.lock);
}
