/*
 * table.h - the rows and columns of a command's answer, printed as aligned text or as JSON.
 *
 * A column's name is the heading in the text and the member's name in JSON. Cells are added left to
 * right, row after row. A failed allocation is remembered and reported when the table is printed.
 * One thread.
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
    const char *text; /* in the arena; NULL: an empty cell, null in JSON */
    bool quoted;      /* a JSON string; else the text is JSON: a number, true, false */
    enum paint paint;
};

struct cli_table {
    const char *const *columns; /* borrowed; NULL ends them */
    size_t n_columns;
    struct cli_table_cell *cells; /* in the arena */
    size_t n, cap;
    struct arena arena;
};

/* An empty table. `columns` ends with NULL, has at most CLI_TABLE_COLUMNS_MAX names and is
 * borrowed.
 */
void cli_table_init(struct cli_table *s, const char *const *columns);
/* Free the cells. */
void cli_table_release(struct cli_table *s);

/* Add a cell with text; a string in JSON. */
void cli_table_text(struct cli_table *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Add a cell with a whole number. */
void cli_table_int(struct cli_table *s, int64_t n);
/* Add a cell that reads yes or no; true or false in JSON. */
void cli_table_bool(struct cli_table *s, bool yes);
/* Add an empty cell. */
void cli_table_none(struct cli_table *s);
/* Add a cell with microseconds shown as seconds with three digits: 1.250. */
void cli_table_seconds(struct cli_table *s, int64_t us);
/* Set the colour of the cell added last. */
void cli_table_paint(struct cli_table *s, enum paint paint);

/* Print headings and rows as aligned text. */
void cli_table_print(struct cli *cli, const struct cli_table *s);
/* Print the first row as text, one line for each column. */
void cli_table_print_fields(struct cli *cli, const struct cli_table *s);
/* Add all rows as a JSON array of objects. */
void cli_table_json(struct buf *b, const struct cli_table *s);
/* Add the first row's members, without the braces of an object. */
void cli_table_json_members(struct buf *b, const struct cli_table *s);

/* Print the buffer and a newline on stdout. Returns the exit code. */
int cli_table_send(struct cli *cli, const struct buf *b);
/* Print a table of one row as the command's whole answer: fields as text, or a JSON object with
 * --json. Returns the exit code. */
int cli_table_answer(struct cli *cli, const struct cli_table *s);

#endif
