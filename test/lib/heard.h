/*
 * heard.h - collect the lines that this process logs while a case runs.
 *
 * One case at a time; lines still go to the case's output.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HEARD_H
#define HEARD_H

/* Start collecting lines of LOG_INFO and above. */
void heard_begin(void);
/* Stop collecting, after the threads that log have ended. */
void heard_end(void);
/* How many lines contain `part`. */
int heard_count(const char *part);
/* The first line that contains `part`, valid while the case runs; "" when there is none. */
const char *heard_line(const char *part);

#endif
