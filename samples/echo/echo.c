/*
 * echo - the smallest module: `echo.run` returns its input, byte for byte.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

static int run(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

/* Called once, when a process loads build/samples/echo.so. pawl_load() returns the first failure in
 * here. */
PAWL_MODULE(m)
{
    if (pawl_on(m, "echo", "run", run) != PAWL_OK)
        return;
}
