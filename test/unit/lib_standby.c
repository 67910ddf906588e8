/*
 * lib_standby.c - calls of the library while the database's commits wait for a standby: each
 * returns UNKNOWN or BUSY, and keeps no pointer to its arguments.
 *
 * The arguments are on stacks and in buffers that are overwritten as soon as a call returns: the
 * store thread must use its own copies.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db_driver.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"
#include "standby.h"
#include "store/mysql/mydb.h"

RUNS_ON(ENGINE_SERVER)

static struct db_server *server;

/* COMMIT_WAIT_US is 4 s in each of these cases, however busy the machine is: longer than it stalls,
 * shorter than SLOW, and no longer than necessary. */
static void begin(void *param)
{
    setenv("PAWL_CHECK_SCALE", "2", 1);
    server = standby_server(param);
}

/* Without workers and heartbeats: only the case's own writes wait. */
static struct pawl *open_another(void *param)
{
    return fixture_open_as(NULL, (struct pawl_options){ .db = engine_url(param), .node = "n" });
}

static struct pawl *open_quiet(void *param)
{
    begin(param);
    return open_another(param);
}

static bool is_stalled(struct pawl *p)
{
    struct exec_figures f;
    exec_figures(p->e, &f);
    return f.stalled_us > 0;
}

static void back(struct pawl *p)
{
    standby_back(server);
    UNTIL(!is_stalled(p));
}

/* Submit from memory that is gone afterwards. */
static enum pawl_status submit(struct pawl *p, const char *id, struct pawl_receipt *out,
                               struct pawl_err *err)
{
    char own[40], type[10] = "t", key[10] = "k", input[2000];
    snprintf(own, sizeof own, "%s", id);
    memset(input, '1', sizeof input - 1);
    input[sizeof input - 1] = 0;
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = own, .type = type, .key = key };
    s.input = (struct pawl_data){ .form = PAWL_JSON, .data = input, .len = strlen(input) };
    enum pawl_status st = pawl_submit(p, &s, 1, 0, out, err);
    memset(own, 'x', sizeof own);
    memset(type, 'x', sizeof type);
    memset(key, 'x', sizeof key);
    memset(input, 'x', sizeof input);
    return st;
}

static bool is_known(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = NULL;
    enum pawl_status st = pawl_get(p, id, 0, &shown, NULL);
    pawl_shown_free(shown);
    return st == PAWL_OK;
}

static void stored(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = fixture_get(p, id);
    const struct pawl_view *v = &shown->view;
    EQ_STR(v->type, "t");
    EQ_STR(v->key, "k");
    EQ_INT((int64_t)v->input.len, 1999);
    EQ_INT(((const char *)v->input.data)[1998], '1');
    pawl_shown_free(shown);
}

static int64_t processor_us(void)
{
    struct timespec t;
    EQ_INT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * FIXTURE_SEC + t.tv_nsec / 1000;
}

/* Waiting threads sleep: none polls to see whether its time has come. */
static void is_idle(void)
{
    enum { WATCHED_US = 500000 };
    int64_t from = processor_us();
    usleep(WATCHED_US);
    LT_INT(processor_us() - from, WATCHED_US / 4);
}

TEST(submit_says_unknown, .deadline_s = 120)
{
    struct pawl_receipt r;
    struct pawl_err err;
    struct pawl *p = open_quiet(param);
    OK(submit(p, "before", &r, &err), &err);
    standby_away(server);
    EQ_STATUS(submit(p, "a", &r, &err), PAWL_UNKNOWN, &err);
    EQ_INT(r.status, PAWL_UNKNOWN);
    EQ_STR(r.id, "a");
    TRUE(is_stalled(p));
    is_idle();
    EQ_STATUS(submit(p, "b", &r, &err), PAWL_BUSY, &err);
    EQ_STATUS(submit(p, "a", &r, &err), PAWL_BUSY, &err);
    back(p);
    OK(submit(p, "a", &r, &err), &err);
    TRUE(r.duplicate);
    stored(p, "a");
    EQ_INT(fixture_count(p, 0), 2);
    pawl_close(p);
}

TEST(submit_wait_says_unknown, .deadline_s = 120)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    struct pawl *p = open_quiet(param);
    char id[8] = "a", type[8] = "t";
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = id, .type = type };
    standby_away(server);
    EQ_STATUS(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), PAWL_UNKNOWN, &err);
    EQ_PTR(shown, NULL);
    memset(id, 'x', sizeof id);
    memset(type, 'x', sizeof type);
    back(p);
    /* On MariaDB the commit that reserves its number may have waited: then it follows. */
    UNTIL(fixture_count(p, 0) == 1);
    EQ_INT(fixture_state(p, "a"), PAWL_PENDING);
    pawl_close(p);
}

/* A caller that gave no id is told which was generated, and repeats the call with it. */
TEST(unknown_names_the_id, .deadline_s = 120)
{
    struct pawl_shown *shown = NULL;
    struct pawl_receipt r;
    struct pawl_err err;
    char id[64], want[300];
    struct pawl *p = open_quiet(param);
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t" };
    standby_away(server);
    EQ_STATUS(pawl_submit_wait(p, &s, 60 * FIXTURE_SEC, &shown, &err), PAWL_UNKNOWN, &err);
    EQ_INT(sscanf(err.text, "call \"%60[^\"]\": ", id), 1);
    back(p);
    UNTIL(fixture_count(p, 0) == 1);
    s.id = id;
    OK(pawl_submit_wait(p, &s, 0, &shown, &err), &err);
    TRUE(pawl_shown_view(shown)->duplicate);
    pawl_shown_free(shown);
    s.id = NULL;
    standby_away(server);
    EQ_STATUS(pawl_submit(p, &s, 1, 0, &r, &err), PAWL_UNKNOWN, &err);
    snprintf(want, sizeof want, "call \"%s\": ", r.id);
    EQ_INT(strncmp(err.text, want, strlen(want)), 0);
    EQ_STR(r.error, err.text);
    back(p);
    UNTIL(fixture_count(p, 0) == 2);
    EQ_INT(fixture_state(p, r.id), PAWL_PENDING);
    pawl_close(p);
}

/* Writes behind a commit without an answer were not stored, and return that. */
struct behind {
    struct pawl *p;
    int n;
    enum pawl_status st;
    atomic_bool over;
    pthread_t thread;
};

static void *submits(void *arg)
{
    struct behind *b = arg;
    struct pawl_receipt r;
    struct pawl_err err;
    char id[20];
    snprintf(id, sizeof id, "q%d", b->n);
    b->st = submit(b->p, id, &r, &err);
    atomic_store(&b->over, true);
    return NULL;
}

TEST(what_waits_behind_it_is_refused, .deadline_s = 120)
{
    enum { N = 8 };
    struct behind v[N];
    struct pawl *p = open_quiet(param);
    int unknown = 0, busy = 0;
    standby_away(server);
    for (int i = 0; i < N; i++) {
        v[i] = (struct behind){ .p = p, .n = i };
        EQ_INT(pthread_create(&v[i].thread, NULL, submits, &v[i]), 0);
        UNTIL(standby_waiting(server) > 0); /* the first is in its commit before the others come */
    }
    for (int i = 0; i < N; i++) {
        pthread_join(v[i].thread, NULL);
        unknown += v[i].st == PAWL_UNKNOWN;
        busy += v[i].st == PAWL_BUSY;
    }
    EQ_INT(unknown, 1);
    EQ_INT(busy, N - 1);
    back(p);
    UNTIL(fixture_count(p, 0) == 1);
    stored(p, "q0");
    pawl_close(p);
}

static void hold_id(struct db_session *v, const void *param, const char *id)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "BEGIN; INSERT INTO %sid (id, seq, fingerprint) VALUES ('%s', 1000000, 'abc');",
             engine_of(param)->tables, id);
    db_session_say(v, sql);
}

/* Has its solo writer taken the job, so that a second would have to wait for it? */
static bool side_busy(struct pawl *p, int waiting)
{
    struct writer_solo *s = &p->e->solo;
    pthread_mutex_lock(&s->lock);
    bool busy = s->n == 1 && !s->idle && s->waiting == waiting;
    pthread_mutex_unlock(&s->lock);
    return busy;
}

/* The same for a write that waits for a solo writer while all of those are in such commits. Two ids
 * are locked by other sessions, so both submits go there; the first goes on into its commit. */
TEST(what_waits_for_a_thread_of_its_own_is_refused, .deadline_s = 120)
{
    struct pawl_receipt r;
    struct pawl_err err;
    begin(param);
    struct pawl *p = fixture_open_as(
        NULL, (struct pawl_options){ .db = engine_url(param), .node = "n", .pool_size = 1 });
    OK(submit(p, "before", &r, &err), &err);
    struct db_session *one = db_session_open(server), *two = db_session_open(server);
    struct behind v[2] = { { .p = p, .n = 1 }, { .p = p, .n = 2 } };
    hold_id(one, param, "q1");
    hold_id(two, param, "q2");
    EQ_INT(pthread_create(&v[0].thread, NULL, submits, &v[0]), 0);
    UNTIL(side_busy(p, 0));
    standby_away(server);
    db_session_say(one, "ROLLBACK;");
    UNTIL(standby_waiting(server) > 0);
    EQ_INT(pthread_create(&v[1].thread, NULL, submits, &v[1]), 0);
    UNTIL(side_busy(p, 1) || v[1].over);
    UNTIL(v[0].over && v[1].over); /* while the standby is still away */
    for (int i = 0; i < 2; i++)
        pthread_join(v[i].thread, NULL);
    EQ_INT(v[0].st, PAWL_UNKNOWN);
    /* On MariaDB the group that met the locked id may itself commit something, and wait. */
    TRUE(v[1].st == PAWL_BUSY || v[1].st == PAWL_UNKNOWN);
    db_session_say(two, "ROLLBACK;");
    db_session_close(one);
    db_session_close(two);
    back(p);
    UNTIL(is_known(p, "q1"));
    stored(p, "q1");
    pawl_close(p);
}

/* A claim whose answer was lost: its call can be claimed again long before the lease ends, and
 * nothing was counted. */
static struct pawl_lease *given_back(struct pawl *p, const char *id, const char *type)
{
    UNTIL(fixture_state(p, id) == PAWL_PENDING);
    struct pawl_lease *lease = fixture_claim(p, type, 1);
    EQ_STR(lease->calls[0].id, id);
    EQ_INT(lease->calls[0].attempts + lease->calls[0].lost, 0);
    return lease;
}

/* The caller of a claim that repeats another knows its token and asks again. */
TEST(a_repeated_claim_is_not_given_back, .deadline_s = 120)
{
    struct pawl_receipt r;
    struct pawl_err err;
    struct pawl_lease *lease = NULL;
    struct pawl *p = open_quiet(param);
    struct pawl_claim c = { PAWL_CLAIM_INIT, .repeats = "0123456789abcdef0123456789abcdef" };
    OK(submit(p, "c", &r, &err), &err);
    standby_away(server);
    EQ_STATUS(pawl_claim(p, &c, &lease, &err), PAWL_UNKNOWN, &err);
    back(p);
    UNTIL(fixture_state(p, "c") == PAWL_PROCESSING);
    OK(pawl_claim(p, &c, &lease, &err), &err);
    EQ_INT((int64_t)lease->n, 1);
    EQ_STR(lease->token, c.repeats);
    pawl_lease_free(lease);
    pawl_close(p);
}

/* Each of the other operations on its own handle: its first write while the standby is away. Its
 * arguments are gone when it returns. None touches a row of another; otherwise it would get BUSY,
 * because the other's commit has locked the row. */
struct write {
    enum pawl_status (*run)(struct pawl *p, struct pawl_err *err);
    struct pawl *p;
    enum pawl_status st;
    struct pawl_err err;
    pthread_t thread;
};

static enum pawl_status claims(struct pawl *p, struct pawl_err *err)
{
    const char *type = "claimed";
    struct pawl_claim c = { PAWL_CLAIM_INIT, .types = &type, .n_types = 1 };
    struct pawl_lease *lease = NULL;
    enum pawl_status st = pawl_claim(p, &c, &lease, err);
    EQ_PTR(lease, NULL);
    return st;
}

static enum pawl_status cancels(struct pawl *p, struct pawl_err *err)
{
    char id[8] = "c";
    enum pawl_status st = pawl_cancel(p, id, NULL, err);
    memset(id, 'x', sizeof id);
    return st;
}

static enum pawl_status pauses(struct pawl *p, struct pawl_err *err)
{
    char queue[8] = "q";
    enum pawl_status st = pawl_pause(p, queue, true, err);
    memset(queue, 'x', sizeof queue);
    return st;
}

static enum pawl_status saves(struct pawl *p, struct pawl_err *err)
{
    char type[8] = "t", key[8] = "other", state[8] = "{}";
    struct pawl_object_change o = { PAWL_OBJECT_CHANGE_INIT, .type = type, .key = key };
    o.state = (struct pawl_data){ .form = PAWL_JSON, .data = state, .len = 2 };
    enum pawl_status st = pawl_object_save(p, &o, NULL, err);
    memset(type, 'x', sizeof type);
    memset(key, 'x', sizeof key);
    memset(state, 'x', sizeof state);
    return st;
}

static void *writes(void *arg)
{
    struct write *w = arg;
    w->st = w->run(w->p, &w->err);
    return NULL;
}

TEST(the_other_writes_say_unknown, .deadline_s = 200)
{
    struct write v[] = {
        { .run = claims }, { .run = cancels }, { .run = pauses }, { .run = saves }
    };
    struct pawl_receipt r;
    struct pawl_err err;
    struct pawl *p = open_quiet(param);
    OK(submit(p, "c", &r, &err), &err);
    fixture_submit(p, "d", "claimed");
    for (size_t i = 0; i < COUNT_OF(v); i++)
        v[i].p = open_another(param);
    standby_away(server);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        EQ_INT(pthread_create(&v[i].thread, NULL, writes, &v[i]), 0);
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        pthread_join(v[i].thread, NULL);
        EQ_STATUS(v[i].st, PAWL_UNKNOWN, &v[i].err);
    }
    standby_back(server);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        UNTIL(!is_stalled(v[i].p));
    pawl_lease_free(given_back(p, "d", "claimed"));
    UNTIL(engine_int(param, "SELECT COUNT(*) FROM pawl_object") == 1);
    EQ_INT(fixture_state(p, "c"), PAWL_CANCELLED);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_queue WHERE queue = 'q'"), 1);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        pawl_close(v[i].p);
    pawl_close(p);
}

/* ---- No standby: only slow ------------------------------------------------------------------- */

static bool on_pg(const void *param)
{
    return strcmp(engine_of(param)->name, "postgres") == 0;
}

/* Longer than COMMIT_WAIT_US, by so much that the machine's speed makes no difference. */
#define SLOW "5"

/* A slow submit is still a submit. */
static void slow_is_not_stalled(struct pawl *p, const char *id)
{
    struct pawl_receipt r;
    struct pawl_err err;
    int64_t began_us = fixture_mono();
    OK(submit(p, id, &r, &err), &err);
    GE_INT(fixture_mono() - began_us, 3 * FIXTURE_SEC);
    FALSE(is_stalled(p));
    stored(p, id);
}

/* Statements before COMMIT in the same packet are not part of the time. */
TEST(a_slow_write_is_no_stall, .deadline_s = 120)
{
    struct pawl *p = open_quiet(param);
    if (on_pg(param))
        db_ask(server, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
                       " $$ BEGIN PERFORM pg_sleep(" SLOW "); RETURN NULL; END $$;"
                       "CREATE TRIGGER slow AFTER INSERT ON pawl.call EXECUTE FUNCTION slow();");
    else
        db_ask(server, "CREATE TRIGGER slow AFTER INSERT ON pawl_call FOR EACH ROW"
                       " SET @slow = SLEEP(" SLOW ")");
    slow_is_not_stalled(p, "a");
    pawl_close(p);
}

/* MariaDB: a session of an administrator, while the case goes on. */
static void *administers(void *sql)
{
    char path[100];
    MYSQL *db = mysql_init(NULL);
    snprintf(path, sizeof path, "%s/socket", server->dir);
    bool ok = mysql_real_connect(db, NULL, "root", NULL, "mysql", 0, path, CLIENT_MULTI_STATEMENTS);
    for (int more = ok ? mysql_query(db, sql) : 1; more == 0;)
        more = mysql_next_result(db);
    if (mysql_errno(db))
        FAIL("%s", mysql_error(db));
    mysql_close(db);
    return NULL;
}

static char block_commits[] =
    "BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT; DO SLEEP(" SLOW "); BACKUP STAGE END";
static char commit_other[] = "CREATE TABLE other (n INT); DROP TABLE other";

/* A COMMIT that the server reports as running is not timed out either. */
TEST(a_slow_commit_is_no_stall, .deadline_s = 120)
{
    struct pawl *p = open_quiet(param);
    pthread_t thread;
    if (on_pg(param)) {
        db_ask(server, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
                       " $$ BEGIN PERFORM pg_sleep(" SLOW "); RETURN NULL; END $$;"
                       "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON pawl.call"
                       " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();");
        slow_is_not_stalled(p, "a");
    } else {
        static const char *const ids[] = { "a", "b" }; /* the first also reserves numbers */
        for (size_t i = 0; i < COUNT_OF(ids); i++) {
            EQ_INT(pthread_create(&thread, NULL, administers, block_commits), 0);
            UNTIL(db_int(server, "SELECT COUNT(*) FROM information_schema.processlist"
                                 " WHERE info LIKE 'DO SLEEP%'") == 1);
            slow_is_not_stalled(p, ids[i]);
            pthread_join(thread, NULL);
        }
    }
    pawl_close(p);
}

/* ---- MariaDB: AFTER_SYNC --------------------------------------------------------------------- */

/* Of several waiting commits only the first is visible, and here that is another account's. The
 * others are not given up: the writer's session stays, and no other replaces it. */
TEST(after_sync_is_waited_for, .deadline_s = 120)
{
    struct pawl_receipt r;
    struct pawl_err err;
    pthread_t thread;
    struct pawl *p = open_quiet(param);
    standby_after_sync(server);
    OK(submit(p, "before", &r, &err), &err);
    mydb_answer_us = FIXTURE_SEC;
    standby_away(server);
    EQ_INT(pthread_create(&thread, NULL, administers, commit_other), 0);
    UNTIL(standby_waiting(server) == 1);
    EQ_STATUS(submit(p, "a", &r, &err), PAWL_UNKNOWN, &err);
    static const char sessions[] = "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist"
                                   " WHERE user = 'pawl' AND command <> 'Sleep'";
    int64_t id = db_int(server, sessions), until = fixture_mono() + 5 * FIXTURE_SEC;
    GT_INT(id, 0);
    UNTIL((EQ_INT(is_stalled(p), true), fixture_mono() > until));
    EQ_INT(standby_waiting(server), 1);
    UNTIL(db_int(server, sessions) == id);
    back(p);
    pthread_join(thread, NULL);
    stored(p, "a");
    EQ_INT(fixture_count(p, 0), 2);
    pawl_close(p);
}
