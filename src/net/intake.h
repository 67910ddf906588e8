/*
 * intake.h - one request on its way in: bytes of any cut become a struct http_request.
 *
 * Knows no socket, so the fuzzer drives it as it is. The head is gathered first and parsed in one
 * piece; what comes out therefore never depends on how the bytes were cut. Loop thread.
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
    INTAKE_TRAILER, /* behind the last chunk; dropped */
    INTAKE_DONE,
    INTAKE_BAD,
};

/* What the intakes of one server share. */
struct intake_rules {
    struct http_limits limits;
    size_t (*body_max)(const struct http_request *r, void *ctx);
    void *ctx;
    size_t held_len; /* bodies now in memory */
};

struct intake {
    struct http_request request; /* first, so that one is the other */
    struct http_server *server;  /* the connection's own; NULL in the fuzzer */
    struct intake_rules *rules;  /* borrowed */
    llhttp_t machine;
    enum intake_state state;
    struct buf head, body; /* what request points into */
    struct lines lines;
    struct http_header *headers; /* request.headers, while it is filled */
    struct bytes method, target;
    size_t body_max, ext_len;
    uint64_t body_seen;
    bool http10, http11, keep_alive, chunked, complete;
    bool expects; /* the client waits for 100 before it sends its body */
    int bad;      /* INTAKE_BAD: the status to answer, and why */
    const char *bad_text;
};

static inline struct intake *intake_of(struct http_request *r)
{
    return (struct intake *)r;
}

void intake_init(struct intake *i, struct intake_rules *rules);
/* Ready for the next request; keeps some memory. */
void intake_reset(struct intake *i);
void intake_release(struct intake *i);

/* Take bytes; returns how many. Stops at the end of the head, so that 100 can be sent, and of the
 * request. In DONE and BAD it takes none. */
size_t intake_feed(struct intake *i, struct bytes in);
/* True once a byte of the request has come. */
static inline bool intake_begun(const struct intake *i)
{
    return i->lines.len > 0;
}

/* head.c: what llhttp leaves to its user, once the head is parsed. False: i->bad says why. */
MUST_USE bool head_check(struct intake *i);
bool intake_fail(struct intake *i, int status, const char *text);

#endif
