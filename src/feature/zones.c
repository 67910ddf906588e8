/*
 * zones.c - the time zones of this process (zones.h).
 *
 * One lock around a short list: a process uses a few zones, and a look-up compares their names.
 * Other data is noticed in two ways: the release that the folder names, and the files of the zones
 * in use, because a folder may name no release, or be changed without a new one. Both cost a few
 * system calls a minute.
 * What must stay true: a zone that was handed out is never freed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/zones.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define LOOK_US (60 * SEC_US)
/* A zone that every release has: it tells which one the folder holds. */
#define WITNESS BYTES("Europe/London")

/* What tells a file from the one that replaces it. An archive that is unpacked may set mtime back,
 * but not ctime. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec mtime, ctime;
};

struct loaded {
    struct loaded *next;
    struct zone *zone;  /* owned for ever */
    struct stamp stamp; /* of its file, before it was read; all zero: it has none */
    bool old;           /* other data is there */
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

/* False: there is no such file, or it cannot be looked at. */
static bool stamp_read(struct bytes name, struct stamp *out)
{
    const char *dir = folder();
    char path[4096];
    struct stat st;
    *out = (struct stamp){ 0 };
    int n = snprintf(path, sizeof path, "%s/%.*s", dir ? dir : ZONE_DIR, BYTES_ARG(name));
    if (bytes_eq(name, BYTES("UTC")) || n >= (int)sizeof path || stat(path, &st) != 0)
        return false;
    out->device = st.st_dev;
    out->inode = st.st_ino;
    out->size = st.st_size;
    out->mtime = st.st_mtim;
    out->ctime = st.st_ctim;
    return true;
}

static bool time_same(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool stamp_same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           time_same(a->mtime, b->mtime) && time_same(a->ctime, b->ctime);
}

/* Which zones in use have another file than the one they were read from? A file that is gone says
 * nothing. */
static void look_at_files(void)
{
    struct stamp now;
    bool any = false;
    for (struct loaded *k = zones.first; k; k = k->next)
        if (!k->old && stamp_read(bytes_of(zone_name(k->zone)), &now) &&
            !stamp_same(&k->stamp, &now))
            any = k->old = true;
    zones.changes += any;
}

/* Has the folder other data than at the last look? Then zones are read again when they are next
 * used: all with another release, else those whose file is another. A folder that cannot be read
 * says nothing: what is loaded stays in use. */
static void look(void)
{
    struct pawl_err err;
    struct zone *witness;
    int64_t now_us = world_mono(&world_real);
    if (now_us < zones.look_us)
        return;
    zones.look_us = now_us + LOOK_US;
    look_at_files();
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
    (void)stamp_read(name, &k->stamp); /* before it is read: a change meanwhile is seen later */
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

enum pawl_status zones_of_field(struct bytes name, const struct zone **out, struct pawl_err *err)
{
    struct pawl_err why = { 0 };
    enum pawl_status st = zones_get(name, out, &why);
    if (st == PAWL_OK)
        return st;
    return err_set(err, st, "%s%s", st == PAWL_INVALID ? "field \"zone\": " : "", why.text);
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
