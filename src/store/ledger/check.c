/*
 * check.c - what must hold of calls, leases and keys, asked when they are loaded and before they
 * are written.
 *
 * A row that is wrong when it is read was damaged outside of this program: BROKEN, with what is
 * wrong. A row that is wrong when it is about to be written is a bug of this program, and the
 * process ends before it is stored. So that no valid state ends a process, the checks before a
 * write compare two rows only if both are locked or were made in this transaction. Everything else
 * in memory may be out of date, which is found when it is written (see the README).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/limits.h"
#include "store/ledger/cache.h"

/* ---- Messages -------------------------------------------------------------------------------- */

#define WHAT_LEN_MAX 200

static enum pawl_status say(enum led_when when, const char *what, const char *wrong,
                            struct pawl_err *err)
{
    char text[WHAT_LEN_MAX];
    if (!wrong)
        return PAWL_OK;
    snprintf(text, sizeof text, "%s: %s", what, wrong);
    if (when == LED_DECIDED)
        check_failed(__FILE__, __LINE__, text);
    return err_set(err, PAWL_BROKEN, "%s", text);
}

/* Return what is wrong unless the condition holds. */
#define MUST(cond, wrong)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return wrong;                                                                          \
    } while (0)

static bool counts_possible(struct attempt_counts t)
{
    return t.attempts >= 0 && t.lost >= 0 && t.redrives >= 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static const char *pending_wrong(const struct led_stand *s, bool keyed)
{
    MUST(s->state == PAWL_PENDING, "it waits and is not pending");
    MUST(!s->outcome, "it waits and has an outcome");
    MUST(s->lane > 0, "it waits in no lane");
    MUST(keyed || (s->place == AT_READY && !s->pos && !s->key_no), "it has a place and no key");
    MUST(!keyed || (s->pos > 0) == (s->place != AT_DELAYED),
         "it has a place and is not in the line");
    return NULL;
}

static const char *held_wrong(const struct led_call *it)
{
    const struct led_stand *s = &it->now;
    bool keyed = it->spec.key.data;
    MUST(s->state == PAWL_PROCESSING, "a lease holds it and it is not processing");
    MUST(!s->outcome, "a lease holds it and it has an outcome");
    if (!it->lease)
        return NULL; /* more is not known of it */
    MUST(s->lane > 0, "it is held in no lane");
    MUST(keyed ? s->pos > 0 && s->key_no > 0 : !s->pos && !s->key_no,
         "its number in the key is not that of a call that was claimed");
    return NULL;
}

static const char *ended_wrong(const struct led_stand *s)
{
    MUST(pawl_state_ended(s->state), "it has an outcome and has not ended");
    MUST(s->outcome && s->outcome->finished_us > 0, "it has ended at no time");
    MUST(s->place == AT_GONE || s->outcome->keep_until_us > 0, "it has ended and is not kept");
    return NULL;
}

/* What is wrong with the row by itself; NULL: nothing. */
static const char *call_wrong(const struct led_call *it)
{
    const struct led_stand *s = &it->now;
    MUST(it->seq > 0, "its number is not above 0");
    MUST(counts_possible(s->counts), "its attempt counts are below 0");
    MUST(s->key_no >= 0 && s->pos >= 0, "its number or place in the key is below 0");
    MUST(s->expires_us >= 0 && (!s->expires_us || !s->counts.redrives), "its expiry is impossible");
    MUST(s->priority >= PRIORITY_MIN && s->priority <= PRIORITY_MAX, "its priority is impossible");
    switch (s->place) {
    case AT_READY:
    case AT_LINE:
    case AT_DELAYED:
        return pending_wrong(s, it->spec.key.data);
    case AT_HELD:
        return held_wrong(it);
    case AT_ENDED:
    case AT_GONE:
        return ended_wrong(s);
    case AT_NONE:
        break;
    }
    return "its place is unknown";
}

/* Compare the call with the lease that holds it and with the one that it left. */
static const char *holder_wrong(const struct led_call *it)
{
    const struct led_lease *l = it->now.place == AT_HELD ? it->lease : NULL;
    ssize_t at = l ? led_lease_find(l, it->seq) : -1;
    MUST(!l || (at >= 0 && !l->missing && l->state[at] == HELD_OPEN), "its lease does not hold it");
    if (l) {
        const struct held *h = &l->held[at];
        MUST(h->lane == it->now.lane && h->priority == it->now.priority &&
                 h->run_at_us == it->now.run_at_us && h->key_no == it->now.key_no &&
                 memcmp(&h->counts, &it->now.counts, sizeof h->counts) == 0,
             "its lease lists it with other values");
    }
    l = it->now.place != AT_HELD ? it->left : NULL;
    at = l && !l->missing ? led_lease_find(l, it->seq) : -1;
    MUST(at < 0 || l->state[at] != HELD_OPEN, "it left its lease, which still holds it");
    return NULL;
}

enum pawl_status led_call_check(const struct led_call *it, enum led_when when, struct pawl_err *err)
{
    char what[60];
    const char *wrong = call_wrong(it);
    if (!wrong && when == LED_DECIDED)
        wrong = holder_wrong(it);
    if (!wrong && when == LED_DECIDED && it->fresh &&
        (!it->spec.id.data || it->own_lane <= 0 || it->created_us <= 0))
        wrong = "it is new and has no id, lane or time";
    if (!wrong && when == LED_DECIDED && it->now.cancel_requested && !it->was.cancel_requested &&
        it->now.place != AT_HELD)
        wrong = "a cancel is requested and no lease holds it";
    if (!wrong)
        return PAWL_OK;
    snprintf(what, sizeof what, "call %lld", (long long)it->seq);
    return say(when, what, wrong, err);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static const char *held_item_wrong(const struct led_lease *l, size_t i)
{
    const struct held *h = &l->held[i];
    const struct led_link *r = &l->run[i];
    MUST(h->seq > (i ? l->held[i - 1].seq : 0), "its calls are not in the order of their numbers");
    MUST(h->lane > 0 && counts_possible(h->counts),
         "a call in it has no lane, or attempt counts below 0");
    MUST(h->key ? h->key > 0 && h->key_no > 0 && h->pos > 0 : !h->key_no && !h->pos,
         "a call in it has a key and no number, or a number and no key");
    if (r->behind >= 0) {
        const struct held *next = &l->held[r->behind];
        MUST(l->run[r->behind].before == (int)i && next->key == h->key,
             "a run in it is linked wrongly");
        MUST(h->pos < next->pos, "a run in it is not in its order");
    }
    return NULL;
}

static const char *lease_wrong(const struct led_lease *l)
{
    MUST(l->n > 0 && l->held && l->state && l->run, "it names no call");
    MUST(l->claimed_us > 0 && l->until_us >= 0 && l->rev > 0,
         "its times or its rev are impossible");
    MUST(l->node.len > 0 && l->owner.len > 0, "it has no owner");
    MUST(!token_eq(l->token, (struct token){ { 0 } }), "its token is empty");
    for (size_t i = 0; i < l->n; i++) {
        const char *wrong = held_item_wrong(l, i);
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* The states of its calls, as far as they were read, and the calls of a lease that was made in this
 * transaction. A lease that is not written is not compared: others may have ended calls of it. */
static const char *states_wrong(struct ledger *c, const struct led_lease *l)
{
    size_t open = 0, named = 0;
    for (size_t i = 0; i < l->n; i++) {
        int before = l->run[i].before;
        open += l->state[i] == HELD_OPEN;
        named += l->state[i] != HELD_OFF;
        const struct led_call *it = led_call_find(c, l->held[i].seq);
        MUST(!l->dirty || before < 0 || l->state[before] != HELD_OPEN || !it ||
                 it->now.state != PAWL_COMPLETED,
             "a call of a run ended before the one before it");
        MUST(!it || !l->fresh || l->state[i] != HELD_OPEN ||
                 (it->now.place == AT_HELD && it->lease == l),
             "it names a call it does not hold");
    }
    MUST(open == l->left && named == l->named, "its counts are not those of its calls");
    MUST(!l->dirty || l->left > 0, "all of its calls have ended");
    return NULL;
}

enum pawl_status led_lease_check(struct ledger *c, const struct led_lease *l, enum led_when when,
                                 struct pawl_err *err)
{
    if (when == LED_DECIDED && (l->missing || !l->locked))
        return PAWL_OK; /* it is removed, or was read without a lock */
    /* Its list was checked when it was loaded, and does not change after that. */
    const char *wrong = when == LED_LOADED || l->dirty ? lease_wrong(l) : NULL;
    if (!wrong && when == LED_DECIDED)
        wrong = states_wrong(c, l);
    if (!wrong)
        return PAWL_OK;
    char what[60];
    snprintf(what, sizeof what, "a lease of \"%.*s\"", (int)MIN(l->owner.len, 40),
             l->owner.data ? l->owner.data : "");
    return say(when, what, wrong, err);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static const char *key_wrong(const struct led_key *k)
{
    MUST(k->waiting >= 0 && k->later >= 0 && k->held >= 0,
         "its count of waiting or held calls is below 0");
    MUST(k->note_waiting >= 0 && k->note_later >= 0, "its count of calls that joined is below 0");
    MUST(k->n_joined >= 0 && led_line_stored(k) >= 0, "more calls have joined than wait");
    MUST(k->next_no > 0, "its next number is not above 0");
    MUST((k->held > 0) == (k->turn == KEY_HELD), "calls are held and it is not their turn");
    switch (k->turn) {
    case KEY_IDLE:
        return NULL;
    case KEY_OFFERED:
        MUST(k->head > 0 && k->waiting > 0, "it offers a call and has none");
        return NULL;
    case KEY_HELD:
        MUST(k->head > 0, "no call is the first of those held");
        return NULL;
    case KEY_BLOCKED:
        MUST(k->head > 0 && k->head_no > 0 && k->since_us > 0, "no call blocks it");
        return NULL;
    }
    return "its turn is unknown";
}

enum pawl_status led_key_check(const struct led_key *k, enum led_when when, struct pawl_err *err)
{
    const char *wrong = k->got || k->known ? key_wrong(k) : NULL;
    if (!wrong)
        return PAWL_OK;
    char what[80];
    snprintf(what, sizeof what, "key \"%.*s\"", (int)MIN(k->name.len, 60), k->name.data);
    return say(when, what, wrong, err);
}

/* ---- Other rows ------------------------------------------------------------------------------ */

enum pawl_status led_number_check(int64_t number, const char *what, struct pawl_err *err)
{
    if (number > 0)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "database: %s has number %lld, which is not above 0", what,
                   (long long)number);
}

enum pawl_status led_rows_check(const struct led_rows *r, enum sql_name name, size_t max,
                                struct pawl_err *err)
{
    if ((size_t)r->n <= max)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "database: %s gives %d rows, and at most %zu were asked for",
                   sql_name_text[name], r->n, max);
}

enum pawl_status led_ready_check(int64_t track, int64_t rank, int64_t run_at_us,
                                 struct pawl_err *err)
{
    if (track < 2 || track / 2 > LANE_NUMBER_MAX)
        return err_set(err, PAWL_BROKEN, "database: a row of ready has track %lld",
                       (long long)track);
    if (rank < -PRIORITY_MAX || rank > -PRIORITY_MIN)
        return err_set(err, PAWL_BROKEN, "database: a row of ready has rank %lld", (long long)rank);
    if (run_at_us < 0)
        return err_set(err, PAWL_BROKEN, "database: a row of ready has time %lld",
                       (long long)run_at_us);
    return PAWL_OK;
}

enum pawl_status led_id_check(struct bytes id, const struct led_call *it, struct pawl_err *err)
{
    if (bytes_eq(it->spec.id, id))
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "id \"%.*s\": its row names call %lld, which has id \"%.*s\"",
                   (int)MIN(id.len, 60), id.data, (long long)it->seq, (int)MIN(it->spec.id.len, 60),
                   it->spec.id.data ? it->spec.id.data : "");
}

enum pawl_status led_form_check(enum pawl_form form, const char *what, struct pawl_err *err)
{
    if (form == PAWL_NOTHING || form == PAWL_JSON || form == PAWL_BYTES)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "database: %s has form %d, which is unknown", what, (int)form);
}

static const char *object_wrong(const struct led_object *o)
{
    MUST(o->state.version > 0, "its version is not above 0");
    MUST(o->updated_us > 0, "it was updated at no time");
    MUST(o->state.payload.form == PAWL_NOTHING || o->state.payload.form == PAWL_JSON ||
             o->state.payload.form == PAWL_BYTES,
         "its form is unknown");
    return NULL;
}

enum pawl_status led_object_check(const struct led_object *o, enum led_when when,
                                  struct pawl_err *err)
{
    const char *wrong = object_wrong(o);
    if (!wrong)
        return PAWL_OK;
    char what[120];
    snprintf(what, sizeof what, "object \"%.*s\" \"%.*s\"", (int)MIN(o->type.len, 40), o->type.data,
             (int)MIN(o->key.len, 60), o->key.data);
    return say(when, what, wrong, err);
}

enum pawl_status led_node_check(struct bytes node, struct bytes boot, int64_t beats,
                                struct pawl_err *err)
{
    if (node.len && boot.len && beats >= 0)
        return PAWL_OK;
    return err_set(err, PAWL_BROKEN, "database: node \"%.*s\" has no boot, or heartbeats below 0",
                   (int)MIN(node.len, 60), node.data ? node.data : "");
}

enum pawl_status led_node_rows_check(struct bytes node, const struct led_rows *r,
                                     struct pawl_err *err)
{
    if (r->n == 0)
        return PAWL_OK;
    if (r->n > 1)
        return err_set(err, PAWL_BROKEN, "database: node \"%.*s\" has %d rows",
                       (int)MIN(node.len, 60), node.data ? node.data : "", r->n);
    return led_node_check(node, led_get(r, 0, 0), led_get_int(r, 0, 1), err);
}

static const char *leader_wrong(const struct led_leader *l)
{
    MUST(l->epoch >= 0, "its epoch is below 0");
    MUST(l->acquired_us >= 0 && l->until_us >= 0, "its times are impossible");
    MUST(!l->until_us || (l->epoch > 0 && l->acquired_us > 0 && l->node.len && l->boot.len),
         "it has a lease and no leader");
    return NULL;
}

enum pawl_status led_leader_check(struct bytes role, const struct led_leader *l, enum led_when when,
                                  struct pawl_err *err)
{
    const char *wrong = leader_wrong(l);
    if (!wrong)
        return PAWL_OK;
    char what[80];
    snprintf(what, sizeof what, "role \"%.*s\"", (int)MIN(role.len, 60),
             role.data ? role.data : "");
    return say(when, what, wrong, err);
}

/* ---- Everything, before the commit ----------------------------------------------------------- */

void led_check_all(struct ledger *c)
{
    for (const struct led_lease *l = c->tx->first_lease; l; l = l->newer)
        CHECK(led_lease_check(c, l, LED_DECIDED, NULL) == PAWL_OK);
    for (const struct led_key *k = c->tx->first_key; k; k = k->newer) {
        CHECK(led_key_check(k, LED_DECIDED, NULL) == PAWL_OK);
        /* What line.c guarantees: a free key with a line has a head. */
        CHECK(!k->written || k->turn != KEY_IDLE || k->waiting == 0);
    }
}
