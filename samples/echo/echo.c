/*
 * echo - the smallest module there is: `echo.run` returns its input, byte for byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

static int run(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

/* Called once, when a process loads build/samples/echo.so. If something fails here the library
 * remembers the first such thing, and pawl_load() answers with it. */
PAWL_MODULE(m)
{
    if (pawl_on(m, "echo", "run", run) != PAWL_OK)
        return;
}
