/*
 * client.c - URLs, heads and chunks as the CLI's client parses them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/client.h"

#include "check.h"

static struct client_url url;
static struct pawl_err err;

TEST(urls_in_their_pieces)
{
    OK(client_url_parse("http://127.0.0.1:7295", &url, &err), &err);
    EQ_STR(url.host, "127.0.0.1");
    EQ_STR(url.port, "7295");
    EQ_STR(url.prefix, "");
    FALSE(url.tls);
    OK(client_url_parse("https://pawl.example.org/inside/", &url, &err), &err);
    EQ_STR(url.host, "pawl.example.org");
    EQ_STR(url.port, "443");
    EQ_STR(url.prefix, "/inside");
    TRUE(url.tls);
    OK(client_url_parse("http://[::1]:80", &url, &err), &err);
    EQ_STR(url.host, "::1");
    EQ_STR(url.port, "80");
    OK(client_url_parse("http://[::1]", &url, &err), &err);
    OK(client_url_parse("unix:/run/pawl.sock", &url, &err), &err);
    EQ_STR(url.path, "/run/pawl.sock");
}

static void text_is(const char *given, const char *want)
{
    char text[CLIENT_URL_TEXT_MAX];
    OK(client_url_parse(given, &url, &err), &err);
    client_url_text(&url, text, sizeof(text));
    EQ_STR(text, want);
}

TEST(urls_as_text_lead_to_the_same_place)
{
    text_is("http://127.0.0.1:7295", "http://127.0.0.1:7295");
    text_is("https://pawl.example.org/inside/", "https://pawl.example.org:443/inside");
    text_is("http://[::1]:80/a/b", "http://[::1]:80/a/b");
    text_is("unix:/run/pawl.sock", "unix:/run/pawl.sock");
}

TEST(the_advice_to_use_the_other_scheme_keeps_brackets_and_prefix)
{
    OK(client_url_parse("http://[::1]:7295/inside", &url, &err), &err);
    EQ_STATUS(client_url_advice(&url, "speaks TLS", &err), PAWL_INVALID, &err);
    EQ_STR(err.text,
           "the server at [::1]:7295/inside speaks TLS; use --url https://[::1]:7295/inside");
    OK(client_url_parse("https://[::1]:7295", &url, &err), &err);
    EQ_STATUS(client_url_advice(&url, "does not speak TLS", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "the server at [::1]:7295 does not speak TLS; use --url http://[::1]:7295");
}

TEST(what_is_no_url_is_refused)
{
    static const char *const wrong[] = {
        "",           "127.0.0.1:7295",    "ftp://x",     "http://",       "http://:80",
        "http://x:y", "http://x:",         "http://[::1", "http://[::1]x", "http://ann:hush@x",
        "unix:",      "http://x:123456789"
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        EQ_STATUS(client_url_parse(wrong[i], &url, &err), PAWL_INVALID, &err);
        FALSE(strstr(err.text, "hush"));
    }
}

static long head(const char *text, struct client_head *out)
{
    return head_read(bytes_of(text), out);
}

TEST(heads)
{
    struct client_head h;
    EQ_INT(head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &h), 38);
    EQ_INT(h.status, 200);
    EQ_INT(h.length, 5);
    FALSE(h.close || h.chunked);
    EQ_INT(head("HTTP/1.1 404 Not Found\r\nTRANSFER-ENCODING: chunked\r\nConnection: close\r\n\r\n",
                &h),
           73);
    TRUE(h.close && h.chunked);
    EQ_INT(h.length, -1);
    EQ_INT(head("HTTP/1.0 200 OK\r\n\r\n", &h), 19);
    TRUE(h.close);
    EQ_INT(head("HTTP/1.1 200 OK\r\nContent-Le", &h), 0);
    EQ_INT(head("", &h), 0);
    EQ_INT(head("SSH-2.0-x\r\n\r\n", &h), -1);
    EQ_INT(head("HTTP/1.1 2x0 OK\r\n\r\n", &h), -1);
    EQ_INT(head("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &h), -1);
    EQ_INT(head("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", &h), -1);
}

/* The chunks are parsed the same wherever the text is split. */
TEST(chunks_in_any_pieces)
{
    static const char text[] = "5\r\nhello\r\n1;x=y\r\n \r\nA\r\nworld, all\r\n0\r\nX: y\r\n\r\n";
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        struct buf in, out;
        bool over = false;
        buf_init(&in, 1000);
        buf_init(&out, 1000);
        for (size_t at = 0; at < sizeof(text) - 1 && !over; at += cut) {
            buf_add(&in, text + at, MIN(cut, sizeof(text) - 1 - at));
            long n = chunks_read(buf_bytes(&in), &out, &over);
            TRUE(n >= 0);
            memmove(in.data, in.data + n, in.len - (size_t)n);
            in.len -= (size_t)n;
        }
        TRUE(over);
        EQ_INT(in.len, 0);
        EQ_BYTES(out.data, out.len, "hello world, all", 16);
        buf_release(&in);
        buf_release(&out);
    }
}

TEST(wrong_chunks)
{
    static const char *const wrong[] = { "x\r\n", "\r\n", "5\r\nhelloXX", "fffffffffffffffff\r\n",
                                         "5 5\r\nhello\r\n" };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct buf out;
        bool over;
        buf_init(&out, 1000);
        EQ_INT(chunks_read(bytes_of(wrong[i]), &out, &over), -1);
        buf_release(&out);
    }
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void fits(const char *list, const char *has, const char *body, const char *want)
{
    struct arena a;
    struct json *v = NULL;
    char why[100] = "";
    arena_init(&a, 1 << 20);
    OK(json_parse(&a, bytes_of(body), &v, &err), &err);
    struct client_ask ask = { .list = list, .has = has };
    EQ_INT(answer_fits(v, &ask, why, sizeof(why)), !*want);
    EQ_STR(why, want);
    arena_release(&a);
}

TEST(an_answer_has_what_pawl_always_answers)
{
    fits(NULL, "id status", "{\"status\":\"failed\",\"id\":\"a\",\"x\":{}}", "");
    fits(NULL, "changed", "{\"changed\":0}", "");
    fits(NULL, "paused", "{\"paused\":false}", "");
    fits("calls", "id status", "{\"calls\":[]}", "");
    fits("calls", "id status", "{\"calls\":[{\"id\":1,\"status\":\"\"}]}", "");
    fits("calls", NULL, "{\"calls\":[\"x\",1]}", "");
}

TEST(an_answer_without_it_is_none)
{
    fits(NULL, "id status", "{}", "it has no \"id\"");
    fits(NULL, "id status", "{\"id\":\"a\"}", "it has no \"status\"");
    fits(NULL, "id", "{\"id\":null}", "it has no \"id\"");
    fits(NULL, "id", "{\"id\":[]}", "it has no \"id\"");
    fits(NULL, "id", "[]", "it is not an object");
    fits("calls", "id", "null", "it has no list \"calls\"");
    fits("calls", "id", "{\"calls\":{}}", "it has no list \"calls\"");
    fits("calls", "id", "{\"calls\":[{\"id\":1},{}]}", "in \"calls\", it has no \"id\"");
    fits("calls", "id", "{\"calls\":[0]}", "in \"calls\", it is not an object");
}
