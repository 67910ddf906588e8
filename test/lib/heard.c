/*
 * heard.c - see heard.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "heard.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { LINES = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][1024];
static int n_lines;

static void hear(const struct log_record *r, void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    printf("log: %s\n", r->message);
    if (n_lines < LINES)
        snprintf(lines[n_lines++], sizeof lines[0], "%s", r->message);
    pthread_mutex_unlock(&lock);
}

void heard_begin(void)
{
    log_level_set(LOG_INFO);
    log_sink_set(hear, NULL);
}

void heard_end(void)
{
    log_sink_set(NULL, NULL);
}

/* The first line from *at on that contains `part`; NULL: none. */
static const char *next(const char *part, int *at)
{
    const char *found = NULL;
    pthread_mutex_lock(&lock);
    for (; *at < n_lines && !found; (*at)++)
        found = strstr(lines[*at], part) ? lines[*at] : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

int heard_count(const char *part)
{
    int n = 0;
    for (int at = 0; next(part, &at);)
        n++;
    return n;
}

const char *heard_line(const char *part)
{
    int at = 0;
    const char *found = next(part, &at);
    return found ? found : "";
}
