/*
 * writer.c - the store thread: commits everything that is waiting, from all threads, in one
 * transaction.
 *
 * While one group commits the next gathers. Nothing waits on a timer, except for a moment
 * (GATHER_US) when calls were just handed out whose results are expected at once. A claim joins the
 * group whenever something may be due that no claim has looked for, so that finish-and-claim and
 * accept-and-claim are one commit. What must stay true: an answer (`done`) is given after the
 * commit, never before.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "base/limits.h"
#include "exec/internal.h"
#include "exec/housekeeping.h"

/* Without anything to do the thread still looks this often, so that a lost wake-up does not last
 * for ever. */
#define LOOK_US (5 * SEC_US)
/* How often to look for other processes' commits while their notifications arrive. */
#define HEARING_POLL_US (1 * SEC_US)
/* How often a move is repeated while its call is held and has not begun. */
#define MOVE_AGAIN_US (20 * MS_US)
/* How long a group waits for the results of calls that were handed out a moment ago. */
#define GATHER_US 300
/* The largest back-off exponent after misses: two to the power of this many groups do not wait. */
#define GATHER_SKIPS 6

/* May calls be due after this job that were not due before? New calls; and the next call of a key,
 * when the one before it is out of the way. */
static bool brings_calls(const struct write_job *j)
{
    switch (j->op.kind) {
    case OP_ACCEPT:
    case OP_CANCEL:
    case OP_RETRY:
    case OP_MOVE:
    case OP_OBJECT:
    case OP_UNBLOCK:
        return true;
    case OP_HANDLER: /* committed on a thread of its own (writer_solo.c) */
        return true;
    case OP_FINISH:
        break;
    default:
        return false;
    }
    if (j->frees != FREES_NO)
        return true;
    for (size_t i = 0; i < j->op.finish.n; i++)
        if (j->op.finish.v[i].n_send)
            return true;
    return false;
}

static bool runs_here(struct exec *e, const struct call_spec *s)
{
    bool found = false;
    for (size_t i = 0; i < e->registry.n_types && !found; i++)
        found = bytes_eq(e->registry.types[i], s->type);
    return found && (!s->n_needs || (pool_started(&e->pool) && has_all(&e->pool.has, s)));
}

/* The same for claims of this node: new calls that only other nodes run do not count. A
 * job that was committed on a solo writer may have kept a key from our claims meanwhile, so it
 * counts in any case. */
static bool brings_ours(struct exec *e, const struct write_job *j)
{
    const struct accept *a = &j->op.accept;
    if (j->op.kind != OP_ACCEPT || j->answered)
        return brings_calls(j);
    for (size_t i = 0; i < a->n; i++)
        if ((i == 0 || a->v[i].n_needs || a->v[i - 1].n_needs ||
             !bytes_eq(a->v[i].type, a->v[i - 1].type)) &&
            runs_here(e, &a->v[i]))
            return true;
    return false;
}

/* ---- Turns -----------------------------------------------------------------------------------
 *
 * A busy key is free only inside a commit: between the finish of one run and the claim of the next.
 * A write of its object from outside a call would never find it free. So a write that met a held
 * key waits here and is committed with the next group that frees a key, behind its finishes and
 * before its claim.
 *
 * A move of a call that is held and has not begun waits here as well. The node that holds the call,
 * often another process, hands it back soon or begins it. Neither is reported to this process, so
 * the move is repeated every MOVE_AGAIN_US. */

static int64_t turns_next(const struct exec *e)
{
    int64_t at_us = INT64_MAX;
    for (const struct write_job *j = e->turns; j; j = j->next)
        at_us = MIN(at_us, j->turn_at_us);
    return at_us;
}

/* A move that met a row which another transaction has locked is retried by writer_solo.c and does
 * not wait here. */
static bool waits_for_turn(const struct write_job *j)
{
    bool locked = j->op.kind == OP_MOVE && store_blocked(&j->op.err);
    return j->turn_until_us && j->op.status == PAWL_BUSY && !locked &&
           world_mono(&world_real) < j->turn_until_us;
}

static void await_turn(struct exec *e, struct write_job *j)
{
    bool moves = j->op.kind == OP_MOVE;
    int64_t again_us = moves ? world_mono(&world_real) + MOVE_AGAIN_US : INT64_MAX;
    j->turn_at_us = MIN(again_us, j->turn_until_us);
    j->next = e->turns;
    e->turns = j;
}

/* Add the writes whose turn may have come to the group, as far as there is room; `end` is the end
 * of its list of jobs. */
static void take_turns(struct exec *e, struct group *g, struct write_job **end)
{
    int64_t now_us = world_mono(&world_real);
    for (struct write_job **at = &e->turns, *j; (j = *at) && g->n < GROUP_MAX;) {
        if (j->turn_at_us > now_us && !(g->frees && j->op.kind == OP_OBJECT)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        j->next = NULL;
        *end = j;
        end = &j->next;
        g->ops[g->n++] = &j->op;
        g->fresh = true;
    }
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void form_group(struct exec *e, struct group *g, struct write_job_list l)
{
    /* The list of types is final once the workers have started. */
    bool started = pool_started(&e->pool), alone = false, ours = false;
    struct write_job **end = &g->jobs;
    g->fresh = g->frees = false;
    g->jobs = l.head;
    g->n = 0;
    g->claim = NULL;
    for (struct write_job *j = l.head; j; j = j->next) {
        CHECK(g->n < GROUP_MAX);
        if (j->prepare && !j->answered)
            j->prepare(j);
        if (!j->answered)
            g->ops[g->n++] = &j->op;
        g->fresh |= brings_calls(j);
        ours = ours || (started ? brings_ours(e, j) : brings_calls(j));
        g->frees |= j->op.kind == OP_FINISH && j->frees != FREES_NO;
        alone |= j->op.kind == OP_HANDLER && !j->answered;
        end = &j->next;
    }
    if (g->fresh)
        atomic_store(&e->bulk.others_us, world_mono(&world_real));
    size_t turns = g->n;
    if (!alone)
        take_turns(e, g, end);
    int want = alone ? 0 : pool_want(e, ours || g->n > turns);
    if (want)
        g->claim = pool_claim_job(e, want, NULL);
    if (g->claim)
        g->ops[g->n++] = &g->claim->op;
}

/* ---- Notifying other processes --------------------------------------------------------------- */

/* What a group did that concerns other processes. */
struct news {
    bool offers; /* calls may be due that were not before */
    bool ours;   /* they are new ones, all of types that run here too */
    bool nodes;  /* the registry changed, or who leads */
    bool times;  /* schedules may be due earlier than before */
    int ended;
};

static void accepted(struct exec *e, const struct accept *a, struct news *out)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->out[i].status != PAWL_OK || a->out[i].duplicate)
            continue;
        out->offers = true;
        out->ours = out->ours && !e->pool.n_queues && runs_here(e, &a->v[i]);
    }
}

static void finished(const struct finish *f, struct news *out)
{
    for (size_t i = 0; i < f->n; i++) {
        out->ended += pawl_state_ended(f->v[i].state);
        if (f->v[i].state == PAWL_PENDING || f->v[i].n_send) {
            out->offers = true;
            out->ours = false;
        }
    }
}

/* Was something changed by it? A lease that is lost because all its calls were past their timeout
 * is refused, and has ended them. */
static bool took_effect(const struct op *op)
{
    if (op->kind == OP_EXTEND && op->status == PAWL_LOST_LEASE)
        return op->n_ended || op->extend.n_timed_out;
    return op->status == PAWL_OK;
}

static void op_news(struct exec *e, const struct op *op, struct news *out)
{
    bool freed = op->brings;
    out->times |= op->timed;
    out->ended += (int)op->n_ended;
    switch (op->kind) {
    case OP_ACCEPT:
        accepted(e, &op->accept, out);
        break;
    case OP_FINISH:
        finished(&op->finish, out);
        break;
    case OP_HANDLER:
        if (op->handler.end->kind == OP_FINISH)
            finished(&op->handler.end->finish, out);
        break;
    case OP_CANCEL:
        out->ended += op->by_id.state == PAWL_CANCELLED;
        freed = true;
        break;
    case OP_EXTEND: /* keys are free, or calls will be retried */
        freed = freed || op->extend.n_timed_out > 0;
        break;
    case OP_SWEEP:
        freed = freed || op->sweep.reclaimed + op->sweep.expired + op->sweep.joined > 0;
        break;
    case OP_JOIN:
    case OP_LEAVE:
    case OP_BURY:
        freed = freed || op->node.reclaimed > 0;
        out->nodes = true;
        break;
    case OP_DRAIN:
        out->nodes = true;
        break;
    case OP_LEAD:
        out->nodes = out->nodes || op->lead.resign;
        break;
    case OP_RETRY:
    case OP_MOVE:
    case OP_PAUSE:
    case OP_OBJECT:
    case OP_UNBLOCK:
        freed = true;
        break;
    default:
        break;
    }
    out->offers |= freed;
    out->ours = out->ours && !freed;
}

/* Called before `done`, which takes the jobs. */
static struct news group_news(struct exec *e, const struct group *g)
{
    struct news out = { .ours = g->claim != NULL };
    for (const struct write_job *j = g->jobs; j; j = j->next)
        if (took_effect(&j->op))
            op_news(e, &j->op, &out);
    if (g->claim && g->claim->op.status == PAWL_OK)
        op_news(e, &g->claim->op, &out);
    out.offers |= g->frees;
    out.ours = out.ours && !g->frees;
    return out;
}

/* Other processes need not hear of new calls when our own claim left none of them over, nor of
 * ended calls when as many waiters here were told. Both are guesses; a process that should have
 * been told finds out by polling. */
static void tell_others(struct exec *e, struct news n, bool all_taken, int told)
{
    notify_send(e, (n.offers && !(n.ours && all_taken) ? HINT_WORK : 0) |
                       (n.ended > told ? HINT_ENDED : 0) | (n.nodes ? HINT_NODES : 0) |
                       (n.times ? HINT_TIMES : 0));
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int count_told(const struct waiter *w)
{
    int n = 0;
    for (; w; w = w->next)
        n++;
    return n;
}

/* Features did more in this commit than the operation says: calls may be due, and others have ended
 * of which `done` does not know. */
static void features_did(struct exec *e, const struct op *op)
{
    if (!took_effect(op))
        return;
    if (op->timed)
        schedules_changed(e);
    if (!op->brings)
        return;
    exec_look(e, op->ended, op->n_ended);
    exec_work_came(e);
}

void group_settle(struct exec *e, struct group *g)
{
    const struct op *claim = g->claim ? &g->claim->op : NULL;
    struct news news = group_news(e, g);
    bool all_taken = claim && claim->status == PAWL_OK && !claim->claim.more;

    for (struct write_job *j = g->jobs, *next; j; j = next) {
        next = j->next; /* `done` takes the job */
        bool beside = j->answered;
        j->answered = false; /* if `done` posts it again, it has to be committed again */
        if (waits_for_turn(j)) {
            await_turn(e, j);
            continue;
        }
        bool blocked = j->op.status == PAWL_BUSY && !beside && store_blocked(&j->op.err);
        if (blocked && j->done == pool_finish_done)
            pool_finish_late(j);
        if (blocked && solo_post(e, j))
            continue;
        features_did(e, &j->op);
        j->done(j);
    }
    if (g->claim)
        features_did(e, &g->claim->op);
    if (g->claim)
        g->claim->done(g->claim);
    schedules_tell();
    tell_others(e, news, all_taken, count_told(e->told));
    waiters_wake(TAKE(e->told)); /* Last, so that the workers get their calls first. */
}

/* What the store thread knows about other processes on the same database. */
struct others {
    int64_t version, next_us, every_us, found;
};

/* Look often while other processes do things that concern this one, rarely while they do not: their
 * heartbeats move the version, too. */
static void set_pace(struct exec *e, struct others *o, int64_t now_us)
{
    int64_t found = atomic_load(&e->found);
    bool hears = notify_works(e);
    int64_t max_us = hears ? MAX(e->conf.poll_max_us, HEARING_POLL_US) : e->conf.poll_max_us;
    o->every_us = hears ? max_us : found != o->found ? e->conf.poll_min_us : o->every_us * 2;
    o->every_us = MIN(o->every_us, max_us);
    o->found = found;
    o->next_us = now_us + o->every_us;
}

/* Does it matter here what other processes do? */
static bool others_matter(struct exec *e)
{
    return e->traits & STORE_SHARED && exec_listens(e);
}

/* The version of this connection moves only when another process commits: then a call with waiters
 * here may have ended, and work may have come. */
static void others_seen(struct exec *e, struct others *o, int64_t version)
{
    if (version == o->version)
        return;
    o->version = version;
    waiters_mark_all(&e->waiters);
    housekeeping_nudge(e);
    exec_work_came(e);
}

/* Looked at only while that matters here. */
static void look_at_others(struct exec *e, struct others *o)
{
    struct pawl_err err;
    int64_t version, now_us = world_mono(&world_real);
    if (now_us < o->next_us)
        return;
    bool known = others_matter(e) && store_version(e->writer, &version, &err) == PAWL_OK;
    set_pace(e, o, now_us);
    if (known)
        others_seen(e, o, version);
}

/* A sweep that found nothing to do has read the version, too: the next look is due an interval
 * after it. So the two are in step, and of every few looks one costs no statement. */
static void sweep_saw_others(struct exec *e, const struct group *g, struct others *o)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct op *op = g->ops[i];
        if (op->kind != OP_SWEEP || op->status != PAWL_OK || !op->sweep.version)
            continue;
        set_pace(e, o, world_mono(&world_real));
        if (others_matter(e))
            others_seen(e, o, op->sweep.version);
    }
}

static void commit(struct exec *e, struct group *g)
{
    int64_t began_us = world_mono(&world_real);
    stall_begin(e, &e->stall.writer, e->writer, g->jobs);
    enum pawl_status st = store_commit(e->writer, g->ops, g->n);
    stall_end(e, &e->stall.writer);
    unwritable_note(e, st, g->ops, g->n);
    count_group(e, g->ops, g->n, world_mono(&world_real) - began_us);
}

/* ---- Quick handlers -------------------------------------------------------------------------- */

/* Whether waiting for the results of a claim has paid off lately. */
struct gathering {
    int in_vain, skip;
};

/* When handlers take less time than a commit, the next group would begin just before their results
 * come, and every call would wait for a whole group of others. So the next group begins when as
 * many writes are there as calls were handed out, or GATHER_US later. Where handlers are slower
 * than that, it is not tried again for a while, and longer each time. */
static void gather(struct exec *e, struct gathering *t, size_t claimed)
{
    if (!claimed || t->skip-- > 0)
        return;
    if (queue_gather(&e->queue, MIN(claimed, (size_t)GROUP_MAX / 2),
                     world_mono(&world_real) + GATHER_US))
        t->in_vain = 0;
    else
        t->in_vain = MIN(t->in_vain + 1, GATHER_SKIPS);
    t->skip = t->in_vain ? 1 << t->in_vain : 0;
}

void *writer_main(void *arg)
{
    struct exec *e = arg;
    struct others others = { .every_us = e->conf.poll_min_us };
    struct gathering gathering = { 0 };
    struct group g;
    for (;;) {
        look_at_others(e, &others);
        bulk_turn(e);
        int64_t until_us = MIN(pool_next_claim(e), world_mono(&world_real) + LOOK_US);
        until_us = MIN(until_us, bulk_next(e));
        if (others_matter(e))
            until_us = MIN(until_us, others.next_us);
        struct write_job_list l = queue_take(&e->queue, MIN(until_us, turns_next(e)));
        if (l.ended) {
            while (e->turns) {
                struct write_job *j = e->turns;
                e->turns = j->next;
                j->done(j);
            }
            return NULL;
        }
        form_group(e, &g, l);
        if (!g.jobs && !g.n)
            continue;
        CRASH_POINT("exec.before_group");
        if (g.n)
            commit(e, &g);
        sweep_saw_others(e, &g, &others);
        CRASH_POINT("exec.before_answers");
        size_t claimed = g.claim && g.claim->op.status == PAWL_OK ? g.claim->op.claim.n : 0;
        group_settle(e, &g);
        if (g.fresh)
            exec_work_signal_raise(e);
        gather(e, &gathering, claimed);
        CRASH_POINT("exec.after_answers");
    }
}
