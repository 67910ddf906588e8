/*
 * url.c - fuzz: no URL is shown with its secret, whatever the secret contains, and no error message
 * contains it.
 *
 * The first byte chooses where the secret is; the rest is its content, between two marks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/client.h"
#include "cli/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MARK "S3CRET"

/* `not`: characters that would end the value there, so they cannot be part of it. */
static const struct place {
    const char *before, *after, *not ;
} places[] = {
    { "postgres://ann:", "@host:5432/db", "" },
    { "mysql://:", "@host/db?ssl=1", "" },
    { "postgres://h/db?user=ann&password=", "&x=1", "&=" },
    { "postgres://h:5432/db?PASSWORD=", "", "&=" },
    { "mysql://ann@h/db?token=", "", "&=" },
    { "host=h password='", "' dbname=d", "'\\" },
    { "password = ", " host=h", " \t\r\n'\\" },
};

static void check_safe(const char *url, const char *secret_mark)
{
    static const size_t sizes[] = { 1, 2, 17, 4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *out = malloc(sizes[i]);
        url_safe(url, out, sizes[i]);
        CHECK(strlen(out) < sizes[i]);
        if (secret_mark && strstr(out, secret_mark)) {
            fprintf(stderr, "%s\nis shown as\n%s\n", url, out);
            abort();
        }
        free(out);
    }
}

/* As a setting: accepted or refused, without showing the secret. */
static void check_setting(const char *url, const char *secret_mark)
{
    struct settings s;
    struct pawl_err err = { 0 };
    char shown[4096];
    CHECK(settings_init(&s, &err) == PAWL_OK);
    enum pawl_status st = settings_set(&s, SET_DB, url, &err);
    if (st == PAWL_OK)
        setting_shown(&s, SET_DB, shown, sizeof shown);
    if (st == PAWL_OK)
        st = strncmp(url, "env:", 4) == 0 ? PAWL_OK : settings_settle(&s, &err);
    if (secret_mark) {
        CHECK(!strstr(err.text, secret_mark));
        CHECK(!strstr(shown, secret_mark));
    }
    settings_release(&s);
}

static void check_server(const char *url)
{
    struct client_url parsed;
    struct pawl_err err = { 0 };
    if (client_url_parse(url, &parsed, &err) != PAWL_OK)
        CHECK(*err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1 || memchr(data, 0, len) || len > 1500)
        return 0;
    size_t which = data[0] % (sizeof places / sizeof places[0] + 1);
    char *url = malloc(len + 200);
    if (which == sizeof places / sizeof places[0]) {
        memcpy(url, data + 1, len - 1);
        url[len - 1] = 0;
        check_safe(url, NULL);
        check_setting(url, NULL);
        check_server(url);
    } else {
        const struct place *p = &places[which];
        size_t n = (size_t)snprintf(url, len + 200, "%s" MARK, p->before); /* all are short */
        for (size_t i = 1; i < len; i++)
            if (!strchr(p->not, data[i]))
                url[n++] = (char)data[i];
        snprintf(url + n, len + 200 - n, MARK "%s", p->after);
        check_safe(url, MARK);
        check_setting(url, MARK);
    }
    free(url);
    return 0;
}
