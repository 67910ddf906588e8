/*
 * info.c - what the server reports about itself: info, health, nodes, draining, the page, and which
 * clients may work on which queue.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "exec/node.h"
#include "lib/lib.h"
#include "web.h"

RUNS_ON(ENGINES_ALL)

TEST(info)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = GET(&w, "/v1/info");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "version"), PAWL_VERSION);
    EQ_STR(AT(a, "engine"), engine_of(param)->says);
    EQ_STR(AT(a, "node"), "fixture");
    EQ_INT(strlen(AT(a, "now")), 27);
    EQ_STR(AT(a, "limits.input"), "1048576");
    EQ_STR(AT(a, "limits.wait"), "300");
    EQ_STR(AT(a, "limits.pending_key"), "100000");
    web_end(&w);
}

static const char *why;

static const char *not_ready(void *ctx)
{
    (void)ctx;
    return why;
}

TEST(alive_and_ready)
{
    struct web w;
    web_begin_as(&w, fixture_open(param), &(struct api_conf){ .not_ready = not_ready });
    EQ_INT(GET(&w, "/healthz").status, 200);
    struct web_answer a = GET(&w, "/readyz");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "ready"), "true");
    EQ_STR(AT(a, "reason"), "null");
    why = "it rains";
    a = GET(&w, "/readyz");
    EQ_INT(a.status, 503);
    EQ_STR(AT(a, "ready"), "false");
    EQ_STR(AT(a, "reason"), "it rains");
    EQ_INT(GET(&w, "/healthz").status, 200);
    why = NULL;
    POST(&w, "/v1/nodes/fixture/drain", NULL);
    a = GET(&w, "/readyz");
    EQ_INT(a.status, 503);
    HAS_STR(AT(a, "reason"), "drained");
    POST(&w, "/v1/nodes/fixture/undrain", NULL);
    EQ_INT(GET(&w, "/readyz").status, 200);
    web_end(&w);
}

TEST(the_page)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = GET(&w, "/");
    EQ_INT(a.status, 200);
    HAS_STR(a.head.data, "text/html");
    HAS_STR(a.body.data, "/openapi.json");
    HAS_STR(a.body.data, web_text("curl '%s/v1/calls?wait=10' -d", http_address(w.server)));
    HAS_STR(a.body.data, "href=\"/v1/schedules\"");
    a = GET(&w, "/favicon.ico");
    EQ_INT(a.status, 204);
    EQ_UINT(a.body.len, 0);
    web_end(&w);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

TEST(a_node_without_handlers_shows_itself)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = GET(&w, "/v1/nodes");
    EQ_STR(AT(a, "nodes.0.node"), "fixture");
    EQ_STR(AT(a, "nodes.0.boot"), exec_boot(w.p->e));
    EQ_STR(AT(a, "nodes.0.status"), "active");
    EQ_STR(AT(a, "nodes.0.address"), http_address(w.server));
    EQ_STR(AT(a, "nodes.0.slots"), "0");
    EQ_STR(AT(a, "nodes.0.connections"), "1");
    EQ_STR(AT(a, "nodes.0.queues"), "null");
    GT_INT(web_int(a, "nodes.0.memory"), 1 << 20);
    FALSE(AT(a, "nodes.1"));
    a = GET(&w, "/v1/leaders");
    EQ_STR(AT(a, "leaders.0.role"), "maintenance");
    EQ_STR(AT(a, "leaders.0.node"), "null");
    EQ_STR(AT(a, "leaders.0.epoch"), "0");
    EQ_STR(AT(a, "leaders.1.role"), "scheduler");
    FALSE(AT(a, "leaders.2"));
    web_end(&w);
}

TEST(a_node_that_works_shows_how_busy_it_is)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "stuck", fixture_blocks);
    fixture_start(p, 3);
    web_begin_as(&w, p, NULL);
    POST(&w, "/v1/calls", "{\"type\":\"stuck\"}");
    UNTIL(fixture_inside == 1);
    struct web_answer a = GET(&w, "/v1/nodes");
    EQ_STR(AT(a, "nodes.0.slots"), "3");
    EQ_STR(AT(a, "nodes.0.busy"), "1");
    FALSE(AT(a, "nodes.1"));
    fixture_open_gate();
    fixture_drain(p);
    web_end(&w);
}

TEST(a_drained_node_begins_nothing)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "echo", fixture_echo);
    fixture_start(p, 2);
    web_begin_as(&w, p, NULL);
    struct web_answer a = POST(&w, "/v1/nodes/fixture/drain", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "status"), "draining");
    EQ_STR(AT(GET(&w, "/v1/nodes"), "nodes.0.status"), "draining");
    a = POST(&w, "/v1/calls?wait=0.2", "{\"type\":\"echo\",\"id\":\"a\"}");
    EQ_INT(a.status, 202);
    EQ_STR(AT(a, "status"), "pending");
    EQ_STR(AT(POST(&w, "/v1/nodes/fixture/undrain", NULL), "status"), "active");
    EQ_STR(AT(GET(&w, "/v1/calls/a?wait=30"), "status"), "completed");
    web_end(&w);
}

/* Calls that were claimed ahead are handed back, and no attempt is counted. */
TEST(draining_gives_back_what_has_not_begun)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "stuck", fixture_blocks);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    for (int i = 0; i < 20; i++)
        POST(&w, "/v1/calls", web_text("{\"type\":\"stuck\",\"id\":\"c%d\"}", i));
    UNTIL(fixture_inside == 1);
    EQ_INT(POST(&w, "/v1/nodes/fixture/drain", NULL).status, 200);
    UNTIL(fixture_count(p, PAWL_PROCESSING) == 1);
    struct web_answer a = GET(&w, "/v1/calls?status=pending");
    for (int i = 0; i < 19; i++) {
        EQ_STR(AT(a, web_text("calls.%d.attempts", i)), "0");
        EQ_STR(AT(a, web_text("calls.%d.lost", i)), "0");
    }
    fixture_open_gate();
    POST(&w, "/v1/nodes/fixture/undrain", NULL);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 20);
    web_end(&w);
}

/* Every node answers questions about any other node. */
TEST(another_node_is_drained_from_here)
{
    struct web w;
    struct pawl *p = fixture_open(param),
                *other = fixture_open_as(param, (struct pawl_options){ .node = "elsewhere" });
    fixture_on(other, "echo", fixture_echo);
    fixture_start(other, 1);
    web_begin_as(&w, p, NULL);
    struct web_answer a = POST(&w, "/v1/nodes/elsewhere/drain", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "node"), "elsewhere");
    EQ_STR(AT(a, "status"), "draining");
    EQ_STR(AT(GET(&w, "/v1/nodes"), "nodes.0.status"), "draining");
    UNTIL(exec_drained(other->e));
    POST(&w, "/v1/calls", "{\"type\":\"echo\",\"id\":\"a\"}");
    EQ_STR(AT(GET(&w, "/v1/calls/a?wait=0.2"), "status"), "pending");
    EQ_STR(AT(POST(&w, "/v1/nodes/elsewhere/undrain", NULL), "status"), "active");
    EQ_STR(AT(GET(&w, "/v1/calls/a?wait=30"), "status"), "completed");
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "node"), "elsewhere");
    pawl_close(other);
    web_end(&w);
}

TEST(nobody_drains_a_node_that_is_not_there)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = POST(&w, "/v1/nodes/elsewhere/drain", NULL);
    EQ_INT(a.status, 404);
    EQ_STR(AT(a, "error.message"), "no node \"elsewhere\"");
    web_end(&w);
}

/* A node that works takes the roles; a node that leaves gives them up. */
TEST(leaders_are_shown)
{
    struct web w;
    struct pawl *p = fixture_open(param),
                *other = fixture_open_as(param, (struct pawl_options){ .node = "elsewhere" });
    fixture_on(other, "echo", fixture_echo);
    fixture_start(other, 1);
    web_begin_as(&w, p, NULL);
    struct web_answer a;
    UNTIL((a = GET(&w, "/v1/leaders"), strcmp(AT(a, "leaders.0.node"), "elsewhere") == 0));
    EQ_STR(AT(a, "leaders.0.epoch"), "1");
    TRUE(strcmp(AT(a, "leaders.0.acquired_at"), AT(a, "leaders.0.lease_until")) < 0);
    pawl_close(other);
    EQ_STR(AT(GET(&w, "/v1/leaders"), "leaders.0.node"), "null");
    EQ_STR(AT(GET(&w, "/v1/leaders"), "leaders.0.epoch"), "1");
    web_end(&w);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static char *token_line(const char *name, const char *role, const char *secret, const char *queues)
{
    unsigned char sum[32];
    char hex[65];
    digest_plain(bytes_of(secret), sum);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    char *line;
    GT_INT(
        asprintf(&line, "%s:%s:%s%s%s", name, role, hex, queues ? ":" : "", queues ? queues : ""),
        0);
    return line;
}

TEST(an_app_works_its_queues_only)
{
    struct web w;
    const char *lines[] = { token_line("boss", "admin", "s-admin", NULL),
                            token_line("mailer", "app", "s-mail", "mail,post"),
                            token_line("eye", "monitor", "s-eye", NULL) };
    web_begin_as(&w, fixture_open(param), &(struct api_conf){ .tokens = lines, .n_tokens = 3 });
    w.token = "s-admin";
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"id\":\"d\"}");
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"id\":\"m\",\"queue\":\"mail\"}");
    w.token = "s-mail";
    struct web_answer a = POST(&w, "/v1/work/claim", "{\"queues\":[\"default\"]}");
    EQ_INT(a.status, 403);
    HAS_STR(AT(a, "error.message"), "default");
    a = POST(&w, "/v1/work/claim", "{\"max\":10}");
    EQ_STR(AT(a, "calls.0.id"), "m");
    FALSE(AT(a, "calls.1"));
    const char *done =
        web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"m\",\"result\":1,\"calls\":"
                 "[{\"type\":\"t\"}]}]}",
                 AT(a, "lease"));
    EQ_INT(POST(&w, "/v1/work/finish", done).status, 200);
    EQ_STR(AT(GET(&w, "/v1/calls/m.1"), "client"), "mailer");
    EQ_INT(POST(&w, "/v1/queues/mail/pause", NULL).status, 403);
    w.token = "s-eye";
    EQ_INT(POST(&w, "/v1/work/claim", "{}").status, 403);
    EQ_INT(GET(&w, "/v1/queues").status, 200);
    EQ_INT(GET(&w, "/metrics").status, 200);
    w.token = NULL;
    EQ_INT(GET(&w, "/metrics").status, 401);
    EQ_INT(GET(&w, "/healthz").status, 200);
    EQ_INT(GET(&w, "/readyz").status, 200);
    for (int i = 0; i < 3; i++)
        free((char *)lines[i]);
    web_end(&w);
}
