/*
 * check_self.c - the harness tested by itself.
 *
 * With CHECK_SELF set, the program runs the cases named inner_*, which fail, hang, crash and skip
 * on purpose. Without it, it runs the other cases, which start the program that way and read its
 * output.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static bool inner(void)
{
    return getenv("CHECK_SELF") != NULL;
}

/* ---- Cases that fail on purpose ---- */

/* Registers `case_name` as inner_case_name, only in the run that is meant for it. */
#define INNER(case_name, ...)                                                                      \
    static void inner_##case_name(void *param)                                                     \
    {                                                                                              \
        (void)param;                                                                               \
        case_name();                                                                               \
    }                                                                                              \
    __attribute__((constructor)) static void add_inner_##case_name(void)                           \
    {                                                                                              \
        static struct check_case c = {                                                             \
            .file = __FILE__, .name = "inner_" #case_name, .run = inner_##case_name, __VA_ARGS__   \
        };                                                                                         \
        if (inner())                                                                               \
            check_add(&c);                                                                         \
    }                                                                                              \
    _Static_assert(1, "")

static void passes(void)
{
    EQ_INT(1 + 1, 2);
    EQ_STR(NULL, NULL);
    EQ_MEM("abc", "abd", 2);
}
INNER(passes);

static void differs_int(void)
{
    int three = 3;
    EQ_INT(three, 4);
}
INNER(differs_int);

static void differs_str(void)
{
    const char *name = "mail";
    EQ_STR(name, "post");
}
INNER(differs_str);

static void differs_bytes(void)
{
    EQ_BYTES("ab\001", 3, "abcd", 4);
}
INNER(differs_bytes);

static void differs_status(void)
{
    struct pawl_err err = { .status = PAWL_FULL, .text = "queue \"mail\": 3 calls, limit 3" };
    OK(err.status, &err);
}
INNER(differs_status);

static void crashes(void)
{
    raise(SIGSEGV);
}
INNER(crashes);

static void hangs(void)
{
    /* A child process of the case hangs too: the whole process group must be killed. */
    pid_t pid = fork();
    FILE *f = pid > 0 ? fopen(getenv("CHECK_SELF"), "w") : NULL;
    if (f) {
        fprintf(f, "%d", (int)pid);
        fclose(f);
    }
    for (;;)
        pause();
}
INNER(hangs, .deadline_s = 1);

static void exits(void)
{
    puts("about to leave");
    exit(3);
}
INNER(exits);

static void skips(void)
{
    skip("no %s here", "engine");
}
INNER(skips);

static void fails_in_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        EQ_INT(7, 8);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}
INNER(fails_in_child);

static void *thread_fails(void *arg)
{
    FAIL("from a thread, %s", (const char *)arg);
}

static void fails_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_fails, "loudly");
    pthread_join(thread, NULL);
}
INNER(fails_in_thread);

static void writes_file(void)
{
    FILE *f = fopen("here", "w");
    TRUE(f != NULL);
    fclose(f);
    TRUE(mkdir("sub", 0700) == 0);
    f = fopen("sub/there", "w");
    TRUE(f != NULL);
    fclose(f);
}
INNER(writes_file);

static void stands_alone(void)
{
    char byte;
    EQ_INT(read(STDIN_FILENO, &byte, 1), 0);
    FALSE(isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO));
    EQ_STR(getenv("PAWL_DB"), NULL);
    EQ_STR(getenv("PGHOST"), NULL);
    EQ_STR(getenv("LC_ALL"), "C");
    TRUE(signal(SIGINT, SIG_IGN) == SIG_DFL);
    GT_INT(open("/dev/null", O_RDONLY), STDERR_FILENO);
}
INNER(stands_alone);

/* ---- What the harness must report ---- */

static char output[64 * 1024];

/* Starts this program on the inner case `name`. Returns its output. */
static FILE *start_inner(const char *name)
{
    if (inner())
        skip("the outer half");
    char path[4096], command[8192];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    TRUE(n > 0);
    path[n] = '\0';
    snprintf(command, sizeof command,
             "PAWL_CHECK_SCALE=1 TMPDIR=. CHECK_SELF=\"$PWD/pid\" '%s' 'check_self/inner_%s'", path,
             name);
    FILE *f = popen(command, "r");
    TRUE(f != NULL);
    return f;
}

/* The same to its end. Its TAP output is in `output`. Returns its status. */
static int run_inner(const char *name)
{
    FILE *f = start_inner(name);
    size_t len = fread(output, 1, sizeof output - 1, f);
    output[len] = '\0';
    int status = pclose(f);
    printf("%s", output);
    return WEXITSTATUS(status);
}

static int folders_left(void)
{
    DIR *dir = opendir(".");
    int left = 0;
    TRUE(dir != NULL);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        left += strncmp(e->d_name, "pawl-check-", 11) == 0;
    closedir(dir);
    return left;
}

TEST(a_passing_case_is_ok)
{
    EQ_INT(run_inner("passes"), 0);
    EQ_STR(output, "1..1\nok 1 - check_self/inner_passes\n");
}

/* A case sees neither the terminal, nor a closed stdin, nor the user's settings. */
TEST(a_case_has_nothing_of_the_shells)
{
    setenv("PAWL_DB", "sqlite:mine.db", 1);
    setenv("PGHOST", "db.example.org", 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    signal(SIGINT, SIG_IGN); /* as a shell does for what it starts in the background */
    EQ_INT(run_inner("stands_alone"), 0);
    close(STDIN_FILENO);
    EQ_INT(run_inner("stands_alone"), 0);
    TRUE(freopen("/dev/zero", "r", stdin) != NULL); /* something to read */
    EQ_INT(run_inner("stands_alone"), 0);
}

TEST(a_failing_case_prints_both_sides)
{
    EQ_INT(run_inner("differs_int"), 1);
    HAS_STR(output, "not ok 1 - check_self/inner_differs_int\n");
    HAS_STR(output, "check_self.c:");
    HAS_STR(output, ": three\n#   got:  3\n#   want: 4\n");
    EQ_INT(folders_left(), 1);

    EQ_INT(run_inner("differs_str"), 1);
    HAS_STR(output, ": name\n#   got:  \"mail\"\n#   want: \"post\"\n");
}

TEST(bytes_show_where_they_part)
{
    EQ_INT(run_inner("differs_bytes"), 1);
    HAS_STR(output, "got:  3 bytes, from 2: 01\n");
    HAS_STR(output, "want: 4 bytes, from 2: c d\n");
}

TEST(a_status_is_named_with_its_sentence)
{
    EQ_INT(run_inner("differs_status"), 1);
    HAS_STR(output, "got:  FULL: queue \"mail\": 3 calls, limit 3\n#   want: OK\n");
}

TEST(a_crash_is_reported)
{
    EQ_INT(run_inner("crashes"), 1);
    HAS_STR(output, "not ok 1 - check_self/inner_crashes\n");
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
    HAS_STR(output, "crashed: signal 11");
#endif
#endif
}

TEST(a_hanging_case_and_its_children_are_killed)
{
    EQ_INT(run_inner("hangs"), 1);
    HAS_STR(output, "not ok 1 - check_self/inner_hangs\n");
    HAS_STR(output, "hung: no end after");

    FILE *f = fopen("pid", "r");
    int pid = 0;
    TRUE(f != NULL);
    EQ_INT(fscanf(f, "%d", &pid), 1);
    fclose(f);
    /* An orphan is a zombie until init reaps it, and a container may have no init: a zombie counts
     * as dead. */
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (int i = 0; i < 1000 * check_scale(); i++) {
        f = fopen(path, "r");
        if (!f)
            return;
        if (fscanf(f, "%*d %*s %c", &state) != 1)
            state = 'Z';
        fclose(f);
        if (state == 'Z' || state == 'X')
            return;
        usleep(10000);
    }
    FAIL("process %d outlived its case, state %c", pid, state);
}

TEST(leaving_early_is_a_failure)
{
    EQ_INT(run_inner("exits"), 1);
    HAS_STR(output, "not ok 1 - check_self/inner_exits\n# about to leave\n");
    HAS_STR(output, "exit status 3");
}

TEST(a_skip_gives_its_reason)
{
    EQ_INT(run_inner("skips"), 0);
    HAS_STR(output, "ok 1 - check_self/inner_skips # SKIP no engine here\n");
}

TEST(a_failure_in_a_fork_or_thread_counts)
{
    EQ_INT(run_inner("fails_in_child"), 1);
    HAS_STR(output, "got:  7");
    HAS_STR(output, "in a process it forked");
    EQ_INT(run_inner("fails_in_thread"), 1);
    HAS_STR(output, "from a thread, loudly");
}

TEST(folders_of_passing_cases_are_removed)
{
    EQ_INT(run_inner("writes_file"), 0);
    EQ_INT(folders_left(), 0);
}

TEST(asking_for_nothing_known_is_an_error)
{
    EQ_INT(run_inner("no_such_case"), 1);
    HAS_STR(output, "1..0");
}

/* Programs that run side by side start a case only when one of the shared slots is free. */
TEST(a_case_waits_for_a_slot_of_another_program)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    int fd = open("slots", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    GE_INT(fd, 0);
    EQ_INT(fcntl(fd, F_SETLK, &lock), 0);
    setenv("PAWL_TEST_SLOTS", "slots", 1);
    FILE *f = start_inner("passes");
    struct pollfd more = { .fd = fileno(f), .events = POLLIN };
    char line[200];
    setvbuf(f, NULL, _IONBF, 0);
    EQ_STR(fgets(line, sizeof line, f), "1..1\n");
    EQ_INT(poll(&more, 1, 300), 0); /* far longer than the case takes */
    lock.l_type = F_UNLCK;
    EQ_INT(fcntl(fd, F_SETLK, &lock), 0);
    EQ_STR(fgets(line, sizeof line, f), "ok 1 - check_self/inner_passes\n");
    EQ_INT(pclose(f), 0);
    EQ_INT(run_inner("passes"), 0); /* it was given back */
}
