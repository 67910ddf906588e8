/*
 * macros.h - the few words of our dialect: ends by scope, hand-over, assertions that stay.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

#include <assert.h>
#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* `AUTO(f) T *x` ends x by f(&x) when the scope does. f accepts a pointer to NULL. `unused`: a
 * variable that only its end uses is a warning of clang's. */
#define AUTO(f) __attribute__((cleanup(f), unused))

/* Hand p over: yields its value and leaves NULL behind, so that AUTO has nothing to end. */
#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

#define COUNT_OF(v) (sizeof(v) / sizeof((v)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Durable truth: always on. Tells the host's panic hook one line and aborts; recovery is what the
 * product does, so stopping is safe where going on is not. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

_Noreturn void check_failed(const char *file, int line, const char *cond);

/* The hook told before the abort; NULL for none. Any thread. */
void check_on_panic(void (*told)(const char *line));

#endif
