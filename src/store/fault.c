/*
 * fault.c - `fault+URL`: an engine that fails its n-th call, or every call, before or after doing
 * it.
 *
 * AFTER does the work and loses the answer, which is what a cut connection looks like to a caller.
 * The setting is process-wide, because a test counts the calls of several handles together.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>

#include "store/wrap.h"

static atomic_int_least64_t calls;
static atomic_int_least64_t fail_at;
static atomic_int fail_when;
static atomic_int fail_status;

void store_fault(int64_t n, enum fault_when when, enum pawl_status status)
{
    atomic_store(&fail_when, when);
    atomic_store(&fail_status, status);
    atomic_store(&calls, 0);
    atomic_store(&fail_at, n);
}

int64_t store_fault_count(void)
{
    return atomic_load(&calls);
}

/* Is this the call that fails? Counts it. */
static bool chosen(void)
{
    int64_t n = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&fail_at);
    return at == FAULT_EVERY || n == at;
}

static enum pawl_status injected(struct pawl_err *err)
{
    enum pawl_status st = (enum pawl_status)atomic_load(&fail_status);
    return err_set(err, st, "fault: this call was told to fail");
}

/* The body of every slot: count the call, and fail before or after the engine's own slot. */
#define FAULTY(err, call)                                                                          \
    bool fails = chosen();                                                                         \
    if (fails && atomic_load(&fail_when) == FAULT_BEFORE)                                          \
        return injected(err);                                                                      \
    enum pawl_status st = (call);                                                                  \
    return fails && st == PAWL_OK ? injected(err) : st

static enum pawl_status fault_open(const struct store_conf *conf, struct store **out,
                                   struct pawl_err *err)
{
    if (chosen())
        return injected(err);
    return wrap_open(&store_fault_ops, "fault+", conf, out, err);
}
static enum pawl_status fault_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->migrate(in, finish, err));
}
static enum pawl_status fault_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->schema(in, out, err));
}
static enum pawl_status fault_commit(struct store *s, struct op *const *v, size_t n,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->commit(in, v, n, err));
}
static enum pawl_status fault_get(struct store *s, struct arena *a, struct get *g,
                                  struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->get(in, a, g, err));
}
static enum pawl_status fault_list(struct store *s, struct arena *a, const struct query *q,
                                   struct page *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->list(in, a, q, out, err));
}
static enum pawl_status fault_attempts(struct store *s, struct arena *a, struct bytes id,
                                       struct attempts *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->attempts(in, a, id, out, err));
}
static enum pawl_status fault_archived(struct store *s, struct arena *a, struct bytes id,
                                       struct archived *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, store_archived(in, a, id, out, err));
}
static enum pawl_status fault_object(struct store *s, struct arena *a, struct bytes type,
                                     struct bytes key, struct object *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->object(in, a, type, key, out, err));
}

static enum pawl_status fault_keys(struct store *s, struct arena *a, const struct key_query *q,
                                   struct key_rows *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->keys(in, a, q, out, err));
}

static enum pawl_status fault_queues(struct store *s, struct arena *a, struct queue_rows *out,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->queues(in, a, out, err));
}
static enum pawl_status fault_nodes(struct store *s, struct arena *a, struct node_rows *out,
                                    struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->nodes(in, a, out, err));
}
static enum pawl_status fault_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                                      struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->leaders(in, a, out, err));
}
static enum pawl_status fault_cancel_requests(struct store *s, struct arena *a,
                                              struct cancel_requests *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->cancel_requests(in, a, out, err));
}
static enum pawl_status fault_look(struct store *s, enum store_look how, feature_look_fn *look,
                                   void *ctx, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, store_look(in, how, look, ctx, err));
}
static enum pawl_status fault_now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->now(in, out_us, err));
}
static enum pawl_status fault_version(struct store *s, int64_t *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->version(in, out, err));
}
/* Not counted: notifications are asynchronous, so the n-th call would differ from run to run. */
static enum pawl_status fault_hint(struct store *s, struct hint *h, struct pawl_err *err)
{
    return store_hint(wrap_inner(s), h, err);
}
static enum pawl_status fault_tend(struct store *s, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->tend ? in->ops->tend(in, err) : PAWL_OK);
}
static enum pawl_status fault_steps(const struct store_conf *conf, struct arena *a,
                                    struct steps *out, struct pawl_err *err)
{
    FAULTY(err, wrap_steps("fault+", conf, a, out, err));
}
static enum pawl_status fault_doctor(struct store *s, struct arena *a, struct findings *out,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, in->ops->doctor ? in->ops->doctor(in, a, out, err) : PAWL_OK);
}
static enum pawl_status fault_grants(const struct store_conf *conf, const struct roles *roles,
                                     struct arena *a, const char **out, struct pawl_err *err)
{
    FAULTY(err, wrap_grants("fault+", conf, roles, a, out, err));
}
static enum pawl_status fault_grant(struct store *s, const char *sql, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, store_grant(in, sql, err));
}
static enum pawl_status fault_backup(struct store *s, const struct backup *b, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    FAULTY(err, store_backup(in, b, err));
}

const struct store_ops store_fault_ops = {
    .name = "fault",
    .open = fault_open,
    .close = wrap_close,
    .migrate = fault_migrate,
    .schema = fault_schema,
    .commit = fault_commit,
    .get = fault_get,
    .list = fault_list,
    .attempts = fault_attempts,
    .archived = fault_archived,
    .object = fault_object,
    .keys = fault_keys,
    .queues = fault_queues,
    .nodes = fault_nodes,
    .leaders = fault_leaders,
    .cancel_requests = fault_cancel_requests,
    .look = fault_look,
    .now = fault_now,
    .version = fault_version,
    .hint = fault_hint,
    .tend = fault_tend,
    .steps = fault_steps,
    .doctor = fault_doctor,
    .grants = fault_grants,
    .grant = fault_grant,
    .backup = fault_backup,
    /* No sql slot: a transaction's handle is the inner engine's own, so its statements go there
       directly. */
};
