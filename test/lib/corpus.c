/*
 * corpus.c - see corpus.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "corpus.h"

#include <dirent.h>
#include <stdio.h>

#include "check.h"

void corpus_run(const char *name, int (*target)(const uint8_t *data, size_t len), int least)
{
    static uint8_t data[1 << 20];
    char at[600], path[900];
    int n = 0;
    snprintf(at, sizeof at, "%s/test/fuzz/corpus/%s", PAWL_SOURCE_DIR, name);
    DIR *dir = opendir(at);
    TRUE(dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", at, e->d_name);
        printf("%s\n", path); /* the last line names the input that failed */
        fflush(stdout);
        FILE *f = fopen(path, "rb");
        TRUE(f != NULL);
        size_t len = fread(data, 1, sizeof data, f);
        fclose(f);
        EQ_INT(target(data, len), 0);
        n++;
    }
    closedir(dir);
    GE_INT(n, least);
}
