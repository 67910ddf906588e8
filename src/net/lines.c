/*
 * lines.c - read lines up to the empty one. Called by intake.c, loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/macros.h"
#include "net/lines.h"

static enum lines_end bad(struct lines *l, const char *fault)
{
    l->fault = fault;
    return LINES_BAD;
}

/* A part of a line without an LF. */
static enum lines_end part(struct lines *l, const char *data, size_t len)
{
    if (len == 0)
        return LINES_MORE;
    if (l->line_len == 0 && (data[0] == ' ' || data[0] == '\t'))
        return bad(l, "a header line begins with white space");
    l->line_len += len;
    l->last = data[len - 1];
    return LINES_MORE;
}

static enum lines_end line_ends(struct lines *l)
{
    if (l->line_len == 0 || l->last != '\r')
        return bad(l, "a line does not end in CRLF");
    bool empty = l->line_len == 1;
    l->count++;
    l->line_len = 0;
    return empty ? LINES_END : LINES_MORE;
}

enum lines_end lines_feed(struct lines *l, struct bytes in, size_t max, size_t *out_used)
{
    size_t room = MIN(in.len, max - l->len), at = 0;
    enum lines_end end = LINES_MORE;
    while (at < room && end == LINES_MORE) {
        const char *lf = memchr(in.data + at, '\n', room - at);
        size_t len = lf ? (size_t)(lf - in.data) - at : room - at;
        end = part(l, in.data + at, len);
        at += len;
        if (end == LINES_MORE && lf) {
            end = line_ends(l);
            at++;
        }
    }
    l->len += at;
    *out_used = at;
    if (end == LINES_MORE && in.len > room)
        return LINES_LONG;
    return end;
}
