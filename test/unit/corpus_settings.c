/*
 * corpus_settings.c - the corpus of test/fuzz/settings.c, and every input that once failed, run as
 * a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_settings
#include "../fuzz/settings.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("settings", fuzz_settings, 10);
}
