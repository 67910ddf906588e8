/*
 * standby.c - is a commit waiting for a synchronous standby, is the server at work on it, or is its
 * connection dead?
 *
 * In all three cases no answer comes. The server is asked on a second connection what the session
 * of the first one is doing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/pg/pg.h"

#define ASK_US (2 * SEC_US)

/* Wait for the answer. False: the time is up, or the connection is gone. */
static bool answer_comes(PGconn *db, int64_t until_us)
{
    while (PQisBusy(db)) {
        struct pollfd v = { .fd = PQsocket(db), .events = POLLIN };
        int64_t left_us = until_us - world_mono(&world_real);
        if (left_us <= 0)
            return false;
        if (poll(&v, 1, (int)(left_us / MS_US + 1)) > 0 && !PQconsumeInput(db))
            return false;
    }
    return true;
}

static enum led_commit ask(PGconn *db, const char *pid)
{
    if (!PQsendQueryParams(db, sql_pg[SQL_STANDBY_WAIT], 1, NULL, &pid, NULL, NULL, 0) ||
        !answer_comes(db, world_mono(&world_real) + ASK_US))
        return LED_COMMIT_SILENT;
    AUTO(pg_clear) PGresult *r = PQgetResult(db);
    if (PQresultStatus(r) != PGRES_TUPLES_OK || strtol(PQgetvalue(r, 0, 0), NULL, 10) == 0)
        return LED_COMMIT_SILENT;
    return strtol(PQgetvalue(r, 0, 1), NULL, 10) > 0 ? LED_COMMIT_WAITS : LED_COMMIT_WORKS;
}

enum led_commit pg_commit_state(const struct pg *c)
{
    static const char *const names[] = { "connect_timeout", "fallback_application_name", "dbname",
                                         NULL };
    const char *const values[] = { "2", "pawl", c->url, NULL };
    char pid[16];
    /* A pooler reports numbers of its own: 0 asks for any session of this user. */
    snprintf(pid, sizeof pid, "%d", c->pooled ? 0 : PQbackendPID(c->db));
    PGconn *db = PQconnectdbParams(names, values, 1);
    enum led_commit said = PQstatus(db) == CONNECTION_OK ? ask(db, pid) : LED_COMMIT_SILENT;
    PQfinish(db);
    return said;
}
