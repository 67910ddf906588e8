/*
 * workflow.c - a handler that takes steps: the durable points of pawl.h, over exec/pass.h.
 *
 * Every function here runs on the handler's thread, inside its attempt.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ident.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/attempt.h"
#include "exec/pass.h"
#include "lib/lib.h"

/* Names that a caller does not choose. */
#define NAME_JOIN "join"
#define NAME_SELECT "select"

static int code_of(enum pass_answer a)
{
    return a == PASS_GOES_ON ? 0 : a == PASS_TIMEOUT ? PAWL_STEP_TIMEOUT : PAWL_STEP_VOID;
}

PRINTF_LIKE(2, 3)
static int refused(struct pawl_call *c, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return code_of(pass_refuse(c, text));
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct backoff backoff_of(const struct pawl_step *s)
{
    struct call_spec with;
    call_spec_init(&with);
    struct backoff b = with.backoff;
    if (s->backoff_base_us > 0)
        b.base_us = MIN(s->backoff_base_us, DURATION_MAX_US);
    if (s->backoff_max_us > 0)
        b.max_us = MIN(s->backoff_max_us, DURATION_MAX_US);
    if (s->backoff_factor >= 1)
        b.factor = s->backoff_factor;
    if (s->backoff_jitter != 0)
        b.jitter = s->backoff_jitter < 0 ? 0 : MIN(s->backoff_jitter, 1.0);
    return b;
}

int pawl_step(struct pawl_call *c, const struct pawl_step *step, struct pawl_data *out)
{
    struct pawl_step s = { 0 };
    struct payload result = { 0 };
    if (out)
        *out = (struct pawl_data){ 0 };
    if (!step || step->size < offsetof(struct pawl_step, undo) || step->size > STRUCT_SIZE_MAX)
        return refused(c, "struct pawl_step: initialise it with PAWL_STEP_INIT");
    memcpy(&s, step, MIN(step->size, sizeof s));
    if (!s.name || !s.run)
        return refused(c, "pawl_step: its name or its function is NULL");
    if (s.timeout_us < 0 || s.timeout_us > DURATION_MAX_US || s.max_attempts < 0)
        return refused(
            c, "step \"%.100s\": its timeout must be 0..%lld us, its max_attempts at least 0",
            s.name, (long long)DURATION_MAX_US);
    struct pass_step own = { .name = bytes_of(s.name),
                             .run = s.run,
                             .undo = s.undo,
                             .arg = s.arg,
                             .max_attempts = s.max_attempts ? s.max_attempts : 3,
                             .backoff = backoff_of(&s),
                             .timeout_us = s.timeout_us,
                             .lazy = s.lazy };
    if (s.arg && s.arg_size) {
        own.arg = arena_alloc(&c->arena, s.arg_size);
        if (!own.arg)
            return code_of(pass_no_memory(c));
        memcpy(own.arg, s.arg, s.arg_size);
    }
    int code = code_of(pass_step(c, &own, &result));
    if (out)
        *out = data_of(result);
    return code;
}

/* ---- Waits ----------------------------------------------------------------------------------- */

static int wait_here(struct pawl_call *c, enum step_kind kind, const char *name,
                     const struct workflow_wait *w, struct payload *out)
{
    if (!name)
        return refused(c, "a step's name is NULL");
    return code_of(pass_wait(c, kind, bytes_of(name), w, out));
}

int pawl_step_sleep(struct pawl_call *c, const char *name, int64_t us)
{
    const struct workflow_wait w = { .has_until = true, .in_us = MIN(MAX(us, 0), DURATION_MAX_US) };
    return wait_here(c, STEP_SLEEP, name, &w, NULL);
}

int pawl_step_until(struct pawl_call *c, const char *name, int64_t at_us)
{
    const struct workflow_wait w = { .has_until = true, .until_us = MAX(at_us, 1) };
    return wait_here(c, STEP_SLEEP, name, &w, NULL);
}

int pawl_step_signal(struct pawl_call *c, const char *name, int64_t timeout_us,
                     struct pawl_data *out)
{
    struct bytes signal = bytes_of(name);
    struct payload value = { 0 };
    const struct workflow_wait w = { .signals = &signal,
                                     .n_signals = 1,
                                     .has_until = timeout_us > 0,
                                     .in_us = MIN(timeout_us, DURATION_MAX_US) };
    int code = wait_here(c, STEP_SIGNAL, name, &w, &value);
    if (out)
        *out = code ? (struct pawl_data){ 0 } : data_of(value);
    return code;
}

/* ---- Children -------------------------------------------------------------------------------- */

/* The JSON of a stored answer; NULL when there is no memory. */
static struct json *answer_json(struct pawl_call *c, struct payload p)
{
    struct json *v = NULL;
    struct pawl_err err;
    return p.form == PAWL_JSON && json_parse(&c->arena, p.bytes, &v, &err) == PAWL_OK ? v : NULL;
}

int pawl_step_child(struct pawl_call *c, const char *name, const struct pawl_spec *spec,
                    const char **out_id)
{
    struct call_spec s;
    struct payload id = { 0 };
    struct pawl_err err;
    if (out_id)
        *out_id = NULL;
    if (!name || !spec)
        return refused(c, "pawl_step_child: an argument is NULL");
    if (spec_read(&c->arena, spec, &s, &err) != PAWL_OK)
        return refused(c, "child \"%.100s\": %.300s", name, err.text);
    s.id = BYTES_NONE;
    s.client = c->call->spec.client;
    if (!s.traceparent.data)
        s.traceparent = c->call->spec.traceparent;
    int code = code_of(pass_child(c, bytes_of(name), &s, &id));
    if (code || !out_id)
        return code;
    struct json *v = answer_json(c, id);
    *out_id = v ? json_string(&c->arena, v).data : NULL;
    return *out_id ? 0 : code_of(pass_no_memory(c));
}

static const struct bytes *ids_of(struct pawl_call *c, const char *const *ids, size_t n)
{
    struct bytes *v = arena_alloc(&c->arena, (n + 1) * sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = bytes_of(ids[i]);
    return v;
}

/* The children that have ended: an array of ids. False without memory. */
static bool note_ended(struct pawl_call *c, const struct json *list, const char *const **out,
                       size_t *out_n)
{
    size_t n = 0;
    const char **v = list ? arena_alloc(&c->arena, (list->count + 1) * sizeof *v) : NULL;
    if (!v)
        return false;
    for (const struct json *one = list->first; one; one = one->next) {
        struct bytes id = json_string(&c->arena, one);
        if (!id.data)
            return false;
        pass_child_is_ended(c, id);
        v[n++] = id.data;
    }
    *out = v;
    *out_n = n;
    return true;
}

int pawl_step_join(struct pawl_call *c, enum pawl_join how, const char *const *ids, size_t n,
                   int64_t timeout_us)
{
    struct payload answer = { 0 };
    const char *const *ended;
    if (!ids && n)
        return refused(c, "pawl_step_join: the ids are NULL");
    const struct bytes *v = ids_of(c, ids, n);
    if (!v)
        return code_of(pass_no_memory(c));
    const struct workflow_wait w = { .children = v,
                                     .n_children = n,
                                     .children_given = true,
                                     .any = how == PAWL_ANY,
                                     .has_until = timeout_us > 0,
                                     .in_us = MIN(timeout_us, DURATION_MAX_US) };
    int code = wait_here(c, STEP_JOIN, NAME_JOIN, &w, &answer);
    if (!code && !note_ended(c, answer_json(c, answer), &ended, &n))
        return code_of(pass_no_memory(c));
    return code;
}

enum pawl_status pawl_step_result(struct pawl_call *c, const char *id, const struct pawl_view **out,
                                  struct pawl_err *err)
{
    struct pawl_shown *shown;
    struct bytes key = bytes_of(id);
    if (!id || !out)
        return err_set(err, PAWL_INVALID, "pawl_step_result: an argument is NULL");
    if (pass_void(c))
        return err_set(err, PAWL_STATE, "this run is suspended: return");
    if (!pass_child_ended(c, key))
        return err_set(err, PAWL_NOT_FOUND, "no join of this run has found \"%.100s\" ended", id);
    enum pawl_status st = show_now(c->e, key, &shown, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_view *kept = arena_zalloc(&c->arena, 1, sizeof *kept);
    const struct pawl_view *v = pawl_shown_view(shown);
    if (kept) {
        kept->size = sizeof *kept;
        kept->seq = v->seq;
        kept->state = v->state;
        kept->attempts = v->attempts;
        kept->lost = v->lost;
        kept->id = arena_text(&c->arena, bytes_of(v->id));
        kept->type = arena_text(&c->arena, bytes_of(v->type));
        kept->method = arena_text(&c->arena, bytes_of(v->method));
        kept->queue = arena_text(&c->arena, bytes_of(v->queue));
        kept->key = arena_text(&c->arena, bytes_of(v->key));
        kept->error = arena_text(&c->arena, bytes_of(v->error));
        kept->result = v->result;
        kept->result.data = arena_copy(&c->arena, payload_of(v->result).bytes).data;
        *out = kept;
    }
    pawl_shown_free(shown);
    return kept && !c->arena.failed ? PAWL_OK : err_no_memory(err, "keeping an outcome");
}

/* ---- Select ---------------------------------------------------------------------------------- */

static bool read_selected(struct pawl_call *c, const struct json *v, struct pawl_select *out)
{
    struct json *signal = json_member(v, "signal"), *value = json_member(v, "value");
    struct json *bytes = json_member(v, "value_base64"), *children = json_member(v, "children");
    if (children)
        return note_ended(c, children, &out->ended, &out->n_ended);
    if (!signal)
        return true; /* its time came */
    out->signal = json_string(&c->arena, signal).data;
    if (bytes) {
        struct bytes text = json_string(&c->arena, bytes);
        char *raw = text.data ? arena_alloc(&c->arena, text.len + 1) : NULL;
        size_t len = 0;
        if (!raw || !base64_read(text, raw, &len))
            return false;
        out->value = (struct pawl_data){ PAWL_BYTES, raw, len };
    } else if (value && value->kind != JSON_NULL)
        out->value = (struct pawl_data){ PAWL_JSON, value->raw.data, value->raw.len };
    return out->signal;
}

int pawl_step_select(struct pawl_call *c, struct pawl_select *what)
{
    struct payload answer = { 0 };
    if (!what || what->size < sizeof *what || what->size > STRUCT_SIZE_MAX)
        return refused(c, "struct pawl_select: initialise it with PAWL_SELECT_INIT");
    what->signal = NULL;
    what->value = (struct pawl_data){ 0 };
    what->ended = NULL;
    what->n_ended = 0;
    const struct bytes *signals = ids_of(c, what->signals, what->signals ? what->n_signals : 0);
    const struct bytes *ids = ids_of(c, what->ids, what->ids ? what->n_ids : 0);
    if (!signals || !ids)
        return code_of(pass_no_memory(c));
    const struct workflow_wait w = { .signals = signals,
                                     .n_signals = what->signals ? what->n_signals : 0,
                                     .children = ids,
                                     .n_children = what->ids ? what->n_ids : 0,
                                     .children_given = what->ids && what->n_ids,
                                     .any = what->how == PAWL_ANY,
                                     .has_until = what->timeout_us > 0 || what->until_us > 0,
                                     .until_us = what->until_us,
                                     .in_us = MIN(what->timeout_us, DURATION_MAX_US) };
    int code = wait_here(c, STEP_SELECT, what->name ? what->name : NAME_SELECT, &w, &answer);
    if (code)
        return code;
    if (!read_selected(c, answer_json(c, answer), what))
        return code_of(pass_no_memory(c));
    return what->signal || what->n_ended ? 0 : PAWL_STEP_TIMEOUT;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int value(struct pawl_call *c, const char *name, struct bytes mine, struct bytes *out)
{
    struct payload p = { 0 };
    int code = code_of(pass_value(c, bytes_of(name), (struct payload){ PAWL_JSON, mine }, &p));
    *out = p.bytes;
    return code;
}

int pawl_step_now(struct pawl_call *c, int64_t *out_us)
{
    char text[32];
    struct bytes stored;
    *out_us = 0;
    snprintf(text, sizeof text, "%" PRId64, exec_now(c->e));
    int code = value(c, "now", bytes_of(text), &stored);
    if (!code)
        *out_us = strtoll(stored.data, NULL, 10);
    return code;
}

int pawl_step_random(struct pawl_call *c, uint64_t *out)
{
    char text[32];
    struct bytes stored;
    *out = 0;
    snprintf(text, sizeof text, "\"%016" PRIx64 "\"", world_dice(exec_conf_of(c->e)->world));
    int code = value(c, "random", bytes_of(text), &stored);
    if (!code)
        *out = strtoull(stored.data + 1, NULL, 16);
    return code;
}

int pawl_step_uuid(struct pawl_call *c, char out[37])
{
    char uuid[UUID_TEXT_LEN + 1], text[UUID_TEXT_LEN + 3];
    struct bytes stored;
    memset(out, 0, 37);
    uuid7_make(exec_conf_of(c->e)->world, uuid);
    snprintf(text, sizeof text, "\"%s\"", uuid);
    int code = value(c, "uuid", bytes_of(text), &stored);
    if (!code && stored.len == UUID_TEXT_LEN + 2)
        memcpy(out, stored.data + 1, UUID_TEXT_LEN);
    return code;
}

/* ---- The run --------------------------------------------------------------------------------- */

int pawl_publish(struct pawl_call *c, const char *name, struct pawl_data value)
{
    struct pawl_err err;
    const char *fault = name_fault(bytes_of(name));
    if (fault)
        return refused(c, "a published value: its name %s", fault);
    if (data_check(value, "value", &err) != PAWL_OK ||
        (value.form == PAWL_JSON && json_check(payload_of(value).bytes, &err) != PAWL_OK))
        return refused(c, "published value \"%.100s\": %.300s", name, err.text);
    if (value.len > RESULT_LEN_MAX)
        return refused(c, "published value \"%.100s\": it is longer than 1 MiB", name);
    return code_of(pass_publish(c, bytes_of(name), payload_of(value)));
}

bool pawl_patched(struct pawl_call *c, const char *change)
{
    struct bytes id = bytes_of(change);
    if (!change || name_fault(id) || id.len + strlen("patched:") > STEP_NAME_LEN_MAX) {
        refused(c, "pawl_patched: the name of the change is missing or too long");
        return false;
    }
    return pass_patched(c, id);
}

int pawl_restart(struct pawl_call *c, struct pawl_data input)
{
    struct pawl_err err;
    if (data_check(input, "input", &err) != PAWL_OK ||
        (input.form == PAWL_JSON && json_check(payload_of(input).bytes, &err) != PAWL_OK))
        return refused(c, "pawl_restart: %.300s", err.text);
    if (input.len > INPUT_LEN_MAX)
        return refused(c, "pawl_restart: the input is longer than 1 MiB");
    return code_of(pass_restart(c, payload_of(input)));
}
