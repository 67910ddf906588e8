/*
 * main.c - the conformance suite: every case of every file, on every engine.
 *
 * "pooled" is PostgreSQL behind a pooler in transaction mode: only a sample of the cases, since the
 * statements are the same and only session state differs. The wrappers are engines too: `fault`
 * with no fault set must change nothing, and neither must `trace`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

CHECK_PARAMS_OF(NULL)
{
    engines_add(ENGINES_ALL);
    engines_add_sample("pooled", 6);
    check_param("fault+mem", "fault+mem:fixture");
    check_param("trace+sqlite", "trace+sqlite:fixture.db");
}
