/*
 * has.c - see has.h. Made before the workers start, and only read after that.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/has.h"

#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
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

static bool keep(struct has *h, const struct bytes *v, size_t n)
{
    size_t size = n * sizeof *h->v, len = 0;
    for (size_t i = 0; i < n; i++)
        len += v[i].len;
    h->v = mem_alloc(size + len);
    if (!h->v)
        return false;
    char *at = (char *)(h->v + n);
    for (size_t i = 0; i < n; i++) {
        memcpy(at, v[i].data, v[i].len);
        h->v[i] = (struct bytes){ at, v[i].len };
        at += v[i].len;
    }
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
    const struct bytes *all = st == PAWL_OK ? needs_with_steps(&a, v, n) : NULL;
    if (st == PAWL_OK && (!all || a.failed || !keep(h, all, n + 1) || (n && !keep_text(h, text)))) {
        has_release(h);
        st = err_no_memory(err, "starting the workers");
    }
    arena_release(&a);
    return st;
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
