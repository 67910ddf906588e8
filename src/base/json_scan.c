/*
 * json_scan.c - the grammar of RFC 8259, strictly, one step at a time.
 *
 * What must stay true: a text that passes here may be stored, and shown unchanged to any reader. So
 * strings are UTF-8, escapes are complete, and surrogates come in pairs. Any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json_scan.h"
#include "base/utf8.h"

void json_scan_init(struct json_scan *s, struct bytes text)
{
    s->start = s->at = (const unsigned char *)(text.data ? text.data : "");
    s->end = s->start + text.len;
    s->expected = NULL;
    s->name = s->raw = BYTES_NONE;
    s->kind = JSON_NULL;
    s->depth = 0;
    s->depth_max = JSON_DEPTH_MAX;
    s->fresh = s->done = s->spaced = false;
}

enum pawl_status json_scan_fault(const struct json_scan *s, struct pawl_err *err)
{
    return err_set(err, PAWL_INVALID, "byte %zu: expected %s", (size_t)(s->at - s->start),
                   s->expected);
}

static enum json_step fault(struct json_scan *s, const unsigned char *at, const char *expected)
{
    s->at = at;
    s->expected = expected;
    return JSON_FAULT;
}

static inline void skip_space(struct json_scan *s)
{
    const unsigned char *p = s->at;
    if (p<s->end && * p> ' ')
        return;
    while (p < s->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    s->spaced |= p != s->at;
    s->at = p;
}

static int peek(const struct json_scan *s)
{
    return s->at < s->end ? *s->at : -1;
}

/* ---- Strings --------------------------------------------------------------------------------- */

static bool odd_byte(unsigned char c)
{
    return c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
}

/* The first byte of a string that is not plain (a control character, a quote, a backslash, beyond
 * ASCII), or the end; eight bytes at a time. A borrow can mark a plain byte, but only above a
 * marked one, so the lowest mark is right. */
static const unsigned char *first_odd(const unsigned char *p, const unsigned char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; end - p >= 8; p += 8) {
        uint64_t v = utf8_eight(p);
        uint64_t quote = v ^ UTF8_EACH('"'), slash = v ^ UTF8_EACH('\\');
        uint64_t odd = v | (v - UTF8_EACH(0x20)) | (quote - UTF8_EACH(1)) | (slash - UTF8_EACH(1));
        odd &= UTF8_EACH(0x80);
        if (odd)
            return p + __builtin_ctzll(odd) / 8;
    }
#endif
    while (p < end && !odd_byte(*p))
        p++;
    return p;
}

/* The value of four hex digits at p; -1 when they are not. */
static int hex4(const unsigned char *p, const unsigned char *end)
{
    int n = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i] | 0x20;
        if (p[i] >= '0' && p[i] <= '9')
            n = n << 4 | (p[i] - '0');
        else if (c >= 'a' && c <= 'f')
            n = n << 4 | (c - 'a' + 10);
        else
            return -1;
    }
    return n;
}

/* The length of the escape whose backslash is at p; 0 when it is not an escape. */
static size_t escape_len(const unsigned char *p, const unsigned char *end)
{
    if (end - p < 2 || !p[1] || !strchr("\"\\/bfnrtu", p[1]))
        return 0;
    if (p[1] != 'u')
        return 2;
    int unit = hex4(p + 2, end);
    if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
        return 0;
    if (unit < 0xd800 || unit >= 0xe000)
        return 6;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    int low = hex4(p + 8, end);
    return low >= 0xdc00 && low < 0xe000 ? 12 : 0;
}

/* Read from the opening quote past the closing one. False, with `expected`, when it is not a
 * string. */
static bool scan_string(struct json_scan *s, struct bytes *out)
{
    const unsigned char *p = s->at + 1, *end = s->end;
    for (;;) {
        p = first_odd(p, end);
        if (p == end) {
            fault(s, p, "the end of the string");
            return false;
        }
        size_t n = 1;
        if (*p == '"')
            break;
        if (*p < 0x20) {
            fault(s, p, "no control character in a string");
            return false;
        }
        if (*p == '\\')
            n = escape_len(p, end);
        else if (*p >= 0x80)
            n = utf8_step(p, end);
        if (n == 0) {
            fault(s, p, *p == '\\' ? "a complete escape" : "UTF-8");
            return false;
        }
        p += n;
    }
    *out = (struct bytes){ (const char *)s->at + 1, (size_t)(p - s->at) - 1 };
    s->at = p + 1;
    return true;
}

/* ---- Numbers and words ----------------------------------------------------------------------- */

static const unsigned char *digits(const unsigned char *p, const unsigned char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static enum json_step scalar(struct json_scan *s, enum json_kind kind, const unsigned char *end)
{
    s->kind = kind;
    s->raw = (struct bytes){ (const char *)s->at, (size_t)(end - s->at) };
    s->at = end;
    s->done = s->depth == 0;
    return JSON_SCALAR;
}

static enum json_step scan_number(struct json_scan *s)
{
    const unsigned char *p = s->at, *end = s->end;
    if (*p == '-')
        p++;
    const unsigned char *after = digits(p, end);
    if (after == p)
        return fault(s, p, "a digit");
    if (*p == '0' && after > p + 1)
        return fault(s, p + 1, "no digit after a leading 0");
    p = after;
    if (p < end && *p == '.') {
        after = digits(++p, end);
        if (after == p)
            return fault(s, p, "a digit");
        p = after;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        after = digits(p, end);
        if (after == p)
            return fault(s, p, "a digit");
        p = after;
    }
    return scalar(s, JSON_NUMBER, p);
}

static enum json_step scan_word(struct json_scan *s, enum json_kind kind, struct bytes word)
{
    if ((size_t)(s->end - s->at) < word.len || memcmp(s->at, word.data, word.len) != 0)
        return fault(s, s->at, "a value");
    return scalar(s, kind, s->at + word.len);
}

/* ---- Structure ------------------------------------------------------------------------------- */

static enum json_step bracket(struct json_scan *s, enum json_step step)
{
    s->raw = (struct bytes){ (const char *)s->at, 1 };
    s->at++;
    s->fresh = step == JSON_OPEN;
    return step;
}

static enum json_step scan_value(struct json_scan *s)
{
    int c = peek(s);
    switch (c) {
    case '{':
    case '[':
        if (s->depth == s->depth_max)
            return fault(s, s->at, "nesting of at most 512 levels");
        s->open[s->depth++] = (char)c;
        s->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        return bracket(s, JSON_OPEN);
    case '"': {
        const unsigned char *from = s->at;
        struct bytes inside;
        if (!scan_string(s, &inside))
            return JSON_FAULT;
        const unsigned char *end = s->at;
        s->at = from;
        return scalar(s, JSON_STRING, end);
    }
    case 't':
        return scan_word(s, JSON_TRUE, BYTES("true"));
    case 'f':
        return scan_word(s, JSON_FALSE, BYTES("false"));
    case 'n':
        return scan_word(s, JSON_NULL, BYTES("null"));
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return scan_number(s);
        return fault(s, s->at, "a value");
    }
}
static_assert(JSON_DEPTH_MAX == 512, "the sentence says so");

static enum json_step scan_close(struct json_scan *s)
{
    s->depth--;
    s->kind = s->open[s->depth] == '{' ? JSON_OBJECT : JSON_ARRAY;
    s->name = BYTES_NONE;
    s->done = s->depth == 0;
    return bracket(s, JSON_CLOSE);
}

/* `"name" :` */
static bool scan_name(struct json_scan *s)
{
    if (peek(s) != '"') {
        fault(s, s->at, s->fresh ? "a name or \"}\"" : "a name");
        return false;
    }
    if (!scan_string(s, &s->name))
        return false;
    skip_space(s);
    if (peek(s) != ':') {
        fault(s, s->at, "\":\"");
        return false;
    }
    s->at++;
    skip_space(s);
    return true;
}

enum json_step json_scan_next(struct json_scan *s)
{
    skip_space(s);
    if (s->depth == 0) {
        if (!s->done)
            return scan_value(s);
        return s->at == s->end ? JSON_END : fault(s, s->at, "the end of the text");
    }
    bool object = s->open[s->depth - 1] == '{';
    int c = peek(s);
    if (c == (object ? '}' : ']'))
        return scan_close(s);
    if (!s->fresh) {
        if (c != ',')
            return fault(s, s->at, object ? "\",\" or \"}\"" : "\",\" or \"]\"");
        s->at++;
        skip_space(s);
    }
    s->name = BYTES_NONE;
    if (object && !scan_name(s))
        return JSON_FAULT;
    s->fresh = false;
    return scan_value(s);
}
