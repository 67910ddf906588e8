/*
 * net_tls.c - the same server over TLS: versions, split records, large answers, closing, wrong
 * files.
 *
 * The certificate is made by the openssl command; the client is OpenSSL on a blocking socket.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/world.h"
#include "net_fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static void begin(struct net_fixture *fixture)
{
    if (system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
               "-subj /CN=localhost -keyout key.pem -out cert.pem 2>/dev/null") != 0)
        skip("no openssl command");
    net_init(fixture);
    fixture->conf.tls_cert = "cert.pem";
    fixture->conf.tls_key = "key.pem";
    fixture->conf.limits.header_us = 2 * SEC_US;
    net_begin(fixture);
    EQ_MEM(http_address(fixture->server), "https://127.0.0.1:", 18);
}

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
};

/* The handshake's result; `version` 0: the best one. */
static int client_open(struct client *c, struct net_fixture *fixture, int version)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    if (version) {
        SSL_CTX_set_security_level(c->ctx, 0);
        SSL_CTX_set_min_proto_version(c->ctx, version);
        SSL_CTX_set_max_proto_version(c->ctx, version);
    }
    c->ssl = SSL_new(c->ctx);
    c->fd = net_connect(fixture);
    SSL_set_fd(c->ssl, c->fd);
    SSL_set_alpn_protos(c->ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    return SSL_connect(c->ssl);
}

static void client_close(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    ERR_clear_error();
}

static void say(struct client *c, const char *text)
{
    EQ_INT(SSL_write(c->ssl, text, (int)strlen(text)), strlen(text));
}

/* Read up to `want` bytes of body. */
static size_t read_answer(struct client *c, const char *has, size_t want)
{
    static char data[8 << 20];
    size_t len = 0;
    char *body = NULL;
    while (!body || len < (size_t)(body - data) + want) {
        int n = SSL_read(c->ssl, data + len, (int)(sizeof data - 1 - len));
        GT_INT(n, 0);
        len += (size_t)n;
        data[len] = 0;
        body = strstr(data, "\r\n\r\n");
        body = body ? body + 4 : NULL;
    }
    HAS_STR(data, has);
    return len - (size_t)(body - data);
}

TEST(serves_over_tls)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    struct net_fixture fixture;
    begin(&fixture);
    for (int i = 0; i < 2; i++) {
        struct client c;
        EQ_INT(client_open(&c, &fixture, versions[i]), 1);
        EQ_INT(SSL_version(c.ssl), versions[i]);
        const unsigned char *alpn;
        unsigned alpn_len;
        SSL_get0_alpn_selected(c.ssl, &alpn, &alpn_len);
        EQ_BYTES(alpn, alpn_len, "http/1.1", 8);
        say(&c, GET("/dump"));
        EQ_UINT(read_answer(&c, "GET /dump\n", 17), 17);
        say(&c, GET("/big/5000000"));
        EQ_UINT(read_answer(&c, "Content-Length: 5000000\r\n", 5000000), 5000000);
        say(&c, GET("/big/1") GET("/close"));
        read_answer(&c, "Connection: close\r\n", 1);
        char byte;
        EQ_INT(SSL_read(c.ssl, &byte, 1), 0);
        /* Close_notify, not a broken connection. */
        EQ_INT(SSL_get_error(c.ssl, 0), SSL_ERROR_ZERO_RETURN);
        client_close(&c);
    }
    net_end(&fixture);
}

TEST(refuses_old_versions)
{
    struct net_fixture fixture;
    struct client c;
    begin(&fixture);
    EQ_INT(client_open(&c, &fixture, TLS1_1_VERSION), -1);
    client_close(&c);
    EQ_INT(client_open(&c, &fixture, 0), 1);
    client_close(&c);
    net_end(&fixture);
}

TEST(large_bodies_and_byte_sized_records)
{
    struct net_fixture fixture;
    struct client c;
    begin(&fixture);
    EQ_INT(client_open(&c, &fixture, 0), 1);
    static const char text[] = "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    for (size_t i = 0; i < sizeof text - 1; i++)
        EQ_INT(SSL_write(c.ssl, text + i, 1), 1);
    read_answer(&c, "content-length=5\nhello", 10);
    say(&c, "POST /dump HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
    static char body[3000000];
    memset(body, 'b', sizeof body);
    EQ_INT(SSL_write(c.ssl, body, sizeof body), sizeof body);
    read_answer(&c, "content-length=3000000\nbbb", 3000000);
    client_close(&c);
    net_end(&fixture);
}

TEST(notices_who_leaves_and_who_says_goodbye)
{
    struct net_fixture fixture;
    struct client c;
    begin(&fixture);
    EQ_INT(client_open(&c, &fixture, 0), 1);
    say(&c, GET("/park"));
    NET_UNTIL(fixture.n_parked == 1);
    client_close(&c); /* closes the socket without close_notify */
    NET_UNTIL(fixture.n_gone == 1);
    net_release(&fixture);
    EQ_INT(client_open(&c, &fixture, 0), 1);
    say(&c, GET("/leave"));
    NET_UNTIL(fixture.n_parked == 1);
    SSL_shutdown(c.ssl); /* half-closed: it still reads */
    read_answer(&c, "left", 4);
    client_close(&c);
    net_end(&fixture);
}

TEST(survives_what_is_not_tls)
{
    struct net_fixture fixture;
    begin(&fixture);
    int fd = net_connect(&fixture);
    net_say(fd, GET("/dump"));
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ; /* perhaps an alert, then the end */
    close(fd);
    fd = net_connect(&fixture); /* half a handshake, then nothing */
    net_send(fd, "\x16\x03\x01\x02\x00\x01", 6);
    close(fd);
    struct client c;
    EQ_INT(client_open(&c, &fixture, 0), 1);
    BIO_write(SSL_get_wbio(c.ssl), "garbage in the middle of it all", 31);
    EQ_INT(SSL_read(c.ssl, &byte, 1) > 0, 0);
    client_close(&c);
    EQ_INT(client_open(&c, &fixture, 0), 1);
    say(&c, GET("/dump"));
    read_answer(&c, "GET /dump\n", 17);
    client_close(&c);
    EQ_INT(fixture.n_requests, 1);
    net_end(&fixture);
}

static void refused_as(struct net_fixture *fixture, const char *cert, const char *key,
                       const char *text)
{
    struct pawl_err err;
    struct http_server *s;
    fixture->conf.tls_cert = cert;
    fixture->conf.tls_key = key;
    EQ_STATUS(http_open(fixture->loop, &fixture->conf, &s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, text);
}

TEST(refuses_wrong_files)
{
    struct net_fixture fixture;
    begin(&fixture);
    refused_as(&fixture, "cert.pem", NULL, "both");
    refused_as(&fixture, NULL, "key.pem", "both");
    refused_as(&fixture, "none.pem", "key.pem",
               "certificate \"none.pem\": No such file or directory");
    refused_as(&fixture, "cert.pem", "none.pem", "key \"none.pem\": No such file or directory");
    refused_as(&fixture, "key.pem", "key.pem",
               "certificate \"key.pem\": not a PEM file of that kind");
    refused_as(&fixture, "cert.pem", "cert.pem", "key \"cert.pem\": not a PEM file of that kind");
    net_end(&fixture);
}
