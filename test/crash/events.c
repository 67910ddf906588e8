/*
 * events.c - the event service as processes, some of which are killed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/world.h"
#include "events_fixture.h"
#include "net_fixture.h"

RUNS_ON(ENGINES_DURABLE)

enum { REQUESTS = 1000, CLIENTS = 40 };

static void raise_files(void)
{
    struct rlimit limit;
    EQ_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)8192);
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Every id that was answered is in the table, with the value that was answered. */
static void check_told(const void *param, int64_t id, const char *value)
{
    char sql[400];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM events WHERE id = %lld AND value = '%s';",
             (long long)id, value);
    EQ_INT(engine_int(param, sql), 1);
}

/* ---- Two servers ----------------------------------------------------------------------------- */

/* All requests are sent before the first answer is read. */
TEST(a_thousand_at_once_over_two_servers, .deadline_s = 120)
{
    static int fd[REQUESTS];
    static bool seen[REQUESTS + 1];
    struct events_proc v[2];
    raise_files();
    for (int i = 0; i < 2; i++) /* both create the tables */
        v[i] = events_start(engine_url(param), "serve", NULL, NULL);
    for (int i = 0; i < 2; i++)
        events_ready(&v[i]);
    EQ_INT(events_whole(param), 0);
    for (int i = 0; i < REQUESTS; i++) {
        fd[i] = events_connect(v[i % 2].port);
        GE_INT(fd[i], 0);
    }
    int64_t begun = world_mono(&world_real);
    for (int i = 0; i < REQUESTS; i++)
        events_send(fd[i], "POST", "/events", NULL);
    for (int i = 0; i < REQUESTS; i++) {
        struct events_answer a = events_read(fd[i]);
        EQ_INT(a.status, 201);
        TRUE(a.id >= 1 && a.id <= REQUESTS && !seen[a.id]);
        seen[a.id] = true;
        close(fd[i]);
        if (i % 100 == 0)
            check_told(param, a.id, a.value);
    }
    printf("# %d events in %lld ms\n", REQUESTS,
           (long long)((world_mono(&world_real) - begun) / MS_US));
    EQ_STR(events_ask(v[0].port, "GET", "/events", NULL).body, "{\"count\":1000}");
    EQ_STR(events_ask(v[1].port, "GET", "/events", NULL).body, "{\"count\":1000}");
    EQ_INT(events_whole(param), REQUESTS);
    for (int i = 0; i < 2; i++)
        EQ_INT(events_end(&v[i], SIGTERM), 0);
}

struct client {
    pthread_t thread;
    int port, told, lost;
    struct told {
        int64_t id;
        char value[64];
    } v[REQUESTS];
};
static struct client clients[CLIENTS];
static atomic_int answers;
static atomic_bool over;

static void *post(void *arg)
{
    struct client *c = arg;
    int fd = events_connect(c->port);
    while (fd >= 0 && !atomic_load(&over) && c->told < REQUESTS) {
        events_send(fd, "POST", "/events", NULL);
        struct events_answer a = events_read(fd);
        if (a.status != 201) {
            EQ_INT(a.status, 0); /* the server was killed */
            c->lost++;
            break;
        }
        c->v[c->told].id = a.id;
        snprintf(c->v[c->told++].value, 64, "%.60s", a.value);
        atomic_fetch_add(&answers, 1);
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void until_answers(int n)
{
    NET_UNTIL(atomic_load(&answers) >= n);
}

TEST(a_server_killed_in_the_middle_leaves_no_gap_and_no_duplicate, .deadline_s = 120)
{
    static bool seen[CLIENTS * REQUESTS + 1];
    struct events_proc v[2];
    int lost = 0, told = 0;
    for (int i = 0; i < 2; i++)
        v[i] = events_start(engine_url(param), "serve", NULL, NULL);
    for (int i = 0; i < 2; i++)
        events_ready(&v[i]);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].port = v[i % 2].port;
        EQ_INT(pthread_create(&clients[i].thread, NULL, post, &clients[i]), 0);
    }
    until_answers(300);
    events_end(&v[0], SIGKILL);
    until_answers(atomic_load(&answers) + 300); /* the other one goes on at once */
    atomic_store(&over, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        lost += clients[i].lost;
        told += clients[i].told;
    }
    EQ_INT(events_end(&v[1], SIGTERM), 0);
    int64_t n = events_whole(param);
    printf("# %d told, %d answers lost, %lld stored\n", told, lost, (long long)n);
    GE_INT(lost, 1); /* it was killed in the middle */
    GE_INT(n, told);
    LE_INT(n, told + lost);
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < clients[i].told; k++) {
            TRUE(clients[i].v[k].id <= n && !seen[clients[i].v[k].id]);
            seen[clients[i].v[k].id] = true;
        }
        if (clients[i].told)
            check_told(param, clients[i].v[clients[i].told - 1].id,
                       clients[i].v[clients[i].told - 1].value);
    }
}

/* At every crash point. */
TEST(a_server_killed_at_any_point_leaves_its_tables_whole, .deadline_s = 120)
{
    static const char *const points[] = { "events.counted:3", "events.added:3" };
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        struct events_proc p = events_start(engine_url(param), "serve", points[i], NULL);
        int64_t before = 0;
        events_ready(&p);
        before = events_whole(param);
        for (int k = 1; k <= 2; k++)
            EQ_INT(events_ask(p.port, "POST", "/events", NULL).id, before + k);
        EQ_INT(events_ask(p.port, "POST", "/events/async", NULL).status, 0);
        int status = events_end(&p, 0);
        TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        p = events_start(engine_url(param), "serve", NULL, NULL);
        events_ready(&p);
        /* Its transaction has ended, committed or not, before the next event gets its id. */
        EQ_INT(events_ask(p.port, "POST", "/events", NULL).id, before + 3 + (int64_t)i);
        EQ_INT(events_end(&p, SIGTERM), 0);
        EQ_INT(events_whole(param), before + 3 + (int64_t)i);
    }
}

TEST(processes_that_start_together_leave_one_counter, .deadline_s = 120)
{
    struct events_proc v[6];
    for (size_t i = 0; i < COUNT_OF(v); i++)
        v[i] = events_start(engine_url(param), i % 3 ? "serve" : "work", NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        events_ready(&v[i]);
    EQ_INT(events_whole(param), 0);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        EQ_INT(events_end(&v[i], SIGTERM), 0);
}

/* ---- Workers --------------------------------------------------------------------------------- */

TEST(what_a_killed_worker_held_another_does_within_one_poll, .deadline_s = 120)
{
    static const char *const options[] = { "--events-workers", "1", "--events-poll", "1s", NULL };
    events_pending(param, 10);
    struct events_proc idle = events_start(engine_url(param), "work", NULL, options);
    events_ready(&idle);
    events_until_done(param);
    struct events_proc p = events_start(engine_url(param), "work", "events.held:1", options);
    events_ready(&p);
    /* The worker that comes first claims them; when that one is killed, the other needs one poll.
     */
    bool died = false;
    for (int i = 0; i < 20 && !died; i++) {
        int status;
        events_pending(param, 5);
        int64_t begun = world_mono(&world_real);
        events_until_done(param);
        died = waitpid(p.pid, &status, WNOHANG) == p.pid;
        if (died)
            TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        /* A poll takes 1 to 1.5 s; the rest is tolerance for a busy machine. */
        LT_INT(world_mono(&world_real) - begun, 15 * SEC_US * check_scale());
    }
    TRUE(died); /* it did hold some */
    close(p.out);
    EQ_INT(events_left(param), 0);
    EQ_INT(events_end(&idle, SIGTERM), 0);
    EQ_INT(engine_int(param, "SELECT count(*) FROM events WHERE value = '';"), 0);
    events_whole(param);
}

TEST(eight_worker_processes_do_a_thousand, .deadline_s = 120)
{
    static const char *const options[] = { "--events-workers", "2", "--events-batch", "25", NULL };
    struct events_proc v[4];
    events_pending(param, REQUESTS);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        v[i] = events_start(engine_url(param), "work", NULL, options);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        events_ready(&v[i]);
    events_until_done(param);
    for (size_t i = 0; i < COUNT_OF(v); i++)
        EQ_INT(events_end(&v[i], SIGTERM), 0);
    EQ_INT(events_whole(param), REQUESTS);
}
