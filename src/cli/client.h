/*
 * client.h - a small blocking HTTP/1.1 client for the client commands.
 *
 * It connects to http://, https:// (OpenSSL, with certificate checks) and unix:PATH, keeps one
 * connection alive, and gives every request a deadline. A struct client belongs to one thread; only
 * client_leave() may be called from another.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/cli.h"

struct client;

/* Parse the URL and keep the token; the first request connects. Strings are copied. INVALID: the
 * URL or the token is malformed. */
MUST_USE enum pawl_status client_open(const char *url, const char *token, struct client **out,
                                      struct pawl_err *err);
/* The same with the server and the token from the settings. */
MUST_USE enum pawl_status client_of(const struct cli *cli, struct client **out,
                                    struct pawl_err *err);
/* Close the connection and free the client; accepts NULL. */
void client_close(struct client *c);
/* The same for AUTO(). */
void client_end(struct client **c);

struct client_ask {
    const char *method; /* NULL: GET */
    const char *path;   /* with its query, percent-encoded */
    struct bytes body;
    const char *type;   /* of the body; NULL: application/json */
    const char *header; /* one more header, "If-Match: \"7\""; NULL: none */
    int64_t wait_us;    /* how long the server may wait before it answers; adds to the deadline */
    int *out_http;      /* where client_json() puts the HTTP status; NULL: nowhere */
    bool once;          /* not safe to send twice: a lost answer is UNKNOWN at once */
    /* For client_json(), what Pawl always answers to this request; one of them is set. */
    const char *list; /* a member that is an array; NULL: none */
    const char *has;  /* "id status": members that are a string, a number, true or false, of the
                         answer or, with `list`, of each object in it; NULL: not looked at */
    bool any;         /* the answer is a value of a user: any JSON */
};

struct client_answer {
    int status;
    struct bytes body; /* in the arena */
};

/* Send a request and read the answer, whatever its HTTP status. Reconnects when the server has
 * closed an idle connection. BUSY: no connection, and no writing request was sent; INVALID: the
 * other side is not an HTTP server, or uses TLS when the URL does not, or the reverse; UNKNOWN: the
 * request was sent and its answer was lost. */
MUST_USE enum pawl_status client_send(struct client *c, struct arena *a,
                                      const struct client_ask *ask, struct client_answer *out,
                                      struct pawl_err *err);
/* The same for a JSON answer, in the arena. An HTTP status of 400 and above becomes the error that
 * the body describes. BROKEN: the answer is not one of Pawl, so another program listens there. */
MUST_USE enum pawl_status client_json(struct client *c, struct arena *a,
                                      const struct client_ask *ask, struct json **out,
                                      struct pawl_err *err);
/* Any thread: shut down our side of a connection without TLS, so that the server answers a waiting
 * request at once. Does nothing on a TLS connection. */
void client_leave(struct client *c);

/* Append `name` percent-encoded, as one path segment or one query value. A name in a path comes
 * from remote_path(), which checks it. */
void url_add(struct buf *b, struct bytes name);

/* ---- client_head.c: pure --------------------------------------------------------------------- */

struct client_head {
    int status;
    int64_t length; /* Content-Length; -1: none */
    bool chunked, close;
};
/* Parse the head of an answer at the front of `text`. Returns its length; 0: it is not complete
 * yet; -1: it is not HTTP. */
long head_read(struct bytes text, struct client_head *out);
/* Add the bytes of all complete chunks at the front of `text` to `out`. Returns how many bytes of
 * `text` they took, or -1 for an invalid chunk; *out_over: the last chunk and the trailers are
 * read. */
long chunks_read(struct bytes text, struct buf *out, bool *out_over);

/* ---- client_answer.c: pure ------------------------------------------------------------------- */

/* Does the answer have what `ask` says that Pawl always answers? If not, `why` says what is wrong:
 * "it has no \"id\"". */
bool answer_fits(const struct json *v, const struct client_ask *ask, char *why, size_t size);

/* ---- client_wire.c: a connection ------------------------------------------------------------- */

struct client_url {
    char host[256], port[8], prefix[256], path[108]; /* path: of a unix socket, else "" */
    bool tls;
};
/* Parse http://HOST[:PORT][/PREFIX], https://... or unix:PATH. INVALID: the message quotes the URL
 * without secrets. */
MUST_USE enum pawl_status client_url_parse(const char *url, struct client_url *out,
                                           struct pawl_err *err);

#define CLIENT_URL_TEXT_MAX 560
/* Write the URL as a user would: "https://host:7295/prefix" or "unix:PATH". */
void client_url_text(const struct client_url *url, char *out, size_t size);

/* Set INVALID: "the server at host:7295 SPEAKS; use --url URL", with http:// and https:// exchanged
 * in the URL. `speaks` is "speaks TLS" or "does not speak TLS". Not for a unix socket. */
enum pawl_status client_url_advice(const struct client_url *url, const char *speaks,
                                   struct pawl_err *err);

struct wire;
/* Connect, with a TLS handshake for https://, until `until_us` (monotonic). BUSY: no server
 * answers, or its certificate is not trusted; INVALID: https:// and the server does not use TLS. */
MUST_USE enum pawl_status wire_open(const struct client_url *url, int64_t until_us,
                                    struct wire **out, struct pawl_err *err);
/* Close the connection and free it; accepts NULL. */
void wire_close(struct wire *w);
/* Send all bytes; false on an error or when the time is up. */
MUST_USE bool wire_write(struct wire *w, struct bytes data, int64_t until_us);
/* Read up to max bytes. Returns their number; 0: the end of the stream; -1: an error, or the time
 * is up. */
MUST_USE long wire_read(struct wire *w, char *to, size_t max, int64_t until_us);
/* Does a TLS handshake with this server succeed, with any certificate? For http:// URLs. */
bool wire_speaks_tls(const struct client_url *url, int64_t until_us);
/* Is this a TLS connection? */
bool wire_secure(const struct wire *w);
/* Has the server closed the connection while it was idle? False when that is not known: over TLS,
 * or before the end has arrived. */
bool wire_ended(const struct wire *w);
/* Shut down our side; the server's answer can still be read. Does nothing on a TLS connection. */
void wire_half_close(struct wire *w);

#endif
