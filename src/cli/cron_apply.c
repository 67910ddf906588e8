/*
 * cron_apply.c - `pawl cron apply`: make the server's schedules those of a file.
 *
 * First every schedule of the file is sent as a question (dry_run), so that a file with a mistake
 * changes nothing and what is stored already is not written again. Then come the writes, then the
 * deletions. Each of them may be repeated, so after a lost answer the same command goes on.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "cli/cron.h"

#define FILE_LEN_MAX ((size_t)256 << 20)
#define PAGE_MAX 1000
/* Names that a question shows. */
#define NAMES_SHOWN 5

struct item {
    const char *name;
    struct bytes spec;  /* the schedule, as in the file; absent: to be deleted */
    const char *change; /* "create", "update", "none", "delete" */
    const char *etag;   /* delete: the version that was listed */
};

struct apply {
    struct remote *r;
    const char *file;
    struct item *v;
    size_t n, n_file; /* those of the file stand first */
    size_t wrong;     /* schedules of the file that were refused */
    enum pawl_status first;
};

/* ---- The file -------------------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
    return strcmp((*(const struct item *const *)x)->name, (*(const struct item *const *)y)->name);
}

/* The items in the order of their names, in the arena; NULL without memory. */
static struct item **sorted(struct apply *p)
{
    struct item **v = arena_zalloc(&p->r->arena, p->n + 1, sizeof *v);
    for (size_t i = 0; v && i < p->n; i++)
        v[i] = &p->v[i];
    if (v)
        qsort(v, p->n, sizeof *v, by_name);
    return v;
}

static enum pawl_status names_once(struct apply *p)
{
    struct item **v = sorted(p);
    if (!v)
        return err_no_memory(&p->r->err, "schedules");
    for (size_t i = 1; i < p->n; i++)
        if (strcmp(v[i - 1]->name, v[i]->name) == 0)
            return err_set(&p->r->err, PAWL_INVALID, "%.150s: schedule \"%.150s\" is there twice",
                           p->file, v[i]->name);
    return PAWL_OK;
}

static enum pawl_status file_read(struct apply *p)
{
    struct remote *r = p->r;
    struct bytes text;
    struct json *list;
    struct pawl_err why;
    const char *arg = strcmp(p->file, "-") ? arena_printf(&r->arena, "@%s", p->file) : "-";
    if (!arg)
        return err_no_memory(&r->err, "schedules");
    enum pawl_status st = input_read(&r->arena, arg, FILE_LEN_MAX, &text, &r->err);
    if (st != PAWL_OK)
        return st;
    if (json_parse(&r->arena, text, &list, &why) != PAWL_OK)
        return err_set(&r->err, PAWL_INVALID, "%.150s: is not JSON (%.200s)", p->file, why.text);
    if (list->kind != JSON_ARRAY)
        return err_set(&r->err, PAWL_INVALID, "%.150s: must be a JSON array of schedules", p->file);
    p->v = arena_zalloc(&r->arena, list->count + 1, sizeof *p->v);
    if (!p->v)
        return err_no_memory(&r->err, "schedules");
    for (const struct json *one = list->first; one; one = one->next) {
        const char *name = json_string(&r->arena, json_member(one, "name")).data;
        p->n++;
        if (!name || !*name)
            return err_set(&r->err, PAWL_INVALID, "%.150s: schedule %zu of the array has no name",
                           p->file, p->n);
        p->v[p->n - 1] = (struct item){ .name = name, .spec = one->raw };
    }
    p->n_file = p->n;
    return names_once(p);
}

/* ---- What would change ----------------------------------------------------------------------- */

/* One schedule was refused: say so, and go on to find the other mistakes of the file. */
static void refuse(struct apply *p, const struct item *one)
{
    cli_progress_end(p->r->cli);
    if (!p->r->cli->json)
        fprintf(p->r->cli->err, "pawl cron: %s: schedule \"%s\": %s\n", p->file, one->name,
                p->r->err.text);
    if (!p->wrong++)
        p->first = p->r->err.status;
}

/* Is it the schedule that is wrong, and not the server that is away? */
static bool is_mistake(enum pawl_status st)
{
    return st == PAWL_INVALID || st == PAWL_TOO_LARGE;
}

static enum pawl_status put(struct apply *p, const struct item *one, bool dry, struct json **out)
{
    struct remote *r = p->r;
    const struct client_ask ask = { .method = "PUT",
                                    .path = cron_path(r, one->name, dry ? "?dry_run=true" : ""),
                                    .body = one->spec,
                                    .has = "name" };
    return remote_ask(r, &ask, out);
}

static enum pawl_status ask_all(struct apply *p)
{
    struct pawl_err first = { 0 };
    for (size_t i = 0; i < p->n_file; i++) {
        struct json *answer = NULL;
        enum pawl_status st = put(p, &p->v[i], true, &answer);
        if (is_mistake(st)) {
            if (!p->wrong)
                first = p->r->err;
            refuse(p, &p->v[i]);
            continue;
        }
        if (st != PAWL_OK)
            return st;
        p->v[i].change = shown(&p->r->arena, answer, "change");
        if (!p->v[i].change)
            return err_set(&p->r->err, PAWL_BROKEN, "the server's answer has no \"change\"");
        cli_progress(p->r->cli, "cron: checked %zu of %zu", i + 1, p->n_file);
    }
    cli_progress_end(p->r->cli);
    if (p->wrong == 1 && p->r->cli->json)
        return err_set(&p->r->err, first.status, "%s", first.text);
    return !p->wrong ? PAWL_OK
                     : err_set(&p->r->err, p->first,
                               "%.150s: %zu schedule%s refused; nothing was changed", p->file,
                               p->wrong, p->wrong == 1 ? " was" : "s were");
}

/* ---- What is to be deleted ------------------------------------------------------------------- */

static bool in_file(struct item **names, size_t n, const char *name)
{
    struct item key = { .name = name }, *pointer = &key;
    return bsearch(&pointer, names, n, sizeof *names, by_name) != NULL;
}

static enum pawl_status item_add(struct apply *p, size_t *cap, struct item one)
{
    if (p->n + 1 > *cap) {
        struct item *v = arena_zalloc(&p->r->arena, *cap * 2 + 64, sizeof *v);
        if (!v)
            return err_no_memory(&p->r->err, "schedules");
        memcpy(v, p->v, p->n * sizeof *v);
        *cap = *cap * 2 + 64;
        p->v = v;
    }
    p->v[p->n++] = one;
    return PAWL_OK;
}

/* Add every stored schedule that the file does not name. */
static enum pawl_status prune_find(struct apply *p)
{
    struct remote *r = p->r;
    size_t cap = p->n;
    const char *cursor = NULL;
    struct item **names = sorted(p);
    enum pawl_status st = names ? PAWL_OK : err_no_memory(&r->err, "schedules");
    do {
        struct json *page = NULL;
        const char *path = arena_printf(&r->arena, "/v1/schedules?limit=%d%s%s", PAGE_MAX,
                                        cursor ? "&cursor=" : "", cursor ? cursor : "");
        if (st == PAWL_OK)
            st = remote_ask(
                r, &(struct client_ask){ .path = path, .list = "schedules", .has = SCHEDULE_HAS },
                &page);
        const struct json *list = st == PAWL_OK ? json_member(page, "schedules") : NULL;
        for (const struct json *v = list ? list->first : NULL; v && st == PAWL_OK; v = v->next) {
            const char *name = shown(&r->arena, v, "name");
            const char *version = shown(&r->arena, v, "version");
            if (!name || !version || in_file(names, p->n_file, name))
                continue;
            st = item_add(p, &cap, (struct item){ name, BYTES_NONE, "delete", version });
        }
        cursor = st == PAWL_OK ? shown(&r->arena, page, "next") : NULL;
    } while (cursor);
    return st;
}

/* Ask before deleting, on a terminal. */
static bool confirmed(struct apply *p)
{
    struct cli *cli = p->r->cli;
    char names[400] = "";
    size_t n = p->n - p->n_file, len = 0;
    if (!n || !cli->person || cli_flag(cli, "yes") || cli_flag(cli, "dry-run"))
        return true;
    for (size_t i = 0; i < n && i < NAMES_SHOWN && len < sizeof names - 80; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s\"%.60s\"", i ? ", " : "",
                                p->v[p->n_file + i].name);
    return cli_ask(cli, "delete %zu schedule%s not in %.100s: %s%s?", n,
                   n == 1 ? " that is" : "s that are", p->file, names,
                   n > NAMES_SHOWN ? ", ..." : "");
}

/* ---- Writing --------------------------------------------------------------------------------- */

static enum pawl_status drop(struct apply *p, const struct item *one)
{
    struct remote *r = p->r;
    struct json *answer = NULL;
    const struct client_ask ask = {
        .method = "DELETE",
        .path = cron_path(r, one->name, ""),
        .has = "name deleted",
        .header = arena_printf(&r->arena, "If-Match: \"%s\"", one->etag),
    };
    if (!ask.header)
        return err_no_memory(&r->err, "asking the server");
    enum pawl_status st = remote_ask(r, &ask, &answer);
    return st == PAWL_NOT_FOUND ? PAWL_OK : st; /* It is gone, perhaps by this request. */
}

static enum pawl_status write_all(struct apply *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct item *one = &p->v[i];
        struct json *answer = NULL;
        enum pawl_status st = PAWL_OK;
        if (!one->spec.data)
            st = drop(p, one);
        else if (strcmp(one->change, "none") != 0)
            st = put(p, one, false, &answer);
        if (st == PAWL_UNKNOWN)
            return remote_lost(p->r,
                               arena_printf(&p->r->arena,
                                            "schedule \"%.100s\" may have been %s, and %zu of %zu "
                                            "are done",
                                            one->name, one->spec.data ? "stored" : "deleted", i,
                                            p->n),
                               "the same command can be given again");
        if (st != PAWL_OK) {
            struct pawl_err was = p->r->err;
            return err_set(&p->r->err, st, "schedule \"%.100s\": %.300s (%zu of %zu are done)",
                           one->name, was.text, i, p->n);
        }
        cli_progress(p->r->cli, "cron: %zu of %zu", i + 1, p->n);
    }
    cli_progress_end(p->r->cli);
    return PAWL_OK;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static const struct kind {
    const char *change, *done;
} kinds[] = { { "create", "created" },
              { "update", "updated" },
              { "none", "unchanged" },
              { "delete", "deleted" } };

static size_t count(const struct apply *p, const char *change)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += strcmp(p->v[i].change, change) == 0;
    return n;
}

static int say_json(const struct apply *p, bool dry)
{
    struct buf b;
    buf_init(&b, (size_t)512 << 20);
    buf_addf(&b, "{\"dry_run\":%s,\"schedules\":[", dry ? "true" : "false");
    for (size_t i = 0; i < p->n; i++) {
        json_add_comma(&b);
        buf_add_text(&b, "{\"name\":");
        json_add_string(&b, bytes_of(p->v[i].name));
        buf_addf(&b, ",\"change\":\"%s\"}", p->v[i].change);
    }
    buf_add_char(&b, ']');
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        buf_addf(&b, ",\"%s\":%zu", kinds[i].done, count(p, kinds[i].change));
    buf_add_char(&b, '}');
    int code = cli_table_send(p->r->cli, &b);
    buf_release(&b);
    return code;
}

static int say(const struct apply *p, bool dry)
{
    static const char *const columns[] = { "change", "name", NULL };
    struct cli *cli = p->r->cli;
    struct cli_table s;
    if (cli->json)
        return say_json(p, dry);
    cli_table_init(&s, columns);
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].change, "none") != 0) {
            cli_table_text(&s, "%s", p->v[i].change);
            cli_table_text(&s, "%s", p->v[i].name);
        }
    if (s.n)
        cli_table_print(cli, &s);
    cli_table_release(&s);
    fputs(dry ? "dry run: " : "", cli->out);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        fprintf(cli->out, "%s%zu %s", i ? ", " : "", count(p, kinds[i].change), kinds[i].done);
    fputc('\n', cli->out);
    return cli_done(cli);
}

int cron_apply_run(struct remote *r, const char *file)
{
    struct apply p = { .r = r, .file = file };
    bool dry = cli_flag(r->cli, "dry-run");
    enum pawl_status st = file_read(&p);
    if (st == PAWL_OK)
        st = ask_all(&p);
    if (st == PAWL_OK && cli_flag(r->cli, "prune"))
        st = prune_find(&p);
    if (st == PAWL_OK && !confirmed(&p))
        return cli_failf(r->cli, PAWL_INVALID, "not confirmed; nothing was changed");
    if (st == PAWL_OK && !dry)
        st = write_all(&p);
    return st == PAWL_OK ? say(&p, dry) : remote_fail(r);
}
