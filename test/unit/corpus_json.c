/*
 * corpus_json.c - the corpus of test/fuzz/json.c, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_json
#include "../fuzz/json.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("json", fuzz_json, 10);
}
