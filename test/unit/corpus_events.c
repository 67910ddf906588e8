/*
 * corpus_events.c - the corpus of test/fuzz/events.c, and every input that once failed, run as a
 * test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_events
#include "../fuzz/events.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("events", fuzz_events, 10);
}
