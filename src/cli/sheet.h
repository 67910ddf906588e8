/*
 * sheet.h - rows and columns that a command answers with: aligned text for people, JSON for
 * programs.
 *
 * The column's name is the member's name in JSON and the heading for people, so both are told the
 * same. Cells are added left to right, row after row. Memory trouble is remembered and said once,
 * when it is printed. One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_SHEET_H
#define CLI_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

#define SHEET_COLUMNS_MAX 12

struct sheet_cell {
    const char *text; /* in the arena; NULL: nothing, null in JSON */
    bool quoted;      /* a string in JSON; else the text is JSON already: a number, true, false */
    enum paint paint;
};

struct sheet {
    const char *const *columns; /* borrowed; NULL ends them */
    size_t n_columns;
    struct sheet_cell *cells; /* in the arena */
    size_t n, cap;
    struct arena arena;
};

void sheet_init(struct sheet *s, const char *const *columns);
void sheet_release(struct sheet *s);

void sheet_text(struct sheet *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sheet_int(struct sheet *s, int64_t n);
void sheet_bool(struct sheet *s, bool yes);
void sheet_none(struct sheet *s);
/* Microseconds as seconds with three digits: 1.250. */
void sheet_seconds(struct sheet *s, int64_t us);
/* Colour of the cell added last. */
void sheet_paint(struct sheet *s, enum paint paint);

/* For people: headings and rows, aligned; or, for a sheet of one row, a line for each column. */
void sheet_print(struct cli *cli, const struct sheet *s);
void sheet_print_fields(struct cli *cli, const struct sheet *s);
/* For programs: an array of objects; or the first row's members, without braces. */
void sheet_json(struct buf *b, const struct sheet *s);
void sheet_json_members(struct buf *b, const struct sheet *s);

/* Print what a buffer holds and a newline; returns the exit code. */
int sheet_send(struct cli *cli, const struct buf *b);
/* A sheet of one row, for both kinds of reader, as the whole answer of a command. */
int sheet_answer(struct cli *cli, const struct sheet *s);

#endif
