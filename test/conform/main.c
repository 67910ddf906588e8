/*
 * main.c - the conformance suite: every case of every file, on every engine.
 *
 * "pooled" is PostgreSQL behind a pooler that hands out transactions. The wrappers are engines too:
 * with its dial off `fault` must change nothing, and neither must `trace`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

int main(int argc, char **argv)
{
    engines_add(ENGINES_ALL | ENGINE_POOLED);
    check_param("fault+mem", "fault+mem:rig");
    check_param("trace+sqlite", "trace+sqlite:rig.db");
    return check_run(argc, argv);
}
