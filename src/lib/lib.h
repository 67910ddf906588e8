/*
 * lib.h - struct pawl and what the files of this room share. Room-private.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LIB_LIB_H
#define LIB_LIB_H

#include <pawl.h>

#include "base/limits.h"
#include "exec/exec.h"

struct declared;

struct pawl_module {
    struct pawl *p;                    /* borrowed */
    struct pawl_err err;               /* the first failure while it registered */
    char version[VERSION_LEN_MAX + 1]; /* of the handlers that it registers; "": none */
};

struct pawl {
    struct exec *e; /* owned */
    char *client;   /* owned; NULL for none */
    struct pawl_module program;
    void **handles; /* owned: modules, closed after the workers */
    size_t n_handles;
    struct declared *declared, **last_declared; /* owned: schedules that pawl_start() stores */
};

/* Settings of a server for which a program has no option: for calls of schedules that come in C and
 * SQL. 0: the model's. */
struct call_defaults {
    int64_t timeout_us;
    size_t input_len_max;
};
/* pawl_open() with them. */
MUST_USE enum pawl_status pawl_open_with(const struct pawl_options *options,
                                         const struct call_defaults *defaults, struct pawl **out,
                                         struct pawl_err *err);

/* Remember the first failure of a module, for pawl_load() to report; returns `st`. */
enum pawl_status module_remember(struct pawl_module *m, enum pawl_status st,
                                 const struct pawl_err *err);

/* Memory for the arguments and the answer of one request: inputs, results, and the views on
 * them. */
#define REQUEST_LEN_MAX (BATCH_LEN_MAX * (size_t)2 + (16 << 20))

/* Does the caller's struct have this field? A struct of an older header may end before it. */
#define SPEC_HAS(s, field) ((s)->size >= offsetof(__typeof__(*(s)), field) + sizeof((s)->field))

/* A larger size is a mistake of the caller. */
#define STRUCT_SIZE_MAX 4096

/* The i-th element of a caller's array, whose structs are longer than ours when its header is
 * newer. */
#define ARRAY_AT(v, i) ((const void *)((const char *)(v) + (i) * (v)->size))

/* Store and remove the schedules that modules declared, in their order. The first that is refused
 * ends it. */
MUST_USE enum pawl_status declared_store(struct pawl *p, struct pawl_err *err);
/* Free the list. */
void declared_free(struct pawl *p);

/* Fill a call_spec that borrows from `s`, with defaults where `s` has none; not settled yet.
 * INVALID names the field. */
MUST_USE enum pawl_status spec_read(struct arena *a, const struct pawl_spec *s,
                                    struct call_spec *out, struct pawl_err *err);
/* The same, settled, with client and (if given) parent filled in. */
MUST_USE enum pawl_status spec_settle(struct pawl *p, struct arena *a, const struct pawl_spec *s,
                                      struct call_spec *out, struct pawl_err *err);

/* Fill *out with copies in `a`. False without memory. */
bool view_fill(struct arena *a, const struct call *c, struct pawl_view *out);
/* A payload as public data; borrowed. */
struct pawl_data data_of(struct payload p);
/* The inverse; borrowed. */
struct payload payload_of(struct pawl_data d);

/* Write one sentence on a refused accept into `out`, cut at `size`. */
void accepted_error(const struct exec *e, const struct call_spec *s, const struct accepted *r,
                    char *out, size_t size);

/* A page as its caller holds it: the public struct first, so that its pointer is also the one to
 * free. */
struct page_holder {
    struct pawl_page shown;
    struct arena arena;
};

struct pawl_shown {
    struct arena arena;
    struct pawl_view view;
};
/* An empty one, which the caller owns; NULL without memory. */
struct pawl_shown *shown_new(void);
/* Read the call from the database into a new *out. NOT_FOUND, GONE, BUSY, NO_MEMORY. */
MUST_USE enum pawl_status show_now(struct exec *e, struct bytes id, struct pawl_shown **out,
                                   struct pawl_err *err);
/* What to wait for: submit a settled spec first, or only wait for an id. */
struct waiting {
    const struct call_spec *spec; /* NULL: it was submitted before */
    struct bytes id;
    int64_t wait_us;
    struct pawl_call *by; /* the attempt that waits, which may be stopped; NULL: a caller outside
                             handlers */
};
/* Submit if asked to, and wait until the call ends or the time is up; *out then shows it and
 * belongs to the caller. UNKNOWN names the id. */
MUST_USE enum pawl_status wait_for(struct exec *e, const struct waiting *w, struct pawl_shown **out,
                                   struct pawl_err *err);
/* STATE, with the calls named, when a call of this key would wait for the attempt that asks for
 * it. */
MUST_USE enum pawl_status cycle_check(struct pawl_call *t, struct bytes key, struct pawl_err *err);
/* Is this a valid state of an object: JSON or bytes, within the limit? INVALID, TOO_LARGE. */
MUST_USE enum pawl_status state_check(struct pawl_data d, struct pawl_err *err);
/* INVALID when a length is given with a NULL pointer, or the form is unknown. */
MUST_USE enum pawl_status data_check(struct pawl_data d, const char *field, struct pawl_err *err);

#endif
