/*
 * replay.c - replays of journals: the handle without a database, and how the code fits (replay.h).
 *
 * One thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exec/replay.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "exec/pass_inside.h"
#include "exec/run.h"

/* There is one connection for reading, so a wait for it is a mistake of the handler's threads. */
#define READER_WAIT_US (1 * SEC_US)

static bool here;

bool replay_here(void)
{
    return here;
}

bool exec_replays(const struct exec *e)
{
    return e->replay;
}

enum pawl_status replay_open(const struct replay *r, struct store *reader, struct exec **out,
                             struct pawl_err *err)
{
    struct exec *e = mem_zalloc(sizeof *e);
    if (!e)
        return err_no_memory(err, "a replay");
    here = true;
    e->replay = r;
    e->conf = (struct exec_conf){ .world = &world_real, .node = "replay", .pool_size = 1 };
    e->presence = -1;
    enum pawl_status st = pool_init(&e->pool, err);
    if (st == PAWL_OK)
        st = readers_init(&e->readers, 1, READER_WAIT_US, err);
    if (st != PAWL_OK) {
        mem_free(e);
        return st;
    }
    e->readers.idle[0] = reader;
    e->readers.n_idle = e->readers.n_open = 1;
    *out = e;
    return PAWL_OK;
}

/* ---- How it ends ----------------------------------------------------------------------------- */

PRINTF_LIKE(3, 0)
static _Noreturn void end_with(struct pawl_call *t, enum replay_end end, const char *fmt,
                               va_list args)
{
    struct replay_outcome *out = t->e->replay->out;
    char text[ERROR_LEN_MAX + 100];
    vsnprintf(text, sizeof text, fmt, args);
    snprintf(out->text, sizeof out->text, "%.*s",
             BYTES_ARG(utf8_cut(bytes_of(text), sizeof out->text - 1)));
    out->end = end;
    _exit(0);
}

PRINTF_LIKE(3, 4)
static _Noreturn void end(struct pawl_call *t, enum replay_end how, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    end_with(t, how, fmt, args);
}

void replay_blind(struct pawl_call *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    end_with(t, REPLAY_BLIND, fmt, args);
}

void replay_over(struct pawl_call *t, bool for_good, struct bytes why)
{
    if (!why.len)
        why = BYTES("no memory for its steps");
    end(t, for_good ? REPLAY_FAILS : REPLAY_BLIND, "%.*s", BYTES_ARG(why));
}

static void point_set(struct replay_point *to, int64_t no, enum step_kind kind, struct bytes name)
{
    to->no = no;
    to->kind = kind;
    snprintf(to->name, sizeof to->name, "%.*s", BYTES_ARG(name));
}

/* The first stored step of the handler behind this place; NULL: there is none. */
static const struct workflow_row *behind(const struct pawl_call *t, int64_t no)
{
    const struct workflow_journal *j = t->e->replay->journal;
    for (size_t i = 0; i < j->n; i++)
        if (j->v[i].no > no && j->v[i].kind != STEP_UNDO)
            return &j->v[i];
    return NULL;
}

/* The handler goes no further, whatever the journal has behind the last step that it asked for. */
PRINTF_LIKE(2, 3)
static _Noreturn void over(struct pawl_call *t, const char *fmt, ...)
{
    const struct workflow_row *left = behind(t, atomic_load(&t->pass)->no);
    va_list args;
    va_start(args, fmt);
    if (left)
        point_set(&t->e->replay->out->stored, left->no, left->kind, left->name);
    end_with(t, left ? REPLAY_MISSES : REPLAY_FITS, fmt, args);
}

void replay_point(struct pawl_call *t, const struct workflow_step *asked,
                  const struct workflow_row *row)
{
    struct replay_outcome *out = t->e->replay->out;
    point_set(&out->asked, asked->no, asked->kind, asked->stored_name);
    out->stored.no = 0;
    if (row)
        point_set(&out->stored, row->no, row->kind, row->name);
    if (!row)
        end(t, REPLAY_FITS, "the step is new");
    if (row->kind != asked->kind || !bytes_eq(row->name, asked->stored_name))
        end(t, REPLAY_DIVERGES, "the code asks for another step");
    if (!step_ended(row->status))
        end(t, REPLAY_FITS, "the step has not ended");
    if (row->status == STEP_FAILED || row->status == STEP_REFUSED)
        over(t, "the run fails with step %lld", (long long)row->no);
}

void replay_misused(struct pawl_call *t, struct bytes why)
{
    if (!atomic_load(&t->undoing))
        replay_over(t, true, why);
    over(t, "%.*s", BYTES_ARG(why));
}

void replay_restarts(struct pawl_call *t)
{
    over(t, "the handler restarts the run");
}

/* The handler has returned of its own will. Where it wants to run again later it may go on then. */
static _Noreturn void returned(struct pawl_call *t)
{
    const struct bytes why = t->item.error;
    switch (t->item.how) {
    case END_RESULT:
        over(t, "the handler returned");
    case END_REFUSE:
        over(t, "the handler refused: %.*s", BYTES_ARG(why));
    case END_LATER:
        if (behind(t, atomic_load(&t->pass)->no))
            replay_blind(t, "the handler asked to run again later");
        end(t, REPLAY_FITS, "the handler asked to run again later");
    case END_ERROR:
    case END_TIMEOUT:
    case END_RELEASE:
    case END_CANCELLED:
    case END_LOST:
        break;
    }
    over(t, "the handler failed: %.*s", BYTES_ARG(why));
}

/* ---- The run --------------------------------------------------------------------------------- */

/* What a claim would have made of the call. */
static void attempt_make(struct pawl_call *t, struct exec *e)
{
    static struct lease_run lease;
    static struct run run;
    const struct replay *r = e->replay;
    t->e = lease.e = e;
    t->lease = &lease;
    t->run = &run;
    t->call = r->call;
    t->input = r->journal->has_input ? r->journal->input : r->call->spec.input;
    t->state = run.state = r->state;
    t->started_us = r->now_us;
    t->began_us = world_mono(&world_real);
    t->deadline_us = t->began_us + r->call->spec.timeout_us;
    t->item = (struct finish_item){ .seq = r->call->seq, .id = r->call->spec.id };
    atomic_init(&t->undoing, r->journal->undoing);
    atomic_init(&t->stage, ATTEMPT_RUNNING);
    atomic_init(&t->refs, 1);
    one_shot_init(&t->stopped);
    arena_init(&t->arena, ATTEMPT_LEN_MAX);
    arena_init(&t->end_arena, ATTEMPT_LEN_MAX);
}

/* Its pass, over rows that are borrowed. False without memory. */
static bool pass_begin(struct pawl_call *t)
{
    const struct workflow_journal *w = t->e->replay->journal;
    struct journal *j = journal_new(t->call->seq);
    if (j) {
        j->generation = w->generation;
        j->v = w->v;
        j->n = w->n;
        j->undoing = w->undoing;
        j->doubt = w->doubt;
        j->error = w->error;
    }
    struct pass *p = pass_make(t, j);
    if (p)
        p->begun = true;
    return p;
}

void replay_run(struct exec *e)
{
    static struct pawl_call t;
    const struct call_spec *s = &e->replay->call->spec;
    atomic_store(&e->clock_offset_us, e->replay->now_us - world_mono(&world_real));
    attempt_make(&t, e);
    t.handler = registry_find(&e->registry, s->type, s->method);
    if (t.handler < 0)
        end(&t, REPLAY_UNSERVED, "no handler serves it");
    const struct workflow_journal *j = e->replay->journal;
    if (j->pinned && !bytes_eq(j->version, e->registry.v[t.handler].version))
        end(&t, REPLAY_PINNED, "the run is pinned to another version");
    if (!pass_begin(&t))
        end(&t, REPLAY_BLIND, "no memory for its steps");
    attempt_settle(&t, e->registry.v[t.handler].handler(&t));
    returned(&t);
}
