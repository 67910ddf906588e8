/*
 * guard.c - access from other machines: it needs tokens.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "api/auth.h"
#include "base/err.h"
#include "base/text.h"
#include "server/server.h"

bool guard_loopback(const char *listen)
{
    char host[64];
    struct in6_addr six;
    const char *colon = strrchr(listen, ':');
    if (strncmp(listen, "unix:", 5) == 0)
        return true;
    if (!colon || (size_t)(colon - listen) >= sizeof(host))
        return false;
    bool bracket = listen[0] == '[' && colon > listen + 1 && colon[-1] == ']';
    const char *from = listen + bracket, *end = colon - bracket;
    snprintf(host, sizeof(host), "%.*s", (int)(end - from), from);
    struct in_addr four;
    if (inet_pton(AF_INET, host, &four) == 1)
        return (ntohl(four.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return strcmp(host, "localhost") == 0;
}

/* ADDR:PORT or unix:PATH; a host name is resolved only when the server listens on it. */
static enum pawl_status check_form(const char *listen, struct pawl_err *err)
{
    const char *colon = strrchr(listen, ':'), *port = colon ? colon + 1 : "";
    size_t digits = strspn(port, "0123456789");
    if (strncmp(listen, "unix:", 5) == 0 && listen[5])
        return PAWL_OK;
    if (!colon || colon == listen || !digits || port[digits])
        return err_set(err, PAWL_INVALID,
                       "setting \"listen\": \"%.100s\" is not ADDR:PORT, [ADDR]:PORT or unix:PATH",
                       listen);
    int64_t number = 0;
    if (!int_parse(bytes_of(port), &number) || number > 65535)
        return err_set(err, PAWL_INVALID, "setting \"listen\": \"%.100s\": port must be 0 to 65535",
                       listen);
    return PAWL_OK;
}

/* The API reads them too, but does not know the file and the line. */
enum pawl_status guard_tokens(const struct settings *s, struct pawl_err *err)
{
    const struct setting_value *v = &s->v[SET_TOKENS];
    for (size_t i = 0; i < v->n_items; i++) {
        enum pawl_status st = auth_check_token(v->items[i], err);
        if (st != PAWL_OK) {
            setting_blame(s, SET_TOKENS, i, err);
            return st;
        }
    }
    return PAWL_OK;
}

enum pawl_status guard_listen(const struct settings *s, struct pawl_err *err)
{
    const char *listen = s->v[SET_LISTEN].text;
    enum pawl_status st = check_form(listen, err);
    if (st != PAWL_OK) {
        setting_blame(s, SET_LISTEN, 0, err);
        return st;
    }
    if (s->v[SET_TOKENS].n_items || guard_loopback(listen))
        return PAWL_OK;
    return err_set(err, PAWL_FORBIDDEN,
                   "setting \"listen\": %.100s can be reached from other machines, and no tokens "
                   "are set; `pawl token new NAME admin` makes one and prints the line for "
                   "`tokens` in pawl.conf, or listen on 127.0.0.1",
                   listen);
}
