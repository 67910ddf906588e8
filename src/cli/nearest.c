/*
 * nearest.c - "did you mean": find the name with the smallest edit distance.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cli/cli.h"

#define WORD_LEN_MAX 40

/* Letters replaced, missing, added, or two neighbours swapped. Longer words count as very far. */
static int distance(const char *a, const char *b)
{
    int before[WORD_LEN_MAX + 1], above[WORD_LEN_MAX + 1], row[WORD_LEN_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > WORD_LEN_MAX || m > WORD_LEN_MAX)
        return WORD_LEN_MAX;
    memset(before, 0, sizeof(before));
    for (int j = 0; j <= m; j++)
        above[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, before[j - 2] + 1);
            row[j] = best;
        }
        memcpy(before, above, sizeof(before));
        memcpy(above, row, sizeof(above));
    }
    return above[m];
}

void nearest_offer(struct nearest *n, const char *name)
{
    int d = distance(n->asked, name);
    if (n->best && d >= n->distance)
        return;
    n->best = name;
    n->distance = d;
}

/* At most half of a short word may differ: "b" must not suggest "db". */
const char *nearest_name(const struct nearest *n)
{
    int near = MIN(2, (int)strlen(n->asked) / 2);
    return n->best && n->distance <= near ? n->best : NULL;
}
