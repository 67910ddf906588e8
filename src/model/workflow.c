/*
 * workflow.c - names and kinds of steps, and what settles a wait (workflow.h). Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "model/workflow.h"

#include <string.h>

#include "base/ident.h"
#include "base/limits.h"
#include "base/text.h"

const char *step_kind_name(int64_t kind)
{
#define STEP_CASE(name, number, text)                                                              \
    case number:                                                                                   \
        return text;
    switch (kind) {
        STEP_KIND_MAP(STEP_CASE)
    default:
        return NULL;
    }
}

const char *step_status_name(int64_t status)
{
    switch (status) {
        STEP_STATUS_MAP(STEP_CASE)
    default:
        return NULL;
    }
#undef STEP_CASE
}

enum step_kind step_kind_of(struct bytes name)
{
    enum step_kind found = 0;
    for (enum step_kind k = STEP_RUN; k <= STEP_UNDO; k++)
        if (bytes_eq(name, bytes_of(step_kind_name(k))))
            found = k;
    return found;
}

/* ---- Names ----------------------------------------------------------------------------------- */

const char *step_name_fault(struct bytes name)
{
    if (memchr(name.data ? name.data : "", '#', name.len))
        return "has \"#\", which separates the number of its use";
    _Static_assert(STEP_NAME_LEN_MAX == 100, "the sentence below");
    return name.len > STEP_NAME_LEN_MAX ? "is longer than 100 bytes" : name_fault(name);
}

struct bytes step_name(struct arena *a, struct bytes name, int64_t nth)
{
    CHECK(nth >= 1);
    return nth == 1 ? arena_copy(a, name)
                    : bytes_of(arena_printf(a, "%.*s#%lld", BYTES_ARG(name), (long long)nth));
}

struct bytes step_name_plain(struct bytes stored, int64_t *out_nth)
{
    const char *hash = stored.len ? memrchr(stored.data, '#', stored.len) : NULL;
    *out_nth = 1;
    if (!hash)
        return stored;
    *out_nth = 0;
    for (const char *at = hash + 1; at < stored.data + stored.len; at++) {
        bool digit = *at >= '0' && *at <= '9';
        *out_nth = digit ? *out_nth * 10 + (*at - '0') : 0;
        if (!digit || *out_nth == 0 || *out_nth > STEPS_MAX) {
            *out_nth = 0;
            break;
        }
    }
    return (struct bytes){ stored.data, (size_t)(hash - stored.data) };
}

struct bytes step_child_id(struct arena *a, struct bytes parent, int64_t generation,
                           struct bytes name, int64_t nth)
{
    CHECK(generation >= 1 && nth >= 1);
    const char *id =
        generation == 1
            ? arena_printf(a, "%.*s.%.*s#%lld", BYTES_ARG(parent), BYTES_ARG(name), (long long)nth)
            : arena_printf(a, "%.*s~%lld.%.*s#%lld", BYTES_ARG(parent), (long long)generation,
                           BYTES_ARG(name), (long long)nth);
    return id ? ident_derived(a, bytes_of(id)) : BYTES_NONE;
}

/* ---- Waits ----------------------------------------------------------------------------------- */

enum wait_by wait_settled(const struct wait_seen *w, int64_t now_us)
{
    CHECK(w->left >= 0 && w->left <= w->children);
    bool ended = w->children && (w->left == 0 || (w->any && w->left < w->children));
    if (w->signal)
        return WAIT_BY_SIGNAL;
    if (ended)
        return WAIT_BY_CHILDREN;
    return w->until_us && w->until_us <= now_us ? WAIT_BY_TIME : WAIT_BY_NOTHING;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static const char *const statuses[] = {
    NULL, "running", "waiting", "completed", "failed", "compensating", "compensated", "cancelled",
};

const char *workflow_status_name(enum workflow_status status)
{
    return (size_t)status < COUNT_OF(statuses) ? statuses[status] : NULL;
}

enum workflow_status workflow_status_of(struct bytes name)
{
    for (size_t i = 1; i < COUNT_OF(statuses); i++)
        if (bytes_eq(name, bytes_of(statuses[i])))
            return (enum workflow_status)i;
    return WORKFLOW_ANY;
}

const char *workflow_compensation_name(enum run_compensation c)
{
    switch (c) {
    case UNDO_NONE:
        break;
    case UNDO_GOES_ON:
        return "compensating";
    case UNDO_DONE:
        return "compensated";
    case UNDO_FAILED:
        return "failed";
    }
    return NULL;
}
