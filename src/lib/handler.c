/*
 * handler.c - what a handler does with its call: read, answer, send, ask, run SQL, wait.
 *
 * Every function here runs on the handler's thread, inside its attempt.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "exec/one_shot.h"
#include "exec/attempt.h"
#include "exec/pass.h"
#include "exec/replay.h"
#include "lib/lib.h"
#include "model/needs.h"

/* ---- The call -------------------------------------------------------------------------------- */

const struct pawl_view *pawl_call_view(const struct pawl_call *c)
{
    struct pawl_call *t = (struct pawl_call *)c; /* filled at its first use; invisible to the caller
                                                  */
    if (!t->viewed && view_fill(&t->arena, t->call, &t->view)) {
        t->viewed = true;
        t->view.input = data_of(t->input);
        t->view.started_at_us = t->started_us;
        t->view.position = t->view.key ? 0 : -1; /* it runs */
    }
    return &t->view;
}

const char *pawl_call_id(const struct pawl_call *c)
{
    return pawl_call_view(c)->id;
}

const char *pawl_call_type(const struct pawl_call *c)
{
    return pawl_call_view(c)->type;
}

const char *pawl_call_method(const struct pawl_call *c)
{
    return pawl_call_view(c)->method;
}

int pawl_call_attempt_no(const struct pawl_call *c)
{
    return c->call->counts.attempts + c->call->counts.lost + 1;
}

struct pawl_data pawl_input(const struct pawl_call *c)
{
    return data_of(c->input);
}

void *pawl_alloc(struct pawl_call *c, size_t size)
{
    return arena_alloc(&c->arena, size);
}

/* ---- Reading the input ----------------------------------------------------------------------- */

static struct json *input_json(struct pawl_call *c)
{
    struct json *v = NULL;
    struct pawl_err err;
    struct payload in = c->input;
    if (in.form != PAWL_JSON || json_parse(&c->arena, in.bytes, &v, &err) != PAWL_OK)
        return NULL;
    return v;
}

int pawl_input_int(struct pawl_call *c, int64_t *out)
{
    struct json *v = input_json(c);
    return v && json_int(v, out) ? 0 : 1;
}

int pawl_input_get_int(struct pawl_call *c, const char *member, int64_t *out)
{
    struct json *v = json_member(input_json(c), member);
    return v && json_int(v, out) ? 0 : 1;
}

int pawl_input_get_bool(struct pawl_call *c, const char *member, bool *out)
{
    struct json *v = json_member(input_json(c), member);
    if (!v || (v->kind != JSON_TRUE && v->kind != JSON_FALSE))
        return 1;
    *out = v->kind == JSON_TRUE;
    return 0;
}

int pawl_input_get_text(struct pawl_call *c, const char *member, const char **out)
{
    struct json *v = json_member(input_json(c), member);
    struct bytes text = v ? json_string(&c->arena, v) : BYTES_NONE;
    if (!text.data || strlen(text.data) != text.len) /* a text with a NUL inside is not a C string
                                                      */
        return 1;
    *out = text.data;
    return 0;
}

int pawl_input_get_json(struct pawl_call *c, const char *member, struct pawl_data *out)
{
    struct json *v = json_member(input_json(c), member);
    if (!v)
        return 1;
    *out = (struct pawl_data){ PAWL_JSON, v->raw.data, v->raw.len };
    return 0;
}

/* ---- Answers --------------------------------------------------------------------------------- */

PRINTF_LIKE(3, 0)
static int answer_error(struct pawl_call *c, enum ending how, const char *fmt, va_list args)
{
    char text[ERROR_LEN_MAX + 1];
    vsnprintf(text, sizeof(text), fmt, args);
    struct bytes kept = arena_copy(&c->arena, utf8_cut(bytes_of(text), ERROR_LEN_MAX));
    attempt_error(c, how, kept.data ? kept : BYTES("an error; there was no memory for its text"));
    c->item.retry_in_us = -1;
    c->answered = true;
    return (int)how;
}

int pawl_fail(struct pawl_call *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int code = answer_error(c, END_ERROR, fmt, args);
    va_end(args);
    return code;
}

int pawl_refuse(struct pawl_call *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int code = answer_error(c, END_REFUSE, fmt, args);
    va_end(args);
    return code;
}

int pawl_later(struct pawl_call *c, int64_t delay_us)
{
    c->item.how = END_LATER;
    c->item.retry_in_us = delay_us < 0 ? 0 : MIN(delay_us, DURATION_MAX_US);
    c->answered = true;
    return END_LATER;
}

int pawl_reply(struct pawl_call *c, struct pawl_data result)
{
    struct payload p = payload_of(result);
    struct pawl_err err;
    if (data_check(result, "result", &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    if (p.bytes.len > RESULT_LEN_MAX)
        return pawl_refuse(c, "its result is %zu bytes, limit %d", p.bytes.len, RESULT_LEN_MAX);
    if (p.form == PAWL_JSON && json_check(p.bytes, &err) != PAWL_OK)
        return pawl_fail(c, "its result is not JSON: %s", err.text);
    p.bytes = arena_copy(&c->arena, p.bytes);
    if (p.form != PAWL_NOTHING && !p.bytes.data)
        return pawl_fail(c, "no memory for its result");
    c->item.how = END_RESULT;
    c->item.result = p;
    c->item.error = BYTES_NONE;
    c->answered = true;
    return 0;
}

int pawl_reply_json(struct pawl_call *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char small[512];
    int len = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    if (len < 0)
        return pawl_fail(c, "its result could not be formatted");
    if ((size_t)len < sizeof(small))
        return pawl_reply(c, (struct pawl_data){ PAWL_JSON, small, (size_t)len });
    if (len > RESULT_LEN_MAX)
        return pawl_refuse(c, "its result is %d bytes, limit %d", len, RESULT_LEN_MAX);
    char *large = arena_alloc(&c->arena, (size_t)len + 1);
    if (!large)
        return pawl_fail(c, "no memory for its result");
    va_start(args, fmt);
    vsnprintf(large, (size_t)len + 1, fmt, args);
    va_end(args);
    return pawl_reply(c, (struct pawl_data){ PAWL_JSON, large, (size_t)len });
}

int pawl_reply_int(struct pawl_call *c, int64_t n)
{
    return pawl_reply_json(c, "%" PRId64, n);
}

int pawl_reply_text(struct pawl_call *c, const char *text)
{
    struct buf b;
    if (!utf8_valid(bytes_of(text)))
        return pawl_fail(c, "its result is not UTF-8");
    buf_init(&b, RESULT_LEN_MAX);
    json_add_string(&b, bytes_of(text));
    int code;
    if (buf_ok(&b))
        code = pawl_reply(c, (struct pawl_data){ PAWL_JSON, b.data, b.len });
    else if (bytes_of(text).len + 2 > RESULT_LEN_MAX)
        code = pawl_refuse(c, "its result is over %d bytes", RESULT_LEN_MAX);
    else /* memory may be free later, so it is retried */
        code = pawl_fail(c, "its result is over %d bytes, or memory is short", RESULT_LEN_MAX);
    buf_release(&b);
    return code;
}

/* ---- Sending and asking ---------------------------------------------------------------------- */

static void copy_tags(struct arena *a, struct call_spec *s)
{
    struct tag *v = (struct tag *)s->tags; /* spec_read() made the array in this arena */
    for (size_t i = 0; i < s->n_tags; i++)
        v[i] = (struct tag){ arena_copy(a, v[i].name), arena_copy(a, v[i].value) };
}

/* A child of this call: its id is derived from ours, so that a second attempt makes the same
 * one. */
static enum pawl_status child_spec(struct pawl_call *c, const struct pawl_spec *given,
                                   const char *default_id, struct call_spec *out,
                                   struct pawl_err *err)
{
    const struct call_spec *mine = &c->call->spec;
    enum pawl_status st = spec_read(&c->arena, given, out, err);
    if (st != PAWL_OK)
        return st;
    if (!default_id)
        return err_no_memory(err, "naming a call");
    if (!out->id.data)
        out->id = bytes_of(default_id);
    if (!out->parent.data)
        out->parent = mine->id;
    if (!out->traceparent.data)
        out->traceparent = mine->traceparent;
    out->client = mine->client;
    out->id = arena_copy(&c->arena, out->id);
    out->type = arena_copy(&c->arena, out->type);
    out->method = arena_copy(&c->arena, out->method);
    out->queue = arena_copy(&c->arena, out->queue);
    out->key = arena_copy(&c->arena, out->key);
    out->caller = arena_copy(&c->arena, out->caller);
    out->parent = arena_copy(&c->arena, out->parent);
    out->traceparent = arena_copy(&c->arena, out->traceparent);
    copy_tags(&c->arena, out);
    out->needs = needs_copy(&c->arena, out->needs, out->n_needs);
    out->input.bytes = arena_copy(&c->arena, out->input.bytes);
    if (c->arena.failed)
        return err_no_memory(err, "sending a call");
    return call_spec_settle(&c->arena, exec_conf_of(c->e)->world, out, err);
}

/* The run that takes steps does not go on in this attempt. */
static enum pawl_status suspended(struct pawl_err *err)
{
    return err_set(err, PAWL_STATE, "this run is suspended, or has failed: return");
}

static bool send_room(struct pawl_call *c)
{
    if (c->n_send < c->cap_send)
        return true;
    size_t cap = c->cap_send ? c->cap_send * 2 : 8;
    struct call_spec *v = arena_alloc(&c->arena, cap * sizeof(*v));
    if (!v)
        return false;
    if (c->n_send)
        memcpy(v, c->send, c->n_send * sizeof(*v));
    c->send = v;
    c->cap_send = cap;
    return true;
}

enum pawl_status pawl_send(struct pawl_call *c, const struct pawl_spec *spec, struct pawl_err *err)
{
    if (!spec)
        return err_set(err, PAWL_INVALID, "pawl_send: the call is NULL");
    if (pass_void(c))
        return suspended(err);
    if (c->n_send >= SEND_MAX)
        return err_set(err, PAWL_FULL, "%zu calls were sent, limit %d", c->n_send, SEND_MAX);
    if (!send_room(c))
        return err_no_memory(err, "sending a call");
    const char *id = pass_inside(c) ? pass_sent_id(c, false, c->n_send + 1)
                                    : arena_printf(&c->arena, "%.*s.%zu",
                                                   BYTES_ARG(c->call->spec.id), c->n_send + 1);
    enum pawl_status st = child_spec(c, spec, id, &c->send[c->n_send], err);
    if (st == PAWL_OK)
        c->n_send++;
    return st;
}

const char *pawl_sent_id(const struct pawl_call *c, size_t n)
{
    return n < c->n_send ? c->send[n].id.data : NULL;
}

static enum pawl_status ask_now(struct pawl_call *c, const struct call_spec *s,
                                struct pawl_shown **out, struct pawl_err *err)
{
    attempt_block(c, true);
    int64_t wait_us = MIN(pawl_time_left_us(c), WAIT_MAX_US);
    enum pawl_status st = wait_for(
        c->e, &(struct waiting){ .spec = s, .id = s->id, .wait_us = wait_us, .by = c }, out, err);
    attempt_block(c, false);
    return st;
}

/* A replay submits nothing: an earlier pass of the run did, or the answer is not known. */
static enum pawl_status ask_again(struct pawl_call *c, struct bytes id, struct pawl_shown **out,
                                  struct pawl_err *err)
{
    enum pawl_status st = show_now(c->e, id, out, err);
    if (st == PAWL_NOT_FOUND || (st == PAWL_OK && !pawl_state_ended((*out)->view.state)))
        replay_blind(c, "the handler asks for call \"%.*s\", which has not ended", BYTES_ARG(id));
    return st;
}

enum pawl_status pawl_ask(struct pawl_call *c, const struct pawl_spec *spec,
                          const struct pawl_view **out, struct pawl_err *err)
{
    struct pawl_shown *shown = NULL;
    struct call_spec s;
    if (!spec || !out)
        return err_set(err, PAWL_INVALID, "pawl_ask: an argument is NULL");
    if (pass_void(c))
        return suspended(err);
    if (session_open(c))
        return err_set(err, PAWL_STATE,
                       "an attempt with an open transaction cannot wait for a call");
    int n = ++c->n_asked;
    const char *id = pass_inside(c)
                         ? pass_sent_id(c, true, (size_t)n)
                         : arena_printf(&c->arena, "%.*s.ask.%d", BYTES_ARG(c->call->spec.id), n);
    enum pawl_status st = child_spec(c, spec, id, &s, err);
    if (st == PAWL_OK)
        st = cycle_check(c, s.key, err);
    if (st != PAWL_OK)
        return st;
    st = exec_replays(c->e) ? ask_again(c, s.id, &shown, err) : ask_now(c, &s, &shown, err);
    if (st != PAWL_OK)
        return st;
    struct pawl_view *kept = arena_alloc(&c->arena, sizeof(*kept));
    st = kept ? PAWL_OK : err_no_memory(err, "keeping an answer");
    if (kept) {
        *kept = shown->view;
        kept->result.data = arena_copy(&c->arena, payload_of(shown->view.result).bytes).data;
        kept->id = s.id.data;
        kept->error = arena_text(&c->arena, bytes_of(shown->view.error));
        kept->type = s.type.data;
        kept->method = s.method.data;
        kept->queue = s.queue.data;
        kept->input = data_of(s.input);
        kept->key = s.key.data;
        kept->node = kept->caller = kept->client = kept->parent = NULL;
        kept->traceparent = NULL;
        kept->tags = NULL;
        kept->n_tags = 0;
        kept->needs = NULL;
        kept->n_needs = 0;
        *out = kept;
    }
    pawl_shown_free(shown);
    return st;
}

/* ---- Time ------------------------------------------------------------------------------------ */

int64_t pawl_time_left_us(const struct pawl_call *c)
{
    return MAX(c->deadline_us - world_mono(&world_real), 0);
}

bool pawl_cancelled(const struct pawl_call *c)
{
    return atomic_load(&((struct pawl_call *)c)->stop) != STOP_NONE;
}

int pawl_sleep(struct pawl_call *c, int64_t us)
{
    if (exec_replays(c->e))
        return 0;
    int64_t until_us = world_mono(&world_real) + MIN(MAX(us, 0), DURATION_MAX_US);
    return one_shot_wait(&c->stopped, until_us) ? 1 : 0;
}

/* ---- SQL ------------------------------------------------------------------------------------- */

enum pawl_status pawl_sql(struct pawl_call *c, const char *sql, const struct pawl_value *params,
                          size_t n_params, const struct pawl_rows **rows, struct pawl_err *err)
{
    if (pass_void(c))
        return suspended(err);
    if (pass_between(c))
        return err_set(err, PAWL_STATE, "a handler that takes steps runs its SQL inside of a step");
    struct pawl_rows *out = arena_zalloc(&c->arena, 1, sizeof(*out));
    if (!out)
        return err_no_memory(err, "running SQL");
    if (!sql || strlen(sql) > SQL_LEN_MAX || n_params > SQL_PARAMS_MAX || (n_params && !params))
        return err_set(err, PAWL_INVALID,
                       "pawl_sql: the statement is NULL, over %d bytes, or has over %d parameters",
                       SQL_LEN_MAX, SQL_PARAMS_MAX);
    struct sql_query q = { .sql = sql, .params = params, .n_params = n_params };
    enum pawl_status st = session_sql(c, &q, out, err);
    if (st == PAWL_OK && rows)
        *rows = out;
    return st;
}
