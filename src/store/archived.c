/*
 * archived.c - reading a call from the archive: one wide row of names and times, for every engine.
 *
 * Called on the thread that uses the handle.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/needs.h"
#include "store/store.h"

/* The columns of archive_read, in its order. */
enum {
    T_ID,
    T_STATUS,
    T_QUEUE,
    T_TYPE,
    T_METHOD,
    T_KEY,
    T_INPUT,
    T_INPUT_BYTES,
    T_RESULT,
    T_RESULT_BYTES,
    T_ERROR,
    T_NODE,
    T_CALLER,
    T_CLIENT,
    T_PARENT,
    T_TRACE,
    T_TAGS,
    T_OPTIONS,
    T_NEEDS
};
enum {
    N_SEQ,
    N_KEY_NO,
    N_ATTEMPTS,
    N_LOST,
    N_REDRIVES,
    N_PRIORITY,
    N_CREATED,
    N_RUN_AT,
    N_STARTED,
    N_FINISHED,
    N_ARCHIVED
};
static_assert(T_NEEDS + 1 == ARCHIVE_TEXTS && N_ARCHIVED + 1 == ARCHIVE_NUMBERS,
              "every column has its place");

enum pawl_status store_archived(struct store *s, struct arena *a, struct bytes id,
                                struct archived *out, struct pawl_err *err)
{
    *out = (struct archived){ 0 };
    enum pawl_status st = s->ops->archived ? s->ops->archived(s, a, id, out, err) : PAWL_NOT_FOUND;
    if (st == PAWL_NOT_FOUND)
        return err_set(err, st, "no call \"%.*s\" in the archive", BYTES_ARG(id));
    return st;
}

static struct payload payload_of(struct bytes json, struct bytes bytes)
{
    if (json.data)
        return (struct payload){ PAWL_JSON, json };
    return bytes.data ? (struct payload){ PAWL_BYTES, bytes } : (struct payload){ 0 };
}

enum pawl_status archived_read(struct arena *a, const struct archive_row *row, struct archived *out,
                               struct pawl_err *err)
{
    struct bytes t[ARCHIVE_TEXTS];
    const int64_t *n = row->number;
    struct call *c = &out->call;
    struct call_spec *s = &c->spec;
    for (size_t i = 0; i < ARCHIVE_TEXTS; i++)
        t[i] = arena_copy(a, row->text[i]);
    if (a->failed)
        return err_no_memory(err, "an archived call");
    call_spec_init(s);
    enum pawl_status st = call_options_read(a, t[T_OPTIONS], s, err);
    if (st == PAWL_OK)
        st = call_tags_read(a, t[T_TAGS], s, err);
    if (st == PAWL_OK && !needs_of_text(a, t[T_NEEDS], &s->needs, &s->n_needs))
        st = err_no_memory(err, "an archived call");
    if (st != PAWL_OK)
        return st;
    if (needs_steps(s->needs, s->n_needs)) {
        s->needs = needs_given(a, s->needs, &s->n_needs);
        if (a->failed)
            return err_no_memory(err, "an archived call");
    }
    s->id = t[T_ID];
    s->queue = t[T_QUEUE];
    s->type = t[T_TYPE];
    s->method = t[T_METHOD];
    s->key = t[T_KEY];
    s->input = payload_of(t[T_INPUT], t[T_INPUT_BYTES]);
    s->caller = t[T_CALLER];
    s->client = t[T_CLIENT];
    s->parent = t[T_PARENT];
    s->traceparent = t[T_TRACE];
    s->priority = (int)n[N_PRIORITY];
    c->seq = n[N_SEQ];
    c->key_no = n[N_KEY_NO];
    c->state = call_state_of(t[T_STATUS]);
    c->result = payload_of(t[T_RESULT], t[T_RESULT_BYTES]);
    c->error = t[T_ERROR];
    c->node = t[T_NODE];
    c->counts = (struct attempt_counts){ (int)n[N_ATTEMPTS], (int)n[N_LOST], (int)n[N_REDRIVES] };
    c->created_us = n[N_CREATED];
    c->run_at_us = n[N_RUN_AT];
    c->started_us = n[N_STARTED];
    c->finished_us = n[N_FINISHED];
    out->archived_us = n[N_ARCHIVED];
    if (!pawl_state_ended(c->state))
        return err_set(err, PAWL_BROKEN, "call \"%.*s\" is archived with status \"%.*s\"",
                       BYTES_ARG(s->id), BYTES_ARG(t[T_STATUS]));
    return PAWL_OK;
}
