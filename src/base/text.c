/*
 * text.c - UTF-8, names, numbers and base64. Pure; times and durations are in time.c.
 *
 * Numbers are read and written in the C locale, whatever locale the host has set: a stored 0.1 must
 * not become 0,1 because the host called setlocale().
 * SPDX-License-Identifier: Apache-2.0
 */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"

/* ---- UTF-8 and names ------------------------------------------------------------------------- */

bool utf8_valid(struct bytes b)
{
    const unsigned char *p = (const unsigned char *)b.data, *end = p + b.len;
    while (p < end) {
        if (end - p >= 8 && !(utf8_eight(p) & UTF8_EACH(0x80))) {
            p += 8;
            continue;
        }
        size_t n = utf8_step(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

struct bytes utf8_cut(struct bytes b, size_t max)
{
    if (b.len <= max)
        return b;
    size_t len = max;
    /* At most three steps back; bytes that are not UTF-8 are cut at `max`. */
    while (len > 0 && max - len < 3 && (b.data[len] & 0xc0) == 0x80)
        len--;
    if ((b.data[len] & 0xc0) == 0x80)
        len = max;
    return (struct bytes){ b.data, len };
}

const char *name_fault(struct bytes name)
{
    if (!name.data)
        return "is missing";
    if (name.len == 0)
        return "is empty";
    if (name.len > NAME_LEN_MAX)
        return "is longer than 255 bytes";
    if (!utf8_valid(name))
        return "is not UTF-8";
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        /* C1 is C2 80..9F. The byte after C2 exists because the text is valid. */
        bool c1 = c == 0xc2 && (unsigned char)name.data[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || c1)
            return "has a control character";
    }
    if (bytes_eq(name, BYTES(".")) || bytes_eq(name, BYTES("..")))
        return "must not be \".\" or \"..\"";
    return NULL;
}
static_assert(NAME_LEN_MAX == 255, "the sentence says so");

const char *text_quote(struct bytes b, char out[TEXT_QUOTE_LEN])
{
    struct bytes kept = utf8_cut(b, 40);
    bool utf8 = utf8_valid(kept);
    for (size_t i = 0; i < kept.len; i++) {
        unsigned char c = (unsigned char)kept.data[i];
        bool c1 = utf8 && c == 0xc2 && (unsigned char)kept.data[i + 1] < 0xa0;
        out[i] = c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : kept.data[i];
        if (c1) {
            out[i++] = '?';
            out[i] = '?';
        }
    }
    memcpy(out + kept.len, kept.len < b.len ? "..." : "", kept.len < b.len ? 4 : 1);
    return out;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

bool int_parse(struct bytes text, int64_t *out)
{
    size_t i = text.len > 0 && text.data[0] == '-';
    bool below = i == 1;
    int64_t n = 0;
    if (i == text.len)
        return false;
    for (; i < text.len; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_sub_overflow(n, digit, &n))
            return false;
    }
    /* Counted downwards, because there is one more negative number. */
    if (!below && n == INT64_MIN)
        return false;
    *out = below ? n : -n;
    return true;
}

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    CHECK(c_locale);
}

/* The shape of -12.5e-3. What strtod takes beyond it (hex, inf, blanks, a plus) is refused. */
static bool real_shape(struct bytes text)
{
    if (text.len == 0 || text.data[0] == '+')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i] || !strchr("0123456789+-.eE", text.data[i]))
            return false;
    return true;
}

bool real_parse(struct bytes text, double *out)
{
    char small[128], *copy = small, *end;
    if (!real_shape(text))
        return false;
    if (text.len >= sizeof small && !(copy = mem_alloc(text.len + 1)))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;

    pthread_once(&c_locale_once, c_locale_make);
    locale_t before = uselocale(c_locale);
    double n = strtod(copy, &end);
    uselocale(before);
    bool whole = end == copy + text.len && isfinite(n);
    if (copy != small)
        mem_free(copy);
    if (whole)
        *out = n;
    return whole;
}

void real_text(double n, char out[32])
{
    pthread_once(&c_locale_once, c_locale_make);
    locale_t before = uselocale(c_locale);
    snprintf(out, 32, "%.15g", n);
    if (strtod(out, NULL) != n)
        snprintf(out, 32, "%.17g", n);
    uselocale(before);
}

/* ---- Base64 ---------------------------------------------------------------------------------- */

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_write(struct bytes b, char *out)
{
    const unsigned char *p = (const unsigned char *)b.data;
    char *at = out;
    size_t left = b.len;
    for (; left >= 3; left -= 3, p += 3) {
        unsigned v = (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
        *at++ = base64[v >> 18];
        *at++ = base64[v >> 12 & 63];
        *at++ = base64[v >> 6 & 63];
        *at++ = base64[v & 63];
    }
    if (left) {
        unsigned v = (unsigned)p[0] << 16 | (left == 2 ? (unsigned)p[1] << 8 : 0);
        *at++ = base64[v >> 18];
        *at++ = base64[v >> 12 & 63];
        *at++ = left == 2 ? base64[v >> 6 & 63] : '=';
        *at++ = '=';
    }
    return (size_t)(at - out);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters, of which `used` are not padding, as used - 1 bytes. False also when bits are
 * left over: two texts must not mean the same bytes. */
static bool base64_quad(const char *q, int used, char *out)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        int six = i < used ? base64_value(q[i]) : 0;
        if (six < 0)
            return false;
        v = v << 6 | (unsigned)six;
    }
    for (int i = 0; i < used - 1; i++)
        out[i] = (char)(v >> (16 - 8 * i));
    return (v & ((1u << (8 * (4 - used))) - 1)) == 0;
}

bool base64_read(struct bytes text, char *out, size_t *out_len)
{
    if (text.len % 4 != 0)
        return false;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i += 4) {
        const char *q = text.data + i;
        int used = 4;
        if (i + 4 == text.len && q[3] == '=')
            used = q[2] == '=' ? 2 : 3;
        if (!base64_quad(q, used, out + len))
            return false;
        len += (size_t)used - 1;
    }
    *out_len = len;
    return true;
}

const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}
