/*
 * db_command.h - what commands share that work on the database themselves: opening it, and steps
 * that leave room for others.
 *
 * One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_DB_COMMAND_H
#define CLI_DB_COMMAND_H

#include "cli/cli.h"
#include "store/store.h"

/* As the settings say. */
struct store_conf db_command_conf(const struct cli *cli, enum store_role role);
/* The database, which must be there, with a schema this program may work on: else NOT_FOUND, STATE.
 */
MUST_USE enum pawl_status db_command_open(const struct cli *cli, enum store_role role,
                                          struct store **out, struct pawl_err *err);
/* The moment that lies an option's duration before now, by the database's clock. */
MUST_USE enum pawl_status db_command_before(const struct cli *cli, struct store *s,
                                            const char *option, int64_t *out_us,
                                            struct pawl_err *err);
/* One operation as a commit of its own, and then as long a pause as it took (100 ms at most), so
 * that whoever else wants to write has every second turn. The answer has no strings that live. */
MUST_USE enum pawl_status db_command_step(struct store *s, struct op *op, struct pawl_err *err);

#endif
