/*
 * cursor.c - fuzz: only cursors that the server issued are accepted; query strings and paths of
 * every route are parsed or refused with a message, and parsed values are the same after encoding.
 *
 * The first byte chooses the route. The rest is a cursor, a query, and a path.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/match.h"
#include "api/route.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void cursor(struct bytes text)
{
    int64_t seq = -1;
    char again[CURSOR_TEXT_MAX];
    if (!cursor_read(text, &seq))
        return;
    CHECK(seq >= 0);
    cursor_write(seq, again);
    CHECK(bytes_eq(text, bytes_of(again)));
}

/* The value is the same after encoding and decoding. */
static void encode(struct arena *a, struct bytes text)
{
    struct buf b;
    buf_init(&b, 64 << 10);
    percent_add(&b, text);
    CHECK(bytes_eq(percent_decode(a, buf_bytes(&b), true), text));
    CHECK(bytes_eq(percent_decode(a, buf_bytes(&b), false), text));
    buf_release(&b);
}

/* The error is valid JSON, whatever was sent. */
static void sentence(const char *text)
{
    struct buf b;
    buf_init(&b, 64 << 10);
    json_add_string(&b, bytes_of(text));
    CHECK(json_check(buf_bytes(&b), NULL) == PAWL_OK);
    buf_release(&b);
}

static void query(struct ask *q)
{
    struct pawl_err err = { 0 };
    int64_t wait_us = -1;
    if (query_read(q, &err) != PAWL_OK) {
        CHECK(strncmp(err.text, "field \"", 7) == 0);
        sentence(err.text);
        return;
    }
    for (size_t i = 0; i < q->route->n_params; i++) {
        const struct param *p = &q->route->params[i];
        struct value v = ask_query(q, p->name);
        if (!v.given)
            continue;
        encode(q->a, v.text);
        CHECK(p->kind == PARAM_TIME || p->kind == PARAM_INT || utf8_valid(v.text));
        if (p->kind == PARAM_INT)
            CHECK(v.n >= p->min && v.n <= p->max);
        if (strcmp(p->name, "wait") == 0) {
            CHECK(ask_wait_us(q, 0, &wait_us, &err) == PAWL_OK);
            CHECK(wait_us >= 0 && wait_us <= WAIT_MAX_US);
        }
    }
}

static void path(struct ask *q)
{
    char allow[64];
    struct pawl_err err = { 0 };
    enum matched m = match(q, allow, &err);
    CHECK(strlen(allow) < sizeof allow);
    if (m != MATCH_FOUND || err.status != PAWL_OK)
        return;
    for (size_t i = 0; i < ASK_PARAMS_MAX && q->path[i].data; i++) {
        CHECK(!name_fault(q->path[i]));
        encode(q->a, q->path[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct arena a;
    struct http_request r = { 0 };
    if (len < 1)
        return 0;
    char *copy = malloc(len);
    memcpy(copy, data + 1, len - 1);
    struct bytes text = { copy, len - 1 };
    arena_init(&a, 1 << 20);
    struct ask q = { .r = &r, .a = &a, .route = &routes[data[0] % n_routes] };
    r.query = text;
    r.path = text;
    r.method = q.route->method;
    cursor(text);
    query(&q);
    path(&q);
    arena_release(&a);
    free(copy);
    return 0;
}
