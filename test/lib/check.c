/*
 * check.c - runs test cases, each in a forked child with a deadline and its own folder.
 *
 * The main process has one thread and never runs a case itself: it forks, waits for children or for
 * the next deadline, and prints TAP. Invariant: whatever a case does, the program prints exactly
 * one line for it and leaves no process of it behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARAMS_MAX 400
#define JOBS_MAX 64
#define NAME_MAX_LEN 256
/* A file whose first bytes, as many as there are jobs, are locked by the programs of one run: one
 * byte for each case that runs. So the programs run at once, and together as many cases at a time
 * as one of them alone. */
#define SLOTS "PAWL_TEST_SLOTS"
/* How soon a slot that another program gave back is found. */
#define SLOT_LOOK_MS 20
/* Only the end of a longer output is kept. */
#define OUTPUT_MAX (64 * 1024)
#define DEADLINE_S 60
/* The variable that multiplies deadlines; on a busy machine the factor is at least the load, up to
 * SCALE_MAX. */
#define SCALE "PAWL_CHECK_SCALE"
#define SCALE_MAX 8

/* What a case reports about itself, in memory shared with its forked descendants. */
struct report {
    bool failed; /* an assertion failed, perhaps in a process that the case forked */
    bool skipped;
    char reason[400];
};

struct param {
    const char *file; /* the file whose cases run with it; NULL: every file without its own */
    const char *name;
    void *value;
    int every; /* only every n-th case of a file, beginning with the first */
};

struct job {
    pid_t pid; /* 0: the job is free */
    int slot;  /* the byte that it locks */
    char name[NAME_MAX_LEN];
    char dir[64];
    int output; /* a memfd holding what the child printed */
    int64_t begun_ms;
    int64_t deadline_ms;
    int scale;
    bool hung;
    struct report *report; /* owned; shared mapping */
};

struct run {
    bool list;
    bool counting; /* count the cases, before the first is started */
    bool verbose;
    bool times;
    int jobs;
    int slots;       /* the file whose bytes are locked; -1: this program runs alone */
    char **patterns; /* borrowed from argv */
    int pattern_count;
    int planned;
    int done;
    int failed;
    struct job job[JOBS_MAX];
};

static struct check_case *cases;
static struct check_case **cases_end = &cases;
static struct check_file *files;
static const struct check_file *adding; /* the file whose params() is running */
static struct param params[PARAMS_MAX];
static int param_count;
static struct report *report; /* of the case that this process runs */

void check_add(struct check_case *c)
{
    static const struct check_case *last;
    c->index = last && strcmp(last->file, c->file) == 0 ? last->index + 1 : 0;
    last = c;
    *cases_end = c;
    cases_end = &c->next;
}

void check_file_add(struct check_file *f)
{
    f->next = files;
    files = f;
}

void check_param(const char *name, void *value)
{
    check_param_sample(name, value, 1);
}

void check_param_sample(const char *name, void *value, int every)
{
    if (param_count == PARAMS_MAX) {
        fprintf(stderr, "check: more than %d parameters\n", PARAMS_MAX);
        exit(2);
    }
    params[param_count++] = (struct param){
        .file = adding->file, .name = name, .value = value, .every = check_long() ? 1 : every
    };
}

static bool is_file(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The CHECK_PARAMS that apply to `file`: its own, else those of the program. */
static const struct check_file *says_of(const char *file)
{
    const struct check_file *all = NULL;
    for (const struct check_file *f = files; f; f = f->next) {
        if (is_file(f->file, file))
            return f;
        if (!f->file)
            all = f;
    }
    return all;
}

static int from_env(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? (int)strtol(text, NULL, 10) : otherwise;
}

bool check_long(void)
{
    return from_env("PAWL_CHECK_LONG", 0) != 0;
}

int check_scale(void)
{
    int scale = from_env(SCALE, 1);
    return scale > 0 ? scale : 1;
}

/* The load for each processor, over the last minute or now, whichever is higher. */
static int crowded(void)
{
    double minute = 0;
    int now = 0;
    FILE *f = fopen("/proc/loadavg", "r");
    if (f && fscanf(f, "%lf %*f %*f %d/", &minute, &now) != 2)
        minute = now = 0;
    if (f)
        fclose(f);
    double most = minute > now ? minute : now, processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    return most > SCALE_MAX * processors ? SCALE_MAX : (int)((most + processors - 1) / processors);
}

/* The factor for a case that starts now: a busy machine is as slow as a sanitizer. */
static int scale_now(void)
{
    int asked = check_scale(), busy = crowded();
    return busy > asked ? busy : asked;
}

static bool no_fork(void)
{
    return from_env("PAWL_CHECK_NOFORK", 0) != 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- Assertions, in the child ---- */

/* _exit() and not exit(): a failed case does no clean-up, and reports of its leaks would hide the
 * reason. */
static _Noreturn void end_failed(void)
{
    fflush(NULL);
    if (report)
        report->failed = true;
    if (no_fork())
        abort();
    _exit(1);
}

void check_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    end_failed();
}

void skip(const char *reason, ...)
{
    va_list args;
    va_start(args, reason);
    if (report) {
        vsnprintf(report->reason, sizeof report->reason, reason, args);
        report->skipped = true;
    }
    va_end(args);
    exit(0);
}

void check_bool(const char *file, int line, const char *text, bool got, bool want)
{
    if (got != want)
        check_fail(file, line, "%s\n  got:  %s\n  want: %s", text, got ? "true" : "false",
                   want ? "true" : "false");
}

static bool holds(const char *op, int64_t a, int64_t b)
{
    switch (op[0]) {
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return op[1] ? a <= b : a < b;
    default:
        return op[1] ? a >= b : a > b;
    }
}

void check_int(const char *file, int line, const char *text, const char *op, int64_t got,
               int64_t want)
{
    if (!holds(op, got, want))
        check_fail(file, line, "%s\n  got:  %lld\n  want: %s%s%lld", text, (long long)got,
                   strcmp(op, "==") == 0 ? "" : op, strcmp(op, "==") == 0 ? "" : " ",
                   (long long)want);
}

void check_uint(const char *file, int line, const char *text, uint64_t got, uint64_t want)
{
    if (got != want)
        check_fail(file, line, "%s\n  got:  %llu\n  want: %llu", text, (unsigned long long)got,
                   (unsigned long long)want);
}

void check_ptr(const char *file, int line, const char *text, const void *got, const void *want)
{
    if (got != want)
        check_fail(file, line, "%s\n  got:  %p\n  want: %p", text, got, want);
}

void check_str(const char *file, int line, const char *text, const char *got, const char *want)
{
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    if (!same)
        check_fail(file, line, "%s\n  got:  %s%s%s\n  want: %s%s%s", text, got ? "\"" : "",
                   got ? got : "NULL", got ? "\"" : "", want ? "\"" : "", want ? want : "NULL",
                   want ? "\"" : "");
}

void check_has(const char *file, int line, const char *text, const char *got, const char *part)
{
    if (!got || !strstr(got, part))
        check_fail(file, line, "%s\n  got:  \"%s\"\n  want: something with \"%s\"", text,
                   got ? got : "NULL", part);
}

/* Hex of up to 32 bytes from `at` on; printable characters are shown as they are. */
static void print_bytes(const char *label, const unsigned char *p, size_t len, size_t at)
{
    fprintf(stderr, "  %s %zu bytes, from %zu:", label, len, at);
    for (size_t i = at; i < len && i < at + 32; i++)
        fprintf(stderr, p[i] > 32 && p[i] < 127 ? " %c" : " %02x", p[i]);
    fprintf(stderr, "%s\n", len > at + 32 ? " ..." : "");
}

void check_bytes(const char *file, int line, const char *text, const void *got, size_t got_len,
                 const void *want, size_t want_len)
{
    const unsigned char *a = got, *b = want;
    size_t at = 0, shorter = got_len < want_len ? got_len : want_len;
    while (at < shorter && a[at] == b[at])
        at++;
    if (at == got_len && at == want_len)
        return;
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    print_bytes("got: ", a, got_len, at);
    print_bytes("want:", b, want_len, at);
    end_failed();
}

static const char *status_name(enum pawl_status st)
{
#define CHECK_NAME(name, http, exit, retry, text) #name,
    static const char *const names[] = { PAWL_STATUS_MAP(CHECK_NAME) };
#undef CHECK_NAME
    return (size_t)st < sizeof names / sizeof names[0] ? names[st] : "no such status";
}

void check_status(const char *file, int line, const char *text, enum pawl_status got,
                  enum pawl_status want, const struct pawl_err *err)
{
    if (got == want)
        return;
    check_fail(file, line, "%s\n  got:  %s%s%s\n  want: %s", text, status_name(got),
               err && got != PAWL_OK ? ": " : "", err && got != PAWL_OK ? err->text : "",
               status_name(want));
}

/* ---- The runner, in the parent ---- */

static void name_of(const struct check_case *c, const struct param *p, char out[NAME_MAX_LEN])
{
    const char *slash = strrchr(c->file, '/');
    const char *base = slash ? slash + 1 : c->file;
    const char *dot = strrchr(base, '.');
    int len = (int)(dot ? dot - base : (ptrdiff_t)strlen(base));
    snprintf(out, NAME_MAX_LEN, "%.*s/%s%s%s", len, base, c->name, p ? ":" : "", p ? p->name : "");
}

static bool wanted(const struct run *r, const char *name)
{
    for (int i = 0; i < r->pattern_count; i++)
        if (fnmatch(r->patterns[i], name, 0) == 0)
            return true;
    return r->pattern_count == 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_dir(const char *dir)
{
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool make_dir(char *out, size_t len)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(out, len, "%s/pawl-check-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= len)
        snprintf(out, len, "/tmp/pawl-check-XXXXXX");
    return mkdtemp(out) != NULL;
}

/* Print the child's output with `#` before each line, the last OUTPUT_MAX bytes of it. */
static void print_output(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > OUTPUT_MAX ? size - OUTPUT_MAX : 0;
    char *text = malloc(OUTPUT_MAX + 1);
    ssize_t n = text && size > 0 ? pread(fd, text, OUTPUT_MAX, from) : 0;
    if (from > 0)
        printf("# (%lld bytes left out)\n", (long long)from);
    bool fresh = true;
    for (ssize_t i = 0; i < n; i++) {
        if (fresh)
            fputs("# ", stdout);
        fresh = text[i] == '\n';
        putchar(text[i]);
    }
    if (!fresh)
        putchar('\n');
    free(text);
}

static const char *how_it_ended(const struct job *j, int status, char *out, size_t len)
{
    if (j->hung)
        snprintf(out, len, "hung: no end after %lld s, killed",
                 (long long)(j->deadline_ms - j->begun_ms) / 1000);
    else if (WIFSIGNALED(status))
        snprintf(out, len, "crashed: signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        snprintf(out, len, "failed: exit status %d", WEXITSTATUS(status));
    else if (j->report->failed)
        snprintf(out, len, "failed: in a process it forked");
    else
        return NULL;
    return out;
}

/* The processor time of the case and of the processes it waited for. A server that all cases share
 * is not in it. */
static long long cpu_ms(const struct rusage *used)
{
    return (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000LL +
           (used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1000;
}

/* ---- Slots shared with other programs ---- */

/* A lock of the process, not of the file's descriptor: a forked case does not have it, and it ends
 * with the process. */
static bool slot_set(const struct run *r, int slot, short how)
{
    struct flock lock = { .l_type = how, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };
    return fcntl(r->slots, F_SETLK, &lock) == 0;
}

/* Take a slot that no job of this program has, and no other program. */
static bool slot_take(struct run *r, struct job *j)
{
    for (int slot = 0; slot < r->jobs; slot++) {
        bool ours = false;
        for (int i = 0; i < r->jobs; i++)
            ours = ours || (r->job[i].pid && r->job[i].slot == slot);
        if (ours || (r->slots >= 0 && !slot_set(r, slot, F_WRLCK)))
            continue;
        j->slot = slot;
        return true;
    }
    return false;
}

static void slots_open(struct run *r)
{
    const char *path = getenv(SLOTS);
    bool shared = path && *path;
    r->slots = shared ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (shared && r->slots < 0) {
        fprintf(stderr, "check: " SLOTS "=%s: %s\n", path, strerror(errno));
        exit(2);
    }
}

/* ---- Jobs ---- */

static void job_end(struct run *r, struct job *j, int status, const struct rusage *used)
{
    char text[200];
    const char *bad = how_it_ended(j, status, text, sizeof text);
    bool skipped = !bad && j->report->skipped;

    printf("%s %d - %s%s%s\n", bad ? "not ok" : "ok", ++r->done, j->name, skipped ? " # SKIP " : "",
           skipped ? j->report->reason : "");
    if (bad || r->verbose)
        print_output(j->output);
    if (bad)
        printf("# %s: %s\n# %s: its files are in %s\n", j->name, bad, j->name, j->dir);
    else
        remove_dir(j->dir);
    if (r->times)
        printf("# %s: %lld ms, cpu %lld ms\n", j->name, (long long)(now_ms() - j->begun_ms),
               cpu_ms(used));
    fflush(stdout);
    r->failed += bad != NULL;
    close(j->output);
    munmap(j->report, sizeof *j->report);
    if (r->slots >= 0)
        slot_set(r, j->slot, F_UNLCK);
    *j = (struct job){ 0 };
}

/* Kill whatever the case left running; the process group is the child's own. */
static void kill_group(const struct job *j)
{
    kill(-j->pid, SIGKILL);
}

/* Wait until a case ends, for at most max_ms. */
static void wait_some(struct run *r, int max_ms)
{
    int64_t now = now_ms(), next = now + max_ms;
    for (int i = 0; i < r->jobs; i++) {
        struct job *j = &r->job[i];
        if (!j->pid)
            continue;
        siginfo_t info = { 0 };
        /* Reap the child only after its group is dead: until then its process id cannot be reused.
         */
        if (waitid(P_PID, (id_t)j->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
            int status = 0;
            struct rusage used = { 0 };
            kill_group(j);
            wait4(j->pid, &status, 0, &used);
            job_end(r, j, status, &used);
            return;
        }
        if (!j->hung && now >= j->deadline_ms) {
            j->hung = true;
            kill_group(j);
        }
        if (!j->hung && j->deadline_ms < next)
            next = j->deadline_ms;
    }
    int64_t left = next > now ? next - now : 1;
    struct timespec t = { .tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000 };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigtimedwait(&set, NULL, &t);
}

static _Noreturn void child(const struct check_case *c, struct job *j, void *value)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t set;
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO); /* a case that needs a terminal creates one */
    dup2(j->output, STDOUT_FILENO);
    dup2(j->output, STDERR_FILENO);
    report = j->report;
    /* The same factor for the whole case and for the programs it starts. */
    char scale[12];
    snprintf(scale, sizeof scale, "%d", j->scale);
    setenv(SCALE, scale, 1);
    unsetenv(SLOTS); /* a program that the case runs must not wait for the case */
    if (chdir(j->dir) != 0)
        FAIL("chdir %s: %s", j->dir, strerror(errno));
    c->run(value);
    /* exit() and not _exit(): leak checkers, race detectors and coverage report at exit. */
    exit(0);
}

static struct job *free_job(struct run *r)
{
    for (;;) {
        struct job *j = NULL;
        for (int i = 0; i < r->jobs && !j; i++)
            if (!r->job[i].pid)
                j = &r->job[i];
        if (j && slot_take(r, j))
            return j;
        wait_some(r, j ? SLOT_LOOK_MS : 1000);
    }
}

/* Make cases independent of the shell that started them: no settings of Pawl or of database
 * clients, LC_ALL=C, no closed streams, and the signals of a terminal end a program that does not
 * handle them (a shell ignores them for what it starts in the background). Runs before main(),
 * which may start servers. */
__attribute__((constructor)) static void stand_alone(void)
{
    static const char *const unset[] = {
        "PAWL_DB",       "PAWL_SCHEMA", "PAWL_URL",        "PAWL_TOKEN",     "PAWL_TOKENS",
        "PAWL_CONFIG",   "PAWL_LISTEN", "PAWL_NODE",       "PAWL_MODULE",    "PAWL_LOG_LEVEL",
        "PAWL_QUEUES",   "PAWL_ROLES",  "PAWL_LOG_FORMAT", "SSL_CERT_FILE",  "SSL_CERT_DIR",
        "PGHOST",        "PGHOSTADDR",  "PGPORT",          "PGUSER",         "PGPASSWORD",
        "PGPASSFILE",    "PGDATABASE",  "PGSERVICE",       "PGOPTIONS",      "PGSSLMODE",
        "PGAPPNAME",     "MYSQL_HOST",  "MYSQL_PWD",       "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT",
        "NOTIFY_SOCKET", "NO_COLOR",
    };
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
        unsetenv(unset[i]);
    setenv("LC_ALL", "C", 1);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR);
}

static _Noreturn void give_up(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(2);
}

static void start(struct run *r, const struct check_case *c, const char *name, void *value)
{
    struct job *j = free_job(r);
    snprintf(j->name, sizeof j->name, "%s", name);
    if (!make_dir(j->dir, sizeof j->dir))
        give_up("temporary folder");
    /* O_APPEND, so that threads and forked processes do not overwrite one another's output. */
    j->output = memfd_create("check", MFD_CLOEXEC);
    if (j->output < 0 || fcntl(j->output, F_SETFL, O_APPEND) < 0)
        give_up("memfd");
    j->report =
        mmap(NULL, sizeof *j->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j->report == MAP_FAILED)
        give_up("mmap");
    j->begun_ms = now_ms();
    j->scale = scale_now();
    j->deadline_ms =
        j->begun_ms + (int64_t)(c->deadline_s ? c->deadline_s : DEADLINE_S) * 1000 * j->scale;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        give_up("fork");
    if (pid == 0)
        child(c, j, value);
    setpgid(pid, pid); /* parent and child both call it, because either may run first */
    j->pid = pid;
}

static void run_here(struct run *r, const struct check_case *c, const char *name, void *value)
{
    char dir[64];
    if (!make_dir(dir, sizeof dir) || chdir(dir) != 0)
        give_up("temporary folder");
    c->run(value);
    printf("ok %d - %s\n", ++r->done, name);
    remove_dir(dir);
}

static void run_one(struct run *r, const struct check_case *c, const struct param *p)
{
    char name[NAME_MAX_LEN];
    name_of(c, p, name);
    if (!wanted(r, name))
        return;
    r->planned++;
    if (r->counting)
        return;
    if (r->list)
        printf("%s\n", name);
    else if (no_fork())
        run_here(r, c, name, p ? p->value : NULL);
    else
        start(r, c, name, p ? p->value : NULL);
}

/* Start, list or count every selected case. */
static void each(struct run *r)
{
    r->planned = 0;
    for (const struct check_case *c = cases; c; c = c->next) {
        const struct check_file *says = c->plain ? NULL : says_of(c->file);
        if (!says)
            run_one(r, c, NULL);
        for (int i = 0; says && i < param_count; i++)
            if (is_file(params[i].file, says->file) && c->index % params[i].every == 0)
                run_one(r, c, &params[i]);
    }
}

static bool read_arguments(struct run *r, int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "lvtj:")) != -1) {
        if (option == 'l')
            r->list = true;
        else if (option == 'v')
            r->verbose = true;
        else if (option == 't')
            r->times = true;
        else if (option == 'j')
            r->jobs = (int)strtol(optarg, NULL, 10);
        else
            return false;
    }
    r->patterns = argv + optind;
    r->pattern_count = argc - optind;
    return r->jobs >= 1 && r->jobs <= JOBS_MAX;
}

/* Cases with the longest deadline first, so that none of them runs alone at the end; otherwise in
 * the order of the source. */
static void sort_cases(void)
{
    struct check_case *sorted = NULL;
    while (cases) {
        struct check_case *c = cases, **at = &sorted;
        cases = c->next;
        while (*at && (*at)->deadline_s >= c->deadline_s)
            at = &(*at)->next;
        c->next = *at;
        *at = c;
    }
    cases = sorted;
}

int check_run(int argc, char **argv)
{
    static struct run r = { .jobs = 1, .slots = -1 };
    if (!read_arguments(&r, argc, argv)) {
        fprintf(stderr, "usage: %s [-l] [-v] [-t] [-j 1..%d] [NAME|GLOB]...\n", argv[0], JOBS_MAX);
        return 2;
    }
    for (adding = files; adding; adding = adding->next)
        adding->params();
    if (r.list) {
        each(&r);
        return r.planned > 0 ? 0 : 1;
    }

    r.counting = true;
    each(&r);
    r.counting = false;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("1..%d\n", r.planned);
    fflush(stdout); /* the first case may have to wait */
    slots_open(&r);
    sort_cases();
    each(&r);
    for (int i = 0; i < r.jobs; i++)
        while (r.job[i].pid)
            wait_some(&r, 1000);
    if (r.planned == 0)
        fprintf(stderr, "%s: no such case\n", argv[0]);
    return r.planned > 0 && r.failed == 0 ? 0 : 1;
}
