/*
 * list.c - GET /v1/calls: newest first, filtered, in pages (list.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/list.h"

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/call_json.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/cursor.h"
#include "model/words.h"

struct list_read {
    struct ask_read read; /* first */
    struct query query;
    struct page page;
    unsigned show;
};

enum pawl_status list_filters(struct ask *q, const struct list_words *w, struct query *out,
                              struct pawl_err *err)
{
    const char *words = w->words ? w->words : STATE_WORDS;
    if (w->status.data && !word_in(words, w->status))
        return unknown_word(q->a, "status", w->status, words, err);
    if (w->status.data)
        out->state = call_state_of(w->status);
    if (w->cursor.data && !cursor_read(w->cursor, &out->before_seq))
        return err_set(err, PAWL_INVALID,
                       "field \"cursor\": is \"%.*s\", not the `next` of an earlier answer",
                       BYTES_ARG(text_shown(q->a, w->cursor)));
    if (q->who.role == ROLE_APP)
        out->client = q->who.name;
    return PAWL_OK;
}

void list_next(struct buf *b, int64_t next_before)
{
    char text[CURSOR_TEXT_MAX];
    if (next_before)
        cursor_write(next_before, text);
    add_text(b, "next", next_before ? bytes_of(text) : BYTES_NONE);
}

/* ---- Cursors that are a name: in hex, which needs no escape anywhere ------------------------- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The name in a cursor; absent when it is not one that list_next_name() wrote. */
static struct bytes name_of_cursor(struct arena *a, struct bytes text)
{
    char *out = text.len % 2 ? NULL : arena_alloc(a, text.len / 2 + 1);
    for (size_t i = 0; out && i < text.len; i += 2) {
        int high = digit(text.data[i]), low = digit(text.data[i + 1]);
        if (high < 0 || low < 0)
            return BYTES_NONE;
        out[i / 2] = (char)(high << 4 | low);
    }
    struct bytes name = { out, text.len / 2 };
    return out && !name_fault(name) ? name : BYTES_NONE;
}

void refuse_cursor(struct ask *q, struct bytes cursor)
{
    ask_refusef(q, PAWL_INVALID,
                "field \"cursor\": is \"%.*s\", not the `next` of an earlier answer",
                BYTES_ARG(text_shown(q->a, cursor)));
}

bool list_cursor_name(struct ask *q, struct value cursor, struct bytes *out)
{
    *out = cursor.given ? name_of_cursor(q->a, cursor.text) : BYTES_NONE;
    if (!cursor.given || out->data)
        return true;
    refuse_cursor(q, cursor.text);
    return false;
}

void list_next_name(struct buf *b, struct bytes name)
{
    json_add_name(b, "next");
    if (!name.data) {
        buf_add_text(b, "null");
        return;
    }
    buf_add_char(b, '"');
    for (size_t i = 0; i < name.len; i++)
        buf_addf(b, "%02x", (unsigned char)name.data[i]);
    buf_add_char(b, '"');
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Read `include=input,result`. */
static void read_include(struct list_read *lr, int64_t include)
{
    if (include & INCLUDE_INPUT) {
        lr->query.with |= WITH_INPUT;
        lr->show = (lr->show | SHOW_INPUT) & ~(unsigned)SHOW_NO_INPUT;
    }
    if (include & INCLUDE_RESULT) {
        lr->query.with |= WITH_RESULT;
        lr->show = (lr->show | SHOW_RESULT) & ~(unsigned)SHOW_NO_RESULT;
    }
}

static enum pawl_status read_tag(struct ask *q, struct query *out, struct bytes tag,
                                 struct pawl_err *err)
{
    const char *colon = tag.len ? memchr(tag.data, ':', tag.len) : NULL;
    if (!colon || colon == tag.data)
        return err_set(err, PAWL_INVALID, "field \"tag\": is \"%.*s\", not NAME:VALUE",
                       BYTES_ARG(text_shown(q->a, tag)));
    if (q->who.role == ROLE_MONITOR)
        return err_set(err, PAWL_FORBIDDEN,
                       "token \"%.*s\" is a monitor's, which does not see tags",
                       BYTES_ARG(q->who.name));
    size_t len = (size_t)(colon - tag.data);
    out->tag_name = (struct bytes){ tag.data, len };
    out->tag_value = (struct bytes){ colon + 1, tag.len - len - 1 };
    return PAWL_OK;
}

static enum pawl_status read_query(struct ask *q, struct list_read *lr, struct pawl_err *err)
{
    struct value limit = ask_query(q, "limit"), tag = ask_query(q, "tag");
    struct list_words w = { .status = ask_query(q, "status").text,
                            .cursor = ask_query(q, "cursor").text };
    lr->show = SHOW_LISTED;
    lr->query = (struct query){ .queue = ask_query(q, "queue").text,
                                .type = ask_query(q, "type").text,
                                .method = ask_query(q, "method").text,
                                .key = ask_query(q, "key").text,
                                .parent = ask_query(q, "parent").text,
                                .caller = ask_query(q, "caller").text,
                                .since_us = ask_query(q, "since").n,
                                .until_us = ask_query(q, "until").n,
                                .limit = limit.given ? (int)limit.n : LIST_DEFAULT };
    enum pawl_status st = list_filters(q, &w, &lr->query, err);
    if (st == PAWL_OK && tag.given)
        st = read_tag(q, &lr->query, tag.text, err);
    read_include(lr, ask_query(q, "include").n);
    return st;
}

static enum pawl_status list_work(struct ask_read *rd, struct store *s)
{
    struct list_read *lr = (struct list_read *)rd;
    return store_list(s, &rd->arena, &lr->query, &lr->page, &rd->err);
}

static void list_done(struct ask_read *rd)
{
    struct list_read *lr = (struct list_read *)rd;
    struct ask *q = rd->ask;
    struct buf *b = ask_buf(q);
    if (ask_read_failed(rd))
        return;
    buf_add_text(b, "{\"calls\":[");
    for (size_t i = 0; i < lr->page.n; i++) {
        json_add_comma(b);
        call_add(b, &lr->page.v[i], ask_show(q, lr->show));
    }
    buf_add_char(b, ']');
    list_next(b, lr->page.next_before);
    buf_add_char(b, '}');
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_list(struct ask *q)
{
    struct pawl_err err;
    struct list_read *lr = arena_zalloc(q->a, 1, sizeof *lr);
    if (!lr) {
        ask_no_memory(q);
        return;
    }
    err.status = read_query(q, lr, &err);
    if (err.status != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    lr->read.work = list_work;
    lr->read.done = list_done;
    ask_read(q, &lr->read);
}
