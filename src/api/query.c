/*
 * query.c - the query string, read strictly against the table of the route, and the time to wait
 * (match.h, ask.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdio.h>

#include "api/ask.h"
#include "api/match.h"
#include "api/route.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/words.h"

static enum pawl_status fault(struct pawl_err *err, const char *field, const char *what)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": %s", field, what);
}

/* `field "limit": is "x", not a whole number` */
static enum pawl_status wrong(struct arena *a, const struct param *p, const struct value *v,
                              const char *what, struct pawl_err *err)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": is \"%.*s\", not %s", p->name,
                   BYTES_ARG(text_shown(a, v->text)), what);
}

static enum pawl_status read_int(struct arena *a, const struct param *p, struct value *v,
                                 struct pawl_err *err)
{
    if (!int_parse(v->text, &v->n))
        return wrong(a, p, v, "a whole number", err);
    if (v->n < p->min || v->n > p->max)
        return err_set(err, PAWL_INVALID, "field \"%s\": is %lld, not in %lld..%lld", p->name,
                       (long long)v->n, (long long)p->min, (long long)p->max);
    return PAWL_OK;
}

static enum pawl_status read_seconds(struct arena *a, const struct param *p, struct value *v,
                                     struct pawl_err *err)
{
    double s;
    if (!v->text.len || !real_parse(v->text, &s))
        return wrong(a, p, v, "a number of seconds", err);
    if (!(s >= (double)p->min && s <= (double)p->max))
        return err_set(err, PAWL_INVALID, "field \"%s\": is %.*s, not in %lld..%lld seconds",
                       p->name, (int)MIN(v->text.len, 40), v->text.data, (long long)p->min,
                       (long long)p->max);
    v->n = llround(s * SEC_US);
    return PAWL_OK;
}

/* Read words separated by commas; each must be one of the parameter. */
static enum pawl_status read_words(struct arena *a, const struct param *p, struct value *v,
                                   struct pawl_err *err)
{
    struct bytes rest = v->text;
    while (rest.len) {
        const char *comma = memchr(rest.data, ',', rest.len);
        struct bytes word = { rest.data, comma ? (size_t)(comma - rest.data) : rest.len };
        size_t used = word.len + (comma != NULL);
        rest = (struct bytes){ rest.data + used, rest.len - used };
        int at = word_at(p->words, word);
        if (at < 0)
            return unknown_word(a, p->name, word, p->words, err);
        v->n |= INT64_C(1) << at;
    }
    return PAWL_OK;
}

static enum pawl_status read_value(struct arena *a, const struct param *p, struct value *v,
                                   struct pawl_err *err)
{
    const char *bad;
    switch (p->kind) {
    case PARAM_NAME:
        bad = name_fault(v->text);
        return bad ? fault(err, p->name, bad) : PAWL_OK;
    case PARAM_TEXT:
        return utf8_valid(v->text) ? PAWL_OK : fault(err, p->name, "is not UTF-8");
    case PARAM_INT:
        return read_int(a, p, v, err);
    case PARAM_SECONDS:
        return read_seconds(a, p, v, err);
    case PARAM_TIME:
        return time_parse(v->text, &v->n)
                   ? PAWL_OK
                   : wrong(a, p, v, "a time such as 2026-11-15T08:00:00Z", err);
    case PARAM_BOOL:
        v->n = bytes_eq(v->text, BYTES("true"));
        return v->n || bytes_eq(v->text, BYTES("false")) ? PAWL_OK
                                                         : wrong(a, p, v, "true or false", err);
    case PARAM_WORD:
        return word_in(p->words, v->text) ? PAWL_OK
                                          : unknown_word(a, p->name, v->text, p->words, err);
    case PARAM_WORDS:
        return read_words(a, p, v, err);
    }
    return PAWL_OK;
}

static enum pawl_status unknown_param(struct ask *q, struct bytes name, struct pawl_err *err)
{
    const struct route *r = q->route;
    char names[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < r->n_params && len < sizeof names - 64; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "",
                                r->params[i].name);
    return err_set(err, PAWL_INVALID,
                   "field \"%.*s\": is no query parameter of this path; it takes %s",
                   BYTES_ARG(text_shown(q->a, name)), len ? names : "none");
}

static enum pawl_status read_pair(struct ask *q, struct bytes name, struct bytes text,
                                  struct pawl_err *err)
{
    const struct route *r = q->route;
    struct bytes plain = percent_decode(q->a, name, true);
    struct bytes value = percent_decode(q->a, text, true);
    for (size_t i = 0; i < r->n_params; i++) {
        struct value *v = &q->query[i];
        if (!bytes_eq(plain, bytes_of(r->params[i].name)))
            continue;
        if (v->given)
            return fault(err, r->params[i].name, "is given twice");
        if (!value.data)
            return fault(err, r->params[i].name, "has a % that is not followed by two hex digits");
        *v = (struct value){ .given = true, .text = value };
        return read_value(q->a, &r->params[i], v, err);
    }
    return unknown_param(q, plain.data ? plain : name, err);
}

enum pawl_status query_read(struct ask *q, struct pawl_err *err)
{
    struct bytes rest = q->r->query;
    enum pawl_status st = PAWL_OK;
    CHECK(q->route->n_params <= ASK_QUERY_MAX);
    while (st == PAWL_OK && rest.len) {
        const char *amp = memchr(rest.data, '&', rest.len);
        size_t len = amp ? (size_t)(amp - rest.data) : rest.len;
        const char *eq = len ? memchr(rest.data, '=', len) : NULL;
        size_t name_len = eq ? (size_t)(eq - rest.data) : len;
        struct bytes name = { rest.data, name_len };
        struct bytes text = eq ? (struct bytes){ eq + 1, len - name_len - 1 } : BYTES("");
        if (len)
            st = read_pair(q, name, text, err);
        len += amp != NULL;
        rest = (struct bytes){ rest.data + len, rest.len - len };
    }
    return st == PAWL_OK && q->a->failed ? err_no_memory(err, "a query") : st;
}

struct value ask_query(const struct ask *q, const char *name)
{
    for (size_t i = 0; i < q->route->n_params; i++)
        if (!strcmp(q->route->params[i].name, name))
            return q->query[i];
    CHECK(!"a parameter that is in the route's table");
    return (struct value){ 0 };
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Find `wait=S` among the comma-separated preferences of RFC 7240, which says that malformed
 * preferences are ignored. */
static bool prefer_wait(struct bytes prefer, int64_t *out_us)
{
    const char *at = prefer.data, *end = at + prefer.len;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        while (at < stop && (*at == ' ' || *at == '\t'))
            at++;
        struct bytes one = { at, (size_t)(stop - at) };
        const char *params = memchr(one.data, ';', one.len);
        one.len = params ? (size_t)(params - one.data) : one.len;
        while (one.len && one.data[one.len - 1] == ' ')
            one.len--;
        double s;
        if (one.len > 5 && !memcmp(one.data, "wait=", 5) &&
            real_parse((struct bytes){ one.data + 5, one.len - 5 }, &s) && s >= 0) {
            *out_us = s > (double)WAIT_MAX_US / SEC_US ? WAIT_MAX_US : llround(s * SEC_US);
            return true;
        }
        at = comma ? comma + 1 : end;
    }
    return false;
}

enum pawl_status ask_wait_us(struct ask *q, int64_t dflt_us, int64_t *out, struct pawl_err *err)
{
    struct value wait = ask_query(q, "wait");
    struct bytes prefer = http_header(q->r, "prefer");
    (void)err;
    *out = dflt_us;
    if (wait.given)
        *out = wait.n;
    else if (prefer.data)
        prefer_wait(prefer, out);
    return PAWL_OK;
}
