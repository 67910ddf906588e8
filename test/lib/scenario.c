/*
 * scenario.c - see scenario.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "scenario.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { ECHO, SQL, SEND, RETRY, REFUSE, HAND, LATE, WAITED, CALLS };
static const char *const types[CALLS] = { "echo",   "sql",  "send", "retry",
                                          "refuse", "hand", "echo", "sql" };
static const char *const ids[CALLS] = { "c-echo",   "c-sql",  "c-send", "c-retry",
                                        "c-refuse", "c-hand", "c-late", "c-waited" };

/* The scenario that is running. */
static bool acked[CALLS], cancelled;
static struct scenario *now;

/* ---- Handlers ---- */

static bool put_row(struct pawl_call *c)
{
    struct pawl_value id = { .kind = PAWL_V_TEXT, .data = pawl_call_id(c) };
    if (!id.data)
        return false;
    id.len = strlen(id.data);
    return pawl_sql(c, "INSERT INTO box (id) VALUES (?)", &id, 1, NULL, NULL) == PAWL_OK;
}

static int on_sql(struct pawl_call *c)
{
    if (now->has_sql && !put_row(c))
        return pawl_fail(c, "no SQL");
    return pawl_reply_int(c, 1);
}

static int on_retry(struct pawl_call *c)
{
    if (pawl_call_view(c)->attempts == 0)
        return pawl_fail(c, "the first time");
    return on_sql(c);
}

static int on_send(struct pawl_call *c)
{
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "sql", .max_attempts = 50,
                           .backoff_base_us = 1000 };
    if (pawl_send(c, &s, NULL) != PAWL_OK)
        return pawl_fail(c, "could not send");
    return pawl_reply_text(c, pawl_sent_id(c, 0));
}

static int on_refuse(struct pawl_call *c)
{
    return pawl_refuse(c, "never");
}

/* ---- Allowed errors ---- */

/* Is this a status that the library may return while memory or the database fails? */
static bool short_of(enum pawl_status st)
{
    return st == PAWL_NO_MEMORY || st == PAWL_BUSY || st == PAWL_UNKNOWN ||
           (st == PAWL_BROKEN && now->broken);
}

/* True for OK. An allowed error is false; `also` is one more allowed status (PAWL_OK: none). Other
 * errors end the case. */
static bool honest(const char *what, enum pawl_status st, enum pawl_status also,
                   const struct pawl_err *err)
{
    if (now->between)
        now->between();
    if (st == PAWL_OK)
        return true;
    if (!short_of(st) && st != also)
        FAIL("%s: %s: %s", what, pawl_status_name(st), err ? err->text : "");
    return false;
}

/* ---- The script ---- */

static struct pawl_spec spec_of(int i)
{
    struct pawl_spec s = { PAWL_SPEC_INIT,         .id = ids[i],
                           .type = types[i],       .input = PAWL_TEXT("{\"a\":[1,2]}"),
                           .max_attempts = 50,     .max_lost = 50,
                           .backoff_base_us = 1000 };
    if (i == LATE)
        s.delay_us = 3600 * FIXTURE_SEC;
    return s;
}

static void submit_all(struct pawl *p)
{
    struct pawl_spec v[WAITED];
    struct pawl_receipt r[WAITED];
    struct pawl_err err;
    for (int i = 0; i < WAITED; i++)
        v[i] = spec_of(i);
    for (int k = 0; k < 4; k++) { /* repeat with the same ids, as a client does */
        if (!honest("submit", pawl_submit(p, v, WAITED, 0, r, &err), PAWL_OK, &err))
            continue;
        for (int i = 0; i < WAITED; i++) {
            honest(ids[i], r[i].status, PAWL_OK, NULL);
            acked[i] |= r[i].status == PAWL_OK;
        }
        return;
    }
}

static void wait_one(struct pawl *p)
{
    struct pawl_spec s = spec_of(WAITED);
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    if (honest("submit_wait", pawl_submit_wait(p, &s, 400 * FIXTURE_MS, &shown, &err), PAWL_OK,
               &err))
        acked[WAITED] = true;
    pawl_shown_free(shown);
}

static void look_around(struct pawl *p)
{
    struct pawl_page *page = NULL;
    struct pawl_attempts *a = NULL;
    struct pawl_queues *q = NULL;
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    struct pawl_query some = { PAWL_QUERY_INIT, .limit = 3, .with_input = true };
    if (honest("list", pawl_list(p, &some, &page, &err), PAWL_OK, &err))
        pawl_page_free(page);
    if (honest("attempts", pawl_attempts(p, "c-retry", &a, &err), PAWL_NOT_FOUND, &err))
        pawl_attempts_free(a);
    if (honest("queues", pawl_queues(p, &q, &err), PAWL_OK, &err))
        pawl_queues_free(q);
    if (honest("get", pawl_get(p, "c-sql", 200 * FIXTURE_MS, &shown, &err), PAWL_NOT_FOUND, &err))
        pawl_shown_free(shown);
}

static void decide(struct pawl *p)
{
    struct pawl_err err;
    enum pawl_state state = 0;
    if (honest("cancel", pawl_cancel(p, "c-late", &state, &err), PAWL_NOT_FOUND, &err))
        cancelled = state == PAWL_CANCELLED;
    struct pawl_shown *shown = NULL;
    enum pawl_status st = pawl_get(p, "c-refuse", 200 * FIXTURE_MS, &shown, &err);
    pawl_shown_free(shown);
    honest("get", st, PAWL_NOT_FOUND, &err);
    st = pawl_retry(p, "c-refuse", &err);
    honest("retry", st == PAWL_STATE ? PAWL_OK : st, PAWL_NOT_FOUND, &err);
    honest("pause", pawl_pause(p, "other", true, &err), PAWL_OK, &err);
    st = pawl_move(p, "c-late", 0, 3, NULL, &err);
    honest("move", st == PAWL_STATE ? PAWL_OK : st, PAWL_NOT_FOUND, &err);
}

static void work_by_hand(struct pawl *p)
{
    static const char *const hand = "hand";
    struct pawl_claim c = { PAWL_CLAIM_INIT, .types = &hand, .n_types = 1,
                            .lease_us = FIXTURE_SEC };
    struct pawl_spec send = { PAWL_SPEC_INIT, .type = "sql", .max_attempts = 50 };
    struct pawl_lease *l = NULL;
    struct pawl_err err;
    if (!honest("claim", pawl_claim(p, &c, &l, &err), PAWL_OK, &err))
        return;
    struct pawl_finish f = { PAWL_FINISH_INIT,         .id = "c-hand", .how = PAWL_END_RESULT,
                             .result = PAWL_TEXT("1"), .send = &send,  .n_send = 1 };
    if (l->n) {
        honest("extend", pawl_extend(p, l->token, FIXTURE_SEC, NULL, &err), PAWL_LOST_LEASE, &err);
        for (int k = 0; k < 4; k++)
            if (honest("finish", pawl_finish(p, l->token, &f, 1, NULL, &err), PAWL_LOST_LEASE,
                       &err))
                break;
    }
    pawl_lease_free(l);
}

static bool register_all(struct pawl *p, bool hand)
{
    struct pawl_module *m = pawl_program(p);
    bool ok = true;
    if (now->has_sql)
        ok = honest("prepare", pawl_prepare(m, "CREATE TABLE IF NOT EXISTS box (id TEXT)"), PAWL_OK,
                    NULL);
    ok &= honest("on", pawl_on(m, "echo", "run", fixture_echo), PAWL_OK, NULL);
    ok &= honest("on", pawl_on(m, "sql", "run", on_sql), PAWL_OK, NULL);
    ok &= honest("on", pawl_on(m, "send", "run", on_send), PAWL_OK, NULL);
    ok &= honest("on", pawl_on(m, "retry", "run", on_retry), PAWL_OK, NULL);
    ok &= honest("on", pawl_on(m, "refuse", "run", on_refuse), PAWL_OK, NULL);
    if (hand)
        ok &= honest("on", pawl_on(m, "hand", "run", on_send), PAWL_OK, NULL);
    return ok;
}

static struct pawl_options options(const char *url)
{
    return (struct pawl_options){ PAWL_OPTIONS_INIT,
                                  .db = url,
                                  .node = "s",
                                  .client = "scenario",
                                  .heartbeat_interval_us = 20 * FIXTURE_MS,
                                  .heartbeat_grace_us = 10 * FIXTURE_SEC,
                                  .reclaim_interval_us = 20 * FIXTURE_MS,
                                  .gc_interval_us = 20 * FIXTURE_MS };
}

void scenario_play(struct scenario *s)
{
    struct pawl_err err;
    struct pawl *p = NULL;
    struct pawl_options o = options(s->url);
    now = s;
    memset(acked, 0, sizeof acked);
    cancelled = false;
    s->acked = 0;
    if (!honest("open", pawl_open(&o, &p, &err), PAWL_OK, &err))
        return;
    if (register_all(p, false)) {
        static const char *const queues[] = { "default", "other" };
        struct pawl_workers w = { PAWL_WORKERS_INIT, .slots = 2, .queues = queues, .n_queues = 2 };
        submit_all(p);
        for (int k = 0; k < 3; k++) /* it may be called again after an error */
            if (honest("start", pawl_start(p, &w, &err), PAWL_OK, &err))
                break;
        wait_one(p);
        look_around(p);
        decide(p);
        work_by_hand(p);
        honest("gc", pawl_gc(p, 10, NULL, NULL, &err), PAWL_OK, &err);
        honest("stop", pawl_stop(p, 400 * FIXTURE_MS, &err), PAWL_OK, &err);
    }
    pawl_close(p);
    for (int i = 0; i < CALLS; i++)
        s->acked += acked[i];
}

/* ---- Checks at the end ---- */

static int rows_of(struct pawl *p, const char *id)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    (void)p;
    EQ_INT(sqlite3_open_v2(strchr(now->plain, ':') + 1, &db, SQLITE_OPEN_READONLY, NULL),
           SQLITE_OK);
    EQ_INT(sqlite3_prepare_v2(db, "SELECT count(*) FROM box WHERE id = ?1", -1, &q, NULL),
           SQLITE_OK);
    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    EQ_INT(sqlite3_step(q), SQLITE_ROW);
    int n = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static void count_call(struct pawl *p, const char *id, bool must, bool with_sql,
                       enum pawl_state want)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    enum pawl_status st = pawl_get(p, id, 0, &shown, &err);
    if (st == PAWL_NOT_FOUND && !must)
        return;
    if (st != PAWL_OK)
        FAIL("call \"%s\" was acknowledged and is %s: %s", id, pawl_status_name(st), err.text);
    enum pawl_state state = pawl_shown_view(shown)->state;
    if (state != want)
        FAIL("call \"%s\" is %s, not %s: %s", id, pawl_state_name(state), pawl_state_name(want),
             pawl_shown_view(shown)->error ? pawl_shown_view(shown)->error : "");
    pawl_shown_free(shown);
    int rows = with_sql && now->has_sql ? rows_of(p, id) : 1;
    if (rows != 1)
        FAIL("call \"%s\" took effect %d times", id, rows);
}

void scenario_check(struct scenario *s)
{
    struct pawl_options o = options(s->plain);
    struct pawl_err err;
    struct pawl *p;
    now = s;
    OK(pawl_open(&o, &p, &err), &err);
    TRUE(register_all(p, true));
    struct pawl_shown *shown = NULL;
    if (pawl_get(p, "c-late", 0, &shown, &err) == PAWL_OK && !cancelled)
        EQ_STATUS(pawl_cancel(p, "c-late", NULL, &err), PAWL_OK, &err);
    pawl_shown_free(shown);
    fixture_start(p, 2);
    fixture_drain(p);
    for (int i = 0; i < CALLS; i++) {
        enum pawl_state want = i == REFUSE ? PAWL_FAILED
                               : i == LATE ? PAWL_CANCELLED
                                           : PAWL_COMPLETED;
        count_call(p, ids[i], acked[i], i == SQL || i == RETRY || i == WAITED, want);
    }
    count_call(p, "c-send.1", acked[SEND], true, PAWL_COMPLETED);
    count_call(p, "c-hand.1", acked[HAND], true, PAWL_COMPLETED);
    OK(pawl_stop(p, 10 * FIXTURE_SEC, &err), &err);
    pawl_close(p);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

void scenario_points(int64_t total, int seconds, void (*run)(int64_t n))
{
    const char *how = getenv("PAWL_TORTURE");
    bool full = how && strcmp(how, "full") == 0;
    int64_t until = fixture_mono() + seconds * FIXTURE_SEC;
    int64_t step = total * 618 / 1000 + 1; /* multiples of the golden ratio leave no large gaps */
    int64_t ran = 0;
    while (gcd(step, total) != 1)
        step++;
    for (int64_t n = 0; ran < total && (full || fixture_mono() < until); ran++) {
        printf("%lld\n", (long long)n + 1);
        fflush(stdout);
        run(n + 1);
        n = (n + step) % total;
    }
    printf("%lld points exist, %lld ran\n", (long long)total, (long long)ran);
}
