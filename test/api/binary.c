/*
 * binary.c - names and payloads come back byte for byte, whatever the engine does with quotes,
 * case, white space and characters outside the BMP.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "web.h"

RUNS_ON(ENGINES_ALL)

/* Pawl treats each of these as a different name; some collation or quoting would treat some as
 * equal, or as none. */
static const char *const names[] = {
    "a",
    "A",
    "a ",
    " a",
    "a  ",
    "\xc3\xa4",  /* a with diaeresis, */
    "a\xcc\x88", /* and the same as two characters */
    "stra\xc3\x9f"
    "e",
    "strasse",
    "it's",
    "it''s",
    "say \"hi\"",
    "back\\slash",
    "back\\\\slash",
    "\\",
    "\\'",
    "'",
    "\"",
    "`tick`",
    "per%cent_under",
    "semi; DROP TABLE pawl_call; --",
    "$1 ? :x @y {z} %s %n",
    "\\x41 \\u0041 \\0",
    "\xf0\x9f\x98\x80", /* four bytes: a smiley, */
    "\xf0\x9f\x98\x81", /* and another one */
    "\xf4\x8f\xbf\xbf", /* the last code point */
    "\xe2\x80\xae"
    "reversed",
    "\xef\xbb\xbf"
    "mark",
    "NULL",
    "null",
    "0",
    "00",
    "1e1",
    "10",
};
enum { NAMES = sizeof names / sizeof names[0] };

/* The name as a JSON string. */
static char *quoted(const char *text)
{
    char out[600];
    size_t n = 0;
    out[n++] = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            out[n++] = '\\';
        out[n++] = *text;
    }
    out[n++] = '"';
    out[n] = '\0';
    return web_text("%s", out);
}

/* The name as one path segment, or as a query value. */
static char *segment(const char *text)
{
    char out[800];
    size_t n = 0;
    for (; *text; text++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%%%02X", (unsigned char)*text);
    return web_text("%s", out);
}

static struct web_answer submit(struct web *w, const char *name)
{
    char *q = quoted(name);
    return POST(w, "/v1/calls",
                web_text("{\"id\":%s,\"type\":%s,\"method\":%s,\"key\":%s,\"queue\":%s,"
                         "\"caller\":%s,\"tags\":{\"t\":%s},\"input\":{\"text\":%s}}",
                         q, q, q, q, q, q, q, q));
}

static void is_named(struct web_answer a, const char *at, const char *name)
{
    static const char *const members[] = { "id", "type", "method", "key", "queue", "caller" };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        EQ_STR(AT(a, web_text("%s%s", at, members[i])), name);
    EQ_STR(AT(a, web_text("%stags.t", at)), name);
}

TEST(names_and_inputs_come_back_as_they_were)
{
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < NAMES; i++) {
        struct web_answer a = submit(&w, names[i]);
        EQ_INT(a.status, 202);
        EQ_STR(AT(a, "duplicate"), "false");
    }
    for (int i = 0; i < NAMES; i++) {
        struct web_answer a = submit(&w, names[i]);
        EQ_INT(a.status, 202);
        EQ_STR(AT(a, "duplicate"), "true");
        a = GET(&w, web_text("/v1/calls/%s", segment(names[i])));
        EQ_INT(a.status, 200);
        is_named(a, "", names[i]);
        EQ_INT(web_int(a, "seq"), i + 1);
        EQ_STR(AT(a, "input"), web_text("{\"text\":%s}", quoted(names[i])));
        EQ_STR(AT(a, "position"), "1"); /* the only call of its key */
    }
    web_end(&w);
}

/* Every filter finds this call, and none with a similar name. */
TEST(filters_compare_bytes)
{
    static const char *const filters[] = { "key", "type", "method", "queue", "caller" };
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < NAMES; i++)
        EQ_INT(submit(&w, names[i]).status, 202);
    for (int i = 0; i < NAMES; i++) {
        char *s = segment(names[i]);
        for (size_t k = 0; k < sizeof filters / sizeof filters[0]; k++) {
            struct web_answer a = GET(&w, web_text("/v1/calls?%s=%s", filters[k], s));
            EQ_INT(a.status, 200);
            is_named(a, "calls.0.", names[i]);
            TRUE(AT(a, "calls.1") == NULL);
        }
        struct web_answer a = GET(&w, web_text("/v1/calls?tag=t:%s", s));
        EQ_STR(AT(a, "calls.0.id"), names[i]);
        TRUE(AT(a, "calls.1") == NULL);
    }
    web_end(&w);
}

/* A claim takes the call it names, and its finish and its state belong to that call and that key.
 */
TEST(work_and_states_are_of_the_name_they_say)
{
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < NAMES; i++)
        EQ_INT(submit(&w, names[i]).status, 202);
    for (int i = 0; i < NAMES; i++) {
        char *q = quoted(names[i]);
        struct web_answer a =
            POST(&w, "/v1/work/claim",
                 web_text("{\"worker\":%s,\"queues\":[%s],\"types\":[%s],\"max\":10}", q, q, q));
        EQ_INT(a.status, 200);
        is_named(a, "calls.0.", names[i]);
        TRUE(AT(a, "calls.1") == NULL);
        a = POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":\"%s\",\"results\":[{\"id\":%s,\"result\":%s,\"state\":%s}]}",
                          AT(a, "lease"), q, q, q));
        EQ_INT(a.status, 200);
        EQ_STR(AT(a, "results.0.status"), "completed");
    }
    for (int i = 0; i < NAMES; i++) {
        char *s = segment(names[i]);
        struct web_answer a = GET(&w, web_text("/v1/calls/%s", s));
        EQ_STR(AT(a, "result"), names[i]);
        EQ_STR(AT(a, "node"), names[i]); /* the worker's name */
        a = GET(&w, web_text("/v1/objects/%s/%s", s, s));
        EQ_INT(a.status, 200);
        EQ_STR(AT(a, "key"), names[i]);
        EQ_STR(AT(a, "state"), names[i]);
    }
    web_end(&w);
}

/* ---- Bytes that are no text ------------------------------------------------------------------ */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Every byte once, from `first` on, as base64: 256 bytes, padded only at the end. */
static char *all_bytes(int first)
{
    unsigned char in[258] = { 0 };
    char out[400];
    size_t n = 0;
    for (int i = 0; i < 256; i++)
        in[i] = (unsigned char)(first + i);
    for (int i = 0; i < 256; i += 3) {
        unsigned v = (unsigned)in[i] << 16 | (unsigned)in[i + 1] << 8 | in[i + 2];
        out[n++] = digits[v >> 18];
        out[n++] = digits[v >> 12 & 63];
        out[n++] = i + 1 < 256 ? digits[v >> 6 & 63] : '=';
        out[n++] = i + 2 < 256 ? digits[v & 63] : '=';
    }
    out[n] = '\0';
    return web_text("%s", out);
}

/* Inputs and results of bytes that begin with a NUL or in the middle of a UTF-8 character. */
TEST(every_byte_goes_through)
{
    static const int firsts[] = { 0, 1, 39, 92, 128, 255 };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        char *in = all_bytes(firsts[i]), *back = all_bytes(firsts[i] + 100);
        struct web_answer a =
            POST(&w, "/v1/calls",
                 web_text("{\"id\":\"b%zu\",\"type\":\"t\",\"input_base64\":\"%s\"}", i, in));
        EQ_INT(a.status, 202);
        EQ_STR(AT(a, "input_base64"), in);
        EQ_STR(AT(a, "input"), "null");
        a = POST(&w, "/v1/work/claim", "{\"worker\":\"w\"}");
        EQ_STR(AT(a, "calls.0.input_base64"), in);
        a = POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"b%zu\",\"result_base64\":"
                          "\"%s\"}]}",
                          AT(a, "lease"), i, back));
        EQ_INT(a.status, 200);
        a = GET(&w, web_text("/v1/calls/b%zu", i));
        EQ_STR(AT(a, "input_base64"), in);
        EQ_STR(AT(a, "result_base64"), back);
        EQ_INT((int64_t)GET(&w, web_text("/v1/calls/b%zu/result", i)).body.len, 256);
    }
    /* A JSON string may hold an escaped NUL; it comes back as it was written. */
    struct web_answer a =
        POST(&w, "/v1/calls", "{\"id\":\"n\",\"type\":\"t\",\"input\":[\"\\u0000\",1.50]}");
    EQ_INT(a.status, 202);
    HAS_STR(
        web_text("%.*s", (int)GET(&w, "/v1/calls/n").body.len, GET(&w, "/v1/calls/n").body.data),
        "[\"\\u0000\",1.50]");
    web_end(&w);
}

/* Error texts come from handlers and may hold anything. */
TEST(errors_come_back_as_they_were)
{
    struct web w;
    web_begin(&w, param);
    for (int i = 0; i < NAMES; i++) {
        char *id = web_text("e%d", i);
        EQ_INT(POST(&w, "/v1/calls", web_text("{\"id\":\"%s\",\"type\":\"t\"}", id)).status, 202);
        struct web_answer a = POST(&w, "/v1/work/claim", "{\"worker\":\"w\"}");
        a = POST(&w, "/v1/work/finish",
                 web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"%s\",\"error\":%s,"
                          "\"retry\":false}]}",
                          AT(a, "lease"), id, quoted(names[i])));
        EQ_INT(a.status, 200);
        EQ_STR(AT(GET(&w, web_text("/v1/calls/%s", id)), "error"), names[i]);
        EQ_STR(AT(GET(&w, web_text("/v1/calls/%s/attempts", id)), "attempts.0.error"), names[i]);
    }
    web_end(&w);
}
