/*
 * work.h - claims over HTTP: leases for workers that are clients.
 *
 * A claim looks once; one that finds nothing and may wait stands in a line (claim_wait.h). It stays
 * waits while it looks: a client that leaves in the middle gets nothing, and what was leased for
 * it meanwhile is given back. Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_WORK_H
#define API_WORK_H

#include "api/ask_io.h"
#include "api/wait.h"
#include "base/json.h"

struct line;
struct workflow_journal;

/* One claim until it ends; made on q->a and zeroed. */
struct claiming {
    struct ask_write look; /* first: the claim under way, and in the end its answer */
    struct ask_write back; /* gives back what the client is no longer there to take */
    struct ask *ask;
    struct claim want; /* what is asked for; the same token in every look */
    struct timed_wait timed;
    struct line *line;             /* NULL: it does not wait, or no longer */
    struct claiming *next, **link; /* in its line, while it is not looking */
    bool looking, seated;          /* seated: it has its place, which it gets back after a look */
    bool steps;                    /* it gets runs that have begun, with their journals */
    struct ask_read read;          /* of the journals */
    struct workflow_journal *journals; /* one for each call; NULL: none of them has begun */
    bool over;     /* its time is up, or the client has gone: end with this look */
    bool unwanted; /* take nothing: what it finds is given back */
    /* Once, at the end: look.job.op has the answer, with no calls when it found none. */
    void (*found)(struct claiming *c);
};

/* What a claim asks for, from route->body or the member "claim" of a finish. */
struct claim_in {
    struct bytes worker;
    const struct json *queues, *types, *has;
    int max;
    int64_t wait_us, lease_us;
    bool steps;
};
/* Set the defaults. */
void claim_in_init(struct claim_in *in, const struct api *api);
/* Check it against the principal and fill c->want, with a fresh token. INVALID, FORBIDDEN. */
MUST_USE enum pawl_status claim_read(struct ask *q, const struct claim_in *in, struct claiming *c,
                                     struct pawl_err *err);
/* Look, and wait up to wait_us for something to find. Calls c->found once, perhaps at once. */
void claim_begin(struct ask *q, struct claiming *c, int64_t wait_us);
/* Look once more, for claim_wait.c. */
void claim_look(struct claiming *c);
/* The claim is no longer wanted: take nothing, and end. May call c->found at once. */
void claim_unwant(struct claiming *c);
/* Read the journals of the calls that it found, then c->found. steps.c. */
void claim_journals(struct claiming *c);
/* Append what the journal of the i-th call says, and set in *call what it replaces. steps.c. */
void claim_journal_take(const struct claiming *c, size_t i, struct call *call);
void claim_journal_add(struct buf *b, const struct claiming *c, size_t i);
/* Give back what was leased; then c->found with nothing. */
void claim_give_back(struct claiming *c);
/* Append `"lease":...,"until":...,"calls":[...]` from the answer. */
void claim_add(struct ask *q, struct buf *b, const struct claiming *c);
/* Free the answer's memory. */
void claim_end(struct claiming *c);

/* The token of a lease that a request names. LOST_LEASE: it is malformed, and so no lease of ours.
 */
MUST_USE enum pawl_status lease_read(struct bytes text, struct token *out, struct pawl_err *err);
/* A finish is stored: tell those who wait for its calls, and those who want work. finish.c. */
void finish_told(struct exec *e, const struct finish *f);

#endif
