/*
 * auth.c - authorization over HTTP: roles, calls of other clients, web pages, host names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/ident.h"
#include "base/log.h"
#include "net/loop.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static int echo(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

static const char *line(const char *who, const char *token, char out[256])
{
    unsigned char d[32];
    char hex[65] = { 0 };
    TRUE(digest_plain(bytes_of(token), d));
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    snprintf(out, 256, "%s:%s", who, hex);
    return out;
}

static char audited[2048];
static void on_audit(const struct log_record *r, void *ctx)
{
    (void)ctx;
    struct buf b;
    buf_init(&b, sizeof audited - 1);
    log_text_add(&b, r);
    TRUE(buf_ok(&b));
    snprintf(audited, sizeof audited, "%.*s", BYTES_ARG(buf_bytes(&b)));
    buf_release(&b);
}

/* alice and bob have the role app, mon is a monitor, root an admin. */
static void begin(struct web *w, const void *param)
{
    static char v[4][256];
    const char *tokens[] = { line("alice:app", "ta", v[0]), line("bob:app", "tb", v[1]),
                             line("mon:monitor", "tm", v[2]), line("root:admin", "tr", v[3]) };
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", echo);
    fixture_start(p, 2);
    web_begin_as(w, p, &(struct api_conf){ .tokens = tokens, .n_tokens = 4, .audit = on_audit });
}

TEST(no_token_no_entry)
{
    struct web w;
    begin(&w, param);
    struct web_answer a = GET(&w, "/v1/calls");
    EQ_INT(a.status, 401);
    EQ_STR(AT(a, "error.code"), "UNAUTHORIZED");
    HAS_STR(a.head.data, "WWW-Authenticate: Bearer");
    w.token = "wrong";
    EQ_INT(GET(&w, "/v1/calls").status, 401);
    w.token = NULL;
    w.more = "Authorization: Basic dGE6\r\n";
    EQ_INT(GET(&w, "/v1/calls").status, 401);
    w.more = NULL;
    EQ_INT(GET(&w, "/healthz").status, 200);
    EQ_INT(GET(&w, "/readyz").status, 200);
    EQ_INT(GET(&w, "/metrics").status, 401);
    web_end(&w);
}

TEST(apps_see_their_own)
{
    struct web w;
    begin(&w, param);
    w.token = "ta";
    struct web_answer a =
        POST(&w, "/v1/calls?wait=10", "{\"id\":\"a1\",\"type\":\"echo\",\"input\":\"secret\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "client"), "alice");
    POST(&w, "/v1/calls", "{\"id\":\"a2\",\"type\":\"nobody\"}");
    w.token = "tb";
    EQ_INT(GET(&w, "/v1/calls/a1").status, 404);
    EQ_INT(GET(&w, "/v1/calls/a1?wait=1").status, 404);
    EQ_INT(GET(&w, "/v1/calls/a1/result").status, 404);
    EQ_INT(GET(&w, "/v1/calls/a1/attempts").status, 404);
    EQ_INT(POST(&w, "/v1/calls/a2/cancel", NULL).status, 404);
    EQ_STR(AT(POST(&w, "/v1/calls/cancel", "{}"), "changed"), "0");
    EQ_STR(AT(GET(&w, "/v1/calls"), "calls"), "[]");
    /* The same id and content from another client: it learns neither the outcome nor anything else
     * about the call. */
    static const char *const paths[] = { "/v1/calls", "/v1/calls?wait=5" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        a = POST(&w, paths[i], "{\"id\":\"a1\",\"type\":\"echo\",\"input\":\"secret\"}");
        EQ_INT(a.status, 409);
        EQ_STR(AT(a, "error.code"), "CONFLICT");
        EQ_STR(AT(a, "error.status"), "null");
        a = POST(&w, paths[i], "{\"id\":\"a2\",\"type\":\"nobody\"}");
        EQ_INT(a.status, 409);
        EQ_PTR(strstr(AT(a, "error.message"), "nobody"), NULL);
    }
    a = POST(&w, "/v1/calls/batch", "{\"calls\":[{\"id\":\"a2\",\"type\":\"nobody\"}]}");
    EQ_STR(AT(a, "calls.0.error.code"), "CONFLICT");
    w.token = "ta";
    EQ_INT(GET(&w, "/v1/calls/a1").status, 200);
    EQ_STR(AT(GET(&w, "/v1/calls?limit=1"), "calls.0.id"), "a2");
    EQ_INT(POST(&w, "/v1/calls/a2/cancel", NULL).status, 200);
    EQ_INT(POST(&w, "/v1/calls/a2/retry", NULL).status, 403);
    EQ_INT(web_ask(&w, "PATCH", "/v1/calls/a2", "{\"priority\":1}").status, 403);
    EQ_INT(POST(&w, "/v1/queues/default/pause", NULL).status, 403);
    web_end(&w);
}

TEST(refusals_say_whose_token_and_what_is_missing)
{
    struct web w;
    begin(&w, param);
    w.token = NULL;
    struct web_answer a = GET(&w, "/v1/queues");
    EQ_INT(a.status, 401);
    HAS_STR(AT(a, "error.message"), "a token is missing: send Authorization: Bearer TOKEN");
    HAS_STR(AT(a, "error.message"), "PAWL_TOKEN");
    w.token = "tm";
    a = POST(&w, "/v1/queues/q/pause", NULL);
    EQ_INT(a.status, 403);
    HAS_STR(AT(a, "error.message"), "(monitor) may not POST /v1/queues/q/pause");
    w.token = "nobody's";
    HAS_STR(AT(GET(&w, "/v1/queues"), "error.message"), "this token is unknown");
    web_end(&w);
}

TEST(monitors_see_no_payload)
{
    struct web w;
    begin(&w, param);
    w.token = "ta";
    POST(&w, "/v1/calls?wait=10",
         "{\"id\":\"x\",\"type\":\"echo\",\"input\":\"secret\",\"tags\":{\"k\":\"secret\"}}");
    w.token = "tm";
    static const char *const paths[] = { "/v1/calls/x", "/v1/calls/x?wait=1",
                                         "/v1/calls?include=input,result" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct web_answer a = GET(&w, paths[i]);
        EQ_INT(a.status, 200);
        EQ_PTR(memmem(a.body.data, a.body.len, "secret", 6), NULL);
        HAS_STR(a.body.data, "\"tags\":null");
    }
    EQ_INT(GET(&w, "/v1/calls/x/result").status, 403);
    EQ_INT(GET(&w, "/v1/calls?tag=k:secret").status, 403);
    EQ_INT(POST(&w, "/v1/calls", "{\"type\":\"t\"}").status, 403);
    EQ_INT(POST(&w, "/v1/calls/x/cancel", NULL).status, 403);
    EQ_INT(POST(&w, "/v1/work/claim", "{\"worker\":\"w\"}").status, 403);
    EQ_INT(GET(&w, "/metrics").status, 200);
    web_end(&w);
}

TEST(admin_actions_are_audited)
{
    struct web w;
    begin(&w, param);
    w.token = "tr";
    POST(&w, "/v1/calls", "{\"id\":\"x y\",\"type\":\"nobody\"}");
    EQ_STR(audited, "");
    EQ_INT(POST(&w, "/v1/calls/x%20y/cancel", NULL).status, 200);
    EQ_STR(
        audited,
        "admin action: client=\"root\" method=\"POST\" path=\"/v1/calls/x%20y/cancel\" status=200");
    EQ_INT(POST(&w, "/v1/calls/x%20y/retry", NULL).status, 202);
    EQ_STR(
        audited,
        "admin action: client=\"root\" method=\"POST\" path=\"/v1/calls/x%20y/retry\" status=202");
    web_end(&w);
}

struct reload {
    struct loop_task task;
    struct web *w;
    const char *token; /* the only one that is left */
};

static void reload(struct loop_task *t)
{
    struct reload *r = (struct reload *)t;
    struct pawl_err err = { 0 };
    OK(api_reload(r->w->api, &(struct api_conf){ .tokens = &r->token, .n_tokens = 1 }, &err), &err);
}

/* A claim that waits for work and a caller that waits for an end: 401 at once, and no work goes to
 * the claim. The other token's wait goes on. */
TEST(waits_of_a_revoked_token_end)
{
    struct web w;
    char other[256];
    begin(&w, param);
    w.token = "ta";
    EQ_INT(POST(&w, "/v1/calls", "{\"id\":\"r\",\"type\":\"nobody\"}").status, 202);
    int claim = web_connect(&w), get = web_connect(&w), bobs = web_connect(&w);
    web_send(&w, claim, "POST", "/v1/work/claim", "{\"types\":[\"later\"],\"wait\":60}");
    web_send(&w, get, "GET", "/v1/calls/r?wait=60", NULL);
    w.token = "tb";
    web_send(&w, bobs, "POST", "/v1/work/claim", "{\"types\":[\"later\"],\"wait\":60}");
    w.token = "tr";
    UNTIL(web_open_requests(&w) == 3);
    w.token = "tb";
    struct reload r = { .task.run = reload, .w = &w, .token = line("bob:app", "tb", other) };
    loop_post(w.loop, &r.task);
    struct web_answer a = web_take(claim);
    EQ_INT(a.status, 401);
    EQ_STR(AT(a, "error.code"), "UNAUTHORIZED");
    EQ_INT(web_take(get).status, 401);
    EQ_INT(POST(&w, "/v1/calls", "{\"id\":\"l\",\"type\":\"later\"}").status, 202);
    a = web_take(bobs);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "calls.0.id"), "l");
    web_end(&w);
}

/* `pawl cron apply` asks about every schedule before it stores one. */
TEST(a_dry_run_is_no_admin_action)
{
    struct web w;
    const char *body = "{\"every\":60,\"call\":{\"type\":\"echo\"}}";
    if (fixture_is_mem(param))
        skip("it has no schedules");
    begin(&w, param);
    w.token = "tr";
    EQ_INT(web_ask(&w, "PUT", "/v1/schedules/s?dry_run=true", body).status, 200);
    EQ_STR(audited, "");
    EQ_INT(web_ask(&w, "PUT", "/v1/schedules/s?dry_run=false", body).status, 201);
    EQ_STR(audited,
           "admin action: client=\"root\" method=\"PUT\" path=\"/v1/schedules/s\" status=201");
    web_end(&w);
}

TEST(token_lines_that_are_none)
{
    static const char *const bad[] = {
        "",
        "name",
        "name:app",
        "name:boss:00",
        "name:app:00",
        ":app:00",
        "a:app:zz",
        "a:app:0000000000000000000000000000000000000000000000000000000000000000:q,,r",
    };
    struct pawl *p = fixture_open(param);
    struct web w;
    web_begin_as(&w, p, NULL);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct pawl_err err = { 0 };
        EQ_INT(api_reload(w.api, &(struct api_conf){ .tokens = &bad[i], .n_tokens = 1 }, &err),
               PAWL_INVALID);
        GT_INT(strlen(err.text), 5);
    }
    EQ_INT(GET(&w, "/v1/calls").status, 200);
    web_end(&w);
}

TEST(web_pages_stay_out)
{
    static const struct {
        const char *more;
        int status;
    } cases[] = {
        { "Origin: http://evil.example\r\n", 403 },
        { "Origin: null\r\n", 403 },
        { "Origin: http://localhost\r\n", 200 },
        { "Origin: https://localhost\r\n", 403 },
        { "Origin: http://localhost:81\r\n", 403 },
        { "Host: evil.example\r\n", 403 },
        { "Host: evil.example\r\nOrigin: http://evil.example\r\n", 403 },
        { "Host: LOCALHOST:99\r\n", 200 },
        { "Host: 127.0.0.1:7295\r\n", 200 },
        { "Host: [::1]:7295\r\n", 200 },
        { "Host: 127.0.0.1.evil.example\r\n", 403 },
        { "Host: friend.example\r\n", 200 },
        { "Origin: http://friend.example:8080\r\n", 200 },
    };
    const char *origins[] = { "http://friend.example:8080" }, *hosts[] = { "friend.example" };
    struct web w;
    web_begin_as(
        &w, fixture_open(param),
        &(struct api_conf){ .origins = origins, .n_origins = 1, .hosts = hosts, .n_hosts = 1 });
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        w.more = cases[i].more;
        struct web_answer a = GET(&w, "/v1/calls");
        if (a.status != cases[i].status)
            FAIL("%s: %d", cases[i].more, a.status);
        if (a.status == 403)
            EQ_STR(AT(a, "error.code"), "FORBIDDEN");
    }
    w.more = "Origin: http://friend.example:8080\r\n";
    struct web_answer a = web_ask(&w, "OPTIONS", "/v1/calls/x", NULL);
    EQ_INT(a.status, 204);
    HAS_STR(a.head.data, "Access-Control-Allow-Origin: http://friend.example:8080\r\n");
    HAS_STR(a.head.data, "Access-Control-Allow-Methods: GET, HEAD, PATCH\r\n");
    HAS_STR(GET(&w, "/v1/calls").head.data, "Access-Control-Allow-Origin: http://friend");
    web_end(&w);
}
