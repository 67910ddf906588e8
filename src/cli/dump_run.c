/*
 * dump_run.c - run the database server's dump program (dump.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/dump.h"

/* The last part of its stderr, for the error message. */
#define TAIL_LEN 2000
/* How often to draw progress and to check the deadline. */
#define TURN_MS 200

struct work {
    const struct dump_plan *plan;
    const struct dump_run *run;
    const char *program;
    int file, err; /* the output file; our end of its stderr pipe */
    pid_t pid;
    char tail[TAIL_LEN + 1];
    size_t tail_len;
};

/* Our environment, with the secret in place of a variable of the same name. Owned by the caller. */
static char **environment(const char *secret)
{
    size_t n = 0, kept = 0, name_len = secret ? strcspn(secret, "=") + 1 : 0;
    while (environ[n])
        n++;
    char **env = mem_alloc((n + 2) * sizeof *env);
    if (!env)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!secret || strncmp(environ[i], secret, name_len) != 0)
            env[kept++] = environ[i];
    if (secret)
        env[kept++] = (char *)secret;
    env[kept] = NULL;
    return env;
}

/* Start the first program that exists, with stdin /dev/null and stdout the file. ENOENT: none. */
static int spawn_one(struct work *w, int err_to)
{
    posix_spawn_file_actions_t io;
    const char *argv[DUMP_ARGS_MAX + 2];
    char **env = environment(w->plan->secret);
    if (!env)
        return ENOMEM;
    memcpy(argv, w->plan->argv, sizeof argv);
    posix_spawn_file_actions_init(&io);
    posix_spawn_file_actions_addopen(&io, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&io, w->file, 1);
    posix_spawn_file_actions_adddup2(&io, err_to, 2);
    int rc = ENOENT;
    for (size_t i = 0; w->plan->programs[i] && rc == ENOENT; i++) {
        w->program = argv[0] = w->plan->programs[i];
        rc = posix_spawnp(&w->pid, argv[0], &io, NULL, (char *const *)argv, env);
    }
    posix_spawn_file_actions_destroy(&io);
    mem_free(env);
    return rc;
}

static enum pawl_status start(struct work *w, struct pawl_err *err)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return err_set(err, PAWL_BUSY, "cannot create a pipe: %s", strerror(errno));
    int rc = spawn_one(w, pipes[1]);
    close(pipes[1]);
    w->err = pipes[0];
    fcntl(w->err, F_SETFL, O_NONBLOCK);
    if (rc == 0)
        return PAWL_OK;
    w->pid = 0;
    if (rc == ENOENT)
        return err_set(err, PAWL_NOT_FOUND, "%s is not in PATH: install %s", w->plan->programs[0],
                       w->plan->package);
    return err_set(err, PAWL_BUSY, "%s could not be started: %s", w->program, strerror(rc));
}

/* Read its stderr and keep the last part. */
static void listen_to(struct work *w)
{
    char block[TAIL_LEN];
    ssize_t n;
    while ((n = read(w->err, block, sizeof block)) > 0) {
        size_t over = w->tail_len + (size_t)n > TAIL_LEN ? w->tail_len + (size_t)n - TAIL_LEN : 0;
        over = MIN(over, w->tail_len);
        memmove(w->tail, w->tail + over, w->tail_len - over);
        w->tail_len -= over;
        memcpy(w->tail + w->tail_len, block, (size_t)n);
        w->tail_len += (size_t)n;
    }
}

/* The sentence that says why it failed: the last line that begins with the program's name, else the
 * last line. */
static const char *last_words(struct work *w)
{
    while (w->tail_len && strchr(" \t\r\n", w->tail[w->tail_len - 1]))
        w->tail_len--;
    w->tail[w->tail_len] = 0;
    const char *said = w->tail, *line = w->tail;
    size_t len = strlen(w->program);
    bool named = false;
    for (; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        bool names = strncmp(line, w->program, len) == 0 && line[len] == ':' &&
                     strncmp(line + len, ": detail:", 9) != 0; /* quotes the statement */
        if (names || !named)
            said = names ? line + len + 1 + strspn(line + len + 1, " ") : line;
        named = named || names;
    }
    w->tail[said - w->tail + (ptrdiff_t)strcspn(said, "\n")] = 0;
    return *said && utf8_valid(bytes_of(said)) ? said : "it did not say why";
}

/* The dump program reports a table that the account may not read as missing or denied. Say which
 * account is needed: trying again later would not help. */
static enum pawl_status failed(struct work *w, struct pawl_err *err)
{
    const char *said = last_words(w);
    if (strstr(said, "Couldn't find table") || strstr(said, "denied"))
        return err_set(
            err, PAWL_INVALID,
            "%s failed: %.150s: the table does not exist, or this account may not read it; a "
            "backup needs the owner of the schema, or the role that pawl migrate grants calls "
            "--admin",
            w->program, said);
    if (strstr(said, "no matching schemas"))
        return err_set(err, PAWL_STATE,
                       "%s failed: %.150s: run pawl migrate up first, or set --schema", w->program,
                       said);
    return err_set(err, PAWL_BUSY, "%s failed: %.150s", w->program, said);
}

static enum pawl_status wait_for(struct work *w, struct pawl_err *err)
{
    int status = 0;
    bool late = false;
    for (pid_t got = 0; got == 0;) {
        struct stat s = { 0 };
        struct pollfd p = { .fd = w->err, .events = POLLIN };
        poll(&p, 1, TURN_MS);
        if (p.revents & POLLHUP)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* it is about to end */
        listen_to(w);
        if (w->run->progress && fstat(w->file, &s) == 0)
            w->run->progress(w->run->ctx, (int64_t)s.st_size, 0);
        late = late || world_mono(&world_real) > w->run->until_us;
        if (late)
            kill(w->pid, SIGKILL);
        got = waitpid(w->pid, &status, late ? 0 : WNOHANG);
    }
    listen_to(w);
    w->pid = 0;
    if (late)
        return err_set(err, PAWL_BUSY, "%s did not end within --timeout and was killed",
                       w->program);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return failed(w, err);
    return PAWL_OK;
}

static enum pawl_status seal(struct work *w, struct pawl_err *err)
{
    struct stat s = { 0 };
    if (fstat(w->file, &s) == 0 && s.st_size == 0)
        return err_set(err, PAWL_BROKEN, "%s wrote nothing", w->program);
    if (fsync(w->file) != 0)
        return err_set(err, PAWL_BUSY, "\"%s\": syncing: %s", w->run->path, strerror(errno));
    return PAWL_OK;
}

enum pawl_status dump_run(const struct dump_plan *plan, const struct dump_run *run,
                          struct pawl_err *err)
{
    struct work w = { .plan = plan, .run = run, .err = -1 };
    w.file = open(run->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w.file < 0)
        return err_set(err, PAWL_INVALID, "\"%s\": %s", run->path, strerror(errno));
    enum pawl_status st = start(&w, err);
    if (st == PAWL_OK)
        st = wait_for(&w, err);
    if (st == PAWL_OK)
        st = seal(&w, err);
    if (w.err >= 0)
        close(w.err);
    close(w.file);
    if (st != PAWL_OK)
        unlink(run->path);
    return st;
}
