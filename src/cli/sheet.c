/*
 * sheet.c - collecting cells and printing them twice: aligned, and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/sheet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* One screenful of anything is a few hundred KiB at most; lists come in pages. */
#define SHEET_LEN_MAX (16 << 20)

void sheet_init(struct sheet *s, const char *const *columns)
{
    *s = (struct sheet){ .columns = columns };
    while (columns[s->n_columns])
        s->n_columns++;
    assert(s->n_columns > 0 && s->n_columns <= SHEET_COLUMNS_MAX);
    arena_init(&s->arena, SHEET_LEN_MAX);
}

void sheet_release(struct sheet *s)
{
    arena_release(&s->arena);
}

static void add(struct sheet *s, const char *text, bool quoted)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct sheet_cell *v = arena_alloc(&s->arena, cap * sizeof(*v));
        if (!v)
            return;
        if (s->n)
            memcpy(v, s->cells, s->n * sizeof(*v));
        s->cells = v;
        s->cap = cap;
    }
    s->cells[s->n++] = (struct sheet_cell){ .text = text, .quoted = quoted };
}

void sheet_text(struct sheet *s, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add(s, arena_text(&s->arena, bytes_of(text)), true);
}

void sheet_int(struct sheet *s, int64_t n)
{
    add(s, arena_printf(&s->arena, "%" PRId64, n), false);
}

void sheet_bool(struct sheet *s, bool yes)
{
    add(s, yes ? "true" : "false", false);
}

void sheet_none(struct sheet *s)
{
    add(s, NULL, false);
}

void sheet_seconds(struct sheet *s, int64_t us)
{
    int64_t ms = us / 1000;
    add(s, arena_printf(&s->arena, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000)), false);
}

void sheet_paint(struct sheet *s, enum paint paint)
{
    if (s->n)
        s->cells[s->n - 1].paint = paint;
}

/* ---- For people ------------------------------------------------------------------------------ */

static const char *shown(const struct sheet_cell *c)
{
    if (!c->text)
        return "-";
    if (c->quoted)
        return c->text;
    return strcmp(c->text, "true") == 0 ? "yes" : strcmp(c->text, "false") == 0 ? "no" : c->text;
}

/* Characters, not bytes: what follows in the row must line up. */
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* A name from a database must not steer the terminal it is shown on. */
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

static void widths(const struct sheet *s, int out[SHEET_COLUMNS_MAX])
{
    for (size_t i = 0; i < s->n_columns; i++)
        out[i] = width(s->columns[i]);
    for (size_t i = 0; i < s->n; i++)
        out[i % s->n_columns] = MAX(out[i % s->n_columns], width(shown(&s->cells[i])));
}

void sheet_print(struct cli *cli, const struct sheet *s)
{
    int pad[SHEET_COLUMNS_MAX];
    assert(s->n_columns > 0);
    widths(s, pad);
    pad[s->n_columns - 1] = 0; /* nothing follows: no spaces at the end */
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

void sheet_print_fields(struct cli *cli, const struct sheet *s)
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

static void json_cell(struct buf *b, const char *name, const struct sheet_cell *c)
{
    json_add_name(b, name);
    if (!c->text)
        buf_add_text(b, "null");
    else if (c->quoted && utf8_valid(bytes_of(c->text)))
        json_add_string(b, bytes_of(c->text));
    else
        buf_add_text(b, c->quoted ? "\"?\"" : c->text);
}

void sheet_json_members(struct buf *b, const struct sheet *s)
{
    for (size_t i = 0; i < s->n_columns && i < s->n; i++)
        json_cell(b, s->columns[i], &s->cells[i]);
    b->failed |= s->arena.failed;
}

void sheet_json(struct buf *b, const struct sheet *s)
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

int sheet_send(struct cli *cli, const struct buf *b)
{
    if (!buf_ok(b))
        return cli_failf(cli, PAWL_NO_MEMORY, "no memory for the answer");
    fwrite(b->data, 1, b->len, cli->out);
    fputc('\n', cli->out);
    return cli_done(cli);
}

int sheet_answer(struct cli *cli, const struct sheet *s)
{
    if (!cli->json) {
        sheet_print_fields(cli, s);
        return cli_done(cli);
    }
    struct buf b;
    buf_init(&b, SHEET_LEN_MAX);
    buf_add_char(&b, '{');
    sheet_json_members(&b, s);
    buf_add_char(&b, '}');
    int code = sheet_send(cli, &b);
    buf_release(&b);
    return code;
}
