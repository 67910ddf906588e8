/*
 * check.c - a failed CHECK gives the host one line and aborts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl.h>

#include "base/macros.h"
#include "check.h"

static int told_fd;

static void told(const char *line)
{
    ssize_t ignored = write(told_fd, line, strlen(line));
    (void)ignored;
}

TEST(holds_and_goes_on)
{
    CHECK(1 + 1 == 2);
}

TEST(tells_and_aborts)
{
    int fd[2];
    char line[512] = "";
    EQ_INT(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        told_fd = fd[1];
        dup2(open("/dev/null", O_WRONLY), 2);
        pawl_on_panic(told);
        int two = 2;
        CHECK(two == 3);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    TRUE(read(fd[0], line, sizeof line - 1) > 0);
    HAS_STR(line, "two == 3");
    HAS_STR(line, "check.c:");
    EQ_PTR(strchr(line, '\n'), NULL);
    close(fd[0]);
    close(fd[1]);
}
