/*
 * pass.c - passes: durable points, the operations that store what came of them, and how a pass ends
 * (pass.h).
 *
 * Runs on the worker of the attempt, unless a function says otherwise. An operation is repeated
 * until the database has answered it; a step is stored once all the same. An operation with SQL is
 * not repeated, because its SQL would run again: if the answer is lost, the pass is over, and the
 * next one reads in the journal whether it was stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/pass_inside.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "exec/housekeeping.h"
#include "exec/replay.h"
#include "exec/run.h"
#include "model/needs.h"
#include "store/feature.h"

/* After so many points that did nothing the handler is taken to loop, and its thread is stopped: it
 * would use its slot for ever. */
#define VOIDS_MAX 1000
/* A write that was not stored is repeated after this. */
#define REPEAT_US 20000
/* The answer of one operation: what a run has in all, when it stores its lazy steps. */
#define ANSWERS_LEN_MAX ((size_t)STEPS_LEN_MAX * 2)

/* ---- Making and ending ----------------------------------------------------------------------- */

struct pass *pass_make(struct pawl_call *t, struct journal *taken)
{
    struct pass *p = taken ? mem_zalloc(sizeof *p) : NULL;
    if (!p) {
        journal_free(taken);
        t->state_fault = BYTES("no memory for its steps"); /* a reply becomes an error */
        return NULL;
    }
    p->journal = taken;
    arena_init(&p->answers, ANSWERS_LEN_MAX);
    atomic_store(&t->pass, p);
    return p;
}

static struct pass *pass_of(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    if (p)
        return p;
    p = pass_make(t, journal_new(t->call->seq));
    if (!p)
        return NULL;
    pthread_mutex_lock(&t->e->pool.lock);
    durations_note_steps(&t->e->pool.durations, t->handler);
    pool_count_slow(&t->e->pool, t, !t->hung && !t->blocked);
    pthread_mutex_unlock(&t->e->pool.lock);
    return p;
}

struct arena *pass_answers(struct pawl_call *t)
{
    return &atomic_load(&t->pass)->answers;
}

void pass_free(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    if (!p)
        return;
    journal_free(p->journal);
    arena_release(&p->answers);
    mem_free(p);
}

enum pass_answer pass_over(struct pawl_call *t, enum pass_over how, struct bytes error)
{
    struct pass *p = atomic_load(&t->pass);
    if (t->e->replay)
        replay_over(t, how == PASS_FAILED, error);
    if (p->over != PASS_RUNS)
        return PASS_VOID;
    p->over = how;
    p->error = arena_copy(&t->arena, utf8_cut(error, ERROR_LEN_MAX));
    return PASS_VOID;
}

/* The handler asks for what no step can be. */
static enum pass_answer misused(struct pawl_call *t, struct bytes text)
{
    if (t->e->replay)
        replay_misused(t, text);
    return atomic_load(&t->undoing) ? pass_undo(t) : pass_over(t, PASS_FAILED, text);
}

enum pass_answer pass_refuse(struct pawl_call *t, const char *text)
{
    return pass_enter(t) ? misused(t, bytes_of(text)) : PASS_VOID;
}

enum pass_answer pass_no_memory(struct pawl_call *t)
{
    return pass_enter(t) ? pass_over(t, PASS_ERROR, BYTES("no memory for its steps")) : PASS_VOID;
}

void pass_deadline(struct pawl_call *t, int64_t timeout_us)
{
    int64_t until_us =
        world_mono(&world_real) + (timeout_us ? timeout_us : t->call->spec.timeout_us);
    pthread_mutex_lock(&t->e->pool.lock);
    t->deadline_us = until_us;
    pthread_mutex_unlock(&t->e->pool.lock);
    housekeeping_by(t->e, until_us);
}

bool pass_open(struct pawl_call *t)
{
    struct pawl_err err;
    struct journal *j;
    if (!(t->e->traits & STORE_DRIVEN) || journal_open(t->e, t->call->seq, &j, &err) != PAWL_OK)
        return false;
    atomic_store(&t->undoing, j->undoing); /* before others see the pass (exec_undoing) */
    struct pass *p = pass_of(t);
    if (!p) {
        journal_free(j);
        return false;
    }
    journal_free(p->journal);
    p->journal = j;
    p->begun = true;
    if (j->has_input)
        t->input = j->input;
    return true;
}

/* The attempt is handed back, uncounted. */
static void item_back(struct pawl_call *t, enum ending how, struct bytes error)
{
    t->item.send = NULL;
    t->item.n_send = 0;
    t->item.state_do = STATE_KEEP;
    t->item.retry_in_us = -1;
    attempt_error(t, how, error);
}

/* Does the end of the handler begin the undos? A pass that undoes, and whose handler could not come
 * to all steps this time, is tried again as the handler says. */
static bool ends_in_undo(struct pawl_call *t, const struct pass *p)
{
    if (p->over != PASS_RUNS || !atomic_load(&t->undoing))
        return false;
    bool again = t->item.how == END_ERROR || t->item.how == END_LATER;
    return t->item.how != END_RELEASE && !(again && pass_undo_missing(p));
}

bool pass_end(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    if (!p)
        return true;
    if (ends_in_undo(t, p))
        pass_undo(t);
    else if (p->over == PASS_RUNS && (p->n_lazy || p->n_published))
        (void)!pass_flush(t);
    switch (p->over) {
    case PASS_RUNS:
        break;
    case PASS_GONE:
        if (p->journal->rev > 0 && !atomic_load(&t->undoing))
            journal_keep(t->e, TAKE(p->journal));
        return false;
    case PASS_BACK:
        item_back(t, END_RELEASE, BYTES_NONE);
        break;
    case PASS_FAILED:
        item_back(t, END_REFUSE, p->error);
        break;
    case PASS_ERROR:
        item_back(t, END_ERROR, p->error);
        break;
    case PASS_UNDONE:
        item_back(t, END_RESULT, BYTES_NONE);
        break;
    }
    return true;
}

/* ---- Void points ----------------------------------------------------------------------------- */

/* The handler loops over points that do nothing. End the attempt here and give its slot to another
 * thread; this one never returns, because the handler would go on. */
static void park(struct pawl_call *t)
{
    log_fields(LOG_ERROR, "a handler goes on after its run was suspended; its thread is stopped",
               (const struct log_field[]){ LOG_TEXT("id", t->call->spec.id),
                                           LOG_TEXT("type", t->call->spec.type),
                                           LOG_TEXT("method", t->call->spec.method),
                                           LOG_NUMBER("step", atomic_load(&t->pass)->no) },
               4);
    attempt_close(t, false);
    pool_hung(t);
    for (;;)
        pause();
}

bool pass_void(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    if (!p || p->over == PASS_RUNS)
        return false;
    if (++p->voids == VOIDS_MAX)
        park(t);
    return true;
}

bool pass_between(const struct pawl_call *t)
{
    const struct pass *p = atomic_load(&((struct pawl_call *)t)->pass);
    return p && !p->inside.data;
}

bool pass_inside(const struct pawl_call *t)
{
    const struct pass *p = atomic_load(&((struct pawl_call *)t)->pass);
    return p && p->inside.data;
}

/* ---- Points ---------------------------------------------------------------------------------- */

bool pass_enter(struct pawl_call *t)
{
    struct pass *p = pass_of(t);
    struct pawl_err err;
    if (!p || pass_void(t))
        return false;
    if (p->inside.data) {
        p->fault = BYTES("a step cannot take steps of its own");
        return false;
    }
    if (atomic_load(&t->stage) != ATTEMPT_RUNNING) /* what it does now is void */
        pass_over(t, PASS_GONE, BYTES_NONE);
    else if (atomic_load(&t->stop) == STOP_PROCESS)
        pass_over(t, PASS_BACK, BYTES_NONE);
    else if (session_open(t))
        pass_over(t, PASS_FAILED,
                  BYTES("pawl_sql() was called outside of a step, by a handler that takes steps"));
    else if (run_wait_before(t, &err) != PAWL_OK)
        pass_over(t, err.status == PAWL_BUSY ? PASS_BACK : PASS_GONE, BYTES_NONE);
    return p->over == PASS_RUNS;
}

const struct workflow_row *pass_row(struct pass *p, int64_t no)
{
    const struct journal *j = p->journal;
    while (p->at < j->n && j->v[p->at].no < no)
        p->at++;
    bool there = p->at < j->n && j->v[p->at].no == no && j->v[p->at].kind != STEP_UNDO;
    return there ? &j->v[p->at] : NULL;
}

struct pass_name *pass_entry(struct pawl_call *t, struct pass_name **table, size_t n,
                             struct bytes name)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 1099511628211u;
    struct pass_name **at = &table[hash % n];
    while (*at && !bytes_eq((*at)->name, name))
        at = &(*at)->same;
    if (!*at) {
        struct pass_name *one = arena_zalloc(&t->arena, 1, sizeof *one);
        if (!one)
            return NULL;
        one->name = arena_copy(&t->arena, name);
        *at = one;
    }
    return (*at)->name.data ? *at : NULL;
}

struct bytes pass_name(struct pawl_call *t, struct bytes name)
{
    struct pass *p = atomic_load(&t->pass);
    struct pass_name *one = pass_entry(t, p->names, PASS_NAMES, name);
    return one ? step_name(&t->arena, name, ++one->n) : BYTES_NONE;
}

/* The code asks for another step than the stored one: the store says so, and ends the run. */
static void diverge(struct pawl_call *t, const struct workflow_step *s)
{
    struct workflow_step asked = *s;
    struct op op;
    if (pass_say(t, &asked, 1, PASS_NO_SQL, &op))
        pass_over(t, PASS_ERROR, BYTES("its journal changed while it was read"));
}

bool pass_next(struct pawl_call *t, enum step_kind kind, struct bytes name,
               const struct workflow_row **out_row, struct bytes *out_stored)
{
    struct pass *p = atomic_load(&t->pass);
    const char *fault = step_name_fault(name);
    char quoted[TEXT_QUOTE_LEN];
    if (fault) {
        const char *text =
            arena_printf(&t->arena, "step \"%s\": its name %s", text_quote(name, quoted), fault);
        misused(t, text ? bytes_of(text) : BYTES("the name of a step"));
        return false;
    }
    *out_stored = pass_name(t, name);
    if (!out_stored->data) {
        pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
        return false;
    }
    const struct workflow_row *row = pass_row(p, ++p->no);
    if (t->e->replay)
        replay_point(
            t, &(struct workflow_step){ .no = p->no, .kind = kind, .stored_name = *out_stored },
            row);
    if (row)
        p->n_published = 0; /* stored with this step */
    if (row && (row->kind != kind || !bytes_eq(row->name, *out_stored))) {
        diverge(t, &(struct workflow_step){
                       .no = p->no, .name = name, .kind = kind, .says = SAYS_BEGUN });
        return false;
    }
    *out_row = row;
    return true;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* May this thread go on with the attempt? */
static bool goes_on(struct pawl_call *t)
{
    return atomic_load(&t->stage) == ATTEMPT_RUNNING && atomic_load(&t->stop) != STOP_PROCESS;
}

static bool passes_by(enum pawl_status st)
{
    return st == PAWL_BUSY || st == PAWL_UNKNOWN || st == PAWL_NO_MEMORY;
}

/* Ask the store, and again while it does not answer. */
static void ask(struct pawl_call *t, struct workflow_op *q, enum pass_sql sql, struct op *out)
{
    struct pass *p = atomic_load(&t->pass);
    const struct op op = { .kind = OP_FEATURE,
                           .a = &p->answers,
                           .feature = { .of = &feature_workflow,
                                        .ctx = q,
                                        .token = t->lease->token,
                                        .seq = t->call->seq } };
    for (;;) {
        arena_reset(&p->answers);
        *out = op;
        if (sql != PASS_NO_SQL)
            (void)!session_step(t, out, sql == PASS_SQL_KEPT);
        else
            exec_do(t->e, out);
        if (sql != PASS_NO_SQL || !passes_by(out->status) || !goes_on(t))
            break;
        usleep(REPEAT_US);
    }
    exec_look(t->e, out->ended, out->n_ended);
}

/* Put what is stored now into the journal, for a later pass. */
static void remember(struct pawl_call *t, const struct workflow_steps *q)
{
    struct pass *p = atomic_load(&t->pass);
    for (size_t i = 0; i < q->n; i++) {
        const struct workflow_step *s = &q->v[i];
        const struct workflow_row row = { .no = s->no,
                                          .name = s->stored_name,
                                          .kind = s->kind,
                                          .status = s->status,
                                          .result = s->result_out,
                                          .error = s->error_out,
                                          .attempts = s->attempts,
                                          .undo = s->undo,
                                          .until_us = s->until_us,
                                          .completed_us = s->completed_us };
        if (s->status && !journal_put(p->journal, &row))
            p->journal->rev = -1;
    }
    if (p->journal->rev >= 0)
        p->journal->rev = q->suspended ? q->rev : 0;
}

/* The operation was stored. */
static void stored(struct pawl_call *t, const struct op *op)
{
    struct pass *p = atomic_load(&t->pass);
    const struct workflow_steps *q = &((const struct workflow_op *)op->feature.ctx)->steps;
    p->begun = true;
    p->n_lazy = p->n_published = 0;
    p->must_store = false;
    remember(t, q);
    if (q->diverged || q->stuck) {
        log_fields(LOG_ERROR, "a workflow has stopped",
                   (const struct log_field[]){ LOG_TEXT("id", t->call->spec.id),
                                               LOG_TEXT("type", t->call->spec.type),
                                               LOG_TEXT("error", q->why) },
                   3);
        exec_look(t->e, &t->call->spec.id, 1);
    }
    if (q->suspended && q->run_at_us < FLOW_NEVER_US)
        exec_work_due(t->e, q->run_at_us);
    if (q->suspended || q->diverged || q->stuck)
        pass_over(t, PASS_GONE, BYTES_NONE);
    else
        pass_deadline(t, 0);
}

struct bytes pass_refusal(struct pawl_call *t, const struct op *op)
{
    struct bytes text = arena_copy(&t->arena, bytes_of(op->err.text));
    return text.data ? text : BYTES("its steps were not stored");
}

/* What follows from the answer of the store, or from its absence. False: the pass is over. */
static bool answered(struct pawl_call *t, const struct op *op, enum pass_sql sql)
{
    struct pass *p = atomic_load(&t->pass);
    if (op->status == PAWL_OK)
        stored(t, op);
    else if (op->status == PAWL_LOST_LEASE) {
        exec_look(t->e, &t->call->spec.id, 1);
        pass_over(t, PASS_GONE, BYTES_NONE);
    } else if (passes_by(op->status) || (sql != PASS_NO_SQL && op->status == PAWL_STATE))
        pass_over(t, PASS_BACK, BYTES_NONE);
    return p->over == PASS_RUNS;
}

bool pass_ask(struct pawl_call *t, struct workflow_op *q, struct op *out_op)
{
    ask(t, q, PASS_NO_SQL, out_op);
    if (out_op->status != PAWL_OK)
        return answered(t, out_op, PASS_NO_SQL);
    atomic_load(&t->pass)->journal->rev = 0;
    exec_work_came(t->e);
    pass_over(t, PASS_GONE, BYTES_NONE);
    return false;
}

bool pass_say(struct pawl_call *t, struct workflow_step *v, size_t n, enum pass_sql sql,
              struct op *out_op)
{
    return pass_say_sending(t, &(struct pass_saying){ .v = v, .n = n, .sql = sql }, out_op);
}

struct workflow_steps pass_context(struct pawl_call *t)
{
    const struct exec *e = t->e;
    bool served = t->handler >= 0;
    return (struct workflow_steps){
        .version = served ? e->registry.v[t->handler].version : BYTES_NONE,
        .pin = e->conf.pin_versions,
        .node = bytes_of(e->conf.node),
        .undoing = atomic_load(&t->undoing),
    };
}

/* The store refuses a value that was published. What has happened is stored without it, and then
 * the run fails: the handler was told that it was published. */
static bool unpublished(struct pawl_call *t, const struct pass_saying *s, const struct op *refused)
{
    struct pass *p = atomic_load(&t->pass);
    struct pass_saying happened = *s;
    struct bytes why = pass_refusal(t, refused);
    struct op op;
    if (!s->n || s->v[0].says == SAYS_WAIT || s->v[0].says == SAYS_CHILD)
        happened.n = 0;
    p->n_published = 0;
    if ((happened.n || p->n_lazy) && !pass_say_sending(t, &happened, &op))
        return false;
    pass_over(t, PASS_FAILED, why);
    return false;
}

bool pass_say_sending(struct pawl_call *t, const struct pass_saying *s, struct op *out_op)
{
    struct pass *p = atomic_load(&t->pass);
    size_t lazy = p->n_lazy;
    struct workflow_step *all = lazy ? arena_alloc(&t->arena, (lazy + s->n) * sizeof *all) : s->v;
    if (!all && lazy + s->n) {
        pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
        return false;
    }
    if (lazy) {
        memcpy(all, p->lazy, lazy * sizeof *all);
        if (s->n)
            memcpy(all + lazy, s->v, s->n * sizeof *all);
    }
    struct workflow_op q = { .what = WORKFLOW_STEPS, .steps = pass_context(t) };
    q.steps.v = all;
    q.steps.n = lazy + s->n;
    q.steps.published = p->published;
    q.steps.n_published = p->n_published;
    q.steps.send = s->send;
    q.steps.n_send = s->n_send;
    ask(t, &q, s->sql, out_op);
    const struct workflow_op *answer = out_op->feature.ctx;
    if (out_op->status != PAWL_OK && answer->steps.unpublished && s->sql == PASS_NO_SQL)
        return unpublished(t, s, out_op);
    if (out_op->status != PAWL_OK && answer->steps.unpublished)
        p->n_published = 0; /* its SQL is undone: it fails, without them */
    if (out_op->status == PAWL_OK && s->n)
        memcpy(s->v, answer->steps.v + lazy, s->n * sizeof *s->v);
    return answered(t, out_op, s->sql);
}

bool pass_flush(struct pawl_call *t)
{
    struct pass *p = atomic_load(&t->pass);
    struct op op;
    if (!p->n_lazy && !p->n_published)
        return true;
    if (!pass_say(t, NULL, 0, PASS_NO_SQL, &op))
        return false;
    if (op.status != PAWL_OK)
        pass_over(t, op.status == PAWL_STATE ? PASS_ERROR : PASS_FAILED, pass_refusal(t, &op));
    return op.status == PAWL_OK;
}

bool pass_lazy(struct pawl_call *t, const struct workflow_step *s)
{
    struct pass *p = atomic_load(&t->pass);
    if (p->n_lazy == STEPS_AT_ONCE_MAX - 1 && !pass_flush(t))
        return false;
    if (p->n_lazy == p->cap_lazy) {
        size_t cap = p->cap_lazy ? p->cap_lazy * 2 : 8;
        struct workflow_step *v = arena_alloc(&t->arena, cap * sizeof *v);
        if (!v) {
            pass_over(t, PASS_ERROR, BYTES("no memory for its steps"));
            return false;
        }
        if (p->n_lazy)
            memcpy(v, p->lazy, p->n_lazy * sizeof *v);
        p->lazy = v;
        p->cap_lazy = cap;
    }
    p->lazy[p->n_lazy++] = *s;
    return true;
}
