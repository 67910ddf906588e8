/*
 * object.c - objects and keys from outside their calls: load, save, delete, pending calls, blocked
 * keys.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/one_shot.h"
#include "exec/write_job.h"
#include "exec/waiter.h"
#include "lib/lib.h"

#define ANSWER_LEN_MAX (64 << 20)
/* One operation waits this long for a finish of this process to free the key. When another process
 * holds the key, repeating the operation finds it free. */
#define TURN_LOOK_US (20 * MS_US)
#define TURN_WAIT_US (5 * SEC_US)

struct object_holder {
    struct pawl_object shown; /* first: the caller's pointer is also the one to free */
    struct arena arena;
};
struct keys_holder {
    struct pawl_keys shown;
    struct arena arena;
};

static enum pawl_status check_names(const char *type, const char *key, struct pawl_err *err)
{
    const char *fault = name_fault(bytes_of(type));
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"type\": %s", fault);
    fault = name_fault(bytes_of(key));
    return fault ? err_set(err, PAWL_INVALID, "field \"key\": %s", fault) : PAWL_OK;
}

/* ---- Load ------------------------------------------------------------------------------------ */

static enum pawl_status load(struct pawl *p, struct bytes type, struct bytes key,
                             struct object_holder *h, struct pawl_err *err)
{
    struct store *s;
    struct object o;
    enum pawl_status st = exec_reader(p->e, &s, err);
    if (st != PAWL_OK)
        return st;
    st = store_object(s, &h->arena, type, key, &o, err);
    exec_reader_back(p->e, s);
    if (st != PAWL_OK)
        return st;
    struct payload state = { o.state.form, arena_copy(&h->arena, o.state.bytes) };
    h->shown = (struct pawl_object){ .type = arena_text(&h->arena, type),
                                     .key = arena_text(&h->arena, key),
                                     .state = data_of(state),
                                     .version = o.version,
                                     .updated_at_us = o.updated_us,
                                     .pending = o.pending };
    return h->arena.failed ? err_no_memory(err, "showing an object") : PAWL_OK;
}

enum pawl_status pawl_object_load(struct pawl *p, const char *type, const char *key,
                                  struct pawl_object **out, struct pawl_err *err)
{
    if (!p || !out)
        return err_set(err, PAWL_INVALID, "pawl_object_load: an argument is NULL");
    enum pawl_status st = check_names(type, key, err);
    if (st != PAWL_OK)
        return st;
    struct object_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing an object");
    arena_init(&h->arena, REQUEST_LEN_MAX);
    st = load(p, bytes_of(type), bytes_of(key), h, err);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_object_free(&h->shown);
    return st;
}

void pawl_object_free(struct pawl_object *object)
{
    struct object_holder *h = (struct object_holder *)object;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}

/* ---- Save and delete ------------------------------------------------------------------------- */

static enum pawl_status read_change(const struct pawl_object_change *given, enum state_do how,
                                    struct pawl_object_change *out, struct pawl_err *err)
{
    *out = (struct pawl_object_change){ PAWL_OBJECT_CHANGE_INIT };
    if (!given || given->size < sizeof(size_t) || given->size > STRUCT_SIZE_MAX)
        return err_set(err, PAWL_INVALID,
                       "struct pawl_object_change: initialise it with PAWL_OBJECT_CHANGE_INIT");
    memcpy(out, given, MIN(given->size, sizeof(*out)));
    enum pawl_status st = check_names(out->type, out->key, err);
    if (st == PAWL_OK && out->if_version < 0)
        st = err_set(err, PAWL_INVALID, "field \"if_version\": must not be below 0");
    if (st == PAWL_OK && out->wait_us > WAIT_MAX_US)
        st = err_set(err, PAWL_INVALID, "field \"wait\": must be at most %d s",
                     (int)(WAIT_MAX_US / SEC_US));
    if (st == PAWL_OK && how == STATE_SET)
        st = state_check(out->state, err);
    return st;
}

/* Repeat until it is not BUSY, or the time is up. Waiters for calls that it ended are told. */
static enum pawl_status change(struct pawl *p, const struct pawl_object_change *g,
                               struct object_op *what, struct pawl_err *err)
{
    int64_t wait_us = g->wait_us ? MAX(g->wait_us, 0) : TURN_WAIT_US;
    int64_t until_us = world_mono(&world_real) + wait_us;
    for (;;) {
        struct arena a;
        arena_init(&a, ANSWER_LEN_MAX);
        struct op op = { .kind = OP_OBJECT, .a = &a, .object = *what };
        int64_t turn_us = MIN(world_mono(&world_real) + TURN_LOOK_US, until_us);
        enum pawl_status st = exec_do_by(p->e, &op, turn_us);
        if (st == PAWL_OK)
            exec_look(p->e, op.ended, op.n_ended);
        else
            err_set(err, st, "%s", op.err.text);
        arena_release(&a);
        if (st != PAWL_BUSY || world_mono(&world_real) >= until_us) {
            *what = op.object;
            return st;
        }
        struct one_shot never; /* an immediate BUSY: too many writes wait */
        one_shot_init(&never);
        one_shot_wait(&never, turn_us);
    }
}
static enum pawl_status change_as(struct pawl *p, const struct pawl_object_change *given,
                                  enum state_do how, struct object_op *out, struct pawl_err *err)
{
    struct pawl_object_change g;
    if (!p)
        return err_set(err, PAWL_INVALID, "the handle is NULL");
    enum pawl_status st = read_change(given, how, &g, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct object_op){ .type = bytes_of(g.type),
                               .key = bytes_of(g.key),
                               .how = how,
                               .if_version = g.if_version,
                               .cancel = how == STATE_DELETE && g.cancel };
    if (how == STATE_SET)
        out->state = payload_of(g.state);
    return change(p, &g, out, err);
}

enum pawl_status pawl_object_save(struct pawl *p, const struct pawl_object_change *given,
                                  int64_t *out_version, struct pawl_err *err)
{
    struct object_op what = { 0 };
    enum pawl_status st = change_as(p, given, STATE_SET, &what, err);
    if (out_version)
        *out_version = what.version;
    return st;
}

enum pawl_status pawl_object_delete(struct pawl *p, const struct pawl_object_change *given,
                                    int64_t *out_cancelled, struct pawl_err *err)
{
    struct object_op what = { 0 };
    enum pawl_status st = change_as(p, given, STATE_DELETE, &what, err);
    if (out_cancelled)
        *out_cancelled = what.cancelled;
    return st;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static enum pawl_status read_keys(const struct pawl_key_query *given, struct key_query *q,
                                  struct pawl_err *err)
{
    struct pawl_key_query g = { PAWL_KEY_QUERY_INIT };
    if (given && (given->size < sizeof(size_t) || given->size > STRUCT_SIZE_MAX))
        return err_set(err, PAWL_INVALID,
                       "struct pawl_key_query: initialise it with PAWL_KEY_QUERY_INIT");
    if (given)
        memcpy(&g, given, MIN(given->size, sizeof(g)));
    if (g.limit < 0 || g.limit > LIST_MAX)
        return err_set(err, PAWL_INVALID, "field \"limit\": %d, must be 1 to %d", g.limit,
                       LIST_MAX);
    const char *fault = g.after ? name_fault(bytes_of(g.after)) : NULL;
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"after\": %s", fault);
    *q = (struct key_query){ .after = bytes_of(g.after),
                             .blocked = g.blocked,
                             .limit = g.limit ? g.limit : LIST_DEFAULT };
    return PAWL_OK;
}

static enum pawl_status fill_keys(struct keys_holder *h, const struct key_rows *r,
                                  struct pawl_err *err)
{
    struct pawl_key *v = arena_zalloc(&h->arena, r->n ? r->n : 1, sizeof(*v));
    for (size_t i = 0; v && i < r->n; i++)
        v[i] = (struct pawl_key){ .key = arena_text(&h->arena, r->v[i].key),
                                  .head = arena_text(&h->arena, r->v[i].head),
                                  .head_state = r->v[i].head_state,
                                  .waiting_for = call_wait_name(r->v[i].waiting_for),
                                  .blocked = r->v[i].blocked,
                                  .pending = r->v[i].pending,
                                  .since_us = r->v[i].since_us };
    h->shown = (struct pawl_keys){ v, r->n, arena_text(&h->arena, r->next) };
    return h->arena.failed ? err_no_memory(err, "showing keys") : PAWL_OK;
}

enum pawl_status pawl_keys(struct pawl *p, const struct pawl_key_query *given,
                           struct pawl_keys **out, struct pawl_err *err)
{
    struct key_query q;
    struct key_rows rows;
    struct store *s;
    if (!p || !out)
        return err_set(err, PAWL_INVALID, "pawl_keys: an argument is NULL");
    enum pawl_status st = read_keys(given, &q, err);
    if (st != PAWL_OK)
        return st;
    struct keys_holder *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_no_memory(err, "showing keys");
    arena_init(&h->arena, REQUEST_LEN_MAX);
    st = exec_reader(p->e, &s, err);
    if (st == PAWL_OK) {
        st = store_keys(s, &h->arena, &q, &rows, err);
        exec_reader_back(p->e, s);
    }
    if (st == PAWL_OK)
        st = fill_keys(h, &rows, err);
    if (st == PAWL_OK)
        *out = &h->shown;
    else
        pawl_keys_free(&h->shown);
    return st;
}

void pawl_keys_free(struct pawl_keys *keys)
{
    struct keys_holder *h = (struct keys_holder *)keys;
    if (!h)
        return;
    arena_release(&h->arena);
    mem_free(h);
}

enum pawl_status pawl_unblock(struct pawl *p, const char *key, bool retry, struct pawl_err *err)
{
    const char *fault = p ? name_fault(bytes_of(key)) : "has no handle";
    if (fault)
        return err_set(err, PAWL_INVALID, "field \"key\": %s", fault);
    struct arena a;
    arena_init(&a, ANSWER_LEN_MAX);
    struct op op = { .kind = OP_UNBLOCK,
                     .a = &a,
                     .unblock = { .key = bytes_of(key), .retry = retry } };
    enum pawl_status st = exec_do(p->e, &op);
    if (st != PAWL_OK)
        err_set(err, st, "%s", op.err.text);
    arena_release(&a);
    return st;
}
