/*
 * my_wire.h - a wire between a test and its MariaDB whose COMMITs can be cut, as wire.h has it for
 * PostgreSQL. One a process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MY_WIRE_H
#define MY_WIRE_H

#include "wire.h"

/* The URL through the wire, for the process. */
const char *my_wire_url(const char *url);
/* The next packet whose text ends with COMMIT; `answers` is how many statements it has. */
void my_wire_cut_commit(enum wire_cut how, int answers);
bool my_wire_was_cut(void);
void my_wire_let_go(void);

#endif
