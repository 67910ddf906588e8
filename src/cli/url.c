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
#define URL_LEN_MAX (64 << 10)

/* Copies `scheme://user:password@` without the password; returns where the rest begins. The last @
 * of the whole text ends it, because a careless password may hold any of / ? # and @ itself. */
static const char *hide_user(struct buf *b, const char *url)
{
    const char *authority = strstr(url, "://");
    const char *at = authority ? strrchr(url, '@') : NULL;
    if (!at || at < authority + 3)
        return url;
    authority += 3;
    const char *colon = memchr(authority, ':', (size_t)(at - authority));
    if (!colon)
        return url;
    buf_add(b, url, (size_t)(colon - url));
    buf_add_text(b, ":" HIDDEN);
    return at;
}

/* The length of `name=` when a parameter with a secret value begins here; else 0. */
static size_t secret_name(const char *at)
{
    static const char *const names[] = { "password=", "passwd=", "pwd=",
                                         "token=",    "secret=", "sslpassword=" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strncasecmp(at, names[i], strlen(names[i])) == 0)
            return strlen(names[i]);
    return 0;
}

static size_t value_len(const char *at)
{
    if (*at == '\'') {
        const char *end = strchr(at + 1, '\'');
        return end ? (size_t)(end + 1 - at) : strlen(at);
    }
    return strcspn(at, "&; ");
}

void url_safe(const char *url, char *out, size_t size)
{
    struct buf b;
    buf_init(&b, URL_LEN_MAX);
    const char *start = hide_user(&b, url);
    for (const char *at = start; *at;) {
        bool begins = at == url || strchr("?&; ", at[-1]);
        size_t name = begins ? secret_name(at) : 0;
        if (name) {
            buf_add(&b, at, name);
            buf_add_text(&b, HIDDEN);
            at += name + value_len(at + name);
        } else {
            buf_add_char(&b, *at++);
        }
    }
    snprintf(out, size, "%.*s", buf_ok(&b) ? (int)b.len : 0, b.data ? b.data : "");
    buf_release(&b);
}
