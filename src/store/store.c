/*
 * store.c - the functions in front of every engine: they check the arguments, call the engine's
 * slot and check its answer.
 *
 * store_commit() makes a bad operation fail alone: a refused group is halved, an UNKNOWN one is
 * repeated unchanged (the writes are idempotent), a BUSY one is tried a few more times. Called on
 * the thread that uses the handle.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include <stdio.h>

#include "base/limits.h"
#include "store/feature.h"

/* An engine answers BUSY after it has waited itself; a few more tries outlast a checkpoint or a
 * slow transaction. */
#define BUSY_TRIES 3
/* When BUSY took longer than this the group is not tried again: callers wait for the answer. */
#define BUSY_US (1 * SEC_US)
/* A group whose answer was lost so often becomes UNKNOWN; callers then repeat it with the same ids.
 */
#define UNKNOWN_TRIES 3

#define OP_NAME(name, text) [OP_##name] = #text,
static const char *const op_names[OP_COUNT] = { OP_MAP(OP_NAME) };
#undef OP_NAME

const char *op_name(enum op_kind kind)
{
    return kind < OP_COUNT ? op_names[kind] : "?";
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

void store_end(struct store **s)
{
    store_close(*s);
    *s = NULL;
}

/* PostgreSQL's codes for a table, type or function that exists; its text may be in any language. */
static bool is_taken(const struct pawl_err *err)
{
    return strcmp(err->sqlstate, "42P07") == 0 || strcmp(err->sqlstate, "42710") == 0 ||
           strcmp(err->sqlstate, "42723") == 0;
}

enum pawl_status store_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    enum pawl_status st = s->ops->migrate(s, finish, err);
    bool taken = st != PAWL_OK && err && (strstr(err->text, "already exists") || is_taken(err));
    if (taken) {
        struct pawl_err why = *err;
        snprintf(err->text, sizeof err->text,
                 "%.400s; that one is not Pawl's: --schema NAME gives Pawl names of its own",
                 why.text);
    }
    return st;
}

enum pawl_status store_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    *out = (struct schema){ 0 };
    enum pawl_status st = s->ops->schema(s, out, err);
    CHECK(st != PAWL_OK || (out->version >= 0 && out->wanted > 0));
    return st;
}

/* ---- Commit ---------------------------------------------------------------------------------- */

static void answer(struct op *op, enum pawl_status st, const struct pawl_err *err)
{
    op->status = st;
    if (err)
        op->err = *err;
}

bool store_blocked(const struct pawl_err *err)
{
    return strcmp(err->sqlstate, "55P03") == 0;
}

bool store_denied(const struct pawl_err *err)
{
    return strcmp(err->sqlstate, "42501") == 0;
}

void op_clear(struct op *op)
{
    op->status = PAWL_OK;
    op->err.status = PAWL_OK;
    op->brings = op->timed = false;
    op->ended = NULL;
    op->n_ended = 0;
    op->lost = NULL;
    op->n_lost = 0;
}

void op_refuse(struct op *op, const struct pawl_err *why)
{
    op_clear(op);
    op->err = *why;
    op->status = op->err.status = PAWL_BUSY;
}

enum pawl_status op_lost(struct op *op, const struct lost_attempt *one, struct pawl_err *err)
{
    if (op->n_lost++ >= LOST_TOLD_MAX)
        return PAWL_OK;
    if (!op->lost)
        op->lost = arena_zalloc(op->a, LOST_TOLD_MAX, sizeof *op->lost);
    if (!op->lost)
        return err_no_memory(err, "a lost attempt");
    struct lost_attempt *to = &op->lost[op->n_lost - 1];
    *to = *one;
    to->id = arena_copy(op->a, one->id);
    to->type = arena_copy(op->a, one->type);
    to->error = arena_copy(op->a, one->error);
    return op->a->failed ? err_no_memory(err, "a lost attempt") : PAWL_OK;
}

enum pawl_status op_lost_lease(struct op *op, const struct token *token)
{
    char text[33];
    token_text(*token, text);
    op->status =
        err_set(&op->err, PAWL_LOST_LEASE, "lease \"%s\" is over, or was never given", text);
    return PAWL_OK;
}

enum pawl_status op_not_held(struct op *op, const struct token *token, struct bytes id, int64_t seq)
{
    char lease[33], number[32];
    token_text(*token, lease);
    snprintf(number, sizeof number, "%lld", (long long)seq);
    op->status = err_set(&op->err, PAWL_LOST_LEASE, "lease \"%s\" does not hold call \"%.*s\"",
                         lease, BYTES_ARG(id.data ? id : bytes_of(number)));
    return PAWL_OK;
}

void op_not_begun(struct op *op, struct bytes owner)
{
    op->by_id.state = PAWL_PENDING; /* readers see it as pending too */
    op->status = err_set(&op->err, PAWL_BUSY,
                         "call \"%.*s\": \"%.*s\" has claimed it and has not begun it; try again",
                         BYTES_ARG(op->by_id.id), BYTES_ARG(owner));
}

/* The caller's duty. Wrong input from outside was refused before it became an operation. */
static void check_question(const struct op *op, size_t n)
{
    assert(op->a);
    switch (op->kind) {
    case OP_ACCEPT:
        assert(op->accept.n > 0 && op->accept.n <= BATCH_MAX);
        break;
    case OP_CLAIM:
        assert(op->claim.max > 0 && op->claim.max <= CLAIM_MAX);
        assert(op->claim.run_max >= 0 && op->claim.max_any >= 0 && op->claim.width >= 0);
        assert(op->claim.node.len && op->claim.boot.len && !token_none(op->claim.token));
        break;
    case OP_FINISH:
        assert(op->finish.n > 0);
        break;
    case OP_HANDLER:
        assert(n == 1 && op->handler.end);
        break;
    case OP_FEATURE:
        assert(op->feature.of && op->feature.of->apply);
        break;
    case OP_WAKE:
        assert(op->wake.n > 0);
        break;
    case OP_OBJECT:
        assert(op->object.how == STATE_SET || op->object.how == STATE_DELETE);
        assert(op->object.how == STATE_DELETE || op->object.state.form != PAWL_NOTHING);
        break;
    case OP_SWEEP:
        assert(op->sweep.max > 0);
        break;
    case OP_GC:
        assert(op->gc.max > 0);
        assert(op->gc.ended_before_us >= 0 && op->gc.after_seq >= 0);
        break;
    case OP_REQUEUE:
        assert(op->requeue.max > 0);
        break;
    case OP_LEAD:
        assert(op->lead.node.len && op->lead.boot.len);
        assert(op->lead.resign || op->lead.lease_us > 0);
        break;
    case OP_EXTEND:
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
    case OP_PAUSE:
    case OP_UNBLOCK:
    case OP_JOIN:
    case OP_BEAT:
    case OP_LEAVE:
    case OP_BURY:
    case OP_DRAIN:
    case OP_SCRIPT:
    case OP_COUNT:
        break;
    }
    (void)n;
}

static void check_accepted(const struct accept *q)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct accepted *a = &q->out[i];
        if (a->status != PAWL_OK)
            continue;
        CHECK(a->call.seq > 0);
        CHECK(a->duplicate ||
              (a->call.state == PAWL_PENDING && bytes_eq(a->call.spec.id, q->v[i].id)));
    }
}

static void check_claimed(const struct claim *q)
{
    CHECK(q->n <= (size_t)q->max);
    for (size_t i = 0; i < q->n; i++) {
        CHECK(q->calls[i].seq > 0 && q->calls[i].state == PAWL_PROCESSING);
        CHECK(!counts_retry_alone(q->calls[i].counts) || q->n == 1);
        CHECK(!q->calls[i].spec.key.data || (q->states && q->calls[i].key_no > 0));
    }
}

static void check_finished(const struct finish *q)
{
    for (size_t i = 0; i < q->n; i++) {
        CHECK(call_may(PAWL_PROCESSING, q->v[i].state));
        CHECK(q->v[i].seq_found > 0 && (!q->v[i].seq || q->v[i].seq_found == q->v[i].seq));
    }
}

/* A cancel, a retry or a move that succeeded. */
static void check_by_id(enum op_kind kind, const struct by_id *q)
{
    CHECK(q->seq > 0);
    CHECK(kind != OP_RETRY || q->state == PAWL_PENDING || q->state == PAWL_PROCESSING);
    CHECK(kind != OP_CANCEL || q->state == PAWL_CANCELLED || q->state == PAWL_PROCESSING);
}

/* Bounded steps. A walk must move forward, or a caller that repeats it until `more` is false never
 * ends. */
static void check_step(const struct op *op)
{
    const struct gc *g = &op->gc;
    if (op->kind == OP_SWEEP)
        CHECK(op->sweep.expired >= 0 && op->sweep.reclaimed >= 0 && op->sweep.joined >= 0);
    if (op->kind == OP_REQUEUE)
        CHECK(op->requeue.leases >= 0 && op->requeue.leases <= op->requeue.max);
    if (op->kind == OP_GC) {
        CHECK(g->removed >= 0 && g->removed <= g->max && g->forgotten >= 0);
        CHECK(!g->ended_before_us || !g->more || g->next_seq > g->after_seq);
    }
}

/* All rooms above rely on the answer as durable truth. */
static void check_answer(const struct op *op)
{
    if (op->status != PAWL_OK)
        CHECK(op->err.status == op->status);
    else if (op->kind == OP_ACCEPT)
        check_accepted(&op->accept);
    else if (op->kind == OP_CLAIM)
        check_claimed(&op->claim);
    else if (op->kind == OP_FINISH)
        check_finished(&op->finish);
    else if (op->kind == OP_CANCEL || op->kind == OP_RETRY || op->kind == OP_MOVE)
        check_by_id(op->kind, &op->by_id);
    else if (op->kind == OP_OBJECT)
        CHECK(op->object.how != STATE_SET || op->object.version > 0);
    else if (op->kind == OP_LEAD)
        CHECK(!op->lead.ours || (op->lead.epoch > 0 && op->lead.until_us > 0));
    else
        check_step(op);
}

/* Commit one group, repeated while its answer is unknown or the database is busy. A handler has run
 * and cannot run again here, so it is tried once. `doubt`: the group may have been committed in an
 * earlier try whose answer was lost; a BUSY then becomes UNKNOWN, because it does not say whether
 * that happened. */
static enum pawl_status commit_group(struct store *s, struct op *const *v, size_t n, bool *doubt,
                                     struct pawl_err *err)
{
    int tries = v[0]->kind == OP_HANDLER ? 1 : MAX(BUSY_TRIES, UNKNOWN_TRIES);
    enum pawl_status st = PAWL_OK;
    int64_t began_us = world_mono(&world_real);
    for (int i = 0; i < tries; i++) {
        for (size_t k = 0; k < n; k++)
            op_clear(v[k]);
        st = s->ops->commit(s, v, n, err);
        *doubt |= st == PAWL_UNKNOWN;
        if (st != PAWL_BUSY && st != PAWL_UNKNOWN)
            break;
        if (st == PAWL_BUSY && store_blocked(err) && (n > 1 || s->hasty))
            break;
        if (!*doubt && world_mono(&world_real) - began_us > BUSY_US)
            break;
    }
    if (*doubt && (st == PAWL_BUSY || (st == PAWL_NO_MEMORY && n == 1))) {
        struct pawl_err last = *err;
        st =
            err_set(err, PAWL_UNKNOWN, "the commit's answer was lost, and then: %.120s", last.text);
    }
    return st;
}

static enum pawl_status commit_some(struct store *s, struct op *const *v, size_t n, bool doubt)
{
    struct pawl_err err = { 0 };
    enum pawl_status st = commit_group(s, v, n, &doubt, &err);
    if (st == PAWL_OK) {
        for (size_t i = 0; i < n; i++)
            check_answer(v[i]);
        return PAWL_OK;
    }
    /* BUSY and UNKNOWN concern the database and not one operation: halving would only repeat them
     * log2(n) times. A row that another application has locked stops one operation: halving lets
     * the others commit. */
    bool blocked = st == PAWL_BUSY && store_blocked(&err) && !s->hasty;
    if (n == 1 || (st == PAWL_BUSY && !blocked) || st == PAWL_UNKNOWN) {
        for (size_t i = 0; i < n; i++)
            answer(v[i], st, &err);
        return st;
    }
    enum pawl_status left = commit_some(s, v, n / 2, doubt);
    enum pawl_status right = commit_some(s, v + n / 2, n - n / 2, doubt);
    return left != PAWL_OK ? left : right;
}

enum pawl_status store_commit(struct store *s, struct op *const *v, size_t n)
{
    if (n == 0)
        return PAWL_OK;
    for (size_t i = 0; i < n; i++)
        check_question(v[i], n);
    return commit_some(s, v, n, false);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

enum pawl_status store_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err)
{
    assert(g->n > 0 && g->ids);
    g->found = NULL;
    g->out = NULL;
    enum pawl_status st = s->ops->get(s, a, g, err);
    CHECK(st != PAWL_OK || (g->found && g->out));
    return st;
}

enum pawl_status store_list(struct store *s, struct arena *a, const struct query *q,
                            struct page *out, struct pawl_err *err)
{
    assert(q->limit > 0 && q->limit <= LIST_MAX);
    *out = (struct page){ 0 };
    enum pawl_status st = s->ops->list(s, a, q, out, err);
    if (st == PAWL_OK) {
        CHECK(out->n <= (size_t)q->limit);
        /* Each page must move forward, or a caller that reads all pages never ends. */
        CHECK(!out->next_before || !q->before_seq || out->next_before < q->before_seq);
        for (size_t i = 1; i < out->n; i++)
            CHECK(out->v[i].seq > 0 && out->v[i].seq < out->v[i - 1].seq);
    }
    return st;
}

enum pawl_status store_attempts(struct store *s, struct arena *a, struct bytes id,
                                struct attempts *out, struct pawl_err *err)
{
    *out = (struct attempts){ 0 };
    enum pawl_status st = s->ops->attempts(s, a, id, out, err);
    CHECK(st != PAWL_OK || out->n <= ATTEMPTS_SHOWN_MAX);
    return st;
}

enum pawl_status store_object(struct store *s, struct arena *a, struct bytes type, struct bytes key,
                              struct object *out, struct pawl_err *err)
{
    *out = (struct object){ 0 };
    enum pawl_status st = s->ops->object(s, a, type, key, out, err);
    CHECK(st != PAWL_OK || (out->version > 0 && out->state.form != PAWL_NOTHING));
    return st;
}

enum pawl_status store_keys(struct store *s, struct arena *a, const struct key_query *q,
                            struct key_rows *out, struct pawl_err *err)
{
    assert(q->limit > 0 && q->limit <= LIST_MAX);
    *out = (struct key_rows){ 0 };
    enum pawl_status st = s->ops->keys(s, a, q, out, err);
    if (st == PAWL_OK) {
        CHECK(out->n <= (size_t)q->limit);
        CHECK(!out->next.data || !q->after.data || bytes_cmp(out->next, q->after) > 0);
    }
    return st;
}

enum pawl_status store_queues(struct store *s, struct arena *a, struct queue_rows *out,
                              struct pawl_err *err)
{
    *out = (struct queue_rows){ 0 };
    return s->ops->queues(s, a, out, err);
}

enum pawl_status store_nodes(struct store *s, struct arena *a, struct node_rows *out,
                             struct pawl_err *err)
{
    *out = (struct node_rows){ 0 };
    return s->ops->nodes(s, a, out, err);
}

enum pawl_status store_leaders(struct store *s, struct arena *a, struct leader_rows *out,
                               struct pawl_err *err)
{
    *out = (struct leader_rows){ 0 };
    return s->ops->leaders(s, a, out, err);
}

enum pawl_status store_cancel_requests(struct store *s, struct arena *a,
                                       struct cancel_requests *out, struct pawl_err *err)
{
    *out = (struct cancel_requests){ 0 };
    enum pawl_status st = s->ops->cancel_requests(s, a, out, err);
    for (size_t i = 1; st == PAWL_OK && i < out->n; i++)
        CHECK(out->seqs[i] > out->seqs[i - 1]);
    return st;
}

enum pawl_status store_look(struct store *s, enum store_look how, feature_look_fn *look, void *ctx,
                            struct pawl_err *err)
{
    if (!s->ops->look)
        return err_set(err, PAWL_INVALID, "%s: keeps calls only", s->ops->name);
    return s->ops->look(s, how, look, ctx, err);
}

enum pawl_status store_now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    return s->ops->now(s, out_us, err);
}

enum pawl_status store_version(struct store *s, int64_t *out, struct pawl_err *err)
{
    return s->ops->version(s, out, err);
}

enum pawl_status store_tend(struct store *s, struct pawl_err *err)
{
    return s->ops->tend ? s->ops->tend(s, err) : PAWL_OK;
}

enum pawl_status store_hint(struct store *s, struct hint *h, struct pawl_err *err)
{
    h->heard = 0;
    if (!s->ops->hint)
        return err_set(err, PAWL_STATE, "engine \"%s\" carries no notifications", s->ops->name);
    enum pawl_status st = s->ops->hint(s, h, err);
    CHECK(!(h->heard & ~(unsigned)HINT_ALL));
    return st;
}

enum pawl_status store_doctor(struct store *s, struct arena *a, struct findings *out,
                              struct pawl_err *err)
{
    *out = (struct findings){ 0 };
    enum pawl_status st = s->ops->doctor ? s->ops->doctor(s, a, out, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < out->n; i++)
        CHECK(out->v[i].name && out->v[i].text && out->v[i].level <= FINDING_BAD);
    return st;
}

enum pawl_status store_fits(struct store *s, struct pawl_err *err)
{
    struct schema has;
    enum pawl_status st = store_schema(s, &has, err);
    if (st != PAWL_OK)
        return st;
    if (has.min_version > has.wanted)
        return err_set(err, PAWL_STATE,
                       "the schema needs a program that knows version %d or later; this one (pawl "
                       "%s) knows %d",
                       has.min_version, PAWL_VERSION, has.wanted);
    if (has.version < has.wanted)
        return err_set(err, PAWL_STATE,
                       "the schema has version %d and this program wants %d: run pawl migrate up",
                       has.version, has.wanted);
    return PAWL_OK;
}

enum pawl_status store_grant(struct store *s, const char *sql, struct pawl_err *err)
{
    if (!s->ops->grant)
        return err_set(err, PAWL_INVALID, "engine \"%s\" has no roles", s->ops->name);
    return s->ops->grant(s, sql, err);
}

enum pawl_status store_backup(struct store *s, const struct backup *b, struct pawl_err *err)
{
    assert(b->path && *b->path);
    if (!s->ops->backup)
        return err_set(err, PAWL_INVALID, "engine \"%s\" has no file that could be copied",
                       s->ops->name);
    return s->ops->backup(s, b, err);
}

enum pawl_status store_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                           struct pawl_rows *out, struct pawl_err *err)
{
    *out = (struct pawl_rows){ 0 };
    return tx->ops->sql(tx, a, q, out, err);
}
