/*
 * conf_stored.c - what `pawl serve` says of the schedules of its settings, on every engine: where a
 * commit may stall, an operation works on a copy, and the answer is in that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "cli_fixture.h"
#include "cli_server.h"
#include "engines.h"
#include "fixture.h"

RUNS_ON(ENGINES_DURABLE)

TEST(the_log_says_which_schedules_were_stored)
{
    char more[600];
    snprintf(more, sizeof more, "--config pawl.conf --db '%s'", engine_url(param));
    cli_write_file("pawl.conf", "schedule a { every = 90s type = echo }\n");
    serve(more);
    serve_logged("schedule \\\"a\\\": created, from pawl.conf:1");
    cli_write_file("pawl.conf", "schedule a { every = 90s type = echo }\n"
                                "schedule b { every = 60s type = echo }\n");
    EQ_INT(kill(server, SIGHUP), 0);
    serve_logged("schedule \\\"b\\\": created, from pawl.conf:2");
    serve_logged("2 schedules of the settings: 1 stored");
}

static int times_logged(const char *text)
{
    int n = 0;
    slurp("server.log", out);
    for (const char *at = out; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* While another program holds the write lock, the first schedule of one file waits for it; the
 * second of that file comes after a newer file was read. */
TEST(the_newer_file_is_stored_last)
{
    char more[600], line[700];
    const char *url = engine_url(param);
    if (strncmp(url, "sqlite:", 7) != 0)
        skip("its write lock is what makes the first file wait");
    snprintf(more, sizeof more, "--config pawl.conf --db '%s'", url);
    cli_write_file("pawl.conf", "schedule s { every = 59s type = echo }\n");
    serve(more);
    snprintf(line, sizeof line, "sqlite3 -bail '%s'", url + 7);
    FILE *lock = popen(line, "w");
    TRUE(lock != NULL);
    fputs(".timeout 10000\nBEGIN IMMEDIATE;\n.shell touch locked\n", lock);
    fflush(lock);
    UNTIL(access("locked", F_OK) == 0);
    cli_write_file("pawl.conf", "schedule first { every = 60s type = echo }\n"
                                "schedule s { every = 60s type = echo }\n");
    EQ_INT(kill(server, SIGHUP), 0);
    UNTIL(times_logged("settings read again") == 1);
    cli_write_file("pawl.conf", "schedule s { every = 61s type = echo }\n");
    EQ_INT(kill(server, SIGHUP), 0);
    UNTIL(times_logged("settings read again") == 2);
    pclose(lock); /* at the end of its input it exits, and the lock is free */
    /* On a slow machine the first file may have been refused meanwhile. */
    UNTIL(times_logged("schedules of the settings") + times_logged("not stored") == 2);
    EQ_INT(run("pawl cron get s --json | jq .every"), 0);
    EQ_STR(out, "61\n");
}
