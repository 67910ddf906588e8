/*
 * corpus_zone.c - the corpus of test/fuzz/zone.c, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_zone
#include "../fuzz/zone.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("zone", fuzz_zone, 10);
}
