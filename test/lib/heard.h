/*
 * heard.h - what this process logs while a case runs, to be counted.
 *
 * One case at a time; lines still go to the case's output.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HEARD_H
#define HEARD_H

/* From now on, at LOG_INFO and above. */
void heard_begin(void);
/* Nobody listens any more. After the threads that log have ended. */
void heard_end(void);
/* How many lines have this in them. */
int heard_count(const char *part);
/* The first of them, for as long as the case runs; "": there is none. */
const char *heard_line(const char *part);

#endif
