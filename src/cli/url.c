/*
 * url.c - database URLs as they may be shown: without whatever could be a secret.
 *
 * When in doubt a piece is hidden: a host name shown too rarely costs a question, a password shown
 * once costs the password.
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

/* What is hidden of `scheme://user:password@`, from the colon to the @; from is NULL when there is
 * none. The last @ of the whole text ends it, because a careless password may hold any of / ? # and
 * @ itself. */
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

/* Where the value begins when a parameter with a secret one begins here; else NULL. A list of words
 * ("host=h password = p") may have spaces around its =. */
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

/* A ; ends a value only when another parameter follows: a password may hold one. */
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

/* The same in a list of words, where quotes and backslashes count. One that has a URL somewhere is
 * neither: all the rest is hidden. */
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

/* A secret may hold what looks like another, so each is looked for in the whole text, and all that
 * belongs to one of them is hidden. */
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
