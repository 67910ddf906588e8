/*
 * word.c - random words that can be pronounced and told apart.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/world.h"
#include "events/events.h"

/* Syllables of 80 kinds each: six make about 10^11 words, so that no other process makes the same
 * word for the same id. By its word a lost commit is found again. */
#define SYLLABLES_MIN 6
#define SYLLABLES_MAX 10
static_assert(2 * SYLLABLES_MAX <= EVENT_VALUE_MAX, "a word fits");

size_t event_word(const struct world *w, char out[EVENT_VALUE_MAX + 1])
{
    static const char consonants[] = "bcdfghjklmnprstvz"; /* the first 16 are used */
    static const char vowels[] = "aeiou";
    uint64_t dice = world_dice(w);
    size_t n = SYLLABLES_MIN + dice % (SYLLABLES_MAX - SYLLABLES_MIN + 1), len = 0;
    for (size_t i = 0; i < n; i++) {
        dice = world_dice(w);
        out[len++] = consonants[dice & 15];
        out[len++] = vowels[(dice >> 8) % 5];
    }
    out[len] = 0;
    return len;
}
