/*
 * corpus_url.c - the corpus of test/fuzz/url.c, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_url
#include "../fuzz/url.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("url", fuzz_url, 10);
}
