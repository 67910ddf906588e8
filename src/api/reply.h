/*
 * reply.h - answering a request: JSON from a buffer, and every error in the one shape of the
 * contract.
 *
 * Loop thread. Each ask_reply*(), ask_refuse*(), ask_fail*() and ask_no_memory() ends the ask: it
 * and its memory are gone when the call returns.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_REPLY_H
#define API_REPLY_H

#include "api/ask.h"
#include "model/call.h"

/* The api's one buffer for answers, emptied. Fill it and hand it to ask_reply() before returning to
 * the loop; another request may use it after that. */
struct buf *ask_buf(struct ask *q);
/* Answer with JSON from ask_buf() or any other buffer; a buffer that failed answers 503. */
void ask_reply(struct ask *q, int status, struct buf *b);
/* The same with more headers, at most 8. */
void ask_reply_with(struct ask *q, int status, struct buf *b, const struct http_header *headers,
                    size_t n);
/* Answer with anything else: text, raw results, pages. All answers go through it, and are audited
 * here. */
void ask_reply_raw(struct ask *q, const struct http_reply *reply);

/* What an error answer says. Zero and absent members are null in it. */
struct refusal {
    enum pawl_status status;
    const char *text;      /* NULL or "": the status's own; a text about a field fills `field` */
    struct bytes id;       /* which call */
    enum pawl_state state; /* the call's state; 0: not about one */
    bool indexed;          /* a batch: `index` says which of its calls */
    size_t index;
    const struct call *times; /* GONE: when it was made and when it ended; NULL: none */
    const struct call *call;  /* shown whole as `call`; NULL: none */
    unsigned show;            /* SHOW_... of it (call_json.h) */
};
/* Answer with an error. */
void ask_refuse(struct ask *q, const struct refusal *why);
/* Answer with the error that a function left in err. */
void ask_fail(struct ask *q, const struct pawl_err *err);
/* The same, about a call. */
void ask_fail_id(struct ask *q, const struct pawl_err *err, struct bytes id);
/* Answer with an error from a format. */
void ask_refusef(struct ask *q, enum pawl_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Answer that there is no memory for this request: 503. */
void ask_no_memory(struct ask *q);

/* Answer the client with an error now, while the ask goes on without it, as if the client had gone.
 * Does nothing for a client that has had its answer or has left. */
void ask_unknown(struct ask *q, const struct pawl_err *err, struct bytes id);

/* Append `{"code":...}` without the "error" around it, for one call of a batch. */
void refusal_add(struct buf *b, const struct refusal *why);
/* The field that a text names, if it begins `field "x": ` or is an unknown_word(); else absent. */
struct bytes refusal_field(const char *text);

#endif
