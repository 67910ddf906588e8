/*
 * load.c - rows become calls: what was submitted, their places, and how they are shown.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "model/needs.h"
#include "store/ledger/flow.h"

/* Columns of call_read. */
enum {
    ASKED_TAGS = 14,
    READ_READY = 15,
    READ_OUTCOME = 23,
    READ_LINE = 35,
    READ_CANCEL_REQUEST = 43,
};

uint64_t led_hash(const void *data, size_t len)
{
    const char *at = data;
    uint64_t h = UINT64_C(14695981039346656037) ^ len;
    for (; len > 0; at += MIN(len, 8), len -= MIN(len, 8)) {
        uint64_t word = 0;
        memcpy(&word, at, MIN(len, 8));
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

void led_sort(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    const char *at = v;
    size_t i = 1;
    while (i < n && compare(at + (i - 1) * size, at + i * size) <= 0)
        i++;
    if (i < n)
        qsort(v, n, size, compare);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

static struct led_id **id_slot(struct ledger *c, struct bytes id)
{
    struct led_id **at = &c->tx->ids[led_hash(id.data, id.len) % LED_BUCKETS];
    while (*at && !bytes_eq((*at)->id, id))
        at = &(*at)->same;
    return at;
}

struct led_id *led_id_new(struct ledger *c, struct bytes id)
{
    struct led_id **at = id_slot(c, id);
    if (*at)
        return *at;
    struct led_id *it = arena_zalloc(&c->scratch, 1, sizeof *it);
    if (!it)
        return NULL;
    it->id = arena_copy(&c->scratch, id);
    if (!it->id.data)
        return NULL;
    *at = it;
    return it;
}

/* Add those ids that are not in memory to the column and, empty, to memory. */
static bool ids_wanting(struct ledger *c, const struct bytes *ids, size_t n, struct led_column *out)
{
    for (size_t i = 0; i < n; i++) {
        if (*id_slot(c, ids[i]))
            continue;
        if (!led_id_new(c, ids[i]))
            return false;
        led_add_bytes(out, ids[i]);
    }
    return true;
}

enum pawl_status led_ids_ask(struct ledger *c, struct led_batch *b, struct led_rows **out,
                             const struct led_asked_ids *q, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column col;
    led_column_init(&col, &c->scratch, LED_TEXTS);
    bool ok = ids_wanting(c, q->fresh, q->n_fresh, &col);
    size_t fresh = col.n;
    ok = ok && ids_wanting(c, q->ids, q->n_ids, &col);
    if (!ok)
        return err_no_memory(err, "ids");
    led_column(&p, &col);
    led_int(&p, q->sure ? (int64_t)fresh : 0);
    if (col.n)
        led_batch_ask(b, SQL_ID_FIND, &p, out);
    return PAWL_OK;
}

size_t led_ids_new(struct ledger *c, const struct bytes *ids, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct led_id *it = *id_slot(c, ids[i]);
        if (!it || it->seq || it->counted)
            continue;
        it->counted = true;
        count++;
    }
    return count;
}

/* A row of id_find without an id is a number for a new call. */
static bool number_keep(struct ledger *c, size_t rows, int64_t number)
{
    struct led_reserve *r = &c->tx->numbers;
    if (!r->v)
        r->v = arena_alloc(&c->scratch, rows * sizeof *r->v);
    if (r->v)
        r->v[r->n++] = number;
    return r->v != NULL;
}

enum pawl_status led_ids_take(struct ledger *c, const struct led_rows *r, struct pawl_err *err)
{
    CHECK(!c->tx->numbers.v);
    for (int i = 0; i < r->n; i++) {
        enum pawl_status st = led_number_check(led_get_int(r, i, 1), "an id", err);
        if (st != PAWL_OK)
            return st;
        if (led_null(r, i, 0)) {
            if (!number_keep(c, (size_t)r->n, led_get_int(r, i, 1)))
                return err_no_memory(err, "numbers");
            continue;
        }
        struct led_id *it = *id_slot(c, led_get(r, i, 0));
        struct bytes print = led_get(r, i, 2);
        if (!it || print.len != FINGERPRINT_LEN)
            return err_set(err, PAWL_BROKEN, "id \"%.*s\" has a fingerprint of %zu bytes",
                           BYTES_ARG(led_get(r, i, 0)), print.len);
        it->seq = led_get_int(r, i, 1);
        memcpy(it->fingerprint, print.data, FINGERPRINT_LEN);
    }
    return PAWL_OK;
}

enum pawl_status led_ids_load(struct ledger *c, const struct bytes *ids, size_t n,
                              struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    led_column_init(&col, &c->scratch, LED_TEXTS);
    if (!ids_wanting(c, ids, n, &col))
        return err_no_memory(err, "ids");
    if (col.n == 0)
        return PAWL_OK;
    led_column(&p, &col);
    led_int(&p, 0);
    enum pawl_status st = led_query(c, SQL_ID_FIND, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_ID_FIND, col.n, err);
    struct led_reserve kept = c->tx->numbers;
    c->tx->numbers = (struct led_reserve){ 0 };
    if (st == PAWL_OK)
        st = led_ids_take(c, r, err);
    c->tx->numbers = kept;
    return st;
}

enum pawl_status led_id_get(struct ledger *c, struct bytes id, struct led_id **out,
                            struct pawl_err *err)
{
    enum pawl_status st = led_ids_load(c, &id, 1, err);
    if (st == PAWL_OK)
        *out = *id_slot(c, id);
    return st;
}

enum pawl_status led_id_claim(struct ledger *c, const struct call_spec *s, struct led_id **out,
                              struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t added = 0;
    *out = *id_slot(c, s->id);
    if (*out)
        return PAWL_OK;
    enum pawl_status st = led_numbers(c, 1, err);
    if (st != PAWL_OK)
        return st;
    int64_t number = c->tx->numbers.v[c->tx->numbers.at];
    led_text(&p, s->id);
    led_int(&p, number);
    led_blob(&p, (struct bytes){ (const char *)s->fingerprint, FINGERPRINT_LEN });
    st = led_run(c, SQL_ID_ADD, &p, &added, err);
    if (st == PAWL_OK && !added) {
        st = led_id_get(c, s->id, out, err);
        if (st == PAWL_OK && !*out) /* it was there when it was to be added */
            return led_again(c, "an id", err);
        return st == PAWL_OK ? led_number_check((*out)->seq, "a known id", err) : st;
    }
    if (st != PAWL_OK)
        return st;
    *out = led_id_new(c, s->id);
    if (!*out)
        return err_no_memory(err, "ids");
    (*out)->claimed = number;
    return PAWL_OK;
}

enum pawl_status led_id_release(struct ledger *c, struct led_id *id, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t gone = 0;
    if (!id->claimed)
        return PAWL_OK;
    led_text(&p, id->id);
    enum pawl_status st = led_run(c, SQL_ID_REMOVE, &p, &gone, err);
    CHECK(st != PAWL_OK || (gone == 1 && !id->seq));
    id->claimed = 0;
    return st;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static struct led_call **call_slot(struct ledger *c, int64_t seq)
{
    struct led_call **at = &c->tx->calls[(uint64_t)seq % LED_BUCKETS];
    while (*at && (*at)->seq != seq)
        at = &(*at)->same;
    return at;
}

struct led_call *led_call_find(struct ledger *c, int64_t seq)
{
    return *call_slot(c, seq);
}

struct led_call *led_call_new(struct ledger *c, int64_t seq)
{
    struct led_call **at = call_slot(c, seq);
    if (*at)
        return *at;
    struct led_call *it = arena_zalloc(&c->scratch, 1, sizeof *it);
    if (!it)
        return NULL;
    it->seq = seq;
    *at = it;
    *c->tx->last_call = it;
    c->tx->last_call = &it->newer;
    return it;
}

static enum pawl_status asked_read(struct ledger *c, const struct led_rows *r, int row,
                                   struct led_call *it, struct pawl_err *err)
{
    struct call_spec *s = &it->spec;
    call_spec_init(s);
    it->payload = false;
    s->id = led_get(r, row, 1);
    it->own_lane = (int)led_get_int(r, row, 2);
    s->method = led_get(r, row, 3);
    s->key = led_get(r, row, 4);
    it->own_priority = (int)led_get_int(r, row, 5);
    it->created_us = led_get_int(r, row, 6);
    it->own_run_at_us = led_get_int(r, row, 7);
    s->caller = led_get(r, row, 10);
    s->client = led_get(r, row, 11);
    s->parent = led_get(r, row, 12);
    s->traceparent = led_get(r, row, 13);
    enum pawl_status st = call_options_read(&c->scratch, led_get(r, row, 9), s, err);
    if (st == PAWL_OK)
        st = call_tags_read(&c->scratch, led_get(r, row, ASKED_TAGS), s, err);
    return st == PAWL_OK && c->scratch.failed ? err_no_memory(err, "a call") : st;
}

/* What every row of `call` has. */
static enum pawl_status asked_check(const struct led_call *it, struct pawl_err *err)
{
    if (it->spec.id.len && it->own_lane > 0 && it->created_us > 0)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "call %lld: its row has no id, lane or time",
                   (long long)it->seq);
}

static struct attempt_counts counts_read(const struct led_rows *r, int row, int at)
{
    return (struct attempt_counts){ .attempts = (int)led_get_int(r, row, at),
                                    .lost = (int)led_get_int(r, row, at + 1),
                                    .redrives = (int)led_get_int(r, row, at + 2) };
}

static void stand_ready(const struct led_rows *r, int row, struct led_stand *to)
{
    int at = READ_READY;
    to->place = AT_READY;
    to->state = PAWL_PENDING;
    to->lane = (int)led_get_int(r, row, at) / 2;
    to->priority = (int)-led_get_int(r, row, at + 1);
    to->run_at_us = led_get_int(r, row, at + 2);
    to->counts = counts_read(r, row, at + 3);
    to->pos = led_get_int(r, row, at + 6);
    to->key_no = led_get_int(r, row, at + 7);
}

static void stand_line(const struct led_rows *r, int row, int at, struct led_stand *to)
{
    int64_t pos = led_get_int(r, row, at);
    to->place = pos < 0 ? AT_DELAYED : AT_LINE;
    to->state = PAWL_PENDING;
    to->pos = MAX(pos, 0);
    to->lane = (int)led_get_int(r, row, at + 1);
    to->priority = (int)led_get_int(r, row, at + 2);
    to->run_at_us = led_get_int(r, row, at + 3);
    to->counts = counts_read(r, row, at + 4);
    to->key_no = led_get_int(r, row, at + 7);
}

static bool stand_ended(struct ledger *c, const struct led_rows *r, int row, struct led_stand *to)
{
    int at = READ_OUTCOME;
    struct led_outcome *o = arena_zalloc(&c->scratch, 1, sizeof *o);
    if (!o)
        return false;
    to->place = AT_ENDED;
    to->state = (enum pawl_state)led_get_int(r, row, at);
    o->error = led_get(r, row, at + 1);
    to->counts = counts_read(r, row, at + 2);
    o->node = led_get(r, row, at + 5);
    o->claimed_us = led_get_int(r, row, at + 6);
    o->started_us = led_get_int(r, row, at + 7);
    o->finished_us = led_get_int(r, row, at + 8);
    o->keep_until_us = led_get_int(r, row, at + 9);
    o->token = led_get(r, row, at + 10);
    to->key_no = led_get_int(r, row, at + 11);
    to->outcome = o;
    return !c->scratch.failed;
}

static enum pawl_status stand_read(struct ledger *c, const struct led_rows *r, int row,
                                   struct led_call *it, struct pawl_err *err)
{
    bool ready = !led_null(r, row, READ_READY), ended = !led_null(r, row, READ_OUTCOME);
    bool line = !led_null(r, row, READ_LINE);
    struct led_stand to = { .place = AT_HELD,
                            .state = PAWL_PROCESSING,
                            .lane = it->own_lane,
                            .priority = it->own_priority,
                            .run_at_us = it->own_run_at_us,
                            .expires_us = led_get_int(r, row, 8),
                            .cancel_requested = !led_null(r, row, READ_CANCEL_REQUEST) };
    if (ready + line + ended > 1)
        return err_set(err, PAWL_BROKEN, "call %lld is in two places", (long long)it->seq);
    if (ready)
        stand_ready(r, row, &to);
    else if (line)
        stand_line(r, row, READ_LINE, &to);
    else if (ended && !stand_ended(c, r, row, &to))
        return err_no_memory(err, "a call");
    if (to.counts.redrives > 0)
        to.expires_us = 0; /* a retried call no longer expires */
    it->lease = NULL;
    it->was = it->now = to;
    return led_call_check(it, LED_LOADED, err);
}

static enum pawl_status call_row(struct ledger *c, const struct led_rows *r, int row,
                                 struct pawl_err *err)
{
    struct led_call *it = led_call_new(c, led_get_int(r, row, 0));
    if (!it)
        return err_no_memory(err, "a call");
    bool moved = it->partial && it->was.place != it->now.place;
    int own_lane = it->own_lane, lane = it->now.lane;
    bool cancel_requested = it->now.cancel_requested;
    enum pawl_status st = asked_read(c, r, row, it, err);
    if (st == PAWL_OK)
        st = asked_check(it, err);
    if (st == PAWL_OK && !moved)
        st = stand_read(c, r, row, it, err);
    if (st == PAWL_OK && moved)
        it->was.expires_us = it->now.expires_us =
            it->now.counts.redrives > 0 ? 0 : led_get_int(r, row, 8);
    if (it->begins) { /* the row does not say so yet */
        it->own_lane = own_lane;
        it->now.lane = lane;
        it->now.expires_us = 0;
        it->now.cancel_requested = cancel_requested;
    }
    it->partial = it->lean = false;
    return st;
}

/* Columns of a call that is taken. The lane, the priority and a cancel request follow, except in
 * the rows of ready_grab: there the call has the lane and the priority of its row of `ready`. */
#define TAKEN_WHOLE 15

/* The value, or `common` if it is NULL: the statement leaves out the most frequent value. */
static int64_t given(const struct led_rows *r, int row, int column, int64_t common)
{
    return led_null(r, row, column) ? common : led_get_int(r, row, column);
}

enum pawl_status led_call_taken(struct ledger *c, const struct led_rows *r, int row, int at,
                                struct led_call *it, struct pawl_err *err)
{
    struct call_spec *s = &it->spec;
    call_spec_init(s);
    bool whole = r->columns > at + TAKEN_WHOLE;
    s->id = led_get(r, row, at);
    s->method = led_get(r, row, at + 1);
    s->key = led_get(r, row, at + 2);
    it->created_us = given(r, row, at + 3, it->now.run_at_us);
    it->own_run_at_us = given(r, row, at + 4, it->now.run_at_us);
    it->now.expires_us = it->now.counts.redrives > 0 ? 0 : led_get_int(r, row, at + 5);
    s->caller = led_get(r, row, at + 7);
    s->client = led_get(r, row, at + 8);
    s->parent = led_get(r, row, at + 9);
    s->traceparent = led_get(r, row, at + 10);
    s->input.bytes = led_get(r, row, at + 14);
    s->input.form = s->input.bytes.data ? (enum pawl_form)given(r, row, at + 12, PAWL_JSON) : 0;
    int64_t len = given(r, row, at + 13, (int64_t)s->input.bytes.len);
    it->input_len = len > 0 ? (size_t)len : 0;
    it->cut = len > 0 && !s->input.bytes.data;
    it->payload = !it->cut;
    it->own_lane = whole ? (int)led_get_int(r, row, at + TAKEN_WHOLE) : it->now.lane;
    it->own_priority = whole ? (int)led_get_int(r, row, at + TAKEN_WHOLE + 1) : it->now.priority;
    it->now.cancel_requested = whole && !led_null(r, row, at + TAKEN_WHOLE + 2);
    it->was = it->now;
    it->partial = it->lean = false;
    enum pawl_status st = call_options_read(&c->scratch, led_get(r, row, at + 6), s, err);
    if (st == PAWL_OK)
        st = call_tags_read(&c->scratch, led_get(r, row, at + 11), s, err);
    if (st == PAWL_OK)
        st = asked_check(it, err);
    if (st == PAWL_OK)
        st = led_form_check(s->input.form, "the input of a call", err);
    if (st == PAWL_OK)
        st = led_call_check(it, LED_LOADED, err);
    return st == PAWL_OK && c->scratch.failed ? err_no_memory(err, "a call") : st;
}

static enum pawl_status gone_load(struct ledger *c, const int64_t *seqs, size_t n,
                                  struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    led_ints(c, &p, seqs, n);
    enum pawl_status st = led_query(c, SQL_GONE_READ, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        struct led_call *it = led_call_new(c, led_get_int(r, i, 0));
        struct led_outcome *o = arena_zalloc(&c->scratch, 1, sizeof *o);
        if (!it || !o)
            return err_no_memory(err, "a call");
        it->spec.id = led_get(r, i, 1);
        it->created_us = led_get_int(r, i, 3);
        o->finished_us = led_get_int(r, i, 4);
        it->was = it->now = (struct led_stand){ .place = AT_GONE,
                                                .state = (enum pawl_state)led_get_int(r, i, 2),
                                                .outcome = o };
        st = led_call_check(it, LED_LOADED, err);
    }
    return st;
}

enum pawl_status led_calls_load(struct ledger *c, const int64_t *seqs, size_t n,
                                struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    int64_t *want = arena_alloc(&c->scratch, (n + 1) * sizeof *want);
    size_t m = 0, left = 0;
    if (!want)
        return err_no_memory(err, "calls");
    for (size_t i = 0; i < n; i++) {
        const struct led_call *it = led_call_find(c, seqs[i]);
        if (!it || it->partial)
            want[m++] = seqs[i];
    }
    if (m == 0)
        return PAWL_OK;
    led_ints(c, &p, want, m);
    enum pawl_status st = led_query(c, SQL_CALL_READ, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_CALL_READ, m, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        st = call_row(c, r, i, err);
    for (size_t i = 0; i < m && st == PAWL_OK; i++)
        if (!led_call_find(c, want[i]))
            want[left++] = want[i];
    return st == PAWL_OK && left ? gone_load(c, want, left, err) : st;
}

/* Is the call where it was read? */
static bool stands(const struct led_rows *r, int row, const struct led_stand *was)
{
    struct led_stand is = { .place = AT_HELD, .run_at_us = was->run_at_us };
    if (!led_null(r, row, READ_OUTCOME))
        is.place = AT_ENDED;
    else if (!led_null(r, row, READ_READY))
        stand_ready(r, row, &is);
    else if (!led_null(r, row, READ_LINE))
        stand_line(r, row, READ_LINE, &is);
    return is.place == was->place && is.run_at_us == was->run_at_us;
}

enum pawl_status led_calls_moved(struct ledger *c, const int64_t *seqs, size_t n, bool *out,
                                 struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out = false;
    led_ints(c, &p, seqs, n);
    enum pawl_status st = led_query(c, SQL_CALL_READ, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        const struct led_call *it = led_call_find(c, led_get_int(r, i, 0));
        *out = *out || (it && !stands(r, i, &it->was));
    }
    return st;
}

enum pawl_status led_call_get(struct ledger *c, int64_t seq, struct led_call **out,
                              struct pawl_err *err)
{
    enum pawl_status st = led_calls_load(c, &seq, 1, err);
    *out = st == PAWL_OK ? led_call_find(c, seq) : NULL;
    return st;
}

static enum pawl_status payload_row(struct ledger *c, const struct led_rows *r, int row,
                                    struct pawl_err *err)
{
    struct led_call *it = led_call_find(c, led_get_int(r, row, 0));
    CHECK(it); /* only calls in memory are asked for */
    it->spec.input.bytes = led_get(r, row, 2);
    it->spec.input.form = it->spec.input.bytes.data ? (enum pawl_form)led_get_int(r, row, 1) : 0;
    it->payload = true;
    enum pawl_status st = led_form_check(it->spec.input.form, "the input of a call", err);
    if (st == PAWL_OK)
        st = led_form_check((enum pawl_form)led_get_int(r, row, 3), "the result of a call", err);
    if (st != PAWL_OK)
        return st;
    if (it->now.outcome && it->now.outcome == it->was.outcome && !led_null(r, row, 3)) {
        struct led_outcome *o = arena_alloc(&c->scratch, sizeof *o);
        if (!o)
            return err_no_memory(err, "a call");
        *o = *it->now.outcome;
        o->result.form = (enum pawl_form)led_get_int(r, row, 3);
        o->result.bytes = led_get(r, row, 4);
        it->was.outcome = it->now.outcome = o;
    }
    return c->scratch.failed ? err_no_memory(err, "a call") : PAWL_OK;
}

enum pawl_status led_payloads_load(struct ledger *c, struct led_call *const *v, size_t n,
                                   struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    struct led_column col;
    led_column_init(&col, &c->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        if (!v[i]->payload && v[i]->now.place != AT_GONE)
            led_add_int(&col, v[i]->seq);
    if (col.n == 0)
        return PAWL_OK;
    led_column(&p, &col);
    enum pawl_status st = led_query(c, SQL_CALL_PAYLOAD, &p, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        st = payload_row(c, r, i, err);
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        if (!v[i]->payload && v[i]->now.place != AT_GONE)
            st = led_again(c, "the row of a call", err);
    return st;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Make room for n more after what is left; NULL without memory. */
static int64_t *reserve_room(struct ledger *c, struct led_reserve *r, size_t n)
{
    size_t have = r->n - r->at;
    int64_t *v = arena_alloc(&c->scratch, (have + n) * sizeof *v);
    if (!v)
        return NULL;
    if (have)
        memcpy(v, r->v + r->at, have * sizeof *v);
    *r = (struct led_reserve){ .v = v, .n = have };
    return v + have;
}

enum pawl_status led_numbers(struct ledger *c, size_t n, struct pawl_err *err)
{
    struct led_reserve *r = &c->tx->numbers;
    size_t have = r->n - r->at;
    if (n <= have)
        return PAWL_OK;
    int64_t *to = reserve_room(c, r, n - have);
    if (!to)
        return err_no_memory(err, "numbers");
    enum pawl_status st = c->db->numbers(c, to, n - have, err);
    for (size_t i = 0; st == PAWL_OK && i < n - have; i++)
        st = led_number_check(to[i], "a new call", err);
    if (st == PAWL_OK)
        r->n = n;
    return st;
}

enum pawl_status led_versions(struct ledger *c, size_t n, struct pawl_err *err)
{
    struct led_reserve *r = &c->tx->versions;
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t have = r->n - r->at;
    if (n <= have)
        return PAWL_OK;
    int64_t *to = reserve_room(c, r, n - have);
    led_int(&p, (int64_t)(n - have));
    if (!to)
        return err_no_memory(err, "versions");
    enum pawl_status st = led_query(c, SQL_VERSION_NEXT, &p, &rows, err);
    if (st == PAWL_OK && (size_t)rows->n != n - have)
        st = err_set(err, PAWL_BROKEN, "database: %d versions instead of %zu", rows->n, n - have);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        to[i] = led_get_int(rows, i, 0);
        st = led_number_check(to[i], "a version", err);
    }
    if (st == PAWL_OK)
        r->n = n;
    return st;
}

enum pawl_status led_number_next(struct ledger *c, int64_t *out, struct pawl_err *err)
{
    enum pawl_status st = led_numbers(c, 1, err);
    if (st == PAWL_OK)
        *out = c->tx->numbers.v[c->tx->numbers.at++];
    return st;
}

int64_t led_line_place(const struct ledger *c, int64_t number)
{
    return c->db->one_writer ? number : LINE_FRESH + number;
}

enum pawl_status led_line_end(struct ledger *c, int64_t *out, struct pawl_err *err)
{
    enum pawl_status st = led_number_next(c, out, err);
    if (st == PAWL_OK)
        *out = led_line_place(c, *out);
    return st;
}

/* ---- Showing --------------------------------------------------------------------------------- */

enum pawl_status led_last_error(struct ledger *c, const struct led_call *call, struct bytes *out,
                                struct pawl_err *err)
{
    struct led_rows *r = NULL;
    struct led_params p = { 0 };
    *out = BYTES_NONE;
    for (const struct led_attempt *t = call->ended_attempts; t; t = t->older)
        if (t->how == END_ERROR || t->how == END_TIMEOUT || t->how == END_REFUSE ||
            t->how == END_LOST) {
            *out = t->error;
            return PAWL_OK;
        }
    led_int(&p, call->seq);
    enum pawl_status st = led_query(c, SQL_ATTEMPT_ERROR, &p, &r, err);
    if (st == PAWL_OK)
        st = led_rows_check(r, SQL_ATTEMPT_ERROR, 1, err);
    if (st == PAWL_OK && r->n)
        *out = led_get(r, 0, 0);
    return st;
}

static void model(const struct led_call *it, struct call *out)
{
    const struct led_stand *s = &it->now;
    *out = (struct call){ .spec = it->spec,
                          .seq = it->seq,
                          .state = s->state,
                          .cancel_requested = s->cancel_requested && s->place == AT_HELD,
                          .counts = s->counts,
                          .key_no = s->key_no,
                          .created_us = it->created_us,
                          .run_at_us = s->run_at_us,
                          .expires_us = s->expires_us };
    out->spec.priority = s->priority;
}

static void show_ended(const struct led_call *it, struct call *out)
{
    const struct led_outcome *o = it->now.outcome;
    out->result = o->result;
    out->error = o->error;
    out->node = o->node;
    out->claimed_us = o->claimed_us;
    out->started_us = o->started_us;
    out->finished_us = o->finished_us;
    out->keep_until_us = o->keep_until_us == INT64_MAX ? 0 : o->keep_until_us;
    out->run_at_us = it->own_run_at_us;
}

/* Its place in the line, from 1. */
static enum pawl_status show_place(struct ledger *c, struct led_call *it, struct call *out,
                                   struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_key *k;
    int64_t newer;
    enum pawl_status st = led_flush(c, err);
    if (st == PAWL_OK)
        st = led_key_look(c, it->spec.key, &k, err);
    if (st != PAWL_OK)
        return st;
    /* The flush may have made it the head. */
    if (it->now.place == AT_READY || !k) {
        out->position = 1;
        return PAWL_OK;
    }
    led_text(&p, it->spec.key);
    led_int(&p, it->now.pos);
    st = led_number(c, SQL_LINE_NEWER, &p, 0, &newer, err);
    bool runs = false; /* has the first call of the key begun? */
    if (st == PAWL_OK && k->held)
        st = led_head_begun(c, k, &runs, err);
    else if (st == PAWL_OK)
        st = led_flow_heads(c, k, &runs, err);
    out->position = k->held - runs + k->waiting + k->note_waiting + k->seen_waiting - newer;
    /* Elsewhere the line and the key may have been read at different times. */
    if (st == PAWL_OK && out->position < 1 && (c->reading || c->db->one_writer))
        st = err_set(err, PAWL_BROKEN, "database: key \"%.*s\": more calls wait than it counts",
                     BYTES_ARG(k->name));
    return st;
}

static enum pawl_status show_pending(struct ledger *c, struct led_call *it, struct call *out,
                                     struct pawl_err *err)
{
    struct call_where where = { 0 };
    enum pawl_status st = led_lane_paused(c, it->now.lane, &where.queue_paused, err);
    if (st == PAWL_OK && out->counts.attempts + out->counts.lost > 0)
        st = led_last_error(c, it, &out->error, err);
    if (st == PAWL_OK && it->spec.key.data && it->now.place != AT_DELAYED) {
        out->in_line = true;
        out->position = 1;
        if (it->now.place == AT_LINE)
            st = show_place(c, it, out, err);
        where.behind = it->now.place == AT_LINE;
    }
    if (st == PAWL_OK && led_flow_waits(c, it))
        return led_flow_show(c, it, where, out, err);
    out->waiting_for = call_waiting_for(out, c->now_us, where);
    if (st == PAWL_OK && out->waiting_for == WAIT_WORKER) {
        st = led_gate_closed(c, it->now.lane, &where.limited, err);
        out->waiting_for = call_waiting_for(out, c->now_us, where);
    }
    return st;
}

static enum pawl_status show_held(struct ledger *c, struct led_call *it, unsigned with,
                                  struct call *out, struct pawl_err *err)
{
    struct led_lease *l = it->lease;
    ssize_t at = led_lease_find(l, it->seq);
    size_t first;
    CHECK(at >= 0); /* it was found by this list */
    int64_t before = led_lease_before(l, (size_t)at, &first);
    const struct led_lane *lane = led_lane_at(c, it->now.lane);
    bool flow = lane && lane->flow;
    bool runs = flow || with & LED_AS_OWNER || led_lease_begun(l, first);
    enum pawl_status st = PAWL_OK;
    out->node = l->owner;
    out->claimed_us = l->claimed_us;
    out->in_line = it->spec.key.data != NULL;
    out->position = out->in_line ? before + !runs : 0;
    if (!(with & LED_AS_OWNER) && (before || !runs) && !flow) {
        out->state = PAWL_PENDING;
        if (out->counts.attempts + out->counts.lost > 0)
            st = led_last_error(c, it, &out->error, err);
    }
    out->waiting_for =
        call_waiting_for(out, c->now_us, (struct call_where){ .behind = before > 0 });
    return st;
}

/* Copy everything into the answer's arena. */
static enum pawl_status own(struct arena *a, struct call *out, struct pawl_err *err)
{
    return call_copy(a, out, out) ? PAWL_OK : err_no_memory(err, "a call");
}

enum pawl_status led_show(struct ledger *c, struct arena *a, struct led_call *it, unsigned with,
                          struct call *out, struct pawl_err *err)
{
    const struct led_lane *lane;
    enum pawl_status st = PAWL_OK;
    if (it->now.place == AT_GONE) {
        *out = (struct call){ .spec.id = it->spec.id,
                              .seq = it->seq,
                              .state = it->now.state,
                              .created_us = it->created_us,
                              .finished_us = it->now.outcome->finished_us };
        return own(a, out, err);
    }
    if (with && !it->payload)
        st = led_payloads_load(c, &it, 1, err);
    if (st == PAWL_OK && it->now.place == AT_HELD && !it->lease)
        st = led_holders_load(c, &it, 1, err);
    if (st == PAWL_OK)
        st = led_lane(c, it->now.lane, &lane, err);
    model(it, out);
    if (st == PAWL_OK && it->now.place == AT_HELD)
        st = show_held(c, it, with, out, err);
    else if (st == PAWL_OK && it->now.place == AT_ENDED)
        show_ended(it, out);
    else if (st == PAWL_OK)
        st = show_pending(c, it, out, err);
    if (st != PAWL_OK)
        return st;
    out->spec.queue = lane->names.queue;
    out->spec.type = lane->names.type;
    out->spec.needs = lane->names.needs;
    out->spec.n_needs = lane->names.n_needs;
    out->flow = lane->flow;
    if (lane->flow)
        out->spec.needs = needs_given(a, lane->names.needs, &out->spec.n_needs);
    if (!(with & WITH_INPUT))
        out->spec.input = (struct payload){ 0 };
    if (!(with & WITH_RESULT))
        out->result = (struct payload){ 0 };
    return own(a, out, err);
}
