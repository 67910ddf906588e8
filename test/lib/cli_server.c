/*
 * cli_server.c - the program `pawl` beside a server of the case (cli_server.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "check.h"

#define WAIT_US (20 * SEC_US * check_scale())

char out[TEXT_MAX], err_out[TEXT_MAX];
int port;
pid_t server;

void slurp(const char *path, char *to)
{
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    to[fread(to, 1, TEXT_MAX - 1, f)] = 0;
    fclose(f);
}

void read_until(int fd, char *to, const char *text)
{
    size_t n = strlen(to);
    int64_t until_us = world_mono(&world_real) + WAIT_US;
    while (!strstr(to, text)) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int left_ms = (int)((until_us - world_mono(&world_real)) / 1000);
        ssize_t got = -1;
        if (left_ms > 0 && poll(&p, 1, left_ms) > 0)
            got = read(fd, to + n, TEXT_MAX - 1 - n);
        if (got <= 0)
            FAIL("\"%s\" did not come; got: %s", text, to);
        n += (size_t)got;
        to[n] = 0;
    }
}

void serve(const char *more)
{
    char line[1024];
    int ends[2];
    snprintf(line, sizeof(line),
             "exec " PAWL " serve --listen 127.0.0.1:0 --db sqlite:s.db --config /dev/null %s "
             "2>server.log",
             more);
    EQ_INT(pipe2(ends, O_CLOEXEC), 0);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    out[0] = 0;
    read_until(ends[0], out, "\n");
    const char *at = strstr(out, "://127.0.0.1:");
    TRUE(at != NULL);
    port = (int)strtol(at + strlen("://127.0.0.1:"), NULL, 10);
}

void serve_logged(const char *text)
{
    int64_t until_us = world_mono(&world_real) + WAIT_US;
    do {
        slurp("server.log", out);
        if (strstr(out, text))
            return;
        usleep(10000);
    } while (world_mono(&world_real) < until_us);
    FAIL("\"%s\" was not logged: %s", text, out);
}

int run(const char *line)
{
    char whole[4096];
    snprintf(whole, sizeof(whole),
             "{ u=127.0.0.1:%d; unset PAWL_TOKEN SSL_CERT_FILE; export PAWL_URL=http://$u; "
             "pawl() { " PAWL " \"$@\"; }; %s; } >out.txt 2>err.txt </dev/null",
             port, line);
    int status = system(whole);
    TRUE(WIFEXITED(status));
    slurp("out.txt", out);
    slurp("err.txt", err_out);
    return WEXITSTATUS(status);
}

int run_on_terminal(const char *args, const char *prompt, const char *answer)
{
    char line[1024];
    int master, status = 0;
    snprintf(line, sizeof(line), PAWL " %s --url http://127.0.0.1:%d", args, port);
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0)
        skip("needs a terminal, and none can be made here: %s", strerror(errno));
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    out[0] = 0;
    if (prompt) {
        read_until(master, out, prompt);
        EQ_INT(write(master, answer, strlen(answer)), (ssize_t)strlen(answer));
    }
    size_t n = strlen(out);
    for (ssize_t got; n < TEXT_MAX - 1 && (got = read(master, out + n, TEXT_MAX - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = 0;
    close(master);
    EQ_INT(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}
