/*
 * corpus.h - run a fuzzer's corpus, with every input that once failed, as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stddef.h>
#include <stdint.h>

/* Pass every file of test/fuzz/corpus/NAME to the target. Ends the case when there are fewer than
 * `least` files. */
void corpus_run(const char *name, int (*target)(const uint8_t *data, size_t len), int least);

#endif
