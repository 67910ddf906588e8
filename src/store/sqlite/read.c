/*
 * read.c - rows become calls: what was asked, where it stands, and get and attempts over that.
 *
 * Everything an answer shows is copied into its arena; lane names once for all calls that share
 * them. Each slot reads inside one transaction, so that what it shows was true at one moment.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "store/sqlite/move.h"
#include "store/sqlite/read.h"

/* ---- What was asked -------------------------------------------------------------------------- */

static enum pawl_status names_read(struct lite *c, struct lite_shelf *to, int lane,
                                   struct call_spec *s, struct pawl_err *err)
{
    if (to->lane != lane) {
        const struct lite_lane *l;
        enum pawl_status st = lite_lane(c, lane, &l, err);
        if (st != PAWL_OK)
            return st;
        to->queue = arena_copy(to->a, l->queue);
        to->type = arena_copy(to->a, l->type);
        to->lane = lane;
    }
    s->queue = to->queue;
    s->type = to->type;
    return PAWL_OK;
}

static struct bytes column_copy(struct lite_shelf *to, sqlite3_stmt *q, int i)
{
    return arena_copy(to->a, lite_column(q, i));
}

enum pawl_status lite_asked_read(struct lite *c, struct lite_shelf *to, sqlite3_stmt *q,
                                 struct call *out, struct pawl_err *err)
{
    struct call_spec *s = &out->spec;
    call_spec_init(s);
    s->id = column_copy(to, q, 0);
    s->method = column_copy(to, q, ASKED_METHOD);
    s->key = column_copy(to, q, ASKED_KEY);
    s->input.bytes = column_copy(to, q, 5);
    if (s->input.bytes.data)
        s->input.form = (enum pawl_form)lite_int(q, 4);
    s->priority = (int)lite_int(q, 6);
    out->created_us = lite_int(q, ASKED_CREATED);
    out->run_at_us = lite_int(q, 8);
    out->expires_us = lite_int(q, 9);
    s->caller = column_copy(to, q, ASKED_CALLER);
    s->client = column_copy(to, q, ASKED_CLIENT);
    s->parent = column_copy(to, q, ASKED_PARENT);
    s->traceparent = column_copy(to, q, 14);
    enum pawl_status st = names_read(c, to, (int)lite_int(q, ASKED_LANE), s, err);
    if (st == PAWL_OK)
        st = call_options_read(to->a, lite_column(q, 10), s, err);
    if (st == PAWL_OK)
        st = call_tags_read(to->a, lite_column(q, 15), s, err);
    if (st == PAWL_OK && to->a->failed)
        st = err_no_memory(err, "a call");
    return st;
}

static enum pawl_status never_written(int64_t seq, struct pawl_err *err)
{
    return err_set(err, PAWL_BROKEN, "call %lld is named but was never written", (long long)seq);
}

enum pawl_status lite_asked(struct lite *c, struct lite_shelf *to, int64_t seq, bool with_input,
                            struct call *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_CALL_CLAIM, ARGS(INT(seq), INT(with_input)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && !row)
        st = never_written(seq, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct call){ .seq = seq };
    return lite_asked_read(c, to, q, out, err);
}

enum pawl_status lite_asked_along(struct lite *c, struct lite_shelf *to, int64_t seq,
                                  sqlite3_stmt **along, struct call *out, struct pawl_err *err)
{
    sqlite3_stmt *q = *along;
    enum pawl_status st = PAWL_OK;
    bool row = false;
    if (!q || !sqlite3_stmt_busy(q) || lite_int(q, FROM_SEQ) != seq - 1) {
        lite_reset(along);
        st = lite_query(c, SQL_CALL_FROM, ARGS(INT(seq)), &q, err);
        *along = q;
    }
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && (!row || lite_int(q, FROM_SEQ) != seq))
        st = never_written(seq, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct call){ .seq = seq };
    return lite_asked_read(c, to, q, out, err);
}

/* ---- Where it stands ------------------------------------------------------------------------- */

static struct tries tries_read(sqlite3_stmt *q, int at)
{
    return (struct tries){ .attempts = (int)lite_int(q, at),
                           .lost = (int)lite_int(q, at + 1),
                           .redrives = (int)lite_int(q, at + 2) };
}

enum pawl_status lite_tries(struct lite *c, int64_t seq, struct tries *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_READY_TRIES, ARGS(INT(seq)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && !row)
        st = err_set(err, PAWL_BROKEN, "call %lld is on offer and not ready", (long long)seq);
    if (st == PAWL_OK)
        *out = tries_read(q, 0);
    return st;
}

static enum pawl_status last_error(struct lite *c, struct lite_shelf *to, struct call *out,
                                   struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_ATTEMPT_ERROR, ARGS(INT(out->seq)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && row)
        out->error = column_copy(to, q, 0);
    return st;
}

/* Where it stands in its key's line; on offer when it is not in it. */
static enum pawl_status stands_in_line(struct lite *c, sqlite3_stmt *q, struct call *out,
                                       struct call_where *where, struct pawl_err *err)
{
    struct lite_key *k;
    bool offered = lite_null(q, READ_POS);
    int64_t pos = offered ? 0 : lite_int(q, READ_POS);
    enum pawl_status st = lite_key_get(c, out->spec.key, &k, err);
    if (st != PAWL_OK)
        return st;
    out->in_line = pos >= 0;
    out->key_no = offered ? k->head_no : lite_int(q, READ_POS + 7);
    where->behind = pos > 0;
    if (offered)
        out->position = 1;
    else if (pos > 0)
        st = lite_key_position(c, k, pos, &out->position, err);
    return st;
}

static enum pawl_status stands_pending(struct lite *c, struct lite_shelf *to, sqlite3_stmt *q,
                                       struct call *out, struct pawl_err *err)
{
    bool ready = !lite_null(q, READ_TRACK);
    int lane = (int)(ready ? lite_int(q, READ_TRACK) / 2 : lite_int(q, READ_POS + 1));
    struct call_where where = { 0 };
    out->state = PAWL_PENDING;
    out->spec.priority = (int)(ready ? -lite_int(q, READ_TRACK + 1) : lite_int(q, READ_POS + 2));
    out->run_at_us = lite_int(q, ready ? READ_TRACK + 2 : READ_POS + 3);
    out->tries = tries_read(q, ready ? READ_TRACK + 3 : READ_POS + 4);
    enum pawl_status st = names_read(c, to, lane, &out->spec, err);
    if (st == PAWL_OK)
        st = lite_lane_paused(c, lane, &where.queue_paused, err);
    if (st == PAWL_OK && out->tries.attempts + out->tries.lost > 0)
        st = last_error(c, to, out, err);
    if (st == PAWL_OK && out->spec.key.data)
        st = stands_in_line(c, q, out, &where, err);
    out->waiting_for = call_waiting_for(out, c->now_us, where);
    return st;
}

static void stands_ended(struct lite_shelf *to, unsigned with, sqlite3_stmt *q, struct call *out)
{
    int at = READ_STATUS;
    out->state = (enum pawl_state)lite_int(q, at);
    if (with & WITH_RESULT) {
        out->result.form = (enum pawl_form)lite_int(q, at + 1);
        out->result.bytes = column_copy(to, q, at + 2);
    }
    out->error = column_copy(to, q, at + 3);
    out->tries = tries_read(q, at + 4);
    out->node = column_copy(to, q, at + 7);
    out->claimed_us = lite_int(q, at + 8);
    out->started_us = lite_int(q, at + 9);
    out->finished_us = lite_int(q, at + 10);
    out->keep_until_us = lite_int(q, at + 11);
    if (out->keep_until_us == INT64_MAX)
        out->keep_until_us = 0; /* it blocks its key */
    out->key_no = lite_int(q, READ_KEY_NO);
}

/* Held by a lease: processing, or pending when it has not begun. */
static enum pawl_status stands_held(struct lite *c, struct lite_shelf *to, struct call *out,
                                    struct pawl_err *err)
{
    struct lite_holder by;
    enum pawl_status st = lite_holder(c, to, out->seq, &by, err);
    if (st != PAWL_OK)
        return st;
    out->state = by.begun ? PAWL_PROCESSING : PAWL_PENDING;
    out->spec.priority = by.held.priority;
    out->run_at_us = by.held.run_at_us;
    out->tries = by.held.tries;
    out->node = by.owner;
    out->claimed_us = by.claimed_us;
    out->in_line = by.held.key != 0;
    out->position = by.position;
    out->key_no = by.held.key_no;
    out->waiting_for =
        call_waiting_for(out, c->now_us, (struct call_where){ .behind = by.before > 0 });
    st = names_read(c, to, by.held.lane, &out->spec, err);
    if (st == PAWL_OK)
        st = lite_wish_has(c, out->seq, &out->cancel_requested, err);
    if (st == PAWL_OK && !by.begun && out->tries.attempts + out->tries.lost > 0)
        st = last_error(c, to, out, err);
    return st;
}

enum pawl_status lite_stands_row(struct lite *c, struct lite_shelf *to, int64_t seq, unsigned with,
                                 sqlite3_stmt *q, struct call *out, struct pawl_err *err)
{
    bool ready = !lite_null(q, READ_TRACK), line = !lite_null(q, READ_POS);
    bool ended = !lite_null(q, READ_STATUS);
    *out = (struct call){ .seq = seq };
    if (ready + line + ended > 1)
        return err_set(err, PAWL_BROKEN, "call %lld is in two places", (long long)seq);
    enum pawl_status st = lite_asked_read(c, to, q, out, err);
    if (st == PAWL_OK && (ready || line))
        st = stands_pending(c, to, q, out, err);
    else if (st == PAWL_OK && ended)
        stands_ended(to, with, q, out);
    else if (st == PAWL_OK)
        st = stands_held(c, to, out, err);
    /* A redriven call has left its first life's end behind. */
    if (out->tries.redrives > 0)
        out->expires_us = 0;
    if (st == PAWL_OK && to->a->failed)
        st = err_no_memory(err, "a call");
    return st;
}

static enum pawl_status stands_gone(struct lite *c, struct lite_shelf *to, int64_t seq,
                                    struct call *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_GONE_READ, ARGS(INT(seq)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st == PAWL_OK && !row)
        st = err_set(err, PAWL_BROKEN, "call %lld has an id and is nowhere", (long long)seq);
    if (st != PAWL_OK)
        return st;
    *out = (struct call){ .seq = seq,
                          .spec.id = column_copy(to, q, 0),
                          .state = (enum pawl_state)lite_int(q, 1),
                          .created_us = lite_int(q, 2),
                          .finished_us = lite_int(q, 3) };
    return to->a->failed ? err_no_memory(err, "a call")
                         : err_set(err, PAWL_GONE, "call \"%.*s\" has ended and is no longer kept",
                                   BYTES_ARG(out->spec.id));
}

enum pawl_status lite_stands(struct lite *c, struct lite_shelf *to, int64_t seq, unsigned with,
                             struct call *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(
        c, SQL_CALL_READ,
        ARGS(INT(seq), INT((with & WITH_INPUT) != 0), INT((with & WITH_RESULT) != 0)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st != PAWL_OK)
        return st;
    return row ? lite_stands_row(c, to, seq, with, q, out, err) : stands_gone(c, to, seq, out, err);
}

enum pawl_status lite_id_find(struct lite *c, struct bytes id, int64_t *out_seq,
                              unsigned char fingerprint[FINGERPRINT_LEN], struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_ID_FIND, ARGS(TEXT(id)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &row, err);
    if (st != PAWL_OK)
        return st;
    *out_seq = row ? lite_int(q, 0) : 0;
    if (row && fingerprint) {
        struct bytes stored = lite_column(q, 1);
        if (stored.len != FINGERPRINT_LEN)
            return err_set(err, PAWL_BROKEN, "id \"%.*s\" has a fingerprint of %zu bytes",
                           BYTES_ARG(id), stored.len);
        memcpy(fingerprint, stored.data, FINGERPRINT_LEN);
    }
    return PAWL_OK;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static enum pawl_status get_one(struct lite *c, struct lite_shelf *to, struct bytes id,
                                unsigned with, struct call *out, struct pawl_err *err)
{
    int64_t seq;
    enum pawl_status st = lite_id_find(c, id, &seq, NULL, err);
    if (st != PAWL_OK)
        return st;
    if (seq == 0)
        return err_set(err, PAWL_NOT_FOUND, "no call \"%.*s\"", BYTES_ARG(id));
    return lite_stands(c, to, seq, with, out, err);
}

enum pawl_status lite_get(struct store *s, struct arena *a, struct get *g, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    struct lite_shelf to = { .a = a };
    AUTO(lite_undo) struct lite *tx = NULL;
    g->out = arena_zalloc(a, g->n, sizeof *g->out);
    g->found = arena_zalloc(a, g->n, sizeof *g->found);
    if (!g->out || !g->found)
        return err_no_memory(err, "calls");
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    for (size_t i = 0; i < g->n; i++) {
        st = get_one(c, &to, g->ids[i], g->with, &g->out[i], err);
        if (st != PAWL_OK && st != PAWL_NOT_FOUND && st != PAWL_GONE)
            return st;
        g->found[i] = st;
    }
    return PAWL_OK;
}

static enum pawl_status attempts_read(struct lite *c, struct arena *a, int64_t seq,
                                      struct attempts *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    struct lite_shelf to = { .a = a };
    bool row = false;
    struct attempt *v = arena_zalloc(a, ATTEMPTS_SHOWN_MAX, sizeof *v);
    if (!v)
        return err_no_memory(err, "attempts");
    /* Newest first, as many as are shown, filled from the back: oldest first then. */
    size_t at = ATTEMPTS_SHOWN_MAX;
    enum pawl_status st =
        lite_query(c, SQL_ATTEMPT_LIST, ARGS(INT(seq), INT(ATTEMPTS_SHOWN_MAX)), &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row)
        v[--at] = (struct attempt){ .try_no = (int)lite_int(q, 0),
                                    .how = (enum ending)lite_int(q, 1),
                                    .error = column_copy(&to, q, 2),
                                    .node = column_copy(&to, q, 3),
                                    .started_us = lite_int(q, 4),
                                    .finished_us = lite_int(q, 5) };
    if (st == PAWL_OK && a->failed)
        st = err_no_memory(err, "attempts");
    *out = (struct attempts){ v + at, ATTEMPTS_SHOWN_MAX - at };
    return st;
}

enum pawl_status lite_attempts(struct store *s, struct arena *a, struct bytes id,
                               struct attempts *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    struct lite_shelf to = { .a = a };
    struct call call;
    AUTO(lite_undo) struct lite *tx = NULL;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = get_one(c, &to, id, 0, &call, err);
    return st == PAWL_OK ? attempts_read(c, a, call.seq, out, err) : st;
}
