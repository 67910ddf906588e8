/*
 * client.h - a small blocking HTTP/1.1 client: the CLI speaks to the server like anybody else.
 *
 * http://, https:// (OpenSSL, certificates checked) and unix:PATH; one connection, kept alive;
 * every request has a deadline. A struct client belongs to one thread; client_leave() alone may be
 * called from another.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/cli.h"

struct client;

/* Parses the URL and remembers the token; connects with the first request. Strings are copied. */
MUST_USE enum pawl_status client_open(const char *url, const char *token, struct client **out,
                                      struct pawl_err *err);
/* The server and token of the settings. */
MUST_USE enum pawl_status client_of(const struct cli *cli, struct client **out,
                                    struct pawl_err *err);
void client_close(struct client *c); /* accepts NULL */
void client_end(struct client **c);  /* for AUTO */

struct client_ask {
    const char *method; /* NULL: GET */
    const char *path;   /* with its query, percent-encoded */
    struct bytes body;
    const char *type;   /* of the body; NULL: application/json */
    const char *header; /* one more, "If-Match: \"7\""; NULL: none */
    int64_t wait_us;    /* how long the server may take to answer, beyond the usual */
    bool once;          /* not safe to send twice: an answer that was lost is UNKNOWN at once */
};

struct client_answer {
    int status;
    struct bytes body; /* in the arena */
};

/* Send and read the answer, whatever its status. A kept connection that the server has closed
 * meanwhile is opened again. BUSY: there is no connection, and nothing that writes was sent;
 * INVALID: what answers does not speak HTTP, or not the http:// or https:// of the URL; UNKNOWN: it
 * was sent, and the answer was lost. */
MUST_USE enum pawl_status client_send(struct client *c, struct arena *a,
                                      const struct client_ask *ask, struct client_answer *out,
                                      struct pawl_err *err);
/* The same for JSON: an answer of 400 and above is the error that its body describes. out_http may
 * be NULL. */
MUST_USE enum pawl_status client_json(struct client *c, struct arena *a,
                                      const struct client_ask *ask, struct json **out,
                                      int *out_http, struct pawl_err *err);
/* Any thread: end our side of a plain connection, so that a request which waits there is answered
 * now. Does nothing to TLS. */
void client_leave(struct client *c);

/* `name` as one segment of a path or one value of a query. */
void url_add(struct buf *b, struct bytes name);

/* ---- client_head.c: pure --------------------------------------------------------------------- */

struct client_head {
    int status;
    int64_t length; /* -1: not said */
    bool chunked, close;
};
/* The head of an answer at the front of `text`: its length; 0: there is more to come; -1: this is
 * not HTTP. */
long head_read(struct bytes text, struct client_head *out);
/* Take as many whole chunks off the front of `text` as are there and add their bytes to `out`.
 * Returns how much was taken, or -1; *out_over: the last chunk and the trailers were. */
long chunks_read(struct bytes text, struct buf *out, bool *out_over);

/* ---- client_wire.c: a connection ------------------------------------------------------------- */

struct client_url {
    char host[256], port[8], prefix[256], path[108]; /* path: of a unix socket, else "" */
    bool tls;
};
MUST_USE enum pawl_status client_url_parse(const char *url, struct client_url *out,
                                           struct pawl_err *err);

#define CLIENT_URL_TEXT_MAX 560
/* "https://host:7295/prefix" or "unix:PATH", as the user would write it. */
void client_url_text(const struct client_url *url, char *out, size_t size);

/* INVALID: "the server at host:7295 SPEAKS; use --url URL", the URL with the other of http:// and
 * https://. Not for a unix socket. */
enum pawl_status client_url_advice(const struct client_url *url, const char *speaks,
                                   struct pawl_err *err);

struct wire;
/* until_us is monotonic. BUSY: nobody answers, or the certificate is not trusted; INVALID: https://
 * where there is no TLS. */
MUST_USE enum pawl_status wire_open(const struct client_url *url, int64_t until_us,
                                    struct wire **out, struct pawl_err *err);
void wire_close(struct wire *w); /* accepts NULL */
MUST_USE bool wire_write(struct wire *w, struct bytes data, int64_t until_us);
/* Bytes read; 0: the other side has ended; -1: an error, or the time is up. */
MUST_USE long wire_read(struct wire *w, char *to, size_t max, int64_t until_us);
/* Does a TLS handshake at this address succeed, whatever its certificate? For http:// URLs. */
bool wire_speaks_tls(const struct client_url *url, int64_t until_us);
bool wire_secure(const struct wire *w);
/* Has the other side closed it while it was idle? What is sent now would not be read. False when
 * that is not known: over TLS, or when the end is still on its way. */
bool wire_ended(const struct wire *w);
void wire_half_close(struct wire *w);

#endif
