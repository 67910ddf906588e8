/*
 * log.h - one line to stderr or to the host's sink: a sentence, and what it is about as fields.
 * Only server, cli and the library's own threads log; a function logs or returns, never both.
 *
 * Any thread; a line is written as a whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/buf.h"
#include "base/macros.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* What programs search for, beside the sentence for people. `text` absent: it is the number. */
struct log_field {
    const char *name; /* a word */
    struct bytes text;
    int64_t number;
};
#define LOG_TEXT(word, value) ((struct log_field){ .name = (word), .text = (value) })
#define LOG_NUMBER(word, value) ((struct log_field){ .name = (word), .number = (value) })

/* Borrowed for the sink's call. */
struct log_record {
    enum log_level level;
    const char *message; /* one line */
    const struct log_field *fields;
    size_t n_fields;
};

/* Lines below `level` are dropped. The library starts at LOG_WARN. */
void log_level_set(enum log_level level);
/* Where lines go from now on; `sink` is called on the thread that logs. NULL: back to stderr. */
void log_sink_set(void (*sink)(const struct log_record *r, void *ctx), void *ctx);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A message and its fields: members of their own in JSON logs, `name=value` behind it in text. */
void log_fields(enum log_level level, const char *message, const struct log_field *v, size_t n);

const char *log_level_name(enum log_level level);
/* A record for people: message: id="x" try=2. */
void log_text_add(struct buf *b, const struct log_record *r);
/* A record's message and fields as members of a JSON object that has others before them. */
void log_json_add(struct buf *b, const struct log_record *r);

#endif
