/*
 * pg_outage.c - the database goes down under load and comes back: callers are told soon, nothing is
 * lost, no node is declared dead, and work goes on.
 *
 * The proxy between us and the server is cut, or frozen, which is what a stopped server or a silent
 * network looks like.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "base/hook.h"
#include "db_server.h"
#include "exec/internal.h"
#include "lib/lib.h"
#include "fixture.h"
#include "proxy.h"

RUNS_ON_ENGINE("postgres")

static int64_t away_us(void)
{
    return (check_long() ? 4 : 2) * FIXTURE_SEC;
}

static struct pawl *node_as(struct pawl_options o)
{
    struct pawl *p = fixture_open_as(NULL, o);
    fixture_on(p, "t", fixture_echo);
    fixture_on(p, "slow", fixture_blocks);
    fixture_start(p, 4);
    return p;
}

/* Default settings, except for a grace that is shorter than the outage. */
static struct pawl *node(const char *url, const char *name)
{
    return node_as((struct pawl_options){ .db = url,
                                          .node = name,
                                          .heartbeat_interval_us = 200 * FIXTURE_MS,
                                          .heartbeat_grace_us = 1 * FIXTURE_SEC * check_scale() });
}

/* For cases in which the grace must not matter: a machine that stalls for a second ends no
 * transaction and stops no worker. */
#define LONG_GRACE_US (60 * FIXTURE_SEC)

static struct pawl *node_with_long_grace(const char *url)
{
    return node_as((struct pawl_options){ .db = url, .heartbeat_grace_us = LONG_GRACE_US });
}

static bool is_away(struct pawl *p)
{
    struct exec_figures f;
    exec_figures(p->e, &f);
    return f.away_us > 0;
}

/* ---- A client that submits during the outage ------------------------------------------------- */

struct client {
    struct pawl *p;
    char name;
    atomic_bool stop;
    atomic_int sent, accepted, refused;
    atomic_llong from_us, longest_us; /* the longest answer to requests that began since then */
    pthread_t thread;
};

static void *submits(void *arg)
{
    struct client *c = arg;
    for (int n = 0; !atomic_load(&c->stop); n++) {
        char id[32];
        struct pawl_receipt r;
        struct pawl_err err;
        int64_t began_us = fixture_mono();
        snprintf(id, sizeof id, "%c-%d", c->name, n);
        struct pawl_spec s = { PAWL_SPEC_INIT, .id = id, .type = "t" };
        enum pawl_status st = pawl_submit(c->p, &s, 1, 0, &r, &err);
        if (began_us >= atomic_load(&c->from_us))
            atomic_store(&c->longest_us,
                         MAX(atomic_load(&c->longest_us), fixture_mono() - began_us));
        if (st != PAWL_OK && st != PAWL_BUSY && st != PAWL_UNKNOWN)
            OK(st, &err);
        atomic_fetch_add(&c->sent, 1);
        atomic_fetch_add(st == PAWL_OK ? &c->accepted : &c->refused, 1);
        usleep(st == PAWL_OK ? 500 : 5000);
    }
    return NULL;
}

static void clients_start(struct client *v, struct pawl *p, int n)
{
    for (int i = 0; i < n; i++) {
        v[i] = (struct client){ .p = p, .name = (char)('a' + i) };
        EQ_INT(pthread_create(&v[i].thread, NULL, submits, &v[i]), 0);
    }
}

/* While the database is down callers are still answered, 20 times each within one wait: a caller
 * that waited for the server, or for a connection to it, would be answered once at most. */
static void are_refused(struct client *v, int n)
{
    for (int i = 0; i < n; i++) {
        int was = atomic_load(&v[i].refused);
        UNTIL(atomic_load(&v[i].refused) >= was + 20);
    }
}

/* Tolerance for a machine that stalls. */
#define ANSWER_MAX_US (10 * FIXTURE_SEC * check_scale())

/* Every accepted call ends, once; no other call does, except those that were UNKNOWN. */
static void clients_end(struct client *v, int n, struct pawl *p, int64_t answer_max_us)
{
    int accepted = 0, refused = 0;
    for (int i = 0; i < n; i++) {
        atomic_store(&v[i].stop, true);
        pthread_join(v[i].thread, NULL);
        accepted += atomic_load(&v[i].accepted);
        refused += atomic_load(&v[i].refused);
        printf("client %c: %d accepted, %d refused, the longest answer took %lld ms\n", v[i].name,
               atomic_load(&v[i].accepted), atomic_load(&v[i].refused),
               atomic_load(&v[i].longest_us) / FIXTURE_MS);
        LT_INT(atomic_load(&v[i].longest_us), answer_max_us);
    }
    GT_INT(accepted, 0);
    GT_INT(refused, 0);
    fixture_drain(p);
    GE_INT(fixture_count(p, PAWL_COMPLETED), accepted);
    LE_INT(fixture_count(p, PAWL_COMPLETED), accepted + refused + 1);
    EQ_INT(fixture_count(p, PAWL_DEAD_LETTER) + fixture_count(p, PAWL_FAILED), 0);
}

/* A call that runs during the outage, and a caller that waits for it during the outage. */
static void *waits(void *arg)
{
    fixture_ends(arg, "through", PAWL_COMPLETED);
    return NULL;
}

TEST(an_outage_passes, .deadline_s = 120)
{
    const char *straight = engine_url(param);
    struct client v[2];
    struct pawl *p = node(proxy_url(straight), "n");
    pthread_t waiting;
    fixture_submit(p, "through", "slow");
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_INT(pthread_create(&waiting, NULL, waits, p), 0);
    clients_start(v, p, 2);
    UNTIL(atomic_load(&v[0].accepted) > 20);
    FALSE(is_away(p));

    proxy_set(PROXY_CUT);
    int64_t until_us = fixture_mono() + away_us();
    UNTIL(is_away(p));
    fixture_open_gate(); /* It ends now, and its result cannot be stored. */
    UNTIL(fixture_mono() > until_us);
    are_refused(v, 2);
    EQ_INT(db_int(&db_postgres, "SELECT count(*) FROM pawl.outcome o JOIN pawl.call c USING (seq) "
                                "WHERE c.id = 'through';"),
           0);
    int before = atomic_load(&v[0].accepted);
    proxy_set(PROXY_UP);

    UNTIL(!is_away(p));
    UNTIL(atomic_load(&v[0].accepted) > before + 20);
    pthread_join(waiting, NULL);
    clients_end(v, 2, p, ANSWER_MAX_US);
    /* A call that ran was not run again: its result was kept. */
    EQ_INT(db_int(&db_postgres, "SELECT count(*) FROM pawl.attempt;"), 0);
    EQ_INT(db_int(&db_postgres, "SELECT dead FROM pawl.node;"), 0);
    pawl_close(p);
}

/* A caller that begins to wait while the database is down also waits for the database, until its
 * own time is up. */
TEST(a_get_that_begins_in_an_outage_waits, .deadline_s = 120)
{
    struct pawl *p = node_with_long_grace(proxy_url(engine_url(param)));
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    pthread_t waiting;
    fixture_submit(p, "through", "slow");
    UNTIL(atomic_load(&fixture_inside) == 1);
    proxy_set(PROXY_CUT);
    UNTIL(proxy_open_now() == 0);
    EQ_STATUS(pawl_get(p, "through", 0, &shown, &err), PAWL_BUSY, &err);
    int64_t asked_us = fixture_mono();
    EQ_STATUS(pawl_get(p, "through", 500 * FIXTURE_MS, &shown, &err), PAWL_BUSY, &err);
    GE_INT(fixture_mono() - asked_us, 500 * FIXTURE_MS);
    EQ_INT(pthread_create(&waiting, NULL, waits, p), 0);
    UNTIL(waiters_count(&p->e->waiters) == 1);
    fixture_open_gate();
    proxy_set(PROXY_UP);
    pthread_join(waiting, NULL);
    EQ_STATUS(pawl_get(p, "never", 60 * FIXTURE_SEC, &shown, &err), PAWL_NOT_FOUND, &err);
    pawl_close(p);
}

/* Two nodes lose the database together: neither declares the other dead, whichever is back first.
 */
TEST(nobody_is_taken_for_dead, .deadline_s = 120)
{
    const char *url = proxy_url(engine_url(param));
    struct pawl *a = node(url, "a"), *b = node(url, "b");
    const char *beats = "SELECT min(beats) FROM pawl.node;";
    fixture_submit(a, "held", "slow");
    UNTIL(atomic_load(&fixture_inside) == 1);
    UNTIL(db_int(&db_postgres, beats) > 3);
    proxy_set(PROXY_CUT);
    usleep((unsigned)away_us());
    int64_t was = db_int(&db_postgres, beats);
    proxy_set(PROXY_UP);
    UNTIL(db_int(&db_postgres, beats) > was + 10); /* two seconds: twice the grace */
    EQ_INT(db_int(&db_postgres, "SELECT sum(dead) FROM pawl.node;"), 0);
    fixture_open_gate();
    fixture_ends(b, "held", PAWL_COMPLETED);
    EQ_INT(db_int(&db_postgres, "SELECT count(*) FROM pawl.attempt;"), 0);
    pawl_close(a);
    pawl_close(b);
}

/* ---- A claim that comes too late ------------------------------------------------------------- */

static struct pawl *claims;
static atomic_bool came;

static int64_t leases(void)
{
    return db_int(&db_postgres, "SELECT count(*) FROM pawl.lease;");
}

/* The node is drained, and loses the database, right after its claim was stored. */
static void drains(const char *name, void *ctx)
{
    (void)ctx;
    if (strcmp(name, "exec.claimed") || atomic_load(&came) || !leases())
        return;
    exec_drain(claims->e, true);
    proxy_set(PROXY_CUT);
    UNTIL(proxy_open_now() == 0);
    atomic_store(&came, true);
}

/* The claim could not be handed back: the node still holds the calls, and runs them when it may. */
TEST(a_claim_that_is_not_handed_back_is_not_forgotten, .deadline_s = 120)
{
    struct pawl *p = node_with_long_grace(proxy_url(engine_url(param)));
    struct pawl_spec other = { PAWL_SPEC_INIT, .id = "other", .type = "t" };
    struct pawl_receipt r;
    struct pawl_err err;
    claims = p;
    hook_on_pause(drains, NULL);
    fixture_submit(p, "c", "t");
    UNTIL(atomic_load(&came));
    /* The store thread gets here after the claim: by then handing back was refused, too. */
    EQ_STATUS(pawl_submit(p, &other, 1, 0, &r, &err), PAWL_BUSY, &err);
    EQ_INT(leases(), 1);
    proxy_set(PROXY_UP);
    hook_on_pause(NULL, NULL);
    exec_drain(p->e, false);
    fixture_ends(p, "c", PAWL_COMPLETED);
    EQ_INT(atomic_load(&fixture_runs), 1);
    pawl_close(p);
}

/* ---- A handler whose transaction cannot begin ------------------------------------------------ */

static atomic_bool counts_may;

static int counts(struct pawl_call *c)
{
    struct pawl_err err;
    atomic_fetch_add(&fixture_inside, 1);
    UNTIL(atomic_load(&counts_may));
    enum pawl_status st = pawl_sql(c, "UPDATE public.counted SET n = n + 1", NULL, 0, NULL, &err);
    atomic_fetch_add(&fixture_runs, 1);
    return st == PAWL_OK ? pawl_reply_int(c, 1) : pawl_fail(c, "%s", err.text);
}

/* It has only one attempt, and the outage is not its fault. */
TEST(an_attempt_without_a_transaction_is_none, .deadline_s = 120)
{
    struct pawl_options o = { .db = proxy_url(engine_url(param)),
                              .heartbeat_grace_us = LONG_GRACE_US };
    struct pawl *p = fixture_open_as(NULL, o);
    db_ask(&db_postgres,
           "CREATE TABLE public.counted (n int); INSERT INTO public.counted VALUES (0); "
           "GRANT ALL ON public.counted TO public;");
    fixture_on(p, "counts", counts);
    fixture_start(p, 2);
    fixture_submit_as(
        p, (struct pawl_spec){ PAWL_SPEC_INIT, .id = "c", .type = "counts", .max_attempts = 1 });
    UNTIL(atomic_load(&fixture_inside) == 1);
    proxy_set(PROXY_CUT);
    atomic_store(&counts_may, true);
    UNTIL(atomic_load(&fixture_runs) == 1);
    proxy_set(PROXY_UP);
    fixture_ends(p, "c", PAWL_COMPLETED);
    GE_INT(atomic_load(&fixture_runs), 2);
    EQ_INT(db_int(&db_postgres, "SELECT n FROM public.counted;"), 1);
    EQ_INT(db_int(&db_postgres, "SELECT count(*) FROM pawl.attempt;"), 0);
    EQ_INT(db_int(&db_postgres, "SELECT attempts FROM pawl.outcome;"), 0);
    pawl_close(p);
}

/* A server that does not answer at all. */
TEST(a_silent_server_is_not_waited_for, .deadline_s = 120)
{
    struct client v[2];
    struct pawl *p = node(proxy_url(engine_url(param)), "n");
    fixture_submit(p, "first", "t");
    fixture_ends(p, "first", PAWL_COMPLETED);
    proxy_set(PROXY_FROZEN);
    clients_start(v, p, 2);
    UNTIL(is_away(p));
    /* Requests that were running when it fell silent may take a while; later ones are answered at
     * once. */
    for (int i = 0; i < 2; i++)
        atomic_store(&v[i].from_us, fixture_mono());
    are_refused(v, 2);
    EQ_INT(atomic_load(&v[0].accepted), 0);
    proxy_set(PROXY_UP);
    UNTIL(atomic_load(&v[0].accepted) > 20);
    UNTIL(!is_away(p));
    clients_end(v, 2, p, ANSWER_MAX_US);
    pawl_close(p);
}
