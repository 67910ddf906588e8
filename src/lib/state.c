/*
 * state.c - a handler reads and sets the state of its call's object.
 *
 * Runs on the handler's thread, inside its attempt. The new state is stored with the attempt's
 * answer; the next call of the same run gets it from there (exec/run.c).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/limits.h"
#include "exec/attempt.h"
#include "exec/pass.h"
#include "lib/lib.h"

const char *pawl_call_key(const struct pawl_call *c)
{
    return pawl_call_view(c)->key;
}

struct pawl_data pawl_state(const struct pawl_call *c)
{
    if (c->item.state_do == STATE_SET)
        return data_of(c->item.object);
    return c->item.state_do == STATE_DELETE ? (struct pawl_data){ 0 } : data_of(c->state);
}

int64_t pawl_state_int(const struct pawl_call *c, int64_t otherwise)
{
    struct pawl_call *t = (struct pawl_call *)c; /* for its memory; invisible to the caller */
    struct payload state = payload_of(pawl_state(c));
    struct json *v = NULL;
    struct pawl_err err;
    int64_t n;
    if (state.form != PAWL_JSON || json_parse(&t->arena, state.bytes, &v, &err) != PAWL_OK)
        return otherwise;
    return json_int(v, &n) ? n : otherwise;
}

/* It cannot be stored, and a reply will say why. */
static int fault(struct pawl_call *c, bool for_good, const char *why)
{
    char *text = arena_text(&c->arena, bytes_of(why));
    c->state_fault = text ? bytes_of(text) : BYTES("no memory for its state");
    c->state_for_good = text && for_good;
    return 1;
}

static int no_key(struct pawl_call *c)
{
    char text[512];
    snprintf(text, sizeof(text), "call \"%.*s\" has no key: it cannot keep a state",
             BYTES_ARG(c->call->spec.id));
    return fault(c, true, text);
}

/* May the state be set here? */
static bool may_set(struct pawl_call *c)
{
    if (pass_void(c))
        return false;
    if (pass_inside(c))
        fault(c, true,
              "a step cannot set the state of its object: the handler does, outside of it");
    return !pass_inside(c);
}

int pawl_delete_state(struct pawl_call *c)
{
    if (!may_set(c))
        return 1;
    if (!c->call->spec.key.data)
        return no_key(c);
    c->item.state_do = STATE_DELETE;
    c->item.object = (struct payload){ 0 };
    return 0;
}

int pawl_set_state(struct pawl_call *c, struct pawl_data state)
{
    struct pawl_err err;
    if (!may_set(c))
        return 1;
    if (!c->call->spec.key.data)
        return no_key(c);
    if (state.form == PAWL_NOTHING)
        return pawl_delete_state(c);
    enum pawl_status st = state_check(state, &err);
    if (st != PAWL_OK)
        return fault(c, st == PAWL_TOO_LARGE, err.text);
    struct payload kept = payload_of(state);
    kept.bytes = arena_copy(&c->arena, kept.bytes);
    if (!kept.bytes.data)
        return fault(c, false, "no memory for its state");
    c->item.state_do = STATE_SET;
    c->item.object = kept;
    return 0;
}

int pawl_set_state_json(struct pawl_call *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[512];
    int len = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    if (len < 0)
        return fault(c, false, "its state could not be formatted");
    if ((size_t)len < sizeof(small))
        return pawl_set_state(c, (struct pawl_data){ PAWL_JSON, small, (size_t)len });
    char *large = len > STATE_LEN_MAX ? NULL : arena_alloc(&c->arena, (size_t)len + 1);
    if (!large)
        return fault(c, len > STATE_LEN_MAX, "its state is over 1 MiB, or memory is short");
    va_start(args, fmt);
    vsnprintf(large, (size_t)len + 1, fmt, args);
    va_end(args);
    return pawl_set_state(c, (struct pawl_data){ PAWL_JSON, large, (size_t)len });
}

int pawl_set_state_int(struct pawl_call *c, int64_t n)
{
    return pawl_set_state_json(c, "%" PRId64, n);
}
