/*
 * url.c - database URLs for display, with secrets replaced.
 *
 * When in doubt a part is hidden: a missing host name costs the reader a question, a visible
 * password costs the password.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "cli/settings.h"

#define HIDDEN "***"
#define SPACE " \t\r\n"
#define SCHEME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"
#define URL_LEN_MAX (64 << 10)

/* The password in `scheme://user:password@`, from the colon to the @; from is NULL when there is
 * none. It ends at the last @ of the text, because an unescaped password may contain / ? # and @.
 */
struct span {
    const char *from, *to;
};

static struct span password_of(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *at = authority ? strrchr(url, '@') : NULL;
    if (!at || at < authority + 3)
        return (struct span){ 0 };
    authority += 3;
    const char *colon = memchr(authority, ':', (size_t)(at - authority));
    return colon ? (struct span){ colon + 1, at } : (struct span){ 0 };
}

/* When a parameter with a secret value begins at `at`: the start of its value, else NULL. In a list
 * of words ("host=h password = p") there may be spaces around the =. */
static const char *secret_value(const char *at, bool words)
{
    static const char *const names[] = { "password", "passwd", "pwd",
                                         "token",    "secret", "sslpassword" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *p = at + strlen(names[i]);
        if (strncasecmp(at, names[i], strlen(names[i])) != 0)
            continue;
        p += words ? strspn(p, SPACE) : 0;
        if (*p == '=')
            return p + 1 + (words ? strspn(p + 1, SPACE) : 0);
    }
    return NULL;
}

/* A ; ends the value only when another parameter follows: a password may contain one. */
static const char *value_end(const char *at)
{
    for (;; at++) {
        at += strcspn(at, "&;");
        if (*at != ';')
            return at;
        size_t word = strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
        if (word && at[1 + word] == '=')
            return at;
    }
}

/* The end of a value in a list of words, where quotes and backslashes count. A list that also
 * contains a URL cannot be parsed safely: everything up to its end is hidden. */
static const char *word_end(const char *at, bool neither)
{
    bool quoted = neither;
    for (; *at && (quoted || !strchr(SPACE, *at)); at++) {
        if (*at == '\'')
            quoted = !quoted || neither;
        else if (*at == '\\' && at[1])
            at++;
    }
    return at;
}

/* A secret may contain text that looks like another parameter, so each secret is searched for in
 * the whole text, and everything that belongs to any of them is hidden. */
void url_safe(const char *url, char *out, size_t size)
{
    struct buf b;
    struct span user = password_of(url);
    bool words = strncmp(url + strspn(url, SCHEME), "://", 3) != 0;
    const char *value = NULL, *shown = url;
    buf_init(&b, URL_LEN_MAX);
    for (const char *at = url;; at++) {
        bool begins = at == url || strchr("?&;" SPACE, at[-1]);
        const char *secret = begins ? secret_value(at, words) : NULL, *end = NULL;
        value = secret ? secret : value;
        if (at == value)
            end = words ? word_end(at, strstr(url, "://")) : value_end(at);
        if (at == user.from)
            end = end > user.to ? end : user.to;
        if (end && at >= shown)
            buf_add_text(&b, HIDDEN);
        shown = end > shown ? end : shown;
        if (!*at)
            break;
        if (at >= shown)
            buf_add_char(&b, *at);
    }
    snprintf(out, size, "%.*s", buf_ok(&b) ? (int)b.len : 0, b.data ? b.data : "");
    buf_release(&b);
}
