/*
 * wait.c - waiting for an answer of the server, with a deadline.
 *
 * A server that is stopped, or a network that drops packets, neither answers nor closes the
 * connection, and a pooler without a server lets its clients wait for minutes. At the deadline the
 * socket is shut down, which makes it a lost connection. One exception: a commit that waits for a
 * synchronous standby (ledger/patience.c).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <sys/socket.h>

#include "store/pg/pg.h"

/* A little more than the statement timeout of the server. */
#define ANSWER_US (65 * SEC_US)

/* Wait until the next answer can be read, or the connection is lost. */
static void await(struct pg *c, struct led_patience p)
{
    while (PQisBusy(c->db)) {
        struct pollfd v = { .fd = PQsocket(c->db), .events = POLLIN };
        int64_t left_us = p.next_us - world_mono(&world_real);
        if (left_us > 0 && poll(&v, 1, (int)(left_us / MS_US + 1)) <= 0)
            continue;
        if (left_us <= 0) {
            enum led_commit said = p.commits ? pg_commit_state(c) : LED_COMMIT_SILENT;
            if (!led_patient(&c->ledger, &p, world_mono(&world_real), said))
                shutdown(v.fd, SHUT_RDWR);
        }
        if (!PQconsumeInput(c->db))
            return;
    }
}

PGresult *pg_next(struct pg *c)
{
    await(c, led_patience(&c->ledger, world_mono(&world_real),
                          c->conn.patience_us ? c->conn.patience_us : ANSWER_US));
    return PQgetResult(c->db);
}

PGresult *pg_answer(struct pg *c)
{
    PGresult *last = NULL, *r;
    while ((r = pg_next(c))) {
        PQclear(last);
        last = r;
    }
    return last;
}

PGresult *pg_exec(struct pg *c, const char *text)
{
    return PQsendQuery(c->db, text) ? pg_answer(c) : NULL;
}
