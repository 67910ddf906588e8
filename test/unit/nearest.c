/*
 * nearest.c - "did you mean" finds typing errors and suggests nothing for other words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "check.h"

static const char *near(const char *asked)
{
    struct nearest n = { .asked = asked };
    nearest_offer(&n, "migrate");
    nearest_offer(&n, "doctor");
    nearest_offer(&n, "gc");
    return nearest_name(&n);
}

TEST(slips_are_found)
{
    EQ_STR(near("migrat"), "migrate");
    EQ_STR(near("mirgate"), "migrate");
    EQ_STR(near("docctor"), "doctor");
    EQ_STR(near("dcotr"), "doctor");
    EQ_STR(near("cg"), "gc");
}

TEST(other_words_are_left_alone)
{
    EQ_PTR(near("serve"), NULL);
    EQ_PTR(near("x"), NULL);
    EQ_PTR(near(""), NULL);
    EQ_PTR(near("a-word-much-longer-than-any-command-of-this-program"), NULL);
}
