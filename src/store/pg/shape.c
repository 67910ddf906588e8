/*
 * shape.c - inserts and updates in which only columns that differ from row to row are arrays.
 *
 * The calls of a group mostly have the same values in optional columns: unpacking seventeen arrays
 * of a thousand nulls costs the server as much as the rows themselves. So "INSERT ... SELECT * FROM
 * unnest(...)" is sent in one of a few shapes, each a prepared statement; and so is "UPDATE ...
 * FROM unnest(...) v (c1, ...)", which is an update for each row in sql/all.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "store/pg/pg.h"

#define COLUMNS "SELECT * FROM unnest("
#define JOINED "FROM unnest("
#define JOINED_AS ") v (c1"
/* Below this number of rows arrays are cheap; one row needs none. */
#define SHAPE_ROWS 8
/* Shapes of one statement. */
#define SHAPES_MAX 8

static bool same(const struct led_column *k)
{
    for (size_t i = 1; i < k->n; i++)
        if (k->kind == LED_INTS
                ? k->ints[i] != k->ints[0]
                : !k->bytes[i].data != !k->bytes[0].data || !bytes_eq(k->bytes[i], k->bytes[0]))
            return false;
    return k->n > 0;
}

/* Columns with one value for all rows, as bits; 0: it does not pay, or no column is one. */
static uint32_t sames(const struct led_params *p)
{
    uint32_t out = 0, all = (1u << p->n) - 1;
    size_t n = p->v[0].many ? p->v[0].k.n : 0;
    if (n != 1 && n < SHAPE_ROWS)
        return 0;
    for (int i = 0; i < p->n; i++) {
        if (!p->v[i].many || p->v[i].k.n != n)
            return 0;
        out |= (uint32_t)same(&p->v[i].k) << i;
    }
    return n > 1 && out == all ? out & ~1u : out;
}

/* "$7::text[]" becomes "$7::text" when it is one value, and its column is taken from that. */
static void column(struct buf *head, struct buf *list, struct buf *names, const char *at,
                   size_t len, int number, bool one)
{
    const char *comma = number > 1 ? ", " : "";
    if (one) {
        buf_addf(head, "%s%.*s", comma, (int)len - 2, at);
        return;
    }
    const char *other = list->len ? ", " : "";
    buf_addf(head, "%su.c%d", comma, number);
    buf_addf(list, "%s%.*s", other, (int)len, at);
    buf_addf(names, "%sc%d", other, number);
}

/* The next parameter of a list; *at is moved past it. */
static struct bytes listed(const char **at)
{
    *at += strspn(*at, " \n");
    struct bytes out = { *at, strcspn(*at, ",)") };
    *at += out.len + ((*at)[out.len] == ',');
    return out;
}

/* Owned by the caller; NULL without memory. */
static char *text_take(struct buf *b)
{
    char *out = b->failed ? NULL : mem_alloc(b->len + 1);
    if (out) {
        memcpy(out, b->data, b->len);
        out[b->len] = 0;
    }
    return out;
}

static char *insert_text(const char *text, uint32_t mask)
{
    const char *from = strstr(text, COLUMNS), *at = from + strlen(COLUMNS), *end = strchr(at, ')');
    AUTO(buf_release) struct buf head;
    AUTO(buf_release) struct buf list;
    AUTO(buf_release) struct buf names;
    buf_init(&head, 1 << 16);
    buf_init(&list, 1 << 16);
    buf_init(&names, 1 << 16);
    buf_addf(&head, "%.*sSELECT ", (int)(from - text), text);
    for (int i = 1; at < end; i++) {
        struct bytes it = listed(&at);
        column(&head, &list, &names, it.data, it.len, i, mask >> (i - 1) & 1);
    }
    if (list.len)
        buf_addf(&head, " FROM unnest(%.*s) u (%.*s)", BYTES_ARG(buf_bytes(&list)),
                 BYTES_ARG(buf_bytes(&names)));
    buf_addf(&head, "%s", end + 1);
    return list.failed || names.failed ? NULL : text_take(&head);
}

/* A part of an update, with values in place of columns that are one value: "v.c7". */
static void replace(struct buf *to, struct bytes part, const struct bytes *list, uint32_t mask)
{
    static const char named[] = "v.c";
    const char *at = part.data, *end = part.data + part.len, *next;
    while ((next = memmem(at, (size_t)(end - at), named, strlen(named)))) {
        char *after;
        unsigned long n = strtoul(next + strlen(named), &after, 10);
        bool one = mask >> (n - 1) & 1;
        buf_addf(to, "%.*s", (int)(next - at), at);
        if (one)
            buf_addf(to, "%.*s", (int)list[n - 1].len - 2, list[n - 1].data); /* without "[]" */
        else
            buf_addf(to, "%.*s", (int)(after - next), next);
        at = after;
    }
    buf_addf(to, "%.*s", (int)(end - at), at);
}

static char *update_text(const char *text, uint32_t mask)
{
    const char *from = strstr(text, JOINED), *at = from + strlen(JOINED), *end = strchr(at, ')');
    const char *tail = strchr(end + 1, ')') + 1;
    struct bytes list[32];
    AUTO(buf_release) struct buf out;
    AUTO(buf_release) struct buf arrays;
    AUTO(buf_release) struct buf names;
    buf_init(&out, 1 << 16);
    buf_init(&arrays, 1 << 16);
    buf_init(&names, 1 << 16);
    for (int i = 0; at < end && i < (int)COUNT_OF(list); i++) {
        list[i] = listed(&at);
        const char *comma = arrays.len ? ", " : "";
        if (mask >> i & 1)
            continue;
        buf_addf(&arrays, "%s%.*s", comma, BYTES_ARG(list[i]));
        buf_addf(&names, "%sc%d", comma, i + 1);
    }
    replace(&out, (struct bytes){ text, (size_t)(from - text) }, list, mask);
    if (arrays.len)
        buf_addf(&out, JOINED "%.*s) v (%.*s)", BYTES_ARG(buf_bytes(&arrays)),
                 BYTES_ARG(buf_bytes(&names)));
    replace(&out, bytes_of(tail), list, mask);
    return arrays.failed || names.failed ? NULL : text_take(&out);
}

static bool updates(const char *text)
{
    return strncmp(text, "UPDATE ", 7) == 0 && strstr(text, JOINED) && strstr(text, JOINED_AS);
}

/* The text of a shape, owned by the caller; NULL without memory. */
static char *shape_text(const char *text, uint32_t mask)
{
    return updates(text) ? update_text(text, mask) : insert_text(text, mask);
}

static struct pg_shape *shape_new(struct pg *c, enum sql_name name, const char *text, uint32_t mask)
{
    struct pg_shape *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->mask = mask;
    s->text = shape_text(text, mask);
    if (!s->text) {
        mem_free(s);
        return NULL;
    }
    snprintf(s->label, sizeof s->label, "%s_%x", sql_name_text[name], (unsigned)mask);
    s->next = c->shapes[name];
    c->shapes[name] = s;
    return s;
}

struct pg_shape *pg_shape(struct pg *c, enum sql_name name, const char *text,
                          const struct led_params *p)
{
    struct pg_shape *best = NULL;
    int n = 0;
    bool shaped = p && p->n && (strstr(text, COLUMNS) || updates(text));
    uint32_t mask = shaped ? sames(p) : 0;
    if (!mask)
        return NULL;
    for (struct pg_shape *s = c->shapes[name]; s; s = s->next, n++) {
        if (s->mask == mask)
            return s;
        if ((s->mask & mask) == s->mask &&
            (!best || __builtin_popcount(s->mask) > __builtin_popcount(best->mask)))
            best = s;
    }
    struct pg_shape *fresh = n < SHAPES_MAX ? shape_new(c, name, text, mask) : NULL;
    return fresh ? fresh : best;
}

void pg_shapes_forget(struct pg *c)
{
    for (int i = 0; i < SQL_COUNT; i++)
        for (struct pg_shape *s = c->shapes[i]; s; s = s->next)
            s->prepared = false;
}

void pg_shapes_end(struct pg *c)
{
    for (int i = 0; i < SQL_COUNT; i++)
        for (struct pg_shape *s = c->shapes[i], *next; s; s = next) {
            next = s->next;
            mem_free(s->text);
            mem_free(s);
        }
}
