/*
 * schedule.c - a schedule read from JSON, checked, and written again (schedule.h). Pure.
 *
 * One table reads it for every way in. What must stay true: what schedule_write() wrote reads as
 * the same schedule, in this release and in later ones, because it is what the database keeps.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "base/zone.h"
#include "model/spec_json.h"
#include "model/words.h"

/* Room for the longest input in base64, `at`, and names that become escapes. */
#define SPEC_LEN_MAX (4 << 20)
#define CATCH_UP_FOR_US (3600 * SEC_US)

struct schedule_in {
    struct schedule s;
    struct times at;
    struct bytes catch_up, overlap;
    const struct json *call;
};

#define AT(field) offsetof(struct schedule_in, field)
enum { F_NAME, F_CRON, F_EVERY, F_AT, F_CALL = 5, F_PAUSED = 12 };

static const struct field schedule_fields[] = {
    [F_NAME] = { "name", FIELD_NAME, AT(s.name), .dflt = "the path's",
                 .about = "if it is given, the name in the path" },
    [F_CRON] = { "cron", FIELD_TEXT, AT(s.cron), FIELD_NULL, .unit = "five or six fields",
                 .about = "minute, hour, day, month, weekday, with the second before them if there "
                          "are six; or @hourly, @daily, @weekly, @monthly, @yearly" },
    [F_EVERY] = { "every", FIELD_SECONDS, AT(s.rule.every_us), FIELD_NULL,
                  .min = SCHEDULE_EVERY_MIN_US / SEC_US,
                  .about = "instead of cron: each time this long after the one before, counted "
                           "from starts_at, else from 1970" },
    [F_AT] = { "at", FIELD_TIMES, AT(at), FIELD_NULL, .max = SCHEDULE_TIMES_MAX,
               .about = "instead of cron: these times; at least one must be to come" },
    { "zone", FIELD_TEXT, AT(s.zone), .dflt = "\"UTC\"", .unit = "an IANA name",
      .about = "the time zone of the expression, such as Europe/Berlin" },
    [F_CALL] = { "call", FIELD_OBJECT, AT(call), FIELD_MUST, .shape = &tick_spec_shape,
                 .about = "the call to submit, without id, run_at and expires_at: each tick has "
                          "its own" },
    { "catch_up", FIELD_WORD, AT(catch_up), .words = CATCH_UP_WORDS, .dflt = "\"last\"",
      .about = "ticks that were missed: submit the newest, none, or the newest 100 in order" },
    { "catch_up_for", FIELD_SECONDS, AT(s.catch_up_for_us), .dflt = "3600",
      .about = "with catch_up last: how late that tick may be" },
    { "overlap", FIELD_WORD, AT(overlap), .words = OVERLAP_WORDS, .dflt = "\"allow\"",
      .about = "a tick whose predecessor has not ended: submit it, skip it, let it wait for the "
               "end, or cancel the predecessor and wait" },
    { "jitter", FIELD_SECONDS, AT(s.jitter_us), .max = SCHEDULE_JITTER_MAX_US / SEC_US, .dflt = "0",
      .about = "run each call up to this much later, by a hash of its id" },
    { "starts_at", FIELD_TIME, AT(s.rule.starts_us), FIELD_NULL | FIELD_EPOCH, .dflt = "null",
      .about = "no tick before this time" },
    { "ends_at", FIELD_TIME, AT(s.rule.ends_us), FIELD_NULL, .dflt = "null",
      .about = "no tick at this time or later" },
    [F_PAUSED] = { "paused", FIELD_BOOL, AT(s.paused), .dflt = "as it is; false for a new one",
                   .about = "make no ticks; those that come meanwhile are treated as missed" },
};
const struct shape schedule_shape = SHAPE("ScheduleSpec", schedule_fields);

void schedule_init(struct schedule *s)
{
    *s = (struct schedule){ .zone = BYTES("UTC"), .catch_up_for_us = CATCH_UP_FOR_US };
    call_spec_init(&s->call);
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Put `call.` before the name of the field in the sentence of a call's reader: `field "type": is
 * missing`, or `on_dead "x" is unknown; ...`. */
static enum pawl_status inside_call(enum pawl_status st, struct pawl_err *err)
{
    static const char begin[] = "field \"";
    struct pawl_err was = *err;
    if (st != PAWL_INVALID && st != PAWL_TOO_LARGE)
        return st;
    if (strncmp(was.text, begin, sizeof begin - 1) == 0)
        return err_set(err, st, "field \"call.%s", was.text + sizeof begin - 1);
    return err_set(err, st, "call.%s", was.text);
}

static int compare_tags(const void *a, const void *b)
{
    return bytes_cmp(((const struct tag *)a)->name, ((const struct tag *)b)->name);
}

/* The order of tags and needs, and a need that is repeated, say nothing: one form of each is kept,
 * or a file in another order would be a change. */
static enum pawl_status settle_lists(struct arena *a, const struct call_spec *settled,
                                     struct call_spec *call, struct pawl_err *err)
{
    call->needs = settled->needs;
    call->n_needs = settled->n_needs;
    if (!call->n_tags)
        return PAWL_OK;
    struct tag *tags = arena_alloc(a, call->n_tags * sizeof *tags);
    if (!tags)
        return err_no_memory(err, "a schedule");
    memcpy(tags, call->tags, call->n_tags * sizeof *tags);
    qsort(tags, call->n_tags, sizeof *tags, compare_tags);
    call->tags = tags;
    return PAWL_OK;
}

/* The rules of calls, on a copy: the id and the times come with each tick. */
static enum pawl_status check_call(struct arena *a, struct call_spec *call,
                                   const struct schedule_limits *l, struct pawl_err *err)
{
    struct call_spec s = *call;
    size_t max = l->input_len_max ? l->input_len_max : INPUT_LEN_MAX;
    if (s.input.bytes.len > max)
        return err_set(err, PAWL_TOO_LARGE, "field \"input\": is %zu bytes, limit %zu",
                       s.input.bytes.len, max);
    s.id = BYTES("tick");
    enum pawl_status st = call_spec_settle(a, NULL, &s, err);
    return st == PAWL_OK ? settle_lists(a, &s, call, err) : st;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static enum pawl_status fault(struct pawl_err *err, const char *field, const char *what)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": %s", field, what);
}

/* Exactly one of the three, which is then the kind of the rule. */
static enum pawl_status settle_kind(struct schedule *s, struct pawl_err *err)
{
    const struct {
        const char *name;
        bool given;
        enum schedule_kind kind;
    } rules[] = { { "cron", s->cron.data, SCHEDULE_CRON },
                  { "every", s->rule.every_us, SCHEDULE_EVERY },
                  { "at", s->rule.n_at, SCHEDULE_AT } };
    const char *first = NULL;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (rules[i].given && first)
            return err_set(err, PAWL_INVALID, "field \"%s\": is given together with \"%s\"",
                           rules[i].name, first);
        if (!rules[i].given)
            continue;
        first = rules[i].name;
        s->rule.kind = rules[i].kind;
    }
    return first ? PAWL_OK
                 : fault(err, "cron", "is missing; a schedule has one of cron, every and at");
}

static enum pawl_status check_rule(struct schedule *s, struct pawl_err *err)
{
    const char *bad = s->name.data ? name_fault(s->name) : NULL;
    if (bad)
        return fault(err, "name", bad);
    bad = zone_name_fault(s->zone);
    if (bad)
        return fault(err, "zone", bad);
    enum pawl_status st = settle_kind(s, err);
    if (st == PAWL_OK && s->cron.data)
        st = cron_parse(s->cron, &s->rule.cron, err);
    return st;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Read all but the call, without checks across fields. */
static enum pawl_status read_rule(struct arena *a, const struct json *object,
                                  const struct shape *shape, struct schedule_in *in,
                                  struct pawl_err *err)
{
    uint64_t given = 0;
    schedule_init(&in->s);
    if (object->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "a schedule must be a JSON object, it is %.*s",
                       (int)MIN(object->raw.len, 40), object->raw.data);
    enum pawl_status st = fields_read(a, object, shape, in, &given, err);
    if (st != PAWL_OK)
        return st;
    in->s.paused_given = given >> F_PAUSED & 1;
    in->s.rule.at_us = in->at.v;
    in->s.rule.n_at = schedule_sort(in->at.v, in->at.n);
    if (in->catch_up.data)
        in->s.catch_up = (enum catch_up)word_at(CATCH_UP_WORDS, in->catch_up);
    if (in->overlap.data)
        in->s.overlap = (enum overlap)word_at(OVERLAP_WORDS, in->overlap);
    return PAWL_OK;
}

enum pawl_status schedule_read(struct arena *a, const struct json *object,
                               const struct schedule_limits *l, struct schedule *out,
                               struct pawl_err *err)
{
    struct schedule_in in = { 0 };
    enum pawl_status st = read_rule(a, object, &schedule_shape, &in, err);
    if (st == PAWL_OK)
        st = check_rule(&in.s, err);
    if (st != PAWL_OK)
        return st;
    st = tick_read_json(a, in.call, l->call_timeout_us, &in.s.call, err);
    if (st == PAWL_OK)
        st = check_call(a, &in.s.call, l, err);
    *out = in.s;
    return inside_call(st, err);
}

/* Without `call`, whose members stand beside the others. */
static const struct shape flat_rule_shape = { .name = "FlatSchedule",
                                              .v = schedule_fields,
                                              .n = COUNT_OF(schedule_fields),
                                              .without = UINT64_C(1) << F_CALL };

/* Does this member belong to the schedule itself? Unknown ones go to the call. */
static bool is_rule_member(struct arena *a, const struct json *v)
{
    struct bytes name = json_name(a, v);
    for (size_t i = 0; i < flat_rule_shape.n; i++)
        if (shape_has(&flat_rule_shape, i) && bytes_eq(name, bytes_of(schedule_fields[i].name)))
            return true;
    return false;
}

/* Share out the members of a flat object. */
static bool split(struct arena *a, const struct json *object, struct json *rule, struct json *call)
{
    struct json **rule_end = &rule->first, **call_end = &call->first;
    *rule = *call = (struct json){ .kind = JSON_OBJECT, .raw = object->raw };
    for (const struct json *v = object->first; v; v = v->next) {
        struct json *copy = arena_alloc(a, sizeof *copy);
        if (!copy)
            return false;
        *copy = *v;
        copy->next = NULL;
        bool mine = is_rule_member(a, v);
        struct json ***end = mine ? &rule_end : &call_end;
        (mine ? rule : call)->count++;
        **end = copy;
        *end = &copy->next;
    }
    return !a->failed;
}

enum pawl_status schedule_read_flat(struct arena *a, const struct json *object,
                                    const struct schedule_limits *l, struct schedule *out,
                                    struct pawl_err *err)
{
    struct schedule_in in = { 0 };
    struct json rule, call;
    if (!split(a, object, &rule, &call))
        return err_no_memory(err, "a schedule");
    enum pawl_status st = read_rule(a, &rule, &flat_rule_shape, &in, err);
    if (st == PAWL_OK)
        st = check_rule(&in.s, err);
    if (st == PAWL_OK)
        st = tick_read_json(a, &call, l->call_timeout_us, &in.s.call, err);
    if (st == PAWL_OK)
        st = check_call(a, &in.s.call, l, err);
    *out = in.s;
    return st;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_time(struct buf *b, const char *name, int64_t us)
{
    char text[TIME_TEXT_LEN + 1];
    if (!us)
        return;
    time_text(us, text);
    json_add_name(b, name);
    json_add_string(b, bytes_of(text));
}

static void add_seconds(struct buf *b, const char *name, int64_t us)
{
    json_add_name(b, name);
    json_add_seconds(b, us);
}

static void add_at(struct buf *b, const struct schedule *s)
{
    char text[TIME_TEXT_LEN + 1];
    json_add_name(b, "at");
    buf_add_char(b, '[');
    for (size_t i = 0; i < s->rule.n_at; i++) {
        time_text(s->rule.at_us[i], text);
        json_add_comma(b);
        json_add_string(b, bytes_of(text));
    }
    buf_add_char(b, ']');
}

static void members_add(struct buf *b, const struct schedule *s)
{
    switch (s->rule.kind) {
    case SCHEDULE_CRON:
        json_add_name(b, "cron");
        json_add_string(b, s->cron);
        break;
    case SCHEDULE_EVERY:
        add_seconds(b, "every", s->rule.every_us);
        break;
    case SCHEDULE_AT:
        add_at(b, s);
        break;
    }
    json_add_name(b, "zone");
    json_add_string(b, s->zone);
    json_add_name(b, "call");
    tick_write_json(b, &s->call, 0);
    json_add_name(b, "catch_up");
    json_add_string(b, word_of(CATCH_UP_WORDS, (int)s->catch_up));
    add_seconds(b, "catch_up_for", s->catch_up_for_us);
    json_add_name(b, "overlap");
    json_add_string(b, word_of(OVERLAP_WORDS, (int)s->overlap));
    add_seconds(b, "jitter", s->jitter_us);
    add_time(b, "starts_at", s->rule.starts_us);
    add_time(b, "ends_at", s->rule.ends_us);
}

enum pawl_status schedule_write(struct arena *a, const struct schedule *s, struct bytes *out,
                                struct pawl_err *err)
{
    struct buf b;
    buf_init(&b, SPEC_LEN_MAX);
    buf_add_char(&b, '{');
    members_add(&b, s);
    buf_add_char(&b, '}');
    *out = buf_ok(&b) ? arena_copy(a, buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return out->data ? PAWL_OK : err_no_memory(err, "a schedule");
}

enum pawl_status schedule_stored(struct arena *a, struct bytes name, struct bytes text,
                                 struct schedule *out, struct pawl_err *err)
{
    struct schedule_in in = { 0 };
    struct pawl_err why = { 0 };
    struct json *v;
    enum pawl_status st = json_parse(a, text, &v, &why);
    if (st == PAWL_OK)
        st = read_rule(a, v, &schedule_shape, &in, &why);
    if (st == PAWL_OK)
        st = check_rule(&in.s, &why);
    if (st == PAWL_OK)
        st = tick_read_json(a, in.call, 0, &in.s.call, &why);
    if (st == PAWL_NO_MEMORY)
        return err_no_memory(err, "a schedule");
    if (st != PAWL_OK)
        return err_set(err, PAWL_BROKEN, "schedule \"%.*s\": its stored text cannot be read: %s",
                       (int)MIN(name.len, 100), name.data, why.text);
    *out = in.s;
    out->name = name;
    return PAWL_OK;
}
