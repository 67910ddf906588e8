/*
 * queues.c - queues over HTTP: pending calls, rates, pause and resume.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "web.h"

RUNS_ON(ENGINES_ALL)

/* The index of a queue in the list, by its name. */
static const char *of(struct web_answer a, const char *queue, const char *member)
{
    for (int i = 0;; i++) {
        const char *name = AT(a, web_text("queues.%d.queue", i));
        if (!name)
            return NULL;
        if (!strcmp(name, queue))
            return AT(a, web_text("queues.%d.%s", i, member));
    }
}

TEST(none_at_first)
{
    struct web w;
    web_begin(&w, param);
    struct web_answer a = GET(&w, "/v1/queues");
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "queues"), "[]");
    web_end(&w);
}

TEST(counts_what_is_there)
{
    struct web w;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"queue\":\"q\"}");
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"queue\":\"q\"}");
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"queue\":\"q\",\"delay\":60}");
    POST(&w, "/v1/work/claim", "{\"queues\":[\"q\"]}");
    struct web_answer a = GET(&w, "/v1/queues");
    EQ_STR(of(a, "q", "paused"), "false");
    EQ_STR(of(a, "q", "pending"), "2");
    EQ_STR(of(a, "q", "due"), "1");
    EQ_STR(of(a, "q", "processing"), "1");
    GE_INT((int64_t)(strtod(of(a, "q", "oldest_pending_seconds"), NULL) * 1000), 0);
    web_end(&w);
}

/* Three calls are accepted, one is finished by hand and one by a handler. */
TEST(says_how_fast_it_moves)
{
    struct web w;
    struct pawl *p = fixture_open(param);
    fixture_on(p, "here", fixture_echo);
    fixture_start(p, 1);
    web_begin_as(&w, p, NULL);
    POST(&w, "/v1/calls?wait=30", "{\"type\":\"here\",\"queue\":\"q\"}");
    POST(&w, "/v1/calls", "{\"type\":\"by_hand\",\"queue\":\"q\",\"id\":\"a\"}");
    POST(&w, "/v1/calls", "{\"type\":\"nobody\",\"queue\":\"q\"}");
    struct web_answer c = POST(&w, "/v1/work/claim", "{\"types\":[\"by_hand\"]}");
    const char *done =
        web_text("{\"lease\":\"%s\",\"results\":[{\"id\":\"a\",\"result\":1}]}", AT(c, "lease"));
    EQ_INT(POST(&w, "/v1/work/finish", done).status, 200);
    EQ_INT(POST(&w, "/v1/work/finish", done).status, 200); /* a repeat is not a second end */
    struct web_answer a = GET(&w, "/v1/queues");
    EQ_STR(of(a, "q", "accepted_per_second"), "0.3");
    EQ_STR(of(a, "q", "ended_per_second"), "0.2");
    web_end(&w);
}

TEST(pause_and_resume)
{
    struct web w;
    web_begin(&w, param);
    POST(&w, "/v1/calls", "{\"type\":\"t\",\"id\":\"a\"}");
    struct web_answer a = POST(&w, "/v1/queues/default/pause", NULL);
    EQ_INT(a.status, 200);
    EQ_STR(AT(a, "queue"), "default");
    EQ_STR(AT(a, "paused"), "true");
    EQ_STR(of(GET(&w, "/v1/queues"), "default", "paused"), "true");
    EQ_STR(AT(GET(&w, "/v1/calls/a"), "waiting_for"), "paused");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{}"), "lease"), "null");
    EQ_STR(AT(POST(&w, "/v1/queues/default/resume", NULL), "paused"), "false");
    EQ_STR(AT(POST(&w, "/v1/work/claim", "{}"), "calls.0.id"), "a");
    web_end(&w);
}

TEST(a_queue_that_was_only_paused_goes_away)
{
    struct web w;
    web_begin(&w, param);
    EQ_INT(POST(&w, "/v1/queues/typo/pause", NULL).status, 200);
    EQ_STR(of(GET(&w, "/v1/queues"), "typo", "paused"), "true");
    EQ_INT(POST(&w, "/v1/queues/typo/resume", NULL).status, 200);
    EQ_STR(AT(GET(&w, "/v1/queues"), "queues"), "[]");
    web_end(&w);
}

TEST(a_queue_need_not_exist_and_its_name_is_one_segment)
{
    struct web w;
    web_begin(&w, param);
    EQ_INT(POST(&w, "/v1/queues/a%2Fb%20c/pause", NULL).status, 200);
    EQ_STR(of(GET(&w, "/v1/queues"), "a/b c", "paused"), "true");
    EQ_INT(POST(&w, "/v1/queues/%01/pause", NULL).status, 400);
    EQ_INT(GET(&w, "/v1/queues/a/pause").status, 405);
    EQ_INT(POST(&w, "/v1/queues/a/pause", "{\"x\":1}").status, 400);
    web_end(&w);
}
