/*
 * table.h - rows and columns that a command answers with: aligned text for people, JSON for
 * programs.
 *
 * The column's name is the member's name in JSON and the heading for people, so both are told the
 * same. Cells are added left to right, row after row. Memory trouble is remembered and said once,
 * when it is printed. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

#define CLI_TABLE_COLUMNS_MAX 12

struct cli_table_cell {
    const char *text; /* in the arena; NULL: nothing, null in JSON */
    bool quoted;      /* a string in JSON; else the text is JSON already: a number, true, false */
    enum paint paint;
};

struct cli_table {
    const char *const *columns; /* borrowed; NULL ends them */
    size_t n_columns;
    struct cli_table_cell *cells; /* in the arena */
    size_t n, cap;
    struct arena arena;
};

void cli_table_init(struct cli_table *s, const char *const *columns);
void cli_table_release(struct cli_table *s);

void cli_table_text(struct cli_table *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_table_int(struct cli_table *s, int64_t n);
void cli_table_bool(struct cli_table *s, bool yes);
void cli_table_none(struct cli_table *s);
/* Microseconds as seconds with three digits: 1.250. */
void cli_table_seconds(struct cli_table *s, int64_t us);
/* Colour of the cell added last. */
void cli_table_paint(struct cli_table *s, enum paint paint);

/* For people: headings and rows, aligned; or, for a table of one row, a line for each column. */
void cli_table_print(struct cli *cli, const struct cli_table *s);
void cli_table_print_fields(struct cli *cli, const struct cli_table *s);
/* For programs: an array of objects; or the first row's members, without braces. */
void cli_table_json(struct buf *b, const struct cli_table *s);
void cli_table_json_members(struct buf *b, const struct cli_table *s);

/* Print what a buffer holds and a newline; returns the exit code. */
int cli_table_send(struct cli *cli, const struct buf *b);
/* A table of one row, for both kinds of reader, as the whole answer of a command. */
int cli_table_answer(struct cli *cli, const struct cli_table *s);

#endif
