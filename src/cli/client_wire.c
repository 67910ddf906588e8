/*
 * client_wire.c - one connection of the client: TCP, TLS or a unix socket, with deadlines.
 *
 * The socket is non-blocking; every wait is a poll() with the remaining time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/world.h"
#include "cli/client.h"

struct wire {
    int fd;
    SSL_CTX *ctx; /* owned; NULL: plain */
    SSL *ssl;     /* owned */
};

/* ---- URLs ------------------------------------------------------------------------------------ */

static enum pawl_status bad_url(const char *url, struct pawl_err *err)
{
    char safe[300];
    url_safe(url, safe, sizeof(safe));
    return err_set(err, PAWL_INVALID,
                   "setting \"url\": \"%.200s\" is not http://HOST:PORT, https://HOST:PORT or "
                   "unix:PATH",
                   safe);
}

static bool copy(char *to, size_t size, const char *from, size_t len)
{
    if (len >= size)
        return false;
    memcpy(to, from, len);
    to[len] = 0;
    return true;
}

/* HOST[:PORT][/PREFIX] */
static bool split(const char *at, struct client_url *out)
{
    size_t authority = strcspn(at, "/?#");
    const char *end = at + authority, *host_end, *port;
    if (memchr(at, '@', authority))
        return false; /* credentials in the URL are refused: the token identifies the client */
    if (*at == '[') {
        host_end = memchr(at, ']', authority);
        if (!host_end || (host_end + 1 < end && host_end[1] != ':'))
            return false;
        port = host_end + 1 < end ? host_end + 2 : NULL;
        at++;
    } else {
        const char *colon = memchr(at, ':', authority);
        host_end = colon ? colon : end;
        port = colon ? colon + 1 : NULL;
    }
    size_t prefix = strcspn(end, "?#");
    while (prefix && end[prefix - 1] == '/')
        prefix--;
    if (host_end == at || !copy(out->host, sizeof(out->host), at, (size_t)(host_end - at)) ||
        !copy(out->prefix, sizeof(out->prefix), end, prefix))
        return false;
    if (!port)
        return copy(out->port, sizeof(out->port), out->tls ? "443" : "80", out->tls ? 3 : 2);
    size_t digits = strspn(port, "0123456789");
    return digits && port + digits == end && copy(out->port, sizeof(out->port), port, digits);
}

enum pawl_status client_url_parse(const char *url, struct client_url *out, struct pawl_err *err)
{
    *out = (struct client_url){ 0 };
    bool ok;
    if (strncmp(url, "unix:", 5) == 0) {
        ok = url[5] && copy(out->path, sizeof(out->path), url + 5, strlen(url + 5));
        copy(out->host, sizeof(out->host), "localhost", 9);
    } else if (strncmp(url, "http://", 7) == 0) {
        ok = split(url + 7, out);
    } else {
        out->tls = true;
        ok = strncmp(url, "https://", 8) == 0 && split(url + 8, out);
    }
    return ok ? PAWL_OK : bad_url(url, err);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Wait until the socket is readable or writable; false when the time is up. */
static bool ready(int fd, short events, int64_t until_us)
{
    for (;;) {
        int64_t left_us = until_us - world_mono(&world_real);
        struct pollfd p = { .fd = fd, .events = events };
        if (left_us <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
        int n = poll(&p, 1, (int)MIN(left_us / 1000 + 1, 3600000));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* Returns a connected socket, or -1 with errno set. */
static int connect_to(const struct sockaddr *to, socklen_t len, int64_t until_us)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int failed = connect(fd, to, len) == 0 ? 0 : errno;
    if (failed == EINPROGRESS || failed == EAGAIN) {
        socklen_t size = sizeof(failed);
        if (!ready(fd, POLLOUT, until_us))
            failed = errno;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    if (!failed) {
        int one = 1;
        if (to->sa_family != AF_UNIX)
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return fd;
    }
    close(fd);
    errno = failed;
    return -1;
}

static int connect_unix(const char *path, int64_t until_us)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    memcpy(to.sun_path, path, strlen(path));
    return connect_to((struct sockaddr *)&to, sizeof(to), until_us);
}

static int connect_tcp(const struct client_url *url, int64_t until_us, const char **out_why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
    int fd = -1, rc = getaddrinfo(url->host, url->port, &hints, &all);
    if (rc != 0) {
        *out_why = gai_strerror(rc);
        return -1;
    }
    for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
        fd = connect_to(a->ai_addr, a->ai_addrlen, until_us);
    int failed = errno;
    freeaddrinfo(all);
    errno = failed;
    return fd;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Wait until the socket is ready for OpenSSL; false on an error or when the time is up. */
static bool tls_wait(struct wire *w, int rc, int64_t until_us)
{
    int what = SSL_get_error(w->ssl, rc);
    if (what == SSL_ERROR_WANT_READ)
        return ready(w->fd, POLLIN, until_us);
    if (what == SSL_ERROR_WANT_WRITE)
        return ready(w->fd, POLLOUT, until_us);
    return false;
}

/* verify false: only find out whether the server uses TLS. */
static bool tls_open(struct wire *w, const struct client_url *url, bool verify, int64_t until_us)
{
    struct in6_addr six;
    struct in_addr four;
    bool address =
        inet_pton(AF_INET, url->host, &four) == 1 || inet_pton(AF_INET6, url->host, &six) == 1;
    w->ctx = SSL_CTX_new(TLS_client_method());
    if (!w->ctx || !SSL_CTX_set_min_proto_version(w->ctx, TLS1_2_VERSION) ||
        !SSL_CTX_set_default_verify_paths(w->ctx))
        return false;
    SSL_CTX_set_verify(w->ctx, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    w->ssl = SSL_new(w->ctx);
    if (!w->ssl || !SSL_set_fd(w->ssl, w->fd))
        return false;
    if (address && !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(w->ssl), url->host))
        return false;
    if (!address &&
        (!SSL_set1_host(w->ssl, url->host) || !SSL_set_tlsext_host_name(w->ssl, url->host)))
        return false;
    for (int rc; (rc = SSL_connect(w->ssl)) != 1;)
        if (!tls_wait(w, rc, until_us))
            return false;
    return true;
}

void client_url_text(const struct client_url *url, char *out, size_t size)
{
    bool six = strchr(url->host, ':') != NULL;
    if (*url->path)
        snprintf(out, size, "unix:%s", url->path);
    else
        snprintf(out, size, "http%s://%s%s%s:%s%s", url->tls ? "s" : "", six ? "[" : "", url->host,
                 six ? "]" : "", url->port, url->prefix);
}

enum pawl_status client_url_advice(const struct client_url *url, const char *speaks,
                                   struct pawl_err *err)
{
    char here[CLIENT_URL_TEXT_MAX], there[CLIENT_URL_TEXT_MAX];
    struct client_url other = *url;
    other.tls = !url->tls;
    client_url_text(url, here, sizeof(here));
    client_url_text(&other, there, sizeof(there));
    return err_set(err, PAWL_INVALID, "the server at %s %s; use --url %s", strstr(here, "://") + 3,
                   speaks, there);
}

/* What the user can do about a certificate that was rejected. */
static const char *certificate_help(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "write --url with a name that the certificate is for";
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "renew it on the server";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "check the clocks of both machines";
    default:
        return "set SSL_CERT_FILE to a file with the certificate of its authority, or install that "
               "for the whole system";
    }
}

/* Why the handshake failed. The request was not sent. */
static enum pawl_status tls_failed(const struct wire *w, const struct client_url *url,
                                   struct pawl_err *err)
{
    char origin[CLIENT_URL_TEXT_MAX];
    long verdict = w->ssl ? SSL_get_verify_result(w->ssl) : X509_V_OK;
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    client_url_text(url, origin, sizeof(origin));
    if (verdict != X509_V_OK)
        return err_set(err, PAWL_BUSY, "the certificate of %s is not trusted: %s; %s", origin,
                       X509_verify_cert_error_string(verdict), certificate_help(verdict));
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        return client_url_advice(url, "does not speak TLS", err);
    return err_set(err, PAWL_BUSY, "the TLS handshake with %s failed: %s", origin,
                   reason ? reason : "it closed the connection or did not answer in time");
}

static enum pawl_status unreachable(const struct client_url *url, const char *why, bool no_host,
                                    struct pawl_err *err)
{
    char origin[CLIENT_URL_TEXT_MAX];
    client_url_text(url, origin, sizeof(origin));
    if (no_host)
        return err_set(err, PAWL_BUSY, "cannot reach %s: host \"%s\": %s; is --url right?", origin,
                       url->host, why);
    return err_set(err, PAWL_BUSY, "cannot reach %s: %s; is `pawl serve` running there?", origin,
                   why);
}

enum pawl_status wire_open(const struct client_url *url, int64_t until_us, struct wire **out,
                           struct pawl_err *err)
{
    const char *no_host = NULL;
    enum pawl_status st = PAWL_OK;
    struct wire *w = mem_zalloc(sizeof(*w));
    if (!w)
        return err_no_memory(err, "connecting");
    w->fd = *url->path ? connect_unix(url->path, until_us) : connect_tcp(url, until_us, &no_host);
    ERR_clear_error(); /* discard errors of earlier connections */
    if (w->fd < 0)
        st = unreachable(url, no_host ? no_host : strerror(errno), no_host != NULL, err);
    else if (url->tls && !tls_open(w, url, true, until_us))
        st = tls_failed(w, url, err);
    if (st == PAWL_OK)
        *out = w;
    else
        wire_close(w);
    return st;
}

bool wire_speaks_tls(const struct client_url *url, int64_t until_us)
{
    const char *no_host = NULL;
    if (*url->path)
        return false;
    struct wire w = { .fd = connect_tcp(url, until_us, &no_host) };
    bool speaks = w.fd >= 0 && tls_open(&w, url, false, until_us);
    SSL_free(w.ssl);
    SSL_CTX_free(w.ctx);
    if (w.fd >= 0)
        close(w.fd);
    ERR_clear_error();
    return speaks;
}

void wire_close(struct wire *w)
{
    if (!w)
        return;
    SSL_free(w->ssl);
    SSL_CTX_free(w->ctx);
    if (w->fd >= 0)
        close(w->fd);
    mem_free(w);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

bool wire_write(struct wire *w, struct bytes data, int64_t until_us)
{
    while (data.len) {
        size_t part = MIN(data.len, (size_t)1 << 20);
        long n = w->ssl ? SSL_write(w->ssl, data.data, (int)part)
                        : send(w->fd, data.data, part, MSG_NOSIGNAL);
        if (n > 0) {
            data.data += n;
            data.len -= (size_t)n;
        } else if (w->ssl
                       ? !tls_wait(w, (int)n, until_us)
                       : (errno != EAGAIN && errno != EINTR) || !ready(w->fd, POLLOUT, until_us)) {
            return false;
        }
    }
    return true;
}

long wire_read(struct wire *w, char *to, size_t max, int64_t until_us)
{
    for (;;) {
        long n =
            w->ssl ? SSL_read(w->ssl, to, (int)MIN(max, (size_t)1 << 20)) : recv(w->fd, to, max, 0);
        if (n > 0)
            return n;
        if (w->ssl) {
            if (SSL_get_error(w->ssl, (int)n) == SSL_ERROR_ZERO_RETURN)
                return 0;
            if (!tls_wait(w, (int)n, until_us))
                return -1;
        } else if (n == 0) {
            return 0;
        } else if ((errno != EAGAIN && errno != EINTR) || !ready(w->fd, POLLIN, until_us)) {
            return -1;
        }
    }
}

bool wire_secure(const struct wire *w)
{
    return w->ssl != NULL;
}

bool wire_ended(const struct wire *w)
{
    char byte;
    ssize_t n = recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void wire_half_close(struct wire *w)
{
    if (!w->ssl)
        shutdown(w->fd, SHUT_WR);
}
