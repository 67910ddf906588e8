/*
 * spec.c - from struct pawl_spec to struct call_spec.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "lib/lib.h"

PAWL_API struct pawl_data pawl_text(const char *json)
{
    if (!json)
        return (struct pawl_data){ 0 };
    return (struct pawl_data){ PAWL_JSON, json, strlen(json) };
}

struct payload payload_of(struct pawl_data d)
{
    if (d.form == PAWL_NOTHING)
        return (struct payload){ 0 };
    return (struct payload){ d.form, { d.data ? d.data : "", d.len } };
}

enum pawl_status data_check(struct pawl_data d, const char *field, struct pawl_err *err)
{
    if (d.form < PAWL_NOTHING || d.form > PAWL_BYTES)
        return err_set(err, PAWL_INVALID, "field \"%s\": its form is %d, not one of enum pawl_form",
                       field, (int)d.form);
    if (d.form != PAWL_NOTHING && !d.data && d.len)
        return err_set(err, PAWL_INVALID, "field \"%s\": has %zu bytes and a NULL pointer", field,
                       d.len);
    return PAWL_OK;
}

enum pawl_status state_check(struct pawl_data d, struct pawl_err *err)
{
    enum pawl_status st = data_check(d, "state", err);
    if (st == PAWL_OK && d.form == PAWL_NOTHING)
        st = err_set(err, PAWL_INVALID, "field \"state\": is missing; expected JSON or bytes");
    if (st == PAWL_OK && d.len > STATE_LEN_MAX)
        st = err_set(err, PAWL_TOO_LARGE, "field \"state\": %zu bytes, limit %d", d.len,
                     STATE_LEN_MAX);
    struct pawl_err why;
    if (st == PAWL_OK && d.form == PAWL_JSON && json_check(payload_of(d).bytes, &why) != PAWL_OK)
        st = err_set(err, PAWL_INVALID, "field \"state\": is not JSON: %.300s", why.text);
    return st;
}

static enum pawl_status read_tags(struct arena *a, const struct pawl_spec *s, struct call_spec *out,
                                  struct pawl_err *err)
{
    if (!s->n_tags)
        return PAWL_OK;
    if (s->n_tags > TAG_MAX || !s->tags)
        return err_set(err, PAWL_INVALID, "field \"tags\": %zu pairs, limit %d", s->n_tags,
                       TAG_MAX);
    struct tag *v = arena_zalloc(a, s->n_tags, sizeof(*v));
    if (!v)
        return err_no_memory(err, "reading a call");
    for (size_t i = 0; i < s->n_tags; i++) {
        if (!s->tags[i].name || !s->tags[i].value)
            return err_set(err, PAWL_INVALID,
                           "field \"tags\": pair %zu lacks its name or its value", i + 1);
        v[i] = (struct tag){ bytes_of(s->tags[i].name), bytes_of(s->tags[i].value) };
    }
    out->tags = v;
    out->n_tags = s->n_tags;
    return PAWL_OK;
}

/* A program that was built before `needs` has a shorter struct. */
static enum pawl_status read_needs(struct arena *a, const struct pawl_spec *s,
                                   struct call_spec *out, struct pawl_err *err)
{
    if (s->size < offsetof(struct pawl_spec, n_needs) + sizeof(s->n_needs) || !s->n_needs)
        return PAWL_OK;
    if (s->n_needs > NEEDS_MAX || !s->needs)
        return err_set(err, PAWL_INVALID, "field \"needs\": has %zu names, limit %d", s->n_needs,
                       NEEDS_MAX);
    struct bytes *v = arena_alloc(a, s->n_needs * sizeof(*v));
    if (!v)
        return err_no_memory(err, "reading a call");
    for (size_t i = 0; i < s->n_needs; i++)
        v[i] = s->needs[i] ? bytes_of(s->needs[i]) : BYTES("");
    out->needs = v;
    out->n_needs = s->n_needs;
    return PAWL_OK;
}

static void read_numbers(const struct pawl_spec *s, struct call_spec *out)
{
    out->priority = s->priority;
    if (s->max_attempts)
        out->max_attempts = s->max_attempts;
    if (s->max_lost)
        out->max_lost = s->max_lost;
    out->delay_us = s->delay_us;
    out->run_at_us = s->run_at_us;
    out->expires_in_us = s->expires_in_us;
    out->expires_at_us = s->expires_at_us;
    if (s->timeout_us)
        out->timeout_us = s->timeout_us;
    out->keep_us = s->keep_us;
    if (s->backoff_base_us)
        out->backoff.base_us = s->backoff_base_us;
    if (s->backoff_max_us)
        out->backoff.max_us = s->backoff_max_us;
    if (s->backoff_factor != 0)
        out->backoff.factor = s->backoff_factor;
    if (s->backoff_jitter != 0)
        out->backoff.jitter = s->backoff_jitter < 0 ? 0 : s->backoff_jitter;
    out->on_dead = s->on_dead;
    if (SPEC_HAS(s, run_timeout_us))
        out->run_timeout_us = s->run_timeout_us;
}

enum pawl_status spec_read(struct arena *a, const struct pawl_spec *s, struct call_spec *out,
                           struct pawl_err *err)
{
    if (s->size < offsetof(struct pawl_spec, n_tags) + sizeof(s->n_tags))
        return err_set(err, PAWL_INVALID,
                       "struct pawl_spec: its size is %zu; initialise it with PAWL_SPEC_INIT",
                       s->size);
    call_spec_init(out);
    out->id = bytes_of(s->id);
    out->type = bytes_of(s->type);
    if (s->method)
        out->method = bytes_of(s->method);
    if (s->queue)
        out->queue = bytes_of(s->queue);
    out->key = bytes_of(s->key);
    out->caller = bytes_of(s->caller);
    out->parent = bytes_of(s->parent);
    out->traceparent = bytes_of(s->traceparent);
    out->input = payload_of(s->input);
    read_numbers(s, out);
    enum pawl_status st = data_check(s->input, "input", err);
    if (st == PAWL_OK)
        st = read_needs(a, s, out, err);
    return st == PAWL_OK ? read_tags(a, s, out, err) : st;
}

enum pawl_status spec_settle(struct pawl *p, struct arena *a, const struct pawl_spec *s,
                             struct call_spec *out, struct pawl_err *err)
{
    enum pawl_status st = spec_read(a, s, out, err);
    if (st != PAWL_OK)
        return st;
    out->client = bytes_of(p->client);
    return call_spec_settle(a, exec_conf_of(p->e)->world, out, err);
}

void accepted_error(const struct exec *e, const struct call_spec *s, const struct accepted *r,
                    char *out, size_t size)
{
    if (r->status == PAWL_CONFLICT) {
        const struct call_spec *o = &r->call.spec;
        if (o->type.data)
            snprintf(out, size, "call \"%.*s\" already exists for %.*s.%.*s with other content",
                     BYTES_ARG(s->id), BYTES_ARG(o->type), BYTES_ARG(o->method));
        else
            snprintf(out, size, "call \"%.*s\" already existed with other content",
                     BYTES_ARG(s->id));
    } else if (r->status == PAWL_GONE) {
        snprintf(out, size, "call \"%.*s\" ended %s and is no longer kept", BYTES_ARG(s->id),
                 pawl_state_name(r->call.state));
    } else if (r->status == PAWL_FULL && r->line_full) {
        snprintf(out, size, "key \"%.*s\": %" PRId64 " calls pending, limit %" PRId64,
                 BYTES_ARG(s->key), r->line_full, exec_conf_of(e)->key_pending_max);
    } else if (r->status == PAWL_FULL) {
        snprintf(out, size, "queue \"%.*s\", type \"%.*s\": %d lanes, limit %d",
                 BYTES_ARG(s->queue), BYTES_ARG(s->type), LANES_MAX, LANES_MAX);
    } else if (r->status == PAWL_STATE) {
        snprintf(out, size,
                 "field \"%s\": every node must run this version first: run pawl migrate finish",
                 s->run_timeout_us ? "run_timeout" : "needs");
    } else if (size) {
        out[0] = '\0';
    }
}
