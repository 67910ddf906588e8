/*
 * process.c - CPU and memory of this process, as the system counts them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exec/internal.h"

/* CPU use is measured over at least this long: shorter spans vary too much. */
#define CPU_SPAN_US SEC_US

static int64_t cpu_used_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SEC_US + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

/* CPU time is counted for the process, so all handles in it share this state. */
int64_t process_cpu_milli(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int64_t at_us, used_us, milli;
    int64_t now_us = world_mono(&world_real);
    pthread_mutex_lock(&lock);
    if (now_us - at_us >= CPU_SPAN_US) {
        int64_t used = cpu_used_us();
        milli = at_us ? (used - used_us) * 1000 / (now_us - at_us) : 0;
        at_us = now_us;
        used_us = used;
    }
    int64_t out = milli;
    pthread_mutex_unlock(&lock);
    return out;
}

int64_t process_memory(void)
{
    char text[128];
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof(text), f) || sscanf(text, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}
