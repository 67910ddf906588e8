/*
 * workflow_check.h - `pawl workflow check`, whose options are those of `pawl workflow`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_WORKFLOW_CHECK_H
#define CLI_WORKFLOW_CHECK_H

#include "cli/cli.h"

/* Replay the journals of live runs against the modules in the settings, and print which of them
 * would break. Returns the exit code: 1 when one would. */
int workflow_check(struct cli *cli);

#endif
