/*
 * db_command.h - what the commands share that open the database themselves: opening it, and writing
 * to it in small steps while other processes use it.
 *
 * One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_DB_COMMAND_H
#define CLI_DB_COMMAND_H

#include "cli/cli.h"
#include "store/store.h"

/* The store's configuration from the settings. Strings are borrowed from them. */
struct store_conf db_command_conf(const struct cli *cli, enum store_role role);
/* Open the database. NOT_FOUND: the file does not exist; STATE: this program cannot use its schema.
 */
MUST_USE enum pawl_status db_command_open(const struct cli *cli, enum store_role role,
                                          struct store **out, struct pawl_err *err);
/* Open it, and set *out_us to its current time minus the duration in `option`, which is read first:
 * a wrong one is named also where there is no database. */
MUST_USE enum pawl_status db_command_open_before(const struct cli *cli, const char *option,
                                                 struct store **out, int64_t *out_us,
                                                 struct pawl_err *err);
/* Run one operation in its own commit, then sleep as long as it took (100 ms at most), so that
 * other writers get half of the time. Strings in the answer are not valid afterwards. */
MUST_USE enum pawl_status db_command_step(struct store *s, struct op *op, struct pawl_err *err);

#endif
