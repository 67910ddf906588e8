/*
 * call_parts.c - the members of a call that `pawl call`, `pawl submit` and `pawl cron put` make of
 * their options in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "cli/remote.h"

void call_text_add(struct buf *b, const char *name, const char *text)
{
    if (!text)
        return;
    json_add_name(b, name);
    json_add_string(b, bytes_of(text));
}

void call_type_add(const struct cli *cli, struct buf *b, const char *type)
{
    const char *method = cli_option(cli, "method"), *dot = method ? NULL : strrchr(type, '.');
    json_add_name(b, "type");
    json_add_string(b, dot ? (struct bytes){ type, (size_t)(dot - type) } : bytes_of(type));
    call_text_add(b, "method", dot ? dot + 1 : method);
}

enum pawl_status call_tags_add(const struct cli *cli, struct buf *b, struct pawl_err *err)
{
    int n = cli_count(cli, "tag");
    if (!n)
        return PAWL_OK;
    json_add_name(b, "tags");
    buf_add_char(b, '{');
    for (int i = 0; i < n; i++) {
        const char *tag = cli_nth(cli, "tag", i);
        size_t len = strcspn(tag, ":=");
        if (!tag[len])
            return err_set(err, PAWL_INVALID, "option --tag: \"%.100s\" is not NAME:VALUE", tag);
        if (i)
            buf_add_char(b, ',');
        json_add_string(b, (struct bytes){ tag, len });
        buf_add_char(b, ':');
        json_add_string(b, bytes_of(tag + len + 1));
    }
    buf_add_char(b, '}');
    return PAWL_OK;
}

void call_needs_add(const struct cli *cli, struct buf *b)
{
    int n = cli_count(cli, "needs");
    if (!n)
        return;
    json_add_name(b, "needs");
    buf_add_char(b, '[');
    for (int i = 0; i < n; i++)
        list_add(b, cli_nth(cli, "needs", i));
    buf_add_char(b, ']');
}
