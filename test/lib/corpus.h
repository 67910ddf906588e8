/*
 * corpus.h - a fuzzer's corpus, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stddef.h>
#include <stdint.h>

/* Give every file of test/fuzz/corpus/NAME to the target; ends the case when there are fewer than
 * `least`. */
void corpus_run(const char *name, int (*target)(const uint8_t *data, size_t len), int least);

#endif
