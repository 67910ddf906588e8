/*
 * main.c - the conformance suite: every case of every file, on every engine.
 *
 * The wrappers are engines too: with its dial off `fault` must change nothing, and neither must
 * `trace`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

static struct engine engines[] = {
    { "mem", "mem:conform", false },
    { "sqlite", "sqlite:conform.db", true },
    { "fault+mem", "fault+mem:conform", false },
    { "trace+sqlite", "trace+sqlite:conform.db", true },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        check_param(engines[i].name, &engines[i]);
    return check_run(argc, argv);
}
