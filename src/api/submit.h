/*
 * submit.h - accepting one call, and answering with it when it ends or its time is up.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_SUBMIT_H
#define API_SUBMIT_H

#include "api/ask_io.h"
#include "api/wait.h"

/* Stands at the head of a route's own struct, made on q->a and zeroed. Set spec (completed), and if
 * needed `show` and `late`; the rest is submit.c's. */
struct submit {
    struct ask_write write; /* first */
    struct call_spec spec;
    struct wait wait;
    unsigned show; /* more of SHOW_... */
    /* Its time is up and it has not ended: must end the ask. NULL: answer with the call as it is.
     */
    void (*late)(struct submit *s, bool duplicate);
    bool waits;   /* it was entered into the table of waiters */
    bool settled; /* the accept is answered */
    bool over;    /* nothing comes from the wait any more */
    bool told;    /* wait.call is the call as it ended */
    bool fresh;   /* answered without an announcement: stored, pending */
};
/* Store the call, wait up to wait_us for its end, and answer. Ends the ask, now or later. */
void submit_begin(struct ask *q, struct submit *s, int64_t wait_us);

/* Hide another client's call from an app: its id is a conflict, and the answer says nothing more.
 */
void accepted_hide(const struct ask *q, struct accepted *r);
/* Write the sentence for a refused accept. */
void accepted_text(const struct call_spec *s, const struct accepted *r, char *out, size_t size);

struct signal_spec;
/* Accept the call unless it exists, and signal it, in one commit; answer with the call, after
 * wait_us when it has ended. `spec` is on q->a. workflow_change.c. */
void submit_signal(struct ask *q, const struct call_spec *spec, const struct signal_spec *signal,
                   int64_t wait_us);

#endif
