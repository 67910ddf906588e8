/*
 * events.c - fuzz: the event service's parsing of requests, and that refusals are valid JSON.
 *
 * The input is a stream of requests. Path, query and body of each are copied to blocks of exactly
 * their length, so that the sanitizer sees a read past an end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/macros.h"
#include "events/inside.h"
#include "net/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct bytes own_block(struct bytes b)
{
    char *copy = malloc(b.len ? b.len : 1);
    CHECK(copy);
    if (b.len)
        memcpy(copy, b.data, b.len);
    return (struct bytes){ copy, b.len };
}

static bool one_of(enum pawl_status st)
{
    return st == PAWL_NOT_FOUND || st == PAWL_INVALID || st == PAWL_METHOD ||
           st == PAWL_TOO_LARGE || st == PAWL_MEDIA;
}

/* The error message is valid JSON, whatever it quotes from the request. */
static void refused(const struct pawl_err *err)
{
    struct arena a;
    struct buf b;
    struct json *v;
    struct pawl_err why;
    CHECK(one_of(err->status) && *err->text);
    buf_init(&b, 4096);
    arena_init(&a, 1 << 20);
    front_add(&b, err, BYTES_NONE);
    CHECK(buf_ok(&b));
    if (json_parse(&a, buf_bytes(&b), &v, &why) != PAWL_OK) {
        fprintf(stderr, "%.*s: %s\n", BYTES_ARG(buf_bytes(&b)), why.text);
        abort();
    }
    arena_release(&a);
    buf_release(&b);
}

static void accepted(const struct http_request *r, const struct events_question *q)
{
    char path[40];
    CHECK(q->path != PATH_NONE && r->query.len == 0 && !r->too_large);
    CHECK(r->method == HTTP_GET || r->method == HTTP_HEAD || r->method == HTTP_POST);
    if (q->path != PATH_EVENT)
        return;
    CHECK(q->id >= 1 && q->id <= EVENT_ID_MAX);
    snprintf(path, sizeof path, "/events/%" PRId64, q->id); /* and there is no other way */
    CHECK(bytes_eq(r->path, bytes_of(path)));
}

static void request(const struct http_request *from)
{
    struct http_request r = *from;
    struct events_question q;
    struct pawl_err err = { 0 };
    r.path = own_block(from->path);
    r.query = own_block(from->query);
    r.body = own_block(from->body);
    arena_init(&r.arena, 1 << 20);
    enum pawl_status st = events_question_read(&r, &q, &err);
    CHECK(q.path == events_path_of(&r));
    CHECK(st != PAWL_METHOD || q.allow);
    if (st == PAWL_OK)
        accepted(&r, &q);
    else
        refused(&err);
    arena_release(&r.arena);
    free((void *)r.path.data);
    free((void *)r.query.data);
    free((void *)r.body.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct intake_rules rules = { .body_max = events_body_max };
    struct intake in;
    bool more = true;
    http_limits_init(&rules.limits);
    intake_init(&in, &rules);
    for (size_t at = 0; at < len && more;) {
        at += intake_feed(&in, (struct bytes){ (const char *)data + at, len - at });
        if (in.state == INTAKE_DONE) {
            more = in.keep_alive;
            request(&in.request);
            intake_reset(&in);
        }
        more = more && in.state != INTAKE_BAD;
    }
    intake_release(&in);
    return 0;
}
