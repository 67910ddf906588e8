/*
 * conf_stored.c - what `pawl serve` says of the schedules of its settings, on every engine: where a
 * commit may stall, an operation works on a copy, and the answer is in that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>

#include "check.h"
#include "cli_fixture.h"
#include "cli_server.h"
#include "engines.h"

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
