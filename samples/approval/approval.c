/*
 * approval - a workflow that waits for people: each reviewer is a child with a deadline, and the
 * author may withdraw the document meanwhile.
 *
 * While it waits it holds no worker and no connection, for seconds or for months.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REVIEWERS_MAX 20

static bool is_text(struct pawl_data d, const char *json)
{
    return d.form == PAWL_JSON && d.len == strlen(json) && !memcmp(d.data, json, d.len);
}

/* approval.review {"within"}: waits for the signal "answer", true or false; no answer in time is
 * false. */
static int review(struct pawl_call *c)
{
    int64_t within = 0;
    struct pawl_data answer;
    if (pawl_input_get_int(c, "within", &within) || within <= 0)
        return pawl_refuse(c, "member \"within\" must be seconds above 0");
    switch (pawl_step_signal(c, "answer", within * PAWL_SECOND, &answer)) {
    case 0:
        return pawl_reply_json(c, "%s", is_text(answer, "true") ? "true" : "false");
    case PAWL_STEP_TIMEOUT:
        return pawl_reply(c, PAWL_TEXT("false"));
    default:
        return 0;
    }
}

/* Ask each reviewer, as a child. */
static int ask_all(struct pawl_call *c, const char **ids, int64_t n)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = "approval", .method = "review" };
    spec.input = pawl_input(c);
    for (int64_t i = 0; i < n; i++)
        if (pawl_step_child(c, "review", &spec, &ids[i]))
            return 1;
    return 0;
}

/* How many said yes; below 0: what cannot be read now. */
static int64_t count_yes(struct pawl_call *c, const char *const *ids, int64_t n)
{
    int64_t yes = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct pawl_view *v;
        struct pawl_err err;
        if (pawl_step_result(c, ids[i], &v, &err) != PAWL_OK)
            return -1;
        yes += is_text(v->result, "true");
    }
    return yes;
}

/* approval.run {"reviewers": n, "within": seconds}: {"approved", "yes"}. The reviewers are the
 * calls ID.review#1 to #n, each of which waits for the signal "answer"; the signal "withdraw" to
 * the run ends it. */
static int approval(struct pawl_call *c)
{
    const char *ids[REVIEWERS_MAX], *withdraw = "withdraw";
    int64_t n = 0;
    if (pawl_input_get_int(c, "reviewers", &n) || n < 1 || n > REVIEWERS_MAX)
        return pawl_refuse(c, "member \"reviewers\" must be 1 to %d", REVIEWERS_MAX);
    if (ask_all(c, ids, n))
        return 0;
    pawl_publish(c, "state", PAWL_TEXT("\"in review\""));
    struct pawl_select first = { PAWL_SELECT_INIT, .signals = &withdraw, .n_signals = 1,
                                 .ids = ids,       .n_ids = (size_t)n,   .how = PAWL_ALL };
    if (pawl_step_select(c, &first))
        return 0;
    if (first.signal)
        return pawl_refuse(c, "withdrawn"); /* children that wait are cancelled */
    int64_t yes = count_yes(c, ids, n);
    if (yes < 0)
        return pawl_fail(c, "an answer cannot be read now");
    return pawl_reply_json(c, "{\"approved\":%s,\"yes\":%" PRId64 "}", yes == n ? "true" : "false",
                           yes);
}

PAWL_MODULE(m)
{
    pawl_module_version(m, "1");
    if (pawl_on(m, "approval", "review", review) == PAWL_OK)
        pawl_on(m, "approval", "run", approval);
}
