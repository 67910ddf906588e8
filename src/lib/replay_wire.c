/*
 * replay_wire.c - how a replay reads calls: the child sends an id, the parent the call
 * (replay_inside.h).
 *
 * Both are one program, so structs travel as they are; texts follow them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <sys/socket.h>

#include "lib/lib.h"
#include "lib/replay_inside.h"

/* In place of the length of an absent text. */
#define ABSENT UINT32_MAX
#define TEXTS 12

struct answer {
    enum pawl_status status, found; /* of the read; of the call */
    struct pawl_err err;
    struct call call;
    uint32_t len[TEXTS];
};

/* The texts of a call that a handler can see; not its tags and needs. */
static void texts_of(struct call *c, struct bytes *out[TEXTS])
{
    struct call_spec *s = &c->spec;
    struct bytes *const v[TEXTS] = { &s->id,          &s->type,   &s->method, &s->key,
                                     &s->queue,       &s->caller, &s->client, &s->parent,
                                     &s->traceparent, &c->node,   &c->error,  &c->result.bytes };
    memcpy(out, v, sizeof v);
}

/* All of it, or false: the other side has gone, or the time of the socket is up. */
static bool write_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t len)
{
    char *at = data;
    while (len) {
        ssize_t n = recv(fd, at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* ---- Child ----------------------------------------------------------------------------------- */

static bool read_texts(int fd, struct arena *a, const struct answer *w, struct call *out)
{
    struct bytes *v[TEXTS];
    texts_of(out, v);
    for (size_t i = 0; i < TEXTS; i++) {
        *v[i] = BYTES_NONE;
        if (w->len[i] == ABSENT)
            continue;
        char *to = arena_alloc(a, (size_t)w->len[i] + 1);
        if (!to || !read_all(fd, to, w->len[i]))
            return false;
        to[w->len[i]] = '\0';
        *v[i] = (struct bytes){ to, w->len[i] };
    }
    return true;
}

enum pawl_status wire_get(int fd, struct arena *a, struct bytes id, enum pawl_status *out_found,
                          struct call *out, struct pawl_err *err)
{
    struct answer w;
    uint32_t len = (uint32_t)id.len;
    if (!write_all(fd, &len, sizeof len) || !write_all(fd, id.data, id.len) ||
        !read_all(fd, &w, sizeof w))
        return err_set(err, PAWL_BUSY, "the process that started this replay has gone");
    *out_found = w.found;
    *out = w.call;
    if (w.status != PAWL_OK) {
        *err = w.err;
        return w.status;
    }
    return read_texts(fd, a, &w, out) ? PAWL_OK : err_no_memory(err, "reading a call");
}

/* ---- Parent ---------------------------------------------------------------------------------- */

static bool read_id(int fd, struct arena *a, struct bytes *out)
{
    uint32_t len;
    if (!read_all(fd, &len, sizeof len) || len > NAME_LEN_MAX)
        return false;
    char *id = arena_alloc(a, len + 1);
    if (!id || !read_all(fd, id, len))
        return false;
    *out = (struct bytes){ id, len };
    return true;
}

static bool send_answer(int fd, struct answer *w)
{
    struct bytes *v[TEXTS];
    struct call c = w->call;
    texts_of(&c, v);
    for (size_t i = 0; i < TEXTS; i++)
        w->len[i] = v[i]->data ? (uint32_t)v[i]->len : ABSENT;
    w->call.spec.input = (struct payload){ 0 };
    w->call.spec.schedule = BYTES_NONE;
    w->call.spec.needs = NULL;
    w->call.spec.tags = NULL;
    w->call.spec.n_needs = w->call.spec.n_tags = 0;
    bool sent = write_all(fd, w, sizeof *w);
    for (size_t i = 0; i < TEXTS && sent && w->status == PAWL_OK; i++)
        sent = write_all(fd, v[i]->data, v[i]->len);
    return sent;
}

bool wire_serve(int fd, struct store *s, enum pawl_status *out_st, struct pawl_err *err)
{
    struct arena a;
    struct bytes id;
    struct answer w = { .found = PAWL_NOT_FOUND };
    arena_init(&a, REQUEST_LEN_MAX);
    bool ok = read_id(fd, &a, &id);
    if (ok) {
        struct get g = { .ids = &id, .n = 1, .with = WITH_RESULT };
        w.status = store_get(s, &a, &g, &w.err);
        if (w.status == PAWL_OK) {
            w.found = g.found[0];
            w.call = g.out[0];
        } else
            *err = w.err;
        *out_st = w.status;
        ok = send_answer(fd, &w);
    }
    arena_release(&a);
    return ok;
}
