/*
 * tls.c - TLS 1.2 and later between buffers in memory; sockets and time belong to the connection.
 *
 * OpenSSL reads from one memory BIO and writes to another. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/server.h"

struct tls_server {
    SSL_CTX *ctx;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* borrowed from ssl */
    bool broken;
};

/* ---- Certificate and key --------------------------------------------------------------------- */

/* Only HTTP/1.1 is offered; a client that offers only other protocols is refused. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *ctx)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* OpenSSL's last error is the outermost one: "system lib" for a missing file. */
static enum pawl_status tls_err(struct pawl_err *err, const char *what, const char *file)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    int cannot_read = access(file, R_OK) == 0 ? 0 : errno;
    ERR_clear_error();
    if (cannot_read)
        reason = strerror(cannot_read);
    else if (ERR_GET_LIB(code) == ERR_LIB_PEM || ERR_GET_REASON(code) == ERR_R_PEM_LIB)
        reason = "not a PEM file of that kind";
    return err_set(err, PAWL_INVALID, "TLS %s \"%s\": %s", what, file,
                   reason ? reason : "cannot be used");
}

static enum pawl_status ctx_load(SSL_CTX *ctx, const char *cert, const char *key,
                                 struct pawl_err *err)
{
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return tls_err(err, "certificate", cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return tls_err(err, "key", key);
    return PAWL_OK;
}

enum pawl_status tls_server_open(const char *cert, const char *key, struct tls_server **out,
                                 struct pawl_err *err)
{
    struct tls_server *t = mem_zalloc(sizeof *t);
    if (!t)
        return err_no_memory(err, "TLS");
    t->ctx = SSL_CTX_new(TLS_server_method());
    if (!t->ctx) {
        mem_free(t);
        return err_no_memory(err, "TLS");
    }
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(t->ctx, on_alpn, NULL);
    enum pawl_status st = ctx_load(t->ctx, cert, key, err);
    if (st != PAWL_OK) {
        tls_server_close(t);
        return st;
    }
    *out = t;
    return PAWL_OK;
}

void tls_server_close(struct tls_server *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    mem_free(t);
}

/* ---- One connection -------------------------------------------------------------------------- */

struct tls *tls_open(struct tls_server *server)
{
    struct tls *t = mem_zalloc(sizeof *t);
    SSL *ssl = SSL_new(server->ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (!t || !ssl || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        SSL_free(ssl);
        mem_free(t);
        return NULL;
    }
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl, in, out);
    SSL_set_accept_state(ssl);
    *t = (struct tls){ ssl, in, out, false };
    return t;
}

void tls_close(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    mem_free(t);
}

bool tls_input(struct tls *t, struct http_conn *c, struct bytes in)
{
    char *plain = c->server->plain_buf;
    ERR_clear_error();
    if (t->broken || BIO_write(t->in, in.data, (int)in.len) != (int)in.len)
        return false;
    for (;;) {
        int n = SSL_read(t->ssl, plain, READ_LEN);
        if (n <= 0) {
            int why = SSL_get_error(t->ssl, n);
            if (why == SSL_ERROR_ZERO_RETURN)
                conn_eof(c);
            t->broken = why == SSL_ERROR_SSL || why == SSL_ERROR_SYSCALL;
            ERR_clear_error();
            return !t->broken;
        }
        conn_input(c, (struct bytes){ plain, (size_t)n });
        if (c->tls != t)
            return true; /* the input closed the connection, and so freed t */
    }
}

static bool drain_out(struct tls *t, struct buf *wire)
{
    char *data;
    long n = BIO_get_mem_data(t->out, &data);
    if (n > 0)
        buf_add(wire, data, (size_t)n);
    (void)BIO_reset(t->out);
    return buf_ok(wire);
}

bool tls_seal(struct tls *t, struct buf *plain, struct buf *wire)
{
    ERR_clear_error();
    size_t at = 0;
    /* Nothing is sent before the handshake is complete. */
    while (at < plain->len && !t->broken && SSL_is_init_finished(t->ssl)) {
        int n = SSL_write(t->ssl, plain->data + at, (int)MIN(plain->len - at, 1 << 20));
        if (n <= 0) {
            t->broken = true;
            ERR_clear_error();
            return false;
        }
        at += (size_t)n;
        if (!drain_out(t, wire))
            return false;
    }
    return drain_out(t, wire);
}

bool tls_pending(const struct tls *t)
{
    return BIO_pending(t->out) > 0;
}

void tls_end(struct tls *t)
{
    ERR_clear_error();
    if (!t->broken && SSL_is_init_finished(t->ssl))
        SSL_shutdown(t->ssl);
    ERR_clear_error();
}
