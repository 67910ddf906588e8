/*
 * intake.c - head, body, trailers. Called by conn.c and the fuzzer; loop thread.
 *
 * llhttp gets the head as one block in our memory, so its pointers into it stay valid and are kept.
 * It gets a chunked body up to the last chunk; the trailers are read here, because it would accept
 * an LF without CR there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "net/intake.h"

/* Memory that a pooled intake may keep for its next request. */
#define KEEP_LEN 16384

bool intake_fail(struct intake *i, int status, const char *text)
{
    /* The first reason counts; llhttp reports the refusal of a callback again in its own words. */
    if (i->state != INTAKE_BAD) {
        i->state = INTAKE_BAD;
        i->bad = status;
        i->bad_text = text;
    }
    return false;
}

/* The same, as the return value of a callback. */
static int refuse(struct intake *i, int status, const char *text)
{
    intake_fail(i, status, text);
    return -1;
}

static bool no_memory(struct intake *i)
{
    return intake_fail(i, 503, "out of memory");
}

/* ---- Callbacks of llhttp --------------------------------------------------------------------- */

static int on_method(llhttp_t *m, const char *at, size_t len)
{
    ((struct intake *)m->data)->method = (struct bytes){ at, len };
    return 0;
}

static int on_url(llhttp_t *m, const char *at, size_t len)
{
    ((struct intake *)m->data)->target = (struct bytes){ at, len };
    return 0;
}

/* llhttp also accepts RTSP and ICE, and skips any number of spaces. The head is in one piece, so
 * the bytes before the version can be checked. */
static int on_version(llhttp_t *m, const char *at, size_t len)
{
    struct intake *i = m->data;
    i->http11 = len == 3 && memcmp(at, "1.1", 3) == 0;
    i->http10 = len == 3 && memcmp(at, "1.0", 3) == 0;
    if (memcmp(at - 5, "HTTP/", 5) != 0 || at - 6 != i->target.data + i->target.len ||
        i->target.data - 1 != i->method.data + i->method.len)
        return refuse(i, 400, "the request line is not METHOD TARGET HTTP/1.1");
    return 0;
}

static int on_field(llhttp_t *m, const char *at, size_t len)
{
    struct intake *i = m->data;
    if (len == 0)
        return refuse(i, 400, "a header has no name");
    char *name = i->head.data + (at - i->head.data);
    for (size_t k = 0; k < len; k++)
        if (name[k] >= 'A' && name[k] <= 'Z')
            name[k] = (char)(name[k] | 0x20);
    i->headers[i->request.n_headers] = (struct http_header){ { name, len }, { "", 0 } };
    return 0;
}

static int on_value(llhttp_t *m, const char *at, size_t len)
{
    struct intake *i = m->data;
    while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
        len--;
    i->headers[i->request.n_headers].value = (struct bytes){ at, len };
    return 0;
}

static int on_value_complete(llhttp_t *m)
{
    struct intake *i = m->data;
    i->request.n_headers++;
    assert(i->request.n_headers < i->lines.count);
    return 0;
}

static int on_headers_complete(llhttp_t *m)
{
    struct intake *i = m->data;
    m->upgrade = 0; /* no protocol is offered, so an upgrade is an ordinary request */
    i->chunked = m->flags & F_CHUNKED;
    i->keep_alive = llhttp_should_keep_alive(m) && !(m->flags & F_CONNECTION_CLOSE);
    return 0;
}

static void body_drop(struct intake *i)
{
    i->rules->held_len -= i->body.len;
    if (i->body.cap > KEEP_LEN)
        buf_release(&i->body);
    else
        buf_reset(&i->body);
}

static int on_body(llhttp_t *m, const char *at, size_t len)
{
    struct intake *i = m->data;
    i->body_seen += len;
    if (i->body_seen > i->rules->limits.body_read_len)
        return refuse(i, 413, "the body is too long");
    if (i->body_seen > i->body_max && !i->request.too_large) {
        i->request.too_large = true;
        body_drop(i);
    }
    if (i->request.too_large)
        return 0;
    if (i->rules->held_len + len > i->rules->limits.held_len)
        return refuse(i, 503, "too many large requests at the same time");
    size_t before = i->body.len;
    buf_add(&i->body, at, len);
    i->rules->held_len += i->body.len - before;
    return buf_ok(&i->body) ? 0 : refuse(i, 503, "out of memory");
}

static int on_extension(llhttp_t *m, const char *at, size_t len)
{
    struct intake *i = m->data;
    (void)at;
    i->ext_len += len;
    if (i->ext_len > i->rules->limits.header_len)
        return refuse(i, 400, "the chunk extensions are too long");
    return 0;
}

static int on_chunk(llhttp_t *m)
{
    struct intake *i = m->data;
    if (m->content_length == 0)
        return HPE_PAUSED; /* the last chunk */
    if (m->content_length > i->rules->limits.body_read_len - i->body_seen)
        return refuse(i, 413, "the body is too long");
    return 0;
}

static int on_complete(llhttp_t *m)
{
    ((struct intake *)m->data)->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t callbacks = {
    .on_method = on_method,
    .on_url = on_url,
    .on_version = on_version,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_complete,
};

/* ---- Begin and end --------------------------------------------------------------------------- */

void intake_init(struct intake *i, struct intake_rules *rules)
{
    *i = (struct intake){ .rules = rules };
    arena_init(&i->request.arena, rules->limits.arena_len);
    buf_init(&i->head, rules->limits.header_len);
    buf_init(&i->body, rules->limits.body_read_len);
}

void intake_reset(struct intake *i)
{
    struct intake old = *i;
    body_drop(&old);
    buf_reset(&old.head);
    arena_reset(&old.request.arena);
    *i = (struct intake){
        .rules = old.rules, .server = old.server, .head = old.head, .body = old.body
    };
    i->request.arena = old.request.arena;
}

void intake_release(struct intake *i)
{
    body_drop(i);
    buf_release(&i->head);
    buf_release(&i->body);
    arena_release(&i->request.arena);
}

/* ---- Head ------------------------------------------------------------------------------------ */

/* Upper-case letters and dashes: a method, though llhttp does not know it. */
static bool looks_like_method(const struct buf *head)
{
    size_t n = 0;
    while (n < head->len && n < 32 &&
           ((head->data[n] >= 'A' && head->data[n] <= 'Z') || head->data[n] == '-'))
        n++;
    return n > 0 && n < head->len && head->data[n] == ' ';
}

static bool head_refused(struct intake *i, llhttp_errno_t error)
{
    if (error == HPE_INVALID_METHOD && looks_like_method(&i->head))
        return intake_fail(i, 501, "the method is not implemented");
    if ((error == HPE_INVALID_VERSION && !i->http10 && !i->http11) ||
        error == HPE_PAUSED_H2_UPGRADE)
        return intake_fail(i, 505, "the HTTP version is not supported; expected 1.1 or 1.0");
    return intake_fail(i, 400, llhttp_get_error_reason(&i->machine));
}

/* The longest body, now that the headers are known. */
static bool body_expect(struct intake *i)
{
    const struct intake_rules *rules = i->rules;
    i->body_max = rules->limits.body_len;
    if (rules->body_max)
        i->body_max = rules->body_max(&i->request, rules->ctx);
    if (i->chunked)
        return true;
    if (i->machine.content_length > rules->limits.body_read_len)
        return intake_fail(i, 413, "the body is too long");
    i->request.too_large = i->machine.content_length > i->body_max;
    return true;
}

static void head_done(struct intake *i)
{
    size_t room = i->lines.count; /* the request line and the empty line are not headers */
    if (room - 2 > HTTP_HEADERS_MAX) {
        intake_fail(i, 431, "too many headers");
        return;
    }
    i->headers = arena_alloc(&i->request.arena, room * sizeof *i->headers);
    if (!i->headers) {
        no_memory(i);
        return;
    }
    i->request.headers = i->headers;
    llhttp_init(&i->machine, HTTP_REQUEST, &callbacks);
    i->machine.data = i;
    llhttp_errno_t error = llhttp_execute(&i->machine, i->head.data, i->head.len);
    if (error != HPE_OK && (error != HPE_PAUSED || !i->complete)) {
        head_refused(i, error);
        return;
    }
    if (!head_check(i) || (!i->complete && !body_expect(i)))
        return;
    i->state = i->complete ? INTAKE_DONE : INTAKE_BODY;
    i->request.body = BYTES("");
}

static size_t feed_head(struct intake *i, struct bytes in)
{
    size_t skipped = 0, used;
    if (!intake_begun(i)) /* empty lines before a request are ignored */
        while (skipped < in.len && (in.data[skipped] == '\r' || in.data[skipped] == '\n'))
            skipped++;
    in = (struct bytes){ in.data + skipped, in.len - skipped };
    enum lines_end end = lines_feed(&i->lines, in, i->rules->limits.header_len, &used);
    buf_add(&i->head, in.data, used);
    if (!buf_ok(&i->head))
        no_memory(i);
    else if (end == LINES_BAD)
        intake_fail(i, 400, i->lines.fault);
    else if (end == LINES_LONG)
        intake_fail(i, 431, "the request line and the headers are too long");
    else if (end == LINES_END)
        head_done(i);
    return skipped + used;
}

/* ---- Body ------------------------------------------------------------------------------------ */

static void body_done(struct intake *i)
{
    i->state = INTAKE_DONE;
    i->request.body = buf_bytes(&i->body);
}

static size_t feed_body(struct intake *i, struct bytes in)
{
    llhttp_errno_t error = llhttp_execute(&i->machine, in.data, in.len);
    if (error == HPE_OK)
        return in.len;
    if (error != HPE_PAUSED) {
        intake_fail(i, 400, llhttp_get_error_reason(&i->machine));
        return in.len;
    }
    if (i->complete) {
        body_done(i);
    } else {
        i->state = INTAKE_TRAILER;
        i->lines = (struct lines){ 0 };
    }
    return (size_t)(llhttp_get_error_pos(&i->machine) - in.data);
}

static bool has_control(struct bytes b)
{
    for (size_t k = 0; k < b.len; k++)
        if (((unsigned char)b.data[k] < 0x20 && !strchr("\t\r\n", b.data[k])) || !b.data[k])
            return true;
    return false;
}

static size_t feed_trailer(struct intake *i, struct bytes in)
{
    size_t used;
    enum lines_end end = lines_feed(&i->lines, in, i->rules->limits.header_len, &used);
    if (end == LINES_BAD)
        intake_fail(i, 400, i->lines.fault);
    else if (has_control((struct bytes){ in.data, used }))
        intake_fail(i, 400, "a control character in the trailers");
    else if (end == LINES_LONG)
        intake_fail(i, 431, "the trailers are too long");
    else if (end == LINES_END)
        body_done(i);
    return used;
}

size_t intake_feed(struct intake *i, struct bytes in)
{
    switch (i->state) {
    case INTAKE_HEAD:
        return feed_head(i, in);
    case INTAKE_BODY:
        return feed_body(i, in);
    case INTAKE_TRAILER:
        return feed_trailer(i, in);
    case INTAKE_DONE:
    case INTAKE_BAD:
        break;
    }
    return 0;
}
