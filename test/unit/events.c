/*
 * events.c - the event service, request by request: statuses and bodies, limits, and what is
 * stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hook.h"
#include "base/world.h"
#include "db_server.h"
#include "events_fixture.h"
#include "events/table.h"
#include "net_fixture.h"

RUNS_ON(ENGINES_DURABLE)

static bool on_file(const void *param)
{
    return engine_of(param)->kind == ENGINE_FILE;
}

/* ---- Codes and bodies ------------------------------------------------------------------------ */

TEST(an_event_is_numbered_and_found)
{
    struct events_here h;
    char path[40];
    events_here_open(&h, engine_url(param), 0);
    EQ_STR(events_ask(h.port, "GET", "/events", NULL).body, "{\"count\":0}");
    for (int i = 1; i <= 3; i++) {
        struct events_answer a = events_ask(h.port, "POST", "/events", i == 2 ? "{}" : NULL);
        snprintf(path, sizeof path, "/events/%d", i);
        EQ_INT(a.status, 201);
        EQ_INT(a.id, i);
        HAS_STR(a.head, path);
        GE_INT((int64_t)strlen(a.value), 1);
        LE_INT((int64_t)strlen(a.value), 255);
        struct events_answer found = events_ask(h.port, "GET", path, NULL);
        EQ_INT(found.status, 200);
        EQ_STR(found.body, a.body);
    }
    EQ_STR(events_ask(h.port, "GET", "/events", NULL).body, "{\"count\":3}");
    events_here_close(&h);
    EQ_INT(events_whole(param), 3);
}

TEST(a_pending_event_has_no_value_and_an_empty_one_has)
{
    struct events_here h;
    events_here_open(&h, engine_url(param), 0);
    struct events_answer a = events_ask(h.port, "POST", "/events/async", NULL);
    EQ_INT(a.status, 202);
    EQ_STR(a.body, "{\"id\":1}");
    HAS_STR(a.head, "/events/1\r\n");
    EQ_STR(events_ask(h.port, "GET", "/events/1", NULL).body, "{\"id\":1,\"value\":null}");
    engine_rows(param, "UPDATE events SET value = '';");
    EQ_STR(events_ask(h.port, "GET", "/events/1", NULL).body, "{\"id\":1,\"value\":\"\"}");
    events_here_close(&h);
}

TEST(what_is_refused)
{
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *says;
    } v[] = {
        { "GET", "/events/abc", NULL, 400, "\"field\":\"id\"" },
        { "GET", "/events/0", NULL, 400, "INVALID" },
        { "GET", "/events/-1", NULL, 400, "INVALID" },
        { "GET", "/events/+1", NULL, 400, "INVALID" },
        { "GET", "/events/01", NULL, 400, "INVALID" },
        { "GET", "/events/1.5", NULL, 400, "INVALID" },
        { "GET", "/events/%31", NULL, 400, "INVALID" },
        { "GET", "/events/99999999999", NULL, 400, "INVALID" },
        { "GET", "/events/99999999999999999999999999", NULL, 400, "INVALID" },
        { "GET", "/events/2147483648", NULL, 400, "INVALID" },
        { "GET", "/events/2147483647", NULL, 404, "event 2147483647 does not exist" },
        { "GET", "/events/1", NULL, 404, "NOT_FOUND" },
        { "GET", "/events/", NULL, 404, "NOT_FOUND" },
        { "GET", "/events/1/2", NULL, 404, "NOT_FOUND" },
        { "GET", "/v1/calls", NULL, 404, "NOT_FOUND" },
        { "GET", "/events?limit=3", NULL, 400, "\"field\":\"limit\"" },
        { "POST", "/events", "null", 400, "the body is neither empty nor {}" },
        { "GET", "/healthz?zzzz", NULL, 400, "field \\\"zzzz\\\": is no query parameter" },
        { "GET", "/readyz?&", NULL, 400, "field \\\"\\\": is no query parameter" },
        { "GET", "/events/async", NULL, 405, "METHOD" },
        { "PUT", "/events", NULL, 405, "GET, HEAD, POST" },
        { "DELETE", "/events/1", NULL, 405, "GET, HEAD" },
        { "POST", "/events/1", NULL, 405, "METHOD" },
        { "POST", "/events", "{\"value\":\"x\"}", 400, "\"field\":\"value\"" },
        { "POST", "/events", "[]", 400, "INVALID" },
        { "POST", "/events/async", "{", 400, "not JSON" },
    };
    struct events_here h;
    events_here_open(&h, engine_url(param), 0);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        struct events_answer a = events_ask(h.port, v[i].method, v[i].path, v[i].body);
        if (a.status != v[i].status)
            FAIL("%s %s: %d %s", v[i].method, v[i].path, a.status, a.body);
        HAS_STR(a.body, v[i].says);
        if (a.status == 405)
            HAS_STR(a.head, "Allow: ");
    }
    char large[4200];
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = 0;
    EQ_INT(events_ask(h.port, "POST", "/events", large).status, 413);
    large[4096] = 0; /* only spaces: not JSON, but within the limit */
    EQ_INT(events_ask(h.port, "POST", "/events", large).status, 400);
    events_here_close(&h);
    EQ_INT(events_whole(param), 0);
}

TEST(it_says_how_it_is)
{
    struct events_here h;
    events_here_open(&h, engine_url(param), 0);
    EQ_STR(events_ask(h.port, "GET", "/healthz", NULL).body, "{\"alive\":true}");
    EQ_STR(events_ask(h.port, "GET", "/readyz", NULL).body, "{\"ready\":true,\"reason\":null}");
    engine_rows(param, "INSERT INTO status (id) VALUES (7);");
    struct events_answer a = events_ask(h.port, "GET", "/readyz", NULL);
    EQ_INT(a.status, 503);
    HAS_STR(a.body, "\"ready\":false");
    HAS_STR(a.body, "table status has 2 rows");
    a = events_ask(h.port, "POST", "/events", NULL);
    EQ_INT(a.status, 500);
    HAS_STR(a.body, "BROKEN");
    events_here_close(&h);
    EQ_INT(engine_int(param, "SELECT count(*) FROM events;"), 0);
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

TEST(ids_end_with_a_clear_error)
{
    struct events_here h;
    events_here_open(&h, engine_url(param), 0);
    engine_rows(param, "UPDATE status SET id = 2147483646;");
    EQ_INT(events_ask(h.port, "POST", "/events", NULL).id, 2147483647);
    struct events_answer a = events_ask(h.port, "POST", "/events", NULL);
    EQ_INT(a.status, 429);
    HAS_STR(a.body, "FULL");
    HAS_STR(a.body, "2147483647");
    EQ_INT(events_ask(h.port, "POST", "/events/async", NULL).status, 429);
    events_here_close(&h);
    EQ_INT(engine_int(param, "SELECT count(*) FROM events;"), 1);
    EQ_INT(engine_int(param, "SELECT id FROM status;"), 2147483647);
}

TEST(a_group_takes_the_last_ids_and_leaves_the_rest)
{
    struct pawl_err err;
    struct events_db *db;
    struct event v[5] = { 0 };
    struct event_add add = { .v = v, .n = 5 };
    OK(events_db_open(engine_url(param), 0, &db, &err), &err);
    OK(events_db_make(db, &err), &err);
    engine_rows(param, "UPDATE status SET id = 2147483645;");
    OK(events_db_add(db, &add, &err), &err);
    EQ_INT((int64_t)add.n, 2);
    EQ_INT(v[1].id, EVENT_ID_MAX);
    EQ_STATUS(events_db_add(db, &add, &err), PAWL_FULL, &err);
    events_db_close(db);
}

static atomic_bool held, let_go;

static void hold(const char *name, void *ctx)
{
    if (strcmp(name, ctx) != 0 || atomic_load(&let_go))
        return;
    atomic_store(&held, true);
    NET_UNTIL(atomic_load(&let_go));
}

TEST(a_full_queue_is_busy)
{
    struct events_here h;
    int fd[4];
    events_here_open(&h, engine_url(param), 3);
    hook_on_pause(hold, "events.counted");
    for (int i = 0; i < 4; i++) { /* the first is being stored, three wait */
        fd[i] = events_connect(h.port);
        events_send(fd[i], "POST", "/events", NULL);
        if (i == 0)
            NET_UNTIL(atomic_load(&held));
    }
    struct events_answer a = events_ask(h.port, "POST", "/events", NULL);
    EQ_INT(a.status, 503);
    HAS_STR(a.body, "BUSY");
    HAS_STR(a.head, "Retry-After");
    atomic_store(&let_go, true);
    for (int i = 0; i < 4; i++) {
        EQ_INT(events_read(fd[i]).status, 201);
        close(fd[i]);
    }
    hook_on_pause(NULL, NULL);
    events_here_close(&h);
    EQ_INT(events_whole(param), 4);
}

/* A session locks the whole table, as a scan of a very large one would. */
TEST(a_look_has_a_deadline)
{
    struct events_here h;
    if (on_file(param))
        skip("nobody can keep a reader waiting on this engine");
    bool pg = strcmp(engine_of(param)->name, "postgres") == 0;
    events_here_open(&h, engine_url(param), 0);
    struct db_session *other = db_session_open(engine_of(param)->server);
    db_session_say(other, pg ? "BEGIN;" : "SELECT 1;");
    db_session_say(other, pg ? "LOCK TABLE events IN ACCESS EXCLUSIVE MODE;"
                             : "LOCK TABLES events WRITE;");
    int64_t begun = world_mono(&world_real);
    struct events_answer a = events_ask(h.port, "GET", "/events/1", NULL);
    EQ_INT(a.status, 503);
    HAS_STR(a.body, "BUSY");
    LT_INT(world_mono(&world_real) - begun, 12 * SEC_US * check_scale());
    db_session_close(other);
    EQ_INT(events_ask(h.port, "GET", "/events/1", NULL).status, 404);
    events_here_close(&h);
}

/* ---- The tables ------------------------------------------------------------------------------ */

/* Everything that the rules forbid, from the database's own catalog. */
static int64_t forbidden(const void *param)
{
    const char *name = engine_of(param)->name;
    if (on_file(param))
        return engine_int(param, "SELECT count(*) FROM sqlite_master WHERE type <> 'table' OR sql "
                                 "LIKE '%KEY%' OR sql LIKE '%AUTOINCREMENT%';");
    if (strcmp(name, "postgres") == 0)
        return engine_int(
            param,
            "SELECT (SELECT count(*) FROM pg_index i WHERE i.indrelid IN ('status'::regclass, "
            "'events'::regclass)) + (SELECT count(*) FROM information_schema.table_constraints "
            "WHERE table_name IN ('status', 'events') AND constraint_type <> 'CHECK') + (SELECT "
            "count(*) FROM information_schema.triggers WHERE event_object_table IN ('status', "
            "'events')) + (SELECT count(*) FROM information_schema.routines WHERE routine_schema "
            "= 'public') + (SELECT count(*) FROM information_schema.columns WHERE table_name IN "
            "('status', 'events') AND (column_default IS NOT NULL OR is_identity = 'YES')) + "
            "(SELECT count(*) FROM information_schema.sequences "
            "WHERE sequence_schema = 'public');");
    return engine_int(
        param,
        "SELECT (SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = "
        "DATABASE()) + (SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS WHERE "
        "TABLE_SCHEMA = DATABASE()) + (SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE "
        "TRIGGER_SCHEMA = DATABASE()) + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE "
        "ROUTINE_SCHEMA = DATABASE()) + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE "
        "EVENT_SCHEMA = DATABASE()) + (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE "
        "TABLE_SCHEMA = DATABASE() AND (EXTRA <> '' OR COLUMN_KEY <> ''));");
}

TEST(there_is_no_key_index_trigger_or_procedure)
{
    engine_empty(param);
    events_pending(param, 3);
    EQ_INT(forbidden(param), 0);
    EQ_INT(engine_int(param, on_file(param) ? "SELECT count(*) FROM sqlite_master;"
                             : strcmp(engine_of(param)->name, "postgres") == 0
                                 ? "SELECT count(*) FROM information_schema.tables WHERE "
                                   "table_schema = 'public';"
                                 : "SELECT count(*) FROM information_schema.tables WHERE "
                                   "table_schema = DATABASE();"),
           2);
    engine_rows(param, "CREATE INDEX found ON events (id);"); /* the query itself can fail */
    GT_INT(forbidden(param), 0);
}

enum { MAKERS = 8 };
static atomic_int waiting;
static const char *made_url;

static void *make(void *arg)
{
    struct pawl_err err;
    struct events_db *db;
    (void)arg;
    OK(events_db_open(made_url, 0, &db, &err), &err);
    atomic_fetch_add(&waiting, 1);
    NET_UNTIL(atomic_load(&waiting) == MAKERS);
    OK(events_db_make(db, &err), &err);
    events_db_close(db);
    return NULL;
}

TEST(those_who_start_together_make_one_counter)
{
    pthread_t v[MAKERS];
    made_url = engine_url(param);
    for (int i = 0; i < MAKERS; i++)
        EQ_INT(pthread_create(&v[i], NULL, make, NULL), 0);
    for (int i = 0; i < MAKERS; i++)
        pthread_join(v[i], NULL);
    EQ_INT(events_whole(param), 0);
}

TEST(a_lost_counter_goes_on_behind_the_last_event)
{
    struct events_here h;
    events_pending(param, 5);
    engine_rows(param, "DELETE FROM status;");
    events_here_open(&h, engine_url(param), 0);
    EQ_INT(events_ask(h.port, "POST", "/events", NULL).id, 6);
    events_here_close(&h);
    EQ_INT(events_whole(param), 6);
}

TEST(tables_of_somebody_else_are_left_alone)
{
    struct pawl_err err;
    struct events_db *db;
    engine_url(param);
    OK(events_db_open(engine_url(param), 0, &db, &err), &err);
    engine_rows(param, "CREATE TABLE events (id int, title varchar(255));");
    EQ_STATUS(events_db_make(db, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "has other columns");
    engine_rows(param, "DROP TABLE events;");
    OK(events_db_make(db, &err), &err);
    events_db_close(db);
}

TEST(engines_without_sql_are_refused, .plain = true)
{
    struct pawl_err err;
    struct events_db *db;
    EQ_STATUS(events_db_open("mem:x", 0, &db, &err), PAWL_INVALID, &err);
    EQ_STATUS(events_db_open("trace+sqlite:x.db", 0, &db, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "events need");
}

TEST(words_are_short_and_differ, .plain = true)
{
    char a[EVENT_VALUE_MAX + 1], b[EVENT_VALUE_MAX + 1];
    for (int i = 0; i < 1000; i++) {
        size_t len = event_word(&world_real, a);
        EQ_INT((int64_t)len, (int64_t)strlen(a));
        GE_INT((int64_t)len, 1);
        LE_INT((int64_t)len, EVENT_VALUE_MAX);
        EQ_INT((int64_t)strspn(a, "abcdefghijklmnopqrstuvwxyz"), (int64_t)len);
        event_word(&world_real, b);
        TRUE(strcmp(a, b) != 0);
    }
}
