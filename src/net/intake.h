/*
 * intake.h - one incoming request: bytes, in pieces of any length, become a struct http_request.
 *
 * It knows no socket, so the fuzzer calls it directly. The head is collected first and parsed in
 * one piece; the result therefore never depends on where the bytes were split. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_INTAKE_H
#define NET_INTAKE_H

#include "base/buf.h"
#include "net/grammar.h"
#include "net/http.h"
#include "net/lines.h"

enum intake_state {
    INTAKE_HEAD,
    INTAKE_BODY,
    INTAKE_TRAILER, /* after the last chunk; dropped */
    INTAKE_DONE,
    INTAKE_BAD,
};

/* Shared by the intakes of one server. */
struct intake_rules {
    struct http_limits limits;
    size_t (*body_max)(const struct http_request *r, void *ctx);
    void *ctx;
    size_t held_len; /* bytes of bodies in memory now */
};

struct intake {
    struct http_request request; /* first, so that a pointer to one is a pointer to the other */
    struct http_server *server;  /* the connection's server; NULL in the fuzzer */
    struct intake_rules *rules;  /* borrowed */
    llhttp_t machine;
    enum intake_state state;
    struct buf head, body; /* the memory that `request` points into */
    struct lines lines;
    struct http_header *headers; /* request.headers, while it is filled */
    struct bytes method, target;
    size_t body_max, ext_len;
    uint64_t body_seen;
    bool http10, http11, keep_alive, chunked, complete;
    bool expects; /* the client waits for 100 before it sends its body */
    int bad;      /* INTAKE_BAD: the status to answer; bad_text says why */
    const char *bad_text;
};

static inline struct intake *intake_of(struct http_request *r)
{
    return (struct intake *)r;
}

/* Prepare an intake that shares `rules`, which are borrowed. */
void intake_init(struct intake *i, struct intake_rules *rules);
/* Make it ready for the next request; keeps some memory. */
void intake_reset(struct intake *i);
/* Free its memory, but not the struct. */
void intake_release(struct intake *i);

/* Take bytes and return how many. Stops at the end of the head, so that 100 can be sent, and at the
 * end of the request. Takes none when DONE or BAD. */
size_t intake_feed(struct intake *i, struct bytes in);
/* Has a byte of the request arrived? */
static inline bool intake_begun(const struct intake *i)
{
    return i->lines.len > 0;
}

/* head.c: check what llhttp leaves to its user, when the head is parsed. False: i->bad says why. */
MUST_USE bool head_check(struct intake *i);
/* Set INTAKE_BAD with a status and a reason, unless it is set already. Returns false. */
bool intake_fail(struct intake *i, int status, const char *text);

#endif
