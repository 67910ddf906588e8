/*
 * net_corpus.c - the fuzzer's corpus, and every input that once failed, run as a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define LLVMFuzzerTestOneInput fuzz_http
#include "../fuzz/http.c"
#include "check.h"

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    static uint8_t data[1 << 20];
    TRUE(f);
    size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    for (int seed = 0; seed < 256; seed += 15) {
        data[0] = (uint8_t)seed;
        fuzz_http(data, n);
    }
}

TEST(corpus)
{
    static const char at[] = PAWL_SOURCE_DIR "/test/fuzz/corpus/http";
    DIR *dir = opendir(at);
    struct dirent *e;
    int n = 0;
    TRUE(dir);
    while ((e = readdir(dir)) != NULL) {
        char path[600];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", at, e->d_name);
        run_file(path);
        n++;
    }
    closedir(dir);
    GT_INT(n, 10);
}
