/*
 * events_outage.c - the database of the event service is killed under load and comes back: clients
 * get a retryable error, no id is lost or used twice, and work goes on by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/world.h"
#include "db_server.h"
#include "events_fixture.h"
#include "net_fixture.h"

RUNS_ON(ENGINE_SERVER)

enum { CLIENTS = 8 };

static struct client {
    pthread_t thread;
    int port, told, refused, unknown;
} clients[CLIENTS];
static atomic_bool over;
static atomic_int told, refused;

/* Every request is answered: done, retry later, or unknown. */
static void *post(void *arg)
{
    struct client *c = arg;
    int fd = events_connect(c->port);
    while (!atomic_load(&over)) {
        events_send(fd, "POST", c->told % 2 ? "/events" : "/events/async", NULL);
        struct events_answer a = events_read(fd);
        if (a.status == 201 || a.status == 202) {
            GT_INT(a.id, 0);
            c->told++;
            atomic_fetch_add(&told, 1);
        } else if (a.status == 503) {
            c->refused++;
            atomic_fetch_add(&refused, 1);
            net_nap();
        } else {
            EQ_INT(a.status, 504);
            HAS_STR(a.body, "UNKNOWN");
            c->unknown++;
        }
    }
    close(fd);
    return NULL;
}

TEST(a_database_that_is_killed_and_comes_back, .deadline_s = 120)
{
    static const char *const options[] = { "--events-poll", "50ms", NULL };
    struct db_server *s = engine_own(param);
    int sum = 0, unknown = 0;
    struct events_proc server = events_start(engine_url(param), "serve", NULL, NULL);
    struct events_proc worker = events_start(engine_url(param), "work", NULL, options);
    events_ready(&server);
    events_ready(&worker);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].port = server.port;
        EQ_INT(pthread_create(&clients[i].thread, NULL, post, &clients[i]), 0);
    }
    NET_UNTIL(atomic_load(&told) > 100);
    db_stop(s, DB_KILL);
    NET_UNTIL(atomic_load(&refused) > 10);
    EQ_INT(events_ask(server.port, "GET", "/readyz", NULL).status, 503);
    EQ_INT(events_ask(server.port, "GET", "/events", NULL).status, 503);
    EQ_INT(events_ask(server.port, "GET", "/healthz", NULL).status, 200);
    db_up(s);
    int before = atomic_load(&told);
    NET_UNTIL(atomic_load(&told) > before + 100);
    EQ_INT(events_ask(server.port, "GET", "/readyz", NULL).status, 200);
    atomic_store(&over, true);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        sum += clients[i].told;
        unknown += clients[i].unknown;
    }
    events_until_done(param);
    EQ_INT(events_end(&server, SIGTERM), 0);
    EQ_INT(events_end(&worker, SIGTERM), 0);
    int64_t n = events_whole(param);
    printf("# %d told, %d refused, %d unknown, %lld stored\n", sum, atomic_load(&refused), unknown,
           (long long)n);
    GE_INT(n, sum);
    LE_INT(n, sum + unknown);
}
