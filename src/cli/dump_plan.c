/*
 * dump_plan.c - turn a database URL into a command line without secrets (dump.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/dump.h"

#define PIECE_LEN_MAX 4096
/* In milliseconds. Without a limit, a lock on one table would make the dump wait for ever. */
#define LOCK_WAIT "30000"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

const char *dump_inner_url(const char *url)
{
    static const char *const wrappers[] = { "trace+", "fault+" };
    for (size_t i = 0; i < COUNT_OF(wrappers); i++)
        if (starts(url, wrappers[i]))
            return dump_inner_url(url + strlen(wrappers[i]));
    return url;
}

static bool is_pg(const char *url)
{
    return starts(url, "postgres://") || starts(url, "postgresql://");
}

static bool is_mysql(const char *url)
{
    return starts(url, "mysql://") || starts(url, "mariadb://");
}

bool dump_for(const char *url)
{
    const char *inner = dump_inner_url(url);
    return is_pg(inner) || is_mysql(inner);
}

bool dump_by_table(const char *url)
{
    return is_mysql(dump_inner_url(url));
}

/* ---- A URL in pieces ------------------------------------------------------------------------- */

/* Split as libpq does: the text before the first @ is the user, unless a / comes first. */
struct pieces {
    struct bytes scheme, user, password, hosts, database, query;
};

static struct bytes until(const char **at, const char *stops)
{
    struct bytes b = { *at, strcspn(*at, stops) };
    *at += b.len;
    return b;
}

static struct pieces cut(const char *url)
{
    struct pieces p = { 0 };
    const char *at = url;
    p.scheme = until(&at, ":");
    at += strlen("://");
    const char *end = at + strcspn(at, "/@");
    if (*end == '@') {
        p.user = until(&at, ":@");
        if (*at == ':') {
            at++;
            p.password = until(&at, "@");
        }
        at++;
    }
    p.hosts = until(&at, "/?");
    if (*at == '/') {
        at++;
        p.database = until(&at, "?");
    }
    if (*at == '?')
        p.query = bytes_of(at + 1);
    return p;
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decode percent escapes (%41 is A). NULL without memory, for a wrong escape and for a zero byte.
 */
static char *decoded(struct arena *a, struct bytes in)
{
    char *out = in.len < PIECE_LEN_MAX ? arena_alloc(a, in.len + 1) : NULL;
    size_t n = 0;
    for (size_t i = 0; out && i < in.len; i++) {
        int high = 0, low = in.data[i];
        if (in.data[i] == '%') {
            if (i + 2 >= in.len)
                return NULL;
            high = hex(in.data[i + 1]);
            low = hex(in.data[i + 2]);
            if (high < 0 || low < 0 || high + low == 0)
                return NULL;
            i += 2;
        }
        out[n++] = (char)(high * 16 + low);
    }
    if (out)
        out[n] = 0;
    return out;
}

static struct bytes next_of(struct bytes *list, char between)
{
    const char *end = list->len ? memchr(list->data, between, list->len) : NULL;
    struct bytes first = { list->data, end ? (size_t)(end - list->data) : list->len };
    size_t used = MIN(first.len + 1, list->len);
    *list = (struct bytes){ list->data + used, list->len - used };
    return first;
}

static enum pawl_status unreadable(struct pawl_err *err)
{
    return err_set(
        err, PAWL_INVALID,
        "the database's URL has a part that cannot be decoded; write special characters as %%XX");
}

static void add(struct dump_plan *p, const char *arg)
{
    if (p->n_args < DUMP_ARGS_MAX && arg)
        p->argv[++p->n_args] = arg;
}

static void addf(struct dump_plan *p, struct arena *a, const char *name, const char *value)
{
    add(p, arena_printf(a, "%s%s", name, value));
}

static enum pawl_status keep_secret(struct dump_plan *p, struct arena *a, const char *name,
                                    struct bytes password, struct pawl_err *err)
{
    const char *plain = decoded(a, password);
    if (!plain)
        return unreadable(err);
    p->secret = arena_printf(a, "%s=%s", name, plain);
    return p->secret ? PAWL_OK : err_no_memory(err, "calling a program");
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

/* Add the URL's parameters to `b`, except for passwords. */
static enum pawl_status pg_query(struct buf *b, struct bytes query, struct arena *a,
                                 struct bytes *password, struct pawl_err *err)
{
    char between = '?';
    while (query.len) {
        struct bytes one = next_of(&query, '&'), rest = one;
        const char *name = decoded(a, next_of(&rest, '='));
        if (!name)
            return unreadable(err);
        if (strcmp(name, "sslpassword") == 0)
            return err_set(err, PAWL_INVALID,
                           "sslpassword cannot be passed to pg_dump safely: use a key without a "
                           "password, or run pg_dump by hand");
        if (strcmp(name, "password") == 0) {
            *password = rest;
            continue;
        }
        buf_add_char(b, between);
        buf_add_bytes(b, one);
        between = '&';
    }
    return PAWL_OK;
}

static enum pawl_status pg_plan(const char *url, const char *schema, struct arena *a,
                                struct dump_plan *out, struct pawl_err *err)
{
    struct pieces p = cut(url);
    struct buf b;
    buf_init(&b, PIECE_LEN_MAX);
    buf_addf(&b, "%.*s://%.*s%s%.*s/%.*s", BYTES_ARG(p.scheme), BYTES_ARG(p.user),
             p.user.data ? "@" : "", BYTES_ARG(p.hosts), BYTES_ARG(p.database));
    enum pawl_status st = pg_query(&b, p.query, a, &p.password, err);
    buf_add_char(&b, 0);
    const char *open = st == PAWL_OK && buf_ok(&b) ? arena_text(a, bytes_of(b.data)) : NULL;
    buf_release(&b);
    if (st == PAWL_OK && !open)
        st = unreadable(err);
    if (st == PAWL_OK && p.password.data)
        st = keep_secret(out, a, "PGPASSWORD", p.password, err);
    if (st != PAWL_OK)
        return st;
    out->programs[0] = "pg_dump";
    out->package = "PostgreSQL's client programs";
    add(out, "--format=custom");
    add(out, "--no-password"); /* never prompt for a password: there may be no terminal */
    add(out, "--lock-wait-timeout=" LOCK_WAIT);
    add(out, arena_printf(a, "--schema=\"%s\"", schema));
    addf(out, a, "--dbname=", open);
    return PAWL_OK;
}

/* ---- MariaDB and MySQL ----------------------------------------------------------------------- */

/* Our tables are the names behind each "CREATE TABLE" in the migration steps. */
static void add_tables(struct dump_plan *p, const struct steps *steps, struct arena *a)
{
    static const char make[] = "CREATE TABLE ", maybe[] = "IF NOT EXISTS ";
    for (size_t i = 0; i < steps->n; i++) {
        const char *at = steps->v[i].expand;
        while ((at = strstr(at, make))) {
            at += sizeof make - 1;
            if (starts(at, maybe))
                at += sizeof maybe - 1;
            at += *at == '`';
            struct bytes name = { at, strcspn(at, "` (\n") };
            add(p, arena_text(a, name));
        }
    }
}

/* Only the options that are needed to reach the server; the program reads the rest from its own
 * option files. */
static enum pawl_status mysql_query(struct dump_plan *p, struct bytes query, struct arena *a,
                                    struct bytes *password, struct pawl_err *err)
{
    static const struct {
        const char *name, *option;
    } known[] = { { "socket", "--socket=" },     { "ssl-ca", "--ssl-ca=" },
                  { "ssl_ca", "--ssl-ca=" },     { "ssl-cert", "--ssl-cert=" },
                  { "ssl_cert", "--ssl-cert=" }, { "ssl-key", "--ssl-key=" },
                  { "ssl_key", "--ssl-key=" } };
    while (query.len) {
        struct bytes rest = next_of(&query, '&');
        const char *name = decoded(a, next_of(&rest, '=')), *value = decoded(a, rest);
        if (!name || !value)
            return unreadable(err);
        if (strcmp(name, "password") == 0)
            *password = rest;
        for (size_t i = 0; i < COUNT_OF(known); i++)
            if (strcmp(name, known[i].name) == 0)
                addf(p, a, known[i].option, value);
    }
    return PAWL_OK;
}

static enum pawl_status mysql_server(struct dump_plan *out, const struct pieces *p, struct arena *a,
                                     struct pawl_err *err)
{
    struct bytes hosts = p->hosts, first = next_of(&hosts, ','), port = BYTES_NONE;
    const char *colon = first.len ? memrchr(first.data, ':', first.len) : NULL;
    if (colon && !memchr(colon, ']', (size_t)(first.data + first.len - colon))) {
        port = (struct bytes){ colon + 1, (size_t)(first.data + first.len - colon - 1) };
        first.len = (size_t)(colon - first.data);
    }
    if (first.len > 1 && first.data[0] == '[')
        first = (struct bytes){ first.data + 1, first.len - 2 };
    const char *host = decoded(a, first), *number = decoded(a, port);
    const char *user = decoded(a, p->user);
    if (!host || !number || !user)
        return unreadable(err);
    if (*host)
        addf(out, a, "--host=", host);
    if (*number)
        addf(out, a, "--port=", number);
    if (*user)
        addf(out, a, "--user=", user);
    return PAWL_OK;
}

static enum pawl_status mysql_plan(const char *url, const struct steps *steps, struct arena *a,
                                   struct dump_plan *out, struct pawl_err *err)
{
    struct pieces p = cut(url);
    const char *database = decoded(a, p.database);
    if (!database || !*database || *database == '-')
        return err_set(err, PAWL_INVALID, "the database's URL names no database");
    out->programs[0] = "mariadb-dump";
    out->programs[1] = "mysqldump";
    out->package = "MariaDB's or MySQL's client programs";
    add(out, "--single-transaction"); /* one consistent snapshot, without locking out writers */
    add(out, "--quick");
    add(out, "--hex-blob");
    add(out, "--no-tablespaces");
    add(out, "--default-character-set=utf8mb4");
    enum pawl_status st = mysql_server(out, &p, a, err);
    if (st == PAWL_OK)
        st = mysql_query(out, p.query, a, &p.password, err);
    if (st == PAWL_OK && p.password.data)
        st = keep_secret(out, a, "MYSQL_PWD", p.password, err);
    if (st != PAWL_OK)
        return st;
    add(out, database);
    size_t before = out->n_args;
    add_tables(out, steps, a);
    if (out->n_args == before)
        return err_set(err, PAWL_INVALID, "the schema has no tables that could be copied");
    return PAWL_OK;
}

enum pawl_status dump_plan(const char *url, const char *schema, const struct steps *steps,
                           struct arena *a, struct dump_plan *out, struct pawl_err *err)
{
    const char *inner = dump_inner_url(url);
    struct pieces p = cut(inner);
    *out = (struct dump_plan){ 0 };
    /* A password with an unescaped / or @ is split in the wrong place, and part of it would be
     * shown. */
    if ((p.hosts.len && memchr(p.hosts.data, '@', p.hosts.len)) ||
        (p.database.len && memchr(p.database.data, '@', p.database.len)))
        return err_set(
            err, PAWL_INVALID,
            "the database's URL has more than one @: in a password, write @ as %%40 and / as %%2F");
    enum pawl_status st =
        is_pg(inner) ? pg_plan(inner, schema, a, out, err) : mysql_plan(inner, steps, a, out, err);
    if (st == PAWL_OK && a->failed)
        st = err_no_memory(err, "calling a program");
    return st;
}
