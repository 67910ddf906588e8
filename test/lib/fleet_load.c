/*
 * fleet_load.c - see fleet_load.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fleet_load.h"

#include <pthread.h>
#include <stdio.h>

#include "fleet.h"
#include "server_process.h"

enum { THREADS_MAX = 16 };

static pthread_t threads[THREADS_MAX];
static int n_threads;
static atomic_bool over;
static atomic_int done;

/* One call, repeated on every node until one answers. Each thread counts in its own row: a lock on
 * a shared row would be an error in the handler. */
static void call(struct server_client *c, int thread, int n)
{
    char body[200];
    int64_t until = fixture_mono() + 4 * FIXTURE_WAIT_US;
    snprintf(body, sizeof body,
             "{\"id\":\"l%d-%d\",\"type\":\"lab\",\"method\":\"count\","
             "\"input\":{\"name\":\"load%d\",\"ms\":2}}",
             thread, n, thread);
    for (int node = thread;; node++) {
        if (fixture_mono() > until)
            FAIL("call l%d-%d has not ended", thread, n);
        struct server_answer a =
            server_client_try(c, fleet_port(node % FLEET_NODES), "/v1/calls?wait=2", body);
        if (a.status == 200) {
            EQ_STR(server_client_text(c, a.json, "status"), "completed");
            break;
        }
        if (a.status != 0 && a.status != 202 && a.status != 503 && a.status != 504)
            FAIL("call l%d-%d: %d %.*s", thread, n, a.status, BYTES_ARG(a.json->raw));
        /* Refusals come at once: without a pause they would take the processor from the nodes. */
        usleep(a.status == 503 ? 20000 : 2000);
    }
    atomic_fetch_add(&done, 1);
}

static void *caller(void *arg)
{
    int thread = (int)(intptr_t)arg;
    struct server_client c;
    server_client_init(&c, (uint64_t)thread);
    c.patience_ms = 5000 * check_scale();
    for (int n = 0; !atomic_load(&over); n++)
        call(&c, thread, n);
    server_client_release(&c);
    return NULL;
}

void fleet_load_begin(int n)
{
    n_threads = n;
    for (int i = 0; i < n; i++)
        EQ_INT(pthread_create(&threads[i], NULL, caller, (void *)(intptr_t)i), 0);
}

int fleet_load_done(void)
{
    return atomic_load(&done);
}

int fleet_load_end(void)
{
    atomic_store(&over, true);
    for (int i = 0; i < n_threads; i++)
        EQ_INT(pthread_join(threads[i], NULL), 0);
    return atomic_load(&done);
}

void fleet_load_check(const void *param, int calls, bool database_went)
{
    EQ_INT(engine_int(param, "SELECT SUM(n) FROM lab_count WHERE name LIKE 'load%'"), calls);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_outcome WHERE status = 3"), calls);
    int64_t tries = engine_int(param, "SELECT COUNT(*) FROM pawl_attempt");
    EQ_STR(engine_rows(param, database_went ? "SELECT error FROM pawl_attempt WHERE error NOT LIKE "
                                              "'SQL: %' AND error NOT LIKE 'database: %'"
                                            : "SELECT error FROM pawl_attempt"),
           "");
    LE_INT(tries, database_went ? n_threads : 0);
    EQ_INT(engine_int(param, "SELECT COALESCE(SUM(lost), 0) FROM pawl_outcome"), 0);
    EQ_INT(engine_int(param, "SELECT COALESCE(SUM(attempts), 0) FROM pawl_outcome"), tries);
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_lease"), 0);
}
