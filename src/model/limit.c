/*
 * limit.c - limits: reading and checking them, and their rates. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/limit.h"

#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "model/words.h"

#define AT(field) offsetof(struct limit, field)
static const struct field limit_fields[] = {
    { "name", FIELD_NAME, AT(name), .dflt = "the path's",
      .about = "if it is given, the name in the path" },
    { "queue", FIELD_NAME, AT(queue), FIELD_NULL, .about = "for calls of this queue" },
    { "type", FIELD_NAME, AT(type), FIELD_NULL, .about = "for calls of this type" },
    { "key_prefix", FIELD_NAME, AT(key_prefix), FIELD_NULL,
      .about = "for calls whose key begins with this" },
    { "max", FIELD_INT, AT(max), FIELD_NULL, .min = 1, .max = LIMIT_MAX,
      .about = "how many of them may run at once, on all nodes together" },
    { "rate", FIELD_INT, AT(rate), FIELD_NULL, .min = 1, .max = LIMIT_RATE_MAX,
      .about = "how many of them may begin in the time `per`" },
    { "per", FIELD_SECONDS, AT(per_us), FIELD_NULL | FIELD_ABOVE_0, .min = 1,
      .max = LIMIT_PER_MAX_US / SEC_US, .dflt = "1", .about = "with rate: the time" },
    { "burst", FIELD_INT, AT(burst), FIELD_NULL, .min = 1, .max = LIMIT_RATE_MAX, .dflt = "rate",
      .about = "with rate: how many may begin at one time, if none began for long" },
};
const struct shape limit_shape = SHAPE("LimitSpec", limit_fields);

static enum pawl_status fault(struct pawl_err *err, const char *field, const char *what)
{
    return err_set(err, PAWL_INVALID, "field \"%s\": %s", field, what);
}

enum pawl_status limit_settle(struct limit *l, struct pawl_err *err)
{
    if (!l->queue.data && !l->type.data && !l->key_prefix.data)
        return fault(err, "queue",
                     "is missing; a limit has at least one of queue, type and key_prefix");
    if (!l->max && !l->rate)
        return fault(err, "max", "is missing; a limit has max, rate or both");
    if (!l->rate && (l->per_us || l->burst))
        return fault(err, l->per_us ? "per" : "burst", "is given without \"rate\"");
    if (!l->rate)
        return PAWL_OK;
    l->per_us = l->per_us ? l->per_us : SEC_US;
    l->burst = l->burst ? l->burst : l->rate;
    if (l->per_us / l->rate > LIMIT_PER_MAX_US / l->burst)
        return fault(err, "burst", "is more than the rate brings in a day");
    return PAWL_OK;
}

enum pawl_status limit_read(struct arena *a, const struct json *object, struct limit *out,
                            struct pawl_err *err)
{
    *out = (struct limit){ 0 };
    if (object->kind != JSON_OBJECT)
        return err_set(err, PAWL_INVALID, "a limit must be a JSON object, it is %.*s",
                       (int)MIN(object->raw.len, 40), object->raw.data);
    enum pawl_status st = fields_read(a, object, &limit_shape, out, NULL, err);
    return st == PAWL_OK ? limit_settle(out, err) : st;
}

static bool same_text(struct bytes a, struct bytes b)
{
    return !a.data == !b.data && bytes_eq(a, b);
}

bool limit_same_calls(const struct limit *a, const struct limit *b)
{
    return same_text(a->queue, b->queue) && same_text(a->type, b->type) &&
           same_text(a->key_prefix, b->key_prefix) && !a->max == !b->max;
}

bool limit_same(const struct limit *a, const struct limit *b)
{
    return limit_same_calls(a, b) && a->max == b->max && a->rate == b->rate &&
           a->per_us == b->per_us && a->burst == b->burst;
}

bool limit_has_key(const struct limit *l, struct bytes key)
{
    return key.data && key.len >= l->key_prefix.len &&
           memcmp(key.data, l->key_prefix.data, l->key_prefix.len) == 0;
}

/* ---- Rates ----------------------------------------------------------------------------------- */

#define US_NS 1000

int64_t limit_interval_ns(const struct limit *l)
{
    CHECK(l->rate > 0 && l->per_us > 0);
    return MAX(l->per_us * US_NS / l->rate, 1);
}

int64_t limit_tokens(const struct limit *l, int64_t used_ns, int64_t now_us, int64_t *out_next_us)
{
    int64_t each_ns = limit_interval_ns(l), now_ns = now_us * US_NS;
    /* A clock that was set back does not stop a limit for longer than its burst takes. */
    int64_t used = MIN(MAX(used_ns, now_ns), now_ns + each_ns * l->burst);
    int64_t n = (now_ns + each_ns * l->burst - used) / each_ns;
    int64_t next_ns = used - each_ns * (l->burst - 1);
    *out_next_us = n > 0 ? 0 : (next_ns + US_NS - 1) / US_NS;
    return n;
}

int64_t limit_use(const struct limit *l, int64_t used_ns, int64_t now_us, int64_t n)
{
    int64_t each_ns = limit_interval_ns(l), now_ns = now_us * US_NS;
    int64_t used = MIN(MAX(used_ns, now_ns), now_ns + each_ns * l->burst);
    return used + each_ns * n;
}
