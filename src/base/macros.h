/*
 * macros.h - the few macros that all rooms use: release at the end of a scope, transfer of
 * ownership, assertions that stay on.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

#include <assert.h>
#include <stddef.h>

/* Is this build checked by AddressSanitizer? gcc and clang say it in different ways. */
#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifndef ASAN
#define ASAN 0
#endif

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* `AUTO(f) T *x` calls f(&x) when the scope of x ends; f accepts a pointer to NULL. `unused`,
 * because clang warns of a variable that only its cleanup uses. */
#define AUTO(f) __attribute__((cleanup(f), unused))

/* Transfer ownership of p: yields its value and sets p to NULL, so that AUTO has nothing to
 * release. */
#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

#define COUNT_OF(v) (sizeof(v) / sizeof((v)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A durable truth: always on. When it does not hold, report one line to the host's panic hook and
 * abort. Recovery after a crash is what the product does, so stopping is safe where going on is
 * not. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

/* What a failed CHECK does: one line to stderr and to the panic hook, then abort(). Any thread. */
_Noreturn void check_failed(const char *file, int line, const char *cond);

/* Set the function that is told the line before the abort; NULL for none. Any thread. */
void check_on_panic(void (*told)(const char *line));

#endif
