/*
 * corpus_cron.c - the corpus of test/fuzz/cron.c, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_cron
#include "../fuzz/cron.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("cron", fuzz_cron, 10);
}
