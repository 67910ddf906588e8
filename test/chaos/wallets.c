/*
 * wallets.c - three nodes on one database, money that moves between wallets, and faults: nodes
 * killed, frozen past the grace and restarted, connections cut, the database restarted and killed,
 * calls that kill their process.
 *
 * The list of faults is generated from PAWL_SEED before the first of them; PAWL_CHAOS_SECONDS is
 * its length (60). In the end one node is killed for good and no client sends anything any more:
 * what was accepted must end by itself. Then history.h compares what every client saw with what the
 * database holds, and reports broken promises.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "chaos_load.h"
#include "db_server.h"
#include "fleet.h"
#include "fault_plan.h"
#include "own_world.h"
#include "wallet_fixture.h"

RUNS_ON(ENGINE_SERVER)

#define GRACE_US (1500 * FIXTURE_MS * check_scale())
/* Tolerance for a busy machine, added to the promised times. */
#define SLACK_US (3 * FIXTURE_SEC * check_scale())

static struct history history;
static struct db_server *server;
static int64_t frozen_us[FLEET_NODES];
static int done[FAULT_KINDS];
static bool begun[FAULT_PLAN_MAX];

/* ---- The faults ------------------------------------------------------------------------------ */

/* The beginning or the end of a fault. */
struct step {
    int64_t at_us;
    const struct planned_fault *m;
    bool over;
};

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return (int)(x->m - y->m);
}

static bool lasts(const struct planned_fault *m)
{
    return m->kind == FAULT_KILL || m->kind == FAULT_FREEZE;
}

static size_t steps_make(const struct planned_fault *m, size_t n, struct step *out)
{
    size_t steps = 0;
    for (size_t i = 0; i < n; i++) {
        out[steps++] = (struct step){ m[i].at_us, &m[i], false };
        if (lasts(&m[i]))
            out[steps++] = (struct step){ m[i].at_us + m[i].for_us, &m[i], true };
    }
    qsort(out, steps, sizeof *out, by_time);
    return steps;
}

static void fault(enum history_fault_kind kind, int node, int64_t since_us)
{
    int64_t now_us = history_now();
    history_add_fault(&history, &(struct history_fault){ .kind = kind,
                                                         .node = node,
                                                         .at_us = since_us ? since_us : now_us,
                                                         .until_us = now_us });
}

static void died(int node)
{
    fault(HISTORY_DEATH, node, 0);
    printf("%8.3f s: n%d died of poison\n", history_at(&history, history_now()), node);
}

static void kill_node(int node)
{
    int64_t since_us = history_now();
    fleet_kill(node);
    fault(HISTORY_KILL, node, since_us);
}

static void freeze(int node)
{
    frozen_us[node] = history_now();
    fleet_freeze(node);
}

static void thaw(int node)
{
    fleet_thaw(node);
    fault(HISTORY_FREEZE, node, frozen_us[node]);
}

static void restart_database(enum db_stop how)
{
    int64_t since_us = history_now();
    db_restart(server, how);
    fault(HISTORY_AWAY, -1, since_us);
}

static void end_of(const struct planned_fault *m)
{
    if (m->kind == FAULT_KILL)
        fleet_start(m->node);
    else
        thaw(m->node);
}

static void begin(const struct planned_fault *m)
{
    done[m->kind]++;
    switch (m->kind) {
    case FAULT_KILL:
        kill_node(m->node);
        break;
    case FAULT_FREEZE:
        freeze(m->node);
        break;
    case FAULT_RESTART:
        fleet_restart(m->node);
        break;
    case FAULT_CUT:
        db_kill_connections(server);
        break;
    case FAULT_DB_CLEAN:
        restart_database(DB_CLEAN);
        break;
    case FAULT_DB_KILL:
        restart_database(DB_KILL);
        break;
    case FAULT_POISON:
        chaos_load_poison();
    }
}

static void say(const struct step *s)
{
    printf("%8.3f s (due %.3f): ", history_at(&history, history_now()), (double)s->at_us / 1e6);
    if (s->m->node >= 0)
        printf("n%d ", s->m->node);
    printf("%s%s\n", fault_name(s->m->kind), s->over ? ": over" : "");
    fflush(stdout);
}

static void take(const struct step *s)
{
    say(s);
    if (s->over)
        end_of(s->m);
    else
        begin(s->m);
}

/* A step that took long delays all later ones, so that a node stays frozen for as long as planned.
 * Faults that have not begun when the time is up are dropped. */
static void run(uint64_t seed, int64_t seconds)
{
    static struct planned_fault m[FAULT_PLAN_MAX];
    static struct step steps[2 * FAULT_PLAN_MAX];
    size_t n = steps_make(m, fault_plan_make(seed, FLEET_NODES, seconds, GRACE_US, m), steps);
    int64_t began_us = fixture_mono(), late_us = 0, ends_us = began_us + seconds * FIXTURE_SEC;
    for (size_t i = 0; i < n; i++) {
        bool begins = !steps[i].over;
        int64_t due_us = began_us + late_us + steps[i].at_us;
        if ((begins && due_us > ends_us) || (!begins && !begun[steps[i].m - m]))
            continue;
        while (fixture_mono() < due_us) {
            fleet_tend();
            usleep(2000);
        }
        begun[steps[i].m - m] = true;
        take(&steps[i]);
        fleet_tend();
        late_us += fixture_mono() - due_us;
    }
}

/* ---- After the faults ------------------------------------------------------------------------ */

/* Does the node hold a lease now? */
static bool holds(const void *param, int node)
{
    char sql[100];
    fleet_tend();
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_lease WHERE node = 'n%d'", node);
    return fleet_port(node) && engine_int(param, sql) > 0;
}

/* One node is killed for good while it holds calls, no client sends anything, and everything that
 * was accepted must end. */
static void come_to_rest(const void *param, uint64_t seed)
{
    int last = (int)(mix64(seed ^ 1) % FLEET_NODES);
    fleet_ready();
    chaos_load_slow();
    UNTIL(holds(param, last));
    kill_node(last);
    chaos_load_over();
    int64_t began_us = fixture_mono(), until = began_us + FIXTURE_WAIT_US + GRACE_US;
    chaos_load_end(&history);
    while (history_left(param) > 0 && fixture_mono() < until) {
        fleet_tend();
        usleep(20000);
    }
    if (history_left(param) > 0)
        history_print_left(param);
    printf("at rest %.3f s after n%d was killed for good\n",
           (double)(fixture_mono() - began_us) / 1e6, last);
    fleet_end();
}

/* Calls accepted in each second: a stall is worth a look even when no promise was broken. */
static void print_seconds(void)
{
    enum { SECONDS = 300 };
    static int v[SECONDS];
    int last = 0;
    for (size_t i = 0; i < history.n_calls; i++) {
        double at = history_at(&history, history.calls[i].accepted_us);
        if (!history.calls[i].accepted_us || at < 0 || at >= SECONDS)
            continue;
        v[(int)at]++;
        last = (int)at > last ? (int)at : last;
    }
    printf("accepted a second:");
    for (int i = 0; i <= last; i++)
        printf(" %d", v[i]);
    printf("\n");
}

static void print_sums(void)
{
    size_t answers = 0, duplicates = 0, refused = 0, accepted = 0, ended = 0;
    for (size_t i = 0; i < history.n_asks; i++) {
        const struct history_ask *a = &history.asks[i];
        answers += a->status != 0;
        duplicates += a->duplicate;
        refused += a->status == 409;
    }
    for (size_t i = 0; i < history.n_calls; i++) {
        accepted += history.calls[i].accepted_us != 0;
        ended += history.calls[i].ended_us != 0;
    }
    printf("%zu calls asked for %zu times: %zu answers, %zu duplicates, %zu refused for another "
           "meaning; %zu accepted, %zu seen ended\n",
           history.n_calls, history.n_asks, answers, duplicates, refused, accepted, ended);
    printf(
        "%zu calls in the database, %zu attempts lost; %d starts of nodes, %d without a database\n",
        history.n_rows, history.n_attempts, fleet_starts(), fleet_failed_starts());
    for (int i = 0; i < FAULT_KINDS; i++)
        printf("%s%d %s", i ? ", " : "", done[i], fault_name((enum fault_kind)i));
    printf("\n");
    GT_INT((int64_t)accepted, 100);
    GT_INT((int64_t)(history.n_asks - answers), 0);
    GT_INT((int64_t)duplicates, 0);
    GT_INT((int64_t)refused, 0);
}

static void judge(uint64_t seed)
{
    int n = history_check(&history);
    print_seconds();
    print_sums();
    for (int i = 0; i < history.n_found; i++)
        printf("%s\n", history.found[i]);
    for (int i = 1; i <= HISTORY_PROMISES; i++)
        if (history.broken[i])
            printf("promise %d was broken %d times\n", i, history.broken[i]);
    if (n)
        history_write(&history, "history.txt");
    if (n)
        FAIL("%d findings, see history.txt; PAWL_SEED=%llu replays the faults", n,
             (unsigned long long)seed);
}

TEST(three_nodes_keep_every_promise, .deadline_s = 295)
{
    int64_t seconds = wallet_setting("PAWL_CHAOS_SECONDS", check_long() ? 60 : 15);
    uint64_t seed = (uint64_t)wallet_setting("PAWL_SEED", fixture_mono());
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    server = engine_own(param);
    fleet_begin(
        &(struct fleet_conf){ .db = engine_url(param), .grace_us = GRACE_US, .died = died });
    for (int i = 0; i < FLEET_NODES; i++)
        fleet_start(i);
    fleet_ready();
    history_init(&history);
    history.grace_us = GRACE_US;
    history.slack_us = SLACK_US;
    chaos_load_begin(seed);
    run(seed, seconds);
    come_to_rest(param, seed);
    history_read(&history, param);
    judge(seed);
    history_release(&history);
}
