/*
 * reply.c - an answer as bytes: status line, Date, length, further headers, body. Pure; loop
 * thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <time.h>

#include "net/server.h"

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 422, "Unprocessable Content" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
    };
    for (size_t k = 0; k < COUNT_OF(reasons); k++)
        if (reasons[k].status == status)
            return reasons[k].text;
    return "Status";
}

/* A control character in a value could end the header and begin another one. */
static bool printable(struct bytes b)
{
    for (size_t k = 0; k < b.len; k++)
        if (((unsigned char)b.data[k] < 0x20 && b.data[k] != '\t') || b.data[k] == 0x7f)
            return false;
    return true;
}

static void header_add(struct buf *out, const struct http_header *h)
{
    if (!h->name.len || !printable(h->name) || !printable(h->value))
        return;
    buf_add_bytes(out, h->name);
    buf_add(out, ": ", 2);
    buf_add_bytes(out, h->value);
    buf_add(out, "\r\n", 2);
}

#define ADD(out, literal) buf_add(out, literal, sizeof(literal) - 1)

static void status_line(struct buf *out, int status)
{
    if (status == 200) {
        ADD(out, "HTTP/1.1 200 OK\r\n");
        return;
    }
    ADD(out, "HTTP/1.1 ");
    buf_add_int(out, status);
    buf_add_char(out, ' ');
    buf_add_text(out, reason(status));
    ADD(out, "\r\n");
}

void answer_write(struct buf *out, const struct answer *a)
{
    const struct http_reply *r = a->reply;
    assert(r->status >= 200 && r->status <= 599);
    bool bodyless = r->status == 204 || r->status == 304;
    status_line(out, r->status);
    buf_add_text(out, a->date);
    if (!bodyless) {
        ADD(out, "Content-Type: ");
        buf_add_text(out, r->content_type ? r->content_type : "application/json");
        ADD(out, "\r\nContent-Length: ");
        buf_add_int(out, (int64_t)r->body.len);
        ADD(out, "\r\n");
    }
    ADD(out, "X-Content-Type-Options: nosniff\r\n");
    for (size_t k = 0; k < r->n_headers; k++)
        header_add(out, &r->headers[k]);
    if (a->close)
        ADD(out, "Connection: close\r\n");
    else if (a->http10)
        ADD(out, "Connection: keep-alive\r\n");
    ADD(out, "\r\n");
    if (!bodyless && !a->head)
        buf_add_bytes(out, r->body);
}

void date_refresh(struct date *d, uint64_t now_ms, int64_t now_us)
{
    static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    snprintf(d->line, sizeof d->line, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
             days[tm.tm_wday % 7], tm.tm_mday % 100, months[tm.tm_mon % 12],
             (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
    d->made_ms = now_ms;
}
