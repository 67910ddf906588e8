/*
 * lib.h - struct pawl and what the files of the public face share. Room-private.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LIB_LIB_H
#define LIB_LIB_H

#include <pawl.h>

#include "exec/exec.h"

struct pawl_module {
    struct pawl *p;      /* borrowed */
    struct pawl_err err; /* the first thing that went wrong while it registered */
};

struct pawl {
    struct exec *e; /* owned */
    char *client;   /* owned; NULL for none */
    struct pawl_module program;
    void **handles; /* owned: modules, closed after the workers */
    size_t n_handles;
};

/* Arguments and answer of one request: inputs, results, and the views on them. */
#define REQUEST_LEN_MAX (BATCH_LEN_MAX * (size_t)2 + (16 << 20))

/* A field of a caller's struct, absent when the struct the caller knows ends before it. */
#define SPEC_HAS(s, field) ((s)->size >= offsetof(__typeof__(*(s)), field) + sizeof((s)->field))

/* A size beyond this is not a size. */
#define STRUCT_SIZE_MAX 4096

/* The i-th of a caller's array, whose structs may be longer than ours: a newer header has more
 * fields. */
#define ARRAY_AT(v, i) ((const void *)((const char *)(v) + (i) * (v)->size))

/* Fill a call_spec that borrows from `s`, defaults where it says so; not settled yet. */
MUST_USE enum pawl_status spec_read(struct arena *a, const struct pawl_spec *s,
                                    struct call_spec *out, struct pawl_err *err);
/* The same and settled, with client and (when given) parent filled in. */
MUST_USE enum pawl_status spec_settle(struct pawl *p, struct arena *a, const struct pawl_spec *s,
                                      struct call_spec *out, struct pawl_err *err);

/* Fill *out with copies in `a`; false without memory. */
bool view_fill(struct arena *a, const struct call *c, struct pawl_view *out);
struct pawl_data data_of(struct payload p);
struct payload payload_of(struct pawl_data d);

/* One sentence for a refused accept. */
void accepted_error(const struct exec *e, const struct call_spec *s, const struct accepted *r,
                    char *out, size_t size);

/* A page as its caller holds it: the struct first, so that the pointer it has is the pointer to
 * free. */
struct page_holder {
    struct pawl_page shown;
    struct arena arena;
};

struct pawl_shown {
    struct arena arena;
    struct pawl_view view;
};
struct pawl_shown *shown_new(void);
/* *out shows the call as it is now, read from the database. NOT_FOUND, GONE. */
MUST_USE enum pawl_status show_now(struct exec *e, struct bytes id, struct pawl_shown **out,
                                   struct pawl_err *err);
/* What to wait for: submit a settled spec first, or only wait for an id. */
struct waiting {
    const struct call_spec *spec; /* NULL: it was submitted before */
    struct bytes id;
    int64_t wait_us;
    struct pawl_call *by; /* the try that waits, which may be told to stop; NULL: a plain caller */
};
MUST_USE enum pawl_status wait_for(struct exec *e, const struct waiting *w, struct pawl_shown **out,
                                   struct pawl_err *err);
/* STATE, with the calls named, when a call of this key would wait for the try that asks for it. */
MUST_USE enum pawl_status cycle_check(struct pawl_call *t, struct bytes key, struct pawl_err *err);
/* A state that an object may keep: JSON that is JSON, or bytes, and not too large. */
MUST_USE enum pawl_status state_check(struct pawl_data d, struct pawl_err *err);
/* INVALID when there is a length and nothing it could be the length of. */
MUST_USE enum pawl_status data_check(struct pawl_data d, const char *field, struct pawl_err *err);

#endif
