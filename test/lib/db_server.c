/*
 * db_server.c - see db_server.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "db_server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "db_driver.h"
#include "fixture.h"

#define START_US (60 * FIXTURE_SEC * check_scale())
/* A test's own statement that takes longer is blocked by a lock that is never released. */
#define SAY_US (30 * FIXTURE_SEC * check_scale())
#define ANSWER_MAX (4 << 20)
#define DATABASES_MAX 200
/* How many databases of ended cases are dropped at a time. */
#define OLD_MAX 8
/* Where a file system in memory is, used when this much of it is free. */
#define FAST_PLACE "/dev/shm"
#define FAST_FREE ((uint64_t)1 << 30)

bool db_there(struct db_server *s)
{
    return s->find(s);
}

const char *db_name(const struct db_server *s)
{
    return s->name;
}

void word(struct words *w, const char *format, ...)
{
    va_list args;
    char *at = w->text + w->len;
    size_t left = sizeof w->text - w->len;
    va_start(args, format);
    int n = vsnprintf(at, left, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= left || w->n + 1 >= (int)(sizeof w->v / sizeof w->v[0]))
        FAIL("a command line is too long");
    w->v[w->n++] = at;
    w->len += (size_t)n + 1;
}

/* ---- Running programs ------------------------------------------------------------------------ */

/* The account that runs the server when the tests run as root: servers refuse to run as root. */
static const struct passwd *servant(const struct db_server *s)
{
    const struct passwd *who = NULL;
    for (int i = 0; getuid() == 0 && !who && s->users[i]; i++)
        who = getpwnam(s->users[i]);
    return who;
}

static void become_servant(const struct db_server *s)
{
    const struct passwd *who = servant(s);
    if (who && (setgroups(0, NULL) || setgid(who->pw_gid) || setuid(who->pw_uid)))
        _exit(126);
}

/* In a forked child: execute the server's program, with its output in the log. */
_Noreturn static void become(const struct db_server *s, const struct words *w)
{
    char log[100];
    snprintf(log, sizeof log, "%s/log", s->dir);
    int null = open("/dev/null", O_RDONLY);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    if (chdir(s->dir))
        _exit(126);
    execv(w->v[0], (char *const *)w->v);
    _exit(127);
}

static int wait_status(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_as_servant(const struct db_server *s, const struct words *w)
{
    pid_t pid = fork();
    if (pid == 0) {
        become_servant(s);
        become(s, w);
    }
    return pid > 0 ? wait_status(pid) : -1;
}

/* Start a client program with pipes to its stdin and stdout. */
struct db_session {
    const struct db_server *server;
    pid_t pid;
    int in, out;
    int said;
};

static void client_start(const struct db_server *s, const struct words *w, struct db_session *v)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        FAIL("no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        execv(w->v[0], (char *const *)w->v);
        _exit(127);
    }
    if (pid < 0)
        FAIL("no process: %s", strerror(errno));
    close(in[0]);
    close(out[1]);
    *v = (struct db_session){ .server = s, .pid = pid, .in = in[1], .out = out[0] };
}

/* Read until the end of the stream; what does not fit is cut off. */
static size_t read_all(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n;
    while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) != 0)
        if (n > 0)
            len += (size_t)n;
        else if (errno != EINTR)
            break;
    out[len] = '\0';
    return len;
}

void rows_begin(struct rows *r, char *out, size_t size)
{
    *r = (struct rows){ .out = out, .size = size };
    out[0] = '\0';
}

static void rows_add(struct rows *r, const char *text, size_t len)
{
    size_t left = r->size - 1 - r->len;
    len = len < left ? len : left;
    memcpy(r->out + r->len, text, len);
    r->out[r->len += len] = '\0';
}

void rows_cell(struct rows *r, bool first, const char *text, size_t len)
{
    if (!first || r->len)
        rows_add(r, first ? "\n" : "\t", 1);
    rows_add(r, text, len);
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static bool answers(const struct db_server *s)
{
    char out[1000];
    return s->say(s, s->admin, "SELECT 1;", out, sizeof out) == 0;
}

/* The kernel signals the server when the thread that started it ends for any reason. */
static pid_t spawn(const struct db_server *s)
{
    struct words w = { 0 };
    s->serve(s, &w);
    for (int i = 0; i < s->n_options; i++)
        word(&w, "%s", s->options[i]);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    become_servant(s);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, s->kill);
    if (getppid() != parent)
        _exit(1);
    become(s, &w);
}

static bool run_it(struct db_server *s)
{
    int64_t until = fixture_mono() + START_US;
    s->pid = spawn(s);
    while (s->pid > 0 && fixture_mono() < until) {
        int status;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid)
            s->pid = 0; /* it ended by itself */
        else if (answers(s))
            return true;
        else
            usleep(20000);
    }
    return false;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

/* The data folder is removed first: the file `owner` stays until nothing else is left. A server
 * that is still shutting down may write into the folder meanwhile; then the next run removes it. */
void db_remove_folder(const char *dir)
{
    char data[100];
    snprintf(data, sizeof data, "%.80s/data", dir);
    nftw(data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (access(data, F_OK) != 0)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void end(struct db_server *s, int sig)
{
    int status;
    if (s->pid <= 0)
        return;
    kill(s->pid, sig);
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    s->pid = 0;
}

void db_finish(struct db_server *s)
{
    if (getpid() != s->owner)
        return;
    end(s, s->kill);
    db_remove_folder(s->dir);
    s->owner = 0;
}

/* The servers that this program started. */
static struct db_server *begun[4];
static int n_begun;

static void finish_all(void)
{
    for (int i = n_begun; i > 0; i--)
        db_finish(begun[i - 1]);
}

/* Signal handler: kill the servers, then end by the same signal. */
static void told(int sig)
{
    for (int i = 0; i < n_begun; i++)
        if (getpid() == begun[i]->owner && begun[i]->pid > 0)
            kill(begun[i]->pid, begun[i]->kill);
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Remove the folders of servers whose owner was killed and could not clean up. */
static void remove_stale(const struct db_server *s)
{
    char pattern[80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "{/tmp," FAST_PLACE "}/pawl-{%s,run}-*", s->name);
    if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char path[120];
        long pid = 0;
        snprintf(path, sizeof path, "%.80s/owner", found.gl_pathv[i]);
        FILE *f = fopen(path, "r");
        bool said = f && fscanf(f, "%ld", &pid) == 1;
        if (f)
            fclose(f);
        if (said && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            db_remove_folder(found.gl_pathv[i]);
    }
    globfree(&found);
}

static bool own_folder(const struct db_server *s)
{
    char path[100];
    snprintf(path, sizeof path, "%s/owner", s->dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "%ld\n", (long)getpid());
    return fclose(f) == 0;
}

/* A port that is free now. */
static int free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
              getsockname(fd, (struct sockaddr *)&a, &len) == 0;
    if (fd >= 0)
        close(fd);
    return ok ? ntohs(a.sin_port) : 0;
}

static const char *place(bool fast)
{
    struct statvfs v;
    bool there = fast && access(FAST_PLACE, W_OK | X_OK) == 0 && statvfs(FAST_PLACE, &v) == 0 &&
                 (uint64_t)v.f_bavail * v.f_bsize >= FAST_FREE;
    return there ? FAST_PLACE : "/tmp";
}

static bool make_folder(struct db_server *s)
{
    const struct passwd *who = servant(s);
    /* A disk that creates and removes thousands of files for each case is most of its time: a
     * case's own server is on one only in the long form. */
    snprintf(s->dir, sizeof s->dir, "%s/pawl-%s-XXXXXX", place(s->fast || !check_long()), s->name);
    remove_stale(s);
    if (!mkdtemp(s->dir) || !own_folder(s))
        return false;
    s->owner = getpid();
    if (who && chown(s->dir, who->pw_uid, who->pw_gid))
        return false;
    snprintf(s->data, sizeof s->data, "%s/data", s->dir);
    return chmod(s->dir, 0755) == 0;
}

/* Another process may take the port between free_port() and the server's start, so try again. */
static bool run_somewhere(struct db_server *s)
{
    for (int i = 0; i < 3; i++) {
        s->port = free_port();
        if (run_it(s))
            return true;
    }
    return false;
}

/* Print the server's log into the test's output, because the folder is removed later. */
static void print_log(const struct db_server *s)
{
    char path[100], text[4000];
    snprintf(path, sizeof path, "%s/log", s->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    off_t size = lseek(fd, 0, SEEK_END);
    lseek(fd, size > (off_t)sizeof text ? size - (off_t)sizeof text + 1 : 0, SEEK_SET);
    read_all(fd, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    close(fd);
}

/* Creating a server's first files takes seconds, and they are always the same: they are created
 * once a run, under a lock, and copied. Those of a replica come from its primary. */
static bool make_data(struct db_server *s)
{
    char lock_path[120], made[100], command[500];
    struct words w = { 0 };
    if (s->of) {
        s->make(s, &w);
        return run_as_servant(s, &w) == 0;
    }
    int n = snprintf(made, sizeof made, "%s/%s.data", getenv("PAWL_TEST_RUN"), s->name);
    LT_INT(n, (int)sizeof made);
    snprintf(lock_path, sizeof lock_path, "%s.lock", made);
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = lock >= 0 && flock(lock, LOCK_EX) == 0;
    if (ok && access(made, F_OK) != 0) {
        s->make(s, &w);
        snprintf(command, sizeof command, "cp -a %s %s.new && mv %s.new %s", s->data, made, made,
                 made);
        ok = run_as_servant(s, &w) == 0 && system(command) == 0;
    } else if (ok) {
        snprintf(command, sizeof command, "cp -a %s %s", made, s->data);
        ok = system(command) == 0;
    }
    if (lock >= 0)
        close(lock);
    return ok;
}

bool db_begin(struct db_server *s, bool fast)
{
    char said[2000] = "";
    s->fast = fast;
    if (!s->find(s) || !make_folder(s)) {
        fprintf(stderr, "db_server: no %s, or no folder for it\n", s->name);
        return false;
    }
    if (make_data(s) && run_somewhere(s) &&
        (!s->first || s->say(s, s->admin, s->first, said, sizeof said) == 0))
        return true;
    fprintf(stderr, "db_server: %s in %s does not start %s\n", s->name, s->dir, said);
    print_log(s);
    return false;
}

static bool begin_here(struct db_server *s)
{
    bool known = false;
    if (!n_begun)
        atexit(finish_all);
    for (int i = 0; i < n_begun; i++)
        known |= begun[i] == s;
    if (!known) {
        LT_INT(n_begun, (int)(sizeof begun / sizeof begun[0]));
        begun[n_begun++] = s;
    }
    signal(SIGTERM, told);
    signal(SIGINT, told);
    return db_begin(s, false);
}

void db_option(struct db_server *s, const char *option)
{
    LT_INT(s->n_options, (int)(sizeof s->options / sizeof s->options[0]));
    s->options[s->n_options++] = option;
}

void db_start_own(struct db_server *s)
{
    if (!begin_here(s))
        FAIL("no server of %s; its folder is %s", s->name, s->dir);
}

/* ---- Databases ------------------------------------------------------------------------------- */

/* Drop databases of cases that have ended. Each has many files, so they are dropped during the run.
 */
static void drop_old(const struct db_server *s, char *names)
{
    const char *old[OLD_MAX];
    int n = 0;
    for (char *name; n < OLD_MAX && (name = strsep(&names, "\n"));) {
        long pid = 0;
        int end_at = 0;
        if (sscanf(name, "case_%ld_%*d%n", &pid, &end_at) == 1 && !name[end_at] &&
            kill((pid_t)pid, 0) != 0)
            old[n++] = name;
    }
    for (int i = 0; n == OLD_MAX && i < n; i++) { /* another case may drop it at the same time */
        char sql[200], said[1000];
        snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %.60s%s", old[i], s->drop);
        s->say(s, s->admin, sql, said, sizeof said);
    }
}

/* Start the shared server unless it runs. */
static void db_need(struct db_server *s)
{
    if (!s->port && !db_start(s))
        FAIL("no server of %s", s->name);
}

/* The name has the process id, because cases of several programs share a server. */
static const char *make_database(struct db_server *s, const char *how)
{
    static char urls[DATABASES_MAX][200];
    static int n;
    char sql[200], said[16000];
    LT_INT(n, DATABASES_MAX);
    db_need(s);
    snprintf(s->database, sizeof s->database, "case_%ld_%d", (long)getpid(), ++s->databases);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s%s", s->database, how);
    if (s->say(s, s->admin, sql, said, sizeof said) != 0)
        FAIL("%s: %s: %s", s->name, sql, said);
    if (s->say(s, s->admin, s->list, said, sizeof said) == 0)
        drop_old(s, said);
    s->url(s, urls[n], sizeof urls[n], s->database);
    return urls[n++];
}

const char *db_database(struct db_server *s)
{
    return make_database(s, "");
}

const char *db_migrated(struct db_server *s)
{
    db_need(s);
    return make_database(s, s->copies ? s->copy : "");
}

void db_drop(struct db_server *s)
{
    char sql[200], said[2000];
    snprintf(sql, sizeof sql, "DROP DATABASE %s%s;", s->database, s->drop);
    if (s->say(s, s->admin, sql, said, sizeof said) != 0)
        FAIL("%s: %s: %s", s->name, sql, said);
}

static char *answer(void)
{
    static char *text;
    if (!text)
        text = malloc(ANSWER_MAX);
    TRUE(text != NULL);
    return text;
}

const char *db_ask(struct db_server *s, const char *sql)
{
    char *text = answer();
    if (s->say(s, s->database, sql, text, ANSWER_MAX) != 0)
        FAIL("%s: %s: %s", s->name, sql, text);
    return text;
}

int64_t db_int(struct db_server *s, const char *sql)
{
    char *rest;
    const char *text = db_ask(s, sql);
    int64_t n = strtoll(text, &rest, 10);
    if (rest == text || *rest)
        FAIL("%s: %s: \"%s\" is not a number", s->name, sql, text);
    return n;
}

int64_t db_try_int(struct db_server *s, const char *sql)
{
    char text[2000];
    return s->say(s, s->database, sql, text, sizeof text) == 0 ? strtoll(text, NULL, 10) : -1;
}

bool db_waits(struct db_server *s)
{
    return s->waits(s);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static void must_own(const struct db_server *s)
{
    if (getpid() != s->owner)
        FAIL("%s is not this case's own server", s->name);
}

void db_stop(struct db_server *s, enum db_stop how)
{
    must_own(s);
    end(s, how == DB_CLEAN ? s->clean : s->kill);
}

void db_up(struct db_server *s)
{
    must_own(s);
    if (!run_it(s))
        FAIL("%s in %s does not come back; see its log", s->name, s->dir);
}

void db_restart(struct db_server *s, enum db_stop how)
{
    db_stop(s, how);
    db_up(s);
}

int db_kill_connections(struct db_server *s)
{
    int n = 0;
    char *rows = answer();
    must_own(s);
    if (s->say(s, s->admin, s->cut, rows, ANSWER_MAX) != 0)
        FAIL("%s: %s: %s", s->name, s->cut, rows);
    for (char *line; (line = strsep(&rows, "\n")) && *line; n++) {
        char said[2000];
        if (s->cut_says) /* a connection that has ended meanwhile is an error here */
            s->say(s, s->admin, line, said, sizeof said);
    }
    return n;
}

/* ---- Sessions -------------------------------------------------------------------------------- */

struct db_session *db_session_open(struct db_server *s)
{
    struct words w = { 0 };
    struct db_session *v = calloc(1, sizeof *v);
    TRUE(v != NULL);
    signal(SIGPIPE, SIG_IGN);
    s->client(s, &w, s->database);
    client_start(s, &w, v);
    return v;
}

/* Send a SELECT of a unique mark after the statements; when its answer comes, everything before it
 * is done. */
void db_session_say(struct db_session *v, const char *sql)
{
    char line[2000], mark[40], got[4000] = "";
    size_t len = 0;
    int64_t until = fixture_mono() + SAY_US;
    snprintf(mark, sizeof mark, "said-%d", ++v->said);
    int n = snprintf(line, sizeof line, "%s\nSELECT '%s';\n", sql, mark);
    LT_INT(n, (int)sizeof line);
    EQ_INT(write(v->in, line, (size_t)n), n);
    while (!strstr(got, mark)) {
        struct pollfd p = { .fd = v->out, .events = POLLIN };
        if (len >= sizeof got - 1 || fixture_mono() > until ||
            poll(&p, 1, (int)((until - fixture_mono()) / 1000)) <= 0)
            FAIL("%s: no answer to %s: %s", v->server->name, sql, got);
        ssize_t more = read(v->out, got + len, sizeof got - 1 - len);
        if (more <= 0)
            FAIL("%s: the session ended at %s: %s", v->server->name, sql, got);
        len += (size_t)more;
        got[len] = '\0';
    }
}

void db_session_close(struct db_session *v)
{
    close(v->in);
    close(v->out);
    kill(v->pid, SIGKILL);
    wait_status(v->pid);
    free(v);
}
