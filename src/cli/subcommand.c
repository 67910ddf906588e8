/*
 * subcommand.c - commands of several words, and lists that they print (subcommand.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/subcommand.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"

/* ---- Which one ------------------------------------------------------------------------------- */

static const struct subcommand *find(const struct subcommand *v, const char *name)
{
    while (v->name && strcmp(v->name, name))
        v++;
    return v->name ? v : NULL;
}

/* "list, get or put", in the arena; NULL without memory. */
static const char *names_of(struct arena *a, const struct subcommand *v)
{
    const char *out = v->name;
    for (v++; v->name && out; v++)
        out = arena_printf(a, "%s%s%s", out, v[1].name ? ", " : " or ", v->name);
    return out;
}

/* An option of another subcommand that was given; NULL: there is none. */
static const char *option_of_others(const struct cli *cli, const struct subcommand *sub)
{
    char word[40];
    for (const struct option_row *row = cli->command->options; row && row->name; row++) {
        snprintf(word, sizeof word, " %s ", row->name);
        if (cli_flag(cli, row->name) && !strstr(sub->options, word))
            return row->name;
    }
    return NULL;
}

static int unknown(struct cli *cli, const struct subcommand *v, const char *word)
{
    struct arena a;
    arena_init(&a, 16 << 10);
    const char *names = names_of(&a, v);
    int code = cli_unknown(cli, "subcommand", word, names ? names : "another");
    arena_release(&a);
    return code;
}

/* What is wrong with the command line; 0: nothing. */
static int refused(struct cli *cli, const struct subcommand *sub, int argc, char **argv)
{
    const char *command = cli->command->name, *wrong = option_of_others(cli, sub);
    if (sub->argument && !argc)
        return cli_failf(cli, PAWL_INVALID, "%s is missing; usage: pawl %s %s %s", sub->argument,
                         command, sub->name, sub->argument);
    if (argc > sub->args_max)
        return cli_failf(cli, PAWL_INVALID, "unexpected argument \"%.100s\" of pawl %s %s",
                         argv[sub->args_max], command, sub->name);
    return wrong ? cli_failf(cli, PAWL_INVALID, "option --%s cannot be used with pawl %s %s", wrong,
                             command, sub->name)
                 : 0;
}

int subcommand_run(struct cli *cli, const struct subcommand *v, const char *otherwise, int argc,
                   char **argv)
{
    const char *word = argc ? argv[0] : otherwise;
    const struct subcommand *sub = word ? find(v, word) : NULL;
    struct remote r;
    if (!sub)
        return unknown(cli, v, word ? word : "");
    argc -= argc > 0;
    argv++;
    int code = refused(cli, sub, argc, argv);
    if (code)
        return code;
    code = remote_open(&r, cli) == PAWL_OK ? sub->run(&r, argc, argv) : remote_fail(&r);
    remote_close(&r);
    return code;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

#define PAGE_MAX 1000

static const char *page_path(struct remote *r, const struct listing *p, int64_t limit,
                             const char *cursor)
{
    struct buf b;
    char number[24];
    if (!p->path)
        return NULL;
    buf_init(&b, 64 << 10);
    buf_add_text(&b, p->path);
    snprintf(number, sizeof number, "%" PRId64, MIN(limit, PAGE_MAX));
    query_add(&b, "limit", number);
    query_add(&b, "cursor", cursor);
    const char *path = buf_ok(&b) ? arena_text(&r->arena, buf_bytes(&b)) : NULL;
    buf_release(&b);
    return path;
}

/* With --json the rows of all pages go into one array, and `next` is that of the last page. */
static enum pawl_status pages_read(struct remote *r, const struct listing *p, struct cli_table *s,
                                   struct buf *json, bool *more)
{
    const char *cursor = NULL;
    int64_t n = 0, limit = 0;
    enum pawl_status st = cli_int(r->cli, "limit", 1, 1000000, &limit, &r->err);
    if (st != PAWL_OK)
        return st;
    do {
        struct json *page = NULL;
        st = remote_ask(r,
                        &(struct client_ask){ .path = page_path(r, p, limit - n, cursor),
                                              .list = p->member,
                                              .has = p->has },
                        &page);
        if (st != PAWL_OK)
            return st;
        const struct json *list = json_member(page, p->member);
        for (const struct json *v = list->first; v && n < limit; v = v->next, n++) {
            p->row(r, s, v);
            json_add_comma(json);
            buf_add_bytes(json, v->raw);
        }
        cursor = shown(&r->arena, page, "next");
        cli_progress(r->cli, "%s: %" PRId64, p->member, n);
    } while (cursor && n < limit);
    cli_progress_end(r->cli);
    buf_add_char(json, ']');
    json_add_name(json, "next");
    if (cursor)
        json_add_string(json, bytes_of(cursor));
    else
        buf_add_text(json, "null");
    buf_add_char(json, '}');
    *more = cursor != NULL;
    return PAWL_OK;
}

int remote_list(struct remote *r, const struct listing *p)
{
    struct cli_table s;
    struct buf json;
    bool more = false;
    int code;
    cli_table_init(&s, p->columns);
    buf_init(&json, (size_t)512 << 20);
    buf_addf(&json, "{\"%s\":[", p->member);
    enum pawl_status st = pages_read(r, p, &s, &json, &more);
    if (st != PAWL_OK) {
        code = remote_fail(r);
    } else if (r->cli->json) {
        code = cli_table_send(r->cli, &json);
    } else {
        cli_table_print(r->cli, &s);
        if (more && !cli_flag(r->cli, "limit"))
            fprintf(r->cli->err, "pawl %s: there are more %s; --limit N prints more\n",
                    r->cli->command->name, p->member);
        code = cli_done(r->cli);
    }
    buf_release(&json);
    cli_table_release(&s);
    return code;
}
