/*
 * workflow_web.h - for tests of workflows over HTTP: a pass of a run in a few words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WORKFLOW_WEB_H
#define WORKFLOW_WEB_H

#include "web.h"

/* A lease of one run. */
struct run_pass {
    const char *lease, *id;
    struct web_answer claim;
};
/* Start the workflow `order` and claim it. */
struct run_pass run_begin(struct web *w, const char *id);
/* The same of another type. */
struct run_pass run_begin_as(struct web *w, const char *id, const char *type);
/* Claim one run, as worker "w1". */
struct run_pass run_claim(struct web *w);
/* The pass of a claim's answer. */
struct run_pass run_of(struct web_answer a);
/* Send these steps: JSON objects with commas between them. */
struct web_answer step_send(struct web *w, const struct run_pass *p, const char *steps);
/* End the pass with these members; `status` is the answer. */
void run_finish(struct web *w, const struct run_pass *p, const char *members, const char *status);

/* A step that has ended with this JSON; a wait for the signal of the step's name. */
#define RESULT(no, name, json)                                                                     \
    web_text("{\"no\":%d,\"name\":\"%s\",\"kind\":\"run\",\"result\":%s}", no, name, json)
#define SIGNAL(no, name)                                                                           \
    web_text("{\"no\":%d,\"name\":\"%s\",\"kind\":\"signal\",\"wait\":{\"signals\":[\"%s\"]}}",    \
             no, name, name)

/* Assert the answer's status; and of a refusal its code. */
void stored(struct web_answer a, int status);
void refused(struct web_answer a, int status, const char *code);

/* The database's time. */
int64_t web_now(struct web *w);

#endif
