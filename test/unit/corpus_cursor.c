/*
 * corpus_cursor.c - the corpus of test/fuzz/cursor.c, and every input that once failed, run as a
 * test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define LLVMFuzzerTestOneInput fuzz_cursor
#include "../fuzz/cursor.c"

#include "check.h"
#include "corpus.h"

TEST(corpus)
{
    corpus_run("cursor", fuzz_cursor, 10);
}
