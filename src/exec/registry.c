/*
 * registry.c - handlers in a sorted array: there are few, they are looked up often and never
 * removed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/registry.h"

#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"

void registry_release(struct registry *r)
{
    for (size_t i = 0; i < r->n; i++) {
        mem_free(r->v[i].type);
        mem_free(r->v[i].method);
        mem_free((char *)r->v[i].version.data);
    }
    mem_free(r->v);
    mem_free(r->types);
    *r = (struct registry){ 0 };
}

/* The index of (type, method), or where to insert it. */
static size_t place(const struct registry *r, struct bytes type, struct bytes method, bool *found)
{
    size_t low = 0, high = r->n;
    *found = false;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = bytes_cmp(r->v[mid].type_b, type);
        if (c == 0)
            c = bytes_cmp(r->v[mid].method_b, method);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static char *copy(struct bytes b)
{
    char *text = mem_alloc(b.len + 1);
    if (text) {
        memcpy(text, b.data, b.len);
        text[b.len] = '\0';
    }
    return text;
}

static bool make_room(struct registry *r)
{
    if (r->n < r->cap)
        return true;
    size_t cap = r->cap ? r->cap * 2 : 16;
    struct registry_entry *v = mem_resize(r->v, cap * sizeof(*v));
    if (!v)
        return false;
    r->v = v;
    r->cap = cap;
    return true;
}

enum pawl_status registry_add(struct registry *r, const char *type, const char *method,
                              pawl_handler *handler, struct pawl_err *err)
{
    struct bytes t = bytes_of(type), m = bytes_of(method);
    const char *fault = name_fault(t) ? name_fault(t) : name_fault(m);
    bool found;
    if (fault)
        return err_set(err, PAWL_INVALID, "handler \"%.*s.%.*s\": a name %s", BYTES_ARG(t),
                       BYTES_ARG(m), fault);
    size_t at = place(r, t, m, &found);
    if (found)
        return err_set(err, PAWL_CONFLICT, "handler \"%s.%s\" is registered already", type, method);
    if (r->n >= LANES_MAX)
        return err_set(err, PAWL_FULL, "%zu handlers are registered, limit %d", r->n, LANES_MAX);
    struct registry_entry e = { .type = copy(t), .method = copy(m), .handler = handler };
    if (!e.type || !e.method || !make_room(r)) {
        mem_free(e.type);
        mem_free(e.method);
        return err_no_memory(err, "registering a handler");
    }
    e.type_b = (struct bytes){ e.type, t.len };
    e.method_b = (struct bytes){ e.method, m.len };
    memmove(r->v + at + 1, r->v + at, (r->n - at) * sizeof(e));
    r->v[at] = e;
    r->n++;
    return PAWL_OK;
}

enum pawl_status registry_version(struct registry *r, int at, struct bytes version,
                                  struct pawl_err *err)
{
    char *text = copy(version);
    if (!text)
        return err_no_memory(err, "registering a handler");
    CHECK(at >= 0 && !r->v[at].version.data);
    r->v[at].version = (struct bytes){ text, version.len };
    return PAWL_OK;
}

/* A run is claimed by its type, and pinned to a version of its type. */
static enum pawl_status one_version(const struct registry_entry *a, const struct registry_entry *b,
                                    struct pawl_err *err)
{
    if (bytes_eq(a->version, b->version))
        return PAWL_OK;
    return err_set(err, PAWL_INVALID,
                   "handlers \"%s.%s\" (version \"%.*s\") and \"%s.%s\" (version \"%.*s\"): "
                   "handlers of one type must have the same version",
                   a->type, a->method, BYTES_ARG(a->version), b->type, b->method,
                   BYTES_ARG(b->version));
}

enum pawl_status registry_seal(struct registry *r, struct pawl_err *err)
{
    for (size_t i = 1; i < r->n; i++)
        if (bytes_eq(r->v[i].type_b, r->v[i - 1].type_b)) {
            enum pawl_status st = one_version(&r->v[i - 1], &r->v[i], err);
            if (st != PAWL_OK)
                return st;
        }
    mem_free(r->types);
    r->n_types = 0;
    r->types = mem_alloc((r->n ? r->n : 1) * sizeof(*r->types));
    if (!r->types)
        return err_no_memory(err, "starting the workers");
    for (size_t i = 0; i < r->n; i++)
        if (!i || !bytes_eq(r->v[i].type_b, r->v[i - 1].type_b))
            r->types[r->n_types++] = r->v[i].type_b;
    return PAWL_OK;
}

int registry_find(const struct registry *r, struct bytes type, struct bytes method)
{
    bool found;
    size_t at = place(r, type, method, &found);
    return found ? (int)at : -1;
}
