/*
 * cron_put.c - `pawl cron put`: store one schedule, from options or from JSON.
 *
 * The server reads the schedule: here only JSON is made of the options.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "base/err.h"
#include "base/limits.h"
#include "cli/cron.h"

#define SPEC_LEN_MAX (4 << 20)

/* ---- From options ---------------------------------------------------------------------------- */

/* What an option becomes: a string, seconds, a list of strings, JSON, or what `pawl submit` makes
 * of it. */
enum as { AS_TEXT, AS_SECONDS, AS_LIST, AS_JSON, AS_TYPE, AS_METHOD, AS_TAGS, AS_NEEDS };
static const struct part {
    const char *option, *member;
    enum as as;
    bool call; /* it belongs to the call */
} parts[] = {
    { "cron", "cron", AS_TEXT, false },
    { "every", "every", AS_SECONDS, false },
    { "at", "at", AS_LIST, false },
    { "zone", "zone", AS_TEXT, false },
    { "catch-up", "catch_up", AS_TEXT, false },
    { "catch-up-for", "catch_up_for", AS_SECONDS, false },
    { "overlap", "overlap", AS_TEXT, false },
    { "jitter", "jitter", AS_SECONDS, false },
    { "starts-at", "starts_at", AS_TEXT, false },
    { "ends-at", "ends_at", AS_TEXT, false },
    { "type", "type", AS_TYPE, true },
    { "method", "method", AS_METHOD, true },
    { "queue", "queue", AS_TEXT, true },
    { "key", "key", AS_TEXT, true },
    { "input", "input", AS_JSON, true },
    { "needs", "needs", AS_NEEDS, true },
    { "tag", "tags", AS_TAGS, true },
    { "timeout", "timeout", AS_SECONDS, true },
};

static enum pawl_status input_add(struct remote *r, struct buf *b)
{
    struct bytes text;
    struct pawl_err why;
    enum pawl_status st =
        input_read(&r->arena, cli_option(r->cli, "input"), INPUT_LEN_MAX, &text, &r->err);
    if (st == PAWL_OK && json_check(text, &why) != PAWL_OK)
        st = err_set(&r->err, PAWL_INVALID, "option --input: is not JSON (%.200s)", why.text);
    if (st == PAWL_OK)
        buf_add_bytes(b, text);
    return st;
}

static void list_of_texts(const struct cli *cli, struct buf *b, const char *option)
{
    buf_add_char(b, '[');
    for (int i = 0; i < cli_count(cli, option); i++) {
        json_add_comma(b);
        json_add_string(b, bytes_of(cli_nth(cli, option, i)));
    }
    buf_add_char(b, ']');
}

static enum pawl_status part_add(struct remote *r, struct buf *b, const struct part *p)
{
    int64_t us = 0;
    enum pawl_status st = PAWL_OK;
    const struct cli *cli = r->cli;
    if (p->as < AS_TYPE) /* the others append their names too */
        json_add_name(b, p->member);
    switch (p->as) {
    case AS_TEXT:
        json_add_string(b, bytes_of(cli_option(cli, p->option)));
        break;
    case AS_SECONDS:
        st = cli_duration(cli, p->option, &us, &r->err);
        json_add_seconds(b, us);
        break;
    case AS_LIST:
        list_of_texts(cli, b, p->option);
        break;
    case AS_JSON:
        st = input_add(r, b);
        break;
    case AS_TYPE:
        call_type_add(cli, b, cli_option(cli, p->option));
        break;
    case AS_METHOD:
        if (!cli_flag(cli, "type")) /* the server says that the type is missing */
            call_text_add(b, p->member, cli_option(cli, p->option));
        break;
    case AS_TAGS:
        st = call_tags_add(cli, b, &r->err);
        break;
    case AS_NEEDS:
        call_needs_add(cli, b);
        break;
    }
    return st;
}

static enum pawl_status parts_add(struct remote *r, struct buf *b, bool call)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < COUNT_OF(parts); i++)
        if (parts[i].call == call && cli_flag(r->cli, parts[i].option))
            st = part_add(r, b, &parts[i]);
    return st;
}

static enum pawl_status spec_of_options(struct remote *r, struct bytes *out)
{
    struct buf b;
    buf_init(&b, SPEC_LEN_MAX);
    buf_add_char(&b, '{');
    enum pawl_status st = parts_add(r, &b, false);
    if (st == PAWL_OK) {
        json_add_name(&b, "call");
        buf_add_char(&b, '{');
        st = parts_add(r, &b, true);
        buf_add_text(&b, "}}");
    }
    *out = buf_ok(&b) ? arena_copy(&r->arena, buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return st == PAWL_OK && !out->data ? err_no_memory(&r->err, "a schedule") : st;
}

/* ---- The request ----------------------------------------------------------------------------- */

/* Is an option given that says what the schedule is? */
static const char *spec_option(const struct cli *cli)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (cli_flag(cli, parts[i].option))
            return parts[i].option;
    return NULL;
}

static enum pawl_status put_ask(struct remote *r, const char *name, const char *json,
                                struct client_ask *out)
{
    const char *option = spec_option(r->cli);
    int64_t version = 0;
    enum pawl_status st;
    if (json && option)
        return err_set(&r->err, PAWL_INVALID,
                       "option --%s: is given together with JSON, which is the whole schedule",
                       option);
    if (!json && !option)
        return err_set(&r->err, PAWL_INVALID,
                       "the schedule is missing: give options such as --cron and --type, or JSON, "
                       "@FILE or -");
    if (cli_flag(r->cli, "new") && cli_flag(r->cli, "if-version"))
        return err_set(&r->err, PAWL_INVALID,
                       "options --new and --if-version cannot be used together");
    st = json ? input_read(&r->arena, json, SPEC_LEN_MAX, &out->body, &r->err)
              : spec_of_options(r, &out->body);
    if (st == PAWL_OK && cli_flag(r->cli, "if-version")) {
        st = cli_int(r->cli, "if-version", 1, INT64_MAX, &version, &r->err);
        out->header = arena_printf(&r->arena, "If-Match: \"%" PRId64 "\"", version);
    } else if (st == PAWL_OK && cli_flag(r->cli, "new")) {
        out->header = "If-None-Match: *";
    }
    out->method = "PUT";
    out->path = cron_path(r, name, "");
    /* With a condition a second write would be refused although the first one took effect. */
    out->once = out->header != NULL;
    return st;
}

int cron_put_run(struct remote *r, const char *name, const char *json)
{
    struct json *answer = NULL;
    int http = 0;
    struct client_ask ask = { .has = SCHEDULE_HAS, .out_http = &http };
    enum pawl_status st = put_ask(r, name, json, &ask);
    if (st == PAWL_OK)
        st = remote_ask(r, &ask, &answer);
    if (st == PAWL_UNKNOWN)
        remote_lost(r, arena_printf(&r->arena, "schedule \"%.150s\" may have been stored", name),
                    ask.once ? "`pawl cron get` shows it" : "the same command can be given again");
    if (st != PAWL_OK)
        return remote_fail(r);
    if (r->cli->json)
        return remote_print_raw(r, answer);
    const char *next = shown(&r->arena, answer, "next_at");
    const char *note = shown(&r->arena, answer, "note");
    fprintf(r->cli->out, "%s %s; next %.19s%s\n", name, http == 201 ? "created" : "stored",
            next ? next : "never", next ? "Z" : "");
    if (note)
        fprintf(r->cli->out, "note: %s\n", note);
    return cli_done(r->cli);
}
