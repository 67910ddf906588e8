/*
 * text.c - statements with their values in them.
 *
 * The texts in sql/mysql are ours. Only numbers, and bytes in hex, are put into them, so nothing
 * that a user wrote is read as SQL. $1 is a value. In addition there are
 *
 *     rows($1, 0, $2)       (..., 0, ...), (..., 0, ...): one for each row of the columns
 *     rows($1: 7, $1)       the same for rows in which $1 is not null
 *     json($1, $2)          '[[..., ...], [..., ...]]', sorted by the first
 *     json($1)              '[..., ...]', sorted
 *     each{...}             the statement, once for each row
 *     each UNION ALL {...}  a part of a statement for each row, with UNION ALL between
 *
 * and at the beginning of a statement `uncounted` and `twice`, which say what the server counts for
 * a row (mydb_part.counts).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/mysql/mydb.h"

struct writing {
    struct buf *to;
    const struct led_params *p;
    size_t row, end; /* of the rows that the statement gets */
};
/* In a text outside rows() and each{}: only single values. */
#define NO_ROW SIZE_MAX

/* ---- Values ---------------------------------------------------------------------------------- */

static void put_hex(struct buf *to, struct bytes b)
{
    static const char digits[] = "0123456789abcdef";
    char piece[512];
    for (size_t i = 0; i < b.len;) {
        size_t n = 0;
        for (; i < b.len && n < sizeof piece; i++) {
            unsigned char ch = (unsigned char)b.data[i];
            piece[n++] = digits[ch >> 4];
            piece[n++] = digits[ch & 15];
        }
        buf_add(to, piece, n);
    }
}

struct value {
    bool number, null;
    int64_t i;
    struct bytes b;
};

static struct value value_at(const struct led_params *p, size_t n, size_t row)
{
    CHECK(n >= 1 && n <= (size_t)p->n);
    const struct led_param *q = &p->v[n - 1];
    struct value v = { .number = q->kind == LED_INTS, .i = q->i, .b = q->b };
    if (q->many) {
        CHECK(row < q->k.n);
        if (v.number)
            v.i = q->k.ints[row];
        else
            v.b = q->k.bytes[row];
    }
    v.null = v.number ? q->many && v.i == LED_NULL : !v.b.data;
    return v;
}

static void put_value(struct buf *to, struct value v)
{
    if (v.null) {
        buf_add_text(to, "NULL");
    } else if (v.number) {
        buf_add_int(to, v.i);
    } else {
        buf_add_text(to, "x'");
        put_hex(to, v.b);
        buf_add_char(to, '\'');
    }
}

static void put_json(struct buf *to, struct value v)
{
    if (v.null) {
        buf_add_text(to, "null");
    } else if (v.number) {
        buf_add_int(to, v.i);
    } else {
        buf_add_char(to, '"');
        put_hex(to, v.b);
        buf_add_char(to, '"');
    }
}

/* ---- Reading our own texts ------------------------------------------------------------------- */

/* Skip the quoted piece that begins here. */
static const char *past_quoted(const char *at, const char *end)
{
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    CHECK(close);
    return close + 1;
}

/* The bracket that closes the one `at` stands on. */
static const char *closing(const char *at, const char *end)
{
    char open = *at, close = open == '(' ? ')' : '}';
    int depth = 0;
    while (at < end) {
        if (*at == '\'' || *at == '`') {
            at = past_quoted(at, end);
            continue;
        }
        depth += (*at == open) - (*at == close);
        if (depth == 0)
            return at;
        at++;
    }
    CHECK(!"a bracket is closed");
    return end;
}

static bool starts(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0;
}

/* $12, and where it ends. */
static size_t param_number(const char **at, const char *end)
{
    size_t n = 0;
    for (++*at; *at < end && isdigit((unsigned char)**at); ++*at)
        n = n * 10 + (size_t)(**at - '0');
    return n;
}

static bool is_param(const char *at, const char *end)
{
    return *at == '$' && at + 1 < end && isdigit((unsigned char)at[1]);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void write_text(const struct writing *w, struct bytes text, size_t row);

/* The contents of rows(), once for each row. */
static void write_rows(const struct writing *w, const char *at, const char *end)
{
    size_t only = 0, n = 0;
    if (is_param(at, end)) {
        const char *after = at;
        size_t number = param_number(&after, end);
        if (after < end && *after == ':') {
            only = number;
            at = after + 1;
        }
    }
    for (size_t i = w->row; i < w->end; i++) {
        if (only && value_at(w->p, only, i).null)
            continue;
        buf_add_text(w->to, n++ ? ",(" : "(");
        write_text(w, (struct bytes){ at, (size_t)(end - at) }, i);
        buf_add_char(w->to, ')');
    }
}

/* "name = value" of an into(). */
struct entry {
    struct bytes name, value;
};

static bool null_in_all(const struct writing *w, struct bytes value)
{
    const char *at = value.data, *end = at + value.len;
    if (!is_param(at, end))
        return false;
    size_t number = param_number(&at, end);
    for (size_t i = w->row; at == end && i < w->end; i++)
        if (!value_at(w->p, number, i).null)
            return false;
    return at == end;
}

/* Up to the comma, or to the end. */
static struct bytes until_comma(const char *at, const char *end)
{
    const char *to = at;
    while (to < end && *to != ',')
        to = *to == '(' ? closing(to, end) + 1 : to + 1;
    return (struct bytes){ at, (size_t)(to - at) };
}

static void write_into(const struct writing *w, const char *at, const char *end)
{
    struct entry v[LED_PARAMS_MAX];
    size_t n = 0;
    while (at < end) {
        at += strspn(at, " \n\t");
        const char *equals = memmem(at, (size_t)(end - at), " = ", 3);
        CHECK(equals && n < LED_PARAMS_MAX);
        v[n].name = (struct bytes){ at, (size_t)(equals - at) };
        v[n].value = until_comma(equals + 3, end);
        at = v[n].value.data + v[n].value.len + 1;
        n += !null_in_all(w, v[n].value);
    }
    for (size_t k = 0; k < n; k++) {
        buf_add_text(w->to, k ? "," : "(");
        buf_add_bytes(w->to, v[k].name);
    }
    buf_add_text(w->to, ") VALUES ");
    for (size_t i = w->row; i < w->end; i++) {
        buf_add_text(w->to, i > w->row ? ",(" : "(");
        for (size_t k = 0; k < n; k++) {
            if (k)
                buf_add_char(w->to, ',');
            write_text(w, v[k].value, i);
        }
        buf_add_char(w->to, ')');
    }
}

struct sorting {
    const struct led_params *p;
    size_t number;
};

static int compare_values(const void *a, const void *b, void *ctx)
{
    const struct sorting *s = ctx;
    struct value x = value_at(s->p, s->number, *(const size_t *)a);
    struct value y = value_at(s->p, s->number, *(const size_t *)b);
    if (!x.number)
        return bytes_cmp(x.b, y.b);
    return (x.i > y.i) - (x.i < y.i);
}

/* Sorted, because rows are locked in this order. */
static size_t *sorted(const struct writing *w, size_t number)
{
    size_t n = w->end - w->row;
    size_t *v = mem_alloc((n + 1) * sizeof *v);
    struct sorting s = { w->p, number };
    for (size_t i = 0; v && i < n; i++)
        v[i] = w->row + i;
    if (v)
        qsort_r(v, n, sizeof *v, compare_values, &s);
    return v;
}

static void write_json(const struct writing *w, const char *at, const char *end)
{
    size_t numbers[LED_PARAMS_MAX], n = 0;
    while (at < end) {
        if (is_param(at, end) && n < LED_PARAMS_MAX)
            numbers[n++] = param_number(&at, end);
        else
            at++;
    }
    CHECK(n);
    size_t *order = sorted(w, numbers[0]);
    if (!order) {
        w->to->failed = true;
        return;
    }
    buf_add_text(w->to, "'[");
    struct sorting by = { w->p, numbers[0] };
    for (size_t i = 0; i < w->end - w->row; i++) {
        if (n == 1 && i && compare_values(&order[i - 1], &order[i], &by) == 0)
            continue; /* a duplicate gets one row */
        buf_add_text(w->to, n == 1 ? i ? "," : "" : i ? ",[" : "[");
        for (size_t k = 0; k < n; k++) {
            if (k)
                buf_add_char(w->to, ',');
            put_json(w->to, value_at(w->p, numbers[k], order[i]));
        }
        if (n > 1)
            buf_add_char(w->to, ']');
    }
    buf_add_text(w->to, "]'");
    mem_free(order);
}

/* each SEPARATOR {...} inside a statement. */
static const char *write_each(const struct writing *w, const char *at, const char *end)
{
    const char *open = memchr(at, '{', (size_t)(end - at));
    CHECK(open);
    const char *close = closing(open, end);
    for (size_t i = w->row; i < w->end; i++) {
        if (i > w->row)
            buf_add(w->to, at, (size_t)(open - at));
        write_text(w, (struct bytes){ open + 1, (size_t)(close - open - 1) }, i);
    }
    return close + 1;
}

/* One special piece, if there is one here: where it ends. */
static const char *write_special(const struct writing *w, const char *at, const char *end,
                                 size_t row)
{
    if (*at == '\'' || *at == '`') {
        const char *after = past_quoted(at, end);
        buf_add(w->to, at, (size_t)(after - at));
        return after;
    }
    if (is_param(at, end)) {
        size_t number = param_number(&at, end);
        put_value(w->to, value_at(w->p, number, row));
        return at;
    }
    if (starts(at, end, "rows(") || starts(at, end, "json(") || starts(at, end, "into(")) {
        const char *close = closing(at + 4, end);
        (*at == 'r' ? write_rows : *at == 'j' ? write_json : write_into)(w, at + 5, close);
        return close + 1;
    }
    return starts(at, end, "each ") ? write_each(w, at + 5, end) : NULL;
}

static void write_text(const struct writing *w, struct bytes text, size_t row)
{
    const char *end = text.data + text.len, *plain = text.data;
    for (const char *at = plain; at < end;) {
        bool special = *at && strchr("$'`rjei", *at);
        bool begins = special && (at == text.data || !isalnum((unsigned char)*at) ||
                                  (!isalnum((unsigned char)at[-1]) && at[-1] != '_'));
        if (!begins) {
            at++;
            continue;
        }
        buf_add(w->to, plain, (size_t)(at - plain));
        const char *after = write_special(w, at, end, row);
        plain = at;
        at = after ? after : at + 1;
        if (after)
            plain = after;
    }
    buf_add(w->to, plain, (size_t)(end - plain));
}

/* ---- Statements ------------------------------------------------------------------------------ */

static bool in_name(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_' || ch == '@';
}

const char *mydb_own_names(const char *schema, struct arena *a, const char *text)
{
    static const char word[] = "pawl_";
    size_t n = 0, own = strlen(schema), len = sizeof word - 2;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    char *out = arena_alloc(a, strlen(text) + n * own + 1), *to = out;
    for (const char *at = text; out && *at;) {
        if (strncmp(at, word, len + 1) == 0 && (at == text || !in_name(at[-1]))) {
            memcpy(to, schema, own);
            to += own;
            at += len;
        } else {
            *to++ = *at++;
        }
    }
    if (out)
        *to = 0;
    return out;
}

bool mydb_part_next(const char **at, struct mydb_part *out)
{
    static const struct {
        const char *word;
        int counts;
    } words[] = { { "uncounted ", 0 }, { "twice ", 2 } };
    const char *from = *at + strspn(*at, " \n\t;"), *end = from + strlen(from), *to = from;
    while (to < end && *to != ';') {
        if (*to == '\'' || *to == '`')
            to = past_quoted(to, end);
        else if (*to == '{' || *to == '(')
            to = closing(to, end) + 1;
        else
            to++;
    }
    *at = to;
    *out = (struct mydb_part){ .text = { from, (size_t)(to - from) }, .counts = 1 };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (starts(from, to, words[i].word)) {
            out->counts = words[i].counts;
            out->text.data += strlen(words[i].word);
            out->text.len -= strlen(words[i].word);
        }
    if (starts(out->text.data, to, "each{")) {
        const char *close = closing(out->text.data + 4, to);
        out->each = true;
        out->text.data += 5;
        out->text.len = (size_t)(close - out->text.data);
    }
    return out->text.len > 0;
}

/* "rows($5: ...)" of which no row is left. */
static bool says_nothing(const struct mydb_part *part, const struct led_params *p)
{
    const char *end = part->text.data + part->text.len;
    const char *at = memmem(part->text.data, part->text.len, "rows($", 6);
    if (!at)
        return false;
    at += 5;
    size_t number = param_number(&at, end);
    if (at >= end || *at != ':')
        return false;
    for (size_t i = part->row; i < part->end; i++)
        if (!value_at(p, number, i).null)
            return false;
    return true;
}

size_t mydb_expand(struct buf *to, const struct mydb_part *part, const struct led_params *p)
{
    static const struct led_params none = { 0 };
    struct writing w = { .to = to, .p = p ? p : &none, .row = part->row, .end = part->end };
    if (!part->each) {
        if (says_nothing(part, w.p))
            return 0;
        write_text(&w, part->text, NO_ROW);
        buf_add_char(to, ';');
        return 1;
    }
    for (size_t i = part->row; i < part->end; i++) {
        write_text(&w, part->text, i);
        buf_add_char(to, ';');
    }
    return part->end - part->row;
}

size_t mydb_rows(const struct led_params *p)
{
    for (int i = 0; p && i < p->n; i++)
        if (p->v[i].many)
            return p->v[i].k.n;
    return 1;
}

size_t mydb_rows_within(const struct led_params *p, size_t row, size_t len)
{
    size_t n = mydb_rows(p), sum = 0, at = row;
    for (; at < n && sum < len; at++)
        for (int i = 0; p && i < p->n; i++)
            if (p->v[i].many)
                sum += p->v[i].kind == LED_INTS ? 12 : 2 * p->v[i].k.bytes[at].len + 8;
    return MAX(at, row + 1) - row;
}
