/*
 * url.c - mysql://user:password@host:port/database?options, taken apart.
 *
 * Every part may be percent-encoded. Errors show the names of options and nothing else of
 * it: the rest may hold a password.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "store/mysql/mydb.h"

#define URL_LEN_MAX 4096

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* In place; false for a % without two hex digits after it, or for %00. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
        if (low < 0 || (!high && !low))
            return false;
        *to++ = (char)(high * 16 + low);
        at += 2;
    }
    *to = 0;
    return true;
}

static bool tls_read(const char *value, enum mydb_tls *out)
{
    static const struct {
        const char *name;
        enum mydb_tls tls;
    } modes[] = {
        { "disabled", MYDB_TLS_NONE },
        { "required", MYDB_TLS_REQUIRED },
        { "verify_ca", MYDB_TLS_VERIFIED },
        { "verify_identity", MYDB_TLS_VERIFIED },
    };
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        if (strcasecmp(value, modes[i].name) == 0) {
            *out = modes[i].tls;
            return true;
        }
    return false;
}

static enum pawl_status option_read(struct mydb_url *u, const char *name, char *value,
                                    struct pawl_err *err)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {
        { "socket", &u->socket },
        { "ssl-ca", &u->ca },
        { "ssl-cert", &u->cert },
        { "ssl-key", &u->key },
    };
    if (!decode(value))
        return err_set(err, PAWL_INVALID, "database: option \"%.40s\" is badly encoded", name);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return PAWL_OK;
        }
    if (strcmp(name, "ssl-mode") != 0)
        return err_set(
            err, PAWL_INVALID,
            "database: no option \"%.40s\"; there are socket, ssl-mode, ssl-ca, ssl-cert "
            "and ssl-key",
            name);
    if (!tls_read(value, &u->tls))
        return err_set(err, PAWL_INVALID,
                       "database: ssl-mode is disabled, required, verify_ca or verify_identity");
    return PAWL_OK;
}

static enum pawl_status options_read(struct mydb_url *u, char *at, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    while (at && *at && st == PAWL_OK) {
        char *next = strchr(at, '&'), *value;
        if (next)
            *next++ = 0;
        value = strchr(at, '=');
        if (value)
            *value++ = 0;
        st = value ? option_read(u, at, value, err)
                   : err_set(err, PAWL_INVALID, "database: option \"%.40s\" has no value", at);
        at = next;
    }
    if (st == PAWL_OK && u->tls == MYDB_TLS_NONE && (u->ca || u->cert))
        u->tls = u->ca ? MYDB_TLS_VERIFIED : MYDB_TLS_REQUIRED;
    return st;
}

/* host, host:port or [address]:port. */
static enum pawl_status host_read(struct mydb_url *u, char *at, struct pawl_err *err)
{
    char *port = NULL, *end;
    if (*at == '[') {
        end = strchr(at, ']');
        if (!end || (end[1] && end[1] != ':'))
            return err_set(err, PAWL_INVALID,
                           "database: the URL's host begins with [ and has no ]");
        port = end[1] ? end + 2 : NULL;
        *end = 0;
        at++;
    } else if ((end = strchr(at, ':'))) {
        port = end + 1;
        *end = 0;
    }
    if (port && *port) {
        unsigned long n = strtoul(port, &end, 10);
        if (*end || n < 1 || n > 65535)
            return err_set(err, PAWL_INVALID,
                           "database: the URL's port is not a number from 1 to 65535");
        u->port = (unsigned)n;
    }
    u->host = *at ? at : NULL;
    return PAWL_OK;
}

static enum pawl_status parts_read(struct mydb_url *u, char *at, struct pawl_err *err)
{
    char *options = strchr(at, '?');
    if (options)
        *options++ = 0;
    char *database = strchr(at, '/');
    if (database)
        *database++ = 0;
    if (!database || !*database || strchr(database, '/'))
        return err_set(
            err, PAWL_INVALID,
            "database: the URL names no database; expected mysql://USER:PASSWORD@HOST:PORT/NAME");
    u->database = database;
    char *host = strrchr(at, '@');
    if (host) {
        *host++ = 0;
        u->user = at;
        u->password = strchr(at, ':');
        if (u->password)
            *u->password++ = 0;
        at = host;
    }
    enum pawl_status st = host_read(u, at, err);
    char *const texts[] = { u->host, u->user, u->password, u->database };
    for (size_t i = 0; i < COUNT_OF(texts) && st == PAWL_OK; i++)
        if (texts[i] && !decode(texts[i]))
            st = err_set(err, PAWL_INVALID,
                         "database: a %% in the URL is not followed by two hex digits");
    return st == PAWL_OK ? options_read(u, options, err) : st;
}

enum pawl_status mydb_url_read(const char *text, struct mydb_url *out, struct pawl_err *err)
{
    const char *at = strstr(text, "://");
    *out = (struct mydb_url){ 0 };
    if (!at || strlen(text) > URL_LEN_MAX)
        return err_set(err, PAWL_INVALID, "database: the URL has no :// or is longer than %d bytes",
                       URL_LEN_MAX);
    at += 3;
    out->block_len = strlen(at) + 1;
    out->block = mem_alloc(out->block_len);
    if (!out->block)
        return err_no_memory(err, "a connection");
    memcpy(out->block, at, out->block_len);
    enum pawl_status st = parts_read(out, out->block, err);
    if (st != PAWL_OK)
        mydb_url_release(out);
    return st;
}

void mydb_url_release(struct mydb_url *u)
{
    if (u->block)
        explicit_bzero(u->block, u->block_len);
    mem_free(u->block);
    *u = (struct mydb_url){ 0 };
}
