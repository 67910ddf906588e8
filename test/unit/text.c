/*
 * text.c - UTF-8, names, numbers and base64, at their limits and one beyond.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/world.h"
#include "check.h"

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

TEST(utf8_good)
{
    static const char *const good[] = {
        "",
        "a",
        "plain ascii that is longer than eight bytes",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "1234567\xc3\xa9",
        "12345678\xe2\x82\xac",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        TRUE(utf8_valid(bytes_of(good[i])));
    TRUE(utf8_valid(BYTES("\0\0")));
    TRUE(utf8_valid(BYTES_NONE));
}

TEST(utf8_bad)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2\x61",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xf0\x9f\x98",
        "12345678\xff",
        "1234567\xc3",
        "\xe2\x28\xa1",
        "\xf0\x90\x28\xbc",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FALSE(utf8_valid(bytes_of(bad[i])));
}

TEST(utf8_cuts_between_characters)
{
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };
    for (size_t max = 0; max <= 12; max++)
        EQ_UINT(utf8_cut(bytes_of(text), max).len, want[max]);
    /* A text that is not UTF-8 is cut at the given length. */
    EQ_UINT(utf8_cut(BYTES("\x80\x80\x80\x80\x80\x80"), 5).len, 5);
    EQ_UINT(utf8_cut(BYTES("\x80\x80"), 1).len, 1);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *fault_of(size_t len)
{
    static char name[300];
    memset(name, 'n', sizeof name);
    return name_fault((struct bytes){ name, len });
}

TEST(names)
{
    EQ_STR(fault_of(0), "is empty");
    EQ_STR(fault_of(1), NULL);
    EQ_STR(fault_of(255), NULL);
    EQ_STR(fault_of(256), "is longer than 255 bytes");
    EQ_STR(name_fault(BYTES_NONE), "is missing");
    EQ_STR(name_fault(BYTES(".")), "must not be \".\" or \"..\"");
    EQ_STR(name_fault(BYTES("..")), "must not be \".\" or \"..\"");
    EQ_STR(name_fault(BYTES("...")), NULL);
    EQ_STR(name_fault(BYTES(" a ")), NULL);
    EQ_STR(name_fault(BYTES("caf\xc3\xa9")), NULL);
    EQ_STR(name_fault(BYTES("a\xff")), "is not UTF-8");
}

TEST(names_have_no_control_characters)
{
    for (unsigned c = 0; c <= 0xff; c++) {
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        char one[3] = { (char)c, 0, 0 };
        size_t len = 1;
        if (c >= 0x80) {
            one[0] = (char)(0xc0 | c >> 6);
            one[1] = (char)(0x80 | (c & 0x3f));
            len = 2;
        }
        if (c == '.')
            continue;
        EQ_STR(name_fault((struct bytes){ one, len }), control ? "has a control character" : NULL);
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

TEST(integers)
{
    int64_t n = 7;
    TRUE(int_parse(BYTES("0"), &n) && n == 0);
    TRUE(int_parse(BYTES("-0"), &n) && n == 0);
    TRUE(int_parse(BYTES("42"), &n) && n == 42);
    TRUE(int_parse(BYTES("9223372036854775807"), &n) && n == INT64_MAX);
    TRUE(int_parse(BYTES("-9223372036854775808"), &n) && n == INT64_MIN);
    static const char *const bad[] = { "",
                                       "-",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1.0",
                                       "1e2",
                                       "0x1",
                                       "--1",
                                       "a",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "99999999999999999999999" };
    n = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FALSE(int_parse(bytes_of(bad[i]), &n));
    FALSE(int_parse(BYTES_NONE, &n));
    EQ_INT(n, 7);
}

TEST(reals)
{
    double n = 7;
    TRUE(real_parse(BYTES("0.1"), &n) && n == 0.1);
    TRUE(real_parse(BYTES("-12.5e-3"), &n) && n == -0.0125);
    TRUE(real_parse(BYTES("1e308"), &n) && n == 1e308);
    static const char *const bad[] = { "",      "+1", " 1",    "1 ",  "nan", "inf", "0x10",
                                       "1e999", "1e", "1.2.3", "--1", "1,5", "e5",  "-" };
    n = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FALSE(real_parse(bytes_of(bad[i]), &n));
    TRUE(n == 7);
    char text[1000];
    memset(text, '0', sizeof text);
    memcpy(text, "2.5", 3);
    TRUE(real_parse((struct bytes){ text, sizeof text }, &n) && n == 2.5);
}

TEST(reals_read_back_as_they_were)
{
    char text[32];
    real_text(0.1, text);
    EQ_STR(text, "0.1");
    real_text(2, text);
    EQ_STR(text, "2");
    real_text(DBL_MAX, text);
    for (int i = 0; i < 20000; i++) {
        uint64_t word = world_dice(&world_real);
        double n, back;
        memcpy(&n, &word, sizeof n);
        if (!isfinite(n))
            continue;
        real_text(n, text);
        TRUE(real_parse(bytes_of(text), &back));
        EQ_MEM(&back, &n, sizeof n);
    }
}

TEST(reals_have_a_point_in_every_locale)
{
    static const char *const comma[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                         "da_DK.UTF-8" };
    bool found = false;
    for (size_t i = 0; i < sizeof comma / sizeof comma[0] && !found; i++)
        found = setlocale(LC_ALL, comma[i]) != NULL;
    if (!found)
        skip("no locale with a decimal comma is installed");
    char text[32];
    double n;
    real_text(1.5, text);
    EQ_STR(text, "1.5");
    TRUE(real_parse(BYTES("1.5"), &n) && n == 1.5);
}

/* ---- Base64 ---------------------------------------------------------------------------------- */

TEST(base64_of_the_rfc)
{
    static const char *const pairs[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char out[16];
        size_t n = base64_write(bytes_of(pairs[i][0]), out), len;
        EQ_BYTES(out, n, pairs[i][1], strlen(pairs[i][1]));
        TRUE(base64_read(bytes_of(pairs[i][1]), out, &len));
        EQ_BYTES(out, len, pairs[i][0], strlen(pairs[i][0]));
    }
}

TEST(base64_of_every_byte)
{
    for (size_t len = 0; len < 260; len++) {
        char in[260], text[400], back[300];
        size_t n;
        for (size_t i = 0; i < len; i++)
            in[i] = (char)(i * 151 + len);
        size_t text_len = base64_write((struct bytes){ in, len }, text);
        EQ_UINT(text_len, 4 * ((len + 2) / 3));
        TRUE(base64_read((struct bytes){ text, text_len }, back, &n));
        EQ_BYTES(back, n, in, len);
    }
}

TEST(base64_is_strict)
{
    static const char *const bad[] = { "Z",    "Zg",   "Zg=",    "Zg===",    "Zg= =", "Zg==Zg==",
                                       "====", "Z===", "Zm9v\n", "Zm9v Zm9", "Zm-v",  "Zm_v",
                                       "Zh==", "Zm9=", "=Zm9",   "Zm=v" };
    char out[16];
    size_t n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FALSE(base64_read(bytes_of(bad[i]), out, &n));
}

TEST(shown_in_an_error)
{
    char out[TEXT_QUOTE_LEN], want[64];
    EQ_STR(text_quote(BYTES("*/7 x"), out), "*/7 x");
    EQ_STR(text_quote(BYTES(""), out), "");
    EQ_STR(text_quote(BYTES_NONE, out), "");
    EQ_STR(text_quote(BYTES("a\n\0\x7f"), out), "a???");
    EQ_STR(text_quote(BYTES("Z\xc3\xbcrich"), out), "Z\xc3\xbcrich");
    EQ_STR(text_quote(BYTES("\xc2\x85\xc2\xa0"), out), "??\xc2\xa0");
    EQ_STR(text_quote(BYTES("\xc3\xbc\xff"), out), "???");
    /* 40 bytes fit; of 41 the first 40 are shown, or 39 when the 40th begins a character. */
    snprintf(want, sizeof want, "%040d", 7);
    EQ_STR(text_quote(bytes_of(want), out), want);
    snprintf(want, sizeof want, "%041d", 7);
    EQ_STR(text_quote(bytes_of(want), out), "0000000000000000000000000000000000000000...");
    snprintf(want, sizeof want, "%039d\xc3\xbc", 7);
    EQ_STR(text_quote(bytes_of(want), out), "000000000000000000000000000000000000007...");
}
