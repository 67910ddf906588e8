/*
 * all.c - the list of features. A new feature is one line here; its calls are then told to it
 * whichever command or thread ends or removes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/all.h"

#include "feature/cron.h"
#include "feature/limit.h"
#include "feature/workflow.h"

static const struct feature *const all[] = { &feature_cron, &feature_limit, &feature_workflow,
                                             NULL };

const struct feature *const *features_all(size_t *out_n)
{
    *out_n = COUNT_OF(all) - 1;
    return all;
}
