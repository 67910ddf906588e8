/*
 * workflow_steps.c - the operation STEPS: what a pass of a run stores.
 *
 * Store thread, under the lock of the run's row. First everything is planned: names are numbered,
 * children settled, limits checked, and what contradicts the journal is found. Only then rows are
 * written. A step that is stored already is answered as it is stored, whatever the pass says now.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/workflow_inside.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* One operation while it is decided. */
struct plan {
    struct ledger *d;
    struct op *op;
    struct workflow_steps *q;
    struct run *r;
    struct step_row **row;   /* of each step of q */
    struct call_spec *child; /* of each step of q, settled */
    bool *known;             /* of each step of q: a call with its child's id was there before */
    bool *shown;             /* of each value that q publishes: the run shows one of that name */
    struct feature_call run; /* the call; seq 0: not read yet */
    size_t n_children;       /* to be accepted */
    bool older;              /* this pass began before the run had to undo */
    bool ended;              /* a step was ended by this operation */
    bool changed;
    bool sends;             /* the last step is stored now, so its calls are sent */
    struct step_row *stuck; /* an undo that has failed for good */
};

static bool refuse(struct plan *p, enum pawl_status status, const struct workflow_step *s,
                   const char *text)
{
    char name[TEXT_QUOTE_LEN];
    p->op->status = err_set(&p->op->err, status, "step %lld \"%s\": %s", (long long)s->no,
                            text_quote(s->name, name), text);
    return false;
}

/* ---- Planning -------------------------------------------------------------------------------- */

/* The name that code gives, or `undo:` and the name of what is undone. */
static struct bytes plain_name(struct plan *p, const struct workflow_step *s, int64_t *out_nth)
{
    *out_nth = 0;
    if (s->kind != STEP_UNDO)
        return s->name;
    struct bytes plain = step_name_plain(s->name, out_nth);
    return bytes_of(arena_printf(feature_arena(p->d), "undo:%.*s", BYTES_ARG(plain)));
}

/* Does the stored step have this kind and name? If not, the code and the journal contradict each
 * other. */
static bool agrees(const struct step_row *row, const struct workflow_step *s, struct bytes name)
{
    return row->kind == s->kind && bytes_eq(row->name, name);
}

/* What is wrong with the name of a step; of an undo it is the stored name of what it undoes. */
static const char *name_wrong(const struct workflow_step *s)
{
    int64_t nth;
    if (s->kind != STEP_UNDO)
        return step_name_fault(s->name);
    struct bytes plain = step_name_plain(s->name, &nth);
    return nth ? step_name_fault(plain) : "has a \"#\" without the number of a use behind it";
}

/* Is it a sleep, which has ended or may end by its time? */
static bool sleeps(const struct step_row *row)
{
    return row->stored && row->kind == STEP_SLEEP &&
           (step_ended(row->status) || (row->status == STEP_WAITING && row->until_us));
}

/* Is the step of the pass one that the contract allows here? */
static bool allowed(struct plan *p, const struct workflow_step *s, const struct step_row *row)
{
    const struct run *r = p->r;
    const char *fault = name_wrong(s);
    bool ends = s->says == SAYS_RESULT || s->says == SAYS_ERROR || s->says == SAYS_REFUSED;
    if (s->no < 1 || !step_kind_name((int64_t)s->kind))
        return refuse(p, PAWL_INVALID, s,
                      "its \"no\" must be at least 1, and its kind one of the documented ones");
    if (fault)
        return refuse(p, PAWL_INVALID, s, arena_printf(feature_arena(p->d), "its name %s", fault));
    if (ends && s->result.bytes.len > RESULT_LEN_MAX)
        return refuse(p, PAWL_TOO_LARGE, s, "its result is longer than 1 MiB");
    if (s->says == SAYS_PASSED && !sleeps(row))
        return refuse(p, PAWL_INVALID, s, "it does not sleep");
    if (row->stored)
        return true;
    if (s->no > r->next_no + STEPS_AT_ONCE_MAX)
        return refuse(p, PAWL_INVALID, s,
                      arena_printf(feature_arena(p->d),
                                   "steps before it are not stored; the next \"no\" is %lld",
                                   (long long)r->next_no));
    if (s->kind != STEP_UNDO && r->steps >= STEPS_MAX)
        return refuse(p, PAWL_FULL, s, "the run has 10000 steps already; restart it");
    if (r->bytes + (int64_t)s->result.bytes.len > STEPS_LEN_MAX)
        return refuse(p, PAWL_FULL, s, "the results of the run would exceed 64 MiB; restart it");
    if (s->kind == STEP_UNDO && !p->q->undoing)
        return refuse(p, PAWL_STATE, s, "it is an undo, and the run does not undo");
    if (s->kind != STEP_UNDO && p->q->undoing)
        return refuse(p, PAWL_STATE, s, "the run undoes, and takes no further step");
    return true;
}

static enum pawl_status run_call(struct plan *p, struct pawl_err *err)
{
    return p->run.seq ? PAWL_OK : feature_call_at(p->d, p->r->seq, &p->run, err);
}

/* Has one of these runs this key, and not ended? */
static enum pawl_status has_key(struct plan *p, const int64_t *seqs, size_t n, struct bytes key,
                                bool *out, struct pawl_err *err)
{
    enum pawl_status st = feature_calls_load(p->d, seqs, n, err);
    for (size_t i = 0; i < n && st == PAWL_OK && !*out; i++) {
        struct feature_call c;
        st = feature_call_at(p->d, seqs[i], &c, err);
        *out = st == PAWL_OK && !pawl_state_ended(c.state) && bytes_eq(c.key, key);
    }
    return st;
}

/* Would a child with this key wait for its own run, or for one that waits for that run? A run has
 * several above it if one of those was forked. */
static enum pawl_status waits_for_itself(struct plan *p, struct bytes key, bool *out,
                                         struct pawl_err *err)
{
    int64_t *seqs = &p->r->seq;
    size_t n = key.data ? 1 : 0;
    enum pawl_status st = PAWL_OK;
    *out = false;
    for (int depth = 0; n && !*out && depth < WORKFLOW_DEPTH_MAX && st == PAWL_OK; depth++) {
        struct led_params q = { 0 };
        struct led_rows *rows = NULL;
        st = has_key(p, seqs, n, key, out, err);
        led_ints(p->d, &q, seqs, n);
        if (st == PAWL_OK)
            st = feature_query(p->d, SQL_CHILD_PARENTS, &q, &rows, err);
        n = st == PAWL_OK ? (size_t)rows->n : 0;
        seqs = arena_alloc(feature_arena(p->d), (n + 1) * sizeof *seqs);
        if (!seqs)
            return err_no_memory(err, "the runs above a run");
        for (size_t i = 0; i < n; i++)
            seqs[i] = led_get_int(rows, (int)i, 0);
    }
    return st;
}

/* The call of a child, settled. *out false: the operation is refused. */
static enum pawl_status plan_child(struct plan *p, size_t i, const struct step_row *row, bool *out,
                                   struct pawl_err *err)
{
    struct workflow_step *s = &p->q->v[i];
    struct arena *a = feature_arena(p->d);
    struct call_spec *to = &p->child[i];
    bool itself = false;
    struct pawl_err why;
    *out = true;
    enum pawl_status st = run_call(p, err);
    if (st != PAWL_OK)
        return st;
    if (!call_spec_copy(a, s->call, to))
        return err_no_memory(err, "a child");
    to->id = step_child_id(a, p->run.id, p->r->generation, row->name, row->nth);
    if (!to->id.data)
        return err_no_memory(err, "a child");
    to->parent = p->run.id;
    to->watch |= WATCH_CHILD;
    st = call_spec_settle(a, feature_world(p->d), to, &why);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a child");
    if (st != PAWL_OK) {
        *out = refuse(p, st, s, arena_printf(a, "its call: %s", why.text));
        return PAWL_OK;
    }
    st = waits_for_itself(p, to->key, &itself, err);
    if (st == PAWL_OK && itself)
        *out = refuse(p, PAWL_INVALID, s,
                      "the key of its call is that of this run or of one that waits for it");
    p->n_children++;
    return st;
}

/* The code asks for another step than the stored one: q->why names both. */
static void contradict(struct op *op, struct workflow_steps *q, const struct workflow_step *s,
                       const struct step_row *row, struct bytes name)
{
    q->diverged = true;
    q->why = bytes_of(
        arena_printf(op->a, "step %lld is %s \"%.*s\", and the code asks for %s \"%.*s\"",
                     (long long)s->no, step_kind_name((int64_t)row->kind), BYTES_ARG(row->name),
                     step_kind_name((int64_t)s->kind), BYTES_ARG(name)));
}

/* An undo that is new: is there something to be undone, and no undo of it? What is not stored may
 * have happened if the last pass was cut off. *out false: the operation is refused. */
static enum pawl_status plan_undo(struct plan *p, const struct workflow_step *s, bool *out,
                                  struct pawl_err *err)
{
    struct arena *a = feature_arena(p->d);
    struct step_row *of, *undo;
    const char *name = arena_printf(a, "undo:%.*s", BYTES_ARG(s->name));
    if (!name)
        return err_no_memory(err, "a step");
    enum pawl_status st = step_by_name(p->d, p->r, s->name, &of, err);
    if (st == PAWL_OK)
        st = step_by_name(p->d, p->r, bytes_of(name), &undo, err);
    *out = true;
    if (st != PAWL_OK)
        return st;
    if (undo)
        *out = refuse(p, PAWL_INVALID, s,
                      arena_printf(a, "the undo of this step is step %lld", (long long)undo->no));
    else if (!of && !(p->r->flags & RUN_CUT))
        *out = refuse(p, PAWL_INVALID, s, "the run has no such step");
    else if (of && of->undos & UNDO_FINAL)
        *out = refuse(p, PAWL_STATE, s, "what it undoes is final in this run");
    else if (of && of->status == STEP_REFUSED)
        *out = refuse(p, PAWL_STATE, s, "what it undoes has not happened");
    return PAWL_OK;
}

/* A wait that is new: are the children that it names children of the run? *out false: the operation
 * is refused. */
static enum pawl_status plan_wait(struct plan *p, size_t i, bool *out, struct pawl_err *err)
{
    const struct workflow_step *s = &p->q->v[i];
    char name[TEXT_QUOTE_LEN];
    struct bytes unknown;
    enum pawl_status st = wait_unknown(p->d, p->r, &s->wait, p->child, i, &unknown, err);
    *out = true;
    if (st == PAWL_OK && unknown.data)
        *out = refuse(p, PAWL_INVALID, s,
                      arena_printf(feature_arena(p->d), "\"%s\" is no child of this run",
                                   text_quote(unknown, name)));
    return st;
}

/* Plan one step. *out false: the operation is refused, or the code contradicts the journal. */
static enum pawl_status plan_one(struct plan *p, size_t i, bool *out, struct pawl_err *err)
{
    struct workflow_step *s = &p->q->v[i];
    struct step_row *row = step_at(p->r, s->no);
    enum pawl_status st = PAWL_OK;
    int64_t nth;
    CHECK(row);
    p->row[i] = row;
    *out = allowed(p, s, row);
    if (!*out)
        return PAWL_OK;
    struct bytes name = plain_name(p, s, &nth);
    if (!name.data)
        return err_no_memory(err, "a step");
    if (row->nth) { /* stored, or planned before by this operation */
        *out = agrees(row, s, name);
        if (!*out)
            contradict(p->op, p->q, s, row, name);
        return p->op->a->failed ? err_no_memory(err, "a step") : PAWL_OK;
    }
    st = s->kind == STEP_UNDO ? plan_undo(p, s, out, err) : step_uses(p->d, p->r, name, &nth, err);
    if (st != PAWL_OK || !*out)
        return st;
    row->name = arena_copy(feature_arena(p->d), name);
    row->nth = s->kind == STEP_UNDO ? nth : nth + 1;
    row->kind = s->kind;
    row->started_us = feature_now(p->d);
    if (p->older)
        return PAWL_OK;
    return s->says == SAYS_CHILD  ? plan_child(p, i, row, out, err)
           : s->says == SAYS_WAIT ? plan_wait(p, i, out, err)
                                  : PAWL_OK;
}

/* The operation is refused: forget what was planned. */
static void unplan(struct plan *p)
{
    for (size_t i = 0; i < p->q->n; i++)
        if (p->row[i] && !p->row[i]->stored)
            p->row[i]->nth = 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The step has ended. The moment is later than that of every other step of the run, because the
 * order of undoing is read from it. */
static void done(struct plan *p, struct step_row *row, enum step_status status,
                 struct payload result, struct bytes error)
{
    struct run *r = p->r;
    row->status = status;
    row->result = result;
    row->error = error;
    row->completed_us = MAX(feature_now(p->d), r->last_done_us + 1);
    row->until_us = status == STEP_TIMEOUT || row->kind == STEP_SLEEP ? row->until_us : 0;
    row->awaits = 0;
    r->last_done_us = row->completed_us;
    r->bytes += (int64_t)result.bytes.len;
    workflow_count_step();
    p->ended = true;
}

/* Which ids of children are other calls' already? */
static enum pawl_status children_known(struct plan *p, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < p->q->n && st == PAWL_OK; i++) {
        struct feature_call c = { 0 };
        if (p->child[i].id.data && !p->known[i])
            st = feature_call_named(p->d, p->child[i].id, &c, err);
        p->known[i] = p->known[i] || c.seq;
    }
    return st;
}

/* The calls that the operation makes: children whose ids are free, then what it sends. */
struct made {
    struct call_spec *v;
    size_t *step; /* of a child: its place in the operation */
    size_t n, n_children;
};

static void made_collect(struct plan *p, struct made *m)
{
    m->n = 0;
    for (size_t i = 0; i < p->q->n; i++) {
        if (!p->child[i].id.data || p->known[i])
            continue;
        m->step[m->n] = i;
        m->v[m->n++] = p->child[i];
    }
    m->n_children = m->n;
    for (size_t i = 0; p->sends && i < p->q->n_send; i++)
        m->v[m->n++] = p->q->send[i];
}

/* Accept them, all or none; a child whose id is taken is left out. *out false: they are refused. */
static enum pawl_status made_accept(struct plan *p, struct made *m, struct op *nested, bool *out,
                                    struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (bool looked = false;; looked = true) {
        made_collect(p, m);
        if (!m->n)
            return PAWL_OK;
        *nested =
            (struct op){ .kind = OP_ACCEPT, .accept = { .v = m->v, .n = m->n, .atomic = true } };
        st = feature_nested(p->d, nested, err);
        bool taken = nested->status == PAWL_CONFLICT || nested->status == PAWL_GONE;
        if (st != PAWL_OK || !taken || nested->accept.refused >= m->n_children)
            break;
        p->known[m->step[nested->accept.refused]] = true;
        st = looked ? PAWL_OK : children_known(p, err);
        if (st != PAWL_OK)
            return st;
    }
    if (st == PAWL_OK && nested->status != PAWL_OK) {
        p->op->status = nested->status;
        p->op->err = nested->err;
        *out = false;
    }
    return st;
}

/* Accept the children of the operation and what it sends. *out false: it is refused. */
static enum pawl_status accept_calls(struct plan *p, bool *out, struct pawl_err *err)
{
    struct arena *a = feature_arena(p->d);
    size_t max = p->n_children + (p->sends ? p->q->n_send : 0);
    struct made m = { .v = arena_alloc(a, (max + 1) * sizeof *m.v),
                      .step = arena_alloc(a, (max + 1) * sizeof *m.step) };
    struct op nested;
    *out = true;
    if (!m.v || !m.step)
        return err_no_memory(err, "children");
    enum pawl_status st = made_accept(p, &m, &nested, out, err);
    for (size_t k = 0; k < m.n_children && st == PAWL_OK && *out; k++) {
        const struct accepted *c = &nested.accept.out[k];
        size_t i = m.step[k];
        const union feature_value row[] = { I(p->r->seq), I(c->call.seq), B(p->child[i].id),
                                            I(0),         I(0),           I(p->q->v[i].no) };
        p->known[i] = c->duplicate;
        if (!c->duplicate)
            st = feature_row(p->d, SQL_CHILD_ADD, "iitiii", row, FEATURE_EXACT, err);
    }
    return st;
}

/* The id of a child as JSON; without bytes when there is no memory. */
static struct payload child_result(struct plan *p, size_t i)
{
    struct buf b;
    buf_init(&b, 8 * NAME_LEN_MAX);
    json_add_string(&b, p->child[i].id);
    struct bytes id = buf_ok(&b) ? arena_copy(feature_arena(p->d), buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return (struct payload){ PAWL_JSON, id };
}

/* Its id is another call's: it fails for good. */
static void child_taken(struct plan *p, size_t i)
{
    const char *text =
        arena_printf(feature_arena(p->d), "CONFLICT: a call with the id \"%.*s\" exists already",
                     BYTES_ARG(p->child[i].id));
    p->q->taken = arena_copy(p->op->a, p->child[i].id);
    workflow_count_taken();
    done(p, p->row[i], STEP_REFUSED, (struct payload){ 0 }, bytes_of(text));
}

static enum pawl_status undone(struct plan *p, const struct workflow_step *s, struct pawl_err *err)
{
    struct step_row *of;
    enum pawl_status st = step_by_name(p->d, p->r, s->name, &of, err);
    if (st != PAWL_OK || (of && of->undos & UNDO_WAS))
        return st;
    if (!of) { /* it was in doubt, and is not stored */
        p->r->undone++;
        return PAWL_OK;
    }
    of->undos |= UNDO_WAS;
    p->r->undone++;
    return step_put(p->d, p->r, of, err);
}

/* An undo has failed for good. A retry of the run tries it again, as often as at first. */
static void stick(struct plan *p, struct step_row *row, const struct workflow_step *s)
{
    row->status = STEP_RETRYING;
    row->error = utf8_cut(s->error, ERROR_LEN_MAX);
    row->attempts = 0;
    p->stuck = row;
}

/* Does it say what came of a try? */
static bool says_try(const struct workflow_step *s)
{
    return s->says == SAYS_RESULT || s->says == SAYS_ERROR || s->says == SAYS_REFUSED ||
           s->says == SAYS_RETRY;
}

/* What a pass says of a step that has not ended. *out_settled: of a wait. */
static enum pawl_status say(struct plan *p, size_t i, bool *out_settled, struct pawl_err *err)
{
    struct workflow_step *s = &p->q->v[i];
    struct step_row *row = p->row[i];
    enum pawl_status st = PAWL_OK;
    if (s->attempts)
        row->attempts = MAX(row->attempts, s->attempts);
    else if (says_try(s))
        row->attempts++;
    row->undos |= s->undo ? UNDO_CAN : 0;
    row->node = p->q->node;
    *out_settled = true;
    switch (s->says) {
    case SAYS_BEGUN:
        row->status = STEP_BEGUN;
        break;
    case SAYS_RESULT:
        done(p, row, STEP_COMPLETED, s->result, BYTES_NONE);
        st = s->kind == STEP_UNDO ? undone(p, s, err) : PAWL_OK;
        break;
    case SAYS_ERROR:
    case SAYS_REFUSED:
        if (s->kind == STEP_UNDO) {
            stick(p, row, s);
            break;
        }
        done(p, row, s->says == SAYS_ERROR ? STEP_FAILED : STEP_REFUSED, s->result,
             utf8_cut(s->error, ERROR_LEN_MAX));
        break;
    case SAYS_RETRY:
        row->status = STEP_RETRYING;
        row->error = utf8_cut(s->error, ERROR_LEN_MAX);
        row->until_us = feature_now(p->d) + s->retry_in_us;
        *out_settled = false;
        break;
    case SAYS_WAIT:
        st = wait_step(p->d, p->r, row, &s->wait, out_settled, err);
        if (st == PAWL_OK && *out_settled)
            done(p, row, row->status, row->result, BYTES_NONE);
        break;
    case SAYS_PASSED:
        done(p, row, STEP_COMPLETED, (struct payload){ 0 }, BYTES_NONE);
        break;
    case SAYS_CHILD:
        if (p->known[i])
            child_taken(p, i);
        else
            done(p, row, STEP_COMPLETED, child_result(p, i), BYTES_NONE);
        break;
    }
    return st;
}

static void answer(struct plan *p, struct workflow_step *s, const struct step_row *row)
{
    s->status = row->status;
    s->attempts = (int)row->attempts;
    s->stored_name = step_name(p->op->a, row->name, row->nth);
    s->result_out = (struct payload){ row->result.form, arena_copy(p->op->a, row->result.bytes) };
    s->error_out = arena_copy(p->op->a, row->error);
    s->completed_us = row->completed_us;
    s->until_us = row->until_us;
}

/* Did a pass that was claimed before the undoing do something that the undoing has to know of? A
 * try that failed is in doubt. */
static bool happened(const struct workflow_step *s)
{
    return s->says == SAYS_RESULT || s->says == SAYS_ERROR || s->says == SAYS_REFUSED ||
           s->says == SAYS_RETRY;
}

/* Store the steps. *out_waits: how many of them wait; *out_settled: how many waits were settled. */
static enum pawl_status say_all(struct plan *p, size_t *out_waits, size_t *out_settled,
                                struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    *out_waits = *out_settled = 0;
    for (size_t i = 0; i < p->q->n && st == PAWL_OK; i++) {
        struct workflow_step *s = &p->q->v[i];
        struct step_row *row = p->row[i];
        bool settled = true, waits = s->says == SAYS_WAIT || s->says == SAYS_RETRY;
        bool was_ended = row->stored && step_ended(row->status), is_new = !row->stored;
        if (p->older && !was_ended && !happened(s)) {
            row->nth = is_new ? 0 : row->nth;
            continue;
        }
        if (!was_ended) {
            st = say(p, i, &settled, err);
            if (st == PAWL_OK)
                st = step_put(p->d, p->r, row, err);
            p->r->steps += is_new && row->kind != STEP_UNDO;
            p->r->next_no = MAX(p->r->next_no, row->no + 1);
            p->changed = true;
        }
        *out_waits += waits;
        *out_settled += waits && settled;
        answer(p, s, row);
    }
    return st == PAWL_OK && (p->op->a->failed || feature_arena(p->d)->failed)
               ? err_no_memory(err, "steps")
               : st;
}

/* ---- Suspending ------------------------------------------------------------------------------ */

static void add_names(struct buf *b, const struct workflow_wait *w)
{
    for (size_t i = 0; i < w->n_signals; i++) {
        buf_add_text(b, b->len ? "\n" : "");
        buf_add_bytes(b, w->signals[i]);
    }
}

/* For what the run waits: all waits of the operation together. *out_us: when it is due. */
static enum pawl_status waits_set(struct plan *p, int64_t *out_us, struct pawl_err *err)
{
    struct run *r = p->r;
    AUTO(buf_release) struct buf names;
    buf_init(&names, (size_t)STEPS_AT_ONCE_MAX * (NAME_LEN_MAX + 1));
    *out_us = r->deadline_us ? r->deadline_us : FLOW_NEVER_US;
    r->waits &= AWAIT_EACH;
    for (size_t i = 0; i < p->q->n; i++) {
        const struct workflow_step *s = &p->q->v[i];
        const struct step_row *row = p->row[i];
        if (!row->stored || step_ended(row->status))
            continue;
        if (row->until_us)
            *out_us = MIN(*out_us, row->until_us);
        if (s->says == SAYS_RETRY)
            r->waits |= AWAIT_RETRY;
        if (s->says != SAYS_WAIT)
            continue;
        r->waits |= (s->wait.n_signals ? AWAIT_SIGNAL : 0) | (row->until_us ? AWAIT_TIME : 0) |
                    (s->wait.n_children ? AWAIT_CHILDREN : 0);
        add_names(&names, &s->wait);
    }
    r->wait_signals = names.len ? arena_copy(feature_arena(p->d), buf_bytes(&names)) : BYTES_NONE;
    return buf_ok(&names) && !feature_arena(p->d)->failed ? PAWL_OK : err_no_memory(err, "waits");
}

/* The step in doubt of a run that undoes stays in doubt: its undo may be what is tried again. */
static enum pawl_status suspend(struct plan *p, int64_t at_us, struct pawl_err *err)
{
    p->r->let_go = true;
    if (!p->q->undoing)
        p->r->flags &= ~RUN_CUT;
    p->r->pass = workflow_pass(p->d, p->op);
    p->q->suspended = true;
    p->q->run_at_us = at_us;
    p->changed = true;
    p->op->feature.brings = true; /* it may be due at once, or before the next look for work */
    enum pawl_status st = run_put(p->d, p->r, err);
    return st == PAWL_OK ? feature_flow_suspend(p->d, p->op, at_us, err) : st;
}

/* ---- The operation --------------------------------------------------------------------------- */

/* The run ends as dead_letter, with q->why as its error. A retry goes on from its steps; one that
 * was undoing goes on undoing, and gc keeps it until then. */
static enum pawl_status stop(struct plan *p, struct pawl_err *err)
{
    struct run *r = p->r;
    r->let_go = true; /* nothing was cut off */
    r->ends = r->undoing_us;
    r->ends_undone = UNDO_FAILED;
    r->pass = workflow_pass(p->d, p->op);
    p->op->feature.brings = true;
    return feature_flow_end(
        p->d, r->seq, (struct flow_end_as){ .state = PAWL_DEAD_LETTER, .error = p->q->why }, err);
}

static enum pawl_status diverge(struct plan *p, struct pawl_err *err)
{
    workflow_count_divergence();
    if (p->q->ends) { /* the end of its attempt asks flow_end() */
        p->r->diverges = arena_copy(feature_arena(p->d), p->q->why);
        p->op->status = err_set(&p->op->err, PAWL_STATE, "%.*s", BYTES_ARG(p->q->why));
        return p->r->diverges.data ? PAWL_OK : err_no_memory(err, "steps");
    }
    p->r->flags |= RUN_DIVERGED;
    return stop(p, err);
}

/* An undo has failed for good. */
static enum pawl_status stop_undoing(struct plan *p, struct pawl_err *err)
{
    const struct step_row *row = p->stuck;
    struct bytes name = step_name(p->op->a, row->name, row->nth);
    const char *why = arena_printf(p->op->a, "%.*s: %.*s", BYTES_ARG(name), BYTES_ARG(row->error));
    p->q->stuck = true;
    p->q->why = utf8_cut(bytes_of(why), ERROR_LEN_MAX);
    if (!why)
        return err_no_memory(err, "a step");
    enum pawl_status st = run_put(p->d, p->r, err);
    return st == PAWL_OK ? stop(p, err) : st;
}

static enum pawl_status decide(struct plan *p, struct pawl_err *err)
{
    size_t waits, settled;
    bool go = true;
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; i < p->q->n && st == PAWL_OK && go; i++)
        st = plan_one(p, i, &go, err);
    if (st == PAWL_OK && go && p->q->n) {
        const struct step_row *last = p->row[p->q->n - 1];
        p->sends = !last->stored || !step_ended(last->status);
        p->op->feature.repeated = !p->sends;
    }
    if (st == PAWL_OK && go && p->q->n_published) {
        st = values_check(p->d, p->op, p->r, p->shown, err);
        go = p->op->status == PAWL_OK;
    }
    if (st == PAWL_OK && go && (p->n_children || (p->sends && p->q->n_send)))
        st = accept_calls(p, &go, err);
    if (st != PAWL_OK)
        return st;
    if (!go) {
        unplan(p);
        return p->q->diverged ? diverge(p, err) : PAWL_OK;
    }
    st = say_all(p, &waits, &settled, err);
    if (st == PAWL_OK && p->q->n && !p->changed && !p->older) {
        p->op->feature.repeated = true; /* all of it was stored before */
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = values_write(p->d, p->r, p->q, p->shown, err);
    if (st == PAWL_OK && p->ended)
        st = feature_flow_step(p->d, p->op, err);
    if (st != PAWL_OK)
        return st;
    if (p->stuck)
        return stop_undoing(p, err);
    if (p->older && !p->q->ends)
        return suspend(p, feature_now(p->d), err);
    if (waits && !settled) {
        int64_t at_us = 0;
        st = waits_set(p, &at_us, err);
        p->r->wait_us = at_us < FLOW_NEVER_US ? at_us : 0;
        return st == PAWL_OK ? suspend(p, at_us, err) : st;
    }
    p->r->waits = p->r->wait_us = 0;
    return run_put(p->d, p->r, err);
}

/* When its run_timeout passes. */
static enum pawl_status deadline_set(struct ledger *d, struct run *r, struct pawl_err *err)
{
    struct feature_call c;
    enum pawl_status st = feature_call_at(d, r->seq, &c, err);
    if (st == PAWL_OK)
        r->deadline_us = c.run_until_us;
    return st;
}

enum pawl_status workflow_begin(struct ledger *d, struct op *op, struct run *r, bool *out,
                                struct pawl_err *err)
{
    const struct workflow_steps *q = &((const struct workflow_op *)op->feature.ctx)->steps;
    struct flow_claimed lease = { .version = q->version };
    bool cancelled = false, begins = !(r->flags & RUN_BEGUN);
    enum pawl_status st = q->by_lease ? feature_claimed(d, op, &lease, err) : PAWL_OK;
    if (st == PAWL_OK)
        st = feature_flow_begin(d, op, q->pin ? lease.version : BYTES_NONE, &cancelled, err);
    *out = st == PAWL_OK && op->status == PAWL_OK;
    if (!*out)
        return st;
    if (!r->stored)
        st = run_new(d, r, BYTES_NONE, err);
    if (st == PAWL_OK && begins)
        st = deadline_set(d, r, err);
    if (st != PAWL_OK)
        return st;
    if (begins) {
        CHECK(r->next_no == 1 && !r->version.data);
        r->flags |= RUN_BEGUN | (q->pin && lease.version.data ? RUN_PINNED : 0);
    }
    if (r->next_no == 1 && !r->version.data)
        r->version = lease.version;
    if (cancelled)
        return run_undo(d, r, REASON_CANCELLED, BYTES("cancelled"), err);
    bool late = r->deadline_us && r->deadline_us <= feature_now(d);
    return late && !r->undoing_us
               ? run_undo(d, r, REASON_TIMEOUT, BYTES("its run_timeout has passed"), err)
               : PAWL_OK;
}

/* Was the pass claimed after the run had to undo? */
static enum pawl_status undoes(struct plan *p, struct pawl_err *err)
{
    struct flow_claimed lease = { 0 };
    enum pawl_status st = feature_claimed(p->d, p->op, &lease, err);
    p->q->node = lease.owner;
    p->q->undoing = p->r->undoing_us && lease.at_us >= p->r->undoing_us;
    return st;
}

struct bytes workflow_pass(struct ledger *d, const struct op *op)
{
    char text[33];
    token_text(op->feature.token, text);
    return arena_copy(feature_arena(d), bytes_of(text));
}

/* The operation suspended or ended the run, and its answer was lost: answer it again. */
enum pawl_status workflow_former(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *w = op->feature.ctx;
    struct workflow_steps *q = &w->steps;
    struct run *r;
    enum pawl_status st = run_get(d, op->feature.seq, &r, err);
    bool one = w->what == WORKFLOW_STEPS || w->what == WORKFLOW_RESTART;
    if (st != PAWL_OK || !one || !r->pass.data || !bytes_eq(r->pass, workflow_pass(d, op)))
        return st;
    op->feature.repeated = true;
    q->suspended = !(r->flags & RUN_DIVERGED);
    q->diverged = false;
    for (size_t i = 0; i < q->n && !q->suspended && !q->diverged; i++) {
        struct plan p = { .d = d };
        int64_t nth;
        struct bytes name = plain_name(&p, &q->v[i], &nth);
        const struct step_row *row = step_at(r, q->v[i].no);
        if (row && row->stored && !agrees(row, &q->v[i], name))
            contradict(op, q, &q->v[i], row, name);
    }
    op->feature.repeated = q->suspended || q->diverged;
    return PAWL_OK;
}

enum pawl_status workflow_steps(struct ledger *d, struct op *op, struct pawl_err *err)
{
    struct workflow_op *w = op->feature.ctx;
    struct workflow_steps *q = &w->steps;
    struct arena *a = feature_arena(d);
    struct plan p = { .d = d, .op = op, .q = q };
    struct step_ref *refs = arena_zalloc(a, q->n + 1, sizeof *refs);
    bool go;
    p.row = arena_zalloc(a, q->n + 1, sizeof *p.row);
    p.child = arena_zalloc(a, q->n + 1, sizeof *p.child);
    p.known = arena_zalloc(a, q->n + 1, sizeof *p.known);
    p.shown = arena_zalloc(a, q->n_published + 1, sizeof *p.shown);
    if (!refs || !p.row || !p.child || !p.known || !p.shown)
        return err_no_memory(err, "steps");
    CHECK(q->n <= STEPS_AT_ONCE_MAX);
    q->suspended = q->diverged = q->stuck = q->unpublished = false;
    q->run_at_us = q->rev = 0;
    q->taken = BYTES_NONE;
    enum pawl_status st = run_get(d, op->feature.seq, &p.r, err);
    if (st == PAWL_OK)
        st = workflow_begin(d, op, p.r, &go, err);
    if (st != PAWL_OK || !go)
        return st;
    for (size_t i = 0; i < q->n; i++)
        refs[i] = (struct step_ref){ p.r, q->v[i].no };
    st = steps_load(d, refs, q->n, err);
    if (st == PAWL_OK && q->by_lease)
        st = undoes(&p, err);
    p.older = p.r->undoing_us && !q->undoing;
    if (st == PAWL_OK && q->undoing && !p.r->undoing_us) {
        op->status = err_set(&op->err, PAWL_STATE, "the run does not undo");
        return PAWL_OK;
    }
    if (st == PAWL_OK)
        st = decide(&p, err);
    q->rev = q->diverged || q->stuck ? 0 : p.r->rev;
    return st;
}
