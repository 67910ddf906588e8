/*
 * table.c - collect cells, and print them aligned or as JSON (table.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* A table is at most a few hundred KiB; long lists come in pages. */
#define TABLE_LEN_MAX (16 << 20)

void cli_table_init(struct cli_table *s, const char *const *columns)
{
    *s = (struct cli_table){ .columns = columns };
    while (columns[s->n_columns])
        s->n_columns++;
    assert(s->n_columns > 0 && s->n_columns <= CLI_TABLE_COLUMNS_MAX);
    arena_init(&s->arena, TABLE_LEN_MAX);
}

void cli_table_release(struct cli_table *s)
{
    arena_release(&s->arena);
}

static void add(struct cli_table *s, const char *text, bool quoted)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct cli_table_cell *v = arena_alloc(&s->arena, cap * sizeof(*v));
        if (!v)
            return;
        if (s->n)
            memcpy(v, s->cells, s->n * sizeof(*v));
        s->cells = v;
        s->cap = cap;
    }
    s->cells[s->n++] = (struct cli_table_cell){ .text = text, .quoted = quoted };
}

void cli_table_text(struct cli_table *s, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add(s, arena_text(&s->arena, bytes_of(text)), true);
}

void cli_table_int(struct cli_table *s, int64_t n)
{
    add(s, arena_printf(&s->arena, "%" PRId64, n), false);
}

void cli_table_bool(struct cli_table *s, bool yes)
{
    add(s, yes ? "true" : "false", false);
}

void cli_table_none(struct cli_table *s)
{
    add(s, NULL, false);
}

void cli_table_seconds(struct cli_table *s, int64_t us)
{
    int64_t ms = us / 1000;
    add(s, arena_printf(&s->arena, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000)), false);
}

void cli_table_paint(struct cli_table *s, enum paint paint)
{
    if (s->n)
        s->cells[s->n - 1].paint = paint;
}

/* ---- For people ------------------------------------------------------------------------------ */

static const char *shown(const struct cli_table_cell *c)
{
    if (!c->text)
        return "-";
    if (c->quoted)
        return c->text;
    return strcmp(c->text, "true") == 0 ? "yes" : strcmp(c->text, "false") == 0 ? "no" : c->text;
}

/* Count characters, not bytes, so that columns line up. */
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Control characters in stored names must not reach the terminal. */
static void put(struct cli *cli, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, cli->out);
}

static void put_cell(struct cli *cli, const char *text, enum paint paint, int pad)
{
    fputs(paint_on(cli, paint), cli->out);
    put(cli, text);
    fputs(paint_off(cli, paint), cli->out);
    for (int i = width(text); i < pad; i++)
        fputc(' ', cli->out);
}

static void widths(const struct cli_table *s, int out[CLI_TABLE_COLUMNS_MAX])
{
    for (size_t i = 0; i < s->n_columns; i++)
        out[i] = width(s->columns[i]);
    for (size_t i = 0; i < s->n; i++)
        out[i % s->n_columns] = MAX(out[i % s->n_columns], width(shown(&s->cells[i])));
}

void cli_table_print(struct cli *cli, const struct cli_table *s)
{
    int pad[CLI_TABLE_COLUMNS_MAX];
    assert(s->n_columns > 0);
    widths(s, pad);
    pad[s->n_columns - 1] = 0; /* the last column needs no padding */
    for (size_t i = 0; i < s->n_columns; i++) {
        put_cell(cli, s->columns[i], PAINT_HEAD, pad[i]);
        fputs(i + 1 < s->n_columns ? "  " : "\n", cli->out);
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t column = i % s->n_columns;
        put_cell(cli, shown(&s->cells[i]), s->cells[i].paint, pad[column]);
        fputs(column + 1 < s->n_columns ? "  " : "\n", cli->out);
    }
}

void cli_table_print_fields(struct cli *cli, const struct cli_table *s)
{
    int pad = 0;
    for (size_t i = 0; i < s->n_columns; i++)
        pad = MAX(pad, width(s->columns[i]));
    for (size_t i = 0; i < s->n_columns && i < s->n; i++) {
        put_cell(cli, s->columns[i], PAINT_HEAD, pad + 2);
        put_cell(cli, shown(&s->cells[i]), s->cells[i].paint, 0);
        fputc('\n', cli->out);
    }
}

/* ---- For programs ---------------------------------------------------------------------------- */

static void json_cell(struct buf *b, const char *name, const struct cli_table_cell *c)
{
    json_add_name(b, name);
    if (!c->text)
        buf_add_text(b, "null");
    else if (c->quoted && utf8_valid(bytes_of(c->text)))
        json_add_string(b, bytes_of(c->text));
    else
        buf_add_text(b, c->quoted ? "\"?\"" : c->text);
}

void cli_table_json_members(struct buf *b, const struct cli_table *s)
{
    for (size_t i = 0; i < s->n_columns && i < s->n; i++)
        json_cell(b, s->columns[i], &s->cells[i]);
    b->failed |= s->arena.failed;
}

void cli_table_json(struct buf *b, const struct cli_table *s)
{
    buf_add_char(b, '[');
    for (size_t i = 0; i < s->n; i++) {
        size_t column = i % s->n_columns;
        if (column == 0)
            buf_add_text(b, i ? ",{" : "{");
        json_cell(b, s->columns[column], &s->cells[i]);
        if (column + 1 == s->n_columns)
            buf_add_char(b, '}');
    }
    buf_add_char(b, ']');
    b->failed |= s->arena.failed;
}

int cli_table_send(struct cli *cli, const struct buf *b)
{
    if (!buf_ok(b))
        return cli_failf(cli, PAWL_NO_MEMORY, "no memory for the answer");
    fwrite(b->data, 1, b->len, cli->out);
    fputc('\n', cli->out);
    return cli_done(cli);
}

int cli_table_answer(struct cli *cli, const struct cli_table *s)
{
    if (!cli->json) {
        cli_table_print_fields(cli, s);
        return cli_done(cli);
    }
    struct buf b;
    buf_init(&b, TABLE_LEN_MAX);
    buf_add_char(&b, '{');
    cli_table_json_members(&b, s);
    buf_add_char(&b, '}');
    int code = cli_table_send(cli, &b);
    buf_release(&b);
    return code;
}
