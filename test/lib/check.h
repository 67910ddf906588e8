/*
 * check.h - the test harness: cases, assertions that print both sides, TAP on stdout.
 *
 * Why not cmocka: a case here runs in a forked child with a deadline, in its own temporary folder,
 * and takes a parameter. So one suite runs on every engine, and a test that crashes, hangs or leaks
 * is reported by name and does not affect the others. cmocka has one process and no deadlines.
 *
 *     TEST(grows_by_pages)
 *     {
 *         EQ_INT(arena_used(a), 4096);
 *     }
 *
 *     TEST(survives_a_million, .deadline_s = 300) { ... }
 *
 * A case belongs to the suite named after its file and registers itself; there is no list of cases.
 * A failed assertion prints file, line, expression and both sides, and ends the case at once, from
 * any thread or forked process. A case passes when its process ends with status 0, which also makes
 * every sanitizer report and every leak a failure.
 *
 * A program is all files of one suite. A file whose cases run on several engines says so:
 *
 *     CHECK_PARAMS
 *     {
 *         check_param("mem", &mem);
 *         check_param("sqlite", &sqlite);
 *     }
 *
 * and each of its cases runs once per parameter, as `file/case:mem`, with `param` pointing at it.
 *
 * Command line: names or globs select cases (`arena/grows*`, `*:sqlite`), -l lists them, -v shows
 * the output of passing cases, -t the time of each and its processor time, -j N runs N cases at
 * once. PAWL_CHECK_NOFORK=1 runs a case in this process, for gdb. PAWL_CHECK_SCALE=N multiplies
 * deadlines, for sanitizers; on a busy machine the harness multiplies them by itself, for each case
 * that starts. PAWL_CHECK_LONG=1 selects the long form of cases that have one, as `make nightly`
 * does.
 *
 * A case has /dev/null as its stdin and none of the settings of the shell that started the program:
 * no PAWL_DB, no PGHOST, LC_ALL=C. A case that needs a terminal creates one with forkpty().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl.h>

/* One case. `file` and `name` are static strings; the other fields come from TEST(). */
struct check_case {
    const char *file;
    const char *name;
    void (*run)(void *param);
    int deadline_s; /* 0: 60 seconds */
    bool plain;     /* runs once, with NULL, even in a file that has parameters */
    int index;      /* among the cases of its file */
    struct check_case *next;
};

/* Register a case; called by TEST() before main(). `c` must live as long as the program. */
void check_add(struct check_case *c);

/* The parameters of one file's cases. params() calls check_param() for each parameter; if it calls
 * it for none, the cases do not run. `file` NULL: for every file without its own CHECK_PARAMS. */
struct check_file {
    const char *file;
    void (*params)(void);
    struct check_file *next;
};
/* Register the parameters of a file; called by CHECK_PARAMS before main(). */
void check_file_add(struct check_file *f);
/* Called by params(): run every case once more with `value`, with `:name` added to its name. Both
 * must live as long as the program. */
void check_param(const char *name, void *value);
/* The same for every `every`-th case of each file, beginning with the first; with PAWL_CHECK_LONG
 * for all cases. */
void check_param_sample(const char *name, void *value, int every);

/* Run the cases that the command line selects. Returns the status for main(): 0 when all passed and
 * at least one ran. */
int check_run(int argc, char **argv);

/* End the case as skipped; the reason goes into the TAP output. Does not return. */
_Noreturn void skip(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* End the case as failed and print why. Does not return. */
_Noreturn void check_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True when PAWL_CHECK_LONG asks for more rounds, as `make nightly` does. */
bool check_long(void);

/* The factor that deadlines are multiplied by: 1, or more under a sanitizer or when the machine was
 * busy at the start of the case. For waits inside a case. */
int check_scale(void);

#define TEST(case_name, ...)                                                                       \
    static void case_name(void *param);                                                            \
    static struct check_case check_case_##case_name = {                                            \
        .file = __FILE__, .name = #case_name, .run = case_name, __VA_ARGS__                        \
    };                                                                                             \
    __attribute__((constructor)) static void check_add_##case_name(void)                           \
    {                                                                                              \
        check_add(&check_case_##case_name);                                                        \
    }                                                                                              \
    static void case_name(__attribute__((unused)) void *param)

#define CHECK_PARAMS_OF(which)                                                                     \
    static void check_params(void);                                                                \
    static struct check_file check_this_file = { .file = (which), .params = check_params };        \
    __attribute__((constructor)) static void check_add_this_file(void)                             \
    {                                                                                              \
        check_file_add(&check_this_file);                                                          \
    }                                                                                              \
    static void check_params(void)
#define CHECK_PARAMS CHECK_PARAMS_OF(__FILE__)

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

/* A truth value, with the expression as it is written. */
#define TRUE(x) check_bool(__FILE__, __LINE__, #x, (x) ? true : false, true)
#define FALSE(x) check_bool(__FILE__, __LINE__, #x, (x) ? true : false, false)

/* Integers of up to 64 bits; signed and unsigned ones have separate macros. */
#define EQ_INT(got, want) check_int(__FILE__, __LINE__, #got, "==", (got), (want))
#define NE_INT(got, want) check_int(__FILE__, __LINE__, #got, "!=", (got), (want))
#define LT_INT(got, want) check_int(__FILE__, __LINE__, #got, "<", (got), (want))
#define LE_INT(got, want) check_int(__FILE__, __LINE__, #got, "<=", (got), (want))
#define GT_INT(got, want) check_int(__FILE__, __LINE__, #got, ">", (got), (want))
#define GE_INT(got, want) check_int(__FILE__, __LINE__, #got, ">=", (got), (want))
#define EQ_UINT(got, want) check_uint(__FILE__, __LINE__, #got, (got), (want))
#define EQ_PTR(got, want) check_ptr(__FILE__, __LINE__, #got, (got), (want))

/* Strings; NULL equals only NULL. HAS_STR: `got` contains `part`. */
#define EQ_STR(got, want) check_str(__FILE__, __LINE__, #got, (got), (want))
#define HAS_STR(got, part) check_has(__FILE__, __LINE__, #got, (got), (part))

/* `len` bytes on both sides; EQ_BYTES gives each side its own length. */
#define EQ_MEM(got, want, len) check_bytes(__FILE__, __LINE__, #got, (got), (len), (want), (len))
#define EQ_BYTES(got, got_len, want, want_len)                                                     \
    check_bytes(__FILE__, __LINE__, #got, (got), (got_len), (want), (want_len))

/* A status, compared by name. When it differs, the message in `err` (`struct pawl_err *` or NULL)
 * is printed. */
#define EQ_STATUS(got, want, err)                                                                  \
    do {                                                                                           \
        enum pawl_status check_st = (got);                                                         \
        check_status(__FILE__, __LINE__, #got, check_st, (want), (err));                           \
    } while (0)
#define OK(got, err) EQ_STATUS(got, PAWL_OK, err)

/* The macros call these; tests do not. Fails unless both truth values are equal. */
void check_bool(const char *file, int line, const char *text, bool got, bool want);
/* Fails unless `got op want` holds. */
void check_int(const char *file, int line, const char *text, const char *op, int64_t got,
               int64_t want);
/* Fails unless both are equal. */
void check_uint(const char *file, int line, const char *text, uint64_t got, uint64_t want);
/* Fails unless both pointers are equal. */
void check_ptr(const char *file, int line, const char *text, const void *got, const void *want);
/* Fails unless both strings are equal, or both NULL. */
void check_str(const char *file, int line, const char *text, const char *got, const char *want);
/* Fails unless `got` contains `part`. */
void check_has(const char *file, int line, const char *text, const char *got, const char *part);
/* Fails unless lengths and bytes are equal. */
void check_bytes(const char *file, int line, const char *text, const void *got, size_t got_len,
                 const void *want, size_t want_len);
/* Fails unless both statuses are equal; `err` may be NULL. */
void check_status(const char *file, int line, const char *text, enum pawl_status got,
                  enum pawl_status want, const struct pawl_err *err);

#endif
