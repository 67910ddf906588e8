/*
 * hook.c - crash points and pause points of a test build; empty in a release build.
 *
 * Any thread. A crash is SIGKILL, so that no exit handler runs.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"

#ifdef PAWL_TEST
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Points beyond this number are not logged; the library has a few dozen. */
#define POINTS_MAX 256

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char crash_name[128];
static char crash_behind[128]; /* only passes after this point was passed count; "": all */
static atomic_bool crash_armed;
static atomic_long crash_left; /* passes left until the crash; 0: no crash */
static const char *log_path;   /* borrowed from the environment */

static void hook_read_environment(void)
{
    log_path = getenv("PAWL_CRASH_LOG");
    const char *wanted = getenv("PAWL_CRASH");
    if (!wanted || !*wanted)
        return;
    const char *behind = strchr(wanted, '>');
    if (behind) {
        snprintf(crash_behind, sizeof crash_behind, "%.*s", (int)(behind - wanted), wanted);
        wanted = behind + 1;
    }
    atomic_store(&crash_armed, !behind);
    const char *colon = strrchr(wanted, ':');
    size_t len = colon ? (size_t)(colon - wanted) : strlen(wanted);
    snprintf(crash_name, sizeof crash_name, "%.*s", (int)len, wanted);
    long n = colon ? strtol(colon + 1, NULL, 10) : 1;
    atomic_store(&crash_left, n > 0 ? n : 1);
}

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *seen[POINTS_MAX]; /* borrowed: names are literals */
static size_t n_seen;

static bool first_pass(const char *name)
{
    bool first = true;
    pthread_mutex_lock(&seen_lock);
    for (size_t i = 0; i < n_seen && first; i++)
        first = strcmp(seen[i], name) != 0;
    if (first && n_seen < POINTS_MAX)
        seen[n_seen++] = name;
    else
        first = false;
    pthread_mutex_unlock(&seen_lock);
    return first;
}

static void log_point(const char *name)
{
    char line[160];
    int n = snprintf(line, sizeof line, "%s\n", name);
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    ssize_t ignored = write(fd, line, (size_t)n);
    (void)ignored;
    close(fd);
}

static void (*_Atomic pass_fn)(const char *name);

void hook_on_pass(void (*fn)(const char *name))
{
    atomic_store(&pass_fn, fn);
}

void hook_crash(const char *name)
{
    void (*heard)(const char *) = atomic_load(&pass_fn);
    pthread_once(&once, hook_read_environment);
    if (heard)
        heard(name);
    if (log_path && first_pass(name))
        log_point(name);
    if (crash_behind[0] && strcmp(name, crash_behind) == 0)
        atomic_store(&crash_armed, true);
    if (atomic_load(&crash_left) > 0 && atomic_load(&crash_armed) &&
        strcmp(name, crash_name) == 0 && atomic_fetch_sub(&crash_left, 1) == 1) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause(); /* do nothing more, however long the signal takes */
    }
}

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*pause_fn)(const char *name, void *ctx);
static void *pause_ctx;
static atomic_bool pause_on;

void hook_on_pause(void (*fn)(const char *name, void *ctx), void *ctx)
{
    pthread_mutex_lock(&pause_lock);
    pause_fn = fn;
    pause_ctx = ctx;
    atomic_store(&pause_on, fn != NULL);
    pthread_mutex_unlock(&pause_lock);
}

bool hook_pausing(void)
{
    return atomic_load(&pause_on);
}

void hook_pause(const char *name)
{
    if (!atomic_load(&pause_on))
        return;
    pthread_mutex_lock(&pause_lock);
    void (*fn)(const char *, void *) = pause_fn;
    void *ctx = pause_ctx;
    pthread_mutex_unlock(&pause_lock);
    /* Outside the lock: the hook may block this thread while others pass. */
    if (fn)
        fn(name, ctx);
}

int hook_scale(void)
{
    const char *text = getenv("PAWL_CHECK_SCALE");
    long n = text ? strtol(text, NULL, 10) : 1;
    return n < 1 ? 1 : n > 100 ? 100 : (int)n;
}

#endif
