/*
 * json.c - checking, the tree of nodes, reading values from it, and writing.
 *
 * Any thread. Nodes point into the text that they were made from.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/world.h"

enum pawl_status json_check(struct bytes text, struct pawl_err *err)
{
    struct json_scan s;
    json_scan_init(&s, text);
    for (;;) {
        enum json_step step = json_scan_next(&s);
        if (step == JSON_END)
            return PAWL_OK;
        if (step == JSON_FAULT)
            return json_scan_fault(&s, err);
    }
}

/* ---- The tree -------------------------------------------------------------------------------- */

/* The open values, outermost first, and where the pointer to the next child of each goes. */
struct builder {
    struct json *root;
    struct json *open[JSON_DEPTH_MAX + JSON_AROUND_MAX];
    struct json **place[JSON_DEPTH_MAX + JSON_AROUND_MAX + 1];
};

/* Add a node for what the scanner has read at level `depth`. */
static struct json *node_add(struct builder *b, struct arena *a, const struct json_scan *s,
                             unsigned depth)
{
    struct json *node = arena_alloc(a, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct json){ .kind = s->kind, .raw = s->raw, .name = s->name };
    *b->place[depth] = node;
    b->place[depth] = &node->next;
    if (depth > 0)
        b->open[depth - 1]->count++;
    return node;
}

/* The scanner has read the bracket that closes the value at level `depth`. */
static void node_close(struct builder *b, const struct json_scan *s, unsigned depth)
{
    struct json *closed = b->open[depth];
    closed->raw.len = (size_t)((const char *)s->at - closed->raw.data);
    closed->levels++;
    if (depth > 0)
        b->open[depth - 1]->levels = MAX(b->open[depth - 1]->levels, closed->levels);
}

enum pawl_status json_parse(struct arena *a, struct bytes text, struct json **out,
                            struct pawl_err *err)
{
    struct json_scan s;
    struct builder b;
    json_scan_init(&s, text);
    s.depth_max = JSON_DEPTH_MAX + JSON_AROUND_MAX;
    b.root = NULL;
    b.place[0] = &b.root;
    for (;;) {
        enum json_step step = json_scan_next(&s);
        if (step == JSON_FAULT)
            return json_scan_fault(&s, err);
        if (step == JSON_END)
            break;
        if (step == JSON_CLOSE) {
            node_close(&b, &s, s.depth);
            continue;
        }
        unsigned depth = step == JSON_OPEN ? s.depth - 1 : s.depth;
        struct json *node = node_add(&b, a, &s, depth);
        if (!node)
            return err_no_memory(err, "parsed JSON");
        if (step == JSON_OPEN) {
            b.open[depth] = node;
            b.place[depth + 1] = &node->first;
        }
    }
    *out = b.root;
    return PAWL_OK;
}

/* ---- Reading values -------------------------------------------------------------------------- */

static unsigned hex_unit(const char *p)
{
    unsigned n = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];
        n = n << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return n;
}

static size_t utf8_put(unsigned code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[len] | code);
    return len;
}

/* Write the character or escape at *at as UTF-8 and move *at past it. The text was checked
 * before. */
static size_t unescape(const char **at, char out[4])
{
    const char *p = *at;
    if (*p != '\\') {
        out[0] = *p;
        *at = p + 1;
        return 1;
    }
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    *at = p + 2;
    if (p[1] != 'u') {
        out[0] = to[strchr(from, p[1]) - from];
        return 1;
    }
    unsigned code = hex_unit(p + 2);
    *at = p + 6;
    if (code >= 0xd800 && code < 0xdc00) {
        code = 0x10000 + ((code - 0xd800) << 10) + (hex_unit(p + 8) - 0xdc00);
        *at = p + 12;
    }
    return utf8_put(code, out);
}

static bool name_is(struct bytes written, struct bytes name)
{
    if (!written.data || written.len < name.len)
        return false; /* an escape is never shorter than its character */
    if (!memchr(written.data, '\\', written.len))
        return bytes_eq(written, name);
    const char *at = written.data, *end = at + written.len;
    size_t matched = 0;
    while (at < end) {
        char c[4];
        size_t n = unescape(&at, c);
        if (n > name.len - matched || memcmp(name.data + matched, c, n) != 0)
            return false;
        matched += n;
    }
    return matched == name.len;
}

struct json *json_member(const struct json *v, const char *name)
{
    if (!v || v->kind != JSON_OBJECT)
        return NULL;
    struct bytes wanted = bytes_of(name);
    struct json *m = v->first;
    while (m && !name_is(m->name, wanted))
        m = m->next;
    return m;
}

bool json_int(const struct json *v, int64_t *out)
{
    return v && v->kind == JSON_NUMBER && int_parse(v->raw, out);
}

bool json_real(const struct json *v, double *out)
{
    return v && v->kind == JSON_NUMBER && real_parse(v->raw, out);
}

static struct bytes unescape_all(struct arena *a, struct bytes written)
{
    if (!written.data || !memchr(written.data, '\\', written.len))
        return arena_copy(a, written);
    char *out = arena_alloc(a, written.len + 1), *put = out;
    if (!out)
        return BYTES_NONE;
    const char *at = written.data, *end = at + written.len;
    while (at < end) {
        char c[4];
        size_t n = unescape(&at, c);
        memcpy(put, c, n);
        put += n;
    }
    *put = 0;
    return (struct bytes){ out, (size_t)(put - out) };
}

struct bytes json_string(struct arena *a, const struct json *v)
{
    if (!v || v->kind != JSON_STRING)
        return BYTES_NONE;
    return unescape_all(a, (struct bytes){ v->raw.data + 1, v->raw.len - 2 });
}

struct bytes json_name(struct arena *a, const struct json *v)
{
    return v ? unescape_all(a, v->name) : BYTES_NONE;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_escaped(struct buf *b, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        char two[] = { '\\', to[known - from] };
        buf_add(b, two, sizeof two);
    } else {
        buf_addf(b, "\\u%04x", c);
    }
}

void json_add_string(struct buf *b, struct bytes text)
{
    const unsigned char *p = (const unsigned char *)(text.data ? text.data : "");
    const unsigned char *end = p + text.len, *run = p;
    buf_add_char(b, '"');
    while (p < end) {
        size_t n = utf8_step(p, end);
        if (n > 0 && *p >= 0x20 && *p != '"' && *p != '\\') {
            p += n;
            continue;
        }
        buf_add(b, run, (size_t)(p - run));
        if (n == 0)
            buf_add_text(b, "\xef\xbf\xbd"); /* invalid UTF-8: the output stays JSON */
        else
            add_escaped(b, *p);
        run = ++p;
    }
    buf_add(b, run, (size_t)(p - run));
    buf_add_char(b, '"');
}

void json_add_comma(struct buf *b)
{
    if (b->len > 0 && b->data[b->len - 1] != '{' && b->data[b->len - 1] != '[')
        buf_add_char(b, ',');
}

void json_add_name(struct buf *b, const char *name)
{
    json_add_comma(b);
    json_add_string(b, bytes_of(name));
    buf_add_char(b, ':');
}

void json_add_seconds(struct buf *b, int64_t us)
{
    char digits[6];
    int64_t rest = us % SEC_US;
    if (us < 0 && us > -SEC_US)
        buf_add_char(b, '-'); /* -0.5 has no integer part that says so */
    buf_add_int(b, us / SEC_US);
    if (!rest)
        return;
    rest = rest < 0 ? -rest : rest;
    for (int i = 5; i >= 0; i--, rest /= 10)
        digits[i] = (char)('0' + rest % 10);
    size_t n = 6;
    while (digits[n - 1] == '0')
        n--;
    buf_add_char(b, '.');
    buf_add(b, digits, n);
}

void json_add_base64(struct buf *b, struct bytes bytes)
{
    char out[1024];
    buf_add_char(b, '"');
    for (size_t at = 0; at < bytes.len; at += 768) { /* a multiple of 3: no padding inside */
        struct bytes piece = { bytes.data + at, MIN(bytes.len - at, 768) };
        buf_add(b, out, base64_write(piece, out));
    }
    buf_add_char(b, '"');
}
