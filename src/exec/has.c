/*
 * has.c - see has.h. Made before the workers start, and only read after that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/has.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "exec/registry.h"
#include "model/needs.h"

/* Room for the longest list three times: as given, sorted, as a text. */
#define LIST_LEN_MAX (3 * HAS_MAX * (NEED_LEN_MAX + 64))

/* The text, without what every process has. */
static bool keep_text(struct has *h, struct bytes text)
{
    h->text = mem_alloc(text.len + 1);
    if (!h->text)
        return false;
    memcpy(h->text, text.data, text.len);
    h->text[text.len] = '\0';
    return true;
}

/* The names become the list; they may be those of the list itself. */
static bool keep(struct has *h, const struct bytes *v, size_t n)
{
    size_t size = n * sizeof *v, len = 0;
    for (size_t i = 0; i < n; i++)
        len += v[i].len;
    struct bytes *to = mem_alloc(size + len);
    if (!to)
        return false;
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        memcpy(at, v[i].data, v[i].len);
        to[i] = (struct bytes){ at, v[i].len };
        at += v[i].len;
    }
    mem_free(h->v);
    h->v = to;
    h->n = n;
    return true;
}

enum pawl_status has_make(struct has *h, const char *const *names, size_t n, struct pawl_err *err)
{
    struct arena a;
    has_release(h);
    if ((n && !names) || n > HAS_MAX)
        return err_set(err, PAWL_INVALID, "field \"has\": has %zu names, limit %d", n, HAS_MAX);
    arena_init(&a, LIST_LEN_MAX);
    struct bytes *given = arena_alloc(&a, (n + 1) * sizeof *given);
    for (size_t i = 0; given && i < n; i++)
        given[i] = names[i] ? bytes_of(names[i]) : BYTES("");
    const struct bytes *v = given;
    enum pawl_status st =
        given ? needs_settle(&a, &(struct needs_field){ "has", HAS_MAX }, &v, &n, err)
              : err_no_memory(err, "starting the workers");
    struct bytes text = st == PAWL_OK ? needs_text(&a, v, n) : BYTES_NONE;
    size_t n_given = n;
    if (st == PAWL_OK)
        st = needs_begin(&a, BYTES_NONE, &v, &n, err);
    if (st == PAWL_OK && (a.failed || !keep(h, v, n) || (n_given && !keep_text(h, text)))) {
        has_release(h);
        st = err_no_memory(err, "starting the workers");
    }
    arena_release(&a);
    return st;
}

static int compare(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

enum pawl_status has_versions(struct has *h, const struct registry *r, struct pawl_err *err)
{
    struct arena a;
    size_t n = h->n;
    arena_init(&a, (h->n + r->n + 1) * (sizeof *h->v + NEED_VERSION_LEN_MAX + 64));
    struct bytes *all = arena_alloc(&a, (h->n + r->n + 1) * sizeof *all);
    if (all && n)
        memcpy(all, h->v, n * sizeof *all);
    for (size_t i = 0; all && i < r->n; i++) {
        const struct registry_entry *it = &r->v[i];
        char text[NEED_VERSION_LEN_MAX];
        if (it->version.data && (!i || !bytes_eq(it->type_b, r->v[i - 1].type_b)))
            all[n++] = arena_copy(&a, version_name(it->version, it->type_b, text));
    }
    bool ok = all && !a.failed;
    if (ok) {
        qsort(all, n, sizeof *all, compare);
        ok = keep(h, all, n);
    }
    arena_release(&a);
    return ok ? PAWL_OK : err_no_memory(err, "starting the workers");
}

void has_release(struct has *h)
{
    mem_free(h->v);
    mem_free(h->text);
    *h = (struct has){ 0 };
}

bool has_all(const struct has *h, const struct call_spec *s)
{
    return needs_served(s->needs, s->n_needs, h->v, h->n);
}
