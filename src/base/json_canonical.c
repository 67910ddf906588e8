/*
 * json_canonical.c - the same text for the same value: no white space, members in the order of
 * their names (json.h).
 *
 * Every accepted call passes here, so most texts are read only once: a survey checks the text,
 * counts the objects and members, and finds out whether it is canonical already. If not, the text
 * is written without white space while objects and members are recorded; the members of each object
 * are sorted when it closes; then the pieces are written in order. Nothing is copied more than
 * twice, nothing recurses at any nesting, and array items cost no memory. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/json_scan.h"

struct survey {
    size_t objects, members;
    unsigned depth; /* the deepest */
    bool sorted;    /* every object's members */
};

static enum pawl_status survey_take(struct json_scan *s, struct survey *v, struct pawl_err *err)
{
    struct bytes last[JSON_DEPTH_MAX + 1]; /* the previous name of each open object */
    *v = (struct survey){ .sorted = true };
    for (;;) {
        enum json_step step = json_scan_next(s);
        if (step == JSON_END)
            return PAWL_OK;
        if (step == JSON_FAULT)
            return json_scan_fault(s, err);
        if (s->name.data) {
            unsigned depth = step == JSON_OPEN ? s->depth - 1 : s->depth;
            v->members++;
            if (v->sorted && bytes_cmp(last[depth], s->name) > 0)
                v->sorted = false;
            last[depth] = s->name;
        }
        if (step == JSON_OPEN) {
            v->objects += s->kind == JSON_OBJECT;
            v->depth = MAX(v->depth, s->depth);
            last[s->depth] = BYTES_NONE;
        }
    }
}

/* ---- Recording ------------------------------------------------------------------------------- */

/* Offsets are into the text without white space. */
struct member {
    struct bytes name;
    size_t from, to; /* from its name's quote to the end of its value */
    size_t inside;   /* the first object that begins at or after `from` */
};

struct object {
    size_t from, to;     /* including its brackets */
    size_t first, count; /* its members, sorted, in `members` */
    size_t after;        /* the first object that begins after it */
    size_t waiting;      /* while it is open: where its members begin among those that wait */
    size_t up;           /* the enclosing object; only while it is open */
};

/* Members wait at the low end of `members` until their object closes, and then move to the high
 * end. Both together never exceed the number of members. */
struct record {
    char *text;
    size_t len;
    struct object *objects;
    struct member *members;
    size_t n_objects, low, high;
    size_t open; /* the innermost open object; NONE outside */
};
#define NONE SIZE_MAX

static int member_cmp(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    int c = bytes_cmp(a->name, b->name);
    return c ? c : (a->from > b->from) - (a->from < b->from);
}

static void members_sort(struct member *v, size_t n)
{
    if (n > 16) {
        qsort(v, n, sizeof *v, member_cmp);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct member m = v[i];
        size_t at = i;
        for (; at > 0 && member_cmp(&v[at - 1], &m) > 0; at--)
            v[at] = v[at - 1];
        v[at] = m;
    }
}

static void record_add(struct record *r, const char *data, size_t len)
{
    memcpy(r->text + r->len, data, len);
    r->len += len;
}

static void object_open(struct record *r)
{
    r->objects[r->n_objects] = (struct object){ .from = r->len, .waiting = r->low, .up = r->open };
    r->open = r->n_objects++;
}

static void object_close(struct record *r)
{
    struct object *o = &r->objects[r->open];
    o->to = r->len;
    o->after = r->n_objects;
    o->count = r->low - o->waiting;
    r->high -= o->count;
    o->first = r->high;
    members_sort(r->members + o->waiting, o->count);
    memmove(r->members + o->first, r->members + o->waiting, o->count * sizeof *r->members);
    r->low = o->waiting;
    r->open = o->up;
}

/* Before a value: its comma and its name. */
static void value_begin(struct record *r, const struct json_scan *s)
{
    char before = r->len ? r->text[r->len - 1] : '[';
    if (before != '[' && before != '{')
        record_add(r, ",", 1);
    if (!s->name.data)
        return;
    r->members[r->low++] = (struct member){ s->name, r->len, 0, r->n_objects };
    record_add(r, s->name.data - 1, s->name.len + 2);
    record_add(r, ":", 1);
}

/* After a complete value. It is a member when the enclosing bracket is that of an object. */
static void value_end(struct record *r, const struct json_scan *s)
{
    if (s->depth > 0 && s->open[s->depth - 1] == '{')
        r->members[r->low - 1].to = r->len;
}

static void record_take(struct record *r, struct json_scan *s)
{
    for (;;) {
        enum json_step step = json_scan_next(s);
        if (step == JSON_END || step == JSON_FAULT)
            return;
        if (step != JSON_CLOSE)
            value_begin(r, s);
        if (step == JSON_OPEN && s->kind == JSON_OBJECT)
            object_open(r);
        record_add(r, s->raw.data, s->raw.len);
        if (step == JSON_CLOSE && s->kind == JSON_OBJECT)
            object_close(r);
        if (step != JSON_OPEN)
            value_end(r, s);
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A stretch of text to copy; an object inside it gets a frame of its own. */
struct frame {
    size_t at, to;    /* the rest of the current member */
    size_t inside;    /* the next object that may lie in it */
    size_t next, end; /* members still to come */
};

static void frame_member(struct frame *f, const struct record *r, char *out, size_t *len)
{
    const struct member *m = &r->members[f->next++];
    if (out[*len - 1] != '{')
        out[(*len)++] = ',';
    f->at = m->from;
    f->to = m->to;
    f->inside = m->inside;
}

static void copy_to(struct frame *f, const struct record *r, size_t to, char *out, size_t *len)
{
    memcpy(out + *len, r->text + f->at, to - f->at);
    *len += to - f->at;
    f->at = to;
}

static void record_write(const struct record *r, struct frame *stack, char *out, size_t *len)
{
    struct frame *f = stack;
    *len = 0;
    *f = (struct frame){ .to = r->len };
    for (;;) {
        if (f->inside < r->n_objects && r->objects[f->inside].from < f->to) {
            const struct object *o = &r->objects[f->inside];
            copy_to(f, r, o->from, out, len);
            f->at = o->to;
            f->inside = o->after;
            out[(*len)++] = '{';
            *++f = (struct frame){ .next = o->first, .end = o->first + o->count, .inside = NONE };
        } else {
            copy_to(f, r, f->to, out, len);
        }
        while (f->at == f->to && f->next == f->end) {
            if (f == stack)
                return;
            out[(*len)++] = '}';
            f--;
        }
        if (f->at == f->to && f->next < f->end)
            frame_member(f, r, out, len);
    }
}

enum pawl_status json_canonical(struct arena *a, struct bytes text, struct bytes *out,
                                struct pawl_err *err)
{
    struct json_scan s;
    struct survey v;
    json_scan_init(&s, text);
    enum pawl_status st = survey_take(&s, &v, err);
    if (st != PAWL_OK)
        return st;
    if (v.sorted && !s.spaced) {
        *out = text;
        return PAWL_OK;
    }

    struct record r = { .high = v.members, .open = NONE };
    r.text = arena_alloc(a, text.len);
    r.objects = arena_alloc(a, v.objects * sizeof *r.objects);
    r.members = arena_alloc(a, v.members * sizeof *r.members);
    struct frame *stack = arena_alloc(a, (v.depth + 1) * sizeof *stack);
    char *sorted = v.sorted ? r.text : arena_alloc(a, text.len);
    if (a->failed)
        return err_no_memory(err, "canonical JSON");

    json_scan_init(&s, text);
    record_take(&r, &s);
    assert(r.low == 0 && r.high == 0 && r.n_objects == v.objects && r.len <= text.len);
    *out = (struct bytes){ sorted, r.len };
    if (!v.sorted) {
        record_write(&r, stack, sorted, &out->len);
        CHECK(out->len == r.len);
    }
    return PAWL_OK;
}
