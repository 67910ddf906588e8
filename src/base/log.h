/*
 * log.h - log lines, to stderr or to the host's sink: a sentence, and its subject as fields. Only
 * server, cli and the library's own threads log. A function either logs or returns its error, never
 * both.
 *
 * Any thread; a line is written as a whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/buf.h"
#include "base/macros.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* A value for programs to search for, beside the sentence for people. Without `text` it is the
 * number. */
struct log_field {
    const char *name; /* one word */
    struct bytes text;
    int64_t number;
};
#define LOG_TEXT(word, value) ((struct log_field){ .name = (word), .text = (value) })
#define LOG_NUMBER(word, value) ((struct log_field){ .name = (word), .number = (value) })

/* Borrowed while the sink runs. */
struct log_record {
    enum log_level level;
    const char *message; /* one line */
    const struct log_field *fields;
    size_t n_fields;
};

/* Drop lines below `level`. The library starts with LOG_WARN. */
void log_level_set(enum log_level level);
/* Send lines to `sink` from now on, called on the thread that logs; NULL sends them to stderr. */
void log_sink_set(void (*sink)(const struct log_record *r, void *ctx), void *ctx);
/* Log one formatted line. Line breaks in it become blanks. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Log a message with fields: members of their own in JSON logs, `name=value` after it in text. */
void log_fields(enum log_level level, const char *message, const struct log_field *v, size_t n);

/* "debug", "info", "warn" or "error"; "?" for any other number. */
const char *log_level_name(enum log_level level);
/* Append a record as text for people: message: id="x" try=2. */
void log_text_add(struct buf *b, const struct log_record *r);
/* Append the message and fields of a record as members of a JSON object that has others before
 * them. */
void log_json_add(struct buf *b, const struct log_record *r);

#endif
