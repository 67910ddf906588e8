/*
 * failover.c - a replica is promoted: numbers of calls and versions of objects continue above
 * everything it has, on servers whose counters are not replicated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "db_server.h"
#include "replica.h"
#include "fixture.h"

RUNS_ON(ENGINE_SERVER)

enum { CALLS = 120, BATCH = 7, KEYS = 5, OBJECTS = 10 };

static bool is_pg(const void *param)
{
    return strcmp(engine_of(param)->name, "postgres") == 0;
}

/* ---- Work that takes numbers and versions ---------------------------------------------------- */

/* The highest number used so far. */
static int64_t seq_max, version_max;

static void submit_batch(struct pawl *p, char phase, int from, int n)
{
    struct pawl_spec v[BATCH] = { 0 };
    struct pawl_receipt r[BATCH];
    struct pawl_err err;
    char ids[BATCH][20], keys[BATCH][20];
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "%c%d", phase, from + i);
        snprintf(keys[i], sizeof keys[i], "k%d", (from + i) % KEYS);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = "t" };
        v[i].key = i % 2 ? keys[i] : NULL;
    }
    OK(pawl_submit(p, v, (size_t)n, 0, r, &err), &err);
    for (int i = 0; i < n; i++) {
        EQ_STATUS(r[i].status, PAWL_OK, NULL);
        FALSE(r[i].duplicate);
        GT_INT(r[i].seq, seq_max);
        seq_max = r[i].seq;
    }
}

static void save_objects(struct pawl *p)
{
    struct pawl_err err;
    for (int i = 0; i < OBJECTS; i++) {
        char key[20];
        int64_t version = 0;
        snprintf(key, sizeof key, "o%d", i);
        struct pawl_object_change o = { PAWL_OBJECT_CHANGE_INIT, .type = "box", .key = key };
        o.state = (struct pawl_data){ .form = PAWL_JSON, .data = "1", .len = 1 };
        OK(pawl_object_save(p, &o, &version, &err), &err);
        GT_INT(version, version_max);
        version_max = version;
    }
}

static void work(struct pawl *p, char phase)
{
    for (int i = 0; i < CALLS; i += BATCH)
        submit_batch(p, phase, i, MIN(BATCH, CALLS - i));
    save_objects(p);
}

/* Calls of one key in the order in which they were submitted: by phase, then number. Each also
 * writes a state, whose version is a number too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ran, last_of_key[KEYS];

static int handler(struct pawl_call *c)
{
    const struct pawl_view *v = pawl_call_view(c);
    int place = v->id[0] * 100000 + (int)strtol(v->id + 1, NULL, 10);
    pthread_mutex_lock(&lock);
    ran++;
    if (v->key) {
        int *last = &last_of_key[strtol(v->key + 1, NULL, 10)];
        GT_INT(place, *last);
        *last = place;
    }
    pthread_mutex_unlock(&lock);
    if (v->key)
        pawl_set_state(c, (struct pawl_data){ .form = PAWL_JSON, .data = "1", .len = 1 });
    return pawl_reply(c, (struct pawl_data){ .form = PAWL_JSON, .data = "1", .len = 1 });
}

static void run_all(struct pawl *p, int calls)
{
    fixture_on(p, "t", handler);
    fixture_start(p, 4);
    fixture_drain(p);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), calls);
    EQ_INT(fixture_count(p, 0), calls);
    EQ_INT(ran, calls);
}

/* ---- A replica ------------------------------------------------------------------------------- */

static int64_t version_of(struct pawl *p, const char *key)
{
    struct pawl_object *o = NULL;
    struct pawl_err err;
    OK(pawl_object_load(p, "box", key, &o, &err), &err);
    int64_t version = o->version;
    pawl_object_free(o);
    return version;
}

/* A version read before the failover must not match a state written after it. */
static void old_versions_are_stale(struct pawl *p, int64_t read)
{
    struct pawl_err err;
    struct pawl_object_change o = { PAWL_OBJECT_CHANGE_INIT, .type = "box", .key = "o0" };
    o.state = (struct pawl_data){ .form = PAWL_JSON, .data = "2", .len = 1 };
    o.if_version = read;
    EQ_STATUS(pawl_object_save(p, &o, NULL, &err), PAWL_STALE, &err);
}

TEST(a_promoted_replica_goes_on_above, .deadline_s = 200)
{
    struct db_server *primary = engine_of(param)->server;
    struct pawl_err err;
    replica_prepare(primary);
    db_start_own(primary);
    const char *url = engine_url(param);
    struct db_server *replica = replica_start(primary);
    struct pawl *p = fixture_open_as(NULL, (struct pawl_options){ .db = url, .node = "n" });
    work(p, 'a');
    int64_t read = version_of(p, "o0");
    replica_caught_up(primary, replica);
    pawl_close(p);
    db_stop(primary, DB_KILL);
    replica_promote(replica);

    p = fixture_open_as(NULL, (struct pawl_options){ .db = replica_url(replica), .node = "n" });
    work(p, 'b');
    old_versions_are_stale(p, read);
    struct pawl_receipt r;
    struct pawl_spec known = { PAWL_SPEC_INIT, .id = "a0", .type = "t" };
    OK(pawl_submit(p, &known, 1, 0, &r, &err), &err);
    TRUE(r.duplicate);
    run_all(p, 2 * CALLS);
    pawl_close(p);
}

/* ---- Counters -------------------------------------------------------------------------------- */

/* With Galera every server counts in steps of the number of servers. */
TEST(numbers_in_steps_of_three, .deadline_s = 120)
{
    struct db_server *s = engine_of(param)->server;
    if (is_pg(param))
        skip("its sequences have no such setting");
    db_option(s, "--auto-increment-increment=3");
    db_option(s, "--auto-increment-offset=2");
    db_start_own(s);
    struct pawl *p =
        fixture_open_as(NULL, (struct pawl_options){ .db = engine_url(param), .node = "n" });
    work(p, 'a');
    run_all(p, CALLS);
    pawl_close(p);
}

static void counters_begin_anew(struct db_server *s)
{
    db_ask(s, "ALTER TABLE pawl_number AUTO_INCREMENT = 1;"
              "ALTER TABLE pawl_version AUTO_INCREMENT = 1;");
}

/* A proxy may switch an open connection to another server: that server's counter starts again. */
TEST(a_counter_that_goes_back_is_noticed, .deadline_s = 120)
{
    struct db_server *s = engine_of(param)->server;
    if (is_pg(param))
        skip("a standby has its primary's sequences");
    db_start_own(s);
    struct pawl *p =
        fixture_open_as(NULL, (struct pawl_options){ .db = engine_url(param), .node = "n" });
    work(p, 'a');
    counters_begin_anew(s);
    work(p, 'b');
    run_all(p, 2 * CALLS);
    pawl_close(p);
}

/* ---- Databases of an older release ----------------------------------------------------------- */

static void as_before_the_step(struct db_server *s)
{
    db_ask(s, "DROP TABLE pawl_reserve; DELETE FROM pawl_migration WHERE number >= 6;");
}

static void upgraded(void *param, bool counters_went_back)
{
    struct db_server *s = engine_of(param)->server;
    if (is_pg(param))
        skip("a standby has its primary's sequences");
    db_start_own(s);
    struct pawl_options o = { .db = engine_url(param), .node = "n" };
    struct pawl *p = fixture_open_as(NULL, o);
    work(p, 'a');
    pawl_close(p);
    as_before_the_step(s);
    if (counters_went_back)
        counters_begin_anew(s);
    p = fixture_open_as(NULL, o);
    GE_INT(db_int(s, "SELECT upto FROM pawl_reserve WHERE name = 'seq'"), seq_max);
    GE_INT(db_int(s, "SELECT upto FROM pawl_reserve WHERE name = 'version'"), version_max);
    work(p, 'b');
    run_all(p, 2 * CALLS);
    pawl_close(p);
}

TEST(an_older_database_gets_its_reserve, .deadline_s = 120)
{
    upgraded(param, false);
}

/* It was promoted before the upgrade, and has not been used since. */
TEST(an_older_database_whose_counters_went_back, .deadline_s = 120)
{
    upgraded(param, true);
}
