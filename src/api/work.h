/*
 * work.h - claims over HTTP: one that looks, and the lines of those that wait.
 *
 * Claims that ask for the same queues and types stand in one line. When work may have come, the
 * line's first looks; each that finds something lets two more look while there is more. So five
 * thousand waiting workers cost one claim when a call arrives, and a burst still wakes all of them
 * within a few commits. A claim stays parked while it looks: who leaves in the middle gets nothing,
 * and what was leased for it meanwhile is given back.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_WORK_H
#define API_WORK_H

#include "api/inside.h"

struct line;

/* One claim until it ends; made on q->a and zeroed. */
struct claiming {
    struct ask_write look; /* first: the claim under way, and in the end its answer */
    struct ask_write back; /* gives back what nobody is there to take */
    struct ask *ask;
    struct claim want; /* what is asked for; the same token in every look */
    struct park park;
    struct line *line;             /* NULL: it does not wait, or no longer */
    struct claiming *next, **link; /* in its line, while it is not looking */
    bool looking, seated;          /* seated: it has its place, which it gets back after a look */
    bool over;     /* its time is up, or nobody is there any more: end with this look */
    bool unwanted; /* take nothing: what it finds is given back */
    /* Once, at the end: look.job.op has the answer, with no calls when it found none. */
    void (*found)(struct claiming *c);
};

/* What a claim asks for, from route->body or the member "claim" of a finish. */
struct claim_in {
    struct bytes worker;
    const struct json *queues, *types;
    int max;
    int64_t wait_us, lease_us;
};
void claim_in_init(struct claim_in *in, const struct api *api);
/* Check it against who asks, into c->want with a fresh token. INVALID, FORBIDDEN. */
MUST_USE enum pawl_status claim_read(struct ask *q, const struct claim_in *in, struct claiming *c,
                                     struct pawl_err *err);
/* Look, and wait up to wait_us for something to find. */
void claim_begin(struct ask *q, struct claiming *c, int64_t wait_us);
/* Whoever asked has no use for it any more: take nothing, and end. May end it at once. */
void claim_unwant(struct claiming *c);
/* `"lease":...,"until":...,"calls":[...]`, from the answer. */
void claim_add(struct ask *q, struct buf *b, const struct claiming *c);
void claim_end(struct claiming *c); /* drop its memory */

/* The token of a lease that a request names. LOST_LEASE: it is malformed, and so no lease of ours.
 */
MUST_USE enum pawl_status lease_read(struct bytes text, struct token *out, struct pawl_err *err);

/* Everything about lines, of one api (desk.c). */

struct desk;
MUST_USE enum pawl_status desk_open(struct api *api, struct pawl_err *err);
/* No line looks any more; those parked are told by their park. */
void desk_stop(struct api *api);
void desk_close(struct api *api);

/* Stand in the line for what c wants. False without memory. */
bool line_enter(struct claiming *c);
/* It looked and found nothing: to its place in the line. next_due_us: when something will be due,
 * by the database's clock; 0: not known. */
void line_back(struct claiming *c, int64_t next_due_us);
/* It leaves its line, if it stands in one; `more`: it left something behind. */
void line_leave(struct claiming *c, bool more);
/* Have the claim look now. work.c. */
void claim_look(struct claiming *c);
/* How many claims wait. */
size_t desk_waiting(const struct api *api);

/* A finish is stored: tell those who wait for its calls, and those who want work. */
void finish_told(struct exec *e, const struct finish *f);

#endif
