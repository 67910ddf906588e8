/*
 * check.c - what a failed CHECK does: one line to stderr and to the host's hook, then abort.
 *
 * Any thread. The hook is called at most once, even when several threads fail together.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pawl.h>

#include "base/macros.h"

typedef void panic_fn(const char *line);

static _Atomic(panic_fn *) panic_told;

void check_on_panic(void (*told)(const char *line))
{
    atomic_store(&panic_told, told);
}

PAWL_API void pawl_on_panic(void (*told)(const char *line))
{
    check_on_panic(told);
}

_Noreturn void check_failed(const char *file, int line, const char *cond)
{
    char text[512];
    int n = snprintf(text, sizeof text, "pawl: %s:%d: CHECK failed: %s\n", file, line, cond);
    size_t len = n > 0 ? MIN((size_t)n, sizeof text - 1) : 0;

    /* write(), not stdio: the process may be in any state. */
    ssize_t ignored = write(STDERR_FILENO, text, len);
    (void)ignored;

    panic_fn *told = atomic_exchange(&panic_told, NULL);
    if (told) {
        if (len > 0 && text[len - 1] == '\n')
            text[len - 1] = 0;
        told(text);
    }
    abort();
}
