/*
 * keys.c - the list of keys, blocked keys and how they are unblocked, positions, and states written
 * by HTTP workers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/ident.h"
#include "base/limits.h"
#include "base/log.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

static void submit(struct web *w, const char *id, const char *key, const char *more)
{
    struct web_answer a = POST(
        w, "/v1/calls", web_text("{\"id\":\"%s\",\"type\":\"T\",\"key\":\"%s\"%s}", id, key, more));
    if (a.status != 202)
        FAIL("%s: %d: %.*s", id, a.status, BYTES_ARG(a.body));
}

/* Claims the next call. Returns its lease. */
static const char *claim(struct web *w, const char *id)
{
    struct web_answer a = POST(w, "/v1/work/claim", "{\"lease_for\":300}");
    if (!AT(a, "calls.0.id"))
        FAIL("nothing to claim, not %s", id);
    EQ_STR(AT(a, "calls.0.id"), id);
    return AT(a, "lease");
}

static struct web_answer finish(struct web *w, const char *lease, const char *results)
{
    return POST(w, "/v1/work/finish",
                web_text("{\"lease\":\"%s\",\"results\":[%s]}", lease, results));
}

/* Makes a key that the call `id` blocks. */
static void block(struct web *w, const char *id, const char *key)
{
    submit(w, id, key, ",\"on_dead\":\"block\",\"priority\":9");
    const char *lease = claim(w, id);
    struct web_answer a =
        finish(w, lease, web_text("{\"id\":\"%s\",\"error\":\"no\",\"retry\":false}", id));
    EQ_STR(AT(a, "results.0.status"), "failed");
}

static void refused(struct web_answer a, int status, const char *code)
{
    if (a.status != status)
        FAIL("%d, not %d: %.*s", a.status, status, BYTES_ARG(a.body));
    EQ_STR(AT(a, "error.code"), code);
}

/* ---- The list -------------------------------------------------------------------------------- */

TEST(keys_that_are_not_idle)
{
    struct web w;
    web_begin(&w, param);
    EQ_STR(AT(GET(&w, "/v1/keys"), "keys"), "[]");
    EQ_STR(AT(GET(&w, "/v1/keys"), "next"), "null");
    block(&w, "b1", "b");
    submit(&w, "b2", "b", "");
    submit(&w, "h1", "h", ",\"priority\":5");
    submit(&w, "h2", "h", "");
    claim(&w, "h1");
    submit(&w, "o1", "o", "");
    submit(&w, "d1", "d", ",\"delay\":600"); /* has not joined: its key is idle */
    struct web_answer a = GET(&w, "/v1/keys");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "keys.0.key"), "b");
    EQ_STR(AT(a, "keys.0.head"), "b1");
    EQ_STR(AT(a, "keys.0.head_status"), "failed");
    EQ_STR(AT(a, "keys.0.blocked"), "true");
    EQ_STR(AT(a, "keys.0.pending"), "1");
    EQ_STR(AT(a, "keys.0.since"), AT(GET(&w, "/v1/calls/b1"), "finished_at"));
    EQ_STR(AT(a, "keys.1.key"), "h");
    EQ_STR(AT(a, "keys.1.head"), "h1");
    EQ_STR(AT(a, "keys.1.head_status"), "processing");
    EQ_STR(AT(a, "keys.1.blocked"), "false");
    EQ_STR(AT(a, "keys.1.pending"), "1");
    EQ_STR(AT(a, "keys.2.key"), "o");
    EQ_STR(AT(a, "keys.2.head_status"), "pending");
    EQ_STR(AT(a, "keys.2.waiting_for"), "worker");
    EQ_STR(AT(a, "keys.2.pending"), "1");
    FALSE(AT(a, "keys.3"));
    a = GET(&w, "/v1/keys?blocked=true");
    EQ_STR(AT(a, "keys.0.key"), "b");
    FALSE(AT(a, "keys.1"));
    EQ_STR(AT(GET(&w, "/v1/keys?blocked=false"), "keys.1.key"), "h");
    struct web_answer m = GET(&w, "/metrics");
    HAS_STR(m.body.data, "\npawl_keys_blocked 1\n");
    web_end(&w);
}

TEST(page_by_page)
{
    static const char *const names[] = { "a", "a b", "a/b", "session:1", "\303\251" };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        submit(&w, web_text("c%zu", i), names[i], "");
    const char *cursor = "";
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct web_answer a = GET(&w, web_text("/v1/keys?limit=1%s", cursor));
        EQ_STR(AT(a, "keys.0.key"), names[i]);
        FALSE(AT(a, "keys.1"));
        cursor = web_text("&cursor=%s", AT(a, "next"));
    }
    struct web_answer a = strcmp(cursor, "&cursor=null")
                              ? GET(&w, web_text("/v1/keys?limit=1%s", cursor))
                              : GET(&w, "/v1/keys?blocked=true");
    EQ_STR(AT(a, "keys"), "[]");
    EQ_STR(AT(a, "next"), "null");
    web_end(&w);
}

TEST(lists_are_read_strictly)
{
    static const char *const bad[] = { "?blocked=yes", "?blocked=1",      "?limit=0",
                                       "?limit=1001",  "?cursor=",        "?cursor=6",
                                       "?cursor=xy",   "?cursor=00",      "?cursor=6161616161zz",
                                       "?what=1",      "?limit=1&limit=1" };
    struct web w;
    web_begin(&w, param);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct web_answer a = GET(&w, web_text("/v1/keys%s", bad[i]));
        if (a.status != 400)
            FAIL("%s: %d", bad[i], a.status);
    }
    char cursor[513] = { 0 };
    memset(cursor, '6', 512); /* 256 bytes: longer than any name */
    EQ_INT(GET(&w, web_text("/v1/keys?cursor=%s", cursor)).status, 400);
    web_end(&w);
}

/* ---- Blocked keys ---------------------------------------------------------------------------- */

TEST(skip_lets_the_next_run)
{
    struct web w;
    web_begin(&w, param);
    block(&w, "b1", "k");
    submit(&w, "b2", "k", "");
    struct web_answer a = GET(&w, "/v1/calls/b2");
    EQ_STR(AT(a, "waiting_for"), "key");
    EQ_STR(AT(a, "position"), "1");
    EQ_STR(AT(POST(&w, "/v1/work/claim", ""), "lease"), "null");
    int worker = web_connect(&w);
    web_send(&w, worker, "POST", "/v1/work/claim", "{\"wait\":60}");
    UNTIL(web_open_requests(&w) == 1);
    a = POST(&w, "/v1/keys/k/unblock", "{\"action\":\"skip\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "key"), "k");
    EQ_STR(AT(a, "action"), "skip");
    EQ_STR(AT(a, "id"), "b1");
    EQ_STR(AT(web_take(worker), "calls.0.id"), "b2"); /* a waiting claim is woken */
    close(worker);
    EQ_STR(AT(GET(&w, "/v1/calls/b1"), "status"), "failed");
    refused(POST(&w, "/v1/keys/k/unblock", "{\"action\":\"skip\"}"), 409, "STATE");
    web_end(&w);
}

TEST(retry_runs_the_one_that_blocks_first)
{
    struct web w;
    web_begin(&w, param);
    block(&w, "b1", "k/1");
    submit(&w, "b2", "k/1", "");
    const char *no = AT(GET(&w, "/v1/calls/b1"), "key_no");
    struct web_answer a = POST(&w, "/v1/keys/k%2F1/unblock", "{\"action\":\"retry\"}");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "action"), "retry");
    const char *lease = claim(&w, "b1");
    a = GET(&w, "/v1/calls/b1");
    EQ_STR(AT(a, "redrives"), "1");
    EQ_STR(AT(a, "attempts"), "0");
    EQ_STR(AT(a, "key_no"), no);
    EQ_INT(finish(&w, lease, "{\"id\":\"b1\",\"result\":1}").status, 200);
    claim(&w, "b2");
    web_end(&w);
}

TEST(a_retry_of_the_call_unblocks_as_well)
{
    struct web w;
    web_begin(&w, param);
    block(&w, "b1", "k");
    submit(&w, "b2", "k", "");
    EQ_INT(POST(&w, "/v1/calls/b1/retry", NULL).status, 202);
    claim(&w, "b1");
    web_end(&w);
}

TEST(decisions_are_read_strictly)
{
    static const char *const bad[] = { "",
                                       "{}",
                                       "{\"action\":\"unblock\"}",
                                       "{\"action\":\"SKIP\"}",
                                       "{\"action\":null}",
                                       "{\"action\":1}",
                                       "{\"action\":\"skip\",\"action\":\"retry\"}",
                                       "{\"action\":\"skip\",\"what\":1}",
                                       "[]",
                                       "{" };
    struct web w;
    web_begin(&w, param);
    block(&w, "b1", "k");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refused(POST(&w, "/v1/keys/k/unblock", bad[i]), 400, "INVALID");
    refused(POST(&w, "/v1/keys/nobody/unblock", "{\"action\":\"skip\"}"), 404, "NOT_FOUND");
    refused(POST(&w, "/v1/keys/../unblock", "{\"action\":\"skip\"}"), 400, "INVALID");
    char name[257] = { 0 };
    memset(name, 'k', 256);
    refused(POST(&w, web_text("/v1/keys/%s/unblock", name), "{\"action\":\"skip\"}"), 400,
            "INVALID");
    refused(GET(&w, "/v1/keys/k/unblock"), 405, "METHOD");
    submit(&w, "o", "offered", "");
    refused(POST(&w, "/v1/keys/offered/unblock", "{\"action\":\"retry\"}"), 409, "STATE");
    EQ_STR(AT(GET(&w, "/v1/keys?blocked=true"), "keys.0.key"), "k");
    web_end(&w);
}

/* ---- States of calls worked by hand ---------------------------------------------------------- */

TEST(a_claim_brings_the_state_and_a_finish_writes_it)
{
    static const struct {
        const char *finish, *state, *base64;
    } steps[] = {
        { "\"state\":{\"n\": 1.0}", "{\"n\": 1.0}", "null" },
        { "", "{\"n\": 1.0}", "null" },
        { "\"state_delete\":false", "{\"n\": 1.0}", "null" },
        { "\"state\":null", "null", "null" },
        { "\"state_base64\":\"AP8=\"", "null", "AP8=" },
        { "\"state_delete\":true", NULL, NULL },
        { "\"state_delete\":true", NULL, NULL },
        { "\"state\":[]", "[]", "null" },
    };
    struct web w;
    int64_t version = 0;
    web_begin(&w, param);
    for (size_t i = 0; i <= COUNT_OF(steps); i++) {
        submit(&w, web_text("c%zu", i), "k", "");
        struct web_answer a = POST(&w, "/v1/work/claim", "");
        EQ_STR(AT(a, "calls.0.key"), "k");
        EQ_INT(web_int(a, "calls.0.key_no"), (int)i + 1);
        EQ_STR(AT(a, "calls.0.position"), "0");
        const char *state = i ? steps[i - 1].state : NULL;
        EQ_STR(AT(a, "calls.0.state"), state ? state : "null");
        EQ_STR(AT(a, "calls.0.state_base64"), state ? steps[i - 1].base64 : "null");
        if (state)
            GE_INT(web_int(a, "calls.0.state_version"), version);
        else
            EQ_STR(AT(a, "calls.0.state_version"), "null");
        if (state)
            version = web_int(a, "calls.0.state_version");
        struct web_answer f = finish(&w, AT(a, "lease"),
                                     web_text("{\"id\":\"c%zu\",\"result\":1%s%s}", i,
                                              i < COUNT_OF(steps) && *steps[i].finish ? "," : "",
                                              i < COUNT_OF(steps) ? steps[i].finish : ""));
        if (f.status != 200)
            FAIL("%zu: %.*s", i, BYTES_ARG(f.body));
    }
    EQ_STR(AT(GET(&w, "/v1/objects/T/k"), "state"), "[]");
    web_end(&w);
}

TEST(states_of_a_finish_are_read_strictly)
{
    static const char *const bad[] = {
        "\"result\":1,\"state\":1,\"state_delete\":true",
        "\"result\":1,\"state\":1,\"state_base64\":\"\"",
        "\"result\":1,\"state_base64\":\"?\"",
        "\"result\":1,\"state_delete\":1",
        "\"error\":\"x\",\"state\":1",
        "\"error\":\"x\",\"state_delete\":true",
        "\"release\":true,\"state\":1",
        "\"retry_in\":1,\"state_base64\":\"\"",
    };
    struct web w;
    web_begin(&w, param);
    submit(&w, "c", "k", "");
    const char *lease = claim(&w, "c");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refused(finish(&w, lease, web_text("{\"id\":\"c\",%s}", bad[i])), 400, "INVALID");
    char *text = malloc(STATE_LEN_MAX + 2);
    memset(text, 'x', STATE_LEN_MAX + 1);
    text[0] = text[STATE_LEN_MAX] = '"';
    text[STATE_LEN_MAX + 1] = 0;
    refused(finish(&w, lease, web_text("{\"id\":\"c\",\"result\":1,\"state\":%s}", text)), 413,
            "TOO_LARGE");
    free(text);
    EQ_STR(AT(GET(&w, "/v1/calls/c"), "status"), "processing");
    refused(GET(&w, "/v1/objects/T/k"), 404, "NOT_FOUND");
    /* A call without a key cannot have a state. */
    POST(&w, "/v1/calls", "{\"id\":\"plain\",\"type\":\"T\"}");
    lease = claim(&w, "plain");
    struct web_answer a = finish(&w, lease, "{\"id\":\"plain\",\"result\":1,\"state\":1}");
    refused(a, 400, "INVALID");
    HAS_STR(AT(a, "error.message"), "has no key");
    web_end(&w);
}

TEST(calls_sent_to_a_key_stand_in_its_line)
{
    struct web w;
    web_begin(&w, param);
    submit(&w, "a", "k1", "");
    const char *lease = claim(&w, "a");
    EQ_INT(finish(&w, lease,
                  "{\"id\":\"a\",\"result\":1,\"state\":1,\"calls\":["
                  "{\"type\":\"T\",\"key\":\"k2\",\"on_dead\":\"block\"},"
                  "{\"type\":\"T\",\"key\":\"k2\"},{\"type\":\"T\",\"key\":\"k1\"}]}")
               .status,
           200);
    EQ_STR(AT(GET(&w, "/v1/calls/a.1"), "position"), "1");
    EQ_STR(AT(GET(&w, "/v1/calls/a.2"), "position"), "2");
    EQ_STR(AT(GET(&w, "/v1/calls/a.3"), "position"), "1");
    web_end(&w);
}

/* ---- Places ---------------------------------------------------------------------------------- */

TEST(places_in_line)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/calls/batch",
                               "{\"calls\":[{\"id\":\"a\",\"type\":\"T\",\"key\":\"k\"},"
                               "{\"id\":\"b\",\"type\":\"T\",\"key\":\"k\",\"priority\":9},"
                               "{\"id\":\"c\",\"type\":\"T\",\"key\":\"k\"},"
                               "{\"id\":\"x\",\"type\":\"none\"}]}");
    EQ_STR(AT(a, "calls.0.position"), "1");
    EQ_STR(AT(a, "calls.1.position"), "2"); /* within one key the order wins over the priority */
    EQ_STR(AT(a, "calls.2.position"), "3");
    EQ_STR(AT(a, "calls.3.position"), "null");
    EQ_STR(AT(a, "calls.3.key"), "null");
    claim(&w, "a");
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "position"), "0");
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "key_no"), "1");
    EQ_STR(AT(GET(&w, "/v1/calls/b"), "position"), "1");
    EQ_STR(AT(GET(&w, "/v1/calls/c"), "position"), "2");
    EQ_INT(POST(&w, "/v1/calls/b/cancel", NULL).status, 200);
    EQ_STR(AT(GET(&w, "/v1/calls/b"), "position"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/c"), "position"), "1");
    submit(&w, "d", "k", ",\"delay\":600");
    EQ_STR(AT(GET(&w, "/v1/calls/d"), "position"), "null");
    EQ_STR(AT(GET(&w, "/v1/calls/d"), "waiting_for"), "time");
    web_end(&w);
}

TEST(a_line_has_an_end)
{
    struct web w;
    web_begin_as(
        &w,
        fixture_open_as(param, (struct pawl_options){ PAWL_OPTIONS_INIT, .max_pending_key = 2 }),
        NULL);
    submit(&w, "a", "k", "");
    submit(&w, "b", "k", "");
    static const char *const paths[] = { "/v1/calls", "/v1/calls?wait=5" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct web_answer a = POST(&w, paths[i], "{\"id\":\"c\",\"type\":\"T\",\"key\":\"k\"}");
        refused(a, 429, "FULL");
        HAS_STR(a.head.data, "Retry-After: 1\r\n");
        HAS_STR(AT(a, "error.message"), "key \"k\"");
        EQ_STR(AT(a, "error.id"), "c");
    }
    refused(POST(&w, "/v1/objects/T/k/m", "1"), 429, "FULL");
    struct web_answer a = POST(&w, "/v1/calls/batch",
                               "{\"calls\":[{\"type\":\"T\",\"key\":\"k\"},{\"type\":\"T\"}]}");
    EQ_STR(AT(a, "calls.0.error.code"), "FULL");
    EQ_STR(AT(a, "calls.1.status"), "pending");
    EQ_INT(GET(&w, "/v1/calls/c").status, 404);
    EQ_INT(POST(&w, "/v1/calls/a/cancel", NULL).status, 200);
    submit(&w, "c", "k", "");
    web_end(&w);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static const char *line(const char *who, const char *token)
{
    unsigned char d[32];
    char hex[65] = { 0 };
    TRUE(digest_plain(bytes_of(token), d));
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    return web_text("%s:%s", who, hex);
}

static char audited[512];
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

TEST(roles)
{
    const char *tokens[] = { line("app:app", "ta"), line("mon:monitor", "tm"),
                             line("root:admin", "tr") };
    static const struct {
        const char *token;
        int list, decide, session;
    } rows[] = { { "ta", 403, 403, 202 }, { "tm", 200, 403, 403 }, { "tr", 200, 200, 202 } };
    struct web w;
    web_begin_as(&w, fixture_open(param),
                 &(struct api_conf){ .tokens = tokens, .n_tokens = 3, .audit = on_audit });
    w.token = "tr";
    block(&w, "b1", "k");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        w.token = rows[i].token;
        EQ_INT(GET(&w, "/v1/keys").status, rows[i].list);
        EQ_INT(POST(&w, "/v1/keys/k/unblock", "{\"action\":\"skip\"}").status, rows[i].decide);
        if (!strcmp(w.token, "tr"))
            EQ_STR(audited, "admin action: client=\"root\" method=\"POST\" "
                            "path=\"/v1/keys/k/unblock\" status=200");
        EQ_INT(POST(&w, "/v1/sessions/s/requests?wait=0", "{\"type\":\"t\"}").status,
               rows[i].session);
    }
    /* A session belongs to the key, not to the client: another client's request joins the same
     * queue. */
    w.token = "ta";
    struct web_answer a = POST(&w, "/v1/sessions/s/requests?wait=0", "{\"type\":\"t\"}");
    EQ_STR(AT(a, "client"), "app");
    EQ_STR(AT(a, "position"), "3");
    web_end(&w);
}
