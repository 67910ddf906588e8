/*
 * flush.c - writing what changed: one statement for each table and kind of change, in one round
 * trip.
 *
 * If a statement changes fewer rows than expected, another transaction changed them first: the
 * group is repeated. New ids and new keys are sorted, because two groups that insert the same ones
 * in different order would deadlock.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "base/hook.h"
#include "base/limits.h"
#include "model/needs.h"
#include "store/ledger/cache.h"

/* The columns of one statement; kinds: i number, z number or null for 0, t text, b bytes. */
struct sheet {
    enum sql_name name;
    const char *kinds;
    struct led_column v[LED_PARAMS_MAX];
    size_t rows;
};

struct writing {
    struct ledger *c;
    struct sheet ids, calls, tags, ready_out, ready_in, line_out, line_in, expiry_out, expiry_in,
        outcome_out, outcome_in, outcome_keep, attempts, cancel_request_in, cancel_request_out,
        moved, begin, gone, call_out, attempt_out, tag_out, lease_in, lease_new, lease_out, key,
        key_new, key_note, key_note_out, object, object_out, lanes, lanes_back;
};

static void sheet_init(struct sheet *s, enum sql_name name, const char *kinds)
{
    s->name = name;
    s->kinds = kinds;
    s->rows = 0;
}

static struct led_column *row(struct ledger *c, struct sheet *s)
{
    if (s->rows++ == 0)
        for (size_t i = 0; s->kinds[i]; i++)
            led_column_init(&s->v[i], &c->scratch,
                            s->kinds[i] == 't'   ? LED_TEXTS
                            : s->kinds[i] == 'b' ? LED_BLOBS
                                                 : LED_INTS);
    return s->v;
}

#define I(x) ((union feature_value){ .i = (x) })
#define B(x) ((union feature_value){ .b = (x) })
#define ROW(c, s, ...) row_add((c), (s), (const union feature_value[]){ __VA_ARGS__ })

static void row_add(struct ledger *c, struct sheet *s, const union feature_value *v)
{
    struct led_column *to = row(c, s);
    for (size_t i = 0; s->kinds[i]; i++) {
        if (s->kinds[i] == 'i')
            led_add_int(&to[i], v[i].i);
        else if (s->kinds[i] == 'z')
            led_add_int_or_null(&to[i], v[i].i);
        else
            led_add_bytes(&to[i], v[i].b);
    }
}

#define ANY FEATURE_ANY
#define EXACT FEATURE_EXACT
static void put(struct led_batch *b, struct sheet *s, enum feature_count count)
{
    struct led_params p = { 0 };
    if (s->rows == 0)
        return;
    for (size_t i = 0; s->kinds[i]; i++) {
        CHECK(s->v[i].n == s->rows || s->v[i].a->failed);
        led_column(&p, &s->v[i]);
    }
    led_batch_add(b, s->name, &p, count == ANY ? -1 : (int64_t)s->rows);
}

static void sheets_init(struct writing *w)
{
    sheet_init(&w->lanes, SQL_LANE_ADD, "itttt");
    sheet_init(&w->lanes_back, SQL_LANE_USE, "i");
    sheet_init(&w->ids, SQL_ID_ADD, "tib");
    sheet_init(&w->calls, SQL_CALL_ADD, "itittibiiiztttttt");
    sheet_init(&w->tags, SQL_TAG_ADD, "tti");
    sheet_init(&w->tag_out, SQL_TAG_REMOVE, "tti");
    sheet_init(&w->ready_out, SQL_READY_REMOVE, "iiii");
    sheet_init(&w->ready_in, SQL_READY_ADD, "iiiiiiizz");
    sheet_init(&w->line_out, SQL_LINE_REMOVE, "i");
    sheet_init(&w->line_in, SQL_LINE_ADD, "tiiiiiiiii");
    sheet_init(&w->expiry_out, SQL_EXPIRY_REMOVE, "ii");
    sheet_init(&w->expiry_in, SQL_EXPIRY_ADD, "ii");
    sheet_init(&w->outcome_out, SQL_OUTCOME_REMOVE, "i");
    sheet_init(&w->outcome_in, SQL_OUTCOME_ADD, "iiibtiiiibtzzii");
    sheet_init(&w->outcome_keep, SQL_OUTCOME_KEEP, "ii");
    sheet_init(&w->attempts, SQL_ATTEMPT_ADD, "iiiiittbzi");
    sheet_init(&w->attempt_out, SQL_ATTEMPT_REMOVE, "i");
    sheet_init(&w->cancel_request_in, SQL_CANCEL_REQUEST_ADD, "i");
    sheet_init(&w->cancel_request_out, SQL_CANCEL_REQUEST_REMOVE, "i");
    sheet_init(&w->moved, SQL_CALL_MOVE, "iiii");
    sheet_init(&w->begin, SQL_CALL_BEGIN, "ii");
    sheet_init(&w->call_out, SQL_CALL_REMOVE, "i");
    sheet_init(&w->gone, SQL_GONE_ADD, "itiiii");
    sheet_init(&w->lease_new, SQL_LEASE_ADD, "btttiziiibi");
    sheet_init(&w->lease_in, SQL_LEASE_WRITE, "bziib");
    sheet_init(&w->lease_out, SQL_LEASE_REMOVE, "b");
    sheet_init(&w->key, SQL_KEY_WRITE, "tiiiiiiiiii");
    sheet_init(&w->key_new, SQL_KEY_NEW, "tiiiiiiiiii");
    sheet_init(&w->key_note, SQL_KEY_NOTE_ADD, "tii");
    sheet_init(&w->key_note_out, SQL_KEY_NOTE_REMOVE, "i");
    sheet_init(&w->object, SQL_OBJECT_WRITE, "ttibii");
    sheet_init(&w->object_out, SQL_OBJECT_REMOVE, "tt");
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static bool pending(const struct led_stand *s)
{
    return s->place == AT_READY || s->place == AT_LINE || s->place == AT_DELAYED;
}

static bool same_place(const struct led_stand *a, const struct led_stand *b)
{
    return a->place == b->place && a->lane == b->lane && a->priority == b->priority &&
           a->run_at_us == b->run_at_us && a->pos == b->pos && a->key_no == b->key_no &&
           memcmp(&a->counts, &b->counts, sizeof a->counts) == 0;
}

static void write_place_in(struct writing *w, const struct led_call *it)
{
    const struct led_stand *s = &it->now;
    struct attempt_counts t = s->counts;
    if (s->place == AT_READY)
        led_cursor_lower(w->c, s->lane * 2 + counts_retry_alone(t), -s->priority, s->run_at_us,
                         it->seq);
    if (s->place == AT_READY)
        ROW(w->c, &w->ready_in, I(it->seq), I(s->lane * 2 + counts_retry_alone(t)), I(-s->priority),
            I(s->run_at_us), I(t.attempts), I(t.lost), I(t.redrives), I(s->pos), I(s->key_no));
    else
        ROW(w->c, &w->line_in, B(it->spec.key), I(s->place == AT_DELAYED ? -it->seq : s->pos),
            I(it->seq), I(s->lane), I(s->priority), I(s->run_at_us), I(t.attempts), I(t.lost),
            I(t.redrives), I(s->key_no));
}

static void write_place_out(struct writing *w, const struct led_call *it)
{
    const struct led_stand *s = &it->was;
    if (s->place == AT_READY)
        ROW(w->c, &w->ready_out, I(it->seq), I(s->lane * 2 + counts_retry_alone(s->counts)),
            I(-s->priority), I(s->run_at_us));
    else
        ROW(w->c, &w->line_out, I(it->seq));
}

static void write_place(struct writing *w, const struct led_call *it)
{
    const struct led_stand *was = &it->was, *now = &it->now;
    bool same = same_place(was, now) && !it->grabbed;
    if (pending(was) && !same && !it->grabbed)
        write_place_out(w, it);
    if (pending(now) && !same)
        write_place_in(w, it);
    int64_t old = pending(was) ? was->expires_us : 0, new = pending(now) ? now->expires_us : 0;
    if (old && old != new)
        ROW(w->c, &w->expiry_out, I(old), I(it->seq));
    if (new &&old != new)
        ROW(w->c, &w->expiry_in, I(new), I(it->seq));
}

static void write_outcome(struct writing *w, const struct led_call *it)
{
    const struct led_outcome *old = it->was.place == AT_ENDED ? it->was.outcome : NULL;
    const struct led_outcome *o = it->now.place == AT_ENDED ? it->now.outcome : NULL;
    struct attempt_counts t = it->now.counts;
    if (old == o)
        return;
    /* A call of a key that was claimed has its number there. */
    CHECK(!o || !o->claimed_us || !it->spec.key.data || it->now.key_no > 0);
    CHECK(!o || led_form_check(o->result.form, "a result", NULL) == PAWL_OK);
    if (old && o && old->finished_us == o->finished_us && it->was.state == it->now.state) {
        ROW(w->c, &w->outcome_keep, I(it->seq), I(o->keep_until_us));
        return;
    }
    if (old)
        ROW(w->c, &w->outcome_out, I(it->seq));
    if (o)
        ROW(w->c, &w->outcome_in, I(it->seq), I(it->now.state), I(o->result.form),
            B(o->result.bytes), B(o->error), I(t.attempts), I(t.lost), I(t.redrives),
            I(it->now.key_no), B(o->token), B(o->node), I(o->claimed_us), I(o->started_us),
            I(o->finished_us), I(o->keep_until_us));
}

static void write_counts(struct writing *w, struct led_call *it)
{
    struct led_attempt *oldest = NULL;
    int no = 0;
    while (it->ended_attempts) { /* newest first: reverse the list */
        struct led_attempt *t = it->ended_attempts;
        it->ended_attempts = t->older;
        t->older = oldest;
        oldest = t;
    }
    for (struct led_attempt *t = oldest; t; t = t->older) {
        CHECK(t->attempt_no >= 0 && t->finished_us > 0);
        ROW(w->c, &w->attempts, I(it->seq), I(++no), I(t->attempt_no), I(t->how), I(t->state),
            B(t->error), B(t->node), B(t->token), I(t->started_us), I(t->finished_us));
    }
}

static enum pawl_status write_fresh(struct writing *w, const struct led_call *it,
                                    struct pawl_err *err)
{
    struct ledger *c = w->c;
    const struct call_spec *s = &it->spec;
    struct bytes options, tags;
    CHECK(led_form_check(s->input.form, "an input", NULL) == PAWL_OK);
    enum pawl_status st = call_options_write(&c->scratch, s, &options, err);
    if (st == PAWL_OK)
        st = call_tags_write(&c->scratch, s, &tags, err);
    if (st != PAWL_OK)
        return st;
    ROW(c, &w->calls, I(it->seq), B(s->id), I(it->own_lane), B(s->method), B(s->key),
        I(s->input.form), B(s->input.bytes), I(it->own_priority), I(it->created_us),
        I(it->own_run_at_us), I(it->own_expires_us), B(options), B(s->caller), B(s->client),
        B(s->parent), B(s->traceparent), B(tags));
    for (size_t i = 0; i < s->n_tags; i++)
        ROW(c, &w->tags, B(s->tags[i].name), B(s->tags[i].value), I(it->seq));
    return PAWL_OK;
}

static void write_gone(struct writing *w, const struct led_call *it)
{
    const struct call_spec *s = &it->spec;
    if (it->was.place == AT_GONE || it->now.place != AT_GONE)
        return;
    CHECK(it->was.place == AT_ENDED && it->forget_us > 0 && !it->lease);
    ROW(w->c, &w->outcome_out, I(it->seq));
    ROW(w->c, &w->call_out, I(it->seq));
    ROW(w->c, &w->attempt_out, I(it->seq));
    for (size_t i = 0; i < s->n_tags; i++)
        ROW(w->c, &w->tag_out, B(s->tags[i].name), B(s->tags[i].value), I(it->seq));
    ROW(w->c, &w->gone, I(it->seq), B(s->id), I(it->now.state), I(it->created_us),
        I(it->now.outcome->finished_us), I(it->forget_us));
}

static enum pawl_status write_call(struct writing *w, struct led_call *it, struct pawl_err *err)
{
    enum pawl_status st = led_call_check(it, LED_DECIDED, err);
    if (it->fresh)
        st = write_fresh(w, it, err);
    write_place(w, it);
    if (it->now.place == AT_GONE) {
        write_gone(w, it);
    } else {
        write_outcome(w, it);
        write_counts(w, it);
    }
    if (it->now.cancel_requested && !it->was.cancel_requested)
        ROW(w->c, &w->cancel_request_in, I(it->seq));
    if (it->was.cancel_requested && !it->now.cancel_requested)
        ROW(w->c, &w->cancel_request_out, I(it->seq));
    if (it->moved && !it->fresh)
        ROW(w->c, &w->moved, I(it->seq), I(it->own_lane), I(it->own_priority),
            I(it->own_run_at_us));
    if (it->begins && !it->fresh)
        ROW(w->c, &w->begin, I(it->seq), I(it->own_lane));
    it->fresh = it->moved = it->begins = it->grabbed = false;
    it->was = it->now;
    return st;
}

static int compare_ids(const void *a, const void *b)
{
    const struct led_id *const *x = a, *const *y = b;
    return bytes_cmp((*x)->id, (*y)->id);
}

static enum pawl_status write_ids(struct writing *w, struct pawl_err *err)
{
    struct led_id **v;
    size_t n = 0;
    for (size_t i = 0; i < LED_BUCKETS; i++)
        for (struct led_id *it = w->c->tx->ids[i]; it; it = it->same)
            n += it->fresh;
    v = arena_alloc(&w->c->scratch, (n + 1) * sizeof(struct led_id *));
    if (!v)
        return err_no_memory(err, "ids");
    n = 0;
    for (size_t i = 0; i < LED_BUCKETS; i++)
        for (struct led_id *it = w->c->tx->ids[i]; it; it = it->same)
            if (it->fresh)
                v[n++] = it;
            else
                CHECK(!it->claimed || it->seq); /* no row of an id without its call */
    qsort(v, n, sizeof(struct led_id *), compare_ids);
    for (size_t i = 0; i < n; i++) {
        CHECK(v[i]->seq > 0 && v[i]->id.len);
        ROW(w->c, &w->ids, B(v[i]->id), I(v[i]->seq),
            B(((struct bytes){ (char *)v[i]->fingerprint, FINGERPRINT_LEN })));
        v[i]->fresh = false;
    }
    return PAWL_OK;
}

/* ---- Leases, keys, objects, lanes ------------------------------------------------------------ */

static enum pawl_status write_lease(struct writing *w, struct led_lease *l, struct pawl_err *err)
{
    struct ledger *c = w->c;
    struct bytes token = { (const char *)l->token.b, sizeof l->token.b }, packed;
    size_t n = 0;
    if (!l->dirty)
        return PAWL_OK;
    enum pawl_status st = led_lease_check(c, l, LED_DECIDED, err);
    l->dirty = false;
    for (size_t i = 0; i < l->n; i++)
        n += l->state[i] != HELD_OFF;
    if (l->missing || n == 0) {
        l->missing = true;
        if (l->stored)
            ROW(c, &w->lease_out, B(token));
        l->stored = false;
        return PAWL_OK;
    }
    struct held *v = arena_alloc(&c->scratch, n * sizeof *v);
    if (!v)
        return err_no_memory(err, "a lease");
    n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->state[i] != HELD_OFF)
            v[n++] = l->held[i];
    led_places_list(c, v, n);
    if (st == PAWL_OK)
        st = lease_pack(&c->scratch, v, n, l->version, &packed, err);
    if (st != PAWL_OK)
        return st;
    l->rewritten = l->rewritten || (l->stored && n != l->n);
    l->writes += l->stored;
    if (l->stored)
        ROW(c, &w->lease_in, B(token), I(l->until_us), I(v[0].seq), I(v[n - 1].seq), B(packed));
    else
        ROW(c, &w->lease_new, B(token), B(l->node), B(l->boot), B(l->worker), I(l->claimed_us),
            I(l->until_us), I(l->rev), I(v[0].seq), I(v[n - 1].seq), B(packed), I(l->width));
    l->stored = true;
    return PAWL_OK;
}

/* The row of a key that is locked. */
static void write_key_row(struct writing *w, struct led_key *k)
{
    CHECK(k->got && led_key_check(k, LED_DECIDED, NULL) == PAWL_OK);
    ROW(w->c, k->fresh ? &w->key_new : &w->key, B(k->name), I(k->turn), I(k->head), I(k->head_pos),
        I(k->head_no), I(k->next_no), I(k->held), I(k->waiting), I(k->later), I(k->since_us),
        I(k->ended_us));
    k->fresh = k->dirty = false;
    k->known = k->written = true;
}

/* Remove the key notes that were added to the key's numbers, and write the one that this
 * transaction leaves. */
static void write_notes(struct writing *w, struct led_key *k)
{
    /* Only the transaction that has locked the key removes notes, and only others leave them. */
    CHECK(k->got ? !k->note_waiting && !k->note_later && !k->note_wake : !k->n_folded);
    CHECK(k->note_waiting >= 0 && k->note_later >= 0);
    for (size_t i = 0; i < k->n_folded; i++)
        ROW(w->c, &w->key_note_out, I(k->folded[i]));
    k->n_folded = 0;
    if (k->note_waiting || k->note_later)
        ROW(w->c, &w->key_note, B(k->name), I(k->note_waiting), I(k->note_later));
    if (k->note_wake)
        ROW(w->c, &w->key_note, B(k->name), I(0), I(0));
    k->note_wake = false;
    k->seen_waiting += k->note_waiting;
    k->seen_later += k->note_later;
    k->note_waiting = k->note_later = 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct led_key *const *x = a, *const *y = b;
    return bytes_cmp((*x)->name, (*y)->name);
}

/* A key that still needs a head is written later, when it has one. New rows are sorted, because two
 * groups that insert the same keys in different order would deadlock. */
static enum pawl_status write_keys(struct writing *w, struct pawl_err *err)
{
    struct led_key **fresh;
    size_t n = 0;
    for (const struct led_key *k = w->c->tx->first_key; k; k = k->newer)
        n += k->fresh;
    fresh = arena_alloc(&w->c->scratch, (n + 1) * sizeof(struct led_key *));
    if (!fresh)
        return err_no_memory(err, "keys");
    n = 0;
    for (struct led_key *k = w->c->tx->first_key; k; k = k->newer) {
        led_line_written(k);
        if (k->due)
            continue;
        write_notes(w, k);
        if (k->dirty && k->fresh)
            fresh[n++] = k;
        else if (k->dirty)
            write_key_row(w, k);
    }
    qsort(fresh, n, sizeof(struct led_key *), compare_keys);
    for (size_t i = 0; i < n; i++)
        write_key_row(w, fresh[i]);
    return PAWL_OK;
}

static void write_objects(struct writing *w)
{
    for (struct led_object *o = w->c->tx->first_object; o; o = o->newer) {
        CHECK(!o->dirty || led_key_find(w->c, o->key)->got);
        CHECK(!o->dirty || !o->state.version || led_object_check(o, LED_DECIDED, NULL) == PAWL_OK);
        if (o->dirty && o->state.version)
            ROW(w->c, &w->object, B(o->key), B(o->type), I(o->state.payload.form),
                B(o->state.payload.bytes), I(o->state.version), I(o->updated_us));
        else if (o->dirty)
            ROW(w->c, &w->object_out, B(o->key), B(o->type));
        o->dirty = false;
    }
}

static enum pawl_status write_lanes(struct writing *w, struct pawl_err *err)
{
    struct led_lanes *l = &w->c->lanes;
    size_t first = MAX(l->n_stored, l->n_written);
    /* Without the lock two transactions could give one number to two lanes. */
    CHECK((l->n == first && !l->n_back) || l->locked);
    CHECK(l->n <= LANES_MAX);
    for (size_t i = first; i < l->n; i++) {
        const struct led_lane_names *names = &l->v[i].names;
        struct bytes needs = needs_text(&w->c->scratch, names->needs, names->n_needs);
        ROW(w->c, &w->lanes, I(l->v[i].number), B(names->queue), B(names->type),
            B(names->n_needs ? needs : BYTES("")), B(names->gate.len ? names->gate : BYTES("")));
    }
    l->n_written = l->n;
    for (size_t i = 0; i < l->n && l->n_back; i++) {
        if (!l->v[i].back)
            continue;
        ROW(w->c, &w->lanes_back, I(l->v[i].number));
        l->v[i].back = false;
        l->n_back--;
    }
    return w->calls.rows || w->moved.rows || w->begin.rows ? led_lanes_young(w->c, err) : PAWL_OK;
}

/* ---- Rows of features ------------------------------------------------------------------------ */

struct led_feature_rows {
    struct led_feature_rows *next;
    struct sheet s;
    enum feature_count count;
};

enum pawl_status led_row_add(struct ledger *c, enum sql_name name, const char *kinds,
                             const union feature_value *v, enum feature_count count,
                             struct pawl_err *err)
{
    struct led_feature_rows **at = &c->tx->rows;
    CHECK(!c->reading && strlen(kinds) <= LED_PARAMS_MAX);
    while (*at && (*at)->s.name != name)
        at = &(*at)->next;
    if (!*at && c->tx->n_rows == FEATURE_STATEMENTS_MAX) {
        enum pawl_status st = led_rows_flush(c, err);
        if (st != PAWL_OK)
            return st;
        c->tx->n_rows = 0;
        at = &c->tx->rows;
        *at = NULL;
    }
    if (!*at) {
        *at = arena_zalloc(&c->scratch, 1, sizeof **at);
        if (!*at)
            return err_no_memory(err, "rows");
        sheet_init(&(*at)->s, name, kinds);
        (*at)->count = count;
        c->tx->n_rows++;
    }
    CHECK((*at)->count == count && strcmp((*at)->s.kinds, kinds) == 0);
    c->tx->unlocked = c->tx->unlocked || count == FEATURE_NEW;
    row_add(c, &(*at)->s, v);
    return c->scratch.failed ? err_no_memory(err, "rows") : PAWL_OK;
}

static void rows_put(struct ledger *c, struct led_batch *b)
{
    for (struct led_feature_rows *k = c->tx->rows; k; k = k->next) {
        put(b, &k->s, k->count);
        k->s.rows = 0;
    }
}

enum pawl_status led_rows_flush(struct ledger *c, struct pawl_err *err)
{
    bool any = false;
    for (const struct led_feature_rows *k = c->tx->rows; k && !any; k = k->next)
        any = k->s.rows > 0;
    if (!any)
        return PAWL_OK;
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    if (!b)
        return err_no_memory(err, "rows");
    b->n = 0;
    rows_put(c, b);
    return led_batch_run(c, b, err);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void put_all(struct writing *w, struct led_batch *b)
{
    put(b, &w->lanes, EXACT);
    put(b, &w->lanes_back, EXACT);
    put(b, &w->ids, EXACT);
    put(b, &w->calls, EXACT);
    put(b, &w->tags, EXACT);
    put(b, &w->ready_out, EXACT);
    put(b, &w->line_out, EXACT);
    put(b, &w->ready_in, EXACT);
    put(b, &w->line_in, EXACT);
    put(b, &w->expiry_out, EXACT);
    put(b, &w->expiry_in, EXACT);
    put(b, &w->outcome_out, EXACT);
    put(b, &w->outcome_in, EXACT);
    put(b, &w->outcome_keep, EXACT);
    put(b, &w->attempts, EXACT);
    put(b, &w->attempt_out, ANY);
    put(b, &w->cancel_request_out, ANY);
    put(b, &w->moved, EXACT);
    put(b, &w->begin, EXACT);
    put(b, &w->call_out, EXACT);
    put(b, &w->tag_out, EXACT);
    put(b, &w->gone, EXACT);
    put(b, &w->lease_out, EXACT);
    put(b, &w->lease_new, EXACT);
    put(b, &w->lease_in, EXACT);
    put(b, &w->key_new, EXACT);
    put(b, &w->key, EXACT);
    put(b, &w->key_note, EXACT);
    put(b, &w->key_note_out, ANY);
    put(b, &w->object, EXACT);
    put(b, &w->object_out, ANY);
    if (w->cancel_request_in.rows) {
        struct led_params p = { 0 };
        led_column(&p, &w->cancel_request_in.v[0]);
        led_int(&p, w->c->now_us);
        led_batch_add(b, SQL_CANCEL_REQUEST_ADD, &p, -1);
    }
    rows_put(w->c, b);
}

/* Add the statements for everything that changed. It counts as written from now on. */
static enum pawl_status write_all(struct ledger *c, struct led_batch *b, struct pawl_err *err)
{
    struct writing *w = arena_alloc(&c->scratch, sizeof *w);
    if (!w)
        return err_no_memory(err, "what a group writes");
    w->c = c;
    sheets_init(w);
    enum pawl_status st = write_ids(w, err);
    for (struct led_call *it = c->tx->first_call; it && st == PAWL_OK; it = it->newer)
        if (it->was.place != it->now.place || it->fresh || it->moved || it->begins || it->grabbed ||
            it->ended_attempts || it->was.cancel_requested != it->now.cancel_requested ||
            it->was.outcome != it->now.outcome || !same_place(&it->was, &it->now))
            st = write_call(w, it, err);
    for (struct led_lease *l = c->tx->first_lease; l && st == PAWL_OK; l = l->newer)
        st = write_lease(w, l, err);
    /* No id without its call. With one writer, most rows of ids were written before. */
    CHECK(st != PAWL_OK || w->ids.rows == w->calls.rows ||
          (c->db->one_writer && w->ids.rows < w->calls.rows));
    if (st == PAWL_OK)
        st = write_keys(w, err);
    write_objects(w);
    if (st == PAWL_OK)
        st = write_lanes(w, err);
    put_all(w, b);
    return st;
}

/* Write everything except the last batch, which is in *out: it is sent with the caller's queries or
 * the commit. Keys get their heads before they are written. If the stored part of a line has to be
 * written first, its head is chosen after that, in another round. */
static enum pawl_status write_most(struct ledger *c, struct led_batch **out, struct pawl_err *err)
{
    struct led_batch *b = arena_alloc(&c->scratch, sizeof *b);
    enum pawl_status st = b ? PAWL_OK : err_no_memory(err, "what a group writes");
    *out = b;
    if (b)
        b->n = 0;
    if (st == PAWL_OK && c->tx->wakes && !c->tx->hold)
        st = led_keys_wake(c, err);
    while (st == PAWL_OK) {
        st = led_keys_settle(c, false, err);
        if (st == PAWL_OK)
            st = write_all(c, b, err);
        if (st != PAWL_OK || !c->tx->due || c->tx->hold)
            break;
        st = led_batch_run(c, b, err);
        b->n = 0;
        if (st == PAWL_OK)
            st = led_keys_settle(c, true, err);
    }
    if (c->tx->news || c->tx->fresh)
        c->tx->ahead.asked = false; /* what was read for claims at the beginning is out of date */
    c->tx->news = c->tx->fresh = false;
    c->tx->writes++;
    return st;
}

enum pawl_status led_flush_ask(struct ledger *c, led_ask_fn *ask, struct pawl_err *err)
{
    struct led_batch *b = NULL;
    CHECK(!ask || !c->reading);
    if (c->reading)
        return PAWL_OK;
    enum pawl_status st = write_most(c, &b, err);
    if (st == PAWL_OK && ask)
        ask(c, b);
    return st == PAWL_OK ? led_batch_run(c, b, err) : st;
}

enum pawl_status led_flush(struct ledger *c, struct pawl_err *err)
{
    return led_flush_ask(c, NULL, err);
}

/* Give back unused numbers. They are the highest that were drawn, so they can be drawn again. */
static void numbers_back(struct ledger *c)
{
    struct led_reserve *r = &c->tx->numbers;
    if (c->db->numbers_back && r->n > r->at)
        c->db->numbers_back(c, r->n - r->at);
    r->n = r->at;
}

enum pawl_status led_flush_commit(struct ledger *taken, led_ask_fn *ask, bool sure,
                                  struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = taken;
    struct led_batch *b = NULL;
    bool drops = false;
    for (const struct led_key *k = tx->tx->first_key; k; k = k->newer)
        drops = drops || k->drop;
    enum pawl_status st = write_most(tx, &b, err);
    if (st == PAWL_OK)
        led_check_all(tx);
    if (st == PAWL_OK && ask)
        ask(tx, b);
    if (st == PAWL_OK && (!sure || drops || hook_pausing())) {
        st = led_batch_run(tx, b, err);
        if (st == PAWL_OK)
            st = led_keys_drop(tx, err);
        b = NULL;
    }
    if (st != PAWL_OK)
        return st;
    if (tx->scratch.failed)
        return err_no_memory(err, "what a group writes");
    numbers_back(tx);
    CRASH_POINT("ledger.before_commit");
    PAUSE_POINT("ledger.before_commit");
    st = led_commit(TAKE(tx), b, err);
    CRASH_POINT("ledger.after_commit");
    return st;
}
