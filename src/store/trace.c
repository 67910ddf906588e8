/*
 * trace.c - `trace+URL`: an engine that logs every call, how it ended and how long it took.
 *
 * Lines go to base/log at LOG_DEBUG; they never contain inputs or results.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>

#include "base/buf.h"
#include "base/log.h"
#include "store/wrap.h"

static void trace_line(const char *slot, int64_t began_us, enum pawl_status st, const char *detail)
{
    log_line(LOG_DEBUG, "store %s%s%s: %s in %" PRId64 " us", slot, *detail ? " " : "", detail,
             pawl_status_name(st), world_mono(&world_real) - began_us);
}

#define TRACED(slot, detail, call)                                                                 \
    int64_t began_us = world_mono(&world_real);                                                    \
    enum pawl_status st = (call);                                                                  \
    trace_line(slot, began_us, st, detail);                                                        \
    return st

static enum pawl_status trace_open(const struct store_conf *conf, struct store **out,
                                   struct pawl_err *err)
{
    TRACED("open", "", wrap_open(&store_trace_ops, "trace+", conf, out, err));
}
static enum pawl_status trace_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("migrate", finish ? "finish" : "", in->ops->migrate(in, finish, err));
}
static enum pawl_status trace_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("schema", "", in->ops->schema(in, out, err));
}

/* "accept*64 claim": neighbours of one kind are counted. */
static void describe(struct op *const *v, size_t n, struct buf *b)
{
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && v[i + run]->kind == v[i]->kind; run++)
            ;
        buf_addf(b, run > 1 ? "%s%s*%zu" : "%s%s", i ? " " : "", op_name(v[i]->kind), run);
    }
    buf_add_char(b, '\0');
}

static enum pawl_status trace_commit(struct store *s, struct op *const *v, size_t n,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    struct buf b;
    buf_init(&b, 1024);
    describe(v, n, &b);
    int64_t began_us = world_mono(&world_real);
    enum pawl_status st = in->ops->commit(in, v, n, err);
    trace_line("commit", began_us, st, buf_ok(&b) ? b.data : "many");
    buf_release(&b);
    return st;
}
static enum pawl_status trace_get(struct store *s, struct arena *a, struct get *g,
                                  struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("get", "", in->ops->get(in, a, g, err));
}
static enum pawl_status trace_list(struct store *s, struct arena *a, const struct query *q,
                                   struct page *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("list", "", in->ops->list(in, a, q, out, err));
}
static enum pawl_status trace_attempts(struct store *s, struct arena *a, struct bytes id,
                                       struct attempts *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("attempts", "", in->ops->attempts(in, a, id, out, err));
}
static enum pawl_status trace_archived(struct store *s, struct arena *a, struct bytes id,
                                       struct archived *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("archived", "", store_archived(in, a, id, out, err));
}
static enum pawl_status trace_object(struct store *s, struct arena *a, struct bytes type,
                                     struct bytes key, struct object *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("object", "", in->ops->object(in, a, type, key, out, err));
}

static enum pawl_status trace_keys(struct store *s, struct arena *a, const struct key_query *q,
                                   struct key_rows *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("keys", "", in->ops->keys(in, a, q, out, err));
}

static enum pawl_status trace_queues(struct store *s, struct arena *a, struct queue_rows *out,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("queues", "", in->ops->queues(in, a, out, err));
}
static enum pawl_status trace_nodes(struct store *s, struct arena *a, struct node_rows *out,
                                    struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("nodes", "", in->ops->nodes(in, a, out, err));
}
static enum pawl_status trace_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                                      struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("leaders", "", in->ops->leaders(in, a, out, err));
}
static enum pawl_status trace_cancel_requests(struct store *s, struct arena *a,
                                              struct cancel_requests *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("cancel_requests", "", in->ops->cancel_requests(in, a, out, err));
}
static enum pawl_status trace_look(struct store *s, enum store_look how, feature_look_fn *look,
                                   void *ctx, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("look", "", store_look(in, how, look, ctx, err));
}
static enum pawl_status trace_now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("now", "", in->ops->now(in, out_us, err));
}
static enum pawl_status trace_version(struct store *s, int64_t *out, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("version", "", in->ops->version(in, out, err));
}
static enum pawl_status trace_hint(struct store *s, struct hint *h, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("hint", "", store_hint(in, h, err));
}
static enum pawl_status trace_tend(struct store *s, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("tend", "", in->ops->tend ? in->ops->tend(in, err) : PAWL_OK);
}
static enum pawl_status trace_steps(const struct store_conf *conf, struct arena *a,
                                    struct steps *out, struct pawl_err *err)
{
    TRACED("steps", "", wrap_steps("trace+", conf, a, out, err));
}
static enum pawl_status trace_doctor(struct store *s, struct arena *a, struct findings *out,
                                     struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("doctor", "", in->ops->doctor ? in->ops->doctor(in, a, out, err) : PAWL_OK);
}
static enum pawl_status trace_grants(const struct store_conf *conf, const struct roles *roles,
                                     struct arena *a, const char **out, struct pawl_err *err)
{
    TRACED("grants", "", wrap_grants("trace+", conf, roles, a, out, err));
}
static enum pawl_status trace_grant(struct store *s, const char *sql, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("grant", "", store_grant(in, sql, err));
}
static enum pawl_status trace_backup(struct store *s, const struct backup *b, struct pawl_err *err)
{
    struct store *in = wrap_inner(s);
    TRACED("backup", "", store_backup(in, b, err));
}

const struct store_ops store_trace_ops = {
    .name = "trace",
    .open = trace_open,
    .close = wrap_close,
    .migrate = trace_migrate,
    .schema = trace_schema,
    .commit = trace_commit,
    .get = trace_get,
    .list = trace_list,
    .attempts = trace_attempts,
    .archived = trace_archived,
    .object = trace_object,
    .keys = trace_keys,
    .queues = trace_queues,
    .nodes = trace_nodes,
    .leaders = trace_leaders,
    .cancel_requests = trace_cancel_requests,
    .look = trace_look,
    .now = trace_now,
    .version = trace_version,
    .hint = trace_hint,
    .tend = trace_tend,
    .steps = trace_steps,
    .doctor = trace_doctor,
    .grants = trace_grants,
    .grant = trace_grant,
    .backup = trace_backup,
    /* No sql slot, as in fault.c. */
};
