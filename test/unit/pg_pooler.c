/*
 * pg_pooler.c - PostgreSQL behind a pooler in transaction mode: it is detected, and everything
 * works by polling.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "pooler.h"
#include "fixture.h"
#include "store/store.h"

RUNS_ON_ENGINE("pooled")

static const char *found(const char *url, const char *name)
{
    static char text[400];
    struct store *s = NULL;
    struct pawl_err err;
    struct findings f;
    struct arena a;
    arena_init(&a, 1 << 20);
    OK(store_open(&(struct store_conf){ .url = url }, &s, &err), &err);
    OK(store_doctor(s, &a, &f, &err), &err);
    text[0] = 0;
    for (size_t i = 0; i < f.n; i++)
        if (strcmp(f.v[i].name, name) == 0)
            snprintf(text, sizeof text, "%s", f.v[i].text);
    store_close(s);
    arena_release(&a);
    return text;
}

TEST(the_doctor_notices)
{
    char straight[300];
    snprintf(straight, sizeof straight, "%s", db_database(&db_postgres));
    EQ_STR(found(straight, "pooler"), "none");
    HAS_STR(found(pooler_url(straight), "pooler"), "pooler detected");
}

TEST(hints_are_not_waited_for)
{
    struct store *s = NULL;
    struct pawl_err err;
    struct hint h = { .wake_fd = -1, .until_us = INT64_MAX };
    OK(store_open(&(struct store_conf){ .url = engine_url(param) }, &s, &err), &err);
    EQ_STATUS(store_hint(s, &h, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "pooler");
    store_close(s);
}

static int adds(struct pawl_call *c)
{
    struct pawl_err err;
    enum pawl_status st = pawl_sql(c, "UPDATE box SET n = n + 1", NULL, 0, NULL, &err);
    if (st == PAWL_BUSY) /* the other session has locked the row for longer than the timeout */
        return pawl_later(c, 10 * FIXTURE_MS);
    OK(st, &err);
    return pawl_reply_int(c, 1);
}

/* Two nodes, keys, handlers with SQL: each call counts once, on whichever session it ran; and no
 * session state of ours is left for other clients. */
TEST(two_nodes_work_through_it)
{
    enum { CALLS = 60 };
    char straight[300], url[300];
    snprintf(straight, sizeof straight, "%s", db_database(&db_postgres));
    snprintf(url, sizeof url, "%s", pooler_url(straight));
    db_ask(&db_postgres, "CREATE TABLE box (n bigint); INSERT INTO box VALUES (0);");
    struct pawl *a = fixture_open_as(NULL, (struct pawl_options){ .db = url, .node = "a" });
    struct pawl *b = fixture_open_as(NULL, (struct pawl_options){ .db = url, .node = "b" });
    fixture_on(a, "echo", fixture_echo);
    fixture_on(b, "add", adds);
    fixture_start(a, 2);
    fixture_start(b, 2);
    for (int i = 0; i < CALLS; i++) {
        char id[32], key[8];
        snprintf(id, sizeof id, "c%d", i);
        snprintf(key, sizeof key, "k%d", i % 3);
        fixture_submit_as(i % 4 < 2 ? a : b, (struct pawl_spec){ .id = id,
                                                                 .type = i % 2 ? "add" : "echo",
                                                                 .key = i % 5 ? key : NULL });
    }
    fixture_drain(a);
    EQ_INT(fixture_count(b, PAWL_COMPLETED), CALLS);
    EQ_INT(db_int(&db_postgres, "SELECT n FROM box;"), CALLS / 2);
    pawl_close(a);
    pawl_close(b);
}
