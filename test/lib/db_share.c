/*
 * db_share.c - one server for all programs of a test run.
 *
 * tools/test-run.sh makes a folder for the run, PAWL_TEST_RUN, and writes its own process id into
 * `owner`; a program that runs without it makes its own folder. The first case that needs a server
 * starts a supervisor process for it, under a lock. The supervisor writes down where the server is,
 * waits until the run ends (or until it gets a signal), and then stops the server. So a run that is
 * killed leaves no server behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db_driver.h"
#include "store/store.h"

enum { PATH_LEN = 300 };

static void path_of(char out[PATH_LEN], const char *run, const char *name, const char *rest)
{
    snprintf(out, PATH_LEN, "%s/%s%s", run, name, rest);
}

static bool read_place(struct db_server *s, const char *run)
{
    char path[PATH_LEN];
    path_of(path, run, s->name, "");
    FILE *f = fopen(path, "r");
    int copies = 0;
    bool found = f && fscanf(f, "%63s %d %*d %d", s->dir, &s->port, &copies) == 3;
    s->copies = copies;
    if (f)
        fclose(f);
    return found;
}

/* Written to a temporary file and renamed, so that readers see all of it or nothing. */
static bool write_place(const struct db_server *s, const char *run)
{
    char path[PATH_LEN], whole[PATH_LEN];
    path_of(path, run, s->name, ".new");
    path_of(whole, run, s->name, "");
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "%s %d %ld %d\n", s->dir, s->port, (long)getpid(), s->copies);
    return fclose(f) == 0 && rename(path, whole) == 0;
}

static int owner_of(const char *run)
{
    char path[PATH_LEN];
    long pid = 0;
    path_of(path, run, "owner", "");
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%ld", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid > 0 ? pidfd_open((pid_t)pid, 0) : -1;
}

/* Most of the cost of a new database is its migration: it is done once, and the database is copied.
 */
static bool make_copied(struct db_server *s)
{
    char url[200], said[1000];
    struct store *store = NULL;
    struct pawl_err err;
    if (!s->copy)
        return true;
    s->url(s, url, sizeof url, MADE_DATABASE);
    bool ok = s->say(s, s->admin, "CREATE DATABASE " MADE_DATABASE, said, sizeof said) == 0 &&
              store_open(&(struct store_conf){ .url = url }, &store, &err) == PAWL_OK &&
              store_migrate(store, true, &err) == PAWL_OK;
    store_close(store);
    return s->copies = ok;
}

/* The supervisor has its own session, so that signals to the program that started it do not reach
 * it.
 */
_Noreturn static void keep(struct db_server *s, const char *run, int ready)
{
    char path[PATH_LEN];
    sigset_t set;
    path_of(path, run, s->name, ".log");
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(log, 1);
    dup2(log, 2);
    setsid();
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct pollfd p[] = { { .fd = owner_of(run), .events = POLLIN },
                          { .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN } };
    bool ok =
        p[0].fd >= 0 && p[1].fd >= 0 && db_begin(s, true) && make_copied(s) && write_place(s, run);
    if (write(ready, ok ? "y" : "n", 1) != 1)
        ok = false;
    close(ready);
    while (ok && poll(p, 2, -1) <= 0)
        ;
    db_finish(s);
    path_of(path, run, s->name, "");
    unlink(path);
    _exit(0);
}

static bool start_supervisor(struct db_server *s, const char *run, int lock)
{
    int ends[2];
    char said = 'n';
    if (pipe2(ends, O_CLOEXEC))
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(lock);
        close(ends[0]);
        keep(s, run, ends[1]);
    }
    close(ends[1]);
    bool ok = pid > 0 && read(ends[0], &said, 1) == 1 && said == 'y';
    close(ends[0]);
    if (!ok)
        fprintf(stderr, "db_server: no %s for this run; see %s/%s.log\n", s->name, run, s->name);
    return ok;
}

bool db_start(struct db_server *s)
{
    char path[PATH_LEN];
    const char *run = getenv("PAWL_TEST_RUN");
    path_of(path, run, s->name, ".lock");
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX) != 0 || !s->find(s))
        return false;
    bool ok = read_place(s, run) || (start_supervisor(s, run, lock) && read_place(s, run));
    close(lock);
    return ok;
}

/* ---- The run of a program that is started by hand -------------------------------------------- */

static char own_run[64];
static pid_t own_run_of;

/* Tell the supervisors to end. They also notice by themselves that the program has ended. */
static void end_own_run(void)
{
    struct db_server *const servers[] = { &db_postgres, &db_mariadb };
    if (getpid() != own_run_of)
        return;
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        char path[PATH_LEN];
        long supervisor = 0;
        path_of(path, own_run, servers[i]->name, "");
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*s %*d %ld", &supervisor) == 1)
            kill((pid_t)supervisor, SIGTERM);
        if (f)
            fclose(f);
        for (int tries = 0; supervisor && access(path, F_OK) == 0 && tries < 500; tries++)
            usleep(10000);
    }
    db_remove_folder(own_run);
}

__attribute__((constructor)) static void make_own_run(void)
{
    char path[PATH_LEN];
    const char *given = getenv("PAWL_TEST_RUN");
    if (given && *given)
        return;
    snprintf(own_run, sizeof own_run, "/tmp/pawl-run-XXXXXX");
    FILE *f = NULL;
    if (mkdtemp(own_run)) {
        path_of(path, own_run, "owner", "");
        f = fopen(path, "w");
    }
    if (!f || fprintf(f, "%ld\n", (long)getpid()) < 0 || fclose(f) != 0) {
        fprintf(stderr, "db_server: no folder %s\n", own_run);
        exit(2);
    }
    own_run_of = getpid();
    setenv("PAWL_TEST_RUN", own_run, 1);
    atexit(end_own_run);
}
