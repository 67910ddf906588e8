/*
 * log.h - one line to stderr or to the host's sink. Only server, cli and the library's own threads
 * log; a function logs or returns, never both.
 *
 * Any thread; a line is written as a whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/macros.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* Lines below `level` are dropped. The library starts at LOG_WARN. */
void log_level_set(enum log_level level);
/* NULL: back to stderr. */
void log_sink_set(void (*sink)(enum log_level level, const char *line, void *ctx), void *ctx);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
