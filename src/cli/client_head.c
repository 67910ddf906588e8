/*
 * client_head.c - parse the head and the chunks of an HTTP/1.1 answer. Pure functions.
 *
 * Only the headers that decide where the answer ends are parsed, strictly; all others are skipped.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cli/client.h"

/* Longer than any head that our server sends. */
#define HEAD_LEN_MAX (64 << 10)
#define CHUNK_LINE_MAX 64

static bool is(struct bytes text, const char *want)
{
    return text.len == strlen(want) && strncasecmp(text.data, want, text.len) == 0;
}

static struct bytes trimmed(struct bytes b)
{
    while (b.len && (b.data[0] == ' ' || b.data[0] == '\t'))
        b.data++, b.len--;
    while (b.len && (b.data[b.len - 1] == ' ' || b.data[b.len - 1] == '\t'))
        b.len--;
    return b;
}

static bool header_read(struct bytes line, struct client_head *out)
{
    const char *colon = memchr(line.data, ':', line.len);
    if (!colon)
        return false;
    struct bytes name = { line.data, (size_t)(colon - line.data) };
    struct bytes value =
        trimmed((struct bytes){ colon + 1, line.len - (size_t)(colon + 1 - line.data) });
    if (is(name, "content-length"))
        return int_parse(value, &out->length) && out->length >= 0;
    if (is(name, "transfer-encoding"))
        return out->chunked = is(value, "chunked");
    if (is(name, "connection"))
        out->close = is(value, "close");
    return true;
}

static bool status_read(struct bytes line, struct client_head *out)
{
    if (line.len < 12 || (memcmp(line.data, "HTTP/1.1 ", 9) && memcmp(line.data, "HTTP/1.0 ", 9)))
        return false;
    int64_t n = 0;
    if (!int_parse((struct bytes){ line.data + 9, 3 }, &n) || n < 100 || n > 599)
        return false;
    out->status = (int)n;
    out->close = line.data[7] == '0';
    return true;
}

long head_read(struct bytes text, struct client_head *out)
{
    const char *end = memmem(text.data, text.len, "\r\n\r\n", 4);
    *out = (struct client_head){ .length = -1 };
    if (!end)
        return text.len > HEAD_LEN_MAX ? -1 : 0;
    bool first = true;
    for (const char *at = text.data; at < end + 2;) {
        const char *eol = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
        struct bytes line = { at, (size_t)(eol - at) };
        if (!(first ? status_read(line, out) : header_read(line, out)))
            return -1;
        first = false;
        at = eol + 2;
    }
    return end + 4 - text.data;
}

/* The size in a chunk's first line. *out_line is the length of that line with its CRLF, 0: it is
 * not complete yet. */
static bool chunk_size(struct bytes text, size_t *out_size, size_t *out_line)
{
    const char *eol = memmem(text.data, text.len, "\r\n", 2);
    *out_line = 0;
    *out_size = 0;
    if (!eol)
        return text.len <= CHUNK_LINE_MAX;
    const char *at = text.data;
    for (; at < eol && isxdigit((unsigned char)*at); at++) {
        int digit = *at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10;
        if (*out_size >> 40)
            return false;
        *out_size = *out_size * 16 + (size_t)digit;
    }
    *out_line = (size_t)(eol + 2 - text.data);
    return at > text.data && (at == eol || *at == ';');
}

long chunks_read(struct bytes text, struct buf *out, bool *out_over)
{
    size_t taken = 0;
    *out_over = false;
    for (;;) {
        struct bytes rest = { text.data + taken, text.len - taken };
        size_t size, line;
        if (!chunk_size(rest, &size, &line))
            return -1;
        if (!line)
            return (long)taken;
        if (size == 0) {
            /* The last chunk and its trailers end with an empty line. */
            const char *end = memmem(rest.data + line - 2, rest.len - line + 2, "\r\n\r\n", 4);
            if (end)
                taken += (size_t)(end + 4 - rest.data);
            *out_over = end != NULL;
            return (long)taken;
        }
        if (rest.len < line + size + 2)
            return (long)taken;
        if (memcmp(rest.data + line + size, "\r\n", 2) != 0)
            return -1;
        buf_add(out, rest.data + line, size);
        taken += line + size + 2;
    }
}
