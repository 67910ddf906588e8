/*
 * cursor.c - a cursor is read back unchanged, and a damaged one is refused instead of skipping
 * calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/world.h"
#include "model/cursor.h"
#include "check.h"

static const char hex[] = "0123456789abcdef";

TEST(reads_back)
{
    static const int64_t known[] = { 0, 1, 255, 1000000, INT64_MAX };
    for (int i = 0; i < 10000; i++) {
        int64_t seq = i < 5 ? known[i] : (int64_t)(world_dice(&world_real) >> (1 + i % 60)), back;
        char text[CURSOR_TEXT_MAX];
        cursor_write(seq, text);
        TRUE(strlen(text) < CURSOR_TEXT_MAX);
        TRUE(cursor_read(bytes_of(text), &back));
        EQ_INT(back, seq);
    }
}

TEST(any_one_digit_changed_is_refused)
{
    for (int round = 0; round < 50; round++) {
        char text[CURSOR_TEXT_MAX];
        int64_t back = 7;
        cursor_write((int64_t)(world_dice(&world_real) >> 20), text);
        size_t len = strlen(text);
        for (size_t i = 0; i < len; i++) {
            char was = text[i];
            for (int d = 0; d < 16; d++) {
                text[i] = hex[d];
                EQ_INT(cursor_read(bytes_of(text), &back), hex[d] == was);
            }
            text[i] = was;
        }
        for (size_t i = 0; i + 1 < len; i++) {
            char a = text[i], b = text[i + 1];
            text[i] = b;
            text[i + 1] = a;
            EQ_INT(cursor_read(bytes_of(text), &back), a == b);
            text[i] = a;
            text[i + 1] = b;
        }
        for (size_t cut = 0; cut < len; cut++)
            FALSE(cursor_read((struct bytes){ text, cut }, &back));
        text[len] = '0';
        FALSE(cursor_read((struct bytes){ text, len + 1 }, &back));
    }
}

TEST(what_is_no_cursor)
{
    int64_t back = 7;
    char text[CURSOR_TEXT_MAX];
    FALSE(cursor_read(BYTES_NONE, &back));
    FALSE(cursor_read(BYTES(""), &back));
    FALSE(cursor_read(BYTES("5"), &back));
    FALSE(cursor_read(BYTES("                  "), &back));
    cursor_write(INT64_C(0xabcdef), text);
    for (char *c = text; *c; c++)
        if (*c >= 'a')
            *c = (char)(*c - 'a' + 'A');
    FALSE(cursor_read(bytes_of(text), &back));
    cursor_write(-1, text); /* a seq is never below 0 */
    FALSE(cursor_read(bytes_of(text), &back));
    EQ_INT(back, 7);
}
