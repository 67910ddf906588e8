/*
 * remote.c - ask a server and print its answer (remote.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/remote.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/text.h"

/* All answers of one command: pages of a list, receipts of a batch, one large result. */
#define REMOTE_LEN_MAX ((size_t)1 << 30)
#define READ_LEN (64 << 10)

enum pawl_status remote_open(struct remote *r, struct cli *cli)
{
    *r = (struct remote){ .cli = cli };
    arena_init(&r->arena, REMOTE_LEN_MAX);
    return client_of(cli, &r->client, &r->err);
}

void remote_close(struct remote *r)
{
    client_close(r->client);
    arena_release(&r->arena);
}

int remote_fail(struct remote *r)
{
    return cli_fail_id(r->cli, &r->err, r->err.status == PAWL_UNKNOWN ? r->id : NULL);
}

enum pawl_status remote_lost(struct remote *r, const char *what, const char *then)
{
    if (!what || !then)
        return err_no_memory(&r->err, "an error");
    return err_set(&r->err, PAWL_UNKNOWN,
                   "%.250s: the request was sent, and its answer was lost; %.200s", what, then);
}

enum pawl_status remote_unknown(struct remote *r, const char *done)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:";
    /* The command line in the message is for copying: the id must need no quoting, and must fit. */
    bool copied = strlen(r->id) <= 100 && *r->id != '-' && !r->id[strspn(r->id, plain)];
    return err_set(&r->err, PAWL_UNKNOWN,
                   "call \"%s\" may have been %s: the request was sent, but its answer was lost; "
                   "`pawl get %s` shows its state",
                   r->id, done, copied ? r->id : "ID");
}

enum pawl_status remote_ask(struct remote *r, const struct client_ask *ask, struct json **out)
{
    struct client_ask full = *ask;
    if (!ask->path)
        return r->err.status != PAWL_OK ? r->err.status
                                        : err_no_memory(&r->err, "asking the server");
    if (!full.method && full.body.data)
        full.method = "POST";
    return client_json(r->client, &r->arena, &full, out, &r->err);
}

const char *shown(struct arena *a, const struct json *object, const char *name)
{
    const struct json *v = json_member(object, name);
    if (!v || v->kind == JSON_NULL)
        return NULL;
    return v->kind == JSON_STRING ? json_string(a, v).data : arena_text(a, v->raw);
}

int remote_print_raw(struct remote *r, const struct json *v)
{
    fwrite(v->raw.data, 1, v->raw.len, r->cli->out);
    fputc('\n', r->cli->out);
    return cli_done(r->cli);
}

enum paint paint_of_status(const char *status)
{
    static const struct {
        const char *status;
        enum paint paint;
    } rows[] = { { "completed", PAINT_GOOD },  { "failed", PAINT_BAD },
                 { "dead_letter", PAINT_BAD }, { "expired", PAINT_WARN },
                 { "cancelled", PAINT_WARN },  { "active", PAINT_GOOD },
                 { "dead", PAINT_BAD },        { "error", PAINT_BAD },
                 { "timeout", PAINT_WARN },    { "lost", PAINT_WARN } };
    for (size_t i = 0; status && i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].status, status) == 0)
            return rows[i].paint;
    return PAINT_NONE;
}

int remote_table(struct remote *r, const struct json *answer, const char *list,
                 const char *const *columns)
{
    const struct json *rows = json_member(answer, list);
    struct cli_table s;
    if (r->cli->json || !rows)
        return remote_print_raw(r, answer);
    cli_table_init(&s, columns);
    for (const struct json *row = rows->first; row; row = row->next)
        for (size_t i = 0; columns[i]; i++) {
            const struct json *v = json_member(row, columns[i]);
            bool empty = v && v->kind == JSON_ARRAY && !v->count;
            const char *text = empty ? NULL : shown(&r->arena, row, columns[i]);
            if (v && (v->kind == JSON_TRUE || v->kind == JSON_FALSE))
                cli_table_bool(&s, v->kind == JSON_TRUE);
            else if (text)
                cli_table_text(&s, "%s", text);
            else
                cli_table_none(&s);
            if (strcmp(columns[i], "status") == 0 || strcmp(columns[i], "kind") == 0)
                cli_table_paint(&s, paint_of_status(text));
        }
    cli_table_print(r->cli, &s);
    cli_table_release(&s);
    return cli_done(r->cli);
}

void remote_print_fields(struct remote *r, const struct json *object)
{
    struct cli *cli = r->cli;
    for (const struct json *m = object->first; m; m = m->next) {
        const char *name = json_name(&r->arena, m).data;
        const char *text = name ? shown(&r->arena, object, name) : NULL;
        if (!text || m->kind == JSON_FALSE || strcmp(text, "{}") == 0 || strcmp(text, "[]") == 0)
            continue;
        fprintf(cli->out, "%s%-16s%s  ", paint_on(cli, PAINT_HEAD), name,
                paint_off(cli, PAINT_HEAD));
        enum paint paint = strcmp(name, "status") == 0 ? paint_of_status(text) : PAINT_NONE;
        fputs(paint_on(cli, paint), cli->out);
        /* Control characters in stored names must not reach the terminal. */
        for (; *text; text++)
            fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, cli->out);
        fprintf(cli->out, "%s\n", paint_off(cli, paint));
    }
}

void list_add(struct buf *b, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",");
        json_add_comma(b);
        json_add_string(b, (struct bytes){ text, len });
        if (!text[len])
            return;
        text += len + 1;
    }
}

/* An empty name would make another path: "/v1/calls/" is none, "/v1/queues//pause" neither. */
static enum pawl_status name_add(struct remote *r, struct buf *b, struct bytes what,
                                 const char *name)
{
    const char *fault = name_fault(bytes_of(name));
    if (fault)
        return err_set(&r->err, PAWL_INVALID,
                       "argument %.*s %s; expected 1 to %d bytes of UTF-8 without control "
                       "characters",
                       BYTES_ARG(what), fault, NAME_LEN_MAX);
    url_add(b, bytes_of(name));
    return PAWL_OK;
}

char *remote_path(struct remote *r, const char *pattern, const char *const *names, const char *rest)
{
    struct buf b;
    char *path = NULL;
    enum pawl_status st = PAWL_OK;
    buf_init(&b, 4096);
    while (*pattern && st == PAWL_OK) {
        size_t len = strcspn(pattern, "{");
        buf_add(&b, pattern, len);
        pattern += len;
        if (*pattern) {
            struct bytes what = { pattern + 1, strcspn(pattern + 1, "}") };
            st = name_add(r, &b, what, *names++);
            pattern += what.len + 2;
        }
    }
    buf_add_text(&b, rest);
    if (st == PAWL_OK && buf_ok(&b))
        path = arena_text(&r->arena, buf_bytes(&b));
    if (st == PAWL_OK && !path)
        err_no_memory(&r->err, "a path");
    buf_release(&b);
    return path;
}

char *call_path(struct remote *r, const char *id, const char *rest)
{
    return remote_path(r, "/v1/calls/{ID}", &id, rest);
}

void query_add(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(path, "%c%s=", path->len && memchr(path->data, '?', path->len) ? '&' : '?', name);
    url_add(path, bytes_of(value));
}

/* ---- INPUT ----------------------------------------------------------------------------------- */

static enum pawl_status slurp(struct arena *a, FILE *f, size_t max, struct bytes *out)
{
    struct buf b;
    char block[READ_LEN];
    size_t n;
    buf_init(&b, max);
    while ((n = fread(block, 1, sizeof(block), f)) > 0 && buf_ok(&b))
        buf_add(&b, block, n);
    bool ok = buf_ok(&b) && !ferror(f);
    *out = ok ? arena_copy(a, buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return out->data ? PAWL_OK : ok ? PAWL_NO_MEMORY : ferror(f) ? PAWL_INVALID : PAWL_TOO_LARGE;
}

enum pawl_status input_read(struct arena *a, const char *arg, size_t max, struct bytes *out,
                            struct pawl_err *err)
{
    bool stdin_too = strcmp(arg, "-") == 0;
    if (!stdin_too && arg[0] != '@') {
        *out = bytes_of(arg);
        return PAWL_OK;
    }
    const char *name = stdin_too ? "stdin" : arg + 1;
    FILE *f = stdin_too ? stdin : fopen(name, "re");
    if (!f)
        return err_set(err, PAWL_INVALID, "file \"%.300s\": %s", name, strerror(errno));
    enum pawl_status st = slurp(a, f, max, out);
    if (!stdin_too)
        fclose(f);
    if (st == PAWL_TOO_LARGE)
        return err_set(err, st, "%.300s: longer than %zu bytes", name, max);
    return st == PAWL_OK ? st : err_set(err, st, "%.300s: cannot be read", name);
}
