/*
 * auth.c - who may come in: tokens with roles, and the Origin and Host checks against web pages
 * (auth.h). Loop thread.
 *
 * A token is compared by its SHA-256 with every line, without stopping at a match, so that the time
 * taken says nothing about the tokens. Tokens themselves are never stored, logged or shown.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/auth.h"

#include <arpa/inet.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"

#define DOORS_LEN_MAX ((size_t)4 << 20)

struct key {
    struct principal who;
    unsigned char digest[32];
};

/* Immutable; a reload makes another. */
struct auth {
    struct arena arena;
    struct key *keys;
    size_t n_keys;
    struct bytes *origins, *hosts;
    size_t n_origins, n_hosts;
};

/* ---- Token lines ----------------------------------------------------------------------------- */

/* Take the part up to the next `sep` off *rest, which is absent after the last one. */
static struct bytes part(struct bytes *rest, char sep)
{
    const char *end = rest->len ? memchr(rest->data, sep, rest->len) : NULL;
    struct bytes one = { rest->data, end ? (size_t)(end - rest->data) : rest->len };
    *rest = end ? (struct bytes){ end + 1, rest->len - one.len - 1 } : BYTES_NONE;
    return one;
}

static enum api_role role_of(struct bytes text)
{
    if (bytes_eq(text, BYTES("admin")))
        return ROLE_ADMIN;
    if (bytes_eq(text, BYTES("app")))
        return ROLE_APP;
    return bytes_eq(text, BYTES("monitor")) ? ROLE_MONITOR : ROLE_NONE;
}

static bool read_digest(struct bytes hex, unsigned char out[32])
{
    if (hex.len != 64)
        return false;
    for (size_t i = 0; i < 64; i++) {
        char c = hex.data[i];
        int n = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (n < 0)
            return false;
        out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] | n : n << 4);
    }
    return true;
}

static enum pawl_status read_queues(struct arena *a, struct bytes list, struct principal *out,
                                    struct pawl_err *err)
{
    size_t n = 1;
    for (size_t i = 0; i < list.len; i++)
        n += list.data[i] == ',';
    struct bytes *v = arena_zalloc(a, n, sizeof *v);
    if (!v)
        return err_no_memory(err, "tokens");
    for (size_t i = 0; i < n; i++) {
        v[i] = part(&list, ',');
        const char *fault = name_fault(v[i]);
        if (fault)
            return err_set(err, PAWL_INVALID, "token of \"%.*s\": queue %zu %s",
                           BYTES_ARG(out->name), i + 1, fault);
    }
    out->queues = v;
    out->n_queues = n;
    return PAWL_OK;
}

/* Read `name:role:sha256[:queues]`. Errors name the client, never the rest of the line. */
static enum pawl_status read_token(struct arena *a, const char *line, struct key *out,
                                   struct pawl_err *err)
{
    struct bytes rest = arena_copy(a, bytes_of(line));
    if (!rest.data)
        return err_no_memory(err, "tokens");
    *out = (struct key){ 0 };
    out->who.name = part(&rest, ':');
    const char *fault = name_fault(out->who.name);
    if (fault)
        return err_set(err, PAWL_INVALID, "a token line's name %s", fault);
    struct bytes role = part(&rest, ':');
    out->who.role = role.data ? role_of(role) : ROLE_NONE;
    if (!out->who.role)
        return err_set(
            err, PAWL_INVALID,
            "token of \"%.*s\": role \"%.*s\" is unknown; expected app, monitor or admin",
            BYTES_ARG(out->who.name), (int)MIN(role.len, 40), role.data ? role.data : "");
    struct bytes digest = part(&rest, ':');
    if (!digest.data || !read_digest(digest, out->digest))
        return err_set(err, PAWL_INVALID,
                       "token of \"%.*s\": its third part is not a SHA-256 of 64 hex digits",
                       BYTES_ARG(out->who.name));
    return rest.data ? read_queues(a, rest, &out->who, err) : PAWL_OK;
}

enum pawl_status auth_check_token(const char *line, struct pawl_err *err)
{
    struct arena a;
    struct key key;
    arena_init(&a, DOORS_LEN_MAX);
    enum pawl_status st = read_token(&a, line, &key, err);
    arena_release(&a);
    return st;
}

static enum pawl_status copy_list(struct arena *a, const char *const *v, size_t n,
                                  struct bytes **out, struct pawl_err *err)
{
    *out = arena_zalloc(a, n ? n : 1, sizeof **out);
    for (size_t i = 0; *out && i < n; i++)
        (*out)[i] = arena_copy(a, bytes_of(v[i]));
    return a->failed ? err_no_memory(err, "origins and hosts") : PAWL_OK;
}

static enum pawl_status fill(struct auth *d, const struct api_conf *conf, struct pawl_err *err)
{
    d->keys = arena_zalloc(&d->arena, conf->n_tokens ? conf->n_tokens : 1, sizeof *d->keys);
    enum pawl_status st = d->keys ? PAWL_OK : err_no_memory(err, "tokens");
    for (size_t i = 0; st == PAWL_OK && i < conf->n_tokens; i++)
        st = read_token(&d->arena, conf->tokens[i], &d->keys[i], err);
    d->n_keys = conf->n_tokens;
    d->n_origins = conf->n_origins;
    d->n_hosts = conf->n_hosts;
    if (st == PAWL_OK)
        st = copy_list(&d->arena, conf->origins, conf->n_origins, &d->origins, err);
    return st == PAWL_OK ? copy_list(&d->arena, conf->hosts, conf->n_hosts, &d->hosts, err) : st;
}

enum pawl_status auth_open(const struct api_conf *conf, struct auth **out, struct pawl_err *err)
{
    struct auth *d = mem_zalloc(sizeof *d);
    if (!d)
        return err_no_memory(err, "tokens");
    arena_init(&d->arena, DOORS_LEN_MAX);
    enum pawl_status st = fill(d, conf, err);
    if (st == PAWL_OK)
        *out = d;
    else
        auth_close(d);
    return st;
}

void auth_close(struct auth *d)
{
    if (!d)
        return;
    arena_release(&d->arena);
    mem_free(d);
}

/* ---- Web pages ------------------------------------------------------------------------------- */

static bool same_case(struct bytes a, struct bytes b)
{
    return a.len == b.len && !strncasecmp(a.data, b.data, a.len);
}

static bool in_list(const struct bytes *v, size_t n, struct bytes one)
{
    for (size_t i = 0; i < n; i++)
        if (same_case(v[i], one))
            return true;
    return false;
}

struct bytes auth_origin(const struct auth *d, const struct http_request *r)
{
    struct bytes origin = d->n_origins ? http_header(r, "origin") : BYTES_NONE;
    return origin.data && in_list(d->origins, d->n_origins, origin) ? origin : BYTES_NONE;
}

/* Refuse an Origin that is neither the server's own nor allowed by a setting: a web page of another
 * site. */
static enum pawl_status check_origin(const struct auth *d, const struct http_request *r,
                                     struct pawl_err *err)
{
    struct bytes origin = http_header(r, "origin"), host = http_header(r, "host");
    if (!origin.data || in_list(d->origins, d->n_origins, origin))
        return PAWL_OK;
    struct bytes scheme = r->tls ? BYTES("https://") : BYTES("http://");
    if (http_header_count(r, "origin") == 1 && host.len && origin.len == scheme.len + host.len &&
        !memcmp(origin.data, scheme.data, scheme.len) &&
        same_case((struct bytes){ origin.data + scheme.len, host.len }, host))
        return PAWL_OK;
    return err_set(
        err, PAWL_FORBIDDEN,
        "web pages of %.*s may not use this server; the setting `origins` can allow them",
        (int)MIN(origin.len, 120), origin.data);
}

/* The name without its port and brackets. */
static struct bytes host_name(struct bytes host)
{
    if (host.len && host.data[0] == '[') {
        const char *end = memchr(host.data, ']', host.len);
        return end ? (struct bytes){ host.data + 1, (size_t)(end - host.data - 1) } : host;
    }
    const char *colon = host.len ? memchr(host.data, ':', host.len) : NULL;
    return colon ? (struct bytes){ host.data, (size_t)(colon - host.data) } : host;
}

static bool is_address(struct bytes name)
{
    char text[64];
    unsigned char to[16];
    if (!name.len || name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = 0;
    return inet_pton(AF_INET, text, to) == 1 || inet_pton(AF_INET6, text, to) == 1;
}

/* Without tokens, refuse a host name that is not known to be ours: another site's DNS may point at
 * us (DNS rebinding). */
static enum pawl_status check_host(const struct auth *d, const struct http_request *r,
                                   struct pawl_err *err)
{
    struct bytes host = http_header(r, "host"), name = host_name(host);
    if (d->n_keys || r->unix_socket || !host.data)
        return PAWL_OK; /* Every browser sends a Host header, so this is no browser. */
    if (is_address(name) || same_case(name, BYTES("localhost")) ||
        in_list(d->hosts, d->n_hosts, name))
        return PAWL_OK;
    return err_set(err, PAWL_FORBIDDEN,
                   "host name %.*s is not one of this server; the setting `hosts` can add it",
                   (int)MIN(name.len, 120), name.data);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static bool same_digest(const unsigned char a[32], const unsigned char b[32])
{
    unsigned char differ = 0;
    for (size_t i = 0; i < 32; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

static const struct key *find_key(const struct auth *d, struct bytes token)
{
    unsigned char digest[32];
    const struct key *found = NULL;
    if (!digest_plain(token, digest))
        return NULL;
    for (size_t i = 0; i < d->n_keys; i++)
        if (same_digest(d->keys[i].digest, digest))
            found = &d->keys[i];
    return found;
}

static struct bytes bearer(const struct http_request *r)
{
    struct bytes h = http_header(r, "authorization");
    if (h.len < 8 || strncasecmp(h.data, "bearer ", 7) || http_header_count(r, "authorization") > 1)
        return BYTES_NONE;
    struct bytes token = { h.data + 7, h.len - 7 };
    while (token.len && token.data[0] == ' ')
        token = (struct bytes){ token.data + 1, token.len - 1 };
    return token;
}

static enum pawl_status copy_principal(struct arena *a, const struct principal *who,
                                       struct principal *out, struct pawl_err *err)
{
    *out = *who;
    out->name = arena_copy(a, who->name);
    struct bytes *v = who->n_queues ? arena_zalloc(a, who->n_queues, sizeof *v) : NULL;
    for (size_t i = 0; v && i < who->n_queues; i++)
        v[i] = arena_copy(a, who->queues[i]);
    out->queues = v;
    return a->failed ? err_no_memory(err, "a token") : PAWL_OK;
}

enum pawl_status auth_check(const struct auth *d, struct http_request *r, unsigned may,
                            struct principal *out, struct pawl_err *err)
{
    enum pawl_status st = check_origin(d, r, err);
    if (st == PAWL_OK)
        st = check_host(d, r, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct principal){ .role = d->n_keys ? ROLE_NONE : ROLE_ADMIN };
    if (!d->n_keys)
        return PAWL_OK;
    struct bytes token = bearer(r);
    const struct key *k = token.len ? find_key(d, token) : NULL;
    if (k)
        st = copy_principal(&r->arena, &k->who, out, err);
    if (st != PAWL_OK || may & MAY_OPEN)
        return st;
    if (!k)
        return err_set(err, PAWL_UNAUTHORIZED, "%s",
                       token.len
                           ? "this token is unknown; the setting `tokens` lists those that are "
                             "known"
                           : "a token is missing: send Authorization: Bearer TOKEN (pawl: set "
                             "PAWL_TOKEN)");
    if (out->role == ROLE_ADMIN || may & 1u << out->role)
        return PAWL_OK;
    return err_set(err, PAWL_FORBIDDEN, "token \"%.*s\" (%s) may not %s %.*s", BYTES_ARG(out->name),
                   out->role == ROLE_APP ? "app" : "monitor", http_method_name(r->method),
                   (int)MIN(r->path.len, 120), r->path.data);
}

/* ---- What a principal may see ---------------------------------------------------------------- */

bool principal_sees(const struct principal *who, struct bytes client)
{
    return who->role != ROLE_APP || bytes_eq(who->name, client);
}

bool principal_works(const struct principal *who, struct bytes queue)
{
    for (size_t i = 0; i < who->n_queues; i++)
        if (bytes_eq(who->queues[i], queue))
            return true;
    return !who->n_queues;
}
