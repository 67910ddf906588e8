/*
 * workflow_case.h - for the cases of workflows: a fixture whose handles have the feature, and a
 * pass of a run in a few words.
 *
 *     struct pass p = pass_begin(b);          claim one run
 *     step_ok(&p, 1, "charge", "7");          a step has ended with a result
 *     wait_signal(&p, 2, "shipped", 60);         wait for a signal, at most 60 s
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CONFORM_WORKFLOW_CASE_H
#define CONFORM_WORKFLOW_CASE_H

#include "conform.h"
#include "feature/workflow.h"

/* A fixture with the feature; `wrapper` is the beginning of its URL. */
struct conform_fixture *workflow_fixture(void *param, const char *wrapper);

#define WORKFLOW_CASE(name)                                                                        \
    static void name##_body(struct conform_fixture *b);                                            \
    TEST(name)                                                                                     \
    {                                                                                              \
        AUTO(conform_fixture_end) struct conform_fixture *b = workflow_fixture(param, "");         \
        name##_body(b);                                                                            \
    }                                                                                              \
    static void name##_body(struct conform_fixture *b)

/* A pass: one lease of one run. */
struct pass {
    struct conform_fixture *b;
    struct token token;
    int64_t seq;
    struct bytes id;
    bool undoing;              /* what its code knows */
    struct bytes version;      /* of its code; absent: none */
    bool pin;                  /* its node has versions = pin */
    bool by_lease;             /* it is a worker over HTTP: its lease says the version */
    struct workflow_op answer; /* of its last operation */
    struct workflow_step steps[8];
};
/* Claim one run, as a worker for steps; there must be one. */
struct pass pass_begin(struct conform_fixture *b);
/* The same, and it must be this one; others that can be claimed are handed back. */
struct pass pass_named(struct conform_fixture *b, const char *id);
/* The same as a worker that has this and nothing else. */
struct pass pass_begin_as(struct conform_fixture *b, const struct bytes *has, size_t n_has);
/* Accept a call and claim it. */
struct pass pass_of_new(struct conform_fixture *b, const char *id);
/* Send these steps; the answers are in p->steps. Returns the operation's status. */
enum pawl_status pass_steps(struct pass *p, const struct workflow_step *v, size_t n);
/* A step that has ended with this JSON; it must be stored as completed. */
void step_ok(struct pass *p, int64_t no, const char *name, const char *json);
/* The same with an undo. */
void step_undoable(struct pass *p, int64_t no, const char *name, const char *json);
/* The undo of the step with this stored name. */
void undo_ok(struct pass *p, int64_t no, const char *name);
/* Wait for a signal of this name, which is the name of the step too; seconds 0: without an end.
 * What came of it is in p->steps[0]; suspended: in p->answer. */
enum pawl_status wait_signal(struct pass *p, int64_t no, const char *name, int64_t seconds);
/* Sleep. */
enum pawl_status sleep_for(struct pass *p, int64_t no, const char *name, int64_t seconds);
/* A child of this type. Its id is the answer. */
const char *child_of(struct pass *p, int64_t no, const char *name, const char *key);
/* Wait for children, by their ids with spaces between them. */
enum pawl_status join(struct pass *p, int64_t no, const char *name, const char *ids, bool any,
                      int64_t seconds);
/* End the pass with this. */
void end_pass(struct pass *p, enum ending how);
/* End the pass with a restart: the steps are forgotten, and it begins again with this input. */
void restart(struct pass *p, const char *json);
/* End the child with this id; others that can be claimed are handed back. */
void child_ends(struct conform_fixture *b, const char *id);

/* A signal with this JSON value; `key` NULL: without one. Returns the operation's status; its
 * answer is in b->op. */
enum pawl_status signal_to(struct conform_fixture *b, const char *id, const char *name,
                           const char *json, const char *key);
/* Another change by id. */
enum pawl_status change(struct conform_fixture *b, struct workflow_op q);

/* Retry the run from the step with this stored name. Returns the operation's status. */
enum pawl_status retry_from(struct conform_fixture *b, const char *id, const char *from);
/* Fork the run before this step. */
enum pawl_status fork_from(struct conform_fixture *b, const char *id, const char *from,
                           const char *new_id);
/* Cancel the run with the workflow's own cancel. The answer is in *out_state; it may be NULL. */
enum pawl_status cancel_run(struct conform_fixture *b, const char *id, bool compensate,
                            enum pawl_state *out_state);

/* The run's journal as "no name kind status result", a line each. */
const char *journal_of(struct conform_fixture *b, int64_t seq);
struct workflow_journal journal_read(struct conform_fixture *b, int64_t seq);

#endif
