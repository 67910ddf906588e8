/*
 * settle.c - turn the request for a call into one that may be stored: check it, fill in defaults,
 * and compute its fingerprint. Pure, any thread.
 *
 * What must stay true: a settled call can be stored and shown by every engine; no later code checks
 * a field again.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <math.h>

#include "base/ident.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/call.h"
#include "model/needs.h"

static enum pawl_status field_fault(struct pawl_err *err, const char *field, const char *fault)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": %s", field, fault);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static enum pawl_status check_names(const struct call_spec *s, struct pawl_err *err)
{
    const struct {
        const char *field;
        struct bytes name;
        bool required;
    } names[] = {
        { "type", s->type, true },      { "id", s->id, false },
        { "method", s->method, false }, { "queue", s->queue, false },
        { "key", s->key, false },       { "caller", s->caller, false },
        { "client", s->client, false }, { "parent", s->parent, false },
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!names[i].required && !names[i].name.data)
            continue;
        const char *fault = name_fault(names[i].name);
        if (fault)
            return field_fault(err, names[i].field, fault);
    }
    return PAWL_OK;
}

/* Are these `n` lower-case hex digits, not all 0? */
static bool hex_id(const char *at, size_t n)
{
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        if (!at[i] || !strchr("0123456789abcdef", at[i]))
            return false;
        some |= at[i] != '0';
    }
    return some;
}

/* W3C: 00-TRACE-PARENT-FLAGS. */
static bool traceparent_valid(struct bytes t)
{
    return t.len == 55 && memcmp(t.data, "00-", 3) == 0 && hex_id(t.data + 3, 32) &&
           t.data[35] == '-' && hex_id(t.data + 36, 16) && t.data[52] == '-' &&
           (hex_id(t.data + 53, 2) || memcmp(t.data + 53, "00", 2) == 0);
}

/* ---- Numbers and times ----------------------------------------------------------------------- */

static enum pawl_status check_ints(const struct call_spec *s, struct pawl_err *err)
{
    const struct {
        const char *field;
        int n, low, high;
    } ints[] = {
        { "priority", s->priority, PRIORITY_MIN, PRIORITY_MAX },
        { "max_attempts", s->max_attempts, 1, ATTEMPTS_MAX },
        { "max_lost", s->max_lost, 1, ATTEMPTS_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(ints); i++)
        if (ints[i].n < ints[i].low || ints[i].n > ints[i].high)
            return err_set(err, PAWL_INVALID, "field \"%s\": is %d, not in %d..%d", ints[i].field,
                           ints[i].n, ints[i].low, ints[i].high);
    return PAWL_OK;
}

static enum pawl_status check_durations(const struct call_spec *s, struct pawl_err *err)
{
    const struct {
        const char *field;
        int64_t us, low;
    } times[] = {
        { "delay", s->delay_us, 0 },
        { "expires_in", s->expires_in_us, 0 },
        { "timeout", s->timeout_us, 1 },
        { "keep", s->keep_us, 0 },
        { "run_timeout", s->run_timeout_us, 0 },
        { "backoff.base", s->backoff.base_us, 0 },
        { "backoff.max", s->backoff.max_us, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(times); i++)
        if (times[i].us < times[i].low || times[i].us > DURATION_MAX_US)
            return err_set(err, PAWL_INVALID, "field \"%s\": is not %s 0 and at most %" PRId64 " s",
                           times[i].field, times[i].low ? "above" : "at least",
                           DURATION_MAX_US / SEC_US);
    return PAWL_OK;
}

static enum pawl_status check_moments(const struct call_spec *s, struct pawl_err *err)
{
    if (s->delay_us && s->run_at_us)
        return field_fault(err, "run_at", "is given together with \"delay\"");
    if (s->expires_in_us && s->expires_at_us)
        return field_fault(err, "expires_at", "is given together with \"expires_in\"");
    if (s->run_at_us < TIME_FIRST_US || s->run_at_us > TIME_LAST_US)
        return field_fault(err, "run_at", "is not in the years 0001 to 9999");
    if (s->expires_at_us < TIME_FIRST_US || s->expires_at_us > TIME_LAST_US)
        return field_fault(err, "expires_at", "is not in the years 0001 to 9999");
    return PAWL_OK;
}

static enum pawl_status check_choices(const struct call_spec *s, struct pawl_err *err)
{
    /* Written so that it also refuses NaN. */
    if (!(s->backoff.factor >= 1 && s->backoff.factor <= BACKOFF_FACTOR_MAX))
        return err_set(err, PAWL_INVALID, "field \"backoff.factor\": is %g, not in 1..%d",
                       s->backoff.factor, BACKOFF_FACTOR_MAX);
    if (!(s->backoff.jitter >= 0 && s->backoff.jitter <= 1))
        return err_set(err, PAWL_INVALID, "field \"backoff.jitter\": is %g, not in 0..1",
                       s->backoff.jitter);
    if (s->on_dead != PAWL_ON_DEAD_SKIP && s->on_dead != PAWL_ON_DEAD_BLOCK)
        return field_fault(err, "on_dead", "is neither \"skip\" nor \"block\"");
    if (s->traceparent.data && !traceparent_valid(s->traceparent))
        return field_fault(err, "traceparent", "is not 00-(32 hex)-(16 hex)-(2 hex)");
    return PAWL_OK;
}

/* ---- Tags ------------------------------------------------------------------------------------ */

/* The rules of a name, except its length and the two dots. */
static const char *tag_text_fault(struct bytes text)
{
    if (text.len == 0 || bytes_eq(text, BYTES(".")) || bytes_eq(text, BYTES("..")))
        return NULL;
    return name_fault(text);
}

static const char *tag_fault(const struct tag *t)
{
    if (t->name.len == 0)
        return "name is empty";
    if (t->name.len > TAG_NAME_LEN_MAX)
        return "name is longer than 64 bytes";
    if (tag_text_fault(t->name))
        return "name is not UTF-8 without control characters";
    if (t->value.len > TAG_VALUE_LEN_MAX)
        return "value is longer than 255 bytes";
    if (tag_text_fault(t->value))
        return "value is not UTF-8 without control characters";
    return NULL;
}
static_assert(TAG_NAME_LEN_MAX == 64 && TAG_VALUE_LEN_MAX == 255, "the sentences say so");
static_assert(TAG_VALUE_LEN_MAX <= NAME_LEN_MAX, "name_fault lets the longest value through");

static enum pawl_status check_tags(const struct call_spec *s, struct pawl_err *err)
{
    if (s->n_tags > TAG_MAX)
        return err_set(err, PAWL_INVALID, "field \"tags\": has %zu tags, limit %d", s->n_tags,
                       TAG_MAX);
    for (size_t i = 0; i < s->n_tags; i++) {
        const struct tag *t = &s->tags[i];
        const char *fault = tag_fault(t);
        if (fault)
            return err_set(err, PAWL_INVALID, "field \"tags\": tag %zu: its %s", i + 1, fault);
        for (size_t j = 0; j < i; j++)
            if (bytes_eq(t->name, s->tags[j].name))
                return err_set(err, PAWL_INVALID, "field \"tags\": \"%.*s\" is given twice",
                               BYTES_ARG(t->name));
    }
    return PAWL_OK;
}

/* ---- Input and fingerprint ------------------------------------------------------------------- */

static enum pawl_status check_input(struct payload *input, struct pawl_err *err)
{
    if (input->form == PAWL_NOTHING) {
        input->bytes = BYTES_NONE;
        return PAWL_OK;
    }
    if (input->form != PAWL_JSON && input->form != PAWL_BYTES)
        return field_fault(err, "input", "is neither JSON nor bytes");
    if (!input->bytes.data)
        input->bytes = BYTES("");
    if (input->bytes.len > INPUT_LEN_MAX)
        return err_set(err, PAWL_TOO_LARGE, "field \"input\": is %zu bytes, limit %d",
                       input->bytes.len, INPUT_LEN_MAX);
    return PAWL_OK;
}

enum pawl_status call_fingerprint(struct arena *a, struct call_spec *s, struct pawl_err *err)
{
    struct bytes form = BYTES("json"), input = BYTES("null");
    if (s->input.form == PAWL_BYTES) {
        form = BYTES("bytes");
        input = s->input.bytes;
    } else if (s->input.form == PAWL_JSON) {
        struct pawl_err why;
        enum pawl_status st = json_canonical(a, s->input.bytes, &input, &why);
        if (st == PAWL_INVALID)
            return err_set(err, st, "field \"input\": is not JSON: %s", why.text);
        if (st != PAWL_OK)
            return err_no_memory(err, "the input's fingerprint");
    }
    const struct bytes parts[] = { s->type, s->method, s->key, form, input };
    unsigned char digest[32];
    if (!digest_parts(parts, COUNT_OF(parts), digest))
        return err_no_memory(err, "the fingerprint");
    memcpy(s->fingerprint, digest, sizeof s->fingerprint);
    return PAWL_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum pawl_status add_defaults(struct arena *a, const struct world *w, struct call_spec *s,
                                     struct pawl_err *err)
{
    if (!s->method.data)
        s->method = BYTES("run");
    if (!s->queue.data)
        s->queue = BYTES("default");
    if (!s->id.data) {
        char *id = arena_alloc(a, UUID_TEXT_LEN + 1);
        if (!id)
            return err_no_memory(err, "a call's id");
        uuid7_make(w, id);
        s->id = (struct bytes){ id, UUID_TEXT_LEN };
    }
    return PAWL_OK;
}

enum pawl_status call_spec_settle(struct arena *a, const struct world *w, struct call_spec *s,
                                  struct pawl_err *err)
{
    enum pawl_status st = check_names(s, err);
    if (st == PAWL_OK)
        st = check_ints(s, err);
    if (st == PAWL_OK)
        st = check_durations(s, err);
    if (st == PAWL_OK)
        st = check_moments(s, err);
    if (st == PAWL_OK)
        st = check_choices(s, err);
    if (st == PAWL_OK)
        st = check_tags(s, err);
    if (st == PAWL_OK)
        st = needs_settle(a, &(struct needs_field){ "needs", NEEDS_MAX }, &s->needs, &s->n_needs,
                          err);
    if (st == PAWL_OK)
        st = check_input(&s->input, err);
    if (st == PAWL_OK)
        st = add_defaults(a, w, s, err);
    /* Last, because it reads the whole input; cheaper checks find other errors first. It also finds
     * out whether the input is JSON. */
    return st == PAWL_OK ? call_fingerprint(a, s, err) : st;
}
