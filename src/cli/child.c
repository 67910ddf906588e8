/*
 * child.c - run a program with pipes to its stdin, stdout and stderr, without blocking (child.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "base/world.h"

#define BLOCK_LEN (64 << 10)
/* Between SIGTERM and SIGKILL. */
#define KILL_AFTER_US (2 * SEC_US)
/* How often to check whether a program that has closed its pipes has ended. */
#define LOOK_US (20 * MS_US)

/* ---- Starting -------------------------------------------------------------------------------- */

/* Runs between fork() and exec() in a program with threads: async-signal-safe functions only. */
static _Noreturn void become(const struct child_conf *conf, int in, int out, int err)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0) {
        char *const argv[] = { (char *)"sh", (char *)"-c", (char *)conf->command, NULL };
        execve("/bin/sh", argv, conf->env);
    }
    _exit(127);
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

enum pawl_status child_open(struct child *c, const struct child_conf *conf, struct pawl_err *err)
{
    int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    *c = (struct child){ .pid = -1, .in = -1, .out = -1, .err = -1, .input = conf->input };
    buf_init(&c->output, conf->output_max);
    bool ok = true;
    for (int i = 0; i < 3; i++)
        ok = ok && pipe2(pipes[i], O_CLOEXEC) == 0;
    if (ok)
        c->pid = fork();
    if (c->pid == 0)
        become(conf, pipes[0][0], pipes[1][1], pipes[2][1]);
    int failed = errno;
    if (c->pid > 0) {
        setpgid(c->pid, c->pid); /* parent and child both set it, because either may run first */
        c->in = pipes[0][1];
        c->out = pipes[1][0];
        c->err = pipes[2][0];
        fcntl(c->in, F_SETFL, O_NONBLOCK);
        fcntl(c->out, F_SETFL, O_NONBLOCK);
        fcntl(c->err, F_SETFL, O_NONBLOCK);
    }
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++) {
            bool ours = c->pid > 0 && side == (i == 0);
            if (!ours)
                shut(&pipes[i][side]);
        }
    if (c->pid > 0)
        return PAWL_OK;
    return err_set(err, PAWL_BUSY, "cannot create a process: %s", strerror(failed));
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* A program may end without having read its input; that is not an error. */
static void feed(struct child *c)
{
    while (c->in >= 0 && c->written < c->input.len) {
        ssize_t n = write(c->in, c->input.data + c->written, c->input.len - c->written);
        if (n > 0)
            c->written += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n < 0 && errno != EINTR)
            break;
    }
    shut(&c->in);
}

static void keep_tail(struct child *c, const char *data, size_t len)
{
    if (len >= CHILD_TAIL_LEN) {
        data += len - CHILD_TAIL_LEN;
        len = CHILD_TAIL_LEN;
        c->tail_len = 0;
    }
    size_t over = c->tail_len + len > CHILD_TAIL_LEN ? c->tail_len + len - CHILD_TAIL_LEN : 0;
    memmove(c->tail, c->tail + over, c->tail_len - over);
    c->tail_len -= over;
    memcpy(c->tail + c->tail_len, data, len);
    c->tail_len += len;
}

static void drain(struct child *c, int *fd, bool output)
{
    char block[BLOCK_LEN];
    for (;;) {
        ssize_t n = *fd >= 0 ? read(*fd, block, sizeof(block)) : 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            break;
        if (output)
            buf_add(&c->output, block, (size_t)n);
        else
            keep_tail(c, block, (size_t)n);
    }
    shut(fd);
}

bool child_turn(struct child *c, int64_t until_us)
{
    int64_t now_us;
    while (!c->ended && (now_us = world_mono(&world_real)) < until_us) {
        struct pollfd p[3] = { { .fd = c->in, .events = POLLOUT },
                               { .fd = c->out, .events = POLLIN },
                               { .fd = c->err, .events = POLLIN } };
        bool open = c->out >= 0 || c->err >= 0;
        int64_t left_us = MIN(until_us - now_us, open ? 100 * MS_US : LOOK_US);
        poll(p, 3, (int)(left_us / 1000 + 1));
        feed(c);
        drain(c, &c->out, true);
        drain(c, &c->err, false);
        if (!buf_ok(&c->output) && !c->too_long) {
            c->too_long = true;
            child_kill(c, true);
        }
        if (c->killed_us && now_us - c->killed_us > KILL_AFTER_US)
            child_kill(c, true);
        c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
    }
    if (c->ended) {
        /* Read what it wrote last. A grandchild may keep the pipe open, so do not wait for its end.
         */
        drain(c, &c->out, true);
        drain(c, &c->err, false);
    }
    return c->ended;
}

void child_kill(struct child *c, bool now)
{
    if (c->pid > 0 && !c->ended)
        kill(-c->pid, now ? SIGKILL : SIGTERM);
    if (!c->killed_us)
        c->killed_us = world_mono(&world_real);
}

void child_release(struct child *c)
{
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL); /* also processes that it left in its group */
        if (!c->ended)
            waitpid(c->pid, &c->status, 0);
    }
    shut(&c->in);
    shut(&c->out);
    shut(&c->err);
    buf_release(&c->output);
}

/* ---- The meaning of an exit status ----------------------------------------------------------- */

enum child_end child_end_of(int status)
{
    if (!WIFEXITED(status))
        return CHILD_ERROR;
    switch (WEXITSTATUS(status)) {
    case 0:
        return CHILD_RESULT;
    case 65: /* EX_DATAERR */
        return CHILD_REFUSE;
    case 75: /* EX_TEMPFAIL */
        return CHILD_LATER;
    default:
        return CHILD_ERROR;
    }
}

void child_error_text(int status, struct bytes tail, char *out, size_t size)
{
    while (tail.len && strchr(" \t\r\n", tail.data[tail.len - 1]))
        tail.len--;
    /* The tail is cut at its front, possibly in the middle of a UTF-8 character. */
    while (tail.len && ((unsigned char)tail.data[0] & 0xc0) == 0x80)
        tail.data++, tail.len--;
    if (tail.len && utf8_valid(tail))
        snprintf(out, size, "%.*s", BYTES_ARG(tail));
    else if (WIFSIGNALED(status))
        snprintf(out, size, "the program was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "the program ended with exit code %d%s", WEXITSTATUS(status),
                 tail.len ? ", and its stderr is not UTF-8" : "");
}

void child_result_add(struct buf *b, struct bytes output)
{
    struct bytes text = output;
    if (text.len && text.data[text.len - 1] == '\n')
        text.len--;
    if (text.len && json_check(text, NULL) == PAWL_OK) {
        json_add_name(b, "result");
        buf_add_bytes(b, text);
    } else if (utf8_valid(text)) {
        json_add_name(b, "result");
        json_add_string(b, text);
    } else {
        char *code = malloc(4 * ((output.len + 2) / 3) + 1);
        json_add_name(b, "result_base64");
        if (code)
            json_add_string(b, (struct bytes){ code, base64_write(output, code) });
        else
            b->failed = true;
        free(code);
    }
}
